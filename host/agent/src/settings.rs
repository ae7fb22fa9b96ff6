//! The user's settings, `settings.json` in Atoll's directory, and those of a trusted project on top of them. Keys this
//! program does not know are left alone, for other versions may.
//!
//! A project must never set what protects the user from it: see [`USER_ONLY`].

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use atoll_caps::{DefaultTrust, UserLimits, read_small_file};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::queue::QueueMode;

/// What was read. Absent keys have their defaults.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// The provider to ask, if `--model` does not say.
    pub default_provider: Option<String>,
    /// The model to ask.
    pub default_model: Option<String>,
    /// Which tools are active: a list, or changes as `+name` and `-name`. Default: those that say so themselves.
    pub default_tools: Option<Vec<String>>,
    /// How long a server may stay silent, in milliseconds; 0 or `"disabled"`: for ever. Default 300,000.
    #[serde(deserialize_with = "idle_timeout")]
    pub http_idle_timeout_ms: Option<u64>,
    /// The shell for command lines. Default: `/bin/bash`, else `bash`, else `sh`.
    pub shell_path: Option<PathBuf>,
    /// Limits of plugins, over those of their manifests: by plugin, and with `*` for all. Only the user's own settings
    /// count here.
    pub limits: UserLimits,
    /// Where session files go. Default: `sessions` in Atoll's directory.
    pub session_dir: Option<PathBuf>,
    /// Whether a project is trusted for which nothing is saved. Only the user's own settings say so.
    pub default_project_trust: DefaultTrust,
    /// What a project's `defaultTools` changes about the user's, as `+name` and `-name`.
    #[serde(skip)]
    pub tool_changes: Option<Vec<String>>,
    /// The audit log. The user's own settings only.
    pub audit: AuditSettings,
    /// How `bash`, and whatever else starts programs, is confined. The user's own settings only.
    pub bash: BashSettings,
    /// What is said to plugins, by their names: an object each, whose keys are theirs. The user's own settings only, for
    /// the rules of a plugin that guards something must not be a project's to change.
    pub plugin_settings: BTreeMap<String, Map<String, Value>>,
    /// Extensions beside those in the folder: paths, and changes as `!glob`, `+path`, `-path` and `±builtin:NAME`. The
    /// user's own; a project's are apart, so that it takes away none of the user's.
    pub extensions: Vec<String>,
    /// What a project says likewise.
    #[serde(skip)]
    pub project_extensions: Vec<String>,
    /// How tools are shown where one runs scripts that call them.
    pub codemode: CodemodeSettings,
    /// How many messages that steer a run are delivered together.
    pub steering_mode: QueueMode,
    /// How many messages that follow a run are delivered together.
    pub follow_up_mode: QueueMode,
}

/// How tools are shown where one runs scripts that call them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CodemodeSettings {
    /// Which of them are declared to the model.
    pub mode: CodemodeMode,
    /// How many tokens the list of the others may take, at 4 characters each. Default: 3000.
    pub inline_budget: usize,
}

impl Default for CodemodeSettings {
    fn default() -> Self {
        Self { mode: CodemodeMode::On, inline_budget: 3_000 }
    }
}

/// Which tools are declared to the model, where one runs scripts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CodemodeMode {
    /// All that are made for it. Those made for scripts are listed with the tool that runs scripts.
    #[default]
    On,
    /// Only those that scripts can not call. All others are listed with the tool that runs scripts.
    Only,
}

/// The audit log.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditSettings {
    /// Whether uses of capabilities are written down. Default: yes.
    pub enabled: bool,
    /// How large a file of the log may become, in bytes, before a new one is begun. Default: 8 MiB.
    pub max_bytes: u64,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self { enabled: true, max_bytes: 8 << 20 }
    }
}

/// How programs that plugins start are confined.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BashSettings {
    /// By what. Default: by nothing.
    pub sandbox: BashSandbox,
}

/// By what programs are confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BashSandbox {
    /// By nothing: a program can do what the user can.
    #[default]
    Off,
    /// By `bwrap`: no network, and writing in the workspace only.
    Bubblewrap,
}

/// Keys that only the user's own settings may have: what they say about trust, grants, limits, the network, the programs
/// that are run and their confinement, and where sessions are kept and protected, must not be a project's to change. Some
/// are not known to this version; no later one must come to take them from a project.
pub const USER_ONLY: [&str; 17] = [
    "defaultProjectTrust",
    "httpProxy",
    "grants",
    "plugins",
    "pluginSettings",
    "limits",
    "audit",
    "bash",
    "sandbox",
    "trust",
    "permissions",
    "sessionDir",
    "shellPath",
    "shellCommandPrefix",
    "npmCommand",
    "externalEditor",
    "secrets",
];
/// Lists that a project adds to, instead of replacing them.
const RESOURCES: [&str; 4] = ["packages", "skills", "prompts", "themes"];

/// The settings can not be used.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}: {reason}; correct the file or remove it", path.display())]
pub struct SettingsError {
    path: PathBuf,
    reason: String,
}

