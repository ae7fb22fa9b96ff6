//! Where the agent puts what is too long for a model.

use std::{path::PathBuf, sync::Arc};

use atoll_agent::shape::Spill;
use atoll_engine::PluginHost;
use atoll_table::Error;

/// The host's folder for such files.
pub(crate) struct Spilled(pub(crate) Arc<PluginHost>);

impl Spill for Spilled {
    fn save(&self, name: &str, ending: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
        self.0.spill(name, ending, bytes)
    }
}
