//! The extensions of a session: who is told what, and what comes of their answers.
//!
//! What nobody subscribed to must cost next to nothing: whoever tells of something asks [`Extensions::wants`] before it
//! makes anything. And nothing here waits for a handler whose answer does not count.

pub mod bus;
mod commands;
mod displaced;
mod effects;
mod hook;
pub mod own_tables;
mod provider_events;
mod reload;
mod report;
mod resources;
pub mod servers;
pub mod session_access;
mod trust;

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use atoll_table::{
    Content, Error,
    extension::{Event, EventKind, EventSet, Extension, Input, Outcome, StartReason},
    hooks::Hook,
};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub use commands::{Flags, Listed, UnknownFlag};
pub use displaced::{Displaced, Names, displaced};
pub use effects::{BeforeStart, Draft, InputEffect, TurnReply};
pub(crate) use effects::{ContextEffect, MessageEffect};
pub use reload::{RELOAD_COMMAND, Reload};
pub use report::{Failure, Report};
pub use resources::Resources;
pub use trust::TrustWord;

use crate::message::Message;
use effects::Flow;
use hook::ExtensionHook;
use report::Reporter;

/// How long the end of all extensions together may take.
const END_TIME: Duration = Duration::from_secs(5);

/// The extensions that are loaded, in load order. Clones share them.
#[derive(Clone, Default)]
pub struct Extensions {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    all: RwLock<Arc<[Arc<dyn Extension>]>>,
    /// Bits of the events that anybody wants.
    wanted: AtomicU64,
    reporter: Reporter,
    resources: RwLock<Resources>,
}

impl Extensions {
    /// None yet. `report` is told of each failure, of the same kind at the same extension once.
    pub fn new(report: Report) -> Self {
        Self { inner: Arc::new(Inner { reporter: Reporter::new(report), ..Inner::default() }) }
    }

    /// Adds one behind those there are.
    pub fn add(&self, extension: Arc<dyn Extension>) {
        self.listen(&extension);
        let mut all = self.inner.all.write().unwrap_or_else(PoisonError::into_inner);
        *all = all.iter().cloned().chain([extension]).collect();
        drop(all);
        self.refresh();
    }

    /// Has failures of one that nobody waits for reported.
    fn listen(&self, extension: &Arc<dyn Extension>) {
        let reporter = self.inner.reporter.clone();
        extension.on_failure(Arc::new(move |name, kind, error| reporter.report(name, kind, error)));
    }

    /// Takes one away: it could not be started.
    fn remove(&self, gone: &Arc<dyn Extension>) {
        let mut all = self.inner.all.write().unwrap_or_else(PoisonError::into_inner);
        *all = all.iter().filter(|extension| !Arc::ptr_eq(extension, gone)).cloned().collect();
        drop(all);
        self.refresh();
    }

