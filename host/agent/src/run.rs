//! The loop: ask the model, run the tools it calls, ask again, until it calls none.

use std::{path::PathBuf, sync::Arc, time::Duration};

use atoll_table::{
    Content, Error, ToolOutput, batch,
    model::{ModelEvent, ModelProvider, ModelRequest, ThinkingLevel},
    nesting::NestedCalls,
};
use futures::{StreamExt as _, future::join_all};
use tokio_util::sync::CancellationToken;

use crate::{
    answer::Answer,
    context_files::ContextFile,
    event::{Event, PartialResult, Sink, ToolResult},
    message::{AssistantMessage, Message, StopReason, ToolCall, ToolResultMessage, UserMessage, to_prompt},
    models::Chosen,
    nested_calls::NestedEvent,
    pipeline::{Caller, Done, Pipeline, Ready, failed},
    prompt,
    session::{Session, SessionError},
    time::now_ms,
};

/// How much longer than the server a provider may stay silent before the host gives up on the provider itself.
const PROVIDER_GRACE: Duration = Duration::from_secs(5);

/// What every unstarted call of a stopped run gets.
const STOPPED: &str = "The user stopped the run before this call was carried out.";
/// What every call of an answer gets that was cut off.
const CUT_OFF: &str = "This call was not carried out: the answer it is part of reached the limit on its length, so its \
arguments may be incomplete. Call again with less in one answer.";

/// An agent in a session.
pub struct Agent {
    /// The tools.
    pub pipeline: Pipeline,
    /// What asks the model.
    pub provider: Arc<dyn ModelProvider>,
    /// The model.
    pub chosen: Chosen,
    /// The session.
    pub session: Session,
    /// Instructions from files.
    pub context: Vec<ContextFile>,
    /// Where it works.
    pub cwd: PathBuf,
    /// How long a server may stay silent, in milliseconds.
    pub idle_timeout_ms: u64,
    /// Who is told what happens.
    pub sink: Sink,
    /// Stops the run.
    pub stop: CancellationToken,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The last answer.
    pub answer: Option<AssistantMessage>,
    /// The user stopped it.
    pub aborted: bool,
}

impl Agent {
    fn tell(&self, event: &Event) {
        (self.sink)(event);
    }

    /// Appends a message and tells of it.
    fn add(&mut self, message: Message, added: &mut Vec<Message>) -> Result<(), SessionError> {
        self.session.append_message(&message)?;
        self.tell(&Event::MessageStart { message: message.clone() });
        self.tell(&Event::MessageEnd { message: message.clone() });
        added.push(message);
        Ok(())
    }

    /// Carries out a prompt. However it ends, whoever is told what happens is told that it has ended.
    ///
    /// # Errors
    /// If the session can not be written. What the model or a tool does wrong is part of the outcome.
    pub async fn prompt(&mut self, content: Vec<Content>) -> Result<Outcome, SessionError> {
        self.tell(&Event::AgentStart);
        let mut added = Vec::new();
        let outcome = self.turns(content, &mut added).await;
        self.tell(&Event::AgentEnd { messages: added, will_retry: false });
        let aborted = outcome.as_ref().map_or_else(|_| self.stop.is_cancelled(), |outcome| outcome.aborted);
        self.tell(&Event::AgentSettled { aborted });
        outcome
    }

    /// Takes turns until the model calls no more tools.
    async fn turns(&mut self, content: Vec<Content>, added: &mut Vec<Message>) -> Result<Outcome, SessionError> {
        let model = self.chosen.model.clone();
        self.session.note_model(&model.provider, &model.id)?;
        self.session.note_thinking(&serde_json::to_value(self.chosen.thinking).unwrap_or_default())?;
        self.tell(&Event::TurnStart);
        let active = self.pipeline.table(|table| table.active());
        let sections = prompt::sections(&active, &self.context, &self.cwd);
        if let Some(change) = prompt::update(self.session.messages(), &active, &sections) {
            self.add(Message::System(change), added)?;
        }
        self.add(Message::User(UserMessage { content, timestamp: now_ms() }), added)?;
        loop {
            let answer = self.ask().await;
            let mut results = Vec::new();
            let goes_on = self.carry_out(&answer, added, &mut results).await;
            self.tell(&Event::TurnEnd { message: Message::Assistant(answer.clone()), tool_results: results });
            if !goes_on? {
                let aborted = self.stop.is_cancelled() || answer.stop_reason == StopReason::Aborted;
                return Ok(Outcome { answer: Some(answer), aborted });
            }
            self.tell(&Event::TurnStart);
        }
    }

