//! Programs of the `process` capability.

use std::fmt;
use std::str::FromStr;

use crate::pattern_error::PatternError;
use crate::text::serialize_as_text;

/// What stands between a program and the variables that may be set for it, where both are written in one word.
pub(crate) const ENV: &str = ":env=";

/// The programs that may be started.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProgramPattern {
    /// `*`: every program, however it is named.
    Any,
    /// A bare name, looked up on the user's PATH. Matches a program given by that bare name only.
    Name(String),
    /// An absolute path. Matches a program given by that path only.
    Path(String),
}

impl ProgramPattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if text == "*" {
            return Ok(Self::Any);
        }
        if text.is_empty() {
            return Err(PatternError::at(text, 0, "a program is empty; write its name, its absolute path or `*`"));
        }
        PatternError::at_first(text, char::is_control, "control characters have no place in a program")?;
        PatternError::at_first(
            text,
            |c| c == '*',
            "`*` stands for every program; parts of a name can not be left open",
        )?;
        if let Some(offset) = text.find(ENV) {
            return Err(PatternError::at(text, offset, "`:env=` has no place in a program"));
        }
        let Some(below) = text.strip_prefix('/') else {
            if text == "." || text == ".." {
                return Err(PatternError::at(text, 0, "this is a directory; write a program's name or absolute path"));
            }
            PatternError::at_first(text, |c| c == '/', "a program is a bare name or an absolute path")?;
            return Ok(Self::Name(text.to_owned()));
        };
        let mut offset = 1;
        for part in below.split('/') {
            if matches!(part, "" | "." | "..") {
                return Err(PatternError::at(text, offset, "write the path without `.`, `..` and empty parts"));
            }
            offset += part.len() + 1;
        }
        Ok(Self::Path(text.to_owned()))
    }

    /// Whether a program, as the plugin named it, is one of these.
    pub fn matches(&self, program: &str) -> bool {
        match self {
            Self::Any => !program.is_empty(),
            Self::Name(name) => name == program,
            Self::Path(path) => path == program,
        }
    }

    fn may_overlap(&self, other: &Self) -> bool {
        matches!(self, Self::Any) || matches!(other, Self::Any) || self == other
    }
}

impl fmt::Display for ProgramPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Name(text) | Self::Path(text) => f.write_str(text),
        }
    }
}

impl FromStr for ProgramPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// The arguments that a program may be given: one pattern for each, in order.
///
/// `*` in a pattern stands for any characters, so that `*` alone is any one argument; `**` as the last pattern is
/// any further arguments, also none. Everything else is itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct ArgumentPatterns(Vec<String>);

impl ArgumentPatterns {
    /// Reads the patterns. The error carries the one that is wrong.
    pub fn parse<T: AsRef<str>>(patterns: &[T]) -> Result<Self, PatternError> {
        let last = patterns.len().saturating_sub(1);
        for (index, pattern) in patterns.iter().enumerate() {
            let pattern = pattern.as_ref();
            if let Some(offset) = pattern.find("**")
                && !(pattern == "**" && index == last)
            {
                return Err(PatternError::at(pattern, offset, "`**` stands alone, as the last pattern"));
            }
            PatternError::at_first(pattern, |c| c == '\0', "an argument has no NUL")?;
        }
        Ok(Self(patterns.iter().map(|pattern| pattern.as_ref().to_owned()).collect()))
    }

    /// The patterns.
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }

    /// Whether a program may be given these arguments.
    pub fn matches<T: AsRef<str>>(&self, arguments: &[T]) -> bool {
        let (patterns, open) = match self.0.split_last() {
            Some((last, front)) if last == "**" => (front, true),
            _ => (self.0.as_slice(), false),
        };
        let count_fits = if open { arguments.len() >= patterns.len() } else { arguments.len() == patterns.len() };
        count_fits && patterns.iter().zip(arguments).all(|(pattern, argument)| glob(pattern, argument.as_ref()))
    }
}

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommandPattern {
    /// The programs.
    pub program: ProgramPattern,
    /// Their arguments; `None` for any.
    pub arguments: Option<ArgumentPatterns>,
}

impl CommandPattern {
    /// Whether a program with its arguments is one of these.
    pub fn matches<T: AsRef<str>>(&self, program: &str, arguments: &[T]) -> bool {
        self.program.matches(program) && self.arguments.as_ref().is_none_or(|patterns| patterns.matches(arguments))
    }

