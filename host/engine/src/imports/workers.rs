//! `workers`: granted to every plugin.

use std::sync::Arc;

use atoll_caps::LimitName;
use wasmtime::component::Accessor;

use super::{Host, caller, contract};
use crate::{config::max_workers, state::PluginState, trap::limit_error, workers};

impl contract::workers::Host for PluginState {
    fn count(&mut self) -> wasmtime::Result<u32> {
        Ok(u32::try_from(max_workers()).unwrap_or(1))
    }
}

impl<T: Send + 'static> contract::workers::HostWithStore<T> for Host {
    async fn run(
        accessor: &Accessor<T, Self>,
        input: Vec<u8>,
    ) -> wasmtime::Result<Result<Vec<u8>, contract::types::Error>> {
        let (meter, is_worker) = accessor.with(|mut access| {
            let state = access.get();
            (Arc::clone(&state.meter), state.own_thread.is_some())
        });
        if is_worker {
            return Ok(Err(limit_error(LimitName::Nesting, 1).into()));
        }
        Ok(workers::run(caller(accessor), meter, input).await.map_err(Into::into))
    }
}
