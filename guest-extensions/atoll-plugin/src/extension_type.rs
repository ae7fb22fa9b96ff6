//! An extension as a type with functions.

use std::rc::Rc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    extension::{Block, Completion, Event, Other, Outcome, ResultPatch, StartReason, Transform},
    types::{Blob, Command, Content, Error, Flag, FlagKind, Shortcut, Subscription, ToolOutput},
};

/// An extension: one value of the type lives as long as the session. Pass the type to
/// [`export_extension!`](crate::export_extension).
///
/// Handlers run beside each other: while one waits, others begin. So state that changes belongs into a `Cell` or a
/// `RefCell`, which is not held while something is waited for.
#[allow(async_fn_in_trait, reason = "a guest has one thread, so nothing needs the future to be `Send`")]
pub trait Extension: Sized + 'static {
    /// Begins, and says what it wants to be called for. Tools that it registers here are there for the first request.
    ///
    /// # Errors
    /// Why it can not be had. The session then goes on without it.
    async fn start(reason: StartReason) -> Result<(Self, Subscription), Error>;

    /// Hears of an event that it subscribed to. What may be answered is said at [`Event`].
    ///
    /// # Errors
    /// A failure blocks `tool-call` and `user-bash`; elsewhere it is reported, and the run goes on.
    async fn on_event(&self, id: EventId, event: Event) -> Result<Outcome, Error> {
        let _ = (id, event);
        Ok(Outcome::Pass)
    }

    /// Runs one of its commands. `arguments` is what follows the name.
    ///
    /// # Errors
    /// What the user reads.
    async fn command(&self, id: EventId, name: &str, arguments: &str) -> Result<(), Error> {
        let _ = (id, arguments);
        Err(Error::not_found(format!("There is no command {name}.")))
    }

    /// How the arguments of a command could go on. Called for commands that say that they know.
    ///
    /// # Errors
    /// Nothing is shown then.
    async fn complete(&self, name: &str, arguments: &str) -> Result<Vec<Completion>, Error> {
        let _ = (name, arguments);
        Ok(Vec::new())
    }

    /// The last call. What it has open is closed when this returns, or after 5 seconds.
    async fn stop(&self) {}
}

/// A type that is exported as the extension of this component: there is one value of it.
pub trait Exported: Extension {
    /// The value, once it has started: for tools of the same component.
    fn instance() -> Option<Rc<Self>>;
}

/// The name of an event or a command that is being handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventId(pub String);

impl EventId {
    /// Calls a tool as a part of this. Needs the capability `table`. A tool that ran and failed gives an output that says
    /// so.
    ///
    /// # Errors
    /// What went wrong before it ran, and errors of the tool itself.
    pub async fn call_tool(&self, name: &str, arguments: &Value) -> Result<ToolOutput, Error> {
        crate::table::call(Some(self.0.clone()), name.to_owned(), arguments.to_string()).await
    }

    /// Returns once the answer is no longer wanted.
    pub async fn cancelled(&self) {
        crate::progress::cancelled(self.0.clone()).await;
    }
}

impl Event {
    /// Its name, such as `tool-call`.
    pub fn name(&self) -> &str {
        match self {
            Self::Input(_) => "input",
            Self::ToolCall(_) => "tool-call",
            Self::ToolResult(_) => "tool-result",
            Self::Bus(_) => "bus",
            Self::Other(other) => &other.name,
        }
    }
}

impl Other {
    /// Its fields as a type of yours.
    ///
    /// # Errors
    /// `invalid-arguments` if the type has other fields.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_str(&self.fields)
            .map_err(|error| Error::invalid_arguments(format!("{} has other fields: {error}", self.name)))
    }
}

impl Outcome {
    /// The action is not to happen; the model or the user reads why.
    pub fn block(reason: impl Into<String>) -> Self {
        Self::Block(Block { reason: reason.into(), terminate: false })
    }

    /// The call is to be made with these arguments, an object.
    pub fn rewrite(arguments: &Value) -> Self {
        Self::Rewrite(arguments.to_string())
    }

    /// The user said this instead.
    pub fn transform(text: impl Into<String>) -> Self {
        Self::Transform(Transform { text: text.into(), images: None })
    }

    /// The result has this content instead; its data goes with the old content.
    pub fn content(content: Vec<Content>) -> Self {
        Self::Patch(ResultPatch {
            content: Some(content),
            details: None,
            structured: None,
            is_error: None,
            usage: None,
        })
    }

    /// Fields, an object, as the event has them.
    pub fn reply(fields: &Value) -> Self {
        Self::Reply(fields.to_string())
    }
}

impl Subscription {
    /// Wants nothing.
    pub fn new() -> Self {
        Self { events: Vec::new(), topics: Vec::new(), commands: Vec::new(), flags: Vec::new(), shortcuts: Vec::new() }
    }

    /// Wants an event, such as `tool-call`.
    #[must_use]
    pub fn event(mut self, name: &str) -> Self {
        self.events.push(name.to_owned());
        self
    }

    /// Wants what is said about a topic of the bus.
    #[must_use]
    pub fn topic(mut self, topic: &str) -> Self {
        self.topics.push(topic.to_owned());
        self
    }

    /// Has a command.
    #[must_use]
    pub fn command(mut self, name: &str, description: &str) -> Self {
        let (name, description) = (name.to_owned(), description.to_owned());
        self.commands.push(Command { name, description, hidden: false, completes: false });
        self
    }

