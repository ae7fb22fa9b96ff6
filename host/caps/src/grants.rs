//! `grants.toml`: what the user allows each plugin.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::digest::Digest;
use crate::manifest::{Manifest, PluginName, read_tool_names};
use crate::private_file::{PrivateLock, write_private_file};
use crate::small_file::read_small_file;
use crate::text::printable;
use crate::toml_source::{ManifestError, Section, Source};
use crate::wants::{FilesWant, Wants};

const HEADER: &str = "\
# What each plugin may do, written by `atoll plugin grant` and `atoll plugin revoke`.
# Each grant holds for the one component with this SHA-256 and, if that is given, for the one manifest. `all = true` is
# everything the manifest asked for when it was granted, listed below it; with no lists it is everything it asks for.
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
    /// `None` in an entry written by hand: it holds whatever the manifest says.
    manifest: Option<Digest>,
    all: bool,
    wants: Wants,
    replaces: BTreeSet<String>,
}

/// The files that a grant holds for: a component, and the manifest it was granted with. Without a manifest, of no bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The component's digest.
    pub component: Digest,
    /// The manifest's.
    pub manifest: Digest,
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
    /// Something is granted to this component, but with another manifest. It counts for nothing until the user is
    /// asked again: what is asked for now is not what was agreed to.
    ManifestChanged,
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
        match read_small_file(path) {
            Ok(Some(text)) => Ok(Self::parse(&text, &path.display().to_string())?),
            Ok(None) => Ok(Self::default()),
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
            let mut keys = vec!["sha256", "manifest-sha256", "all", "replaces"];
            keys.extend(Wants::KEYS);
            section.only(&keys)?;
            let sha256 = section.required("sha256", "\"the component's digest\"")?;
            let all = section.flag("all")?.unwrap_or(false);
            let entry = Entry {
                sha256,
                manifest: section.parsed("manifest-sha256")?,
                all,
                wants: Wants::read(&section)?,
                replaces: read_tool_names(&section, "replaces")?.into_iter().collect(),
            };
            grants.entries.insert(name, entry);
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
        write_private_file(path, &text).map_err(|error| GrantsError::Io {
            path: path.to_owned(),
            action: "written",
            error,
        })
    }

    /// Loads, changes and saves the file, while no other process does the same.
    pub fn update<T>(path: &Path, change: impl FnOnce(&mut Self) -> T) -> Result<T, GrantsError> {
        let failed = |error| GrantsError::Io { path: path.to_owned(), action: "written", error };
        let _lock = PrivateLock::of(path).map_err(failed)?;
        let mut grants = Self::load(path)?;
        let result = change(&mut grants);
        grants.save(path)?;
        Ok(result)
    }

    /// Notes which files a plugin consists of, without granting it anything. What other files of this name had is
    /// forgotten.
    pub fn pin(&mut self, name: &PluginName, pin: &Pin) {
        let _ = self.entry(name, pin);
    }

    /// Grants something to the files of a plugin, beside what those have. What other files of this name had is
    /// forgotten.
    pub fn grant(&mut self, name: &PluginName, pin: &Pin, wants: &Wants) {
        let entry = self.entry(name, pin);
        if !(entry.all && entry.wants.is_empty()) {
            entry.wants.add(wants);
        }
    }

    /// Lets tools of a plugin stand in for the built-in ones of these names.
    pub fn grant_replacing(&mut self, name: &PluginName, pin: &Pin, tools: &[String]) {
        self.entry(name, pin).replaces.extend(tools.iter().cloned());
    }

    /// Grants everything that a manifest asks for now, standing in for built-in tools included. The list is kept with
    /// the grant, so that a manifest which later asks for more is not given it.
    pub fn grant_all(&mut self, manifest: &Manifest, pin: &Pin) {
        let entry = self.entry(&manifest.name, pin);
        entry.wants = manifest.wants.clone();
        // Without lists, `all` would stand for whatever the manifest comes to ask for.
        entry.all = !entry.wants.is_empty();
        entry.replaces = manifest.replaces.iter().cloned().collect();
    }

    fn entry(&mut self, name: &PluginName, pin: &Pin) -> &mut Entry {
        let entry = self.entries.entry(name.clone()).or_insert_with(|| Entry::new(pin));
        if !entry.holds_for(pin) {
            *entry = Entry::new(pin);
        }
        entry.manifest = Some(pin.manifest.clone());
        entry
    }

    /// Takes what is listed from a plugin. Gives what it did not have, as [`Wants::describe`] puts it; then nothing is
    /// taken. Everything at once, granted by hand with `all = true` and no lists, has no parts to take.
    pub fn revoke(&mut self, name: &PluginName, wants: &Wants, replaces: &[String]) -> Result<(), Vec<String>> {
        let missing_tool = |tool: &String| format!("replaces: {tool}");
        let Some(entry) = self.entries.get_mut(name) else {
            return Err(wants.describe().into_iter().chain(replaces.iter().map(missing_tool)).collect());
        };
        let mut left = entry.wants.clone();
        let mut missing = left.remove(wants);
        missing.extend(replaces.iter().filter(|tool| !entry.replaces.contains(*tool)).map(missing_tool));
        if !missing.is_empty() {
            return Err(missing);
        }
        entry.replaces.retain(|tool| !replaces.contains(tool));
        if left != entry.wants {
            // What is left is less than all; and an empty list must not come to mean everything.
            entry.all = false;
            entry.wants = left;
        }
        Ok(())
    }

    /// Takes everything from a plugin, but still knows which files it consists of. Says whether there was anything.
    pub fn revoke_all(&mut self, name: &PluginName) -> bool {
        let Some(entry) = self.entries.get_mut(name) else { return false };
        let had_any = entry.all || !entry.wants.is_empty() || !entry.replaces.is_empty();
        entry.all = false;
        entry.wants = Wants::default();
        entry.replaces.clear();
        had_any
    }

    /// Forgets a plugin. Says whether it was known.
    pub fn forget(&mut self, name: &PluginName) -> bool {
        self.entries.remove(name).is_some()
    }

    /// What the files of a plugin are granted. None if what was granted no longer counts, because they have changed.
    pub fn granted(&self, name: &PluginName, pin: &Pin) -> Option<Wants> {
        match self.for_plugin(name, pin) {
            GrantState::Granted(wants) => Some(wants),
            GrantState::None => Some(Wants::default()),
            GrantState::Changed { .. } | GrantState::ManifestChanged => None,
        }
    }

    /// What the grants say about the files of a plugin.
    pub fn for_plugin(&self, name: &PluginName, pin: &Pin) -> GrantState {
        match self.entries.get(name) {
            None => GrantState::None,
            Some(entry) if entry.sha256 != pin.component => {
                GrantState::Changed { granted_digest: entry.sha256.clone() }
            }
            Some(entry) if !entry.holds_for(pin) => GrantState::ManifestChanged,
            Some(entry) if entry.all && entry.wants.is_empty() => GrantState::Granted(Wants::everything()),
            Some(entry) => GrantState::Granted(entry.wants.clone()),
        }
    }

    /// The built-in tools that a plugin of these files may stand in for, of those its manifest names.
    pub fn replaces(&self, manifest: &Manifest, pin: &Pin) -> Vec<String> {
        let Some(entry) = self.entries.get(&manifest.name).filter(|entry| entry.holds_for(pin)) else {
            return Vec::new();
        };
        manifest.replaces.iter().filter(|tool| entry.replaces.contains(*tool)).cloned().collect()
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
    fn new(pin: &Pin) -> Self {
        Self {
            sha256: pin.component.clone(),
            manifest: Some(pin.manifest.clone()),
            all: false,
            wants: Wants::default(),
            replaces: BTreeSet::new(),
        }
    }

    fn holds_for(&self, pin: &Pin) -> bool {
        self.sha256 == pin.component && self.manifest.as_ref().is_none_or(|manifest| *manifest == pin.manifest)
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("sha256", &self.sha256)?;
        if let Some(manifest) = &self.manifest {
            map.serialize_entry("manifest-sha256", manifest)?;
        }
        if self.all {
            map.serialize_entry("all", &true)?;
        }
        if !self.replaces.is_empty() {
            map.serialize_entry("replaces", &self.replaces)?;
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

#[cfg(test)]
#[path = "grants_tests.rs"]
mod tests;
