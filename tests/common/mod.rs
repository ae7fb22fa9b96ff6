//! What all tests need: a place of their own, the program under test with a bound on its time, a server, files.

pub(crate) mod components;
pub(crate) mod mcp;
pub(crate) mod plugins;
pub(crate) mod probes;
pub(crate) mod processes;
pub(crate) mod puppets;
pub(crate) mod sandbox;
pub(crate) mod server;
pub(crate) mod terminal;

pub(crate) use processes::{Command, Finished, Running, until};
pub(crate) use sandbox::Sandbox;

use serde_json::{Value, json};

/// Every line of a text as JSON. Fails on a line that is not.
pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    text.split_terminator('\n')
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("not JSON: {error}: {line:?}")))
        .collect()
}

/// The text of a message's content, pieces joined.
pub(crate) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(pieces) => pieces.iter().filter_map(|piece| piece["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Says on standard error that a test was not run, and why.
pub(crate) fn skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// Says that a test was not run for want of a language's toolchain. Fails where that language has to be there: the variable
/// names those, with spaces between them.
#[track_caller]
pub(crate) fn skipped_language(language: &str, what: &str) {
    let required = std::env::var("ATOLL_REQUIRE_LANGUAGES").unwrap_or_default();
    let is_required = required.split_whitespace().any(|name| name == language);
    assert!(!is_required, "{what}; ATOLL_REQUIRE_LANGUAGES names {language}");
    skipped(what);
}

/// The arguments of `edit` for one replacement.
pub(crate) fn one_edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "edits": [{"oldText": old, "newText": new}]})
}

/// Whether there is time: what takes minutes is only done then. `cargo xtask test --long` sets it.
pub(crate) fn is_long() -> bool {
    std::env::var_os("ATOLL_LONG_TESTS").is_some_and(|value| value == "1")
}
