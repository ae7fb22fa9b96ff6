//! Calls that tools make: their ids, how deep they may go, and the bounded record that is kept of them.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Error, model::Usage};

/// The most calls a record holds.
pub const MAX_CALLS: usize = 256;
/// The longest arguments of one call that a record holds, as bytes of JSON.
pub const MAX_ARGUMENT_BYTES: usize = 8 * 1024;
/// The longest arguments of all calls together.
pub const MAX_TOTAL_ARGUMENT_BYTES: usize = 32 * 1024;
/// The longest error text of a call, in characters.
pub const MAX_ERROR_CHARS: usize = 500;

/// Hands out the ids of the calls that one call makes: `<parent>/1`, `<parent>/2`, and so on.
#[derive(Debug)]
pub struct NestedIds {
    parent: String,
    last: AtomicU64,
}

impl NestedIds {
    /// For the calls of the call `parent`.
    pub fn new(parent: impl Into<String>) -> Self {
        Self { parent: parent.into(), last: AtomicU64::new(0) }
    }

    /// The call that makes them.
    pub fn parent(&self) -> &str {
        &self.parent
    }

    /// A new id.
    pub fn next_id(&self) -> String {
        format!("{}/{}", self.parent, self.last.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// How many calls are around a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth(u32);

impl Depth {
    /// A call that no other made.
    pub const OUTERMOST: Self = Self(0);

    /// The depth of a call that so many are around.
    pub const fn of(calls: u32) -> Self {
        Self(calls)
    }

    /// How many calls are around this one.
    pub fn value(self) -> u32 {
        self.0
    }

    /// The depth of a call that this one makes, where calls may nest `limit` deep.
    ///
    /// # Errors
    /// `limit` `nesting` if that is too deep.
    pub fn deeper(self, limit: u32) -> Result<Self, Error> {
        if self.0 >= limit {
            return Err(Error::Limit { name: "nesting".to_owned(), value: u64::from(limit) });
        }
        Ok(Self(self.0 + 1))
    }
}

/// How a nested call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NestedStatus {
    /// It gave a result.
    Ok,
    /// It failed.
    Error,
    /// It was still running when its caller was done.
    Unfinished,
}

/// A nested call, as the session file keeps it. Its result is not kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NestedCall {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments, unless they are too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Map<String, Value>>,
    /// How long arguments are that are left out, as bytes of JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_bytes: Option<usize>,
    /// How it went.
    pub status: NestedStatus,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Its error text, or the beginning of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What is kept of all calls that a call made, directly or not: `nestedCalls` of its result's message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NestedCalls {
    /// The calls in the order they began.
    pub calls: Vec<NestedCall>,
    /// Nothing is left out, and every call had finished.
    pub complete: bool,
}

/// The most calls that are named in a sentence.
const MAX_NAMED: usize = 20;

impl NestedCalls {
    /// That they were made and stay so, in one line, for whoever reads of a call that did not come to its end.
    pub fn made(&self) -> String {
        let one = |call: &NestedCall| {
            let how = match call.status {
                NestedStatus::Ok => "ok",
                NestedStatus::Error => "failed",
                NestedStatus::Unfinished => "stopped",
            };
            format!("{} ({how})", call.name)
        };
        let named: Vec<String> = self.calls.iter().take(MAX_NAMED).map(one).collect();
        let more = match self.calls.len() - named.len() {
            0 => "",
            _ => ", and more",
        };
        let (calls, are) = match self.calls.len() {
            1 => ("1 call was".to_owned(), "is"),
            _ if self.calls.len() >= MAX_CALLS => (format!("{MAX_CALLS} calls or more were"), "are"),
            number => (format!("{number} calls were"), "are"),
        };
        format!("{calls} made before that and {are} not undone: {}{more}", named.join(", "))
    }
}

/// A call in a [`Recorder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(Option<usize>);

/// Collects the calls that one call of a model makes, those of nested tools included.
#[derive(Debug, Default)]
pub struct Recorder {
    calls: Vec<NestedCall>,
    argument_bytes: usize,
    incomplete: bool,
    usage: Option<Usage>,
}

impl Recorder {
    /// Nothing recorded yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A call begins.
    pub fn start(&mut self, id: &str, name: &str, arguments: &Value) -> Ticket {
        if self.calls.len() >= MAX_CALLS {
            self.incomplete = true;
            return Ticket(None);
        }
        let bytes = json_length(arguments);
        let fits = bytes <= MAX_ARGUMENT_BYTES && self.argument_bytes + bytes <= MAX_TOTAL_ARGUMENT_BYTES;
        let kept = match arguments {
            Value::Object(fields) if fits => Some(fields.clone()),
            _ => None,
        };
        if kept.is_some() {
            self.argument_bytes += bytes;
        } else {
            self.incomplete = true;
        }
        self.calls.push(NestedCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments_bytes: kept.is_none().then_some(bytes),
            arguments: kept,
            status: NestedStatus::Unfinished,
            duration_ms: None,
            error: None,
        });
        Ticket(Some(self.calls.len() - 1))
    }

