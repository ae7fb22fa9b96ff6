//! Built-in extensions: when they are there, and how they give way.

use serde_json::{Value, json};

use crate::common::{Sandbox, plugins::test_plugin, puppets::manifest, text_of};

/// A tool that is not declared to the model.
fn hidden_tool() -> Value {
    json!({"tools": [{"name": "weather", "deferred": true}]})
}

/// A plugin with a tool of the name that a built-in extension has.
fn finder() -> Value {
    json!({"tools": [{"name": "tool_search", "steps": [{"describeHost": null}]}]})
}

impl Sandbox {
    /// The plugin that has a tool, and whether the tool is active; none if nobody has it.
    #[track_caller]
    fn holder(&self, tool: &str, options: &[&str]) -> Option<(String, bool)> {
        let run = self.atoll().args(["tool", "list", "--json"]).args(options).run().ok();
        let list = run.json();
        let entry =
            list.as_array().unwrap().iter().find(|entry| entry["name"] == tool && entry["exposure"] != "hidden")?;
        Some((entry["plugin"].as_str().unwrap().to_owned(), entry["active"].as_bool().unwrap()))
    }
}

#[test]
fn tools_that_are_not_declared_are_found_and_loaded_by_the_model() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.holder("tool_search", &[]), Some(("tool-search".to_owned(), false)), "there is nothing to find");
    let script = json!({"turns": [
        {"calls": [{"tool": "weather"}]},
        {"calls": [{"tool": "tool_search", "arguments": {"query": "nothing like it"}}]},
        {"calls": [{"tool": "tool_search", "arguments": {"query": "weather"}}]},
        {"calls": [{"tool": "weather"}, {"tool": "tool_search", "arguments": {"query": "weather"}}]},
        {"text": "done"}]});
    let names = sandbox.puppets(&[("sky", hidden_tool())]);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(sandbox.holder("tool_search", &names), Some(("tool-search".to_owned(), true)));
    sandbox.scripted(&script).args(&names).arg("go").run().ok().silent();
    let results = sandbox.results();
    let texts: Vec<String> = results.iter().map(|result| text_of(&result["content"])).collect();
    assert_eq!(results[0]["isError"], true, "it is not declared: {texts:?}");
    assert!(texts[1].starts_with("No other tool fits"), "{texts:?}");
    assert_eq!(
        texts[2],
        "Loaded 1 tool, to be called from your next message on:\n- weather: Does what the settings say."
    );
    assert_eq!(results[2]["details"]["loaded"], json!(["weather"]));
    assert_eq!(results[3]["isError"], false, "{texts:?}");
    assert!(texts[4].starts_with("No other tool fits"), "what is declared is not loaded again: {texts:?}");
}

#[test]
fn what_the_user_switched_off_is_not_found() {
    let sandbox = Sandbox::new();
    let script = json!({"turns": [
        {"calls": [{"tool": "tool_search", "arguments": {"query": "weather"}}]}, {"text": "done"}]});
    let names = sandbox.puppets(&[("sky", hidden_tool())]);
    sandbox.scripted(&script).args(&names).args(["--tools=-weather", "go"]).run().ok();
    assert!(text_of(&sandbox.results()[0]["content"]).starts_with("No other tool fits"));
}

#[test]
fn a_builtin_is_replaced_with_a_notice_and_comes_back() {
    let sandbox = Sandbox::new();
    sandbox.loose_puppet("finder");
    sandbox.grant_outward(&["finder"]);
    sandbox.direct(&[("finder", finder())]);
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    let notice = "atoll: the built-in tool-search is replaced by the plugin finder, which has the tool tool_search";
    assert_eq!(run.one_line(), notice);
    assert_eq!(sandbox.holder("tool_search", &[]), Some(("finder".to_owned(), true)));
    assert_eq!(sandbox.holder("finder__tool_search", &[]), None);
    // A command of the program calls what took over, and the one that took over is not stopped by what is about built-in ones.
    sandbox.settings(&json!({"pluginSettings": {"finder": finder()}, "extensions": ["-builtin:tool-search"]}));
    let run = sandbox.atoll().args(["tool", "call", "tool_search"]).run().ok().silent();
    assert!(run.stdout.contains("\"plugin\":\"finder\""), "{run:#?}");
    sandbox.direct(&[("finder", finder())]);
    sandbox.atoll().args(["plugin", "disable", "finder"]).run().ok();
    assert_eq!(sandbox.holder("tool_search", &[]), Some(("tool-search".to_owned(), false)));
}

