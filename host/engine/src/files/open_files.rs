//! How many files plugins hold open, and how many walks of theirs are under way: the system gives a process only so many
//! files and threads, and the host and every other plugin need some of them too.

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
/// How many walks of all plugins may be under way.
const WALKS: u64 = 128;
/// So many of them may use all cores. Each further one has one thread.
const WIDE_WALKS: u64 = 4;
/// How many threads such a walk has at most.
const MAX_THREADS: usize = 16;
/// How many files a thread of a walk may hold open: the directory, what it reads it through, and a file of rules.
const FILES_OF_A_THREAD: u32 = 3;

/// The files that may be held open at once.
#[derive(Clone, Debug)]
pub(crate) struct OpenFiles {
    most: u64,
    here: Arc<Semaphore>,
    /// Of all plugins together; none for those themselves.
    all: Option<Arc<Semaphore>>,
}

/// The walks that may be under way at once, and the files they may hold open.
#[derive(Clone, Debug)]
pub(crate) struct Walks {
    at_once: OpenFiles,
    files: OpenFiles,
}

/// The right to walk. To be held by every thread of the walk.
#[derive(Debug)]
pub(crate) struct WalkPlace {
    _walk: Slot,
    _files: Slot,
    /// How many threads it may use.
    pub(crate) threads: usize,
}

impl Walks {
    /// Those of all plugins of a host, with its open files.
    pub(crate) fn of_all(files: &OpenFiles) -> Self {
        Self { at_once: OpenFiles::new(WALKS, None), files: files.clone() }
    }

    /// Those of one plugin, among `all`, with its open files.
    pub(crate) fn of_plugin(all: &Self, files: &OpenFiles) -> Self {
        Self { at_once: OpenFiles::of_plugin(&all.at_once), files: files.clone() }
    }

    /// One more.
    ///
    /// # Errors
    /// `limit` `handles` if there are as many as there may be, or they hold as many files as they may.
    pub(crate) fn begin(&self) -> Result<WalkPlace, Error> {
        let walk = self.at_once.take()?;
        let under_way = self.at_once.all.as_ref().map_or(0, |all| WALKS.saturating_sub(all.available_permits() as u64));
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).min(MAX_THREADS);
        // One for the walk's root.
        let files = |threads: usize| {
            self.files.take_many(1 + FILES_OF_A_THREAD * u32::try_from(threads).unwrap_or(u32::MAX / FILES_OF_A_THREAD))
        };
        let wide = if under_way <= WIDE_WALKS { files(cores).ok() } else { None };
        let (threads, files) = match wide {
            Some(files) => (cores, files),
            None => (1, files(1)?),
        };
        Ok(WalkPlace { _walk: walk, _files: files, threads })
    }
}

/// The right to hold files open: one, unless more were asked for.
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
        self.take_many(1)
    }

    /// So many more, in one slot.
    fn take_many(&self, count: u32) -> Result<Slot, Error> {
        let full = || limit_error(LimitName::Handles, self.most);
        let here = Arc::clone(&self.here).try_acquire_many_owned(count).map_err(|_| full())?;
        let all = self.all.clone().map(|all| all.try_acquire_many_owned(count)).transpose().map_err(|_| full())?;
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

    #[test]
    fn walks_take_threads_and_files_as_there_are_some() {
        let all = OpenFiles::new(1_000, None);
        let mine = OpenFiles::of_plugin(&all);
        let walks = Walks::of_plugin(&Walks::of_all(&all), &mine);
        let cores = std::thread::available_parallelism().unwrap().get().min(MAX_THREADS);
        let held: Vec<WalkPlace> = (0..WALKS * ALL / ONE).map(|_| walks.begin().unwrap()).collect();
        let threads: Vec<usize> = held.iter().map(|place| place.threads).collect();
        assert!(threads[..4] == [cores; 4] && threads[4..].iter().all(|count| *count == 1), "{threads:?}");
        assert_eq!(walks.begin().unwrap_err().to_string(), limit_error(LimitName::Handles, WALKS / ALL).to_string());
        drop(held);
        assert_eq!(mine.here.available_permits(), 500);
        // With few files left, a walk has one thread; with none, there is no walk.
        let _most = mine.take_many(496).unwrap();
        let narrow = walks.begin().unwrap();
        assert_eq!(narrow.threads, 1);
        assert_eq!(walks.begin().unwrap_err().to_string(), limit_error(LimitName::Handles, 500).to_string());
    }
}