    /// Has a command whose arguments [`Extension::complete`] knows.
    #[must_use]
    pub fn completed_command(mut self, name: &str, description: &str) -> Self {
        let (name, description) = (name.to_owned(), description.to_owned());
        self.commands.push(Command { name, description, hidden: false, completes: true });
        self
    }

    /// Has an option of the command line, `--name`, that is there or not.
    #[must_use]
    pub fn flag(mut self, name: &str, description: &str) -> Self {
        let (name, description) = (name.to_owned(), description.to_owned());
        self.flags.push(Flag { name, description, kind: FlagKind::Boolean, default: None });
        self
    }

    /// Has an option of the command line, `--name VALUE`.
    #[must_use]
    pub fn flag_text(mut self, name: &str, description: &str, default: Option<&str>) -> Self {
        let (name, description) = (name.to_owned(), description.to_owned());
        self.flags.push(Flag { name, description, kind: FlagKind::Text, default: default.map(str::to_owned) });
        self
    }

    /// Has a key that runs one of its commands, where there is a terminal interface.
    #[must_use]
    pub fn shortcut(mut self, key: &str, description: &str, command: &str) -> Self {
        let (key, description, command) = (key.to_owned(), description.to_owned(), command.to_owned());
        self.shortcuts.push(Shortcut { key, description, command });
        self
    }
}

impl Default for Subscription {
    fn default() -> Self {
        Self::new()
    }
}

/// A picture's bytes as content.
impl From<Blob> for Content {
    fn from(blob: Blob) -> Self {
        Self::Image(blob)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => Self::NotFound(error.to_string()),
            std::io::ErrorKind::TimedOut => Self::Timeout(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::InvalidArguments(error.to_string())
    }
}

/// Exports a type that implements [`Extension`] as the extension of this component. Once in a component.
#[macro_export]
macro_rules! export_extension {
    ($extension:ty) => {
        #[doc(hidden)]
        struct AtollPluginExtension;

        ::std::thread_local! {
            static ATOLL_PLUGIN_EXTENSION: ::std::cell::OnceCell<::std::rc::Rc<$extension>> =
                const { ::std::cell::OnceCell::new() };
        }

        impl $crate::Exported for $extension {
            fn instance() -> ::std::option::Option<::std::rc::Rc<Self>> {
                ATOLL_PLUGIN_EXTENSION.with(|one| one.get().cloned())
            }
        }

        impl AtollPluginExtension {
            fn instance() -> ::std::result::Result<::std::rc::Rc<$extension>, $crate::Error> {
                <$extension as $crate::Exported>::instance()
                    .ok_or_else(|| $crate::Error::unavailable("It has not been started."))
            }
        }

        impl $crate::extension::Guest for AtollPluginExtension {
            async fn start(
                reason: $crate::extension::StartReason,
            ) -> ::std::result::Result<$crate::types::Subscription, $crate::Error> {
                let (extension, wanted) = <$extension as $crate::Extension>::start(reason).await?;
                ATOLL_PLUGIN_EXTENSION.with(|one| one.get_or_init(|| ::std::rc::Rc::new(extension)).clone());
                ::std::result::Result::Ok(wanted)
            }

            async fn on_event(
                id: ::std::string::String,
                event: $crate::extension::Event,
            ) -> ::std::result::Result<$crate::extension::Outcome, $crate::Error> {
                $crate::Extension::on_event(&*Self::instance()?, $crate::EventId(id), event).await
            }

            async fn run_command(
                id: ::std::string::String,
                name: ::std::string::String,
                arguments: ::std::string::String,
            ) -> ::std::result::Result<(), $crate::Error> {
                $crate::Extension::command(&*Self::instance()?, $crate::EventId(id), &name, &arguments).await
            }

            async fn complete_command(
                name: ::std::string::String,
                arguments: ::std::string::String,
            ) -> ::std::result::Result<::std::vec::Vec<$crate::extension::Completion>, $crate::Error> {
                $crate::Extension::complete(&*Self::instance()?, &name, &arguments).await
            }

            async fn stop() {
                if let ::std::result::Result::Ok(extension) = Self::instance() {
                    $crate::Extension::stop(&*extension).await;
                }
            }
        }

        $crate::extension::export!(AtollPluginExtension);
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wants_add_up() {
        let wanted = Subscription::new()
            .event("tool-call")
            .command("hello", "Says so.")
            .flag_text("rules", "A file.", Some("rules.toml"))
            .shortcut("ctrl+g", "Says so.", "hello");
        assert_eq!(wanted.events, ["tool-call"]);
        assert_eq!((wanted.commands[0].name.as_str(), wanted.shortcuts[0].command.as_str()), ("hello", "hello"));
        assert_eq!(wanted.flags[0].default.as_deref(), Some("rules.toml"));
    }

    #[test]
    fn fields_are_read_into_a_type() {
        let other = Other { name: "user-bash".into(), fields: r#"{"command":"ls","cwd":"/"}"#.into() };
        let fields: Value = other.read().unwrap_or_default();
        assert_eq!(fields["command"], "ls");
        assert_eq!(other.read::<Vec<u8>>().err().map(|error| error.code()), Some("invalid-arguments"));
    }
}
