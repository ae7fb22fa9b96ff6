//! The chunks of a streamed completion as events of the contract.
//!
//! Must never give an event after `done` or `failed`, nor more than one of these.

use atoll_plugin::Error;
use atoll_plugin::provider::{Delta, Done, Failure, ModelEvent, StopReason, ThinkingEnd, Usage};
use serde_json::{Map, Value};

use crate::calls::{Calls, Fragment};
use crate::failure;

/// The fields in which servers send thinking. The one that was used is the block's signature: servers want the
/// text back under the same name.
const THINKING: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// The block that text is added to now.
#[derive(Debug, PartialEq)]
enum Open {
    None,
    Text(u32),
    Thinking(u32, &'static str),
}

/// Collects one answer.
#[derive(Debug)]
pub struct Answer {
    model: String,
    wants_reason: bool,
    open: Open,
    next: u32,
    calls: Calls,
    reason: Option<String>,
    usage: Option<Usage>,
    response_id: Option<String>,
    response_model: Option<String>,
    any: bool,
    ended: bool,
}

impl Answer {
    /// An answer of `model` to the request `request_id`. `wants_reason`: one without a reason for its end is broken.
    pub fn new(model: &str, request_id: &str, wants_reason: bool) -> Self {
        Self {
            model: model.to_owned(),
            wants_reason,
            open: Open::None,
            next: 0,
            calls: Calls::new(request_id),
            reason: None,
            usage: None,
            response_id: None,
            response_model: None,
            any: false,
            ended: false,
        }
    }

    /// Why it ended is known; what can still come is how many tokens it took.
    pub fn has_reason(&self) -> bool {
        self.reason.is_some()
    }

    /// The last event was given.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Takes the data of one server-sent event.
    pub fn data(&mut self, data: &str, out: &mut Vec<ModelEvent>) {
        let data = data.trim();
        if self.ended || data.is_empty() {
            return;
        }
        if data == "[DONE]" {
            self.any = true;
            return self.finish(out);
        }
        match serde_json::from_str::<Value>(data) {
            Ok(Value::Object(chunk)) => self.chunk(&chunk, out),
            _ => self.broken(data, out),
        }
    }

    /// The stream is over, and nothing went wrong on the way.
    pub fn finish(&mut self, out: &mut Vec<ModelEvent>) {
        if self.ended {
            return;
        }
        let calls = self.calls.any();
        let natural = if calls { StopReason::ToolUse } else { StopReason::Stop };
        let reason = match self.reason.as_deref() {
            // Some servers say `stop` with calls in the answer, or the other way round.
            Some("stop" | "end" | "tool_calls" | "function_call") => natural,
            Some("length") => StopReason::Length,
            Some("network_error") => {
                let text = "The server lost its connection to the model: network_error.";
                return self.fail(failure::plain(Error::Unavailable(text.into())), out);
            }
            Some(other) => {
                let text = format!("The server ended the answer: {}.", failure::one_line(other));
                return self.fail(failure::plain(Error::Failed(text)), out);
            }
            None if self.any && !self.wants_reason => natural,
            None => {
                let text = "The stream ended without a reason: the answer may be cut off.";
                return self.fail(failure::plain(Error::Unavailable(text.into())), out);
            }
        };
        self.close(out);
        self.calls.end(&mut self.next, out);
        self.tell_usage(out);
        self.ended = true;
        out.push(ModelEvent::Done(Done {
            reason,
            raw_reason: self.reason.take(),
            response_model: self.response_model.take(),
            response_id: self.response_id.take(),
        }));
    }

    /// The stream broke off. An answer whose reason has come is complete all the same.
    pub fn broke_off(&mut self, failure: Failure, out: &mut Vec<ModelEvent>) {
        if self.reason.is_some() {
            self.finish(out);
        } else {
            self.fail(failure, out);
        }
    }

    /// Ends the answer with a failure.
    pub fn fail(&mut self, failure: Failure, out: &mut Vec<ModelEvent>) {
        if self.ended {
            return;
        }
        self.tell_usage(out);
        self.ended = true;
        out.push(ModelEvent::Failed(failure));
    }

    fn broken(&mut self, data: &str, out: &mut Vec<ModelEvent>) {
        let text = format!("The server sent a chunk that is not a JSON object: {}", failure::one_line(data));
        self.fail(failure::plain(Error::Failed(text)), out);
    }

