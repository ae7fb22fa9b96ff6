//! An adapter for MCP servers that somebody else wrote, of a page: `tests/plugins/fixed-servers`.

use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Command, Sandbox, mcp::peer, plugins::test_plugin, text_of};

const MANIFEST: &str = include_str!("plugins/fixed-servers/plugin.toml");

/// A place with it, where its servers are found by their name. The user has a server of that kind, too.
struct Place {
    sandbox: Sandbox,
    file: std::path::PathBuf,
}

impl Place {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let component = test_plugin("fixed_servers");
        sandbox.grant("fixed-servers", &component, "all = true");
        let file = sandbox.offered("adapter", &component, Some(MANIFEST));
        sandbox.home_file("mcp.json", json!({"mcpServers": {"mine": {"command": peer()}}}).to_string());
        Self { sandbox, file }
    }

    fn equipped(&self, command: Command) -> Command {
        let folder = Path::new(env!("CARGO_BIN_EXE_atoll-mcp-peer")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", folder.display()))
    }

    fn atoll(&self) -> Command {
        self.equipped(self.sandbox.atoll()).arg("-e").arg(&self.file)
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.atoll().args(["tool", "call", tool, &arguments.to_string(), "--json"]).run().json()
    }
}

/// The tools of the table that these plugins have, by how many there are.
fn count(table: &Value, plugin: &str) -> usize {
    table.as_array().unwrap().iter().filter(|tool| tool["plugin"] == plugin).count()
}

#[test]
fn its_tools_are_in_the_table_and_are_called_like_others() {
    let place = Place::new();
    let listed = place.atoll().args(["tool", "list", "--json"]).run();
    let table = listed.json();
    assert_eq!((count(&table, "fixed-servers"), count(&table, "mcp")), (18, 0), "nine of each server: {listed:#?}");
    assert!(listed.stderr.contains("the built-in mcp is replaced by the plugin fixed-servers"), "{listed:#?}");
    let record = place.call("one_add", &json!({"a": 20, "b": 22}));
    assert_eq!((text_of(&record["content"]).as_str(), &record["isError"]), ("42", &json!(false)), "{record:#}");
    assert_eq!(record["structuredContent"]["structuredContent"]["sum"], 42.0, "{record:#}");
    let record = place.call("two_fail", &json!({}));
    assert_eq!((text_of(&record["content"]).as_str(), &record["isError"]), ("it does not work", &json!(true)));
    let record = place.call("one_crash", &json!({}));
    assert!(text_of(&record["content"]).contains("The server has ended"), "{record:#}");
    // Arguments that do not fit are not sent, as with any tool.
    let record = place.call("one_add", &json!({"a": "x"}));
    assert_eq!(record["isError"], true, "{record:#}");
}

#[test]
fn a_model_and_scripts_call_them() {
    let place = Place::new();
    let turns = json!([
        {"calls": [{"tool": "two_echo", "arguments": {"value": "from the model"}}]},
        {"text": "done"},
    ]);
    let run = place.sandbox.scripted(&json!({"turns": turns}));
    place.equipped(run).arg("-e").arg(&place.file).arg("go").run().ok();
    assert_eq!(text_of(&place.sandbox.results()[0]["content"]), "from the model");
    let script = place.sandbox.file(
        "s.js",
        "const all = await Promise.all([1, 2, 3].map((n) => tools.one_echo({value: `v${n}`})));
         return all.map((result) => result.content?.[0].text ?? result).join();",
    );
    assert_eq!(place.atoll().args(["codemode", "run"]).arg(script).run().ok().stdout.trim(), "v1,v2,v3");
}
