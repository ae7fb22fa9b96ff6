//! The calls that a script makes: which there were, and how many run at once.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use futures::channel::oneshot;
use serde_json::{Value, json};

/// Calls of one script.
pub(crate) const MOST: usize = 10_000;
/// Calls of which a record is kept.
const RECORDED: usize = 256;
/// Calls that a failure names.
const NAMED: usize = 20;
/// The longest arguments in a record, in characters.
const ARGUMENTS: usize = 200;
/// The longest error in a record, in characters.
const ERROR: usize = 500;

/// How a call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// It waits for its turn.
    Waiting,
    Running,
    Ok,
    Failed,
    /// The script ended before it did.
    Stopped,
    /// The script ended before its turn came: nothing of it was done.
    NotBegun,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::NotBegun => "not begun",
        }
    }
}

struct Record {
    name: String,
    arguments: String,
    status: Status,
    begun: u64,
    milliseconds: u64,
    error: Option<String>,
}

/// All calls of one script, in the order in which they were made.
#[derive(Default)]
pub(crate) struct Calls {
    all: Vec<Record>,
}

impl Calls {
    /// A new call; none if there were too many.
    pub(crate) fn begin(&mut self, name: &str, arguments: &str, now: u64) -> Option<usize> {
        if self.all.len() >= MOST {
            return None;
        }
        let arguments = if self.all.len() < RECORDED { cut(arguments, ARGUMENTS) } else { String::new() };
        let (name, status) = (name.to_owned(), Status::Waiting);
        self.all.push(Record { name, arguments, status, begun: now, milliseconds: 0, error: None });
        Some(self.all.len() - 1)
    }

    pub(crate) fn run(&mut self, call: usize, now: u64) {
        if let Some(record) = self.all.get_mut(call) {
            record.status = Status::Running;
            record.begun = now;
        }
    }

    pub(crate) fn end(&mut self, call: usize, now: u64, error: Option<&str>) {
        if let Some(record) = self.all.get_mut(call) {
            record.status = if error.is_some() { Status::Failed } else { Status::Ok };
            record.milliseconds = now.saturating_sub(record.begun) / 1_000_000;
            record.error = error.map(|error| cut(error, ERROR));
        }
    }

    /// Marks what has not ended as stopped, or as not begun; gives the names of both.
    pub(crate) fn stop(&mut self, now: u64) -> (Vec<String>, Vec<String>) {
        let (mut stopped, mut not_begun) = (Vec::new(), Vec::new());
        for record in &mut self.all {
            match record.status {
                Status::Running => {
                    record.milliseconds = now.saturating_sub(record.begun) / 1_000_000;
                    record.status = Status::Stopped;
                    stopped.push(record.name.clone());
                }
                Status::Waiting => {
                    record.status = Status::NotBegun;
                    not_begun.push(record.name.clone());
                }
                _ => {}
            }
        }
        (stopped, not_begun)
    }

    /// All that were asked for.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Those that were begun: they may have done something.
    fn made(&self) -> impl Iterator<Item = &Record> {
        self.all.iter().filter(|record| !matches!(record.status, Status::Waiting | Status::NotBegun))
    }

    pub(crate) fn count_made(&self) -> usize {
        self.made().count()
    }

    /// Those that have not ended, for whoever may have forgotten to wait for them.
    pub(crate) fn unsettled(&self) -> Vec<String> {
        let is_unsettled = |record: &&Record| matches!(record.status, Status::Waiting | Status::Running);
        self.all.iter().filter(is_unsettled).map(|record| record.name.clone()).collect()
    }

    /// Those under way, for whoever looks on.
    pub(crate) fn under_way(&self) -> Vec<&str> {
        self.all.iter().filter(|record| record.status == Status::Running).map(|record| record.name.as_str()).collect()
    }

