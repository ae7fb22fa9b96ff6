//! The way to whoever reads the answer.
//!
//! Must never go on working for a reader that has gone: a write tells, and while there is nothing to write an
//! empty one is tried now and then.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use atoll_plugin::provider::ModelEvent;
use atoll_plugin::{StreamResult, StreamWriter, clock};

/// How long a reader may be gone unnoticed.
const LOOK_MS: u64 = 500;

/// How a wait came out.
pub(crate) enum Waited<T> {
    /// This came.
    Done(T),
    /// Nobody reads any more.
    Gone,
    /// Nothing came in time.
    Late,
}

/// The writing end of an answer.
pub(crate) struct Outlet {
    writer: StreamWriter<ModelEvent>,
    open: bool,
    /// Until the next look at the reader. Kept from one wait to the next: waits are many and short.
    timer: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl Outlet {
    pub(crate) fn new(writer: StreamWriter<ModelEvent>) -> Self {
        Self { writer, open: true, timer: None }
    }

    /// Writes events; `false` if nobody reads them.
    pub(crate) async fn send(&mut self, events: Vec<ModelEvent>) -> bool {
        if self.open && !events.is_empty() {
            self.open = self.writer.write_all(events).await.is_empty();
        }
        self.open
    }

    /// Waits for `work` as long as somebody reads; `None` if nobody does any more.
    pub(crate) async fn unless_gone<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        match self.wait(work, u32::MAX).await {
            Waited::Done(result) => Some(result),
            Waited::Gone | Waited::Late => None,
        }
    }

    /// Waits for `work` as long as somebody reads, and not much longer than `looks` times [`LOOK_MS`].
    pub(crate) async fn wait<T>(&mut self, work: impl Future<Output = T>, looks: u32) -> Waited<T> {
        let mut work = pin!(work);
        let mut left = looks;
        loop {
            let timer = self.timer.get_or_insert_with(|| Box::pin(clock::sleep(LOOK_MS)));
            let result = poll_fn(|context| {
                if let Poll::Ready(result) = work.as_mut().poll(context) {
                    return Poll::Ready(Some(result));
                }
                timer.as_mut().poll(context).map(|()| None)
            })
            .await;
            if let Some(result) = result {
                return Waited::Done(result);
            }
            self.timer = None;
            if !self.look().await {
                return Waited::Gone;
            }
            left -= 1;
            if left == 0 {
                return Waited::Late;
            }
        }
    }

    async fn look(&mut self) -> bool {
        if self.open {
            let (result, _) = self.writer.write(Vec::new()).await;
            self.open = result != StreamResult::Dropped;
        }
        self.open
    }
}
