//! What an extension in Rust asks of the host, where no other test is about it: each function of the contract that is called
//! here has an effect, or gives what is there. `extension_contract.rs` names the test of every function.

use serde_json::{Value, json};

use crate::common::{
    Sandbox, json_lines,
    puppets::{no_call, one_call},
    server::{Reply, Server},
    text_of,
};

/// What the steps of one call give, in a run with a model.
#[track_caller]
fn gave(steps: &Value) -> Value {
    let sandbox = Sandbox::new();
    let model = one_call("puppet", &json!({"steps": steps}));
    let run = sandbox.with_puppets(&[("puppet", json!({"flags": ["loud"]}))], &model).arg("go").run().ok();
    let text = text_of(&sandbox.results()[0]["content"]);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}\n{run:#?}"))
}

#[test]
fn the_session_is_described_as_it_is() {
    let gave = gave(&json!([
        {"describeSession": 1}, {"systemPrompt": 1}, {"contextUsage": 1}, {"entries": 1}, {"models": 1}, {"hasPerson": 1}, {"flag": "loud"},
    ]));
    assert_eq!(
        (&gave[0]["model"], &gave[0]["idle"], &gave[0]["pending"], &gave[0]["thinking"]),
        (&json!("scripted/default"), &json!(false), &json!(false), &json!("off")),
        "{gave:#}"
    );
    assert!(gave[1].as_str().unwrap().contains("<cwd>"), "{gave:#}");
    assert!(gave[2]["window"].as_u64().unwrap() > 0, "{gave:#}");
    assert!(gave[3].as_u64().unwrap() > 1, "{gave:#}");
    assert_eq!((&gave[4][0], &gave[5], &gave[6]), (&json!("scripted/default"), &json!(false), &json!("false")));
}

#[test]
fn tools_are_listed_found_described_switched_and_withdrawn() {
    let gave = gave(&json!([
        {"register": ["late"]},
        {"searchTools": "late"},
        {"describeTool": "late"},
        {"deactivate": ["late"]},
        {"listTools": 1},
        {"activate": ["late"]},
        {"listTools": 1},
        {"unregister": ["late"]},
        {"try": {"describeTool": "late"}},
        {"try": {"unregister": ["read"]}},
    ]));
    assert_eq!(gave[1][0], json!(["late", true]), "{gave:#}");
    assert_eq!((&gave[2]["name"], &gave[2]["description"]), (&json!("late"), &json!("Was added.")));
    assert!(gave[4].as_array().unwrap().contains(&json!(["late", "puppet", false])), "{gave:#}");
    let listed = gave[6].as_array().unwrap();
    assert!(listed.contains(&json!(["late", "puppet", true])) && listed.contains(&json!(["read", "read", true])));
    assert_eq!(gave[8]["code"], "not-found", "{gave:#}");
    assert_ne!(gave[9], Value::Null, "what others brought is not withdrawn: {gave:#}");
}

#[test]
fn what_is_kept_is_listed_and_forgotten() {
    let gave = gave(&json!([
        {"keep": {"key": "a/1", "value": "one"}},
        {"keep": {"key": "a/2", "value": "two"}},
        {"keep": {"key": "b", "value": "three"}},
        {"keys": "a/"},
        {"forget": "a/1"},
        {"forget": "never"},
        {"keys": ""},
        {"kept": "a/1"},
        {"kept": "a/2"},
    ]));
    assert_eq!((&gave[3], &gave[6]), (&json!(["a/1", "a/2"]), &json!(["a/2", "b"])));
    assert_eq!((&gave[7], &gave[8]), (&Value::Null, &json!("two")));
}

#[test]
fn time_and_the_shell_are_those_of_the_host() {
    let gave = gave(&json!([{"clock": 1}, {"sleep": 30}, {"clock": 1}, {"shell": 1}]));
    let at = |step: usize, part: usize| gave[step][part].as_u64().unwrap();
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    assert!(at(0, 0) <= now && now - at(0, 0) < 600_000, "{gave:#}");
    assert!(at(2, 1) - at(0, 1) >= 30_000_000, "it slept: {gave:#}");
    assert!(gave[3][0].as_str().unwrap().ends_with("sh"), "{gave:#}");
}

