//! What a script adds for others, secrets, and files of configuration: model providers, servers, and the names of secrets
//! that it was granted.
//!
//! A secret's value is never kept here.

use atoll_plugin::{Error, config, providers, secrets, servers};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Done, unknown};
use crate::events::{parsed, read};

/// What the contract answers without waiting; none for anything else.
pub(super) fn at_once(name: &str) -> Option<Result<Done, Error>> {
    match name {
        "servers.list" => {
            let server = |server: servers::Server| {
                let config = parsed("the entry of a server", &server.config)?;
                Ok(json!({"name": server.name, "plugin": server.plugin, "config": config}))
            };
            Some(servers::list().into_iter().map(server).collect::<Result<Value, Error>>().map(Done::data))
        }
        "secrets.available" => Some(Ok(Done::data(json!(secrets::available())))),
        _ => None,
    }
}

#[derive(Deserialize)]
struct Addition {
    name: String,
    #[serde(default)]
    config: Value,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

#[derive(Deserialize)]
struct Secret {
    name: String,
    value: String,
}

/// What `config` is asked.
#[derive(Deserialize)]
struct Config {
    file: String,
    #[serde(default)]
    place: Option<String>,
    #[serde(default)]
    text: String,
    #[serde(default)]
    expected: Option<String>,
    #[serde(default)]
    value: String,
}

/// What a server needs: a program, or else a request.
#[derive(Deserialize)]
struct Permission {
    name: String,
    #[serde(default)]
    program: Option<String>,
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    variables: Vec<String>,
    #[serde(default)]
    method: String,
    #[serde(default)]
    url: String,
}

fn document(document: &config::Document) -> Value {
    let place = match document.place {
        config::Place::User => "user",
        config::Place::Project => "project",
    };
    json!({
        "place": place,
        "path": document.path,
        "text": document.text,
        "version": document.version,
        "trusted": document.trusted,
    })
}

async fn perform_on_config(name: &str, value: Value) -> Result<Done, Error> {
    let Config { file, place, text, expected, value } = read(name, value)?;
    match name {
        "config.read" => Ok(Done::data(config::read(file).await?.iter().map(document).collect())),
        "config.write" => {
            let place = match place.as_deref() {
                None | Some("user") => config::Place::User,
                Some("project") => config::Place::Project,
                Some(other) => {
                    return Err(Error::invalid_arguments(format!("`place` is `{other}`; it can be user or project")));
                }
            };
            config::write(file, place, text, expected).await.map(|written| Done::data(document(&written)))
        }
        "config.resolve" => config::resolve(file, value).await.map(|value| Done::data(value.into())),
        _ => Err(unknown(name)),
    }
}

pub(super) async fn perform(name: &str, value: Value) -> Result<Done, Error> {
    match name {
        "providers.register" => {
            let Addition { name, config } = read("a provider", value)?;
            providers::register(name, config.to_string()).await?;
        }
        "providers.unregister" => providers::unregister(read::<Name>(name, value)?.name).await?,
        "servers.register" => {
            let Addition { name, config } = read("a server", value)?;
            servers::register(name, config.to_string()).await?;
        }
        "servers.unregister" => servers::unregister(read::<Name>(name, value)?.name).await?,
        "servers.permit" => {
            let Permission { name, program, arguments, variables, method, url } = read("what a server needs", value)?;
            let what = match program {
                Some(program) => servers::Permission::Spawn(servers::Program { program, arguments, variables }),
                None => servers::Permission::Request(servers::Request { method, url }),
            };
            servers::permit(name, what).await?;
        }
        "config.read" | "config.write" | "config.resolve" => return perform_on_config(name, value).await,
        "secrets.reveal" => return Ok(Done::data(secrets::reveal(read::<Name>(name, value)?.name).await?.into())),
        "secrets.save" => {
            let Secret { name, value } = read("a secret", value)?;
            secrets::save(name, value).await?;
        }
        _ => return Err(unknown(name)),
    }
    Ok(Done::default())
}
