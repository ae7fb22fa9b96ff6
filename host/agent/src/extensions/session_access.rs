//! The session and the models, as extensions may use them.

use std::sync::Arc;

use atoll_table::{
    Content, Error,
    extension::{
        ContextSize, CustomMessage as Message, Delivery, EventKind, ModelAccess, ModelAnswer, ModelChoice,
        SessionAccess, SessionInfo, Who,
    },
    model::{ModelProvider, ModelRequest, PromptMessage, ThinkingLevel},
};
use futures::{StreamExt as _, future::BoxFuture};
use serde_json::{Value, json};

use super::Extensions;
use crate::{
    answer::Answer,
    conversation::{Asked, Conversation},
    event::{Event, Sink},
    message::{self, AssistantMessage, CustomMessage, StopReason, system_text},
    models::Chosen,
    queue::Waiting,
    session::{Session, SessionError},
};

/// Where models come from.
pub trait ModelSource: Send + Sync {
    /// The model of this name, with all it takes to ask it.
    ///
    /// # Errors
    /// `not-found` for the name, `failed` if its key can not be had.
    fn choose(&self, name: &str) -> Result<Chosen, Error>;

    /// Those that can be asked.
    fn available(&self) -> Vec<ModelChoice>;

    /// What speaks a wire format.
    ///
    /// # Errors
    /// `not-found` if nothing does.
    fn provider<'a>(&'a self, api: &'a str) -> BoxFuture<'a, Result<Arc<dyn ModelProvider>, Error>>;
}

/// The session and the models for extensions.
pub struct Access {
    conversation: Conversation,
    extensions: Extensions,
    models: Arc<dyn ModelSource>,
    sink: Sink,
    idle_timeout_ms: u64,
}

/// What a session error is to an extension.
fn unwritable(error: &SessionError) -> Error {
    Error::Unavailable(error.to_string())
}

impl Access {
    /// For this conversation. `sink` is told what happens to it.
    pub fn new(
        conversation: Conversation,
        extensions: Extensions,
        models: Arc<dyn ModelSource>,
        sink: Sink,
        idle_timeout_ms: u64,
    ) -> Self {
        Self { conversation, extensions, models, sink, idle_timeout_ms }
    }

    fn session<R>(&self, act: impl FnOnce(&mut Session) -> R) -> R {
        self.conversation.session.with(act)
    }

    /// Appends an entry, and tells of it.
    fn add(&self, append: impl FnOnce(&mut Session) -> Result<String, SessionError>) -> Result<String, Error> {
        let (id, entry) = self
            .session(|session| append(session).map(|id| (id, session.last_entry().cloned().unwrap_or_default())))
            .map_err(|error| unwritable(&error))?;
        (self.sink)(&Event::EntryAppended { entry: Value::Object(entry) });
        Ok(id)
    }

    fn enqueue(&self, message: Waiting, delivery: Delivery) -> Result<(), Error> {
        self.conversation.queue.push(message, delivery)?;
        let (steering, follow_up) = self.conversation.queue.shown();
        (self.sink)(&Event::QueueUpdate { steering, follow_up });
        Ok(())
    }

    fn say(&self, message: Message, delivery: Delivery, trigger: bool) -> Result<(), Error> {
        let Message { custom_type, content, display, details } = message;
        let timestamp = crate::time::now_ms();
        let message = CustomMessage { custom_type, content, display, details, timestamp };
        if delivery == Delivery::NextTurn || trigger || !self.conversation.is_idle() {
            return self.enqueue(Waiting::Custom(message), delivery);
        }
        self.session(|session| session.append_custom_message(&message)).map_err(|error| unwritable(&error))?;
        let message = message::Message::Custom(message);
        for event in [Event::MessageStart { message: message.clone() }, Event::MessageEnd { message }] {
            (self.sink)(&event);
            if let Event::MessageStart { message } = &event {
                self.extensions.observe(EventKind::MessageStart, || json!({"message": message}));
            }
        }
        Ok(())
    }

