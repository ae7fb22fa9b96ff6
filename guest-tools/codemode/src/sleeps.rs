//! Timers of scripts: any number of them over one sleep of the host.
//!
//! They are kept outside of the engine, so that everything that hangs on the host can be dropped while the engine stays.

use std::collections::BTreeMap;

use futures::channel::oneshot;

/// Those that wait, by when they are due.
#[derive(Default)]
pub(crate) struct Sleeps {
    waiting: BTreeMap<(u64, u64), oneshot::Sender<()>>,
    begun: u64,
}

impl Sleeps {
    /// One that is due at this time; what it gives is ready then.
    pub(crate) fn add(&mut self, due: u64) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.waiting.insert((due, self.begun), sender);
        self.begun += 1;
        receiver
    }

    /// Wakes those that are due, in the order of their times. Gives whether there were any.
    pub(crate) fn wake(&mut self, now: u64) -> bool {
        let mut woke = false;
        while let Some(first) = self.waiting.first_entry() {
            if !first.get().is_canceled() && first.key().0 > now {
                break;
            }
            // Nobody waits for one that was cleared.
            woke |= first.remove().send(()).is_ok();
        }
        woke
    }

    /// Whether one is due by then that somebody waits for.
    pub(crate) fn has_by(&self, time: u64) -> bool {
        self.waiting.range(..=(time, u64::MAX)).any(|(_, waiting)| !waiting.is_canceled())
    }

    /// When the next one is due.
    pub(crate) fn next(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_wake_in_the_order_of_their_times_and_not_when_nobody_waits() {
        let mut sleeps = Sleeps::default();
        let (mut late, mut early, gone) = (sleeps.add(20), sleeps.add(10), sleeps.add(5));
        drop(gone);
        assert!(!sleeps.has_by(5), "nobody waits for it");
        assert_eq!(sleeps.next(), Some(5));
        assert!(!sleeps.wake(9) && sleeps.next() == Some(10));
        assert!(sleeps.has_by(10) && !sleeps.has_by(9));
        assert!(sleeps.wake(10));
        assert_eq!((early.try_recv(), late.try_recv()), (Ok(Some(())), Ok(None)));
        assert!(sleeps.wake(100) && sleeps.next().is_none());
    }
}
