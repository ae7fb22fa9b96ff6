//! Shares of a plugin's work, each in a fresh instance of the same component, on all cores.

use std::sync::Arc;

use atoll_caps::LimitName;
use atoll_table::Error;
use tokio::task::JoinSet;
use wasmtime::{AsContextMut as _, Engine, component::InstancePre};

use crate::{
    bindings::exports::atoll::plugin::worker::GuestIndices,
    call::Caller,
    config::max_workers,
    limits::{CpuMeter, Metered},
    permits::places,
    state::PluginState,
    trap::limit_error,
};

/// A component that does shares of work.
pub(crate) struct WorkerPlugin {
    engine: Engine,
    pre: InstancePre<PluginState>,
    indices: GuestIndices,
    /// How many places of the pool an instance takes.
    places: u32,
}

impl WorkerPlugin {
    pub(crate) fn new(engine: Engine, pre: InstancePre<PluginState>) -> wasmtime::Result<Self> {
        let indices = GuestIndices::new(&pre)?;
        let places = places(&pre);
        Ok(Self { engine, pre, indices, places })
    }
}

/// Does one share of the work of `caller`, which `meter` measures. Dropped: the instance ends.
pub(crate) async fn run(caller: Caller, meter: Arc<CpuMeter>, input: Vec<u8>) -> Result<Vec<u8>, Error> {
    // A task of its own may run on another thread than its caller; the set ends it when this future is dropped.
    let mut task = JoinSet::new();
    task.spawn(share(caller, meter, input));
    match task.join_next().await {
        Some(Ok(answer)) => answer,
        Some(Err(reason)) => Err(Error::Failed(format!("the host failed: {reason}"))),
        None => Err(Error::Failed("the host failed: a worker was lost".to_owned())),
    }
}

async fn share(caller: Caller, meter: Arc<CpuMeter>, input: Vec<u8>) -> Result<Vec<u8>, Error> {
    let Caller { plugin: context, call } = caller;
    let Some(worker) = context.worker.get() else {
        return Err(Error::Failed(format!("the plugin {} exports no worker", context.name)));
    };
    // One with more places than there are cores takes all of them: it works alone.
    let places = worker.places.min(u32::try_from(max_workers()).unwrap_or(1));
    let _permit = context.shared.workers.acquire_many(places).await;
    let mut prepared = context.worker_store(&worker.engine, meter, call);
    let (meter, stderr) = (Arc::clone(&prepared.meter), prepared.stderr.clone());
    let run = async {
        let instance = worker.pre.instantiate_async(&mut prepared.store).await?;
        let guest = worker.indices.load(prepared.store.as_context_mut(), &instance)?;
        prepared.store.run_concurrent(async |accessor| guest.call_run(accessor, input).await).await?
    };
    let answer = Metered::new(run, meter, Arc::clone(&context.shared.ticker))
        .await
        .map_err(|reason| context.explain(&reason, &stderr))??;
    if answer.len() as u64 > context.limits.output_bytes {
        return Err(limit_error(LimitName::OutputBytes, context.limits.output_bytes));
    }
    Ok(answer)
}
