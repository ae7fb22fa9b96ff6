//! Calls under way: at the end a server still has to hear of those that nobody wants any more.

use std::{cell::Cell, pin::pin, rc::Rc};

use atoll_plugin::{Error, clock};
use futures::future::select;
use tokio::sync::watch;

/// How long calls that were given up may take to end, at the end of a session.
const LAST_CALLS_MS: u64 = 500;
/// How long what was said last takes to get to a server, which hears nothing more once its input is closed.
const LAST_WORDS_MS: u64 = 50;

/// The calls under way. Clones are the same ones.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    count: watch::Sender<usize>,
    /// When the last one was given up, in milliseconds since some point.
    given_up: Rc<Cell<Option<u64>>>,
}

impl Default for Calls {
    fn default() -> Self {
        Self { count: watch::channel(0).0, given_up: Rc::default() }
    }
}

/// One of them, for as long as this is there.
struct One(Calls);

impl Drop for One {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| *count -= 1);
    }
}

fn now_ms() -> u64 {
    clock::monotonic() / 1_000_000
}

impl Calls {
    /// Carries one out.
    pub(crate) async fn run<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.count.send_modify(|count| *count += 1);
        let _one = One(self.clone());
        let result = call.await;
        if let Err(Error::Cancelled(_)) = result {
            self.given_up.set(Some(now_ms()));
        }
        result
    }

    /// Waits until those that were given up have said so to their servers, or for a moment.
    pub(crate) async fn settle(&self) {
        let mut count = self.count.subscribe();
        let ended = count.wait_for(|count| *count == 0);
        select(pin!(ended), pin!(clock::sleep(LAST_CALLS_MS))).await;
        if self.given_up.get().is_some_and(|then| now_ms().saturating_sub(then) < LAST_WORDS_MS) {
            clock::sleep(LAST_WORDS_MS).await;
        }
    }
}
