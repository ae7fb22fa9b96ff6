//! Jobs for an instance that is about to be carried on by whoever brings them, so that nothing has to be woken.
//!
//! Must never hold a job of an instance that has ended: whoever waits for its answer would wait for ever.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use crate::{actor::Job, state::lock};

/// The most that may wait here, for instances that do not take them.
const MOST: usize = 64;

/// Clones are the same one.
#[derive(Clone)]
pub(crate) struct Inbox(Arc<Mutex<Option<VecDeque<Job>>>>);

impl Inbox {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Some(VecDeque::new()))))
    }

    /// Puts a job behind the others; gives it back if there is no room, or nobody to take it any more.
    pub(crate) fn put(&self, job: Job) -> Result<(), Job> {
        match &mut *lock(&self.0) {
            Some(jobs) if jobs.len() < MOST => {
                jobs.push_back(job);
                Ok(())
            }
            _ => Err(job),
        }
    }

    /// The one that has waited longest.
    pub(crate) fn take(&self) -> Option<Job> {
        lock(&self.0).as_mut()?.pop_front()
    }
}

/// Closes it, and drops what is in it.
pub(crate) struct Closing(pub(crate) Inbox);

impl Drop for Closing {
    fn drop(&mut self) {
        // What a job drops must not find it locked.
        let left = lock(&self.0.0).take();
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Job {
        Box::new(|_, _| Box::pin(async { Ok(()) }))
    }

    #[test]
    fn it_holds_so_many_jobs_and_none_of_an_instance_that_has_ended() {
        let inbox = Inbox::new();
        let closing = Closing(inbox.clone());
        for _ in 0..MOST {
            assert!(inbox.put(job()).is_ok());
        }
        assert!(inbox.put(job()).is_err());
        assert!(inbox.take().is_some() && inbox.put(job()).is_ok());
        drop(closing);
        assert!(inbox.take().is_none() && inbox.put(job()).is_err());
    }

    /// A job that is dropped may put another one there.
    #[test]
    fn closing_drops_what_is_in_it_unlocked() {
        struct Again(Inbox);
        impl Drop for Again {
            fn drop(&mut self) {
                assert!(self.0.put(job()).is_err());
            }
        }
        let inbox = Inbox::new();
        let again = Again(inbox.clone());
        let with_it: Job = Box::new(move |_, _| {
            Box::pin(async move {
                drop(again);
                Ok(())
            })
        });
        assert!(inbox.put(with_it).is_ok());
        drop(Closing(inbox));
    }
}
