//! What an edit changed, for whoever shows the call.

use std::time::Duration;

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

/// Unchanged lines around a change.
const CONTEXT: usize = 4;

/// Bytes of each form at most: something has to draw them, again each time the session is opened.
const MOST: usize = 256 * 1024;

/// Characters of a line in the form for people.
const LINE: usize = 500;

/// After this the difference is made coarser rather than later.
const TIME: Duration = Duration::from_millis(500);

/// `{diff, patch, firstChangedLine}`: for people, for programs (unified, null if it would be over 256 KiB), and
/// the number of the first line that is new or stands where lines went.
pub(crate) fn details(path: &str, old: &str, new: &str) -> Value {
    let diff = TextDiff::configure().timeout(TIME).diff_lines(old, new);
    let groups = diff.grouped_ops(CONTEXT);
    let first =
        groups.iter().flatten().find(|op| op.tag() != similar::DiffTag::Equal).map(|op| op.new_range().start + 1);
    let patch = if old.len() + new.len() > 64 * MOST {
        None
    } else {
        let patch = diff.unified_diff().context_radius(CONTEXT).header(path, path).to_string();
        (patch.len() <= MOST).then_some(patch)
    };
    json!({ "diff": for_people(&diff, &groups), "patch": patch, "firstChangedLine": first })
}

/// Lines as `+12 text`, `-12 text` and ` 12 text`; new lines with their new number, others with their old one.
fn for_people<'a>(diff: &TextDiff<'a, 'a, str>, groups: &[Vec<similar::DiffOp>]) -> String {
    let width = diff.old_len().max(diff.new_len()).to_string().len();
    let mut out = String::new();
    for (index, group) in groups.iter().enumerate() {
        if index > 0 {
            out.push_str(&format!(" {:width$} ...\n", ""));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            if out.len() > MOST {
                out.push_str(&format!(" {:width$} ... (the rest is not shown)\n", ""));
                return out;
            }
            let (sign, number) = match change.tag() {
                ChangeTag::Equal => (' ', change.old_index()),
                ChangeTag::Delete => ('-', change.old_index()),
                ChangeTag::Insert => ('+', change.new_index()),
            };
            let line = change.value().trim_end_matches(['\r', '\n']);
            let number = number.map_or(0, |at| at + 1);
            match line.char_indices().nth(LINE) {
                Some((end, _)) => out.push_str(&format!("{sign}{number:width$} {}…\n", &line[..end])),
                None => out.push_str(&format!("{sign}{number:width$} {line}\n")),
            }
        }
    }
    if out.ends_with('\n') {
        out.pop();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_and_the_first_line() {
        let old: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        let new = old.replace("line 10\n", "line X\nline Y\n");
        let details = details("a.txt", &old, &new);
        assert_eq!(details["firstChangedLine"], 10);
        let expected = "  6 line 6\n  7 line 7\n  8 line 8\n  9 line 9\n-10 line 10\n+10 line X\n+11 line Y\n \
                        11 line 11\n 12 line 12\n 13 line 13\n 14 line 14";
        assert_eq!(details["diff"], expected);
        let patch = details["patch"].as_str().unwrap_or_default();
        assert!(patch.starts_with("--- a.txt\n+++ a.txt\n@@ -6,9 +6,10 @@\n line 6\n"), "{patch}");
        assert!(patch.contains("\n-line 10\n+line X\n+line Y\n line 11\n"));
    }

    #[test]
    fn places_that_are_far_apart_have_a_gap() {
        let old: String = (1..=30).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n2\n", "\nA\n").replace("\n29\n", "\nB\n");
        let details = details("a", &old, &new);
        assert!(details["diff"].as_str().unwrap_or_default().contains("\n    ...\n"));
        assert_eq!(details["firstChangedLine"], 2);
    }

    #[test]
    fn lines_that_went_and_line_endings() {
        assert_eq!(details("a", "x\ny\nz\n", "x\nz\n")["firstChangedLine"], 2);
        let details = details("a", "x\r\ny\r\n", "x\r\nq\r\n");
        assert_eq!(details["diff"], " 1 x\n-2 y\n+2 q");
        assert!(details["patch"].as_str().unwrap_or_default().contains("-y\r\n+q\r\n"));
    }

    #[test]
    fn huge_differences_are_bounded() {
        let old: String = (0..100_000).map(|n| format!("line number {n}\n")).collect();
        let new: String = (0..100_000).map(|n| format!("other number {n}\n")).collect();
        let details = details("a", &old, &new);
        assert!(details["diff"].as_str().unwrap_or_default().len() < MOST + 2000);
        assert_eq!(details["patch"], Value::Null);
        let long = "x".repeat(1_000_000);
        assert!(super::details("a", &long, "y")["diff"].as_str().unwrap_or_default().len() < 2000);
    }
}
