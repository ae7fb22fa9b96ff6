//! A plugin that is there: where its files are, whose it is, and what being there gives it. Nothing is compiled or run here.

use std::path::{Path, PathBuf};

use atoll_caps::{Capability, Digest, Manifest, PluginName, Wants};
use atoll_engine::PluginHost;
use atoll_table::Origin;

use crate::{
    catalog::plain_name,
    extension_files::{Found, Kind, Place},
    plugin_files::{ManifestSource, PluginFiles, Seen},
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

    /// What was found among extensions.
    pub(crate) fn among_extensions(found: Found, name: PluginName, origin: Origin) -> Self {
        let source = match found.place {
            Place::Settings => Source::Settings,
            Place::Folder => Source::Extensions,
        };
        let folder = found.entry.parent().map(Path::to_owned).unwrap_or_default();
        let Found { entry, kind, manifest, folder: own, .. } = found;
        Self { name, origin, folder, enabled: true, source, kind, entry, manifest, own }
    }

    /// Its component, or its script.
    pub(crate) fn file(&self) -> PathBuf {
        self.entry.clone()
    }

    /// The manifest beside it, which need not be there.
    pub(crate) fn manifest_file(&self) -> &Path {
        &self.manifest
    }

    /// Where it is, for people: its folder if that is its own, else its file.
    pub(crate) fn shown_path(&self) -> &Path {
        if self.source == Source::Plugins { &self.folder } else { &self.entry }
    }

    /// The same as a text.
    pub(crate) fn shown(&self) -> String {
        self.shown_path().display().to_string()
    }

    /// The name that it has in its place.
    pub(crate) fn local_name(&self) -> Option<String> {
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
