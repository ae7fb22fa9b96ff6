use super::*;
use crate::message::{SystemMessage, UserMessage};

fn fields(value: Value) -> Outcome {
    let Value::Object(fields) = value else { panic!("no object") };
    Outcome::Reply(fields)
}

fn user(text: &str) -> Message {
    Message::User(UserMessage { content: vec![Content::text(text)], timestamp: 1 })
}

fn input() -> InputState {
    let images = vec![Content::Image { data: "AA==".into(), mime_type: "image/png".into() }];
    InputState { text: "hi".into(), images, handled: false }
}

#[test]
fn input_is_transformed_or_dealt_with() {
    let mut state = input();
    state.apply(Outcome::Transform { text: "ho".into(), images: None }).unwrap();
    assert_eq!((state.text.as_str(), state.images.len()), ("ho", 1), "pictures stay if nothing is said of them");
    assert_eq!(state.apply(Outcome::Pass).unwrap(), Flow::On);
    state.apply(Outcome::Transform { text: "ha".into(), images: Some(Vec::new()) }).unwrap();
    assert_eq!(state.effect(), InputEffect::Go(vec![Content::text("ha")]));
    let mut state = input();
    assert_eq!(state.apply(Outcome::Handled).unwrap(), Flow::End);
    assert_eq!(state.effect(), InputEffect::Handled);
    assert_eq!(input().apply(Outcome::Rewrite(json!({}))).unwrap_err().code(), "invalid-arguments");
}

fn begin() -> BeforeStart {
    let sections = json!({"preamble": "You help.", "cwd": "<cwd>\n/p\n</cwd>"});
    BeforeStart {
        content: vec![Content::text("go")],
        tools: vec!["read".into()],
        sections: sections.as_object().unwrap().clone(),
        prompt: "You help.\n\n<cwd>\n/p\n</cwd>".into(),
        ..BeforeStart::default()
    }
}

#[test]
fn messages_add_up_and_the_last_prompt_counts() {
    let mut state = begin();
    assert_eq!(
        state.fields(),
        json!({"messageType": "user", "prompt": "go", "images": [], "systemPrompt": "You help.\n\n<cwd>\n/p\n</cwd>",
            "systemPromptOptions": {"selectedTools": ["read"], "sections": state.sections}})
    );
    state.apply(Outcome::Pass).unwrap();
    assert!(!state.is_changed);
    let message = |text: &str| json!({"customType": "rules", "content": text, "display": true, "details": {"n": 1}});
    state.apply(fields(json!({"message": message("one"), "systemPrompt": "A"}))).unwrap();
    state.apply(fields(json!({"message": message("two"), "systemPrompt": "B"}))).unwrap();
    let texts: Vec<String> = state.messages.iter().map(|message| Content::joined_text(&message.content)).collect();
    assert_eq!((texts, state.prompt.as_str(), state.is_changed), (vec!["one".into(), "two".into()], "B", true));
    assert!(state.messages[0].display && state.messages[0].details == Some(json!({"n": 1})));
}

#[test]
fn sections_of_a_run_are_changed_by_name_and_what_was_given_may_be_given_back() {
    let mut state = begin();
    let options = state.fields()["systemPromptOptions"].clone();
    state.apply(fields(json!({"systemPromptOptions": options}))).unwrap();
    assert!(!state.is_changed);
    let change = json!({"sections": {"cwd": null, "extra": "More."}});
    state.apply(fields(json!({"systemPromptOptions": change}))).unwrap();
    assert_eq!((state.prompt.as_str(), state.is_changed), ("You help.\n\nMore.", true));
}

#[test]
fn a_beginning_that_means_nothing_changes_nothing() {
    for (answer, names) in [
        (json!({"systemPrompt": 1}), "systemPrompt"),
        (json!({"message": {"content": "x"}}), "message"),
        (json!({"message": {"customType": "a", "content": {"no": 1}}}), "message"),
        (json!({"systemPrompt": "x", "systemPromptOptions": {"selectedTools": ["bash"]}}), "selectedTools"),
        (json!({"systemPrompt": "x", "systemPromptOptions": {"sections": {"a": 1}}}), "sections.a"),
    ] {
        let mut state = begin();
        let error = state.apply(fields(answer.clone())).unwrap_err().to_string();
        assert!(error.contains(names) && error.contains("before-agent-start"), "{answer}: {error}");
        assert_eq!(state, begin(), "{answer}");
    }
}

