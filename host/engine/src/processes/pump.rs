//! Moves a process's output from its pipe to whoever takes it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    sync::{mpsc, watch},
    time::{Instant, timeout},
};

use super::{group::Group, spill::Log};
use crate::state::lock;

/// How many pieces of output may wait to be taken; a process that writes faster waits. With [`PIECE`], 1 MiB.
pub(super) const QUEUE: usize = 16;
/// The largest piece.
const PIECE: usize = 64 << 10;
/// After this many times the silence that ends a held stream, it is ended even if it was never silent.
const LINGERS: u32 = 20;
/// What a pipe can hold at most: so much is read after the exit in any case, for it was written before.
const PIPE: usize = 1 << 20;
/// A shorter silence may be no more than the time it takes to notice what has come.
const SHORTEST_LINGER: Duration = Duration::from_millis(10);

/// How much a process may print, over all its pipes.
pub(super) struct OutputBound {
    left: AtomicU64,
    group: Arc<Group>,
}

impl OutputBound {
    pub(super) fn new(bytes: u64, group: Arc<Group>) -> Self {
        Self { left: AtomicU64::new(bytes), group }
    }

    /// Counts output. False, and the group killed, once there is more than there may be.
    fn take(&self, bytes: u64) -> bool {
        let fits = |left: u64| left.checked_sub(bytes).or(Some(GONE));
        let before = self
            .left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| if left == GONE { None } else { fits(left) });
        let held = before.is_ok_and(|left| left >= bytes);
        if !held {
            self.group.kill();
        }
        held
    }

    /// Whether there was more than there may be.
    pub(super) fn is_reached(&self) -> bool {
        self.left.load(Ordering::Acquire) == GONE
    }
}

/// There was more than there may be.
const GONE: u64 = u64::MAX;

/// Moves output from the pipe to the queue until the pipe is closed, or until the process has exited and those
/// that still hold the pipe have been silent for `linger`, or have been heard for [`LINGERS`] times that. True if
/// they still held it.
pub(super) async fn pump(
    mut pipe: pipe::Receiver,
    queue: mpsc::Sender<Bytes>,
    mut exited: watch::Receiver<bool>,
    linger: Duration,
    spill: Option<Arc<Mutex<Log>>>,
    bound: Arc<OutputBound>,
) -> bool {
    let linger = linger.max(SHORTEST_LINGER);
    let mut buffer = vec![0; PIECE];
    let mut last = None;
    let mut after_exit = 0;
    loop {
        let read = if *exited.borrow_and_update() {
            let end = *last.get_or_insert_with(|| Instant::now() + linger * LINGERS);
            if Instant::now() >= end && after_exit >= PIPE {
                return true;
            }
            let Ok(read) = timeout(linger.min(end - Instant::now()), pipe.read(&mut buffer)).await else {
                return true;
            };
            after_exit += PIECE.min(read.as_ref().map_or(0, |length| *length));
            read
        } else {
            tokio::select! {
                read = pipe.read(&mut buffer) => read,
                _ = exited.changed() => continue,
            }
        };
        let Ok(length @ 1..) = read else { return false };
        if !bound.take(length as u64) {
            // Read on, so that whoever survives the signal can come to an end.
            continue;
        }
        if let Some(spill) = &spill {
            lock(spill).write(&buffer[..length]);
        }
        // Nobody takes it any more: go on reading, so that the process is not stopped by a full pipe.
        let _ = queue.send(Bytes::copy_from_slice(&buffer[..length])).await;
    }
}
