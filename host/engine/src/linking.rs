//! Links exactly what a plugin was granted. An interface that is not linked can not be called, whatever else goes
//! wrong.

use atoll_caps::{Capability, Effective};
use wasmtime::{Engine, component::Linker};

use crate::{bindings::atoll::plugin as contract, imports::Host, state::PluginState};

/// Whether the manifest is enough for a capability to be linked, where there is somebody to ask: only where each use of
/// it is checked, and can be asked about.
pub(crate) fn is_asked_about(effective: &Effective, capability: Capability) -> bool {
    use Capability::{Files, Http, Process, Store};
    matches!(capability, Files | Http | Process | Store) && effective.wants(capability)
}

/// A linker for one plugin. Where there is somebody to ask about each use, what the manifest asks for is linked too.
pub(crate) fn linker(engine: &Engine, effective: &Effective, can_ask: bool) -> wasmtime::Result<Linker<PluginState>> {
    fn data(state: &mut PluginState) -> &mut PluginState {
        state
    }
    let is_linked =
        |capability| effective.allows_interface(capability) || (can_ask && is_asked_about(effective, capability));
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    contract::types::add_to_linker::<_, Host>(&mut linker, data)?;
    contract::log::add_to_linker::<_, Host>(&mut linker, data)?;
    contract::clock::add_to_linker::<_, Host>(&mut linker, data)?;
    contract::progress::add_to_linker::<_, Host>(&mut linker, data)?;
    contract::workers::add_to_linker::<_, Host>(&mut linker, data)?;
    contract::host::add_to_linker::<_, Host>(&mut linker, data)?;
    if is_linked(Capability::Files) {
        contract::files::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if is_linked(Capability::Http) {
        contract::http::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if is_linked(Capability::Process) {
        contract::process::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if is_linked(Capability::Store) {
        contract::store::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if effective.allows_interface(Capability::Table) {
        contract::table::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if effective.allows_interface(Capability::Session) {
        contract::session::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if effective.allows_interface(Capability::Models) {
        contract::models::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if effective.allows_interface(Capability::Ui) {
        contract::ui::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if effective.allows_interface(Capability::Bus) {
        contract::bus::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    Ok(linker)
}
