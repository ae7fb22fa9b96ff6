//! Which extensions are loaded, in which order, and what they get.

use serde_json::{Value, json};

use crate::common::{
    Sandbox, components,
    plugins::test_plugin,
    puppets::{manifest, no_call, one_call},
    text_of,
};

/// Puts a word behind what the user said.
fn says(word: &str) -> Value {
    json!({"events": ["tool-result"], "answers": {"tool-result": [{"patch": {"text": word}}]}})
}

/// What the last one said of a result.
fn last_word(sandbox: &Sandbox) -> String {
    text_of(&sandbox.results().last().unwrap()["content"])
}

#[test]
fn dash_e_works_with_every_command_that_uses_the_tools() {
    let sandbox = Sandbox::new();
    let does = json!({"tools": [{"name": "hello", "steps": [{"describeHost": null}]}]});
    let names = sandbox.puppets(&[("greeter", does)]);
    let list = sandbox.atoll().args(&names).args(["tool", "list"]).run().ok();
    assert!(list.stdout.contains("\nhello ") && list.stdout.contains("greeter"), "{list:#?}");
    let call = sandbox.atoll().args(["tool", "call", "hello"]).args(&names).run().ok();
    let host: Value = serde_json::from_str(&call.stdout).unwrap();
    assert_eq!(
        (&host[0]["mode"], &host[0]["plugin"], &host[0]["hasPerson"]),
        (&json!("Mode::Command"), &json!("greeter"), &json!(false))
    );
    assert_eq!(host[0]["cwd"], json!(sandbox.work()));
    assert_eq!((&host[0]["home"], &host[0]["command"]), (&json!(sandbox.user_home()), &json!(null)));
    let doctor = sandbox.atoll().args(&names).arg("doctor").run();
    assert!(doctor.stdout.contains("1 plugin of yours"), "{doctor:#?}");
    let run = sandbox.scripted(&one_call("hello", &json!({}))).args(&names).arg("go").run().ok();
    assert_eq!(run.stdout, "done\n");
    assert!(text_of(&sandbox.results()[0]["content"]).contains("Print"));
    let without = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(!without.stdout.contains("hello"), "{without:#?}");
}

#[test]
fn a_session_and_models_are_not_there_in_a_command_without_them() {
    let sandbox = Sandbox::new();
    let steps = json!([{"try": {"append": {"type": "a", "data": 1}}}, {"try": {"complete": {"prompt": "x"}}}]);
    let names = sandbox.puppets(&[("asks", json!({"tools": [{"name": "try_it", "steps": steps}]}))]);
    let call = sandbox.atoll().args(["tool", "call", "try_it"]).args(&names).run().ok();
    let gave: Value = serde_json::from_str(&call.stdout).unwrap();
    assert_eq!((&gave[0]["code"], &gave[1]["code"]), (&json!("unavailable"), &json!("unavailable")), "{gave:#}");
}

#[test]
fn load_order_is_that_of_the_command_line() {
    let script = one_call("bash", &json!({"command": "ls"}));
    let sandbox = Sandbox::new();
    sandbox.with_puppets(&[("one", says("one")), ("two", says("two"))], &script).arg("go").run().ok();
    assert_eq!(last_word(&sandbox), "two");
    let sandbox = Sandbox::new();
    sandbox.with_puppets(&[("two", says("two")), ("one", says("one"))], &script).arg("go").run().ok();
    assert_eq!(last_word(&sandbox), "one");
}

/// What is named comes first, then a project's, then the user's: it sees what the others made.
#[test]
fn load_order_is_named_then_the_projects_then_the_users() {
    let sandbox = Sandbox::new();
    sandbox.installed_puppet("users");
    let component = test_plugin("puppet");
    sandbox.file(".atoll/plugins/projects/plugin.wasm", &component);
    sandbox.file(".atoll/plugins/projects/plugin.toml", manifest("projects"));
    let list = sandbox.atoll().args(["-a", "plugin", "list", "--json"]).run().ok();
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    let project = list
        .as_array()
        .unwrap()
        .iter()
        .map(|plugin| plugin["name"].as_str().unwrap())
        .find(|name| name.starts_with("projects-in"));
    let project = project.unwrap().to_owned();
    let watch = json!({"events": ["tool-result"], "record": "entry"});
    let named = sandbox.puppets(&[("named", says("named")), (&project, says("project")), ("users", watch)]);
    let run =
        sandbox.scripted(&one_call("bash", &json!({"command": "ls"}))).args(&named[..2]).args(["-a", "go"]).run().ok();
    assert_eq!(last_word(&sandbox), "project", "{run:#?}");
    let told = sandbox.told();
    let (_, seen) = told.iter().find(|(name, _)| name == "tool-result").unwrap();
    assert_eq!(seen["text"], "project", "the user's sees what the others made of it");
}

