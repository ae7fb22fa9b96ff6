//! What connects to MCP servers as a built-in extension: when it runs, and how it gives way and comes back.

use serde_json::{Value, json};

use crate::common::{
    Sandbox,
    mcp::{Place, peer},
    text_of,
};

/// The tools of MCP servers that are in the table.
fn tools(sandbox: &Sandbox, options: &[&str]) -> Vec<String> {
    let list = sandbox.atoll().args(["tool", "list", "--json"]).args(options).run().ok().json();
    let names = list.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
    names.filter(|name| name.starts_with("mcp__")).collect()
}

/// Whether it was loaded in a run that logs what it loads.
fn is_loaded(sandbox: &Sandbox, line: &[&str]) -> bool {
    let run = sandbox.atoll().env("ATOLL_LOG", "atoll_engine=debug").args(line).run();
    run.stderr.lines().any(|line| line.contains("loading the component") && line.contains("\"mcp\""))
}

#[test]
fn it_is_loaded_where_there_is_a_file_for_it_and_not_elsewhere() {
    let sandbox = Sandbox::new();
    assert!(!is_loaded(&sandbox, &["tool", "list"]), "there is nothing for it to do");
    sandbox.file(".atoll/mcp.json", json!({"mcpServers": {"peer": {"command": peer()}}}).to_string());
    assert!(!is_loaded(&sandbox, &["-na", "tool", "list"]), "the project is not trusted");
    assert!(is_loaded(&sandbox, &["-a", "tool", "list"]));
    assert!(tools(&sandbox, &["-a"]).contains(&"mcp__peer__echo".to_owned()));
    let sandbox = Sandbox::new();
    sandbox.home_file("mcp.json", "{}");
    assert!(is_loaded(&sandbox, &["tool", "list"]));
}

#[test]
fn it_is_left_out_when_the_user_says_so() {
    let place = Place::of_peer(&["--pid", "pids"]);
    let sandbox = &place.sandbox;
    for options in [&["--no-mcp"][..], &["-ne"], &["-e", "-builtin:mcp"]] {
        assert!(tools(sandbox, options).is_empty(), "{options:?}");
    }
    sandbox.settings(&json!({"extensions": ["-builtin:mcp"]}));
    assert!(tools(sandbox, &[]).is_empty());
    assert!(place.lines("pids").is_empty(), "nothing was started");
    assert!(!tools(sandbox, &["-e", "builtin:mcp"]).is_empty());
    let run = sandbox.atoll().args(["mcp", "list"]).run().code(1);
    assert!(run.one_line().contains("is switched off"), "{run:#?}");
}

#[test]
fn it_gives_way_to_who_answers_for_servers_and_comes_back_in_the_session() {
    let place = Place::of_peer(&["--pid", "pids"]);
    let sandbox = &place.sandbox;
    sandbox.loose_puppet("adapter");
    sandbox.loose_puppet("b");
    sandbox.grant_outward(&["adapter", "b"]);
    let remove =
        json!({"call": {"tool": "bash", "arguments": {"command": "rm \"$ATOLL_HOME/extensions/adapter.wasm\""}}});
    let adapter = json!({"events": ["mcp-servers-change"]});
    sandbox.direct(&[("adapter", adapter), ("b", json!({"commands": {"remove": [remove]}}))]);
    let code = "return (await tools.mcp__peer__echo({value: 'present'})).content[0].text";
    let call = json!({"calls": [{"tool": "codemode", "arguments": {"code": code}}]});
    let script = json!({"turns": [call, {"text": "one"}, call, {"text": "two"}]});
    let run = sandbox.scripted(&script).args(["--tools=+codemode", "go", "/remove", "/reload", "go"]).run().ok();
    let notice = "the built-in mcp is replaced by the plugin adapter, which has a handler of mcp-servers-change";
    assert!(run.stderr.contains(notice), "{run:#?}");
    let texts: Vec<String> = sandbox.results().iter().map(|result| text_of(&result["content"])).collect();
    assert!(texts[0].starts_with("Failed") && texts[1].starts_with("Completed"), "{texts:?}");
    assert_eq!(place.lines("pids").len(), 1, "it was started once, when it came back");
}

