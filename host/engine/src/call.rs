//! What is known of one call while it runs, and whoever of a plugin's instances makes a host call. The one place where a
//! use of a capability is checked, asked about and written down.

use std::{
    collections::HashSet,
    future::Future,
    ops::Deref,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, Mutex, OnceLock, Weak},
    time::{Duration, Instant},
};

use atoll_caps::{Access, Denied, Effective, Wants};
use atoll_table::Error;

use crate::{
    approval::{Decision, Once, Question},
    audit::{Uses, Verdict},
    convert,
    files::Roots,
    limits::CpuMeter,
    state::{PluginContext, RunningCalls, lock},
};

/// How often a path may turn out to lead to yet another one that has to be asked about.
const MOST_QUESTIONS: usize = 4;
/// The longest path or URL that is looked at, in bytes. No system takes a longer path, and what is asked for is kept for
/// the audit log.
pub(crate) const MAX_NAME: usize = 64 << 10;

/// Refuses a path or a URL that is too long.
pub(crate) fn check_length(name: &str) -> Result<(), Error> {
    if name.len() <= MAX_NAME {
        return Ok(());
    }
    let start = name.get(..name.floor_char_boundary(64)).unwrap_or_default();
    Err(Error::InvalidArguments(format!(
        "`{}…` has {} bytes; a path or a URL may have {MAX_NAME}",
        start.escape_debug(),
        name.len()
    )))
}

/// One call of a tool, or the life of an instance that is not made for one call.
pub(crate) struct Call {
    pub(crate) uses: Uses,
    pub(crate) clock: Arc<Clock>,
    /// The instance only says what it is: nothing may be used, and nobody is asked.
    describes: bool,
    /// It is one call, so that what is allowed once is allowed until its end.
    is_one: bool,
    once: Mutex<AllowedOnce>,
    /// What a person said no to in it, so that a plugin can not wear them out.
    refused: Mutex<HashSet<(&'static str, String)>>,
}

/// Files that may be used until the call ends.
#[derive(Default)]
struct AllowedOnce {
    wants: Wants,
    roots: Option<Arc<Roots>>,
}

/// Time that does not count as the call's own.
#[derive(Default)]
pub(crate) struct Clock {
    pauses: Mutex<Pauses>,
    /// That of the call which made this one. It waits for this one, so it pauses with it.
    above: Option<Arc<Clock>>,
    /// What an instance carries out whose clock this is: it all waits while the instance does.
    spans: OnceLock<RunningCalls>,
}

tokio::task_local! {
    /// The clock of the call that makes the calls of this task.
    static MAKING: Arc<Clock>;
}

#[derive(Default)]
struct Pauses {
    over: Duration,
    under_way: usize,
    since: Option<Instant>,
}

/// Stands for a pause. Dropped: the clock, and those that waited with it, go on.
pub(crate) struct Pause(Vec<Arc<Clock>>);

impl Clock {
    /// For a call or an event that begins now: made by a call, if this task is [`Self::above`] it.
    pub(crate) fn of_call() -> Arc<Self> {
        Arc::new(Self { above: MAKING.try_with(Arc::clone).ok(), ..Self::default() })
    }

    /// Does `work`, in which this clock's call makes other ones.
    pub(crate) async fn above<F: Future>(self: Arc<Self>, work: F) -> F::Output {
        MAKING.scope(self, work).await
    }

    /// It is that of an instance which carries these out.
    pub(crate) fn spans(&self, running: &RunningCalls) {
        self.spans.get_or_init(|| Arc::clone(running));
    }

    /// This clock and those that wait with it, each once.
    fn all(self: &Arc<Self>) -> Vec<Arc<Self>> {
        let mut all: Vec<Arc<Self>> = Vec::new();
        let mut next = vec![Arc::clone(self)];
        while let Some(clock) = next.pop() {
            if all.iter().any(|known| Arc::ptr_eq(known, &clock)) {
                continue;
            }
            next.extend(clock.above.clone());
            if let Some(running) = clock.spans.get() {
                next.extend(lock(running).values().map(|call| Arc::clone(&call.clock)));
            }
            all.push(clock);
        }
        all
    }

    /// Stops the clock, and those that wait with it.
    pub(crate) fn pause(self: &Arc<Self>) -> Pause {
        let all = self.all();
        for clock in &all {
            let mut pauses = lock(&clock.pauses);
            pauses.under_way += 1;
            pauses.since.get_or_insert_with(Instant::now);
        }
        Pause(all)
    }

    /// How long it has run since then, if it was made then.
    pub(crate) fn used_since(&self, then: Instant) -> Duration {
        then.elapsed().saturating_sub(self.paused())
    }

