//! Extensions that are loaded anew in the middle of a session.

use std::fs;

use serde_json::{Value, json};

use crate::common::{
    Sandbox,
    plugins::{digest, test_plugin},
    puppets::{OUTWARD, manifest, no_call},
    server::{Reply, Server},
    text_of,
};

/// The same component as another version: with something in it that means nothing.
fn version(number: usize) -> Vec<u8> {
    let mut component = test_plugin("puppet");
    let name = format!("v{number}");
    let length = u8::try_from(name.len()).unwrap();
    component.extend([0, length + 1, length]);
    component.extend(name.as_bytes());
    component
}

/// Grants for a version of the puppet `a`, beside those of `b`.
fn grants(version: &[u8]) -> String {
    let of = |name: &str, component: &[u8]| format!("[plugin.{name}]\nsha256 = \"{}\"\n{OUTWARD}\n", digest(component));
    of("a", version) + &of("b", &test_plugin("puppet"))
}

/// A step that runs a command line.
fn bash(command: &str) -> Value {
    json!({"call": {"tool": "bash", "arguments": {"command": command}}})
}

/// The puppets `a` and `b` among the user's extensions, doing this.
fn two(a: &Value, b: &Value) -> Sandbox {
    let sandbox = Sandbox::new();
    for name in ["a", "b"] {
        sandbox.loose_puppet(name);
    }
    sandbox.home_file("grants.toml", grants(&test_plugin("puppet")));
    sandbox.direct(&[("a", a.clone()), ("b", b.clone())]);
    sandbox
}

/// The names of the events that a puppet noted in the session, each with its reason.
fn reasons(sandbox: &Sandbox) -> Vec<String> {
    let told = sandbox.told().into_iter();
    told.map(|(name, fields)| format!("{name} {}", fields["reason"].as_str().unwrap_or_default())).collect()
}

#[test]
fn another_version_takes_over_and_both_are_told_why() {
    let events = ["session-start", "session-shutdown"];
    let a = json!({"events": events, "record": "entry", "start": [{"kept": "note"}]});
    let sandbox = two(
        &a,
        &json!({"commands": {"swap": [bash("cp new.wasm \"$ATOLL_HOME/extensions/a.wasm\"; cp new.toml \"$ATOLL_HOME/grants.toml\"")]}}),
    );
    let new = version(1);
    sandbox.file("new.wasm", &new);
    sandbox.file("new.toml", grants(&new));
    let run = sandbox.scripted(&no_call()).args(["/swap", "/reload", "go"]).run().ok();
    assert_eq!(run.one_line(), "atoll: loaded anew: a, b");
    let mut reasons = reasons(&sandbox);
    // The old one ends when it has nothing more to do.
    reasons.retain(|reason| reason != "stop ");
    assert_eq!(
        reasons,
        [
            "start startup",
            "session-start startup",
            "session-shutdown reload",
            "start reload",
            "session-start reload",
            "session-shutdown quit"
        ]
    );
}

/// Calls are under way, again and again, while the file is replaced and loaded anew. None of them is lost, and each ends on
/// the version that it began on.
#[test]
fn calls_in_flight_end_on_the_old_one_and_none_is_lost_while_files_are_replaced() {
    const CALLS: usize = 5;
    const SWAPS: usize = 4;
    let sandbox = two(&json!({"events": ["session-start"], "record": "entry"}), &json!({}));
    let mut turns = Vec::new();
    for swap in 0..SWAPS {
        let new = version(swap);
        sandbox.file(&format!("new-{swap}.wasm"), &new);
        sandbox.file(&format!("new-{swap}.toml"), grants(&new));
        let mut calls: Vec<Value> = (0..CALLS)
            .map(|call| {
                let wait = format!("touch began-{swap}-{call}; until test -e go-{swap}; do sleep 0.02; done");
                json!({"tool": "a__puppet", "arguments": {"steps": [bash(&wait), {"told": null}]}})
            })
            .collect();
        let replace = format!(
            "until test $(ls | grep -c '^began-{swap}-') = {CALLS}; do sleep 0.02; done; \
             cp new-{swap}.toml \"$ATOLL_HOME/grants.toml\"; cp new-{swap}.wasm \"$ATOLL_HOME/extensions/a.wasm\""
        );
        let steps = json!([bash(&replace), {"reload": null}, bash(&format!("touch go-{swap}"))]);
        calls.push(json!({"tool": "b__puppet", "arguments": {"steps": steps}}));
        turns.push(json!({"calls": calls}));
    }
    turns.push(json!({"text": "done"}));
    let run = sandbox.scripted(&json!({"turns": turns})).arg("go").run().ok();
    assert_eq!(run.stdout, "done\n");
    let results = sandbox.results();
    assert_eq!(results.len(), SWAPS * (CALLS + 1));
    for (at, result) in results.iter().enumerate() {
        let text = text_of(&result["content"]);
        assert_eq!(result["isError"], false, "call {at}: {text}");
        if at % (CALLS + 1) == CALLS {
            continue;
        }
        let gave: Value = serde_json::from_str(&text).unwrap();
        let first = &gave[1][0];
        let reason = if at < CALLS { "startup" } else { "reload" };
        assert_eq!(
            (&first["event"], &first["fields"]["reason"]),
            (&json!("start"), &json!(reason)),
            "call {at}: {text}"
        );
    }
    let begun = reasons(&sandbox).iter().filter(|reason| *reason == "session-start reload").count();
    assert_eq!(begun, SWAPS);
}

