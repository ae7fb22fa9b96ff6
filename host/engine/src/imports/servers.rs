//! `servers`: MCP servers that an extension adds for the one that connects to them. Nothing here connects or starts
//! anything: whoever does has to be granted it, and asks here whether whoever added the server was granted it too.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
};

use atoll_caps::{Capability, shell_word};
use atoll_table::{
    Error,
    extension::{EventKind, Servers},
};
use serde_json::Value;
use wasmtime::component::Accessor;

use super::{Answer, Host, contract, permitted, permitted_by, service};
use crate::{
    call::{Call, Caller, Use, check_length},
    extension_plugin::Inner,
    http_client::{origin_of, parse},
    state::{PluginContext, PluginState, lock},
};
use contract::servers as wit;

/// The longest configuration, in bytes.
const MAX_CONFIG: usize = 64 << 10;

/// The most words of a program's arguments and names of its variables.
const MAX_WORDS: usize = 4_096;

/// Which plugin added which server, by the server's name. What is known here of a server that is not there any more counts for
/// nothing.
#[derive(Default)]
pub(crate) struct ServerOwners(Mutex<HashMap<String, Owner>>);

/// A plugin that added a server.
#[derive(Clone)]
struct Owner {
    /// What it was then.
    context: Weak<PluginContext>,
    /// The extension that it is, which another component may have taken over.
    extension: Option<Weak<Inner>>,
    /// What is asked and written down for it. Kept, so that a person who said no is not asked again.
    call: Arc<Call>,
}

impl Owner {
    fn new(context: &Arc<PluginContext>) -> Self {
        Self {
            context: Arc::downgrade(context),
            extension: context.extension.get().cloned(),
            call: Call::of_instance(context),
        }
    }

    /// The plugin as it is now, for what is asked of it.
    fn as_caller(&self) -> Option<Caller> {
        let now = self.extension.as_ref().and_then(Weak::upgrade).map(|extension| extension.context());
        let plugin = now.or_else(|| self.context.upgrade())?;
        Some(Caller { plugin, call: Arc::clone(&self.call), own_thread: None })
    }
}

impl ServerOwners {
    fn added(&self, server: &str, context: &Arc<PluginContext>) {
        let mut owners = lock(&self.0);
        let is_known = owners.get(server).and_then(Owner::as_caller).is_some_and(|by| by.who() == context.who());
        if !is_known {
            // Those of plugins that are gone with theirs.
            owners.retain(|_, owner| owner.as_caller().is_some());
            owners.insert(server.to_owned(), Owner::new(context));
        }
    }

    fn removed(&self, server: &str) {
        lock(&self.0).remove(server);
    }

    fn of(&self, server: &str) -> Option<Caller> {
        lock(&self.0).get(server).and_then(Owner::as_caller)
    }
}

/// Makes sure that a plugin may start a program with these variables. As `process.spawn` would.
async fn may_start(owner: &Caller, program: &wit::Program) -> Result<(), Error> {
    let wit::Program { program, arguments, variables } = program;
    if arguments.len() + variables.len() > MAX_WORDS {
        return Err(Error::InvalidArguments(format!("a program may have {MAX_WORDS} arguments and variables")));
    }
    let line = [program].into_iter().chain(arguments).map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
    let the_use = Use { capability: Capability::Process.as_str(), operation: "spawn for a server", target: &line };
    let verdict = owner.permit(the_use, |effective| effective.check_process(program, arguments)).await?;
    for name in variables {
        let target = format!("{name} for {program}");
        let the_use = Use { capability: Capability::Process.as_str(), operation: "set for a server", target: &target };
        let verdict = owner.permit(the_use, |effective| effective.check_env(program, arguments, name)).await?;
        owner.call.uses.used(the_use.capability, the_use.operation, &target, verdict);
    }
    owner.call.uses.used(the_use.capability, the_use.operation, &line, verdict);
    Ok(())
}

/// Makes sure that a plugin may send a request. As `http.fetch` would, but for where its name leads: whoever sends it is held
/// to that.
async fn may_send(owner: &Caller, request: &wit::Request) -> Result<(), Error> {
    let wit::Request { method, url } = request;
    check_length(url)?;
    check_length(method)?;
    let url = parse(url)?;
    let origin = origin_of(&url).ok_or_else(|| Error::InvalidArguments(format!("{url} names no host")))?;
    let the_use = Use { capability: Capability::Http.as_str(), operation: "for a server", target: url.as_str() };
    let check =
        owner.permit(the_use, |effective| effective.check_http(&origin.scheme, &origin.host, origin.port, method, &[]));
    let verdict = check.await?;
    owner.call.uses.used(the_use.capability, the_use.operation, url.as_str(), verdict);
    Ok(())
}

/// Refuses whoever does not connect to servers: what another plugin may do is none of its business.
fn check_connects(caller: &Caller) -> Result<(), Error> {
    let extension = caller.plugin.extension.get().and_then(Weak::upgrade);
    if extension.is_some_and(|extension| extension.subscription().wants(EventKind::McpServersChange)) {
        return Ok(());
    }
    Err(Error::Denied {
        capability: Capability::Servers.as_str().to_owned(),
        target: "what another plugin may do".to_owned(),
        hint: format!("only who connects to servers may ask; subscribe to `{}`", EventKind::McpServersChange),
    })
}

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
            servers.register(&caller.who(), &name, config.unwrap_or_default())?;
            caller.shared.server_owners.added(&name, &caller.plugin);
            Ok::<_, Error>(())
        };
        Ok(register().map_err(Into::into))
    }

    async fn unregister(accessor: &Accessor<T, Self>, name: String) -> Answer<()> {
        let unregister = || {
            let (caller, servers) = servers(accessor, "unregister", &name)?;
            servers.unregister(&caller.who(), &name)?;
            caller.shared.server_owners.removed(&name);
            Ok::<_, Error>(())
        };
        Ok(unregister().map_err(Into::into))
    }

    async fn permit(accessor: &Accessor<T, Self>, server: String, what: wit::Permission) -> Answer<()> {
        let permit = async {
            let (caller, servers) = servers(accessor, "permit", &server)?;
            let size = match &what {
                wit::Permission::Spawn(program) => {
                    let words = program.arguments.iter().chain(&program.variables);
                    program.program.len() + words.map(String::len).sum::<usize>()
                }
                wit::Permission::Request(request) => request.method.len() + request.url.len(),
            };
            caller.check_bytes(server.len() + size)?;
            check_connects(&caller)?;
            let added = servers.list().into_iter().find(|added| added.name == server);
            let owner = added
                .and_then(|added| caller.shared.server_owners.of(&server).filter(|owner| owner.who() == added.who));
            let Some(owner) = owner else {
                let shown = server.get(..server.floor_char_boundary(200)).unwrap_or_default().escape_debug();
                return Err(Error::NotFound(format!("no extension has added a server `{shown}`")));
            };
            match &what {
                wit::Permission::Spawn(program) => may_start(&owner, program).await,
                wit::Permission::Request(request) => may_send(&owner, request).await,
            }
        };
        Ok(permit.await.map_err(Into::into))
    }
}
