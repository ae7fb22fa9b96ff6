//! Which tools there are and which of them are active. The two are separate: a tool that is not active stays
//! registered. The order of declarations only ever grows at its end, because prompt caches depend on it.

use std::sync::{Arc, OnceLock};

use crate::{
    Error, Tool, ToolRunner,
    arguments::Checker,
    model::Declaration,
    tool::{Exposure, is_valid_name},
};

/// A tool in the table.
pub struct Registered {
    /// What it is.
    pub tool: Tool,
    /// The plugin that brings it.
    pub plugin: String,
    /// What runs it.
    pub runner: Arc<dyn ToolRunner>,
    checker: OnceLock<Checker>,
}

impl Registered {
    /// The check of its arguments, compiled at first use.
    pub fn checker(&self) -> &Checker {
        self.checker.get_or_init(|| Checker::new(&self.tool.name, &self.tool.parameters))
    }
}

/// The one table.
#[derive(Default)]
pub struct Table {
    tools: Vec<Arc<Registered>>,
    active: Vec<String>,
}

impl Table {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a plugin's tools. Those that are active from the start are activated after all earlier ones.
    ///
    /// # Errors
    /// `invalid-arguments` if a name is malformed, a schema's root is not an object schema, or another plugin
    /// has a tool of the name; then nothing is added.
    pub fn register(&mut self, plugin: &str, tools: Vec<Tool>, runner: &Arc<dyn ToolRunner>) -> Result<(), Error> {
        for tool in &tools {
            let name = &tool.name;
            if !is_valid_name(name) {
                return Err(Error::InvalidArguments(format!(
                    "plugin {plugin}: `{}` can not name a tool; use 1 to 64 of A-Z a-z 0-9 _ -",
                    name.escape_debug()
                )));
            }
            if tool.parameters.get("type").and_then(|kind| kind.as_str()) != Some("object") {
                return Err(Error::InvalidArguments(format!(
                    "plugin {plugin}: the parameters of `{name}` must be a JSON Schema with \"type\": \"object\""
                )));
            }
            if let Some(other) = self.tools.iter().find(|entry| entry.tool.name == *name) {
                return Err(Error::InvalidArguments(format!(
                    "plugin {plugin}: the tool `{name}` is already there, from plugin {}",
                    other.plugin
                )));
            }
        }
        for tool in tools {
            if tool.default_active && declared(tool.exposure) {
                self.active.push(tool.name.clone());
            }
            self.tools.push(Arc::new(Registered {
                tool,
                plugin: plugin.to_owned(),
                runner: Arc::clone(runner),
                checker: OnceLock::new(),
            }));
        }
        Ok(())
    }

    /// Every tool, in the order of registration.
    pub fn tools(&self) -> &[Arc<Registered>] {
        &self.tools
    }

    /// Whether a tool is declared to the model.
    pub fn is_active(&self, name: &str) -> bool {
        self.active.iter().any(|active| active == name)
    }

    /// The tool of a name.
    ///
    /// # Errors
    /// `not-found` naming near matches.
    pub fn find(&self, name: &str) -> Result<Arc<Registered>, Error> {
        if let Some(entry) =
            self.tools.iter().find(|entry| entry.tool.name == name && entry.tool.exposure != Exposure::Hidden)
        {
            return Ok(Arc::clone(entry));
        }
        let near = near_matches(name, self.tools.iter().map(|entry| entry.tool.name.as_str()));
        let hint = if near.is_empty() {
            "`atoll tool list` shows what there is".to_owned()
        } else {
            format!("did you mean `{}`? `atoll tool list` shows all", near.join("` or `"))
        };
        Err(Error::NotFound(format!("there is no tool `{}`; {hint}", name.escape_debug())))
    }

    /// The active tools, in the order to declare them.
    pub fn active(&self) -> Vec<Arc<Registered>> {
        self.active.iter().filter_map(|name| self.find(name).ok()).collect()
    }

    /// The declarations of a model request.
    pub fn declarations(&self) -> Vec<Declaration> {
        self.active()
            .iter()
            .map(|entry| Declaration {
                name: entry.tool.name.clone(),
                description: entry.tool.description.clone(),
                parameters: entry.tool.parameters.clone(),
            })
            .collect()
    }

