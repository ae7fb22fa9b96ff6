//! Tools that call tools: the same rules for them as for everybody else, and a record of what they did.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{Sandbox, json_lines, plugins::test_plugin, processes::until, text_of};

const NEST_TOML: &str = include_str!("plugins/nest/plugin.toml");

fn with_nest(manifest: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let component = test_plugin("nest");
    sandbox.plugin("nest", &component, Some(manifest));
    sandbox.grant("nest", &component, "all = true");
    sandbox
}

/// What `nest` says of each of its calls.
fn answers(record: &Value) -> Vec<Value> {
    assert_eq!(record["isError"], false, "{record:#}");
    serde_json::from_str(&text_of(&record["content"])).unwrap()
}

#[test]
fn a_tool_calls_another_through_the_same_checks_and_leaves_a_record() {
    let sandbox = with_nest(NEST_TOML);
    sandbox.file("a.txt", "alpha\n");
    let record = sandbox.call("nest", &json!({"tool": "read", "arguments": {"path": "a.txt", "limit": "1"}}));
    assert_eq!(answers(&record), [json!({"text": "alpha\n", "isError": false})]);
    let calls = &record["nestedCalls"];
    assert_eq!((&calls["complete"], &calls["calls"][0]["id"]), (&json!(true), &json!("call-1/1")));
    let record = sandbox.call("nest", &json!({"tool": "read", "arguments": {}}));
    let refused = &answers(&record)[0];
    assert_eq!(refused["code"], "invalid-arguments");
    assert!(refused["message"].as_str().unwrap().contains("path"), "{refused}");
    assert_eq!(record["nestedCalls"]["calls"][0]["status"], "error");
}

#[test]
fn nested_calls_have_no_more_rights_than_the_tool_they_call() {
    let sandbox = with_nest(NEST_TOML);
    let outside = sandbox.home_file("settings.json", "{}");
    let record = sandbox.call("nest", &json!({"tool": "read", "arguments": {"path": outside}}));
    assert_eq!(answers(&record)[0]["code"], "denied");
}

#[test]
fn nested_calls_run_beside_each_other_and_more_of_them_than_there_is_room_for_all_get_an_answer() {
    let sandbox = with_nest(NEST_TOML);
    sandbox.file("a.txt", "alpha\n");
    let record = sandbox.call("nest", &json!({"tool": "read", "arguments": {"path": "a.txt"}, "times": 600}));
    let answers = answers(&record);
    assert_eq!(answers.len(), 600);
    assert!(answers.iter().all(|answer| answer["text"] == "alpha\n"), "{answers:?}");
    let calls = &record["nestedCalls"];
    assert_eq!((calls["calls"].as_array().unwrap().len(), &calls["complete"]), (256, &json!(false)));
}

#[test]
fn calls_nest_as_deep_as_their_limit_and_its_name_is_said() {
    for (manifest, deepest) in [(NEST_TOML.to_owned(), 8), (format!("{NEST_TOML}\n[limits]\nnesting = 2\n"), 2)] {
        let sandbox = with_nest(&manifest);
        let mut arguments = json!({"tool": "ls", "arguments": {}});
        // One call is the outermost, so this is one too many.
        for _ in 0..deepest {
            arguments = json!({"tool": "nest", "arguments": arguments});
        }
        let record = sandbox.call("nest", &arguments);
        let text = text_of(&record["content"]);
        assert!(text.contains("nesting") && text.contains(&deepest.to_string()), "{text}");
        assert_eq!(record["nestedCalls"]["calls"].as_array().unwrap().len(), deepest);
        assert_eq!(sandbox.good_call("bash", &json!({"command": "echo fine"})), "fine\n");
    }
}

