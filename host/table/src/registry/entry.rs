//! What stands in the table, and who put it there.

use std::sync::{Arc, OnceLock};

use serde::Serialize;

use crate::{Tool, ToolRunner, arguments::Checker, search::Document, tool::Exposure};

/// Where a plugin comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// It is part of the program.
    Builtin,
    /// The user installed it.
    User,
    /// A trusted project brings it.
    Project,
}

/// Who registers tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The plugin's name. Two plugins of different origin may share one.
    pub plugin: String,
    /// Where it comes from.
    pub origin: Origin,
    /// The built-in tools that its tools of the same names are to stand in for.
    pub replaces: Vec<String>,
    /// The one of its tools that runs scripts which call other tools.
    pub runs_scripts: Option<String>,
    /// How many tools the plugin may have. No plugin may have more than 10,000.
    pub most: u64,
}

/// The most tools one plugin can have in the table.
const MAX_TOOLS_OF_A_PLUGIN: u64 = 10_000;

impl Registration {
    /// Tools of a plugin that replace nothing.
    pub fn new(plugin: impl Into<String>, origin: Origin) -> Self {
        Self { plugin: plugin.into(), origin, replaces: Vec::new(), runs_scripts: None, most: MAX_TOOLS_OF_A_PLUGIN }
    }

    /// A plugin that is part of the program.
    pub fn builtin(plugin: impl Into<String>) -> Self {
        Self::new(plugin, Origin::Builtin)
    }

    /// A plugin of the user's that replaces nothing.
    pub fn user(plugin: impl Into<String>) -> Self {
        Self::new(plugin, Origin::User)
    }

    /// A project's plugin that replaces nothing.
    pub fn project(plugin: impl Into<String>) -> Self {
        Self::new(plugin, Origin::Project)
    }

    /// The same, for a plugin that may have so many tools and no more.
    #[must_use]
    pub fn at_most(mut self, tools: u64) -> Self {
        self.most = self.most.min(tools);
        self
    }

    /// The same, standing in for these built-in tools.
    #[must_use]
    pub fn replacing(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.replaces.extend(tools.into_iter().map(Into::into));
        self
    }

    /// The same, where this one of its tools runs scripts which call other tools.
    #[must_use]
    pub fn running_scripts(mut self, tool: Option<String>) -> Self {
        self.runs_scripts = tool.or(self.runs_scripts);
        self
    }
}

impl From<&str> for Registration {
    /// Without more, a plugin is one of the user's.
    fn from(plugin: &str) -> Self {
        Self::user(plugin)
    }
}

/// A tool in the table.
pub struct Registered {
    /// What it is. Its name here is unique in the table; its exposure is the one in force.
    pub tool: Tool,
    /// The name its plugin gave it, and knows it by.
    pub local: String,
    /// The plugin that brings it.
    pub plugin: String,
    /// Where that plugin comes from.
    pub origin: Origin,
    /// What runs it.
    pub runner: Arc<dyn ToolRunner>,
    /// It runs scripts which call other tools, so its description says how these look.
    pub runs_scripts: bool,
    pub(super) wanted_exposure: Exposure,
    pub(super) replaces: bool,
    pub(super) checker: OnceLock<Checker>,
    pub(super) document: OnceLock<Document>,
}

impl Registered {
    /// The check of its arguments, compiled at first use.
    pub fn checker(&self) -> &Checker {
        self.checker.get_or_init(|| Checker::new(&self.tool.name, &self.tool.parameters))
    }

    /// What a search looks at, worked out at first use.
    pub(crate) fn document(&self) -> &Document {
        self.document.get_or_init(|| Document::of(&self.tool, &self.local))
    }

    /// Its plugin wants it hidden: it claims no name.
    pub(super) fn is_withdrawn(&self) -> bool {
        self.wanted_exposure == Exposure::Hidden
    }

    pub(super) fn is_hidden(&self) -> bool {
        self.tool.exposure == Exposure::Hidden
    }

    pub(super) fn is_of(&self, plugin: &str, origin: Origin) -> bool {
        self.origin == origin && self.plugin == plugin
    }

    /// The same tool under another name, with another exposure in force.
    pub(super) fn shown_as(&self, name: String, exposure: Exposure) -> Self {
        Self {
            tool: Tool { name, exposure, ..self.tool.clone() },
            local: self.local.clone(),
            plugin: self.plugin.clone(),
            origin: self.origin,
            runner: Arc::clone(&self.runner),
            wanted_exposure: self.wanted_exposure,
            replaces: self.replaces,
            runs_scripts: self.runs_scripts,
            checker: OnceLock::new(),
            document: OnceLock::new(),
        }
    }
}
