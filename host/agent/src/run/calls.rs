//! The calls of one answer: announced, looked at one after the other, run beside each other, and kept in their order.

use std::sync::Arc;

use atoll_table::{ToolOutput, batch, nesting::NestedCalls};
use futures::future::join_all;
use tokio_util::sync::CancellationToken;

use super::{Agent, Run};
use crate::{
    event::{Event, PartialResult, ToolResult},
    message::{AssistantMessage, Message, StopReason, ToolCall, ToolResultMessage},
    nested_calls::NestedEvent,
    pipeline::{Caller, Done, Ready, failed},
    session::SessionError,
    shape::shaped,
    time::now_ms,
};

/// What every unstarted call of a stopped run gets.
pub(super) const STOPPED: &str = "The user stopped the run before this call was carried out.";
/// What every call of an answer gets that was cut off.
const CUT_OFF: &str = "This call was not carried out: the answer it is part of reached the limit on its length, so its \
arguments may be incomplete. Call again with less in one answer.";

impl Agent {
    /// Runs the calls of an answer; adds their results in the order of the calls. Whether the run should end.
    pub(super) async fn run_calls(&self, answer: &AssistantMessage, run: &mut Run) -> Result<bool, SessionError> {
        let calls = answer.tool_calls();
        if calls.is_empty() || matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
            return Ok(false);
        }
        for call in &calls {
            self.tell(&Event::ToolExecutionStart {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                args: call.arguments.clone(),
                parent_tool_call_id: None,
            });
        }
        let mut ready = Vec::new();
        for call in &calls {
            let checked = if answer.stop_reason == StopReason::Length {
                Err(ToolOutput::error(CUT_OFF))
            } else if let Some(reason) = &call.arguments_error {
                Err(ToolOutput::error(format!("This call was not carried out: {reason}.")))
            } else {
                // A tool may take its time to prepare arguments.
                tokio::select! {
                    biased;
                    () = run.stop.cancelled() => Err(ToolOutput::error(STOPPED)),
                    ready = self.pipeline.ready(Caller::Model, &call.id, &call.name, call.arguments.clone()) => {
                        ready.map_err(|error| failed(&error))
                    }
                }
            };
            ready.push(checked);
        }
        let one_by_one = batch::runs_in_order(ready.iter().flatten().map(Ready::mode));
        let stop = run.stop.clone();
        let running = calls.iter().zip(ready).map(|(call, ready)| self.run_call(call, ready, &stop));
        let outputs = if one_by_one {
            let mut outputs = Vec::new();
            for call in running {
                outputs.push(call.await);
            }
            outputs
        } else {
            join_all(running).await
        };
        let terminate = batch::ends_run(outputs.iter().map(|(done, _)| &done.output));
        for (call, (Done { output, duration_ms, .. }, nested_calls)) in calls.into_iter().zip(outputs) {
            let message = Message::ToolResult(ToolResultMessage {
                tool_call_id: call.id,
                tool_name: call.name,
                content: output.content,
                details: output.details,
                nested_calls: nested_calls.and_then(|calls| serde_json::to_value(calls).ok()),
                is_error: output.is_error,
                duration_ms,
                timestamp: now_ms(),
            });
            let (id, message) = self.add(message, run).await?;
            run.turn.results.push(message);
            run.turn.result_ids.push(id);
        }
        Ok(terminate)
    }

    /// A result as its tool wants a model to get it.
    async fn for_the_model(&self, done: Done, tool: String) -> Done {
        if done.output.aside.is_none() {
            return done;
        }
        let (spill, output) = (self.pipeline.spill(), done.output.clone());
        // It may write a file.
        let shaping = tokio::task::spawn_blocking(move || shaped(output, &tool, spill.as_deref()));
        match shaping.await {
            Ok(output) => Done { output, ..done },
            Err(_) => done,
        }
    }

    /// Runs one call, unless the run has been stopped; gives the record of the calls that it made, too. Dropping the
    /// tool's future stops it and all it started.
    async fn run_call(
        &self,
        call: &ToolCall,
        ready: Result<Ready, ToolOutput>,
        stop: &CancellationToken,
    ) -> (Done, Option<NestedCalls>) {
        let without_running = |output| (Done { output, error: None, duration_ms: None }, None);
        let (done, nested_calls) = match ready {
            Err(output) => without_running(output),
            Ok(_) if stop.is_cancelled() => without_running(ToolOutput::error(STOPPED)),
            Ok(ready) => {
                let (teller, shown) = (self.teller(), call.clone());
                let progress = Arc::new(move |content, details| {
                    teller.tell(&Event::ToolExecutionUpdate {
                        tool_call_id: shown.id.clone(),
                        tool_name: shown.name.clone(),
                        args: shown.arguments.clone(),
                        partial_result: PartialResult { content, details },
                        parent_tool_call_id: None,
                    });
                });
                let teller = self.teller();
                let watch = Arc::new(move |event: NestedEvent| teller.tell(&event.into()));
                let (record, shown, tool) = (ready.record(), ready.shown(), call.name.clone());
                let began = std::time::Instant::now();
                let done = tokio::select! {
                    done = ready.run(progress, watch) => done,
                    () = stop.cancelled() => {
                        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                        let output = shown.before(ToolOutput::error("The user stopped this call."), &record);
                        Done { output, error: None, duration_ms: Some(ms) }
                    }
                };
                (self.for_the_model(done, tool).await, record.calls())
            }
        };
        self.tell(&Event::ToolExecutionEnd {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            result: ToolResult::from(&done.output),
            is_error: done.output.is_error,
            duration_ms: done.duration_ms,
            parent_tool_call_id: None,
        });
        (done, nested_calls)
    }
}
