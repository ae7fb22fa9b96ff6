//! Which servers a script may need, by its text: whoever brings their tools waits for those, and for no others.

use std::collections::HashSet;

use crate::names;

/// What finds tools that a script does not name.
const SEARCHES: [&str; 4] = ["searchTools", "describeNamespace", "describeTool", "ALL_TOOLS"];

/// The servers among these that a script mentions; all of them if it looks for tools. Words count wherever they are, in
/// comments and strings too: to wait for a server that is not needed costs little, not to wait for one that is costs the
/// script.
pub fn mentioned<'a>(script: &str, servers: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: HashSet<&str> = script.split(|c: char| !is_part(c)).filter(|word| !word.is_empty()).collect();
    if SEARCHES.iter().any(|name| words.contains(name)) {
        return servers.collect();
    }
    let is_mentioned = |server: &&str| {
        let namespace = names::namespace(server);
        words.iter().any(|word| word.contains(&namespace))
    };
    servers.filter(is_mentioned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_needs_the_servers_whose_group_is_in_its_words_or_all() {
        let servers = ["docs", "dev-radius", "git"];
        let needed = |script: &str| mentioned(script, servers.into_iter());
        for all in ["await searchTools('x')", "ALL_TOOLS.length", "describeTool(`a`)", "describeNamespace"] {
            assert_eq!(needed(all), servers, "{all}");
        }
        assert_eq!(needed("tools.mcp__dev_radius__search({})"), ["dev-radius"]);
        assert_eq!(needed("// mcp__docs\nconst xmcp__git__log = 1"), ["docs", "git"]);
        assert_eq!(needed("tools['mcp__dev-radius__search']; mySearchTools"), Vec::<&str>::new());
        assert!(needed("docs git").is_empty() && needed("").is_empty());
    }
}