    fn paused(&self) -> Duration {
        let pauses = lock(&self.pauses);
        pauses.over + pauses.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Waits for `work` as long as `limit`, pauses left out. `None` if that was not enough.
    pub(crate) async fn within<F: Future>(&self, limit: Duration, work: F) -> Option<F::Output> {
        let mut work = pin!(work);
        let (began, before) = (Instant::now(), self.paused());
        let mut wait = limit;
        loop {
            if let Ok(done) = tokio::time::timeout(wait, &mut work).await {
                return Some(done);
            }
            let used = began.elapsed().saturating_sub(self.paused().saturating_sub(before));
            let left = limit.checked_sub(used).filter(|left| !left.is_zero())?;
            // During a pause nothing of it is used up, so that there is always a little left.
            wait = left.max(Duration::from_millis(10));
        }
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        for clock in &self.0 {
            let mut pauses = lock(&clock.pauses);
            pauses.under_way -= 1;
            if pauses.under_way == 0
                && let Some(since) = pauses.since.take()
            {
                pauses.over += since.elapsed();
            }
        }
    }
}

impl Call {
    /// A call of a tool.
    pub(crate) fn new(plugin: &PluginContext, id: &str) -> Arc<Self> {
        Self::make(plugin, Some(id), false, true)
    }

    /// An instance that answers many calls at once.
    pub(crate) fn of_instance(plugin: &PluginContext) -> Arc<Self> {
        let mut call = Self::make(plugin, None, false, false);
        if let Some(call) = Arc::get_mut(&mut call) {
            // Whoever happens to make it does not wait for it.
            call.clock = Arc::default();
        }
        call
    }

    /// An instance that only says what it is, or rewrites arguments. It runs without anybody having called a tool of
    /// it, so nothing may be used in it, whatever is granted.
    pub(crate) fn of_description(plugin: &PluginContext) -> Arc<Self> {
        Self::make(plugin, None, true, true)
    }

    fn make(plugin: &PluginContext, id: Option<&str>, describes: bool, is_one: bool) -> Arc<Self> {
        Arc::new(Self {
            uses: Uses::new(plugin.shared.audit.get().cloned(), &plugin.name, id, is_one),
            clock: Clock::of_call(),
            describes,
            is_one,
            once: Mutex::default(),
            refused: Mutex::default(),
        })
    }

    /// Whether a person said no to this in it.
    pub(crate) fn was_refused(&self, capability: &'static str, target: &str) -> bool {
        lock(&self.refused).contains(&(capability, target.to_owned()))
    }

    pub(crate) fn refuse(&self, capability: &'static str, target: &str) {
        lock(&self.refused).insert((capability, target.to_owned()));
    }

    /// Whether it is one call, and not the life of an instance.
    pub(crate) fn is_one(&self) -> bool {
        self.is_one
    }

    /// Whether a person may be asked in it.
    pub(crate) fn asks(&self) -> bool {
        !self.describes
    }
}

/// The plugin that makes a host call, and the call it makes it in.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) plugin: Arc<PluginContext>,
    pub(crate) call: Arc<Call>,
    /// The instance has a thread of its own, which may block.
    pub(crate) own_thread: Option<OwnThread>,
}

/// The thread of an instance that does a share of another's work.
#[derive(Clone)]
pub(crate) struct OwnThread {
    /// What measures the instance.
    pub(crate) meter: Arc<CpuMeter>,
    /// Gone when nobody waits for the work any more.
    pub(crate) wanted: Weak<()>,
}

impl Deref for Caller {
    type Target = PluginContext;

    fn deref(&self) -> &PluginContext {
        &self.plugin
    }
}

/// A use of a capability, as a person is asked about it and as it is written down.
#[derive(Clone, Copy)]
pub(crate) struct Use<'a> {
    pub(crate) capability: &'static str,
    /// What is done: `read`, `GET`, `spawn`.
    pub(crate) operation: &'a str,
    /// On what exactly.
    pub(crate) target: &'a str,
}

