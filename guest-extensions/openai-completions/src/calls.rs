//! Tool calls from their fragments. Several calls may come at once, their fragments mixed.
//!
//! Must never start a call before its name is whole, nor a later call before an earlier one.

use std::borrow::Cow;

use atoll_plugin::Error;
use atoll_plugin::provider::{CallStart, Delta, ModelEvent};
use serde_json::Value;

use crate::messages::call_id;

/// How many calls one answer may make: a server that sends more is broken, and looking them up takes time.
const MAX_CALLS: usize = 512;

/// A piece of a call.
#[derive(Debug)]
pub(crate) struct Fragment<'a> {
    index: Option<u64>,
    id: &'a str,
    name: &'a str,
    arguments: Cow<'a, str>,
}

impl<'a> Fragment<'a> {
    /// One of a delta's `tool_calls`.
    pub(crate) fn of(call: &'a Value) -> Self {
        let function = call.get("function").unwrap_or(&Value::Null);
        Self {
            index: call.get("index").and_then(Value::as_u64),
            id: call.get("id").and_then(Value::as_str).unwrap_or_default(),
            ..Self::of_legacy(function)
        }
    }

    /// A delta's `function_call`, the way calls were made before there could be several.
    pub(crate) fn of_legacy(function: &'a Value) -> Self {
        Self {
            index: None,
            id: "",
            name: function.get("name").and_then(Value::as_str).unwrap_or_default(),
            arguments: match function.get("arguments") {
                Some(Value::String(text)) => Cow::Borrowed(text),
                None | Some(Value::Null) => Cow::Borrowed(""),
                // Some servers send the arguments as what they are.
                Some(value) => Cow::Owned(value.to_string()),
            },
        }
    }

    /// Says nothing about any call.
    pub(crate) fn is_empty(&self) -> bool {
        self.index.is_none() && self.id.is_empty() && self.name.is_empty() && self.arguments.is_empty()
    }
}

#[derive(Debug)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    /// The block's index, once the call has started.
    block: Option<u32>,
    /// Arguments have come.
    begun: bool,
}

/// The calls of one answer.
#[derive(Debug)]
pub(crate) struct Calls {
    request_id: String,
    calls: Vec<Call>,
    /// Calls before this one have started.
    started: usize,
}

impl Calls {
    pub(crate) fn new(request_id: &str) -> Self {
        Self { request_id: request_id.to_owned(), calls: Vec::new(), started: 0 }
    }

    /// There is a call.
    pub(crate) fn any(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Takes a fragment. `next` is the index of the next block.
    pub(crate) fn add(&mut self, part: &Fragment<'_>, next: &mut u32, out: &mut Vec<ModelEvent>) -> Result<(), Error> {
        let at = match self.find(part) {
            Some(at) => at,
            None if self.calls.len() >= MAX_CALLS => {
                return Err(Error::Failed(format!("The model made more than {MAX_CALLS} calls in one answer.")));
            }
            None => {
                self.calls.push(Call {
                    index: part.index,
                    id: String::new(),
                    name: String::new(),
                    block: None,
                    begun: false,
                });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(at) else { return Ok(()) };
        if call.block.is_none() {
            if call.id.is_empty() {
                part.id.clone_into(&mut call.id);
            }
            // A name may come in pieces, or whole with each fragment.
            if call.name != part.name {
                call.name.push_str(part.name);
            }
        }
        if part.arguments.is_empty() {
            return Ok(());
        }
        // With arguments the name is whole, and so are those of the calls before.
        self.start_up_to(at + 1, next, out);
        if let Some(call) = self.calls.get_mut(at) {
            call.begun = true;
            if let Some(index) = call.block {
                out.push(ModelEvent::CallDelta(Delta { index, text: part.arguments.clone().into_owned() }));
            }
        }
        Ok(())
    }

    /// Starts the calls that wait for arguments: another block is about to begin.
    pub(crate) fn start_waiting(&mut self, next: &mut u32, out: &mut Vec<ModelEvent>) {
        self.start_up_to(self.calls.len(), next, out);
    }

    /// Ends all calls.
    pub(crate) fn end(&mut self, next: &mut u32, out: &mut Vec<ModelEvent>) {
        self.start_waiting(next, out);
        for call in self.calls.drain(..) {
            let Some(index) = call.block else { continue };
            if !call.begun {
                // Arguments are JSON, and no arguments are none of it.
                out.push(ModelEvent::CallDelta(Delta { index, text: "{}".to_owned() }));
            }
            out.push(ModelEvent::CallEnd(index));
        }
    }

    fn start_up_to(&mut self, end: usize, next: &mut u32, out: &mut Vec<ModelEvent>) {
        for (at, call) in self.calls.iter_mut().enumerate().take(end).skip(self.started) {
            if call.id.is_empty() {
                call.id = call_id(&format!("call|{}|{at}", self.request_id), true);
            }
            call.block = Some(*next);
            out.push(ModelEvent::CallStart(CallStart { index: *next, id: call.id.clone(), name: call.name.clone() }));
            *next += 1;
        }
        self.started = self.started.max(end);
    }

    /// The call that a fragment belongs to. Not all servers number their calls, some number all of them 0, and
    /// some give each fragment an id of its own: a call is new only if it brings a name.
    fn find(&self, part: &Fragment<'_>) -> Option<usize> {
        let at = match part.index {
            Some(_) => self.calls.iter().rposition(|call| call.index == part.index)?,
            None if part.id.is_empty() && part.name.is_empty() => self.calls.len().checked_sub(1)?,
            None if part.id.is_empty() => return None,
            None => match self.calls.iter().rposition(|call| call.id == part.id) {
                Some(at) => at,
                None if part.name.is_empty() => self.calls.len().checked_sub(1)?,
                None => return None,
            },
        };
        let call = self.calls.get(at)?;
        let other = !part.id.is_empty() && !part.name.is_empty() && !call.id.is_empty() && call.id != part.id;
        (!other).then_some(at)
    }
}
