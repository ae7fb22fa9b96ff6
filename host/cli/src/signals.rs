//! Ctrl-C and its relatives: the first stops the run in order, the second ends the program at once.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use tokio_util::sync::CancellationToken;

/// What a signal does to the program.
#[derive(Clone, Default)]
pub(crate) struct Stop {
    /// Set once the run is to stop.
    pub(crate) token: CancellationToken,
    code: Arc<AtomicU8>,
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
                    if stop.token.is_cancelled() && stop.code.load(Ordering::Relaxed) != 0 {
                        atoll_engine::stop_starting_processes();
                        std::process::exit(i32::from(code));
                    }
                    stop.code.store(code, Ordering::Relaxed);
                    stop.token.cancel();
                }
            });
        }
        Ok(stop)
    }

    /// The code to exit with, if a signal stopped the run.
    pub(crate) fn code(&self) -> Option<u8> {
        Some(self.code.load(Ordering::Relaxed)).filter(|code| *code != 0)
    }
}
