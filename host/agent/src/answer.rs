//! Builds an assistant's message from a provider's events.

use atoll_table::{
    Error,
    model::{DoneReason, Model, ModelEvent},
};
use serde_json::Value;

use crate::{
    event::{AnswerEvent, Event},
    message::{AssistantBlock, AssistantMessage, Message, StopReason, ToolCall},
    models::Prices,
    time::now_ms,
};

/// The most bytes one answer may have: text, thinking and arguments together. More than any model gives; a server
/// that sends without end must not fill the memory.
const MAX_BYTES: usize = 16 << 20;

/// Is told how a message grows, with the message so far. That it is complete is for whoever asked for it to tell.
pub(crate) type Tell<'a> = &'a (dyn Fn(&Event, &AssistantMessage) + Send + Sync);

/// A message that is being received.
pub(crate) struct Answer<'a> {
    pub(crate) message: AssistantMessage,
    /// Arguments of calls as they came, by block.
    arguments: Vec<String>,
    bytes: usize,
    started: bool,
    began: std::time::Instant,
    prices: Prices,
    tell: Tell<'a>,
}

impl<'a> Answer<'a> {
    pub(crate) fn new(model: &Model, prices: Prices, tell: Tell<'a>) -> Self {
        let message = AssistantMessage {
            api: model.api.clone(),
            provider: model.provider.clone(),
            model: model.id.clone(),
            timestamp: now_ms(),
            ..AssistantMessage::default()
        };
        Self {
            message,
            arguments: Vec::new(),
            bytes: 0,
            started: false,
            began: std::time::Instant::now(),
            prices,
            tell,
        }
    }

    fn start(&mut self) {
        if !self.started {
            self.started = true;
            (self.tell)(&Event::MessageStart { message: Message::Assistant(self.message.clone()) }, &self.message);
        }
    }

    fn update(&mut self, event: AnswerEvent) {
        self.start();
        let event = Event::MessageUpdate { usage: self.message.usage.clone(), assistant_message_event: event };
        (self.tell)(&event, &self.message);
    }

    fn push(&mut self, index: u32, block: AssistantBlock) -> bool {
        // A provider that numbers its blocks wrongly must not make the host grow a list to fit.
        if index as usize != self.message.content.len() {
            tracing::warn!(index, expected = self.message.content.len(), "a provider's block is out of order");
            return false;
        }
        self.message.content.push(block);
        self.arguments.push(String::new());
        true
    }