    fn chunk(&mut self, chunk: &Map<String, Value>, out: &mut Vec<ModelEvent>) {
        self.any = true;
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return self.fail(failure::of_error_object(error), out);
        }
        if self.response_id.is_none() {
            self.response_id = text(chunk.get("id")).map(str::to_owned);
        }
        if self.response_model.is_none() {
            self.response_model = text(chunk.get("model")).filter(|name| *name != self.model).map(str::to_owned);
        }
        self.count(chunk.get("usage"));
        let Some(choice) = chunk.get("choices").and_then(|choices| choices.get(0)) else { return };
        if let Some(error) = choice.get("error").filter(|error| !error.is_null()) {
            return self.fail(failure::of_error_object(error), out);
        }
        self.count(choice.get("usage"));
        if let Some(Value::Object(delta)) = choice.get("delta") {
            self.delta(delta, out);
        }
        if let Some(reason) = text(choice.get("finish_reason")) {
            self.reason = Some(reason.to_owned());
        }
    }

    fn delta(&mut self, delta: &Map<String, Value>, out: &mut Vec<ModelEvent>) {
        // Servers may send the same thinking under two names.
        let thought = THINKING.iter().find_map(|field| Some((*field, text(delta.get(*field))?)));
        if let Some((field, thought)) = thought {
            let index = match self.open {
                Open::Thinking(index, _) => index,
                _ => self.open_thinking(field, out),
            };
            out.push(ModelEvent::ThinkingDelta(Delta { index, text: thought.to_owned() }));
        }
        // A refusal is said to the user like any other text.
        for field in ["content", "refusal"] {
            if let Some(said) = text(delta.get(field)) {
                let index = match self.open {
                    Open::Text(index) => index,
                    _ => self.open_text(out),
                };
                out.push(ModelEvent::TextDelta(Delta { index, text: said.to_owned() }));
            }
        }
        let calls = delta.get("tool_calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for call in calls.iter().map(Fragment::of).chain(delta.get("function_call").map(Fragment::of_legacy)) {
            if call.is_empty() {
                continue;
            }
            self.close(out);
            if let Err(error) = self.calls.add(&call, &mut self.next, out) {
                return self.fail(failure::plain(error), out);
            }
        }
    }

    fn open_thinking(&mut self, field: &'static str, out: &mut Vec<ModelEvent>) -> u32 {
        let index = self.begin(out);
        self.open = Open::Thinking(index, field);
        out.push(ModelEvent::ThinkingStart(index));
        index
    }

    fn open_text(&mut self, out: &mut Vec<ModelEvent>) -> u32 {
        let index = self.begin(out);
        self.open = Open::Text(index);
        out.push(ModelEvent::TextStart(index));
        index
    }

    fn begin(&mut self, out: &mut Vec<ModelEvent>) -> u32 {
        self.close(out);
        self.calls.start_waiting(&mut self.next, out);
        let index = self.next;
        self.next += 1;
        index
    }

    /// Ends the block that text is added to. Calls stay open: their fragments may be mixed.
    fn close(&mut self, out: &mut Vec<ModelEvent>) {
        match std::mem::replace(&mut self.open, Open::None) {
            Open::None => {}
            Open::Text(index) => out.push(ModelEvent::TextEnd(index)),
            Open::Thinking(index, field) => {
                out.push(ModelEvent::ThinkingEnd(ThinkingEnd { index, signature: Some(field.to_owned()) }));
            }
        }
    }

    fn count(&mut self, usage: Option<&Value>) {
        let Some(Value::Object(_)) = usage else { return };
        let number = |paths: &[&str]| {
            paths.iter().find_map(|path| usage?.pointer(path).and_then(Value::as_u64)).unwrap_or_default()
        };
        let prompt = number(&["/prompt_tokens"]);
        let output = number(&["/completion_tokens"]);
        let cache_read =
            number(&["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens", "/cached_tokens"]);
        let cache_write = number(&["/prompt_tokens_details/cache_write_tokens"]);
        let total = number(&["/total_tokens"]);
        self.usage = Some(Usage {
            input: prompt.saturating_sub(cache_read).saturating_sub(cache_write),
            output,
            cache_read,
            cache_write,
            reasoning: usage
                .and_then(|usage| usage.pointer("/completion_tokens_details/reasoning_tokens"))
                .and_then(Value::as_u64),
            total_tokens: if total > 0 { total } else { prompt.saturating_add(output) },
        });
    }

    fn tell_usage(&mut self, out: &mut Vec<ModelEvent>) {
        out.extend(self.usage.take().map(ModelEvent::Usage));
    }
}

fn text(value: Option<&Value>) -> Option<&str> {
    value?.as_str().filter(|text| !text.is_empty())
}
