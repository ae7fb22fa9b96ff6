//! Servers tried: connected to, listed, and one tool that only reads called, with the time that each took.

use std::{cell::RefCell, rc::Rc};

use atoll_mcp_client::{config::Problem, tool::ServerTool};
use atoll_mcp_connection::{
    Catalog,
    server::{Server, State, Surroundings, close_all},
};
use atoll_plugin::{Error, clock, host, spawn_local};
use futures::{
    FutureExt as _,
    future::{LocalBoxFuture, join_all},
};
use serde_json::{Map, Value, json};

use super::{list, unknown};
use crate::Mcp;

/// The tools of servers that are only looked at.
#[derive(Default)]
struct Seen(RefCell<Vec<(String, ServerTool)>>);

impl Catalog for Seen {
    fn put<'a>(
        &'a self,
        server: &'a Server,
        _: Option<&'a str>,
        tools: Vec<ServerTool>,
    ) -> LocalBoxFuture<'a, Vec<String>> {
        let mut all = self.0.borrow_mut();
        all.retain(|(of, _)| *of != server.name);
        all.extend(tools.into_iter().map(|tool| (server.name.clone(), tool)));
        std::future::ready(Vec::new()).boxed_local()
    }

    fn settled(&self, _: &str) {}
}

/// What came of one.
#[derive(Clone, Debug, Default)]
struct Outcome {
    name: String,
    /// How long it took until its tools were known, in milliseconds.
    connected_ms: f64,
    tools: usize,
    /// The tool that was called, how long it took, and what it said if it failed.
    called: Option<(String, f64, Option<String>)>,
    /// Why it could not be had.
    why: Option<String>,
}

impl Outcome {
    fn is_failure(&self) -> bool {
        self.why.is_some() || matches!(&self.called, Some((_, _, Some(_))))
    }
}

/// Tries these, or all that are switched on. With all of them what is wrong in the files counts, too.
///
/// # Errors
/// `not-found` for a name that no server has, `failed` if one fails or an entry is wrong.
pub(super) async fn test(adapter: &Mcp, names: &[String], as_json: bool) -> Result<(), Error> {
    let defined = &adapter.configuration.servers;
    if let Some(name) = names.iter().find(|name| !defined.iter().any(|server| server.name == **name)) {
        // It may be in a file that can not be read.
        let about = |problem: &&Problem| problem.server.is_none() || problem.server.as_ref() == Some(name);
        let wrong: Vec<String> = list::wrong(adapter).filter(about).map(ToString::to_string).collect();
        if !wrong.is_empty() {
            return Err(Error::failed(wrong.join("; ")));
        }
        return Err(unknown(name, defined.iter().map(|server| server.name.as_str())));
    }
    let wrong: Vec<&Problem> = if names.is_empty() { list::wrong(adapter).collect() } else { Vec::new() };
    let wanted = defined.iter().filter(|server| match names {
        [] => server.entry.enabled,
        names => names.contains(&server.name),
    });
    let seen = Rc::new(Seen::default());
    let around = Rc::new(Surroundings { catalog: Rc::clone(&seen) as Rc<dyn Catalog>, ..adapter.pool.surroundings() });
    let servers: Vec<Rc<Server>> = wanted.map(|server| Rc::new(adapter.pool.made(server))).collect();
    let outcomes = join_all(servers.iter().map(|server| {
        let (server, seen, around) = (Rc::clone(server), Rc::clone(&seen), Rc::clone(&around));
        async move { one(server, &seen, around).await }
    }))
    .await;
    close_all(&servers).await;
    if as_json {
        let all = outcomes.iter().map(as_value).chain(wrong.iter().map(|problem| left_out(problem)));
        host::print(&format!("{:#}", Value::Array(all.collect())));
    } else {
        let mut said: String = outcomes.iter().map(text).collect();
        said.extend(wrong.iter().map(|problem| format!("Left out: {problem}\n")));
        if said.is_empty() {
            said.push_str("There are no MCP servers that are switched on.");
        }
        host::print(&said);
    }
    let failed = outcomes.iter().filter(|outcome| outcome.is_failure()).count();
    list::verdict(wrong.len(), failed, ["failed", "failed"])
}

/// What is wrong in a file, among what came of servers.
fn left_out(problem: &Problem) -> Value {
    json!({"name": problem.server, "ok": false, "error": problem.to_string()})
}

