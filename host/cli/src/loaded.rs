//! The plugins that are loaded and not built in, with where each came from. A reload changes which they are.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use atoll_caps::Pin;
use atoll_engine::LoadedPlugin;
use atoll_table::{Error, Origin, Registration, Table, model::ModelProvider};

use crate::candidates::Candidate;

/// A plugin that is not built in, ready to use.
pub(crate) struct Loaded {
    pub(crate) origin: Origin,
    /// The user named it for this run.
    pub(crate) is_named: bool,
    /// What the user named, else its file.
    pub(crate) place: PathBuf,
    pub(crate) plugin: LoadedPlugin,
    version: Mutex<Version>,
}

/// Which version of a plugin is there.
struct Version {
    /// What it was loaded from.
    file: PathBuf,
    pin: Pin,
    /// The built-in tools that its own may stand in for.
    replaces: Vec<String>,
}

impl Loaded {
    /// A plugin of this origin, named by the user or not, in this place, from this file.
    pub(crate) fn new(
        (origin, is_named, place, file): (Origin, bool, PathBuf, PathBuf),
        pin: Pin,
        replaces: Vec<String>,
        plugin: LoadedPlugin,
    ) -> Self {
        Self { origin, is_named, place, plugin, version: Mutex::new(Version { file, pin, replaces }) }
    }

    fn version(&self) -> MutexGuard<'_, Version> {
        self.version.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it was loaded from.
    pub(crate) fn file(&self) -> PathBuf {
        self.version().file.clone()
    }

    /// The same version of it lies elsewhere now.
    pub(crate) fn moves(&self, file: PathBuf) {
        self.version().file = file;
    }

    /// Whether it is of these files.
    pub(crate) fn is_version(&self, pin: &Pin) -> bool {
        self.version().pin == *pin
    }

    /// Another version of it runs from now on.
    pub(crate) fn becomes(&self, file: PathBuf, pin: Pin, replaces: Vec<String>) {
        *self.version() = Version { file, pin, replaces };
    }

    /// Whether it is what a candidate was loaded as.
    pub(crate) fn is_of(&self, candidate: &Candidate) -> bool {
        self.version().file == candidate.file
            && self.origin == candidate.origin
            && self.is_named == candidate.is_named
            // The name of one that can not be read is not known.
            && (candidate.plugin.is_err() || self.plugin.name == candidate.name.as_str())
    }

    /// Whether a candidate has its name and its standing, wherever it lies.
    pub(crate) fn is_twin(&self, candidate: &Candidate) -> bool {
        self.plugin.name == candidate.name.as_str()
            && self.origin == candidate.origin
            && self.is_named == candidate.is_named
    }

    /// Whether it is one that the user named, so that another of its name is left out.
    pub(crate) fn hides(&self, candidate: &Candidate) -> bool {
        self.is_named && self.plugin.name == candidate.name.as_str()
    }

    /// Puts its tools into the table.
    ///
    /// # Errors
    /// As [`Table::register`].
    pub(crate) fn register(&self, table: &mut Table) -> Result<(), Error> {
        let who = Registration::new(self.plugin.name.clone(), self.origin).replacing(self.version().replaces.clone());
        register(table, who, &self.plugin)
    }

    /// Which come first among extensions: those that the user named, in that order, then a project's and then the user's.
    /// Whoever guards calls for the user sees what others made of them.
    fn rank(&self) -> u8 {
        match self.origin {
            _ if self.is_named => 0,
            Origin::Project => 1,
            Origin::User => 2,
            Origin::Builtin => 3,
        }
    }
}

/// Puts the tools of a plugin into the table.
///
/// # Errors
/// As [`Table::register`].
pub(crate) fn register(table: &mut Table, who: Registration, plugin: &LoadedPlugin) -> Result<(), Error> {
    match &plugin.tools {
        Some((tools, runner)) => {
            let who = who.running_scripts(plugin.manifest.runs_scripts.clone());
            table.register(who, tools.clone(), runner)
        }
        None => Ok(()),
    }
}

/// The plugins that are loaded, as they were found. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Plugins(Arc<RwLock<Vec<Arc<Loaded>>>>);

impl Plugins {
    pub(crate) fn new(plugins: Vec<Arc<Loaded>>) -> Self {
        Self(Arc::new(RwLock::new(plugins)))
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<Loaded>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on it is these.
    pub(crate) fn set(&self, plugins: Vec<Arc<Loaded>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = plugins;
    }

    /// One is not there any more.
    pub(crate) fn remove(&self, name: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).retain(|loaded| loaded.plugin.name != name);
    }

    /// In the order in which extensions among them are asked.
    pub(crate) fn in_load_order(&self) -> Vec<Arc<Loaded>> {
        let mut all = self.all();
        all.sort_by_key(|loaded| loaded.rank());
        all
    }

    /// Whether the user named the plugin of this name for this run.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.all().iter().any(|loaded| loaded.is_named && loaded.plugin.name == name)
    }

    /// What speaks a wire format.
    pub(crate) fn provider(&self, api: &str) -> Option<Arc<dyn ModelProvider>> {
        let all = self.all();
        let providers = all.iter().filter_map(|loaded| loaded.plugin.provider.as_ref());
        let mut speaking = providers.filter(|provider| provider.apis().iter().any(|known| known == api));
        speaking.next().cloned()
    }
}
