//! The one way to call a tool, whoever calls: look up, let the tool prepare its arguments, check them, ask the hooks,
//! run, show the hooks what came of it.
//!
//! Nothing may run a tool but this: a model's call, a person's, a script's and another tool's all come through here.

use std::{
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Instant,
};

pub use atoll_table::Caller;
use atoll_table::{
    Error, Invocation, Progress, Registered, Table, ToolOutput,
    hooks::{self, CallEvent, Hook, Verdict},
    nesting::{Depth, NestedCalls, Recorder},
    tool::ExecutionMode,
};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::nested_calls::{CallAccess, Watch};

/// The table, and the one way through it. Clones share both.
#[derive(Clone, Default)]
pub struct Pipeline {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    table: RwLock<Table>,
    /// Shared, for each call looks at them.
    hooks: RwLock<Arc<[Arc<dyn Hook>]>>,
}

/// A call that is to be made.
pub(crate) struct Request<'a> {
    pub(crate) caller: Caller,
    pub(crate) id: &'a str,
    pub(crate) parent_id: Option<&'a str>,
    pub(crate) depth: Depth,
    pub(crate) name: &'a str,
    pub(crate) arguments: Value,
    /// Where the calls that this one makes are recorded.
    pub(crate) record: Record,
}

/// What is kept of the calls that a call makes; can be looked at while it runs, and after it was stopped.
#[derive(Clone, Default)]
pub struct Record(pub(crate) Arc<Mutex<Recorder>>);

impl Record {
    /// The calls so far; none if it made none.
    pub fn calls(&self) -> Option<NestedCalls> {
        self.change(|recorder| recorder.snapshot())
    }

    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Recorder) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A call that may run, or that a hook has blocked.
pub struct Ready {
    pipeline: Pipeline,
    entry: Arc<Registered>,
    call: CallEvent,
    depth: Depth,
    record: Record,
    blocked: Option<ToolOutput>,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// What whoever called reads. Failures are results too.
    pub output: ToolOutput,
    /// The tool's failure, if it is what `output` says and no hook changed it.
    pub error: Option<Error>,
    /// How long the tool ran, in milliseconds; none if it did not.
    pub duration_ms: Option<u64>,
}

impl Ready {
    /// Whether it may run beside others.
    pub fn mode(&self) -> ExecutionMode {
        self.entry.tool.execution_mode
    }

    /// The plugin that runs it.
    pub fn plugin(&self) -> &str {
        &self.entry.plugin
    }

    /// The record of the calls it will make.
    pub fn record(&self) -> Record {
        self.record.clone()
    }

    /// Runs it. Dropping the future stops it and all that it started. `watch` is told of the calls it makes.
    pub async fn run(self, progress: Progress, watch: Watch) -> Done {
        if let Some(output) = self.blocked {
            return Done { output, error: None, duration_ms: None };
        }
        let invocation = Invocation {
            id: self.call.call_id.clone(),
            parent_id: self.call.parent_id.clone(),
            tool: self.entry.local.clone(),
            arguments: self.call.arguments.clone(),
            depth: self.depth.value(),
            table: Arc::new(CallAccess::new(
                self.pipeline.clone(),
                &self.entry,
                &self.call.call_id,
                self.depth,
                self.record.clone(),
                watch,
            )),
        };
        let began = Instant::now();
        let ran = self.entry.runner.call(invocation, progress).await;
        let duration_ms = Some(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
        let (before, error) = match ran {
            Ok(output) => (output, None),
            Err(error) => (failed(&error), Some(error)),
        };
        let hooks = self.pipeline.hooks();
        if hooks.is_empty() {
            return Done { output: before, error, duration_ms };
        }
        let (call, output) = (self.call, before.clone());
        let asked = hooks.iter().filter(|hook| hook.wants().after).count();
        let asking = async move { hooks::after_call(&hooks, &call, output, report).await };
        let output = asking_on(self.depth, asked, asking).await;
        Done { error: error.filter(|_| output == before), output, duration_ms }
    }
}

/// The result of a call that failed with an error.
pub fn failed(error: &Error) -> ToolOutput {
    ToolOutput { details: Some(serde_json::json!({"error": error})), ..ToolOutput::error(error.to_string()) }
}

/// Asks so many hooks. Several are asked on one of the runtime's own threads: each question and each answer is then a task
/// that goes on in the same thread, where a thread that only waits for the runtime has to be woken for every answer.
/// Dropping the future ends the asking. Calls inside of calls are there already, and belong to the call that makes them.
async fn asking_on<R: Send + 'static>(
    depth: Depth,
    asked: usize,
    asking: impl Future<Output = R> + Send + 'static,
) -> R {
    if asked < 2 || depth != Depth::OUTERMOST {
        return asking.await;
    }
    let mut tasks = JoinSet::new();
    tasks.spawn(asking);
    match tasks.join_next().await {
        Some(Ok(done)) => done,
        Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // Nobody else ends it but the runtime, which ends whoever waits here as well.
        _ => std::future::pending().await,
    }
}