    /// Keeps an answer and runs its calls. Whether there is to be another turn.
    async fn carry_out(
        &mut self,
        answer: &AssistantMessage,
        added: &mut Vec<Message>,
        results: &mut Vec<Message>,
    ) -> Result<bool, SessionError> {
        // Calls of an answer that is not kept must not run: nobody could see later who changed what they changed.
        self.session.append_message(&Message::Assistant(answer.clone()))?;
        added.push(Message::Assistant(answer.clone()));
        let terminate = self.run_calls(answer, added, results).await?;
        Ok(!results.is_empty() && !terminate && !self.stop.is_cancelled())
    }

    /// One request.
    async fn ask(&self) -> AssistantMessage {
        let model = &self.chosen.model;
        let request = ModelRequest {
            id: uuid::Uuid::new_v4().to_string(),
            model: model.clone(),
            key: self.chosen.key.clone(),
            header_secrets: self.chosen.header_secrets.clone(),
            messages: to_prompt(self.session.messages(), &model.provider, &model.id),
            tools: self.pipeline.table(|table| table.declarations()),
            thinking: if model.reasoning { self.chosen.thinking } else { ThinkingLevel::Off },
            idle_timeout_ms: self.idle_timeout_ms,
        };
        let mut answer = Answer::new(model, self.chosen.prices, &self.sink);
        let patience = Duration::from_millis(self.idle_timeout_ms) + PROVIDER_GRACE;
        let silent =
            || Error::Timeout(format!("the provider of {} has been silent for {} s", model.api, patience.as_secs()));
        let receive = async {
            let mut events = match tokio::time::timeout(patience, self.provider.complete(request)).await {
                Ok(Ok(events)) => events,
                Ok(Err(error)) => return answer.fail(error.to_string()),
                Err(_) => return answer.fail(silent().to_string()),
            };
            loop {
                let event = match tokio::time::timeout(patience, events.next()).await {
                    Ok(Some(event)) => event,
                    Ok(None) => {
                        let error = Error::Failed("the provider ended its answer without saying so".to_owned());
                        ModelEvent::Failed { error, status: None, retry_after_ms: None }
                    }
                    Err(_) => ModelEvent::Failed { error: silent(), status: None, retry_after_ms: None },
                };
                if answer.take(event) {
                    return;
                }
            }
        };
        let stopped = tokio::select! {
            () = receive => false,
            () = self.stop.cancelled() => true,
        };
        if stopped {
            answer.abort();
        }
        answer.finish()
    }

    /// Runs the calls of an answer; adds their results in the order of the calls. Whether the run should end.
    async fn run_calls(
        &mut self,
        answer: &AssistantMessage,
        added: &mut Vec<Message>,
        results: &mut Vec<Message>,
    ) -> Result<bool, SessionError> {
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
                    () = self.stop.cancelled() => Err(ToolOutput::error(STOPPED)),
                    ready = self.pipeline.ready(Caller::Model, &call.id, &call.name, call.arguments.clone()) => {
                        ready.map_err(|error| failed(&error))
                    }
                }
            };
            ready.push(checked);
        }
        let one_by_one = batch::runs_in_order(ready.iter().flatten().map(Ready::mode));
        let running = calls.iter().zip(ready).map(|(call, ready)| self.run_call(call, ready));
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
            self.add(message.clone(), added)?;
            results.push(message);
        }
        Ok(terminate)
    }

    /// Runs one call, unless the run has been stopped; gives the record of the calls that it made, too. Dropping the
    /// tool's future stops it and all it started.
    async fn run_call(&self, call: &ToolCall, ready: Result<Ready, ToolOutput>) -> (Done, Option<NestedCalls>) {
        let without_running = |output| (Done { output, error: None, duration_ms: None }, None);
        let (done, nested_calls) = match ready {
            Err(output) => without_running(output),
            Ok(_) if self.stop.is_cancelled() => without_running(ToolOutput::error(STOPPED)),
            Ok(ready) => {
                let (sink, shown) = (Arc::clone(&self.sink), call.clone());
                let progress = Arc::new(move |content, details| {
                    sink(&Event::ToolExecutionUpdate {
                        tool_call_id: shown.id.clone(),
                        tool_name: shown.name.clone(),
                        args: shown.arguments.clone(),
                        partial_result: PartialResult { content, details },
                        parent_tool_call_id: None,
                    });
                });
                let sink = Arc::clone(&self.sink);
                let watch = Arc::new(move |event: NestedEvent| sink(&event.into()));
                let record = ready.record();
                let began = std::time::Instant::now();
                let done = tokio::select! {
                    done = ready.run(progress, watch) => done,
                    () = self.stop.cancelled() => {
                        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                        let output = ToolOutput::error("The user stopped this call.");
                        Done { output, error: None, duration_ms: Some(ms) }
                    }
                };
                (done, record.calls())
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

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
