//! Links exactly what a plugin was granted. An interface that is not linked can not be called, whatever else goes
//! wrong.

use atoll_caps::{Capability, Effective};
use wasmtime::{Engine, component::Linker};

use crate::{bindings::atoll::plugin as contract, imports::Host, state::PluginState};

/// Whether the manifest is enough for a capability to be linked, where there is somebody to ask: only where each use of
/// it is checked, and can be asked about.
fn is_asked_about(effective: &Effective, capability: Capability) -> bool {
    use Capability::{Config, Files, Http, Process, Secrets, Store};
    matches!(capability, Config | Files | Http | Process | Secrets | Store) && effective.wants(capability)
}

/// What is linked beside what a plugin was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linking {
    /// Nothing.
    Granted,
    /// What its manifest asks for, where each use of it can be asked about: there is somebody to ask.
    Asking,
    /// All that is served. For an engine that runs what others wrote, of which each is granted something else: every
    /// import checks each use, and refuses what the one was not granted whose text runs.
    Checked,
}

impl Linking {
    /// For a component that stands for itself.
    pub(crate) fn of_component(can_ask: bool) -> Self {
        if can_ask { Self::Asking } else { Self::Granted }
    }

    /// Whether a capability is linked.
    pub(crate) fn includes(self, effective: &Effective, capability: Capability) -> bool {
        effective.allows_interface(capability)
            || match self {
                Self::Granted => false,
                Self::Asking => is_asked_about(effective, capability),
                Self::Checked => true,
            }
    }
}

/// A linker for one plugin.
pub(crate) fn linker(
    engine: &Engine,
    effective: &Effective,
    linking: Linking,
) -> wasmtime::Result<Linker<PluginState>> {
    fn data(state: &mut PluginState) -> &mut PluginState {
        state
    }
    let is_linked = |capability| linking.includes(effective, capability);
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    contract::types::add_to_linker::<_, Host>(&mut linker, data)?;
    contract::log::add_to_linker::<_, Host>(&mut linker, data)?;
    contract::clock::add_to_linker::<_, Host>(&mut linker, data)?;
    contract::progress::add_to_linker::<_, Host>(&mut linker, data)?;
    contract::workers::add_to_linker::<_, Host>(&mut linker, data)?;
    contract::host::add_to_linker::<_, Host>(&mut linker, data)?;
    contract::source::add_to_linker::<_, Host>(&mut linker, data)?;
    if is_linked(Capability::Files) {
        contract::files::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if is_linked(Capability::Http) {
        contract::http::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if is_linked(Capability::Process) {
        contract::process::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if is_linked(Capability::Listener) {
        contract::listener::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if is_linked(Capability::Store) {
        contract::store::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if is_linked(Capability::Table) {
        contract::table::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if is_linked(Capability::Session) {
        contract::session::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if is_linked(Capability::Models) {
        contract::models::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if is_linked(Capability::Ui) {
        contract::ui::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if is_linked(Capability::Bus) {
        contract::bus::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if is_linked(Capability::Secrets) {
        contract::secrets::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if is_linked(Capability::Config) {
        contract::config::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if is_linked(Capability::Providers) {
        contract::providers::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    if is_linked(Capability::Servers) {
        contract::servers::add_to_linker::<_, Host>(&mut linker, data)?;
    }
    Ok(linker)
}
