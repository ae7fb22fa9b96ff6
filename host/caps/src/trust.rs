//! Which projects are trusted: `trust.json`, and who decides when it does not say.
//!
//! A project that is not trusted counts for nothing but its files: no settings, plugins or skills of it. Nothing here
//! may take a project's own word for anything.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::path_pattern::normalised;
use crate::private_file::{PrivateLock, write_private_file};
use crate::small_file::read_small_file;
use crate::text::printable;

/// What of a project's `.atoll` counts only with trust.
const RESOURCES: [&str; 9] = [
    "settings.json",
    "plugins",
    "skills",
    "mcp.json",
    "prompts",
    "themes",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
    "extensions",
];

/// The saved decisions, by directory. One holds for the directories below it too, unless a nearer one is saved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustStore {
    /// `None`: no decision is saved here; whatever is saved above counts.
    entries: BTreeMap<PathBuf, Option<bool>>,
}

/// A saved decision, and the directory it was saved for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted {
    /// The directory, or one above it.
    pub at: PathBuf,
    /// Whether it is trusted.
    pub trusted: bool,
}

/// Why the decisions could not be read or written. Until that is mended, nothing is trusted because of them.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// What is in the file is not understood.
    #[error("{}: {}; nothing is trusted until the file is corrected or removed", printable(&path.display().to_string()), printable(reason))]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file could not be read or written.
    #[error("{}: {error}; check that the file and its directory can be read and written", printable(&path.display().to_string()))]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        error: io::Error,
    },
    /// A directory whose path can not be written into the file.
    #[error("{}: a decision can not be saved for a path that is not an absolute path of UTF-8 text; use --approve for each run", printable(&path.display().to_string()))]
    Path {
        /// The directory.
        path: PathBuf,
    },
}

impl TrustStore {
    /// Reads the file; one that is not there decides nothing.
    ///
    /// # Errors
    /// If it can not be read or understood.
    pub fn load(path: &Path) -> Result<Self, TrustError> {
        let text = read_small_file(path).map_err(|error| TrustError::Io { path: path.to_owned(), error })?;
        text.map_or_else(|| Ok(Self::default()), |text| Self::parse(&text, path))
    }

    /// Reads the text of the file: an object of `true`, `false` or `null` by absolute directory. `path` is what error
    /// messages call the file.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn parse(text: &str, path: &Path) -> Result<Self, TrustError> {
        let wrong = |reason: String| TrustError::Content { path: path.to_owned(), reason };
        let read: BTreeMap<String, Option<bool>> =
            serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let mut entries: BTreeMap<PathBuf, Option<bool>> = BTreeMap::new();
        for (directory, decision) in read {
            let Some(clean) = normalised(Path::new(&directory)) else {
                return Err(wrong(format!("`{directory}` is not an absolute path without `..`")));
            };
            let entry = entries.entry(clean).or_insert(decision);
            // One directory, spelt in two ways: a refusal counts, wherever it stands.
            if decision == Some(false) {
                *entry = decision;
            }
        }
        Ok(Self { entries })
    }

    /// What is saved for a directory, or for the nearest one above it. The directory has to be absolute, with every link
    /// resolved.
    pub fn decision(&self, directory: &Path) -> Option<Trusted> {
        directory.ancestors().find_map(|at| {
            let trusted = (*self.entries.get(at)?)?;
            Some(Trusted { at: at.to_owned(), trusted })
        })
    }

    /// All that is saved, by directory.
    pub fn all(&self) -> impl Iterator<Item = (&Path, Option<bool>)> {
        self.entries.iter().map(|(path, decision)| (path.as_path(), *decision))
    }

    /// Saves a decision for one directory, or with `None` forgets it, while no other process does the same. Says whether
    /// that changed anything.
    ///
    /// # Errors
    /// If the file can not be read, understood or written. Then it is as it was.
    pub fn save(path: &Path, directory: &Path, decision: Option<bool>) -> Result<bool, TrustError> {
        let failed = |error| TrustError::Io { path: path.to_owned(), error };
        let directory = normalised(directory)
            .filter(|directory| directory.to_str().is_some())
            .ok_or_else(|| TrustError::Path { path: directory.to_owned() })?;
        let _lock = PrivateLock::of(path).map_err(failed)?;
        let mut store = Self::load(path)?;
        let changed = match decision {
            Some(decision) => store.entries.insert(directory, Some(decision)) != Some(Some(decision)),
            None => store.entries.remove(&directory).is_some(),
        };
        if changed {
            write_private_file(path, &store.to_json().map_err(failed)?).map_err(failed)?;
        }
        Ok(changed)
    }

    fn to_json(&self) -> io::Result<String> {
        let entries: BTreeMap<&str, Option<bool>> =
            self.entries.iter().filter_map(|(path, decision)| Some((path.to_str()?, *decision))).collect();
        Ok(format!("{}\n", serde_json::to_string_pretty(&entries)?))
    }
}

/// What to do about a project for which nothing is saved: `defaultProjectTrust` of the user's settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DefaultTrust {
    /// Ask, where there is someone to ask; else no.
    #[default]
    Ask,
    /// Trust it.
    Always,
    /// Do not.
    Never,
}

/// Everything that the answer depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustQuestion {
    /// What the command line says for this run.
    pub for_this_run: Option<bool>,
    /// What is saved.
    pub saved: Option<bool>,
    /// The project has something that counts only with trust.
    pub is_needed: bool,
    /// What to do otherwise.
    pub default: DefaultTrust,
}

/// Whether a project is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// The user has to be asked. Where that is not possible, it is not.
    Ask,
}

impl TrustQuestion {
    /// The first that says anything counts: the command line, what is saved, the default.
    pub fn answer(self) -> Answer {
        let no_word = match (self.is_needed, self.default) {
            (false, _) | (true, DefaultTrust::Never) => Answer::No,
            (true, DefaultTrust::Always) => Answer::Yes,
            (true, DefaultTrust::Ask) => Answer::Ask,
        };
        let said = self.for_this_run.or(self.saved);
        said.map_or(no_word, |trusted| if trusted { Answer::Yes } else { Answer::No })
    }
}

/// What a project has that counts only with trust, of those paths for which `exists` holds. `home` is the user's, whose
/// own folders are no project's; likewise `atoll_home`.
pub fn project_resources(
    cwd: &Path,
    home: &Path,
    atoll_home: &Path,
    exists: impl Fn(&Path) -> bool + Copy,
) -> Vec<PathBuf> {
    let own = cwd.join(".atoll");
    let mut found: Vec<PathBuf> = if own == atoll_home {
        Vec::new()
    } else {
        RESOURCES.iter().map(|name| own.join(name)).filter(|path| exists(path)).collect()
    };
    found.extend(skill_folders(cwd, home, exists));
    found
}

/// The `.agents/skills` of a project: of `cwd` and the directories above it, up to the root of the repository if there
/// is one. The user's own is not among them.
pub fn skill_folders(cwd: &Path, home: &Path, exists: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for directory in cwd.ancestors() {
        let skills = directory.join(".agents/skills");
        if directory != home && exists(&skills) {
            found.push(skills);
        }
        if exists(&directory.join(".git")) {
            break;
        }
    }
    found
}

#[cfg(test)]
#[path = "trust_tests.rs"]
mod tests;
