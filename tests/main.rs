//! Black-box tests of the built program: what a user sees, and what must never happen. Run by `cargo xtask test`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says on standard error what it skips"
)]

mod aimock;
mod asking;
mod audit_log;
mod bash_reports;
mod bash_sandbox;
mod bash_tool;
mod codemode;
mod codemode_command;
mod codemode_declarations;
mod command_line;
mod common;
mod demo;
mod edit_tool;
mod extension_additions;
mod extension_builtins;
mod extension_config;
mod extension_contract;
mod extension_engine;
mod extension_events;
mod extension_faults;
mod extension_folders;
mod extension_functions;
mod extension_loading;
mod extension_providers;
mod extension_reentrancy;
mod extension_reload;
mod extension_reload_faults;
mod extension_secrets;
mod extension_session;
mod extension_subcommands;
mod extension_trust;
mod extension_ui;
mod extensions;
mod file_promises;
mod file_promises_races;
mod file_reach;
mod find_tool;
mod fuzzing;
mod grep_tool;
mod host_files;
mod hostile_projects;
mod language_examples;
mod lazy_start;
mod limits;
mod ls_tool;
mod malformed_plugins;
mod mcp_builtin;
mod mcp_command;
mod mcp_config;
mod mcp_conformance;
mod mcp_hard;
mod mcp_http;
mod mcp_offers;
mod mcp_own_adapter;
mod mcp_proxy;
mod mcp_proxy_install;
mod mcp_proxy_sign_in;
mod mcp_proxy_tools;
mod mcp_questions;
mod mcp_real;
mod mcp_servers;
mod mcp_sign_in;
mod mcp_stdio;
mod misbehaving_plugins;
mod nested_calls;
mod network_promises;
mod plugin_cache;
mod plugin_dev;
mod plugin_install;
mod plugin_management;
mod plugin_new;
mod plugin_scenarios;
mod print_mode;
mod print_mode_sessions;
mod process_variables;
mod project_trust;
mod provider_faults;
mod provider_plugins;
mod provider_streams;
mod read_pictures;
mod read_tool;
mod readme;
mod script_extensions;
mod script_folders;
mod sdk_events;
mod search_bounds;
mod search_like_native;
mod secrets;
mod skills;
mod smallest_tool;
mod terminal_safety;
mod test262;
mod threat_model;
mod tool_corpus;
mod tool_manifests;
mod write_tool;
