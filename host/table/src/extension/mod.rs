//! Extensions as the agent reaches them: what they can be told, what they answer, and what they may reach.
//!
//! Data and traits only: nothing here may know how an extension is run, or what a session is.

mod event;
mod outcome;
mod services;
mod subscription;

use std::sync::Arc;

use futures::future::BoxFuture;

pub use event::{Delivery, Event, EventKind, EventSet, Input};
pub use outcome::Outcome;
pub use services::{
    Bus, ContextSize, CustomMessage, HostFacts, HostInfo, McpServer, Mode, ModelAccess, ModelAnswer, ModelChoice,
    Providers, Servers, Services, SessionAccess, SessionInfo, Tables, Tone, Ui, Who,
};
pub use subscription::{Command, Completion, Flag, FlagKind, Shortcut, Subscription, is_command_name, is_flag_name};

use crate::{Error, Origin};

/// Why an extension is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartReason {
    /// The session begins.
    Startup,
    /// It takes over from one that runs.
    Reload,
    /// It died.
    Restart,
}

/// Is told of failures that nobody waits for: which extension, at what event if at one, and why. Must not block.
pub type FailureReport = Arc<dyn Fn(&str, Option<EventKind>, &Error) + Send + Sync>;

/// An extension, reached through a trait so that the agent needs no sandbox. Its futures may be dropped: the handler is
/// then told that nobody waits, and runs on unheard.
pub trait Extension: Send + Sync {
    /// The plugin's name.
    fn name(&self) -> &str;

    /// Where the plugin comes from.
    fn origin(&self) -> Origin;

    /// What it wants now. Empty before it has started. Once it is disabled for the session only what it guards is left,
    /// and asking it about that fails: a gate does not open because it broke.
    fn subscription(&self) -> Arc<Subscription>;

    /// Starts it, within 10 seconds. Once.
    ///
    /// # Errors
    /// What it says, `timeout` if it does not answer, `failed` if it died of it; `invalid-arguments` if what it wants
    /// can not be had. Then it is as good as not there.
    fn start(&self, reason: StartReason) -> BoxFuture<'_, Result<Arc<Subscription>, Error>>;

    /// Sends an event whose answer counts. Its handler begins after those of all events that were sent before. `depth`
    /// is how many calls are around it. The answer fits the event.
    ///
    /// # Errors
    /// What the handler says; `failed` for an answer that does not fit, and for a death; `limit` `event-ms`;
    /// `unavailable` if the extension is disabled, or can not look at this event now.
    fn ask(&self, event: Event, depth: u32) -> BoxFuture<'_, Result<Outcome, Error>>;

    /// Sends an event that nobody waits for. Never blocks. `false` if it was dropped for want of room.
    fn tell(&self, event: Event) -> bool;

    /// Runs a command of its own, as it named it. No time bounds it; dropping the future tells it to stop.
    ///
    /// # Errors
    /// What the command says, and as [`Self::ask`].
    fn run_command(&self, name: String, arguments: String) -> BoxFuture<'_, Result<(), Error>>;

    /// How the arguments of a command could go on.
    ///
    /// # Errors
    /// As [`Self::ask`].
    fn complete_command(&self, name: String, arguments: String) -> BoxFuture<'_, Result<Vec<Completion>, Error>>;

    /// Ends it: at most 5 seconds. Nothing of it runs afterwards.
    fn stop(&self) -> BoxFuture<'_, ()>;

    /// Who is told of failures that nobody waits for, and of deaths.
    fn on_failure(&self, report: FailureReport);
}
