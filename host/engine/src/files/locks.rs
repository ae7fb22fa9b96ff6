//! The right to change a file, one holder at a time among all tools of this host.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use crate::state::lock;

/// With so many entries, those that nobody holds or waits for are looked for.
const MANY: usize = 1_024;

/// The right to change one file. Given to the next in line when dropped.
pub(crate) struct MutationGuard {
    pub(crate) path: PathBuf,
    held: Option<tokio::sync::OwnedMutexGuard<()>>,
    locks: MutationLocks,
}

/// Every file that is being changed or waited for.
#[derive(Clone, Default)]
pub(crate) struct MutationLocks {
    paths: Arc<Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>>,
}

impl MutationLocks {
    /// Waits for the right to change the file at this real path. First come, first served.
    pub(crate) async fn acquire(&self, path: &Path) -> MutationGuard {
        let mutex = {
            let mut paths = lock(&self.paths);
            // Whoever stopped waiting may have left an entry behind.
            if paths.len() >= MANY {
                paths.retain(|_, mutex| Arc::strong_count(mutex) > 1);
            }
            Arc::clone(paths.entry(path.to_owned()).or_default())
        };
        let held = mutex.lock_owned().await;
        MutationGuard { path: path.to_owned(), held: Some(held), locks: self.clone() }
    }
}

impl Drop for MutationGuard {
    fn drop(&mut self) {
        self.held = None;
        let mut paths = lock(&self.locks.paths);
        // Nobody else holds or waits for it if the map has the only reference.
        if paths.get(&self.path).is_some_and(|mutex| Arc::strong_count(mutex) == 1) {
            paths.remove(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_holder_at_a_time_and_nothing_left_behind() {
        let locks = MutationLocks::default();
        let first = locks.acquire(Path::new("/a")).await;
        let other = locks.acquire(Path::new("/b")).await;
        let waiting = tokio::spawn({
            let locks = locks.clone();
            async move { drop(locks.acquire(Path::new("/a")).await) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        waiting.await.unwrap();
        drop(other);
        assert!(lock(&locks.paths).is_empty());
    }
}
