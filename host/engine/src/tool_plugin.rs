//! A plugin that brings tools: a fresh instance for each call.

use std::sync::Arc;

use atoll_table::{Error, Invocation, Progress, ToolOutput};
use serde_json::Value;
use tokio::sync::{SemaphorePermit, watch};
use wasmtime::{
    AsContextMut as _, Engine,
    component::{ComponentExportIndex, Instance, InstancePre, TypedFunc},
};

use crate::{
    beside,
    bindings::{
        self,
        atoll::plugin::types::{Error as WitError, Tool as WitTool, ToolOutput as WitOutput},
        exports::atoll::plugin::tools::{self, GuestIndices},
    },
    call::Call,
    convert,
    limits::{CpuBudget, Metered},
    outcome::Outcome,
    permits::places,
    state::{PluginContext, PluginState, Prepared, RunningCall, lock},
    wishes::Wishes,
};

/// How many calls may be around one that runs in the task of the call that makes it: each takes some of the thread's stack.
const DEEPEST_BESIDE: u32 = 8;

/// The export `call`.
type CallFunction = TypedFunc<(tools::Invocation,), (Outcome<Result<WitOutput, WitError>>,)>;

/// A plugin with tools, ready to be called any number of times at once.
pub(crate) struct ToolPlugin {
    engine: Engine,
    pre: InstancePre<PluginState>,
    indices: GuestIndices,
    context: Arc<PluginContext>,
    /// How many places of the pool an instance takes.
    places: u32,
    /// Where the export `call` is.
    call: ComponentExportIndex,
}

impl ToolPlugin {
    pub(crate) fn new(
        engine: Engine,
        pre: InstancePre<PluginState>,
        context: Arc<PluginContext>,
    ) -> wasmtime::Result<Self> {
        let indices = GuestIndices::new(&pre)?;
        let places = places(&pre);
        let component = pre.component();
        let interface = format!("atoll:plugin/tools@{}", bindings::VERSION);
        let call = component
            .get_export_index(None, &interface)
            .and_then(|tools| component.get_export_index(Some(&tools), "call"))
            .ok_or_else(|| wasmtime::Error::msg(format!("it exports no `call` in {interface}")))?;
        Ok(Self { engine, pre, indices, context, places, call })
    }

    /// Makes an instance, runs `work` in it and drops it, under all limits.
    async fn in_instance<R>(
        &self,
        permit: SemaphorePermit<'_>,
        call: Arc<Call>,
        work: impl AsyncFnOnce(&mut Prepared, tools::Guest, Instance) -> wasmtime::Result<R>,
    ) -> Result<R, Error> {
        let _permit = permit;
        let mut prepared = self.context.store(&self.engine, CpuBudget::Total, Arc::clone(&call));
        let (meter, stderr) = (Arc::clone(&prepared.meter), prepared.stderr.clone());
        let run = async {
            let instance = self.pre.instantiate_async(&mut prepared.store).await?;
            let guest = self.indices.load(prepared.store.as_context_mut(), &instance)?;
            work(&mut prepared, guest, instance).await
        };
        let run = Metered::new(run, meter, Arc::clone(&self.context.shared.ticker));
        let outcome = self.context.within_wall(&call.clock, run).await?;
        outcome.map_err(|reason| self.context.explain(&reason, &stderr))
    }

    /// The tools it brings, in its own words.
    pub(crate) async fn list(&self) -> Result<Vec<WitTool>, Error> {
        let permit = self.context.shared.permits.preparing(self.places).await?;
        let call = Call::of_description(&self.context);
        let list =
            async |prepared: &mut Prepared, guest: tools::Guest, _| guest.call_list_tools(&mut prepared.store).await;
        self.in_instance(permit, call, list).await
    }

    /// As [`atoll_table::ToolRunner::prepare`].
    pub(crate) async fn prepare(&self, tool: &str, arguments: &Value) -> Result<Value, Error> {
        let text = arguments.to_string();
        let permit = self.context.shared.permits.preparing(self.places).await?;
        let call = Call::of_description(&self.context);
        let prepared = self
            .in_instance(permit, call, async |prepared, guest, _| {
                guest.call_prepare(&mut prepared.store, tool, &text).await
            })
            .await??;
        convert::json(&self.context.name, "prepared arguments", &prepared)
    }

    /// As [`atoll_table::ToolRunner::call`].
    pub(crate) async fn call(&self, invocation: Invocation, progress: Progress) -> Result<ToolOutput, Error> {
        let permit = self.context.shared.permits.call(invocation.depth, self.places).await?;
        // The instance goes with the call, so nothing of it is left to be told that nobody waits.
        let (_waiting, wanted) = watch::channel(());
        let context = Call::new(&self.context, &invocation.id);
        let (clock, below) = (Arc::clone(&context.clock), invocation.depth.saturating_add(1));
        let table = Some(Arc::clone(&invocation.table));
        let wishes = Wishes::of(&invocation);
        let said = Some(Arc::clone(&wishes));
        let call = convert::invocation_to_wit(&self.context, invocation);
        let run = |beside| {
            let beside = (below <= DEEPEST_BESIDE).then_some(beside);
            let running = RunningCall { progress, table, wanted, clock, below, beside, wishes: said };
            self.in_instance(permit, context, async |prepared, _, instance| {
                lock(&prepared.running).insert(call.id.clone(), running);
                let function = instance.get_func(&mut prepared.store, self.call);
                let function = function.ok_or_else(|| wasmtime::Error::msg("its export `call` is gone"))?;
                // SAFETY: the export's type was checked when `indices` was made; `Outcome` has that of its content.
                let function = unsafe { CallFunction::new_unchecked(function) };
                let called = async |accessor: &_| function.call_concurrent(accessor, (call,)).await;
                let (Outcome(result),) = prepared.store.run_concurrent(called).await??;
                Ok(result)
            })
        };
        let output = beside::with(run)
            .await
            .and_then(|result| result.map_err(Error::from))
            .map_err(|error| self.context.redacted_error(error))?;
        self.context.tool_output(output).map(|output| wishes.end(output))
    }
}
