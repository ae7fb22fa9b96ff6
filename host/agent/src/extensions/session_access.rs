//! The session and the models, as extensions may use them.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

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
use tokio_util::sync::CancellationToken;

use super::{Extensions, Reload};
use crate::{
    answer::Answer,
    conversation::{Asked, Conversation},
    event::{Event, Sink},
    message::{self, AssistantMessage, CustomMessage, StopReason, system_text},
    models::Chosen,
    queue::Waiting,
    run::PROVIDER_GRACE,
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

    /// This one is asked from now on, or as hard as this.
    fn asked(&self, chosen: &Chosen) {
        let _ = chosen;
    }

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
    reload: OnceLock<Arc<dyn Reload>>,
    /// Extensions are asked about a message that was sent while nothing ran.
    asking: AtomicBool,
    /// How much each plugin has appended.
    appended: Mutex<HashMap<String, Appended>>,
}

/// What a plugin has appended to the session.
#[derive(Clone, Copy, Default)]
struct Appended {
    entries: u32,
    bytes: usize,
}

/// So many entries a plugin may append to a session, and so many bytes of data with them: each is in memory, and in the file
/// that is read whole when the session is gone on with.
const MOST_APPENDED: Appended = Appended { entries: 10_000, bytes: 64 << 20 };

/// Somebody is asking, for as long as this is there.
struct Asking<'a>(&'a AtomicBool);

impl<'a> Asking<'a> {
    /// None if somebody is already.
    fn begin(asking: &'a AtomicBool) -> Option<Self> {
        (!asking.swap(true, Ordering::SeqCst)).then_some(Self(asking))
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
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
        Self {
            conversation,
            extensions,
            models,
            sink,
            idle_timeout_ms,
            reload: OnceLock::new(),
            asking: AtomicBool::new(false),
            appended: Mutex::default(),
        }
    }

    /// What loads extensions anew from now on. Until there is something, they can not be.
    pub fn set_reload(&self, reload: Arc<dyn Reload>) {
        let _ = self.reload.set(reload);
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

    fn count_appended(&self, plugin: &str, bytes: usize) -> Result<(), Error> {
        let mut appended = self.appended.lock().unwrap_or_else(PoisonError::into_inner);
        let own = appended.entry(plugin.to_owned()).or_default();
        if own.entries >= MOST_APPENDED.entries || own.bytes.saturating_add(bytes) > MOST_APPENDED.bytes {
            let Appended { entries, bytes } = MOST_APPENDED;
            return Err(Error::Unavailable(format!(
                "the extension {plugin} has appended as much to this session as it may, {entries} entries or {} MiB; keep \
                 what is large or comes often in `store`",
                bytes >> 20
            )));
        }
        own.entries += 1;
        own.bytes += bytes;
        Ok(())
    }

    fn enqueue(&self, message: Waiting, delivery: Delivery) -> Result<(), Error> {
        self.conversation.queue.push(message, delivery)?;
        let (steering, follow_up) = self.conversation.queue.shown();
        (self.sink)(&Event::QueueUpdate { steering, follow_up });
        Ok(())
    }

    async fn say(&self, message: Message, delivery: Delivery, trigger: bool) -> Result<(), Error> {
        let Message { custom_type, content, display, details } = message;
        let timestamp = crate::time::now_ms();
        let message = CustomMessage { custom_type, content, display, details, timestamp };
        if delivery == Delivery::NextTurn || trigger || !self.conversation.is_idle() {
            return self.enqueue(Waiting::Custom(message), delivery);
        }
        let message = message::Message::Custom(message);
        self.extensions.observe(EventKind::MessageStart, || json!({"message": message}));
        let message = self.as_handlers_want(message).await;
        self.session(|session| session.append_message(&message)).map_err(|error| unwritable(&error))?;
        (self.sink)(&Event::MessageStart { message: message.clone() });
        (self.sink)(&Event::MessageEnd { message });
        Ok(())
    }

    /// A message as extensions make it. One that is sent in the middle of that is as it is: whoever sends one whenever it is
    /// asked about one would send for ever.
    async fn as_handlers_want(&self, message: message::Message) -> message::Message {
        let Some(_asking) = Asking::begin(&self.asking) else { return message };
        self.extensions.message_end(&CancellationToken::new(), message).await
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
        self.models.asked(&asked.chosen);
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
        self.models.asked(&chosen);
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
        let patience = Duration::from_millis(self.idle_timeout_ms) + PROVIDER_GRACE;
        let silent = |_| {
            let seconds = patience.as_secs();
            Error::Timeout(format!("the provider of {} has been silent for {seconds} s", model.api))
        };
        let mut events = tokio::time::timeout(patience, provider.complete(request)).await.map_err(silent)??;
        while let Some(event) = tokio::time::timeout(patience, events.next()).await.map_err(silent)? {
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

    fn append(&self, who: &Who, custom_type: String, data: Value) -> BoxFuture<'_, Result<String, Error>> {
        let plugin = who.plugin.clone();
        Box::pin(async move {
            self.count_appended(&plugin, custom_type.len() + data.to_string().len())?;
            self.add(|session| session.append_custom(&custom_type, data))
        })
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
        Box::pin(self.say(message, delivery, trigger))
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
        let reason = "extensions can not be loaded anew now; try again once all of them have started";
        match self.reload.get() {
            Some(reload) => Arc::clone(reload).reload(),
            None => Box::pin(async move { Err(Error::Unavailable(reason.to_owned())) }),
        }
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
        // One without a wire format stands for a model that is not there, or not there any more.
        if !asked.api.is_empty() {
            available.insert(0, ModelChoice { name, images: asked.images, context_window: asked.context_window });
        }
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

    fn responded(&self, status: u16, headers: &[(String, String)]) {
        self.extensions.observe_response(status, headers);
    }
}
