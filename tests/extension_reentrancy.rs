//! Extensions that are asked about what they do themselves, that call each other, and that take their time.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{
    Sandbox, json_lines,
    puppets::{no_call, one_call},
    text_of,
};

#[test]
fn a_tool_of_an_extension_that_triggers_its_own_handler_does_not_deadlock() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "alpha\n");
    let inner = json!([{"call": {"tool": "read", "arguments": {"path": "a.txt"}}}]);
    let does = json!({"events": ["tool-call", "tool-result"], "tools": [{"name": "own", "steps": inner}],
        "answers": {"tool-result": [{"when": "alpha", "patch": {"text": "beta"}}]}, "record": "entry"});
    sandbox.with_puppets(&[("self", does)], &one_call("own", &json!({}))).arg("go").run().ok();
    let text = text_of(&sandbox.results()[0]["content"]);
    assert!(text.contains("beta") && !text.contains("alpha"), "the inner result was patched: {text}");
    let told = sandbox.told();
    let calls: Vec<&str> = told
        .iter()
        .filter(|(name, _)| name == "tool-call")
        .map(|(_, fields)| fields["tool"].as_str().unwrap())
        .collect();
    assert_eq!(calls, ["own", "read"], "it is asked about its own tool and about what that calls");
    let inner = told.iter().find(|(name, fields)| name == "tool-result" && fields["tool"] == "read").unwrap();
    assert_eq!(inner.1["text"], "alpha\n");
}

#[test]
fn two_extensions_that_call_each_other_end_at_the_limit_of_nesting() {
    let sandbox = Sandbox::new();
    let calls = |tool: &str| {
        let steps = json!([{"call": {"tool": tool}}]);
        json!({"events": ["tool-call"], "answers": {"tool-call": [{"when": tool, "steps": []}, {"steps": steps}]}})
    };
    // Each looks at the other's tool by calling its own.
    let with_tool = |name: &str, does: Value| {
        let mut does = does;
        does["tools"] = json!([{"name": name, "steps": []}]);
        does
    };
    let puppets = [("one", with_tool("ping", calls("ping"))), ("two", with_tool("pong", calls("pong")))];
    let run = sandbox
        .with_puppets(&puppets, &one_call("bash", &json!({"command": "ls"})))
        .args(["--mode", "json", "go"])
        .run()
        .ok();
    // The outermost call, and as many in it as calls may nest.
    assert_eq!(most_at_once(&run.stdout), 9);
    assert_eq!(sandbox.results().len(), 1);
}

#[test]
fn a_handler_that_calls_tools_without_saying_for_what_ends_at_the_limit_too() {
    let sandbox = Sandbox::new();
    let steps = json!([{"call": {"tool": "bash", "arguments": {"command": "ls"}, "own": true}}]);
    let does = json!({"events": ["tool-call"], "answers": {"tool-call": [{"steps": steps}]}});
    let run = sandbox
        .with_puppets(&[("endless", does)], &one_call("bash", &json!({"command": "ls"})))
        .args(["--mode", "json", "go"])
        .run()
        .ok();
    assert_eq!(most_at_once(&run.stdout), 9);
}

/// How many calls were under way at once, each but the first in the one before it.
fn most_at_once(stdout: &str) -> usize {
    let mut open: usize = 0;
    let mut most = 0;
    for event in json_lines(stdout) {
        match event["type"].as_str() {
            Some("tool_execution_start") => open += 1,
            Some("tool_execution_end") => open -= 1,
            _ => {}
        }
        most = most.max(open);
    }
    assert_eq!(open, 0, "a call has no end");
    most
}

/// The watcher sleeps for longer than the test may take, and nobody waits for it.
#[test]
fn a_slow_handler_holds_up_only_what_waits_for_it() {
    let sandbox = Sandbox::new();
    let sleeps = json!([{"steps": [{"sleep": 600_000}]}]);
    let does = json!({"events": ["message-start", "tool-execution-start", "agent-start"], "answers": {
        "message-start": sleeps, "tool-execution-start": sleeps, "agent-start": sleeps}});
    let gate = json!({"events": ["tool-call"], "answers": {"tool-call": [{"block": "no"}]}});
    let began = Instant::now();
    sandbox
        .with_puppets(&[("slow", does), ("gate", gate)], &one_call("bash", &json!({"command": "ls"})))
        .arg("go")
        .run()
        .ok();
    assert_eq!(text_of(&sandbox.results()[0]["content"]), "no");
    assert!(began.elapsed() < Duration::from_secs(300), "it waited for the sleeper");
}

#[test]
fn a_handler_that_never_ends_is_given_up_and_told_so() {
    let sandbox = Sandbox::new();
    let waits = json!({"events": ["tool-call", "context"], "answers": {
        "tool-call": [{"steps": [{"untilCancelled": null}, {"keep": {"key": "cancelled", "value": "yes"}}]}],
        "context": [{"steps": [{"never": null}]}]}});
    let names = sandbox.puppets(&[("late", waits)]);
    let mut settings: Value =
        serde_json::from_str(&std::fs::read_to_string(sandbox.atoll_home().join("settings.json")).unwrap()).unwrap();
    settings["limits"] = json!({"late": {"event-ms": 300}});
    sandbox.settings(&settings);
    let run = sandbox.scripted(&one_call("bash", &json!({"command": "ls"}))).args(names).arg("go").run().ok();
    assert_eq!(run.stdout, "done\n");
    let text = text_of(&sandbox.results()[0]["content"]);
    assert!(text.contains("event-ms") && text.contains("late"), "{text}");
    assert_eq!(sandbox.stored("late", "cancelled").as_deref(), Some("yes"));
    assert_eq!(run.stderr.matches("failed at context: stopped").count(), 1, "{}", run.stderr);
}

#[test]
fn a_run_that_is_stopped_stops_waiting_for_handlers() {
    let sandbox = Sandbox::new();
    let waits = json!({"events": ["tool-call"], "answers": {"tool-call": [{"steps": [
        {"notify": "waiting"}, {"untilCancelled": null}, {"keep": {"key": "cancelled", "value": "yes"}}]}]}});
    let running = sandbox
        .with_puppets(&[("late", waits)], &one_call("bash", &json!({"command": "ls"})))
        .args(["--mode", "json", "go"])
        .start();
    running.wait_for_output("tool_execution_start");
    running.signal(rustix::process::Signal::INT);
    running.wait().code(130);
}

#[test]
fn waiting_until_nothing_runs_is_not_for_handlers() {
    let sandbox = Sandbox::new();
    let wait = json!([{"try": {"waitIdle": null}}]);
    let does = json!({"events": ["turn-end"], "answers": {"turn-end": [{"steps": wait}]},
        "commands": {"wait": [{"waitIdle": null}]}});
    sandbox.with_puppets(&[("waits", does)], &no_call()).args(["/wait", "hello"]).run().ok();
}
