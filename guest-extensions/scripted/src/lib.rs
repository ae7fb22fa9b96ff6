//! A provider that plays a script instead of asking a model: for demos and tests, with no network and no chance
//! in it. The script comes with each request, in the model's `compat`.
//!
//! Must never reach for a capability beyond the clock, nor give two different answers to equal requests, except
//! that turns which leave nothing in the transcript are remembered.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail so"))]

pub mod pick;
pub mod play;
pub mod script;

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};

use atoll_plugin::provider::{self, AuthKind, Description, Failure, Modalities, Model, ModelEvent, Request};
use atoll_plugin::{Error, StreamReader, StreamResult, StreamWriter, clock, spawn_local};
use serde_json::Value;

use crate::pick::{Spent, pick};
use crate::play::{Step, play};
use crate::script::Script;

/// The wire format this provider stands in for.
const API: &str = "scripted";

/// How long a reader may be gone unnoticed.
const LOOK_MS: u64 = 250;

thread_local! {
    static SPENT: RefCell<Spent> = RefCell::default();
}

struct Component;

impl provider::Guest for Component {
    fn describe() -> Description {
        Description {
            name: API.to_owned(),
            apis: vec![API.to_owned()],
            models: vec![Model {
                id: "default".to_owned(),
                provider: API.to_owned(),
                api: API.to_owned(),
                base_url: String::new(),
                reasoning: true,
                input: Modalities::TEXT | Modalities::IMAGE,
                context_window: 128_000,
                max_tokens: 16_384,
                headers: Vec::new(),
                compat: "{}".to_owned(),
            }],
            auth: vec![AuthKind::None],
            key_variables: Vec::new(),
        }
    }

    async fn complete(request: Request) -> Result<StreamReader<ModelEvent>, Error> {
        let steps = SPENT.with_borrow_mut(|spent| steps(&request, spent))?;
        let (writer, reader) = provider::wit_stream::new();
        spawn_local(perform(steps, writer));
        Ok(reader)
    }
}

provider::export!(Component);

/// What answers `request`. Counts the turn, if it leaves nothing in the transcript.
fn steps(request: &Request, spent: &mut Spent) -> Result<Vec<Step>, Error> {
    let text = script_of(&request.model)?;
    let script =
        Script::parse(&text).map_err(|error| Error::InvalidArguments(format!("The script is not valid: {error}.")))?;
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let id = hasher.finish();
    let picked = pick(&script, id, &request.messages, spent);
    let turn = picked.turn.and_then(|at| Some((at, &script.turns.get(at)?.value)));
    let Some((at, turn)) = turn else {
        let text = format!(
            "The script has no turn left for answer {} (it has {} in all, and those left have conditions that do \
             not hold or were played as often as they say).",
            picked.answers + 1,
            script.turns.len()
        );
        let failure = Failure { error: Error::Failed(text), status: None, retry_after_ms: None };
        return Ok(vec![Step::Events(vec![ModelEvent::Failed(failure)])]);
    };
    if turn.leaves_nothing() {
        spent.count(id, at);
    }
    Ok(play(turn, &script.defaults, &request.messages, picked.answers))
}

fn script_of(model: &Model) -> Result<String, Error> {
    let keys = if model.compat.trim().is_empty() { Ok(Value::Null) } else { serde_json::from_str(&model.compat) };
    match keys.as_ref().ok().and_then(|keys| keys.get("script")) {
        Some(Value::String(text)) => Ok(text.clone()),
        _ => Err(Error::InvalidArguments(format!(
            "Model {}/{} has no script: its compat must be an object whose `script` is the script's text.",
            model.provider, model.id
        ))),
    }
}

async fn perform(steps: Vec<Step>, mut writer: StreamWriter<ModelEvent>) {
    for step in steps {
        let read = match step {
            Step::Events(events) => writer.write_all(events).await.is_empty(),
            Step::Pause(ms) => pause(ms, &mut writer).await,
            Step::Hang => loop {
                if !pause(u64::MAX, &mut writer).await {
                    break false;
                }
            },
        };
        if !read {
            return;
        }
    }
}

/// Waits; `false` as soon as nobody reads any more.
async fn pause(mut ms: u64, writer: &mut StreamWriter<ModelEvent>) -> bool {
    while ms > LOOK_MS {
        clock::sleep(LOOK_MS).await;
        ms -= LOOK_MS;
        let (result, _) = writer.write(Vec::new()).await;
        if result == StreamResult::Dropped {
            return false;
        }
    }
    clock::sleep(ms).await;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use atoll_plugin::provider::{AssistantBlock, Message, ThinkingLevel};
    use atoll_plugin::types::Content;

    fn request(script: &str, answers: usize) -> Request {
        let description = <Component as provider::Guest>::describe();
        let mut model = description.models[0].clone();
        model.compat = serde_json::json!({ "script": script, "other": 1 }).to_string();
        let mut messages = vec![Message::User(vec![Content::Text("hi".into())])];
        messages.extend((0..answers).map(|_| Message::Assistant(vec![AssistantBlock::Text("x".into())])));
        Request {
            id: "r".into(),
            model,
            key_secret: None,
            messages,
            tools: Vec::new(),
            thinking: ThinkingLevel::Off,
            max_tokens: None,
            idle_timeout_ms: 0,
        }
    }

    fn failure(steps: &[Step]) -> &Failure {
        match steps {
            [Step::Events(events)] => match events.as_slice() {
                [ModelEvent::Failed(failure)] => failure,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_script_that_is_over() {
        let steps = steps(&request("turns: [{text: a}]", 1), &mut Spent::default()).unwrap();
        let Error::Failed(text) = &failure(&steps).error else { panic!() };
        assert!(text.contains("no turn left for answer 2"), "{text}");
    }

    #[test]
    fn a_failure_is_played_once_and_a_retry_goes_on() {
        let mut spent = Spent::default();
        let request = request("turns: [{fail: {message: busy, status: 503}}, {text: a}]", 0);
        assert_eq!(failure(&steps(&request, &mut spent).unwrap()).status, Some(503));
        let steps = steps(&request, &mut spent).unwrap();
        assert!(matches!(&steps[0], Step::Events(events) if matches!(events.last(), Some(ModelEvent::Done(_)))));
    }

    #[test]
    fn mistakes_are_told_before_anything_is_played() {
        let error = |compat: &str| {
            let mut request = request("turns: []", 0);
            request.model.compat = compat.into();
            match steps(&request, &mut Spent::default()) {
                Err(Error::InvalidArguments(text)) => text,
                other => panic!("{other:?}"),
            }
        };
        for compat in ["", "{}", "[", r#"{"script":1}"#] {
            assert!(error(compat).contains("scripted/default has no script"), "{compat}");
        }
        let text = error(r#"{"script":"turns:\n  - txet: a\n"}"#);
        assert!(text.starts_with("The script is not valid: ") && text.contains("line 2"), "{text}");
    }
}
