//! Every event of the contract, put to an extension in Rust and to a script as `atoll plugin test` puts it: through the
//! engine, as a run would. Among them are those that no part of the program tells of yet: who handles them is ready for it.

use atoll_table::extension::EventKind;
use serde_json::{Value, json};

use crate::common::{
    Sandbox,
    plugins::{test_plugin, workspace_root},
    puppets::PUPPET_TOML,
};

/// What an event carries so that it is found again.
const MARK: &str = "the-mark";

/// An event with an answer to it.
struct Row {
    name: &'static str,
    fields: Value,
    /// As the puppet's settings say it; null for an event that nobody waits for.
    answer: Value,
    /// As a script returns it.
    returns: String,
    /// What is expected of the step.
    expect: Value,
}

fn row(name: &'static str, fields: Value, answer: Value, returns: &str, expect: Value) -> Row {
    Row { name, fields, answer, returns: returns.to_owned(), expect }
}

/// One whose answer has the same fields in both languages.
fn replied(name: &'static str, mut fields: Value, reply: &Value) -> Row {
    fields["mark"] = json!(MARK);
    row(name, fields, json!({"reply": reply}), &reply.to_string(), json!({"reply": reply}))
}

/// One whose answer counts for nothing, or that takes none.
fn heard(name: &'static str) -> Row {
    row(name, json!({"mark": MARK}), json!({}), "undefined", json!({}))
}

/// The events that are asked about, each with an answer that means something there.
fn asked() -> Vec<Row> {
    let message = json!({"role": "user", "content": [{"type": "text", "text": "hello"}], "timestamp": 1});
    let entry = json!({"type": "custom", "customType": "note", "data": {"n": 1}});
    let payload = json!({"model": "m", "messages": []});
    let call = json!({"tool": "bash", "arguments": {"command": MARK}});
    let cancel = json!({"cancel": true});
    vec![
        row(
            "input",
            json!({"text": MARK}),
            json!({"transform": "other"}),
            "{action: 'transform', text: 'other'}",
            json!({"transform": "other"}),
        ),
        row("tool-call", call, json!({"block": "no"}), "{block: true, reason: 'no'}", json!({"block": "no"})),
        row(
            "tool-result",
            json!({"tool": "bash", "text": MARK}),
            json!({"patch": {"text": "gone"}}),
            "{content: 'gone'}",
            json!({"patch": {"text": "gone"}}),
        ),
        replied(
            "user-bash",
            json!({"command": "ls", "excludeFromContext": false, "cwd": "/"}),
            &json!({"result": {"output": "none", "exitCode": 0, "cancelled": false, "truncated": false}}),
        ),
        replied(
            "before-agent-start",
            json!({"messageType": "user", "prompt": "go", "systemPrompt": "s"}),
            &json!({"message": {"customType": "rules", "content": "Mind them.", "display": true}, "systemPrompt": "Be terse."}),
        ),
        replied("context", json!({"messages": []}), &json!({"messages": [message]})),
        replied("context-with-system", json!({"messages": []}), &json!({"messages": [message]})),
        replied("before-provider-headers", json!({"headers": {}}), &json!({"headers": {"x-team": "blue"}})),
        row(
            "before-provider-request",
            json!({"payload": {"model": "m", "messages": [message]}, "mark": MARK}),
            json!({"reply": {"payload": payload}}),
            &payload.to_string(),
            json!({"reply": {"payload": payload}}),
        ),
        replied("message-end", json!({"message": message}), &json!({"message": message})),
        replied("turn-end", json!({"outcome": "stop"}), &json!({"entries": [entry], "continue": true})),
        replied("agent-before-settle", json!({"outcome": "stop"}), &json!({"entries": [entry], "continue": true})),
        heard("session-start"),
        heard("session-shutdown"),
        replied("session-before-switch", json!({"reason": "new"}), &cancel),
        replied("session-before-fork", json!({"entryId": "e"}), &cancel),
        replied(
            "session-before-tree",
            json!({"preparation": {}}),
            &json!({"summary": {"summary": "in short"}, "label": "here"}),
        ),
        replied(
            "session-before-compact",
            json!({"preparation": {}}),
            &json!({"compaction": {"summary": "in short", "firstKeptEntryId": "e", "tokensBefore": 1}}),
        ),
        replied("resources-discover", json!({"cwd": "/", "reason": "startup"}), &json!({"skillPaths": ["more"]})),
        replied("project-trust", json!({"cwd": "/"}), &json!({"trusted": "no", "remember": true})),
        replied(
            "cache-warming-decision",
            json!({"warmCost": 1, "missCost": 2, "continuationProbability": 0.5, "action": "warm"}),
            &json!({"action": "skip"}),
        ),
    ]
}

/// All events, as the contract lists them.
fn rows() -> Vec<Row> {
    let mut asked = asked();
    let row = |kind: EventKind| {
        let known = asked.iter().position(|row| row.name == kind.as_str());
        match known {
            Some(at) => asked.swap_remove(at),
            None => {
                assert!(!kind.is_asked(), "{} takes an answer, and none is given here", kind.as_str());
                heard(kind.as_str())
            }
        }
    };
    let rows = EventKind::ALL.into_iter().map(row).collect();
    assert!(asked.is_empty(), "{:?} is no event", asked.iter().map(|row| row.name).collect::<Vec<_>>());
    rows
}

