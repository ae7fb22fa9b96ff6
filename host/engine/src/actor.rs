//! The task that owns an instance which lives as long as the session. Work is sent to that task as jobs, which run side by
//! side inside the instance and begin in the order in which they were sent.
//!
//! A job that has begun is never dropped, whoever stops waiting for it: so the task knows when the guest is really done
//! with it. Nothing here may know what a job is about.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, OnceLock, atomic::AtomicUsize},
    task::Poll,
    time::{Duration, Instant},
};

use atoll_table::Error;
use futures::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use tokio::sync::{mpsc, oneshot, watch};
use wasmtime::{
    AsContextMut as _, Engine,
    component::{Accessor, ComponentExportIndex, Instance, InstancePre, TypedFunc},
};

use crate::{
    bindings::{
        self,
        atoll::plugin::types::{Error as WitError, ToolOutput as WitOutput},
        exports::atoll::plugin::{extension, provider, tools},
    },
    call::{Call, Clock},
    inbox::{Closing, Inbox},
    limits::{CpuBudget, Metered},
    outcome::Outcome,
    permits::places,
    state::{PluginContext, PluginState, Prepared, RunningCalls, lock},
    turns::{self, Visitor},
};

/// How long the pause before a restart is at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// An instance that lived this long does not count as dying again and again.
const HEALTHY: Duration = Duration::from_secs(60);
/// How long jobs may go on when nobody can send one any more.
const LAST_JOBS: Duration = Duration::from_secs(5);
/// How long after its queues have closed an instance is waited for to say why.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// The export `tools.call`.
pub(crate) type CallFunction = TypedFunc<(tools::Invocation,), (Outcome<Result<WitOutput, WitError>>,)>;
/// The export `tools.prepare`.
pub(crate) type PrepareFunction = TypedFunc<(String, String), (Outcome<Result<String, WitError>>,)>;

/// What a living instance exports.
pub(crate) struct Guests {
    pub(crate) extension: Option<extension::Guest>,
    pub(crate) provider: Option<provider::Guest>,
    pub(crate) tools: Option<(CallFunction, PrepareFunction)>,
}

/// Work for an instance. It runs at the top of the instance's loop, never inside of one of its imports. An error of it is
/// the death of the instance.
pub(crate) type Job =
    Box<dyn for<'a> FnOnce(&'a Accessor<PluginState>, &'a Guests) -> BoxFuture<'a, wasmtime::Result<()>> + Send>;

/// Where the exports of a component are that its living instance is called by.
struct Exports {
    extension: Option<extension::GuestIndices>,
    provider: Option<provider::GuestIndices>,
    tools: Option<(tools::GuestIndices, ComponentExportIndex, ComponentExportIndex)>,
}

/// How to make living instances of a component.
pub(crate) struct Recipe {
    engine: Engine,
    pre: InstancePre<PluginState>,
    pub(crate) context: Arc<PluginContext>,
    exports: Exports,
    /// How many jobs may wait.
    queue: usize,
}

/// A living instance: where jobs are sent, and what is known of it from outside. It ends some time after the last one of
/// these is gone.
#[derive(Clone)]
pub(crate) struct Actor {
    pub(crate) jobs: mpsc::Sender<Job>,
    /// What it carries out.
    pub(crate) running: RunningCalls,
    /// Why it is dead, once it is. Closed when nothing is left of it.
    pub(crate) died: watch::Receiver<Option<Error>>,
    pub(crate) lifeline: Arc<Lifeline>,
    /// Where jobs are put by those who carry it on then.
    inbox: Inbox,
    visitor: Visitor,
}

/// What is known of a living instance, and a way to end it, without keeping it alive.
pub(crate) struct Lifeline {
    end: watch::Sender<Option<Ending>>,
    /// How many things it carries out.
    pub(crate) busy: watch::Sender<usize>,
    /// How many of them should have ended.
    pub(crate) overdue: AtomicUsize,
    born: Instant,
    /// How long it lived, once it is dead.
    lived: Arc<OnceLock<Duration>>,
}

/// How an instance is ended from outside.
#[derive(Clone)]
enum Ending {
    /// In order. Nobody needs to hear of it.
    Meant,
    /// For a reason that is a death.
    Death(Error),
}

