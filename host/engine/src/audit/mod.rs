//! The audit log: every use of a capability, written down where it happens. Nothing here decides anything, and
//! nothing that goes wrong here may stop a call.
//!
//! Uses of one kind on one target within a call become one entry, and a walk or a batch of reads is one from the start,
//! so that a call costs a few entries however much it does. Past some number of targets the rest of a kind are only
//! counted, so that no call can push what it did before out of the files that are kept. Entries are handed to one thread, which takes the secrets out
//! and writes; a denial is handed on at once, the rest when its call ends.

mod writer;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use atoll_caps::AuditRecord;

use crate::state::lock;
use writer::Queue;

/// How many entries a call may have waiting. With more, they are handed on before it ends.
const MAX_WAITING: usize = 64;
/// How many targets of one capability and verdict are written one by one, for each call; of an instance that is not made
/// for one call, in each [`PERIOD`].
const MAX_TARGETS: usize = 1_000;
/// The same for what was denied, which waits for nothing.
const MAX_DENIED_TARGETS: usize = 100;
const PERIOD: Duration = Duration::from_secs(60);
/// What stands for the targets beyond.
const OTHERS: &str = "(other targets, which are only counted)";
/// The longest target and operation that are kept, in bytes. A little more than what is written of it, so that a secret is
/// found before it is cut.
const MAX_KEPT: usize = 16 << 10;
const MAX_OPERATION: usize = 64;

/// The log of this process. Clones are the same log.
#[derive(Clone)]
pub struct AuditLog(Arc<Inner>);

struct Inner {
    queue: Arc<Queue>,
    /// What is not handed on yet, by the number of its [`Uses`].
    open: Mutex<Open>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Open {
    next: u64,
    waiting: HashMap<u64, HashMap<Key, Waiting>>,
    session: Option<String>,
}

/// What makes uses of one kind.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    capability: &'static str,
    operation: String,
    target: String,
    verdict: Verdict,
}

/// How a use came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Verdict {
    /// The grants allow it.
    Allowed,
    /// A person was asked and allowed it, in this word.
    Answered(&'static str),
    /// Nobody was asked.
    Denied,
    /// A person was asked and said no.
    Refused,
}

struct Waiting {
    record: AuditRecord,
    count: u64,
    /// Which of those that wait it is: several begin within what a clock tells apart.
    order: u64,
}

impl AuditLog {
    /// Starts a log in `file`, which is made when there is something to write. Past `max_bytes` the file is set aside
    /// under another name, of which [`AuditLog::files`] are kept. `warn` is told once if it can not be written.
    ///
    /// # Errors
    /// If the thread that writes can not be started.
    pub fn start(file: PathBuf, max_bytes: u64, warn: impl Fn(&str) + Send + 'static) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let thread = {
            let queue = Arc::clone(&queue);
            std::thread::Builder::new()
                .name("atoll-audit".to_owned())
                .spawn(move || writer::run(&queue, &file, max_bytes, &warn))?
        };
        Ok(Self(Arc::new(Inner { queue, open: Mutex::default(), thread: Mutex::new(Some(thread)) })))
    }

    /// The files of a log, oldest first: those that were set aside, then the one that is written.
    pub fn files(file: &Path) -> Vec<PathBuf> {
        writer::files(file)
    }

    /// Writes down all that is waiting, and ends the log: later uses are not recorded.
    pub fn close(&self) {
        let all: Vec<u64> = lock(&self.0.open).waiting.keys().copied().collect();
        for id in all {
            self.hand_on(id);
        }
        self.0.queue.close();
        let thread = lock(&self.0.thread).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    /// The session that uses from now on belong to.
    pub fn set_session(&self, id: &str) {
        lock(&self.0.open).session = Some(id.to_owned());
    }

    /// A secret that must never be written.
    pub fn learn(&self, secret: &str) {
        self.0.queue.learn(secret);
    }

    /// Hands on what is waiting for one recorder.
    fn hand_on(&self, id: u64) {
        let waiting = lock(&self.0.open).waiting.remove(&id).unwrap_or_default();
        // A denial that was handed on already stays to count those that follow.
        let mut waiting: Vec<Waiting> =
            waiting.into_values().filter(|waiting| waiting.count > 0 || waiting.record.bytes.is_some()).collect();
        waiting.sort_by_key(|waiting| waiting.order);
        self.0.queue.push(waiting.into_iter().map(Waiting::into_record).collect(), false);
    }
}

impl Waiting {
    fn into_record(self) -> AuditRecord {
        AuditRecord { count: self.count, ..self.record }
    }
}

/// Who uses something, and within what. Dropped: what it recorded is handed on.
pub(crate) struct Uses {
    log: Option<AuditLog>,
    id: u64,
    plugin: String,
    call: Option<String>,
    /// Entries wait for the end, to take in what follows.
    gathers: bool,
    seen: Arc<Mutex<Seen>>,
    /// Under which number the targets are counted that are too many: those of recorders beside each other are one entry.
    others: u64,
}

