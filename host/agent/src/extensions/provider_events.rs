//! Requests to a model and what comes back, as extensions see and change them.
//!
//! The key is in none of it, and a header that holds a secret names it only. Nothing here may send a request elsewhere: the
//! model and its server stay as they were chosen.

use atoll_table::{
    Content, Error,
    extension::{EventKind, Outcome},
    model::{AssistantPiece, Declaration, Model, ModelEvent, ModelRequest, PromptMessage, ThinkingLevel},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    Event, Extensions,
    effects::{Flow, field, reply, wrong},
};

/// A message of a request.
#[derive(Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
enum Said {
    System {
        content: String,
    },
    User {
        content: Vec<Content>,
    },
    Assistant {
        content: Vec<Piece>,
    },
    ToolResult {
        tool_call_id: String,
        tool_name: String,
        content: Vec<Content>,
        #[serde(default)]
        is_error: bool,
    },
}

/// A piece of what the model said before.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
enum Piece {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thinking_signature: Option<String>,
    },
    ToolCall {
        id: String,
        name: String,
        /// As the model sent them: JSON text.
        arguments: String,
    },
}

/// A tool of a request.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    name: String,
    description: String,
    parameters: Value,
}

/// What handlers give back of a payload. What is left out stays as it was.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Payload {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    messages: Option<Vec<Said>>,
    #[serde(default)]
    tools: Option<Vec<Declared>>,
    #[serde(default)]
    thinking: Option<ThinkingLevel>,
    #[serde(default)]
    max_tokens: Option<u64>,
}

impl From<PromptMessage> for Said {
    fn from(message: PromptMessage) -> Self {
        match message {
            PromptMessage::System(content) => Self::System { content },
            PromptMessage::User(content) => Self::User { content },
            PromptMessage::Assistant(pieces) => {
                Self::Assistant { content: pieces.into_iter().map(Piece::from).collect() }
            }
            PromptMessage::ToolResult { call_id, name, content, is_error } => {
                Self::ToolResult { tool_call_id: call_id, tool_name: name, content, is_error }
            }
        }
    }
}

impl From<Said> for PromptMessage {
    fn from(said: Said) -> Self {
        match said {
            Said::System { content } => Self::System(content),
            Said::User { content } => Self::User(content),
            Said::Assistant { content } => Self::Assistant(content.into_iter().map(AssistantPiece::from).collect()),
            Said::ToolResult { tool_call_id, tool_name, content, is_error } => {
                Self::ToolResult { call_id: tool_call_id, name: tool_name, content, is_error }
            }
        }
    }
}

impl From<AssistantPiece> for Piece {
    fn from(piece: AssistantPiece) -> Self {
        match piece {
            AssistantPiece::Text(text) => Self::Text { text },
            AssistantPiece::Thinking { text, signature } => {
                Self::Thinking { thinking: text, thinking_signature: signature }
            }
            AssistantPiece::ToolCall { id, name, arguments } => Self::ToolCall { id, name, arguments },
        }
    }
}

impl From<Piece> for AssistantPiece {
    fn from(piece: Piece) -> Self {
        match piece {
            Piece::Text { text } => Self::Text(text),
            Piece::Thinking { thinking, thinking_signature } => {
                Self::Thinking { text: thinking, signature: thinking_signature }
            }
            Piece::ToolCall { id, name, arguments } => Self::ToolCall { id, name, arguments },
        }
    }
}

/// A request as handlers see it.
fn payload(request: &ModelRequest) -> Value {
    let messages: Vec<Said> = request.messages.iter().cloned().map(Said::from).collect();
    let declared = request.tools.iter().cloned();
    let tools: Vec<Declared> = declared
        .map(|Declaration { name, description, parameters }| Declared { name, description, parameters })
        .collect();
    json!({"payload": {
        "model": request.model.id,
        "messages": messages,
        "tools": tools,
        "thinking": request.thinking,
        "maxTokens": request.model.max_tokens,
    }})
}

/// Lets a handler's answer count.
fn apply_payload(request: &mut ModelRequest, outcome: Outcome) -> Result<Flow, Error> {
    let kind = EventKind::BeforeProviderRequest;
    let Some(mut fields) = reply(kind, outcome)? else { return Ok(Flow::On) };
    let Some(payload) = field::<Payload>(kind, &mut fields, "payload")? else { return Ok(Flow::On) };
    if payload.model.is_some_and(|model| model != request.model.id) {
        return Err(wrong(kind, "payload.model", "another model is chosen with session.set-model, not here"));
    }
    if payload.messages.as_ref().is_some_and(Vec::is_empty) {
        return Err(wrong(kind, "payload.messages", "a request says something"));
    }
    if payload.max_tokens == Some(0) {
        return Err(wrong(kind, "payload.maxTokens", "an answer has at least one token"));
    }
    if let Some(messages) = payload.messages {
        request.messages = messages.into_iter().map(PromptMessage::from).collect();
    }
    if let Some(tools) = payload.tools {
        let declared = |Declared { name, description, parameters }| Declaration { name, description, parameters };
        request.tools = tools.into_iter().map(declared).collect();
    }
    request.thinking = payload.thinking.unwrap_or(request.thinking);
    request.model.max_tokens = payload.max_tokens.unwrap_or(request.model.max_tokens);
    Ok(Flow::On)
}

