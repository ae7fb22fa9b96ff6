//! The loop: ask the model, run the tools it calls, ask again, until it calls none and nobody has anything to add.
//!
//! What is said is appended to the session before anybody is told that it was said.

mod calls;

use std::{path::PathBuf, sync::Arc, time::Duration};

use atoll_table::{
    Content, Error,
    extension::{EventKind, Extension},
    model::{ModelEvent, ModelRequest, PromptMessage, ThinkingLevel},
};
use futures::StreamExt as _;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    answer::Answer,
    context_files::ContextFile,
    conversation::{Asked, Conversation},
    event::{Event, Sink},
    extensions::{BeforeStart, Draft, Extensions, TurnReply},
    loadout::Loadout,
    message::{AssistantMessage, Message, StopReason, SystemMessage, to_prompt},
    pipeline::Pipeline,
    prompt,
    queue::Waiting,
    session::SessionError,
    time::now_ms,
};

/// How much longer than the server a provider may stay silent before the host gives up on the provider itself.
pub(crate) const PROVIDER_GRACE: Duration = Duration::from_secs(5);
/// How many requests in a row may be made that the model did not ask for by calling a tool. An extension that always wants one
/// more must not spend the user's money for ever.
const MOST_URGED: u32 = 50;

/// An agent in a session.
pub struct Agent {
    /// The tools.
    pub pipeline: Pipeline,
    /// Which of them a request declares, and how.
    pub loadout: Loadout,
    /// The session, the model, and what waits to be said.
    pub conversation: Conversation,
    /// Who is asked and told beside the user.
    pub extensions: Extensions,
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

/// Tells of events: whoever shows them, and extensions. Clones tell the same.
#[derive(Clone)]
pub struct Teller {
    /// Who shows them.
    pub sink: Sink,
    /// Extensions.
    pub extensions: Extensions,
}

impl Teller {
    /// Tells of an event.
    pub fn tell(&self, event: &Event) {
        (self.sink)(event);
        if let Some(kind) = event.observed_as() {
            self.extensions.observe(kind, || event.fields());
        }
    }
}

/// One answer and what came of it.
#[derive(Default)]
struct Turn {
    answer_id: Option<String>,
    results: Vec<Message>,
    result_ids: Vec<String>,
}

/// A run under way.
struct Run {
    /// Stops it.
    stop: CancellationToken,
    /// The messages it has added.
    added: Vec<Message>,
    turn: Turn,
}

/// What begins a run.
enum Beginning {
    /// The user said something.
    Prompt(Vec<Content>),
    /// Somebody else did, and it was waiting.
    Waiting(Vec<Waiting>),
}

impl Agent {
    fn teller(&self) -> Teller {
        Teller { sink: Sink::clone(&self.sink), extensions: self.extensions.clone() }
    }

    fn tell(&self, event: &Event) {
        (self.sink)(event);
        if let Some(kind) = event.observed_as() {
            self.extensions.observe(kind, || event.fields());
        }
    }

    /// Appends a message, as extensions made it, and tells of it. Gives its entry's id, and the message as it was kept.
    async fn add(&self, message: Message, run: &mut Run) -> Result<(String, Message), SessionError> {
        self.extensions.observe(EventKind::MessageStart, || json!({"message": message}));
        let message = self.extensions.message_end(&run.stop, message).await;
        let id = self.conversation.session.with(|session| session.append_message(&message))?;
        (self.sink)(&Event::MessageStart { message: message.clone() });
        (self.sink)(&Event::MessageEnd { message: message.clone() });
        run.added.push(message.clone());
        Ok((id, message))
    }

    /// Carries out a prompt. However it ends, whoever is told what happens is told that it has ended.
    ///
    /// # Errors
    /// If the session can not be written. What the model or a tool does wrong is part of the outcome.
    pub async fn prompt(&self, content: Vec<Content>) -> Result<Outcome, SessionError> {
        self.run(Beginning::Prompt(content)).await
    }

