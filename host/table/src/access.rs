//! The table as a running plugin reaches it: through the same pipeline as everybody else, on behalf of one call.
//!
//! Nothing here may be reachable without a call under way: what a plugin does to the table is always somebody's doing.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::{Error, Tool, ToolOutput, ToolRunner, describe::Summary};

/// What the plugin behind a call may do to the table. Made by the pipeline for each call, so that it knows who asks.
pub trait TableAccess: Send + Sync {
    /// Calls a tool in the middle of the call this belongs to. `nesting` is how deep the calling plugin lets calls
    /// nest. Dropping the future stops the call.
    ///
    /// # Errors
    /// Everything that goes wrong before the tool runs, `limit` `nesting` among it, and whatever the tool itself
    /// fails with. A tool that ran and reports an error gives an output that says so.
    fn call(&self, nesting: u32, name: String, arguments: Value) -> BoxFuture<'_, Result<ToolOutput, Error>>;

    /// The tools that fit words, best first, at most `max`, among those that a nested call may reach.
    ///
    /// # Errors
    /// None so far; a search that finds nothing gives nothing.
    fn search(&self, query: &str, max: usize) -> Result<Vec<Summary>, Error>;

    /// How a tool looks.
    ///
    /// # Errors
    /// `not-found` or `ambiguous` for the name.
    fn describe(&self, name: &str) -> Result<Summary, Error>;

    /// Makes tools active or inactive, from the next model request on.
    ///
    /// # Errors
    /// `not-found` or `ambiguous` for a name; then nothing changes.
    fn activate(&self, names: &[String], active: bool) -> Result<(), Error>;

    /// Adds tools of the calling plugin, or replaces those it has under the same names. `runner` runs them. With them
    /// it may have `most`, withdrawn ones included.
    ///
    /// # Errors
    /// As [`crate::Table::register`].
    fn register(&self, tools: Vec<Tool>, runner: &Arc<dyn ToolRunner>, most: u64) -> Result<(), Error>;

    /// Withdraws tools of the calling plugin, named as it named them.
    ///
    /// # Errors
    /// `not-found` if it has no such tool; then none is withdrawn.
    fn unregister(&self, names: &[String]) -> Result<(), Error>;
}
