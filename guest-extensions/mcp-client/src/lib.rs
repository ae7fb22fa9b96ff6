//! What adapters for MCP servers share: their configuration, the names of what servers bring, who may reach it, and what
//! results look like to a model and to a script; and a client for one server, on top of rmcp.
//!
//! Everything here is tested natively. Nothing here calls an import, so nothing here reads a file, starts a program or
//! knows what time it is: an adapter does that, and says what came of it.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail so"))]

pub mod cache;
pub mod commands;
pub mod config;
pub mod elicitation;
pub mod environment;
pub mod exposure;
pub mod http;
pub mod mentions;
pub mod names;
pub mod net;
pub mod oauth;
pub mod prompt;
pub mod result;
pub mod sampling;
pub mod session;
pub mod template;
mod text;
pub mod tool;
pub mod wire;