/// Calls made beside each other used to get their numbers in the order in which the machine came to them.
#[test]
fn calls_have_their_numbers_in_the_order_in_which_they_were_made() {
    let sandbox = with_nest(NEST_TOML);
    let record =
        sandbox.call("nest", &json!({"tool": "pause", "arguments": {"milliseconds": 0}, "times": 200, "number": true}));
    let calls = record["nestedCalls"]["calls"].as_array().unwrap();
    let numbers: Vec<(String, u64)> = (calls.iter())
        .map(|call| (call["id"].as_str().unwrap().to_owned(), call["arguments"]["number"].as_u64().unwrap()))
        .collect();
    let expected: Vec<(String, u64)> = (0..200).map(|number| (format!("call-1/{}", number + 1), number)).collect();
    assert_eq!(numbers, expected);
}

/// A tool that calls itself without end stops at the limit, many at once too, and nobody waits for ever.
#[test]
fn calls_that_wait_for_calls_do_not_wait_for_each_other_for_ever() {
    let sandbox = with_nest(NEST_TOML);
    sandbox.file("a.txt", "alpha\n");
    let inner = json!({"tool": "nest", "times": 3, "arguments": {"tool": "read", "arguments": {"path": "a.txt"}}});
    let record = sandbox.call("nest", &json!({"tool": "nest", "times": 400, "arguments": inner}));
    assert_eq!(answers(&record).len(), 400);
}

#[test]
fn a_plugin_without_the_grant_does_not_reach_the_table() {
    let sandbox = Sandbox::new();
    sandbox.plugin("nest", &test_plugin("nest"), Some(NEST_TOML));
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.one_line().contains("atoll plugin grant nest --table"), "{run:#?}");
    assert!(!run.stdout.contains("nest"), "{run:#?}");
}

#[test]
fn switching_a_tool_off_holds_for_nested_calls() {
    let sandbox = with_nest(NEST_TOML);
    sandbox.settings(&json!({"defaultTools": ["-bash"]}));
    let record = sandbox.call("nest", &json!({"tool": "bash", "arguments": {"command": "echo no"}}));
    assert_eq!(answers(&record)[0]["code"], "not-found");
    // Nor does a plugin that may change the table switch it on, be it switched off by a change or left out of a list.
    for off in [json!(["-bash"]), json!(["read", "nest", "change_table"])] {
        let sandbox = with_nest(NEST_TOML);
        sandbox.settings(&json!({"defaultTools": off}));
        let script = json!({"turns": [
            {"calls": [{"tool": "change_table", "arguments": {"activate": "bash"}}]},
            {"calls": [{"tool": "nest", "arguments": {"tool": "bash", "arguments": {"command": "touch ran"}}}]},
            {"calls": [{"tool": "change_table", "arguments": {"activate": "find"}}]},
            {"text": "done"}]});
        sandbox.scripted(&script).arg("go").run().ok();
        let results = sandbox.results();
        let refusal = text_of(&results[0]["content"]);
        assert!(refusal.contains("bash, which the user has switched off"), "{off}: {refusal}");
        assert_eq!(answers(&results[1])[0]["code"], "not-found", "{off}");
        assert!(!sandbox.work().join("ran").exists(), "{off}");
        assert_eq!(results[2]["isError"], false, "{off}: {:#}", results[2]);
    }
}

#[test]
fn a_plugin_looks_at_the_table_and_changes_it_and_cannot_pose_as_another_call() {
    let sandbox = with_nest(NEST_TOML);
    let found = sandbox.good_call("change_table", &json!({"activate": "grep", "search": "regular expression"}));
    assert_eq!(found.lines().next(), Some("grep"));
    let shape = sandbox.good_call("change_table", &json!({"describe": "bash"}));
    assert!(shape.contains("command: string"), "{shape}");
    let error = sandbox.bad_call("change_table", &json!({"as_call": "call-0"}));
    assert!(error.contains("no call `call-0` of this plugin is running"), "{error}");
    let error = sandbox.bad_call("change_table", &json!({"withdraw": "read"}));
    assert!(error.contains("the plugin nest has no tool `read`"), "{error}");
}