#[test]
fn a_projects_extension_needs_trust_and_a_grant() {
    let sandbox = Sandbox::new();
    sandbox.file(".atoll/plugins/projects/plugin.wasm", test_plugin("puppet"));
    sandbox.file(".atoll/plugins/projects/plugin.toml", manifest("projects"));
    for option in ["-a", "-na"] {
        let list = sandbox.atoll().args([option, "tool", "list"]).run().ok();
        assert!(!list.stdout.contains("puppet"), "{option}: {list:#?}");
    }
}

#[test]
fn no_extensions_leaves_out_all_but_those_named_and_keeps_plain_tools() {
    let sandbox = Sandbox::new();
    sandbox.installed_puppet("installed");
    sandbox.plugin("plain", &components::tool("shout", "unreachable"), None);
    let named = sandbox.puppets(&[("named", says("named")), ("installed", says("installed"))]);
    let list = |options: &[&str]| sandbox.atoll().args(["tool", "list"]).args(options).run().ok().stdout;
    let (all, none, only) = (list(&[]), list(&["-ne"]), list(&["--no-extensions", "-e", &named[1]]));
    let has = |list: &str, plugin: &str| list.lines().any(|line| line.split_whitespace().any(|word| word == plugin));
    assert!(has(&all, "installed") && has(&all, "plain"), "{all}");
    assert!(!has(&none, "installed") && has(&none, "plain"), "{none}");
    assert!(!has(&only, "installed") && has(&only, "named") && has(&only, "plain"), "{only}");
}

#[test]
fn the_first_of_one_name_counts() {
    let sandbox = Sandbox::new();
    sandbox.installed_puppet("twin");
    let names = sandbox.puppets(&[("twin", says("named"))]);
    let run = sandbox.scripted(&one_call("bash", &json!({"command": "ls"}))).args(&names).arg("go").run().ok();
    assert!(run.one_line().contains("twin") && run.one_line().contains("-e"), "{run:#?}");
    assert_eq!(last_word(&sandbox), "named");
    // The same file twice is loaded once; two of one name are an error.
    sandbox.atoll().args(["tool", "list"]).args(&names).args(&names).run().ok();
    let other = sandbox.offered("other", &test_plugin("puppet"), Some(&manifest("twin")));
    let run = sandbox.atoll().args(["tool", "list"]).args(&names).arg("-e").arg(other).run().code(1);
    assert!(run.one_line().contains("both the plugin twin"), "{run:#?}");
}

#[test]
fn doctor_says_of_a_denied_extension_what_would_allow_it_and_names_itself_to_nobody() {
    let sandbox = Sandbox::new();
    let file = sandbox.puppet("bold");
    let findings = sandbox.atoll().args(["doctor", "--json", "-e"]).arg(&file).run().code(1).json();
    let of =
        |check: &str| findings.as_array().unwrap().iter().find(|finding| finding["check"] == check).unwrap().clone();
    let tools = of("tools");
    assert!(tools["says"].as_str().unwrap().contains("not allowed"), "{tools}");
    assert_eq!(tools["fix"], "the line above says what would allow it");
    assert!(!of("model")["says"].as_str().unwrap().contains("atoll doctor"), "{findings}");
}

#[test]
fn what_is_named_and_can_not_be_used_ends_the_run_with_the_reason() {
    let sandbox = Sandbox::new();
    sandbox.file("x.ts", "export let nothing;");
    sandbox.file("x.wasm", "not wasm");
    for (file, says) in [("x.ts", "no default export"), ("x.wasm", "not WebAssembly"), ("gone.wasm", "does not exist")]
    {
        let run = sandbox.atoll().args(["tool", "list", "-e", file]).run().code(1);
        assert!(run.one_line().contains(says) && run.one_line().contains(file), "{run:#?}");
    }
    let names = sandbox.puppets(&[("broken", json!({"start": [{"fail": "I do not feel like it."}]}))]);
    let run = sandbox.atoll().args(["tool", "list"]).args(names).run().code(1);
    assert!(run.one_line().contains("broken") && run.one_line().contains("I do not feel like it."), "{run:#?}");
    // An installed one is left out, with its tools.
    sandbox.installed_puppet("broken");
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.one_line().contains("broken is left out"), "{run:#?}");
    let line = run.stdout.lines().find(|line| line.starts_with("puppet")).unwrap();
    assert!(line.contains(" hidden "), "nobody can call its tools: {line}");
}

