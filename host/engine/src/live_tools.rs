//! Tools of an extension: they are called in its one living instance, beside its events.

use std::sync::{Arc, Weak};

use atoll_table::{Error, Invocation, Progress, ToolOutput, ToolRunner};
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::{
    actor::Job,
    bindings::{atoll::plugin::types::ToolOutput as WitOutput, exports::atoll::plugin::tools},
    call::Clock,
    convert,
    extension_plugin::{
        Inner,
        delivery::{Entry, Order, TO_END, order},
    },
    outcome::Outcome,
    state::RunningCall,
    wishes::Wishes,
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

impl ToolRunner for LiveTools {
    fn prepare(&self, tool: String, arguments: Value) -> BoxFuture<'_, Result<Value, Error>> {
        Box::pin(async move {
            let extension = self.extension()?;
            let context = extension.context();
            let clock = Clock::of_call();
            let prepared = context.within_wall(&clock, async {
                let (actor, _) = extension.up().await?;
                let (answer, answered) = oneshot::channel();
                actor.answer(prepare(tool, arguments.to_string(), answer), answered, || context.stopped()).await
            });
            let prepared = prepared.await.flatten().map_err(|error| context.redacted_error(error))?;
            convert::json(&context.name, "prepared arguments", &prepared)
        })
    }

    fn call(&self, invocation: Invocation, progress: Progress) -> BoxFuture<'_, Result<ToolOutput, Error>> {
        Box::pin(async move {
            let extension = self.extension()?;
            let context = extension.context();
            let clock = Clock::of_call();
            let wishes = Wishes::of(&invocation);
            let called = context.within_wall(&clock, async {
                let (actor, _) = extension.up().await?;
                let (id, below) = (invocation.id.clone(), invocation.depth.saturating_add(1));
                let (of_call, table) = (Arc::clone(&clock), Some(Arc::clone(&invocation.table)));
                let said = Arc::clone(&wishes);
                let of_call = |wanted| RunningCall {
                    progress,
                    table,
                    wanted,
                    clock: of_call,
                    below,
                    beside: None,
                    wishes: Some(said),
                };
                let late =
                    Error::Failed(format!("the extension {} does not end calls that were stopped", context.name));
                let Order { entry, waiting } = order(&actor, id, of_call, TO_END, late);
                let (answer, answered) = oneshot::channel();
                let job = call(convert::invocation_to_wit(&context, invocation), entry, answer);
                let output = actor.answer(job, answered, || context.stopped()).await;
                waiting.answered();
                output
            });
            let output = called.await.flatten().map_err(|error| context.redacted_error(error))?;
            context.tool_output(output).map(|output| wishes.end(output))
        })
    }

    fn allowed(&self) -> Vec<String> {
        self.extension().map_or_else(|_| Vec::new(), |extension| extension.context().effective().describe())
    }
}
