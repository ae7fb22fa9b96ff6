//! A listing as the model and scripts get it.

use atoll_plugin::files::{Entry, Kind};
use atoll_tool_text::{MAX_BYTES, format_size, head, with_footer};
use serde_json::{Value, json};

/// The text for the model. `more`: there are names beyond `entries`, of which the caller wanted `limit`.
pub(crate) fn text(entries: &[Entry], more: bool, limit: usize) -> String {
    if entries.is_empty() {
        return "(empty directory)".to_owned();
    }
    let lines: Vec<String> = entries.iter().map(line).collect();
    let lines = lines.join("\n");
    let shown = head(&lines, usize::MAX, MAX_BYTES);
    let mut notices = Vec::new();
    if more {
        notices.push(format!("{limit} entries limit reached. Use limit={} for more", limit.saturating_mul(2)));
    }
    if shown.cut.is_some() {
        notices.push(format!("{} limit reached", format_size(MAX_BYTES as u64)));
    }
    if notices.is_empty() {
        return lines;
    }
    with_footer(shown.text, &format!("[{}]", notices.join(". ")))
}

/// The listing as data.
pub(crate) fn structured(entries: &[Entry], more: bool) -> Value {
    let entries: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let kind = match entry.kind {
                Kind::File => "file",
                Kind::Directory => "directory",
                Kind::Symlink => "symlink",
                Kind::Other => "other",
            };
            json!({ "name": entry.name, "kind": kind, "size": entry.size, "link": entry.is_link })
        })
        .collect();
    json!({ "entries": entries, "truncated": more })
}

/// A name with a sign for what it is. A line end in it would look like two names.
fn line(entry: &Entry) -> String {
    let sign = match entry.kind {
        Kind::Directory => "/",
        Kind::Symlink => "@",
        Kind::File | Kind::Other => "",
    };
    let name: String =
        entry.name.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect();
    format!("{name}{sign}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, kind: Kind) -> Entry {
        Entry { name: name.to_owned(), kind, size: 7, is_link: false }
    }

    #[test]
    fn signs_follow_names() {
        let entries = [entry("d", Kind::Directory), entry("f", Kind::File), entry("gone", Kind::Symlink)];
        assert_eq!(text(&entries, false, 500), "d/\nf\ngone@");
        assert_eq!(text(&[], false, 500), "(empty directory)");
        assert_eq!(text(&[entry("a\nb", Kind::File)], false, 500), "a\u{fffd}b");
    }

    #[test]
    fn limits_are_told() {
        let entries = [entry("a", Kind::File), entry("b", Kind::File)];
        assert_eq!(text(&entries, true, 2), "a\nb\n\n[2 entries limit reached. Use limit=4 for more]");
        let entries: Vec<Entry> = (0..600).map(|n| entry(&format!("{n:0200}"), Kind::File)).collect();
        assert!(text(&entries, false, 600).ends_with("\n\n[50.0KB limit reached]"));
        let both = "\n\n[600 entries limit reached. Use limit=1200 for more. 50.0KB limit reached]";
        assert!(text(&entries, true, 600).ends_with(both));
    }

    #[test]
    fn scripts_get_data() {
        let data = structured(&[entry("d", Kind::Directory)], true);
        let expected =
            json!({"entries": [{"name": "d", "kind": "directory", "size": 7, "link": false}], "truncated": true});
        assert_eq!(data, expected);
    }
}