/// How many targets there were, for each capability and whether it was denied.
struct Seen {
    since: Instant,
    targets: HashMap<(&'static str, bool), usize>,
}

impl Seen {
    /// Whether one more is written by itself.
    fn admits(&mut self, capability: &'static str, denied: bool, for_ever: bool) -> bool {
        if !for_ever && self.since.elapsed() >= PERIOD {
            *self = Self::default();
        }
        let count = self.targets.entry((capability, denied)).or_default();
        *count += 1;
        *count <= if denied { MAX_DENIED_TARGETS } else { MAX_TARGETS }
    }

    /// One that was let in is not written after all.
    fn give_back(&mut self, capability: &'static str) {
        if let Some(count) = self.targets.get_mut(&(capability, false)) {
            *count = count.saturating_sub(1);
        }
    }
}

impl Default for Seen {
    fn default() -> Self {
        Self { since: Instant::now(), targets: HashMap::new() }
    }
}

/// A text that a plugin chose, as long as it may be kept. It ends where a word ends: a part of a secret would not be
/// known for one.
fn kept(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let start = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    let ends_word = |c: char| c.is_whitespace() || matches!(c, '/' | '&' | '?' | ';');
    let end = start.rfind(ends_word).unwrap_or(0);
    format!("{}…", start.get(..end).unwrap_or_default())
}

impl Uses {
    /// For one call of a plugin, or for an instance that lives as long as the session, whose uses are handed on one
    /// by one.
    pub(crate) fn new(log: Option<AuditLog>, plugin: &str, call: Option<&str>, gathers: bool) -> Self {
        let id = log.as_ref().map_or(0, |log| {
            let mut open = lock(&log.0.open);
            open.next += 1;
            open.next
        });
        let call = call.map(ToOwned::to_owned);
        Self { log, id, plugin: plugin.to_owned(), call, gathers, seen: Arc::default(), others: id }
    }

    /// A recorder beside this one, for a use that may outlast it.
    pub(crate) fn beside(&self) -> Self {
        let mut beside = Self::new(self.log.clone(), &self.plugin, self.call.as_deref(), true);
        beside.seen = Arc::clone(&self.seen);
        beside.others = self.others;
        beside
    }

    /// A use of `target`; nothing else is known of it.
    pub(crate) fn used(&self, capability: &'static str, operation: &str, target: &str, verdict: Verdict) {
        self.add(capability, operation, target, verdict, 1, None);
    }