    /// It has ended; `error` is the text of a failure.
    pub fn finish(&mut self, ticket: Ticket, took: Duration, error: Option<&str>) {
        let Some(call) = ticket.0.and_then(|at| self.calls.get_mut(at)) else { return };
        call.duration_ms = Some(u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        call.status = if error.is_some() { NestedStatus::Error } else { NestedStatus::Ok };
        if let Some(text) = error {
            call.error = Some(text.chars().take(MAX_ERROR_CHARS).collect());
            self.incomplete |= text.chars().nth(MAX_ERROR_CHARS).is_some();
        }
    }

    /// Counts what a nested call used, recorded or not.
    pub fn add_usage(&mut self, usage: &Usage) {
        let sum = self.usage.get_or_insert_with(Usage::default);
        sum.input = sum.input.saturating_add(usage.input);
        sum.output = sum.output.saturating_add(usage.output);
        sum.cache_read = sum.cache_read.saturating_add(usage.cache_read);
        sum.cache_write = sum.cache_write.saturating_add(usage.cache_write);
        sum.total_tokens = sum.total_tokens.saturating_add(usage.total_tokens);
        sum.reasoning = match (sum.reasoning, usage.reasoning) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        sum.cost.input += usage.cost.input;
        sum.cost.output += usage.cost.output;
        sum.cost.cache_read += usage.cost.cache_read;
        sum.cost.cache_write += usage.cost.cache_write;
        sum.cost.total += usage.cost.total;
    }

    /// What nested calls used together, if any said.
    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_ref()
    }

    /// The record so far; `None` if no call was made.
    pub fn snapshot(&self) -> Option<NestedCalls> {
        if self.calls.is_empty() {
            return None;
        }
        let finished = self.calls.iter().all(|call| call.status != NestedStatus::Unfinished);
        Some(NestedCalls { calls: self.calls.clone(), complete: finished && !self.incomplete })
    }
}

