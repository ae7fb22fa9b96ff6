//! A plugin that talks to models: one instance for the whole session, owned by a task of its own. Requests are
//! sent to that task and run side by side inside the instance. If the instance dies, the requests under way fail
//! with the reason, and the next request starts a new one, after a pause that grows with each death.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use atoll_caps::LimitName;
use atoll_table::{
    Error,
    model::{ModelEvent, ModelProvider, ModelRequest},
};
use futures::{
    StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream, FuturesUnordered},
};
use tokio::sync::{mpsc, oneshot, watch};
use wasmtime::{
    AsContextMut as _, Engine,
    component::{Accessor, InstancePre},
};

use crate::{
    bindings::exports::atoll::plugin::provider::{self, Guest, GuestIndices},
    byte_streams::EventsIntoQueue,
    call::Call,
    convert,
    http_client::origin_of,
    limits::{CpuBudget, Metered},
    permits::places,
    state::{GrantedSecret, PluginContext, PluginState, lock},
    trap::limit_error,
};

/// How many batches of events may wait to be taken.
const QUEUE: usize = 16;
/// How long the pause before a restart is at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// An instance that lived this long does not count as dying again and again.
const HEALTHY: Duration = Duration::from_secs(60);

/// A provider, restarted as needed.
pub(crate) struct ProviderPlugin {
    engine: Engine,
    pre: InstancePre<PluginState>,
    context: Arc<PluginContext>,
    apis: Vec<String>,
    life: Mutex<Life>,
}

/// Where its instance stands.
struct Life {
    actor: Option<Actor>,
    /// How often it died in a row.
    deaths: u32,
    /// No new instance before this.
    not_before: Instant,
}

/// The task that owns the instance.
#[derive(Clone)]
struct Actor {
    requests: mpsc::Sender<Job>,
    /// Why the instance is dead, once it is.
    died: watch::Receiver<Option<Error>>,
    born: Instant,
}

/// A request on its way to the instance.
struct Job {
    request: provider::Request,
    answer: oneshot::Sender<Result<mpsc::Receiver<Vec<provider::ModelEvent>>, Error>>,
}

impl ProviderPlugin {
    pub(crate) async fn start(
        engine: Engine,
        pre: InstancePre<PluginState>,
        context: Arc<PluginContext>,
    ) -> Result<Self, Error> {
        let life = Life { actor: None, deaths: 0, not_before: Instant::now() };
        let mut plugin = Self { engine, pre, context, apis: Vec::new(), life: Mutex::new(life) };
        plugin.apis = plugin.describe().await?.apis;
        Ok(plugin)
    }

    /// Asks a throw-away instance what the provider is.
    async fn describe(&self) -> Result<provider::Description, Error> {
        let _permit = self.context.shared.permits.preparing(places(&self.pre)).await?;
        let call = Call::of_description(&self.context);
        let mut prepared = self.context.store(&self.engine, CpuBudget::Total, Arc::clone(&call));
        let (meter, stderr) = (Arc::clone(&prepared.meter), prepared.stderr.clone());
        let run = async {
            let instance = self.pre.instantiate_async(&mut prepared.store).await?;
            let guest = GuestIndices::new(&self.pre)?.load(prepared.store.as_context_mut(), &instance)?;
            guest.call_describe(&mut prepared.store).await
        };
        let run = Metered::new(run, meter, Arc::clone(&self.context.shared.ticker));
        let outcome = match self.context.limits.wall_ms {
            Some(limit) => match call.clock.within(Duration::from_millis(limit), run).await {
                Some(outcome) => outcome,
                None => return Err(limit_error(LimitName::WallMs, limit)),
            },
            None => run.await,
        };
        outcome.map_err(|reason| self.context.explain(&reason, &stderr))
    }

    /// The living instance's task; a new one if there is none, after the pause its death calls for.
    async fn actor(&self) -> Actor {
        loop {
            let pause = {
                let mut life = lock(&self.life);
                if let Some(actor) = &life.actor {
                    if !actor.requests.is_closed() {
                        return actor.clone();
                    }
                    life.deaths = if actor.born.elapsed() > HEALTHY { 1 } else { life.deaths + 1 };
                    let pause = FIRST_PAUSE.saturating_mul(1 << (life.deaths - 1).min(10)).min(LONGEST_PAUSE);
                    tracing::warn!(
                        plugin = self.context.name,
                        ?pause,
                        "the provider died; starting it again after a pause"
                    );
                    life.not_before = Instant::now() + pause;
                    life.actor = None;
                }
                let pause = life.not_before.saturating_duration_since(Instant::now());
                if pause.is_zero() {
                    let actor = self.spawn();
                    life.actor = Some(actor.clone());
                    return actor;
                }
                pause
            };
            tokio::time::sleep(pause).await;
        }
    }

    fn spawn(&self) -> Actor {
        let (requests, jobs) = mpsc::channel(QUEUE);
        let (reason, died) = watch::channel(None);
        let (engine, pre, context) = (self.engine.clone(), self.pre.clone(), Arc::clone(&self.context));
        tokio::spawn(async move {
            let call = Call::of_instance(&context);
            let mut prepared = context.store(&engine, CpuBudget::Stretch, call);
            let (meter, stderr) = (Arc::clone(&prepared.meter), prepared.stderr.clone());
            let run = async {
                let instance = pre.instantiate_async(&mut prepared.store).await?;
                let guest = GuestIndices::new(&pre)?.load(prepared.store.as_context_mut(), &instance)?;
                prepared.store.run_concurrent(async |accessor| serve(accessor, &guest, jobs).await).await?
            };
            let outcome = Metered::new(run, meter, Arc::clone(&context.shared.ticker)).await;
            if let Err(trap) = outcome {
                let error = context.explain(&trap, &stderr);
                tracing::warn!(plugin = context.name, %error, "the provider died");
                let _ = reason.send(Some(error));
            }
        });
        Actor { requests, died, born: Instant::now() }
    }

