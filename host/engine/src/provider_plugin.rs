//! A plugin that talks to models: requests are sent to its living instance and run side by side in it. If it dies, the
//! requests under way fail with the reason.

use std::sync::Arc;

use atoll_table::{
    Error,
    model::{ModelEvent, ModelProvider, ModelRequest},
};
use futures::{
    StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use tokio::sync::{mpsc, oneshot, watch};
use wasmtime::{AsContextMut as _, Engine, component::InstancePre};

use crate::{
    actor::{Home, Job, death},
    bindings::exports::atoll::plugin::provider::{self, GuestIndices},
    byte_streams::EventsIntoQueue,
    call::Call,
    convert,
    http_client::origin_of,
    limits::{CpuBudget, Metered},
    permits::places,
    state::{GrantedSecret, PluginContext, PluginState},
};

/// How many batches of events, and how many requests, may wait to be taken.
pub(crate) const QUEUE: usize = 16;
/// A provider.
pub(crate) struct ProviderPlugin {
    context: Arc<PluginContext>,
    home: Arc<dyn Home>,
    apis: Vec<String>,
}

type Answer = Result<mpsc::Receiver<Vec<provider::ModelEvent>>, Error>;

impl ProviderPlugin {
    /// For a component whose living instance is found at `home`. Asks a throw-away instance what the provider is.
    pub(crate) async fn start(
        engine: &Engine,
        pre: &InstancePre<PluginState>,
        context: Arc<PluginContext>,
        home: Arc<dyn Home>,
    ) -> Result<Self, Error> {
        let apis = describe(engine, pre, &context).await?.apis;
        Ok(Self { context, home, apis })
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
        let own = model.is_users.then_some(&self.context.user_origins);
        for origins in [&self.context.model_origins].into_iter().chain(own) {
            let mut origins = origins.write().unwrap_or_else(std::sync::PoisonError::into_inner);
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

/// Asks a throw-away instance what the provider is.
async fn describe(
    engine: &Engine,
    pre: &InstancePre<PluginState>,
    context: &Arc<PluginContext>,
) -> Result<provider::Description, Error> {
    let _permit = context.shared.permits.preparing(places(pre)).await?;
    let call = Call::of_description(context);
    let mut prepared = context.store(engine, CpuBudget::Total, Arc::clone(&call));
    let (meter, stderr) = (Arc::clone(&prepared.meter), prepared.stderr.clone());
    let run = async {
        let instance = pre.instantiate_async(&mut prepared.store).await?;
        let guest = GuestIndices::new(pre)?.load(prepared.store.as_context_mut(), &instance)?;
        guest.call_describe(&mut prepared.store).await
    };
    let run = Metered::new(run, meter, Arc::clone(&context.shared.ticker));
    let outcome = context.within_wall(&call.clock, run).await?;
    outcome.map_err(|reason| context.explain(&reason, &stderr))
}

/// A request on its way to the instance.
fn ask(request: provider::Request, answer: oneshot::Sender<Answer>) -> Job {
    Box::new(move |accessor, guests| {
        Box::pin(async move {
            let Some(guest) = &guests.provider else { return Ok(()) };
            let answered = match guest.call_complete(accessor, request).await? {
                Ok(events) => {
                    let (sender, receiver) = mpsc::channel(QUEUE);
                    accessor.with(|mut access| events.pipe(access.as_context_mut(), EventsIntoQueue::new(sender)))?;
                    Ok(receiver)
                }
                Err(error) => Err(error.into()),
            };
            // Nobody waits for it any more: the queue is dropped, which tells the guest to stop.
            let _ = answer.send(answered);
            Ok(())
        })
    })
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
                    let error = death(self.died.clone(), &self.context.stopped()).await;
                    return Some(ModelEvent::Failed { error, status: None, retry_after_ms: None });
                }
            }
        }
    }
}

impl ModelProvider for ProviderPlugin {
    fn apis(&self) -> Vec<String> {
        self.apis.clone()
    }

    fn complete(&self, request: ModelRequest) -> BoxFuture<'_, Result<BoxStream<'static, ModelEvent>, Error>> {
        Box::pin(async move {
            let key_secret = self.admit(&request)?;
            let actor = self.home.actor().await?;
            let (answer, answered) = oneshot::channel();
            let job = ask(convert::request_to_wit(request, key_secret), answer);
            let batches = actor.answer(job, answered, || self.context.stopped()).await;
            let batches = batches.map_err(|error| self.context.redacted_error(error))?;
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
