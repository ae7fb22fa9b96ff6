//! Servers of other programs, taken over: shown first, and written when that was asked for.

use atoll_mcp_client::{
    config::{Imported, Kind, NotImported, edit},
    names::namespace,
};
use atoll_plugin::{Error, config, files, host};
use serde_json::Value;

use super::{arguments::Import, changes, masked::masked};
use crate::files::Files;

/// A file that was found.
struct Found {
    kind: Kind,
    path: String,
    read: Result<Imported, NotImported>,
}

pub(super) async fn import(wanted: Import) -> Result<(), Error> {
    let place: config::Place = wanted.place.into();
    let ours = Files::read().await?;
    let before = ours.text(place).await?.to_owned();
    let folder = host::describe().cwd;
    let kinds = wanted.from.map_or_else(|| Kind::ALL.to_vec(), |kind| vec![kind]);
    let mut found = Vec::new();
    for kind in kinds {
        match &wanted.file {
            Some(path) => found.push(Found { kind, path: path.clone(), read: read(kind, path, &folder).await? }),
            None => {
                for path in kind.places().iter().filter_map(|place| full(place)) {
                    match read(kind, &path, &folder).await {
                        Ok(read) => found.push(Found { kind, path, read }),
                        // Nothing is granted of a folder that is not there.
                        Err(Error::NotFound(_) | Error::Denied(_)) => {}
                        Err(error) => {
                            found.push(Found { kind, path, read: Err(NotImported::Unreadable(error.message())) });
                        }
                    }
                }
            }
        }
    }
    // What other files of a program are about is no fault of it.
    if wanted.file.is_none() {
        found.retain(|found| !matches!(found.read, Err(NotImported::NoServers(_))));
    }
    if found.is_empty() {
        if let Some(kind) = wanted.from {
            let places = kind.places().join(", ");
            return Err(Error::not_found(format!(
                "mcp import: there are no servers of {kind}; they are looked for at {places}"
            )));
        }
        host::print(
            "No other program has MCP servers here that can be found. `atoll mcp import --from KIND FILE` takes over those of a file.",
        );
        return Ok(());
    }
    let known = ours.configuration();
    let mut taken: Vec<String> = known.servers.iter().map(|server| namespace(&server.name)).collect();
    let (text, new) = plan(&found, &before, &mut taken)?;
    let mut said = text;
    match (new.as_ref(), wanted.yes) {
        (None, _) => said.push_str("There is nothing to take over.\n"),
        (Some(_), false) => said.push_str("Nothing is written yet: add --yes to do it.\n"),
        (Some(text), true) => {
            let path = ours.write(place, text.clone()).await?;
            said.push_str(&format!("Written to {path}. `atoll mcp test` tries them.\n"));
        }
    }
    host::print(&said);
    match found.iter().find_map(|found| found.read.as_ref().err().map(|why| (found, why))) {
        Some((found, why)) => Err(Error::failed(format!("mcp import: {}: {why}", found.path))),
        None => Ok(()),
    }
}

async fn read(kind: Kind, path: &str, folder: &str) -> Result<Result<Imported, NotImported>, Error> {
    let bytes = files::read(path.to_owned(), None).await?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Imported::read(kind, &text, folder),
        Err(_) => Err(NotImported::Unreadable("it is no UTF-8".to_owned())),
    })
}

/// The path of a place, absolute where it begins with the user's home.
fn full(place: &str) -> Option<String> {
    match place.strip_prefix("~/") {
        Some(rest) => host::home().map(|home| format!("{home}/{rest}")),
        None => Some(place.to_owned()),
    }
}

/// What is to be shown, and our file with the servers in it, if there are new ones. `taken`: the namespaces that are there.
fn plan(found: &[Found], before: &str, taken: &mut Vec<String>) -> Result<(String, Option<String>), Error> {
    let mut said = String::new();
    let mut text = before.to_owned();
    let mut is_new = false;
    for Found { kind, path, read } in found {
        said.push_str(&format!("{path} ({kind}):\n"));
        let imported = match read {
            Ok(imported) => imported,
            Err(why) => {
                said.push_str(&format!("  left out: {why}\n"));
                continue;
            }
        };
        for (name, entry) in &imported.servers {
            if taken.contains(&namespace(name)) {
                said.push_str(&format!("  {name}: there is one of that name already, which stays\n"));
                continue;
            }
            taken.push(namespace(name));
            text = edit::put(&text, name, entry).map_err(|why| changes::unchangeable(&why))?;
            is_new = true;
            said.push_str(&format!("  {name}: {}\n", Value::Object(masked(entry))));
        }
        for (name, note) in &imported.said {
            said.push_str(&format!("  {name}: note: {note}\n"));
        }
    }
    Ok((said, is_new.then_some(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_over_is_shown_without_secrets_and_what_is_there_stays() {
        let cursor = r#"{"mcpServers": {"a": {"command": "x", "env": {"KEY": "secret", "OTHER": "${env:OTHER}"}}, "mine": {"command": "y"}}}"#;
        let codex =
            "[mcp_servers.b]\nurl = \"https://x\"\nbearer_token_env_var = \"T\"\n[mcp_servers.a]\ncommand = \"z\"\n";
        let found = [
            Found {
                kind: Kind::Cursor,
                path: ".cursor/mcp.json".into(),
                read: Imported::read(Kind::Cursor, cursor, "/p"),
            },
            Found {
                kind: Kind::Codex,
                path: "/h/.codex/config.toml".into(),
                read: Imported::read(Kind::Codex, codex, "/p"),
            },
            Found {
                kind: Kind::VsCode,
                path: "x".into(),
                read: Err(NotImported::Unreadable("this is no JSON".into())),
            },
        ];
        let before = "{\n  // mine\n  \"mcpServers\": {\"mine\": {\"command\": \"m\"}}\n}\n";
        let mut taken = vec![namespace("mine")];
        let (said, text) = plan(&found, before, &mut taken).unwrap();
        insta::assert_snapshot!(format!("{said}----\n{}", text.unwrap()));
        let (_, again) = plan(&found, before, &mut taken).unwrap();
        assert_eq!(again, None, "nothing is new the second time");
    }
}
