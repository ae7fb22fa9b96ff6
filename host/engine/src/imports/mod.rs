//! What a plugin can import, one module per interface of the contract. Each is a thin layer: it turns the
//! contract's values into the host's, checks what has to be checked, and calls the one place that does the work.

mod always;
pub(crate) mod files;
mod http;
pub(crate) mod process;
mod store;
mod table;
mod workers;

use wasmtime::component::{Accessor, HasSelf, Resource, ResourceTableError};

use crate::{bindings::atoll::plugin as contract, call::Caller, state::PluginState};
use std::sync::Arc;

/// The data every import works on.
pub(crate) type Host = HasSelf<PluginState>;

/// The plugin that called, and in which call.
fn caller<T: Send>(accessor: &Accessor<T, Host>) -> Caller {
    accessor.with(|mut access| {
        let state = access.get();
        Caller {
            plugin: Arc::clone(&state.plugin),
            call: Arc::clone(&state.call),
            own_thread: state.own_thread.clone(),
        }
    })
}

/// A value out of the table of handles.
fn handle<T: Send, R: Clone + Send + 'static>(
    accessor: &Accessor<T, Host>,
    resource: &Resource<R>,
) -> Result<R, ResourceTableError> {
    accessor.with(|mut access| access.get().resources.get(resource).cloned())
}
