//! The user's secrets by name, `secrets.json` in Atoll's directory: what plugins may name in headers, if their manifest and
//! the user's grant both say so.
//!
//! A value must never be looked up before somebody may use it, and never shown: errors name the secret and not what it is.
//! What a plugin has kept must never be worked out: a value that looks like a command is only that value.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use atoll_caps::{MAX_SMALL_FILE, PrivateLock, SecretPattern, printable, read_small_file, write_private_file};
use atoll_table::{Error, model::Secret, secrets::SecretStore};
use serde_json::{Map, Value};

use crate::{config_value, models::Models};

/// The longest value that is kept, in bytes.
const MAX_VALUE: usize = 64 << 10;

/// What the names of keys of model providers begin with; the rest is the provider's name in the models file.
const OF_PROVIDER: &str = "provider/";

/// Where values come from. Nothing is read before the first is looked up.
pub struct Secrets {
    path: PathBuf,
    /// The models file, whose keys are secrets as well.
    models: Option<PathBuf>,
    environment: BTreeMap<String, String>,
    /// What was looked up. A command is run once.
    known: Mutex<HashMap<String, Secret>>,
}

impl Secrets {
    /// Those of a file; `environment` is where variables are looked up.
    pub fn new(path: PathBuf, environment: BTreeMap<String, String>) -> Self {
        Self { path, models: None, environment, known: Mutex::default() }
    }

    /// The same, and the key of each provider in this models file as `provider/NAME`, unless a secret of that name is kept.
    /// Who may use one is for manifests and grants to say, as of any other.
    #[must_use]
    pub fn with_keys_of(self, models: PathBuf) -> Self {
        Self { models: Some(models), ..self }
    }

    fn key_of_provider(&self, provider: &str) -> Option<Result<Secret, Error>> {
        let models = Models::load(self.models.as_deref()?, self.environment.clone());
        let key = models.and_then(|models| models.key(provider));
        key.map_err(|error| Error::Unavailable(error.to_string())).transpose()
    }

    fn text(&self) -> Result<Option<String>, Error> {
        let failed = |reason: String| Error::Failed(format!("{}: {reason}", self.path.display()));
        if is_open_to_others(&self.path) {
            let way_out = format!("chmod 600 {}", atoll_caps::shell_word(&self.path.to_string_lossy()));
            return Err(failed(format!("others than you can read it; change that with `{way_out}`")));
        }
        let text = read_small_file(&self.path).map_err(|error| failed(error.to_string()))?;
        Ok(text.map(|text| text.trim_start_matches('\u{feff}').to_owned()))
    }

    fn read(&self) -> Result<Option<BTreeMap<String, String>>, Error> {
        let Some(text) = self.text()? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|error| {
            // The text of the error may hold a value.
            let (file, line, column) = (self.path.display(), error.line(), error.column());
            Error::Failed(format!(
                "{file}: it is not an object of names and strings at line {line} column {column}; correct it there"
            ))
        })
    }
}

