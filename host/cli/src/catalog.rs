//! The plugins that are there: folders of the user's and of a trusted project's, with `plugin.wasm` and its manifest, and
//! files in folders of extensions, each with the name that it has. Nothing is compiled or run here.

use std::path::{Path, PathBuf};

use atoll_agent::settings::Settings;
use atoll_caps::{Digest, DisabledPlugins, PluginName};
use atoll_table::{Error, Origin, names::near_matches};

use crate::{
    builtins,
    directories::Directories,
    extension_files::{self, Files, Level, Unsure},
    installed::Installed,
    project::Project,
};

/// What looks like a plugin and is none.
#[derive(Clone, Debug)]
pub(crate) struct Stray {
    pub(crate) path: PathBuf,
    pub(crate) reason: String,
    /// Whose it is.
    pub(crate) origin: Origin,
}

impl Stray {
    /// That it is left out, for people.
    pub(crate) fn note(&self) -> String {
        format!("the plugin in {} is left out: {}", self.path.display(), self.reason)
    }
}

/// Every plugin that is there.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    /// The user's, then the project's. Of each, those that its settings name, as they do, those in its folder of extensions
    /// and those in its folder of plugins, sorted by name.
    pub(crate) plugins: Vec<Installed>,
    /// Folders and files that hold none.
    pub(crate) strays: Vec<Stray>,
    /// Of what it can not be known what it holds. Each is among the strays, too.
    pub(crate) unsure: Vec<Unsure>,
    /// Built-in extensions that the settings switch on or off, the last word last.
    pub(crate) builtins: Vec<(String, bool)>,
}

impl Catalog {
    /// Looks at the folders of the user and of a trusted project, and at what `settings` says of extensions.
    ///
    /// # Errors
    /// If it can not be known which plugins are switched off.
    pub(crate) fn read(directories: &Directories, project: &Project, settings: &Settings) -> anyhow::Result<Self> {
        let disabled = DisabledPlugins::load(&directories.plugin_state())?;
        let mut catalog = Self::default();
        let user =
            Level { base: &directories.atoll_home, home: &directories.home, list: &settings.extensions, within: None };
        catalog.add_files(extension_files::look(user), Origin::User, &disabled, user_name);
        catalog.add_folders(&directories.plugins(), Origin::User, &disabled, user_name);
        if let Some(base) = project.extensions_base() {
            let within = Some(project.directory());
            let level = Level { base: &base, home: &directories.home, list: &settings.project_extensions, within };
            let mut files = extension_files::look(level);
            // A file of the user's stays the user's, whoever else names it.
            let own: Vec<_> = catalog.plugins.iter().filter_map(|plugin| plugin.file().canonicalize().ok()).collect();
            files.found.retain(|found| !found.entry.canonicalize().is_ok_and(|entry| own.contains(&entry)));
            // It may leave out what is built in, and not bring back what the user left out.
            files.builtins.retain(|(_, on)| !on);
            let name = |name: &str| project_name(name, project.directory());
            catalog.add_files(files, Origin::Project, &disabled, name);
        }
        if let Some(plugins) = project.plugins() {
            let name = |name: &str| project_name(name, project.directory());
            catalog.add_folders(&plugins, Origin::Project, &disabled, name);
        }
        Ok(catalog)
    }

    /// What was installed into a folder of plugins.
    fn add_folders(
        &mut self,
        parent: &Path,
        origin: Origin,
        disabled: &DisabledPlugins,
        name: impl Fn(&str) -> Result<PluginName, String>,
    ) {
        let found = match folders(parent) {
            Ok(found) => found,
            Err(error) => {
                let (path, reason) = (parent.to_owned(), format!("it can not be read: {error}"));
                self.unsure.push(Unsure { below: path.clone(), file: path.clone(), reason: reason.clone() });
                return self.strays.push(Stray { path, reason, origin });
            }
        };
        for (path, folder_name) in found {
            match name(&folder_name) {
                Ok(name) => self.add(Installed::in_folder(name, origin, path, true), disabled),
                Err(reason) => self.strays.push(Stray { path, reason, origin }),
            }
        }
    }

