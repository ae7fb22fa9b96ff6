//! Links exactly what a plugin was granted. An interface that is not linked can not be called, whatever else goes
//! wrong.

use atoll_caps::{Capability, Effective};
use wasmtime::{Engine, component::Linker};

use crate::{bindings::atoll::plugin as contract, imports::Host, state::PluginState};

/// A linker for one plugin.
pub(crate) fn linker(engine: &Engine, effective: &Effective) -> wasmtime::Result<Linker<PluginState>> {
    fn data(state: &mut PluginState) -> &mut PluginState {
        state
    }
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    contract::types::add_to_linker::<_, Host>(&mut linker, data)?;
    contract::log::add_to_linker::<_, Host>(&mut linker, data)?;
    contract::clock::add_to_linker::<_, Host>(&mut linker, data)?;
    contract::progress::add_to_linker::<_, Host>(&mut linker, data)?;
    contract::workers::add_to_linker::<_, Host>(&mut linker, data)?;
    if effective.allows_interface(Capability::Files) {
        contract::files::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if effective.allows_interface(Capability::Http) {
        contract::http::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if effective.allows_interface(Capability::Process) {
        contract::process::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if effective.allows_interface(Capability::Store) {
        contract::store::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if effective.allows_interface(Capability::Table) {
        contract::table::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    Ok(linker)
}
