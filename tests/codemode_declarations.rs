//! What a model is told of the tools that scripts can call.

use serde_json::{Value, json};

use crate::{codemode_command::with_interpreter, common::Sandbox};

/// Every tool that the session's instructions declare, with its description, in order.
fn declared(sandbox: &Sandbox) -> Vec<(String, String)> {
    let added = |message: &Value| message["toolsAdded"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let tools: Vec<Value> = sandbox.messages().iter().flat_map(added).collect();
    tools.iter().map(|tool| (text(&tool["name"]), text(&tool["description"]))).collect()
}

fn description(declared: &[(String, String)], name: &str) -> Option<String> {
    declared.iter().rfind(|(known, _)| known == name).map(|(_, text)| text.clone())
}

fn done() -> Value {
    json!({"turns": [{"text": "done"}]})
}

#[test]
fn where_a_tool_runs_scripts_the_others_say_how_scripts_call_them() {
    let sandbox = with_interpreter();
    sandbox.scripted(&done()).arg("go").run().ok();
    let declared = declared(&sandbox);
    let write = description(&declared, "write").unwrap();
    assert!(write.contains("In scripts: `tools.write(args)` gives "), "{write}");
    let own = description(&declared, "interpret").unwrap();
    assert!(!own.contains("In scripts"), "{own}");
    // Without one they say nothing of it.
    let sandbox = Sandbox::new();
    sandbox.scripted(&done()).arg("go").run().ok();
    let plain = self::declared(&sandbox);
    assert!(plain.iter().all(|(_, text)| !text.contains("In scripts:")), "{plain:?}");
}

#[test]
fn with_only_scripts_everything_else_is_listed_and_can_be_called() {
    let sandbox = with_interpreter();
    sandbox.settings(&json!({"codemode": {"mode": "only"}}));
    let script = json!({"turns": [
        {"calls": [{"tool": "interpret", "arguments": {"code": "call pause {\"milliseconds\": 0}"}}]}, {"text": "done"}]});
    sandbox.scripted(&script).arg("go").run().ok();
    let declared = declared(&sandbox);
    let names: Vec<&str> = declared.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["interpret"], "the rest is reached by scripts");
    let list = description(&declared, "interpret").unwrap();
    assert!(list.contains("interface Tools {") && list.contains("  read(args: {"), "{list}");
    assert!(!list.contains("interpret("), "{list}");
    assert_eq!(sandbox.results()[0]["isError"], json!(false));
    // With no room for them, they are counted.
    let sandbox = with_interpreter();
    sandbox.settings(&json!({"codemode": {"mode": "only", "inlineBudget": 0}}));
    sandbox.scripted(&done()).arg("go").run().ok();
    let list = description(&self::declared(&sandbox), "interpret").unwrap();
    assert!(list.contains("tools can be called; find them with searchTools") && !list.contains("read("), "{list}");
}