    /// Carries out what waits and does not wait for the user, until nothing does. The last outcome; none if nothing
    /// waited.
    ///
    /// # Errors
    /// As [`Self::prompt`].
    pub async fn settle(&self) -> Result<Option<Outcome>, SessionError> {
        let mut last = None;
        // What waits once there were too many requests stays where it is.
        while !self.conversation.is_urged_beyond(MOST_URGED) {
            let waiting = self.conversation.queue.take_at_end();
            if waiting.is_empty() {
                break;
            }
            self.tell_queue();
            let outcome = self.run(Beginning::Waiting(waiting)).await?;
            let failed = outcome.answer.as_ref().is_some_and(|answer| answer.stop_reason == StopReason::Error);
            let ends = outcome.aborted || failed;
            last = Some(outcome);
            if ends {
                break;
            }
        }
        Ok(last)
    }

    async fn run(&self, beginning: Beginning) -> Result<Outcome, SessionError> {
        let running = self.conversation.run(&self.stop);
        let mut run = Run { stop: running.stop.clone(), added: Vec::new(), turn: Turn::default() };
        self.tell(&Event::AgentStart);
        let outcome = self.turns(beginning, &mut run).await;
        self.tell(&Event::AgentEnd { messages: std::mem::take(&mut run.added), will_retry: false });
        let aborted = outcome.as_ref().map_or_else(|_| run.stop.is_cancelled(), |outcome| outcome.aborted);
        drop(running);
        self.tell(&Event::AgentSettled { aborted });
        self.extensions.report_repeated();
        outcome
    }

    /// The sections of the system prompt for the tools that are active now.
    fn sections(&self) -> Map<String, Value> {
        let declared = self.loadout.declared(&self.pipeline);
        let mut sections = prompt::sections(&declared.tools, &self.context, &self.cwd);
        self.conversation.add_sections(&mut sections);
        sections
    }

    /// What extensions have to say before a run begins.
    async fn begin(&self, content: &[Content], run: &Run) -> BeforeStart {
        if !self.extensions.wants(EventKind::BeforeAgentStart) {
            return BeforeStart::default();
        }
        let sections = self.sections();
        let texts: Vec<&str> = sections.values().filter_map(Value::as_str).collect();
        let state = BeforeStart {
            content: content.to_vec(),
            tools: self.pipeline.table(|table| table.active().iter().map(|entry| entry.tool.name.clone()).collect()),
            prompt: texts.join("\n\n"),
            sections,
            ..BeforeStart::default()
        };
        self.extensions.before_start(&run.stop, state).await
    }

    /// Takes turns until the model calls no more tools and nobody has anything to add.
    async fn turns(&self, beginning: Beginning, run: &mut Run) -> Result<Outcome, SessionError> {
        let chosen = self.conversation.asked().chosen;
        self.conversation.session.with(|session| {
            session.note_model(&chosen.model.provider, &chosen.model.id)?;
            session.note_thinking(&serde_json::to_value(chosen.thinking).unwrap_or_default())
        })?;
        let waiting = match beginning {
            Beginning::Prompt(content) => {
                self.conversation.count_urged(false);
                [Waiting::User(content)].into_iter().chain(self.conversation.queue.take_next_turn()).collect()
            }
            Beginning::Waiting(waiting) => waiting,
        };
        let said = match waiting.first() {
            Some(Waiting::User(content)) => content.as_slice(),
            Some(Waiting::Custom(message)) => message.content.as_slice(),
            None => &[],
        };
        let BeforeStart { prompt, is_changed, messages: injected, .. } = self.begin(said, run).await;
        if is_changed {
            self.conversation.set_instructions(Some(prompt));
        }
        let mut index = 0;
        self.tell_turn(index);
        // Extensions may have changed what there is.
        let declared = self.loadout.declared(&self.pipeline);
        let sections = self.sections();
        let change = self
            .conversation
            .session
            .with(|session| prompt::update(session.messages(), &declared.declarations, &sections));
        if let Some(change) = change {
            self.add(Message::System(change), run).await?;
        }
        for message in waiting.into_iter().map(Waiting::into_message) {
            self.add(message, run).await?;
        }
        for message in injected {
            self.add(Waiting::Custom(message).into_message(), run).await?;
        }
        loop {
            run.turn = Turn::default();
            let answer = self.ask(run).await;
            let goes_on = self.carry_out(&answer, run).await;
            let results = run.turn.results.clone();
            (self.sink)(&Event::TurnEnd { message: Message::Assistant(answer.clone()), tool_results: results });
            let mut goes_on = goes_on?;
            self.conversation.count_urged(!goes_on);
            goes_on |= self.add_to_turn(EventKind::TurnEnd, &answer, index, run).await?;
            let is_over = |run: &Run| run.stop.is_cancelled() || answer.stop_reason == StopReason::Aborted;
            let mut waiting = Vec::new();
            if self.conversation.is_urged_beyond(MOST_URGED) {
                // What waits stays where it is.
                self.report_urged();
                return Ok(Outcome { aborted: is_over(run), answer: Some(answer) });
            }
            if !is_over(run) && answer.stop_reason != StopReason::Error {
                waiting = self.conversation.queue.take_steering();
            }
            if !goes_on && waiting.is_empty() {
                goes_on = self.add_to_turn(EventKind::AgentBeforeSettle, &answer, index, run).await?;
                if !is_over(run) && answer.stop_reason != StopReason::Error {
                    waiting = self.conversation.queue.take_at_end();
                }
            }
            if is_over(run) || (!goes_on && waiting.is_empty()) {
                return Ok(Outcome { aborted: is_over(run), answer: Some(answer) });
            }
            index += 1;
            self.tell_turn(index);
            if !waiting.is_empty() {
                self.tell_queue();
            }
            for message in waiting.into_iter().map(Waiting::into_message) {
                self.add(message, run).await?;
            }
        }
    }

