//! The plugins that are there: folders of the user's and of a trusted project's, with `plugin.wasm` and its manifest, and
//! files in folders of extensions. Nothing is compiled or run here.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use atoll_agent::settings::Settings;
use atoll_caps::{Capability, Digest, DisabledPlugins, Grants, Manifest, Pin, PluginName, Wants, read_small_file};
use atoll_engine::{PluginHost, SeenComponent};
use atoll_table::{Error, Origin, names::near_matches};

use crate::{
    builtins,
    directories::Directories,
    extension_files::{self, Files, Kind, Level, Place, Unsure},
    project::Project,
    scripts::Script,
};

/// What a plugin gets by the user's word for its file, if its manifest asks for it: what it may do in the session. Naming a
/// file for one run is such a word, and so is putting it into one's own folder of extensions. The README and the threat
/// model list the same.
const NAMED: [Capability; 6] =
    [Capability::Table, Capability::Session, Capability::Models, Capability::Ui, Capability::Store, Capability::Bus];

/// Adds what the user's word for a file gives its plugin. What reaches outside needs a grant all the same.
pub(crate) fn add_named(granted: &mut Wants, manifest: &Manifest) {
    let wanted = manifest.wants.flags.iter().filter(|(capability, _)| NAMED.contains(capability));
    granted.flags.extend(wanted.map(|(capability, reason)| (*capability, reason.clone())));
}

/// How a plugin came to be there. In load order, within those of one origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// A list of extensions in the settings names it.
    Settings,
    /// It lies in a folder of extensions.
    Extensions,
    /// It was installed: it is in a folder of plugins.
    Plugins,
}

/// A plugin's files.
#[derive(Clone, Debug)]
pub(crate) struct Installed {
    /// The name of the folder, or of the file in a folder of extensions, is the plugin's, whatever its manifest says, so
    /// that no two have one. A project's plugin has a name of its own, which no plugin of the user's or of another project
    /// has: it must not come by their grants.
    pub(crate) name: PluginName,
    pub(crate) origin: Origin,
    pub(crate) folder: PathBuf,
    pub(crate) enabled: bool,
    pub(crate) source: Source,
    pub(crate) kind: Kind,
    entry: PathBuf,
    manifest: PathBuf,
    /// The folder that is a script's own.
    own: Option<PathBuf>,
}

impl Installed {
    /// A plugin in a folder of its own.
    pub(crate) fn in_folder(name: PluginName, origin: Origin, folder: PathBuf, enabled: bool) -> Self {
        let (entry, manifest) = (folder.join("plugin.wasm"), folder.join("plugin.toml"));
        Self {
            name,
            origin,
            folder,
            enabled,
            source: Source::Plugins,
            kind: Kind::Component,
            entry,
            manifest,
            own: None,
        }
    }

    /// Its component, or its script.
    pub(crate) fn file(&self) -> PathBuf {
        self.entry.clone()
    }

    /// Where it is, for people: its folder if that is its own, else its file.
    pub(crate) fn shown_path(&self) -> &Path {
        if self.source == Source::Plugins { &self.folder } else { &self.entry }
    }

    fn shown(&self) -> String {
        self.shown_path().display().to_string()
    }

    /// The name that it has in its place.
    fn local_name(&self) -> Option<String> {
        let name = match self.source {
            Source::Plugins => self.folder.file_name()?.to_str()?,
            Source::Settings | Source::Extensions => {
                let stem = self.entry.file_stem()?.to_str()?;
                // An index is called by its folder's name.
                if self.manifest.ends_with("plugin.toml") { self.folder.file_name()?.to_str()? } else { stem }
            }
        };
        Some(plain_name(name))
    }

    /// Whether it was found as an extension, and not installed as a plugin.
    pub(crate) fn is_of_extensions(&self) -> bool {
        self.source != Source::Plugins
    }

    /// Whether its being where it is is the user's word for it, as `-e` is.
    pub(crate) fn is_named(&self) -> bool {
        self.origin == Origin::User && self.is_of_extensions()
    }

    /// What it has with these grants, counting what its place is the user's word for.
    pub(crate) fn with_its_place(&self, mut granted: Wants, manifest: &Manifest) -> Wants {
        if self.is_named() {
            add_named(&mut granted, manifest);
        }
        granted
    }

