//! Servers put into a file, and taken out of it.

use atoll_mcp_client::config::{Configuration, Document, Place, Severity, edit};
use atoll_plugin::{Error, config, host};
use serde_json::{Map, Value, json};

use super::{
    arguments::{self, Add},
    unknown,
};
use crate::files::Files;

impl From<arguments::Place> for Place {
    fn from(place: arguments::Place) -> Self {
        match place {
            arguments::Place::User => Self::User,
            arguments::Place::Project => Self::Project,
        }
    }
}

impl From<arguments::Place> for config::Place {
    fn from(place: arguments::Place) -> Self {
        match place {
            arguments::Place::User => Self::User,
            arguments::Place::Project => Self::Project,
        }
    }
}

/// What is worth knowing of an entry, or why it is none.
pub(super) fn checked(name: &str, entry: &Map<String, Value>, place: Place) -> Result<Vec<String>, String> {
    let text = json!({"mcpServers": {name: entry}}).to_string();
    let read = Configuration::read(&[Document { place, path: "", text: &text }]);
    let said = |severity| {
        let all = read.problems.iter().filter(move |problem| problem.severity == severity);
        all.map(|problem| problem.text.clone()).collect::<Vec<_>>()
    };
    match said(Severity::Error).as_slice() {
        [] => Ok(said(Severity::Note)),
        errors => Err(errors.join("; ")),
    }
}

fn applies() -> &'static str {
    if host::wanted_command().is_some() { "" } else { " `/reload` makes it count in this session." }
}

pub(super) async fn add(add: Add) -> Result<(), Error> {
    let Add { name, entry, place } = add;
    let notes = checked(&name, &entry, place.into())
        .map_err(|why| Error::invalid_arguments(format!("mcp add: server {name:?}: {why}")))?;
    let files = Files::read().await?;
    let place = place.into();
    let before = files.text(place).await?;
    let known = files.has(place, &name);
    let text = edit::put(before, &name, &entry).map_err(|why| unchangeable(&why))?;
    let path = files.write(place, text).await?;
    let did = if known { "Replaced" } else { "Added" };
    let mut said = format!("{did} {name} in {path}.{} `atoll mcp test {name}` tries it.\n", applies());
    for note in notes {
        said.push_str(&format!("Note: {note}\n"));
    }
    host::print(&said);
    Ok(())
}

pub(super) fn unchangeable(why: &str) -> Error {
    Error::failed(format!("mcp.json is left as it is: {why}"))
}

pub(super) async fn remove(name: &str, place: arguments::Place) -> Result<(), Error> {
    let files = Files::read().await?;
    let place: config::Place = place.into();
    let without = edit::remove(files.text(place).await?, name).map_err(|why| unchangeable(&why))?;
    let Some(text) = without else {
        let (other, hint) = match place {
            config::Place::User => (config::Place::Project, "; the project's file has one: -l takes that one out"),
            config::Place::Project => {
                (config::Place::User, "; your own file has one: leave out -l to take that one out")
            }
        };
        if files.has(other, name) {
            return Err(Error::not_found(format!("there is no MCP server {name:?} in this file{hint}")));
        }
        let all = files.configuration();
        return Err(unknown(name, all.servers.iter().map(|server| server.name.as_str())));
    };
    let path = files.write(place, text).await?;
    host::print(&format!("Removed {name} from {path}.{}", applies()));
    Ok(())
}
