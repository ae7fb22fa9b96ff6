//! The loop: ask the model, run the tools it calls, ask again, until it calls none.

use std::{path::PathBuf, sync::Arc, time::Duration};

use atoll_table::{
    Content, Error, ToolOutput,
    model::{ModelEvent, ModelProvider, ModelRequest, ThinkingLevel},
};
use futures::{StreamExt as _, future::join_all};
use tokio_util::sync::CancellationToken;

use crate::{
    answer::Answer,
    context_files::ContextFile,
    event::{Event, PartialResult, Sink, ToolResult},
    message::{AssistantMessage, Message, StopReason, ToolCall, ToolResultMessage, UserMessage, to_prompt},
    models::Chosen,
    pipeline::{Caller, Pipeline, Ready, failed},
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
        let one_by_one = ready.iter().any(|call| call.as_ref().is_ok_and(Ready::is_sequential));
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
        let terminate = outputs.iter().all(|(output, _)| output.terminate);
        for (call, (output, duration_ms)) in calls.into_iter().zip(outputs) {
            let message = Message::ToolResult(ToolResultMessage {
                tool_call_id: call.id,
                tool_name: call.name,
                content: output.content,
                details: output.details,
                is_error: output.is_error,
                duration_ms,
                timestamp: now_ms(),
            });
            self.add(message.clone(), added)?;
            results.push(message);
        }
        Ok(terminate)
    }

    /// Runs one call, unless the run has been stopped. Dropping the tool's future stops it and all it started.
    async fn run_call(&self, call: &ToolCall, ready: Result<Ready, ToolOutput>) -> (ToolOutput, Option<u64>) {
        let (output, duration_ms) = match ready {
            Err(output) => (output, None),
            Ok(_) if self.stop.is_cancelled() => (ToolOutput::error(STOPPED), None),
            Ok(ready) => {
                let (sink, shown) = (Arc::clone(&self.sink), call.clone());
                let progress = Arc::new(move |content, details| {
                    sink(&Event::ToolExecutionUpdate {
                        tool_call_id: shown.id.clone(),
                        tool_name: shown.name.clone(),
                        args: shown.arguments.clone(),
                        partial_result: PartialResult { content, details },
                    });
                });
                let began = std::time::Instant::now();
                tokio::select! {
                    (output, ms) = ready.run(progress) => (output, Some(ms)),
                    () = self.stop.cancelled() => {
                        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                        (ToolOutput::error("The user stopped this call."), Some(ms))
                    }
                }
            }
        };
        self.tell(&Event::ToolExecutionEnd {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            result: ToolResult::from(&output),
            is_error: output.is_error,
            duration_ms,
        });
        (output, duration_ms)
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Mutex};

    use atoll_table::{
        Invocation, Progress, Table, ToolRunner,
        model::DoneReason,
        tool::{Annotations, ExecutionMode, Exposure, Tool},
    };
    use futures::{
        FutureExt as _,
        future::{BoxFuture, pending},
        stream::{self, BoxStream},
    };
    use serde_json::Value;

    use super::*;
    use crate::models::Models;

    /// A model that calls its tool each time it is asked, and that tool.
    struct Restless {
        /// What the tool was told to do.
        ran: Mutex<Vec<&'static str>>,
        /// Preparing never ends; this is told that it began.
        hangs: Option<CancellationToken>,
    }

    impl ModelProvider for Restless {
        fn apis(&self) -> Vec<String> {
            Vec::new()
        }

        fn complete(&self, _: ModelRequest) -> BoxFuture<'_, Result<BoxStream<'static, ModelEvent>, Error>> {
            let done = ModelEvent::Done {
                reason: DoneReason::ToolUse,
                raw_reason: None,
                response_model: None,
                response_id: None,
            };
            let call = ModelEvent::CallStart { index: 0, id: "c".to_owned(), name: "work".to_owned() };
            let events = [call, ModelEvent::CallEnd(0), done];
            async move { Ok(stream::iter(events).boxed()) }.boxed()
        }
    }

    impl ToolRunner for Restless {
        fn prepare(&self, _: String, arguments: Value) -> BoxFuture<'_, Result<Value, Error>> {
            self.ran.lock().unwrap().push("prepare");
            async move {
                if let Some(began) = &self.hangs {
                    began.cancel();
                    pending::<()>().await;
                }
                Ok(arguments)
            }
            .boxed()
        }

        fn call(&self, _: Invocation, _: Progress) -> BoxFuture<'_, Result<ToolOutput, Error>> {
            self.ran.lock().unwrap().push("call");
            async { Ok(ToolOutput::default()) }.boxed()
        }

        fn allowed(&self) -> Vec<String> {
            Vec::new()
        }
    }

    /// The kinds of events so far.
    type Seen = Arc<Mutex<Vec<String>>>;

    fn agent(restless: &Arc<Restless>, session: Session) -> (Agent, Seen) {
        let tool = Tool {
            name: "work".to_owned(),
            label: String::new(),
            description: String::new(),
            parameters: serde_json::json!({"type": "object"}),
            output_schema: None,
            prompt_snippet: None,
            prompt_guidelines: Vec::new(),
            exposure: Exposure::Direct,
            default_active: true,
            execution_mode: ExecutionMode::Parallel,
            namespace: None,
            annotations: Annotations::default(),
            prepares: true,
        };
        let runner: Arc<dyn ToolRunner> = Arc::<Restless>::clone(restless);
        let mut table = Table::new();
        table.register("p", vec![tool], &runner).unwrap();
        let seen = Seen::default();
        let sink = Arc::clone(&seen);
        let agent = Agent {
            pipeline: Pipeline::new(table),
            provider: Arc::<Restless>::clone(restless),
            chosen: Models::playing("").unwrap(),
            session,
            context: Vec::new(),
            cwd: PathBuf::from("/p"),
            idle_timeout_ms: 1_000,
            sink: Arc::new(move |event: &Event| {
                let event = serde_json::to_value(event).unwrap();
                let mut shown = event["type"].as_str().unwrap().to_owned();
                for detail in [&event["message"]["role"], &event["willRetry"], &event["aborted"]] {
                    if !detail.is_null() && shown != "turn_end" {
                        shown = format!("{shown} {detail}");
                    }
                }
                sink.lock().unwrap().push(shown);
            }),
            stop: CancellationToken::new(),
        };
        (agent, seen)
    }

    /// Runs an agent whose session breaks at the event of this kind; the events from there on.
    async fn broken_at(kind: &'static str, restless: &Arc<Restless>) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let mut session = Session::new(Some(folder.path()), Path::new("/p"));
        session.append_message(&Message::User(UserMessage::default())).unwrap();
        // A limit on the size of files would do the same, but for the whole process.
        let (mut agent, seen) = agent(restless, session);
        let breaks = agent.session.breaks();
        let sink = Arc::clone(&agent.sink);
        agent.sink = Arc::new(move |event: &Event| {
            sink(event);
            if serde_json::to_value(event).unwrap()["type"] == kind {
                breaks.cancel();
            }
        });
        let error = agent.prompt(vec![Content::text("go")]).await.unwrap_err();
        assert!(matches!(error, SessionError::Unwritable { .. }), "{error}");
        let seen = seen.lock().unwrap();
        let at = seen.iter().position(|shown| shown.split(' ').next() == Some(kind)).unwrap();
        seen[at..].to_vec()
    }

    const CLOSED: [&str; 2] = ["agent_end false", "agent_settled false"];

    #[tokio::test]
    async fn a_session_that_can_not_be_written_ends_the_run_in_order() {
        let restless = Arc::new(Restless { ran: Mutex::default(), hangs: None });
        assert_eq!(broken_at("agent_start", &restless).await[1..], CLOSED);
        assert_eq!(broken_at("turn_start", &restless).await[1..], CLOSED);
        assert!(restless.ran.lock().unwrap().is_empty());
    }

    /// The message used to be lost, the tools had run, and no event said that it was over.
    #[tokio::test]
    async fn calls_of_an_answer_that_can_not_be_kept_are_not_carried_out() {
        let restless = Arc::new(Restless { ran: Mutex::default(), hangs: None });
        let seen = broken_at("message_update", &restless).await;
        assert_eq!(seen[seen.len() - 4..], ["message_end \"assistant\"", "turn_end", CLOSED[0], CLOSED[1]]);
        assert!(restless.ran.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_result_that_can_not_be_kept_ends_the_run_in_order() {
        let restless = Arc::new(Restless { ran: Mutex::default(), hangs: None });
        let seen = broken_at("tool_execution_end", &restless).await;
        assert_eq!(seen[1..], ["turn_end", CLOSED[0], CLOSED[1]]);
        assert_eq!(*restless.ran.lock().unwrap(), ["prepare", "call"]);
    }

    /// Ctrl-C used to go unseen until the arguments were prepared.
    #[tokio::test]
    async fn a_run_can_be_stopped_while_arguments_are_prepared() {
        let began = CancellationToken::new();
        let restless = Arc::new(Restless { ran: Mutex::default(), hangs: Some(began.clone()) });
        let (mut agent, _) = agent(&restless, Session::new(None, Path::new("/p")));
        let stop = agent.stop.clone();
        tokio::spawn(async move {
            began.cancelled().await;
            stop.cancel();
        });
        let outcome = tokio::time::timeout(Duration::from_secs(30), agent.prompt(vec![Content::text("go")])).await;
        assert!(outcome.unwrap().unwrap().aborted);
        assert_eq!(*restless.ran.lock().unwrap(), ["prepare"]);
        let Some(Message::ToolResult(result)) = agent.session.messages().last() else { panic!("no result") };
        assert_eq!((result.content.as_slice(), result.duration_ms), (&[Content::text(STOPPED)][..], None));
    }
}
