//! Events that have no case of their own in the contract, as types. Their fields are those of the JSON events, and new
//! ones may come: what is not named here is left out, and messages stay JSON.
//!
//! ```
//! use atoll_plugin::{
//!     Error,
//!     events::{BeforeAgentStart, BeforeAgentStartReply},
//!     extension::{Event, Outcome},
//! };
//!
//! fn polite(event: &Event) -> Result<Outcome, Error> {
//!     let Some(start) = event.view::<BeforeAgentStart>()? else { return Ok(Outcome::Pass) };
//!     let system_prompt = Some(format!("{}\n\nBe polite.", start.system_prompt));
//!     Ok(BeforeAgentStartReply { system_prompt, ..Default::default() }.into())
//! }
//! ```

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{
    extension::{Event, Outcome},
    types::{Error, Subscription},
};

/// The fields of an event. Subscribe with [`Subscription::wants`], read with [`Event::view`].
pub trait Fields: DeserializeOwned {
    /// The event's name.
    const NAME: &'static str;
}

impl Subscription {
    /// Wants the event that a type of [`events`](crate::events) stands for.
    #[must_use]
    pub fn wants<T: Fields>(self) -> Self {
        self.event(T::NAME)
    }
}

impl Event {
    /// The event's fields, if it is this one.
    ///
    /// # Errors
    /// `invalid-arguments` if the host gave it other fields.
    pub fn view<T: Fields>(&self) -> Result<Option<T>, Error> {
        match self {
            Self::Other(other) if other.name == T::NAME => other.read().map(Some),
            _ => Ok(None),
        }
    }
}

