//! What extensions may know of the program they are in.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use atoll_agent::{Extensions, extensions::Flags};
use atoll_table::extension::{Extension, HostFacts, HostInfo, Mode, Subscription, Who};
use serde_json::{Map, Value};

/// What the user's settings say to plugins, by their names. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct PluginSettings(Arc<RwLock<BTreeMap<String, Map<String, Value>>>>);

impl PluginSettings {
    /// From now on it is this.
    pub(crate) fn set(&self, settings: BTreeMap<String, Map<String, Value>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    fn of(&self, plugin: &str) -> Map<String, Value> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(plugin).cloned().unwrap_or_default()
    }
}

/// The facts of this run.
pub(crate) struct Facts {
    pub(crate) mode: Mode,
    pub(crate) command: Option<String>,
    pub(crate) has_person: bool,
    pub(crate) cwd: PathBuf,
    pub(crate) trusted: bool,
    pub(crate) extensions: Extensions,
    pub(crate) flags: Flags,
    pub(crate) settings: PluginSettings,
}

impl Facts {
    fn extension(&self, who: &Who) -> Option<Arc<dyn Extension>> {
        let is_it =
            |extension: &&Arc<dyn Extension>| extension.name() == who.plugin && extension.origin() == who.origin;
        self.extensions.all().iter().find(is_it).cloned()
    }
}

impl HostFacts for Facts {
    fn describe(&self) -> HostInfo {
        HostInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            mode: self.mode,
            has_person: self.has_person,
            cwd: self.cwd.clone(),
            trusted: self.trusted,
        }
    }

    fn flag(&self, who: &Who, name: &str) -> Option<String> {
        let wanted = self.extension(who)?.subscription();
        let flag = wanted.flags.iter().find(|flag| flag.name == name)?;
        self.flags.value(flag)
    }

    fn settings(&self, who: &Who) -> Value {
        Value::Object(self.settings.of(&who.plugin))
    }

    fn command(&self) -> Option<String> {
        self.command.clone()
    }

    fn changed(&self, _: &Who, _: &Arc<Subscription>) {
        self.extensions.refresh();
    }
}
