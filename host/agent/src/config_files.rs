//! Files of configuration that users write for plugins: `FILE` in Atoll's own directory and `.atoll/FILE` in a project.
//!
//! No plugin gets by these what the user has not written there: no variable that no file names, and no command that does
//! not stand in one. What a project says counts only if it is trusted.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use atoll_caps::{Digest, MAX_SMALL_FILE, PrivateLock, printable, read_small_file, shell_word};
use atoll_table::{
    Error,
    config::{ConfigDocument, ConfigFiles, ConfigPlace, ConfigValue},
    model::Secret,
};
use serde_json::Value;

use crate::config_value;

/// Variables that say where and as whom somebody works: no secrets, and texts that stand in much of what programs say.
const PLAIN: [&str; 12] =
    ["HOME", "USER", "LOGNAME", "PWD", "SHELL", "LANG", "PATH", "TMPDIR", "TERM", "EDITOR", "VISUAL", "HOSTNAME"];

/// JSON, with what people write into it all the same.
const JSON: jsonc_parser::ParseOptions = jsonc_parser::ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// A project's folder, and whether what is in it counts.
#[derive(Clone, Debug)]
pub struct ProjectConfig {
    /// The project's directory, with every link resolved.
    pub directory: PathBuf,
    /// The folder in it.
    pub folder: PathBuf,
    /// It counts.
    pub trusted: bool,
}

/// The files of a user, and of the project that is worked in.
pub struct UserConfig {
    folder: PathBuf,
    project: Option<ProjectConfig>,
    environment: BTreeMap<String, String>,
}

impl UserConfig {
    /// Those in the user's `folder` and in the project's, if there is one that is not the user's own. `environment` is where
    /// variables are looked up.
    pub fn new(folder: PathBuf, project: Option<ProjectConfig>, environment: BTreeMap<String, String>) -> Self {
        Self { folder, project, environment }
    }

    fn document(&self, place: ConfigPlace, path: PathBuf, trusted: bool) -> Result<Option<ConfigDocument>, Error> {
        let is_absent =
            |error: io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        if fs::symlink_metadata(&path).is_err_and(is_absent) {
            return Ok(None);
        }
        let text = if trusted {
            self.check_place(place, &path)?;
            read_small_file(&path).map_err(|error| failed(&path, &error))?
        } else {
            // Nothing of it is looked at.
            Some(String::new())
        };
        Ok(text.map(|text| ConfigDocument { version: version(&text), place, path, text, trusted }))
    }

    /// A project's file that is a link would be somebody else's file, to read and to write.
    fn check_place(&self, place: ConfigPlace, path: &Path) -> Result<(), Error> {
        if place == ConfigPlace::User {
            return Ok(());
        }
        match (path.canonicalize(), fs::symlink_metadata(path)) {
            (Ok(real), _) if real == path => Ok(()),
            // There is none; then its folder must not lead elsewhere, as far as there is one.
            (Err(_), Err(_)) => match path.parent().map(|folder| (folder.canonicalize(), folder)) {
                Some((Ok(real), folder)) if real != folder => Err(elsewhere(folder)),
                _ => Ok(()),
            },
            _ => Err(elsewhere(path)),
        }
    }

    /// The path of a file in a place, if it may be written there.
    fn writable(&self, file: &str, place: ConfigPlace) -> Result<PathBuf, Error> {
        let project = match place {
            ConfigPlace::User => return Ok(self.folder.join(file)),
            ConfigPlace::Project => self.project.as_ref().ok_or_else(|| {
                let folder = self.folder.display();
                Error::InvalidArguments(format!(
                    "the working directory has no {file} of its own: {folder} is the user's; write the user's file"
                ))
            })?,
        };
        let path = project.folder.join(file);
        if !project.trusted {
            return Err(Error::Denied {
                capability: "config".to_owned(),
                target: printable(&path.to_string_lossy()),
                hint: format!(
                    "the project is not trusted; trust it with `atoll trust allow {}`",
                    shell_word(&project.directory.to_string_lossy())
                ),
            });
        }
        self.check_place(place, &path)?;
        Ok(path)
    }

    /// The commands and variables that may be filled in: those of all files that count.
    fn named(&self, file: &str) -> Result<Named, Error> {
        let mut named = Named::default();
        for document in self.read(file)?.iter().filter(|document| document.trusted) {
            let text = document.text.strip_prefix('\u{feff}').unwrap_or(&document.text);
            // One that is broken names nothing.
            if let Ok(Some(value)) = jsonc_parser::parse_to_serde_value::<Option<Value>>(text, &JSON) {
                named.add(&value);
            }
        }
        Ok(named)
    }
}