impl Recipe {
    /// For a component that exports at least one of these.
    pub(crate) fn new(
        engine: Engine,
        pre: InstancePre<PluginState>,
        context: Arc<PluginContext>,
        exports: &std::collections::BTreeSet<String>,
        queue: usize,
    ) -> wasmtime::Result<Self> {
        let has = |name: &str| exports.contains(name);
        let exports = Exports {
            extension: has("extension").then(|| extension::GuestIndices::new(&pre)).transpose()?,
            provider: has("provider").then(|| provider::GuestIndices::new(&pre)).transpose()?,
            tools: (has("extension") && has("tools")).then(|| tool_exports(&pre)).transpose()?,
        };
        Ok(Self { engine, pre, context, exports, queue })
    }

    /// Whether its living instance runs tools.
    pub(crate) fn has_tools(&self) -> bool {
        self.exports.tools.is_some()
    }

    /// Makes an instance, in a task of its own.
    ///
    /// # Errors
    /// `unavailable` if as many instances as there may be live already.
    pub(crate) fn spawn(self: &Arc<Self>) -> Result<Actor, Error> {
        let permit = self.context.shared.permits.long_lived(&self.context.name, places(&self.pre))?;
        let (sender, jobs) = mpsc::channel(self.queue);
        let (reason, died) = watch::channel(None);
        let (end, mut ended) = watch::channel(None);
        let call = Call::of_instance(&self.context);
        let mut prepared = self.context.store(&self.engine, CpuBudget::Stretch, Arc::clone(&call));
        let running = Arc::clone(&prepared.running);
        call.clock.spans(&running);
        if self.exports.extension.is_some() {
            prepared.store.data_mut().is_extension = true;
        }
        let recipe = Arc::clone(self);
        let (born, lived) = (Instant::now(), Arc::<OnceLock<Duration>>::default());
        let life = Arc::clone(&lived);
        let inbox = Inbox::new();
        let closing = Closing(inbox.clone());
        let life = async move {
            let _permit = permit;
            let context = Arc::clone(&recipe.context);
            let (meter, stderr) = (Arc::clone(&prepared.meter), prepared.stderr.clone());
            let live =
                Metered::new(recipe.live(&mut prepared, jobs, &closing.0), meter, Arc::clone(&context.shared.ticker));
            let outcome = tokio::select! {
                outcome = live => outcome.map_err(|trap| context.explain(&trap, &stderr)),
                Ok(ending) = ended.wait_for(Option::is_some) => match &*ending {
                    Some(Ending::Death(reason)) => Err(reason.clone()),
                    _ => Ok(()),
                },
            };
            let _ = life.set(born.elapsed());
            lock(&prepared.running).clear();
            drop(prepared);
            drop(closing);
            if let Err(error) = outcome {
                tracing::warn!(plugin = context.name, %error, "an instance died");
                let _ = reason.send(Some(error));
            }
        };
        // Whoever carries it on may do so in the middle of a call, which is none of its own.
        let visitor = turns::spawn(Arc::<Clock>::default().above(life));
        let (busy, overdue) = (watch::channel(0).0, AtomicUsize::new(0));
        let lifeline = Arc::new(Lifeline { end, busy, overdue, born, lived });
        Ok(Actor { jobs: sender, running, died, lifeline, inbox, visitor })
    }

    async fn live(&self, prepared: &mut Prepared, jobs: mpsc::Receiver<Job>, inbox: &Inbox) -> wasmtime::Result<()> {
        let instance = self.pre.instantiate_async(&mut prepared.store).await?;
        let guests = self.guests(prepared, &instance)?;
        prepared.store.run_concurrent(async |accessor| serve(accessor, &guests, jobs, inbox).await).await?
    }

    fn guests(&self, prepared: &mut Prepared, instance: &Instance) -> wasmtime::Result<Guests> {
        let Exports { extension, provider, tools } = &self.exports;
        let extension = extension.as_ref().map(|at| at.load(prepared.store.as_context_mut(), instance)).transpose()?;
        let provider = provider.as_ref().map(|at| at.load(prepared.store.as_context_mut(), instance)).transpose()?;
        let tools = match tools {
            None => None,
            Some((indices, call, prepare)) => {
                // Checks the types of all of its functions.
                indices.load(prepared.store.as_context_mut(), instance)?;
                let mut function = |at: &ComponentExportIndex| {
                    let function = instance.get_func(&mut prepared.store, at);
                    function.ok_or_else(|| wasmtime::Error::msg("an export of its tools is gone"))
                };
                let (call, prepare) = (function(call)?, function(prepare)?);
                // SAFETY: the types were checked just now; `Outcome` has that of its content.
                Some(unsafe { (CallFunction::new_unchecked(call), PrepareFunction::new_unchecked(prepare)) })
            }
        };
        Ok(Guests { extension, provider, tools })
    }
}

