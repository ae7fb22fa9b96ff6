//! A result as the model and scripts get it.

use atoll_tool_text::{MAX_BYTES, format_size, head, with_footer};
use serde_json::{Value, json};

use crate::line::MAX_UNITS;
use crate::query::Kind;
use crate::take::Taken;

/// The text for the model.
pub(crate) fn text(taken: &Taken) -> String {
    let mut lines = String::new();
    for file in &taken.files {
        let path: String =
            file.path.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect();
        for line in &file.lines {
            let sign = if line.kind == Kind::Match { ':' } else { '-' };
            lines.push_str(&format!("{path}{sign}{}{sign} {}\n", line.number, line.text));
        }
        if lines.len() > MAX_BYTES + 1 {
            break;
        }
    }
    let mut notices = Vec::new();
    if taken.more {
        let double = taken.limit.saturating_mul(2);
        notices.push(format!("{} matches limit reached. Use limit={double} for more, or refine pattern", taken.limit));
    }
    let shown = head(lines.trim_end_matches('\n'), usize::MAX, MAX_BYTES);
    if shown.cut.is_some() || taken.full {
        notices.push(format!("{} limit reached", format_size(MAX_BYTES as u64)));
    }
    if taken.files.iter().flat_map(|file| &file.lines).any(|line| line.cut) {
        notices.push(format!("Some lines truncated to {MAX_UNITS} chars. Use read tool to see full lines"));
    }
    match taken.failed {
        0 => {}
        1 => notices.push("1 file could not be searched".to_owned()),
        failed => notices.push(format!("{failed} files could not be searched")),
    }
    let body = if taken.files.is_empty() { "No matches found" } else { shown.text };
    if notices.is_empty() { body.to_owned() } else { with_footer(body, &format!("[{}]", notices.join(". "))) }
}

/// The result as data.
pub(crate) fn structured(taken: &Taken) -> Value {
    let lines: Vec<Value> = taken
        .files
        .iter()
        .flat_map(|file| file.lines.iter().map(move |line| (file, line)))
        .map(|(file, line)| {
            json!({ "path": file.path, "line": line.number, "text": line.text, "match": line.kind == Kind::Match })
        })
        .collect();
    json!({ "lines": lines, "matches": taken.matches, "truncated": taken.is_done() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{FileLines, Found, Line};

    fn taken(limit: usize, lines: &[(u64, Kind, &str)]) -> Taken {
        let line = |&(number, kind, text): &(u64, Kind, &str)| Line {
            number,
            kind,
            text: text.to_owned(),
            cut: text.starts_with("[truncated]"),
        };
        let file = FileLines { path: "src/a.rs".to_owned(), lines: lines.iter().map(line).collect() };
        let mut taken = Taken::new(limit);
        taken.add(Found { files: vec![file], ..Found::default() });
        taken
    }

    #[test]
    fn matches_and_context_have_signs() {
        let taken = taken(9, &[(1, Kind::Before, "a"), (2, Kind::Match, "b"), (3, Kind::After, "")]);
        assert_eq!(text(&taken), "src/a.rs-1- a\nsrc/a.rs:2: b\nsrc/a.rs-3- ");
        let expected = json!({
            "lines": [
                { "path": "src/a.rs", "line": 1, "text": "a", "match": false },
                { "path": "src/a.rs", "line": 2, "text": "b", "match": true },
                { "path": "src/a.rs", "line": 3, "text": "", "match": false },
            ],
            "matches": 1,
            "truncated": false,
        });
        assert_eq!(structured(&taken), expected);
    }

    #[test]
    fn nothing_is_said() {
        let mut none = Taken::new(9);
        assert_eq!(text(&none), "No matches found");
        none.failed = 1;
        assert_eq!(text(&none), "No matches found\n\n[1 file could not be searched]");
    }

    #[test]
    fn limits_are_told_together() {
        let cut = format!("[truncated] ...{}", "x".repeat(60_000));
        let taken = taken(2, &[(1, Kind::Match, "a"), (2, Kind::Match, &cut), (3, Kind::Match, "b")]);
        let expected = "src/a.rs:1: a\n\n[2 matches limit reached. Use limit=4 for more, or refine pattern. 50.0KB \
                        limit reached. Some lines truncated to 500 chars. Use read tool to see full lines]";
        assert_eq!(text(&taken), expected);
        assert_eq!(structured(&taken)["truncated"], true);
    }
}