    async fn choose(&self, name: &str) -> Result<Asked, Error> {
        let chosen = self.models.choose(name)?;
        let provider = self.models.provider(&chosen.model.api).await?;
        Ok(Asked { chosen, provider })
    }

    fn change_thinking(&self, level: &str) -> Result<(), Error> {
        let known: Result<ThinkingLevel, _> = serde_json::from_value(json!(level));
        let level = known.map_err(|_| {
            let level = level.escape_debug();
            Error::InvalidArguments(format!(
                "`{level}` is no level of thinking; use off, minimal, low, medium, high, xhigh or max"
            ))
        })?;
        let mut asked = self.conversation.asked();
        let before = std::mem::replace(&mut asked.chosen.thinking, level);
        if before == level {
            return Ok(());
        }
        self.session(|session| session.note_thinking(&json!(level))).map_err(|error| unwritable(&error))?;
        self.conversation.set_asked(asked);
        (self.sink)(&Event::ThinkingLevelChanged { level });
        self.extensions.observe(EventKind::ThinkingLevelSelect, || json!({"level": level, "previousLevel": before}));
        Ok(())
    }

    async fn change_model(&self, name: &str) -> Result<(), Error> {
        let asked = self.choose(name).await?;
        let before = self.conversation.asked().chosen;
        let model = asked.chosen.model.clone();
        self.session(|session| session.note_model(&model.provider, &model.id)).map_err(|error| unwritable(&error))?;
        // How hard it is to think was not asked about.
        let chosen = Chosen { thinking: before.thinking, ..asked.chosen };
        self.conversation.set_asked(Asked { chosen, ..asked });
        self.extensions.observe(
            EventKind::ModelSelect,
            || json!({"model": model, "previousModel": before.model, "source": "set"}),
        );
        Ok(())
    }

    async fn ask_once(
        &self,
        model: Option<String>,
        system: String,
        prompt: Vec<Content>,
        max_tokens: Option<u32>,
    ) -> Result<ModelAnswer, Error> {
        let Asked { chosen, provider } = match model {
            Some(name) => self.choose(&name).await?,
            None => self.conversation.asked(),
        };
        let mut model = chosen.model.clone();
        if let Some(most) = max_tokens {
            model.max_tokens = model.max_tokens.min(u64::from(most));
        }
        let request = ModelRequest {
            id: uuid::Uuid::new_v4().to_string(),
            model: model.clone(),
            key: chosen.key,
            header_secrets: chosen.header_secrets,
            messages: vec![PromptMessage::System(system), PromptMessage::User(prompt)],
            tools: Vec::new(),
            thinking: ThinkingLevel::Off,
            idle_timeout_ms: self.idle_timeout_ms,
        };
        let nobody = |_: &Event, _: &AssistantMessage| {};
        let mut answer = Answer::new(&model, chosen.prices, &nobody);
        let mut events = provider.complete(request).await?;
        while let Some(event) = events.next().await {
            if answer.take(event) {
                break;
            }
        }
        let message = answer.finish();
        match message.stop_reason {
            StopReason::Error | StopReason::Aborted | StopReason::Pending => {
                let reason = message.error_message.unwrap_or_else(|| "the answer has no end".to_owned());
                Err(Error::Failed(format!("the model {} gave no answer: {reason}", model.id)))
            }
            _ => Ok(ModelAnswer { text: message.texts().collect(), usage: message.usage }),
        }
    }
}

impl SessionAccess for Access {
    fn info(&self) -> SessionInfo {
        let asked = self.conversation.asked().chosen;
        let thinking = json!(asked.thinking).as_str().unwrap_or_default().to_owned();
        let (idle, pending) = (self.conversation.is_idle(), !self.conversation.queue.is_empty());
        self.session(|session| SessionInfo {
            id: session.id().to_owned(),
            file: session.path().map(std::path::Path::to_owned),
            cwd: session.cwd().to_owned(),
            name: session.name().map(str::to_owned),
            idle,
            pending,
            model: Some(format!("{}/{}", asked.model.provider, asked.model.id)),
            thinking,
        })
    }

