//! Shares of a plugin's work, each in a fresh instance of the same component, on all cores.

use std::sync::{Arc, Weak};

use atoll_caps::LimitName;
use atoll_table::Error;
use tokio::{runtime::Handle, sync::oneshot};
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

/// Does one share of the work of `caller`, which `meter` measures. Dropped: the instance ends, at the latest with the
/// next tick of the epoch.
pub(crate) async fn run(caller: Caller, meter: Arc<CpuMeter>, input: Vec<u8>) -> Result<Vec<u8>, Error> {
    let Some(worker) = caller.worker.get() else {
        return Err(Error::Failed(format!("the plugin {} exports no worker", caller.name)));
    };
    // One with more places than there are cores takes all of them: it works alone. Waiting happens here, where it holds
    // up no thread.
    let places = worker.places.min(u32::try_from(max_workers()).unwrap_or(1));
    let shared = Arc::clone(&caller.shared);
    // Given back with this future: a worker that is stuck in the system must not keep it.
    let _permit = shared.workers.acquire_many(places).await;
    // A thread of its own that may block, so that nothing it reads needs a trip to another one.
    let runtime = Handle::current();
    // Dropped with this future: then nobody waits for the answer any more.
    let wanted = Arc::new(());
    let (_end, ended) = oneshot::channel::<()>();
    let seen = Arc::downgrade(&wanted);
    let work = move || {
        runtime.block_on(async {
            tokio::select! {
                answer = share(caller, meter, input, seen) => answer,
                _ = ended => Err(Error::Cancelled("the call that it worked for has ended".to_owned())),
            }
        })
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer,
        Err(reason) => Err(Error::Failed(format!("the host failed: {reason}"))),
    }
}

async fn share(caller: Caller, meter: Arc<CpuMeter>, input: Vec<u8>, wanted: Weak<()>) -> Result<Vec<u8>, Error> {
    let Caller { plugin: context, call, .. } = caller;
    let Some(worker) = context.worker.get() else {
        return Err(Error::Failed(format!("the plugin {} exports no worker", context.name)));
    };
    let mut prepared = context.worker_store(&worker.engine, meter, call, wanted);
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