fn tool_exports(
    pre: &InstancePre<PluginState>,
) -> wasmtime::Result<(tools::GuestIndices, ComponentExportIndex, ComponentExportIndex)> {
    let indices = tools::GuestIndices::new(pre)?;
    let component = pre.component();
    let interface = format!("atoll:plugin/tools@{}", bindings::VERSION);
    let export = |name: &str| {
        component
            .get_export_index(None, &interface)
            .and_then(|tools| component.get_export_index(Some(&tools), name))
            .ok_or_else(|| wasmtime::Error::msg(format!("it exports no `{name}` in {interface}")))
    };
    Ok((indices, export("call")?, export("prepare")?))
}

/// Runs jobs inside the instance until it dies, or until nobody can send one any more and those under way have ended.
async fn serve(
    accessor: &Accessor<PluginState>,
    guests: &Guests,
    mut jobs: mpsc::Receiver<Job>,
    inbox: &Inbox,
) -> wasmtime::Result<()> {
    let mut running = FuturesUnordered::new();
    loop {
        // Nothing wakes this for the inbox: whoever puts something there has it polled.
        let next = poll_fn(|context| match inbox.take() {
            Some(job) => Poll::Ready(Some(job)),
            None => jobs.poll_recv(context),
        });
        tokio::select! {
            job = next => match job {
                Some(job) => running.push(job(accessor, guests)),
                None => break,
            },
            Some(outcome) = running.next() => outcome?,
        }
    }
    let rest = async {
        while let Some(outcome) = running.next().await {
            outcome?;
        }
        Ok(())
    };
    tokio::time::timeout(LAST_JOBS, rest).await.unwrap_or(Ok(()))
}

impl Actor {
    /// Whether jobs can still be sent.
    pub(crate) fn is_alive(&self) -> bool {
        !self.jobs.is_closed()
    }

    /// How long it has lived, or did until it died.
    pub(crate) fn age(&self) -> Duration {
        self.lifeline.lived.get().copied().unwrap_or_else(|| self.lifeline.born.elapsed())
    }

    /// Ends it at once, in order.
    pub(crate) fn end(&self) {
        self.lifeline.end_with(Ending::Meant);
    }

    /// Waits until it carries out nothing.
    pub(crate) async fn idle(&self) {
        // The other side is in `self`.
        let _ = self.lifeline.busy.subscribe().wait_for(|number| *number == 0).await;
    }

    /// Sends a job and waits for its answer. `otherwise`: what is said if the instance ended before that, for no known
    /// reason.
    pub(crate) async fn answer<R>(
        &self,
        job: Job,
        answered: oneshot::Receiver<Result<R, Error>>,
        otherwise: impl FnOnce() -> String,
    ) -> Result<R, Error> {
        let is_sent = self.jobs.send(job).await.is_ok();
        self.answer_to(is_sent, answered, otherwise).await
    }

    /// The same for a question whose answer everybody waits for: the instance is carried on in this task, so that nothing
    /// has to be woken for it.
    pub(crate) async fn answer_at_once<R>(
        &self,
        job: Job,
        answered: oneshot::Receiver<Result<R, Error>>,
        otherwise: impl FnOnce() -> String,
    ) -> Result<R, Error> {
        // Jobs begin in the order in which they were sent, so none must be waiting.
        let is_first = self.jobs.capacity() == self.jobs.max_capacity();
        let unsent = if is_first { self.inbox.put(job).err() } else { Some(job) };
        let is_sent = match unsent {
            None => {
                self.visitor.carry_on();
                true
            }
            Some(job) => self.jobs.send(job).await.is_ok(),
        };
        self.answer_to(is_sent, answered, otherwise).await
    }

