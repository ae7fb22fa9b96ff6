//! When a server is connected to, and when it is left. There is no clock here: whoever has one says what time it is.

use serde_json::Value;

/// The longest pause between two attempts to have a server again that is to be kept, in milliseconds.
const LONGEST_PAUSE_MS: u64 = 5 * 60_000;

/// When a server is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    /// From the first call on, until nobody has called for a while.
    #[default]
    Lazy,
    /// From the start on. When it is gone, the next call brings it back.
    Eager,
    /// From the start on, and always.
    KeepAlive,
    /// From the first call on, and then always.
    LazyKeepAlive,
}

impl Lifecycle {
    /// Their names in configuration files.
    pub(crate) const NAMES: [&str; 4] = ["lazy", "eager", "keep-alive", "lazy-keep-alive"];

    /// The one of this name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let all = [Self::Lazy, Self::Eager, Self::KeepAlive, Self::LazyKeepAlive];
        Self::NAMES.into_iter().zip(all).find(|(known, _)| *known == name).map(|(_, lifecycle)| lifecycle)
    }

    /// Whether it is connected to at the start.
    pub(crate) fn begins(self) -> bool {
        matches!(self, Self::Eager | Self::KeepAlive)
    }
}

/// A number of minutes, in milliseconds.
///
/// # Errors
/// That it is none.
pub(crate) fn minutes(value: &Value) -> Result<u64, String> {
    let found = value.as_f64().filter(|minutes| (0.0..=1_440.0).contains(minutes));
    let milliseconds = found.map(|minutes| std::time::Duration::from_secs_f64(minutes * 60.0).as_millis());
    let milliseconds = milliseconds.and_then(|milliseconds| u64::try_from(milliseconds).ok());
    milliseconds.ok_or_else(|| "it has to be a number of minutes, at most 1440; 0 is for ever".to_owned())
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Connect to it.
    Connect,
    /// Leave it until it is needed.
    Rest,
    /// Ask whether it is still there.
    Check,
}

/// One server's life. Times are milliseconds since some point.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    lifecycle: Lifecycle,
    idle_ms: Option<u64>,
    check_ms: u64,
    is_there: bool,
    /// It is to be kept: it was there once, or is to be there from the start.
    is_kept: bool,
    /// Calls under way.
    uses: usize,
    /// When it was last used, or got there.
    last_use: u64,
    /// When a server that is kept is asked next, or connected to next.
    next: u64,
    /// How often in a row it could not be had.
    failures: u32,
}

impl Life {
    pub(crate) fn new(lifecycle: Lifecycle, idle_ms: Option<u64>, check_ms: u64) -> Self {
        let is_kept = lifecycle == Lifecycle::KeepAlive;
        Self { lifecycle, idle_ms, check_ms, is_there: false, is_kept, uses: 0, last_use: 0, next: 0, failures: 0 }
    }

    /// A call begins.
    pub(crate) fn begun(&mut self, now: u64) {
        self.uses += 1;
        self.last_use = now;
    }

    /// A call has ended.
    pub(crate) fn ended(&mut self, now: u64) {
        self.uses = self.uses.saturating_sub(1);
        self.last_use = now;
    }

    /// It is there.
    pub(crate) fn came(&mut self, now: u64) {
        self.is_kept |= self.lifecycle == Lifecycle::LazyKeepAlive;
        (self.is_there, self.failures) = (true, 0);
        (self.last_use, self.next) = (now, now.saturating_add(self.check_ms));
    }

    /// It was there, and is not any more.
    pub(crate) fn went(&mut self, now: u64) {
        (self.is_there, self.next) = (false, now);
    }

    /// It could not be had.
    pub(crate) fn failed(&mut self, now: u64) {
        self.is_there = false;
        let pause = self.check_ms.saturating_mul(1 << self.failures.min(20)).min(LONGEST_PAUSE_MS.max(self.check_ms));
        self.failures = self.failures.saturating_add(1);
        self.next = now.saturating_add(pause);
    }

    /// It was asked, and is still there.
    pub(crate) fn answered(&mut self, now: u64) {
        self.next = now.saturating_add(self.check_ms);
    }

    /// What is to be done now, if anything is.
    pub(crate) fn due(&self, now: u64) -> Option<Act> {
        self.coming().filter(|(at, _)| *at <= now).map(|(_, act)| act)
    }

    /// When something is to be done next, unless something happens before.
    pub(crate) fn next(&self) -> Option<u64> {
        self.coming().map(|(at, _)| at)
    }

