//! Tools of a scenario, which the plugin under test may call.

use std::sync::Arc;

use atoll_table::{Content, Data, Error, Invocation, Progress, Tool, ToolOutput, ToolRunner};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{pattern::data_fits, record::Record, scenario::Scenario};

/// The tools of the scenario.
pub(super) struct FakeTools {
    scenario: Arc<Scenario>,
    record: Arc<Record>,
}

impl FakeTools {
    pub(super) fn new(scenario: Arc<Scenario>, record: Arc<Record>) -> Self {
        Self { scenario, record }
    }

    /// What they are, each once.
    pub(super) fn tools(&self) -> Vec<Tool> {
        let mut tools: Vec<Tool> = Vec::new();
        for fake in &self.scenario.tool {
            let fake = fake.get_ref();
            if tools.iter().all(|tool| tool.name != fake.name) {
                let description = fake.description.clone();
                tools.push(Tool { description, ..Tool::new(&fake.name, json!({"type": "object"})) });
            }
        }
        tools
    }
}

impl ToolRunner for FakeTools {
    fn prepare(&self, _: String, arguments: Value) -> BoxFuture<'_, Result<Value, Error>> {
        Box::pin(async { Ok(arguments) })
    }

    fn call(&self, invocation: Invocation, _: Progress) -> BoxFuture<'_, Result<ToolOutput, Error>> {
        Box::pin(async move {
            let Invocation { tool, arguments, .. } = invocation;
            let found = self.scenario.tool.iter().map(toml::Spanned::get_ref).find(|fake| {
                let is_answer = |expected: &Value| data_fits(expected, &arguments).is_ok();
                fake.name == tool && fake.arguments.as_ref().is_none_or(is_answer)
            });
            let Some(fake) = found else {
                self.record.complain(format!("no [[tool]] {tool} fits the arguments {arguments}"));
                return Err(Error::NotFound(format!("no answer of {tool} to these arguments was given")));
            };
            Ok(ToolOutput {
                content: vec![Content::text(&fake.text)],
                details: fake.details.clone(),
                structured: fake.structured.clone().map(Data::from),
                is_error: fake.is_error,
                ..ToolOutput::default()
            })
        })
    }

    fn allowed(&self) -> Vec<String> {
        Vec::new()
    }
}
