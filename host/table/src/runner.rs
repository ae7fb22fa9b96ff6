//! How a tool is run, whoever implements it.

use std::{sync::Arc, time::Instant};

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Content, Data, Error, TableAccess,
    kept::{Changes, Kept},
    model::Usage,
};

/// One call, with arguments that fit the tool's schema.
#[derive(Clone)]
pub struct Invocation {
    /// Unique in the session.
    pub id: String,
    /// The call that made this one.
    pub parent_id: Option<String>,
    /// The tool's name as its plugin gave it.
    pub tool: String,
    /// The arguments, an object.
    pub arguments: Value,
    /// How many calls are around this one.
    pub depth: u32,
    /// The table, as this call may use it.
    pub table: Arc<dyn TableAccess>,
    /// What earlier calls of the tool have kept.
    pub kept: KeptNow,
    /// When the caller wants it to have ended. Nothing ends it then but itself.
    pub deadline: Option<Instant>,
}

/// Looks at what is kept of a tool.
pub type KeptNow = Arc<dyn Fn() -> Arc<Kept> + Send + Sync>;

/// How a call wants its text to be shaped for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shaping {
    /// The most characters of text.
    pub max_chars: usize,
    /// Pictures are saved as files, too.
    pub save_images: bool,
}

/// What a call gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutput {
    /// What the model reads.
    pub content: Vec<Content>,
    /// Data for whoever shows the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The result as data.
    #[serde(rename = "structuredContent", skip_serializing_if = "Option::is_none")]
    pub structured: Option<Data>,
    /// It failed.
    #[serde(default)]
    pub is_error: bool,
    /// The run should end, if the whole batch says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminate: bool,
    /// Tokens that it took, if it asked a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What it has said to the host about its end; shown to nobody.
    #[serde(skip)]
    pub aside: Option<Box<Aside>>,
}

/// What a call has said to the host about its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aside {
    /// What it wants to be kept for later calls of the tool, if it has succeeded.
    pub keep: Changes,
    /// How it wants to be shaped for a model.
    pub shaping: Option<Shaping>,
}

impl ToolOutput {
    /// A failed call, as the model reads it.
    pub fn error(text: impl Into<String>) -> Self {
        Self { content: vec![Content::text(text)], is_error: true, ..Self::default() }
    }
}

/// Receives partial results of a running call. Must not block.
pub type Progress = Arc<dyn Fn(Vec<Content>, Option<Value>) + Send + Sync>;

/// A plugin's tools as the host runs them. Dropping a returned future stops the call: nothing of it may run on.
pub trait ToolRunner: Send + Sync {
    /// Rewrites raw arguments into the schema's shape. Only called for a tool with `prepares`.
    fn prepare(&self, tool: String, arguments: Value) -> BoxFuture<'_, Result<Value, Error>>;

    /// Runs one call.
    fn call(&self, invocation: Invocation, progress: Progress) -> BoxFuture<'_, Result<ToolOutput, Error>>;

    /// What its plugin may do, a line each, for people.
    fn allowed(&self) -> Vec<String>;
}