#[test]
fn one_that_does_not_load_leaves_the_old_one_running_and_says_why() {
    let a = json!({"events": ["session-start"], "record": "entry", "tools": [{"name": "still", "steps": [{"told": null}]}]});
    let b = json!({"commands": {
        "damage": [bash("echo nothing > \"$ATOLL_HOME/extensions/a.wasm\"")],
        "refuse": [bash("cp good.wasm \"$ATOLL_HOME/extensions/a.wasm\"; cp refusing.json \"$ATOLL_HOME/settings.json\"")],
    }});
    let sandbox = two(&a, &b);
    sandbox.file("good.wasm", test_plugin("puppet"));
    let mut refusing = a;
    refusing["start"] = json!([{"fail": "I do not feel like it."}]);
    sandbox.file("refusing.json", json!({"pluginSettings": {"a": refusing, "b": b}}).to_string());
    let script = json!({"turns": [{"calls": [{"tool": "still"}]}, {"text": "one"}, {"calls": [{"tool": "still"}]}, {"text": "two"}]});
    let run = sandbox.scripted(&script).args(["/damage", "/reload", "go", "/refuse", "/reload", "go"]).run().ok();
    assert_eq!(run.stdout, "one\ntwo\n");
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[2]), (4, "atoll: loaded anew: b", "atoll: loaded anew: b"), "{run:#?}");
    for (line, why) in [(lines[1], "not WebAssembly"), (lines[3], "I do not feel like it.")] {
        assert!(line.starts_with("atoll: the plugin a goes on as it was: ") && line.contains(why), "{run:#?}");
    }
    for result in sandbox.results() {
        let told: Value = serde_json::from_str(&text_of(&result["content"])).unwrap();
        assert_eq!(told[0][0]["fields"]["reason"], "startup", "it is the old one: {told}");
    }
    // The old one is told that it goes on, once it was told that it ends.
    let reasons = reasons(&sandbox);
    let last = reasons.iter().rfind(|reason| *reason != "stop ");
    assert_eq!(last.map(String::as_str), Some("session-start reload"), "{reasons:?}");
}