    /// `count` uses with `bytes` in all.
    pub(crate) fn add(
        &self,
        capability: &'static str,
        operation: &str,
        target: &str,
        verdict: Verdict,
        count: u64,
        bytes: Option<u64>,
    ) {
        let Some(log) = &self.log else { return };
        let denied = matches!(verdict, Verdict::Denied | Verdict::Refused);
        let (target, operation) = (kept(target, MAX_KEPT), kept(operation, MAX_OPERATION));
        let mut key = Key { capability, operation, target, verdict };
        let mut open = lock(&log.0.open);
        let session = open.session.clone();
        let mut mine = open.waiting.entry(self.id).or_default();
        let mut is_counted = false;
        if !mine.contains_key(&key) && !lock(&self.seen).admits(capability, denied, self.call.is_some()) {
            key = Key { operation: "others".to_owned(), target: OTHERS.to_owned(), ..key };
            is_counted = true;
            mine = open.waiting.entry(self.others).or_default();
        }
        if let Some(known) = mine.get_mut(&key) {
            known.count += count;
            if let Some(bytes) = bytes {
                *known.record.bytes.get_or_insert(0) += bytes;
            }
            return;
        }
        let record = AuditRecord {
            time: AuditRecord::now(),
            plugin: self.plugin.clone(),
            capability: capability.to_owned(),
            operation: key.operation.clone(),
            target: key.target.clone(),
            allowed: !denied,
            answer: match verdict {
                Verdict::Answered(word) => Some(word.to_owned()),
                Verdict::Refused => Some("no".to_owned()),
                Verdict::Allowed | Verdict::Denied => None,
            },
            count: 1,
            bytes,
            call: self.call.clone(),
            session,
        };
        let at_once = denied && !is_counted;
        if at_once {
            log.0.queue.push(vec![AuditRecord { count, ..record.clone() }], true);
        }
        let order = mine.values().map(|waiting| waiting.order + 1).max().unwrap_or(0);
        mine.insert(key, Waiting { record, count: if at_once { 0 } else { count }, order });
        let full = (!self.gathers && !is_counted) || mine.len() >= MAX_WAITING;
        drop(open);
        if full {
            log.hand_on(self.id);
        }
    }
}

impl Uses {
    /// `count` uses of what is in `folder`. All of a call are one entry, of the directory that all are in.
    pub(crate) fn add_batch(&self, operation: &str, folder: &str, count: u64, bytes: u64) {
        let Some(log) = &self.log else { return };
        let before = {
            let mut open = lock(&log.0.open);
            let mine = open.waiting.entry(self.id).or_default();
            let known = mine.keys().find(|key| key.operation == operation && key.verdict == Verdict::Allowed).cloned();
            known.and_then(|key| mine.remove(&key)).inspect(|_| lock(&self.seen).give_back("files"))
        };
        let (folder, count, bytes) = match before {
            None => (folder.to_owned(), count, bytes),
            Some(Waiting { record, count: more, .. }) => {
                (common_directory(&record.target, folder), count + more, bytes + record.bytes.unwrap_or(0))
            }
        };
        self.add("files", operation, &folder, Verdict::Allowed, count, Some(bytes));
    }
}

/// The directory that both of these are in, or are.
fn common_directory(one: &str, other: &str) -> String {
    let same = one.split('/').zip(other.split('/')).take_while(|(a, b)| a == b).map(|(part, _)| part);
    let common = same.collect::<Vec<_>>().join("/");
    if common.is_empty() { "/".to_owned() } else { common }
}

impl Drop for Uses {
    fn drop(&mut self) {
        if let Some(log) = &self.log {
            log.hand_on(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written of what `uses` does, as targets with their counts.
    fn written(gathers: bool, uses: impl FnOnce(&Uses)) -> Vec<(String, u64)> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.log");
        let log = AuditLog::start(file.clone(), 1 << 30, |_| {}).unwrap();
        uses(&Uses::new(Some(log.clone()), "p", gathers.then_some("call-1"), gathers));
        log.close();
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines().filter_map(AuditRecord::from_line).map(|record| (record.target, record.count)).collect()
    }

    #[test]
    fn a_call_can_not_push_out_what_is_kept_by_using_ever_other_targets() {
        for (verdict, most) in [(Verdict::Allowed, MAX_TARGETS), (Verdict::Denied, MAX_DENIED_TARGETS)] {
            for gathers in [true, false] {
                let entries = written(gathers, |uses| {
                    uses.used("files", "read", "first", verdict);
                    for number in 0..20_000 {
                        uses.used("files", if number % 2 == 0 { "read" } else { "stat" }, &number.to_string(), verdict);
                    }
                    // Of another kind.
                    uses.used("http", "GET", "https://a.example/", verdict);
                });
                let others: u64 = entries.iter().filter(|entry| entry.0 == OTHERS).map(|entry| entry.1).sum();
                assert_eq!(others, 20_001 - most as u64);
                assert!(entries.len() < most + 50, "{}", entries.len());
                assert_eq!(entries.iter().map(|entry| entry.1).sum::<u64>(), 20_002);
                for target in ["first", "https://a.example/"] {
                    assert!(entries.iter().any(|entry| entry.0 == target), "{target}");
                }
            }
        }
    }

    #[test]
    fn what_is_recorded_beside_a_call_counts_as_its_own() {
        let entries = written(true, |uses| {
            for number in 0..3_000 {
                uses.beside().used("http", "GET", &format!("http://a.example/{number}"), Verdict::Allowed);
            }
        });
        assert_eq!(entries.len(), MAX_TARGETS + 1);
        assert_eq!(entries.iter().map(|entry| entry.1).sum::<u64>(), 3_000);
    }

    #[test]
    fn batches_of_ever_other_directories_stay_one_entry() {
        let entries = written(true, |uses| {
            for number in 0..3_000 {
                uses.add_batch("walk-read", &format!("/a/{number}"), 2, 10);
            }
        });
        assert_eq!(entries, [("/a".to_owned(), 6_000)]);
    }

    #[test]
    fn long_targets_are_not_held() {
        assert_eq!(kept("short", 8), "short");
        assert_eq!(kept("one secret", 8), "one…");
        assert_eq!(kept(&"ü".repeat(20), 9), "…");
        let uses =
            Uses::new(Some(AuditLog::start(PathBuf::from("/dev/null/none"), 1, |_| {}).unwrap()), "p", None, true);
        uses.used("files", &"o ".repeat(1 << 20), &"t ".repeat(1 << 20), Verdict::Allowed);
        let log = uses.log.clone().unwrap();
        let open = lock(&log.0.open);
        let held = open.waiting[&uses.id].values().map(|one| one.record.target.len() + one.record.operation.len());
        assert!(held.sum::<usize>() < 2 * MAX_KEPT);
    }

    #[test]
    fn batches_are_one_entry_of_the_directory_they_have_in_common() {
        assert_eq!(common_directory("/a/b/c", "/a/b"), "/a/b");
        assert_eq!(common_directory("/a/b/c", "/a/bc"), "/a");
        assert_eq!(common_directory("/a", "/b"), "/");
    }
}