    fn coming(&self) -> Option<(u64, Act)> {
        match (self.is_there, self.is_kept) {
            (true, true) => Some((self.next, Act::Check)),
            (false, true) => Some((self.next, Act::Connect)),
            (true, false) if self.uses == 0 => self.idle_ms.map(|idle| (self.last_use.saturating_add(idle), Act::Rest)),
            (true | false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_lazy_one_is_left_when_nobody_has_called_for_a_while_and_not_in_a_call() {
        let mut life = Life::new(Lifecycle::Lazy, Some(100), 10);
        assert_eq!((life.next(), life.due(1_000)), (None, None), "nobody needs it");
        life.begun(5);
        life.came(10);
        assert_eq!(life.due(1_000), None, "it is in use");
        life.begun(20);
        life.ended(30);
        assert_eq!(life.due(1_000), None, "still");
        life.ended(40);
        assert_eq!((life.next(), life.due(139), life.due(140)), (Some(140), None, Some(Act::Rest)));
        life.went(141);
        assert_eq!(life.next(), None, "and it is not brought back");
    }

    #[test]
    fn an_eager_one_stays_and_is_not_brought_back() {
        let mut life = Life::new(Lifecycle::Eager, None, 10);
        life.came(0);
        assert_eq!(life.next(), None);
        life.went(5);
        assert_eq!(life.next(), None);
        assert!(Lifecycle::Eager.begins() && Lifecycle::KeepAlive.begins());
        assert!(!Lifecycle::Lazy.begins() && !Lifecycle::LazyKeepAlive.begins());
    }

    #[test]
    fn one_that_is_kept_is_asked_and_brought_back_ever_later() {
        let mut life = Life::new(Lifecycle::KeepAlive, None, 30_000);
        assert_eq!(life.due(0), Some(Act::Connect));
        life.came(0);
        assert_eq!((life.due(29_999), life.due(30_000)), (None, Some(Act::Check)));
        life.answered(30_010);
        assert_eq!(life.next(), Some(60_010));
        life.went(60_000);
        assert_eq!(life.due(60_000), Some(Act::Connect), "at once");
        let mut now = 60_000;
        let pauses: Vec<u64> = (0..6)
            .map(|_| {
                life.failed(now);
                let pause = life.next().unwrap() - now;
                now += pause;
                pause
            })
            .collect();
        assert_eq!(pauses, [30_000, 60_000, 120_000, 240_000, 300_000, 300_000]);
        life.came(now);
        life.went(now + 1);
        life.failed(now + 2);
        assert_eq!(life.next(), Some(now + 30_002), "what was there once is looked for soon again");
    }

    #[test]
    fn a_lazy_one_that_is_kept_is_kept_once_it_was_there() {
        let mut life = Life::new(Lifecycle::LazyKeepAlive, None, 10);
        assert_eq!(life.next(), None);
        life.failed(0);
        assert_eq!(life.next(), None, "it was not there yet");
        life.came(1);
        assert_eq!(life.due(11), Some(Act::Check));
        life.went(12);
        assert_eq!(life.due(12), Some(Act::Connect));
    }

    #[test]
    fn minutes_are_read() {
        assert_eq!([json!(0), json!(10), json!(0.005)].map(|value| minutes(&value).unwrap()), [0, 600_000, 300]);
        assert!([json!(-1), json!("10"), json!(1e9)].iter().all(|value| minutes(value).is_err()));
    }

    proptest! {
        #[test]
        fn what_is_due_is_over_with_what_is_done(
            which in 0_usize..4, idle in proptest::option::of(1_u64..50), steps in proptest::collection::vec((0_u8..6, 0_u64..100), 0..40),
        ) {
            let lifecycle = Lifecycle::NAMES.get(which).and_then(|name| Lifecycle::of(name)).unwrap();
            let (mut life, mut now) = (Life::new(lifecycle, idle, 10), 0);
            for (what, time) in steps {
                now += time;
                match what {
                    0 => life.begun(now),
                    1 => life.ended(now),
                    2 => life.came(now),
                    3 => life.went(now),
                    4 => life.failed(now),
                    _ => {}
                }
                // Whatever is due, once done, is not due again in the same moment: nothing is done for ever.
                for _ in 0..3 {
                    match life.due(now) {
                        Some(Act::Connect) => life.failed(now),
                        Some(Act::Rest) => life.went(now),
                        Some(Act::Check) => life.answered(now),
                        None => break,
                    }
                }
                prop_assert_eq!(life.due(now), None);
            }
        }
    }
}
