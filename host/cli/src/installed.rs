//! The plugins that are there: folders of the user's and of a trusted project's, with `plugin.wasm` and its manifest.
//! Nothing is compiled or run here.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use atoll_caps::{Digest, DisabledPlugins, Grants, Manifest, Pin, PluginName, Wants, read_small_file};
use atoll_engine::{PluginHost, SeenComponent};
use atoll_table::{Error, Origin, names::near_matches};

use crate::{builtins, directories::Directories, project::Project};

/// A plugin's folder.
#[derive(Clone, Debug)]
pub(crate) struct Installed {
    /// The folder's name is the plugin's, whatever its manifest says, so that no two have one. A project's plugin has a
    /// name of its own, which no plugin of the user's or of another project has: it must not come by their grants.
    pub(crate) name: PluginName,
    pub(crate) origin: Origin,
    pub(crate) folder: PathBuf,
    pub(crate) enabled: bool,
}

impl Installed {
    /// Its component.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.join("plugin.wasm")
    }

    /// Reads it.
    pub(crate) fn read(&self) -> anyhow::Result<PluginFiles> {
        let file = self.file();
        let component = atoll_engine::read_component(&file)?;
        let mut files = PluginFiles::of(&file, component, self.name.clone())?;
        files.manifest.name = self.name.clone();
        Ok(files)
    }

    /// As [`Self::read`], but a component that was read before and has not changed since is not read again. May block.
    pub(crate) fn see(&self, host: &PluginHost) -> anyhow::Result<PluginFiles<SeenComponent>> {
        let mut files = PluginFiles::seen(host, &self.file(), self.name.clone())?;
        files.manifest.name = self.name.clone();
        Ok(files)
    }
}

/// Where a manifest was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ManifestSource {
    /// `plugin.toml` beside the component. It counts before one inside, so that a user can correct that.
    Beside,
    /// Inside the component.
    Embedded,
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
    /// A component of this digest with the manifest beside its file, else the one that is `embedded` in it.
    fn found(
        file: &Path,
        component: C,
        digest: Digest,
        embedded: impl FnOnce() -> Result<Option<String>, Error>,
        name: PluginName,
    ) -> anyhow::Result<Self> {
        let beside = file.with_file_name("plugin.toml");
        match read_small_file(&beside) {
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
    /// The component in `file`, with the manifest beside it, else the one inside it. Without either it is called `name`. It
    /// is not read if it was read before and has not changed since. May block.
    pub(crate) fn seen(host: &PluginHost, file: &Path, name: PluginName) -> anyhow::Result<Self> {
        let component = host.see_component(file)?;
        let (digest, embedded) = (component.digest.clone(), component.manifest.clone());
        Self::found(file, component, digest, || embedded, name)
    }
}

impl PluginFiles {
    /// A component as it was read from `file`, with the manifest beside it, else the one inside it. Without either it is
    /// called `name`.
    pub(crate) fn of(file: &Path, component: Vec<u8>, name: PluginName) -> anyhow::Result<Self> {
        let (digest, embedded) = (Digest::of(&component), atoll_engine::embedded_manifest(&component));
        Self::found(file, component, digest, || embedded, name)
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
            ManifestSource::None => "none",
        }
    }

    /// Whether there is a manifest inside the component that does not count, for another one beside it does.
    pub(crate) fn hides_another(&self) -> bool {
        let inside = atoll_engine::embedded_manifest(&self.component).ok().flatten();
        self.source == ManifestSource::Beside && inside.is_some_and(|inside| Some(inside) != self.manifest_text)
    }
}

/// Every plugin that is there.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    /// The user's, then the project's, each sorted by name.
    pub(crate) plugins: Vec<Installed>,
    /// Folders that hold none, with the reason.
    pub(crate) strays: Vec<(PathBuf, String)>,
}

impl Catalog {
    /// Looks at the folders of the user and of a trusted project.
    ///
    /// # Errors
    /// If it can not be known which plugins are switched off.
    pub(crate) fn read(directories: &Directories, project: &Project) -> anyhow::Result<Self> {
        let disabled = DisabledPlugins::load(&directories.plugin_state())?;
        let mut catalog = Self::default();
        for (folder, name) in folders(&directories.plugins()) {
            match user_name(&name) {
                Ok(name) => catalog.add(name, Origin::User, folder, &disabled),
                Err(reason) => catalog.strays.push((folder, reason)),
            }
        }
        for (folder, name) in project.plugins().iter().flat_map(|plugins| folders(plugins)) {
            match project_name(&name, project.directory()) {
                Ok(name) => catalog.add(name, Origin::Project, folder, &disabled),
                Err(reason) => catalog.strays.push((folder, reason)),
            }
        }
        // Where two could answer, as providers of one api, the user's comes first.
        catalog.plugins.sort_by(|a, b| (a.origin, &a.name).cmp(&(b.origin, &b.name)));
        Ok(catalog)
    }

    fn add(&mut self, name: PluginName, origin: Origin, folder: PathBuf, disabled: &DisabledPlugins) {
        if self.plugins.iter().any(|known| known.name == name) {
            self.strays.push((folder, format!("another plugin is called {name}; rename the folder")));
            return;
        }
        let enabled = !disabled.contains(&name);
        self.plugins.push(Installed { name, origin, folder, enabled });
    }

    /// The plugin of this name. A project's is also found by the name of its folder, if no other plugin has that.
    ///
    /// # Errors
    /// `not-found`, with the names that are near.
    pub(crate) fn find(&self, name: &str) -> Result<&Installed, Error> {
        let by_name = self.plugins.iter().find(|plugin| plugin.name.as_str() == name);
        let by_folder = || {
            let named = |plugin: &&Installed| plugin.folder.file_name().is_some_and(|folder| folder == name);
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

/// The folders in a folder, with their names. Those that begin with a dot are not plugins but work under way.
fn folders(parent: &Path) -> Vec<(PathBuf, String)> {
    let mut found: Vec<(PathBuf, String)> = std::fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| (entry.path(), entry.file_name().to_string_lossy().into_owned()))
        .filter(|(path, name)| !name.starts_with('.') && path.is_dir())
        .collect();
    found.sort();
    found
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
