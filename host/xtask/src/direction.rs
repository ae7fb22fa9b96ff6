//! Which crate may depend on which. The pure crates stay pure and the host never links a guest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};
use cargo_metadata::{DependencyKind, Metadata, PackageId};

use crate::workspace::is_guest_member;

/// Each crate of the host with those of ours it may depend on directly.
const ALLOWED: [(&str, &[&str]); 6] = [
    ("atoll", &["atoll-agent", "atoll-engine", "atoll-table", "atoll-caps"]),
    ("atoll-agent", &["atoll-table", "atoll-caps"]),
    ("atoll-engine", &["atoll-table", "atoll-caps"]),
    ("atoll-table", &[]),
    ("atoll-caps", &[]),
    ("xtask", &[]),
];

/// Crates that must not be reached, not even through others.
const FORBIDDEN: [(&str, &[&str]); 4] = [
    ("atoll-table", &["wasmtime", "tokio"]),
    ("atoll-caps", &["wasmtime", "tokio"]),
    ("atoll-agent", &["wasmtime"]),
    ("xtask", &["wasmtime"]),
];

/// What the rules need to know of a workspace. Development dependencies are left out: tests may use anything.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// Members that run on the host.
    host: BTreeSet<String>,
    /// Members that are compiled to wasm, and their libraries.
    guests: BTreeSet<String>,
    /// Every package with its normal and build dependencies.
    direct: BTreeMap<String, BTreeSet<String>>,
    /// Every package with its normal dependencies: what is linked.
    linked: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Reads the graph of a resolved workspace. Versions of one package are taken together.
    ///
    /// # Errors
    /// The metadata is not resolved.
    pub(crate) fn read(root: &Path, metadata: &Metadata) -> Result<Self> {
        let resolve = metadata.resolve.as_ref().context("cargo metadata resolved nothing")?;
        let names: BTreeMap<&PackageId, String> =
            metadata.packages.iter().map(|package| (&package.id, package.name.to_string())).collect();
        let name = |id: &PackageId| names.get(id).cloned().unwrap_or_else(|| id.repr.clone());
        let mut graph = Self::default();
        for package in metadata.workspace_packages() {
            let side = if is_guest_member(root, package) { &mut graph.guests } else { &mut graph.host };
            side.insert(package.name.to_string());
        }
        for node in &resolve.nodes {
            let direct = graph.direct.entry(name(&node.id)).or_default();
            let linked = graph.linked.entry(name(&node.id)).or_default();
            for dependency in &node.deps {
                let is = |kind| dependency.dep_kinds.iter().any(|info| info.kind == kind);
                if is(DependencyKind::Normal) {
                    linked.insert(name(&dependency.pkg));
                }
                if is(DependencyKind::Normal) || is(DependencyKind::Build) {
                    direct.insert(name(&dependency.pkg));
                }
            }
        }
        Ok(graph)
    }

    /// The shortest chain of linked crates between two, both included.
    fn chain(&self, from: &str, to: &str) -> Option<Vec<String>> {
        let mut seen = BTreeSet::from([from.to_owned()]);
        let mut open = std::collections::VecDeque::from([vec![from.to_owned()]]);
        while let Some(chain) = open.pop_front() {
            let last = chain.last()?;
            for next in self.linked.get(last).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    let mut longer = chain.clone();
                    longer.push(next.clone());
                    if next == to {
                        return Some(longer);
                    }
                    open.push_back(longer);
                }
            }
        }
        None
    }
}

/// One line for each edge that the rules do not allow.
pub(crate) fn check(graph: &Graph) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, allowed) in ALLOWED {
        if !graph.host.contains(name) {
            wrong.push(format!(
                "{name} is no member of the workspace: if it was renamed, rename it in direction.rs too"
            ));
            continue;
        }
        for dependency in graph.direct.get(name).into_iter().flatten() {
            if graph.guests.contains(dependency) {
                wrong.push(format!(
                    "{name} → {dependency}: a host crate depends on a guest crate; remove the dependency"
                ));
            } else if graph.host.contains(dependency) && !allowed.contains(&dependency.as_str()) {
                wrong.push(format!(
                    "{name} → {dependency}: not a direction of ours; move the code or invert it by a trait"
                ));
            }
        }
    }
    for (name, forbidden) in FORBIDDEN {
        for target in forbidden {
            if let Some(chain) = graph.chain(name, target) {
                wrong.push(format!("{}: {name} must stay free of {target}; remove the dependency", chain.join(" → ")));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &str)]) -> Graph {
        let mut graph = Graph {
            host: ALLOWED.iter().map(|(name, _)| (*name).to_owned()).chain(["atoll-tests".to_owned()]).collect(),
            guests: BTreeSet::from(["atoll-tool-read".to_owned()]),
            ..Graph::default()
        };
        for (from, to) in edges {
            for map in [&mut graph.direct, &mut graph.linked] {
                map.entry((*from).to_owned()).or_default().insert((*to).to_owned());
            }
        }
        graph
    }

    #[test]
    fn intended_directions_pass() {
        let edges = [
            ("atoll", "atoll-engine"),
            ("atoll", "atoll-agent"),
            ("atoll-engine", "atoll-table"),
            ("atoll-engine", "wasmtime"),
            ("atoll-agent", "tokio"),
            ("atoll-agent", "atoll-caps"),
            ("atoll-table", "serde"),
        ];
        assert_eq!(check(&graph(&edges)), Vec::<String>::new());
    }

    #[test]
    fn wrong_edge_is_named() {
        let wrong = check(&graph(&[("atoll-engine", "atoll-agent"), ("atoll-table", "atoll-caps")]));
        assert_eq!(wrong.len(), 2);
        assert!(wrong[0].starts_with("atoll-engine → atoll-agent"));
        assert!(wrong[1].starts_with("atoll-table → atoll-caps"));
    }

    #[test]
    fn host_must_not_link_a_guest() {
        let wrong = check(&graph(&[("atoll", "atoll-tool-read")]));
        assert!(wrong[0].starts_with("atoll → atoll-tool-read: a host crate depends on a guest"), "{wrong:?}");
    }

    #[test]
    fn forbidden_crate_is_found_through_others_with_its_chain() {
        let wrong = check(&graph(&[("atoll-caps", "helper"), ("helper", "deeper"), ("deeper", "tokio")]));
        assert_eq!(wrong.len(), 1);
        assert!(wrong[0].starts_with("atoll-caps → helper → deeper → tokio"), "{wrong:?}");
        let wrong = check(&graph(&[("atoll-agent", "helper"), ("helper", "wasmtime")]));
        assert!(wrong[0].starts_with("atoll-agent → helper → wasmtime"));
    }

    #[test]
    fn renamed_crate_does_not_escape_the_rules() {
        let mut graph = graph(&[]);
        graph.host.remove("atoll-caps");
        assert!(check(&graph)[0].starts_with("atoll-caps is no member"));
    }
}
