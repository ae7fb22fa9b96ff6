//! Requests as they go over the wire.

use atoll_plugin::Error;
use atoll_plugin::provider::{
    AssistantBlock, Declaration, Message, Modalities, Request, Thinking, ThinkingLevel, ToolCall, ToolResult,
};
use atoll_plugin::types::{Blob, Content};
use serde_json::{Value, json};

use super::{request, user};
use crate::compat::Compat;
use crate::messages::call_id;
use crate::request::{body, headers, url};

fn wire(request: &Request) -> Value {
    serde_json::from_slice(&body(request, &Compat::of(&request.model).unwrap()).unwrap()).unwrap()
}

fn messages(messages: Vec<Message>) -> Value {
    wire(&request(messages))["messages"].take()
}

fn image() -> Content {
    Content::Image(Blob { data: vec![1, 2, 3], mime_type: "image/png".into() })
}

fn call(id: &str, arguments: &str) -> AssistantBlock {
    AssistantBlock::ToolCall(ToolCall { id: id.into(), name: "read".into(), arguments: arguments.into() })
}

fn result(id: &str, content: Vec<Content>) -> Message {
    Message::ToolResult(ToolResult { call_id: id.into(), name: "read".into(), content, is_error: false })
}

fn text(text: &str) -> Content {
    Content::Text(text.into())
}

#[test]
fn the_smallest_request() {
    let body = body(&request(vec![user("hi")]), &Compat::of(&super::model()).unwrap()).unwrap();
    assert_eq!(
        String::from_utf8(body).unwrap(),
        r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}"#
    );
}

#[test]
fn what_only_open_ai_gets() {
    let mut request = request(vec![Message::System("be brief".into()), user("hi")]);
    request.model.base_url = "https://api.openai.com/v1".into();
    request.model.reasoning = true;
    request.thinking = ThinkingLevel::High;
    request.max_tokens = Some(9);
    let body = wire(&request);
    assert_eq!(body["store"], json!(false));
    assert_eq!(body["messages"][0], json!({"role": "developer", "content": "be brief"}));
    assert_eq!(body["reasoning_effort"], "high");
    assert_eq!(body["max_completion_tokens"], 9);
    assert_eq!(body.get("max_tokens"), None);
    request.model.reasoning = false;
    let body = wire(&request);
    assert_eq!(body["messages"][0]["role"], "system");
    assert_eq!(body.get("reasoning_effort"), None);
}

