//! Pieces of types: literals, keys and comments, made harmless.

use serde_json::Value;

/// The longest literal, in bytes.
const MAX_LITERAL: usize = 100;
/// The longest key.
const MAX_KEY: usize = 128;
/// The longest comment, in characters.
const MAX_COMMENT: usize = 120;

/// A value as a literal type, or the type of values like it if that would be long.
pub(super) fn literal(value: &Value) -> String {
    let text = match value {
        // Don't write down what may be huge.
        Value::String(text) if text.len() > MAX_LITERAL => return "string".to_owned(),
        Value::Array(items) if items.len() > MAX_LITERAL / 2 => return "unknown[]".to_owned(),
        Value::Object(fields) if fields.len() > MAX_LITERAL / 6 => return "Record<string, unknown>".to_owned(),
        value => value.to_string(),
    };
    if text.len() <= MAX_LITERAL { text } else { kind(value).to_owned() }
}

/// The type of values like this one.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "unknown[]",
        Value::Object(_) => "Record<string, unknown>",
    }
}

/// A property's name, quoted if it has to be; `None` if it is absurdly long.
pub(super) fn key(name: &str) -> Option<String> {
    if name.len() > MAX_KEY {
        return None;
    }
    let starts = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '$';
    let plain = name.starts_with(starts) && name.chars().all(|c| starts(c) || c.is_ascii_digit());
    Some(if plain { name.to_owned() } else { Value::from(name).to_string() })
}

/// A description as one short line: its first sentence, cut if that is long.
pub(super) fn comment(schema: &Value) -> Option<String> {
    let text = schema.get("description")?.as_str()?;
    let text: String = text.chars().take(4 * MAX_COMMENT).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut line = words.join(" ");
    if line.chars().count() > MAX_COMMENT
        && let Some((first, _)) = line.split_once(". ")
    {
        line = format!("{first}.");
    }
    if line.chars().count() > MAX_COMMENT {
        let cut: String = line.chars().take(MAX_COMMENT - 1).collect();
        let whole_words = cut.rsplit_once(' ').map_or(cut.as_str(), |(kept, _)| kept);
        line = format!("{whole_words}…");
    }
    (!line.is_empty()).then_some(line)
}

/// The name of a string's format, if it is a plain word.
pub(super) fn format(name: &Value) -> Option<&str> {
    let name = name.as_str()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    ((1..=24).contains(&name.len()) && name.chars().all(plain)).then_some(name)
}

/// Every line but the first one further in.
pub(super) fn indented(text: &str) -> String {
    text.replace('\n', "\n  ")
}
