//! The sandbox: loads components, links exactly what they were granted, enforces every limit, and implements
//! every import of the contract.
//!
//! This crate must never know how the agent works: it runs tools, providers and extensions for whoever asks, through
//! the traits of `atoll-table`.

mod actor;
mod all_memory;
mod aot_cache;
mod approval;
mod audit;
mod beside;
pub mod bindings;
mod byte_streams;
mod call;
mod callback_listener;
mod code_in_place;
mod components;
mod config;
mod contract_check;
mod convert;
mod description;
mod download;
mod embedded_manifest;
mod extension_plugin;
mod files;
mod http_client;
mod imports;
mod inbox;
mod lazy;
mod limits;
mod linking;
mod live_tools;
mod loading;
mod log_files;
mod outcome;
mod output_lines;
mod permits;
mod plugin_host;
mod pre_init;
mod processes;
mod provider_plugin;
mod redaction;
mod scripts;
mod seen;
mod state;
mod tool_plugin;
mod trap;
mod turns;
mod wishes;
mod workers;

pub use approval::{Answer, Approver, LastingGrant, Once, Question};
pub use audit::AuditLog;
pub use components::{check_component, read_component};
pub use config::{Purpose, engine};
pub use contract_check::Surface;
pub use embedded_manifest::{embed_manifest, embedded_manifest};
pub use extension_plugin::{LiveExtension, Replacement};
pub use http_client::{RecordedAnswer, RecordedRequest, Recordings};
pub use loading::{Builtin, Inspection, LoadedPlugin, UserPlugin};
pub use plugin_host::PluginHost;
pub use pre_init::{PRE_INIT_VERSION, pre_initialise};
pub use processes::{find_bubblewrap, spill_folder, stop_starting as stop_starting_processes};
pub use scripts::{ScriptPlugin, SourceFile, script_manifest, script_pin};
pub use seen::SeenComponent;
pub use state::{LogSink, PROJECT_FOLDER, Places};
