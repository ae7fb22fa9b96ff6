//! What a model sends, as the script that it means: without a fence, without types, with the value it means to give.
//!
//! Pure. It must never move a line, so that every place that is said later is one of the text that was sent.

use std::ops::Range;

use atoll_js::{Insertion, Place, frame};
use atoll_ts_strip::{Gives, Options as StripOptions, StripError, StripErrorKind, Stripped, strip};

use crate::hints::{self, Has};
use crate::options::{self, MARK, Options};

/// The name of the script in places.
pub(crate) const NAME: &str = "script";

/// The languages that a fence may name.
const LANGUAGES: [&str; 9] = ["", "js", "javascript", "mjs", "ts", "typescript", "jsx", "tsx", "node"];

/// A script that can be run.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// What was sent, with everything around the script empty.
    pub(crate) text: String,
    /// The JavaScript of it.
    pub(crate) code: String,
    /// What was put in.
    pub(crate) insertions: Vec<Insertion>,
    /// The value is that of the last expression, which counts only if the script says nothing else.
    pub(crate) is_last_expression: bool,
    pub(crate) options: Options,
    /// The regular expressions in `text`, in bytes.
    pub(crate) patterns: Vec<Range<usize>>,
}

/// Makes a script of what was sent.
///
/// # Errors
/// What is wrong with it, with the place, for the model.
pub(crate) fn prepare_for(sent: &str, has: Has<'_>) -> Result<Prepared, String> {
    let sent = sent.strip_prefix('\u{feff}').unwrap_or(sent);
    // Prose can be read as JavaScript, too (`Sure:` is a label), so a fence counts before anything is read.
    let inside = if begins_with_fence(sent) { within_fence(sent) } else { only_fenced(sent) };
    let text = without_interpreter(inside.unwrap_or_else(|| sent.to_owned()));
    if text.trim().is_empty() {
        return Err("The script is empty. Nothing was run.".to_owned());
    }
    if let Some(at) = text.find('\0') {
        let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        return Err(format!("There is a NUL character in line {line}; write `\\0` for it.\nNothing was run."));
    }
    let options = options_before(&text)?;
    let stripped = match as_expression(&text) {
        Some(stripped) => stripped,
        None => strip(&text, StripOptions::loose_body()).map_err(|error| match fenced_blocks(sent) {
            0 | 1 => refused(&text, &error, has),
            many => {
                format!("There are {many} fenced blocks; send one script, in one block or in none.\nNothing was run.")
            }
        })?,
    };
    no_more_options(&text, &stripped.comments)?;
    let insertions =
        stripped.insertions.iter().map(|it| Insertion { line: it.line, column: it.column, bytes: it.bytes }).collect();
    let is_last_expression = stripped.gives == Gives::LastExpression;
    Ok(Prepared { code: stripped.code, insertions, is_last_expression, options, text, patterns: stripped.patterns })
}

/// As [`prepare_for`] where there are all tools.
#[cfg(test)]
pub(crate) fn prepare(sent: &str) -> Result<Prepared, String> {
    prepare_for(sent, &|_| true)
}

/// A text that is nothing but an object or a function without a name: as a script these are a block, or nothing at all.
fn as_expression(text: &str) -> Option<Stripped> {
    let begin = text.len().checked_sub(after_comments(text).len())?;
    let whole = text.get(begin..)?.trim_end();
    let whole = whole.strip_suffix(';').unwrap_or(whole).trim_end();
    let is_object = whole.starts_with('{');
    let is_function = ["function", "async function"].iter().any(|word| whole.starts_with(word));
    if !whole.ends_with('}') || !(is_object || is_function) {
        return None;
    }
    if is_function && strip(text, StripOptions::loose_body()).is_ok() {
        return None;
    }
    let (before, after) = (text.get(..begin)?, text.get(begin + whole.len()..)?);
    let after: String = after.chars().map(|one| if one == ';' { ' ' } else { one }).collect();
    let mut stripped = strip(&format!("{before}({whole}){after}"), StripOptions::loose_body()).ok()?;
    let is_meant = if is_object { stripped.gives == Gives::LastExpression } else { stripped.gives == Gives::Function };
    if !is_meant {
        return None;
    }
    let (first, last) = (line_and_bytes(text, begin), line_and_bytes(text, begin + whole.len()));
    // What was put in behind the first parenthesis was counted with it.
    for insertion in &mut stripped.insertions {
        let is_behind = |(line, column): (u32, u32)| insertion.line == line && insertion.column > column;
        let shift = u32::from(is_behind(first));
        insertion.column = insertion.column.saturating_sub(shift);
    }
    for range in stripped.comments.iter_mut().chain(&mut stripped.patterns).filter(|range| range.start > begin) {
        *range = range.start.saturating_sub(1)..range.end.saturating_sub(1);
    }
    for (line, column) in [first, last] {
        stripped.insertions.push(atoll_ts_strip::Insertion { line, column, bytes: 1 });
    }
    stripped.insertions.sort_by_key(|it| (it.line, it.column));
    Some(stripped)
}

