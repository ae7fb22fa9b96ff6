//! The tools that somebody can call now, as a script sees them: small, in the order of registration, each with a name that
//! a script can write.

use std::collections::HashSet;

use crate::{Registered, Table, names::identifier, reach::Standing};

/// The longest summary, in characters.
const MAX_SUMMARY: usize = 120;

/// A tool that can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callable {
    /// Its unique name.
    pub name: String,
    /// Its name as a script can write it; none if that is another tool's.
    pub identifier: Option<String>,
    /// The first line of its description.
    pub summary: String,
    /// The group it belongs to.
    pub namespace: Option<String>,
    /// It says what its structured result looks like.
    pub structured: bool,
}

/// What can be called at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callables {
    /// Changes whenever the tools may have.
    pub version: u64,
    /// In the order of registration.
    pub tools: Vec<Callable>,
}

/// The first line of a text that says anything, cut to 120 characters.
pub fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(MAX_SUMMARY) {
        Some(_) => line.chars().take(MAX_SUMMARY - 1).chain(['…']).collect(),
        None => line.to_owned(),
    }
}

/// Names that a script reads of every object, by itself or for others: who awaits one looks for `then`.
const RESERVED: [&str; 6] = ["then", "toJSON", "constructor", "valueOf", "toString", "inspect"];

/// Gives each name the identifier that a script writes for it. What is a tool's own name is nobody else's identifier; of
/// those that would be equal beside, the first has it, and the others are only reached by their names.
pub fn identifiers<'a>(names: impl IntoIterator<Item = &'a str> + Clone) -> Vec<Option<String>> {
    let own = |name: &str| {
        let mut identifier = identifier(name);
        if RESERVED.contains(&identifier.as_str()) {
            identifier.push('_');
        }
        identifier
    };
    let mut taken: HashSet<String> =
        names.clone().into_iter().filter(|name| own(name) == *name).map(str::to_owned).collect();
    let one = |name: &str| {
        let identifier = own(name);
        (identifier == name || taken.insert(identifier.clone())).then_some(identifier)
    };
    names.into_iter().map(one).collect()
}

impl Table {
    /// The tools that `admits` lets through (it also learns where a tool stands).
    pub fn callable(&self, admits: impl Fn(&Registered, Standing) -> bool) -> Vec<Callable> {
        let tools: Vec<_> =
            self.tools().iter().filter(|entry| admits(entry, self.standing(&entry.tool.name))).collect();
        let identifiers = identifiers(tools.iter().map(|entry| entry.tool.name.as_str()));
        let callable = |(entry, identifier): (&std::sync::Arc<Registered>, _)| Callable {
            name: entry.tool.name.clone(),
            identifier,
            summary: first_line(&entry.tool.description),
            namespace: entry.tool.namespace.as_ref().map(|namespace| namespace.name.clone()),
            structured: entry.tool.output_schema.is_some(),
        };
        tools.into_iter().zip(identifiers).map(callable).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_its_tools_and_of_equal_identifiers_the_first_has_it() {
        let given = identifiers(["a-b", "a_b", "c.d", "c-d", "then", "7zip", "constructor", "__proto__"]);
        let given: Vec<Option<&str>> = given.iter().map(Option::as_deref).collect();
        assert_eq!(
            given,
            [
                None,
                Some("a_b"),
                Some("c_d"),
                None,
                Some("then_"),
                Some("_7zip"),
                Some("constructor_"),
                Some("__proto__")
            ]
        );
    }

    #[test]
    fn a_summary_is_one_line_of_so_many_characters() {
        assert_eq!(first_line("\n  Does it.  \nAnd more."), "Does it.");
        assert_eq!(first_line(""), "");
        let long = first_line(&"ä".repeat(121));
        assert_eq!((long.chars().count(), long.ends_with("ä…")), (120, true));
        assert_eq!(first_line(&"ä".repeat(120)), "ä".repeat(120));
    }
}
