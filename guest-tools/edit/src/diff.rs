//! What an edit changed, for whoever shows the call.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use similar::algorithms::{Capture, Replace, myers};
use similar::udiff::UnifiedHunkHeader;
use similar::{DiffOp, DiffTag, group_diff_ops};

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
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let ops = difference(&old, &new);
    let first = ops.iter().find(|op| op.tag() != DiffTag::Equal).map(|op| op.new_range().start + 1);
    let hunks = group_diff_ops(ops, CONTEXT);
    json!({
        "diff": for_people(&hunks, &old, &new),
        "patch": for_programs(&hunks, &old, &new, path),
        "firstChangedLine": first,
    })
}

/// What to do to the old lines to get the new ones. Calls the one algorithm it needs: the library's front door
/// would bring all of them into the component, three times its size. The plain form finds a few changes in a large
/// file at once, where the other one first hashes all lines.
fn difference(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[same..], &new[same..]);
    let same_end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_end, new_end) = (old.len() - same_end, new.len() - same_end);
    let mut hook = Replace::new(Capture::new());
    let deadline = Instant::now() + TIME;
    let Ok(()) = myers::diff_deadline_raw(&mut hook, old, same..old_end, new, same..new_end, Some(deadline));
    let mut ops = vec![DiffOp::Equal { old_index: 0, new_index: 0, len: same }];
    ops.extend(hook.into_inner().into_ops());
    ops.push(DiffOp::Equal { old_index: old_end, new_index: new_end, len: same_end });
    ops.retain(|op| !op.old_range().is_empty() || !op.new_range().is_empty());
    ops
}

/// The lines of a hunk as `(sign, index, line)`; what goes has its old index, all else its new one.
fn lines<'a>(hunk: &[DiffOp], old: &'a [&str], new: &'a [&str]) -> impl Iterator<Item = (char, usize, &'a str)> {
    hunk.iter().flat_map(move |op| {
        let (gone, come) = match op.tag() {
            DiffTag::Equal => (0..0, op.new_range()),
            _ => (op.old_range(), op.new_range()),
        };
        let sign = if op.tag() == DiffTag::Equal { ' ' } else { '+' };
        gone.map(|at| ('-', at, old[at])).chain(come.map(move |at| (sign, at, new[at])))
    })
}

/// Lines as `+12 text`, `-12 text` and ` 12 text`, with `...` for what is between hunks.
fn for_people(hunks: &[Vec<DiffOp>], old: &[&str], new: &[&str]) -> String {
    let width = old.len().max(new.len()).to_string().len();
    let mut out: Vec<String> = Vec::new();
    let mut size = 0;
    for (index, hunk) in hunks.iter().enumerate() {
        if index > 0 {
            out.push(format!(" {:width$} ...", ""));
        }
        for (sign, at, line) in lines(hunk, old, new) {
            if size > MOST {
                out.push(format!(" {:width$} ... (the rest is not shown)", ""));
                return out.join("\n");
            }
            let line = line.trim_end_matches(['\r', '\n']);
            let (line, more) = match line.char_indices().nth(LINE) {
                Some((end, _)) => (&line[..end], "…"),
                None => (line, ""),
            };
            let shown = format!("{sign}{:width$} {line}{more}", at + 1);
            size += shown.len() + 1;
            out.push(shown);
        }
    }
    out.join("\n")
}

/// A unified diff; none if it is too long.
fn for_programs(hunks: &[Vec<DiffOp>], old: &[&str], new: &[&str], path: &str) -> Option<String> {
    let mut out = format!("--- {path}\n+++ {path}\n");
    for hunk in hunks {
        out.push_str(&format!("{}\n", UnifiedHunkHeader::new(hunk)));
        for (sign, _, line) in lines(hunk, old, new) {
            out.push(sign);
            out.push_str(line);
            if !line.ends_with('\n') {
                out.push_str("\n\\ No newline at end of file\n");
            }
            if out.len() > MOST {
                return None;
            }
        }
    }
    Some(out)
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
                        12 line 11\n 13 line 12\n 14 line 13\n 15 line 14";
        assert_eq!(details["diff"], expected);
        let patch = details["patch"].as_str().unwrap_or_default();
        assert!(patch.starts_with("--- a.txt\n+++ a.txt\n@@ -6,9 +6,10 @@\n line 6\n"), "{patch}");
        assert!(patch.contains("\n-line 10\n+line X\n+line Y\n line 11\n"));
        let patch = super::details("a", "x\ny", "x\nz")["patch"].clone();
        let end = "\\ No newline at end of file\n";
        assert_eq!(patch, format!("--- a\n+++ a\n@@ -1,2 +1,2 @@\n x\n-y\n{end}+z\n{end}"));
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
    fn few_changes_in_a_large_file_are_found_exactly() {
        let old: String = (1..=300_000).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n3\n", "\nA\n").replace("\n299998\n", "\nB\n");
        let details = details("a", &old, &new);
        assert_eq!(details["diff"].as_str().unwrap_or_default().lines().count(), 17);
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
