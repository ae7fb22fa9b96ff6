//! What MCP servers ask of us while they work: of the person, and of a model.

use serde_json::{Value, json};

use crate::common::{mcp::Place, terminal::AtTerminal, text_of};

/// A call that has the server ask.
fn asking(method: &str, params: &Value) -> String {
    json!({"method": method, "params": params}).to_string()
}

/// At a terminal, a call that has the server ask.
fn at_terminal(place: &Place, method: &str, params: &Value) -> AtTerminal {
    AtTerminal::start(place.atoll().args(["tool", "call", "mcp__peer__ask", &asking(method, params)]))
}

#[track_caller]
fn answered(at: AtTerminal) -> Value {
    serde_json::from_str(&at.wait().ok().stdout).unwrap()
}

fn form() -> Value {
    json!({"message": "Who are you?", "requestedSchema": {"type": "object", "required": ["name", "age"], "properties": {
        "name": {"type": "string", "title": "Your name", "default": "Ann"},
        "age": {"type": "integer", "minimum": 1},
        "mail": {"type": "string", "format": "email"},
        "color": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}], "default": "g"},
        "tags": {"type": "array", "items": {"enum": ["x", "y"]}},
        "sure": {"type": "boolean"},
    }}})
}

#[test]
fn a_form_is_filled_in_field_by_field_and_sent_once_it_is_agreed_to() {
    let place = Place::of_peer(&["--more"]);
    let mut at = at_terminal(&place, "elicitation/create", &form());
    let shown = at.wait_for("nothing declines:");
    assert!(shown.contains("The MCP server peer asks: Who are you?") && shown.contains("1. Answer"), "{shown}");
    at.press("1\n");
    // What is suggested is taken by saying nothing.
    let mut at = at.answer("(such as Ann)", "");
    let wrong = at.wait_for("A line of text");
    assert!(wrong.contains("peer: age"), "{wrong}");
    at.press("none\n");
    let mut at = at.answer("it has to be a whole number", "30");
    at.wait_for("leaves it open");
    at.wait_for("nothing declines:");
    at.press("\n");
    let colors = at.wait_for("nothing declines:");
    assert!(colors.find("Green") < colors.find("Red"), "what is suggested comes first: {colors}");
    at.press("2\n");
    let at = at.answer("1. [ ] x", "1").answer("1. [x] x", "3");
    let mut at = at.answer("1. Yes", "1");
    let sent = at.wait_for("1. Send");
    assert!(sent.contains(r#"{"name":"Ann","age":30,"color":"r","tags":["x"],"sure":true}"#), "{sent}");
    at.press("1\n");
    let answer = answered(at);
    let content = json!({"name": "Ann", "age": 30, "color": "r", "tags": ["x"], "sure": true});
    assert_eq!(answer, json!({"action": "accept", "content": content}));
}

#[test]
fn a_form_is_declined_or_left_or_taken_as_suggested() {
    let place = Place::of_peer(&["--more"]);
    let start = || at_terminal(&place, "elicitation/create", &form());
    assert_eq!(answered(start().answer("2. Decline", "2")), json!({"action": "decline"}));
    assert_eq!(answered(start().answer("2. Decline", "")), json!({"action": "cancel"}));
    // Leaving a field that has to be answered leaves the form.
    let left = start().answer("1. Answer", "1").answer("(such as Ann)", "Bob").answer("peer: age", "");
    assert_eq!(answered(left), json!({"action": "cancel"}));
    let suggested = json!({"message": "All set?", "requestedSchema": {"type": "object", "properties": {
        "z": {"type": "integer", "default": 7}, "a": {"type": "boolean", "default": false}, "open": {"type": "string"}}}});
    let taken = at_terminal(&place, "elicitation/create", &suggested)
        .answer(r#"2. Answer as suggested: {"z":7,"a":false}"#, "2");
    assert_eq!(answered(taken), json!({"action": "accept", "content": {"z": 7, "a": false}}));
    let nothing = json!({"message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}});
    let agreed = at_terminal(&place, "elicitation/create", &nothing).answer("1. Agree", "1");
    assert_eq!(answered(agreed), json!({"action": "accept", "content": {}}));
}

#[test]
fn a_page_is_shown_with_whose_it_is_and_only_a_person_opens_it() {
    let place = Place::of_peer(&["--more"]);
    let page =
        json!({"mode": "url", "elicitationId": "1", "url": "https://pay.example:8443/x?y=z", "message": "Pay for it."});
    let mut at = at_terminal(&place, "elicitation/create", &page);
    let shown = at.wait_for("nothing declines:");
    assert!(shown.contains("a page of pay.example:8443: Pay for it."), "{shown}");
    assert!(shown.contains("1. I open https://pay.example:8443/x?y=z"), "{shown}");
    at.press("1\n");
    assert_eq!(answered(at), json!({"action": "accept"}));
    let script = json!({"mode": "url", "elicitationId": "1", "url": "javascript:alert(1)", "message": "x"});
    let refused = answered(at_terminal(&place, "elicitation/create", &script));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    // A call that needs a page says which.
    let record = place.call("mcp__peer__needs_page", &json!({}));
    let text = text_of(&record["content"]);
    assert!(record["isError"] == true && text.contains("https://a.example/pay"), "{text}");
}

#[test]
fn where_nobody_is_forms_are_declined_and_models_are_not_asked() {
    let place = Place::of_peer(&["--more", "--log", "wire"]);
    let ask = |method: &str, params: &Value| {
        let record = place.call("mcp__peer__ask", &json!({"method": method, "params": params}));
        serde_json::from_str::<Value>(&text_of(&record["content"])).unwrap()
    };
    assert_eq!(ask("elicitation/create", &form()), json!({"action": "decline"}));
    let sample = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "Why?"}}], "maxTokens": 5});
    let refused = ask("sampling/createMessage", &sample);
    assert_eq!(refused["error"]["code"], -1, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("no user to ask"), "{refused}");
    let with_tools = json!({"messages": sample["messages"], "maxTokens": 5, "tools": [{"name": "x"}]});
    assert_eq!(ask("sampling/createMessage", &with_tools)["error"]["code"], -32602);
    assert_eq!(ask("unheard/of", &json!({}))["error"]["code"], -32601);
    assert!(ask("roots/list", &json!({}))["roots"][0]["uri"].as_str().unwrap().starts_with("file:///"));
    let hello = place.lines("wire").into_iter().find(|line| line.contains("\"initialize\"")).unwrap();
    let hello: Value = serde_json::from_str(&hello).unwrap();
    let can = json!({"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}});
    assert_eq!(hello["params"]["capabilities"], can);
}

#[test]
fn a_model_is_asked_for_a_server_if_the_person_allows_it() {
    let place = Place::of_peer(&["--more"]);
    let sample = json!({
        "messages": [{"role": "user", "content": {"type": "text", "text": "What is the capital of Norway?"}}],
        "systemPrompt": "Be brief.", "maxTokens": 50, "stopSequences": ["STOP"], "includeContext": "thisServer", "temperature": 0.1,
    });
    let code =
        format!("return (await tools.mcp__peer__ask({})).content[0].text", asking("sampling/createMessage", &sample));
    let turns = json!([
        {"when": {"system-contains": "Be brief."}, "text": "Oslo. STOP And more."},
        {"when": {"user-contains": "go"}, "calls": [{"tool": "codemode", "arguments": {"code": code}}]}, {"text": "done"},
    ]);
    let start = || AtTerminal::start(place.sandbox.scripted(&json!({"turns": turns})).arg("go"));
    let mut at = start();
    let shown = at.wait_for("[y]es or [n]o");
    for told in [
        "Let the MCP server peer ask the model scripted/default?",
        "Be brief.",
        "capital of Norway",
        "at most 50 tokens",
    ] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    at.press("y\n");
    at.wait().ok();
    let result = text_of(&place.sandbox.results()[0]["content"]);
    for told in [
        r#""text":"Oslo. ""#,
        r#""model":"scripted/default""#,
        r#""stopReason":"stopSequence""#,
        r#""role":"assistant""#,
    ] {
        assert!(result.contains(told), "{told}: {result}");
    }
}

#[test]
fn time_in_which_a_person_is_asked_is_not_the_servers() {
    let options = ["--more"];
    let place = Place::with(&json!({"peer": {"command": crate::common::mcp::peer(), "args": options, "timeout": 4}}));
    let mut at = at_terminal(
        &place,
        "elicitation/create",
        &json!({"message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}}),
    );
    at.wait_for("1. Agree");
    // Longer than the server may be silent. Were it to count, the dialog would be gone by then.
    std::thread::sleep(std::time::Duration::from_secs(6));
    at.press("1\n");
    assert_eq!(answered(at), json!({"action": "accept", "content": {}}));
}
