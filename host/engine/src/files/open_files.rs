//! How many files plugins hold open: the system gives a process only so many, and the host and every other plugin need
//! some of them too.

use std::sync::Arc;

use atoll_caps::LimitName;
use atoll_table::Error;
use rustix::process::{Resource, getrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::trap::limit_error;

/// How many a process may have where the system sets no bound.
const UNBOUNDED: u64 = 1 << 20;
/// Of what the system allows, plugins together get this part.
const ALL: u64 = 2;
/// And one plugin this part.
const ONE: u64 = 4;
/// So many files of a plugin may keep bytes that were read ahead.
const READ_AHEAD: u64 = 256;

/// The files that may be held open at once.
#[derive(Clone, Debug)]
pub(crate) struct OpenFiles {
    most: u64,
    here: Arc<Semaphore>,
    /// Of all plugins together; none for those themselves.
    all: Option<Arc<Semaphore>>,
}

/// The right to hold one file open.
#[derive(Debug)]
pub(crate) struct Slot {
    _here: OwnedSemaphorePermit,
    _all: Option<OwnedSemaphorePermit>,
    /// The file may keep bytes that were read ahead.
    pub(crate) reads_ahead: bool,
}

impl OpenFiles {
    /// Those of all plugins of a host.
    pub(crate) fn of_all() -> Self {
        let allowed = getrlimit(Resource::Nofile).current.unwrap_or(UNBOUNDED);
        Self::new(allowed / ALL, None)
    }

    /// Those of one plugin, among `all`.
    pub(crate) fn of_plugin(all: &Self) -> Self {
        Self::new(all.most * ALL / ONE, Some(Arc::clone(&all.here)))
    }

    fn new(most: u64, all: Option<Arc<Semaphore>>) -> Self {
        let most = most.clamp(1, UNBOUNDED);
        Self { most, here: Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(1))), all }
    }

    /// One more.
    ///
    /// # Errors
    /// `limit` `handles` if there are as many as there may be.
    pub(crate) fn take(&self) -> Result<Slot, Error> {
        let full = || limit_error(LimitName::Handles, self.most);
        let here = Arc::clone(&self.here).try_acquire_owned().map_err(|_| full())?;
        let all = self.all.clone().map(Semaphore::try_acquire_owned).transpose().map_err(|_| full())?;
        let held = self.most.saturating_sub(self.here.available_permits() as u64);
        Ok(Slot { _here: here, _all: all, reads_ahead: held <= READ_AHEAD })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_plugin_can_not_take_what_others_need() {
        let all = OpenFiles::new(4, None);
        let (greedy, other) = (OpenFiles::of_plugin(&all), OpenFiles::of_plugin(&all));
        let held: Vec<Slot> = (0..2).map(|_| greedy.take().unwrap()).collect();
        assert_eq!(greedy.take().unwrap_err().to_string(), limit_error(LimitName::Handles, 2).to_string());
        drop(other.take().unwrap());
        drop(held);
        drop(greedy.take().unwrap());
        assert_eq!(all.here.available_permits(), 4);
    }
}
