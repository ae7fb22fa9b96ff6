//! The plugin under test, and where its scenarios are.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use atoll_caps::{Digest, Manifest, read_small_file};
use atoll_engine::{PluginHost, SeenComponent};

use crate::{
    installed::{ManifestSource, PluginFiles},
    plugin::inspect::name_of,
};

/// How many folders above the file its project may be: `target/wasm32-wasip2/release/NAME.wasm` is three below it.
const MOST_ABOVE: usize = 5;

/// A plugin's file.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) file: PathBuf,
    /// The folder of its project: the nearest one, from the file upwards, that has a `plugin.toml`; else that of the file.
    pub(super) project: PathBuf,
}

impl Subject {
    pub(super) fn find(file: &Path) -> anyhow::Result<Self> {
        let absolute = std::path::absolute(file)?;
        let folder = absolute.parent().context("the plugin has no folder")?;
        let project = folder.ancestors().take(MOST_ABOVE).find(|folder| folder.join("plugin.toml").is_file());
        Ok(Self { project: project.unwrap_or(folder).to_owned(), file: absolute })
    }

    /// Its scenarios: `tests/*.toml` of its project, in the order of their names.
    pub(super) fn scenarios(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.project.join("tests")).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|is| is == "toml")).collect();
        found.sort();
        found
    }

    /// Reads it. Without a manifest beside it or inside it, that of its project counts.
    pub(super) fn read(&self, host: &PluginHost) -> anyhow::Result<PluginFiles<SeenComponent>> {
        let mut files = PluginFiles::seen(host, &self.file, name_of(&self.file)?)?;
        let manifest = self.project.join("plugin.toml");
        if files.source == ManifestSource::None
            && let Some(text) = read_small_file(&manifest).with_context(|| format!("{}", manifest.display()))?
        {
            files.manifest = Manifest::parse(&text, &manifest.to_string_lossy())?;
            files.pin.manifest = Digest::of(text.as_bytes());
            files.manifest_text = Some(text);
            files.source = ManifestSource::Beside;
        }
        Ok(files)
    }
}
