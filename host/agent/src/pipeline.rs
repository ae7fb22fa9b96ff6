//! The one way to call a tool, whoever calls: look up, let the tool prepare its arguments, check them, ask the hooks,
//! run, show the hooks what came of it.
//!
//! Nothing may run a tool but this: a model's call, a person's, a script's and another tool's all come through here.

use std::{
    pin::pin,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

pub use atoll_table::Caller;
use atoll_table::{
    Content, Error, Invocation, Progress, Registered, Table, ToolOutput,
    hooks::{self, CallEvent, Hook, Verdict},
    names::matches_pattern,
    nesting::{Depth, NestedCalls, Recorder},
    tool::ExecutionMode,
};
use serde_json::Value;
use tokio::sync::Notify;

use crate::{
    kept::{InMemory, Keeper},
    nested_calls::{CallAccess, Watch},
    shape::Spill,
};

/// The table, and the one way through it. Clones share both.
#[derive(Clone, Default)]
pub struct Pipeline {
    shared: Arc<Shared>,
}

struct Shared {
    table: RwLock<Table>,
    /// How often it was changed.
    changes: AtomicU64,
    /// Told of each change.
    changed: Notify,
    /// What extensions may do by themselves.
    of_own: RwLock<Bounds>,
    /// Where tools keep what they want to know the next time.
    keeper: RwLock<Arc<dyn Keeper>>,
    /// Where what is too long for a model is kept.
    spill: OnceLock<Arc<dyn Spill>>,
    /// Shared, for each call looks at them.
    hooks: RwLock<Arc<[Arc<dyn Hook>]>>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            table: RwLock::default(),
            changes: AtomicU64::default(),
            changed: Notify::new(),
            of_own: RwLock::default(),
            keeper: RwLock::new(Arc::new(InMemory::default())),
            spill: OnceLock::new(),
            hooks: RwLock::default(),
        }
    }
}

/// What a call may do beyond what its caller may, and so all calls that it makes.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// The only tools that calls which it makes may reach: names, in which `*` stands for any characters.
    pub allow: Option<Arc<[String]>>,
    /// When it is to have ended. It is told so, and not stopped.
    pub deadline: Option<Instant>,
}

impl Bounds {
    /// Whether a tool may be reached.
    pub(crate) fn allow(&self, tool: &str) -> bool {
        self.allow.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| matches_pattern(pattern, tool)))
    }

    /// The same, as an error.
    pub(crate) fn check(&self, tool: &str) -> Result<(), Error> {
        if self.allow(tool) {
            return Ok(());
        }
        Err(Error::Denied {
            capability: "table".to_owned(),
            target: tool.to_owned(),
            hint: format!("add --allow {tool}"),
        })
    }
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
    pub(crate) bounds: Bounds,
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
    bounds: Bounds,
    shown: Shown,
    blocked: Option<ToolOutput>,
}

/// How long a call may go on after its deadline, of which it is told: it is to end by itself, with what it has.
const GRACE: Duration = Duration::from_secs(1);
/// How much is kept of what a call has shown of itself, in characters: enough to go on from.
const MAX_SHOWN: usize = 32 * 1024;

/// What a call has shown of itself last: all that is left of it if it comes to no end.
#[derive(Clone, Default)]
pub struct Shown(Arc<Mutex<Vec<Content>>>);

impl Shown {
    fn set(&self, content: &[Content]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = content.to_vec();
    }

    /// A result of a call that has not come to its end: what it has shown, why it has ended, and what it had others do, so
    /// that nobody has that done once more unknowingly.
    pub(crate) fn before(&self, mut output: ToolOutput, record: &Record) -> ToolOutput {
        output.content.extend(record.calls().map(|calls| Content::text(calls.made())));
        let shown = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let text = Content::joined_text(&shown);
        if text.trim().is_empty() {
            return output;
        }
        let skipped = text.chars().count().saturating_sub(MAX_SHOWN);
        let text = match text.char_indices().nth(skipped) {
            Some((at, _)) if skipped > 0 => format!("…{}", &text[at..]),
            _ => text,
        };
        output.content.insert(0, Content::text(text));
        output
    }
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

    /// What it will have shown of itself.
    pub(crate) fn shown(&self) -> Shown {
        self.shown.clone()
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
                (self.record.clone(), self.bounds.clone()),
                watch,
            )),
            kept: {
                let (pipeline, entry) = (self.pipeline.clone(), Arc::clone(&self.entry));
                Arc::new(move || pipeline.keeper().kept(&entry.tool.name))
            },
            deadline: self.bounds.deadline,
        };
        let shown = self.shown.clone();
        let progress: Progress = Arc::new(move |content, details| {
            shown.set(&content);
            progress(content, details);
        });
        let began = Instant::now();
        let running = self.entry.runner.call(invocation, progress);
        let ran = match self.bounds.deadline {
            Some(deadline) => {
                let late = || Err(Error::Timeout("it took longer than it was allowed to".to_owned()));
                tokio::time::timeout_at((deadline + GRACE).into(), running).await.unwrap_or_else(|_| late())
            }
            None => running.await,
        };
        let duration_ms = Some(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
        let (before, error) = match ran {
            Ok(output) => (output, None),
            Err(error) => {
                let output = failed(&error);
                let output = if is_an_end(&error) { self.shown.before(output, &self.record) } else { output };
                (output, Some(error))
            }
        };
        let hooks = self.pipeline.hooks();
        if hooks.is_empty() {
            return kept(&self.pipeline, &self.entry, Done { output: before, error, duration_ms });
        }
        let mut output = hooks::after_call(&hooks, &self.call, before.clone(), report).await;
        // What is meant for who shows a result, and no model reads, a script could read. It may say what was just taken out.
        let is_other = output.content != before.content || output.structured != before.structured;
        if self.call.parent_id.is_some() && is_other && output.details == before.details {
            output.details = None;
        }
        kept(&self.pipeline, &self.entry, Done { error: error.filter(|_| output == before), output, duration_ms })
    }
}

