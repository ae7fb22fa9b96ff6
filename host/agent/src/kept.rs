//! Where tools keep what they want to know the next time they are called.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use atoll_table::{
    Error,
    kept::{Changes, Kept},
};
use serde_json::Value;

use crate::{event::Event, session::SharedSession};

/// Keeps what tools want to be kept. Calls of both may come at once.
pub trait Keeper: Send + Sync {
    /// What is kept of a tool now, by the name it has in the table.
    fn kept(&self, tool: &str) -> Arc<Kept>;

    /// Keeps what a call of a tool wants. Must not wait for anything but a disk.
    ///
    /// # Errors
    /// `failed` if it can not be kept; then nothing of it is.
    fn keep(&self, tool: &str, changes: Changes) -> Result<(), Error>;
}

/// Until the program ends: for commands without a session.
#[derive(Default)]
pub struct InMemory(Mutex<HashMap<String, Arc<Kept>>>);

impl Keeper for InMemory {
    fn kept(&self, tool: &str) -> Arc<Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(tool).cloned().unwrap_or_default()
    }

    fn keep(&self, tool: &str, changes: Changes) -> Result<(), Error> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(all.entry(tool.to_owned()).or_default()).apply(changes);
        Ok(())
    }
}

/// With a session, as entries on its branch.
pub struct InSession {
    session: SharedSession,
    tell: Box<dyn Fn(&Event) + Send + Sync>,
}

impl InSession {
    /// In this session. `tell` is told of the entries.
    pub fn new(session: SharedSession, tell: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self { session, tell: Box::new(tell) }
    }
}

impl Keeper for InSession {
    fn kept(&self, tool: &str) -> Arc<Kept> {
        self.session.with(|session| session.kept(tool))
    }

    fn keep(&self, tool: &str, changes: Changes) -> Result<(), Error> {
        let appended = self.session.with(|session| {
            session.keep(tool, changes)?;
            Ok(session.last_entry().cloned())
        });
        let failed = |error: crate::session::SessionError| {
            Error::Failed(format!("what {tool} wants to keep could not be kept: {error}"))
        };
        if let Some(entry) = appended.map_err(failed)? {
            (self.tell)(&Event::EntryAppended { entry: Value::Object(entry) });
        }
        Ok(())
    }
}