fn report(hook: &str, error: &Error) {
    tracing::warn!(hook, %error, "an extension failed while it looked at a call");
}

impl Pipeline {
    /// Calls go to the tools of this table.
    pub fn new(table: Table) -> Self {
        Self { shared: Arc::new(Shared { table: RwLock::new(table), hooks: RwLock::default() }) }
    }

    /// Looks at the table.
    pub fn table<R>(&self, look: impl FnOnce(&Table) -> R) -> R {
        look(&self.shared.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the table.
    pub fn change<R>(&self, change: impl FnOnce(&mut Table) -> R) -> R {
        change(&mut self.shared.table.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts these hooks in place of those there are. Calls that are under way end with those they began with.
    pub fn set_hooks(&self, hooks: Vec<Arc<dyn Hook>>) {
        *self.shared.hooks.write().unwrap_or_else(PoisonError::into_inner) = hooks.into();
    }

    fn hooks(&self) -> Arc<[Arc<dyn Hook>]> {
        Arc::clone(&self.shared.hooks.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Everything up to running: nothing has happened yet when this fails.
    ///
    /// # Errors
    /// `not-found` or `ambiguous` for the name, `invalid-arguments` for the rest.
    pub async fn ready(&self, caller: Caller, id: &str, name: &str, arguments: Value) -> Result<Ready, Error> {
        let (depth, record) = (Depth::OUTERMOST, Record::default());
        self.ready_for(Request { caller, id, parent_id: None, depth, name, arguments, record }).await
    }

    pub(crate) async fn ready_for(&self, request: Request<'_>) -> Result<Ready, Error> {
        let Request { caller, id, parent_id, depth, name, arguments, record } = request;
        let entry = self.table(|table| table.reach(caller, name))?;
        let arguments =
            if entry.tool.prepares { entry.runner.prepare(entry.local.clone(), arguments).await? } else { arguments };
        let arguments = entry.checker().check(arguments)?;
        let mut call = CallEvent {
            call_id: id.to_owned(),
            parent_id: parent_id.map(str::to_owned),
            tool: entry.tool.name.clone(),
            arguments,
            plugin: entry.plugin.clone(),
            annotations: entry.tool.annotations,
            depth: depth.value(),
        };
        let hooks = self.hooks();
        let mut blocked = None;
        if !hooks.is_empty() {
            let event = call.clone();
            let asked = hooks.iter().filter(|hook| hook.wants().before).count();
            let asking = async move { hooks::before_call(&hooks, event, report).await };
            match asking_on(depth, asked, asking).await {
                Verdict::Run(arguments) => call.arguments = arguments,
                Verdict::Blocked(output) => blocked = Some(output),
            }
        }
        Ok(Ready { pipeline: self.clone(), entry, call, depth, record, blocked })
    }
}
