//! Extensions that do what they must not: each is stopped, named, said once, and the session goes on.

use serde_json::{Value, json};

use crate::common::{
    Sandbox,
    processes::until,
    puppets::{no_call, one_call},
    text_of,
};

/// A puppet that does something at an event that nobody guards.
fn at(event: &str, steps: &Value) -> Value {
    json!({"events": [event], "answers": {event: [{"steps": steps}]}})
}

/// A run with an extension that fails at the context of each request, and a good one behind it, in which the model calls a
/// tool; gives what standard error said. The run has to be as good as without the failure.
#[track_caller]
fn run_goes_on(steps: &Value, limits: &Value) -> String {
    let sandbox = Sandbox::new();
    let good = json!({"events": ["tool-result"], "answers": {"tool-result": [{"patch": {"text": "patched"}}]}});
    let names = sandbox.puppets(&[("bad", at("context", steps)), ("good", good)]);
    limit(&sandbox, &json!({"bad": limits}));
    let run = sandbox.scripted(&one_call("bash", &json!({"command": "ls"}))).args(names).arg("go").run().ok();
    assert_eq!(
        (run.stdout.as_str(), text_of(&sandbox.results()[0]["content"]).as_str()),
        ("done\n", "patched"),
        "{run:#?}"
    );
    run.stderr
}

fn limit(sandbox: &Sandbox, limits: &Value) {
    let path = sandbox.atoll_home().join("settings.json");
    let mut settings: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    settings["limits"] = limits.clone();
    sandbox.settings(&settings);
}

#[test]
fn one_that_traps_is_named_and_the_run_goes_on() {
    let said = run_goes_on(&json!([{"trap": "no strings"}]), &json!({}));
    assert!(said.contains("the extension bad failed at context"), "{said}");
}

#[test]
fn one_that_loops_is_stopped() {
    let said = run_goes_on(&json!([{"loop": null}]), &json!({"cpu-ms": 300}));
    assert!(said.contains("bad") && said.contains("cpu-ms"), "{said}");
}

#[test]
fn one_that_leaks_memory_is_stopped() {
    let said = run_goes_on(&json!([{"leakMemory": null}]), &json!({}));
    assert!(said.contains("bad") && said.contains("memory"), "{said}");
}

#[test]
fn one_that_never_answers_an_event_is_given_up() {
    let said = run_goes_on(&json!([{"never": null}]), &json!({"event-ms": 200}));
    assert!(said.contains("bad") && said.contains("event-ms"), "{said}");
}

#[test]
fn a_failure_is_reported_once_and_counted() {
    let sandbox = Sandbox::new();
    let bad = at("message-end", &json!([{"fail": "every time"}]));
    let run = sandbox.with_puppets(&[("bad", bad)], &one_call("bash", &json!({"command": "ls"}))).arg("go").run().ok();
    assert_eq!(run.stderr.matches("every time").count(), 1, "{}", run.stderr);
    assert!(run.stderr.contains("times more"), "{}", run.stderr);
    let json = sandbox.scripted(&no_call()).args(sandbox.puppets(&[("bad", at("context", &json!([{"fail": "no"}])))]));
    let run = json.args(["--mode", "json", "go"]).run().ok();
    let error = crate::common::json_lines(&run.stdout).into_iter().find(|event| event["type"] == "extension_error");
    assert_eq!(
        error.unwrap(),
        json!({"type": "extension_error", "extensionPath": "bad", "event": "context", "error": "no"})
    );
}

#[test]
fn an_answer_that_is_no_json_or_does_not_fit_is_a_failure_and_a_gate_blocks_then() {
    let call = one_call("bash", &json!({"command": "touch ran"}));
    for answer in [json!({"rewriteRaw": "{no json"}), json!({"patch": {"text": "x"}}), json!({"handled": true})] {
        let sandbox = Sandbox::new();
        let odd = json!({"events": ["tool-call"], "answers": {"tool-call": [answer]}});
        let run = sandbox.with_puppets(&[("odd", odd)], &call).arg("go").run().ok();
        let text = text_of(&sandbox.results()[0]["content"]);
        assert!(text.contains("not carried out") && text.contains("odd"), "{answer}: {text}");
        assert!(run.stderr.contains("the extension odd failed at tool-call"), "{answer}: {}", run.stderr);
        assert!(!sandbox.work().join("ran").exists(), "{answer}");
    }
}

