//! Names to tools.

use std::sync::Arc;

use super::{Registered, Table};
use crate::{
    Error,
    names::near_matches,
    reach::{Caller, Standing, may_reach},
    tool::Exposure,
};

impl Table {
    pub(super) fn index(&self, name: &str) -> Result<usize, Error> {
        if let Some(index) = self.names.get(name) {
            return Ok(*index);
        }
        let visible = || self.tools.iter().enumerate().filter(|(_, entry)| !entry.is_hidden());
        let claimants: Vec<&Arc<Registered>> =
            visible().map(|(_, entry)| entry).filter(|entry| entry.local == name).collect();
        if !claimants.is_empty() {
            let candidates = claimants.iter().map(|entry| entry.tool.name.clone()).collect();
            return Err(Error::Ambiguous { name: name.to_owned(), candidates });
        }
        // The long form names a tool even while nobody else claims its short one.
        let is_long_form = |entry: &Registered| {
            let rest = name.strip_prefix(entry.plugin.as_str()).and_then(|rest| rest.strip_prefix("__"));
            rest == Some(entry.local.as_str())
        };
        let long: Vec<usize> = visible().filter(|(_, entry)| is_long_form(entry)).map(|(index, _)| index).collect();
        match long.as_slice() {
            [index] => Ok(*index),
            [] => {
                let near = near_matches(name, visible().map(|(_, entry)| entry.tool.name.as_str()));
                Err(not_found(name, &near))
            }
            several => Err(Error::Ambiguous {
                name: name.to_owned(),
                candidates: several.iter().map(|index| self.tools[*index].tool.name.clone()).collect(),
            }),
        }
    }

    /// The tool of a name.
    ///
    /// # Errors
    /// `not-found` naming near matches, `ambiguous` naming the candidates.
    pub fn find(&self, name: &str) -> Result<Arc<Registered>, Error> {
        self.index(name).map(|index| Arc::clone(&self.tools[index]))
    }

    /// The tool of a name, if `caller` may call it.
    ///
    /// # Errors
    /// `not-found` or `ambiguous` for the name. What is not declared to a model does not exist for it. The texts are for
    /// whoever calls: only a person is told of commands.
    pub fn reach(&self, caller: Caller, name: &str) -> Result<Arc<Registered>, Error> {
        let reachable = |entry: &Registered| may_reach(caller, entry.tool.exposure, self.standing(&entry.tool.name));
        let unreachable = |why: String| Err(Error::NotFound(why));
        match self.find(name) {
            Ok(entry) if reachable(&entry) => Ok(entry),
            Ok(entry) if caller != Caller::Model && entry.tool.exposure == Exposure::ModelOnly => {
                unreachable(format!("only the model can call `{}`, not a script or another tool", entry.tool.name))
            }
            Ok(entry) if caller != Caller::Model => {
                let name = &entry.tool.name;
                unreachable(match self.standing(name) {
                    Standing::Off => format!("the tool `{name}` is not there: the user has switched it off"),
                    _ => format!("the tool `{name}` is there, but not active, so only the user can call it"),
                })
            }
            Ok(_) | Err(Error::NotFound(_)) => {
                let names = self.tools.iter().filter(|entry| reachable(entry)).map(|entry| entry.tool.name.as_str());
                let near = near_matches(name, names);
                if caller == Caller::Person {
                    return Err(not_found(name, &near));
                }
                let hint =
                    if near.is_empty() { String::new() } else { format!("; did you mean `{}`?", near.join("` or `")) };
                unreachable(format!("there is no tool `{}` among those you can call{hint}", name.escape_debug()))
            }
            Err(error) => Err(error),
        }
    }
}

/// The error for a name that nothing answers to, as a person reads it.
fn not_found(name: &str, near: &[&str]) -> Error {
    let hint = if near.is_empty() {
        "`atoll tool list` shows what there is".to_owned()
    } else {
        format!("did you mean `{}`? `atoll tool list` shows all", near.join("` or `"))
    };
    Error::NotFound(format!("there is no tool `{}`; {hint}", name.escape_debug()))
}
