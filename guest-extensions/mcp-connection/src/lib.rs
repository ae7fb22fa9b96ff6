//! Connections of a component to MCP servers: programs it starts, addresses it asks, and how each comes and goes.
//!
//! Any adapter can be built on it. It must not know of the table, of a configuration file or of what a model is told: that is
//! the adapter's, which hears of a server's tools by [`Catalog`]. What can be told without calling an import is in
//! `atoll-mcp-client`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail so"))]

pub mod access;
mod asking;
mod calling;
pub mod drive;
mod environment;
mod greeting;
mod http;
pub mod net;
mod pace;
pub mod person;
mod reading;
pub mod server;
pub mod shown;
pub mod sign_in;
pub mod stdio;
mod trying;
pub mod values;

use atoll_mcp_client::{
    session::{Refusal, Session},
    tool::ServerTool,
};
use futures::{FutureExt as _, future::LocalBoxFuture};
use serde_json::Value;

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

    /// A server is there, or other things of it than its tools have changed. Its tools were put before.
    fn met<'a>(&'a self, server: &'a Server, session: &'a Session, what: Met) -> LocalBoxFuture<'a, ()> {
        let _ = (server, session, what);
        std::future::ready(()).boxed_local()
    }

    /// No more is to come of a server for now.
    fn settled(&self, server: &str);
}

/// What there is to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// It was just connected to, and nobody has asked it for anything yet. What is looked at now is known to whoever waits for
    /// the server, and so nothing may be asked of it.
    Begun,
    /// Its prompts, for the first time or because they have changed.
    Prompts,
    /// Its resources have changed.
    Resources,
}

/// Whoever answers what servers ask. [`person::Person`] is one.
pub trait Answers {
    /// A model is to say something: `sampling/createMessage`.
    fn sample<'a>(&'a self, server: &'a str, params: Value) -> LocalBoxFuture<'a, Result<Value, Refusal>>;

    /// A person is to say something, or to open a page: `elicitation/create`.
    fn elicit<'a>(&'a self, server: &'a str, params: Value) -> LocalBoxFuture<'a, Result<Value, Refusal>>;
}
