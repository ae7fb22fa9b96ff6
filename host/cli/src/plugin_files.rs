//! What a plugin consists of: its component or its script, its manifest, and what its grants are pinned to. Nothing is compiled
//! or run here.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use atoll_caps::{Digest, Grants, Manifest, Pin, PluginName, Wants, read_small_file};
use atoll_engine::{PluginHost, SeenComponent};
use atoll_table::Error;

use crate::scripts::Script;

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
    pub(crate) fn found(
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
