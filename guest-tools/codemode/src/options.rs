//! What a script sets for itself in its first line: `// @options: {…}`.

use serde_json::{Map, Value};

/// How that begins.
pub(crate) const MARK: &str = "// @options:";

/// What a script may set for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Options {
    /// The longest text that the model is shown, in tokens of four characters.
    pub(crate) max_output_tokens: u32,
    /// When the script is ended, in milliseconds from its start.
    pub(crate) timeout_ms: Option<u32>,
    /// Calls that run at once.
    pub(crate) max_parallel_calls: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_output_tokens: 10_000, timeout_ms: None, max_parallel_calls: 16 }
    }
}

const KEYS: [(&str, u32); 3] = [("max_output_tokens", 100_000), ("timeout_ms", 3_600_000), ("max_parallel_calls", 256)];

/// The options in a comment of one line, if it is meant to set some: whatever it has between the signs and the words.
///
/// # Errors
/// What is wrong with them, or how they are to be written, in one line.
pub(crate) fn of_comment(line: &str) -> Option<Result<Options, String>> {
    /// How far a word may be from the right one.
    const NEAR: usize = 2;
    let (text, is_block) = match (line.strip_prefix("//"), line.strip_prefix("/*")) {
        (Some(text), _) => (text, false),
        (None, Some(text)) => (text.trim_end().trim_end_matches("*/").trim_start_matches('*'), true),
        (None, None) => return None,
    };
    let text = text.trim();
    let (has_sign, text) = text.strip_prefix('@').map_or((false, text), |text| (true, text.trim_start()));
    let end = text.find(|one: char| !one.is_alphanumeric() && one != '_').unwrap_or(text.len());
    let (word, rest) = (text.get(..end)?, text.get(end..)?.trim_start());
    let distance = strsim::damerau_levenshtein(&word.to_lowercase(), "options");
    let (has_colon, rest) = rest.strip_prefix(':').map_or((false, rest), |rest| (true, rest.trim_start()));
    // Prose has this word, too, and there are others with a sign.
    if distance > NEAR || !(rest.starts_with('{') || (has_sign && distance < NEAR)) {
        return None;
    }
    if word == "options" && has_sign && has_colon && !is_block {
        return Some(read(rest));
    }
    Some(Err(format!("options are written `{MARK} {{\"timeout_ms\": 60000}}`")))
}

/// Reads what follows [`MARK`].
///
/// # Errors
/// What is wrong with it, in one line.
pub(crate) fn read(text: &str) -> Result<Options, String> {
    let fields: Map<String, Value> = serde_json::from_str(text.trim())
        .map_err(|error| format!("the options are not a JSON object in one line: {error}"))?;
    let mut options = Options::default();
    for (key, value) in &fields {
        let Some((_, most)) = KEYS.iter().find(|(known, _)| known == key) else {
            return Err(unknown(key));
        };
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        let Some(number) = number.filter(|number| (1..=*most).contains(number)) else {
            return Err(format!("the option {key} is a whole number from 1 to {most}, not {value}"));
        };
        match key.as_str() {
            "max_output_tokens" => options.max_output_tokens = number,
            "timeout_ms" => options.timeout_ms = Some(number),
            _ => options.max_parallel_calls = number,
        }
    }
    Ok(options)
}

fn unknown(key: &str) -> String {
    let known = KEYS.map(|(known, _)| known);
    let near = known.iter().min_by_key(|known| strsim::damerau_levenshtein(known, key));
    let near = near.filter(|near| strsim::damerau_levenshtein(near, key) <= near.len() / 2);
    let shown: String = key.chars().take(40).collect::<String>().escape_debug().to_string();
    match near {
        Some(near) => format!("there is no option `{shown}`; did you mean `{near}`?"),
        None => format!("there is no option `{shown}`; there are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_that_means_options_is_read_or_said_how_to_write() {
        for line in
            ["// @options: {\"timeout_ms\": 5}", "//@options:{\"timeout_ms\":5}", "//  @options : {\"timeout_ms\": 5}"]
        {
            assert_eq!(of_comment(line).unwrap().unwrap().timeout_ms, Some(5), "{line}");
        }
        let misspelt = [
            "// @options {\"timeout_ms\": 5}",
            "// @option: {\"timeout_ms\": 5}",
            "// options: {\"timeout_ms\": 5}",
            "// @Options: {}",
            "/* @options: {\"timeout_ms\": 5} */",
        ];
        for line in misspelt {
            let said = of_comment(line).unwrap().unwrap_err();
            assert!(said.contains("`// @options: {"), "{line}: {said}");
        }
        for line in [
            "// the options: none",
            "// @ts-check",
            "// @optional",
            "// Options are read below",
            "let a",
            "/* a */",
            "//",
        ] {
            assert_eq!(of_comment(line), None, "{line}");
        }
    }

    #[test]
    fn options_are_read_and_what_is_wrong_with_them_is_said() {
        let all = r#" {"max_output_tokens": 50, "timeout_ms": 2000, "max_parallel_calls": 256} "#;
        let expected = Options { max_output_tokens: 50, timeout_ms: Some(2000), max_parallel_calls: 256 };
        assert_eq!(read(all), Ok(expected));
        assert_eq!(read("{}"), Ok(Options::default()));
        let wrong = [
            (r#"{"timeout": 5}"#, "did you mean `timeout_ms`?"),
            (r#"{"x": 5}"#, "there are max_output_tokens, timeout_ms, max_parallel_calls"),
            (r#"{"timeout_ms": 0}"#, "from 1 to 3600000, not 0"),
            (r#"{"timeout_ms": "5"}"#, "not \"5\""),
            (r#"{"max_parallel_calls": 257}"#, "from 1 to 256"),
            ("[1]", "not a JSON object"),
            ("{timeout_ms: 5}", "not a JSON object"),
            ("", "not a JSON object"),
        ];
        for (text, says) in wrong {
            let said = read(text).unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}
