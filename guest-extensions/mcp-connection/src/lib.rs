//! Connections of a component to MCP servers: programs it starts, addresses it asks, and how each comes and goes.
//!
//! Any adapter can be built on it. It must not know of the table, of a configuration file or of what a model is told: that is
//! the adapter's, which hears of a server's tools by [`Catalog`]. What can be told without calling an import is in
//! `atoll-mcp-client`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail so"))]

pub mod drive;
mod http;
pub mod net;
pub mod server;
pub mod stdio;

use atoll_mcp_client::session::ServerTool;
use futures::future::LocalBoxFuture;

use crate::server::Server;

/// Where an adapter has the tools of its servers.
pub trait Catalog {
    /// Has the tools of a server, and no others of it. Gives a line for each that could not be had.
    fn put<'a>(
        &'a self,
        server: &'a Server,
        instructions: Option<&'a str>,
        tools: Vec<ServerTool>,
    ) -> LocalBoxFuture<'a, Vec<String>>;

    /// No more is to come of a server for now.
    fn settled(&self, server: &str);
}