    /// Makes the key of a request known to the network boundary, for the origin of its base URL only. The guest
    /// gets a name for it.
    fn admit(&self, request: &ModelRequest) -> Result<Option<String>, Error> {
        let model = &request.model;
        if model.base_url.is_empty() {
            return Ok(None);
        }
        let url = reqwest::Url::parse(&model.base_url).map_err(|error| {
            Error::InvalidArguments(format!(
                "the base URL of the provider {} can not be used: {error}; correct it in models.json",
                model.provider
            ))
        })?;
        let Some(origin) = origin_of(&url) else {
            return Err(Error::InvalidArguments(format!(
                "the base URL {url} names no host; correct it in models.json"
            )));
        };
        {
            let mut origins = self.context.model_origins.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            if !origins.contains(&origin) {
                origins.push(origin.clone());
            }
        }
        let mut secrets = self.context.secrets.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let audit = self.context.shared.audit.get();
        for (name, value) in &request.header_secrets {
            if let Some(audit) = audit {
                audit.learn(value.reveal());
            }
            let granted = GrantedSecret { value: value.clone(), origins: vec![origin.clone()] };
            secrets.insert(name.clone(), granted);
        }
        let Some(value) = request.key.clone() else { return Ok(None) };
        if let Some(audit) = audit {
            audit.learn(value.reveal());
        }
        let name = format!("{}-key", model.provider);
        secrets.insert(name.clone(), GrantedSecret { value, origins: vec![origin] });
        Ok(Some(name))
    }
}

/// Serves requests inside the instance until it dies or the host ends.
async fn serve(accessor: &Accessor<PluginState>, guest: &Guest, mut jobs: mpsc::Receiver<Job>) -> wasmtime::Result<()> {
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            job = jobs.recv() => match job {
                Some(job) => running.push(answer(accessor, guest, job)),
                None => return Ok(()),
            },
            Some(outcome) = running.next() => outcome?,
        }
    }
}

async fn answer(accessor: &Accessor<PluginState>, guest: &Guest, job: Job) -> wasmtime::Result<()> {
    let answered = match guest.call_complete(accessor, job.request).await? {
        Ok(events) => {
            let (sender, receiver) = mpsc::channel(QUEUE);
            accessor.with(|mut access| events.pipe(access.as_context_mut(), EventsIntoQueue::new(sender)))?;
            Ok(receiver)
        }
        Err(error) => Err(error.into()),
    };
    // Nobody waits for it any more: the queue is dropped, which tells the guest to stop.
    let _ = job.answer.send(answered);
    Ok(())
}

/// The events of one answer. Always ends with `Done` or `Failed`, whatever the guest does.
struct Events {
    batches: mpsc::Receiver<Vec<provider::ModelEvent>>,
    waiting: std::vec::IntoIter<provider::ModelEvent>,
    died: watch::Receiver<Option<Error>>,
    context: Arc<PluginContext>,
    ended: bool,
}

impl Events {
    async fn next(&mut self) -> Option<ModelEvent> {
        loop {
            if self.ended {
                return None;
            }
            if let Some(event) = self.waiting.next() {
                let mut event = convert::event_from_wit(event);
                if let ModelEvent::Failed { error, .. } = &mut event {
                    *error = self.context.redacted_error(error.clone());
                }
                self.ended = matches!(event, ModelEvent::Done { .. } | ModelEvent::Failed { .. });
                return Some(event);
            }
            match self.batches.recv().await {
                Some(batch) => self.waiting = batch.into_iter(),
                None => {
                    self.ended = true;
                    let error = death(self.died.clone(), &self.context.name).await;
                    return Some(ModelEvent::Failed { error, status: None, retry_after_ms: None });
                }
            }
        }
    }
}

/// How long after its queues have closed an instance is waited for to say why.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// Why an answer ended before its end: the reason the instance died of, or, if it lives on, that it just stopped.
async fn death(mut died: watch::Receiver<Option<Error>>, name: &str) -> Error {
    let reason = tokio::time::timeout(LAST_WORDS, died.wait_for(Option::is_some)).await;
    match reason.as_ref().map(|known| known.as_deref()) {
        Ok(Ok(Some(error))) => error.clone(),
        _ => Error::Failed(format!("the provider {name} stopped in the middle of its answer")),
    }
}

impl ModelProvider for ProviderPlugin {
    fn apis(&self) -> Vec<String> {
        self.apis.clone()
    }

    fn complete(&self, request: ModelRequest) -> BoxFuture<'_, Result<BoxStream<'static, ModelEvent>, Error>> {
        Box::pin(async move {
            let key_secret = self.admit(&request)?;
            let actor = self.actor().await;
            let (answer, answered) = oneshot::channel();
            let job = Job { request: convert::request_to_wit(request, key_secret), answer };
            if actor.requests.send(job).await.is_err() {
                return Err(death(actor.died, &self.context.name).await);
            }
            let batches = match answered.await {
                Ok(batches) => batches.map_err(|error| self.context.redacted_error(error))?,
                Err(_) => return Err(death(actor.died, &self.context.name).await),
            };
            let events = Events {
                batches,
                waiting: Vec::new().into_iter(),
                died: actor.died,
                context: Arc::clone(&self.context),
                ended: false,
            };
            let stream =
                stream::unfold(events, |mut events| async move { events.next().await.map(|event| (event, events)) });
            Ok(stream.boxed())
        })
    }
}