#[test]
fn dash_e_grants_nothing_that_reaches_outside() {
    let sandbox = Sandbox::new();
    let file = sandbox.puppet("bold");
    let run = sandbox.atoll().args(["tool", "list", "-e"]).arg(&file).run().code(3);
    assert!(run.one_line().contains("not allowed") && run.one_line().contains("atoll plugin install"), "{run:#?}");
    // A grant to another file of that name counts for nothing.
    sandbox.grant("bold", b"another", "all = true");
    sandbox.atoll().args(["tool", "list", "-e"]).arg(&file).run().code(3);
    // What has no scope it gets by being named.
    let component = test_plugin("puppet");
    sandbox.grant("bold", &component, crate::common::puppets::OUTWARD);
    let steps = json!([{"call": {"tool": "bash", "arguments": {"command": "ls"}}}, {"kept": "x"}]);
    sandbox.direct(&[("bold", json!({"tools": [{"name": "reach", "steps": steps}]}))]);
    sandbox.atoll().args(["tool", "call", "reach", "-e"]).arg(&file).run().ok();
}

#[test]
fn tools_of_extensions_are_declared_in_load_order_however_long_each_start_takes() {
    let sandbox = Sandbox::new();
    let slow = |name: &str, ms: u64| json!({"start": [{"sleep": ms}, {"register": [name]}]});
    let names = sandbox.puppets(&[("one", slow("aa", 900)), ("two", slow("bb", 400)), ("three", slow("cc", 0))]);
    let list = sandbox.atoll().args(["tool", "list", "--json"]).args(names).run().json();
    let tools: Vec<&str> = list.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(tools[tools.len() - 3..], ["aa", "bb", "cc"]);
}

#[test]
fn flags_of_extensions_are_options_and_unknown_ones_are_errors() {
    let sandbox = Sandbox::new();
    let does = json!({"flags": ["plan", "rules="], "commands": {"flags": [{"flag": "plan"}, {"flag": "rules"}]}, "record": "store"});
    let gave = |options: &[&str]| {
        let run = sandbox.with_puppets(&[("flags", does.clone())], &no_call()).args(options).run().ok();
        let told = sandbox.told_in_store("flags");
        let (_, end) = told.into_iter().find(|(name, _)| name == "command-end").unwrap();
        (end["gave"].clone(), run.stdout)
    };
    assert_eq!(gave(&["/flags"]).0, json!(["false", "unsaid"]));
    assert_eq!(gave(&["--rules=strict", "/flags"]).0, json!(["false", "strict"]));
    // What stands behind an option that takes nothing is a message, in its place.
    assert_eq!(
        gave(&["--plan", "/flags", "--rules", "strict", "hello"]),
        (json!(["true", "strict"]), "done\n".to_owned())
    );
    for (options, says) in
        [(&["--plam", "hello"][..], "did you mean --plan?"), (&["hello", "--rules"], "--rules=VALUE")]
    {
        let run = sandbox.with_puppets(&[("flags", does.clone())], &no_call()).args(options).run().code(2);
        assert!(run.one_line().contains(says), "{run:#?}");
    }
    let run = sandbox.scripted(&no_call()).args(["--plan", "hello"]).run().code(2);
    assert!(run.one_line().contains("no option --plan"), "{run:#?}");
}

#[test]
fn commands_of_one_name_get_numbers() {
    let sandbox = Sandbox::new();
    let does = |key: &str| json!({"commands": {"mark": [{"keep": {"key": key, "value": "yes"}}]}});
    let puppets = [("one", does("a")), ("two", does("b"))];
    sandbox.with_puppets(&puppets, &no_call()).arg("/mark:1").run().ok();
    assert_eq!((sandbox.stored("one", "a"), sandbox.stored("two", "b").as_deref()), (None, Some("yes")));
    // What names no command is the user's text.
    let run = sandbox.with_puppets(&puppets, &no_call()).arg("/nobody").run().ok();
    assert_eq!(run.stdout, "done\n");
}

#[test]
fn a_project_does_not_say_what_an_extension_of_the_users_does() {
    let sandbox = Sandbox::new();
    let gate = json!({"events": ["tool-call"], "answers": {"tool-call": [{"block": "no"}]}});
    let names = sandbox.puppets(&[("gate", gate)]);
    sandbox.file(".atoll/settings.json", json!({"pluginSettings": {"gate": {}}}).to_string());
    let run = sandbox.scripted(&one_call("bash", &json!({"command": "ls"}))).args(names).args(["-a", "go"]).run().ok();
    assert!(run.one_line().contains("pluginSettings"), "{run:#?}");
    assert_eq!(last_word(&sandbox), "no");
}

#[test]
fn an_extension_ends_in_order_with_the_program() {
    let sandbox = Sandbox::new();
    let does = json!({"events": ["session-start", "session-shutdown"], "record": "store", "stop": [{"keep": {"key": "end", "value": "yes"}}]});
    sandbox.with_puppets(&[("ends", does)], &no_call()).arg("hello").run().ok();
    let told = sandbox.told_in_store("ends");
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["start", "session-start", "session-shutdown", "stop"]);
    assert_eq!((&told[1].1["reason"], &told[2].1["reason"]), (&json!("startup"), &json!("quit")));
    assert_eq!(sandbox.stored("ends", "end").as_deref(), Some("yes"));
}