    /// Reads it. Of a script, its text stands for a component.
    pub(crate) fn read(&self) -> anyhow::Result<PluginFiles> {
        let mut files = match self.kind {
            Kind::Component => {
                let component = atoll_engine::read_component(&self.entry)?;
                let (digest, embedded) = (Digest::of(&component), atoll_engine::embedded_manifest(&component));
                let found = (self.entry.as_path(), self.manifest.as_path());
                PluginFiles::found(found, component, digest, || embedded, self.name.clone())?
            }
            Kind::Script => {
                let Script { file, files, manifest, pin, .. } = self.script()?;
                let component = files.into_iter().flat_map(|file| file.text.into_bytes()).collect();
                let source = if self.manifest.exists() { ManifestSource::Beside } else { ManifestSource::InText };
                PluginFiles { file, component, manifest, manifest_text: None, source, pin }
            }
        };
        files.manifest.name = self.name.clone();
        Ok(files)
    }

    /// As [`Self::read`], but a component that was read before and has not changed since is not read again. May block.
    pub(crate) fn see(&self, host: &PluginHost) -> anyhow::Result<Seen> {
        Ok(match self.kind {
            Kind::Component => {
                let mut files = PluginFiles::seen(host, &self.entry, &self.manifest, self.name.clone())?;
                files.manifest.name = self.name.clone();
                Seen::Component(Box::new(files))
            }
            Kind::Script => Seen::Script(Box::new(self.script()?)),
        })
    }

    fn script(&self) -> anyhow::Result<Script> {
        Script::read(&self.entry, self.own.as_deref(), &self.manifest, self.name.clone())
    }
}

/// A plugin as a start reads it.
#[derive(Debug)]
pub(crate) enum Seen {
    Component(Box<PluginFiles<SeenComponent>>),
    Script(Box<Script>),
}

impl Seen {
    pub(crate) fn file(&self) -> &Path {
        match self {
            Self::Component(files) => &files.file,
            Self::Script(script) => &script.file,
        }
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        match self {
            Self::Component(files) => &files.manifest,
            Self::Script(script) => &script.manifest,
        }
    }

    pub(crate) fn pin(&self) -> &Pin {
        match self {
            Self::Component(files) => &files.pin,
            Self::Script(script) => &script.pin,
        }
    }

    /// What it is granted. `None` if what was granted no longer counts, because the files have changed.
    pub(crate) fn granted(&self, grants: &Grants) -> Option<Wants> {
        match self {
            Self::Component(files) => files.granted(grants),
            Self::Script(script) => script.granted(grants),
        }
    }

    /// Whether it is an extension, as far as that is known without loading it.
    pub(crate) fn is_extension(&self) -> bool {
        match self {
            Self::Component(files) => files.component.is_extension(),
            Self::Script(_) => true,
        }
    }
}

/// Where a manifest was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ManifestSource {
    /// `plugin.toml` beside the component. It counts before one inside, so that a user can correct that.
    Beside,
    /// Inside the component.
    Embedded,
    /// In a script's text, or nowhere: then it wants what scripts want.
    InText,
    /// Nowhere: the plugin asks for nothing.
    None,
}

/// What a plugin consists of. `C` is its component: its bytes, or what is known of it.
#[derive(Clone, Debug)]
pub(crate) struct PluginFiles<C = Vec<u8>> {
    pub(crate) file: PathBuf,
    pub(crate) component: C,
    pub(crate) manifest: Manifest,
    pub(crate) manifest_text: Option<String>,
    pub(crate) source: ManifestSource,
    /// What its grants have to be pinned to.
    pub(crate) pin: Pin,
}

impl<C> PluginFiles<C> {
    /// A component of this digest with the manifest `beside` its file, else the one that is `embedded` in it.
    fn found(
        (file, beside): (&Path, &Path),
        component: C,
        digest: Digest,
        embedded: impl FnOnce() -> Result<Option<String>, Error>,
        name: PluginName,
    ) -> anyhow::Result<Self> {
        match read_small_file(beside) {
            Ok(Some(text)) => {
                let manifest = Manifest::parse(&text, &beside.to_string_lossy())?;
                Ok(Self::with(file, component, digest, manifest, Some(text), ManifestSource::Beside))
            }
            Ok(None) => Self::inside(file, component, digest, embedded, name),
            Err(error) => Err(error).with_context(|| format!("{} can not be read", beside.display())),
        }
    }

