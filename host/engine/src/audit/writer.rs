//! The thread that writes the audit log. Several processes write to the same file: whole lines are appended in one
//! write each, and whoever finds the file full sets it aside under a lock.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

use atoll_caps::{AuditRecord, Redactor};

use crate::state::lock;

/// How long entries wait for others, unless a denial is among them.
const GATHER: Duration = Duration::from_millis(250);
/// So many entries do not wait.
const MANY: usize = 1_024;
/// Entries beyond these are dropped and counted: the disk does not keep up, and memory is bounded. Denials may wait beyond
/// the first, for there are few of them in a call.
const MOST: usize = 100_000;
const MOST_BYTES: usize = 64 << 20;
/// How many files that were set aside are kept.
const KEPT: usize = 3;
/// How much is written at once, in bytes.
const CHUNK: usize = 256 << 10;

/// What is to be written.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    records: Vec<AuditRecord>,
    /// What their targets take.
    bytes: usize,
    secrets: Vec<String>,
    dropped: u64,
    urgent: bool,
    closed: bool,
}

impl Queue {
    /// Adds entries. An `urgent` one is written at once.
    pub(super) fn push(&self, records: Vec<AuditRecord>, urgent: bool) {
        if records.is_empty() {
            return;
        }
        let mut state = lock(&self.state);
        if state.closed {
            return;
        }
        let bytes = records.iter().map(|record| record.target.len()).sum::<usize>();
        if (state.records.len() >= MOST && !urgent) || state.bytes.saturating_add(bytes) > MOST_BYTES {
            state.dropped += records.len() as u64;
            return;
        }
        let was_empty = state.records.is_empty();
        state.bytes += bytes;
        state.records.extend(records);
        state.urgent |= urgent;
        // The thread wakes up by itself once it has something to wait with.
        if was_empty || urgent || state.records.len() == MANY {
            self.changed.notify_one();
        }
    }

    pub(super) fn learn(&self, secret: &str) {
        let mut state = lock(&self.state);
        if !state.secrets.iter().any(|known| known == secret) {
            state.secrets.push(secret.to_owned());
        }
    }

    pub(super) fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_one();
    }
}

