//! What a run shares with whatever else acts on the session meanwhile: the session itself, what waits to be said, the model
//! that is asked, sections of the system prompt, and whether anything is running.
//!
//! No lock here may be held while something is awaited.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock,
    atomic::{AtomicU32, Ordering},
};

use atoll_table::{Error, model::ModelProvider};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{models::Chosen, prompt, queue::Queue, session::SharedSession};

/// The model that is asked, and what asks it.
#[derive(Clone)]
pub struct Asked {
    /// The model.
    pub chosen: Chosen,
    /// Its provider.
    pub provider: Arc<dyn ModelProvider>,
}

/// A section of the system prompt that an extension added.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    owner: String,
    name: String,
    text: String,
}

/// A conversation under way. Clones share it.
#[derive(Clone)]
pub struct Conversation {
    /// The session.
    pub session: SharedSession,
    /// What waits to be said.
    pub queue: Queue,
    shared: Arc<Shared>,
}

struct Shared {
    asked: RwLock<Asked>,
    sections: Mutex<Vec<Section>>,
    /// The instructions of what runs, if they are not the session's.
    instructions: RwLock<Option<String>>,
    /// Stops what runs; none while nothing does.
    run: Mutex<Option<CancellationToken>>,
    idle: watch::Sender<bool>,
    /// How many answers in a row there were without a call.
    urged: AtomicU32,
    ending: CancellationToken,
}

