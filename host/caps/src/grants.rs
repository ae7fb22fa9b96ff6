//! `grants.toml`: what the user allows each plugin.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::digest::Digest;
use crate::manifest::{Manifest, PluginName};
use crate::text::printable;
use crate::toml_source::{ManifestError, Section, Source};
use crate::wants::{FilesWant, Wants};

const HEADER: &str = "\
# What each plugin may do, written by `atoll plugin grant` and `atoll plugin revoke`.
# Each grant holds for the one file with this SHA-256. `all = true` is everything its manifest asked for when it was
# granted, listed below it; with no lists it is everything its manifest asks for.
# A `[builtin.NAME]` adds directories to a plugin that is part of atoll, whichever build that is.
";

/// The user's grants, by plugin name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    entries: BTreeMap<PluginName, Entry>,
    /// Directories added to built-in plugins. Apart from the others, for they are pinned to no file: a plugin of the
    /// user's that has the name of a built-in one must not come by them.
    builtin: BTreeMap<PluginName, Vec<FilesWant>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    sha256: Digest,
    all: bool,
    wants: Wants,
}

/// What the grants say about one file of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantState {
    /// This is granted.
    Granted(Wants),
    /// Something is granted, but to another file of this name. It counts for nothing until the user is asked again.
    Changed {
        /// The file that it was granted to.
        granted_digest: Digest,
    },
    /// Nothing was ever granted.
    None,
}

