//! `providers`: model providers that an extension adds to the session.
//!
//! Whoever asks such a model sends the conversation, and a key, where the extension said. So it must never say more than it
//! could send itself: each base URL has to be granted to it, and the key as a secret.

use std::sync::Arc;

use atoll_caps::{Capability, printable};
use atoll_table::{Error, extension::Providers, model::Secret};
use serde_json::Value;
use wasmtime::component::Accessor;

use super::{Answer, Host, contract, permitted, secrets::look_up, service};
use crate::{
    call::{Caller, Use, check_length},
    http_client::{origin_of, parse},
    state::PluginState,
};

/// The longest configuration, in bytes.
const MAX_CONFIG: usize = 64 << 10;

fn providers<T: Send>(
    accessor: &Accessor<T, Host>,
    operation: &str,
    name: &str,
) -> Result<(Caller, Arc<dyn Providers>), Error> {
    let shown = name.get(..name.floor_char_boundary(200)).unwrap_or_default();
    let caller = permitted(accessor, Capability::Providers, operation, shown)?;
    let providers = service(&caller, "providers", |services| services.providers.clone())?;
    Ok((caller, providers))
}

/// Makes sure that the extension may send requests to each base URL in a configuration.
async fn check_base_urls(caller: &Caller, config: &Value) -> Result<(), Error> {
    let models = config["models"].as_array().into_iter().flatten();
    for url in models.chain([config]).filter_map(|part| part["baseUrl"].as_str()) {
        check_length(url)?;
        let url = parse(url)?;
        let origin = origin_of(&url).ok_or_else(|| Error::InvalidArguments(format!("{url} names no host")))?;
        let the_use = Use { capability: Capability::Http.as_str(), operation: "POST", target: url.as_str() };
        let check = caller
            .permit(the_use, |effective| effective.check_http(&origin.scheme, &origin.host, origin.port, "POST", &[]));
        check.await?;
    }
    Ok(())
}

/// Takes the key out of a configuration: the secret that it names, if the extension may use it.
async fn key(caller: &Caller, config: &mut Value) -> Result<Option<Secret>, Error> {
    let name = match config.as_object_mut().and_then(|config| config.remove("apiKey")) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(name)) => name,
        Some(other) => {
            let shown = printable(&other.to_string());
            return Err(Error::InvalidArguments(format!("`apiKey` is the name of a secret, and not {shown}")));
        }
    };
    let the_use = Use { capability: Capability::Secrets.as_str(), operation: "key of a provider", target: &name };
    let verdict = caller.permit(the_use, |effective| effective.check_secret(&name, false)).await?;
    let value = look_up(caller, &name).await?;
    caller.call.uses.used(the_use.capability, the_use.operation, &name, verdict);
    Ok(Some(value))
}

impl contract::providers::Host for PluginState {}

impl<T: Send + 'static> contract::providers::HostWithStore<T> for Host {
    async fn register(accessor: &Accessor<T, Self>, name: String, config: String) -> Answer<()> {
        let register = async {
            let (caller, providers) = providers(accessor, "register", &name)?;
            caller.check_bytes(name.len() + config.len())?;
            if config.len() > MAX_CONFIG {
                return Err(Error::InvalidArguments(format!(
                    "the configuration of a provider may have {MAX_CONFIG} bytes; this one has {}",
                    config.len()
                )));
            }
            let mut config: Value = serde_json::from_str(&config)
                .map_err(|error| Error::InvalidArguments(format!("the configuration is not JSON: {error}")))?;
            check_base_urls(&caller, &config).await?;
            let key = key(&caller, &mut config).await?;
            let mut config = Some(config);
            caller.redact_parts(&mut [], [&mut config]);
            providers.register(&caller.who(), &name, config.unwrap_or_default(), key)
        };
        Ok(register.await.map_err(Into::into))
    }

    async fn unregister(accessor: &Accessor<T, Self>, name: String) -> Answer<()> {
        let unregister = || {
            let (caller, providers) = providers(accessor, "unregister", &name)?;
            providers.unregister(&caller.who(), &name)
        };
        Ok(unregister().map_err(Into::into))
    }
}
