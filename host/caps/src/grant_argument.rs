//! Grants as arguments of `atoll plugin grant`: read from there, and written in denials.

use crate::command_pattern::{CommandPattern, ENV, ProgramPattern};
use crate::config_file::ConfigFile;
use crate::env_pattern::EnvPattern;
use crate::origin_pattern::OriginPattern;
use crate::path_pattern::{Access, RootPattern};
use crate::pattern_error::PatternError;
use crate::secret_pattern::SecretPattern;
use crate::wants::{ConfigWant, FilesWant, HttpWant, Methods, ProcessWant, SecretWant};

impl FilesWant {
    /// Reads `ROOT[:read|:read-write]`, the value of `--files`. Without a mode: `read`.
    pub fn from_argument(text: &str) -> Result<Self, PatternError> {
        let (root, access) = match text.rsplit_once(':') {
            Some((root, mode)) => match mode.parse() {
                Ok(access) => (root, access),
                Err(_) => (text, Access::Read),
            },
            None => (text, Access::Read),
        };
        Ok(Self { root: RootPattern::parse(root)?, access, reason: String::new() })
    }

    /// Writes what [`FilesWant::from_argument`] reads.
    pub fn to_argument(&self) -> String {
        format!("{}:{}", self.root, self.access)
    }
}

impl HttpWant {
    /// Reads `ORIGIN[:METHOD[,METHOD…]]`, the value of `--http`. Without methods: `GET`; `ANY` for all.
    ///
    /// `*` is every port where a port can stand, so as a method it is read only after a port or `$models`.
    pub fn from_argument(text: &str) -> Result<Self, PatternError> {
        let want = |origin, methods| Self { origin, methods, reason: String::new() };
        if let Some((origin_text, word)) = text.rsplit_once(':') {
            if word.eq_ignore_ascii_case("any") {
                return Ok(want(OriginPattern::parse(origin_text)?, Methods::Any));
            }
            let list: Vec<&str> = word.split(',').collect();
            let named = word.starts_with(|c: char| c.is_ascii_alphabetic());
            if named && let Ok(methods) = Methods::parse(&list) {
                return Ok(want(OriginPattern::parse(origin_text)?, methods));
            }
            if word == "*"
                && let Ok(origin) = OriginPattern::parse(origin_text)
                && (origin == OriginPattern::Models || has_port(origin_text))
            {
                return Ok(want(origin, Methods::Any));
            }
        }
        Ok(want(OriginPattern::parse(text)?, Methods::get()))
    }

    /// Writes what [`HttpWant::from_argument`] reads.
    pub fn to_argument(&self) -> String {
        match &self.methods {
            Methods::Any => format!("{}:ANY", self.origin),
            methods if *methods == Methods::get() => self.origin.to_string(),
            Methods::Only(methods) => {
                let methods: Vec<&str> = methods.iter().map(String::as_str).collect();
                format!("{}:{}", self.origin, methods.join(","))
            }
        }
    }
}

/// Whether a port is written in an origin.
fn has_port(origin: &str) -> bool {
    let after_scheme = origin.split_once("://").map_or(origin, |(_, rest)| rest);
    let after_address = after_scheme.rsplit_once(']').map_or(after_scheme, |(_, rest)| rest);
    after_address.contains(':')
}

impl ProcessWant {
    /// Reads `PROGRAM[:env=NAME[,NAME…]]`, the value of `--process`: that program with any arguments, and the variables that
    /// may be set for it.
    pub fn from_argument(text: &str) -> Result<Self, PatternError> {
        let (program, names) = match text.split_once(ENV) {
            Some((program, names)) => (program, Some(names)),
            None => (text, None),
        };
        let env = names.into_iter().flat_map(|names| names.split(','));
        let command = CommandPattern { program: ProgramPattern::parse(program)?, arguments: None };
        let want = Self { command, env: env.map(EnvPattern::parse).collect::<Result<_, _>>()?, reason: String::new() };
        want.wrong_variable().map_or(Ok(want), Err)
    }

