use super::*;
use crate::models::Models;

fn request() -> ModelRequest {
    let mut model = Models::playing("").unwrap().model;
    model.headers = vec![("X-One".to_owned(), "1".to_owned()), ("x-two".to_owned(), "{{secret:two}}".to_owned())];
    ModelRequest {
        id: "r".to_owned(),
        model,
        key: None,
        header_secrets: Vec::new(),
        messages: vec![
            PromptMessage::System("be good".to_owned()),
            PromptMessage::User(vec![Content::text("hi")]),
            PromptMessage::Assistant(vec![
                AssistantPiece::Text("well".to_owned()),
                AssistantPiece::Thinking { text: "hm".to_owned(), signature: Some("s".to_owned()) },
                AssistantPiece::ToolCall { id: "c".to_owned(), name: "ls".to_owned(), arguments: "{}".to_owned() },
            ]),
            PromptMessage::ToolResult {
                call_id: "c".to_owned(),
                name: "ls".to_owned(),
                content: vec![Content::text("a")],
                is_error: true,
            },
        ],
        tools: vec![Declaration {
            name: "ls".to_owned(),
            description: "Lists.".to_owned(),
            parameters: json!({"type": "object"}),
        }],
        thinking: ThinkingLevel::Low,
        idle_timeout_ms: 1,
    }
}

fn replied(fields: Value) -> Outcome {
    let Value::Object(fields) = fields else { panic!("{fields}") };
    Outcome::Reply(fields)
}

#[test]
fn a_payload_that_comes_back_as_it_went_changes_nothing() {
    let mut after = request();
    assert_eq!(apply_payload(&mut after, replied(payload(&request()))).unwrap(), Flow::On);
    let before = request();
    assert_eq!((after.messages, after.tools), (before.messages, before.tools));
    assert_eq!((after.thinking, after.model), (before.thinking, before.model));
    let mut after = request();
    assert_eq!(apply_payload(&mut after, Outcome::Pass).unwrap(), Flow::On);
    assert_eq!(after.messages, request().messages);
}

#[test]
fn what_a_handler_says_of_a_payload_counts_and_the_rest_stays() {
    let mut after = request();
    let payload = json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "other"}]}], "tools": [],
        "thinking": "high", "maxTokens": 7});
    apply_payload(&mut after, replied(json!({"payload": payload}))).unwrap();
    assert_eq!(after.messages, [PromptMessage::User(vec![Content::text("other")])]);
    assert_eq!((after.tools.len(), after.thinking, after.model.max_tokens), (0, ThinkingLevel::High, 7));
    let mut after = request();
    apply_payload(&mut after, replied(json!({"payload": {"thinking": "off"}}))).unwrap();
    assert_eq!((after.messages, after.thinking), (request().messages, ThinkingLevel::Off));
}

#[test]
fn a_payload_that_means_nothing_is_a_failure_and_changes_nothing() {
    for (payload, says) in [
        (json!({"model": "another"}), "set-model"),
        (json!({"messages": []}), "payload.messages"),
        (json!({"messages": [{"role": "nobody"}]}), "payload"),
        (json!({"maxTokens": 0}), "maxTokens"),
        (json!({"temperature": 1}), "temperature"),
        (json!("text"), "payload"),
    ] {
        let mut after = request();
        let error = apply_payload(&mut after, replied(json!({"payload": payload}))).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!((error.code(), after.messages), ("invalid-arguments", request().messages));
    }
    assert!(apply_payload(&mut request(), Outcome::Handled).is_err());
}

#[test]
fn headers_are_set_and_taken_away_whatever_their_case() {
    let mut after = request();
    assert_eq!(headers(&after), json!({"headers": {"X-One": "1", "x-two": "{{secret:two}}"}}));
    let changes = json!({"headers": {"x-one": "2", "X-Two": null, "x-three": "3", "x-four": null}});
    apply_headers(&mut after, replied(changes)).unwrap();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(after.model.headers, [pair("x-one", "2"), pair("x-three", "3")]);
    let error = apply_headers(&mut after, replied(json!({"headers": {"x-one": 3}}))).unwrap_err();
    assert!(error.to_string().contains("headers.x-one"), "{error}");
    assert_eq!(after.model.headers.len(), 2);
}
