//! What a plugin can import, one module per interface of the contract. Each is a thin layer: it turns the
//! contract's values into the host's, checks what has to be checked, and calls the one place that does the work.

mod always;
mod bus;
mod config;
pub(crate) mod files;
mod host;
mod http;
pub(crate) mod listener;
mod models;
pub(crate) mod process;
mod providers;
pub(crate) mod secrets;
pub(crate) mod servers;
mod session;
pub(crate) mod store;
mod table;
mod ui;
mod workers;

use std::sync::Arc;

use atoll_caps::Capability;
use atoll_table::{Error, extension::Services};
use wasmtime::component::{Accessor, HasSelf, Resource, ResourceTableError};

use crate::{
    audit::Verdict,
    bindings::atoll::plugin as contract,
    call::{Caller, Use},
    convert,
    state::PluginState,
};

/// The data every import works on.
pub(crate) type Host = HasSelf<PluginState>;

/// The plugin that called, and in which call.
fn caller<T: Send>(accessor: &Accessor<T, Host>) -> Caller {
    accessor.with(|mut access| access.get().caller())
}

impl PluginState {
    fn caller(&self) -> Caller {
        Caller { plugin: Arc::clone(&self.plugin), call: Arc::clone(&self.call), own_thread: self.own_thread.clone() }
    }
}

/// What an import of the contract gives that can fail.
type Answer<V> = wasmtime::Result<Result<V, contract::types::Error>>;

/// The plugin that called, if it may use this capability, one without a scope. The use is written down.
fn permitted<T: Send>(
    accessor: &Accessor<T, Host>,
    capability: Capability,
    operation: &str,
    target: &str,
) -> Result<Caller, Error> {
    permitted_by(caller(accessor), capability, operation, target)
}

/// The same for imports that wait for nothing.
fn permitted_by(caller: Caller, capability: Capability, operation: &str, target: &str) -> Result<Caller, Error> {
    let the_use = Use { capability: capability.as_str(), operation, target };
    caller.check_in_call(the_use)?;
    if let Err(denied) = caller.effective().check(capability) {
        caller.denied(the_use, Verdict::Denied);
        return Err(convert::denied(&denied));
    }
    caller.call.uses.used(capability.as_str(), operation, target, Verdict::Allowed);
    Ok(caller)
}

impl PluginState {
    /// Whether the plugin may use this capability, one without a scope, for imports that have no way to say no. The use is
    /// written down.
    fn may_use(&self, capability: Capability, operation: &str, target: &str) -> bool {
        let target = target.get(..target.floor_char_boundary(200)).unwrap_or_default();
        permitted_by(self.caller(), capability, operation, target).is_ok()
    }
}

/// A service of the session's.
fn service<S>(caller: &Caller, name: &str, pick: impl FnOnce(&Services) -> Option<S>) -> Result<S, Error> {
    caller.shared.services.get().and_then(pick).ok_or_else(|| {
        Error::Unavailable(format!("there is no {name} here: the plugin {} runs outside of a session", caller.name))
    })
}

/// A value out of the table of handles.
fn handle<T: Send, R: Clone + Send + 'static>(
    accessor: &Accessor<T, Host>,
    resource: &Resource<R>,
) -> Result<R, ResourceTableError> {
    accessor.with(|mut access| access.get().resources.get(resource).cloned())
}