    /// What was done and stays done, in one line; empty if there is nothing.
    pub(crate) fn done(&self) -> String {
        let made = self.count_made();
        if made == 0 {
            return String::new();
        }
        let count = if made == 1 { "1 call was".to_owned() } else { format!("{made} calls were") };
        let named: Vec<String> =
            self.made().take(NAMED).map(|record| format!("{} ({})", record.name, record.status.word())).collect();
        let more = made.saturating_sub(NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let undone = if made == 1 { "is" } else { "are" };
        format!("{count} made before that and {undone} not undone: {}{more}", named.join(", "))
    }

    /// The records, and how many calls have none.
    pub(crate) fn details(&self, parent: &str) -> (Value, usize) {
        let records = self.all.iter().take(RECORDED).enumerate().map(|(at, record)| {
            let mut shown = json!({
                "id": format!("{parent}/{}", at + 1),
                "name": record.name,
                "args": record.arguments,
                "status": record.status.word(),
                "durationMs": record.milliseconds,
            });
            if let (Some(error), Some(fields)) = (&record.error, shown.as_object_mut()) {
                fields.insert("error".to_owned(), error.as_str().into());
            }
            shown
        });
        (records.collect(), self.all.len().saturating_sub(RECORDED))
    }
}

/// At most so many characters of a text.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Lets so many through at once, in the order in which they come.
pub(crate) struct Gate {
    free: Cell<usize>,
    waiting: RefCell<VecDeque<oneshot::Sender<Permit>>>,
}

/// One of those that were let through.
pub(crate) struct Permit(Option<Rc<Gate>>);

impl Gate {
    pub(crate) fn new(places: usize) -> Rc<Self> {
        Rc::new(Self { free: Cell::new(places), waiting: RefCell::default() })
    }

    /// Ready when it is this one's turn; `None` if that will never be.
    pub(crate) fn enter(self: &Rc<Self>) -> impl Future<Output = Option<Permit>> + use<> {
        let (sender, receiver) = oneshot::channel();
        self.waiting.borrow_mut().push_back(sender);
        self.let_in();
        async move { receiver.await.ok() }
    }

    fn let_in(self: &Rc<Self>) {
        while self.free.get() > 0 {
            let Some(next) = self.waiting.borrow_mut().pop_front() else { return };
            self.free.set(self.free.get() - 1);
            if let Err(mut unwanted) = next.send(Permit(Some(Rc::clone(self)))) {
                // It would let the next one in from within this loop.
                unwanted.0 = None;
                self.free.set(self.free.get() + 1);
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(gate) = self.0.take() {
            gate.free.set(gate.free.get() + 1);
            gate.let_in();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn so_many_are_let_in_at_once_in_their_order() {
        let gate = Gate::new(2);
        let mut all: Vec<_> = (0..5).map(|_| Box::pin(gate.enter())).collect();
        let mut inside: Vec<Option<Permit>> = Vec::new();
        inside.push(all[0].as_mut().now_or_never().flatten());
        inside.push(all[1].as_mut().now_or_never().flatten());
        assert!(inside.iter().all(Option::is_some));
        assert!(all[2].as_mut().now_or_never().is_none());
        // The third gave up, so the fourth is next.
        drop(all.remove(2));
        inside.pop();
        assert!(all[2].as_mut().now_or_never().flatten().is_some(), "and is out again");
        assert!(all[3].as_mut().now_or_never().flatten().is_some());
    }

    #[test]
    fn a_record_is_bounded_and_says_how_each_call_went() {
        let mut calls = Calls::default();
        for at in 0..300 {
            let call = calls.begin(if at % 2 == 0 { "a" } else { "b" }, &"x".repeat(1000), 0).unwrap();
            calls.run(call, 1_000_000);
            if at != 1 {
                calls.end(call, 3_500_000, (at == 0).then_some("no"));
            }
        }
        assert_eq!(calls.under_way(), ["b"]);
        assert_eq!(calls.stop(9_000_000), (vec!["b".to_owned()], Vec::new()));
        let (records, omitted) = calls.details("c");
        assert_eq!((records.as_array().unwrap().len(), omitted), (256, 44));
        let expected = json!({"id": "c/1", "name": "a", "args": format!("{}…", "x".repeat(200)), "status": "failed",
            "durationMs": 2, "error": "no"});
        assert_eq!(records[0], expected);
        assert_eq!(records[1]["status"], "stopped");
        let done = calls.done();
        assert!(
            done.starts_with("300 calls were made before that and are not undone: a (failed), b (stopped), a (ok), ")
        );
        assert!(done.ends_with(", and 280 more"), "{done}");
        let waiting = calls.begin("c", "{}", 0).unwrap();
        assert_eq!((calls.unsettled(), calls.count_made()), (vec!["c".to_owned()], 300));
        assert_eq!(calls.stop(9_000_000), (Vec::new(), vec!["c".to_owned()]));
        assert!(calls.done().starts_with("300 calls were made"), "what never began was not made: {waiting}");
        for _ in 301..MOST {
            assert!(calls.begin("a", "{}", 0).is_some());
        }
        assert!(calls.begin("a", "{}", 0).is_none());
    }
}
