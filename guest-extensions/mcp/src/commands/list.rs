//! The servers, for people and for programs.

use std::rc::Rc;

use atoll_mcp_client::{
    config::{Place, Problem, Server as Defined, Severity, Transport},
    exposure::Exposure,
};
use atoll_mcp_connection::server::{Server, State};
use atoll_plugin::{Error, host};
use futures::future::join_all;
use serde_json::{Map, Value, json};

use crate::Mcp;

/// A server, as it is shown.
#[derive(Clone, Debug)]
struct Row {
    name: String,
    scope: &'static str,
    source: String,
    /// The project's file that changes it.
    changed_by: Option<String>,
    enabled: bool,
    transport: &'static str,
    exposure: Exposure,
    tool_exposure: Vec<(String, Exposure)>,
    state: &'static str,
    why: Option<String>,
    tools: Vec<(String, Exposure)>,
    resources: bool,
}

/// Shows them all. With a session as they are; without one they are connected to first.
///
/// # Errors
/// `failed`, without a session, if an entry is wrong or a server that is switched on is not there.
pub(super) async fn list(adapter: &Mcp, as_json: bool) -> Result<(), Error> {
    let is_check = host::wanted_command().is_some();
    if is_check {
        adapter.connect().await;
        join_all(adapter.pool.all().iter().map(|server| server.known())).await;
    }
    let (rows, problems) = rows(adapter);
    let mut shown = if as_json { format!("{:#}", as_value(&rows, &problems)) } else { text(&rows, &problems) };
    if !as_json {
        let notes = adapter.configuration.problems.iter().filter(|problem| problem.severity == Severity::Note);
        shown.extend(notes.map(|note| format!("Note: {note}\n")));
    }
    host::print(&shown);
    let missing = rows.iter().filter(|row| row.enabled && row.state != "connected").count();
    if is_check { verdict(problems.len(), missing, ["is not there", "are not there"]) } else { Ok(()) }
}

/// What a check comes to: how many entries are wrong, and of how many servers something is not as it should be, which is said of
/// one and of several.
///
/// # Errors
/// `failed` if there are any.
pub(super) fn verdict(wrong: usize, servers: usize, [of_one, of_several]: [&str; 2]) -> Result<(), Error> {
    let servers = match servers {
        0 => None,
        1 => Some(format!("a server {of_one}")),
        servers => Some(format!("{servers} servers {of_several}")),
    };
    let wrong = match wrong {
        0 => None,
        1 => Some("an entry is wrong".to_owned()),
        wrong => Some(format!("{wrong} entries are wrong")),
    };
    let all: Vec<String> = wrong.into_iter().chain(servers).collect();
    if all.is_empty() { Ok(()) } else { Err(Error::failed(all.join(", and "))) }
}

/// How a server is, in a word, and why it is not there.
pub(super) fn state(server: &Server) -> (&'static str, Option<String>) {
    match server.state() {
        State::Resting => ("resting", None),
        State::Connecting => ("connecting", None),
        State::Connected(_) => ("connected", None),
        State::Disconnected(why) => ("disconnected", Some(format!("{why}; the next call connects to it again"))),
        State::Failed(why) if server.wants_sign_in() => ("needs-auth", Some(why)),
        State::Failed(why) => ("failed", Some(why)),
        State::Closed => ("closed", None),
    }
}

fn rows(adapter: &Mcp) -> (Vec<Row>, Vec<String>) {
    let running = adapter.pool.all();
    let row = |defined: &Defined, scope: &'static str| {
        let server: Option<&Rc<Server>> = running.iter().find(|server| server.name == defined.name);
        let (state, why) = server.map_or(("off", None), |server| state(server));
        let exposures = &defined.entry.exposure;
        let tools = adapter.offers.registry.tools_of(&defined.name);
        Row {
            name: defined.name.clone(),
            scope,
            source: defined.path.clone(),
            changed_by: defined.changed_by.clone(),
            enabled: defined.entry.enabled,
            transport: match defined.entry.transport {
                Transport::Stdio(_) => "stdio",
                Transport::Http(_) => "http",
            },
            exposure: exposures.server,
            tool_exposure: exposures.tools.clone(),
            state: if defined.entry.enabled && server.is_none() { "not connected" } else { state },
            why,
            tools: tools.into_iter().map(|tool| (tool.clone(), exposures.of(&tool))).collect(),
            resources: server.is_some_and(|server| match server.state() {
                State::Connected(session) => session.has().1,
                _ => false,
            }),
        }
    };
    let scope = |place| match place {
        Place::User => "user",
        Place::Project => "project",
        Place::Extension => "extension",
    };
    let of_files = adapter.configuration.servers.iter().map(|defined| row(defined, scope(defined.place)));
    let registered = adapter.registered.borrow();
    let of_extensions = registered.servers.iter().map(|(defined, _)| row(defined, "extension"));
    let mut rows: Vec<Row> = of_files.chain(of_extensions).collect();
    // What needs somebody stands first.
    rows.sort_by_key(|row| !(row.enabled && row.why.is_some()));
    let errors = wrong(adapter).map(ToString::to_string);
    (rows, errors.chain(registered.problems.iter().cloned()).collect())
}

