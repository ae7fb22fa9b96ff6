//! `listener`: one request on the loopback address, for sign-ins.

use std::{sync::Arc, time::Duration};

use atoll_caps::{Capability, LimitName};
use atoll_table::Error;
use wasmtime::component::{Accessor, Resource};

use super::{Answer, Host, caller, contract, handle, permitted};
use crate::{
    audit::Verdict,
    callback_listener::{CallbackListener, MAX_LISTENERS},
    state::PluginState,
    trap::limit_error,
};
use contract::listener as wit;

/// The longest that is waited, in milliseconds: a day.
const LONGEST: u64 = 24 * 60 * 60 * 1000;

/// Handle of a listener.
#[derive(Clone)]
pub struct Pending(Arc<CallbackListener>);

impl wit::Host for PluginState {}

impl wit::HostPending for PluginState {
    fn port(&mut self, pending: Resource<Pending>) -> wasmtime::Result<u16> {
        Ok(self.resources.get(&pending)?.0.port())
    }

    fn drop(&mut self, pending: Resource<Pending>) -> wasmtime::Result<()> {
        self.resources.delete(pending)?;
        Ok(())
    }
}

impl<T: Send + 'static> wit::HostPendingWithStore<T> for Host {
    async fn wait(accessor: &Accessor<T, Self>, pending: Resource<Pending>, timeout_ms: u64) -> Answer<wit::Callback> {
        let Pending(listener) = handle(accessor, &pending)?;
        let caller = caller(accessor);
        let waited = listener.wait(Duration::from_millis(timeout_ms.min(LONGEST))).await;
        if waited.is_ok() {
            // Without its query: what is in there is a secret for a while.
            let target = format!("port {}", listener.port());
            caller.call.uses.used(Capability::Listener.as_str(), "callback", &target, Verdict::Allowed);
        }
        Ok(waited.map(|target| wit::Callback { target }).map_err(Into::into))
    }
}

impl<T: Send + 'static> wit::HostWithStore<T> for Host {
    async fn open(accessor: &Accessor<T, Self>, port: u16, path: String, page: String) -> Answer<Resource<Pending>> {
        let open = async {
            let caller = permitted(accessor, Capability::Listener, "open", &format!("port {port}"))?;
            caller.check_bytes(path.len() + page.len())?;
            let permit = Arc::clone(&caller.shared.listeners)
                .try_acquire_owned()
                .map_err(|_| limit_error(LimitName::Handles, MAX_LISTENERS as u64))?;
            CallbackListener::open(port, path, page, permit).await
        };
        let open: Result<CallbackListener, Error> = open.await;
        match open {
            Ok(listener) => {
                let pending = Pending(Arc::new(listener));
                Ok(Ok(accessor.with(|mut access| access.get().resources.push(pending))?))
            }
            Err(error) => Ok(Err(error.into())),
        }
    }
}