    /// Takes one event in. True once the message is complete.
    pub(crate) fn take(&mut self, event: ModelEvent) -> bool {
        self.bytes += match &event {
            ModelEvent::TextDelta(_, delta) | ModelEvent::ThinkingDelta(_, delta) | ModelEvent::CallDelta(_, delta) => {
                delta.len()
            }
            // A block costs something too, even if it stays empty.
            ModelEvent::TextStart(_) | ModelEvent::ThinkingStart(_) | ModelEvent::CallStart { .. } => 64,
            _ => 0,
        };
        if self.bytes > MAX_BYTES {
            let limit = Error::Limit { name: "output-bytes".to_owned(), value: MAX_BYTES as u64 };
            self.fail(format!("the answer was {limit}"));
            return true;
        }
        match event {
            ModelEvent::Start => self.start(),
            ModelEvent::TextStart(index) => {
                if self.push(index, AssistantBlock::Text { text: String::new(), text_signature: None }) {
                    self.update(AnswerEvent::TextStart { content_index: index });
                }
            }
            ModelEvent::TextDelta(index, delta) => {
                if let Some(AssistantBlock::Text { text, .. }) = self.message.content.get_mut(index as usize) {
                    text.push_str(&delta);
                    self.update(AnswerEvent::TextDelta { content_index: index, delta });
                }
            }
            ModelEvent::TextEnd(index) => {
                if let Some(AssistantBlock::Text { text, .. }) = self.message.content.get(index as usize) {
                    let content = text.clone();
                    self.update(AnswerEvent::TextEnd { content_index: index, content });
                }
            }
            ModelEvent::ThinkingStart(index) => {
                let block = AssistantBlock::Thinking { thinking: String::new(), thinking_signature: None };
                if self.push(index, block) {
                    self.update(AnswerEvent::ThinkingStart { content_index: index });
                }
            }
            ModelEvent::ThinkingDelta(index, delta) => {
                if let Some(AssistantBlock::Thinking { thinking, .. }) = self.message.content.get_mut(index as usize) {
                    thinking.push_str(&delta);
                    self.update(AnswerEvent::ThinkingDelta { content_index: index, delta });
                }
            }
            ModelEvent::ThinkingEnd(index, signature) => {
                if let Some(AssistantBlock::Thinking { thinking, thinking_signature }) =
                    self.message.content.get_mut(index as usize)
                {
                    *thinking_signature = signature;
                    let content = thinking.clone();
                    self.update(AnswerEvent::ThinkingEnd { content_index: index, content });
                }
            }
            ModelEvent::CallStart { index, id, name } => {
                let call = ToolCall {
                    id: id.clone(),
                    name: name.clone(),
                    arguments: Value::Object(serde_json::Map::new()),
                    arguments_error: None,
                };
                if self.push(index, AssistantBlock::ToolCall(call)) {
                    self.update(AnswerEvent::ToolCallStart { content_index: index, id, tool_name: name });
                }
            }
            ModelEvent::CallDelta(index, delta) => {
                if let Some(text) = self.arguments.get_mut(index as usize) {
                    text.push_str(&delta);
                    self.update(AnswerEvent::ToolCallDelta { content_index: index, delta });
                }
            }
            ModelEvent::CallEnd(index) => self.end_call(index),
            ModelEvent::Usage(usage) => self.message.usage = self.prices.apply(usage),
            ModelEvent::Done { reason, raw_reason, response_model, response_id } => {
                self.message.stop_reason = match reason {
                    DoneReason::Stop => StopReason::Stop,
                    DoneReason::Length => StopReason::Length,
                    DoneReason::ToolUse => StopReason::ToolUse,
                };
                self.message.raw_stop_reason = raw_reason;
                self.message.response_model = response_model;
                self.message.response_id = response_id;
                return true;
            }
            ModelEvent::Failed { error, status, retry_after_ms } => {
                tracing::debug!(code = error.code(), ?status, ?retry_after_ms, "the model request failed");
                self.fail(error.to_string());
                return true;
            }
        }
        false
    }

    fn end_call(&mut self, index: u32) {
        let Some(text) = self.arguments.get(index as usize) else { return };
        let parsed = if text.trim().is_empty() {
            Ok(Value::Object(serde_json::Map::new()))
        } else {
            match serde_json::from_str::<Value>(text) {
                Ok(value @ Value::Object(_)) => Ok(value),
                Ok(_) => Err("the arguments are not a JSON object".to_owned()),
                Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
            }
        };
        let Some(AssistantBlock::ToolCall(call)) = self.message.content.get_mut(index as usize) else { return };
        match parsed {
            Ok(arguments) => call.arguments = arguments,
            Err(reason) => call.arguments_error = Some(reason),
        }
        let tool_call = call.clone();
        self.update(AnswerEvent::ToolCallEnd { content_index: index, tool_call });
    }

    /// Ends the message with a failure.
    pub(crate) fn fail(&mut self, reason: String) {
        self.message.stop_reason = StopReason::Error;
        self.message.error_message = Some(reason);
    }

    /// Ends the message because the user stopped it.
    pub(crate) fn abort(&mut self) {
        self.message.stop_reason = StopReason::Aborted;
        self.message.error_message = Some("Stopped by the user".to_owned());
    }

    /// The complete message. Nobody has been told that it is.
    pub(crate) fn finish(mut self) -> AssistantMessage {
        self.start();
        self.message.duration_ms = Some(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX));
        self.message
    }
}
