//! The wasmtime configuration and the one thread that advances the epoch.
//!
//! The same settings compile images at build time, compile user plugins at first use and run both; a difference
//! between the three would make every stored image unusable.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use atoll_caps::MAX_TABLE_ELEMENTS;

use crate::code_in_place::Pages;
use crate::permits::{
    MAX_CALLS, MAX_LONG_LIVED, MAX_MEMORIES, MAX_NESTED_CALLS, MAX_PREPARING, MAX_TABLES, TABLES_OF_A_PLACE,
};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

/// How often running plugins are looked at. CPU limits are enforced to this precision.
pub(crate) const EPOCH_TICK: Duration = Duration::from_millis(10);

/// How many shares of work may be computed at once, over all plugins: as many as there are cores.
pub(crate) fn max_workers() -> usize {
    thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MAX_WORKERS)
}

const MAX_WORKERS: usize = 128;

/// How many instances may exist at once: those of calls, of their preparation and of their workers, and those that
/// live as long as the session. Address space is reserved for each, memory is used only by those that run.
const MAX_INSTANCES: u32 = (MAX_CALLS + MAX_NESTED_CALLS + MAX_PREPARING + MAX_WORKERS + MAX_LONG_LIVED) as u32;

/// How many core instances one component may consist of; those made of a language's runtime have about twenty. The
/// pool only counts them, so it allows as many for every instance.
const MAX_CORE_INSTANCES: u32 = 40;

/// The largest single memory of an instance: the whole of wasm's 32-bit space. What a plugin may really use is
/// bounded by its own `memory` limit, over all its memories together.
const MAX_MEMORY: usize = 1 << 32;

/// The stack that compiled code of a plugin may use. Interpreters in a plugin count what they take of their own memory, and
/// take many times as much of this: QuickJS more than eight times for nested arrays of JSON, and for nested parentheses. It
/// has to be so large that they come to their own bound first, and can say so. It is address space, of which only what is
/// used takes memory.
const MAX_WASM_STACK: usize = 24 << 20;
/// The same with what functions of the host need when they are called at its end.
const ASYNC_STACK: usize = MAX_WASM_STACK + (2 << 20);

/// The processor features every image may rely on: those of x86-64-v2, found in all such machines since 2009.
#[cfg(target_arch = "x86_64")]
const BASELINE: &[&str] = &["has_sse3", "has_ssse3", "has_sse41", "has_sse42", "has_popcnt"];
#[cfg(not(target_arch = "x86_64"))]
const BASELINE: &[&str] = &[];

/// What an engine is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Running plugins on this machine.
    Run,
    /// Compiling images for any machine of this architecture.
    Compile,
}

/// The settings that compiled code depends on.
fn common(purpose: Purpose) -> wasmtime::Result<Config> {
    let mut config = Config::new();
    config.epoch_interruption(true);
    // Native unwinders never look at wasm frames; without the tables images are smaller and load faster.
    config.native_unwind_info(false);
    config.wasm_component_model_async(true);
    if purpose == Purpose::Compile {
        config.target(target_triple())?;
        for feature in BASELINE {
            // SAFETY: code that uses these features only ever runs after the loading engine has checked that the
            // processor has them.
            unsafe {
                config.cranelift_flag_enable(feature);
            }
        }
    }
    Ok(config)
}

fn target_triple() -> &'static str {
    concat!(env!("ATOLL_TARGET"))
}

/// An engine for `purpose`. With too little address space for the pool (a small `ulimit -v`), instances are
/// allocated one by one: slower, with the same limits.
pub fn engine(purpose: Purpose) -> wasmtime::Result<Engine> {
    let mut config = common(purpose)?;
    if purpose == Purpose::Compile {
        return Engine::new(&config);
    }
    if cfg!(target_arch = "x86_64") {
        config.with_custom_code_memory(Some(Arc::new(Pages)));
    }
    config.max_wasm_stack(MAX_WASM_STACK).async_stack_size(ASYNC_STACK);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool()));
    match Engine::new(&config) {
        Ok(engine) => Ok(engine),
        Err(reason) => {
            tracing::warn!(%reason, "no room for the instance pool; allocating instances one by one");
            config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
            Engine::new(&config)
        }
    }
}

/// How many bytes of a slot's memory stay with it when its instance ends, for the next one.
const KEPT_MEMORY: usize = 1 << 20;
/// The same of its tables.
const KEPT_TABLES: usize = 64 << 10;

/// The pool. Where the system can tell which pages an instance has written to (Linux since 6.7), those are put back as
/// they were and stay, up to a bound: a call is about a third shorter without the page faults of a fresh memory and
/// without having every core forget the old one. The price is that a burst of calls keeps what it took, some 100 KiB for
/// each call of its busiest moment. Elsewhere everything is handed back to the system: to put pages back without
/// knowing which takes longer.
fn pool() -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(MAX_INSTANCES)
        .total_core_instances(MAX_INSTANCES * MAX_CORE_INSTANCES)
        .total_memories(MAX_INSTANCES)
        .total_tables(MAX_INSTANCES * TABLES_OF_A_PLACE)
        .total_stacks(MAX_INSTANCES)
        .max_core_instances_per_component(MAX_CORE_INSTANCES)
        .max_memories_per_component(MAX_MEMORIES)
        .max_memories_per_module(MAX_MEMORIES)
        .max_tables_per_component(MAX_TABLES)
        .max_tables_per_module(8)
        .max_memory_size(MAX_MEMORY)
        .table_elements(MAX_TABLE_ELEMENTS as usize)
        .max_component_instance_size(4 << 20)
        .max_core_instance_size(4 << 20)
        .max_unused_warm_slots(64);
    if PoolingAllocationConfig::is_pagemap_scan_available() {
        pool.pagemap_scan(Enabled::Yes).linear_memory_keep_resident(KEPT_MEMORY).table_keep_resident(KEPT_TABLES);
    }
    pool
}

/// Advances the engine's epoch while any plugin runs, and sleeps when none does.
pub(crate) struct Ticker {
    running: Arc<AtomicUsize>,
    thread: thread::Thread,
}

impl Ticker {
    /// Starts the thread. It ends when the engine is gone.
    pub(crate) fn start(engine: &Engine) -> std::io::Result<Self> {
        let running = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&running);
        let engine = engine.weak();
        let handle = thread::Builder::new().name("atoll-epoch".to_owned()).spawn(move || {
            loop {
                if seen.load(Ordering::Acquire) == 0 {
                    thread::park_timeout(Duration::from_secs(1));
                } else {
                    thread::sleep(EPOCH_TICK);
                }
                match engine.upgrade() {
                    Some(engine) => engine.increment_epoch(),
                    None => return,
                }
            }
        })?;
        Ok(Self { running, thread: handle.thread().clone() })
    }

    /// Notes that a plugin starts to run on some thread.
    pub(crate) fn enter(&self) {
        if self.running.fetch_add(1, Ordering::AcqRel) == 0 {
            self.thread.unpark();
        }
    }

    /// Notes that it has stopped running.
    pub(crate) fn leave(&self) {
        self.running.fetch_sub(1, Ordering::AcqRel);
    }
}
