//! One call of a tool for a person, without a model: everything is loaded, the call is made, and everything ends.

use std::sync::Arc;

use anyhow::Context as _;
use atoll_agent::{
    Pipeline,
    pipeline::{Bounds, Caller, failed},
};
use atoll_table::{ToolOutput, nesting::NestedCalls};
use serde_json::{Value, json};

use crate::{
    arguments::{ExtensionArguments, TrustArguments},
    assemble::Parts,
    assembled::{Surroundings, report_as_note},
    awaited,
    exit::{DENIED, ExitStatus, FAILED},
    signals::Stop,
};

/// What is to be loaded.
pub(crate) struct Setup<'a> {
    pub(crate) trust: TrustArguments,
    pub(crate) extensions: &'a ExtensionArguments,
    /// The user may be asked whether the project is trusted.
    pub(crate) may_ask_trust: bool,
    pub(crate) sandbox_bash: bool,
    /// The user's choice of tools, on top of the settings.
    pub(crate) tools: Option<&'a [String]>,
}

/// The call to make.
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) arguments: Value,
    pub(crate) bounds: Bounds,
}

/// What came of it.
pub(crate) struct Called {
    pub(crate) name: String,
    pub(crate) arguments: Value,
    pub(crate) output: ToolOutput,
    duration_ms: Option<u64>,
    nested_calls: Option<NestedCalls>,
}

impl Called {
    /// What the program's end says of it.
    pub(crate) fn status(&self) -> ExitStatus {
        let code = self.output.details.as_ref().and_then(|details| details["error"]["code"].as_str());
        ExitStatus(match (self.output.is_error, code) {
            (false, _) => 0,
            (true, Some("denied")) => DENIED,
            (true, _) => FAILED,
        })
    }

    /// All of it.
    pub(crate) fn record(&self) -> Value {
        let mut record = json!({
            "tool": self.name,
            "arguments": self.arguments,
            "content": self.output.content,
            "details": self.output.details,
            "structuredContent": self.output.structured,
            "isError": self.output.is_error,
            "durationMs": self.duration_ms,
        });
        if let Some(calls) = &self.nested_calls {
            record["nestedCalls"] = json!(calls);
        }
        record
    }
}

/// Makes the call that `pick` says, once it is known what can be called. A status to exit with if it was stopped.
///
/// # Errors
/// If something can not be loaded or started. What the tool fails of is in what it gave.
pub(crate) async fn one_call(
    setup: Setup<'_>,
    pick: impl FnOnce(&Pipeline) -> anyhow::Result<Call>,
) -> anyhow::Result<Result<Called, ExitStatus>> {
    let Setup { trust, extensions, may_ask_trust, sandbox_bash, tools } = setup;
    // Before signals are watched: a question that nobody wants to answer is ended by Ctrl-C.
    let parts = Arc::new(Parts::for_run(trust, may_ask_trust, extensions, sandbox_bash).await?);
    let stop = Stop::watch()?;
    let person = parts.ask_the_person(&stop);
    let assembled = parts.load(extensions, report_as_note()).await?;
    let ending = || ExitStatus(stop.code().unwrap_or(FAILED));
    tokio::select! {
        started = assembled.start(Surroundings::of_command(person)) => started?,
        () = stop.token.cancelled() => {
            assembled.end().await;
            return Ok(Err(ending()));
        }
    }
    let picking = async {
        if let Some(tools) = tools {
            awaited::selected(&assembled.pipeline, tools).await;
            assembled.pipeline.change(|table| table.select(tools)).context("--tools")?;
        }
        let call = pick(&assembled.pipeline)?;
        awaited::named(&assembled.pipeline, &call.name).await;
        anyhow::Ok(call)
    };
    let picked = tokio::select! {
        picked = picking => Some(picked),
        () = stop.token.cancelled() => None,
    };
    let call = match picked {
        Some(Ok(call)) => call,
        Some(Err(error)) => {
            assembled.end().await;
            return Err(error);
        }
        None => {
            assembled.end().await;
            return Ok(Err(ending()));
        }
    };
    let Call { name, arguments, bounds } = call;
    assembled.pipeline.bound_own(Bounds { deadline: None, ..bounds.clone() });
    let calling = async {
        match assembled.pipeline.ready_within(bounds, Caller::Person, "call-1", &name, arguments.clone()).await {
            Ok(ready) => {
                let record = ready.record();
                let done = ready.run(Arc::new(|_, _| {}), Arc::new(|_| {})).await;
                (done.output, done.duration_ms, record.calls())
            }
            Err(error) => (failed(&error), None, None),
        }
    };
    let called = tokio::select! {
        done = calling => Some(done),
        () = stop.token.cancelled() => None,
    };
    assembled.end().await;
    let Some((output, duration_ms, nested_calls)) = called else { return Ok(Err(ending())) };
    Ok(Ok(Called { name, arguments, output, duration_ms, nested_calls }))
}
