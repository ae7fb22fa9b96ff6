//! What several tests need.

mod answers;
mod requests;

use atoll_plugin::provider::{Message, Modalities, Model, Request, ThinkingLevel};
use atoll_plugin::types::Content;

/// A model that takes text and pictures, behind a server nobody knows.
pub(crate) fn model() -> Model {
    Model {
        id: "m".into(),
        provider: "p".into(),
        api: crate::API.into(),
        base_url: "http://127.0.0.1:18765/v1".into(),
        reasoning: false,
        input: Modalities::TEXT | Modalities::IMAGE,
        context_window: 128_000,
        max_tokens: 16_384,
        headers: Vec::new(),
        compat: String::new(),
    }
}

/// A request to [`model`].
pub(crate) fn request(messages: Vec<Message>) -> Request {
    Request {
        id: "r1".into(),
        model: model(),
        key_secret: None,
        messages,
        tools: Vec::new(),
        thinking: ThinkingLevel::Off,
        max_tokens: None,
        idle_timeout_ms: 1000,
    }
}

/// A user's message of one text.
pub(crate) fn user(text: &str) -> Message {
    Message::User(vec![Content::Text(text.into())])
}
