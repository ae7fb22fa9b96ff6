//! What a plugin says of itself, kept so that a start has to run nothing: what its component imports and exports, and
//! its tools. For built-in plugins the build makes it, for others [`crate::aot_cache`] keeps it.
//!
//! It follows from the component alone. It must never hold anything that depends on a manifest, a grant or a limit: what
//! the user allows is compared with it at each start, and counts as it is then.

use std::{collections::BTreeSet, sync::Arc};

use atoll_caps::{LimitName, Limits};
use atoll_table::{
    Error, Tool,
    tool::{Annotations, ExecutionMode, Exposure, Namespace},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{bindings::atoll::plugin::types as wit, contract_check::Surface, convert, trap::limit_error};

/// A plugin's description of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    /// Every import, in full. What they mean is found out each time: a later version may know more capabilities.
    imports: BTreeSet<String>,
    /// Every interface that it exports, in full.
    interfaces: BTreeSet<String>,
    /// Every other export.
    other_exports: BTreeSet<String>,
    /// Its tools; none if it brings none.
    tools: Vec<SaidTool>,
    /// It hears of an event while it waits for something, if it is an extension.
    concurrent: bool,
}

/// A tool in the plugin's own words. Schemas stay text, so that reading them again gives what was read at first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SaidTool {
    name: String,
    label: String,
    description: String,
    parameters: String,
    output_schema: Option<String>,
    prompt_snippet: Option<String>,
    prompt_guidelines: Vec<String>,
    exposure: Exposure,
    default_active: bool,
    execution_mode: ExecutionMode,
    namespace: Option<Namespace>,
    annotations: Annotations,
    prepares: bool,
}

impl Description {
    pub(crate) fn new(surface: &Surface, tools: Vec<wit::Tool>, is_concurrent: bool) -> Self {
        Self {
            imports: surface.all_imports.clone(),
            interfaces: surface.all_exports.difference(&surface.other_exports).cloned().collect(),
            other_exports: surface.other_exports.clone(),
            tools: tools.into_iter().map(SaidTool::from).collect(),
            concurrent: is_concurrent,
        }
    }

    /// Reads what [`Self::text`] gave.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text)
    }

    /// As text, to be kept.
    pub(crate) fn text(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// What its component imports and exports.
    pub(crate) fn surface(&self) -> Surface {
        Surface::new(self.imports.clone(), &self.interfaces, self.other_exports.clone())
    }

    /// Whether it hears of an event while it waits for something.
    pub(crate) fn is_concurrent(&self) -> bool {
        self.concurrent
    }

    /// The tools, as far as its limits allow them now.
    ///
    /// # Errors
    /// `limit` if there are too many or their texts are too long, `failed` if a schema is not JSON.
    pub(crate) fn tools(&self, plugin: &str, limits: &Limits) -> Result<Vec<Tool>, Error> {
        if self.tools.len() as u64 > limits.tools {
            return Err(limit_error(LimitName::Tools, limits.tools));
        }
        // A fresh list is bounded by this when it leaves the instance.
        let length: usize = self.tools.iter().map(SaidTool::length).sum();
        if length as u64 > limits.host_call_bytes.saturating_add(limits.output_bytes) {
            return Err(limit_error(LimitName::HostCallBytes, limits.host_call_bytes));
        }
        let mut schemas = LastSchema::default();
        self.tools.iter().map(|tool| tool.clone().read(plugin, &mut schemas)).collect()
    }
}

/// The output schema that was read last: what thousands of tools have in common is read and kept once.
#[derive(Default)]
pub(crate) struct LastSchema(Option<(String, Arc<Value>)>);

impl LastSchema {
    fn read(&mut self, plugin: &str, text: String) -> Result<Arc<Value>, Error> {
        if let Some((_, schema)) = self.0.as_ref().filter(|(last, _)| *last == text) {
            return Ok(Arc::clone(schema));
        }
        let schema: Arc<Value> = Arc::new(convert::json(plugin, "output-schema", &text)?);
        self.0 = Some((text, Arc::clone(&schema)));
        Ok(schema)
    }
}

impl SaidTool {
    /// How many bytes its longer texts have.
    fn length(&self) -> usize {
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.name.len()
            + self.label.len()
            + self.description.len()
            + self.parameters.len()
            + optional(&self.output_schema)
            + optional(&self.prompt_snippet)
            + self.prompt_guidelines.iter().map(String::len).sum::<usize>()
    }

    /// The tool as the table knows it.
    ///
    /// # Errors
    /// `failed` if a schema is not JSON.
    pub(crate) fn read(self, plugin: &str, schemas: &mut LastSchema) -> Result<Tool, Error> {
        let output_schema = self.output_schema.map(|text| schemas.read(plugin, text)).transpose()?;
        Ok(Tool {
            parameters: convert::json(plugin, "parameters", &self.parameters)?,
            output_schema,
            name: self.name,
            label: self.label,
            description: self.description,
            prompt_snippet: self.prompt_snippet,
            prompt_guidelines: self.prompt_guidelines,
            exposure: self.exposure,
            default_active: self.default_active,
            execution_mode: self.execution_mode,
            namespace: self.namespace,
            annotations: self.annotations,
            prepares: self.prepares,
        })
    }
}

