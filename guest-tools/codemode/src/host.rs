//! All that a script's run asks of the host, in one place: nothing else of this component calls the contract.

use std::future::Future;

use atoll_plugin::{Content, Error, ToolOutput, clock, progress, table};
use serde_json::{Map, Value, json};

use crate::names::{Callable, Names, first_line};

/// Nanoseconds since some point before this instance started.
pub(crate) fn monotonic() -> u64 {
    clock::monotonic()
}

/// Waits.
pub(crate) fn sleep(milliseconds: u64) -> impl Future<Output = ()> {
    clock::sleep(milliseconds)
}

/// Numbers that nobody can guess.
pub(crate) fn random(bytes: &mut [u8]) {
    // What the system has nothing for stays as it is; WASI always has.
    let _ = getrandom::fill(bytes);
}

/// Shows what there is of a call that still runs.
pub(crate) fn show(call: &str, text: String) {
    progress::update(call, &[Content::Text(text)], None);
}

/// Calls a tool as a part of the call `parent`.
pub(crate) async fn call(parent: String, name: String, arguments: String) -> Result<ToolOutput, Error> {
    table::call(Some(parent), name, arguments).await
}

/// What a script may call now.
pub(crate) fn callable(parent: &str) -> Result<Names, Error> {
    let now = table::callable_now(Some(parent))?;
    let callable = |tool: table::Callable| Callable {
        name: tool.name,
        identifier: tool.identifier,
        description: tool.summary,
        structured: tool.structured,
    };
    Ok(Names::new(now.tools.into_iter().map(callable).collect()))
}

/// What is left to a call: milliseconds of computing, and milliseconds until it has to be done, if it has to.
pub(crate) fn left(call: &str) -> (u64, Option<u64>) {
    let left = progress::left(call);
    (left.cpu_ms, left.wall_ms)
}

/// What an earlier script of this session kept.
pub(crate) fn kept(call: &str, key: &str) -> Option<String> {
    progress::kept(call, key)
}

/// Keeps a value with the session if this call succeeds, or forgets it.
pub(crate) fn keep(call: &str, key: &str, value: Option<&str>) -> Result<(), Error> {
    progress::keep(call, key, value)
}

/// How much of the text the model is shown, in characters.
pub(crate) fn shape(call: &str, most: u32) {
    progress::shape(call, most, true);
}

/// Whether there is a tool of this name that is not active; none if there is no such tool.
pub(crate) async fn is_inactive(name: &str) -> Option<bool> {
    let all = table::list().await.ok()?;
    all.into_iter().find(|entry| entry.tool.name == name).map(|entry| !entry.active)
}

/// Fields of a tool that a script is shown.
pub(crate) type Shown = Map<String, Value>;

fn shown(tool: table::Summary, is_whole: bool) -> Shown {
    let description = if is_whole { tool.description } else { first_line(&tool.description) };
    let fields = [("name", tool.name), ("description", description), ("declaration", tool.shape)];
    fields.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect()
}

/// Tools by words, best first, with their names, and the groups that are still to come.
pub(crate) async fn search(
    query: String,
    limit: u32,
    namespace: Option<String>,
) -> Result<(Vec<(String, Shown)>, Vec<String>), Error> {
    let found = table::find(query, limit, namespace).await?;
    Ok((found.tools.into_iter().map(|tool| (tool.name.clone(), shown(tool, false))).collect(), found.waiting))
}

/// One tool.
pub(crate) async fn describe(name: String) -> Result<Shown, Error> {
    Ok(shown(table::describe(name).await?, true))
}

/// A group of tools.
pub(crate) async fn group(name: String) -> Result<Value, Error> {
    let group = table::group_of(name).await?;
    let mut shown = json!({"name": group.name, "tools": group.tools});
    let more = [("description", group.description), ("instructions", group.instructions)];
    for (key, text) in more {
        if let (Some(text), Some(fields)) = (text, shown.as_object_mut()) {
            fields.insert(key.to_owned(), text.into());
        }
    }
    Ok(shown)
}
