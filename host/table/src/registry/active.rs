//! Which tools are active, and in which order they are declared.

use std::sync::Arc;

use super::{Origin, Registered, Table};
use crate::{Error, model::Declaration, names::matches_pattern};

impl Table {
    /// Whether the tool of this unique name is active.
    pub fn is_active(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|index| self.active.contains(index))
    }

    /// Where in the order the built-in tool stands that this one replaces.
    pub(super) fn place_of_replaced(&self, index: usize) -> Option<usize> {
        let entry = &self.tools[index];
        let stands_in = |other: &usize| {
            let other = &self.tools[*other];
            other.origin == Origin::Builtin && other.local == entry.local && other.is_hidden()
        };
        if entry.replaces { self.active.iter().position(stands_in) } else { None }
    }

    /// The active tools, in the order to declare them.
    pub fn active(&self) -> Vec<Arc<Registered>> {
        self.active.iter().map(|index| &self.tools[*index]).filter(|entry| !entry.is_hidden()).cloned().collect()
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
    /// of those that changed.
    ///
    /// # Errors
    /// `not-found` or `ambiguous` for a name; then nothing changes.
    pub fn activate(&mut self, names: &[String], active: bool) -> Result<Vec<String>, Error> {
        let indices: Vec<usize> = names.iter().map(|name| self.index(name)).collect::<Result<_, _>>()?;
        let mut changed = Vec::new();
        for index in indices {
            let place = self.active.iter().position(|other| *other == index);
            match (active, place) {
                (true, None) => self.active.push(index),
                (false, Some(place)) => {
                    self.active.remove(place);
                }
                (true, Some(_)) | (false, None) => continue,
            }
            changed.push(self.tools[index].tool.name.clone());
        }
        Ok(changed)
    }

    /// Chooses the active tools by a list of names and `*` patterns, or of `+name` and `-name` changes. A pattern
    /// means those that are made to be declared; a name means its tool, whatever its exposure.
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
        let mut active = if changes == 0 { Vec::new() } else { self.active.clone() };
        for item in selection {
            let (add, pattern) = match item.strip_prefix('-') {
                Some(rest) => (false, rest),
                None => (true, item.strip_prefix('+').unwrap_or(item)),
            };
            let matching = self.matching(pattern)?;
            if add {
                let new: Vec<usize> = matching.into_iter().filter(|index| !active.contains(index)).collect();
                active.extend(new);
            } else {
                active.retain(|index| !matching.contains(index));
            }
        }
        self.active = active;
        Ok(())
    }

    fn matching(&self, pattern: &str) -> Result<Vec<usize>, Error> {
        if !pattern.contains('*') {
            return Ok(vec![self.index(pattern)?]);
        }
        let fits = |entry: &Registered| entry.tool.exposure.is_declared() && matches_pattern(pattern, &entry.tool.name);
        let matching: Vec<usize> =
            (self.tools.iter().enumerate()).filter(|(_, entry)| fits(entry)).map(|(index, _)| index).collect();
        if matching.is_empty() {
            return Err(Error::NotFound(format!("no tool matches `{pattern}`; `atoll tool list` shows them")));
        }
        Ok(matching)
    }
}
