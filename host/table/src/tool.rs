//! What a tool is.

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// Who may see and call a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exposure {
    /// Declared to the model while active; callable from scripts and other tools.
    Direct,
    /// Declared to the model while active; callable by nobody else.
    ModelOnly,
    /// Not declared; callable from scripts, which see it listed.
    Codemode,
    /// Not declared, not listed; found by search.
    Deferred,
    /// Reachable by nobody.
    Hidden,
}

/// How calls of one assistant message may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExecutionMode {
    /// Beside the other calls.
    Parallel,
    /// One call of this kind makes the whole batch run in order.
    Sequential,
}

/// A tool's claims about itself; never checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// It changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it twice is the same as once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches beyond this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// A group of tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// Other names it answers to.
    pub aliases: Vec<String>,
    /// What the group is for.
    pub description: Option<String>,
    /// How to use it.
    pub instructions: Option<String>,
}

/// A tool as its plugin describes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The name models and scripts use.
    pub name: String,
    /// A short name for people.
    pub label: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
    /// JSON Schema of its structured result. Many tools of one plugin may have the same.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shared")]
    pub output_schema: Option<Arc<Value>>,
    /// One line for the system prompt's list of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_snippet: Option<String>,
    /// Rules for the system prompt while it is active.
    pub prompt_guidelines: Vec<String>,
    /// Who may reach it.
    pub exposure: Exposure,
    /// Active from the start.
    pub default_active: bool,
    /// How its calls may run.
    pub execution_mode: ExecutionMode,
    /// Its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Namespace>,
    /// Its claims.
    pub annotations: Annotations,
    /// It wants to rewrite raw arguments before they are checked.
    #[serde(skip)]
    pub prepares: bool,
}

fn shared<S: Serializer>(schema: &Option<Arc<Value>>, serializer: S) -> Result<S::Ok, S::Error> {
    schema.as_deref().serialize(serializer)
}

impl Tool {
    /// A tool that is called by its name and nothing else, active, and for everybody.
    pub fn new(name: &str, parameters: Value) -> Self {
        Self {
            name: name.to_owned(),
            label: name.to_owned(),
            description: String::new(),
            parameters,
            output_schema: None,
            prompt_snippet: None,
            prompt_guidelines: Vec::new(),
            exposure: Exposure::Direct,
            default_active: true,
            execution_mode: ExecutionMode::Parallel,
            namespace: None,
            annotations: Annotations::default(),
            prepares: false,
        }
    }
}

/// Whether `name` may name a tool: 1 to 64 of `A-Z a-z 0-9 _ -`, the set every model API accepts.
pub fn is_valid_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}
