//! The user's settings, `settings.json` in Atoll's directory. Keys this program does not know are left alone, for
//! other versions may.

use std::path::{Path, PathBuf};

use serde::Deserialize;

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
    /// Where session files go. Default: `sessions` in Atoll's directory.
    pub session_dir: Option<PathBuf>,
    /// The audit log. The user's own settings only.
    pub audit: AuditSettings,
    /// How `bash`, and whatever else starts programs, is confined. The user's own settings only.
    pub bash: BashSettings,
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

/// The settings can not be used.
#[derive(Debug, thiserror::Error)]
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
        let failed = |reason: String| SettingsError { path: path.to_owned(), reason };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(failed(error.to_string())),
        };
        serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| failed(error.to_string()))
    }

    /// How long a server may stay silent, in milliseconds.
    pub fn idle_timeout_ms(&self) -> u64 {
        self.http_idle_timeout_ms.unwrap_or(DEFAULT_IDLE_TIMEOUT_MS)
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
