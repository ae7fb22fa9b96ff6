//! `servers`: MCP servers that an extension adds for the one that connects to them. Nothing here connects or starts
//! anything: whoever does has to be granted it.

use std::sync::Arc;

use atoll_caps::Capability;
use atoll_table::{Error, extension::Servers};
use serde_json::Value;
use wasmtime::component::Accessor;

use super::{Answer, Host, contract, permitted, permitted_by, service};
use crate::{call::Caller, state::PluginState};

/// The longest configuration, in bytes.
const MAX_CONFIG: usize = 64 << 10;

fn servers<T: Send>(
    accessor: &Accessor<T, Host>,
    operation: &str,
    name: &str,
) -> Result<(Caller, Arc<dyn Servers>), Error> {
    let shown = name.get(..name.floor_char_boundary(200)).unwrap_or_default();
    let caller = permitted(accessor, Capability::Servers, operation, shown)?;
    let servers = service(&caller, "servers", |services| services.servers.clone())?;
    Ok((caller, servers))
}

impl contract::servers::Host for PluginState {
    fn list(&mut self) -> wasmtime::Result<Vec<contract::servers::Server>> {
        let list = || {
            let caller = permitted_by(self.caller(), Capability::Servers, "list", "")?;
            Ok::<_, Error>(service(&caller, "servers", |services| services.servers.clone())?.list())
        };
        let server = |server: atoll_table::extension::McpServer| contract::servers::Server {
            name: server.name,
            plugin: server.who.plugin,
            config: server.config.to_string(),
        };
        Ok(list().unwrap_or_default().into_iter().map(server).collect())
    }
}

impl<T: Send + 'static> contract::servers::HostWithStore<T> for Host {
    async fn register(accessor: &Accessor<T, Self>, name: String, config: String) -> Answer<()> {
        let register = || {
            let (caller, servers) = servers(accessor, "register", &name)?;
            caller.check_bytes(name.len() + config.len())?;
            if config.len() > MAX_CONFIG {
                return Err(Error::InvalidArguments(format!(
                    "the configuration of a server may have {MAX_CONFIG} bytes; this one has {}",
                    config.len()
                )));
            }
            let config: Value = serde_json::from_str(&config)
                .map_err(|error| Error::InvalidArguments(format!("the configuration is not JSON: {error}")))?;
            let mut config = Some(config);
            caller.redact_parts(&mut [], [&mut config]);
            servers.register(&caller.who(), &name, config.unwrap_or_default())
        };
        Ok(register().map_err(Into::into))
    }

    async fn unregister(accessor: &Accessor<T, Self>, name: String) -> Answer<()> {
        let unregister = || {
            let (caller, servers) = servers(accessor, "unregister", &name)?;
            servers.unregister(&caller.who(), &name)
        };
        Ok(unregister().map_err(Into::into))
    }
}
