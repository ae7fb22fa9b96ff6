//! The section of the system prompt that names the servers whose tools are not declared to the model.

use crate::{exposure::Exposure, names::namespace};

/// The section's name.
pub const SECTION: &str = "mcp_servers";

/// The longest summary of a server, in characters.
const MAX_SUMMARY: usize = 250;
/// The longest section, in characters.
const MAX_SECTION: usize = 4096;

/// What stands before the list, by how tools are reached: only of what there is.
const BY_BOTH: &str = "MCP servers whose tools are not declared to you. Those marked codemode are called from codemode \
                       scripts; those marked tool_search are loaded by the tool of that name.";
const BY_SCRIPTS: &str =
    "MCP servers whose tools are not declared to you. Those marked codemode are called from codemode scripts.";
const BY_SEARCH: &str =
    "MCP servers whose tools are not declared to you. Those marked tool_search are loaded by the tool of that name.";

/// A server, as it is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told<'a> {
    /// Its name.
    pub server: &'a str,
    /// The widest of what its tools have that is not declared: [`Exposure::Deferred`] or [`Exposure::Codemode`].
    pub exposure: Exposure,
    /// What the configuration says it is for.
    pub description: Option<&'a str>,
    /// What it says of itself.
    pub instructions: Option<&'a str>,
}