#[test]
fn a_plugin_can_not_add_more_tools_than_it_may_have() {
    let sandbox = with_nest(&format!("{NEST_TOML}\n[limits]\ntools = 7\n"));
    sandbox.good_call("change_table", &json!({"add": ["a", "b"]}));
    let error = sandbox.bad_call("change_table", &json!({"add": ["a", "b", "c"]}));
    assert!(error.contains("limit tools (7)"), "{error}");
}

#[test]
fn a_run_declares_what_was_activated_after_what_was_declared_before() {
    let sandbox = with_nest(NEST_TOML);
    let script = json!({"turns": [
        {"calls": [{"tool": "change_table", "arguments": {"activate": "find", "deactivate": "write"}}]},
        {"calls": [{"tool": "find", "arguments": {"pattern": "*.txt"}}]},
        {"calls": [{"tool": "write", "arguments": {"path": "x", "content": "x"}}]},
        {"text": "done"}]});
    sandbox.file("a.txt", "alpha\n");
    sandbox.scripted(&script).arg("go").run().ok();
    let results = sandbox.results();
    assert_eq!(text_of(&results[1]["content"]), "a.txt");
    assert_eq!(results[2]["isError"], true);
}

#[test]
fn events_and_the_session_tell_of_nested_calls() {
    let sandbox = with_nest(NEST_TOML);
    sandbox.file("a.txt", "alpha\n");
    let script = json!({"turns": [
        {"calls": [{"tool": "nest", "arguments": {"tool": "read", "arguments": {"path": "a.txt"}}}]},
        {"text": "done"}]});
    let run = sandbox.scripted(&script).args(["--mode", "json", "go"]).run().ok();
    let events = json_lines(&run.stdout);
    let nested: Vec<&Value> = events.iter().filter(|event| !event["parentToolCallId"].is_null()).collect();
    let kinds: Vec<&str> = nested.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["tool_execution_start", "tool_execution_end"]);
    let id = nested[0]["parentToolCallId"].as_str().unwrap();
    assert_eq!(nested[0]["toolCallId"], format!("{id}/1"));
    let result = &sandbox.results()[0];
    assert_eq!(result["nestedCalls"]["calls"][0]["name"], "read");
    assert_eq!(sandbox.results().len(), 1, "a nested call is no message");
}

#[test]
fn stopping_a_run_stops_what_nested_calls_started() {
    let sandbox = with_nest(NEST_TOML);
    let script = json!({"turns": [
        {"calls": [{"tool": "nest", "arguments": {"tool": "bash", "arguments": {"command": "echo $$; exec sleep 987"}}}]},
        {"text": "never"}]});
    let running = sandbox.scripted(&script).args(["--mode", "json", "go"]).start();
    running.wait_for_output("tool_execution_update");
    running.signal(Signal::INT);
    running.wait().code(130);
    let record = &sandbox.results()[0]["nestedCalls"];
    assert_eq!((&record["calls"][0]["status"], &record["complete"]), (&json!("unfinished"), &json!(false)));
    let marker = sandbox.root().to_string_lossy().into_owned();
    let is_ours = |process: std::fs::DirEntry| {
        let environ = std::fs::read(process.path().join("environ")).unwrap_or_default();
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        line.starts_with(b"sleep\x00987") && String::from_utf8_lossy(&environ).contains(&marker)
    };
    until("the command has ended", || (!std::fs::read_dir("/proc").unwrap().flatten().any(is_ours)).then_some(()));
}

#[test]
fn two_plugins_of_one_tool_name_are_both_reachable_and_the_bare_name_is_ambiguous() {
    let sandbox = Sandbox::new();
    for name in ["one", "two"] {
        sandbox.plugin(name, &crate::common::components::tool("shout", "unreachable"), None);
    }
    let error = sandbox.bad_call("shout", &json!({}));
    assert!(error.contains("ambiguous") && error.contains("one__shout") && error.contains("two__shout"), "{error}");
    let list = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(list.stdout.contains("one__shout") && list.stdout.contains("two__shout"), "{list:#?}");
}

