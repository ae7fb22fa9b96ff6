//! From edits to replacements: finding each place and making sure that there is no doubt about it.

use std::ops::Range;

use atoll_plugin::Error;

use crate::document::{Document, Replacement};
use crate::hint;
use crate::loose::Loose;

/// Lines named of a text that is there more than once.
const LINES_NAMED: usize = 5;

/// One edit as the caller gave it.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Edit {
    /// What is there.
    pub(crate) old_text: String,
    /// What comes in its place.
    pub(crate) new_text: String,
}

/// What to do to a file.
#[derive(Debug)]
pub(crate) struct Plan {
    /// In order and apart.
    pub(crate) replacements: Vec<Replacement>,
    /// Edits that match only in loose form.
    pub(crate) loose: usize,
}

/// Finds the places of all edits in the document as it is. `path` is for errors, which are `not-found` for a
/// text that is not there and `invalid-arguments` for everything else.
pub(crate) fn plan(document: &Document, edits: &[Edit], path: &str) -> Result<Plan, Error> {
    if edits.is_empty() {
        return Err(Error::invalid_arguments("edits must have at least one edit."));
    }
    let mut loose_form = None;
    let mut loose_edits = 0;
    let mut found: Vec<(usize, Range<usize>, Replacement)> = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        let name = if edits.len() == 1 { "oldText".to_owned() } else { format!("edits[{index}].oldText") };
        if document.without_mark(&edit.old_text).is_empty() {
            return Err(Error::invalid_arguments(format!("{name} must not be empty; to make a file, use write.")));
        }
        let (old, new, exact) = exact(document, edit);
        let replacement = match exact.as_slice() {
            [start] => Replacement { start: *start, end: start + old.len(), new: new.clone() },
            [] => {
                let loose = loose_form.get_or_insert_with(|| Loose::new(document.text()));
                loose_edits += 1;
                let wanted = Loose::new(&old);
                let places =
                    if wanted.text().trim().is_empty() { Vec::new() } else { places(loose.text(), wanted.text()) };
                match places.as_slice() {
                    [start] => replace_loose(document.text(), loose, *start, &wanted, &old, &new),
                    [] => return Err(missing(document.text(), &old, &name, path)),
                    several => return Err(ambiguous(loose.text(), several, &name, path)),
                }
            }
            several => return Err(ambiguous(document.text(), several, &name, path)),
        };
        found.push((
            index,
            replacement.start..replacement.end,
            keep_common_lines(document.text(), &old, &new, replacement),
        ));
    }
    found.sort_by_key(|(_, place, _)| (place.start, place.end));
    if let Some([first, second]) = found.array_windows::<2>().find(|[first, second]| second.1.start < first.1.end) {
        let (low, high) = (first.0.min(second.0), first.0.max(second.0));
        return Err(Error::invalid_arguments(format!(
            "edits[{low}] and edits[{high}] overlap in {path}; make one edit of the two."
        )));
    }
    Ok(Plan { replacements: found.into_iter().map(|(_, _, replacement)| replacement).collect(), loose: loose_edits })
}

/// The texts of an edit as they are meant, and where the old one, which is not empty, is to the byte.
fn exact(document: &Document, edit: &Edit) -> (String, String, Vec<usize>) {
    // The byte order mark is no part of the text, but whoever was shown it may repeat it.
    let (old, new) = (document.without_mark(&edit.old_text), document.without_mark(&edit.new_text));
    let meant = |text: &str| text.replace("\r\n", "\n");
    let found = places(document.text(), &meant(old));
    if found.is_empty() && old.contains("\r\n") {
        // In a file with CR CR LF, a CR before the line ending is text.
        let found = places(document.text(), old);
        if !found.is_empty() {
            return (old.to_owned(), new.to_owned(), found);
        }
    }
    (meant(old), meant(new), found)
}

/// Where a text is, overlapping places included; all of the first few, then enough to count on.
fn places(text: &str, wanted: &str) -> Vec<usize> {
    let step = wanted.chars().next().map_or(1, char::len_utf8);
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(wanted)) {
        places.push(from + at);
        // Without overlaps the number is what a person would count, and the search can not become slow.
        from += at + if places.len() < 2 { step } else { wanted.len() };
    }
    places
}

fn replace_loose(text: &str, loose: &Loose, start: usize, wanted: &Loose, old: &str, new: &str) -> Replacement {
    let span = loose.span(start..start + wanted.text().len());
    let mut end = span.exact.end;
    if span.after.is_empty() {
        // White space at the end of `old` was not looked for, but is meant to go if it is there.
        let stripped = old.len() - old.trim_end_matches([' ', '\t']).len();
        end += text[end..].bytes().take(stripped).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    }
    Replacement { start: span.exact.start, end, new: format!("{}{new}{}", span.before, span.after) }
}

/// Takes whole lines that an edit repeats unchanged out of a replacement: they keep their bytes and line endings,
/// even where they match only loosely.
fn keep_common_lines(text: &str, old: &str, new: &str, replacement: Replacement) -> Replacement {
    if old == new {
        return Replacement { start: replacement.start, end: replacement.start, new: String::new() };
    }
    let place = &text[replacement.start..replacement.end];
    let place: Vec<&str> = place.split_inclusive('\n').collect();
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    // If the match is wider than the edit, or has another number of lines, lines do not correspond.
    if replacement.new != new || place.len() != old.len() {
        return replacement;
    }
    let first = old.iter().zip(&new_lines).take_while(|(old, new)| old == new && old.ends_with('\n')).count();
    let left = (old.len() - first).min(new_lines.len() - first);
    let last = old.iter().rev().zip(new_lines.iter().rev()).take(left).take_while(|(old, new)| old == new).count();
    let bytes = |lines: &[&str]| lines.iter().map(|line| line.len()).sum::<usize>();
    Replacement {
        start: replacement.start + bytes(&place[..first]),
        end: replacement.end - bytes(&place[place.len() - last..]),
        new: new_lines[first..new_lines.len() - last].concat(),
    }
}

fn missing(text: &str, old: &str, name: &str, path: &str) -> Error {
    let hint = hint::hint(text, old)
        .unwrap_or_else(|| "It must be copied from the file with all its white space and line breaks.".to_owned());
    Error::not_found(format!("{name} was not found in {path}. {hint}"))
}

fn ambiguous(text: &str, places: &[usize], name: &str, path: &str) -> Error {
    let mut lines: Vec<String> = Vec::new();
    for &place in places {
        let line = (text[..place].matches('\n').count() + 1).to_string();
        if lines.last() != Some(&line) {
            lines.push(line);
        }
        if lines.len() > LINES_NAMED {
            lines.pop();
            lines.push("…".to_owned());
            break;
        }
    }
    Error::invalid_arguments(format!(
        "{name} is in {path} {} times (line {}). Add lines around it until it fits in one place only.",
        places.len(),
        lines.join(", ")
    ))
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