/// How long a server may stay silent, unless the settings say otherwise.
pub const DEFAULT_IDLE_TIMEOUT_MS: u64 = 300_000;

impl Settings {
    /// Reads a settings file; a missing one is empty.
    ///
    /// # Errors
    /// If it can not be read or is not JSON of the right shape, naming the place.
    pub fn load(path: &Path) -> Result<Self, SettingsError> {
        match read(path)? {
            Some(text) => parse(&text, path),
            None => Ok(Self::default()),
        }
    }

    /// Reads the user's settings and those of a project that is trusted: objects are merged key by key, lists of resources
    /// are joined, anything else of the project's replaces the user's. Also gives the project's keys that only the user may
    /// set, which count for nothing.
    ///
    /// # Errors
    /// As [`Settings::load`], for either file.
    pub fn load_with_project(user: &Path, project: &Path) -> Result<(Self, Vec<String>), SettingsError> {
        let Some(text) = read(project)? else { return Ok((Self::load(user)?, Vec::new())) };
        let mut over: Map<String, Value> = parse(&text, project)?;
        let refused: Vec<String> =
            USER_ONLY.into_iter().filter(|key| over.remove(*key).is_some()).map(str::to_owned).collect();
        let alone = Value::Object(over.clone());
        let alone: Self = parse(&alone.to_string(), project)?;
        let is_change = |item: &String| item.starts_with('+') || item.starts_with('-');
        let tool_changes = alone.default_tools.filter(|list| !list.is_empty() && list.iter().all(is_change));
        if tool_changes.is_some() {
            over.remove("defaultTools");
        }
        over.remove("extensions");
        let mut merged = match read(user)? {
            Some(text) => parse(&text, user)?,
            None => Map::new(),
        };
        merge(&mut merged, over, true);
        let merged: Self = parse(&Value::Object(merged).to_string(), user)?;
        Ok((Self { tool_changes, project_extensions: alone.extensions, ..merged }, refused))
    }

    /// How long a server may stay silent, in milliseconds.
    pub fn idle_timeout_ms(&self) -> u64 {
        self.http_idle_timeout_ms.unwrap_or(DEFAULT_IDLE_TIMEOUT_MS)
    }
}

fn read(path: &Path) -> Result<Option<String>, SettingsError> {
    read_small_file(path).map_err(|error| SettingsError { path: path.to_owned(), reason: error.to_string() })
}

fn parse<T: serde::de::DeserializeOwned>(text: &str, path: &Path) -> Result<T, SettingsError> {
    serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| SettingsError { path: path.to_owned(), reason: error.to_string() })
}

/// The nesting of both is bounded by the parser.
fn merge(under: &mut Map<String, Value>, over: Map<String, Value>, is_root: bool) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Object(under)), Value::Object(over)) => merge(under, over, false),
            (Some(Value::Array(under)), Value::Array(over)) if is_root && RESOURCES.contains(&key.as_str()) => {
                under.extend(over);
            }
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

/// A day: as good as for ever, and safe to add to a clock.
const FOR_EVER_MS: u64 = 24 * 60 * 60 * 1_000;

