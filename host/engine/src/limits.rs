//! The limits of one store: memory and tables over everything in it together, and processor time measured while
//! the store is really being polled.

use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Instant,
};

use atoll_caps::{LimitName, Limits};
use wasmtime::{ResourceLimiter, Store, UpdateDeadline};

use crate::{
    all_memory::{AllMemory, Grown},
    config::Ticker,
    state::PluginState,
};

/// A limit was reached. Raised inside the store as the reason of the trap.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the limit {} ({value}) was reached", .name.as_str())]
pub(crate) struct LimitReached {
    pub(crate) name: LimitName,
    pub(crate) value: u64,
}

/// A memory that is made with no more than this does not count for all instances together.
const UNCOUNTED: usize = 16 << 20;

/// Counts what all memories and all tables of a store hold together.
#[derive(Debug)]
pub(crate) struct SpaceLimiter {
    grown: Grown,
    /// The last growth of a memory: its bytes, and those that count for all instances together.
    last: Option<(usize, u64)>,
    memory: usize,
    max_memory: usize,
    elements: usize,
    max_elements: usize,
}

impl SpaceLimiter {
    pub(crate) fn new(limits: &Limits, all: &Arc<AllMemory>) -> Self {
        Self {
            grown: Grown::new(all),
            last: None,
            memory: 0,
            max_memory: usize::try_from(limits.memory_bytes).unwrap_or(usize::MAX),
            elements: 0,
            max_elements: usize::try_from(limits.table_elements).unwrap_or(usize::MAX),
        }
    }
}

impl ResourceLimiter for SpaceLimiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.memory.saturating_add(desired.saturating_sub(current));
        if total > self.max_memory {
            // Refusing would only make the guest abort for a reason nobody can read.
            return Err(LimitReached { name: LimitName::Memory, value: self.max_memory as u64 }.into());
        }
        // A memory that is made has no pages of its own yet; of one that is large nobody knows how much it is going to use.
        let counted = if current > 0 || desired > UNCOUNTED { desired.saturating_sub(current) } else { 0 };
        self.grown.grow(counted as u64)?;
        self.memory = total;
        self.last = Some((desired.saturating_sub(current), counted as u64));
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        if let Some((bytes, counted)) = self.last.take() {
            self.memory = self.memory.saturating_sub(bytes);
            self.grown.give_back(counted);
        }
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.elements.saturating_add(desired.saturating_sub(current));
        if total > self.max_elements {
            return Err(LimitReached { name: LimitName::TableElements, value: self.max_elements as u64 }.into());
        }
        self.elements = total;
        Ok(true)
    }
}

/// How the processor time of a store is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CpuBudget {
    /// All of it together: a tool call.
    Total,
    /// Each stretch in which it never waits: an instance that lives as long as the session.
    Stretch,
}

/// Measures the processor time of a store's polls: that of the thread which does them, so that a busy machine ends nobody
/// earlier.
#[derive(Debug)]
pub(crate) struct CpuMeter {
    base: Instant,
    used: AtomicU64,
    since: AtomicU64,
    yielded: AtomicBool,
    budget: CpuBudget,
    limit_ms: u64,
    /// Whose work this is a share of: its time is that one's too.
    caller: Option<Arc<CpuMeter>>,
}

/// `since` while the store is not being polled.
const IDLE: u64 = u64::MAX;

impl CpuMeter {
    pub(crate) fn new(budget: CpuBudget, limits: &Limits) -> Self {
        Self {
            base: Instant::now(),
            used: AtomicU64::new(0),
            since: AtomicU64::new(IDLE),
            yielded: AtomicBool::new(false),
            budget,
            limit_ms: limits.cpu_ms,
            caller: None,
        }
    }

    /// For an instance that does a share of the work that `caller` measures.
    pub(crate) fn of_worker(caller: Arc<Self>, limits: &Limits) -> Self {
        // What a long-lived instance used is forgotten whenever it waits, so there is nothing to add to.
        let caller = (caller.budget == CpuBudget::Total).then_some(caller);
        Self { caller, ..Self::new(CpuBudget::Total, limits) }
    }

    /// Microseconds of this thread. A poll begins and ends on one thread, and is asked about on that.
    fn now() -> u64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let parts = u64::try_from(time.tv_sec).ok().zip(u64::try_from(time.tv_nsec).ok());
        parts.map_or(0, |(seconds, nanoseconds)| seconds.saturating_mul(1_000_000).saturating_add(nanoseconds / 1_000))
    }

    /// Nanoseconds since the store was made.
    pub(crate) fn since_start_ns(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Does something that is not the instance's own work, in the middle of it.
    pub(crate) fn paused<R>(&self, work: impl FnOnce() -> R) -> R {
        self.leave();
        let result = work();
        self.enter();
        result
    }

    fn enter(&self) {
        self.yielded.store(false, Ordering::Relaxed);
        self.since.store(Self::now(), Ordering::Relaxed);
    }

    fn leave(&self) {
        let since = self.since.swap(IDLE, Ordering::Relaxed);
        let spent = Self::now().saturating_sub(since);
        self.used.fetch_add(spent, Ordering::Relaxed);
        if let Some(caller) = &self.caller {
            caller.used.fetch_add(spent, Ordering::Relaxed);
        }
        if self.budget == CpuBudget::Stretch && !self.yielded.load(Ordering::Relaxed) {
            self.used.store(0, Ordering::Relaxed);
        }
    }

    fn spent_ms(&self) -> u64 {
        let since = self.since.load(Ordering::Relaxed);
        let running = if since == IDLE { 0 } else { Self::now().saturating_sub(since) };
        // The caller's time has this one's in it, and that of the other workers.
        let used = self.caller.as_ref().map_or(&self.used, |caller| &caller.used).load(Ordering::Relaxed);
        (used + running) / 1_000
    }

    /// How much it may still compute, in milliseconds.
    pub(crate) fn left_ms(&self) -> u64 {
        self.limit_ms.saturating_sub(self.spent_ms())
    }

    /// Called at each tick of the epoch while wasm runs: ends it if the budget is spent, else lets others run.
    pub(crate) fn install(self: &Arc<Self>, store: &mut Store<PluginState>) {
        let meter = Arc::clone(self);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(move |_| {
            if meter.spent_ms() > meter.limit_ms {
                return Err(LimitReached { name: LimitName::CpuMs, value: meter.limit_ms }.into());
            }
            meter.yielded.store(true, Ordering::Relaxed);
            Ok(UpdateDeadline::Yield(1))
        });
    }
}