#[test]
fn a_summary_of_the_conversation_is_not_to_be_had_yet_and_that_is_said() {
    let gave = gave(&json!([{"try": {"compact": null}}, {"try": {"compact": "be brief"}}]));
    for answer in gave.as_array().unwrap() {
        assert_eq!(answer["code"], "unavailable", "{answer}");
        assert!(answer["message"].as_str().unwrap().contains("summarise"), "{answer}");
    }
}

#[test]
fn a_partial_result_of_an_extensions_tool_is_shown() {
    let sandbox = Sandbox::new();
    let steps = json!([{"update": "half of it"}, {"sleep": 300}]);
    let model = one_call("puppet", &json!({"steps": steps}));
    let command = sandbox.with_puppets(&[("puppet", json!({}))], &model);
    let run = command.args(["--mode", "json", "go"]).run().ok();
    let mut updates = json_lines(&run.stdout).into_iter().filter(|event| event["type"] == "tool_execution_update");
    assert!(updates.any(|event| event.to_string().contains("half of it")), "{run:#?}");
}

#[test]
fn an_extension_stops_what_is_running() {
    let sandbox = Sandbox::new();
    let does = json!({"events": ["tool-call"], "answers": {"tool-call": [{"steps": [{"abort": null}]}]}});
    let model = one_call("bash", &json!({"command": "sleep 20; touch ran"}));
    let run = sandbox.with_puppets(&[("stops", does)], &model).arg("go").run();
    assert_ne!(run.stdout, "done\n", "{run:#?}");
    assert!(!sandbox.work().join("ran").exists());
}

#[test]
fn a_key_belongs_to_a_command_and_one_of_no_command_is_refused() {
    let sandbox = Sandbox::new();
    let does = json!({"commands": {"plan": [{"notify": "planned"}]}, "shortcuts": {"ctrl+g": "plan"}});
    let run = sandbox.with_puppets(&[("keys", does)], &no_call()).arg("/plan").run().ok();
    assert!(run.one_line().contains("planned"), "{run:#?}");
    let does = json!({"commands": {"plan": []}, "shortcuts": {"ctrl+g": "other"}});
    let run = sandbox.with_puppets(&[("keys", does)], &no_call()).arg("go").run().code(1);
    assert!(run.one_line().contains("for the command `other`"), "{run:#?}");
}

#[test]
fn a_place_in_the_status_line_is_asked_for_without_harm_where_there_is_none() {
    let gave = gave(&json!([{"status": "busy"}, {"status": null}]));
    assert_eq!(gave, json!([null, null]));
}

/// Also from within `start`, so that what it wants can change at any time but for the flags.
#[test]
fn an_extension_wants_other_events_from_when_it_says_so() {
    let server = Server::start((0..2).map(|_| Reply::text("done")).collect());
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    let does = json!({
        "events": ["turn-end"], "record": "entry",
        "commands": {"change": [{"subscribe": {"events": ["turn-start"], "commands": {"change": []}}}]},
    });
    let names = sandbox.puppets(&[("moody", does)]);
    sandbox.atoll().args(names).args(["-p", "one", "/change", "two"]).run().ok().silent();
    let told: Vec<String> = sandbox.told().into_iter().map(|(name, _)| name).collect();
    let turns: Vec<&str> = told.iter().map(String::as_str).filter(|name| name.starts_with("turn-")).collect();
    assert_eq!(turns, ["turn-end", "turn-start"], "{told:?}");
}

#[test]
fn an_entry_gets_a_label_and_loses_it() {
    let sandbox = Sandbox::new();
    let append = json!([{"append": {"type": "state", "data": {"n": 1}}}]);
    sandbox
        .with_puppets(&[("keeper", json!({"commands": {"keep": append}}))], &no_call())
        .args(["go", "/keep"])
        .run()
        .ok();
    let entry = sandbox.session().into_iter().find(|entry| entry["customType"] == "state").unwrap()["id"].clone();
    let label = |label: &Value| json!([{"label": {"entry": entry, "label": label}}]);
    let does = json!({"commands": {"mark": label(&json!("here")), "clear": label(&Value::Null)}});
    sandbox.with_puppets(&[("keeper", does)], &no_call()).args(["-c", "/mark", "/clear"]).run().ok();
    let labels: Vec<Value> = sandbox
        .session()
        .into_iter()
        .filter(|entry| entry["type"] == "label")
        .map(|label| json!([label["targetId"], label["label"]]))
        .collect();
    assert_eq!(labels, [json!([entry, "here"]), json!([entry, null])]);
}
