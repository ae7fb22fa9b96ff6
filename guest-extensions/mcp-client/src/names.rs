//! Names made up for what servers bring: tools, and the groups they form.

use sha2::{Digest as _, Sha256};

/// The longest name every model API accepts.
pub const MAX_NAME: usize = 64;

/// The longest name of a server: that of what extensions may add.
pub const MAX_SERVER_NAME: usize = 64;

/// The names of all tools of a server, in their order: `mcp__<server>__<tool>`, in which whatever is not `A-Z a-z 0-9 _` is
/// `_`. A name that is too long or taken ends in a digest of the two parts, which stays the same from run to run. Of tools
/// whose names would be equal, each gets a digest, so which of them keeps the plain name does not depend on the order of the
/// list.
pub fn tool_names(server: &str, tools: &[&str], is_taken: impl Fn(&str) -> bool) -> Vec<String> {
    let mut uses = std::collections::HashMap::<String, usize>::new();
    for tool in tools {
        *uses.entry(tool_name(server, tool, |_| false)).or_default() += 1;
    }
    let taken = |name: &str| uses.get(name).is_some_and(|count| *count > 1) || is_taken(name);
    tools.iter().map(|tool| tool_name(server, tool, taken)).collect()
}

fn tool_name(server: &str, tool: &str, is_taken: impl Fn(&str) -> bool) -> String {
    fitting(&as_identifier(&format!("mcp__{server}__{tool}")), server, tool, is_taken)
}

/// A name, or, where it is too long or taken, its beginning with a digest of the two parts, which stays the same from run to
/// run. The name is of ASCII.
pub fn fitting(name: &str, server: &str, tool: &str, is_taken: impl Fn(&str) -> bool) -> String {
    use std::fmt::Write as _;
    if name.len() <= MAX_NAME && !is_taken(name) {
        return name.to_owned();
    }
    let mut digest = String::new();
    for byte in Sha256::digest(format!("{server}\0{tool}")).iter().take(4) {
        let _ = write!(digest, "{byte:02x}");
    }
    // All ASCII here, so bytes are characters.
    let kept: String = name.chars().take(MAX_NAME - 1 - digest.len()).collect();
    format!("{kept}_{digest}")
}

/// The group of a server's tools.
pub fn namespace(server: &str) -> String {
    format!("mcp__{}", as_identifier(server))
}

/// What that group answers to beside its name: the server's name as it is written and as a script can write it, with and
/// without the group's beginning.
pub fn aliases(server: &str) -> Vec<String> {
    let own = namespace(server);
    let mut aliases = Vec::new();
    for alias in [server.to_owned(), as_identifier(server), format!("mcp__{server}")] {
        if alias != own && !aliases.contains(&alias) {
            aliases.push(alias);
        }
    }
    aliases
}

/// Whether a name may be a server's: letters, digits, `_` and `-`, 64 of them at most.
pub fn is_server_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    (1..=MAX_SERVER_NAME).contains(&name.len()) && name.bytes().all(fits)
}

/// A name that may be a server's and looks like this one.
pub fn server_name_like(name: &str) -> String {
    let mut like = String::new();
    for c in name.chars().take(MAX_SERVER_NAME) {
        match c {
            c if c.is_ascii_alphanumeric() || c == '_' => like.push(c),
            _ if like.is_empty() || like.ends_with('-') => {}
            _ => like.push('-'),
        }
    }
    let like = like.trim_end_matches('-');
    if like.is_empty() { "server".to_owned() } else { like.to_owned() }
}

fn as_identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

/// Up to three of these within an edit distance of 2, nearest first.
pub fn near_matches<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    // What is longer than any of them has no neighbours, and comparing it would take long.
    if name.len() > 4 * MAX_NAME {
        return Vec::new();
    }
    let name = name.to_lowercase();
    let mut near: Vec<(usize, &str)> = names
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= 8)
        .map(|candidate| (strsim::damerau_levenshtein(&name, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= 2 && *distance < candidate.len())
        .collect();
    near.sort();
    near.into_iter().take(3).map(|(_, candidate)| candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_tool_name(name: &str) -> bool {
        (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    }

    #[test]
    fn generated_names_are_those_that_were_measured() {
        assert_eq!(
            tool_names("stub", &["a-b", "a_b"], |_| false),
            ["mcp__stub__a_b_4acbfc5d", "mcp__stub__a_b_9f1b1902"]
        );
        assert_eq!(
            tool_names("stub", &["a_b", "a-b"], |_| false),
            ["mcp__stub__a_b_9f1b1902", "mcp__stub__a_b_4acbfc5d"],
            "the order of the list does not matter"
        );
        assert_eq!(tool_names("dev-radius", &["search"], |_| false), ["mcp__dev_radius__search"]);
        assert_eq!(namespace("dev-radius"), "mcp__dev_radius");
    }

    #[test]
    fn a_group_answers_to_four_spellings() {
        assert_eq!(aliases("dev-radius"), ["dev-radius", "dev_radius", "mcp__dev-radius"]);
        assert_eq!(aliases("docs"), ["docs"]);
    }

    #[test]
    fn long_and_taken_names_end_in_a_digest() {
        let one = |server: &str, tool: &str, taken: &str| tool_names(server, &[tool], |name| name == taken).remove(0);
        let long = one("server", &"x".repeat(100), "");
        assert_eq!(long.len(), 64);
        assert!(long.starts_with("mcp__server__xxx"), "{long}");
        assert_ne!(long, one("server", &"x".repeat(101), ""));
        let taken = one("s", "t", "mcp__s__t");
        assert!(taken.starts_with("mcp__s__t_") && taken.len() == 18, "{taken}");
        assert_eq!(one("s", &"y".repeat(56), ""), format!("mcp__s__{}", "y".repeat(56)));
    }

    #[test]
    fn names_that_can_not_be_had_have_one_that_looks_like_them() {
        for (name, like) in [
            ("My Server v1.2", "My-Server-v1-2"),
            ("@scope/name", "scope-name"),
            ("größe", "gr-e"),
            ("...", "server"),
            ("a_b", "a_b"),
        ] {
            assert_eq!(server_name_like(name), like, "{name}");
        }
        assert_eq!(near_matches("gihtub", ["github", "gitlab", "docs"].into_iter()), ["github"]);
        assert!(near_matches("b", ["a"].into_iter()).is_empty());
    }

    proptest! {
        #[test]
        fn every_generated_name_is_a_tools_name(server in any::<String>(), tool in any::<String>(), taken: bool) {
            let names = tool_names(&server, &[&tool], |_| taken);
            prop_assert!(names.iter().all(|name| is_tool_name(name)), "{names:?}");
        }

        #[test]
        fn siblings_never_share_a_name_and_keep_theirs_in_any_order(
            tools in proptest::collection::hash_set("[a_.-]{1,4}", 0..12),
        ) {
            let mut tools: Vec<&str> = tools.iter().map(String::as_str).collect();
            let names = |tools: &[&str]| -> std::collections::BTreeMap<String, String> {
                let named = tool_names("s", tools, |_| false);
                named.into_iter().zip(tools.iter().map(|tool| (*tool).to_owned())).collect()
            };
            let one = names(&tools);
            prop_assert_eq!(one.len(), tools.len());
            tools.reverse();
            prop_assert_eq!(one, names(&tools));
        }

        #[test]
        fn whatever_a_name_is_there_is_one_like_it(name in any::<String>()) {
            prop_assert!(is_server_name(&server_name_like(&name)));
            near_matches(&name, ["a", "bcd"].into_iter());
        }
    }
}