impl Caller {
    /// Does what may block, off the async threads.
    ///
    /// # Errors
    /// Those of `work`, and `failed` if it panicked.
    pub(crate) async fn blocking<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<R, Error> + Send + 'static,
    ) -> Result<R, Error> {
        if let Some(own) = &self.own_thread {
            // Waiting for a disk is not computing. And as on a thread for it, a panic ends nothing but the work.
            let worked = own.meter.paused(|| catch_unwind(AssertUnwindSafe(work)));
            return worked.unwrap_or_else(|_| Err(Error::Failed("the host failed: the work panicked".to_owned())));
        }
        match tokio::task::spawn_blocking(work).await {
            Ok(result) => result,
            Err(reason) => Err(Error::Failed(format!("the host failed: {reason}"))),
        }
    }

    /// Refuses, and writes down, what an instance uses that only says what it is.
    pub(crate) fn check_in_call(&self, the_use: Use<'_>) -> Result<(), Error> {
        if !self.call.describes {
            return Ok(());
        }
        self.denied(the_use, Verdict::Denied);
        Err(Error::Denied {
            capability: the_use.capability.to_owned(),
            target: the_use.target.to_owned(),
            hint: "a plugin may use nothing while it lists its tools, describes itself or prepares arguments; use it \
                   in a call"
                .to_owned(),
        })
    }

    /// Checks a use. What only the user's grant is missing for is asked about, where there is somebody to ask. A
    /// denial is written down here; what is allowed is for the caller to write down, with this verdict.
    pub(crate) async fn permit(
        &self,
        the_use: Use<'_>,
        check: impl Fn(&Effective) -> Result<(), Denied> + Send + Sync,
    ) -> Result<Verdict, Error> {
        self.check_in_call(the_use)?;
        let Err(denied) = check(&self.effective()) else { return Ok(Verdict::Allowed) };
        match self.decide(the_use, &denied, Once::This, &|effective| check(effective).is_ok()).await {
            Decision::Once => Ok(Verdict::Answered("once")),
            Decision::Granted(word) => Ok(Verdict::Answered(word)),
            Decision::Refused => {
                self.denied(the_use, Verdict::Refused);
                Err(convert::denied(&denied))
            }
            Decision::NotAsked => {
                self.denied(the_use, Verdict::Denied);
                Err(convert::denied(&denied))
            }
        }
    }

    /// Asks about a use that was denied, if that may help.
    async fn decide(
        &self,
        the_use: Use<'_>,
        denied: &Denied,
        once: Once,
        allowed: &(dyn Fn(&Effective) -> bool + Send + Sync),
    ) -> Decision {
        let Some(offer) = &denied.offer else { return Decision::NotAsked };
        let question = Question {
            once,
            plugin: self.name.clone(),
            is_builtin: self.pin.is_none(),
            capability: the_use.capability,
            operation: the_use.operation.to_owned(),
            target: the_use.target.to_owned(),
            reason: offer.reason.clone(),
            scope: offer.wants.describe().join(", "),
            command: offer.command.clone(),
        };
        self.shared.approvals.decide(self, question, &offer.wants, allowed).await
    }

    pub(crate) fn denied(&self, the_use: Use<'_>, verdict: Verdict) {
        self.call.uses.used(the_use.capability, the_use.operation, the_use.target, verdict);
    }

    /// The directories that may be used in this call.
    pub(crate) fn roots(&self) -> Arc<Roots> {
        lock(&self.call.once).roots.clone().unwrap_or_else(|| self.plugin.roots())
    }

    /// Does something with files, off the async threads. Where only the user's grant is missing for `path`, it is asked
    /// about and done again. Writes the use down, with as many bytes as `measure` finds in its result.
    pub(crate) async fn files<R: Send + 'static>(
        &self,
        operation: &'static str,
        path: &str,
        access: Access,
        work: impl Fn(&Arc<Roots>) -> Result<R, Error> + Send + Sync + 'static,
        measure: impl Fn(&R) -> Option<u64>,
    ) -> Result<R, Error> {
        Ok(self.files_with(operation, path, access, work, measure).await?.0)
    }

    /// Does something with files that waits for nothing, if it can be done so, and writes the use down.
    pub(crate) fn files_at_hand<R>(
        &self,
        operation: &'static str,
        path: &str,
        work: impl FnOnce(&Roots) -> Option<R>,
    ) -> Option<R> {
        if self.call.describes || path.len() > MAX_NAME {
            return None;
        }
        let done = work(&self.roots())?;
        self.call.uses.add("files", operation, path, Verdict::Allowed, 1, None);
        Some(done)
    }

    /// The same as [`Self::files`], with how it came to be allowed.
    pub(crate) async fn files_with<R: Send + 'static>(
        &self,
        operation: &'static str,
        path: &str,
        access: Access,
        work: impl Fn(&Arc<Roots>) -> Result<R, Error> + Send + Sync + 'static,
        measure: impl Fn(&R) -> Option<u64>,
    ) -> Result<(R, Verdict), Error> {
        check_length(path)?;
        self.check_in_call(Use { capability: "files", operation, target: path })?;
        let work = Arc::new(work);
        let mut roots = self.roots();
        let mut verdict = Verdict::Allowed;
        for _ in 0..MOST_QUESTIONS {
            let (tried, at) = (Arc::clone(&work), Arc::clone(&roots));
            let result = self.blocking(move || tried(&at)).await;
            let shown = roots.shown(path);
            if let Err(error @ Error::Denied { .. }) = result {
                match self.ask_for_path(operation, path, access, &roots).await {
                    Some((word, more)) => {
                        verdict = Verdict::Answered(word);
                        roots = more;
                        continue;
                    }
                    None => return Err(error),
                }
            }
            let bytes = result.as_ref().ok().and_then(&measure);
            self.call.uses.add("files", operation, &shown, verdict, 1, bytes);
            return result.map(|value| (value, verdict));
        }
        Err(Error::Failed(format!("{path} leads on through too many links that are not granted")))
    }

    /// Asks about a path that was denied. Gives the answer and the directories that may be used with it; `None`, and
    /// written down, if it stays denied.
    pub(crate) async fn ask_for_path(
        &self,
        operation: &'static str,
        path: &str,
        access: Access,
        roots: &Arc<Roots>,
    ) -> Option<(&'static str, Arc<Roots>)> {
        let shown = roots.shown(path);
        let look = {
            let (roots, path) = (Arc::clone(roots), path.to_owned());
            move || {
                Ok(roots.missing(&path, access).map(|(missing, denied)| {
                    let once = roots.opened_once(&denied, &missing);
                    (missing, denied, once)
                }))
            }
        };
        let Some((missing, denied, once)) = self.blocking(look).await.ok().flatten() else {
            self.denied(Use { capability: "files", operation, target: &shown }, Verdict::Denied);
            return None;
        };
        let target = missing.to_string_lossy();
        let the_use = Use { capability: "files", operation, target: &target };
        let allowed =
            |effective: &Effective| effective.check_path(&self.shared.places.root_vars(), &missing, access).is_ok();
        let decision = self.decide(the_use, &denied, once, &allowed).await;
        match decision {
            Decision::Once => Some(("once", self.allow_once(roots, &denied))),
            Decision::Granted(word) => {
                let mut once = lock(&self.call.once);
                // What was allowed for this call stays so, on top of what is allowed now.
                once.roots = once.roots.take().map(|_| self.opened(&once.wants));
                Some((word, once.roots.clone().unwrap_or_else(|| self.plugin.roots())))
            }
            Decision::Refused => {
                self.denied(the_use, Verdict::Refused);
                None
            }
            Decision::NotAsked => {
                self.denied(the_use, Verdict::Denied);
                None
            }
        }
    }

    fn allow_once(&self, roots: &Roots, denied: &Denied) -> Arc<Roots> {
        let exactly = roots.exactly(denied);
        if !self.call.is_one {
            return self.opened(&exactly);
        }
        let mut once = lock(&self.call.once);
        once.wants.add(&exactly);
        let opened = self.opened(&once.wants);
        once.roots = Some(Arc::clone(&opened));
        opened
    }

    fn opened(&self, more: &Wants) -> Arc<Roots> {
        Arc::new(Roots::open(&self.name, &self.effective().with_granted(more), &self.shared.places))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pause_does_not_count() {
        let clock = Arc::new(Clock::default());
        let limit = Duration::from_millis(20);
        let pause = clock.pause();
        let long = clock.within(limit, std::future::pending::<()>());
        let waited = tokio::select! {
            waited = long => waited.is_some(),
            () = tokio::time::sleep(10 * limit) => true,
        };
        assert!(waited, "it ended in the middle of a pause");
        drop(pause);
        assert_eq!(clock.within(limit, async { 1 }).await, Some(1));
    }

    #[test]
    fn pauses_that_overlap_count_once() {
        let clock = Arc::new(Clock::default());
        let one = clock.pause();
        let other = clock.pause();
        drop(one);
        assert!(lock(&clock.pauses).since.is_some());
        drop(other);
        let pauses = lock(&clock.pauses);
        assert!(pauses.since.is_none() && pauses.under_way == 0);
    }

    #[tokio::test]
    async fn a_pause_of_a_nested_call_is_one_of_those_around_it() {
        let outer = Clock::of_call();
        let middle = Arc::clone(&outer).above(async { Clock::of_call() }).await;
        let inner = Arc::clone(&middle).above(async { Clock::of_call() }).await;
        let beside = Clock::of_call();
        let pause = inner.pause();
        let paused = |clock: &Clock| lock(&clock.pauses).under_way;
        assert_eq!([&outer, &middle, &inner, &beside].map(|clock| paused(clock)), [1, 1, 1, 0]);
        drop(pause);
        assert_eq!([&outer, &middle, &inner].map(|clock| paused(clock)), [0, 0, 0]);
    }
}
