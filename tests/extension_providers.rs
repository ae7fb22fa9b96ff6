//! What extensions see and change of requests to a model, and where they say that more is to be found.

use serde_json::{Value, json};

use crate::common::{
    Sandbox,
    sandbox::KEY,
    server::{Reply, Server},
    text_of,
};

const EVENTS: [&str; 4] =
    ["before-provider-headers", "before-provider-request", "after-provider-response", "provider-stream-event"];

/// A run against a server, with these puppets.
#[track_caller]
fn asked(puppets: &[(&str, Value)]) -> (Sandbox, Server, String) {
    let server = Server::start(vec![Reply::text("done")]);
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    let names = sandbox.puppets(puppets);
    let run = sandbox.atoll().args(names).args(["-p", "hello"]).run().ok();
    (sandbox, server, run.stderr)
}

/// The fields of the events of this name that a puppet was told.
fn of(told: &[(String, Value)], name: &str) -> Vec<Value> {
    told.iter().filter(|(known, _)| known == name).map(|(_, fields)| fields.clone()).collect()
}

#[test]
fn requests_are_seen_and_changed_in_load_order_and_what_comes_back_is_told() {
    let messages = json!([{"role": "user", "content": [{"type": "text", "text": "something else"}]}]);
    let one = json!({"events": EVENTS, "answers": {
        "before-provider-headers": [{"reply": {"headers": {"x-team": "blue", "x-gone": "x"}}}],
        "before-provider-request": [{"reply": {"payload": {"messages": messages, "tools": []}}}],
    }});
    let two = json!({"events": EVENTS, "record": "store", "answers": {
        "before-provider-headers": [{"when": "blue", "reply": {"headers": {"X-Gone": null}}}],
    }});
    let (sandbox, server, stderr) = asked(&[("one", one), ("two", two)]);
    assert_eq!(stderr, "");
    let body = &server.bodies()[0];
    assert_eq!(body["messages"].as_array().unwrap().len(), 1, "{body:#}");
    assert_eq!(text_of(&body["messages"][0]["content"]), "something else");
    assert!(body.get("tools").is_none_or(|tools| tools.as_array().is_some_and(Vec::is_empty)), "{body:#}");
    let request = &server.requests()[0];
    assert_eq!(request.header("x-team"), Some("blue"));
    assert_eq!(request.header("x-gone"), None);
    let told = sandbox.told_in_store("two");
    assert_eq!(of(&told, "before-provider-headers")[0]["headers"]["x-team"], "blue");
    let seen = &of(&told, "before-provider-request")[0]["payload"];
    assert_eq!((&seen["model"], &seen["messages"]), (&json!("m"), &messages));
    let response = &of(&told, "after-provider-response")[0];
    assert_eq!(response["status"], 200);
    assert!(response["headers"]["content-type"].as_str().unwrap().contains("event-stream"), "{response:#}");
    let stream = of(&told, "provider-stream-event");
    let kinds: Vec<&str> = stream.iter().map(|event| event["data"]["type"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"text_delta") && kinds.last() == Some(&"done"), "{kinds:?}");
    assert_eq!((&stream[0]["provider"], &stream[0]["api"]), (&json!("mock"), &json!("openai-completions")));
    // The session has what the user said.
    let said = sandbox.messages().into_iter().find(|message| message["role"] == "user").unwrap();
    assert_eq!(text_of(&said["content"]), "hello");
}

#[test]
fn no_key_is_in_what_extensions_see_of_requests() {
    let watcher = json!({"events": EVENTS, "record": "store"});
    let (sandbox, server, _) = asked(&[("watcher", watcher)]);
    assert_eq!(server.requests()[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let told = sandbox.stored("watcher", "told").unwrap();
    assert!(told.contains("before-provider-headers") && told.contains("after-provider-response"));
    assert!(!told.contains(KEY), "{told}");
}

#[test]
fn an_answer_to_a_request_that_means_nothing_is_told_and_changes_nothing() {
    let wrong = json!({"events": EVENTS, "answers": {
        "before-provider-headers": [{"reply": {"headers": {"x-team": 7}}}],
        "before-provider-request": [{"reply": {"payload": {"model": "another"}}}],
    }});
    let (_, server, stderr) = asked(&[("wrong", wrong)]);
    for says in ["failed at before-provider-headers", "failed at before-provider-request"] {
        assert!(stderr.contains(says), "{stderr}");
    }
    assert_eq!(server.bodies()[0]["model"], "m");
    assert_eq!(server.requests()[0].header("x-team"), None);
}

#[test]
fn extensions_are_asked_where_more_is_and_naming_a_place_opens_nothing() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.root().join("secret")).unwrap();
    let secret = sandbox.root().join("secret/SKILL.md");
    std::fs::write(&secret, "the secret\n").unwrap();
    let does = json!({"events": ["resources-discover"], "record": "entry",
        "answers": {"resources-discover": [{"reply": {"skillPaths": [sandbox.root().join("secret")]}}]}});
    let wrong =
        json!({"events": ["resources-discover"], "answers": {"resources-discover": [{"reply": {"skillPaths": 3}}]}});
    let script = json!({"turns": [{"calls": [{"tool": "read", "arguments": {"path": secret}}]}, {"text": "done"}, {"text": "done"}]});
    let run =
        sandbox.with_puppets(&[("does", does), ("wrong", wrong)], &script).args(["go", "/reload", "go"]).run().ok();
    assert!(run.stderr.contains("the extension wrong failed at resources-discover"), "{run:#?}");
    let reasons: Vec<Value> =
        of(&sandbox.told(), "resources-discover").iter().map(|fields| fields["reason"].clone()).collect();
    assert_eq!(reasons, ["startup", "reload"]);
    assert_eq!(of(&sandbox.told(), "resources-discover")[0]["cwd"], json!(sandbox.work()));
    let result = &sandbox.results()[0];
    assert_eq!(result["isError"], true, "{result:#}");
}
