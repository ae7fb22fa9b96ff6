//! The session as several hold it: the loop that appends what is said, and whatever else may read it and append to it
//! meanwhile.
//!
//! The lock must never be held while something is awaited.

use std::sync::{Arc, Mutex, PoisonError};

use super::Session;

/// A session. Clones share it.
#[derive(Clone, Debug)]
pub struct SharedSession(Arc<Mutex<Session>>);

impl SharedSession {
    /// Shares a session.
    pub fn new(session: Session) -> Self {
        Self(Arc::new(Mutex::new(session)))
    }

    /// Looks at it, or changes it. Whoever else wants it waits meanwhile.
    pub fn with<R>(&self, act: impl FnOnce(&mut Session) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl From<Session> for SharedSession {
    fn from(session: Session) -> Self {
        Self::new(session)
    }
}