async fn one(server: Rc<Server>, seen: &Seen, around: Rc<Surroundings>) -> Outcome {
    let began = clock::monotonic();
    spawn_local(Rc::clone(&server).live(around));
    server.known().await;
    let mut outcome = Outcome { name: server.name.clone(), connected_ms: since(began), ..Outcome::default() };
    if let State::Failed(why) | State::Disconnected(why) = server.state() {
        outcome.why = Some(why);
        return outcome;
    }
    let tools: Vec<ServerTool> =
        seen.0.borrow().iter().filter(|(of, _)| *of == server.name).map(|(_, tool)| tool.clone()).collect();
    outcome.tools = tools.len();
    if let Some(tool) = tools.iter().find(|tool| is_harmless(tool)) {
        let began = clock::monotonic();
        let called = server.call(&tool.name, Map::new(), std::future::pending(), |_| {}).await;
        let failed = match called {
            Ok(result) if result["isError"] == true => Some(said(&result)),
            Ok(_) => None,
            Err(error) => Some(error.message()),
        };
        outcome.called = Some((tool.name.clone(), since(began), failed));
    }
    outcome
}

/// Whether it says that it only reads, and needs no arguments.
fn is_harmless(tool: &ServerTool) -> bool {
    let schema = tool.input_schema.read();
    let needs = schema.get("required").and_then(Value::as_array).is_some_and(|names| !names.is_empty());
    tool.annotations.get("readOnlyHint") == Some(&Value::Bool(true)) && !needs
}

/// The first text of a result.
fn said(result: &Value) -> String {
    let pieces = result["content"].as_array().into_iter().flatten();
    pieces.filter_map(|piece| piece["text"].as_str()).next().unwrap_or("it failed, and says nothing").to_owned()
}

#[allow(clippy::cast_precision_loss, reason = "nobody looks at that much of it")]
fn since(began: u64) -> f64 {
    let nanoseconds = clock::monotonic().saturating_sub(began);
    (nanoseconds / 10_000) as f64 / 100.0
}

fn text(outcome: &Outcome) -> String {
    let Outcome { name, connected_ms, tools, called, why } = outcome;
    if let Some(why) = why {
        return format!("{name}: failed after {connected_ms} ms: {why}\n");
    }
    let tools = if *tools == 1 { "1 tool".to_owned() } else { format!("{tools} tools") };
    let called = match called {
        None => "nothing was called: no tool says that it only reads and needs no arguments".to_owned(),
        Some((tool, took, None)) => format!("{tool} answered in {took} ms"),
        Some((tool, took, Some(why))) => format!("{tool} failed after {took} ms: {why}"),
    };
    format!("{name}: connected in {connected_ms} ms, {tools}; {called}\n")
}

fn as_value(outcome: &Outcome) -> Value {
    let Outcome { name, connected_ms, tools, called, why } = outcome;
    let mut shown = json!({"name": name, "ok": !outcome.is_failure(), "connectedMs": connected_ms, "tools": tools});
    if let Some((tool, took, failed)) = called {
        shown["called"] = json!({"tool": tool, "ms": took, "error": failed});
    }
    if let Some(why) = why {
        shown["error"] = json!(why);
    }
    shown
}

#[cfg(test)]
mod tests {
    use atoll_mcp_client::tool::Schema;

    use super::*;

    #[test]
    fn only_what_says_so_and_needs_nothing_is_called() {
        let tool = |annotations: Value, schema: Value| ServerTool {
            name: "x".to_owned(),
            title: None,
            description: String::new(),
            input_schema: Schema::of(schema.as_object().unwrap()),
            output_schema: None,
            annotations: annotations.as_object().cloned().unwrap(),
        };
        let reads = json!({"readOnlyHint": true});
        assert!(is_harmless(&tool(reads.clone(), json!({"type": "object"}))));
        assert!(is_harmless(&tool(reads.clone(), json!({"required": [], "properties": {"a": {}}}))));
        assert!(!is_harmless(&tool(reads, json!({"required": ["a"]}))));
        assert!(!is_harmless(&tool(json!({}), json!({}))));
        assert!(!is_harmless(&tool(json!({"readOnlyHint": "true"}), json!({}))));
    }

    #[test]
    fn what_came_of_it_is_said() {
        let outcome = |called, why: Option<&str>| Outcome {
            name: "memory".to_owned(),
            connected_ms: 12.5,
            tools: 9,
            called,
            why: why.map(str::to_owned),
        };
        let all = [
            outcome(Some(("read_graph".to_owned(), 0.42, None)), None),
            outcome(Some(("read_graph".to_owned(), 1.0, Some("no".to_owned()))), None),
            Outcome { tools: 1, ..outcome(None, None) },
            outcome(None, Some("it ended")),
        ];
        let shown: String = all.iter().map(|one| format!("{}{}\n", text(one), as_value(one))).collect();
        insta::assert_snapshot!(shown);
    }
}