    fn entries(&self) -> BoxFuture<'_, Result<Vec<Value>, Error>> {
        Box::pin(async { Ok(self.session(|session| session.branch())) })
    }

    fn append(&self, _: &Who, custom_type: String, data: Value) -> BoxFuture<'_, Result<String, Error>> {
        Box::pin(async move { self.add(|session| session.append_custom(&custom_type, data)) })
    }

    fn send(&self, _: &Who, content: Vec<Content>, delivery: Delivery) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.enqueue(Waiting::User(content), delivery) })
    }

    fn send_custom(
        &self,
        _: &Who,
        message: Message,
        delivery: Delivery,
        trigger: bool,
    ) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.say(message, delivery, trigger) })
    }

    fn set_label(&self, entry_id: String, label: Option<String>) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            if !self.session(|session| session.has_entry(&entry_id)) {
                let id = entry_id.escape_debug();
                return Err(Error::NotFound(format!(
                    "the session has no entry `{id}`; `session.entries` gives their ids"
                )));
            }
            let label = label.filter(|label| !label.is_empty());
            self.add(|session| session.set_label(&entry_id, label.as_deref())).map(drop)
        })
    }

    fn set_name(&self, name: String) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let name = name.trim().to_owned();
            self.add(|session| session.set_name(&name))?;
            let name = Some(name).filter(|name| !name.is_empty());
            (self.sink)(&Event::SessionInfoChanged { name: name.clone() });
            self.extensions.observe(EventKind::SessionInfoChanged, || json!({"name": name}));
            Ok(())
        })
    }

    fn set_model(&self, name: String) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.change_model(&name).await })
    }

    fn set_thinking(&self, level: String) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.change_thinking(&level) })
    }

    fn set_prompt_section(&self, who: &Who, name: String, text: Option<String>) -> BoxFuture<'_, Result<(), Error>> {
        let owner = who.plugin.clone();
        Box::pin(async move { self.conversation.set_section(&owner, &name, text) })
    }

    fn system_prompt(&self) -> String {
        self.conversation.instructions().unwrap_or_else(|| self.session(|session| system_text(session.messages())))
    }

    fn context_usage(&self) -> Option<ContextSize> {
        let window = self.conversation.asked().chosen.model.context_window;
        let tokens = self.session(|session| {
            session.messages().iter().rev().find_map(|message| match message {
                message::Message::Assistant(answer)
                    if !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
                        && answer.usage.total_tokens > 0 =>
                {
                    Some(answer.usage.total_tokens)
                }
                _ => None,
            })
        });
        Some(ContextSize { tokens, window })
    }

    fn compact(&self, _: Option<String>) -> BoxFuture<'_, Result<(), Error>> {
        let reason = "this version does not summarise conversations; start a new session instead";
        Box::pin(async move { Err(Error::Unavailable(reason.to_owned())) })
    }

    fn wait_idle(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async {
            self.conversation.wait_idle().await;
            Ok(())
        })
    }

    fn reload(&self) -> BoxFuture<'_, Result<(), Error>> {
        let reason = "extensions can not be loaded anew in this session; start atoll again instead";
        Box::pin(async move { Err(Error::Unavailable(reason.to_owned())) })
    }

    fn abort(&self) {
        self.conversation.abort();
    }

    fn shutdown(&self) {
        self.conversation.end();
    }
}

impl ModelAccess for Access {
    fn available(&self) -> Vec<ModelChoice> {
        let asked = self.conversation.asked().chosen.model;
        let name = format!("{}/{}", asked.provider, asked.id);
        let mut available = self.models.available();
        available.retain(|choice| choice.name != name);
        available.insert(0, ModelChoice { name, images: asked.images, context_window: asked.context_window });
        available
    }

    fn complete(
        &self,
        _: &Who,
        model: Option<String>,
        system: String,
        prompt: Vec<Content>,
        max_tokens: Option<u32>,
    ) -> BoxFuture<'_, Result<ModelAnswer, Error>> {
        Box::pin(self.ask_once(model, system, prompt, max_tokens))
    }
}
