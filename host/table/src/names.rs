//! Names: those made up for tools that are claimed by several, those a script can write, and those that are near.

use sha2::{Digest as _, Sha256};

use crate::tool::is_valid_name;

/// The longest name every model API accepts.
pub const MAX_NAME: usize = 64;

/// The name of a tool whose own name is claimed by several plugins: `<plugin>__<tool>`, with a digest if that is
/// too long, taken, or not a tool's name. `seed` tells apart what must not get the same digest.
pub(crate) fn qualified(plugin: &str, tool: &str, seed: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let name = format!("{plugin}__{tool}");
    if is_valid_name(&name) && !is_taken(&name) {
        return name;
    }
    let plain: String = name.chars().map(|c| if c == '-' || c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    // A digest can be taken too: somebody may have named a tool after it.
    (0_u32..)
        .map(|round| match round {
            0 => with_suffix(&plain, seed),
            round => with_suffix(&plain, &format!("{seed}\0{round}")),
        })
        .find(|name| !is_taken(name))
        .unwrap_or(plain)
}

/// The name as a script can write it, with a digest of what it really is: another one for each name.
pub(crate) fn told_apart(name: &str) -> String {
    with_suffix(&identifier(name), name)
}

fn with_suffix(name: &str, seed: &str) -> String {
    use std::fmt::Write as _;
    let mut suffix = String::new();
    for byte in Sha256::digest(seed.as_bytes()).iter().take(4) {
        let _ = write!(suffix, "{byte:02x}");
    }
    // All ASCII here, so bytes are characters.
    let kept: String = name.chars().take(MAX_NAME - 1 - suffix.len()).collect();
    format!("{kept}_{suffix}")
}

fn identifier_characters(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

/// The name as a script can write it: what can not stand in an identifier becomes `_`.
pub fn identifier(name: &str) -> String {
    let name = identifier_characters(name);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// Whether a pattern in which `*` stands for any characters matches the whole name.
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(first) = parts.next() else { return false };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// Up to three names that somebody may have meant: those within an edit distance of a third of the name's length, nearest
/// first, then those that have all of its words, or of which it has all.
pub fn near_matches<'a>(name: &str, names: impl Iterator<Item = &'a str> + Clone) -> Vec<&'a str> {
    // A name that no tool can have has no neighbours, and comparing a long one would take long.
    let length = name.chars().count();
    if length > 2 * MAX_NAME {
        return Vec::new();
    }
    let name = name.to_lowercase();
    let bound = (length / 3).max(1);
    let mut near: Vec<(usize, &str)> = names
        .clone()
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= 4 * bound)
        .map(|candidate| (strsim::damerau_levenshtein(&name, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= bound)
        .collect();
    near.sort();
    let mut near: Vec<&str> = near.into_iter().map(|(_, candidate)| candidate).collect();
    if near.len() < 3 {
        let wanted = words(&name);
        let shares = |candidate: &str| {
            let words = words(&candidate.to_lowercase());
            let all_of = |these: &[String], those: &[String]| these.iter().all(|word| those.contains(word));
            !wanted.is_empty() && !words.is_empty() && (all_of(&wanted, &words) || all_of(&words, &wanted))
        };
        near.extend(
            names.filter(|candidate| shares(candidate)).filter(|name| !near.contains(name)).collect::<Vec<_>>(),
        );
    }
    near.truncate(3);
    near
}

/// The words of a name that are long enough to mean something.
fn words(name: &str) -> Vec<String> {
    name.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn who_writes_more_or_fewer_words_is_understood() {
        let near = |name| near_matches(name, ["read", "gh_create_issue", "gh_list", "reed"].into_iter());
        assert_eq!(near("read_file"), ["read"]);
        assert_eq!(near("gh_create"), ["gh_create_issue"]);
        assert_eq!(near("raed"), ["read", "reed"], "what is written nearly so comes first, and once");
        assert!(near("delete_all").is_empty() && near("_").is_empty());
    }

    #[test]
    fn scripts_get_identifiers() {
        assert_eq!(identifier("my-tool"), "my_tool");
        assert_eq!(identifier("7zip"), "_7zip");
        assert_eq!(identifier("größe"), "gr__e");
        assert_eq!(identifier(""), "_");
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("read", "read", true),
            ("read", "reader", false),
            ("r*d", "read", true),
            ("*", "anything", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXcYb", false),
            ("ab*b", "ab", false),
        ] {
            assert_eq!(matches_pattern(pattern, name), expected, "{pattern} {name}");
        }
    }

    proptest! {
        #[test]
        fn qualified_names_are_tools_names_and_not_taken(plugin in any::<String>(), tool in any::<String>()) {
            let first = qualified(&plugin, &tool, "seed", |_| false);
            prop_assert!(is_valid_name(&first));
            let second = qualified(&plugin, &tool, "seed", |name| name == first);
            let third = qualified(&plugin, &tool, "seed", |name| name == first || name == second);
            prop_assert!(is_valid_name(&third) && third != first && third != second);
        }

        #[test]
        fn patterns_and_near_matches_never_panic(pattern in any::<String>(), name in any::<String>()) {
            matches_pattern(&pattern, &name);
            near_matches(&pattern, [name.as_str()].into_iter());
        }
    }
}
