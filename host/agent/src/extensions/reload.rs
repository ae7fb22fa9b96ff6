//! What of the extensions changes while a session goes on: which there are, and that one of them takes over from another.

use std::sync::Arc;

use atoll_table::{
    Error,
    extension::{Event, EventKind, Extension, StartReason},
};
use futures::future::BoxFuture;
use serde_json::json;

use super::{END_TIME, Extensions};

/// The command that has all extensions loaded anew. The host's own: no extension has one of this name.
pub const RELOAD_COMMAND: &str = "reload";
/// The reason that handlers are told.
const REASON: &str = "reload";

/// Loads all extensions anew.
pub trait Reload: Send + Sync {
    /// Does it, whether anybody waits for it or not. What is under way ends on the old ones.
    ///
    /// # Errors
    /// `unavailable` if it is being done already, `failed` with what goes on as it was, and why.
    fn reload(self: Arc<Self>) -> BoxFuture<'static, Result<(), Error>>;
}

impl Extensions {
    /// From now on it is these, in this order. New ones have still to be started.
    pub fn set(&self, extensions: Vec<Arc<dyn Extension>>) {
        let known = self.all();
        for extension in &extensions {
            if !known.iter().any(|known| Arc::ptr_eq(known, extension)) {
                self.listen(extension);
            }
        }
        *self.inner.all.write().unwrap_or_else(std::sync::PoisonError::into_inner) = extensions.into();
        self.refresh();
    }

    /// Starts one that has come to those that run, and tells it of the session. If it can not be started it is taken away
    /// again.
    ///
    /// # Errors
    /// As [`Extension::start`].
    pub async fn begin_one(&self, extension: &Arc<dyn Extension>) -> Result<(), Error> {
        if let Err(error) = extension.start(StartReason::Startup).await {
            self.remove(extension);
            extension.stop().await;
            return Err(error);
        }
        self.refresh();
        self.tell_one(extension, EventKind::SessionStart).await;
        Ok(())
    }

    /// Tells one that the session ends for it, because another takes over or it is not there any more; or that the session
    /// begins for the one that took over. Waits for it, for a while.
    pub async fn tell_one(&self, extension: &Arc<dyn Extension>, kind: EventKind) {
        if !extension.subscription().wants(kind) {
            return;
        }
        let told =
            tokio::time::timeout(END_TIME, extension.ask(Event::other(kind, json!({"reason": REASON})), 0)).await;
        let late = || Error::Timeout(format!("it did not end that within {} s", END_TIME.as_secs()));
        if let Err(error) = told.unwrap_or_else(|_| Err(late())) {
            self.report(extension.name(), Some(kind), &error);
        }
    }
}
