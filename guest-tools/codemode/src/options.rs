//! The first line of a script: `// @options: {…}`.

use serde_json::{Map, Value};

/// What a script's first line begins with that sets something.
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
