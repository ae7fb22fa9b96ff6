//! Environment variables of the `process` capability: those that a plugin may set for a program it starts.

use std::fmt;
use std::str::FromStr;

use crate::pattern_error::PatternError;
use crate::text::serialize_as_text;

/// Variables by which whoever starts a program decides what code runs in it, whatever program that is.
const STEERING: [&str; 7] = ["PATH", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS4", "GCONV_PATH"];
/// Beginnings of such variables: those of the dynamic linkers.
const STEERING_STARTS: [&str; 2] = ["LD_", "DYLD_"];

/// Those of them that a plugin may be granted all the same, by their own names and together with every program: whoever may
/// start anything with any arguments decides by that what code runs.
const WITH_EVERY_PROGRAM: [&str; 2] = ["PATH", "ENV"];

/// Why these can not be had.
const STEERS: &str = "it decides what code runs in a program, so no plugin may set it";
/// Why these can not be had for some programs only.
const STEERS_ANY: &str = "it decides what code runs in a program, so only a plugin that may start every program (`*`) with \
                          any arguments may set it, where manifest and grant name it (`*:env=PATH`)";

/// The longest name, in bytes.
const LONGEST: usize = 128;

/// The variables that may be set: a name (`GIT_PAGER`), or the start of names with a `*` at its end (`GIT_*`).
///
/// A name has letters, digits and `_`, up to 128 of them, and does not start with a digit. Names that decide what code runs
/// in a program are of no pattern, whatever it says, but for `PATH` and `ENV`: these are of the pattern that is their name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnvPattern(String);

impl EnvPattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::at(text, 0, "a variable's name is empty"));
        }
        let name = text.strip_suffix('*').unwrap_or(text);
        if let Some((offset, _)) = name.char_indices().find(|(_, c)| !c.is_ascii_alphanumeric() && *c != '_') {
            let reason = "a variable's name has letters, digits and `_`; `*` may only be its end";
            return Err(PatternError::at(text, offset, reason));
        }
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(PatternError::at(text, 0, "a variable's name does not start with a digit"));
        }
        if name.len() > LONGEST {
            return Err(PatternError::at(text, LONGEST, "a variable's name has at most 128 characters"));
        }
        let is_steering =
            if name == text { steers(name) && !WITH_EVERY_PROGRAM.contains(&name) } else { starts_steering(name) };
        if is_steering {
            return Err(PatternError::at(text, 0, STEERS));
        }
        Ok(Self(text.to_owned()))
    }

    /// The pattern as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a variable is one of these.
    pub fn matches(&self, name: &str) -> bool {
        let fits = match self.0.strip_suffix('*') {
            Some(start) => !name.is_empty() && name.starts_with(start),
            None => self.0 == name,
        };
        fits && (!steers(name) || (self.0 == name && WITH_EVERY_PROGRAM.contains(&name)))
    }

    /// Whether the two could have a name in common.
    pub(crate) fn may_overlap(&self, other: &Self) -> bool {
        match (self.0.strip_suffix('*'), other.0.strip_suffix('*')) {
            (Some(a), Some(b)) => a.starts_with(b) || b.starts_with(a),
            (None, _) => other.matches(&self.0),
            (_, None) => self.matches(&other.0),
        }
    }

    /// Every variable that may be set at all.
    pub(crate) fn any() -> Vec<Self> {
        ["*"].into_iter().chain(WITH_EVERY_PROGRAM).map(|name| Self(name.to_owned())).collect()
    }
}

/// Why a variable can not be granted to anybody for some program; none if it can.
pub(crate) fn no_grant(name: &str) -> Option<&'static str> {
    if needs_every_program(name) {
        Some(STEERS_ANY)
    } else if steers(name) {
        Some(STEERS)
    } else {
        None
    }
}

/// Whether a variable may be set only by who may start every program.
pub(crate) fn needs_every_program(name: &str) -> bool {
    WITH_EVERY_PROGRAM.contains(&name)
}

fn steers(name: &str) -> bool {
    STEERING.contains(&name) || starts_steering(name)
}

fn starts_steering(name: &str) -> bool {
    STEERING_STARTS.iter().any(|start| name.starts_with(start))
}

impl fmt::Display for EnvPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for EnvPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

serialize_as_text!(EnvPattern);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REFUSED: [&str; 8] =
        ["PATH", "ENV", "BASH_ENV", "SHELLOPTS", "GCONV_PATH", "LD_PRELOAD", "LD_", "DYLD_INSERT_LIBRARIES"];

    #[test]
    fn errors_point_at_the_character() {
        for (text, column, reason) in [
            ("", 1, "empty"),
            ("A-B", 2, "letters, digits"),
            ("A*B", 2, "only be its end"),
            ("A**", 2, "only be its end"),
            ("ÄB", 1, "letters, digits"),
            ("A=", 2, "letters, digits"),
            ("1A", 1, "digit"),
            ("BASH_ENV", 1, "decides what code"),
            ("LD_*", 1, "decides what code"),
            ("LD_PRELOAD", 1, "decides what code"),
            ("DYLD_X*", 1, "decides what code"),
        ] {
            let error = EnvPattern::parse(text).unwrap_err();
            assert_eq!(error.column, column, "{text}");
            assert!(error.reason.contains(reason), "{error}");
        }
        let long = "A".repeat(129);
        assert_eq!(EnvPattern::parse(&long).unwrap_err().column, 129);
        EnvPattern::parse(&long[1..]).unwrap();
    }

    #[test]
    fn what_decides_about_code_is_of_no_pattern() {
        for text in ["*", "P*", "PATH*", "L*", "LD*", "D*", "E*", "B*", "BASH_*"] {
            let pattern = EnvPattern::parse(text).unwrap();
            for name in REFUSED {
                assert!(!pattern.matches(name), "{text} {name}");
            }
        }
        assert!(EnvPattern::parse("PATH*").unwrap().matches("PATHS"));
        assert!(EnvPattern::parse("*").unwrap().matches("HOME"));
        for name in ["PATH", "ENV"] {
            assert!(EnvPattern::parse(name).unwrap().matches(name));
        }
        assert!(!EnvPattern::parse("PATH").unwrap().matches("ENV"));
    }

    proptest! {
        #[test]
        fn never_panics(text in any::<String>(), name in any::<String>()) {
            if let Ok(pattern) = EnvPattern::parse(&text) {
                pattern.matches(&name);
                prop_assert_eq!(EnvPattern::parse(&pattern.to_string()), Ok(pattern));
            }
        }

        #[test]
        fn never_means_more_than_it_says(text in "[AB_]{0,3}\\*?", name in "[AB_*]{0,4}") {
            let Ok(pattern) = EnvPattern::parse(&text) else { return Ok(()) };
            let expected = match text.strip_suffix('*') {
                Some(start) => !name.is_empty() && name.starts_with(start),
                None => text == name,
            };
            prop_assert_eq!(pattern.matches(&name), expected);
        }
    }
}
