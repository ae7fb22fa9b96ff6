//! The table as a running plugin reaches it: through the same pipeline as everybody else.
//!
//! Nothing here may be reachable without a call under way, or an extension that does it of its own accord: what is done
//! to the table is always somebody's doing.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::{Error, Registered, Tool, ToolOutput, ToolRunner, callable::Callables, describe::Summary, registry::Group};

/// A tool of the table, and whether it is active.
pub type Listed = (Arc<Registered>, bool);

/// What a search gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The tools, best first.
    pub tools: Vec<Summary>,
    /// Namespaces whose tools are still to come.
    pub waiting: Vec<String>,
}

/// What a plugin may do to the table. Made by the pipeline for each call, and for what an extension does by itself, so
/// that it knows who asks.
///
/// What changes the table may have to wait: while extensions start, it is done in the order they were loaded.
pub trait TableAccess: Send + Sync {
    /// Calls a tool in the middle of the call this belongs to. `nesting` is how deep the calling plugin lets calls
    /// nest. It has its number, and whoever watches knows of it, as soon as this returns. Dropping the future stops the
    /// call.
    ///
    /// # Errors
    /// Everything that goes wrong before the tool runs, `limit` `nesting` among it, and whatever the tool itself
    /// fails with. A tool that ran and reports an error gives an output that says so.
    fn call(
        self: Arc<Self>,
        nesting: u32,
        name: String,
        arguments: Value,
    ) -> BoxFuture<'static, Result<ToolOutput, Error>>;

    /// What can be called now.
    fn callable(&self) -> Callables;

    /// The tools that fit words, best first, at most `max`, among those that a nested call may reach.
    ///
    /// # Errors
    /// None so far; a search that finds nothing gives nothing.
    fn search(&self, query: &str, max: usize) -> Result<Vec<Summary>, Error> {
        self.find(query, max, None).map(|found| found.tools)
    }

    /// The same, in one namespace only if one is named, with what could not be looked at.
    ///
    /// # Errors
    /// `not-found` or `ambiguous` for the namespace.
    fn find(&self, query: &str, max: usize, namespace: Option<&str>) -> Result<Found, Error>;

    /// A namespace, with those of its tools that can be called.
    ///
    /// # Errors
    /// `not-found` or `ambiguous` for the name.
    fn group(&self, name: &str) -> Result<Group, Error>;

    /// The calling plugin will bring tools of this namespace, or it will not any more.
    ///
    /// # Errors
    /// `limit` `tools` if it says so of too many.
    fn expect(&self, namespace: String, coming: bool) -> Result<(), Error>;

    /// All tools but hidden ones, in the order of registration, each with whether it is active.
    fn list(&self) -> Vec<Listed>;

    /// How a tool looks.
    ///
    /// # Errors
    /// `not-found` or `ambiguous` for the name.
    fn describe(&self, name: &str) -> Result<Summary, Error>;

    /// Makes tools active or inactive, from the next model request on.
    ///
    /// # Errors
    /// `not-found` or `ambiguous` for a name; then nothing changes.
    fn activate(&self, names: Vec<String>, active: bool) -> BoxFuture<'_, Result<(), Error>>;

    /// Adds tools of the calling plugin, or replaces those it has under the same names. `runner` runs them. With them
    /// it may have `most`; what was withdrawn gives its place to what is new before there are too many.
    ///
    /// # Errors
    /// As [`crate::Table::register`].
    fn register(&self, tools: Vec<Tool>, runner: Arc<dyn ToolRunner>, most: u64) -> BoxFuture<'_, Result<(), Error>>;

    /// Withdraws tools of the calling plugin, named as it named them.
    ///
    /// # Errors
    /// `not-found` if it has no such tool; then none is withdrawn.
    fn unregister(&self, names: Vec<String>) -> BoxFuture<'_, Result<(), Error>>;
}