/// Something runs for as long as this is there.
pub(crate) struct Running {
    shared: Arc<Shared>,
    /// Cancelled once it is to stop.
    pub(crate) stop: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        *lock(&self.shared.run) = None;
        *self.shared.instructions.write().unwrap_or_else(PoisonError::into_inner) = None;
        self.shared.idle.send_replace(true);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Conversation {
    /// One in which nothing runs.
    pub fn new(session: impl Into<SharedSession>, queue: Queue, asked: Asked) -> Self {
        let shared = Shared {
            asked: RwLock::new(asked),
            sections: Mutex::default(),
            instructions: RwLock::default(),
            run: Mutex::default(),
            idle: watch::Sender::new(true),
            urged: AtomicU32::new(0),
            ending: CancellationToken::new(),
        };
        Self { session: session.into(), queue, shared: Arc::new(shared) }
    }

    /// The model that the next request asks.
    pub fn asked(&self) -> Asked {
        self.shared.asked.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks another from the next request on.
    pub fn set_asked(&self, asked: Asked) {
        *self.shared.asked.write().unwrap_or_else(PoisonError::into_inner) = asked;
    }

    /// Begins to run something, until what is given back is dropped.
    pub(crate) fn run(&self, stop: &CancellationToken) -> Running {
        let stop = stop.child_token();
        *lock(&self.shared.run) = Some(stop.clone());
        self.shared.idle.send_replace(false);
        Running { shared: Arc::clone(&self.shared), stop }
    }

    /// Whether nothing runs.
    pub fn is_idle(&self) -> bool {
        *self.shared.idle.borrow()
    }

    /// Waits until nothing runs.
    pub async fn wait_idle(&self) {
        // The sender is in here, so it can not have gone.
        let _ = self.shared.idle.subscribe().wait_for(|idle| *idle).await;
    }

    /// Stops what runs, and drops what would have followed it.
    pub fn abort(&self) {
        if let Some(stop) = &*lock(&self.shared.run) {
            self.queue.clear_due();
            stop.cancel();
        }
    }

    /// Counts an answer after which the model wants nothing more; or begins to count anew, for the user or the model does.
    pub(crate) fn count_urged(&self, one_more: bool) {
        if one_more {
            self.shared.urged.fetch_add(1, Ordering::Relaxed);
        } else {
            self.shared.urged.store(0, Ordering::Relaxed);
        }
    }

    /// Whether more than so many answers were had since the user or the model wanted one.
    pub(crate) fn is_urged_beyond(&self, most: u32) -> bool {
        self.shared.urged.load(Ordering::Relaxed) > most
    }

    /// Has the host end in order, once nothing runs.
    pub fn end(&self) {
        self.shared.ending.cancel();
    }

    /// Whether the host is to end.
    pub fn is_ending(&self) -> bool {
        self.shared.ending.is_cancelled()
    }

    /// The instructions that what runs is given, where they are not those of the session.
    pub fn instructions(&self) -> Option<String> {
        self.shared.instructions.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_instructions(&self, text: Option<String>) {
        *self.shared.instructions.write().unwrap_or_else(PoisonError::into_inner) = text;
    }

    /// Sets a section of the system prompt, or takes it away, from the next prompt on.
    ///
    /// # Errors
    /// `invalid-arguments` for a name that no section may have, `denied` for one of the host's or another's.
    pub fn set_section(&self, owner: &str, name: &str, text: Option<String>) -> Result<(), Error> {
        if !prompt::is_section_name(name) {
            return Err(Error::InvalidArguments(format!(
                "`{}` can not name a section of the system prompt; use a small letter, then small letters, digits, _ and -",
                name.escape_debug()
            )));
        }
        let mut sections = lock(&self.shared.sections);
        let place = sections.iter().position(|section| section.name == name);
        let other = place.and_then(|at| sections.get(at)).filter(|section| section.owner != owner);
        if prompt::HOST_SECTIONS.contains(&name) || other.is_some() {
            let whose = other.map_or("the host", |section| section.owner.as_str());
            return Err(Error::Denied {
                capability: "session".to_owned(),
                target: format!("the section {name} of the system prompt, which is {whose}'s"),
                hint: "give the section another name".to_owned(),
            });
        }
        match (text, place) {
            (Some(text), Some(at)) => {
                if let Some(section) = sections.get_mut(at) {
                    section.text = text;
                }
            }
            (Some(text), None) => {
                sections.push(Section { owner: owner.to_owned(), name: name.to_owned(), text });
            }
            (None, Some(at)) => drop(sections.remove(at)),
            (None, None) => {}
        }
        Ok(())
    }

    /// Puts the sections of extensions behind those of the host.
    pub(crate) fn add_sections(&self, sections: &mut Map<String, Value>) {
        for Section { name, text, .. } in &*lock(&self.shared.sections) {
            prompt::insert(sections, name, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{models::Models, session::Session};

    struct Silent;

    impl ModelProvider for Silent {
        fn apis(&self) -> Vec<String> {
            Vec::new()
        }
        fn complete(
            &self,
            _: atoll_table::model::ModelRequest,
        ) -> futures::future::BoxFuture<
            '_,
            Result<futures::stream::BoxStream<'static, atoll_table::model::ModelEvent>, Error>,
        > {
            Box::pin(async { Err(Error::Unavailable("nobody is asked here".to_owned())) })
        }
    }

    fn conversation() -> Conversation {
        let asked = Asked { chosen: Models::playing("").unwrap(), provider: Arc::new(Silent) };
        Conversation::new(Session::new(None, Path::new("/p")), Queue::default(), asked)
    }

    fn sections(conversation: &Conversation) -> Vec<(String, Value)> {
        let mut sections = Map::new();
        conversation.add_sections(&mut sections);
        sections.into_iter().collect()
    }

    #[test]
    fn a_section_is_whose_it_is_and_keeps_its_place() {
        let conversation = conversation();
        let set = |owner: &str, name: &str, text: &str| conversation.set_section(owner, name, Some(text.to_owned()));
        set("a", "notes", "one").unwrap();
        set("b", "more", "two").unwrap();
        set("a", "notes", "three").unwrap();
        let text = |name: &str, text: &str| (name.to_owned(), Value::from(format!("<{name}>\n{text}\n</{name}>")));
        assert_eq!(sections(&conversation), [text("notes", "three"), text("more", "two")]);
        for (owner, name, code) in [
            ("b", "notes", "denied"),
            ("a", "preamble", "denied"),
            ("a", "skills", "denied"),
            ("a", "Notes", "invalid-arguments"),
            ("a", "", "invalid-arguments"),
            ("a", "x>y", "invalid-arguments"),
            ("a", "1", "invalid-arguments"),
        ] {
            assert_eq!(set(owner, name, "x").unwrap_err().code(), code, "{owner} {name}");
        }
        assert_eq!(conversation.set_section("b", "notes", None).unwrap_err().code(), "denied");
        conversation.set_section("a", "notes", None).unwrap();
        conversation.set_section("a", "notes", None).unwrap();
        assert_eq!(sections(&conversation), [text("more", "two")]);
    }

    #[tokio::test]
    async fn what_runs_can_be_waited_for_and_stopped() {
        let conversation = conversation();
        conversation.abort();
        conversation.wait_idle().await;
        let outer = CancellationToken::new();
        let running = conversation.run(&outer);
        assert!(!conversation.is_idle());
        conversation.set_instructions(Some("other".to_owned()));
        conversation.abort();
        assert!(running.stop.is_cancelled() && !outer.is_cancelled());
        drop(running);
        conversation.wait_idle().await;
        assert_eq!(conversation.instructions(), None, "instructions of a run end with it");
    }
}