#[test]
fn a_call_sees_what_it_can_call_and_what_is_left_to_it() {
    let sandbox = with_nest(&format!("{NEST_TOML}\n[limits]\nwall-ms = 60000\ncpu-ms = 5000\n"));
    let said: Value =
        serde_json::from_str(&sandbox.good_call("remember", &json!({"callable": true, "left": true}))).unwrap();
    let callable = said["callable"].as_array().unwrap();
    let find = |name: &str| callable.iter().find(|tool| tool["name"] == name);
    let read = find("read").unwrap();
    assert_eq!((&read["id"], &read["structured"]), (&json!("read"), &json!(true)), "{read}");
    assert!(!read["does"].as_str().unwrap().contains('\n') && read["does"].as_str().unwrap().chars().count() <= 120);
    assert!(find("tool_search").is_none(), "only the model may call it");
    assert!(find("grep").is_none(), "it is not active");
    let (cpu, wall) = (said["left"]["cpu"].as_u64().unwrap(), said["left"]["wall"].as_u64().unwrap());
    assert!((1..=5_000).contains(&cpu) && (1..=60_000).contains(&wall), "{said}");
    // What changes the table changes the number, and nothing else does.
    let script = json!({"turns": [
        {"calls": [{"tool": "remember", "arguments": {"callable": true}}]},
        {"calls": [{"tool": "remember", "arguments": {"callable": true}}]},
        {"calls": [{"tool": "change_table", "arguments": {"activate": "grep"}}]},
        {"calls": [{"tool": "remember", "arguments": {"callable": true}}]},
        {"text": "done"}]});
    sandbox.scripted(&script).arg("go").run().ok();
    let results = sandbox.results();
    let at = |at: usize| serde_json::from_str::<Value>(&text_of(&results[at]["content"])).unwrap();
    assert_eq!(at(0), at(1));
    assert_ne!(at(1)["version"], at(3)["version"]);
    assert!(at(3)["callable"].as_array().unwrap().iter().any(|tool| tool["name"] == "grep"));
}

#[test]
fn a_search_says_which_groups_are_still_to_come_and_can_look_in_one_group() {
    let sandbox = with_nest(NEST_TOML);
    let found = sandbox.good_call("change_table", &json!({"expect": "mcp__slow", "find": "read a file"}));
    assert!(found.starts_with("read\n") && found.ends_with("\nwaiting: mcp__slow"), "{found}");
    let error = sandbox.bad_call("change_table", &json!({"find": "read", "group": "nowhere"}));
    assert!(error.contains("there is no namespace `nowhere`"), "{error}");
    let error = sandbox.bad_call("change_table", &json!({"group": "nowhere"}));
    assert!(error.contains("there is no namespace `nowhere`"), "{error}");
}

#[test]
fn a_search_of_the_model_names_the_groups_that_are_still_to_come() {
    let sandbox = with_nest(NEST_TOML);
    let script = json!({"turns": [
        {"calls": [{"tool": "change_table", "arguments": {"expect": "mcp__slow"}}]},
        {"calls": [{"tool": "tool_search", "arguments": {"query": "zebra"}}]},
        {"text": "done"}]});
    sandbox.scripted(&script).args(["--tools=+tool_search", "go"]).run().ok();
    let text = text_of(&sandbox.results()[1]["content"]);
    assert!(text.contains("Tools of mcp__slow are still on their way"), "{text}");
}

#[test]
fn what_a_call_keeps_has_bounds_and_is_the_calls_own() {
    let sandbox = with_nest(NEST_TOML);
    let refused = |keep: Value| -> Value {
        serde_json::from_str(&sandbox.good_call("remember", &json!({"keep": keep, "kept": ["a"]}))).unwrap()
    };
    assert_eq!(refused(json!([["a", 1]])), json!({"a": null}), "it counts once the call has succeeded");
    let many: Vec<Value> = (0..4_097).map(|at| json!([at.to_string(), 1])).collect();
    for keep in [json!([["k".repeat(257), 1]]), Value::from(many)] {
        let said = refused(keep);
        assert_eq!(said["refused"]["code"], "limit", "{said}");
    }
}