macro_rules! events {
    ($($(#[$about:meta])* $name:ident = $event:literal { $($(#[$field_about:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$about])*
            #[derive(Debug, Clone, PartialEq, Deserialize)]
            #[serde(rename_all = "camelCase")]
            pub struct $name {
                $($(#[$field_about])* pub $field: $type,)*
            }

            impl Fields for $name {
                const NAME: &'static str = $event;
            }
        )*

        /// Reads fields as the type of their event; none if there is no type for it. For tests.
        #[doc(hidden)]
        pub fn check(name: &str, fields: &Value) -> Option<Result<(), String>> {
            match name {
                $($event => Some(serde_json::from_value::<$name>(fields.clone()).map(drop).map_err(|error| error.to_string())),)*
                _ => None,
            }
        }
    };
}

events! {
    /// The session begins. Waited for.
    SessionStart = "session-start" {
        /// `startup`, `reload`, `new`, `resume` or `fork`.
        reason: String,
        /// The session that was left.
        previous_session_file: Option<String>,
    }
    /// The session ends. Waited for.
    SessionShutdown = "session-shutdown" {
        /// `quit`, `reload`, `new`, `resume` or `fork`.
        reason: String,
        /// The session that comes next.
        target_session_file: Option<String>,
    }
    /// The session has another name.
    SessionInfoChanged = "session-info-changed" {
        /// The name; none: it has none any more.
        name: Option<String>,
    }
    /// A prompt is about to be carried out. Answer with a [`BeforeAgentStartReply`].
    BeforeAgentStart = "before-agent-start" {
        /// `user`, or `custom` for a message of an extension.
        message_type: String,
        /// What the user said.
        prompt: Option<String>,
        /// Pictures with it, as JSON.
        #[serde(default)]
        images: Vec<Value>,
        /// The system prompt as it would be sent.
        system_prompt: String,
        /// What it is made of.
        system_prompt_options: PromptOptions,
    }
    /// A model is about to be asked. Answer with a [`ContextReply`].
    Context = "context" {
        /// The messages, without instructions.
        messages: Vec<Value>,
    }
    /// The same, with instructions, which have to stay at the start. Answer with a [`ContextReply`].
    ContextWithSystem = "context-with-system" {
        /// The messages.
        messages: Vec<Value>,
    }
    /// A message begins.
    MessageStart = "message-start" {
        /// What there is of it.
        message: Value,
    }
    /// A message of the model grows.
    MessageUpdate = "message-update" {
        /// What there is of it.
        message: Value,
        /// What was added.
        assistant_message_event: Value,
    }
    /// A message is complete. Answer with a [`MessageEndReply`].
    MessageEnd = "message-end" {
        /// The message.
        message: Value,
    }
    /// The agent begins.
    AgentStart = "agent-start" {}
    /// The agent has ended.
    AgentEnd = "agent-end" {
        /// What was said.
        messages: Vec<Value>,
    }
    /// Nothing is running any more.
    AgentSettled = "agent-settled" {
        /// It was stopped.
        aborted: bool,
    }
    /// A request and what comes of it begin.
    TurnStart = "turn-start" {
        /// Which, from 0.
        turn_index: u64,
        /// When, in milliseconds since 1970.
        timestamp: u64,
    }
    /// A turn has ended. Answer with a [`TurnReply`].
    TurnEnd = "turn-end" {
        /// `completed`, `aborted` or `error`.
        outcome: String,
        /// The model's message.
        message: Option<Value>,
        /// The results of its calls.
        #[serde(default)]
        tool_results: Vec<Value>,
    }
    /// The agent would stop. Answer with a [`TurnReply`].
    AgentBeforeSettle = "agent-before-settle" {
        /// `completed`, `aborted` or `error`.
        outcome: String,
        /// The model's message.
        message: Option<Value>,
        /// The results of its calls.
        #[serde(default)]
        tool_results: Vec<Value>,
    }
    /// A call begins.
    ToolExecutionStart = "tool-execution-start" {
        /// The call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// The arguments as they were given.
        args: Value,
        /// The call that makes it.
        parent_tool_call_id: Option<String>,
    }
    /// A call has something to show.
    ToolExecutionUpdate = "tool-execution-update" {
        /// The call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// What it has so far.
        partial_result: Value,
        /// The call that makes it.
        parent_tool_call_id: Option<String>,
    }
    /// A call has ended.
    ToolExecutionEnd = "tool-execution-end" {
        /// The call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// What it gave.
        result: Value,
        /// It failed.
        is_error: bool,
        /// How long it ran, in milliseconds; none if it never did.
        duration_ms: Option<u64>,
        /// The call that makes it.
        parent_tool_call_id: Option<String>,
    }
    /// Another model will be asked.
    ModelSelect = "model-select" {
        /// The model.
        model: Value,
        /// The one before.
        previous_model: Option<Value>,
        /// What chose it: `set` or `cycle`.
        source: String,
    }
    /// The model will think harder, or less hard.
    ThinkingLevelSelect = "thinking-level-select" {
        /// How hard.
        level: String,
        /// How hard before.
        previous_level: String,
    }
    /// A person is asked something.
    UiPromptStart = "ui-prompt-start" {
        /// `select`, `confirm`, `input` or `editor`.
        kind: String,
        /// Its title.
        title: String,
    }
    /// The person has answered, or declined.
    UiPromptEnd = "ui-prompt-end" {
        /// As when it began.
        kind: String,
        /// Its title.
        title: String,
    }
    /// Whether the project is trusted is about to be decided. Answer with a [`ProjectTrustReply`].
    ProjectTrust = "project-trust" {
        /// Its directory.
        cwd: String,
    }
    /// Skills, templates and themes are about to be looked for. Answer with a [`ResourcesDiscoverReply`].
    ResourcesDiscover = "resources-discover" {
        /// Where.
        cwd: String,
        /// `startup` or `reload`.
        reason: String,
    }
    /// Headers are about to be sent to a model's server. Answer with a [`HeadersReply`].
    BeforeProviderHeaders = "before-provider-headers" {
        /// The headers, by name.
        headers: Map<String, Value>,
    }
    /// A provider is about to be asked. Answer with a [`PayloadReply`].
    BeforeProviderRequest = "before-provider-request" {
        /// What it is asked.
        payload: Value,
    }
    /// A model's server has answered.
    AfterProviderResponse = "after-provider-response" {
        /// The status.
        status: u16,
        /// Its headers, by name.
        headers: Map<String, Value>,
    }
    /// A piece of a model's answer came.
    ProviderStreamEvent = "provider-stream-event" {
        /// The provider.
        provider: String,
        /// The wire format.
        api: String,
        /// The model.
        model: String,
        /// The piece.
        data: Value,
    }
    /// The servers that extensions have added are others now.
    McpServersChange = "mcp-servers-change" {
        /// All of them.
        servers: Value,
    }
    /// The user runs a command line of their own. Answer with a [`UserBashReply`], or block it.
    UserBash = "user-bash" {
        /// The line.
        command: String,
        /// The model is not to see it.
        #[serde(default)]
        exclude_from_context: bool,
        /// Where it runs.
        cwd: String,
    }
}

/// What a system prompt is made of.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PromptOptions {
    /// Names of the tools that are declared.
    pub selected_tools: Vec<String>,
    /// Its sections, in order: texts by name.
    pub sections: Map<String, Value>,
}

/// A message of an extension's own kind. The model reads it as the user's.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomMessage {
    /// The kind, which says who wrote it.
    pub custom_type: String,
    /// What the model reads.
    pub content: String,
    /// It is shown to the user.
    pub display: bool,
    /// Data for whoever shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

macro_rules! replies {
    ($($(#[$about:meta])* $name:ident { $($(#[$field_about:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$about])*
            #[derive(Debug, Clone, Default, PartialEq, Serialize)]
            #[serde(rename_all = "camelCase")]
            pub struct $name {
                $($(#[$field_about])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,)*
            }

            impl From<$name> for Outcome {
                fn from(reply: $name) -> Self {
                    // Only text keys and JSON values are in it, which can always be written.
                    Self::reply(&serde_json::to_value(reply).unwrap_or_default())
                }
            }
        )*
    };
}

replies! {
    /// What to change before a prompt is carried out; what is left out stays.
    BeforeAgentStartReply {
        /// A message to add.
        message: CustomMessage,
        /// Another system prompt, for this run.
        system_prompt: String,
        /// Other sections, by name; `null` takes one away. With these, the prompt is put together anew.
        system_prompt_options: Value,
    }
    /// What a model is sent, this time.
    ContextReply {
        /// The messages.
        messages: Vec<Value>,
    }
    /// What takes the place of a message.
    MessageEndReply {
        /// The message, of the same role.
        message: Value,
    }
    /// What comes after a turn.
    TurnReply {
        /// Entries to append to the session.
        entries: Vec<Value>,
        /// There is to be one more request.
        r#continue: bool,
    }
    /// Whether a project is trusted.
    ProjectTrustReply {
        /// `yes`, `no` or `undecided`.
        trusted: String,
        /// It is to be saved.
        remember: bool,
    }
    /// More places to look at.
    ResourcesDiscoverReply {
        /// Of skills.
        skill_paths: Vec<String>,
        /// Of templates.
        prompt_paths: Vec<String>,
        /// Of themes.
        theme_paths: Vec<String>,
    }
    /// Headers to set, or with `null` to take away.
    HeadersReply {
        /// By name.
        headers: Map<String, Value>,
    }
    /// What the provider is asked instead.
    PayloadReply {
        /// The payload.
        payload: Value,
    }
    /// What stands for having run the user's command line.
    UserBashReply {
        /// What it gave.
        result: BashResult,
    }
}

/// What a command line gave.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BashResult {
    /// What it printed.
    pub output: String,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// It was stopped.
    pub cancelled: bool,
    /// `output` is not all of it.
    pub truncated: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::extension::Other;

    fn event(name: &str, fields: &Value) -> Event {
        Event::Other(Other { name: name.into(), fields: fields.to_string() })
    }

    #[test]
    fn an_event_is_read_as_its_own_type_only() {
        let fields = json!({"messageType": "user", "prompt": "hi", "images": [], "systemPrompt": "Be.",
            "systemPromptOptions": {"selectedTools": ["read"], "sections": {"a": "b"}}, "later": 1});
        let start = event("before-agent-start", &fields);
        let view = start.view::<BeforeAgentStart>().ok().flatten();
        assert_eq!(view.map(|view| view.system_prompt_options.selected_tools), Some(vec!["read".to_owned()]));
        assert!(matches!(start.view::<Context>(), Ok(None)));
        let wrong = event("context", &json!({}));
        assert_eq!(wrong.view::<Context>().err().map(|error| error.code()), Some("invalid-arguments"));
        assert_eq!(Subscription::new().wants::<Context>().events, ["context"]);
    }

    #[test]
    fn a_reply_has_only_what_was_said() {
        let said = |outcome| match outcome {
            Outcome::Reply(text) => text,
            _ => String::new(),
        };
        let message = CustomMessage { custom_type: "rules".into(), content: "Mind.".into(), ..Default::default() };
        let reply = BeforeAgentStartReply { message: Some(message), ..Default::default() };
        assert_eq!(said(reply.into()), r#"{"message":{"customType":"rules","content":"Mind.","display":false}}"#);
        assert_eq!(said(TurnReply { r#continue: Some(true), ..Default::default() }.into()), r#"{"continue":true}"#);
    }
}