/// What files name.
#[derive(Default)]
struct Named {
    commands: BTreeSet<String>,
    variables: BTreeSet<String>,
}

impl Named {
    fn add(&mut self, value: &Value) {
        let mut next = vec![value];
        while let Some(value) = next.pop() {
            match value {
                Value::String(text) if text.starts_with('!') => drop(self.commands.insert(text.clone())),
                Value::String(text) => self.variables.extend(config_value::variables(text)),
                Value::Array(items) => next.extend(items),
                Value::Object(map) => next.extend(map.values()),
                _ => {}
            }
        }
    }
}

fn version(text: &str) -> String {
    Digest::of(text.as_bytes()).as_str().to_owned()
}

fn failed(path: &Path, reason: &dyn std::fmt::Display) -> Error {
    Error::Failed(format!("{}: {reason}", printable(&path.to_string_lossy())))
}

fn elsewhere(path: &Path) -> Error {
    failed(path, &"a link leads elsewhere; put the file itself there")
}

/// Puts a text in a file's place. One that is there keeps its mode; where it is a link, its target is replaced.
fn replace(path: &Path, text: &str, new_mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut new = tempfile::Builder::new();
    new.prefix(".new-").permissions(fs::Permissions::from_mode(new_mode));
    let mut file = new.tempfile_in(folder)?;
    if let Ok(facts) = fs::metadata(path) {
        file.as_file().set_permissions(facts.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

impl ConfigFiles for UserConfig {
    fn read(&self, file: &str) -> Result<Vec<ConfigDocument>, Error> {
        let user = self.document(ConfigPlace::User, self.folder.join(file), true)?;
        let project = match &self.project {
            Some(project) => self.document(ConfigPlace::Project, project.folder.join(file), project.trusted)?,
            None => None,
        };
        Ok(user.into_iter().chain(project).collect())
    }

    fn write(
        &self,
        file: &str,
        place: ConfigPlace,
        text: &str,
        expected: Option<&str>,
    ) -> Result<ConfigDocument, Error> {
        let path = self.writable(file, place)?;
        if text.len() as u64 > MAX_SMALL_FILE {
            return Err(Error::InvalidArguments(format!(
                "{file} may have {MAX_SMALL_FILE} bytes; this text has {}",
                text.len()
            )));
        }
        // Beside the user's file for both, so that nothing is left in a project.
        let _lock = PrivateLock::of(&self.folder.join(file)).map_err(|error| failed(&path, &error))?;
        let now = self.document(place, path.clone(), true)?.map(|document| document.version);
        if now.as_deref() != expected {
            let shown = printable(&path.to_string_lossy());
            let what = match (&now, expected) {
                (Some(_), Some(_)) => "has changed since it was read",
                (Some(_), None) => "is there already",
                (None, _) => "is not there any more",
            };
            return Err(Error::Stale(format!("{shown} {what}; read it again, and then write what it is to be")));
        }
        let mode = if place == ConfigPlace::User { 0o600 } else { 0o666 };
        replace(&path, text, mode).map_err(|error| failed(&path, &error))?;
        Ok(ConfigDocument { place, path, version: version(text), text: text.to_owned(), trusted: true })
    }

    fn resolve(&self, file: &str, value: &str) -> Result<ConfigValue, Error> {
        let is_command = value.starts_with('!');
        let variables = config_value::variables(value);
        if is_command || !variables.is_empty() {
            let named = self.named(file)?;
            let missing = if is_command {
                (!named.commands.contains(value)).then(|| format!("the command `{}`", printable(value)))
            } else {
                let missing = variables.iter().find(|name| !named.variables.contains(*name));
                missing.map(|name| format!("the variable {}", printable(name)))
            };
            if let Some(target) = missing {
                return Err(Error::Denied {
                    capability: "config".to_owned(),
                    target,
                    hint: format!("no {file} that counts names it; write it there as a string"),
                });
            }
        }
        let look_up = |name: &str| self.environment.get(name).cloned();
        let found = config_value::resolve(value, &look_up)
            .map_err(|reason| Error::Unavailable(format!("{reason}; {file} names it")))?;
        let private = if is_command {
            vec![(value.to_owned(), Secret::new(found.clone()))]
        } else {
            let secret = variables.into_iter().filter(|name| !PLAIN.contains(&name.as_str()));
            secret.filter_map(|name| look_up(&name).map(|value| (name, Secret::new(value)))).collect()
        };
        Ok(ConfigValue { value: found, private })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A user's folder and a project's in a temporary one.
    struct Setting {
        _folder: tempfile::TempDir,
        user: PathBuf,
        project: PathBuf,
    }

    impl Setting {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let real = folder.path().canonicalize().unwrap();
            let (user, project) = (real.join("home/.atoll"), real.join("work"));
            fs::create_dir_all(&project).unwrap();
            Self { _folder: folder, user, project }
        }

        fn config(&self, trusted: bool) -> UserConfig {
            let environment =
                [("KEY", "key-of-the-user"), ("OTHER", "something-else"), ("HOME", "/home/user"), ("EMPTY", "")];
            let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let (directory, folder) = (self.project.clone(), self.project.join(".atoll"));
            UserConfig::new(
                self.user.clone(),
                Some(ProjectConfig { directory, folder, trusted }),
                BTreeMap::from(environment),
            )
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn files_are_made_replaced_and_never_lost() {
        let setting = Setting::new();
        let config = setting.config(true);
        assert_eq!(config.read("a.json").unwrap(), []);
        let first = config.write("a.json", ConfigPlace::User, "{}", None).unwrap();
        assert_eq!((mode(&first.path), first.path.clone()), (0o600, setting.user.join("a.json")));
        // It is there now, and then it is another one.
        assert_eq!(config.write("a.json", ConfigPlace::User, "x", None).unwrap_err().code(), "stale");
        let second = config.write("a.json", ConfigPlace::User, "{ }", Some(&first.version)).unwrap();
        assert_eq!(config.write("a.json", ConfigPlace::User, "x", Some(&first.version)).unwrap_err().code(), "stale");
        assert_eq!(config.read("a.json").unwrap(), std::slice::from_ref(&second));
        fs::remove_file(&second.path).unwrap();
        assert_eq!(config.write("a.json", ConfigPlace::User, "x", Some(&second.version)).unwrap_err().code(), "stale");
        let project = config.write("a.json", ConfigPlace::Project, "[]", None).unwrap();
        assert_eq!(project.path, setting.project.join(".atoll/a.json"));
        assert_eq!(mode(&project.path) & 0o600, 0o600);
        fs::set_permissions(&project.path, fs::Permissions::from_mode(0o640)).unwrap();
        config.write("a.json", ConfigPlace::Project, "[1]", Some(&project.version)).unwrap();
        assert_eq!((mode(&project.path), fs::read_to_string(&project.path).unwrap().as_str()), (0o640, "[1]"));
        let names: Vec<_> = fs::read_dir(setting.project.join(".atoll")).unwrap().flatten().collect();
        assert_eq!(names.len(), 1, "{names:?}");
        let long = "x".repeat((1 << 20) + 1);
        assert_eq!(config.write("b.json", ConfigPlace::User, &long, None).unwrap_err().code(), "invalid-arguments");
        assert!(config.write("b.json", ConfigPlace::User, &long[1..], None).is_ok());
    }

    #[test]
    fn of_those_who_write_at_once_one_does() {
        let setting = Setting::new();
        let config = setting.config(true);
        let first = config.write("a.json", ConfigPlace::User, "0", None).unwrap().version;
        let written = std::thread::scope(|scope| {
            let write = |n: usize| config.write("a.json", ConfigPlace::User, &format!("{n}"), Some(&first)).is_ok();
            let threads: Vec<_> = (1..9).map(|n| scope.spawn(move || write(n))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).filter(|done| *done).count()
        });
        assert_eq!(written, 1);
    }

    #[test]
    fn a_project_that_is_not_trusted_is_named_and_nothing_more() {
        let setting = Setting::new();
        fs::create_dir_all(setting.project.join(".atoll")).unwrap();
        fs::write(setting.project.join(".atoll/a.json"), r#"["!echo ran", "$KEY"]"#).unwrap();
        let config = setting.config(false);
        let found = config.read("a.json").unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].trusted, found[0].text.as_str(), found[0].place), (false, "", ConfigPlace::Project));
        for value in ["!echo ran", "$KEY"] {
            assert_eq!(config.resolve("a.json", value).unwrap_err().code(), "denied", "{value}");
        }
        let error = config.write("a.json", ConfigPlace::Project, "", Some(&found[0].version)).unwrap_err();
        assert_eq!(error.code(), "denied");
        assert!(error.to_string().contains("atoll trust allow"), "{error}");
        assert_eq!(setting.config(true).resolve("a.json", "!echo ran").unwrap().value, "ran");
        // Where the working directory is the user's own there is but one.
        let own = UserConfig::new(setting.user, None, BTreeMap::new());
        assert_eq!(own.write("a.json", ConfigPlace::Project, "", None).unwrap_err().code(), "invalid-arguments");
    }

    #[test]
    fn a_projects_file_is_no_way_to_another_file() {
        let setting = Setting::new();
        let outside = setting.project.join("outside.json");
        fs::write(&outside, "outside").unwrap();
        let folder = setting.project.join(".atoll");
        fs::create_dir_all(&folder).unwrap();
        let link = folder.join("a.json");
        let config = setting.config(true);
        for target in [outside.as_path(), Path::new("../nothing.json")] {
            std::os::unix::fs::symlink(target, &link).unwrap();
            assert!(config.read("a.json").unwrap_err().to_string().contains("link"));
            assert!(config.write("a.json", ConfigPlace::Project, "x", None).unwrap_err().to_string().contains("link"));
            fs::remove_file(&link).unwrap();
        }
        fs::remove_dir(&folder).unwrap();
        let elsewhere = setting.project.join("elsewhere");
        fs::create_dir_all(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &folder).unwrap();
        assert!(config.write("a.json", ConfigPlace::Project, "x", None).unwrap_err().to_string().contains("link"));
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        assert_eq!(fs::read_to_string(&outside).unwrap(), "outside");
        // The user's own may be: those who keep such files elsewhere link to them.
        fs::create_dir_all(&setting.user).unwrap();
        std::os::unix::fs::symlink(&outside, setting.user.join("b.json")).unwrap();
        let found = config.read("b.json").unwrap();
        config.write("b.json", ConfigPlace::User, "new", Some(&found[0].version)).unwrap();
        assert_eq!(fs::read_to_string(&outside).unwrap(), "new");
        assert!(fs::symlink_metadata(setting.user.join("b.json")).unwrap().is_symlink());
    }

    #[test]
    fn only_what_stands_in_a_file_now_is_filled_in() {
        let setting = Setting::new();
        let config = setting.config(true);
        let text = "\u{feff}{ // \"!echo comment\"\n \"a\": {\"b\": [\"!echo ran\", \"Bearer ${env:KEY}\", \"$EMPTY\"]},\n \
                    \"$OTHER\": \"$$OTHER\", \"h\": \"${HOME}/x\", \"d\": \"${NONE:-plain}\", }";
        let document = config.write("a.json", ConfigPlace::User, text, None).unwrap();
        for (value, expected, private) in [
            ("!echo ran", "ran", 1),
            ("$KEY", "key-of-the-user", 1),
            ("Bearer ${KEY}", "Bearer key-of-the-user", 1),
            ("${HOME}/${KEY}", "/home/user/key-of-the-user", 1),
            ("${HOME}", "/home/user", 0),
            ("${NONE:-another}", "another", 0),
            ("${EMPTY:-another}", "another", 1),
            ("$$OTHER", "$OTHER", 0),
            ("$!echo", "!echo", 0),
            ("plain", "plain", 0),
        ] {
            let found = config.resolve("a.json", value).unwrap();
            assert_eq!((found.value.as_str(), found.private.len()), (expected, private), "{value}");
        }
        for value in
            ["!echo comment", "!echo ran; true", "! echo ran", "$OTHER", "${OTHER:-x}", "$KEY$OTHER", "${env:OTHER}"]
        {
            let error = config.resolve("a.json", value).unwrap_err();
            assert_eq!(error.code(), "denied", "{value}");
            assert!(error.to_string().contains("a.json"), "{error}");
        }
        assert_eq!(config.resolve("b.json", "$KEY").unwrap_err().code(), "denied");
        assert_eq!(config.resolve("a.json", "$EMPTY").unwrap_err().code(), "unavailable");
        // Once it is taken out it is not filled in any more, and a broken file names nothing.
        let document = config.write("a.json", ConfigPlace::User, "{\"a\": \"$KEY\"", Some(&document.version)).unwrap();
        assert_eq!(config.resolve("a.json", "$KEY").unwrap_err().code(), "denied");
        config.write("a.json", ConfigPlace::User, "[\"$KEY\"]", Some(&document.version)).unwrap();
        assert!(config.resolve("a.json", "$KEY").is_ok());
        assert_eq!(config.resolve("a.json", "!echo ran").unwrap_err().code(), "denied");
    }
}
