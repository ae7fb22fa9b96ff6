//! The one tool table: which tools there are, who brings them, which are active, and whether arguments fit.
//! Beside it stand the traits through which the rest of the host reaches a plugin, and the data they exchange.
//!
//! This crate is pure: it must never know wasmtime or tokio, touch a file or the network, or start a thread.

pub mod access;
pub mod arguments;
pub mod batch;
pub mod callable;
pub mod config;
pub mod content;
pub mod data;
pub mod declare;
pub mod describe;
pub mod error;
pub mod extension;
pub mod hooks;
pub mod kept;
pub mod model;
pub mod names;
pub mod nesting;
pub mod reach;
pub mod registry;
pub mod runner;
pub mod search;
pub mod secrets;
#[cfg(test)]
mod test_tools;
pub mod tool;

pub use access::{Found, Listed, TableAccess};
pub use content::Content;
pub use data::Data;
pub use error::Error;
pub use reach::Caller;
pub use registry::{Origin, Registered, Registration, Table};
pub use runner::{Aside, Invocation, Progress, Shaping, ToolOutput, ToolRunner};
pub use tool::Tool;
