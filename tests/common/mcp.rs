//! The adapter for MCP servers as a user has it who names it for a run.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use super::{Command, Sandbox, plugins::workspace_root};

const MANIFEST: &str = include_str!("../../guest-extensions/mcp/plugin.toml");

/// The program that is the server.
pub(crate) fn peer() -> String {
    env!("CARGO_BIN_EXE_atoll-mcp-peer").to_owned()
}

/// Whether a process is there.
pub(crate) fn is_alive(pid: &str) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // What is dead and not yet looked at by its parent is dead.
    state.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}

fn component() -> Vec<u8> {
    let path = workspace_root().join("target/guests/wasm32-wasip2/guest/atoll_mcp.wasm");
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; run the tests with `cargo xtask test`", path.display()))
}

/// A place with the adapter, and these servers.
pub(crate) struct Place {
    pub(crate) sandbox: Sandbox,
    pub(crate) file: PathBuf,
}

impl Place {
    pub(crate) fn with(servers: &Value) -> Self {
        let sandbox = Sandbox::new();
        let component = component();
        sandbox.grant("mcp", &component, "all = true");
        let file = sandbox.offered("adapter", &component, Some(MANIFEST));
        sandbox.settings(&json!({"pluginSettings": {"mcp": {"mcpServers": servers}}}));
        Self { sandbox, file }
    }

    /// With one server, `peer`, that has these options.
    pub(crate) fn of_peer(options: &[&str]) -> Self {
        Self::with(&json!({"peer": {"command": peer(), "args": options}}))
    }

    pub(crate) fn atoll(&self) -> Command {
        self.sandbox.atoll().arg("-e").arg(&self.file)
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.atoll().args(["tool", "call", tool, &arguments.to_string(), "--json"]).run().json()
    }

    /// What a script gives.
    pub(crate) fn script(&self, script: &str) -> String {
        let script = self.sandbox.file("script.js", script);
        self.atoll().args(["codemode", "run"]).arg(script).run().ok().stdout
    }

    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.sandbox.work().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}
