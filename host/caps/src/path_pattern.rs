//! Roots of the `files` capability.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use crate::pattern_error::PatternError;
use crate::text::{printable, serialize_as_text};

/// What may be done under a root. `ReadWrite` is more than `Read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Access {
    /// Look and read.
    Read,
    /// Also create, change and remove.
    ReadWrite,
}

impl Access {
    /// The mode's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadWrite => "read-write",
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no access mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not an access mode; write `read` or `read-write`", printable(.0))]
pub struct UnknownAccess(pub String);

impl FromStr for Access {
    type Err = UnknownAccess;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "read" => Ok(Self::Read),
            "read-write" => Ok(Self::ReadWrite),
            _ => Err(UnknownAccess(text.to_owned())),
        }
    }
}

/// What the variables of root patterns stand for. All paths are absolute; others resolve to nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RootVars {
    /// `$workspace`: the session's working directory.
    pub workspace: PathBuf,
    /// `$skills`: the directories that skills are read from.
    pub skills: Vec<PathBuf>,
    /// `$spill`: where the host keeps output that was too long.
    pub spill: PathBuf,
    /// `~`: the user's home.
    pub home: PathBuf,
}

/// A directory named in a manifest or grant: it and everything below it.
///
/// `$workspace`, `$skills`, `$spill`, `~/…` or an absolute path. No wildcards and no `..`; the same place written
/// in two ways is the same pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RootPattern {
    /// `$workspace`.
    Workspace,
    /// `$skills`.
    Skills,
    /// `$spill`.
    Spill,
    /// `~/…`: a path relative to the user's home; empty for the home itself.
    Home(PathBuf),
    /// An absolute path.
    Absolute(PathBuf),
}

impl RootPattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let at = |offset, reason: &str| Err(PatternError::at(text, offset, reason));
        match text {
            "" => return at(0, "a root is empty; write `$workspace` or a path"),
            "$workspace" => return Ok(Self::Workspace),
            "$skills" => return Ok(Self::Skills),
            "$spill" => return Ok(Self::Spill),
            _ if text.starts_with('$') => {
                return at(0, "the variables are `$workspace`, `$skills` and `$spill`, and nothing follows them");
            }
            _ => {}
        }
        PatternError::at_first(text, |c| c == '*' || c == '?', "a root has no wildcards; name the directory itself")?;
        PatternError::at_first(text, char::is_control, "control characters have no place in a path")?;
        let (home, rest, skipped) = if text == "~" {
            (true, "", 1)
        } else if let Some(rest) = text.strip_prefix("~/") {
            (true, rest, 2)
        } else if let Some(rest) = text.strip_prefix('/') {
            (false, rest, 1)
        } else {
            return at(0, "a root is `$workspace`, `$skills`, `$spill`, `~/…` or an absolute path");
        };
        let mut path = if home { PathBuf::new() } else { PathBuf::from("/") };
        let mut offset = skipped;
        for name in rest.split('/') {
            match name {
                "" | "." => {}
                ".." => return at(offset, "`..` is not allowed; write the path it leads to"),
                name => path.push(name),
            }
            offset += name.len() + 1;
        }
        Ok(if home { Self::Home(path) } else { Self::Absolute(path) })
    }

    /// The directories it stands for. Those that are not absolute, or have a `..`, are left out.
    pub fn resolve(&self, vars: &RootVars) -> Vec<PathBuf> {
        let found = match self {
            Self::Workspace => vec![normalised(&vars.workspace)],
            Self::Skills => vars.skills.iter().map(|path| normalised(path)).collect(),
            Self::Spill => vec![normalised(&vars.spill)],
            Self::Home(below) => vec![normalised(&vars.home).map(|home| home.join(below))],
            Self::Absolute(path) => vec![normalised(path)],
        };
        // `join` with an empty path adds a slash; collecting the components takes it away again.
        found.into_iter().flatten().map(|path| path.components().collect()).collect()
    }

    /// Whether the two could have a directory in common, for some values of the variables.
    pub(crate) fn may_overlap(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Home(a), Self::Home(b)) | (Self::Absolute(a), Self::Absolute(b)) => {
                a.starts_with(b) || b.starts_with(a)
            }
            _ => true,
        }
    }
}

/// The path without `.` and doubled slashes; `None` if it is relative or has a `..`.
pub(crate) fn normalised(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    Some(path.components().collect())
}

impl fmt::Display for RootPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workspace => f.write_str("$workspace"),
            Self::Skills => f.write_str("$skills"),
            Self::Spill => f.write_str("$spill"),
            Self::Home(below) if below.as_os_str().is_empty() => f.write_str("~"),
            Self::Home(below) => write!(f, "~/{}", below.display()),
            Self::Absolute(path) => write!(f, "{}", path.display()),
        }
    }
}

impl FromStr for RootPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

serialize_as_text!(Access, RootPattern);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vars() -> RootVars {
        RootVars {
            workspace: "/w/./project/".into(),
            skills: vec!["/s/one".into(), "relative".into(), "/s/two".into()],
            spill: "/tmp/../etc".into(),
            home: "/home/ann".into(),
        }
    }

    #[test]
    fn patterns() {
        for (text, shown, paths) in [
            ("$workspace", "$workspace", vec!["/w/project"]),
            ("$skills", "$skills", vec!["/s/one", "/s/two"]),
            ("$spill", "$spill", vec![]),
            ("~", "~", vec!["/home/ann"]),
            ("~/", "~", vec!["/home/ann"]),
            ("~//a/./b/", "~/a/b", vec!["/home/ann/a/b"]),
            ("/", "/", vec!["/"]),
            ("//etc//x/.", "/etc/x", vec!["/etc/x"]),
            ("/a/[slug]", "/a/[slug]", vec!["/a/[slug]"]),
            ("/a/..b", "/a/..b", vec!["/a/..b"]),
        ] {
            let pattern = RootPattern::parse(text).unwrap();
            assert_eq!(pattern.to_string(), shown);
            assert_eq!(pattern.resolve(&vars()), paths.iter().map(PathBuf::from).collect::<Vec<_>>());
            for path in pattern.resolve(&vars()) {
                assert!(!path.to_string_lossy().ends_with('/') || path == Path::new("/"));
            }
        }
    }

    #[test]
    fn errors_name_the_place() {
        for (text, column) in [
            ("", 1),
            ("src", 1),
            ("./src", 1),
            ("$home", 1),
            ("$workspace/src", 1),
            ("~ann/x", 1),
            ("/a/../b", 4),
            ("~/..", 3),
            ("/a/*", 4),
            ("/ü/?", 4),
            ("/a\0", 3),
        ] {
            assert_eq!(RootPattern::parse(text).map_err(|error| error.column), Err(column), "{text:?}");
        }
    }

    #[test]
    fn access_is_ordered() {
        assert!(Access::Read < Access::ReadWrite);
        assert_eq!("read-write".parse(), Ok(Access::ReadWrite));
        assert!("write".parse::<Access>().is_err());
    }

    proptest! {
        #[test]
        fn never_panics(text in any::<String>()) {
            let _ = RootPattern::parse(&text);
        }

        #[test]
        fn shows_what_it_reads(text in r"(/|~/)([a-c./*]|\PC){0,12}") {
            if let Ok(pattern) = RootPattern::parse(&text) {
                prop_assert_eq!(RootPattern::parse(&pattern.to_string()), Ok(pattern));
            }
        }
    }
}
