//! The user's secrets by name, `secrets.json` in Atoll's directory: what plugins may name in headers, if their manifest and
//! the user's grant both say so.
//!
//! A value must never be looked up before somebody may use it, and never shown: errors name the secret and not what it is.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use atoll_caps::{printable, read_small_file};
use atoll_table::{Error, model::Secret};

use crate::config_value;

/// Where values come from. Nothing is read before the first is looked up.
pub struct Secrets {
    path: PathBuf,
    environment: BTreeMap<String, String>,
    /// What was looked up. A command is run once.
    known: Mutex<HashMap<String, Secret>>,
}

impl Secrets {
    /// Those of a file; `environment` is where variables are looked up.
    pub fn new(path: PathBuf, environment: BTreeMap<String, String>) -> Self {
        Self { path, environment, known: Mutex::default() }
    }

    /// The value of a secret, which is written as an `apiKey` in `models.json` is: itself, `$VARIABLE` or `!command`. May
    /// block while a command runs, for at most 10 s.
    ///
    /// # Errors
    /// `not-found` if there is no such secret; `failed` if the file can not be used or can be read by others than its
    /// owner; `unavailable` if the value can not be had.
    pub fn get(&self, name: &str) -> Result<Secret, Error> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = known.get(name) {
            return Ok(value.clone());
        }
        let file = self.path.display();
        let shown = printable(name);
        let Some(mut values) = self.read()? else {
            return Err(Error::NotFound(format!("there is no secret {shown}; put it into {file}, which is not there")));
        };
        let Some(text) = values.remove(name) else {
            return Err(Error::NotFound(format!("there is no secret {shown}; put it into {file}")));
        };
        let value = config_value::resolve(&text, &|variable| self.environment.get(variable).cloned())
            .map_err(|reason| Error::Unavailable(format!("the secret {shown}: {reason}; correct it in {file}")))?;
        let value = Secret::new(value);
        known.insert(name.to_owned(), value.clone());
        Ok(value)
    }

    fn read(&self) -> Result<Option<BTreeMap<String, String>>, Error> {
        let failed = |reason: String| Error::Failed(format!("{}: {reason}", self.path.display()));
        if is_open_to_others(&self.path) {
            let way_out = format!("chmod 600 {}", atoll_caps::shell_word(&self.path.to_string_lossy()));
            return Err(failed(format!("others than you can read it; change that with `{way_out}`")));
        }
        let Some(text) = read_small_file(&self.path).map_err(|error| failed(error.to_string()))? else {
            return Ok(None);
        };
        serde_json::from_str(text.trim_start_matches('\u{feff}')).map(Some).map_err(|error| {
            // The text of the error may hold a value.
            let (line, column) = (error.line(), error.column());
            failed(format!("it is not an object of names and strings at line {line} column {column}; correct it there"))
        })
    }
}

fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o077 != 0)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn values_are_literal_variables_or_commands_and_a_command_runs_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets.json");
        let count = folder.path().join("count");
        let command = format!("!echo x >> {}; echo from-command", count.display());
        let text = serde_json::json!({"A": "plain", "B": "$VARIABLE", "C": command, "D": "$NONE"}).to_string();
        let environment = BTreeMap::from([("VARIABLE".to_owned(), "from-variable".to_owned())]);
        let secrets = Secrets::new(path.clone(), environment);
        assert_eq!(secrets.get("A").unwrap_err().code(), "not-found");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = secrets.get("A").unwrap_err().to_string();
        assert!(error.contains("chmod 600") && !error.contains("plain"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for (name, value) in [("A", "plain"), ("B", "from-variable"), ("C", "from-command"), ("C", "from-command")] {
            assert_eq!(secrets.get(name).unwrap().reveal(), value, "{name}");
        }
        assert_eq!(fs::read_to_string(count).unwrap(), "x\n");
        assert_eq!(secrets.get("D").unwrap_err().code(), "unavailable");
        assert_eq!(secrets.get("E").unwrap_err().code(), "not-found");
        fs::write(&path, "{\"F\": [\"sk-hidden\"]}").unwrap();
        let error = secrets.get("F").unwrap_err().to_string();
        assert!(error.contains("line 1") && !error.contains("sk-hidden"), "{error}");
    }
}
