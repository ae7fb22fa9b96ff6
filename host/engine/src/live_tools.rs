//! Tools of an extension: they are called in its one living instance, beside its events.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use atoll_caps::LimitName;
use atoll_table::{Error, Invocation, Progress, ToolOutput, ToolRunner};
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::{
    actor::{Actor, Job},
    bindings::{atoll::plugin::types::ToolOutput as WitOutput, exports::atoll::plugin::tools},
    call::Clock,
    convert,
    extension_plugin::{
        Inner,
        delivery::{Entry, Order, TO_END, order},
    },
    outcome::Outcome,
    state::{PluginContext, RunningCall},
    trap::limit_error,
};

/// What runs them. Holding it does not keep the extension alive.
pub(crate) struct LiveTools {
    name: String,
    extension: Weak<Inner>,
}

impl LiveTools {
    pub(crate) fn new(extension: &Arc<Inner>) -> Self {
        Self { name: extension.who().plugin.clone(), extension: Arc::downgrade(extension) }
    }

    fn extension(&self) -> Result<Arc<Inner>, Error> {
        let gone = || Error::Unavailable(format!("the extension {} has ended", self.name));
        self.extension.upgrade().ok_or_else(gone)
    }
}

type Answer<R> = oneshot::Sender<Result<R, Error>>;

fn call(invocation: tools::Invocation, entry: Entry, answer: Answer<WitOutput>) -> Job {
    Box::new(move |accessor, guests| {
        Box::pin(async move {
            let _entry = entry;
            let Some((call, _)) = &guests.tools else { return Ok(()) };
            if answer.is_closed() {
                return Ok(());
            }
            let (Outcome(result),) = call.call_concurrent(accessor, (invocation,)).await?;
            let _ = answer.send(result.map_err(Error::from));
            Ok(())
        })
    })
}

fn prepare(tool: String, arguments: String, answer: Answer<String>) -> Job {
    Box::new(move |accessor, guests| {
        Box::pin(async move {
            let Some((_, prepare)) = &guests.tools else { return Ok(()) };
            if answer.is_closed() {
                return Ok(());
            }
            let (Outcome(result),) = prepare.call_concurrent(accessor, (tool, arguments)).await?;
            let _ = answer.send(result.map_err(Error::from));
            Ok(())
        })
    })
}

/// Sends a job and waits for its answer.
async fn sent<R>(
    context: &PluginContext,
    actor: &Actor,
    job: Job,
    answered: oneshot::Receiver<Result<R, Error>>,
) -> Result<R, Error> {
    if actor.jobs.send(job).await.is_err() {
        return Err(actor.death(&context.stopped()).await);
    }
    match answered.await {
        Ok(answer) => answer,
        Err(_) => Err(actor.death(&context.stopped()).await),
    }
}

/// Waits within the time that a call may take.
async fn within<R>(
    context: &PluginContext,
    clock: &Clock,
    work: impl Future<Output = Result<R, Error>>,
) -> Result<R, Error> {
    match context.limits.wall_ms {
        Some(limit) => {
            let done = clock.within(Duration::from_millis(limit), work).await;
            done.unwrap_or_else(|| Err(limit_error(LimitName::WallMs, limit)))
        }
        None => work.await,
    }
}

impl ToolRunner for LiveTools {
    fn prepare(&self, tool: String, arguments: Value) -> BoxFuture<'_, Result<Value, Error>> {
        Box::pin(async move {
            let extension = self.extension()?;
            let context = extension.context();
            let clock = Clock::of_call();
            let prepared = within(&context, &clock, async {
                let (actor, _) = extension.up().await?;
                let (answer, answered) = oneshot::channel();
                sent(&context, &actor, prepare(tool, arguments.to_string(), answer), answered).await
            });
            let prepared = prepared.await.map_err(|error| context.redacted_error(error))?;
            convert::json(&context.name, "prepared arguments", &prepared)
        })
    }

    fn call(&self, invocation: Invocation, progress: Progress) -> BoxFuture<'_, Result<ToolOutput, Error>> {
        Box::pin(async move {
            let extension = self.extension()?;
            let context = extension.context();
            let clock = Clock::of_call();
            let called = within(&context, &clock, async {
                let (actor, _) = extension.up().await?;
                let Invocation { id, parent_id, tool, arguments, depth, table } = invocation;
                let (of_call, below) = (Arc::clone(&clock), depth.saturating_add(1));
                let running = |wanted| RunningCall { progress, table: Some(table), wanted, clock: of_call, below };
                let late =
                    Error::Failed(format!("the extension {} does not end calls that were stopped", context.name));
                let Order { entry, waiting } = order(&actor, id.clone(), running, TO_END, late);
                let invocation = tools::Invocation {
                    id,
                    parent_id,
                    tool,
                    arguments: arguments.to_string(),
                    cwd: context.shared.places.cwd.to_string_lossy().into_owned(),
                };
                let (answer, answered) = oneshot::channel();
                let output = sent(&context, &actor, call(invocation, entry, answer), answered).await;
                waiting.answered();
                output
            });
            let output = called.await.map_err(|error| context.redacted_error(error))?;
            if convert::output_size(&output) as u64 > context.limits.output_bytes {
                return Err(limit_error(LimitName::OutputBytes, context.limits.output_bytes));
            }
            let mut output = convert::output_from_wit(&context.name, output)?;
            context.redact(&mut output);
            Ok(output)
        })
    }

    fn allowed(&self) -> Vec<String> {
        self.extension().map_or_else(|_| Vec::new(), |extension| extension.context().effective().describe())
    }
}
