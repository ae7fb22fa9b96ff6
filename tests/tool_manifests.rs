//! What the built-in tools may do: as little as they can do their work with.

use serde_json::{Value, json};

use crate::common::Sandbox;

/// The manifest of a built-in tool.
fn manifest(name: &str) -> toml::Table {
    let path = crate::common::plugins::workspace_root().join(format!("guest-tools/{name}/plugin.toml"));
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

/// Its capabilities without the reasons.
fn wants(name: &str) -> Value {
    let known = ["name", "version", "description", "contract", "limits", "runs-scripts", "replaceable", "claims"];
    let mut wants = serde_json::to_value(manifest(name)).unwrap();
    let wants = wants.as_object_mut().unwrap();
    wants.retain(|key, _| !known.contains(&key.as_str()));
    for list in wants.values_mut() {
        let all: Vec<&mut Value> = match list {
            Value::Array(all) => all.iter_mut().collect(),
            one => vec![one],
        };
        for one in all {
            let reason = one.as_object_mut().unwrap().remove("reason");
            assert!(reason.is_some(), "{name}: a capability without a reason");
        }
    }
    Value::Object(wants.clone())
}

#[test]
fn each_tool_asks_for_the_least() {
    let write = json!({"files": [{"root": "$workspace", "access": "read-write"}]});
    let read_more = json!({"files": [
        {"root": "$workspace", "access": "read"},
        {"root": "$skills", "access": "read"},
        {"root": "$spill", "access": "read"},
    ]});
    for (name, expected) in [
        ("read", &read_more),
        ("grep", &read_more),
        ("find", &read_more),
        ("ls", &read_more),
        ("edit", &write),
        ("write", &write),
        ("bash", &json!({"process": [{"program": "*"}]})),
        ("tool-search", &json!({"table": {}})),
        ("codemode", &json!({"table": {}})),
    ] {
        assert_eq!(wants(name), *expected, "{name}");
    }
}

#[test]
fn every_tool_that_reads_reaches_skills_and_what_was_too_long_for_its_call() {
    let sandbox = Sandbox::new();
    let record = sandbox.call("bash", &json!({"command": "seq 1 200000"}));
    let kept = record["structuredContent"]["full_output_path"].as_str().unwrap().to_owned();
    let (folder, name) = kept.rsplit_once('/').unwrap();
    let found = sandbox.good_call("grep", &json!({"pattern": "^123456$", "path": kept}));
    assert!(found.contains("123456"), "{found}");
    assert!(sandbox.good_call("find", &json!({"pattern": name, "path": folder})).contains(name));
    assert!(sandbox.good_call("ls", &json!({"path": folder})).contains(name));
    // Skills of the directory above, which are no part of the workspace.
    let parent = sandbox.root().join(".agents/skills/stars");
    std::fs::create_dir_all(&parent).unwrap();
    std::fs::write(parent.join("SKILL.md"), "When the sky is clear.\n").unwrap();
    let call = |tool: &str, arguments: Value| {
        sandbox.atoll().args(["-a", "tool", "call", tool, &arguments.to_string()]).run().ok().stdout
    };
    assert!(call("grep", json!({"pattern": "sky", "path": parent})).contains("clear"));
    assert!(call("ls", json!({"path": parent})).contains("SKILL.md"));
    assert!(call("find", json!({"pattern": "*.md", "path": parent})).contains("SKILL.md"));
}

#[test]
fn the_tools_that_may_only_read_leave_everything_as_it_was() {
    let sandbox = Sandbox::new();
    sandbox.file("a/b.txt", "text\n");
    let facts = |sandbox: &Sandbox| {
        let mut all = Vec::new();
        let mut folders = vec![sandbox.work()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                let facts = entry.metadata().unwrap();
                all.push((entry.path(), facts.len(), facts.modified().unwrap()));
                if facts.is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        all.sort();
        all
    };
    let before = facts(&sandbox);
    for (tool, arguments) in [
        ("read", json!({"path": "a/b.txt"})),
        ("grep", json!({"pattern": "text"})),
        ("find", json!({"pattern": "*"})),
        ("ls", json!({"path": "a"})),
    ] {
        sandbox.good_call(tool, &arguments);
    }
    assert_eq!(facts(&sandbox), before);
}

#[test]
fn the_tools_say_whether_they_change_anything() {
    let sandbox = Sandbox::new();
    let tools = sandbox.atoll().args(["tool", "list", "--json"]).run().json();
    let text = tools.to_string();
    for name in ["read", "write", "edit", "bash", "grep", "find", "ls"] {
        assert!(text.contains(&format!("\"name\":\"{name}\"")), "{name}: {tools:#}");
    }
    let list = tools.as_array().cloned().unwrap_or_else(|| tools["tools"].as_array().unwrap().clone());
    for tool in list {
        let name = tool["name"].as_str().unwrap();
        let read_only = matches!(name, "read" | "grep" | "find" | "ls");
        if read_only {
            assert_eq!(tool["annotations"]["readOnlyHint"], json!(true), "{tool:#}");
        } else if matches!(name, "write" | "edit" | "bash") {
            assert_ne!(tool["annotations"]["readOnlyHint"], json!(true), "{tool:#}");
        }
    }
}
