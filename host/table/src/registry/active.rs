//! Which tools are active, and in which order they are declared.

use std::{collections::HashSet, sync::Arc};

use super::{Origin, Registered, Table};
use crate::{Error, model::Declaration, names::matches_pattern, reach::Standing};

/// Indices of tools in the order to declare them, each once.
#[derive(Default)]
pub(super) struct Order {
    order: Vec<usize>,
    /// The same. Whether a tool is active is asked for each of thousands.
    members: HashSet<usize>,
}

impl Order {
    pub(super) fn contains(&self, index: usize) -> bool {
        self.members.contains(&index)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        self.order.iter().copied()
    }

    /// Puts a tool at a place, or after all others; one that is there already stays where it is. Whether it is new.
    pub(super) fn insert(&mut self, place: Option<usize>, index: usize) -> bool {
        let is_new = self.members.insert(index);
        if is_new {
            self.order.insert(place.unwrap_or(self.order.len()).min(self.order.len()), index);
        }
        is_new
    }

    /// Whether it was there.
    pub(super) fn remove(&mut self, index: usize) -> bool {
        let was_there = self.members.remove(&index);
        if was_there {
            self.order.retain(|other| *other != index);
        }
        was_there
    }
}

impl FromIterator<usize> for Order {
    fn from_iter<T: IntoIterator<Item = usize>>(indices: T) -> Self {
        let mut order = Self::default();
        for index in indices {
            order.insert(None, index);
        }
        order
    }
}

impl Table {
    /// Whether the tool of this unique name is active.
    pub fn is_active(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|index| self.active.contains(*index))
    }

    /// Where the tool of this unique name stands.
    pub fn standing(&self, name: &str) -> Standing {
        match self.names.get(name) {
            Some(index) if self.active.contains(*index) => Standing::Active,
            Some(index) if self.switched_off.contains(index) => Standing::Off,
            _ => Standing::Inactive,
        }
    }

    /// Where in the order the built-in tool stands that this one replaces.
    pub(super) fn place_of_replaced(&self, index: usize) -> Option<usize> {
        let replaces = self.tools[index].replaces;
        replaces.then(|| self.active.iter().position(|other| self.stands_in(index, other))).flatten()
    }

    /// Whether the tool `index` stands in for the built-in tool `other`.
    fn stands_in(&self, index: usize, other: usize) -> bool {
        let (entry, other) = (&self.tools[index], &self.tools[other]);
        entry.replaces && other.origin == Origin::Builtin && other.local == entry.local && other.is_hidden()
    }

    /// The active tools, in the order to declare them.
    pub fn active(&self) -> Vec<Arc<Registered>> {
        self.active.iter().map(|index| &self.tools[index]).filter(|entry| !entry.is_hidden()).cloned().collect()
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

    /// Makes tools active, after all that are, or inactive. What is active stays where it is. Gives the unique names
    /// of those that changed. What the user switched off with [`Self::select`] stays off: this is for tools that change
    /// the table.
    ///
    /// # Errors
    /// `not-found` or `ambiguous` for a name, `denied` for one that the user switched off; then nothing changes.
    pub fn activate(&mut self, names: &[String], active: bool) -> Result<Vec<String>, Error> {
        let indices: Vec<usize> = names.iter().map(|name| self.index(name)).collect::<Result<_, _>>()?;
        if let Some(off) = indices.iter().find(|index| active && self.switched_off.contains(index)) {
            let name = &self.tools[*off].tool.name;
            return Err(Error::Denied {
                capability: "table".to_owned(),
                target: format!("{name}, which the user has switched off"),
                hint: format!("switch it on with --tools=+{name}, or in defaultTools of settings.json"),
            });
        }
        let mut changed = Vec::new();
        for index in indices {
            if if active { self.active.insert(None, index) } else { self.active.remove(index) } {
                changed.push(self.tools[index].tool.name.clone());
            }
        }
        Ok(changed)
    }

    /// Chooses the active tools by a list of names and `*` patterns, or of `+name` and `-name` changes. A pattern
    /// means those that are made to be declared, and behind `-` all; a name means its tool, whatever its exposure.
    ///
    /// This is the user's word: what it takes away, be it by `-name` or by a list without something that is active from
    /// the start, no tool switches on again. A built-in tool that another stands in for goes with that one.
    ///
    /// # Errors
    /// `not-found` for a name or pattern that matches nothing, `ambiguous` for a name, `invalid-arguments` if both
    /// forms are mixed. Then nothing changes.
    pub fn select(&mut self, selection: &[String]) -> Result<(), Error> {
        let is_change = |item: &String| item.starts_with('+') || item.starts_with('-');
        let changes = selection.iter().filter(|item| is_change(item)).count();
        if changes != 0 && changes != selection.len() {
            return Err(Error::InvalidArguments(
                "a tool selection is either a list of names or a list of +name and -name, not both".to_owned(),
            ));
        }
        let (mut active, mut off) = if changes == 0 {
            let from_the_start = |(index, entry): (usize, &Arc<Registered>)| {
                (entry.wanted_exposure.is_declared() && entry.tool.default_active).then_some(index)
            };
            (Order::default(), self.tools.iter().enumerate().filter_map(from_the_start).collect())
        } else {
            (self.active.iter().collect(), self.switched_off.clone())
        };
        for item in selection {
            let (add, pattern) = match item.strip_prefix('-') {
                Some(rest) => (false, rest),
                None => (true, item.strip_prefix('+').unwrap_or(item)),
            };
            for index in self.matching(pattern, add)? {
                if add {
                    active.insert(None, index);
                    off.remove(&index);
                    continue;
                }
                let behind = (0..self.tools.len()).filter(|other| self.stands_in(index, *other));
                for index in behind.chain([index]) {
                    active.remove(index);
                    off.insert(index);
                }
            }
        }
        (self.active, self.switched_off) = (active, off);
        Ok(())
    }

    fn matching(&self, pattern: &str, add: bool) -> Result<Vec<usize>, Error> {
        if !pattern.contains('*') {
            return Ok(vec![self.index(pattern)?]);
        }
        let fits = |entry: &Registered| {
            let is_meant = if add { entry.tool.exposure.is_declared() } else { !entry.is_hidden() };
            is_meant && matches_pattern(pattern, &entry.tool.name)
        };
        let matching: Vec<usize> =
            (self.tools.iter().enumerate()).filter(|(_, entry)| fits(entry)).map(|(index, _)| index).collect();
        if matching.is_empty() {
            return Err(Error::NotFound(format!("no tool matches `{pattern}`; `atoll tool list` shows them")));
        }
        Ok(matching)
    }
}
