//! What a source can be refused for, and where.

use oxc_diagnostics::{Diagnostics, Severity};

/// A source that can not become JavaScript.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct StripError {
    /// What kind of problem it is.
    pub kind: StripErrorKind,
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1 in UTF-16 units, as JavaScript and editors count.
    pub column: u32,
    /// What is wrong and what to do about it, in one line, without the place.
    pub message: String,
    /// The module that it can not have, if that is the problem.
    pub module: Option<String>,
}

/// The kinds of [`StripError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StripErrorKind {
    /// It is not TypeScript, or not JavaScript if that was asked for.
    Syntax,
    /// It is TypeScript, but has no meaning as a JavaScript that the engine runs.
    Unsupported,
    /// It is over [`crate::MAX_BYTES`] or [`crate::MAX_NESTING`].
    Limit,
}

impl StripError {
    /// The stable code of an error that a user or a model is shown.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            StripErrorKind::Syntax | StripErrorKind::Unsupported => "invalid-arguments",
            StripErrorKind::Limit => "limit",
        }
    }

    pub(crate) fn at(source: &str, offset: usize, kind: StripErrorKind, message: impl Into<String>) -> Self {
        let (line, column) = place(source, offset);
        Self { kind, line, column, message: message.into(), module: None }
    }

    pub(crate) fn syntax(source: &str, offset: usize, message: impl Into<String>) -> Self {
        Self::at(source, offset, StripErrorKind::Syntax, message)
    }

    pub(crate) fn too_large(bytes: usize) -> Self {
        let message = format!(
            "the source has {bytes} bytes, more than the {} that are read; split it into modules",
            crate::MAX_BYTES
        );
        Self { kind: StripErrorKind::Limit, line: 1, column: 1, message, module: None }
    }

    /// The first error among what the parser reports.
    pub(crate) fn first_of(source: &str, diagnostics: &Diagnostics) -> Option<Self> {
        let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
        let (offset, first) = errors
            .map(|error| (error.labels.iter().map(|label| label.offset() as usize).min().unwrap_or(0), error))
            .min_by_key(|(offset, _)| *offset)?;
        let mut message: String = first.message.split_whitespace().collect::<Vec<_>>().join(" ");
        if message == "Unexpected token" {
            message = match source.get(offset..).and_then(|rest| rest.chars().next()) {
                Some(found) => format!("unexpected `{found}`; something is missing before it, or it is one too many"),
                None => "the source ends too early; something is not closed".to_owned(),
            };
        }
        if let Some(help) = &first.help {
            message.push_str("; ");
            message.push_str(&help.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        Some(Self::syntax(source, offset, message))
    }
}

/// The line and the column of a byte offset, both from 1.
fn place(source: &str, offset: usize) -> (u32, u32) {
    let (mut line, mut column) = (1_u32, 1_u32);
    let mut after_return = false;
    for (at, character) in source.char_indices() {
        if at >= offset {
            break;
        }
        match character {
            '\n' if after_return => {}
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => {
                line = line.saturating_add(1);
                column = 1;
            }
            _ => column = column.saturating_add(if u32::from(character) > 0xFFFF { 2 } else { 1 }),
        }
        after_return = character == '\r';
    }
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn a_place_is_counted_in_lines_and_utf_16_units_from_1() {
        let source = "a\r\n😀é=\n\u{2028}x";
        let places: Vec<_> = source.char_indices().map(|(at, _)| place(source, at)).collect();
        assert_eq!(places, [(1, 1), (1, 2), (2, 1), (2, 1), (2, 3), (2, 4), (2, 5), (3, 1), (4, 1)]);
    }
}