    /// Says that extensions wanted one more request too often.
    fn report_urged(&self) {
        let reason = format!(
            "{MOST_URGED} requests in a row were made because an extension wanted one more, and no more are; send a prompt \
             to go on"
        );
        let urging = [EventKind::TurnEnd, EventKind::AgentBeforeSettle, EventKind::AgentSettled];
        let may_have = |one: &Arc<dyn Extension>| urging.iter().any(|kind| one.subscription().wants(*kind));
        let all = self.extensions.all();
        let names: Vec<&str> = all.iter().filter(|one| may_have(one)).map(|one| one.name()).collect();
        self.extensions.report(&names.join(" or "), Some(EventKind::TurnEnd), &Error::Failed(reason));
    }

    fn tell_turn(&self, index: u32) {
        self.tell(&Event::TurnStart);
        self.extensions.observe(EventKind::TurnStart, || json!({"turnIndex": index, "timestamp": now_ms()}));
    }

    fn tell_queue(&self) {
        let (steering, follow_up) = self.conversation.queue.shown();
        self.tell(&Event::QueueUpdate { steering, follow_up });
    }

    /// Adds what extensions want at the end of a turn. Whether one of them wants one more request.
    async fn add_to_turn(
        &self,
        kind: EventKind,
        answer: &AssistantMessage,
        index: u32,
        run: &mut Run,
    ) -> Result<bool, SessionError> {
        let known = |id: &str| self.conversation.session.with(|session| session.has_entry(id));
        let outcome = match answer.stop_reason {
            StopReason::Error => "error",
            StopReason::Aborted => "aborted",
            _ => "completed",
        };
        let fields = || {
            json!({
                "turnIndex": index,
                "message": Message::Assistant(answer.clone()),
                "toolResults": run.turn.results,
                "outcome": outcome,
                "messageEntryId": run.turn.answer_id,
                "toolResultEntryIds": run.turn.result_ids,
            })
        };
        let TurnReply { entries, go_on } = self.extensions.turn(kind, &run.stop, &known, fields).await;
        for draft in entries {
            let session = &self.conversation.session;
            let appended = match draft {
                Draft::Message(message) => {
                    self.add(Waiting::Custom(message).into_message(), run).await?;
                    continue;
                }
                Draft::Custom { custom_type, data } => {
                    session.with(|session| session.append_custom(&custom_type, data))
                }
                Draft::Edit { target, replacement } => {
                    session.with(|session| session.append_edit(&target, replacement))
                }
                Draft::Compaction { summary, first_kept, tokens_before, details } => {
                    self.loadout.begin_anew();
                    session.with(|session| session.append_compaction(&summary, &first_kept, tokens_before, details))
                }
            };
            appended?;
            if let Some(entry) = session.with(|session| session.last_entry().cloned()) {
                self.tell(&Event::EntryAppended { entry: Value::Object(entry) });
            }
        }
        Ok(go_on)
    }

