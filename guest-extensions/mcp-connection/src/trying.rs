//! When a server that could not be had is tried again before anybody calls a tool of it: once somebody has signed in to it, or
//! some time after it failed.

use std::{
    cell::{Cell, RefCell},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use atoll_mcp_client::config::{Authentication, Entry, Transport};

use crate::{access::Keeping, values::value};

/// How long after a failure it is tried again, at first and at most.
const FIRST_MS: u64 = 2_000;
const LAST_MS: u64 = 60_000;

/// What is known of the last time.
#[derive(Debug, Default)]
pub(crate) struct Trying {
    /// It wanted a sign-in; a digest of the one that was kept then.
    wanted: RefCell<Option<Option<u64>>>,
    /// How often it has failed in a row, and when it may be tried again.
    failures: Cell<u32>,
    next: Cell<u64>,
}

impl Trying {
    /// It wanted a sign-in, and had been shown this one.
    pub(crate) fn wants(&self, shown: Option<u64>) {
        *self.wanted.borrow_mut() = Some(shown);
    }

    /// It did not say that it wants one.
    pub(crate) fn wants_none(&self) {
        self.wanted.take();
    }

    /// Whether it wants one.
    pub(crate) fn is_wanting(&self) -> bool {
        self.wanted.borrow().is_some()
    }

    /// Whether there is another sign-in than the one that it did not want.
    pub(crate) fn is_signed_in(&self, now: Option<u64>) -> bool {
        now.is_some() && self.wanted.borrow().is_some_and(|before| before != now)
    }

    /// It was there.
    pub(crate) fn was_there(&self) {
        self.failures.set(0);
    }

    /// It failed at this time, in milliseconds since some point.
    pub(crate) fn failed(&self, now: u64) {
        let pause = FIRST_MS.saturating_mul(1 << self.failures.get().min(10)).min(LAST_MS);
        self.failures.set(self.failures.get() + 1);
        self.next.set(now + pause);
    }

    /// Whether it failed so long ago that it may be tried again.
    pub(crate) fn may_again(&self, now: u64) -> bool {
        now >= self.next.get()
    }
}

/// A digest of what lets us in to a server, if something is kept that does.
pub(crate) async fn signed_in(name: &str, entry: &Entry, file: &str) -> Option<u64> {
    let Transport::Http(http) = &entry.transport else { return None };
    let Authentication::OAuth(_) = &http.authentication else { return None };
    let url = value(&http.url, file).await.ok()?;
    let tokens = Keeping::of(name, &url).read().await.ok()?.tokens?;
    let mut hasher = DefaultHasher::new();
    tokens.access.hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_sign_in_than_the_one_that_was_shown_counts() {
        let trying = Trying::default();
        assert!(!trying.is_wanting() && !trying.is_signed_in(Some(1)));
        trying.wants(None);
        assert!(trying.is_wanting() && trying.is_signed_in(Some(1)) && !trying.is_signed_in(None));
        trying.wants(Some(1));
        assert!(!trying.is_signed_in(Some(1)) && trying.is_signed_in(Some(2)) && !trying.is_signed_in(None));
        trying.wants_none();
        assert!(!trying.is_wanting());
    }

    #[test]
    fn it_is_tried_again_after_pauses_that_grow() {
        let trying = Trying::default();
        assert!(trying.may_again(0));
        for (failed, pause) in [(10, 2_000), (5_000, 4_000), (20_000, 8_000)] {
            trying.failed(failed);
            assert!(!trying.may_again(failed + pause - 1) && trying.may_again(failed + pause), "{failed}");
        }
        for _ in 0..40 {
            trying.failed(0);
        }
        assert!(trying.may_again(LAST_MS) && !trying.may_again(LAST_MS - 1));
        trying.was_there();
        trying.failed(0);
        assert!(trying.may_again(FIRST_MS));
    }
}
