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
    /// built-in plugins claim a name; `limit` if a plugin has too many tools. Then nothing is added. What was withdrawn gives
    /// its place to what is new before there are too many.
    pub fn register(
        &mut self,
        registration: impl Into<Registration>,
        tools: Vec<Tool>,
        runner: &Arc<dyn ToolRunner>,
    ) -> Result<(), Error> {
        let registration = registration.into();
        self.check(&registration, &tools)?;
        let Registration { plugin, origin, replaces, runs_scripts, most } = registration;
        let own: HashMap<String, usize> = (self.tools.iter().enumerate())
            .filter(|(_, entry)| entry.is_of(&plugin, origin))
            .map(|(index, entry)| (entry.local.clone(), index))
            .collect();
        let new = tools.iter().filter(|tool| !own.contains_key(&tool.name)).count();
        let mut given_up = match (own.len() + new) as u64 > most {
            true => self.given_up(&own, &tools),
            false => Vec::new(),
        };
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
            let index = match (own.get(&entry.local), given_up.pop()) {
                (Some(index), not_needed) => {
                    given_up.extend(not_needed);
                    self.tools[*index] = entry;
                    *index
                }
                (None, Some(index)) => {
                    self.active.remove(index);
                    self.decided[index] = false;
                    self.tools[index] = entry;
                    index
                }
                (None, None) => {
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

    /// Whether the place of a tool can be had by another one of its plugin: it was withdrawn, and nobody but the plugin has
    /// said anything of it.
    fn is_given_up(&self, index: usize) -> bool {
        self.tools[index].is_withdrawn() && !self.switched_off.contains(&index)
    }

    /// The places of a plugin's tools that were withdrawn and are not among these, the first one last.
    fn given_up(&self, own: &HashMap<String, usize>, tools: &[Tool]) -> Vec<usize> {
        let named: HashSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let others = own.iter().filter(|(local, _)| !named.contains(local.as_str())).map(|(_, index)| *index);
        let mut places: Vec<usize> = others.filter(|index| self.is_given_up(*index)).collect();
        places.sort_unstable_by(|one, other| other.cmp(one));
        places
    }

    fn check(&self, registration: &Registration, tools: &[Tool]) -> Result<(), Error> {
        let Registration { plugin, origin, most, .. } = registration;
        let mut seen = HashSet::new();
        // Looked at once: there may be thousands of each.
        let rivals: HashMap<&str, &str> = match origin {
            Origin::Builtin => {
                let others = self
                    .tools
                    .iter()
                    .filter(|entry| entry.origin == Origin::Builtin && entry.plugin != *plugin && !entry.is_hidden());
                others.map(|entry| (entry.local.as_str(), entry.plugin.as_str())).collect()
            }
            Origin::User | Origin::Project => HashMap::new(),
        };
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
            if let Some(other) = rivals.get(name.as_str()) {
                return Err(Error::InvalidArguments(format!(
                    "plugin {plugin}: the tool `{name}` is already there, from plugin {other}"
                )));
            }
        }
        let own = self.tools.iter().enumerate().filter(|(_, entry)| entry.is_of(plugin, *origin));
        let known = own.filter(|(index, entry)| !seen.contains(&entry.local) && !self.is_given_up(*index)).count();
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
        let own = self.tools.iter().enumerate().filter(|(_, entry)| entry.is_of(plugin, origin));
        let own: HashMap<&str, usize> = own.map(|(index, entry)| (entry.local.as_str(), index)).collect();
        let find = |name: &String| {
            let index = own.get(name.as_str()).copied();
            index.ok_or_else(|| Error::NotFound(format!("the plugin {plugin} has no tool `{}`", name.escape_debug())))
        };
        let indices = names.iter().map(find).collect::<Result<Vec<usize>, Error>>()?;
        for index in &indices {
            let mut entry = self.tools[*index].shown_as(self.tools[*index].local.clone(), Exposure::Hidden);
            entry.wanted_exposure = Exposure::Hidden;
            self.tools[*index] = Arc::new(entry);
        }
        if !self.settle_gone(&indices) {
            self.settle();
        }
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
