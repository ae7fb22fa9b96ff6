//! A provider that breaks in the way that the user's last message asks for: what the tests of providers run.

use std::hint::black_box;

use atoll_plugin::provider::{
    self, AuthKind, CallStart, Delta, Description, Done, Message, ModelEvent, Request, StopReason,
};
use atoll_plugin::{Content, Error, StreamReader, clock, spawn_local};

struct Moody;

fn delta(index: u32, text: &str) -> ModelEvent {
    ModelEvent::TextDelta(Delta { index, text: text.to_owned() })
}

fn done(reason: StopReason) -> ModelEvent {
    ModelEvent::Done(Done { reason, raw_reason: None, response_model: None, response_id: None })
}

/// The last text of the user.
fn wish(request: &Request) -> String {
    let user = request.messages.iter().rev().find_map(|message| match message {
        Message::User(content) => Some(content),
        _ => None,
    });
    let text = user.and_then(|content| {
        content.iter().find_map(|piece| match piece {
            Content::Text(text) => Some(text.clone()),
            Content::Image(_) => None,
        })
    });
    text.unwrap_or_default()
}

impl provider::Guest for Moody {
    fn describe() -> Description {
        Description {
            name: "moody".to_owned(),
            apis: vec!["moody".to_owned()],
            models: Vec::new(),
            auth: vec![AuthKind::None],
            key_variables: Vec::new(),
        }
    }

    #[allow(clippy::panic, reason = "this is what it is for")]
    async fn complete(request: Request) -> Result<StreamReader<ModelEvent>, Error> {
        let wish = wish(&request);
        match wish.as_str() {
            "refuse" => return Err(Error::failed("not today")),
            "panic at once" => panic!("it is Monday"),
            "loop at once" => loop {
                black_box(&wish);
            },
            "never answer" => clock::sleep(u64::MAX / 2).await,
            _ => {}
        }
        let (mut writer, reader) = provider::wit_stream::new();
        spawn_local(async move {
            writer.write_all(vec![ModelEvent::Start, ModelEvent::TextStart(0), delta(0, "half ")]).await;
            match wish.as_str() {
                "panic" => panic!("the thread is lost"),
                "loop" => loop {
                    black_box(&wish);
                },
                "allocate" => {
                    let mut blocks: Vec<Vec<u8>> = Vec::new();
                    loop {
                        blocks.push(black_box(vec![1; 1 << 20]));
                    }
                }
                "end without an end" => {}
                "wrong numbers" => {
                    let events = vec![
                        delta(77, "lost"),
                        ModelEvent::TextStart(4_000_000_000),
                        ModelEvent::TextEnd(9),
                        ModelEvent::CallStart(CallStart { index: 5, id: "x".to_owned(), name: "bash".to_owned() }),
                        ModelEvent::CallDelta(Delta { index: 5, text: "{}".to_owned() }),
                        delta(0, "kept"),
                        ModelEvent::TextEnd(0),
                        done(StopReason::Stop),
                    ];
                    writer.write_all(events).await;
                }
                "two ends" => {
                    let events =
                        vec![delta(0, "whole"), done(StopReason::Stop), delta(0, "more"), done(StopReason::Stop)];
                    writer.write_all(events).await;
                }
                _ => {
                    writer.write_all(vec![delta(0, "whole"), ModelEvent::TextEnd(0), done(StopReason::Stop)]).await;
                }
            }
        });
        Ok(reader)
    }
}

provider::export!(Moody);