/// Why the grants could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum GrantsError {
    /// What is in the file is not understood.
    #[error(transparent)]
    Content(#[from] ManifestError),
    /// The file could not be read or written.
    #[error("{}: {error}; check that the file and its directory can be {action}", printable(&path.display().to_string()))]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried: `read` or `written`.
        action: &'static str,
        /// What the operating system said.
        #[source]
        error: io::Error,
    },
    /// The grants could not be put into TOML.
    #[error("{}: the grants can not be written as TOML: {reason}; report this as a bug", printable(&path.display().to_string()))]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl Grants {
    /// Reads the file; one that is not there grants nothing.
    pub fn load(path: &Path) -> Result<Self, GrantsError> {
        match fs::read_to_string(path) {
            Ok(text) => Ok(Self::parse(&text, &path.display().to_string())?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(GrantsError::Io { path: path.to_owned(), action: "read", error }),
        }
    }

    /// Reads the text of the file. `file` is what error messages call it.
    pub fn parse(text: &str, file: &str) -> Result<Self, ManifestError> {
        let source = Source { file, text, reasons: false };
        let table = source.parse()?;
        let root = Section::root(source, table.get_ref());
        root.only(&["plugin", "builtin"])?;
        let mut grants = Self::default();
        for (name, section) in root.table("plugin")?.map(|section| section.entries()).transpose()?.unwrap_or_default() {
            let name = name.value.parse().map_err(|error: crate::PluginNameError| {
                source.error(name.span, error.to_string(), "correct the name, or remove the entry")
            })?;
            let mut keys = vec!["sha256", "all"];
            keys.extend(Wants::KEYS);
            section.only(&keys)?;
            let sha256 = section.required("sha256", "\"the component's digest\"")?;
            let all = section.flag("all")?.unwrap_or(false);
            grants.entries.insert(name, Entry { sha256, all, wants: Wants::read(&section)? });
        }
        let builtin = root.table("builtin")?.map(|section| section.entries()).transpose()?.unwrap_or_default();
        for (name, section) in builtin {
            let name = name.value.parse().map_err(|error: crate::PluginNameError| {
                source.error(name.span, error.to_string(), "correct the name, or remove the entry")
            })?;
            section.only(&["files"])?;
            grants.builtin.insert(name, Wants::read(&section)?.files);
        }
        Ok(grants)
    }

    /// The text of the file.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        Ok(format!("{HEADER}\n{}", toml::to_string(self)?))
    }

    /// Writes the file, readable for its owner only. Whoever reads meanwhile sees the old or the new text.
    pub fn save(&self, path: &Path) -> Result<(), GrantsError> {
        let text = self
            .to_toml()
            .map_err(|error| GrantsError::Unwritable { path: path.to_owned(), reason: error.to_string() })?;
        write_private(path, &text).map_err(|error| GrantsError::Io { path: path.to_owned(), action: "written", error })
    }

    /// Loads, changes and saves the file, while no other process does the same.
    pub fn update<T>(path: &Path, change: impl FnOnce(&mut Self) -> T) -> Result<T, GrantsError> {
        let failed = |error| GrantsError::Io { path: path.to_owned(), action: "written", error };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let lock = private().truncate(false).open(with_suffix(path, ".lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut grants = Self::load(path)?;
        let result = change(&mut grants);
        grants.save(path)?;
        Ok(result)
    }

    /// Grants something to one file of a plugin, beside what that file has. What another file of this name had
    /// is forgotten.
    pub fn grant(&mut self, name: &PluginName, sha256: &Digest, wants: &Wants) {
        let entry = self.entries.entry(name.clone()).or_insert_with(|| Entry::new(sha256));
        if entry.sha256 != *sha256 {
            *entry = Entry::new(sha256);
        }
        if !(entry.all && entry.wants.is_empty()) {
            entry.wants.add(wants);
        }
    }

    /// Grants everything that a manifest asks for now. The list is kept with the grant, so that a manifest
    /// which later asks for more is not given it.
    pub fn grant_all(&mut self, manifest: &Manifest, sha256: &Digest) {
        self.grant(&manifest.name, sha256, &manifest.wants);
        if let Some(entry) = self.entries.get_mut(&manifest.name) {
            // Without lists, `all` would stand for whatever the manifest comes to ask for.
            entry.all = !entry.wants.is_empty() || entry.all;
        }
    }

    /// Takes everything from a plugin. Says whether there was anything.
    pub fn revoke(&mut self, name: &PluginName) -> bool {
        self.entries.remove(name).is_some()
    }

    /// What a file of a plugin is granted.
    pub fn for_plugin(&self, name: &PluginName, sha256: &Digest) -> GrantState {
        match self.entries.get(name) {
            None => GrantState::None,
            Some(entry) if entry.sha256 != *sha256 => GrantState::Changed { granted_digest: entry.sha256.clone() },
            Some(entry) if entry.all && entry.wants.is_empty() => GrantState::Granted(Wants::everything()),
            Some(entry) => GrantState::Granted(entry.wants.clone()),
        }
    }

    /// Adds directories to a built-in plugin. They hold for every build of it, and never for another plugin of its
    /// name. See [`crate::Effective::builtin_with`] for what they come to.
    pub fn grant_builtin(&mut self, name: &PluginName, files: &[FilesWant]) {
        let mut wants = Wants { files: self.builtin.remove(name).unwrap_or_default(), ..Wants::default() };
        wants.add(&Wants { files: files.to_vec(), ..Wants::default() });
        if !wants.files.is_empty() {
            self.builtin.insert(name.clone(), wants.files);
        }
    }

    /// Takes directories from a built-in plugin, those that `keep` gives false for. Says whether there were any.
    pub fn revoke_builtin(&mut self, name: &PluginName, keep: impl Fn(&FilesWant) -> bool) -> bool {
        let Some(files) = self.builtin.get_mut(name) else { return false };
        let before = files.len();
        files.retain(|want| keep(want));
        let changed = files.len() < before;
        if files.is_empty() {
            self.builtin.remove(name);
        }
        changed
    }

    /// What is added to a built-in plugin.
    pub fn for_builtin(&self, name: &PluginName) -> Wants {
        Wants { files: self.builtin.get(name).cloned().unwrap_or_default(), ..Wants::default() }
    }

    /// The built-in plugins that something is added to.
    pub fn builtins(&self) -> impl Iterator<Item = (&PluginName, &[FilesWant])> {
        self.builtin.iter().map(|(name, files)| (name, files.as_slice()))
    }

    /// The plugins that have a grant, with the file it holds for.
    pub fn plugins(&self) -> impl Iterator<Item = (&PluginName, &Digest)> {
        self.entries.iter().map(|(name, entry)| (name, &entry.sha256))
    }
}

impl Entry {
    fn new(sha256: &Digest) -> Self {
        Self { sha256: sha256.clone(), all: false, wants: Wants::default() }
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("sha256", &self.sha256)?;
        if self.all {
            map.serialize_entry("all", &true)?;
        }
        self.wants.write(&mut map)?;
        map.end()
    }
}

impl Serialize for Grants {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if !self.entries.is_empty() {
            map.serialize_entry("plugin", &self.entries)?;
        }
        if !self.builtin.is_empty() {
            let tables: BTreeMap<_, _> =
                self.builtin.iter().map(|(name, files)| (name, BTreeMap::from([("files", files)]))).collect();
            map.serialize_entry("builtin", &tables)?;
        }
        map.end()
    }
}

fn private() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    // Where the file is a link, its target is replaced and the link stays.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let temporary = with_suffix(path, &format!(".{}.tmp", std::process::id()));
    // Left over from a process of this number that was killed; a new file, so that nobody else has it open.
    let _ = fs::remove_file(&temporary);
    let written = private().create_new(true).open(&temporary).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let done = written.and_then(|()| fs::rename(&temporary, path));
    if done.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    done
}

#[cfg(test)]
#[path = "grants_tests.rs"]
mod tests;
