//! The smallest MCP server over standard input and output: its tools are in a file, and each gives back its own name and what
//! it was asked. It knows `initialize`, `tools/list`, `tools/call` and `ping`, and nothing else.
//!
//! `atoll-mcp-stub NAME TOOLS LOG`: what it calls itself, a file with a list of tools as the protocol has them or with the whole
//! answer to `tools/list`, and a file to which it appends each message that it gets.

#![allow(clippy::expect_used, reason = "a test sees it fail")]

use std::{
    fs::OpenOptions,
    io::{BufRead as _, Write as _},
};

use serde_json::{Value, json};

fn say(message: &Value) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(format!("{message}\n").as_bytes());
    let _ = out.flush();
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, tools, log] = arguments.as_slice() else { return };
    let tools: Value = serde_json::from_str(&std::fs::read_to_string(tools).expect("a file of tools")).expect("a list");
    let mut log = OpenOptions::new().create(true).append(true).open(log).expect("a file that can be written");
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let _ = writeln!(log, "{line}");
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let (id, params) = (&message["id"], &message["params"]);
        let result = match message["method"].as_str() {
            _ if id.is_null() => continue,
            Some("initialize") => json!({"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": name, "version": "1"}}),
            Some("tools/list") if tools.is_object() => tools.clone(),
            Some("tools/list") => json!({ "tools": tools }),
            Some("tools/call") => {
                let asked = params["arguments"].as_object().and_then(|all| all.values().next()).unwrap_or(&Value::Null);
                let asked = asked.as_str().map_or_else(|| asked.to_string(), str::to_owned);
                let text = format!("{}_{}:{asked}", name, params["name"].as_str().unwrap_or_default()).to_uppercase();
                json!({"content": [{"type": "text", "text": text}], "isError": false})
            }
            Some("ping") => json!({}),
            _ => {
                say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "not here"}}));
                continue;
            }
        };
        say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }
}
