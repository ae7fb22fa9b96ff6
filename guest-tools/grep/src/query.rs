//! What is searched for, and what is found: also the messages between a call and its workers.

use atoll_plugin::Error;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use serde::{Deserialize, Serialize};

/// The largest compiled expression, in bytes.
const MAX_COMPILED: usize = 16 << 20;

/// What is searched for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Query {
    pub(crate) pattern: String,
    pub(crate) ignore_case: bool,
    pub(crate) literal: bool,
    /// Lines to show before and after a match.
    pub(crate) context: usize,
}

impl Query {
    /// Compiles it. An expression that can not be used is the caller's mistake, and the error says where.
    pub(crate) fn matcher(&self) -> Result<RegexMatcher, Error> {
        RegexMatcherBuilder::new()
            .case_insensitive(self.ignore_case)
            .fixed_strings(self.literal)
            .multi_line(true)
            .line_terminator(Some(b'\n'))
            .size_limit(MAX_COMPILED)
            .dfa_size_limit(MAX_COMPILED)
            .build(&self.pattern)
            .map_err(|error| {
                let hint = if self.literal { "" } else { "; to search for it as it is written, set literal to true" };
                Error::invalid_arguments(format!("The pattern can not be used: {}{hint}.", reason(&error.to_string())))
            })
    }
}

/// What is wrong, in one line. The text of an expression's error shows the expression, in a form the caller never
/// wrote, and ends with the reason.
fn reason(error: &str) -> String {
    let reason = error.lines().find_map(|line| line.strip_prefix("error: ")).unwrap_or(error);
    reason.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a line is shown for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// It matches.
    #[serde(rename = "m")]
    Match,
    /// It comes before a match.
    #[serde(rename = "b")]
    Before,
    /// It comes after a match.
    #[serde(rename = "a")]
    After,
}

/// A line to show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    #[serde(rename = "n")]
    pub(crate) number: u64,
    #[serde(rename = "k")]
    pub(crate) kind: Kind,
    #[serde(rename = "t")]
    pub(crate) text: String,
    /// It is longer.
    #[serde(rename = "c")]
    pub(crate) cut: bool,
}

/// The lines to show of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileLines {
    pub(crate) path: String,
    pub(crate) lines: Vec<Line>,
}

/// A worker's share.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Share {
    pub(crate) query: Query,
    /// The searched directory.
    pub(crate) root: String,
    /// The files to search in it, in order.
    pub(crate) files: Vec<String>,
    /// Matches after which the rest does not matter.
    pub(crate) enough: usize,
}

/// What came of a share.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Found {
    /// Files with matches, in order.
    pub(crate) files: Vec<FileLines>,
    /// Files that could not be searched to their end.
    pub(crate) failed: usize,
    /// The rest was not searched, since there is more than can be shown already.
    pub(crate) full: bool,
}

#[cfg(test)]
mod tests {
    use grep_matcher::Matcher as _;

    use super::*;

    fn query(pattern: &str) -> Query {
        Query { pattern: pattern.to_owned(), ignore_case: false, literal: false, context: 0 }
    }

    fn matches(query: &Query, text: &str) -> bool {
        query.matcher().is_ok_and(|matcher| matcher.is_match(text.as_bytes()).unwrap_or(false))
    }

    #[test]
    fn case_and_literals() {
        assert!(matches(&query("a.c"), "xabc"));
        assert!(!matches(&query("a.c"), "ABC"));
        assert!(matches(&Query { ignore_case: true, ..query("\u{e9}.c") }, "\u{c9}BC"));
        assert!(!matches(&Query { literal: true, ..query("a.c") }, "abc"));
        assert!(matches(&Query { literal: true, ..query("a(b[") }, "xa(b[y"));
        assert!(matches(&query("^b$"), "b"));
    }

    #[test]
    fn what_can_not_be_used_is_explained() {
        for bad in ["a(", "[", "a\\nb", "(?:(?:a{1000}){1000}){9}"] {
            let error = query(bad).matcher().map(drop).expect_err("must be refused");
            assert_eq!(error.code(), "invalid-arguments", "{bad}");
            assert!(error.message().ends_with("set literal to true."), "{bad}");
            assert_eq!(error.message().lines().count(), 1, "{bad}");
        }
    }
}
