//! What a script adds for others, and secrets: model providers, servers, and the names of secrets that it was granted.
//!
//! A secret's value is never kept here.

use atoll_plugin::{Error, providers, secrets, servers};
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
        "secrets.reveal" => return Ok(Done::data(secrets::reveal(read::<Name>(name, value)?.name).await?.into())),
        "secrets.save" => {
            let Secret { name, value } = read("a secret", value)?;
            secrets::save(name, value).await?;
        }
        _ => return Err(unknown(name)),
    }
    Ok(Done::default())
}