#[test]
fn new_files_are_loaded_and_those_whose_files_are_gone_end() {
    let a = json!({"events": ["session-shutdown"], "record": "entry", "commands": {"mine": []}, "tools": [{"name": "leaves"}]});
    let b = json!({"commands": {"change": [bash(
        "cp c.wasm c.toml \"$ATOLL_HOME/extensions\"; cp grants.toml \"$ATOLL_HOME\"; rm \"$ATOLL_HOME/extensions/a.wasm\""
    )]}});
    let sandbox = two(&a, &b);
    sandbox.file("c.wasm", test_plugin("puppet"));
    sandbox.file("c.toml", manifest("c"));
    sandbox.file("grants.toml", grants(&test_plugin("puppet")).replace("plugin.a", "plugin.c"));
    let c = json!({"events": ["session-start"], "record": "entry", "tools": [{"name": "comes", "steps": [{"told": null}]}], "commands": {"theirs": []}});
    sandbox.settings(&json!({"pluginSettings": {"a": a, "b": b, "c": c}}));
    let script = json!({"turns": [
        {"calls": [{"tool": "leaves"}]}, {"text": "one"}, {"calls": [{"tool": "leaves"}, {"tool": "comes"}]}, {"text": "two"}]});
    let run = sandbox.scripted(&script).args(["go", "/change", "/reload", "/theirs", "go"]).run().ok();
    assert_eq!(run.stdout, "one\ntwo\n");
    assert_eq!(run.one_line(), "atoll: loaded anew: b; new: c; ended: a");
    let results = sandbox.results();
    assert_eq!(results[0]["isError"], false);
    assert_eq!((&results[1]["isError"], &results[2]["isError"]), (&json!(true), &json!(false)), "{results:#?}");
    let reasons = reasons(&sandbox);
    assert!(reasons.contains(&"session-shutdown reload".to_owned()), "{reasons:?}");
    assert!(reasons.contains(&"session-start reload".to_owned()), "{reasons:?}");
}

#[test]
fn tools_keep_their_places_and_flags_what_the_user_said() {
    let server = Server::start((0..2).map(|_| Reply::text("done")).collect());
    let a = json!({"flags": ["rules="], "commands": {"flags": [{"flag": "rules"}]}, "record": "entry", "tools": [{"name": "first"}]});
    let sandbox = two(&a, &json!({"tools": [{"name": "second"}]}));
    sandbox.model_behind(&server);
    let run = sandbox.atoll().args(["-p", "--rules=strict", "go", "/reload", "/flags", "go"]).run().ok();
    assert_eq!(run.one_line(), "atoll: loaded anew: a, b");
    let declared = |body: &Value| -> Vec<String> {
        body["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let bodies = server.bodies();
    assert_eq!(declared(&bodies[0]), declared(&bodies[1]));
    assert!(declared(&bodies[0]).contains(&"first".to_owned()));
    let told = sandbox.told();
    let (_, end) = told.iter().find(|(name, _)| name == "command-end").unwrap();
    assert_eq!(end["gave"], json!(["strict"]));
}

#[test]
fn an_extension_can_ask_for_it_and_not_while_it_is_being_done() {
    let again = json!([{"try": {"reload": null}}]);
    let a = json!({"events": ["session-start"], "answers": {"session-start": [{"when": "reload", "steps": [{"try": {"reload": null}}]}]},
        "start": [{"try": {"reload": null}}], "commands": {"anew": again, "reload": []}, "record": "entry"});
    let sandbox = two(&a, &json!({"commands": {"spoil": [bash("echo no > \"$ATOLL_HOME/extensions/a.wasm\"")]}}));
    sandbox.scripted(&no_call()).args(["/anew", "/spoil", "/anew", "/reload:1", "go"]).run().ok().silent();
    let told = sandbox.told();
    let gave: Vec<&Value> =
        told.iter().filter(|(name, _)| name == "command-end").map(|(_, fields)| &fields["gave"][0]).collect();
    assert_eq!(gave[0], &Value::Null);
    assert_eq!(gave[1]["code"], "failed", "{gave:?}");
    assert!(gave[1]["message"].as_str().unwrap().contains("a goes on as it was"), "{gave:?}");
    assert!(told.iter().any(|(name, fields)| name == "command" && fields["name"] == "reload"));
}

#[test]
fn what_is_not_granted_any_more_is_refused_to_the_new_one_and_that_is_said() {
    let a = json!({"tools": [{"name": "reach", "steps": [bash("echo reached")]}]});
    let sandbox = two(&a, &json!({"commands": {"revoke": [bash("cp narrow.toml \"$ATOLL_HOME/grants.toml\"")]}}));
    sandbox.file("narrow.toml", grants(b"another"));
    let script = json!({"turns": [{"calls": [{"tool": "reach"}]}, {"text": "one"}]});
    let run = sandbox.scripted(&script).args(["/revoke", "/reload", "go"]).run().ok();
    let kept = run.stderr.lines().find(|line| line.contains("goes on as it was")).unwrap();
    assert!(kept.contains("the plugin a") && kept.contains("not allowed"), "{run:#?}");
    assert!(fs::read_to_string(sandbox.atoll_home().join("grants.toml")).unwrap().contains(&digest(b"another")));
}
