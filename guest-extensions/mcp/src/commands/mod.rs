//! `atoll mcp …`, and `/mcp …` in a session.

pub(crate) mod arguments;
mod changes;
mod import;
mod list;
mod masked;
mod sign_in;
mod test;
mod usage;

use atoll_plugin::{Error, host};

use crate::Mcp;
use arguments::{Command, parse};

/// The command's name.
pub(crate) const NAME: &str = "mcp";

/// Carries out what was typed behind it.
///
/// # Errors
/// `invalid-arguments` for what can not be understood, and whatever comes of it.
pub(crate) async fn run(adapter: &Mcp, typed: &str) -> Result<(), Error> {
    let Some(words) = shlex::split(typed) else {
        return Err(Error::invalid_arguments("A quotation mark is not closed."));
    };
    let command = parse(words)
        .map_err(|why| Error::invalid_arguments(format!("mcp: {why}; `atoll mcp --help` says how it is used")))?;
    match command {
        Command::Help(of) => host::print(&usage::text(of)),
        Command::Add(add) => changes::add(add).await?,
        Command::Remove { name, place } => changes::remove(&name, place).await?,
        Command::List { json } => list::list(adapter, json).await?,
        Command::Test { names, json } => test::test(adapter, &names, json).await?,
        Command::Import(import) => import::import(import).await?,
        Command::Reconnect { name } => reconnect(adapter, &name).await?,
        Command::Login { name, place, timeout_ms } => sign_in::login(adapter, &name, place, timeout_ms).await?,
        Command::Logout { name, place } => sign_in::logout(adapter, &name, place).await?,
    }
    Ok(())
}

async fn reconnect(adapter: &Mcp, name: &str) -> Result<(), Error> {
    if host::wanted_command().is_some() {
        return Err(Error::invalid_arguments(
            "mcp reconnect: that is for a session; `atoll mcp test NAME` tries a server",
        ));
    }
    let known = adapter.pool.all();
    let Some(server) = known.iter().find(|server| server.name == name) else {
        return Err(unknown(name, known.iter().map(|server| server.name.as_str())));
    };
    let server = adapter.pool.again(server).await;
    server.known().await;
    let (state, why) = list::state(&server);
    match why {
        None => host::print(&format!("{name}: {state}")),
        Some(why) => return Err(Error::unavailable(format!("{name}: {state}: {why}"))),
    }
    Ok(())
}

/// That no server has this name.
fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let near = atoll_mcp_client::names::near_matches(name, known);
    let near = near.first().map(|near| format!("; is {near:?} meant?")).unwrap_or_default();
    Error::not_found(format!("there is no MCP server {name:?}{near}"))
}
