//! How a tool is run, whoever implements it.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Content, Error, TableAccess, model::Usage};

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
    pub structured: Option<Value>,
    /// It failed.
    #[serde(default)]
    pub is_error: bool,
    /// The run should end, if the whole batch says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminate: bool,
    /// Tokens that it took, if it asked a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
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
