//! What a guest writes to its standard output and standard error: whole lines go to the plugin's log, and the end of it is
//! kept to explain a crash. It is never full: a guest that prints is no worse off than one that does not.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::{
    async_trait,
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamResult},
};

use crate::state::lock;

/// How much is kept, in bytes.
const KEPT: usize = 16 << 10;
/// The longest line that is logged whole, in bytes.
pub(crate) const MAX_LINE: usize = 16 << 10;
/// So many lines are logged in each period.
const MAX_LINES: u32 = 10_000;
/// So many notices are shown in each period.
const MAX_NOTICES: u32 = 100;
/// That of an instance that lives as long as the session. A call has one.
const PERIOD: Duration = Duration::from_secs(60);
/// How much a guest may write at once, in bytes.
const WINDOW: usize = 1 << 20;

/// How much an instance may still log, or say to the person.
#[derive(Debug)]
pub(crate) struct Allowance {
    most: u32,
    lines: u32,
    /// None: it does not begin anew.
    since: Option<Instant>,
}

impl Allowance {
    /// For one call, or for an instance that lives on.
    pub(crate) fn new(is_one_call: bool) -> Self {
        Self { most: MAX_LINES, lines: 0, since: (!is_one_call).then(Instant::now) }
    }

    /// The same for what is shown to the person at once.
    pub(crate) fn of_notices(is_one_call: bool) -> Self {
        Self { most: MAX_NOTICES, ..Self::new(is_one_call) }
    }

    /// Whether a line may be logged, and whether it is the last one for now.
    pub(crate) fn take(&mut self) -> (bool, bool) {
        if self.since.is_some_and(|since| since.elapsed() >= PERIOD) {
            *self = Self { lines: 0, since: Some(Instant::now()), ..*self };
        }
        self.lines = self.lines.saturating_add(1);
        (self.lines <= self.most, self.lines == self.most)
    }
}

/// Takes a line for the log.
type Log = Box<dyn Fn(&str) + Send + Sync>;

/// Standard output or standard error of one instance. Clones are the same one.
#[derive(Clone)]
pub(crate) struct OutputLines(Arc<Shared>);

struct Shared {
    log: Log,
    written: Mutex<Written>,
}

#[derive(Default)]
struct Written {
    /// The end of all.
    kept: VecDeque<u8>,
    /// The beginning of the line that is not complete.
    line: Vec<u8>,
}

impl OutputLines {
    /// Lines go to `log`.
    pub(crate) fn new(log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared { log: Box::new(log), written: Mutex::default() }))
    }

    /// The end of what was written.
    pub(crate) fn contents(&self) -> Vec<u8> {
        lock(&self.0.written).kept.iter().copied().collect()
    }

    fn take(&self, bytes: &[u8]) {
        let mut lines = Vec::new();
        {
            let written = &mut *lock(&self.0.written);
            written.kept.extend(bytes);
            let surplus = written.kept.len().saturating_sub(KEPT);
            written.kept.drain(..surplus);
            let mut parts = bytes.split(|byte| *byte == b'\n');
            let last = parts.next_back().unwrap_or_default();
            for part in parts {
                add(&mut written.line, part);
                lines.push(std::mem::take(&mut written.line));
            }
            add(&mut written.line, last);
        }
        for line in lines {
            let text = String::from_utf8_lossy(&line);
            if !text.trim().is_empty() {
                (self.0.log)(text.trim_end_matches('\r'));
            }
        }
    }
}

/// Adds to a line what of it is logged.
fn add(line: &mut Vec<u8>, part: &[u8]) {
    let room = MAX_LINE.saturating_sub(line.len());
    line.extend_from_slice(part.get(..room).unwrap_or(part));
}

impl IsTerminal for OutputLines {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for OutputLines {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for OutputLines {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for OutputLines {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WINDOW)
    }
}

impl AsyncWrite for OutputLines {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_logged_whole_and_the_end_is_kept() {
        let logged = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&logged);
        let output = OutputLines::new(move |line: &str| lock(&log).push(line.to_owned()));
        output.take(b"one\ntw");
        output.take(b"o\r\n\n   \nthr");
        assert_eq!(*lock(&logged), ["one", "two"]);
        assert_eq!(output.contents(), b"one\ntwo\r\n\n   \nthr");
        for _ in 0..1_000 {
            output.take(&[b'x'; 100]);
        }
        assert_eq!(output.contents().len(), KEPT);
        output.take(b"\nlast");
        assert_eq!(lock(&logged)[2].len(), MAX_LINE, "a long line is cut");
        assert!(output.contents().ends_with(b"x\nlast"));
    }

    #[test]
    fn so_many_lines_and_no_more() {
        let mut of_call = Allowance::new(true);
        let taken: Vec<(bool, bool)> = (0..=MAX_LINES).map(|_| of_call.take()).collect();
        assert_eq!(taken.iter().filter(|(may, _)| *may).count(), MAX_LINES as usize);
        assert_eq!(taken.iter().position(|(_, last)| *last), Some(MAX_LINES as usize - 1));
        let mut living = Allowance::new(false);
        living.lines = MAX_LINES;
        assert!(!living.take().0);
        living.since = Instant::now().checked_sub(PERIOD);
        assert!(living.take().0, "a new period");
    }
}