    async fn answer_to<R>(
        &self,
        is_sent: bool,
        answered: oneshot::Receiver<Result<R, Error>>,
        otherwise: impl FnOnce() -> String,
    ) -> Result<R, Error> {
        if is_sent && let Ok(answer) = answered.await {
            return answer;
        }
        Err(self.death(&otherwise()).await)
    }

    /// Why something that it was doing has no answer: the reason it died of, or, if it lives on, `otherwise`.
    pub(crate) async fn death(&self, otherwise: &str) -> Error {
        death(self.died.clone(), otherwise).await
    }
}

impl Lifeline {
    /// Ends the instance at once, as if it had died of this.
    pub(crate) fn kill(&self, reason: Error) {
        self.end_with(Ending::Death(reason));
    }

    /// The first one counts.
    fn end_with(&self, ending: Ending) {
        self.end.send_if_modified(|known| {
            let is_first = known.is_none();
            known.get_or_insert(ending);
            is_first
        });
    }
}

/// As [`Actor::death`], for those who have only this of it.
pub(crate) async fn death(mut died: watch::Receiver<Option<Error>>, otherwise: &str) -> Error {
    let reason = tokio::time::timeout(LAST_WORDS, died.wait_for(Option::is_some)).await;
    match reason.as_ref().map(|known| known.as_deref()) {
        Ok(Ok(Some(error))) => error.clone(),
        _ => Error::Failed(otherwise.to_owned()),
    }
}

/// How often instances of one component died in a row.
#[derive(Default)]
pub(crate) struct Deaths(u32);

impl Deaths {
    /// Counts one more, of an instance that had lived so long. Gives the pause that it calls for.
    pub(crate) fn count(&mut self, age: Duration) -> Duration {
        self.0 = if age > HEALTHY { 1 } else { self.0.saturating_add(1) };
        FIRST_PAUSE.saturating_mul(1 << (self.0 - 1).min(10)).min(LONGEST_PAUSE)
    }

    /// How many in a row.
    pub(crate) fn in_a_row(&self) -> u32 {
        self.0
    }
}

/// Where a living instance is found.
pub(crate) trait Home: Send + Sync {
    /// The living instance, waited for if there is none now.
    ///
    /// # Errors
    /// `unavailable` if there can be none; for a good reason it is that.
    fn actor(&self) -> BoxFuture<'_, Result<Actor, Error>>;
}

/// An instance that is made when it is first needed, and anew when it has died and is needed again.
pub(crate) struct OnDemand {
    recipe: Arc<Recipe>,
    life: Mutex<Life>,
}

/// Where its instance stands.
struct Life {
    actor: Option<Actor>,
    deaths: Deaths,
    /// No new instance before this.
    not_before: Instant,
}

impl OnDemand {
    pub(crate) fn new(recipe: Arc<Recipe>) -> Self {
        let life = Life { actor: None, deaths: Deaths::default(), not_before: Instant::now() };
        Self { recipe, life: Mutex::new(life) }
    }
}

impl Home for OnDemand {
    fn actor(&self) -> BoxFuture<'_, Result<Actor, Error>> {
        Box::pin(async {
            loop {
                let pause = {
                    let mut life = lock(&self.life);
                    if let Some(actor) = &life.actor {
                        if actor.is_alive() {
                            return Ok(actor.clone());
                        }
                        let age = actor.age();
                        let pause = life.deaths.count(age);
                        let plugin = self.recipe.context.name.as_str();
                        tracing::warn!(plugin, ?pause, "starting it again after a pause");
                        life.not_before = Instant::now() + pause;
                        life.actor = None;
                    }
                    let pause = life.not_before.saturating_duration_since(Instant::now());
                    if pause.is_zero() {
                        let actor = self.recipe.spawn()?;
                        life.actor = Some(actor.clone());
                        return Ok(actor);
                    }
                    pause
                };
                tokio::time::sleep(pause).await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_each_death_and_begin_anew_after_a_healthy_life() {
        let mut deaths = Deaths::default();
        let short = Duration::from_secs(1);
        let pauses: Vec<u128> = (0..9).map(|_| deaths.count(short).as_millis()).collect();
        assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!(deaths.in_a_row(), 9);
        assert_eq!(deaths.count(HEALTHY + short), FIRST_PAUSE);
        assert_eq!(deaths.in_a_row(), 1);
    }
}
