//! `mcp.json`, as people have it: what counts, what is said of it, and where values come from.

use serde_json::{Value, json};

use crate::common::{
    Sandbox,
    mcp::{Place, peer},
    text_of,
};

/// What `atoll mcp list --json` says of a file, without what is the test's own.
fn listed(sandbox: &Sandbox, text: &str) -> Value {
    sandbox.home_file("mcp.json", text);
    let run = sandbox.atoll().args(["mcp", "list", "--json"]).run();
    let text = run.stdout.replace(&sandbox.atoll_home().display().to_string(), "~/.atoll").replace(&peer(), "PEER");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {run:#?}"))
}

#[test]
fn shapes_of_other_programs_are_understood_or_refused_with_the_way_out() {
    let sandbox = Sandbox::new();
    let off = |entry: Value| {
        let mut entry = entry;
        entry["enabled"] = json!(false);
        entry
    };
    let servers = json!({
        "words": off(json!({"type": "local", "command": [peer(), "--junk"]})),
        "camel": off(json!({"type": "streamableHttp", "url": "http://127.0.0.1:3401/mcp", "autoApprove": []})),
        "transport": off(json!({"transport": "stdio", "command": peer()})),
        "headers": off(json!({"url": "http://127.0.0.1:3401/mcp", "headers": {"Authorization": "Bearer ${env:SCOUT}"}})),
        "numbers": off(json!({"command": peer(), "env": {"PORT": 3000, "DEBUG": true}})),
        "disabled": {"command": peer(), "disabled": true},
        "lists": off(json!({"command": peer(), "autoApprove": ["x"], "alwaysAllow": ["y"], "timeout": 60, "description": "d"})),
        "input": off(json!({"command": peer(), "env": {"K": "${input:k}"}})),
        "empty": {},
        "My Server v1.2": {"command": peer()},
        "one-text": {"command": peer(), "args": "x.js"},
        "exposed": off(json!({"command": peer(), "exposure": "direct", "toolExposure": {"delete_*": "hidden"}})),
    });
    let shown = listed(&sandbox, &json!({"mcpServers": servers}).to_string());
    insta::assert_json_snapshot!(shown);
}

#[test]
fn whole_files_that_are_no_file_of_ours_are_said_to_be_none() {
    let sandbox = Sandbox::new();
    let files = [
        r#"{"inputs": [], "servers": {"a": {"type": "stdio", "command": "node"}}}"#,
        r#"{"a": {"command": "node"}}"#,
        r#"{"mcp": {"a": {"type": "remote", "url": "http://x/mcp"}}}"#,
        r#"{"settings": {"directTools": false}}"#,
        r#"{"mcpServers": {"a": {"command": "#,
        "\u{feff}{\n  // mine\n  \"mcpServers\": {},\n}",
        "",
    ];
    let shown: Vec<Value> = files.iter().map(|text| listed(&sandbox, text)["errors"].clone()).collect();
    insta::assert_json_snapshot!(shown);
}

#[test]
fn a_projects_file_changes_and_adds_where_it_is_trusted() {
    let place = Place::with(&json!({"mine": {"command": peer()}, "kept": {"command": peer(), "enabled": false}}));
    let sandbox = &place.sandbox;
    let project = json!({"mcpServers": {
        "mine": {"enabled": false},
        "theirs": {"command": peer()},
        "kept": {"env": {"A": "b"}},
        "sly": {"url": "https://x/mcp", "auth": {"provider": "openai"}},
    }});
    sandbox.file(".atoll/mcp.json", project.to_string());
    let rows = |options: &[&str]| {
        let list = sandbox.atoll().args(options).args(["mcp", "list", "--json"]).run().json();
        let row = |row: &Value| {
            (
                row["name"].as_str().unwrap().to_owned(),
                row["scope"].as_str().unwrap().to_owned(),
                row["enabled"] == true,
            )
        };
        let mut rows: Vec<_> = list["servers"].as_array().unwrap().iter().map(row).collect();
        rows.sort();
        (rows, list["errors"].as_array().unwrap().len())
    };
    let row = |name: &str, scope: &str, on| (name.to_owned(), scope.to_owned(), on);
    assert_eq!(rows(&["-na"]), (vec![row("kept", "user", false), row("mine", "user", true)], 0));
    let trusted = vec![row("kept", "user", false), row("mine", "user", false), row("theirs", "project", true)];
    assert_eq!(
        rows(&["-a"]),
        (trusted, 2),
        "an override changes three fields only, and credentials are the user's to give"
    );
}

#[test]
fn values_come_from_the_environment_and_from_commands_and_are_named_when_they_do_not() {
    let env = json!({
        "PLAIN": "a$$b", "NAMED": "x${FROM_OUTSIDE}y", "OTHERS": "${env:FROM_OUTSIDE}", "DEFAULT": "${NOT_THERE:-fallback}",
        "PRINTED": "!printf printed", "NUMBER": 3, "PATH": "/of/its/own",
    });
    let place = Place::with(
        &json!({"peer": {"command": peer(), "env": env}, "lacks": {"command": peer(), "env": {"A": "${NOT_THERE}"}}}),
    );
    let variable = |name: &str| {
        let arguments = json!({"name": name}).to_string();
        let run =
            place.atoll().env("FROM_OUTSIDE", "outside").args(["tool", "call", "mcp__peer__variable", &arguments]);
        run.run().ok().stdout.trim_end().to_owned()
    };
    assert_eq!(variable("PATH"), "/of/its/own");
    let got = ["PLAIN", "OTHERS", "DEFAULT", "PRINTED", "NUMBER"].map(variable);
    // What was filled in is a secret: it is taken out of what is said.
    assert_eq!((got[0].as_str(), got[4].as_str()), ("a$b", "3"));
    for secret in &got[1..4] {
        assert!(!secret.is_empty() && secret != "${env:FROM_OUTSIDE}", "{got:?}");
    }
    let run = place.atoll().args(["mcp", "test", "lacks"]).run().code(1);
    assert!(run.stdout.contains("env.A") && run.stdout.contains("NOT_THERE"), "{run:#?}");
}

#[test]
fn what_is_wrong_is_said_at_the_beginning_and_costs_no_other_server() {
    let place = Place::with(
        &json!({"good": {"command": peer(), "exposure": "direct"}, "wrong": {"command": peer(), "exposur": "all"}}),
    );
    let turns = json!([{"calls": [{"tool": "mcp__good__echo", "arguments": {"value": "there"}}]}, {"text": "done"}]);
    let run = place.sandbox.scripted(&json!({"turns": turns})).arg("go").run().ok();
    let said: Vec<&str> = run.stderr.lines().filter(|line| line.contains("server \"wrong\"")).collect();
    assert_eq!(said.len(), 1, "{run:#?}");
    assert!(said[0].contains("mcp.json") && said[0].contains("exposure"), "{run:#?}");
    assert_eq!(text_of(&place.sandbox.results()[0]["content"]), "there");
}
