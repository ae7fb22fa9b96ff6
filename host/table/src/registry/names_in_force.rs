//! Which name each tool goes by, given who else claims the one its plugin gave it.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use serde::Serialize;

use super::{Origin, Registered, Table};
use crate::{names::qualified, tool::Exposure};

/// A name that more than one plugin gave to a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Collision {
    /// The name.
    pub name: String,
    /// The plugin whose tool answers to it, if one does.
    pub answers: Option<String>,
    /// The plugins that claim it, and the name each one's tool can be reached by; `None` for a built-in tool that
    /// another stands in for.
    pub claims: Vec<(String, Option<String>)>,
}

/// For how many tools all others are looked at one by one, instead of putting their names together first.
const FEW: usize = 16;

impl Table {
    /// Gives the tools from this index on their names, if nobody claims what their plugins call them. Else nothing is done,
    /// and it is `false`. A plugin that adds thousands of tools a few at a time must not have all names worked out each time.
    pub(super) fn settle_new(&mut self, first: usize) -> bool {
        let (known, new) = self.tools.split_at(first);
        let claimed: Option<HashSet<&str>> = (new.len() > FEW)
            .then(|| known.iter().filter(|entry| !entry.is_withdrawn()).map(|entry| entry.local.as_str()).collect());
        let is_claimed = |entry: &Arc<Registered>| {
            let claims = |other: &Arc<Registered>| !other.is_withdrawn() && other.local == entry.local;
            self.names.contains_key(&entry.local)
                || match &claimed {
                    Some(claimed) => claimed.contains(entry.local.as_str()),
                    None => known.iter().any(claims),
                }
        };
        if new.iter().any(|entry| entry.is_withdrawn() || is_claimed(entry)) {
            return false;
        }
        let names = new.iter().enumerate().map(|(at, entry)| (entry.local.clone(), first + at));
        self.names.extend(names.collect::<Vec<_>>());
        true
    }

    /// Takes their names from these tools, which were withdrawn, if they had what their plugins call them and nobody else
    /// claims that. Else nothing is done, and it is `false`.
    pub(super) fn settle_gone(&mut self, gone: &[usize]) -> bool {
        let locals: HashSet<&str> = gone.iter().map(|index| self.tools[*index].local.as_str()).collect();
        // A name that was made up may have been made up for want of this one.
        let is_concerned = |entry: &Arc<Registered>| {
            !entry.is_withdrawn() && (locals.contains(entry.local.as_str()) || entry.tool.name != entry.local)
        };
        let had_it = |index: &usize| self.names.get(&self.tools[*index].local) == Some(index);
        if !gone.iter().all(had_it) || self.tools.iter().any(is_concerned) {
            return false;
        }
        for index in gone {
            self.names.remove(&self.tools[*index].local);
        }
        true
    }

    /// Gives each tool the name and exposure that follow from who else claims its name.
    pub(super) fn settle(&mut self) {
        #[cfg(test)]
        {
            self.settled += 1;
        }
        let mut claims: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, entry) in self.tools.iter().enumerate() {
            if entry.wanted_exposure != Exposure::Hidden {
                claims.entry(&entry.local).or_default().push(index);
            }
        }
        let mut names: HashMap<String, usize> = HashMap::new();
        let mut replaced = HashSet::new();
        let mut without = Vec::new();
        for (local, claimants) in &claims {
            let builtin = claimants.iter().copied().find(|index| self.tools[*index].origin == Origin::Builtin);
            let replacing = claimants.iter().copied().filter(|index| self.tools[*index].replaces);
            let owner = match (builtin, replacing.collect::<Vec<usize>>().as_slice()) {
                (None, _) => (claimants.len() == 1).then(|| claimants[0]),
                (Some(builtin), []) => Some(builtin),
                (Some(builtin), standing_in) => {
                    replaced.insert(builtin);
                    (standing_in.len() == 1).then(|| standing_in[0])
                }
            };
            if let Some(owner) = owner {
                names.insert((*local).to_owned(), owner);
            }
            without
                .extend(claimants.iter().copied().filter(|index| Some(*index) != owner && !replaced.contains(index)));
        }
        // In the order of registration, so that a digest is only ever needed by the later tool.
        without.sort_unstable();
        // A name that is ambiguous is no tool's own, and must not become another's generated one.
        let claimed: HashSet<String> = claims.keys().map(|name| (*name).to_owned()).collect();
        for index in without {
            let entry = &self.tools[index];
            let seed = format!("{:?}\0{}\0{}", entry.origin, entry.plugin, entry.local);
            let is_taken = |name: &str| names.contains_key(name) || claimed.contains(name);
            let name = qualified(&entry.plugin, &entry.local, &seed, is_taken);
            names.insert(name, index);
        }
        let mut shown: Vec<Option<&str>> = vec![None; self.tools.len()];
        for (name, index) in &names {
            shown[*index] = Some(name);
        }
        let mut changed = Vec::new();
        for (index, entry) in self.tools.iter().enumerate() {
            let name = shown[index].unwrap_or(&entry.local);
            let exposure = if shown[index].is_some() { entry.wanted_exposure } else { Exposure::Hidden };
            if entry.tool.name != name || entry.tool.exposure != exposure {
                changed.push((index, Arc::new(entry.shown_as(name.to_owned(), exposure))));
            }
        }
        for (index, entry) in changed {
            self.tools[index] = entry;
        }
        self.names = names;
    }

    /// The names that more than one plugin claims, sorted.
    pub fn collisions(&self) -> Vec<Collision> {
        let mut claims: BTreeMap<&str, Vec<&Arc<Registered>>> = BTreeMap::new();
        for entry in self.tools.iter().filter(|entry| entry.wanted_exposure != Exposure::Hidden) {
            claims.entry(&entry.local).or_default().push(entry);
        }
        (claims.into_iter().filter(|(_, entries)| entries.len() > 1))
            .map(|(name, entries)| Collision {
                name: name.to_owned(),
                answers: self.names.get(name).map(|index| self.tools[*index].plugin.clone()),
                claims: (entries.iter())
                    .map(|entry| (entry.plugin.clone(), (!entry.is_hidden()).then(|| entry.tool.name.clone())))
                    .collect(),
            })
            .collect()
    }
}
