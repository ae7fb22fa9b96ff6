//! The types that `atoll-plugin` has for events fit what the program tells extensions.

use atoll_table::extension::EventKind;
use serde_json::json;

use crate::common::{Sandbox, puppets::one_call};

#[test]
fn every_event_of_a_run_can_be_read_as_its_type() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "alpha\n");
    let all: Vec<&str> = EventKind::ALL.into_iter().map(EventKind::as_str).collect();
    let steps = json!([{"name": "a name"}, {"thinking": "high"}, {"confirm": {"title": "Sure?", "message": ""}}]);
    let does = json!({"events": all, "record": "store", "commands": {"change": steps}});
    let script = one_call("read", &json!({"path": "a.txt"}));
    sandbox.with_puppets(&[("watcher", does)], &script).args(["/change", "go"]).run().ok();
    let mut read = Vec::new();
    for (name, fields) in sandbox.told_in_store("watcher") {
        // Those that have a case of their own in the contract, and what is no event.
        if ["input", "tool-call", "tool-result", "start", "stop", "command", "command-end"].contains(&name.as_str()) {
            continue;
        }
        match atoll_plugin::events::check(&name, &fields) {
            Some(Ok(())) => read.push(name),
            Some(Err(reason)) => panic!("{name}: {reason}: {fields:#}"),
            None => panic!("{name} has no type in atoll-plugin: {fields:#}"),
        }
    }
    for name in ["session-start", "before-agent-start", "context", "message-update", "turn-end", "tool-execution-end"] {
        assert!(read.iter().any(|seen| seen == name), "{name} was not told of: {read:?}");
    }
}