    /// Keeps an answer and runs its calls. Whether there is to be another turn.
    async fn carry_out(&self, answer: &AssistantMessage, run: &mut Run) -> Result<bool, SessionError> {
        // Calls of an answer that is not kept must not run: nobody could see later who changed what they changed.
        let message = Message::Assistant(answer.clone());
        let id = self.conversation.session.with(|session| session.append_message(&message))?;
        run.turn.answer_id = Some(id);
        run.added.push(message);
        let terminate = self.run_calls(answer, run).await?;
        Ok(!run.turn.results.is_empty() && !terminate && !run.stop.is_cancelled())
    }

    /// What the model is sent.
    async fn messages(&self, provider: &str, model: &str, run: &Run) -> Vec<PromptMessage> {
        let instructions = self.conversation.instructions();
        let session = &self.conversation.session;
        let is_wanted =
            [EventKind::Context, EventKind::ContextWithSystem].into_iter().any(|kind| self.extensions.wants(kind));
        if !is_wanted {
            let mut prompt = session.with(|session| to_prompt(session.messages(), provider, model));
            if let (Some(text), Some(PromptMessage::System(first))) = (instructions, prompt.first_mut()) {
                *first = text;
            }
            return prompt;
        }
        let mut messages = session.with(|session| session.messages().to_vec());
        if let Some(content) = instructions {
            messages.retain(|message| !matches!(message, Message::System(_)));
            messages.insert(0, Message::System(SystemMessage { content, ..SystemMessage::default() }));
        }
        to_prompt(&self.extensions.context(&run.stop, messages).await, provider, model)
    }

    /// One request.
    async fn ask(&self, run: &Run) -> AssistantMessage {
        let Asked { chosen, provider } = self.conversation.asked();
        let model = &chosen.model;
        let request = ModelRequest {
            id: uuid::Uuid::new_v4().to_string(),
            model: model.clone(),
            key: chosen.key.clone(),
            header_secrets: chosen.header_secrets.clone(),
            messages: self.messages(&model.provider, &model.id, run).await,
            tools: self.loadout.declared(&self.pipeline).declarations.clone(),
            thinking: if model.reasoning { chosen.thinking } else { ThinkingLevel::Off },
            idle_timeout_ms: self.idle_timeout_ms,
        };
        let request = self.extensions.before_request(&run.stop, request).await;
        let tell = |event: &Event, so_far: &AssistantMessage| {
            self.tell(event);
            if let Event::MessageUpdate { assistant_message_event, .. } = event {
                self.extensions.observe(EventKind::MessageUpdate, || {
                    let message = Message::Assistant(so_far.clone());
                    json!({"message": message, "assistantMessageEvent": assistant_message_event})
                });
            }
        };
        let mut answer = Answer::new(model, chosen.prices, &tell);
        let patience = Duration::from_millis(self.idle_timeout_ms) + PROVIDER_GRACE;
        let silent =
            || Error::Timeout(format!("the provider of {} has been silent for {} s", model.api, patience.as_secs()));
        let receive = async {
            let mut events = match tokio::time::timeout(patience, provider.complete(request)).await {
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
                self.extensions.observe_stream(model, &event);
                if answer.take(event) {
                    return;
                }
            }
        };
        let stopped = tokio::select! {
            () = receive => false,
            () = run.stop.cancelled() => true,
        };
        if stopped {
            answer.abort();
        }
        let answer = answer.finish();
        let message = self.extensions.message_end(&run.stop, Message::Assistant(answer.clone())).await;
        (self.sink)(&Event::MessageEnd { message: message.clone() });
        match message {
            Message::Assistant(answer) => answer,
            // The role of a message stays what it is.
            _ => answer,
        }
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
