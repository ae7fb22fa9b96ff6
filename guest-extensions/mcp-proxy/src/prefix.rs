//! Names that the tools of servers have here.

use std::collections::{HashMap, HashSet};

use atoll_mcp_client::names::{MAX_NAME, fitting, namespace};

/// How such a name begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Prefix {
    /// With the server's name.
    #[default]
    Server,
    /// With the server's name without `-mcp` at its end.
    Short,
    /// With nothing.
    None,
    /// With `mcp__` and the server's name.
    Mcp,
}

impl Prefix {
    /// Their names in configuration files.
    pub(crate) const NAMES: [&str; 4] = ["server", "short", "none", "mcp"];

    /// The one of this name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let all = [Self::Server, Self::Short, Self::None, Self::Mcp];
        Self::NAMES.into_iter().zip(all).find(|(known, _)| *known == name).map(|(_, prefix)| prefix)
    }

    /// What a server's names begin with.
    fn of_server(self, server: &str) -> Option<String> {
        match self {
            Self::Server => Some(server.to_owned()),
            Self::Short => {
                Some(server.strip_suffix("-mcp").filter(|rest| !rest.is_empty()).unwrap_or(server).to_owned())
            }
            Self::None => None,
            Self::Mcp => Some(namespace(server)),
        }
    }
}

/// The names of all these tools of a server, in their order: no two are equal, and each is one that every model's API takes.
/// Those that would be equal, that are too long or that are taken end in a digest of the server and the tool. A tool whose own
/// name begins with the prefix does not get it twice.
pub(crate) fn names(prefix: Prefix, server: &str, tools: &[&str], is_taken: impl Fn(&str) -> bool) -> Vec<String> {
    let before = prefix.of_server(server).map(|before| plain(&before));
    let wanted = |tool: &str| {
        let tool = plain(tool);
        match &before {
            Some(before) if !tool.strip_prefix(before.as_str()).is_some_and(|rest| rest.starts_with('_')) => {
                format!("{before}_{tool}")
            }
            _ => tool,
        }
    };
    let all: Vec<String> = tools.iter().map(|tool| wanted(tool)).collect();
    let mut uses = HashMap::<&str, usize>::new();
    for name in &all {
        *uses.entry(name.as_str()).or_default() += 1;
    }
    let is_own = |name: &str| {
        let is_alone = uses.get(name).is_some_and(|count| *count == 1);
        is_alone && name.len() <= MAX_NAME && !is_taken(name)
    };
    // Who may have the name that it wants has it, whoever else comes to the same one with a digest.
    let mut given: HashSet<String> = all.iter().filter(|name| is_own(name)).cloned().collect();
    let named = all.iter().zip(tools).map(|(name, tool)| {
        if is_own(name) {
            return name.clone();
        }
        let mut name_with = fitting(name, server, tool, |_| true);
        let mut again = 0_usize;
        while is_taken(&name_with) || !given.insert(name_with.clone()) {
            again += 1;
            name_with = fitting(name, server, &format!("{tool}\0{again}"), |_| true);
        }
        name_with
    });
    named.collect()
}

/// The tools that call those of one server each, by server, with none where two would have one name: a call must not get to
/// another server than the one that it names.
pub(crate) fn namespaces<'a>(servers: impl Iterator<Item = &'a str>) -> HashMap<String, Option<String>> {
    let all: Vec<(&str, String)> = servers.map(|server| (server, of_namespace(server))).collect();
    let mut uses = HashMap::<&str, usize>::new();
    for (_, name) in &all {
        *uses.entry(name.as_str()).or_default() += 1;
    }
    let alone = |name: &String| uses.get(name.as_str()).is_some_and(|count| *count == 1);
    all.iter().map(|(server, name)| ((*server).to_owned(), Some(name.clone()).filter(alone))).collect()
}

/// The tool that calls those of one server.
pub(crate) fn of_namespace(server: &str) -> String {
    fitting(&namespace(server), server, "", |_| false)
}