/// The line of a byte, from 1, and how many bytes of that line come before it.
fn line_and_bytes(text: &str, at: usize) -> (u32, u32) {
    let before = text.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.len() - before.rfind('\n').map_or(0, |line| line + 1);
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

/// The place of a byte of the text.
pub(crate) fn place_of(text: &str, at: usize) -> Place {
    let (line, bytes) = line_and_bytes(text, at);
    let begin = at.saturating_sub(bytes as usize);
    let units = text.get(begin..at).unwrap_or_default().encode_utf16().count();
    Place { file: NAME.to_owned(), line, column: u32::try_from(units).unwrap_or(u32::MAX).saturating_add(1) }
}

/// The text from the first line on that is neither blank nor a comment of one line.
fn after_comments(text: &str) -> &str {
    let mut rest = text;
    loop {
        let trimmed = rest.trim_start();
        if !trimmed.starts_with("//") {
            return trimmed;
        }
        rest = trimmed.split_once('\n').map_or("", |(_, rest)| rest);
    }
}

/// The text without the line that names who is to run it.
fn without_interpreter(text: String) -> String {
    if !text.trim_start().starts_with("#!") {
        return text;
    }
    let begin = text.len() - text.trim_start().len();
    let end = text.get(begin..).and_then(|rest| rest.find(['\r', '\n'])).map_or(text.len(), |end| begin + end);
    format!("{}{}", text.get(..begin).unwrap_or_default(), text.get(end..).unwrap_or_default())
}

/// The error of a script that can not be run.
fn refused(text: &str, error: &StripError, has: Has<'_>) -> String {
    let place = Place { file: NAME.to_owned(), line: error.line, column: error.column };
    let kind = match error.kind {
        StripErrorKind::Syntax => "SyntaxError",
        StripErrorKind::Unsupported => "The script can not be run",
        StripErrorKind::Limit => "The script is over a limit",
    };
    let mut said = format!("{kind} at line {}:{}: {}", error.line, error.column, error.message);
    if let Some(module) = &error.module {
        said.push_str(&format!("; {}", hints::for_module(module, has)));
    }
    if let Some(frame) = frame(text, &place) {
        said.push_str(&format!("\n{frame}"));
    }
    said.push_str("\nNothing was run.");
    said
}

fn wrong(line: usize, said: &str) -> String {
    format!("Line {}: {said}\nNothing was run.", line + 1)
}

/// The options in the comments before everything else.
fn options_before(text: &str) -> Result<Options, String> {
    let mut found = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with("//") && !line.starts_with("/*") {
            break;
        }
        match options::of_comment(line) {
            None => {}
            Some(_) if found.is_some() => return Err(wrong(number, &format!("there is one `{MARK}` line, not more"))),
            Some(options) => found = Some(options.map_err(|said| wrong(number, &said))?),
        }
        // What is behind the end of a comment is the script.
        if line.starts_with("/*") {
            break;
        }
    }
    Ok(found.unwrap_or_default())
}

/// Refuses options in a comment that comes too late.
fn no_more_options(text: &str, comments: &[Range<usize>]) -> Result<(), String> {
    let begins = text.len() - after_comments(text).len();
    for comment in comments.iter().filter(|comment| comment.start >= begins) {
        if text.get(comment.clone()).is_some_and(|it| it.trim_start_matches("//").trim_start().starts_with("@options"))
        {
            let line = text.get(..comment.start).unwrap_or_default().matches('\n').count();
            return Err(wrong(line, &format!("`{MARK}` has to come before everything else")));
        }
    }
    Ok(())
}

/// What a fence is made of in this line, how much of it there is, and what follows.
fn fence(line: &str) -> Option<(char, usize, &str)> {
    let line = line.trim();
    let sign = line.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let rest = line.trim_start_matches(sign);
    let length = line.len() - rest.len();
    (length >= 3).then_some((sign, length, rest.trim()))
}

/// Whether a line opens a fence of a script.
fn opens(line: &str) -> bool {
    fence(line).is_some_and(|(_, _, rest)| {
        let language = rest.split_whitespace().next().unwrap_or_default().to_lowercase();
        LANGUAGES.contains(&language.as_str())
    })
}

/// Whether a line closes the fence that another one opens.
fn closes(line: &str, opening: &str) -> bool {
    match (fence(line), fence(opening)) {
        (Some((sign, length, "")), Some((opened, least, _))) => sign == opened && length >= least,
        _ => false,
    }
}

/// How many blocks of scripts are fenced.
fn fenced_blocks(text: &str) -> usize {
    let (mut blocks, mut open) = (0, None);
    for line in text.lines() {
        match open {
            None if opens(line) => open = Some(line),
            Some(opening) if closes(line, opening) => {
                blocks += 1;
                open = None;
            }
            _ => {}
        }
    }
    blocks
}

fn begins_with_fence(text: &str) -> bool {
    text.lines().find(|line| !line.trim().is_empty()).is_some_and(opens)
}

/// The text with all lines empty but those of `kept`.
fn only_lines(text: &str, kept: std::ops::Range<usize>) -> String {
    let lines = text.split_inclusive('\n').enumerate().map(|(number, line)| {
        if kept.contains(&number) {
            line
        } else if line.ends_with("\r\n") {
            "\r\n"
        } else if line.ends_with('\n') {
            "\n"
        } else {
            ""
        }
    });
    lines.collect()
}

/// What is between the first line, which opens a fence, and the last one that closes it.
fn within_fence(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let open = lines.iter().position(|line| opens(line))?;
    let opening = lines.get(open)?;
    let close = lines.iter().rposition(|line| closes(line, opening)).filter(|close| *close > open);
    Some(only_lines(text, open + 1..close.unwrap_or(lines.len())))
}

/// What is in the one fence of a text that is prose otherwise.
fn only_fenced(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let marks: Vec<usize> =
        lines.iter().enumerate().filter(|(_, line)| fence(line).is_some()).map(|(number, _)| number).collect();
    let [open, close] = marks.as_slice() else { return None };
    let (opening, closing) = (lines.get(*open)?, lines.get(*close)?);
    let fits = opens(opening) && closes(closing, opening);
    fits.then(|| only_lines(text, open + 1..*close)).filter(|inside| !inside.trim().is_empty())
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "source_fuzz.rs"]
mod fuzz;