/// The headers of a request as handlers see them.
fn headers(request: &ModelRequest) -> Value {
    let named = request.model.headers.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    json!({"headers": named.collect::<Map<_, _>>()})
}

/// Lets a handler's answer count: a text is a header's value from then on, `null` takes a header away.
fn apply_headers(request: &mut ModelRequest, outcome: Outcome) -> Result<Flow, Error> {
    let kind = EventKind::BeforeProviderHeaders;
    let Some(mut fields) = reply(kind, outcome)? else { return Ok(Flow::On) };
    let changes: Map<String, Value> = field(kind, &mut fields, "headers")?.unwrap_or_default();
    if let Some((name, _)) = changes.iter().find(|(_, value)| !value.is_null() && !value.is_string()) {
        return Err(wrong(kind, &format!("headers.{name}"), "a header is a text, or null"));
    }
    for (name, value) in changes {
        let headers = &mut request.model.headers;
        let is_it = |known: &String| known.eq_ignore_ascii_case(&name);
        let place = headers.iter().position(|(known, _)| is_it(known));
        headers.retain(|(known, _)| !is_it(known));
        if let Value::String(value) = value {
            headers.insert(place.unwrap_or(headers.len()).min(headers.len()), (name, value));
        }
    }
    Ok(Flow::On)
}

/// What comes from a model, as it is told.
fn data(event: &ModelEvent) -> Value {
    match event {
        ModelEvent::Start => json!({"type": "start"}),
        ModelEvent::TextStart(index) => json!({"type": "text_start", "contentIndex": index}),
        ModelEvent::TextDelta(index, delta) => json!({"type": "text_delta", "contentIndex": index, "delta": delta}),
        ModelEvent::TextEnd(index) => json!({"type": "text_end", "contentIndex": index}),
        ModelEvent::ThinkingStart(index) => json!({"type": "thinking_start", "contentIndex": index}),
        ModelEvent::ThinkingDelta(index, delta) => {
            json!({"type": "thinking_delta", "contentIndex": index, "delta": delta})
        }
        ModelEvent::ThinkingEnd(index, signature) => {
            json!({"type": "thinking_end", "contentIndex": index, "thinkingSignature": signature})
        }
        ModelEvent::CallStart { index, id, name } => {
            json!({"type": "toolcall_start", "contentIndex": index, "id": id, "toolName": name})
        }
        ModelEvent::CallDelta(index, delta) => {
            json!({"type": "toolcall_delta", "contentIndex": index, "delta": delta})
        }
        ModelEvent::CallEnd(index) => json!({"type": "toolcall_end", "contentIndex": index}),
        ModelEvent::Usage(usage) => json!({"type": "usage", "usage": usage}),
        ModelEvent::Done { raw_reason, response_model, response_id, .. } => {
            json!({"type": "done", "reason": raw_reason, "responseModel": response_model, "responseId": response_id})
        }
        ModelEvent::Failed { error, status, retry_after_ms } => {
            json!({"type": "error", "error": error.to_string(), "status": status, "retryAfterMs": retry_after_ms})
        }
    }
}

impl Extensions {
    /// What a model is asked, as extensions made it.
    pub(crate) async fn before_request(&self, stop: &CancellationToken, mut request: ModelRequest) -> ModelRequest {
        let kind = EventKind::BeforeProviderHeaders;
        let event = |request: &ModelRequest| Event::other(kind, headers(request));
        self.ask_each(kind, stop, &mut request, event, apply_headers).await;
        let kind = EventKind::BeforeProviderRequest;
        let event = |request: &ModelRequest| Event::other(kind, payload(request));
        self.ask_each(kind, stop, &mut request, event, apply_payload).await;
        request
    }

    /// Tells of what comes from a model.
    pub(crate) fn observe_stream(&self, model: &Model, event: &ModelEvent) {
        self.observe(
            EventKind::ProviderStreamEvent,
            || json!({"provider": model.provider, "api": model.api, "model": model.id, "data": data(event)}),
        );
    }

    /// Tells of a server's answer to a request of a provider.
    pub(crate) fn observe_response(&self, status: u16, headers: &[(String, String)]) {
        self.observe(EventKind::AfterProviderResponse, || {
            let mut named = Map::new();
            for (name, value) in headers {
                named.insert(name.to_ascii_lowercase(), Value::from(value.as_str()));
            }
            json!({"status": status, "headers": named})
        });
    }
}

#[cfg(test)]
#[path = "provider_events_tests.rs"]
mod tests;
