//! What tests of extensions play on: extensions, a model and an agent that do as they are told.

use std::{path::Path, sync::Mutex};

use atoll_table::{
    Origin, Table, Tool, ToolOutput, ToolRunner,
    extension::{Completion, FailureReport, Subscription, Who},
    model::{DoneReason, Model, ModelEvent, ModelProvider, ModelRequest, PromptMessage},
};
use futures::{
    FutureExt as _, StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};

use super::*;
use crate::{
    Agent, Conversation, Pipeline, Session,
    conversation::Asked,
    event::Sink,
    extensions::{session_access::Access, session_access::ModelSource},
    loadout::Loadout,
    models::{Chosen, Models},
    queue::Queue,
};

pub(super) type Answer = Box<dyn Fn(&Event) -> Result<Outcome, Error> + Send + Sync>;

/// An extension that answers as a test says, and keeps what it is told.
pub(super) struct Fake {
    pub(super) name: &'static str,
    pub(super) wants: Subscription,
    pub(super) answer: Answer,
    /// How many events it has room for.
    pub(super) room: usize,
    pub(super) told: Mutex<Vec<Event>>,
    pub(super) log: Log,
}

/// What happened, in order, at all extensions.
pub(super) type Log = Arc<Mutex<Vec<String>>>;

impl Fake {
    pub(super) fn new(
        name: &'static str,
        kinds: &[EventKind],
        answer: impl Fn(&Event) -> Result<Outcome, Error> + Send + Sync + 'static,
    ) -> Self {
        let wants = Subscription { events: kinds.iter().copied().collect(), ..Subscription::default() };
        Self { name, wants, answer: Box::new(answer), room: usize::MAX, told: Mutex::default(), log: Log::default() }
    }

    pub(super) fn kinds(&self) -> Vec<&'static str> {
        self.told.lock().unwrap().iter().filter_map(|event| event.kind().map(EventKind::as_str)).collect()
    }

    pub(super) fn fields(&self, kind: EventKind) -> Value {
        let told = self.told.lock().unwrap();
        let found = told.iter().find_map(|event| match event {
            Event::Other(found, fields) if *found == kind => Some((**fields).clone()),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("{} was never told of {kind}", self.name))
    }
}

impl Extension for Fake {
    fn name(&self) -> &str {
        self.name
    }
    fn origin(&self) -> Origin {
        Origin::User
    }
    fn subscription(&self) -> Arc<Subscription> {
        Arc::new(self.wants.clone())
    }
    fn start(&self, _: StartReason) -> BoxFuture<'_, Result<Arc<Subscription>, Error>> {
        async {
            if self.name == "broken" {
                return Err(Error::Timeout("it did not answer `start` in 10 s".to_owned()));
            }
            Ok(self.subscription())
        }
        .boxed()
    }
    fn ask(&self, event: Event, _: u32) -> BoxFuture<'_, Result<Outcome, Error>> {
        async move {
            let kind = event.kind().map_or("bus", EventKind::as_str);
            self.log.lock().unwrap().push(format!("{} {kind}", self.name));
            let answer = (self.answer)(&event);
            self.told.lock().unwrap().push(event);
            answer
        }
        .boxed()
    }
    fn tell(&self, event: Event) -> bool {
        let mut told = self.told.lock().unwrap();
        if told.len() >= self.room {
            return false;
        }
        told.push(event);
        true
    }
    fn run_command(&self, name: String, arguments: String) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            self.log.lock().unwrap().push(format!("{} /{name} {arguments}", self.name));
            Ok(())
        }
        .boxed()
    }
    fn complete_command(&self, _: String, _: String) -> BoxFuture<'_, Result<Vec<Completion>, Error>> {
        async { Ok(Vec::new()) }.boxed()
    }
    fn stop(&self) -> BoxFuture<'_, ()> {
        async { self.log.lock().unwrap().push(format!("{} stop", self.name)) }.boxed()
    }
    fn on_failure(&self, _: FailureReport) {}
}

/// A model that says what a test tells it to, one answer after the other, and keeps what it was asked.
#[derive(Default)]
pub(super) struct Player {
    pub(super) asked: Mutex<Vec<ModelRequest>>,
    /// Names of tools to call, one an answer, before it only says "done".
    pub(super) calls: Mutex<Vec<&'static str>>,
}

