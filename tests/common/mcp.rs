//! MCP servers as a user has them: in `mcp.json`.

use std::fs;

use serde_json::{Value, json};

use super::{Command, Sandbox};

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

/// A place with these servers.
pub(crate) struct Place {
    pub(crate) sandbox: Sandbox,
}

impl Place {
    pub(crate) fn with(servers: &Value) -> Self {
        let sandbox = Sandbox::new();
        sandbox.home_file("mcp.json", json!({"mcpServers": servers}).to_string());
        Self { sandbox }
    }

    /// With one server, `peer`, that has these options.
    pub(crate) fn of_peer(options: &[&str]) -> Self {
        Self::with(&json!({"peer": {"command": peer(), "args": options}}))
    }

    pub(crate) fn atoll(&self) -> Command {
        self.sandbox.atoll()
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