fn idle_timeout<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form {
        Milliseconds(u64),
        Word(String),
    }
    match Form::deserialize(deserializer)? {
        Form::Milliseconds(0) => Ok(Some(FOR_EVER_MS)),
        Form::Milliseconds(ms) => Ok(Some(ms.min(FOR_EVER_MS))),
        Form::Word(word) if word == "disabled" => Ok(Some(FOR_EVER_MS)),
        Form::Word(word) => {
            let expected = "a number of milliseconds or \"disabled\"";
            Err(serde::de::Error::custom(format!("httpIdleTimeoutMs is \"{word}\", but has to be {expected}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_keys_are_read_and_others_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        assert_eq!(Settings::load(&path).unwrap(), Settings::default());
        std::fs::write(&path, "\u{feff}{\"defaultModel\": \"m\", \"theme\": \"dark\", \"httpIdleTimeoutMs\": 0}")
            .unwrap();
        let settings = Settings::load(&path).unwrap();
        assert_eq!(settings.default_model.as_deref(), Some("m"));
        assert_eq!(settings.idle_timeout_ms(), FOR_EVER_MS);
        std::fs::write(&path, "{\"httpIdleTimeoutMs\": \"soon\"}").unwrap();
        let error = Settings::load(&path).unwrap_err().to_string();
        assert!(error.contains("settings.json") && error.contains("\"disabled\""), "{error}");
    }

    #[test]
    fn a_project_adds_to_the_users_settings_but_not_to_what_protects_the_user() {
        let folder = tempfile::tempdir().unwrap();
        let (user, project) = (folder.path().join("user.json"), folder.path().join("project.json"));
        let both = |theirs: &str, its: &str| {
            std::fs::write(&user, theirs).unwrap();
            std::fs::write(&project, its).unwrap();
            Settings::load_with_project(&user, &project)
        };
        let (settings, refused) = both(
            r#"{"defaultModel": "m", "defaultProvider": "p", "httpIdleTimeoutMs": 5}"#,
            r#"{"defaultModel": "n", "defaultProjectTrust": "always", "httpProxy": "http://evil", "audit": {}}"#,
        )
        .unwrap();
        let expected = Settings {
            default_model: Some("n".to_owned()),
            default_provider: Some("p".to_owned()),
            http_idle_timeout_ms: Some(5),
            ..Settings::default()
        };
        assert_eq!(settings, expected);
        assert_eq!(refused, ["defaultProjectTrust", "httpProxy", "audit"]);
        // Nor to what is run and where sessions are kept.
        let its = r#"{"sessionDir": "/tmp/theirs", "shellPath": "./sh", "shellCommandPrefix": "x", "npmCommand": ["x"],
            "externalEditor": "x", "secrets": {"a": "!x"}}"#;
        let (settings, refused) = both(r#"{"sessionDir": "/mine", "shellPath": "/bin/zsh"}"#, its).unwrap();
        let kept = (settings.session_dir.as_deref(), settings.shell_path.as_deref());
        assert_eq!(kept, (Some(Path::new("/mine")), Some(Path::new("/bin/zsh"))));
        assert_eq!(refused.len(), 6, "{refused:?}");
        // A list replaces the user's, changes are made to it.
        let (settings, _) = both(r#"{"defaultTools": ["read", "ls"]}"#, r#"{"defaultTools": ["bash"]}"#).unwrap();
        assert_eq!((settings.default_tools, settings.tool_changes), (Some(vec!["bash".to_owned()]), None));
        let (settings, _) = both(r#"{"defaultTools": ["read"]}"#, r#"{"defaultTools": ["+ls", "-read"]}"#).unwrap();
        assert_eq!(settings.default_tools, Some(vec!["read".to_owned()]));
        assert_eq!(settings.tool_changes, Some(vec!["+ls".to_owned(), "-read".to_owned()]));
        // What either says of extensions stays apart: a project takes away none of the user's.
        let (settings, _) = both(r#"{"extensions": ["a.ts"]}"#, r#"{"extensions": ["-a.ts"]}"#).unwrap();
        assert_eq!(
            (settings.extensions, settings.project_extensions),
            (vec!["a.ts".to_owned()], vec!["-a.ts".to_owned()])
        );
        for (theirs, its, named) in
            [("{}", "{", "project.json"), ("{", "{}", "user.json"), ("{}", "[]", "project.json")]
        {
            let error = both(theirs, its).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
        let error = both("{}", r#"{"defaultTools": 3}"#).unwrap_err().to_string();
        assert!(error.contains("project.json"), "{error}");
    }

    #[test]
    fn objects_are_merged_and_lists_of_resources_joined() {
        let map = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let mut under = map(r#"{"a": {"x": 1, "skills": [1]}, "skills": ["u"], "b": [1], "c": 1}"#);
        merge(&mut under, map(r#"{"a": {"y": 2, "skills": [2]}, "skills": ["p"], "b": [2], "d": {}}"#), true);
        let expected =
            map(r#"{"a": {"x": 1, "skills": [2], "y": 2}, "skills": ["u", "p"], "b": [2], "c": 1, "d": {}}"#);
        assert_eq!(under, expected);
    }

    #[test]
    fn how_tools_are_shown_is_read_and_a_project_may_say_it() {
        let folder = tempfile::tempdir().unwrap();
        let (user, project) = (folder.path().join("user.json"), folder.path().join("project.json"));
        std::fs::write(&user, r#"{"codemode": {"mode": "only"}}"#).unwrap();
        std::fs::write(&project, r#"{"codemode": {"inlineBudget": 100}}"#).unwrap();
        let (settings, refused) = Settings::load_with_project(&user, &project).unwrap();
        assert_eq!(settings.codemode, CodemodeSettings { mode: CodemodeMode::Only, inline_budget: 100 });
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!(Settings::default().codemode, CodemodeSettings { mode: CodemodeMode::On, inline_budget: 3_000 });
        std::fs::write(&user, r#"{"codemode": {"mode": "off"}}"#).unwrap();
        assert!(Settings::load(&user).unwrap_err().to_string().contains("`on` or `only`"));
    }

    #[test]
    fn the_log_and_the_confinement_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Settings::load(&path)
        };
        let settings = read("{\"audit\": {\"maxBytes\": 5000}, \"bash\": {\"sandbox\": \"bubblewrap\"}}").unwrap();
        assert_eq!(settings.audit, AuditSettings { enabled: true, max_bytes: 5000 });
        assert_eq!(settings.bash.sandbox, BashSandbox::Bubblewrap);
        assert_eq!(read("{}").unwrap().bash.sandbox, BashSandbox::Off);
        // A word that is not understood must not be taken for `off`.
        assert!(read("{\"bash\": {\"sandbox\": \"bwrap\"}}").is_err());
    }
}
