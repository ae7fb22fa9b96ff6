//! An extension: one living instance, which hears of events, runs commands and serves calls of its tools. When it dies it
//! is started again by itself, after a pause; when it dies again and again, it is disabled for the session, and what it
//! guards stays shut.
//!
//! Nothing here may open what an extension guards because the extension can not be asked.

pub(crate) mod delivery;
mod replacement;
mod supervision;

use std::{
    sync::{
        Arc, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use atoll_caps::{Capability, LimitName};
use atoll_table::{
    Error, Origin, Tool, ToolRunner,
    extension::{Completion, Event, EventKind, Extension, FailureReport, Outcome, StartReason, Subscription, Who},
    hooks::ResultPatch,
};
use futures::future::BoxFuture;
use tokio::sync::{oneshot, watch};

use crate::{
    actor::{Actor, Home, Job, Recipe},
    audit::{Uses, Verdict},
    call::Clock,
    convert,
    live_tools::LiveTools,
    state::{PluginContext, UnderWay, lock},
    trap::limit_error,
};
use delivery::{Order, Waiting, running};
pub use replacement::{LiveExtension, Replacement};

/// How long an extension may take to start.
const START: Duration = Duration::from_secs(10);
/// How long it may take to end.
const STOP: Duration = Duration::from_secs(5);
/// How long it may then take until nothing is left of it.
const GONE: Duration = Duration::from_millis(500);

/// An extension, and where it stands. Clones are the same one.
#[derive(Clone)]
pub(crate) struct ExtensionPlugin(Arc<Inner>);

pub(crate) struct Inner {
    who: Who,
    /// What runs its tools, those that it adds later among them.
    runner: OnceLock<Arc<dyn ToolRunner>>,
    /// What runs from the next start on. Another one after a reload.
    generation: RwLock<Arc<Generation>>,
    place: watch::Sender<Place>,
    subscription: RwLock<Arc<Subscription>>,
    report: RwLock<Option<FailureReport>>,
    /// Numbers events and commands.
    next: AtomicU64,
    /// How many events that nobody waits for are on their way to it or with it.
    told: Arc<AtomicUsize>,
}

/// A component as it was loaded.
pub(crate) struct Generation {
    pub(crate) recipe: Arc<Recipe>,
    /// It serves an event while it waits for something else. One that does not can not look at a call of its own.
    pub(crate) is_concurrent: bool,
    /// The tools that it brings from the start.
    pub(crate) tools: Vec<Tool>,
}

impl Generation {
    pub(crate) fn context(&self) -> &Arc<PluginContext> {
        &self.recipe.context
    }
}

/// Where an extension stands.
#[derive(Clone)]
enum Place {
    /// Nobody has started it.
    Unborn,
    /// It starts, or waits to be started again.
    Starting,
    /// It lives, as this generation.
    Up(Actor, Arc<Generation>),
    /// It is not there and will not be, for this reason, unless another component takes over.
    Gone(Error),
    /// It was told to end, and nothing of it runs afterwards.
    Stopped,
}

impl ExtensionPlugin {
    pub(crate) fn new(generation: Generation, origin: Origin) -> Self {
        let who = Who { plugin: generation.context().name.clone(), origin };
        let inner = Arc::new(Inner {
            who,
            runner: OnceLock::new(),
            generation: RwLock::new(Arc::new(generation)),
            place: watch::channel(Place::Unborn).0,
            subscription: RwLock::default(),
            report: RwLock::default(),
            next: AtomicU64::new(1),
            told: Arc::default(),
        });
        inner.adopt(&inner.generation());
        Self(inner)
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0
    }
}

impl Inner {
    pub(crate) fn who(&self) -> &Who {
        &self.who
    }

    /// What the plugin is now.
    pub(crate) fn context(&self) -> Arc<PluginContext> {
        Arc::clone(self.generation().context())
    }

    /// What runs its tools.
    pub(crate) fn runner(self: &Arc<Self>) -> &Arc<dyn ToolRunner> {
        self.runner.get_or_init(|| Arc::new(LiveTools::new(self)))
    }

    /// Lets a component know whose it is.
    fn adopt(self: &Arc<Self>, generation: &Generation) {
        let context = generation.context();
        context.extension.get_or_init(|| Arc::downgrade(self));
        if generation.recipe.has_tools() {
            context.runner.get_or_init(|| Arc::downgrade(self.runner()));
        }
    }

    fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.generation.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn subscription(&self) -> Arc<Subscription> {
        Arc::clone(&self.subscription.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on it wants this.
    pub(crate) fn wants(&self, subscription: Subscription) -> Arc<Subscription> {
        let subscription = Arc::new(subscription);
        *self.subscription.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&subscription);
        let facts = self.context().shared.services.get().and_then(|services| services.facts.clone());
        if let Some(facts) = facts {
            facts.changed(&self.who, &subscription);
        }
        subscription
    }

    /// It wants something else from here on.
    ///
    /// # Errors
    /// `invalid-arguments` if it changes its flags: they were read from the command line.
    pub(crate) fn subscribe(&self, mut wanted: Subscription) -> Result<(), Error> {
        let now = self.subscription();
        if !wanted.flags.is_empty() && wanted.flags != now.flags {
            return Err(Error::InvalidArguments(
                "flags can not change once the extension has started; leave them out, or give those of `start`"
                    .to_owned(),
            ));
        }
        wanted.flags.clone_from(&now.flags);
        self.wants(wanted);
        Ok(())
    }

    fn report(&self, kind: Option<EventKind>, error: &Error) {
        let report = self.report.read().unwrap_or_else(PoisonError::into_inner).clone();
        match report {
            Some(report) => report(&self.who.plugin, kind, error),
            None => tracing::warn!(plugin = self.who.plugin, event = ?kind, %error, "an extension failed"),
        }
    }

    /// A name for an event or a command, unique in the session.
    fn next_id(&self) -> String {
        format!("{}:{}", self.who.plugin, self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn ended(&self) -> Error {
        Error::Unavailable(format!("the extension {} has ended", self.who.plugin))
    }

    fn ended_before(&self) -> String {
        format!("the extension {} ended before it answered", self.who.plugin)
    }

    /// The living instance and what it was made of, waited for while it starts.
    pub(crate) async fn up(&self) -> Result<(Actor, Arc<Generation>), Error> {
        let mut place = self.place.subscribe();
        loop {
            match &*place.borrow_and_update() {
                Place::Up(actor, generation) if actor.is_alive() => return Ok((actor.clone(), Arc::clone(generation))),
                Place::Up(..) | Place::Starting => {}
                Place::Unborn => {
                    return Err(Error::Unavailable(format!("the extension {} has not been started", self.who.plugin)));
                }
                Place::Gone(reason) => return Err(reason.clone()),
                Place::Stopped => return Err(self.ended()),
            }
            if place.changed().await.is_err() {
                return Err(self.ended());
            }
        }
    }

    /// Starts this generation in a new instance; gives it with what it wants.
    async fn bring_up(
        self: &Arc<Self>,
        generation: &Arc<Generation>,
        reason: StartReason,
    ) -> Result<(Actor, Subscription), Error> {
        let actor = generation.recipe.spawn()?;
        let name = &self.who.plugin;
        let clock = Clock::of_call();
        let start = async {
            let late = Error::Timeout(format!("the extension {name} did not answer `start`"));
            let Order { entry, waiting } =
                delivery::order(&actor, self.next_id(), |wanted| running(0, &clock, wanted), Duration::ZERO, late);
            let (answer, answered) = oneshot::channel();
            let wanted = self.sent(&actor, delivery::start(reason, entry, answer), waiting, answered).await?;
            convert::extension::subscription_from_wit(name, wanted)
        };
        let started = clock.within(START, start).await.unwrap_or_else(|| {
            let seconds = START.as_secs();
            Err(Error::Timeout(format!("the extension {name} did not answer `start` within {seconds} s")))
        });
        match started {
            Ok(subscription) => Ok((actor, subscription)),
            Err(error) => {
                actor.end();
                Err(generation.context().redacted_error(error))
            }
        }
    }

    /// Sends a job and waits for its answer.
    async fn sent<R>(
        &self,
        actor: &Actor,
        job: Job,
        waiting: Waiting,
        answered: oneshot::Receiver<Result<R, Error>>,
    ) -> Result<R, Error> {
        let answer = actor.answer(job, answered, || self.ended_before()).await;
        waiting.answered();
        answer
    }

    /// Refuses an event about a call that the instance makes itself, if it does one thing at a time: it could not look at
    /// it before that call has ended, which waits for it.
    fn check_own_call(&self, event: &Event, actor: &Actor, generation: &Generation) -> Result<(), Error> {
        let (Event::ToolCall(call) | Event::ToolResult(call, _)) = event else { return Ok(()) };
        if generation.is_concurrent {
            return Ok(());
        }
        let id = call.call_id.as_str();
        let mut around = id.match_indices('/').map(|(at, _)| &id[..at]);
        let running = lock(&actor.running);
        if around.any(|id| id == self.who.plugin || running.contains_key(id)) {
            return Err(Error::Unavailable(format!(
                "the extension {} can not look at a call that it makes itself, for it does one thing at a time",
                self.who.plugin
            )));
        }
        Ok(())
    }

    async fn deliver(&self, event: Event, depth: u32, clock: &Arc<Clock>) -> Result<Outcome, Error> {
        let kind = event.kind();
        let (actor, generation) = self.up().await?;
        self.check_own_call(&event, &actor, &generation)?;
        let context = generation.context();
        let late = limit_error(LimitName::EventMs, context.limits.event_ms);
        let below = depth.saturating_add(1);
        let Order { entry, waiting } =
            delivery::order(&actor, self.next_id(), |wanted| running(below, clock, wanted), Duration::ZERO, late);
        let (answer, answered) = oneshot::channel();
        let job = delivery::asked(event, entry, answer);
        let answer = actor.answer_at_once(job, answered, || self.ended_before()).await;
        waiting.answered();
        let outcome = answer.map_err(|error| context.redacted_error(error))?;
        let mut outcome = convert::extension::outcome_from_wit(&self.who.plugin, kind, outcome)?;
        if let Outcome::Patch(ResultPatch { content, details, structured, .. }) = &mut outcome {
            context.redact_parts(content.as_deref_mut().unwrap_or_default(), [details, structured]);
        }
        if let Some(kind) = kind {
            check_change(context, kind, &outcome)?;
        }
        Ok(outcome)
    }
}

/// Whether an extension may answer so. To change what runs or what the model reads is as good as doing it, so one of a
/// project needs for it what it would need to do it itself. To stop a call takes nothing.
fn check_change(context: &PluginContext, kind: EventKind, outcome: &Outcome) -> Result<(), Error> {
    let capability = match outcome {
        Outcome::Pass | Outcome::Block { .. } => return Ok(()),
        Outcome::Rewrite(_) | Outcome::Patch(_) => Capability::Table,
        Outcome::Transform { .. } | Outcome::Handled | Outcome::Reply(_) => Capability::Session,
    };
    if context.origin != Origin::Project || !kind.is_asked() {
        return Ok(());
    }
    let checked = context.effective().check(capability);
    let verdict = if checked.is_ok() { Verdict::Allowed } else { Verdict::Denied };
    Uses::new(context.shared.audit.get().cloned(), &context.name, None, false).used(
        capability.as_str(),
        outcome.name(),
        kind.as_str(),
        verdict,
    );
    checked.map_err(|denied| convert::denied(&denied))
}

/// A place among the events that nobody waits for.
struct Told(Arc<AtomicUsize>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Home for ExtensionPlugin {
    fn actor(&self) -> BoxFuture<'_, Result<Actor, Error>> {
        Box::pin(async { Ok(self.0.up().await?.0) })
    }
}

impl Extension for ExtensionPlugin {
    fn name(&self) -> &str {
        &self.0.who.plugin
    }

    fn origin(&self) -> Origin {
        self.0.who.origin
    }

    fn subscription(&self) -> Arc<Subscription> {
        self.0.subscription()
    }

    fn start(&self, reason: StartReason) -> BoxFuture<'_, Result<Arc<Subscription>, Error>> {
        Box::pin(async move {
            let inner = &self.0;
            let mut is_first = false;
            inner.place.send_if_modified(|place| {
                is_first = matches!(place, Place::Unborn);
                if is_first {
                    *place = Place::Starting;
                }
                is_first
            });
            if !is_first {
                return Err(Error::Failed(format!("the extension {} was started before", inner.who.plugin)));
            }
            let generation = inner.generation();
            match inner.bring_up(&generation, reason).await {
                Ok((actor, subscription)) => {
                    let is_starting = |place: &Place| matches!(place, Place::Starting);
                    let (_, subscription) = inner.come_up(&actor, &generation, subscription, is_starting)?;
                    inner.look_after(&actor);
                    Ok(subscription)
                }
                Err(error) => {
                    inner.place.send_replace(Place::Gone(error.clone()));
                    Err(error)
                }
            }
        })
    }

    fn ask(&self, event: Event, depth: u32) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            let limit = self.0.context().limits.event_ms;
            let clock = Clock::of_call();
            let asked = clock.within(Duration::from_millis(limit), self.0.deliver(event, depth, &clock)).await;
            asked.unwrap_or_else(|| Err(limit_error(LimitName::EventMs, limit)))
        })
    }

    fn tell(&self, event: Event) -> bool {
        let inner = &self.0;
        let (actor, generation) = match &*inner.place.borrow() {
            Place::Up(actor, generation) => (actor.clone(), Arc::clone(generation)),
            _ => return false,
        };
        let context = Arc::clone(generation.context());
        let most = usize::try_from(context.limits.queue).unwrap_or(usize::MAX);
        let held = Told(Arc::clone(&inner.told));
        if inner.told.fetch_add(1, Ordering::SeqCst) >= most {
            return false;
        }
        let (kind, clock) = (event.kind(), Clock::of_call());
        let late = Error::Failed(format!("the extension {} does not end what it is told of", inner.who.plugin));
        let Order { entry, waiting } =
            delivery::order(&actor, inner.next_id(), |wanted| running(1, &clock, wanted), Duration::ZERO, late);
        let extension = Arc::downgrade(inner);
        let failed = move |error| {
            if let Some(inner) = extension.upgrade() {
                inner.report(kind, &context.redacted_error(error));
            }
        };
        actor.jobs.try_send(delivery::told(event, entry, waiting, held, failed)).is_ok()
    }

    fn run_command(&self, name: String, arguments: String) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let inner = &self.0;
            let (actor, generation) = inner.up().await?;
            let clock = Clock::of_call();
            let late = Error::Failed(format!("the extension {} does not end a command", inner.who.plugin));
            let Order { entry, waiting } =
                delivery::order(&actor, inner.next_id(), |wanted| running(0, &clock, wanted), delivery::TO_END, late);
            let (answer, answered) = oneshot::channel();
            let job = delivery::command(name, arguments, entry, answer);
            let _under_way = UnderWay::of(generation.context());
            let ran = inner.sent(&actor, job, waiting, answered).await;
            ran.map_err(|error| generation.context().redacted_error(error))
        })
    }

    fn complete_command(&self, name: String, arguments: String) -> BoxFuture<'_, Result<Vec<Completion>, Error>> {
        Box::pin(async move {
            let inner = &self.0;
            let (clock, limit) = (Clock::of_call(), inner.context().limits.event_ms);
            let late = limit_error(LimitName::EventMs, limit);
            let complete = async {
                let (actor, generation) = inner.up().await?;
                let reason = late.clone();
                let id = inner.next_id();
                let Order { entry, waiting } =
                    delivery::order(&actor, id, |wanted| running(0, &clock, wanted), Duration::ZERO, reason);
                let (answer, answered) = oneshot::channel();
                let job = delivery::completion(name, arguments, entry, answer);
                let found = inner.sent(&actor, job, waiting, answered).await;
                let found = found.map_err(|error| generation.context().redacted_error(error))?;
                Ok(found.into_iter().map(convert::extension::completion_from_wit).collect())
            };
            clock.within(Duration::from_millis(limit), complete).await.unwrap_or_else(|| Err(late.clone()))
        })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Place::Up(actor, _) = self.0.place.send_replace(Place::Stopped) {
                stop(actor).await;
            }
        })
    }

    fn on_failure(&self, report: FailureReport) {
        *self.0.report.write().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }
}

/// Lets an instance say its last words, and ends it.
async fn stop(actor: Actor) {
    let (answer, answered) = oneshot::channel();
    let last = async {
        if actor.jobs.send(delivery::stop(answer)).await.is_ok() {
            let _ = answered.await;
        }
    };
    let _ = tokio::time::timeout(STOP, last).await;
    actor.end();
    let mut died = actor.died.clone();
    drop(actor);
    // Its programs and connections are gone with it.
    let _ = tokio::time::timeout(GONE, async { while died.changed().await.is_ok() {} }).await;
}