#[test]
fn a_gate_that_fails_traps_or_takes_too_long_blocks() {
    let call = one_call("bash", &json!({"command": "touch ran"}));
    for (step, says) in [
        (json!({"fail": "I can not decide."}), "I can not decide."),
        (json!({"trap": ""}), "gate"),
        (json!({"never": null}), "event-ms"),
    ] {
        let sandbox = Sandbox::new();
        let names = sandbox.puppets(&[("gate", at("tool-call", &json!([step])))]);
        limit(&sandbox, &json!({"gate": {"event-ms": 500}}));
        sandbox.scripted(&call).args(names).arg("go").run().ok();
        let text = text_of(&sandbox.results()[0]["content"]);
        assert!(text.contains("not carried out") && text.contains(says), "{step}: {text}");
        assert!(!sandbox.work().join("ran").exists(), "{step}");
    }
}

#[test]
fn one_that_died_is_started_again_and_knows_it() {
    let sandbox = Sandbox::new();
    // It dies at the first call; at the second one it is there again.
    let dies = json!([{"times": {"key": "deaths", "most": 1, "steps": [{"trap": "once"}]}}]);
    let does = json!({"events": ["tool-call"], "record": "store", "answers": {"tool-call": [{"steps": dies}]}});
    let calls = |n: usize| json!([{"tool": "bash", "arguments": {"command": format!("echo {n}")}}]);
    let script = json!({"turns": [{"calls": calls(1)}, {"calls": calls(2)}, {"text": "done"}]});
    sandbox.with_puppets(&[("dies", does)], &script).arg("go").run().ok();
    let results = sandbox.results();
    assert_eq!((&results[0]["isError"], &results[1]["isError"]), (&json!(true), &json!(false)), "{results:#?}");
    let told = sandbox.told_in_store("dies");
    assert_eq!(told[0], ("start".to_owned(), json!({"reason": "restart"})), "{told:#?}");
}

#[test]
fn a_disabled_gate_blocks_and_says_how_to_go_on() {
    let sandbox = Sandbox::new();
    let call = json!([{"tool": "bash", "arguments": {"command": "touch ran"}}]);
    let turns: Vec<Value> = (0..7).map(|_| json!({"calls": call})).chain([json!({"text": "done"})]).collect();
    let gate = at("tool-call", &json!([{"trap": "always"}]));
    let run = sandbox.with_puppets(&[("gate", gate)], &json!({"turns": turns})).arg("go").run().ok();
    let last = text_of(&sandbox.results()[6]["content"]);
    assert!(
        last.contains("gate") && last.contains("5 times") && last.contains("atoll plugin disable gate"),
        "{last}\n{}",
        run.stderr
    );
    assert!(!sandbox.work().join("ran").exists());
}

#[test]
fn one_that_never_answers_start_is_left_out() {
    let sandbox = Sandbox::new();
    sandbox.installed_puppet("mute");
    sandbox.direct(&[("mute", json!({"start": [{"never": null}], "events": ["tool-call"]}))]);
    let run = sandbox.scripted(&one_call("bash", &json!({"command": "ls"}))).arg("go").run().ok();
    assert!(run.one_line().contains("mute is left out") && run.one_line().contains("`start`"), "{run:#?}");
    assert_eq!((run.stdout.as_str(), &sandbox.results()[0]["isError"]), ("done\n", &json!(false)));
}