#[test]
fn thinking_in_the_words_of_each_server() {
    let mut request = request(vec![user("hi")]);
    request.model.reasoning = true;
    for (format, on, off) in [
        ("openai", json!({"reasoning_effort": "low"}), json!({})),
        ("openrouter", json!({"reasoning": {"effort": "low"}}), json!({"reasoning": {"effort": "none"}})),
        (
            "deepseek",
            json!({"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
            json!({"thinking": {"type": "disabled"}}),
        ),
        (
            "together",
            json!({"reasoning": {"enabled": true}, "reasoning_effort": "low"}),
            json!({"reasoning": {"enabled": false}}),
        ),
        ("zai", json!({"thinking": {"type": "enabled"}}), json!({"thinking": {"type": "disabled"}})),
        ("qwen", json!({"enable_thinking": true}), json!({"enable_thinking": false})),
        (
            "qwen-chat-template",
            json!({"chat_template_kwargs": {"enable_thinking": true, "preserve_thinking": true}}),
            json!({"chat_template_kwargs": {"enable_thinking": false, "preserve_thinking": true}}),
        ),
        ("string-thinking", json!({"thinking": "low"}), json!({"thinking": "none"})),
    ] {
        request.model.compat = json!({ "thinkingFormat": format }).to_string();
        for (level, wanted) in [(ThinkingLevel::Low, on), (ThinkingLevel::Off, off)] {
            request.thinking = level;
            let mut body = wire(&request);
            let body = body.as_object_mut().unwrap();
            for key in ["model", "messages", "stream", "stream_options"] {
                body.remove(key);
            }
            assert_eq!(Value::Object(body.clone()), wanted, "{format} {level:?}");
        }
    }
}

#[test]
fn tools_keep_the_order_of_their_schemas() {
    let mut request = request(vec![user("hi")]);
    request.tools.push(Declaration {
        name: "read".into(),
        description: "Reads.".into(),
        parameters: r#"{"type":"object","properties":{"z":{},"a":{}}}"#.into(),
    });
    let text = String::from_utf8(body(&request, &Compat::of(&request.model).unwrap()).unwrap()).unwrap();
    let wanted = r#""tools":[{"type":"function","function":{"name":"read","description":"Reads.","parameters":{"type":"object","properties":{"z":{},"a":{}}}}}]"#;
    assert!(text.contains(wanted), "{text}");
    request.tools[0].parameters = "{".into();
    let Err(Error::InvalidArguments(text)) = body(&request, &Compat::of(&request.model).unwrap()) else { panic!() };
    assert!(text.contains("tool read"), "{text}");
}

#[test]
fn a_whole_turn() {
    let wire = messages(vec![
        Message::System("S".into()),
        Message::User(vec![text("look"), image()]),
        Message::Assistant(vec![
            AssistantBlock::Thinking(Thinking { text: "hm".into(), signature: Some("reasoning_content".into()) }),
            call("a", r#"{"z":1,"a":2}"#),
            call("b", "{}"),
        ]),
        result("a", vec![text("one"), image()]),
        result("b", vec![]),
        Message::Assistant(vec![AssistantBlock::Text("done".into())]),
    ]);
    let picture = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AQID"}});
    assert_eq!(
        wire,
        json!([
            {"role": "system", "content": "S"},
            {"role": "user", "content": [{"type": "text", "text": "look"}, picture]},
            {"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "read", "arguments": r#"{"z":1,"a":2}"#}},
                {"id": "b", "type": "function", "function": {"name": "read", "arguments": "{}"}},
            ]},
            {"role": "tool", "content": "one", "tool_call_id": "a"},
            {"role": "tool", "content": "(no output)", "tool_call_id": "b"},
            {"role": "user", "content": [{"type": "text", "text": "Pictures from the tool results above:"}, picture]},
            {"role": "assistant", "content": "done"},
        ])
    );
}

#[test]
fn results_that_are_blank_or_only_pictures() {
    let wire = messages(vec![result("a", vec![text(" \n")]), result("b", vec![image()])]);
    assert_eq!(wire[0]["content"], "(no output)");
    assert_eq!(wire[1]["content"], "(the picture follows)");
}

#[test]
fn a_model_without_eyes_reads_a_note() {
    let mut request =
        request(vec![Message::User(vec![text("look"), image(), image(), text("there")]), result("a", vec![image()])]);
    request.model.input = Modalities::TEXT;
    let wire = wire(&request);
    let note = "(picture left out: this model takes only text)";
    assert_eq!(wire["messages"][0]["content"], format!("look\n{note}\nthere"));
    assert_eq!(wire["messages"][1]["content"], note);
    assert_eq!(wire["messages"].as_array().unwrap().len(), 2);
}

#[test]
fn later_instructions_go_to_the_head_unless_they_may_stay() {
    let transcript = vec![
        Message::System("one".into()),
        Message::System("two".into()),
        user("hi"),
        Message::Assistant(vec![call("a", "{}")]),
        Message::System("three".into()),
        result("a", vec![image()]),
        Message::System(" ".into()),
        user("go on"),
        Message::System("four".into()),
    ];
    let mut request = request(transcript);
    let roles = |wire: &Value| -> Vec<String> {
        let list = wire["messages"].as_array().unwrap();
        list.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
    };
    let collapsed = wire(&request);
    assert_eq!(collapsed["messages"][0]["content"], "one\n\ntwo\n\nthree\n\nfour");
    assert_eq!(roles(&collapsed), ["system", "user", "assistant", "tool", "user", "user"]);
    request.model.compat = r#"{"supportsMidConvoSystemMessages":true}"#.into();
    let placed = wire(&request);
    assert_eq!(placed["messages"][0]["content"], "one\n\ntwo");
    assert_eq!(roles(&placed), ["system", "user", "assistant", "tool", "user", "system", "user", "system"]);
    assert_eq!(placed["messages"][5]["content"], "three");
}

#[test]
fn what_some_servers_want_around_results() {
    let mut request = request(vec![
        Message::Assistant(vec![
            AssistantBlock::Thinking(Thinking { text: "hm".into(), signature: None }),
            AssistantBlock::Text("see".into()),
            call("a", "{}"),
        ]),
        result("a", vec![text("x")]),
        user("next"),
    ]);
    request.model.reasoning = true;
    request.model.compat = r#"{"requiresToolResultName":true,"requiresAssistantAfterToolResult":true,
        "requiresThinkingAsText":true,"requiresReasoningContentOnAssistantMessages":true}"#
        .into();
    let wire = wire(&request);
    assert_eq!(
        wire["messages"][0]["content"],
        json!([{"type": "text", "text": "hm"}, {"type": "text", "text": "see"}])
    );
    assert_eq!(wire["messages"][0]["reasoning_content"], "");
    assert_eq!(wire["messages"][1]["name"], "read");
    assert_eq!(wire["messages"][2]["role"], "assistant");
    assert_eq!(wire["messages"][3], json!({"role": "user", "content": "next"}));
}

#[test]
fn messages_that_say_nothing_are_left_out() {
    let wire = messages(vec![
        user(""),
        Message::User(vec![]),
        Message::Assistant(vec![AssistantBlock::Text(" ".into())]),
        Message::Assistant(vec![AssistantBlock::Thinking(Thinking { text: "hm".into(), signature: None })]),
    ]);
    assert_eq!(wire, json!([]));
}

#[test]
fn arguments_are_always_an_object() {
    let wire = messages(vec![Message::Assistant(vec![call("a", "[1]"), call("b", "{\"x"), call("c", "")])]);
    let of = |at: usize| wire[0]["tool_calls"][at]["function"]["arguments"].as_str().unwrap().to_owned();
    assert_eq!(of(0), r#"{"arguments":[1]}"#);
    assert_eq!(of(1), r#"{"arguments":"{\"x"}"#);
    assert_eq!(of(2), r#"{"arguments":""}"#);
}

#[test]
fn ids_of_calls() {
    let long = "x".repeat(50);
    assert_eq!(call_id("call_1", true), "call_1");
    assert_eq!(call_id("call|fc.1", false), "call_fc_1");
    assert_eq!(call_id(&long, false), long);
    let short = call_id(&long, true);
    assert_eq!(short.len(), 40);
    assert_ne!(short, call_id(&format!("{long}y"), true));
    assert_eq!(call_id(&format!("a|{long}"), false).len(), 40);
    assert_eq!(call_id(&short, true), short);
}

#[test]
fn addresses() {
    for (base, wanted) in [
        ("", "https://api.openai.com/v1/chat/completions"),
        ("http://a/v1", "http://a/v1/chat/completions"),
        ("http://a/v1/", "http://a/v1/chat/completions"),
        ("http://a/v1?v=2", "http://a/v1/chat/completions?v=2"),
    ] {
        assert_eq!(url(base), wanted);
    }
}

#[test]
fn the_key_is_named_and_the_models_headers_win() {
    let mut request = request(vec![]);
    assert!(headers(&request).iter().all(|(name, _)| name != "authorization"));
    request.key_secret = Some("OPENAI_API_KEY".into());
    let key = ("authorization".to_owned(), "Bearer {{secret:OPENAI_API_KEY}}".to_owned());
    assert!(headers(&request).contains(&key));
    request.model.headers = vec![("Authorization".into(), "Token x".into()), ("X-Title".into(), "atoll".into())];
    let headers = headers(&request);
    assert!(!headers.contains(&key));
    assert!(headers.contains(&("authorization".to_owned(), "Token x".to_owned())));
    assert!(headers.contains(&("x-title".to_owned(), "atoll".to_owned())));
}
