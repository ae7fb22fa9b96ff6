//! How much memory all instances together have grown to, so that many of them at once, each within its own limit, do not
//! take the machine's.
//!
//! What an instance starts with does not count while it is small: it is shared with all others of its component until it is
//! written to. Must never keep what a store has taken once that is gone.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The least that all may grow to, in bytes, however small the machine.
const LEAST: u64 = 1 << 30;

/// What all instances of a host have grown to.
#[derive(Debug)]
pub(crate) struct AllMemory {
    grown: AtomicU64,
    most: u64,
}

/// A growth was refused, for all instances together have as much as they may.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("all plugins together have reached {most} bytes of memory")]
pub(crate) struct AllMemoryTaken {
    pub(crate) most: u64,
}

impl Default for AllMemory {
    /// Half of the memory that this program may have.
    fn default() -> Self {
        Self::of((available() / 2).max(LEAST))
    }
}

impl AllMemory {
    pub(crate) fn of(most: u64) -> Self {
        Self { grown: AtomicU64::new(0), most }
    }
}

/// What one store has of it. Given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Grown {
    all: Arc<AllMemory>,
    bytes: u64,
}

impl Grown {
    pub(crate) fn new(all: &Arc<AllMemory>) -> Self {
        Self { all: Arc::clone(all), bytes: 0 }
    }

    /// Takes so many bytes more.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), AllMemoryTaken> {
        let most = self.all.most;
        let taken = self.all.grown.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |grown| {
            grown.checked_add(bytes).filter(|sum| *sum <= most)
        });
        taken.map_err(|_| AllMemoryTaken { most })?;
        self.bytes += bytes;
        Ok(())
    }

    /// Gives some of it back.
    pub(crate) fn give_back(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.all.grown.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Grown {
    fn drop(&mut self) {
        self.all.grown.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The memory that this program may have, in bytes: that of the machine, or of the control group it is in.
fn available() -> u64 {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text)).unwrap_or(UNKNOWN);
    // `max`, or a number. Groups further out may allow less, which is left to them.
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    group.and_then(|text| text.trim().parse().ok()).map_or(machine, |group: u64| group.min(machine))
}

/// What a machine is taken to have that does not say.
const UNKNOWN: u64 = 8 << 30;

/// The bytes of `MemTotal: … kB`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_gives_back_another_can_take() {
        let all = Arc::new(AllMemory::of(100));
        let (mut one, mut other) = (Grown::new(&all), Grown::new(&all));
        one.grow(60).unwrap();
        assert_eq!(other.grow(41).unwrap_err().most, 100);
        other.grow(40).unwrap();
        assert!(other.grow(1).is_err() && other.grow(u64::MAX).is_err());
        drop(one);
        other.grow(60).unwrap();
    }

    #[test]
    fn a_machine_says_what_it_has() {
        assert_eq!(total("MemTotal:       24684296 kB\nMemFree: 1 kB\n"), Some(24_684_296 * 1024));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert_eq!(total("MemTotal: much\n"), None);
        assert!(AllMemory::default().most >= LEAST);
    }
}