/// Writes what comes until the queue is closed.
pub(super) fn run(queue: &Queue, file: &Path, max_bytes: u64, warn: &dyn Fn(&str)) {
    let mut log = Log { path: file.to_owned(), max_bytes, file: None, torn: false };
    let mut redactor = Redactor::default();
    let mut learnt = 0;
    let mut warned = false;
    loop {
        let (records, dropped, closed) = {
            let mut state = lock(&queue.state);
            while state.records.is_empty() && !state.closed {
                state = queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let waits = |state: &mut State| !state.urgent && !state.closed && state.records.len() < MANY;
            let waited = queue.changed.wait_timeout_while(state, GATHER, waits);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
            for secret in state.secrets.iter().skip(learnt) {
                redactor.learn(secret);
            }
            learnt = state.secrets.len();
            state.urgent = false;
            state.bytes = 0;
            (std::mem::take(&mut state.records), std::mem::take(&mut state.dropped), state.closed)
        };
        let mut lines: Vec<String> = records.iter().filter_map(|record| record.to_line(&redactor).ok()).collect();
        if dropped > 0
            && let Some(last) = records.last()
        {
            let note = AuditRecord {
                plugin: "atoll".to_owned(),
                capability: "audit".to_owned(),
                operation: "dropped".to_owned(),
                target: "uses that came faster than they could be written".to_owned(),
                allowed: true,
                answer: None,
                count: dropped,
                bytes: None,
                call: None,
                ..last.clone()
            };
            lines.extend(note.to_line(&redactor).ok());
        }
        if let Err(error) = log.append(&lines)
            && !warned
        {
            warned = true;
            warn(&format!(
                "the audit log {} can not be written: {error}; make it writable, or set audit.enabled to false in \
                 settings.json",
                file.display()
            ));
        }
        if closed {
            return;
        }
    }
}

/// The file, open if it could be opened.
struct Log {
    path: PathBuf,
    max_bytes: u64,
    file: Option<File>,
    /// The last write was not whole: what follows has to begin a line.
    torn: bool,
}

impl Log {
    /// Appends lines, as many as fit into one write at a time.
    fn append(&mut self, lines: &[String]) -> io::Result<()> {
        let mut buffer = String::new();
        for line in lines {
            buffer.push_str(line);
            if buffer.len() >= CHUNK {
                self.write(&buffer)?;
                buffer.clear();
            }
        }
        self.write(&buffer)
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.make_room(text.len() as u64)?;
        let text = if self.torn { format!("\n{text}") } else { text.to_owned() };
        let file = self.opened()?;
        match file.write(text.as_bytes()) {
            Ok(written) if written == text.len() => {
                self.torn = false;
                Ok(())
            }
            // The rest of a line, appended later, could come after one of another process.
            Ok(_) => {
                self.torn = true;
                Err(io::Error::from(io::ErrorKind::StorageFull))
            }
            Err(error) => {
                self.file = None;
                Err(error)
            }
        }
    }

    fn opened(&mut self) -> io::Result<&mut File> {
        if let Some(file) = self.file.take() {
            // Another process may have set it aside, or the user removed it.
            let same = fs::metadata(&self.path)
                .is_ok_and(|now| file.metadata().is_ok_and(|ours| (ours.dev(), ours.ino()) == (now.dev(), now.ino())));
            if same {
                return Ok(self.file.insert(file));
            }
        }
        if let Some(parent) = self.path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            // A pipe that nobody reads must not be waited for.
            .custom_flags(libc::O_NONBLOCK)
            .open(&self.path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        Ok(self.file.insert(file))
    }

    /// Sets the file aside if it would grow too large.
    fn make_room(&mut self, more: u64) -> io::Result<()> {
        let full = |path: &Path| {
            fs::metadata(path).is_ok_and(|facts| facts.len() > 0 && facts.len().saturating_add(more) > self.max_bytes)
        };
        if !full(&self.path) {
            return Ok(());
        }
        let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(numbered(&self.path, "lock"))?;
        lock.lock()?;
        // Another process may have been quicker.
        if !full(&self.path) {
            return Ok(());
        }
        for number in (1..KEPT).rev() {
            let from = numbered(&self.path, &number.to_string());
            if from.exists() {
                fs::rename(from, numbered(&self.path, &(number + 1).to_string()))?;
            }
        }
        fs::rename(&self.path, numbered(&self.path, "1"))?;
        self.file = None;
        Ok(())
    }
}

fn numbered(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(end);
    name.into()
}

/// The files of a log, oldest first.
pub(super) fn files(path: &Path) -> Vec<PathBuf> {
    let aside = (1..=KEPT).rev().map(|number| numbered(path, &number.to_string()));
    aside.chain([path.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_in_memory_denials_too() {
        let queue = Queue::default();
        let record = AuditRecord {
            time: AuditRecord::now(),
            plugin: "p".to_owned(),
            capability: "files".to_owned(),
            operation: "read".to_owned(),
            target: "t".repeat(16 << 10),
            allowed: false,
            answer: None,
            count: 1,
            bytes: None,
            call: None,
            session: None,
        };
        for _ in 0..10_000 {
            queue.push(vec![record.clone()], true);
        }
        let state = lock(&queue.state);
        assert_eq!(state.records.len() as u64 + state.dropped, 10_000);
        assert_eq!(state.records.len(), MOST_BYTES / (16 << 10));
    }

    fn lines(range: std::ops::Range<usize>) -> Vec<String> {
        range.map(|number| format!("{number:099}\n")).collect()
    }

    #[test]
    fn a_full_file_is_set_aside_and_a_bounded_number_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/audit.log");
        let mut log = Log { path: path.clone(), max_bytes: 1_000, file: None, torn: false };
        for line in lines(0..95) {
            log.append(&[line]).unwrap();
        }
        let sizes: Vec<usize> = files(&path).iter().map(|file| fs::read(file).unwrap().len()).collect();
        assert_eq!(sizes, [1_000, 1_000, 1_000, 500]);
        let all: String = files(&path).iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        assert_eq!(all, lines(60..95).concat());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn two_writers_lose_nothing_and_tear_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        std::thread::scope(|scope| {
            for start in [0, 1_000] {
                let path = path.clone();
                scope.spawn(move || {
                    let mut log = Log { path, max_bytes: 60_000, file: None, torn: false };
                    for line in lines(start..start + 1_000) {
                        log.append(&[line]).unwrap();
                    }
                });
            }
        });
        let all: String = files(&path).iter().filter_map(|file| fs::read_to_string(file).ok()).collect();
        let mut seen: Vec<&str> = all.lines().collect();
        seen.sort_unstable();
        let expected = lines(0..2_000).concat();
        assert_eq!(seen, expected.lines().collect::<Vec<_>>());
    }

    #[test]
    fn a_file_that_was_removed_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let mut log = Log { path: path.clone(), max_bytes: 1_000, file: None, torn: false };
        log.append(&lines(0..1)).unwrap();
        fs::remove_file(&path).unwrap();
        log.torn = true;
        log.append(&lines(1..2)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("\n{}", lines(1..2).concat()));
    }
}
