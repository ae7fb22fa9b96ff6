//! The agent: messages, events, turns, the session file, the system prompt and the models it can ask.
//!
//! This crate must never know what a plugin is made of: it reaches tools and providers through the traits of
//! `atoll-table`, and is tested without any sandbox.

pub mod answer;
pub mod config_files;
pub mod config_value;
pub mod context_files;
pub mod conversation;
pub mod event;
pub mod extensions;
pub mod kept;
pub mod loadout;
pub mod message;
pub mod models;
pub mod nested_calls;
pub mod pipeline;
pub mod prompt;
pub mod queue;
pub mod run;
pub mod secrets;
pub mod session;
pub mod settings;
pub mod shape;
mod time;

pub use conversation::Conversation;
pub use event::Event;
pub use extensions::Extensions;
pub use message::Message;
pub use pipeline::Pipeline;
pub use run::{Agent, Outcome, Teller};
pub use session::Session;
