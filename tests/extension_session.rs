//! What extensions do to a session, and how much of it they may.

use serde_json::{Value, json};

use crate::common::{
    Sandbox,
    puppets::{no_call, one_call},
    server::{Reply, Server},
};

#[test]
fn a_message_that_is_sent_while_nothing_runs_is_seen_and_changed_as_any_other() {
    let says = json!({"commands": {"say": [{"sendCustom": {"type": "note", "text": "raw"}}]}});
    let message = json!({"role": "custom", "customType": "note", "content": [{"type": "text", "text": "changed"}], "display": true});
    // It sends one more whenever it is asked about one, and is not asked about that.
    let steps = json!([{"sendCustom": {"type": "note", "text": "one more"}}]);
    let changes = json!({"events": ["message-end"],
        "answers": {"message-end": [{"when": "raw", "steps": steps, "reply": {"message": message}}]}});
    let sandbox = Sandbox::new();
    sandbox.with_puppets(&[("says", says), ("changes", changes)], &no_call()).args(["/say", "go"]).run().ok().silent();
    let session = sandbox.session();
    let notes: Vec<_> =
        session.iter().filter(|entry| entry["customType"] == "note").map(|entry| &entry["content"]).collect();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].to_string().contains("one more") && notes[1].to_string().contains("changed"), "{notes:?}");
}

#[test]
fn what_changes_in_the_session_is_told() {
    let sandbox = Sandbox::new();
    let server = Server::start(vec![Reply::text("done")]);
    sandbox.model_behind(&server);
    let events = ["model-select", "thinking-level-select", "session-info-changed"];
    let steps = json!([{"model": "mock/seeing"}, {"thinking": "high"}, {"name": "a name"}]);
    let watcher = json!({"events": events, "record": "entry"});
    let puppets = [("changes", json!({"commands": {"change": steps}})), ("watcher", watcher)];
    let names = sandbox.puppets(&puppets);
    sandbox.atoll().args(names).args(["-p", "/change", "go"]).run().ok();
    let mut told = sandbox.told();
    told.retain(|(name, _)| events.contains(&name.as_str()));
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, events);
    let fields: Vec<&Value> = told.iter().map(|(_, fields)| fields).collect();
    assert_eq!((&fields[0]["model"]["id"], &fields[0]["previousModel"]["id"]), (&json!("seeing"), &json!("m")));
    assert_eq!((&fields[1]["level"], &fields[2]["name"]), (&json!("high"), &json!("a name")));
}

#[test]
fn a_partial_result_is_told_of() {
    let sandbox = Sandbox::new();
    let model = one_call("changes__puppet", &json!({"steps": [{"update": "half of it"}, {"sleep": 300}]}));
    let watcher = json!({"events": ["tool-execution-update"], "record": "entry"});
    sandbox.with_puppets(&[("changes", json!({})), ("watcher", watcher)], &model).arg("go").run().ok();
    let told = sandbox.told();
    let update = told.iter().find(|(name, _)| name == "tool-execution-update");
    let (_, fields) = update.unwrap_or_else(|| panic!("nothing was told: {told:#?}"));
    assert_eq!(fields["toolName"], "changes__puppet");
    assert!(fields.to_string().contains("half of it"), "{fields:#}");
}

#[test]
fn programs_are_told_of_the_model_that_is_asked_now() {
    let sandbox = Sandbox::new();
    let server = Server::start(vec![Reply::text("done")]);
    sandbox.model_behind(&server);
    let shows = json!({"call": {"tool": "bash", "arguments": {"command": "echo $ATOLL_MODEL $ATOLL_REASONING_LEVEL >> model"}}});
    let steps = json!([shows, {"model": "mock/seeing"}, shows, {"thinking": "high"}, shows]);
    let names = sandbox.puppets(&[("switches", json!({"commands": {"switch": steps}}))]);
    sandbox.atoll().args(names).args(["-p", "/switch", "go"]).run().ok();
    let told = sandbox.read("model");
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].starts_with("m ") && lines[1].starts_with("seeing "), "{told}");
    assert_eq!(lines[2], "seeing high");
}

#[test]
fn an_extension_appends_only_so_much_to_a_session() {
    let sandbox = Sandbox::new();
    let steps = json!([{"try": {"flood": {"what": "append", "times": 20_000}}}]);
    let floods = json!({"commands": {"flood": steps}, "record": "store"});
    sandbox.with_puppets(&[("floods", floods)], &no_call()).args(["/flood", "hello"]).run().ok();
    let told = sandbox.told_in_store("floods");
    let (_, end) = told.iter().find(|(name, _)| name == "command-end").unwrap();
    assert_eq!(end["gave"][0]["code"], "unavailable", "{end}");
    let entries = sandbox.session().iter().filter(|entry| entry["customType"] == "flood").count();
    assert_eq!(entries, 10_000);
}

#[test]
fn options_about_extensions_are_errors_where_none_are_loaded_and_mistyped_ones_are_found() {
    let sandbox = Sandbox::new();
    for (line, says) in [
        (&["plugin", "list", "-e", "x.wasm"][..], "--extension"),
        (&["-ne", "trust", "list"], "--no-extensions"),
        (&["completions", "bash", "--no-mcp"], "--no-mcp"),
        (&["demo", "--no-extensions"], "--no-extensions"),
    ] {
        let run = sandbox.atoll().args(line).run().code(2);
        assert!(run.stderr.contains(says) && run.stderr.contains("loads no extensions"), "{run:#?}");
    }
    let run = sandbox.scripted(&no_call()).args(["--no-sesion", "hello"]).run().code(2);
    assert!(run.one_line().contains("did you mean --no-session?"), "{run:#?}");
}
