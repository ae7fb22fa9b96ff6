//! What a model sends, as the script that it means: without a fence, without types, with the value it means to give.
//!
//! Pure. It must never move a line, so that every place that is said later is one of the text that was sent.

use atoll_js::{Insertion, Place, frame};
use atoll_ts_strip::{Gives, Options as StripOptions, StripError, StripErrorKind, strip};

use crate::hints;
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
}

/// Makes a script of what was sent.
///
/// # Errors
/// What is wrong with it, with the place, for the model.
pub(crate) fn prepare(sent: &str) -> Result<Prepared, String> {
    let sent = sent.strip_prefix('\u{feff}').unwrap_or(sent);
    // Prose can be read as JavaScript, too (`Sure:` is a label), so a fence counts before anything is read.
    let inside = if begins_with_fence(sent) { within_fence(sent) } else { only_fenced(sent) };
    let text = inside.unwrap_or_else(|| sent.to_owned());
    if text.trim().is_empty() {
        return Err("The script is empty. Nothing was run.".to_owned());
    }
    let options = read_options(&text)?;
    let stripped = strip(&text, StripOptions::loose_body()).map_err(|error| refused(&text, &error))?;
    let insertions =
        stripped.insertions.iter().map(|it| Insertion { line: it.line, column: it.column, bytes: it.bytes }).collect();
    let is_last_expression = stripped.gives == Gives::LastExpression;
    Ok(Prepared { code: stripped.code, insertions, is_last_expression, options, text })
}

/// The error of a script that can not be run.
fn refused(text: &str, error: &StripError) -> String {
    let place = Place { file: NAME.to_owned(), line: error.line, column: error.column };
    let kind = match error.kind {
        StripErrorKind::Syntax => "SyntaxError",
        StripErrorKind::Unsupported => "The script can not be run",
        StripErrorKind::Limit => "The script is over a limit",
    };
    let mut said = format!("{kind} at line {}:{}: {}", error.line, error.column, error.message);
    if let Some(module) = &error.module {
        said.push_str(&format!("; {}", hints::for_module(module)));
    }
    if let Some(frame) = frame(text, &place) {
        said.push_str(&format!("\n{frame}"));
    }
    said.push_str("\nNothing was run.");
    said
}

/// The options of the first line that is not blank.
fn read_options(text: &str) -> Result<Options, String> {
    let wrong = |line: usize, said: &str| Err(format!("Line {}: {said}\nNothing was run.", line + 1));
    let mut found = Options::default();
    let mut is_first = true;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix(MARK) {
            if !is_first {
                return wrong(number, &format!("`{MARK}` has to be the first line of the script"));
            }
            match options::read(rest) {
                Ok(options) => found = options,
                Err(said) => return wrong(number, &said),
            }
        }
        is_first = is_first && line.is_empty();
    }
    Ok(found)
}

/// The language of a line that opens a fence.
fn opens(line: &str) -> bool {
    line.trim().strip_prefix("```").is_some_and(|rest| {
        let language = rest.split_whitespace().next().unwrap_or_default().to_lowercase();
        LANGUAGES.contains(&language.as_str())
    })
}

fn closes(line: &str) -> bool {
    line.trim() == "```"
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
    let close = lines.iter().rposition(|line| closes(line)).filter(|close| *close > open).unwrap_or(lines.len());
    Some(only_lines(text, open + 1..close))
}

/// What is in the one fence of a text that is prose otherwise.
fn only_fenced(text: &str) -> Option<String> {
    let marks: Vec<usize> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.trim_start().starts_with("```"))
        .map(|(number, _)| number)
        .collect();
    let [open, close] = marks.as_slice() else { return None };
    let lines: Vec<&str> = text.lines().collect();
    let fits = lines.get(*open).is_some_and(|line| opens(line)) && lines.get(*close).is_some_and(|line| closes(line));
    fits.then(|| only_lines(text, open + 1..*close)).filter(|inside| !inside.trim().is_empty())
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "source_fuzz.rs"]
mod fuzz;
