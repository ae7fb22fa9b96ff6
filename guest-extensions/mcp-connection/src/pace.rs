//! How often a list that changes is looked at: at once when it first does, and then less and less often while it goes on. What
//! was listed last is as it is at the end, however often it changed before.

/// The pause after the first look, and the longest.
const FIRST_MS: u64 = 100;
const LAST_MS: u64 = 5_000;
/// After so long without a change the next one is a first one again.
const QUIET_MS: u64 = 10_000;
/// A look that takes long is followed by a pause of so many times that, at most so long: the rest is for others.
const SHARE: u64 = 4;
const LONGEST_MS: u64 = 30_000;

/// When the next look may begin. Times are in milliseconds since some point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    pause: u64,
    ended: u64,
    next: u64,
}

impl Pace {
    /// How long to wait before the next look.
    pub(crate) fn wait(&self, now: u64) -> u64 {
        self.next.saturating_sub(now)
    }

    /// A look began and ended then.
    pub(crate) fn looked(&mut self, began: u64, ended: u64) {
        let was_quiet = self.pause == 0 || began.saturating_sub(self.ended) >= QUIET_MS;
        self.pause = if was_quiet { FIRST_MS } else { (2 * self.pause).min(LAST_MS) };
        let after_long = ended.saturating_sub(began).saturating_mul(SHARE).min(LONGEST_MS);
        (self.ended, self.next) = (ended, ended + self.pause.max(after_long));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often it is looked in this time at what changes all the time, where each look takes so long.
    fn looks(during: u64, takes: u64) -> usize {
        let (mut pace, mut now, mut looks) = (Pace::default(), 7, 0);
        while now < during {
            now += pace.wait(now);
            pace.looked(now, now + takes);
            (now, looks) = (now + takes, looks + 1);
        }
        looks
    }

    #[test]
    fn what_changes_all_the_time_is_looked_at_less_and_less_often() {
        assert_eq!(looks(60_000, 1), 18);
        assert!(looks(600_000, 1) < 140);
        assert_eq!(looks(60_000, 3_000), 5, "four fifths of the time are others'");
    }

    #[test]
    fn what_changes_once_in_a_while_is_looked_at_at_once() {
        let mut pace = Pace::default();
        for change in [5, 20_000, 40_000] {
            assert_eq!(pace.wait(change), 0);
            pace.looked(change, change + 3);
            assert_eq!(pace.wait(change + 3), FIRST_MS);
        }
        pace.looked(40_110, 40_111);
        assert_eq!(pace.wait(40_111), 2 * FIRST_MS);
    }
}
