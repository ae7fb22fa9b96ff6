//! Which built-in extensions give way, because another plugin has a tool, a command or an option of theirs. Pure.

use std::collections::BTreeSet;

/// The names that a plugin has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The plugin.
    pub plugin: String,
    /// Its tools.
    pub tools: BTreeSet<String>,
    /// Its commands.
    pub commands: BTreeSet<String>,
    /// Its options.
    pub flags: BTreeSet<String>,
    /// Events that it answers for.
    pub events: BTreeSet<String>,
}

/// A built-in extension that gives way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Displaced {
    /// The built-in one.
    pub builtin: String,
    /// The plugin that takes over.
    pub by: String,
    /// What both have, for people: `the tool x`, `the command /x`, `the option --x` or `a handler of x`.
    pub what: String,
}

impl std::fmt::Display for Displaced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { builtin, by, what } = self;
        write!(f, "the built-in {builtin} is replaced by the plugin {by}, which has {what}")
    }
}

/// The built-in ones that give way to others, each to the first of them in load order that has one of its names.
pub fn displaced(builtins: &[Names], others: &[Names]) -> Vec<Displaced> {
    let by_first = |builtin: &Names| others.iter().find_map(|other| shared(builtin, other).map(|what| (other, what)));
    let displaced = builtins.iter().filter_map(|builtin| {
        let (other, what) = by_first(builtin)?;
        Some(Displaced { builtin: builtin.plugin.clone(), by: other.plugin.clone(), what })
    });
    displaced.collect()
}

/// The first name that both have.
fn shared(one: &Names, other: &Names) -> Option<String> {
    let first = |a: &BTreeSet<String>, b: &BTreeSet<String>| a.intersection(b).next().cloned();
    let tool = || first(&one.tools, &other.tools).map(|name| format!("the tool {name}"));
    let command = || first(&one.commands, &other.commands).map(|name| format!("the command /{name}"));
    let flag = || first(&one.flags, &other.flags).map(|name| format!("the option --{name}"));
    let event = || first(&one.events, &other.events).map(|name| format!("a handler of {name}"));
    tool().or_else(command).or_else(flag).or_else(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(plugin: &str, tools: &[&str], commands: &[&str], flags: &[&str]) -> Names {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let (tools, commands, flags) = (set(tools), set(commands), set(flags));
        Names { plugin: plugin.to_owned(), tools, commands, flags, events: BTreeSet::new() }
    }

    #[test]
    fn one_that_answers_for_an_event_gives_way_to_another_that_does() {
        let event = |plugin: &str| Names { events: ["x".to_owned()].into(), ..names(plugin, &[], &[], &[]) };
        let said: Vec<String> = displaced(&[event("own")], &[names("a", &["x"], &[], &[]), event("b")])
            .iter()
            .map(Displaced::to_string)
            .collect();
        assert_eq!(said, ["the built-in own is replaced by the plugin b, which has a handler of x"]);
    }

    #[test]
    fn each_gives_way_once_to_the_first_that_has_a_name_of_its() {
        let builtins =
            [names("mcp", &["mcp"], &["mcp"], &["mcp-config"]), names("tool-search", &["tool_search"], &[], &[])];
        let said = |others: &[Names]| -> Vec<String> {
            displaced(&builtins, others).iter().map(Displaced::to_string).collect()
        };
        assert_eq!(said(&[]), Vec::<String>::new());
        // A name of another kind is another name, and so is one in other letters.
        let strangers =
            [names("a", &["mcp-config"], &["tool_search"], &["mcp"]), names("b", &["Tool_Search"], &[], &[])];
        assert_eq!(said(&strangers), Vec::<String>::new());
        let adapter = names("adapter", &["x"], &["mcp"], &["mcp-config"]);
        let finder = names("finder", &["tool_search"], &[], &[]);
        let flagged = names("flagged", &[], &[], &["mcp-config"]);
        assert_eq!(
            said(&[finder, flagged, adapter.clone()]),
            [
                "the built-in mcp is replaced by the plugin flagged, which has the option --mcp-config",
                "the built-in tool-search is replaced by the plugin finder, which has the tool tool_search"
            ]
        );
        assert_eq!(
            said(&[adapter]),
            ["the built-in mcp is replaced by the plugin adapter, which has the command /mcp"]
        );
    }
}
