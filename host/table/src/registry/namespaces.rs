//! Groups of tools, put together from what the tools say about the group they belong to.

use serde::Serialize;

use super::Table;
use crate::{
    Error,
    names::{identifier, near_matches},
};

/// A namespace and its tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Other names it answers to.
    pub aliases: Vec<String>,
    /// What it is for: the first description that one of its tools brings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How to use it: the first instructions that one of its tools brings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The unique names of its tools, in the order of registration.
    pub tools: Vec<String>,
}

impl Table {
    /// Every namespace with a tool that is not hidden, in the order of registration.
    pub fn namespaces(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut places = std::collections::HashMap::<&str, usize>::new();
        for entry in self.tools.iter().filter(|entry| !entry.is_hidden()) {
            let Some(namespace) = &entry.tool.namespace else { continue };
            let place = *places.entry(&namespace.name).or_insert_with(|| {
                groups.push(Group { name: namespace.name.clone(), ..Group::default() });
                groups.len() - 1
            });
            let group = &mut groups[place];
            for alias in &namespace.aliases {
                if *alias != group.name && !group.aliases.contains(alias) {
                    group.aliases.push(alias.clone());
                }
            }
            group.description = group.description.take().or_else(|| namespace.description.clone());
            group.instructions = group.instructions.take().or_else(|| namespace.instructions.clone());
            group.tools.push(entry.tool.name.clone());
        }
        groups
    }

    /// The namespace of a name: its own, else an alias, else either as a script would write it.
    ///
    /// # Errors
    /// `not-found` naming near matches, `ambiguous` if several answer equally well.
    pub fn namespace(&self, name: &str) -> Result<Group, Error> {
        let groups = self.namespaces();
        let written = identifier(name);
        let by_name = |group: &Group| group.name == name;
        let by_alias = |group: &Group| group.aliases.iter().any(|alias| alias == name);
        let by_identifier = |group: &Group| {
            std::iter::once(&group.name).chain(&group.aliases).any(|candidate| identifier(candidate) == written)
        };
        for matches in [&by_name as &dyn Fn(&Group) -> bool, &by_alias, &by_identifier] {
            let mut found: Vec<&Group> = groups.iter().filter(|group| matches(group)).collect();
            match found.len() {
                0 => {}
                1 => return Ok(found.swap_remove(0).clone()),
                _ => {
                    let candidates = found.into_iter().map(|group| group.name.clone()).collect();
                    return Err(Error::Ambiguous { name: name.to_owned(), candidates });
                }
            }
        }
        let known = groups.iter().flat_map(|group| std::iter::once(&group.name).chain(&group.aliases));
        let near = near_matches(name, known.map(String::as_str));
        let hint = match (near.is_empty(), groups.is_empty()) {
            (false, _) => format!("did you mean `{}`?", near.join("` or `")),
            (true, true) => "there are none".to_owned(),
            (true, false) => {
                let some: Vec<&str> = groups.iter().take(10).map(|group| group.name.as_str()).collect();
                let more = if groups.len() > some.len() { ", …" } else { "" };
                format!("there are {}{more}", some.join(", "))
            }
        };
        Err(Error::NotFound(format!("there is no namespace `{}`; {hint}", name.escape_debug())))
    }
}