#[test]
fn what_other_extensions_add_is_connected_to_and_goes_with_them() {
    let sandbox = Sandbox::new();
    sandbox.loose_puppet("adds");
    sandbox.grant_outward(&["adds"]);
    let server = |name: &str, config: Value| json!({"server": {"name": name, "config": config}});
    // It may start a shell itself, and so it may have one started; and no other program.
    let own = server("own", json!({"command": "sh", "args": ["-c", format!("exec {} --pid pids", peer())]}));
    let other = server("other", json!({"command": peer(), "args": ["--pid", "others"]}));
    let drop = json!([{"dropServer": "own"}]);
    sandbox.direct(&[("adds", json!({"start": [own, other], "commands": {"drop": drop}}))]);
    let call = |server: &str| {
        let code = format!("return (await tools.mcp__{server}__echo({{value: 'present'}})).content[0].text");
        json!({"calls": [{"tool": "codemode", "arguments": {"code": code}}]})
    };
    let script = json!({"turns": [call("own"), call("other"), {"text": "1"}, call("own"), {"text": "2"}]});
    sandbox.scripted(&script).args(["--tools=+codemode", "go", "/drop", "go"]).run().ok();
    let texts: Vec<String> = sandbox.results().iter().map(|result| text_of(&result["content"])).collect();
    let there: Vec<bool> = texts.iter().map(|text| text.starts_with("Completed")).collect();
    assert_eq!(there, [true, false, false], "{texts:#?}");
    assert!(!sandbox.work().join("others").exists(), "it was not started");
}

#[test]
fn a_changed_file_counts_after_a_reload() {
    let place = Place::with(&json!({"one": {"command": peer()}}));
    let sandbox = &place.sandbox;
    let text = json!({"mcpServers": {"two": {"command": peer()}}}).to_string();
    let change = json!({"call": {"tool": "write", "arguments": {"path": "new.json", "content": text}}});
    let copy = json!({"call": {"tool": "bash", "arguments": {"command": "cp new.json \"$ATOLL_HOME/mcp.json\""}}});
    sandbox.loose_puppet("b");
    sandbox.grant_outward(&["b"]);
    sandbox.direct(&[("b", json!({"commands": {"change": [change, copy]}}))]);
    let call = |server: &str| {
        let code = format!("return (await tools.mcp__{server}__echo({{value: 'present'}})).content[0].text");
        json!({"calls": [{"tool": "codemode", "arguments": {"code": code}}]})
    };
    let script = json!({"turns": [call("one"), {"text": "1"}, call("two"), call("one"), {"text": "2"}]});
    sandbox.scripted(&script).args(["go", "/change", "/reload", "go"]).run().ok();
    let texts: Vec<String> = sandbox.results().iter().map(|result| text_of(&result["content"])).collect();
    let there: Vec<bool> = texts.iter().map(|text| text.starts_with("Completed")).collect();
    assert_eq!(there, [true, true, false], "{texts:#?}");
}

#[test]
fn in_a_session_the_command_shows_what_there_is() {
    let sandbox = Sandbox::new();
    let script = json!({"turns": []});
    let run = sandbox.scripted(&script).args(["/mcp"]).run().ok();
    assert!(run.stdout.starts_with("There are no MCP servers."), "{run:#?}");
    let place = Place::with(
        &json!({"peer": {"command": peer(), "exposure": "direct"}, "off": {"command": "x", "enabled": false}}),
    );
    let run = place.sandbox.scripted(&json!({"turns": [{"text": "hello"}]})).args(["go", "/mcp"]).run().ok();
    assert!(run.stdout.contains("peer  connected, ") && run.stdout.contains("off   off"), "{run:#?}");
    let list: Value = place.atoll().args(["plugin", "list", "--json"]).run().ok().json();
    assert!(list.as_array().unwrap().iter().any(|row| row["name"] == "mcp" && row["state"] != "off"), "{list:#}");
}