/// What a resource is called as a tool.
pub(crate) fn of_resource(resource: &str) -> String {
    format!("read_{}", plain(resource))
}

fn plain(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let plain: String = name.chars().map(fits).collect();
    if plain.is_empty() { "_".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(prefix: Prefix, server: &str, tool: &str) -> String {
        names(prefix, server, &[tool], |_| false).remove(0)
    }

    #[test]
    fn names_begin_as_the_configuration_says() {
        let all = [Prefix::Server, Prefix::Short, Prefix::None, Prefix::Mcp];
        assert_eq!(
            all.map(|prefix| one(prefix, "github-mcp", "get.issue")),
            ["github-mcp_get_issue", "github_get_issue", "get_issue", "mcp__github_mcp_get_issue"]
        );
        assert_eq!(one(Prefix::Server, "probe-stub", "stub_echo"), "probe-stub_stub_echo");
        assert_eq!(one(Prefix::Short, "-mcp", "x"), "-mcp_x");
        assert_eq!(one(Prefix::Server, "git", "git_log"), "git_log", "not twice");
        assert_eq!(one(Prefix::Server, "git", "github"), "git_github");
        assert_eq!(Prefix::NAMES.map(Prefix::of), all.map(Some));
        assert_eq!(
            (of_namespace("probe-stub"), of_resource("my notes.md")),
            ("mcp__probe_stub".into(), "read_my_notes_md".into())
        );
    }

    #[test]
    fn of_equal_names_each_gets_a_digest_whatever_their_order() {
        let forth = names(Prefix::Server, "s", &["a.b", "a b", "c"], |_| false);
        let back = names(Prefix::Server, "s", &["c", "a b", "a.b"], |_| false);
        assert_eq!(forth.iter().rev().collect::<Vec<_>>(), back.iter().collect::<Vec<_>>());
        assert_ne!(forth[0], forth[1]);
        assert_eq!(forth[2], "s_c");
        assert!(names(Prefix::None, "s", &["read"], |name| name == "read")[0].starts_with("read_"));
    }

    #[test]
    fn a_name_with_a_digest_takes_no_name_of_others_either() {
        let digest = names(Prefix::None, "s", &["mcp"], |name| name == "mcp").remove(0);
        assert!(digest.starts_with("mcp_"), "{digest}");
        // A server may name a tool so that it looks like what another of its tools would be called.
        let own = names(Prefix::None, "s", &["mcp", &digest], |name| name == "mcp");
        assert_eq!(own[1], digest, "who has the name as it is keeps it");
        assert!(own[0] != digest && own[0].starts_with("mcp_"), "{own:?}");
        let others = names(Prefix::None, "s", &["mcp"], |name| name == "mcp" || name == digest);
        assert_eq!(others[0], own[0]);
    }

    #[test]
    fn of_servers_whose_tools_would_have_one_name_none_has_one() {
        let long = "x".repeat(64);
        let like = of_namespace(&long).split_off("mcp__".len());
        let all = namespaces([long.as_str(), like.as_str(), "good"].into_iter());
        assert_eq!((&all[&long], &all[&like], all["good"].as_deref()), (&None, &None, Some("mcp__good")));
    }

    proptest! {
        #[test]
        fn every_name_is_one_that_models_take_and_no_two_are_equal(
            server in "[A-Za-z0-9_-]{1,64}", tools in proptest::collection::hash_set("[a-b._ é]{0,3}|.{0,90}", 0..12), which in 0_usize..4,
        ) {
            let prefix = Prefix::NAMES.get(which).and_then(|name| Prefix::of(name)).unwrap();
            let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
            let all = names(prefix, &server, &tools, |_| false);
            let fits = |name: &String| (1..=64).contains(&name.len())
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
            prop_assert!(all.iter().all(fits), "{all:?}");
            prop_assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), tools.len());
            prop_assert!(fits(&of_namespace(&server)));
        }
    }
}