/// The section; none if there is nobody to tell of. Where it would be too long, descriptions get shorter, all to the same
/// length; where that is not enough, the last servers are left out and counted.
pub fn section(servers: &[Told<'_>]) -> Option<String> {
    let is_told = |told: &&Told<'_>| matches!(told.exposure, Exposure::Codemode | Exposure::Deferred);
    let mut lines: Vec<(String, String)> = servers.iter().filter(is_told).map(line).collect();
    if lines.is_empty() {
        return None;
    }
    lines.sort();
    let are_some = |exposure: Exposure| servers.iter().any(|told| told.exposure == exposure);
    let (introduction, finder) = match (are_some(Exposure::Codemode), are_some(Exposure::Deferred)) {
        (true, true) => (BY_BOTH, "searchTools()"),
        (true, false) => (BY_SCRIPTS, "searchTools()"),
        (false, _) => (BY_SEARCH, "tool_search"),
    };
    // Of the room, what is not summaries is fixed.
    let mut left_out = 0;
    let shown = loop {
        let more = more(left_out, finder);
        let fixed = characters(introduction) + more.as_deref().map_or(0, |line| 1 + characters(line));
        let fixed = fixed + lines.iter().map(|(head, _)| 1 + characters(head)).sum::<usize>();
        if fixed <= MAX_SECTION || lines.is_empty() {
            break fit(&lines, MAX_SECTION.saturating_sub(fixed));
        }
        lines.pop();
        left_out += 1;
    };
    let mut text = introduction.to_owned();
    for line in shown.into_iter().chain(more(left_out, finder)) {
        text.push('\n');
        text.push_str(&line);
    }
    Some(text)
}

/// What begins a server's line, and its summary with what separates the two.
fn line(told: &Told<'_>) -> (String, String) {
    let found_by = if told.exposure == Exposure::Deferred { "tool_search" } else { "codemode" };
    let first = |text: &str| text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
    // A description is one line, whatever it is in the file.
    let description = told.description.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let summary = description.filter(|text| !text.is_empty()).or_else(|| told.instructions.and_then(first));
    let head = format!("- {} ({found_by})", namespace(told.server));
    (head, summary.map(|summary| format!(": {}", cut(&summary, MAX_SUMMARY))).unwrap_or_default())
}

fn more(left_out: usize, finder: &str) -> Option<String> {
    (left_out > 0).then(|| format!("- … {left_out} more servers; find their tools with {finder}"))
}

/// The lines with summaries that take no more than this together.
fn fit(lines: &[(String, String)], room: usize) -> Vec<String> {
    let lengths: Vec<usize> = lines.iter().map(|(_, summary)| characters(summary)).collect();
    let total = |most: usize| lengths.iter().map(|length| *length.min(&most)).sum::<usize>();
    let most = if total(usize::MAX) <= room {
        usize::MAX
    } else {
        // The longest length at which all of them fit.
        let (mut fits, mut too_long) = (0, MAX_SUMMARY + 3);
        while too_long - fits > 1 {
            let middle = usize::midpoint(fits, too_long);
            if total(middle) <= room { fits = middle } else { too_long = middle }
        }
        fits
    };
    // Of a few characters nothing can be read.
    let most = if most < 12 { 0 } else { most };
    lines.iter().map(|(head, summary)| format!("{head}{}", cut(summary, most))).collect()
}

fn characters(text: &str) -> usize {
    text.chars().count()
}

fn cut(text: &str, most: usize) -> String {
    if characters(text) <= most {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(most.saturating_sub(1)).collect();
    if most > 0 {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told<'a>(server: &'a str, exposure: Exposure, description: Option<&'a str>) -> Told<'a> {
        Told { server, exposure, description, instructions: Some("\n  First line.\nSecond.") }
    }

    #[test]
    fn servers_are_told_of_in_order_with_what_they_are_for() {
        let section = section(&[
            told("github", Exposure::Deferred, Some("Repositories,\nissues, pull requests")),
            told("direct", Exposure::Direct, None),
            told("dev-docs", Exposure::Codemode, None),
            told("off", Exposure::Hidden, None),
            Told { instructions: Some(" \n"), ..told("silent", Exposure::Codemode, Some(" ")) },
        ]);
        insta::assert_snapshot!(section.unwrap_or_default());
        for (exposure, are_told, are_not) in
            [(Exposure::Codemode, "codemode scripts", "tool_search"), (Exposure::Deferred, "tool_search", "codemode")]
        {
            let of_one = super::section(&[told("one", exposure, None)]).unwrap_or_default();
            assert!(of_one.contains(are_told) && !of_one.contains(are_not), "{of_one}");
        }
        assert_eq!(super::section(&[told("direct", Exposure::Direct, None)]), None);
        assert_eq!(super::section(&[]), None);
    }

    #[test]
    fn where_there_is_no_room_descriptions_shrink_evenly_and_then_servers_are_counted() {
        let long = "x".repeat(1_000);
        let names: Vec<String> = (100..500).map(|at| format!("server-{at}")).collect();
        let of = |count: usize| {
            let all: Vec<Told<'_>> =
                names.iter().take(count).map(|name| told(name, Exposure::Codemode, Some(&long))).collect();
            section(&all).unwrap_or_default()
        };
        let lengths = |text: &str| -> Vec<usize> { text.lines().skip(1).map(|line| line.chars().count()).collect() };
        assert_eq!(lengths(&of(2)), [28 + 2 + 250, 28 + 2 + 250]);
        let some = of(40);
        assert!(characters(&some) <= MAX_SECTION && characters(&some) > MAX_SECTION - 50, "{}", characters(&some));
        assert_eq!(lengths(&some).iter().collect::<std::collections::HashSet<_>>().len(), 1, "evenly");
        let many = of(400);
        assert!(characters(&many) <= MAX_SECTION, "{}", characters(&many));
        let last = many.lines().last().unwrap_or_default();
        let shown = many.lines().count() - 2;
        assert_eq!(last, format!("- … {} more servers; find their tools with searchTools()", 400 - shown));
        assert!(shown > 100);
    }

    proptest! {
        #[test]
        fn the_section_is_never_too_long_and_has_a_line_for_each(
            servers in proptest::collection::vec(("[a-z]{1,64}", proptest::option::of(".{0,300}")), 0..80),
        ) {
            let all: Vec<Told<'_>> = servers.iter()
                .map(|(name, description)| told(name, Exposure::Codemode, description.as_deref())).collect();
            let text = section(&all).unwrap_or_default();
            prop_assert!(characters(&text) <= MAX_SECTION);
            prop_assert!(text.lines().count() <= servers.len() + 1);
        }
    }
}
