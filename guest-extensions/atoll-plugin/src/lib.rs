//! What a plugin written in Rust needs: the contract as Rust types, a tool as a function, and an extension as a type.
//!
//! The contract is the WIT package `atoll:plugin` in `wit/`. Its shared data is in [`types`], each capability is
//! a module of its own ([`files`], [`http`], [`process`], …), and what a component exports is in [`tools`],
//! [`provider`], [`provider_auth`] and [`extension`]. A component imports only the capabilities whose functions
//! it calls, and exports only what it passes to the matching macro.
//!
//! A tool is a type that implements [`Tool`], handed to [`export_tools!`]:
//!
//! ```
//! use atoll_plugin::{Call, Error, Tool, ToolInfo, ToolOutput, export_tools};
//! use serde_json::json;
//!
//! struct Shout;
//!
//! #[derive(serde::Deserialize)]
//! struct Arguments {
//!     text: String,
//! }
//!
//! impl Tool for Shout {
//!     type Arguments = Arguments;
//!
//!     fn info() -> ToolInfo {
//!         ToolInfo::new("shout", "Repeats a text in capitals.").parameters(&json!({
//!             "type": "object",
//!             "properties": { "text": { "type": "string" } },
//!             "required": ["text"],
//!         }))
//!     }
//!
//!     async fn run(arguments: Arguments, _call: Call) -> Result<ToolOutput, Error> {
//!         Ok(ToolOutput::text(arguments.text.to_uppercase()))
//!     }
//! }
//!
//! export_tools!(Shout);
//! ```
//!
//! With the feature `schema` a tool is a function whose arguments' type says their schema: see [`tools!`]. What both take
//! and give is the same.
//!
//! An extension is a type that implements [`Extension`], handed to [`export_extension!`]. This one lets no program be run
//! that deletes a tree, and counts what it stopped:
//!
//! ```
//! use std::cell::Cell;
//!
//! use atoll_plugin::{
//!     Error, EventId, Extension, export_extension,
//!     extension::{Event, Outcome, StartReason},
//!     log,
//!     types::Subscription,
//! };
//!
//! #[derive(Default)]
//! struct Gate {
//!     stopped: Cell<u32>,
//! }
//!
//! impl Extension for Gate {
//!     async fn start(_: StartReason) -> Result<(Self, Subscription), Error> {
//!         let wanted = Subscription::new().event("tool-call").command("stopped", "Says how much was stopped.");
//!         Ok((Self::default(), wanted))
//!     }
//!
//!     async fn on_event(&self, _: EventId, event: Event) -> Result<Outcome, Error> {
//!         let Event::ToolCall(call) = event else { return Ok(Outcome::Pass) };
//!         let arguments: serde_json::Value = serde_json::from_str(&call.arguments)?;
//!         if call.tool == "bash" && arguments["command"].as_str().is_some_and(|line| line.contains("rm -rf")) {
//!             self.stopped.set(self.stopped.get() + 1);
//!             return Ok(Outcome::block("Trees are not deleted here. Name the files."));
//!         }
//!         Ok(Outcome::Pass)
//!     }
//!
//!     async fn command(&self, _: EventId, _: &str, _: &str) -> Result<(), Error> {
//!         log::write(log::Level::Info, &format!("{} stopped", self.stopped.get()));
//!         Ok(())
//!     }
//! }
//!
//! export_extension!(Gate);
//! ```
//!
//! Built for a native target, everything compiles and every import panics when it is called: unit tests cover
//! the logic around the imports.

// The code that `generate!` writes names this crate from the outside, here and in the crates that use its macros.
extern crate self as atoll_plugin;

#[doc(hidden)]
pub mod bindings;
mod error;
pub mod events;
#[doc(hidden)]
pub mod export;
mod extension_type;
mod output;
#[cfg(feature = "schema")]
#[doc(hidden)]
pub mod schema;
mod stream;
#[doc(hidden)]
pub mod tool;

pub use bindings::capabilities::atoll::plugin::{
    bus, clock, config, files, host, http, listener, log, models, process, progress, providers, secrets, servers,
    session, source, store, table, types, ui, workers,
};
pub use bindings::capabilities::{wit_future, wit_stream};
pub use extension_type::{EventId, Exported, Extension};
#[cfg(feature = "schema")]
pub use schema::{Answer, Json, NoArguments, schema_of, schemars};
pub use stream::next_chunk;
pub use tool::{Call, Tool, ToolInfo};
pub use types::{Content, Error, ToolOutput};

/// Runs a future of this instance beside the call that started it; the call's result need not wait for it.
pub use wit_bindgen::spawn_local;
pub use wit_bindgen::{FutureReader, FutureWriter, StreamReader, StreamResult, StreamWriter};

/// Waits for a future while nothing else of this instance runs: for code that can not be `async`.
pub use wit_bindgen::block_on;

/// The code generator's runtime, for the macros of this crate. Not part of what this crate promises.
#[doc(hidden)]
pub use wit_bindgen;

/// The export `tools`: implement [`Guest`](tools::Guest) and pass the type to [`tools::export!`]. Most plugins use
/// [`Tool`] and [`export_tools!`] instead.
pub mod tools {
    pub use crate::bindings::tool_plugin::exports::atoll::plugin::tools::*;
    pub use crate::export::tools as export;
}

/// The export `provider`: implement [`Guest`](provider::Guest) and pass the type to [`provider::export!`].
pub mod provider {
    pub use crate::bindings::provider_plugin::exports::atoll::plugin::provider::*;
    /// Makes the stream of model events that `complete` returns.
    pub use crate::bindings::provider_plugin::wit_stream;
    pub use crate::export::provider as export;
}

/// The export `provider-auth`: implement [`Guest`](provider_auth::Guest) and pass the type to
/// [`provider_auth::export!`], beside [`provider`].
pub mod provider_auth {
    pub use crate::bindings::provider_auth_plugin::exports::atoll::plugin::provider_auth::*;
    pub use crate::export::provider_auth as export;
}

/// The export `extension`: implement [`Guest`](extension::Guest) and pass the type to [`extension::export!`].
pub mod extension {
    pub use crate::bindings::extension_plugin::exports::atoll::plugin::extension::*;
    pub use crate::export::extension as export;
}

/// The export `worker`: implement [`Guest`](worker::Guest) and pass the type to [`worker::export!`], beside another
/// export. [`workers::run`] calls it in another instance.
pub mod worker {
    pub use crate::bindings::worker_plugin::exports::atoll::plugin::worker::*;
    pub use crate::export::worker as export;
}
