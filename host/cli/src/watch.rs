//! Watches a plugin's files for a developer: looks at them every little while, for there is no way to be told that works
//! everywhere.
//!
//! A file that is being written must not be taken for a new version: what is seen has to stay as it is for a moment.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::scripts;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How long they have to stay as they are.
const SETTLED: Duration = Duration::from_millis(100);
/// The most files of a script's folder that are looked at.
const MOST: usize = 2_000;

/// What tells a file from what it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    /// Another file under the same name.
    number: u64,
}

/// What a plugin's files are at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen(BTreeMap<PathBuf, Stamp>);

/// The files of a plugin.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    file: PathBuf,
}

fn stamp(path: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt as _;
    let facts = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some(Stamp { length: facts.len(), modified: facts.modified().ok(), number: facts.ino() })
}

/// The program text and the data below a folder; not what is installed there, nor what begins with a dot.
fn texts_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if found.len() >= MOST {
            return;
        }
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && !name.starts_with('.') && !["node_modules", "target"].contains(&&*name) {
            texts_below(&path, found);
        } else if kind.is_file() {
            let is_data = path.extension().is_some_and(|is| is == "json" || is == "toml");
            if is_data || scripts::is_script(&path) {
                found.push(path);
            }
        }
    }
}

impl Watched {
    /// Those of a component or a script, or of a script's folder.
    pub(crate) fn new(file: &Path) -> Self {
        Self { file: file.to_owned() }
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        if self.file.is_dir() {
            texts_below(&self.file, &mut files);
        } else if scripts::is_script(&self.file) {
            // It may import what lies beside it.
            texts_below(self.file.parent().unwrap_or(Path::new(".")), &mut files);
        } else {
            files.extend([self.file.clone(), self.file.with_file_name("plugin.toml")]);
        }
        files
    }

    /// What they are now.
    pub(crate) fn look(&self) -> Seen {
        Seen(self.files().into_iter().filter_map(|path| Some((path.clone(), stamp(&path)?))).collect())
    }

    /// Waits until they are something else than `before`, and stay so; gives what they are. While the plugin's own file is
    /// away, as while it is built, nothing has changed.
    pub(crate) async fn changed(&self, before: &Seen) -> Seen {
        loop {
            tokio::time::sleep(LOOK).await;
            let now = self.look();
            if now == *before || !self.file.exists() {
                continue;
            }
            tokio::time::sleep(SETTLED).await;
            if self.look() == now {
                return now;
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_is_seen_once_it_has_settled_and_a_file_that_is_away_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plugin.wasm");
        std::fs::write(&file, "1").unwrap();
        let watched = Watched::new(&file);
        let before = watched.look();
        let unchanged = tokio::time::timeout(Duration::from_millis(700), watched.changed(&before)).await;
        assert!(unchanged.is_err(), "nothing has changed");
        std::fs::remove_file(&file).unwrap();
        let away = tokio::time::timeout(Duration::from_millis(700), watched.changed(&before)).await;
        assert!(away.is_err(), "it is away");
        std::fs::write(&file, "22").unwrap();
        let now = watched.changed(&before).await;
        assert_eq!(now, watched.look());
        // The manifest is part of it.
        std::fs::write(folder.path().join("plugin.toml"), "").unwrap();
        assert_ne!(watched.changed(&now).await, now);
    }

    #[test]
    fn a_script_is_watched_with_what_it_may_import() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        };
        for name in ["a.ts", "lib/b.js", "a.toml", "node_modules/c/d.js", ".git/e.ts", "notes.md"] {
            write(name);
        }
        let mut names: Vec<String> = Watched::new(&folder.path().join("a.ts"))
            .look()
            .0
            .keys()
            .map(|path| path.strip_prefix(folder.path()).unwrap().display().to_string())
            .collect();
        names.sort();
        assert_eq!(names, ["a.toml", "a.ts", "lib/b.js"]);
    }
}
