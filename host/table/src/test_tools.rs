//! What tests in this crate have in common.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::{
    Error, Invocation, Progress, Tool, ToolOutput, ToolRunner,
    tool::{Exposure, Namespace},
};

struct Nothing;

impl ToolRunner for Nothing {
    fn prepare(&self, _: String, arguments: Value) -> BoxFuture<'_, Result<Value, Error>> {
        Box::pin(async { Ok(arguments) })
    }
    fn call(&self, _: Invocation, _: Progress) -> BoxFuture<'_, Result<ToolOutput, Error>> {
        Box::pin(async { Ok(ToolOutput::default()) })
    }
    fn allowed(&self) -> Vec<String> {
        Vec::new()
    }
}

pub(crate) fn runner() -> Arc<dyn ToolRunner> {
    Arc::new(Nothing)
}

pub(crate) fn tool(name: &str) -> Tool {
    Tool::new(name, json!({"type": "object"}))
}

pub(crate) fn exposed(name: &str, exposure: Exposure) -> Tool {
    Tool { exposure, ..tool(name) }
}

pub(crate) fn described(name: &str, description: &str) -> Tool {
    Tool { description: description.to_owned(), ..tool(name) }
}

pub(crate) fn namespace(name: &str, alias: &str) -> Namespace {
    Namespace { name: name.to_owned(), aliases: vec![alias.to_owned()], description: None, instructions: None }
}