/// A scenario in which these are told one after the other, and something is said on the bus.
fn scenario(settings: &Value, rows: &[Row]) -> String {
    let step = |row: &Row| {
        let mut expect = row.expect.clone();
        expect["log"] = json!([format!("*{MARK}*")]);
        json!({"event": row.name, "fields": row.fields, "expect": expect})
    };
    let bus = json!({"bus": "news", "data": {"mark": MARK}, "sender": "other", "expect": {"log": [format!("*news*{MARK}*")]}});
    let complete = json!({"complete": "say", "arguments": "w", "expect": {"completions": ["world", "wide"]}});
    let steps: Vec<Value> = rows.iter().map(step).chain([bus, complete]).collect();
    toml::to_string(&json!({"settings": settings, "step": steps})).unwrap()
}

#[test]
fn every_event_reaches_a_component_and_its_answer_counts() {
    let rows = rows();
    let answers: serde_json::Map<String, Value> =
        rows.iter().map(|row| (row.name.to_owned(), json!([row.answer]))).collect();
    let events: Vec<&str> = rows.iter().map(|row| row.name).collect();
    let settings = json!({
        "events": events, "topics": ["news"], "record": "log", "answers": answers,
        "commands": {"say": {"completes": ["world", "wide", "you"]}},
    });
    let sandbox = Sandbox::new();
    let file = sandbox.offered("puppet", &test_plugin("puppet"), Some(PUPPET_TOML));
    let scenario = sandbox.file("s.toml", scenario(&settings, &rows));
    sandbox.atoll().args(["plugin", "test"]).arg(file).arg(scenario).run().ok();
}

#[test]
fn every_event_reaches_a_script_and_its_answer_counts() {
    let rows = rows();
    let handlers: String = rows
        .iter()
        .map(|row| {
            let (name, returns) = (row.name.replace('-', "_"), &row.returns);
            format!("  a.on('{name}', (e: any) => {{ heard('{name}', e); return {returns}; }});\n")
        })
        .collect();
    let text = format!(
        "export default function (a: any) {{\n  const heard = (name: string, e: any) => {{\n    \
         if (e.type !== name) throw new Error(`${{e.type}} is not ${{name}}`);\n    console.log(JSON.stringify(e));\n  }};\n\
         {handlers}  a.events.on('news', (data: any, sender: string) => console.log('news', sender, JSON.stringify(data)));\n  \
         a.registerCommand('say', {{ handler: (_: string, ctx: any) => ctx.ui.setStatus('own', 'busy'), getArgumentCompletions: (text: string) => \
         ['world', 'wide', 'you'].filter(word => word.startsWith(text)) }});\n}}\n"
    );
    let sandbox = Sandbox::new();
    let file = sandbox.file("it.ts", text);
    let scenario = sandbox.file("s.toml", scenario(&json!({}), &rows));
    sandbox.atoll().args(["plugin", "test"]).arg(file).arg(scenario).run().ok();
}

/// Which events are told of by no part of the program yet. One that comes to be told of leaves this list, and gets a test in
/// which it is.
const NOT_YET: [&str; 9] = [
    "user-bash",
    "session-compact",
    "session-compact-failed",
    "session-tree",
    "session-before-switch",
    "session-before-fork",
    "session-before-tree",
    "session-before-compact",
    "cache-warming-decision",
];

/// Nobody waits for them in vain, and handling them is no mistake.
#[test]
fn events_that_nothing_tells_of_yet_can_be_subscribed_to_from_both() {
    let sandbox = Sandbox::new();
    let handlers: String = NOT_YET
        .iter()
        .map(|name| format!("  a.on('{}', () => {{ throw new Error('it was told'); }});\n", name.replace('-', "_")))
        .collect();
    let script = sandbox.root().join("it.ts");
    std::fs::write(&script, format!("export default function (a: any) {{\n{handlers}}}\n")).unwrap();
    let puppet = json!({"events": NOT_YET, "record": "store"});
    let model = crate::common::puppets::one_call("bash", &json!({"command": "ls"}));
    sandbox.with_puppets(&[("puppet", puppet)], &model).arg("-e").arg(script).arg("go").run().ok().silent();
    let told: Vec<String> = sandbox.told_in_store("puppet").into_iter().map(|(name, _)| name).collect();
    assert_eq!(told, ["start", "stop"]);
    // The host knows each of them: else this would hold for any word.
    for name in NOT_YET {
        assert!(EventKind::of_name(name).is_some(), "{name}");
    }
    let guide = std::fs::read_to_string(workspace_root().join("guest-extensions/README.md")).unwrap();
    let said = guide.split("\n\n").find(|paragraph| paragraph.contains("told of by no part")).unwrap_or_default();
    for name in NOT_YET {
        assert!(said.contains(&format!("`{name}`")), "the guide does not say so of {name}");
    }
}