    fn add_files(
        &mut self,
        files: Files,
        origin: Origin,
        disabled: &DisabledPlugins,
        name: impl Fn(&str) -> Result<PluginName, String>,
    ) {
        self.strays.extend(files.left_out.into_iter().map(|(path, reason)| Stray { path, reason, origin }));
        self.unsure.extend(files.unsure);
        self.builtins.extend(files.builtins);
        for found in files.found {
            let name = match name(&plain_name(&found.name)) {
                Ok(name) => name,
                Err(reason) => {
                    self.strays.push(Stray { path: found.entry, reason, origin });
                    continue;
                }
            };
            self.add(Installed::among_extensions(found, name, origin), disabled);
        }
    }

    fn add(&mut self, mut plugin: Installed, disabled: &DisabledPlugins) {
        if let Some(known) = self.plugins.iter().find(|known| known.name == plugin.name) {
            let (name, first) = (&plugin.name, known.shown());
            let reason = format!("another plugin is called {name}, {first}, and comes first; rename one of them");
            let (path, origin) = (plugin.shown_path().to_owned(), plugin.origin);
            self.strays.push(Stray { path, reason, origin });
            return;
        }
        plugin.enabled = !disabled.contains(&plugin.name);
        self.plugins.push(plugin);
    }

    /// Whether settings leave out the built-in extension of this name.
    pub(crate) fn is_switched_off(&self, name: &str) -> bool {
        let last = self.builtins.iter().rfind(|(known, _)| known == name);
        builtins::REPLACEABLE.contains(&name) && last.is_some_and(|(_, on)| !on)
    }

    /// The plugin of this name. A project's is also found by the name of its folder, if no other plugin has that.
    ///
    /// # Errors
    /// `not-found`, with the names that are near.
    pub(crate) fn find(&self, name: &str) -> Result<&Installed, Error> {
        let by_name = self.plugins.iter().find(|plugin| plugin.name.as_str() == name);
        let by_folder = || {
            let named = |plugin: &&Installed| plugin.local_name().is_some_and(|local| local == name);
            self.plugins.iter().filter(|plugin| plugin.origin == Origin::Project).find(named)
        };
        by_name.or_else(by_folder).ok_or_else(|| {
            let known: Vec<&str> = self.plugins.iter().map(|plugin| plugin.name.as_str()).collect();
            not_found(name, &known)
        })
    }
}

/// The error for a name that no plugin has.
pub(crate) fn not_found(name: &str, known: &[&str]) -> Error {
    let shown = atoll_caps::printable(name);
    let near = near_matches(name, known.iter().copied());
    let way_out = if near.is_empty() {
        "`atoll plugin list` shows all".to_owned()
    } else {
        format!("did you mean {}?", near.join(", "))
    };
    Error::NotFound(format!("there is no plugin `{shown}`; {way_out}"))
}

/// The folders in a folder, with their names; none if it is not there. Those that begin with a dot are not plugins but work
/// under way.
fn folders(parent: &Path) -> std::io::Result<Vec<(PathBuf, String)>> {
    let entries = match std::fs::read_dir(parent) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found: Vec<(PathBuf, String)> = entries
        .flatten()
        .map(|entry| (entry.path(), entry.file_name().to_string_lossy().into_owned()))
        .filter(|(path, name)| !name.starts_with('.') && path.is_dir())
        .collect();
    found.sort();
    Ok(found)
}

/// The name of a file or a folder in the letters of plugins' names, as far as it can be written in them.
pub(crate) fn plain_name(name: &str) -> String {
    name.to_lowercase().replace(['_', '.', ' '], "-")
}

/// A name for a plugin of the user's.
pub(crate) fn user_name(name: &str) -> Result<PluginName, String> {
    let name: PluginName = name.parse().map_err(|error: atoll_caps::PluginNameError| error.to_string())?;
    if builtins::by_name(name.as_str()).is_some() {
        return Err(format!("`{name}` is the name of a built-in plugin; give this one another"));
    }
    Ok(name)
}

/// The name of a project's plugin: its folder's, and what tells the project from all others.
fn project_name(name: &str, project: &Path) -> Result<PluginName, String> {
    let local: PluginName = name.parse().map_err(|error: atoll_caps::PluginNameError| error.to_string())?;
    let mut identity = project.as_os_str().as_encoded_bytes().to_vec();
    identity.extend(format!("\0{local}").bytes());
    let identity = Digest::of(&identity);
    let start: String = local.as_str().chars().take(48).collect();
    format!("{start}-in-{}", identity.short()).parse().map_err(|error: atoll_caps::PluginNameError| error.to_string())
}
