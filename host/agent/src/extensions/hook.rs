//! An extension as one that looks at calls.

use std::sync::Arc;

use atoll_table::{
    Error, ToolOutput,
    extension::{Event, EventKind, Extension, Outcome},
    hooks::{BeforeCall, CallEvent, Hook, ResultPatch, Wanted},
};
use futures::future::BoxFuture;

use super::report::Reporter;

/// Asks an extension before and after calls.
pub(super) struct ExtensionHook {
    extension: Arc<dyn Extension>,
    reporter: Reporter,
}

impl ExtensionHook {
    pub(super) fn new(extension: Arc<dyn Extension>, reporter: Reporter) -> Self {
        Self { extension, reporter }
    }

    fn failed(&self, kind: EventKind, error: Error) -> Error {
        self.reporter.report(self.extension.name(), Some(kind), &error);
        error
    }

    fn misfit(kind: EventKind, outcome: &Outcome) -> Error {
        Error::InvalidArguments(format!("its answer to {kind} was `{}`, which means nothing there", outcome.name()))
    }
}

impl Hook for ExtensionHook {
    fn name(&self) -> &str {
        self.extension.name()
    }

    fn wants(&self, tool: &str) -> Wanted {
        let wanted = self.extension.subscription();
        Wanted {
            before: wanted.wants_call(EventKind::ToolCall, tool),
            after: wanted.wants_call(EventKind::ToolResult, tool),
        }
    }

    fn before_call(&self, call: CallEvent) -> BoxFuture<'_, Result<BeforeCall, Error>> {
        let kind = EventKind::ToolCall;
        Box::pin(async move {
            let depth = call.depth;
            match self.extension.ask(Event::ToolCall(call), depth).await {
                Ok(Outcome::Pass) => Ok(BeforeCall::Pass),
                Ok(Outcome::Rewrite(arguments)) => Ok(BeforeCall::Rewrite(arguments)),
                Ok(Outcome::Block { reason, terminate }) => Ok(BeforeCall::Block { reason, terminate }),
                Ok(other) => Err(self.failed(kind, Self::misfit(kind, &other))),
                Err(error) => Err(self.failed(kind, error)),
            }
        })
    }

    fn after_call(&self, call: CallEvent, output: ToolOutput) -> BoxFuture<'_, Result<ResultPatch, Error>> {
        let kind = EventKind::ToolResult;
        Box::pin(async move {
            let depth = call.depth;
            match self.extension.ask(Event::ToolResult(call, Box::new(output)), depth).await {
                Ok(Outcome::Pass) => Ok(ResultPatch::default()),
                Ok(Outcome::Patch(patch)) => Ok(patch),
                Ok(other) => Err(self.failed(kind, Self::misfit(kind, &other))),
                Err(error) => Err(self.failed(kind, error)),
            }
        })
    }
}