impl From<wit::Tool> for SaidTool {
    fn from(tool: wit::Tool) -> Self {
        Self {
            name: tool.name,
            label: tool.label,
            description: tool.description,
            parameters: tool.parameters,
            output_schema: tool.output_schema,
            prompt_snippet: tool.prompt_snippet,
            prompt_guidelines: tool.prompt_guidelines,
            exposure: match tool.exposure {
                wit::Exposure::Direct => Exposure::Direct,
                wit::Exposure::ModelOnly => Exposure::ModelOnly,
                wit::Exposure::Codemode => Exposure::Codemode,
                wit::Exposure::Deferred => Exposure::Deferred,
                wit::Exposure::Hidden => Exposure::Hidden,
            },
            default_active: tool.default_active,
            execution_mode: match tool.execution_mode {
                wit::ExecutionMode::Parallel => ExecutionMode::Parallel,
                wit::ExecutionMode::Sequential => ExecutionMode::Sequential,
            },
            namespace: tool.namespace.map(|namespace| Namespace {
                name: namespace.name,
                aliases: namespace.aliases,
                description: namespace.description,
                instructions: namespace.instructions,
            }),
            annotations: Annotations {
                read_only_hint: tool.annotations.read_only,
                destructive_hint: tool.annotations.destructive,
                idempotent_hint: tool.annotations.idempotent,
                open_world_hint: tool.annotations.open_world,
            },
            prepares: tool.prepares,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"type":"object", "maximum":0.30000000000000004}"#;

    fn said(name: &str) -> wit::Tool {
        wit::Tool {
            name: name.to_owned(),
            label: "A label".to_owned(),
            description: "What it does".to_owned(),
            parameters: SCHEMA.to_owned(),
            output_schema: Some("{}".to_owned()),
            prompt_snippet: Some("a line".to_owned()),
            prompt_guidelines: vec!["a rule".to_owned()],
            exposure: wit::Exposure::ModelOnly,
            default_active: true,
            execution_mode: wit::ExecutionMode::Sequential,
            namespace: Some(wit::Namespace {
                name: "group".to_owned(),
                aliases: vec!["g".to_owned()],
                description: None,
                instructions: Some("how".to_owned()),
            }),
            annotations: wit::Annotations {
                read_only: Some(true),
                destructive: None,
                idempotent: Some(false),
                open_world: None,
            },
            prepares: true,
        }
    }

    fn description() -> Description {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let surface = Surface::new(
            names(&["atoll:plugin/files@0.1.0", "wasi:io/poll@0.2.0"]),
            &names(&["atoll:plugin/tools@0.1.0", "a:b/c"]),
            names(&["init"]),
        );
        Description::new(&surface, vec![said("one"), said("two")], true)
    }

    #[test]
    fn what_is_read_again_is_what_was_said() {
        let description = description();
        let again = Description::parse(description.text().unwrap().as_bytes()).unwrap();
        assert_eq!(again, description);
        assert_eq!(again.surface(), description.surface());
        let tools = again.tools("p", &Limits::default()).unwrap();
        let fresh: Vec<Tool> = ["one", "two"]
            .map(|name| convert::tool_from_wit("p", said(name), &mut LastSchema::default()).unwrap())
            .into();
        assert_eq!(tools, fresh);
        assert!(tools[0].prepares && tools[0].parameters == serde_json::from_str::<serde_json::Value>(SCHEMA).unwrap());
        let surface = again.surface();
        assert_eq!(surface.exports.into_iter().collect::<Vec<_>>(), ["tools"]);
        assert_eq!(surface.all_exports.into_iter().collect::<Vec<_>>(), ["a:b/c", "atoll:plugin/tools@0.1.0", "init"]);
        assert_eq!(surface.imports.into_iter().collect::<Vec<_>>(), [atoll_caps::Capability::Files]);
    }

    #[test]
    fn the_limits_of_the_day_count() {
        let description = description();
        let reached = |limits: &Limits| description.tools("p", limits).unwrap_err();
        let limits = Limits { tools: 1, ..Limits::default() };
        assert_eq!(reached(&limits), limit_error(LimitName::Tools, 1));
        let length: u64 = description.tools.iter().map(|tool| tool.length() as u64).sum();
        let limits = Limits { host_call_bytes: length - 2, output_bytes: 1, ..Limits::default() };
        assert_eq!(reached(&limits), limit_error(LimitName::HostCallBytes, length - 2));
        let limits = Limits { host_call_bytes: length - 1, output_bytes: 1, ..Limits::default() };
        assert_eq!(description.tools("p", &limits).unwrap().len(), 2);
    }

    #[test]
    fn a_field_that_is_missing_or_not_known_makes_it_useless() {
        let text = description().text().unwrap();
        for bad in [
            text.replacen("\"prepares\":true,", "", 1).replacen(",\"prepares\":true", "", 1),
            text.replacen('{', "{\"more\":1,", 1),
            text.replacen("\"imports\"", "\"import\"", 1),
            String::new(),
        ] {
            assert_ne!(bad, text);
            Description::parse(bad.as_bytes()).unwrap_err();
        }
    }
}