/// The length of a value as JSON, without writing it down.
fn json_length(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const QUICK: Duration = Duration::from_millis(3);

    #[test]
    fn ids_name_their_parents() {
        let ids = NestedIds::new("call_c");
        assert_eq!((ids.next_id(), ids.next_id()), ("call_c/1".to_owned(), "call_c/2".to_owned()));
        assert_eq!(NestedIds::new(ids.next_id()).next_id(), "call_c/3/1");
    }

    #[test]
    fn nesting_ends_at_its_limit() {
        let depth = Depth::OUTERMOST.deeper(2).unwrap().deeper(2).unwrap();
        assert_eq!(depth.value(), 2);
        assert_eq!(depth.deeper(2).unwrap_err(), Error::Limit { name: "nesting".to_owned(), value: 2 });
        // A plugin that allows less stops sooner, one that allows more goes on.
        assert!(depth.deeper(1).is_err());
        assert!(depth.deeper(3).is_ok());
        assert!(Depth::OUTERMOST.deeper(0).is_err());
    }

    #[test]
    fn what_was_made_is_one_line() {
        let mut recorder = Recorder::new();
        let first = recorder.start("c/1", "bash", &json!({}));
        recorder.finish(first, QUICK, None);
        let made = |recorder: &Recorder| recorder.snapshot().unwrap().made();
        assert_eq!(made(&recorder), "1 call was made before that and is not undone: bash (ok)");
        let second = recorder.start("c/2", "edit", &json!({}));
        recorder.finish(second, QUICK, Some("no such file"));
        recorder.start("c/3", "read", &json!({}));
        assert_eq!(
            made(&recorder),
            "3 calls were made before that and are not undone: bash (ok), edit (failed), read (stopped)"
        );
        for _ in 0..MAX_CALLS {
            recorder.start("c/n", "ls", &json!({}));
        }
        let many = made(&recorder);
        assert!(many.starts_with("256 calls or more were") && many.ends_with("ls (stopped), and more"), "{many}");
    }

    #[test]
    fn a_small_record_is_complete() {
        let mut recorder = Recorder::new();
        assert_eq!(recorder.snapshot(), None);
        let good = recorder.start("c/1", "read", &json!({"path": "a"}));
        let bad = recorder.start("c/2", "bash", &json!({}));
        assert!(!recorder.snapshot().unwrap().complete, "both still run");
        recorder.finish(bad, QUICK, Some("no"));
        recorder.finish(good, QUICK, None);
        assert_eq!(
            serde_json::to_value(recorder.snapshot().unwrap()).unwrap(),
            json!({"calls": [
                {"id": "c/1", "name": "read", "arguments": {"path": "a"}, "status": "ok", "durationMs": 3},
                {"id": "c/2", "name": "bash", "arguments": {}, "status": "error", "durationMs": 3, "error": "no"},
            ], "complete": true})
        );
    }

    #[test]
    fn the_257th_call_is_dropped() {
        let mut recorder = Recorder::new();
        for n in 1..=256 {
            let ticket = recorder.start(&format!("c/{n}"), "t", &json!({}));
            recorder.finish(ticket, QUICK, None);
        }
        assert!(recorder.snapshot().unwrap().complete);
        let dropped = recorder.start("c/257", "t", &json!({}));
        recorder.finish(dropped, QUICK, None);
        let record = recorder.snapshot().unwrap();
        assert_eq!((record.calls.len(), record.complete), (256, false));
    }

    #[test]
    fn long_arguments_are_left_out_with_their_length() {
        // `{"a":"…"}` is 8 bytes around the text.
        let arguments = |bytes: usize| json!({"a": "x".repeat(bytes - 8)});
        let mut recorder = Recorder::new();
        let fits = recorder.start("c/1", "t", &arguments(MAX_ARGUMENT_BYTES));
        recorder.finish(fits, QUICK, None);
        assert!(recorder.snapshot().unwrap().complete);
        let long = recorder.start("c/2", "t", &arguments(MAX_ARGUMENT_BYTES + 1));
        recorder.finish(long, QUICK, None);
        let record = recorder.snapshot().unwrap();
        assert!(record.calls[0].arguments.is_some() && record.calls[0].arguments_bytes.is_none());
        assert_eq!((&record.calls[1].arguments, record.calls[1].arguments_bytes), (&None, Some(8193)));
        assert!(!record.complete);
    }

    #[test]
    fn arguments_of_all_calls_have_a_bound_too() {
        let mut recorder = Recorder::new();
        for n in 0..6 {
            recorder.start(&format!("c/{n}"), "t", &json!({"a": "x".repeat(MAX_ARGUMENT_BYTES - 8)}));
        }
        let record = recorder.snapshot().unwrap();
        let kept: Vec<bool> = record.calls.iter().map(|call| call.arguments.is_some()).collect();
        assert_eq!(kept, [true, true, true, true, false, false]);
        let small = recorder.start("c/6", "t", &json!({}));
        recorder.finish(small, QUICK, None);
        assert_eq!(recorder.snapshot().unwrap().calls[6].arguments, None, "nothing at all is left");
    }

    #[test]
    fn long_errors_are_cut_between_characters() {
        let mut recorder = Recorder::new();
        let ticket = recorder.start("c/1", "t", &json!({}));
        recorder.finish(ticket, QUICK, Some(&"ü".repeat(501)));
        let record = recorder.snapshot().unwrap();
        assert_eq!(record.calls[0].error, Some("ü".repeat(500)));
        assert!(!record.complete);
    }

    #[test]
    fn usage_is_summed_for_dropped_calls_too() {
        let mut recorder = Recorder::new();
        assert_eq!(recorder.usage(), None);
        recorder.add_usage(&Usage { input: 2, reasoning: Some(1), ..Usage::default() });
        recorder.add_usage(&Usage { input: u64::MAX, ..Usage::default() });
        let sum = recorder.usage().unwrap();
        assert_eq!((sum.input, sum.reasoning), (u64::MAX, Some(1)));
    }
}
