//! Which tools there are and which of them are active. The two are separate: a tool that is not active stays
//! registered. The order of declarations only ever grows at its end, because prompt caches depend on it.

mod active;
mod arrange;
mod entry;
mod expected;
mod lookup;
mod names_in_force;
mod namespaces;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};

pub use arrange::Mark;
pub use entry::{Origin, Registered, Registration};
pub use names_in_force::Collision;
pub use namespaces::Group;

use crate::{
    Error, Tool, ToolRunner,
    tool::{Exposure, is_valid_name},
};

/// The one table.
#[derive(Default)]
pub struct Table {
    tools: Vec<Arc<Registered>>,
    /// For each tool: it has been declarable before, so whether it is active has been decided.
    decided: Vec<bool>,
    /// In the order to declare them. Hidden ones keep their place, should they come back.
    active: active::Order,
    /// Indices of tools that the user has taken away.
    switched_off: HashSet<usize>,
    /// Namespaces whose tools are still to come.
    expected: expected::Expected,
    /// Unique names of all tools that are not hidden.
    names: HashMap<String, usize>,
    /// How often all names were worked out anew.
    #[cfg(test)]
    settled: usize,
}

impl Table {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a plugin's tools, or replaces those it has under the same names, in their places. Those that are active
    /// from the start are activated after all earlier ones; one that stands in for an active built-in tool takes its
    /// place in the order.
    ///
    /// A name is its tool's alone while no other plugin claims it. A built-in tool keeps its name, unless a plugin
    /// says that its tool replaces it; then the built-in one can not be reached. Any other tool whose name is claimed
    /// twice is called `<plugin>__<tool>`.
    ///
    /// # Errors
    /// `invalid-arguments` if a name is malformed or given twice, a schema's root is not an object schema, or two
    /// built-in plugins claim a name; `limit` if a plugin has too many tools. Then nothing is added.
    pub fn register(
        &mut self,
        registration: impl Into<Registration>,
        tools: Vec<Tool>,
        runner: &Arc<dyn ToolRunner>,
    ) -> Result<(), Error> {
        let registration = registration.into();
        self.check(&registration, &tools)?;
        let Registration { plugin, origin, replaces, runs_scripts, .. } = registration;
        let own: HashMap<String, usize> = (self.tools.iter().enumerate())
            .filter(|(_, entry)| entry.is_of(&plugin, origin))
            .map(|(index, entry)| (entry.local.clone(), index))
            .collect();
        let mut activate = Vec::new();
        let first_new = self.tools.len();
        let count = tools.len();
        for tool in tools {
            let local = tool.name.clone();
            let (wanted, default_active) = (tool.exposure, tool.default_active);
            let entry = Arc::new(Registered {
                plugin: plugin.clone(),
                origin,
                runner: Arc::clone(runner),
                runs_scripts: runs_scripts.as_ref() == Some(&local),
                wanted_exposure: wanted,
                replaces: origin != Origin::Builtin && replaces.contains(&local),
                checker: OnceLock::new(),
                document: OnceLock::new(),
                tool,
                local,
            });
            let index = match own.get(&entry.local) {
                Some(index) => {
                    self.tools[*index] = entry;
                    *index
                }
                None => {
                    self.tools.push(entry);
                    self.decided.push(false);
                    self.tools.len() - 1
                }
            };
            if wanted.is_declared() && !std::mem::replace(&mut self.decided[index], true) && default_active {
                activate.push(index);
            }
        }
        if first_new + count != self.tools.len() || !self.settle_new(first_new) {
            self.settle();
        }
        for index in activate {
            let place = self.place_of_replaced(index);
            self.active.insert(place, index);
        }
        Ok(())
    }

    fn check(&self, registration: &Registration, tools: &[Tool]) -> Result<(), Error> {
        let Registration { plugin, origin, most, .. } = registration;
        let mut seen = HashSet::new();
        for tool in tools {
            let name = &tool.name;
            if !is_valid_name(name) {
                return Err(Error::InvalidArguments(format!(
                    "plugin {plugin}: `{}` can not name a tool; use 1 to 64 of A-Z a-z 0-9 _ -",
                    name.escape_debug()
                )));
            }
            if !seen.insert(name) {
                return Err(Error::InvalidArguments(format!("plugin {plugin}: it has two tools named `{name}`")));
            }
            if tool.parameters.get("type").and_then(|kind| kind.as_str()) != Some("object") {
                return Err(Error::InvalidArguments(format!(
                    "plugin {plugin}: the parameters of `{name}` must be a JSON Schema with \"type\": \"object\""
                )));
            }
            let rival = |entry: &&Arc<Registered>| {
                entry.origin == Origin::Builtin && entry.local == *name && entry.plugin != *plugin && !entry.is_hidden()
            };
            if *origin == Origin::Builtin
                && let Some(other) = self.tools.iter().find(rival)
            {
                return Err(Error::InvalidArguments(format!(
                    "plugin {plugin}: the tool `{name}` is already there, from plugin {}",
                    other.plugin
                )));
            }
        }
        let own = self.tools.iter().filter(|entry| entry.is_of(plugin, *origin));
        let known = own.filter(|entry| !seen.contains(&entry.local)).count();
        if (known + tools.len()) as u64 > *most {
            return Err(Error::Limit { name: "tools".to_owned(), value: *most });
        }
        Ok(())
    }

    /// Withdraws tools of a plugin, named as it named them. They are hidden from then on; registering one again
    /// brings it back where it was.
    ///
    /// # Errors
    /// `not-found` if the plugin has no such tool; then none is withdrawn.
    pub fn unregister(&mut self, plugin: &str, origin: Origin, names: &[String]) -> Result<(), Error> {
        let mut indices = Vec::new();
        for name in names {
            let index = self.tools.iter().position(|entry| entry.is_of(plugin, origin) && entry.local == *name);
            indices.push(index.ok_or_else(|| {
                Error::NotFound(format!("the plugin {plugin} has no tool `{}`", name.escape_debug()))
            })?);
        }
        for index in indices {
            let mut entry = self.tools[index].shown_as(self.tools[index].local.clone(), Exposure::Hidden);
            entry.wanted_exposure = Exposure::Hidden;
            self.tools[index] = Arc::new(entry);
        }
        self.settle();
        Ok(())
    }

    /// How a plugin registers more tools beside those it has: it goes on to replace what it replaces.
    pub fn registration(&self, plugin: &str, origin: Origin) -> Registration {
        let replaces = self.tools.iter().filter(|entry| entry.is_of(plugin, origin) && entry.replaces);
        let replaces = replaces.map(|entry| entry.local.clone());
        let runs_scripts = self.tools.iter().find(|entry| entry.is_of(plugin, origin) && entry.runs_scripts);
        let runs_scripts = runs_scripts.map(|entry| entry.local.clone());
        Registration::new(plugin, origin).replacing(replaces).running_scripts(runs_scripts)
    }

    /// Every tool, in the order of registration, hidden ones included.
    pub fn tools(&self) -> &[Arc<Registered>] {
        &self.tools
    }
}