    /// Writes what [`ProcessWant::from_argument`] reads. The arguments are left out: there is no way to write them.
    pub fn to_argument(&self) -> String {
        let program = &self.command.program;
        if self.env.is_empty() {
            return program.to_string();
        }
        let names: Vec<&str> = self.env.iter().map(EnvPattern::as_str).collect();
        format!("{program}{ENV}{}", names.join(","))
    }
}

impl SecretWant {
    /// Reads `NAME[:reveal]`, the value of `--secret`.
    pub fn from_argument(text: &str) -> Result<Self, PatternError> {
        let (name, reveal) = match text.strip_suffix(":reveal") {
            Some(name) => (name, true),
            None => (text, false),
        };
        Ok(Self { name: SecretPattern::parse(name)?, reveal, reason: String::new() })
    }

    /// Writes what [`SecretWant::from_argument`] reads.
    pub fn to_argument(&self) -> String {
        if self.reveal { format!("{}:reveal", self.name) } else { self.name.to_string() }
    }
}

impl ConfigWant {
    /// Reads `FILE`, the value of `--config`.
    pub fn from_argument(text: &str) -> Result<Self, PatternError> {
        Ok(Self { file: ConfigFile::parse(text)?, reason: String::new() })
    }

    /// Writes what [`ConfigWant::from_argument`] reads.
    pub fn to_argument(&self) -> String {
        self.file.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn files() {
        for (text, shown) in [
            ("$workspace", "$workspace:read"),
            ("~/a:read-write", "~/a:read-write"),
            ("/a:b:read", "/a:b:read"),
            ("/a:b", "/a:b:read"),
        ] {
            assert_eq!(FilesWant::from_argument(text).unwrap().to_argument(), shown);
        }
        assert!(FilesWant::from_argument("a:read").is_err());
    }

    #[test]
    fn http() {
        for (text, shown) in [
            ("https://a.b", "https://a.b"),
            ("https://a.b:get", "https://a.b"),
            ("https://a.b:POST", "https://a.b:POST"),
            ("https://a.b:8080:post,GET", "https://a.b:8080:GET,POST"),
            ("https://a.b:*", "https://a.b:*"),
            ("https://a.b:*:*", "https://a.b:*:ANY"),
            ("https://a.b:443:*", "https://a.b:ANY"),
            ("*://a.b:any", "*://a.b:ANY"),
            ("http://[::1]:POST", "http://[::1]:POST"),
            ("http://[::1]:*", "http://[::1]:*"),
            ("http://[::1]:80:*", "http://[::1]:ANY"),
            ("$models:*", "$models:ANY"),
            ("$models:POST", "$models:POST"),
            ("$models", "$models"),
        ] {
            assert_eq!(HttpWant::from_argument(text).unwrap().to_argument(), shown, "{text}");
        }
        assert!(HttpWant::from_argument("https://a.b/:POST").is_err());
        assert!(HttpWant::from_argument("example.com:POST").is_err());
    }

    #[test]
    fn programs() {
        for text in ["git", "*", "/usr/bin/git", "git:env=GIT_PAGER", "/a b:env=A,B_*", "*:env=*", "*:env=*,PATH"] {
            let want = ProcessWant::from_argument(text).unwrap();
            assert_eq!(want.to_argument(), text);
            assert_eq!(want.env.len(), text.split_once(":env=").map_or(0, |(_, names)| names.split(',').count()));
        }
        for (text, column) in [
            ("git:env=", 1),
            ("git:env=A,,B", 1),
            ("git:env=A-B", 2),
            ("git:env=PATH", 1),
            ("*:env=LD_PRELOAD", 1),
            (":env=A", 1),
        ] {
            assert_eq!(ProcessWant::from_argument(text).unwrap_err().column, column, "{text}");
        }
    }

    #[test]
    fn secrets() {
        for text in ["KEY", "KEY:reveal", "mcp/*:reveal"] {
            assert_eq!(SecretWant::from_argument(text).unwrap().to_argument(), text);
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in any::<String>()) {
            let _ = FilesWant::from_argument(&text);
            let _ = HttpWant::from_argument(&text);
            let _ = ProcessWant::from_argument(&text);
            let _ = SecretWant::from_argument(&text);
            let _ = ConfigWant::from_argument(&text);
        }
    }
}
