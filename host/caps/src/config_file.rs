//! Names of the `config` capability.

use std::fmt;
use std::str::FromStr;

use crate::pattern_error::PatternError;
use crate::text::serialize_as_text;

/// What a name can end with: files that people write by hand.
const ENDINGS: [&str; 5] = [".json", ".jsonc", ".toml", ".yaml", ".yml"];

/// What Atoll keeps its own things under, in its directory and in a project's. No file that is called so, whatever comes
/// after the first point, is a plugin's.
const OWN: [&str; 23] = [
    "agents",
    "atoll",
    "audit",
    "auth",
    "cache",
    "config",
    "extensions",
    "grants",
    "history",
    "keybindings",
    "logs",
    "models",
    "models-store",
    "plugin",
    "plugins",
    "prompts",
    "secrets",
    "sessions",
    "settings",
    "skills",
    "store",
    "themes",
    "trust",
];

/// The longest name, in bytes.
const LONGEST: usize = 64;

/// A file of configuration that is a plugin's to read and to write: a plain name such as `mcp.json`, which stands for the file
/// in Atoll's directory and for the one in a project's.
///
/// It has small letters, digits, `_`, `-` and `.`, begins with a letter, and ends as such files do. Names of Atoll's own
/// files are none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConfigFile(String);

impl ConfigFile {
    /// Reads a name.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if !text.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Err(PatternError::at(text, 0, "a file's name begins with a small letter, such as `mcp.json`"));
        }
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-.".contains(c);
        if let Some((offset, _)) = text.char_indices().find(|(_, c)| !is_plain(*c)) {
            let reason = "a file's name has small letters, digits, `_`, `-` and `.`, and no folder before it";
            return Err(PatternError::at(text, offset, reason));
        }
        if text.len() > LONGEST {
            return Err(PatternError::at(text, LONGEST, "a file's name has at most 64 characters"));
        }
        if !ENDINGS.iter().any(|ending| text.strip_suffix(ending).is_some_and(|name| !name.ends_with('.'))) {
            let reason = "a file of configuration ends in `.json`, `.jsonc`, `.toml`, `.yaml` or `.yml`";
            return Err(PatternError::at(text, text.len(), reason));
        }
        if text.split('.').next().is_some_and(|name| OWN.contains(&name)) {
            return Err(PatternError::at(text, 0, "that is a file of Atoll's own, which no plugin may have"));
        }
        Ok(Self(text.to_owned()))
    }

    /// Any file: of use only as the other side of a manifest. It is no name.
    pub(crate) fn any() -> Self {
        Self("*".to_owned())
    }

    /// Whether it is this one.
    pub(crate) fn matches(&self, other: &Self) -> bool {
        self.0 == "*" || self == other
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConfigFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ConfigFile {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

serialize_as_text!(ConfigFile);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn errors_point_at_the_character() {
        for (text, column, reason) in [
            ("", 1, "small letter"),
            (".json", 1, "small letter"),
            ("Mcp.json", 1, "small letter"),
            ("../mcp.json", 1, "small letter"),
            ("a/mcp.json", 2, "no folder"),
            ("mcp\\a.json", 4, "no folder"),
            ("mcP.json", 3, "small letters"),
            ("mcp*.json", 4, "small letters"),
            ("mcp", 4, "ends in"),
            ("mcp.", 5, "ends in"),
            ("mcp..json", 10, "ends in"),
            ("mcp.sh", 7, "ends in"),
            ("mcp.json.lock", 14, "ends in"),
            ("settings.json", 1, "Atoll's own"),
            ("settings.local.json", 1, "Atoll's own"),
            ("trust.toml", 1, "Atoll's own"),
        ] {
            let error = ConfigFile::parse(text).unwrap_err();
            assert_eq!(error.column, column, "{text}");
            assert!(error.reason.contains(reason), "{error}");
        }
        for text in ["mcp.json", "mcp-proxy.toml", "a.yml", "my.settings.json", "x2_.jsonc"] {
            assert_eq!(ConfigFile::parse(text).unwrap().as_str(), text);
        }
        assert_eq!(ConfigFile::parse(&format!("{}.json", "a".repeat(60))).unwrap_err().column, 65);
    }

    proptest! {
        #[test]
        fn a_name_is_never_more_than_a_name(text in "[a-z./A-Z~-]{0,8}(\\.json)?|.*") {
            if let Ok(file) = ConfigFile::parse(&text) {
                prop_assert_eq!(std::path::Path::new(file.as_str()).components().count(), 1);
                prop_assert!(!text.starts_with('.') && !text.contains(['/', '\\', '\0']));
                prop_assert_eq!(ConfigFile::parse(&file.to_string()), Ok(file));
            }
        }
    }
}
