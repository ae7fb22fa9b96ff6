//! Why a pattern is none.

use crate::text::printable;

/// A pattern that could not be read, with the place in it where reading failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}`, character {column}: {reason}", printable(pattern))]
pub struct PatternError {
    /// The pattern as it was given.
    pub pattern: String,
    /// The offending character, counted from 1.
    pub column: usize,
    /// What is wrong there, and what to write instead.
    pub reason: String,
}

impl PatternError {
    /// An error at a byte offset into the pattern.
    pub(crate) fn at(pattern: &str, offset: usize, reason: impl Into<String>) -> Self {
        let column = pattern.char_indices().take_while(|(at, _)| *at < offset).count() + 1;
        Self { pattern: pattern.to_owned(), column, reason: printable(&reason.into()) }
    }

    /// An error at the first character for which `bad` holds, if there is one.
    pub(crate) fn at_first(pattern: &str, bad: impl Fn(char) -> bool, reason: &str) -> Result<(), Self> {
        match pattern.char_indices().find(|(_, c)| bad(*c)) {
            Some((offset, _)) => Err(Self::at(pattern, offset, reason)),
            None => Ok(()),
        }
    }
}
