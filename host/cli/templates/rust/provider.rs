//! A provider that answers with what it was asked. A real one sends a request with `atoll_plugin::http` and turns the
//! server's stream into these events. One instance serves the session's requests side by side, so never block: `await`.

use atoll_plugin::{
    Content, Error, StreamReader,
    provider::{self, Delta, Description, Done, Message, ModelEvent, Request, StopReason},
    spawn_local,
};

struct Provider;

impl provider::Guest for Provider {
    fn describe() -> Description {
        Description {
            name: "{{name}}".to_owned(),
            // What `api` of the user's models.json names.
            apis: vec!["{{name}}".to_owned()],
            models: Vec::new(),
            auth: Vec::new(),
            key_variables: Vec::new(),
        }
    }

    async fn complete(request: Request) -> Result<StreamReader<ModelEvent>, Error> {
        let (mut events, reader) = provider::wit_stream::new();
        spawn_local(async move {
            let text = last_words(&request.messages);
            let answer = [
                ModelEvent::Start,
                ModelEvent::TextStart(0),
                ModelEvent::TextDelta(Delta { index: 0, text }),
                ModelEvent::TextEnd(0),
                ModelEvent::Done(Done {
                    reason: StopReason::Stop,
                    raw_reason: None,
                    response_model: None,
                    response_id: None,
                }),
            ];
            // What is left over was not wanted any more: the request is to end then.
            events.write_all(answer.into()).await;
        });
        Ok(reader)
    }
}

provider::export!(Provider);

/// What the user said last.
fn last_words(messages: &[Message]) -> String {
    let said = messages.iter().rev().find_map(|message| match message {
        Message::User(content) => content.iter().find_map(|piece| match piece {
            Content::Text(text) => Some(text.clone()),
            Content::Image(_) => None,
        }),
        _ => None,
    });
    said.filter(|text| !text.is_empty()).unwrap_or_else(|| "You said nothing.".to_owned())
}

// What calls no import is tested with plain `cargo test`.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_of_the_user_counts() {
        let said = |text: &str| Message::User(vec![Content::Text(text.to_owned())]);
        assert_eq!(last_words(&[said("one"), said("two"), Message::System("three".to_owned())]), "two");
        assert_eq!(last_words(&[]), "You said nothing.");
    }
}