    /// Whether the two could have a command in common.
    pub(crate) fn may_overlap(&self, other: &Self) -> bool {
        self.program.may_overlap(&other.program)
    }
}

impl fmt::Display for CommandPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program)?;
        for pattern in self.arguments.iter().flat_map(|patterns| patterns.as_slice()) {
            write!(f, " {}", crate::text::printable(pattern))?;
        }
        Ok(())
    }
}

/// Whether a text fits a pattern in which `*` is any characters. Linear but for the last `*`: greedy with one point
/// to go back to, never exponential.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut back = None;
    while let Some(byte) = text.get(t) {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                back = Some((p, t));
            }
            Some(wanted) if wanted == byte => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((after_star, taken)) = back else {
                    return false;
                };
                p = after_star;
                t = taken + 1;
                back = Some((after_star, t));
            }
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|byte| *byte == b'*'))
}

serialize_as_text!(ProgramPattern);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn programs() {
        for (pattern, program, expected) in [
            ("git", "git", true),
            ("git", "/usr/bin/git", false),
            ("git", "./git", false),
            ("git", "GIT", false),
            ("/usr/bin/git", "/usr/bin/git", true),
            ("/usr/bin/git", "git", false),
            ("/usr/bin/git", "/usr/bin/../bin/git", false),
            ("*", "git", true),
            ("*", "./anything", true),
            ("*", "", false),
        ] {
            assert_eq!(ProgramPattern::parse(pattern).unwrap().matches(program), expected, "{pattern} {program}");
        }
        for (pattern, column) in
            [("", 1), ("./git", 2), ("a/b", 2), ("..", 1), ("/a/../b", 4), ("/", 2), ("/a/", 4), ("g*", 2), ("a\nb", 2)]
        {
            assert_eq!(ProgramPattern::parse(pattern).map_err(|error| error.column), Err(column), "{pattern:?}");
        }
    }

    #[test]
    fn arguments() {
        for (patterns, arguments, expected) in [
            (&[][..], &[][..], true),
            (&[], &["x"], false),
            (&["status"], &["status"], true),
            (&["status"], &[], false),
            (&["status"], &["status", "-s"], false),
            (&["status", "**"], &["status"], true),
            (&["status", "**"], &["status", "a", "b"], true),
            (&["status", "**"], &["push"], false),
            (&["*"], &[""], true),
            (&["*"], &["anything"], true),
            (&["*"], &["a", "b"], false),
            (&["--depth=*"], &["--depth=3"], true),
            (&["--depth=*"], &["--depth"], false),
            (&["a*b*c"], &["a-b-b-c"], true),
            (&["a*b*c"], &["a-b-c-d"], false),
            (&["*ü"], &["für ü"], true),
            (&["**"], &[], true),
        ] {
            assert_eq!(
                ArgumentPatterns::parse(patterns).unwrap().matches(arguments),
                expected,
                "{patterns:?} {arguments:?}"
            );
        }
        for patterns in [&["**", "x"][..], &["a**"], &["***"], &["a\0"]] {
            assert!(ArgumentPatterns::parse(patterns).is_err(), "{patterns:?}");
        }
    }

    #[test]
    fn globs_do_not_explode() {
        assert!(!glob(&"*a".repeat(500), &"a".repeat(499)));
        assert!(!glob(&("*a".repeat(500) + "b"), &"a".repeat(20_000)));
    }

    proptest! {
        #[test]
        fn never_panics(program in any::<String>(), arguments in any::<Vec<String>>()) {
            let _ = ProgramPattern::parse(&program);
            if let Ok(patterns) = ArgumentPatterns::parse(&arguments) {
                patterns.matches(&arguments);
            }
        }

        #[test]
        fn globs_agree_with_the_definition(pattern in "[ab*]{0,8}", text in "[ab]{0,8}") {
            fn slow(pattern: &[u8], text: &[u8]) -> bool {
                match (pattern.split_first(), text.split_first()) {
                    (None, None) => true,
                    (Some((b'*', rest)), None) => slow(rest, text),
                    (Some((b'*', rest)), Some((_, shorter))) => slow(rest, text) || slow(pattern, shorter),
                    (Some((a, rest)), Some((b, shorter))) => a == b && slow(rest, shorter),
                    _ => false,
                }
            }
            prop_assert_eq!(glob(&pattern, &text), slow(pattern.as_bytes(), text.as_bytes()));
        }
    }
}