    /// All of them, in load order.
    pub fn all(&self) -> Arc<[Arc<dyn Extension>]> {
        Arc::clone(&self.inner.all.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks again at what they want. To be called after one of them wants something else.
    pub fn refresh(&self) {
        let wanted = self.all().iter().fold(EventSet::default(), |set, one| set.union(one.subscription().events));
        self.inner.wanted.store(wanted.bits(), Ordering::Release);
    }

    /// Whether anybody wants to know of events of this kind.
    pub fn wants(&self, kind: EventKind) -> bool {
        EventSet::of_bits(self.inner.wanted.load(Ordering::Acquire)).contains(kind)
    }

    /// Starts all of them beside each other. Those that can not be started are left out; who, and why, is given back, in
    /// load order.
    pub async fn start(&self) -> Vec<(String, Error)> {
        let all = self.all();
        let started = join_all(all.iter().map(|extension| extension.start(StartReason::Startup))).await;
        let mut failed = Vec::new();
        for (extension, outcome) in all.iter().zip(started) {
            if let Err(error) = outcome {
                failed.push((extension.name().to_owned(), error));
                self.remove(extension);
                extension.stop().await;
            }
        }
        self.refresh();
        failed
    }

    /// Tells all of them that the session ends, and ends them, beside each other and within 5 seconds.
    pub async fn end(&self, reason: &str) {
        let fields = Arc::new(json!({"reason": reason}));
        let kind = EventKind::SessionShutdown;
        let all = self.all();
        let ends = all.iter().map(|extension| {
            let event = Event::Other(kind, Arc::clone(&fields));
            async move {
                if extension.subscription().wants(kind)
                    && let Err(error) = extension.ask(event, 0).await
                {
                    self.inner.reporter.report(extension.name(), Some(kind), &error);
                }
                extension.stop().await;
            }
        });
        if tokio::time::timeout(END_TIME, join_all(ends)).await.is_err() {
            tracing::warn!("an extension did not end in time");
        }
        self.inner.reporter.repeated();
    }

    /// Tells everybody who wants to know, in load order, and waits for nobody. `fields` is only made if somebody does.
    pub fn observe(&self, kind: EventKind, fields: impl FnOnce() -> Value) {
        if !self.wants(kind) {
            return;
        }
        let event = Event::other(kind, fields());
        for extension in self.all().iter().filter(|extension| extension.subscription().wants(kind)) {
            if !extension.tell(event.clone()) {
                self.inner.reporter.dropped(extension.name());
            }
        }
    }

    /// Asks everybody who wants to be asked, one after the other in load order, until one answer ends it or `stop` is
    /// cancelled. Each is shown `event` as the answers before it made it. An answer that means nothing is a failure, is
    /// reported, and changes nothing.
    async fn ask_each<S>(
        &self,
        kind: EventKind,
        stop: &CancellationToken,
        state: &mut S,
        event: impl Fn(&S) -> Event,
        mut apply: impl FnMut(&mut S, Outcome) -> Result<Flow, Error>,
    ) {
        if !self.wants(kind) {
            return;
        }
        for extension in self.all().iter().filter(|extension| extension.subscription().wants(kind)) {
            let answer = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                answer = extension.ask(event(state), 0) => answer,
            };
            match answer.and_then(|outcome| apply(state, outcome)) {
                Ok(Flow::On) => {}
                Ok(Flow::End) => return,
                Err(error) => self.inner.reporter.report(extension.name(), Some(kind), &error),
            }
        }
    }

    /// What becomes of what the user typed.
    pub async fn input(&self, content: Vec<Content>, source: &'static str, stop: &CancellationToken) -> InputEffect {
        if !self.wants(EventKind::Input) {
            return InputEffect::Go(content);
        }
        let text = Content::joined_text(&content);
        let images = content.into_iter().filter(|piece| matches!(piece, Content::Image { .. })).collect();
        let mut state = effects::InputState { text, images, handled: false };
        let event = |state: &effects::InputState| {
            let (text, images) = (state.text.clone(), state.images.clone());
            Event::Input(Input { text, images, source, delivery: None })
        };
        self.ask_each(EventKind::Input, stop, &mut state, event, effects::InputState::apply).await;
        state.effect()
    }

    /// What a run is begun with.
    pub(crate) async fn before_start(&self, stop: &CancellationToken, mut state: BeforeStart) -> BeforeStart {
        let event = |state: &BeforeStart| Event::other(EventKind::BeforeAgentStart, state.fields());
        self.ask_each(EventKind::BeforeAgentStart, stop, &mut state, event, BeforeStart::apply).await;
        state
    }

    /// What a model is sent in place of these messages, instructions among them.
    pub(crate) async fn context(&self, stop: &CancellationToken, messages: Vec<Message>) -> Vec<Message> {
        let mut state = ContextEffect { messages };
        for kind in [EventKind::Context, EventKind::ContextWithSystem] {
            let event = |state: &ContextEffect| Event::other(kind, state.fields(kind));
            self.ask_each(kind, stop, &mut state, event, |state, outcome| state.apply(kind, outcome)).await;
        }
        state.messages
    }

    /// What takes the place of a message that is complete.
    pub(crate) async fn message_end(&self, stop: &CancellationToken, message: Message) -> Message {
        let mut state = MessageEffect { message };
        let event = |state: &MessageEffect| Event::other(EventKind::MessageEnd, json!({"message": state.message}));
        self.ask_each(EventKind::MessageEnd, stop, &mut state, event, MessageEffect::apply).await;
        state.message
    }

    /// What is to be added at the end of a turn, or where the agent would settle. `known` says which entries there are.
    pub(crate) async fn turn(
        &self,
        kind: EventKind,
        stop: &CancellationToken,
        known: &(dyn Fn(&str) -> bool + Sync),
        fields: impl FnOnce() -> Value,
    ) -> TurnReply {
        let mut state = TurnReply::default();
        if self.wants(kind) {
            let fields = Arc::new(fields());
            let event = |_: &TurnReply| Event::Other(kind, Arc::clone(&fields));
            let apply = |state: &mut TurnReply, outcome| state.apply(kind, outcome, known);
            self.ask_each(kind, stop, &mut state, event, apply).await;
        }
        state
    }

    /// Tells of the session's beginning, and waits for everybody.
    pub async fn session_start(&self, reason: &str) {
        self.wait_for(EventKind::SessionStart, json!({"reason": reason})).await;
    }

    async fn wait_for(&self, kind: EventKind, fields: Value) {
        let fields = Arc::new(fields);
        let event = |(): &()| Event::Other(kind, Arc::clone(&fields));
        self.ask_each(kind, &CancellationToken::new(), &mut (), event, |(), _| Ok(Flow::On)).await;
    }

    /// The hook through which they see calls.
    pub fn hook(&self, extension: &Arc<dyn Extension>) -> Arc<dyn Hook> {
        Arc::new(ExtensionHook::new(Arc::clone(extension), self.inner.reporter.clone()))
    }

    /// The hooks of all of them, in load order.
    pub fn hooks(&self) -> Vec<Arc<dyn Hook>> {
        self.all().iter().map(|extension| self.hook(extension)).collect()
    }

    /// Reports how often failures came that were reported before. To be called when a run ends.
    pub fn report_repeated(&self) {
        self.inner.reporter.repeated();
    }

    /// Reports a failure of an extension.
    pub fn report(&self, name: &str, kind: Option<EventKind>, error: &Error) {
        self.inner.reporter.report(name, kind, error);
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
