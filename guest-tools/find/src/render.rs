//! A result as the model and scripts get it.

use atoll_tool_text::{MAX_BYTES, compare_paths, format_size, head, with_footer};
use serde_json::{Value, json};

/// Bytes of paths that are handed on at most.
const MAX_COLLECTED: usize = 4 << 20;

/// The first paths in order, out of those that were found in any order.
#[derive(Debug)]
pub(crate) struct Paths {
    limit: usize,
    paths: Vec<String>,
}

/// What is shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) paths: Vec<String>,
    pub(crate) limit: usize,
    /// There are more than `limit`.
    pub(crate) more: bool,
    /// There is more than can be handed on.
    pub(crate) full: bool,
}

impl Paths {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, paths: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    pub(crate) fn push(&mut self, path: String) {
        // What can not be among the first need not be kept.
        const SLACK: usize = 4_096;
        self.paths.push(path);
        if self.paths.len() > self.limit.saturating_mul(2).saturating_add(SLACK) {
            self.sort();
        }
    }

    /// Sorts, and keeps one more than are shown.
    fn sort(&mut self) {
        self.paths.sort_unstable_by(|a, b| compare_paths(a, b));
        self.paths.truncate(self.limit.saturating_add(1));
    }

    pub(crate) fn finish(mut self) -> Shown {
        self.sort();
        let more = self.paths.len() > self.limit;
        self.paths.truncate(self.limit);
        let mut bytes = 0;
        let fitting = self.paths.iter().take_while(|path| {
            bytes += path.len() + 4;
            bytes <= MAX_COLLECTED
        });
        let fitting = fitting.count();
        let full = fitting < self.paths.len();
        self.paths.truncate(fitting);
        Shown { paths: self.paths, limit: self.limit, more, full }
    }
}

/// The text for the model.
pub(crate) fn text(shown: &Shown) -> String {
    if shown.paths.is_empty() {
        return "No files found matching pattern".to_owned();
    }
    let lines: Vec<String> = shown.paths.iter().map(|path| line(path)).collect();
    let lines = lines.join("\n");
    let kept = head(&lines, usize::MAX, MAX_BYTES);
    let mut notices = Vec::new();
    if shown.more {
        let double = shown.limit.saturating_mul(2);
        notices.push(format!("{} results limit reached. Use limit={double} for more, or refine pattern", shown.limit));
    }
    if kept.cut.is_some() {
        notices.push(format!("{} limit reached", format_size(MAX_BYTES as u64)));
    }
    if notices.is_empty() { lines } else { with_footer(kept.text, &format!("[{}]", notices.join(". "))) }
}

/// A line end in a path would look like two paths.
fn line(path: &str) -> String {
    path.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// The result as data.
pub(crate) fn structured(shown: &Shown) -> Value {
    json!({ "paths": shown.paths, "truncated": shown.more || shown.full })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(limit: usize, paths: &[&str]) -> Shown {
        let mut all = Paths::new(limit);
        for path in paths {
            all.push((*path).to_owned());
        }
        all.finish()
    }

    #[test]
    fn paths_are_in_order() {
        let shown = shown(9, &["b", "a-b/x", "a/x", "a/"]);
        assert_eq!(text(&shown), "a/\na/x\na-b/x\nb");
        assert_eq!(structured(&shown), json!({ "paths": ["a/", "a/x", "a-b/x", "b"], "truncated": false }));
        assert_eq!(text(&self::shown(9, &[])), "No files found matching pattern");
        assert_eq!(text(&self::shown(9, &["a\nb"])), "a\u{fffd}b");
    }

    #[test]
    fn exactly_the_limit_is_not_more() {
        assert!(!shown(2, &["b", "a"]).more);
        let shown = shown(2, &["c", "b", "a"]);
        assert_eq!(text(&shown), "a\nb\n\n[2 results limit reached. Use limit=4 for more, or refine pattern]");
        assert_eq!(structured(&shown)["truncated"], true);
    }

    #[test]
    fn only_the_first_are_kept() {
        let mut all = Paths::new(3);
        for n in (0..50_000).rev() {
            all.push(format!("{n:05}"));
            assert!(all.paths.len() < 5_000);
        }
        assert_eq!(all.finish().paths, ["00000", "00001", "00002"]);
    }

    #[test]
    fn bytes_are_bounded() {
        let long: Vec<String> = (0..50_000).map(|n| format!("{n:0200}")).collect();
        let shown = shown(usize::MAX, &long.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(shown.full && !shown.more);
        assert!(text(&shown).ends_with("\n\n[50.0KB limit reached]"));
    }
}
