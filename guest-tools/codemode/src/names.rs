//! The tools that a script may call, by the names it has for them.

use std::collections::BTreeMap;

/// A tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Callable {
    /// Its name in the table.
    pub(crate) name: String,
    /// Its name as a script can write it; none if that is another tool's.
    pub(crate) identifier: Option<String>,
    /// The first line of its description.
    pub(crate) description: String,
    /// It says what its result is.
    pub(crate) structured: bool,
}

/// Names that a script reads of every object, so that they can not be a tool's.
const RESERVED: [&str; 6] = ["then", "toJSON", "constructor", "valueOf", "toString", "inspect"];
/// A name that is longer has no neighbours.
const LONGEST: usize = 128;
/// How long a line of a description is shown, in characters.
const LINE: usize = 120;

/// All of them, in the order of the table.
#[derive(Debug, Default)]
pub(crate) struct Names {
    all: Vec<Callable>,
    by_identifier: BTreeMap<String, usize>,
    by_name: BTreeMap<String, usize>,
}

impl Names {
    pub(crate) fn new(callable: Vec<Callable>) -> Self {
        let mut names = Self::default();
        for tool in callable {
            let at = names.all.len();
            names.by_name.insert(tool.name.clone(), at);
            if let Some(identifier) = &tool.identifier {
                names.by_identifier.entry(identifier.clone()).or_insert(at);
            }
            names.all.push(tool);
        }
        names
    }

    /// The tool that a script means: by its name, else by its identifier.
    pub(crate) fn find(&self, wanted: &str) -> Option<&Callable> {
        // A name of the table that is also one of every object is only there under its identifier.
        if RESERVED.contains(&wanted) {
            return None;
        }
        let at = self.by_name.get(wanted).or_else(|| self.by_identifier.get(wanted))?;
        self.all.get(*at)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Callable> {
        self.all.iter()
    }

    /// The identifiers, in order, each once.
    pub(crate) fn identifiers(&self) -> impl Iterator<Item = &str> {
        self.all.iter().filter_map(|tool| tool.identifier.as_deref())
    }

    /// What to say of a tool that there is not.
    pub(crate) fn missing(&self, wanted: &str) -> String {
        let shown: String = wanted.chars().take(80).collect::<String>().escape_debug().to_string();
        let near = self.near(wanted);
        let search = "`await searchTools(\"words\")` searches by words, and `ALL_TOOLS` lists all";
        match near.as_slice() {
            [] if self.all.is_empty() => format!("there is no tool `{shown}`: scripts can call no tool now"),
            [] => format!("there is no tool `{shown}`; {search}"),
            near => format!("there is no tool `{shown}`; did you mean {}? {search}", near.join(" or ")),
        }
    }

    /// Up to three names: those within an edit distance of a third of the length, nearest first, then those that begin
    /// alike or have words in common.
    fn near(&self, wanted: &str) -> Vec<String> {
        let length = wanted.chars().count();
        if length > LONGEST || length == 0 {
            return Vec::new();
        }
        let wanted = wanted.to_lowercase();
        let bound = (length / 3).max(1);
        let mut near: Vec<(usize, &str)> = self
            .identifiers()
            .filter(|candidate| candidate.len().abs_diff(wanted.len()) <= 4 * bound)
            .map(|candidate| (strsim::damerau_levenshtein(&wanted, &candidate.to_lowercase()), candidate))
            .filter(|(distance, _)| *distance <= bound)
            .collect();
        near.sort_unstable();
        let mut alike: Vec<(std::cmp::Reverse<usize>, usize, &str)> = self
            .identifiers()
            .map(|candidate| {
                (std::cmp::Reverse(in_common(&wanted, &candidate.to_lowercase())), candidate.len(), candidate)
            })
            .filter(|(common, _, candidate)| common.0 > 0 && !near.iter().any(|(_, known)| known == candidate))
            .collect();
        alike.sort_unstable();
        let alike = alike.into_iter().map(|(_, _, name)| name);
        near.into_iter().map(|(_, name)| name).chain(alike).take(3).map(|name| format!("`{name}`")).collect()
    }
}

/// How much two names have in common: words, and that one begins with the other.
fn in_common(wanted: &str, candidate: &str) -> usize {
    const SHORTEST: usize = 3;
    let words = |name: &str| -> Vec<String> {
        name.split(|one: char| !one.is_alphanumeric())
            .filter(|word| word.len() >= SHORTEST)
            .map(str::to_owned)
            .collect()
    };
    let known = words(candidate);
    let shared = words(wanted).iter().filter(|word| known.contains(word)).count();
    let (short, long) = if wanted.len() < candidate.len() { (wanted, candidate) } else { (candidate, wanted) };
    shared + usize::from(short.len() >= SHORTEST && long.starts_with(short))
}

impl Callable {
    /// What a script writes for it, after a dot or in brackets.
    pub(crate) fn id(&self) -> &str {
        self.identifier.as_deref().unwrap_or(&self.name)
    }
}

/// The first line of a description that says something.
pub(crate) fn first_line(description: &str) -> String {
    let line = description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[(&str, Option<&str>)]) -> Names {
        let tool = |(name, identifier): &(&str, Option<&str>)| Callable {
            name: (*name).to_owned(),
            identifier: identifier.map(str::to_owned),
            description: String::new(),
            structured: false,
        };
        Names::new(all.iter().map(tool).collect())
    }

    #[test]
    fn a_tool_is_found_by_its_name_and_by_what_a_script_can_write() {
        let names = names(&[
            ("a_b", Some("a_b")),
            ("a-b", None),
            ("then", Some("then_")),
            ("9lives", Some("_9lives")),
            ("__proto__", Some("__proto__")),
        ]);
        let found = |wanted: &str| names.find(wanted).map(|tool| format!("{} {}", tool.name, tool.id()));
        assert_eq!(found("a_b").as_deref(), Some("a_b a_b"));
        assert_eq!(found("a-b").as_deref(), Some("a-b a-b"));
        assert_eq!((found("then"), found("then_").as_deref()), (None, Some("then then_")));
        assert_eq!(found("_9lives").as_deref(), Some("9lives _9lives"));
        assert_eq!(found("__proto__").as_deref(), Some("__proto__ __proto__"));
        let identifiers: Vec<&str> = names.identifiers().collect();
        assert_eq!(identifiers, ["a_b", "then_", "_9lives", "__proto__"]);
    }

    #[test]
    fn what_is_missing_has_its_neighbours_named() {
        let names =
            names(&[("list_items", Some("list_items")), ("list_item", Some("list_item")), ("read", Some("read"))]);
        assert!(
            names
                .missing("list_itms")
                .starts_with("there is no tool `list_itms`; did you mean `list_items` or `list_item`?")
        );
        assert!(names.missing("nothing_like_it").starts_with("there is no tool `nothing_like_it`; `await searchTools"));
        assert!(names.missing("read_file").contains("did you mean `read`?"), "{}", names.missing("read_file"));
        assert!(names.missing("items_of_list").contains("`list_items`"), "{}", names.missing("items_of_list"));
        assert!(names.missing("lis").contains("`list_item`"), "{}", names.missing("lis"));
        assert!(names.missing(&"x".repeat(5000)).len() < 300);
        assert!(Names::default().missing("a").ends_with("no tool now"));
    }
}