#[test]
fn floods_end_at_a_limit() {
    for what in ["bus", "send"] {
        let sandbox = Sandbox::new();
        let steps = json!([{"try": {"flood": {"what": what, "times": 20_000}}}]);
        let hears = json!({"topics": ["flood"], "events": ["bus"], "answers": {"bus": [{"steps": [{"never": null}]}]}});
        let floods = json!({"commands": {"flood": steps}, "record": "store"});
        sandbox.with_puppets(&[("floods", floods), ("hears", hears)], &no_call()).args(["/flood", "hello"]).run().ok();
        let told = sandbox.told_in_store("floods");
        let (_, end) = told.iter().find(|(name, _)| name == "command-end").unwrap();
        assert_eq!(end["gave"][0]["code"], "limit", "{what}: {end}");
    }
    // What a plugin writes to standard error is neither shown nor an end of it.
    let sandbox = Sandbox::new();
    let does = json!({"commands": {"flood": [{"flood": {"what": "stderr", "times": 20_000}}]}});
    sandbox.with_puppets(&[("floods", does)], &no_call()).args(["/flood", "hello"]).run().ok().silent();
}

#[test]
fn one_that_is_flooded_loses_what_it_does_not_keep_up_with_and_holds_up_nobody() {
    let sandbox = Sandbox::new();
    let slow = json!({"events": ["message-start", "turn-start"], "answers": {"message-start": [{"steps": [{"never": null}]}]}});
    let names = sandbox.puppets(&[("slow", slow)]);
    limit(&sandbox, &json!({"slow": {"queue": 1}}));
    let run = sandbox.scripted(&one_call("bash", &json!({"command": "ls"}))).args(names).arg("go").run().ok();
    assert!(run.stderr.contains("slow") && run.stderr.contains("does not keep up"), "{}", run.stderr);
    assert_eq!(run.stdout, "done\n");
}

#[test]
fn ten_thousand_tools_are_a_limit() {
    let sandbox = Sandbox::new();
    let names =
        sandbox.puppets(&[("greedy", json!({"start": [{"try": {"registerMany": 10_001}}, {"registerMany": 9_000}]}))]);
    let list = sandbox.atoll().args(["tool", "list"]).args(names).run().ok();
    assert_eq!(list.stdout.lines().filter(|line| line.starts_with("many_")).count(), 9_000);
}

#[test]
fn a_command_whose_extension_dies_ends_with_the_reason() {
    let sandbox = Sandbox::new();
    let run = sandbox
        .with_puppets(&[("dies", json!({"commands": {"die": [{"trap": "gone"}]}}))], &no_call())
        .arg("/die")
        .run()
        .code(1);
    assert!(run.stderr.contains("dies"), "{run:#?}");
}

#[test]
fn an_extension_that_only_watches_needs_no_grant_and_can_do_nothing_else() {
    let sandbox = Sandbox::new();
    let steps = json!([{"try": {"call": {"tool": "bash", "arguments": {"command": "ls"}}}}, {"try": {"append": {"type": "a", "data": 1}}}]);
    let names =
        sandbox.puppets(&[("watcher", json!({"events": ["turn-end"], "answers": {"turn-end": [{"steps": steps}]}}))]);
    // Without its manifest it asks for nothing, and what it imports is not there.
    std::fs::remove_file(sandbox.work().join("puppets/watcher/plugin.toml")).unwrap();
    let run = sandbox.scripted(&no_call()).args(names).arg("go").run().code(3);
    assert!(run.one_line().contains("not allowed"), "{run:#?}");
}

#[test]
fn no_child_outlives_the_host_whatever_ends_it() {
    let sandbox = Sandbox::new();
    let leak = json!([{"leakProgram": "echo $$ > pid; exec sleep 987"}]);
    let does = at("turn-start", &leak);
    sandbox.installed_puppet("leaks");
    sandbox.direct(&[("leaks", does)]);
    let script =
        one_call("bash", &json!({"command": "until test -s pid; do sleep 0.01; done; echo re''ady; sleep 986"}));
    let running = sandbox.scripted(&script).args(["--mode", "json", "go"]).start();
    running.wait_for_output("ready");
    running.signal(rustix::process::Signal::KILL);
    running.wait();
    let pid = sandbox.read("pid").trim().to_owned();
    let is_there = || {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(b"sleep\x00987")
    };
    until("the child has ended", || (!is_there()).then_some(()));
}