impl Player {
    pub(super) fn system(&self, at: usize) -> String {
        match &self.asked.lock().unwrap()[at].messages[0] {
            PromptMessage::System(text) => text.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// The user's texts in a request.
    pub(super) fn user(&self, at: usize) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let texts = asked[at].messages.iter().filter_map(|message| match message {
            PromptMessage::User(content) => Some(Content::joined_text(content)),
            _ => None,
        });
        texts.collect()
    }

    pub(super) fn requests(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl ModelProvider for Player {
    fn apis(&self) -> Vec<String> {
        Vec::new()
    }
    fn complete(&self, request: ModelRequest) -> BoxFuture<'_, Result<BoxStream<'static, ModelEvent>, Error>> {
        self.asked.lock().unwrap().push(request);
        let mut calls = self.calls.lock().unwrap();
        let call = (!calls.is_empty()).then(|| calls.remove(0));
        let reason = if call.is_some() { DoneReason::ToolUse } else { DoneReason::Stop };
        let mut events = match call {
            Some(name) => vec![
                ModelEvent::CallStart { index: 0, id: "c1".to_owned(), name: name.to_owned() },
                ModelEvent::CallEnd(0),
            ],
            None => vec![ModelEvent::TextStart(0), ModelEvent::TextDelta(0, "done".to_owned()), ModelEvent::TextEnd(0)],
        };
        events.push(ModelEvent::Done { reason, raw_reason: None, response_model: None, response_id: None });
        async move { Ok(stream::iter(events).boxed()) }.boxed()
    }
}

pub(super) struct Work;

impl ToolRunner for Work {
    fn prepare(&self, _: String, arguments: Value) -> BoxFuture<'_, Result<Value, Error>> {
        async move { Ok(arguments) }.boxed()
    }
    fn call(
        &self,
        invocation: atoll_table::Invocation,
        _: atoll_table::Progress,
    ) -> BoxFuture<'_, Result<ToolOutput, Error>> {
        let text = format!("{} {}", invocation.id, invocation.arguments);
        async move {
            Ok(ToolOutput {
                content: vec![Content::text(text)],
                structured: Some(json!(1).into()),
                ..ToolOutput::default()
            })
        }
        .boxed()
    }
    fn allowed(&self) -> Vec<String> {
        Vec::new()
    }
}

pub(super) fn tool(name: &str) -> Tool {
    Tool::new(name, json!({"type": "object"}))
}

pub(super) struct NoModels;

impl ModelSource for NoModels {
    fn choose(&self, name: &str) -> Result<Chosen, Error> {
        let chosen = Models::playing("").unwrap();
        let id = name.rsplit('/').next().unwrap().to_owned();
        Ok(Chosen { model: Model { id, ..chosen.model }, ..chosen })
    }
    fn available(&self) -> Vec<atoll_table::extension::ModelChoice> {
        Vec::new()
    }
    fn provider<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Arc<dyn ModelProvider>, Error>> {
        async { Ok(Arc::new(Player::default()) as Arc<dyn ModelProvider>) }.boxed()
    }
}

/// An agent with these extensions, and what it leaves behind.
pub(super) struct Stage {
    pub(super) agent: Agent,
    pub(super) model: Arc<Player>,
    pub(super) failures: Arc<Mutex<Vec<Failure>>>,
    /// Types of the events that were shown.
    pub(super) shown: Log,
}

pub(super) fn stage(fakes: &[&Arc<Fake>], calls: &[&'static str]) -> Stage {
    let model = Arc::new(Player { calls: Mutex::new(calls.to_vec()), ..Player::default() });
    let mut table = Table::new();
    let runner: Arc<dyn ToolRunner> = Arc::new(Work);
    table.register("p", vec![tool("work"), tool("other")], &runner).unwrap();
    let failures: Arc<Mutex<Vec<Failure>>> = Arc::default();
    let to = Arc::clone(&failures);
    let extensions = Extensions::new(Arc::new(move |failure: &Failure| to.lock().unwrap().push(failure.clone())));
    for fake in fakes {
        extensions.add(Arc::<Fake>::clone(fake));
    }
    let pipeline = Pipeline::new(table);
    pipeline.set_hooks(extensions.hooks());
    let asked = Asked { chosen: Models::playing("").unwrap(), provider: Arc::<Player>::clone(&model) };
    let shown = Log::default();
    let to = Arc::clone(&shown);
    let agent = Agent {
        loadout: Loadout::default(),
        pipeline,
        conversation: Conversation::new(Session::new(None, Path::new("/p")), Queue::default(), asked),
        extensions,
        context: Vec::new(),
        cwd: "/p".into(),
        idle_timeout_ms: 1_000,
        sink: Arc::new(move |event: &crate::Event| {
            let event = serde_json::to_value(event).unwrap();
            let role = event["message"]["role"].as_str().map(|role| format!(" {role}")).unwrap_or_default();
            to.lock().unwrap().push(format!("{}{role}", event["type"].as_str().unwrap()));
        }),
        stop: CancellationToken::new(),
    };
    Stage { agent, model, failures, shown }
}

impl Stage {
    pub(super) async fn prompt(&self, text: &str) -> crate::Outcome {
        self.agent.prompt(vec![Content::text(text)]).await.unwrap()
    }

    pub(super) fn messages(&self) -> Vec<Message> {
        self.agent.conversation.session.with(|session| session.messages().to_vec())
    }

    pub(super) fn access(&self) -> Access {
        let Agent { conversation, extensions, sink, .. } = &self.agent;
        Access::new(conversation.clone(), extensions.clone(), Arc::new(NoModels), Sink::clone(sink), 1_000)
    }

    pub(super) fn failed(&self) -> Vec<String> {
        let failures = self.failures.lock().unwrap();
        failures.iter().map(|failure| format!("{}: {}", failure.extension, failure.error)).collect()
    }
}

pub(super) fn pass(_: &Event) -> Result<Outcome, Error> {
    Ok(Outcome::Pass)
}

pub(super) fn reply(fields: Value) -> Result<Outcome, Error> {
    let Value::Object(fields) = fields else { panic!("no object") };
    Ok(Outcome::Reply(fields))
}

pub(super) fn who(plugin: &str) -> Who {
    Who { plugin: plugin.to_owned(), origin: Origin::User }
}