#[test]
fn a_builtin_comes_back_when_what_replaced_it_ends_in_the_session() {
    let sandbox = Sandbox::new();
    sandbox.loose_puppet("finder");
    sandbox.loose_puppet("b");
    sandbox.grant_outward(&["finder", "b"]);
    let remove =
        json!({"call": {"tool": "bash", "arguments": {"command": "rm \"$ATOLL_HOME/extensions/finder.wasm\""}}});
    let b = json!({"commands": {"remove": [remove]}, "tools": [{"name": "weather", "deferred": true}]});
    sandbox.direct(&[("finder", finder()), ("b", b)]);
    let script = json!({"turns": [
        {"calls": [{"tool": "tool_search", "arguments": {"query": "weather"}}]}, {"text": "one"},
        {"calls": [{"tool": "tool_search", "arguments": {"query": "weather"}}]}, {"text": "two"}]});
    let run = sandbox.scripted(&script).args(["go", "/remove", "/reload", "go"]).run().ok();
    assert!(run.stderr.contains("ended: finder"), "{run:#?}");
    let texts: Vec<String> = sandbox.results().iter().map(|result| text_of(&result["content"])).collect();
    assert!(texts[0].contains("\"plugin\":\"finder\"") && texts[1].starts_with("Loaded 1 tool"), "{texts:?}");
}

#[test]
fn a_projects_plugin_replaces_no_built_in_extension() {
    let sandbox = Sandbox::new();
    sandbox.file(".atoll/extensions/finder.wasm", test_plugin("puppet"));
    sandbox.file(".atoll/extensions/finder.toml", manifest("finder"));
    let list = sandbox.atoll().args(["-a", "plugin", "list", "--json"]).run().json();
    let names = list.as_array().unwrap().iter().map(|plugin| plugin["name"].as_str().unwrap());
    let name = names.clone().find(|name| name.starts_with("finder-in-")).unwrap();
    sandbox.atoll().args(["-a", "plugin", "grant", name, "--all"]).run().ok();
    sandbox.direct(&[(name, finder())]);
    assert_eq!(sandbox.holder("tool_search", &["-a"]), Some(("tool-search".to_owned(), false)));
    assert!(sandbox.holder(&format!("{name}__tool_search"), &["-a"]).is_some());
}

#[test]
fn settings_and_options_leave_built_in_extensions_out() {
    let sandbox = Sandbox::new();
    let there = |options: &[&str]| sandbox.holder("tool_search", options).is_some();
    assert!(there(&[]) && there(&["--no-mcp"]));
    assert!(!there(&["-ne"]) && there(&["-ne", "-e", "builtin:tool-search"]));
    assert!(!there(&["-e", "-builtin:tool-search"]) && !there(&["--extension=-builtin:tool-search"]));
    sandbox.settings(&json!({"extensions": ["-builtin:tool-search", "-builtin:mcp"]}));
    assert!(!there(&[]) && there(&["-e", "builtin:tool-search"]));
    let list = sandbox.atoll().args(["plugin", "list", "--json"]).run().json();
    let row = list.as_array().unwrap().iter().find(|row| row["name"] == "tool-search").unwrap();
    assert_eq!(row["state"], "off");
    // A project may leave out, and not bring back what the user left out.
    sandbox.file(".atoll/settings.json", json!({"extensions": ["+builtin:tool-search"]}).to_string());
    assert!(!there(&["-a"]));
    sandbox.settings(&json!({}));
    sandbox.file(".atoll/settings.json", json!({"extensions": ["-builtin:tool-search"]}).to_string());
    assert!(!there(&["-a"]) && there(&["-na"]));
}

#[test]
fn a_name_that_no_built_in_extension_has_is_said() {
    let sandbox = Sandbox::new();
    for (name, says) in [("tool-serch", "tool-search"), ("mpc", "mcp"), ("read", "--tools")] {
        for sign in ["", "-"] {
            let run = sandbox.atoll().args(["tool", "list", "-e", &format!("{sign}builtin:{name}")]).run().code(1);
            assert!(run.one_line().contains(says), "{run:#?}");
        }
    }
    sandbox.settings(&json!({"extensions": ["-builtin:grep"]}));
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.one_line().contains("builtin:grep can not be switched"), "{run:#?}");
    sandbox.settings(&json!({"extensions": ["-builtin:mcp", "-builtin:codemode"]}));
    sandbox.atoll().args(["tool", "list", "--no-mcp"]).run().ok().silent();
}

#[test]
fn only_what_is_part_of_the_program_is_replaceable() {
    let sandbox = Sandbox::new();
    sandbox.loose_puppet("bold");
    sandbox.grant_outward(&["bold"]);
    let text = format!("replaceable = true\n{}\n[claims]\ntools = [\"bash\"]\n", manifest("bold"));
    sandbox.home_file("extensions/bold.toml", text);
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.one_line().contains("bold is left out") && run.one_line().contains("replaceable"), "{run:#?}");
}
