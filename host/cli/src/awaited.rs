//! Tools that extensions have said are still to come. A command without a model waits for those that it names, and for no
//! others: one server that hangs must not hold up what needs no server.

use std::time::Duration;

use atoll_agent::Pipeline;
use atoll_table::{Table, tool::Exposure};

/// How long a tool is waited for that is named, while its group is to come. Whoever brings it has bounds of its own, which
/// are shorter unless the user says otherwise.
const NAMED: Duration = Duration::from_secs(600);
/// How long whatever may come is waited for: for a list of all, a pattern, or a name that is of no group.
const ANY: Duration = Duration::from_secs(8);

/// Whether what is named, perhaps with `*` for any characters, may be of a group: its tools are called after it.
pub(crate) fn may_be_of(wanted: &str, group: &str) -> bool {
    match wanted.split_once('*') {
        Some((start, _)) => start.starts_with(group) || group.starts_with(start),
        None => wanted.strip_prefix(group).is_some_and(|rest| rest.starts_with("__")),
    }
}

fn is_there(table: &Table, name: &str) -> bool {
    let goes_by = |name: &str| {
        let mut shown = table.tools().iter().filter(|entry| entry.tool.exposure != Exposure::Hidden);
        shown.any(|entry| entry.tool.name == name || entry.local == name)
    };
    !name.contains('*') && goes_by(name)
}

/// Waits until a tool is there, or is known not to come.
pub(crate) async fn named(pipeline: &Pipeline, wanted: &str) {
    if pipeline.table(|table| table.expected().is_empty() || table.find(wanted).is_ok()) {
        return;
    }
    let is_of_one = |table: &Table| table.expected().iter().any(|group| may_be_of(wanted, group));
    let is_known = |table: &Table| is_there(table, wanted) || table.expected().is_empty();
    // What is not there in time is said to be missing by whoever needs it.
    let _ = if pipeline.table(is_of_one) {
        let most = if wanted.contains('*') { ANY } else { NAMED };
        tokio::time::timeout(most, pipeline.until(|table| is_there(table, wanted) || !is_of_one(table))).await
    } else if !wanted.contains('*') {
        tokio::time::timeout(ANY, pipeline.until(is_known)).await
    } else {
        Ok(())
    };
}

/// The same for each of a selection of tools.
pub(crate) async fn selected(pipeline: &Pipeline, selection: &[String]) {
    for item in selection {
        named(pipeline, item.trim_start_matches(['+', '-'])).await;
    }
}

/// Waits for all that is to come. Gives the groups that have not come.
pub(crate) async fn all(pipeline: &Pipeline) -> Vec<String> {
    let _ = tokio::time::timeout(ANY, pipeline.until(|table| table.expected().is_empty())).await;
    pipeline.table(Table::expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_of_the_group_that_its_name_begins_with() {
        for (wanted, is_of) in [
            ("mcp__slow__hi", true),
            ("mcp__slow", false),
            ("mcp__slower__hi", false),
            ("read", false),
            ("mcp__s*", true),
            ("mcp__slow__h*", true),
            ("*", true),
            ("mcp__t*", false),
        ] {
            assert_eq!(may_be_of(wanted, "mcp__slow"), is_of, "{wanted}");
        }
    }

    #[tokio::test]
    async fn what_is_named_is_waited_for_until_it_is_known_whether_it_comes() {
        let pipeline = Pipeline::new(Table::new());
        let expect = |group: &str, coming: bool| {
            pipeline.change(|table| table.expect("p", atoll_table::Origin::User, group, coming)).unwrap();
        };
        // What nobody brings is not waited for.
        named(&pipeline, "mcp__slow__hi").await;
        expect("mcp__slow", true);
        let mut waiting = std::pin::pin!(named(&pipeline, "mcp__slow__hi"));
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        expect("mcp__other", true);
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        expect("mcp__other", false);
        expect("mcp__slow", false);
        waiting.await;
        assert!(all(&pipeline).await.is_empty());
    }
}
