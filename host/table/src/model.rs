//! What the host asks of a model provider and what comes back, whatever wire format the provider speaks.

use futures::{future::BoxFuture, stream::BoxStream};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Content, Error};

/// A model that can be asked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Its id, as sent to the server.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// The provider's id in the configuration.
    pub provider: String,
    /// The wire format.
    pub api: String,
    /// Where requests go, without a trailing slash.
    pub base_url: String,
    /// It can think before it answers.
    pub reasoning: bool,
    /// It accepts pictures.
    pub images: bool,
    /// Its context window in tokens.
    pub context_window: u64,
    /// Its longest answer in tokens.
    pub max_tokens: u64,
    /// Headers of each request; values may name secrets.
    #[serde(skip)]
    pub headers: Vec<(String, String)>,
    /// Deviations from the wire format.
    #[serde(skip)]
    pub compat: Value,
    /// The user described it, so its base URL may lead anywhere. An extension's leads to the public internet, or where its
    /// name says.
    #[serde(skip)]
    pub is_users: bool,
}

/// How hard to think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    /// Not at all.
    #[default]
    Off,
    /// As little as the model can.
    Minimal,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// More.
    Xhigh,
    /// As much as the model can.
    Max,
}

/// A tool as declared to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// A piece of an assistant's message.
#[derive(Clone, Debug, PartialEq)]
pub enum AssistantPiece {
    /// Text.
    Text(String),
    /// Thinking with what the provider wants back.
    Thinking {
        /// Its text.
        text: String,
        /// The provider's signature.
        signature: Option<String>,
    },
    /// A call.
    ToolCall {
        /// The provider's id.
        id: String,
        /// The tool.
        name: String,
        /// The arguments as JSON text, as the model sent them.
        arguments: String,
    },
}

/// A message of the transcript, as a provider needs it.
#[derive(Clone, Debug, PartialEq)]
pub enum PromptMessage {
    /// Instructions.
    System(String),
    /// The user.
    User(Vec<Content>),
    /// The model.
    Assistant(Vec<AssistantPiece>),
    /// A tool's result.
    ToolResult {
        /// The call's id.
        call_id: String,
        /// The tool.
        name: String,
        /// What it gave.
        content: Vec<Content>,
        /// It failed.
        is_error: bool,
    },
}

/// One request.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// Unique in the session.
    pub id: String,
    /// Which model.
    pub model: Model,
    /// The key, if there is one. Only the host's network boundary sees it.
    pub key: Option<Secret>,
    /// Secrets that the model's headers name, as `{{secret:NAME}}`. Likewise.
    pub header_secrets: Vec<(String, Secret)>,
    /// The transcript.
    pub messages: Vec<PromptMessage>,
    /// The tools, in the order to declare them.
    pub tools: Vec<Declaration>,
    /// How hard to think.
    pub thinking: ThinkingLevel,
    /// How long the server may stay silent, in milliseconds.
    pub idle_timeout_ms: u64,
}

/// A value that must not be shown: `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a value from being shown.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Tokens and money of one request, in the shape of session files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Input tokens that no cache was involved in.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// Tokens of reasoning among `output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    /// All tokens as the provider counts them.
    pub total_tokens: u64,
    /// What it cost.
    pub cost: Cost,
}

/// Money in US dollars.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// For input.
    pub input: f64,
    /// For output.
    pub output: f64,
    /// For cache reads.
    pub cache_read: f64,
    /// For cache writes.
    pub cache_write: f64,
    /// In all.
    pub total: f64,
}

/// Why a good answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoneReason {
    /// The model was done.
    Stop,
    /// A bound on its length.
    Length,
    /// It wants tools to run.
    ToolUse,
}

/// What comes while a model answers. The last one is `Done` or `Failed`.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// The server began to answer.
    Start,
    /// A text block begins, at this index.
    TextStart(u32),
    /// It grows.
    TextDelta(u32, String),
    /// It is complete.
    TextEnd(u32),
    /// A thinking block begins.
    ThinkingStart(u32),
    /// It grows.
    ThinkingDelta(u32, String),
    /// It is complete, with what the provider wants back.
    ThinkingEnd(u32, Option<String>),
    /// A call begins.
    CallStart {
        /// The block's index.
        index: u32,
        /// The provider's id of the call.
        id: String,
        /// The tool.
        name: String,
    },
    /// Its arguments grow.
    CallDelta(u32, String),
    /// It is complete.
    CallEnd(u32),
    /// Tokens so far.
    Usage(Usage),
    /// The answer is complete.
    Done {
        /// Why.
        reason: DoneReason,
        /// In the provider's words.
        raw_reason: Option<String>,
        /// The model that answered, if another.
        response_model: Option<String>,
        /// The provider's id of the answer.
        response_id: Option<String>,
    },
    /// There is no complete answer.
    Failed {
        /// What happened.
        error: Error,
        /// The HTTP status.
        status: Option<u16>,
        /// How long the server asks to wait.
        retry_after_ms: Option<u64>,
    },
}

/// A provider as the host asks it. Dropping the stream ends the request.
pub trait ModelProvider: Send + Sync {
    /// The wire formats it speaks.
    fn apis(&self) -> Vec<String>;

    /// Asks a model.
    fn complete(&self, request: ModelRequest) -> BoxFuture<'_, Result<BoxStream<'static, ModelEvent>, Error>>;
}