    fn inside(
        file: &Path,
        component: C,
        digest: Digest,
        embedded: impl FnOnce() -> Result<Option<String>, Error>,
        name: PluginName,
    ) -> anyhow::Result<Self> {
        let embedded = embedded()
            .map_err(|error| Error::Failed(format!("{} is not a usable component: {error}", file.display())))?;
        Ok(match embedded {
            Some(text) => {
                let manifest = Manifest::parse(&text, &format!("plugin.toml in {}", file.display()))?;
                Self::with(file, component, digest, manifest, Some(text), ManifestSource::Embedded)
            }
            None => Self::with(file, component, digest, Manifest::bare(name), None, ManifestSource::None),
        })
    }

    fn with(
        file: &Path,
        component: C,
        digest: Digest,
        manifest: Manifest,
        text: Option<String>,
        source: ManifestSource,
    ) -> Self {
        let manifest_digest = Digest::of(text.as_deref().unwrap_or_default().as_bytes());
        let pin = Pin { component: digest, manifest: manifest_digest };
        Self { file: file.to_owned(), component, manifest, manifest_text: text, source, pin }
    }

    /// What it is granted. `None` if what was granted no longer counts, because the files have changed.
    pub(crate) fn granted(&self, grants: &Grants) -> Option<Wants> {
        grants.granted(&self.manifest.name, &self.pin)
    }
}

impl PluginFiles<SeenComponent> {
    /// The component in `file`, with the manifest `beside` it, else the one inside it. Without either it is called `name`.
    /// It is not read if it was read before and has not changed since. May block.
    pub(crate) fn seen(host: &PluginHost, file: &Path, beside: &Path, name: PluginName) -> anyhow::Result<Self> {
        let component = host.see_component(file)?;
        let (digest, embedded) = (component.digest.clone(), component.manifest.clone());
        Self::found((file, beside), component, digest, || embedded, name)
    }
}

impl PluginFiles {
    /// A component as it was read from `file`, with the manifest beside it, else the one inside it. Without either it is
    /// called `name`.
    pub(crate) fn of(file: &Path, component: Vec<u8>, name: PluginName) -> anyhow::Result<Self> {
        let (digest, embedded) = (Digest::of(&component), atoll_engine::embedded_manifest(&component));
        let beside = file.with_file_name("plugin.toml");
        Self::found((file, &beside), component, digest, || embedded, name)
    }

    /// A component by itself.
    pub(crate) fn alone(file: &Path, component: Vec<u8>, name: PluginName) -> anyhow::Result<Self> {
        let (digest, embedded) = (Digest::of(&component), atoll_engine::embedded_manifest(&component));
        Self::inside(file, component, digest, || embedded, name)
    }

    /// Where its manifest is, for people.
    pub(crate) fn manifest_place(&self) -> &'static str {
        match self.source {
            ManifestSource::Beside if self.hides_another() => {
                "plugin.toml beside it; the one inside it says something else"
            }
            ManifestSource::Beside => "plugin.toml beside it",
            ManifestSource::Embedded => "inside it",
            ManifestSource::InText => "in its text, else what scripts ask for",
            ManifestSource::None => "none",
        }
    }

    /// Whether there is a manifest inside the component that does not count, for another one beside it does.
    pub(crate) fn hides_another(&self) -> bool {
        let inside = atoll_engine::embedded_manifest(&self.component).ok().flatten();
        self.source == ManifestSource::Beside && inside.is_some_and(|inside| Some(inside) != self.manifest_text)
    }
}

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
            let own: Vec<_> = catalog.plugins.iter().filter_map(|plugin| plugin.entry.canonicalize().ok()).collect();
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
            let source = match found.place {
                Place::Settings => Source::Settings,
                Place::Folder => Source::Extensions,
            };
            let folder = found.entry.parent().map(Path::to_owned).unwrap_or_default();
            let (kind, entry, manifest, own) = (found.kind, found.entry, found.manifest, found.folder);
            self.add(Installed { name, origin, folder, enabled: true, source, kind, entry, manifest, own }, disabled);
        }
    }

    fn add(&mut self, plugin: Installed, disabled: &DisabledPlugins) {
        if let Some(known) = self.plugins.iter().find(|known| known.name == plugin.name) {
            let (name, first) = (&plugin.name, known.shown());
            let reason = format!("another plugin is called {name}, {first}, and comes first; rename one of them");
            let (path, origin) = (plugin.shown_path().to_owned(), plugin.origin);
            self.strays.push(Stray { path, reason, origin });
            return;
        }
        let enabled = !disabled.contains(&plugin.name);
        self.plugins.push(Installed { enabled, ..plugin });
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
