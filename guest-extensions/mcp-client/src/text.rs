//! Texts of others in messages of ours.

/// A text of somebody's in quotes, so that it can not be taken for ours: one line of at most 60 characters.
pub(crate) fn shown(text: &str) -> String {
    let end = text.char_indices().nth(60).map(|(end, _)| end);
    let cut = end.and_then(|end| text.get(..end));
    let quoted = one_line(&serde_json::Value::from(cut.unwrap_or(text)).to_string());
    if cut.is_some() { format!("{quoted}…") } else { quoted }
}

/// The text without what moves a terminal's cursor.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
