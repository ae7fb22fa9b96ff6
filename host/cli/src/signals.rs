//! Ctrl-C and its relatives: the first stops the run in order, the second ends the program at once.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, Ordering},
};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What a signal does to the program.
#[derive(Clone, Default)]
pub(crate) struct Stop {
    /// Set once the run is to stop.
    pub(crate) token: CancellationToken,
    code: Arc<AtomicU8>,
    question: Arc<Question>,
}

/// A question to the person: while it is open, Ctrl-C answers it and stops nothing.
#[derive(Default)]
struct Question {
    is_open: AtomicBool,
    interrupted: Notify,
}

/// An open question. Dropped: Ctrl-C stops the run again.
pub(crate) struct OpenQuestion<'a>(&'a Question);

impl OpenQuestion<'_> {
    /// Waits for Ctrl-C.
    pub(crate) async fn interrupted(&self) {
        self.0.interrupted.notified().await;
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.is_open.store(false, Ordering::SeqCst);
    }
}

impl Stop {
    /// Watches for signals from here on.
    pub(crate) fn watch() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let stop = Self::default();
        for (kind, code) in
            [(SignalKind::interrupt(), 130), (SignalKind::terminate(), 143), (SignalKind::hangup(), 129)]
        {
            let mut arrivals = signal(kind)?;
            let stop = stop.clone();
            tokio::spawn(async move {
                while arrivals.recv().await.is_some() {
                    if kind == SignalKind::interrupt() && stop.question.is_open.swap(false, Ordering::SeqCst) {
                        stop.question.interrupted.notify_one();
                        continue;
                    }
                    if stop.token.is_cancelled() && stop.code.load(Ordering::Relaxed) != 0 {
                        atoll_engine::stop_starting_processes();
                        crate::exit::close_log();
                        std::process::exit(i32::from(code));
                    }
                    stop.code.store(code, Ordering::Relaxed);
                    stop.token.cancel();
                }
            });
        }
        Ok(stop)
    }

    /// From here on Ctrl-C is an answer.
    pub(crate) fn open_question(&self) -> OpenQuestion<'_> {
        self.question.is_open.store(true, Ordering::SeqCst);
        OpenQuestion(&self.question)
    }

    /// The code to exit with, if a signal stopped the run.
    pub(crate) fn code(&self) -> Option<u8> {
        Some(self.code.load(Ordering::Relaxed)).filter(|code| *code != 0)
    }
}
