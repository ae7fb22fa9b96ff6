//! The part of a tool's description that says which tools its scripts can call: what fits into a budget, chosen fairly
//! among groups, in an order that is always the same.

use std::collections::HashMap;

use super::{Declaration, declaration, interface};
use crate::{Tool, tool::Namespace};

/// A tool that may be listed.
#[derive(Clone, Debug)]
pub struct Piece {
    name: String,
    namespace: Option<Namespace>,
    declaration: Declaration,
}

impl Piece {
    /// For a tool that scripts write so.
    pub fn new(tool: &Tool, identifier: Option<&str>) -> Self {
        Self { name: tool.name.clone(), namespace: tool.namespace.clone(), declaration: declaration(tool, identifier) }
    }
}

/// What has been listed. It only grows: what is there keeps its words and its place, so that what a prompt cache holds
/// stays good, even when a tool has gone away meanwhile. Then calling it is an error that says so.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    names: Vec<String>,
    pub(super) text: String,
    pub(super) tokens: usize,
    left_out: usize,
}

impl Listing {
    /// Adds those of these tools that are not listed yet and fit into what is left of `budget` tokens: round-robin over
    /// the groups, in each the shortest first. `pieces` are in the order of registration.
    pub fn add(&mut self, pieces: &[Piece], budget: usize) {
        let new: Vec<&Piece> = pieces.iter().filter(|piece| !self.names.contains(&piece.name)).collect();
        let mut groups: Vec<(Option<&str>, Vec<&Piece>)> = Vec::new();
        let mut places: HashMap<Option<&str>, usize> = HashMap::new();
        for piece in &new {
            let name = piece.namespace.as_ref().map(|namespace| namespace.name.as_str());
            let place = *places.entry(name).or_insert_with(|| {
                groups.push((name, Vec::new()));
                groups.len() - 1
            });
            if let Some((_, pieces)) = groups.get_mut(place) {
                pieces.push(piece);
            }
        }
        let chosen = self.choose(&groups, budget);
        self.left_out = new.len() - chosen.len();
        for (name, pieces) in groups {
            let pieces: Vec<&Piece> =
                pieces.into_iter().filter(|piece| chosen.contains(&piece.name.as_str())).collect();
            if pieces.is_empty() {
                continue;
            }
            self.text.push_str(&heading(name, &pieces));
            self.text.push_str("```ts\n");
            let declarations: Vec<&Declaration> = pieces.iter().map(|piece| &piece.declaration).collect();
            self.text.push_str(&interface(declarations.iter().copied()));
            self.text.push_str("```\n");
            self.names.extend(pieces.into_iter().map(|piece| piece.name.clone()));
        }
    }

    fn choose<'a>(&mut self, groups: &[(Option<&str>, Vec<&'a Piece>)], budget: usize) -> Vec<&'a str> {
        let mut waiting: Vec<std::vec::IntoIter<&Piece>> = groups
            .iter()
            .map(|(_, pieces)| {
                let mut pieces = pieces.clone();
                // A stable sort, so that equals keep the order of registration.
                pieces.sort_by_key(|piece| piece.declaration.tokens());
                pieces.into_iter()
            })
            .collect();
        let mut chosen = Vec::new();
        while !waiting.is_empty() {
            waiting.retain_mut(|group| {
                // In a group they only get longer, so the first that does not fit is the last that is looked at.
                let next = group.next().filter(|piece| self.tokens + piece.declaration.tokens() <= budget);
                let Some(piece) = next else { return false };
                self.tokens += piece.declaration.tokens();
                chosen.push(piece.name.as_str());
                true
            });
        }
        chosen
    }

    /// The text, empty where there is no tool.
    pub fn text(&self) -> String {
        match (self.text.is_empty(), self.left_out) {
            (true, 0) => String::new(),
            (false, 0) => self.text.trim_end().to_owned(),
            (true, 1) => "1 tool can be called; find it with searchTools(\"words\").".to_owned(),
            (true, more) => format!("{more} tools can be called; find them with searchTools(\"words\")."),
            (false, more) => format!("{}… and {more} more; find them with searchTools(\"words\").", self.text),
        }
    }
}

/// What comes before the tools of a group: the first line of what it is for.
fn heading(name: Option<&str>, pieces: &[&Piece]) -> String {
    let Some(name) = name else { return String::new() };
    let description = pieces.iter().find_map(|piece| piece.namespace.as_ref()?.description.as_deref());
    let line = description.map(crate::callable::first_line).filter(|line| !line.is_empty());
    match line {
        Some(line) => format!("{name}: {}\n", line.replace("```", "'''")),
        None => format!("{name}:\n"),
    }
}
