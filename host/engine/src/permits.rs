//! Who may have an instance from the pool, so that a burst of calls waits for room instead of overrunning it.
//!
//! Calls wait for calls: one that makes another holds its instance until that one has ended. So whoever waits here must
//! only wait for those that can end without the one that waits.

use std::sync::Arc;

use atoll_table::Error;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use wasmtime::component::InstancePre;

/// How many calls that no other call made may run at once. Further ones wait.
pub(crate) const MAX_CALLS: usize = 1_000;
/// How many calls that other calls made may run at once, at all depths together.
pub(crate) const MAX_NESTED_CALLS: usize = 256;
/// How many instances may prepare arguments or list tools at once. These call nothing, so they end by themselves.
pub(crate) const MAX_PREPARING: usize = 64;
/// How many instances may live as long as the session.
pub(crate) const MAX_LONG_LIVED: usize = 152;

/// How many tables of the pool go with each memory.
pub(crate) const TABLES_OF_A_PLACE: u32 = 2;
/// How many memories one instance may have. Fewer than there are permits of any kind, or it would wait for ever.
pub(crate) const MAX_MEMORIES: u32 = 8;
/// How many tables one instance may have; no more places than those with the most memories.
pub(crate) const MAX_TABLES: u32 = MAX_MEMORIES * TABLES_OF_A_PLACE;

/// The permits of a host.
pub(crate) struct Permits {
    calls: Semaphore,
    nested: Semaphore,
    preparing: Semaphore,
    long_lived: Arc<Semaphore>,
}

impl Default for Permits {
    fn default() -> Self {
        Self {
            calls: Semaphore::new(MAX_CALLS),
            nested: Semaphore::new(MAX_NESTED_CALLS),
            preparing: Semaphore::new(MAX_PREPARING),
            long_lived: Arc::new(Semaphore::new(MAX_LONG_LIVED)),
        }
    }
}

/// How many places an instance of a component takes: the pool has a memory and [`TABLES_OF_A_PLACE`] tables for each,
/// and a component may have several of both.
pub(crate) fn places<T>(pre: &InstancePre<T>) -> u32 {
    let needs = pre.component().resources_required();
    // What is not known is as much as there may be.
    needs.map_or(MAX_MEMORIES, |needs| needs.num_memories.max(needs.num_tables.div_ceil(TABLES_OF_A_PLACE)).max(1))
}

fn closed(_: AcquireError) -> Error {
    Error::Unavailable("the host is shutting down".to_owned())
}

impl Permits {
    /// For a call with `depth` calls around it, by an instance that takes so many `places` of the pool.
    ///
    /// # Errors
    /// `unavailable` if it is nested twice or deeper and there is no room at once: the calls it would wait for may be
    /// those that wait for it.
    pub(crate) async fn call(&self, depth: u32, places: u32) -> Result<SemaphorePermit<'_>, Error> {
        match depth {
            0 => self.calls.acquire_many(places).await.map_err(closed),
            1 => self.nested.acquire_many(places).await.map_err(closed),
            _ => self.nested.try_acquire_many(places).map_err(|_| {
                Error::Unavailable(format!(
                    "{MAX_NESTED_CALLS} calls made by other calls are running, and this one is nested {depth} deep; \
                     make fewer at once, or try again"
                ))
            }),
        }
    }

    /// For an instance that prepares arguments or lists tools, and takes so many `places` of the pool.
    pub(crate) async fn preparing(&self, places: u32) -> Result<SemaphorePermit<'_>, Error> {
        self.preparing.acquire_many(places).await.map_err(closed)
    }

    /// For an instance of `plugin` that lives as long as the session, and takes so many `places` of the pool.
    ///
    /// # Errors
    /// `unavailable` if there is no room: none of them can be waited for.
    pub(crate) fn long_lived(&self, plugin: &str, places: u32) -> Result<OwnedSemaphorePermit, Error> {
        Arc::clone(&self.long_lived).try_acquire_many_owned(places).map_err(|_| {
            Error::Unavailable(format!(
                "the plugin {plugin} can not be started: {MAX_LONG_LIVED} instances of extensions and providers are \
                 running, which is the most there can be; disable one with `atoll plugin disable NAME`"
            ))
        })
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
            held.push(permits.call(1, 1).await.unwrap());
        }
        let error = permits.call(2, 1).await.unwrap_err();
        assert_eq!(error.code(), "unavailable");
        // Others have room of their own.
        drop(permits.call(0, 1).await.unwrap());
        drop(permits.preparing(1).await.unwrap());
        // One that is nested once waits until another ends.
        let waiting = permits.call(1, 1);
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(Duration::ZERO, &mut waiting).await.is_err());
        held.pop();
        drop(waiting.await.unwrap());
    }

    #[test]
    fn what_lives_as_long_as_the_session_has_room_of_its_own_and_no_more() {
        let permits = Permits::default();
        let all = permits.long_lived("big", MAX_LONG_LIVED as u32).unwrap();
        let error = permits.long_lived("late", 1).unwrap_err();
        assert_eq!(error.code(), "unavailable");
        assert!(error.to_string().contains("the plugin late can not be started"), "{error}");
        drop(all);
        drop(permits.long_lived("late", 1).unwrap());
    }
}
