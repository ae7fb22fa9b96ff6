//! Who may have an instance from the pool, so that a burst of calls waits for room instead of overrunning it.
//!
//! Calls wait for calls: one that makes another holds its instance until that one has ended. So whoever waits here must
//! only wait for those that can end without the one that waits.

use atoll_table::Error;
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

/// How many calls that no other call made may run at once. Further ones wait.
pub(crate) const MAX_CALLS: usize = 1_000;
/// How many calls that other calls made may run at once, at all depths together.
pub(crate) const MAX_NESTED_CALLS: usize = 256;
/// How many instances may prepare arguments or list tools at once. These call nothing, so they end by themselves.
pub(crate) const MAX_PREPARING: usize = 64;

/// The permits of a host.
pub(crate) struct Permits {
    calls: Semaphore,
    nested: Semaphore,
    preparing: Semaphore,
}

impl Default for Permits {
    fn default() -> Self {
        Self {
            calls: Semaphore::new(MAX_CALLS),
            nested: Semaphore::new(MAX_NESTED_CALLS),
            preparing: Semaphore::new(MAX_PREPARING),
        }
    }
}

fn closed(_: AcquireError) -> Error {
    Error::Unavailable("the host is shutting down".to_owned())
}

impl Permits {
    /// For a call with `depth` calls around it.
    ///
    /// # Errors
    /// `unavailable` if it is nested twice or deeper and there is no room at once: the calls it would wait for may be
    /// those that wait for it.
    pub(crate) async fn call(&self, depth: u32) -> Result<SemaphorePermit<'_>, Error> {
        match depth {
            0 => self.calls.acquire().await.map_err(closed),
            1 => self.nested.acquire().await.map_err(closed),
            _ => self.nested.try_acquire().map_err(|_| {
                Error::Unavailable(format!(
                    "{MAX_NESTED_CALLS} calls made by other calls are running, and this one is nested {depth} deep; \
                     make fewer at once, or try again"
                ))
            }),
        }
    }

    /// For an instance that prepares arguments or lists tools.
    pub(crate) async fn preparing(&self) -> Result<SemaphorePermit<'_>, Error> {
        self.preparing.acquire().await.map_err(closed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_call_that_is_nested_twice_does_not_wait_for_those_around_it() {
        let permits = Permits::default();
        let mut held = Vec::new();
        for _ in 0..MAX_NESTED_CALLS {
            held.push(permits.call(1).await.unwrap());
        }
        let error = permits.call(2).await.unwrap_err();
        assert_eq!(error.code(), "unavailable");
        // Others have room of their own.
        drop(permits.call(0).await.unwrap());
        drop(permits.preparing().await.unwrap());
        // One that is nested once waits until another ends.
        let waiting = permits.call(1);
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(Duration::ZERO, &mut waiting).await.is_err());
        held.pop();
        drop(waiting.await.unwrap());
    }
}
