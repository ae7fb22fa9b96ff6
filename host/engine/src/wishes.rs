//! What a running call says about its own end, and how long it still has.

use std::{
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use atoll_table::{
    Aside, Error, Invocation, Shaping, ToolOutput,
    kept::{Keeping, Kept},
    runner::KeptNow,
};
use serde_json::Value;

use crate::{call::Clock, state::lock};

/// Of one call of a tool.
pub(crate) struct Wishes {
    now: KeptNow,
    /// What was kept when the call first asked, so that it stays the same for it.
    kept: OnceLock<Arc<Kept>>,
    keeping: Mutex<Option<Keeping>>,
    shaping: Mutex<Option<Shaping>>,
    began: Instant,
    deadline: Option<Instant>,
}

impl Wishes {
    /// Of a call that begins now.
    pub(crate) fn of(invocation: &Invocation) -> Arc<Self> {
        Arc::new(Self {
            now: Arc::clone(&invocation.kept),
            kept: OnceLock::new(),
            keeping: Mutex::default(),
            shaping: Mutex::default(),
            began: Instant::now(),
            deadline: invocation.deadline,
        })
    }

    fn before(&self) -> &Arc<Kept> {
        self.kept.get_or_init(|| (self.now)())
    }

    /// What earlier calls have kept.
    pub(crate) fn kept(&self, key: &str) -> Option<Value> {
        self.before().get(key).cloned()
    }

    /// As [`Keeping::keep`].
    pub(crate) fn keep(&self, key: &str, json: Option<&str>) -> Result<(), Error> {
        lock(&self.keeping).get_or_insert_with(|| Keeping::new(Arc::clone(self.before()))).keep(key, json)
    }

    pub(crate) fn shape(&self, shaping: Shaping) {
        *lock(&self.shaping) = Some(shaping);
    }

    /// How long it still has, by this clock and where so much is allowed; none if for ever.
    pub(crate) fn wall_left(&self, clock: &Clock, limit: Option<Duration>) -> Option<Duration> {
        let of_limit = limit.map(|limit| limit.saturating_sub(clock.used_since(self.began)));
        let of_deadline = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        [of_limit, of_deadline].into_iter().flatten().min()
    }

    /// Adds to what a call gave what it has said meanwhile.
    pub(crate) fn end(&self, output: ToolOutput) -> ToolOutput {
        let (keeping, shaping) = (lock(&self.keeping).take(), lock(&self.shaping).take());
        if keeping.is_none() && shaping.is_none() {
            return output;
        }
        let keep = keeping.map(Keeping::into_changes).unwrap_or_default();
        ToolOutput { aside: Some(Box::new(Aside { keep, shaping })), ..output }
    }
}