/// Keeps what a tool wants to be kept, if its call has succeeded for everybody.
fn kept(pipeline: &Pipeline, entry: &Registered, mut done: Done) -> Done {
    let is_error = done.output.is_error;
    let Some(aside) = &mut done.output.aside else { return done };
    let changes = std::mem::take(&mut aside.keep);
    if changes.is_empty() || is_error {
        return done;
    }
    match pipeline.keeper().keep(&entry.tool.name, changes) {
        Ok(()) => done,
        Err(error) => Done { output: failed(&error), error: Some(error), duration_ms: done.duration_ms },
    }
}

/// Whether a call that failed so may have been in the middle of its work.
fn is_an_end(error: &Error) -> bool {
    matches!(
        error,
        Error::Limit { .. } | Error::Timeout(_) | Error::Cancelled(_) | Error::Unavailable(_) | Error::Failed(_)
    )
}

/// The result of a call that failed with an error.
pub fn failed(error: &Error) -> ToolOutput {
    ToolOutput { details: Some(serde_json::json!({"error": error})), ..ToolOutput::error(error.to_string()) }
}

fn report(hook: &str, error: &Error) {
    tracing::warn!(hook, %error, "an extension failed while it looked at a call");
}

impl Pipeline {
    /// Calls go to the tools of this table.
    pub fn new(table: Table) -> Self {
        Self { shared: Arc::new(Shared { table: RwLock::new(table), ..Shared::default() }) }
    }

    /// Looks at the table.
    pub fn table<R>(&self, look: impl FnOnce(&Table) -> R) -> R {
        look(&self.shared.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks at the table, and at a number that is another one whenever it may have changed.
    pub fn table_as_of<R>(&self, look: impl FnOnce(&Table, u64) -> R) -> R {
        self.table(|table| look(table, self.shared.changes.load(Ordering::Acquire)))
    }

    /// Changes the table.
    pub fn change<R>(&self, change: impl FnOnce(&mut Table) -> R) -> R {
        let result = {
            let mut table = self.shared.table.write().unwrap_or_else(PoisonError::into_inner);
            self.shared.changes.fetch_add(1, Ordering::Release);
            change(&mut table)
        };
        self.shared.changed.notify_waiters();
        result
    }

    /// Waits until the table is like this, however long that takes.
    pub async fn until(&self, is_so: impl Fn(&Table) -> bool) {
        loop {
            let mut changed = pin!(self.shared.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            if self.table(&is_so) {
                return;
            }
            changed.await;
        }
    }

    /// From now on, what extensions call by themselves reaches no more than this. For whose sake one does something by
    /// itself is not known, so what bounds a call that it may serve has to bound everything that it does.
    pub fn bound_own(&self, bounds: Bounds) {
        *self.shared.of_own.write().unwrap_or_else(PoisonError::into_inner) = bounds;
    }

    pub(crate) fn bounds_of_own(&self) -> Bounds {
        self.shared.of_own.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has what tools keep be kept there from now on. Without it, it is kept until the program ends.
    pub fn set_keeper(&self, keeper: Arc<dyn Keeper>) {
        *self.shared.keeper.write().unwrap_or_else(PoisonError::into_inner) = keeper;
    }

    /// Has what is too long for a model be kept there.
    pub fn set_spill(&self, spill: Arc<dyn Spill>) {
        let _ = self.shared.spill.set(spill);
    }

    pub(crate) fn spill(&self) -> Option<Arc<dyn Spill>> {
        self.shared.spill.get().map(Arc::clone)
    }

    fn keeper(&self) -> Arc<dyn Keeper> {
        Arc::clone(&self.shared.keeper.read().unwrap_or_else(PoisonError::into_inner))
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
        self.ready_within(Bounds::default(), caller, id, name, arguments).await
    }

    /// The same, for a call that may do so much and no more.
    ///
    /// # Errors
    /// As [`Self::ready`].
    pub async fn ready_within(
        &self,
        bounds: Bounds,
        caller: Caller,
        id: &str,
        name: &str,
        arguments: Value,
    ) -> Result<Ready, Error> {
        let (depth, record) = (Depth::OUTERMOST, Record::default());
        self.ready_for(Request { caller, id, parent_id: None, depth, name, arguments, record, bounds }).await
    }

    pub(crate) async fn ready_for(&self, request: Request<'_>) -> Result<Ready, Error> {
        let Request { caller, id, parent_id, depth, name, arguments, record, bounds } = request;
        let entry = self.table(|table| table.reach(caller, name))?;
        if parent_id.is_some() {
            bounds.check(&entry.tool.name)?;
        }
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
            match hooks::before_call(&hooks, call.clone(), report).await {
                Verdict::Run(arguments) => call.arguments = arguments,
                Verdict::Blocked(output) => blocked = Some(*output),
            }
        }
        Ok(Ready { pipeline: self.clone(), entry, call, depth, record, bounds, shown: Shown::default(), blocked })
    }
}
