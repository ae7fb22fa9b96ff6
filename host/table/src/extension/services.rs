//! What an extension may reach of the session it is in. Implemented where sessions are, used by what runs extensions.

use std::{path::PathBuf, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use serde_json::Value;

use super::{Delivery, Subscription};
use crate::{
    Content, Error, Origin, TableAccess,
    model::{Secret, Usage},
};

/// An extension that wants something.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Who {
    /// The plugin's name.
    pub plugin: String,
    /// Where it comes from.
    pub origin: Origin,
}

/// The tool table for what an extension does by itself.
pub trait Tables: Send + Sync {
    /// The table as an extension may use it in the middle of the event or command `parent`, or on its own. `depth` calls
    /// are around what it calls. Calls are numbered below `parent`, which is unique in the session; without one, below
    /// the plugin's name.
    fn access(&self, who: &Who, parent: Option<&str>, depth: u32) -> Arc<dyn TableAccess>;
}

/// Facts about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its id.
    pub id: String,
    /// Its file, if it is kept.
    pub file: Option<PathBuf>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its name.
    pub name: Option<String>,
    /// Nothing is running.
    pub idle: bool,
    /// Messages wait to be delivered.
    pub pending: bool,
    /// The model, as `provider/id`.
    pub model: Option<String>,
    /// How hard it thinks.
    pub thinking: String,
}

/// A message of an extension's own kind.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomMessage {
    /// The kind.
    pub custom_type: String,
    /// What the model reads.
    pub content: Vec<Content>,
    /// It is shown to the user.
    pub display: bool,
    /// Data for whoever shows it.
    pub details: Option<Value>,
}

/// How full the model's context is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextSize {
    /// Tokens in it, if that is known.
    pub tokens: Option<u64>,
    /// Tokens that fit.
    pub window: u64,
}

/// The session, as an extension may read it and take part in it. Everything that waits may be dropped: what was not done
/// by then is not done.
pub trait SessionAccess: Send + Sync {
    /// Facts about it, now.
    fn info(&self) -> SessionInfo;

    /// The entries of the current branch, oldest first, as objects.
    fn entries(&self) -> BoxFuture<'_, Result<Vec<Value>, Error>>;

    /// Appends an entry that no model sees; gives its id.
    fn append(&self, who: &Who, custom_type: String, data: Value) -> BoxFuture<'_, Result<String, Error>>;

    /// Sends a message as the user would. While nothing runs, all but `next-turn` start a run.
    fn send(&self, who: &Who, content: Vec<Content>, delivery: Delivery) -> BoxFuture<'_, Result<(), Error>>;

    /// Sends a message of the extension's own kind. While nothing runs it starts a run only with `trigger`.
    fn send_custom(
        &self,
        who: &Who,
        message: CustomMessage,
        delivery: Delivery,
        trigger: bool,
    ) -> BoxFuture<'_, Result<(), Error>>;

    /// Sets or clears an entry's label.
    fn set_label(&self, entry_id: String, label: Option<String>) -> BoxFuture<'_, Result<(), Error>>;

    /// Names the session.
    fn set_name(&self, name: String) -> BoxFuture<'_, Result<(), Error>>;

    /// Asks another model from the next request on, by `provider/id`.
    fn set_model(&self, name: String) -> BoxFuture<'_, Result<(), Error>>;

    /// Thinks as hard as this from the next request on.
    fn set_thinking(&self, level: String) -> BoxFuture<'_, Result<(), Error>>;

    /// Sets or removes a section of the system prompt, from the next prompt on.
    fn set_prompt_section(&self, who: &Who, name: String, text: Option<String>) -> BoxFuture<'_, Result<(), Error>>;

    /// The system prompt in force.
    fn system_prompt(&self) -> String;

    /// How full the model's context is.
    fn context_usage(&self) -> Option<ContextSize>;

    /// Summarises the conversation so far.
    fn compact(&self, instructions: Option<String>) -> BoxFuture<'_, Result<(), Error>>;

    /// Waits until nothing is running.
    fn wait_idle(&self) -> BoxFuture<'_, Result<(), Error>>;

    /// Loads all extensions anew. What is under way ends on the old ones.
    fn reload(&self) -> BoxFuture<'_, Result<(), Error>>;

    /// Stops what is running.
    fn abort(&self);

    /// Ends the host in order, once nothing is running.
    fn shutdown(&self);
}

/// A model that can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelChoice {
    /// `provider/id`.
    pub name: String,
    /// It accepts pictures.
    pub images: bool,
    /// Its context window in tokens.
    pub context_window: u64,
}

/// What a model answered.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelAnswer {
    /// Its text.
    pub text: String,
    /// What it took.
    pub usage: Usage,
}

/// Completions of an extension's own.
pub trait ModelAccess: Send + Sync {
    /// The models with credentials, the session's first.
    fn available(&self) -> Vec<ModelChoice>;

    /// Asks a model once, without tools; the session's if none is named. Dropping the future ends the request.
    fn complete(
        &self,
        who: &Who,
        model: Option<String>,
        system: String,
        prompt: Vec<Content>,
        max_tokens: Option<u32>,
    ) -> BoxFuture<'_, Result<ModelAnswer, Error>>;

    /// A server has begun to answer a request of a model's provider. `headers` hold no secrets. Must not block.
    fn responded(&self, status: u16, headers: &[(String, String)]) {
        let _ = (status, headers);
    }
}

/// How a notice looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// Good to know.
    Info,
    /// Something to look at.
    Warning,
    /// Something went wrong.
    Error,
}

