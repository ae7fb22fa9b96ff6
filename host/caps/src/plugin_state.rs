//! `plugins.json`: which plugins the user has switched off.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::manifest::PluginName;
use crate::private_file::{PrivateLock, write_private_file};
use crate::small_file::read_small_file;
use crate::text::printable;

/// The plugins that are switched off: they are listed, but not loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DisabledPlugins {
    #[serde(default)]
    disabled: BTreeSet<String>,
}

/// Why the file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DisabledPluginsError {
    /// What is in it is not understood.
    #[error("{}: {}; correct the file or remove it", printable(&path.display().to_string()), printable(reason))]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// It could not be read or written.
    #[error("{}: {error}; check that the file and its directory can be read and written", printable(&path.display().to_string()))]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        error: io::Error,
    },
}

impl DisabledPlugins {
    /// Reads the file; one that is not there switches nothing off.
    ///
    /// # Errors
    /// If it can not be read or understood. Then no plugin should be loaded, for each could be one that was switched off.
    pub fn load(path: &Path) -> Result<Self, DisabledPluginsError> {
        let text = read_small_file(path).map_err(|error| DisabledPluginsError::Io { path: path.to_owned(), error })?;
        let Some(text) = text else { return Ok(Self::default()) };
        serde_json::from_str(&text)
            .map_err(|error| DisabledPluginsError::Content { path: path.to_owned(), reason: error.to_string() })
    }

    /// Whether a plugin is switched off.
    pub fn contains(&self, name: &PluginName) -> bool {
        self.disabled.contains(name.as_str())
    }

    /// Switches a plugin on or off, while no other process does the same. Says whether that changed anything.
    ///
    /// # Errors
    /// As [`DisabledPlugins::load`], or if the file can not be written. Then nothing has changed.
    pub fn switch(path: &Path, name: &PluginName, on: bool) -> Result<bool, DisabledPluginsError> {
        let failed = |error| DisabledPluginsError::Io { path: path.to_owned(), error };
        let _lock = PrivateLock::of(path).map_err(failed)?;
        let mut all = Self::load(path)?;
        let changed =
            if on { all.disabled.remove(name.as_str()) } else { all.disabled.insert(name.as_str().to_owned()) };
        if changed {
            let text = serde_json::to_string_pretty(&all).map_err(|error| failed(error.into()))?;
            write_private_file(path, &format!("{text}\n")).map_err(failed)?;
        }
        Ok(changed)
    }
}