/// What is left out of the files.
pub(super) fn wrong(adapter: &Mcp) -> impl Iterator<Item = &Problem> {
    adapter.configuration.problems.iter().filter(|problem| problem.severity == Severity::Error)
}

fn as_value(rows: &[Row], problems: &[String]) -> Value {
    let servers: Vec<Value> = rows
        .iter()
        .map(|row| {
            let tool_exposure: Map<String, Value> =
                row.tool_exposure.iter().map(|(tool, exposure)| (tool.clone(), json!(exposure.as_str()))).collect();
            let mut shown = json!({
                "name": row.name,
                "scope": row.scope,
                "source": row.source,
                "enabled": row.enabled,
                "exposure": row.exposure.as_str(),
                "transport": row.transport,
                "state": row.state,
                "tools": row.tools.iter().map(|(tool, _)| tool).collect::<Vec<_>>(),
                "toolExposure": tool_exposure,
                "resources": row.resources,
            });
            if let Some(path) = &row.changed_by {
                shown["changedBy"] = json!(path);
            }
            if let Some(why) = &row.why {
                shown["error"] = json!(why);
            }
            shown
        })
        .collect();
    json!({"servers": servers, "errors": problems})
}

fn text(rows: &[Row], problems: &[String]) -> String {
    let mut text = String::new();
    if rows.is_empty() {
        text.push_str("There are no MCP servers. `atoll mcp add` puts one in, `atoll mcp import` takes over those of other programs.\n");
    }
    let wide = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or_default();
    for row in rows {
        let tools = match row.tools.len() {
            0 => String::new(),
            1 => ", 1 tool".to_owned(),
            count => format!(", {count} tools"),
        };
        let state = if row.enabled { row.state } else { "off" };
        text.push_str(&format!(
            "{:wide$}  {state}{tools}  ({}, {}, {}{})\n",
            row.name,
            row.exposure,
            row.transport,
            row.source,
            row.changed_by.as_ref().map(|path| format!(", changed by {path}")).unwrap_or_default(),
        ));
        if let Some(why) = &row.why {
            text.push_str(&format!("    {}\n", why.replace('\n', "\n    ")));
        }
        if !row.tools.is_empty() {
            let named = row.tools.iter().map(|(tool, exposure)| {
                if *exposure == row.exposure { tool.clone() } else { format!("{tool} ({exposure})") }
            });
            text.push_str(&format!("    {}\n", named.collect::<Vec<_>>().join(", ")));
        }
    }
    for problem in problems {
        text.push_str(&format!("Left out: {problem}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_shown_to_people_and_to_programs() {
        let row = |name: &str, state, why: Option<&str>, tools: &[(&str, Exposure)]| Row {
            name: name.to_owned(),
            scope: "user",
            source: "/home/me/.atoll/mcp.json".to_owned(),
            changed_by: (name == "off").then(|| "/p/.atoll/mcp.json".to_owned()),
            enabled: state != "off",
            transport: "stdio",
            exposure: Exposure::Codemode,
            tool_exposure: vec![("get_*".to_owned(), Exposure::Direct)],
            state,
            why: why.map(str::to_owned),
            tools: tools.iter().map(|(tool, exposure)| ((*tool).to_owned(), *exposure)).collect(),
            resources: false,
        };
        let rows = [
            row("broken", "failed", Some("it ended; its last words: a\nb"), &[]),
            row("memory", "connected", None, &[("find", Exposure::Codemode), ("get_it", Exposure::Direct)]),
            row("off", "off", None, &[]),
        ];
        let problems = ["/p/.atoll/mcp.json: server \"x\": it has neither".to_owned()];
        insta::assert_snapshot!(text(&rows, &problems));
        insta::assert_snapshot!(text(&[], &[]));
        insta::assert_snapshot!(format!("{:#}", as_value(&rows, &problems)));
    }
}