/// The person. Without one, every question answers none. Dropping a future takes the question back.
pub trait Ui: Send + Sync {
    /// Whether there is somebody to ask.
    fn available(&self) -> bool;

    /// Picks one of several, by its index.
    fn select(
        &self,
        who: &Who,
        title: String,
        options: Vec<String>,
        timeout: Option<Duration>,
    ) -> BoxFuture<'_, Result<Option<usize>, Error>>;

    /// Yes or no.
    fn confirm(
        &self,
        who: &Who,
        title: String,
        message: String,
        timeout: Option<Duration>,
    ) -> BoxFuture<'_, Result<Option<bool>, Error>>;

    /// A line of text.
    fn input(
        &self,
        who: &Who,
        title: String,
        placeholder: String,
        timeout: Option<Duration>,
    ) -> BoxFuture<'_, Result<Option<String>, Error>>;

    /// A longer text.
    fn editor(&self, who: &Who, title: String, prefill: String) -> BoxFuture<'_, Result<Option<String>, Error>>;

    /// Writes to standard output, with a line break after it if it ends in none.
    fn print(&self, who: &Who, text: String);

    /// Shows a notice.
    fn notify(&self, who: &Who, message: String, tone: Tone);

    /// Sets or clears the extension's place in the status line.
    fn set_status(&self, who: &Who, text: Option<String>);
}

/// What extensions say to each other.
pub trait Bus: Send + Sync {
    /// Sends to every extension that subscribed to the topic but the sender, in load order. Nobody waits for them.
    ///
    /// # Errors
    /// `limit` `queue` if there is no room at one of them.
    fn emit(&self, sender: &Who, topic: &str, data: Value) -> Result<(), Error>;
}

/// Model providers that extensions add to the session.
pub trait Providers: Send + Sync {
    /// Adds one, or replaces the one of this name that the same extension added. `config` is an entry as in the models file
    /// without a key, which comes as `key`. Whoever calls has made sure that the extension may send requests to its base
    /// URLs, and the key with them.
    ///
    /// # Errors
    /// `invalid-arguments` if it is no such entry or the name is another's; `limit` if there are too many.
    fn register(&self, who: &Who, name: &str, config: Value, key: Option<Secret>) -> Result<(), Error>;

    /// Takes one away again.
    ///
    /// # Errors
    /// `not-found` if this extension has added none of this name.
    fn unregister(&self, who: &Who, name: &str) -> Result<(), Error>;
}

/// A server that an extension added for the one that connects to MCP servers.
#[derive(Clone, Debug, PartialEq)]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// Who added it.
    pub who: Who,
    /// How to reach it.
    pub config: Value,
}

/// Servers that extensions add to the session. Nothing here connects to one.
pub trait Servers: Send + Sync {
    /// Adds one, or replaces the one of this name that the same extension added. `config` is an object.
    ///
    /// # Errors
    /// `invalid-arguments` if the name is none or another's; `limit` if there are too many.
    fn register(&self, who: &Who, name: &str, config: Value) -> Result<(), Error>;

    /// Takes one away again.
    ///
    /// # Errors
    /// `not-found` if this extension has added none of this name.
    fn unregister(&self, who: &Who, name: &str) -> Result<(), Error>;

    /// All of them, by their names.
    fn list(&self) -> Vec<McpServer>;
}

/// How the host is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One run; the answer goes to standard output.
    Print,
    /// One run; every event goes to standard output.
    Json,
    /// Another program steers it.
    Rpc,
    /// A person at a terminal interface.
    Terminal,
    /// A command without a model.
    Command,
}

/// Facts about the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostInfo {
    /// Its version.
    pub version: String,
    /// How it is used.
    pub mode: Mode,
    /// There is somebody to ask.
    pub has_person: bool,
    /// The working directory.
    pub cwd: PathBuf,
    /// The project there is trusted.
    pub trusted: bool,
}

/// What an extension may know of its host.
pub trait HostFacts: Send + Sync {
    /// Facts, now.
    fn describe(&self) -> HostInfo;

    /// The value of one of the extension's own flags: what the user said, else its default.
    fn flag(&self, who: &Who, name: &str) -> Option<String>;

    /// What the user's settings say to the plugin, an object.
    fn settings(&self, who: &Who) -> Value;

    /// The command that the program was started for, if it was started for one of a plugin's: that plugin is there alone.
    fn command(&self) -> Option<String> {
        None
    }

    /// The extension wants something else from here on, died, came back or was disabled. `wants` is what its
    /// [`super::Extension::subscription`] gives from now on.
    fn changed(&self, who: &Who, wants: &Arc<Subscription>);
}

/// What extensions reach. Set once, before the first of them starts. What is absent answers `unavailable`.
#[derive(Clone, Default)]
pub struct Services {
    /// The tool table.
    pub tables: Option<Arc<dyn Tables>>,
    /// The session.
    pub session: Option<Arc<dyn SessionAccess>>,
    /// Models.
    pub models: Option<Arc<dyn ModelAccess>>,
    /// The person.
    pub ui: Option<Arc<dyn Ui>>,
    /// Other extensions.
    pub bus: Option<Arc<dyn Bus>>,
    /// The host.
    pub facts: Option<Arc<dyn HostFacts>>,
    /// Model providers of the session.
    pub providers: Option<Arc<dyn Providers>>,
    /// MCP servers of the session.
    pub servers: Option<Arc<dyn Servers>>,
}