    /// Chooses the active tools by a list of names and `*` patterns, or of `+name` and `-name` changes.
    ///
    /// # Errors
    /// `not-found` for a name or pattern that matches nothing, `invalid-arguments` if both forms are mixed.
    pub fn select(&mut self, selection: &[String]) -> Result<(), Error> {
        let is_change = |item: &String| item.starts_with('+') || item.starts_with('-');
        let changes = selection.iter().filter(|item| is_change(item)).count();
        if changes != 0 && changes != selection.len() {
            return Err(Error::InvalidArguments(
                "a tool selection is either a list of names or a list of +name and -name, not both".to_owned(),
            ));
        }
        let mut active = if changes == 0 { Vec::new() } else { self.active.clone() };
        for item in selection {
            let (add, pattern) = match item.strip_prefix('-') {
                Some(rest) => (false, rest),
                None => (true, item.strip_prefix('+').unwrap_or(item)),
            };
            let matching: Vec<String> = self
                .tools
                .iter()
                .filter(|entry| declared(entry.tool.exposure) && matches_pattern(pattern, &entry.tool.name))
                .map(|entry| entry.tool.name.clone())
                .collect();
            if matching.is_empty() {
                if pattern.contains('*') {
                    return Err(Error::NotFound(format!("no tool matches `{pattern}`; `atoll tool list` shows them")));
                }
                self.find(pattern)?;
            }
            active.retain(|name| !matching.contains(name));
            if add {
                active.extend(matching);
            }
        }
        self.active = active;
        Ok(())
    }
}

fn declared(exposure: Exposure) -> bool {
    matches!(exposure, Exposure::Direct | Exposure::ModelOnly)
}

/// Whether a pattern in which `*` stands for any characters matches the whole name.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(first) = parts.next() else { return false };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// Up to three names within an edit distance of a third of the name's length, nearest first.
pub fn near_matches<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let bound = (name.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &str)> = names
        .map(|candidate| (strsim::damerau_levenshtein(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= bound)
        .collect();
    near.sort();
    near.into_iter().take(3).map(|(_, candidate)| candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Invocation, Progress, ToolOutput, tool};
    use futures::future::BoxFuture;
    use serde_json::{Value, json};

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

    fn tool(name: &str) -> Tool {
        Tool {
            name: name.to_owned(),
            label: name.to_owned(),
            description: String::new(),
            parameters: json!({"type": "object"}),
            output_schema: None,
            prompt_snippet: None,
            prompt_guidelines: Vec::new(),
            exposure: Exposure::Direct,
            default_active: true,
            execution_mode: tool::ExecutionMode::Parallel,
            namespace: None,
            annotations: tool::Annotations::default(),
            prepares: false,
        }
    }

    fn table(names: &[&str]) -> Table {
        let runner: Arc<dyn ToolRunner> = Arc::new(Nothing);
        let mut table = Table::new();
        table.register("p", names.iter().map(|name| tool(name)).collect(), &runner).unwrap();
        table
    }

    fn active(table: &Table) -> Vec<String> {
        table.active().iter().map(|entry| entry.tool.name.clone()).collect()
    }

    #[test]
    fn a_new_tool_is_declared_after_the_old_ones() {
        let mut table = table(&["read", "bash"]);
        let runner: Arc<dyn ToolRunner> = Arc::new(Nothing);
        table.register("q", vec![tool("aaa")], &runner).unwrap();
        assert_eq!(active(&table), ["read", "bash", "aaa"]);
    }

    #[test]
    fn a_name_taken_by_another_plugin_adds_nothing() {
        let mut table = table(&["read"]);
        let runner: Arc<dyn ToolRunner> = Arc::new(Nothing);
        assert!(table.register("q", vec![tool("new"), tool("read")], &runner).is_err());
        assert_eq!(table.tools().len(), 1);
    }

    #[test]
    fn selections_are_lists_or_changes() {
        let mut table = table(&["read", "write", "bash"]);
        table.select(&["r*".into(), "bash".into()]).unwrap();
        assert_eq!(active(&table), ["read", "bash"]);
        table.select(&["-read".into(), "+write".into()]).unwrap();
        assert_eq!(active(&table), ["bash", "write"]);
        assert_eq!(table.select(&["read".into(), "-bash".into()]).unwrap_err().code(), "invalid-arguments");
        assert_eq!(table.select(&["x*".into()]).unwrap_err().code(), "not-found");
        assert_eq!(active(&table), ["bash", "write"], "a bad selection changes nothing");
    }

    #[test]
    fn an_unknown_name_suggests_near_ones() {
        let error = table(&["read", "write"]).find("frobnicate").err().unwrap();
        assert_eq!(error.to_string(), "there is no tool `frobnicate`; `atoll tool list` shows what there is");
        let error = table(&["read", "write"]).find("raed").err().unwrap();
        assert_eq!(error.to_string(), "there is no tool `raed`; did you mean `read`? `atoll tool list` shows all");
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("read", "read", true),
            ("read", "reader", false),
            ("r*d", "read", true),
            ("*", "anything", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXcYb", false),
            ("ab*b", "ab", false),
        ] {
            assert_eq!(matches_pattern(pattern, name), expected, "{pattern} {name}");
        }
    }
}