thread_local! {
    static IN_AN_INSTANCE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is the middle of some instance's turn.
pub(crate) fn in_an_instance() -> bool {
    IN_AN_INSTANCE.get()
}

/// One poll of an instance. Ended when it is dropped, by a panic too.
struct Turn<'a> {
    meter: &'a CpuMeter,
    ticker: &'a Ticker,
    around: bool,
}

impl<'a> Turn<'a> {
    fn begin(meter: &'a CpuMeter, ticker: &'a Ticker) -> Self {
        ticker.enter();
        meter.enter();
        Self { meter, ticker, around: IN_AN_INSTANCE.replace(true) }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        IN_AN_INSTANCE.set(self.around);
        self.meter.leave();
        self.ticker.leave();
    }
}

/// A future whose polls are measured, and during whose polls the epoch advances.
pub(crate) struct Metered<F> {
    inner: F,
    meter: Arc<CpuMeter>,
    ticker: Arc<Ticker>,
}

impl<F> Metered<F> {
    pub(crate) fn new(inner: F, meter: Arc<CpuMeter>, ticker: Arc<Ticker>) -> Self {
        Self { inner, meter, ticker }
    }
}

impl<F: Future> Future for Metered<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: `inner` is never moved out of the pinned value; the other fields are not pinned.
        let (inner, meter, ticker) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.inner), &this.meter, &this.ticker)
        };
        let _turn = Turn::begin(meter, ticker);
        inner.poll(context)
    }
}

#[cfg(test)]
mod tests {
    use std::{thread::sleep, time::Duration};

    use super::*;

    /// Keeps a core busy for 5 ms of its time.
    fn work(meter: &CpuMeter) {
        meter.enter();
        let began = CpuMeter::now();
        while CpuMeter::now() < began + 5_000 {
            std::hint::spin_loop();
        }
        meter.leave();
    }

    #[test]
    fn growth_that_fails_or_is_refused_is_given_back() {
        let all = Arc::new(AllMemory::of(100 << 20));
        let limits = Limits { memory_bytes: 80 << 20, ..Limits::default() };
        let mut one = SpaceLimiter::new(&limits, &all);
        let mut other = SpaceLimiter::new(&limits, &all);
        assert!(one.memory_growing(0, 8 << 20, None).unwrap(), "what is small at first does not count for all");
        assert!(one.memory_growing(8 << 20, 60 << 20, None).unwrap());
        let refused = other.memory_growing(0, 60 << 20, None).unwrap_err();
        assert!(refused.is::<crate::all_memory::AllMemoryTaken>(), "{refused:#}");
        one.memory_grow_failed(wasmtime::Error::msg("it has a maximum")).unwrap();
        one.memory_grow_failed(wasmtime::Error::msg("nothing grew")).unwrap();
        assert!(other.memory_growing(0, 60 << 20, None).unwrap());
        assert!(one.memory_growing(8 << 20, 81 << 20, None).unwrap_err().is::<LimitReached>());
        drop(other);
        assert!(one.memory_growing(8 << 20, 60 << 20, None).unwrap());
    }

    /// Measured as time on the clock, it would be 50 ms.
    #[test]
    fn time_in_which_others_have_the_core_is_not_counted() {
        let meter = CpuMeter::new(CpuBudget::Total, &Limits::default());
        meter.enter();
        sleep(Duration::from_millis(50));
        meter.leave();
        work(&meter);
        assert!((5..50).contains(&meter.spent_ms()), "{}", meter.spent_ms());
    }

    #[test]
    fn time_of_workers_is_that_of_their_caller() {
        let limits = Limits::default();
        let caller = Arc::new(CpuMeter::new(CpuBudget::Total, &limits));
        let one = CpuMeter::of_worker(Arc::clone(&caller), &limits);
        let other = CpuMeter::of_worker(Arc::clone(&caller), &limits);
        work(&one);
        work(&other);
        for meter in [&*caller, &one, &other] {
            assert!(meter.spent_ms() >= 10);
        }
    }

    #[test]
    fn workers_of_a_long_lived_instance_have_their_own_budget() {
        let limits = Limits::default();
        let caller = Arc::new(CpuMeter::new(CpuBudget::Stretch, &limits));
        let worker = CpuMeter::of_worker(Arc::clone(&caller), &limits);
        work(&worker);
        work(&worker);
        assert!(worker.spent_ms() >= 10);
        assert_eq!(caller.spent_ms(), 0);
    }
}
