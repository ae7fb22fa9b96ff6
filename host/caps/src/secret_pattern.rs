//! Names of the `secrets` capability.

use std::fmt;
use std::str::FromStr;

use crate::pattern_error::PatternError;
use crate::text::serialize_as_text;

/// The secrets that may be used: a name, or the start of names with a `*` at its end (`mcp/*`).
///
/// A name has letters, digits, `.`, `_`, `-` and `/`, up to 128 of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SecretPattern(String);

impl SecretPattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::at(text, 0, "a secret's name is empty"));
        }
        let name = text.strip_suffix('*').unwrap_or(text);
        let bad = name.char_indices().find(|(_, c)| !c.is_ascii_alphanumeric() && !"._-/".contains(*c));
        if let Some((offset, _)) = bad {
            let reason = "a secret's name has letters, digits, `.`, `_`, `-` and `/`; `*` may only be its end";
            return Err(PatternError::at(text, offset, reason));
        }
        if name.len() > 128 {
            return Err(PatternError::at(text, 128, "a secret's name has at most 128 characters"));
        }
        Ok(Self(text.to_owned()))
    }

    /// The pattern as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a secret is one of these.
    pub fn matches(&self, name: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(start) => !name.is_empty() && name.starts_with(start),
            None => self.0 == name,
        }
    }

    /// Whether the two could have a name in common.
    pub(crate) fn may_overlap(&self, other: &Self) -> bool {
        match (self.0.strip_suffix('*'), other.0.strip_suffix('*')) {
            (Some(a), Some(b)) => a.starts_with(b) || b.starts_with(a),
            (None, _) => other.matches(&self.0),
            (_, None) => self.matches(&other.0),
        }
    }
}

impl fmt::Display for SecretPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SecretPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

serialize_as_text!(SecretPattern);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn never_panics(text in any::<String>(), name in any::<String>()) {
            if let Ok(pattern) = SecretPattern::parse(&text) {
                pattern.matches(&name);
                prop_assert_eq!(SecretPattern::parse(&pattern.to_string()), Ok(pattern));
            }
        }

        #[test]
        fn never_means_more_than_it_says(text in "[ab/]{0,3}\\*?", name in "[ab/*]{0,4}", other in "[ab/]{0,3}\\*?") {
            let Ok(pattern) = SecretPattern::parse(&text) else { return Ok(()) };
            let expected = match text.strip_suffix('*') {
                Some(start) => !name.is_empty() && name.starts_with(start),
                None => name == text,
            };
            prop_assert_eq!(pattern.matches(&name), expected);
            if let Ok(other) = SecretPattern::parse(&other) {
                prop_assert!(!(pattern.matches(&name) && other.matches(&name)) || pattern.may_overlap(&other));
            }
        }
    }

    #[test]
    fn names() {
        for (pattern, name, expected) in [
            ("OPENAI_API_KEY", "OPENAI_API_KEY", true),
            ("OPENAI_API_KEY", "openai_api_key", false),
            ("mcp/*", "mcp/github", true),
            ("mcp/*", "mcp", false),
            ("*", "anything", true),
            ("*", "", false),
        ] {
            assert_eq!(SecretPattern::parse(pattern).unwrap().matches(name), expected, "{pattern} {name}");
        }
        for (pattern, column) in [("", 1), ("a b", 2), ("a*b", 2), ("**", 1), ("a:reveal", 2)] {
            assert_eq!(SecretPattern::parse(pattern).map_err(|error| error.column), Err(column), "{pattern}");
        }
    }
}