fn context() -> ContextEffect {
    ContextEffect { messages: vec![Message::System(SystemMessage::default()), user("one"), user("two")] }
}

#[test]
fn context_is_without_instructions_and_context_with_system_keeps_them_first() {
    let mut state = context();
    let shown = |state: &ContextEffect, kind| state.fields(kind)["messages"].as_array().unwrap().len();
    assert_eq!((shown(&state, EventKind::Context), shown(&state, EventKind::ContextWithSystem)), (2, 3));
    let one = json!([{"role": "user", "content": "only"}]);
    state.apply(EventKind::Context, fields(json!({"messages": one}))).unwrap();
    assert!(matches!(&state.messages[..], [Message::System(_), Message::User(_)]));
    let error = state.apply(EventKind::ContextWithSystem, fields(json!({"messages": one}))).unwrap_err();
    assert!(error.to_string().contains("instructions"), "{error}");
    let system = json!([{"role": "system", "content": "x"}, {"role": "user", "content": "only"}]);
    state.apply(EventKind::ContextWithSystem, fields(json!({"messages": system}))).unwrap();
    assert!(matches!(&state.messages[0], Message::System(system) if system.content == "x"));
    for bad in [json!([1]), json!([{"content": "x"}]), json!([{"role": "user"}]), json!([{"role": "system"}]), json!(1)]
    {
        let before = state.messages.clone();
        let error = state.apply(EventKind::Context, fields(json!({"messages": bad}))).unwrap_err();
        assert!(error.to_string().contains("messages"), "{error}");
        assert_eq!(state.messages, before, "{bad}");
    }
}

#[test]
fn a_message_is_replaced_by_one_of_its_role() {
    let mut state = MessageEffect { message: user("one") };
    state.apply(fields(json!({}))).unwrap();
    let error = state.apply(fields(json!({"message": {"role": "assistant", "content": []}}))).unwrap_err();
    assert!(error.to_string().contains("has to stay user"), "{error}");
    state.apply(fields(json!({"message": {"role": "user", "content": "two", "timestamp": 1}}))).unwrap();
    assert_eq!(state.message, user("two"));
}

#[test]
fn entries_add_up_and_one_who_wants_to_go_on_is_enough() {
    let known = |id: &str| id != "gone";
    let apply = |state: &mut TurnReply, outcome| state.apply(EventKind::TurnEnd, outcome, &known);
    let mut state = TurnReply::default();
    apply(&mut state, fields(json!({"continue": true}))).unwrap();
    apply(
        &mut state,
        fields(json!({"continue": false, "entries": [
            {"type": "custom", "customType": "a", "data": {"n": 1}},
            {"type": "custom_message", "customType": "b", "content": "x", "display": false},
            {"type": "context_edit", "targetId": "1", "replacement": null},
            {"type": "compaction", "summary": "s", "firstKeptEntryId": "2", "tokensBefore": 3}]})),
    )
    .unwrap();
    assert!(state.go_on);
    let message = CustomMessage { custom_type: "b".into(), content: vec![Content::text("x")], ..Default::default() };
    assert_eq!(
        state.entries,
        [
            Draft::Custom { custom_type: "a".into(), data: json!({"n": 1}) },
            Draft::Message(message),
            Draft::Edit { target: "1".into(), replacement: Value::Null },
            Draft::Compaction { summary: "s".into(), first_kept: "2".into(), tokens_before: 3, details: Value::Null },
        ]
    );
    let before = state.clone();
    for bad in [json!({"type": "message"}), json!({"type": "context_edit", "targetId": "gone", "replacement": null})] {
        let error = apply(&mut state, fields(json!({"entries": [bad]}))).unwrap_err().to_string();
        assert!(error.contains("entries[0]"), "{error}");
    }
    assert_eq!(state, before);
}
