//! The plugin under test, and where its scenarios are.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use atoll_caps::{Digest, Effective, Manifest, read_small_file};
use atoll_engine::{LoadedPlugin, PluginHost, Replacement, SeenComponent, UserPlugin};
use atoll_table::{Error, Origin};

use crate::{
    extension_files::{self, Kind, several_entries},
    plugin::inspect::name_of,
    plugin_files::{ManifestSource, PluginFiles},
    scripts::{self, Script},
};

/// How many folders above the file its project may be: `target/wasm32-wasip2/release/NAME.wasm` is three below it.
const MOST_ABOVE: usize = 5;

/// A plugin's file, or a script's folder.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) file: PathBuf,
    /// The folder of its project: the nearest one, from the file upwards, that has a `plugin.toml`; else that of the file.
    pub(crate) project: PathBuf,
}

/// What it consists of.
pub(crate) enum Files {
    Component(Box<PluginFiles<SeenComponent>>),
    Script(Box<Script>),
}

impl Subject {
    pub(crate) fn find(file: &Path) -> anyhow::Result<Self> {
        let file = std::path::absolute(file)?;
        if !file.exists() {
            let shown = file.display();
            anyhow::bail!(Error::NotFound(format!("there is no file {shown}; build the plugin first")));
        }
        let folder = if file.is_dir() { &file } else { file.parent().context("the plugin has no folder")? };
        let project = folder.ancestors().take(MOST_ABOVE).find(|folder| folder.join("plugin.toml").is_file());
        let project = project.unwrap_or(folder).to_owned();
        Ok(Self { project, file })
    }

    /// Its scenarios: `tests/*.toml` of its project, in the order of their names.
    pub(crate) fn scenarios(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.project.join("tests")).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|is| is == "toml")).collect();
        found.sort();
        found
    }

    /// Reads it. A component without a manifest beside it or inside it has that of its project. May block.
    pub(crate) fn read(&self, host: &PluginHost) -> anyhow::Result<Files> {
        if self.file.is_dir() {
            let all = extension_files::named(&self.file)?;
            return match all.as_slice() {
                [found] if found.kind == Kind::Script => Ok(Files::Script(Box::new(Script::found(found)?))),
                [found] => anyhow::bail!("{} is a component; name its file", found.entry.display()),
                several => anyhow::bail!(Error::InvalidArguments(several_entries(&self.file, several))),
            };
        }
        if scripts::is_script(&self.file)
            && let [found] = extension_files::named(&self.file)?.as_slice()
        {
            return Ok(Files::Script(Box::new(Script::found(found)?)));
        }
        let mut files =
            PluginFiles::seen(host, &self.file, &self.file.with_file_name("plugin.toml"), name_of(&self.file)?)?;
        let manifest = self.project.join("plugin.toml");
        if files.source == ManifestSource::None
            && let Some(text) = read_small_file(&manifest).with_context(|| format!("{}", manifest.display()))?
        {
            files.manifest = Manifest::parse(&text, &manifest.to_string_lossy())?;
            files.pin.manifest = Digest::of(text.as_bytes());
            files.manifest_text = Some(text);
            files.source = ManifestSource::Beside;
        }
        Ok(Files::Component(Box::new(files)))
    }
}

impl Files {
    pub(crate) fn manifest(&self) -> &Manifest {
        match self {
            Self::Component(files) => &files.manifest,
            Self::Script(script) => &script.manifest,
        }
    }

    /// Loads it as a plugin of the user's.
    pub(crate) async fn load(self, host: &PluginHost, effective: Effective) -> Result<LoadedPlugin, Error> {
        match self {
            Self::Component(files) => host.load_user(component(*files, effective)).await,
            Self::Script(script) => host.load_script(script.plugin(effective, Origin::User)).await,
        }
    }

    /// Gets it ready to take over from one that runs.
    pub(crate) async fn load_replacement(self, host: &PluginHost, effective: Effective) -> Result<Replacement, Error> {
        match self {
            Self::Component(files) => host.load_replacement(component(*files, effective)).await,
            Self::Script(script) => host.load_script_replacement(script.plugin(effective, Origin::User)).await,
        }
    }
}

fn component(files: PluginFiles<SeenComponent>, effective: Effective) -> UserPlugin {
    let PluginFiles { file, component, manifest, pin, .. } = files;
    UserPlugin { file, component, manifest, effective, pin, origin: Origin::User }
}