impl SecretStore for Secrets {
    /// The value, which is written as an `apiKey` in `models.json` is: itself, `$VARIABLE` or `!command`. Blocks while a
    /// command runs, for at most 10 s.
    fn get(&self, name: &str) -> Result<Secret, Error> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = known.get(name) {
            return Ok(value.clone());
        }
        let file = self.path.display();
        let shown = printable(name);
        let values = self.read()?;
        let is_there = if values.is_some() { "" } else { ", which is not there" };
        let value = match values.and_then(|mut values| values.remove(name)) {
            Some(text) => config_value::resolve(&text, &|variable| self.environment.get(variable).cloned())
                .map(Secret::new)
                .map_err(|reason| Error::Unavailable(format!("the secret {shown}: {reason}; correct it in {file}")))?,
            None => match name.strip_prefix(OF_PROVIDER).and_then(|provider| self.key_of_provider(provider)) {
                Some(key) => key?,
                None => {
                    return Err(Error::NotFound(format!("there is no secret {shown}; put it into {file}{is_there}")));
                }
            },
        };
        known.insert(name.to_owned(), value.clone());
        Ok(value)
    }

    fn names(&self) -> Result<Vec<String>, Error> {
        Ok(self.read()?.unwrap_or_default().into_keys().collect())
    }

    fn save(&self, name: &str, value: &Secret) -> Result<(), Error> {
        let shown = printable(name);
        let is_name = name.parse::<SecretPattern>().is_ok() && !name.ends_with('*');
        if !is_name {
            return Err(Error::InvalidArguments(format!(
                "`{shown}` can not name a secret; use letters, digits, `.`, `_`, `-` and `/`"
            )));
        }
        let length = value.reveal().len();
        if !(1..=MAX_VALUE).contains(&length) {
            return Err(Error::InvalidArguments(format!(
                "the value of the secret {shown} has {length} bytes; it may have 1 to {MAX_VALUE}"
            )));
        }
        let failed = |reason: String| Error::Failed(format!("{}: {reason}", self.path.display()));
        let _lock = PrivateLock::of(&self.path).map_err(|error| failed(error.to_string()))?;
        self.read()?;
        // The others keep their places and their words.
        let text = self.text()?.unwrap_or_else(|| "{}".to_owned());
        let mut values: Map<String, Value> = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        values.insert(name.to_owned(), Value::String(config_value::literal(value.reveal())));
        let text = format!("{:#}\n", Value::Object(values));
        if text.len() as u64 > MAX_SMALL_FILE {
            return Err(failed(format!("it would have more than {MAX_SMALL_FILE} bytes; take out what is not needed")));
        }
        write_private_file(&self.path, &text).map_err(|error| failed(error.to_string()))?;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), value.clone());
        Ok(())
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
    fn what_is_kept_is_that_value_and_nothing_else_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("home/secrets.json");
        let secrets = Secrets::new(path.clone(), BTreeMap::from([("HOME".to_owned(), "x".to_owned())]));
        assert!(secrets.names().unwrap().is_empty());
        let values = ["plain", "!touch ran", "$HOME ${HOME} $! $$", "a\nb \"c\"", "ünı"];
        for value in values {
            secrets.save("mcp/token.1", &Secret::new(value)).unwrap();
            assert_eq!(secrets.get("mcp/token.1").unwrap().reveal(), value);
            // As another process reads it.
            let again = Secrets::new(path.clone(), BTreeMap::from([("HOME".to_owned(), "x".to_owned())]));
            assert_eq!(again.get("mcp/token.1").unwrap().reveal(), value);
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, "{\"Z\": \"!command\", \"A\": \"$X\"}").unwrap();
        secrets.save("B", &Secret::new("b")).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "{\n  \"Z\": \"!command\",\n  \"A\": \"$X\",\n  \"B\": \"b\"\n}\n");
        assert_eq!(secrets.names().unwrap(), ["A", "B", "Z"]);
        for (name, value) in [("a b", "x"), ("mcp/*", "x"), ("", "x"), ("A", ""), ("A", &*"x".repeat(MAX_VALUE + 1))] {
            assert_eq!(secrets.save(name, &Secret::new(value)).unwrap_err().code(), "invalid-arguments", "{name}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        // A file that would not be read again is not written, and one that is broken is left to its owner.
        let most =
            (0..40).map(|n| secrets.save(&format!("n{n}"), &Secret::new("x".repeat(MAX_VALUE)))).find_map(Result::err);
        assert!(most.unwrap().to_string().contains("more than"));
        assert!(secrets.names().is_ok());
        fs::write(&path, "{").unwrap();
        assert_eq!(secrets.save("B", &Secret::new("sk-hidden")).unwrap_err().code(), "failed");
        assert_eq!(fs::read_to_string(&path).unwrap(), "{");
        fs::write(&path, "{}").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = secrets.save("B", &Secret::new("sk-hidden")).unwrap_err().to_string();
        assert!(error.contains("chmod 600") && !error.contains("sk-hidden"), "{error}");
    }

    #[test]
    fn keys_of_providers_are_secrets_where_they_are_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let (path, models) = (folder.path().join("secrets.json"), folder.path().join("models.json"));
        let secrets = || Secrets::new(path.clone(), BTreeMap::from([("KEY".to_owned(), "from-variable".to_owned())]));
        fs::write(
            &models,
            r#"{"providers": {"a": {"apiKey": "$KEY"}, "b": {"apiKey": "$NONE"}, "c": {}, "d": {"apiKey": "d"}}}"#,
        )
        .unwrap();
        assert_eq!(secrets().get("provider/a").unwrap_err().code(), "not-found");
        let secrets = || secrets().with_keys_of(models.clone());
        assert_eq!(secrets().get("provider/a").unwrap().reveal(), "from-variable");
        for (name, code) in [
            ("provider/b", "unavailable"),
            ("provider/c", "not-found"),
            ("provider/x", "not-found"),
            ("a", "not-found"),
        ] {
            assert_eq!(secrets().get(name).unwrap_err().code(), code, "{name}");
        }
        secrets().save("provider/d", &Secret::new("kept")).unwrap();
        assert_eq!(secrets().get("provider/d").unwrap().reveal(), "kept");
        fs::write(&models, "{").unwrap();
        assert_eq!(secrets().get("provider/a").unwrap_err().code(), "unavailable");
    }

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
