//! `http`.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use tokio::sync::mpsc;
use wasmtime::{
    AsContextMut as _,
    component::{Accessor, FutureReader, StreamReader},
};

use super::{Host, caller, contract};
use crate::{
    byte_streams::{FromQueue, IntoQueue},
    http_client::{SendBody, SendRequest},
    state::PluginState,
};
use contract::{http as wit, types::Error};

impl wit::Host for PluginState {}

impl<T: Send + 'static> wit::HostWithStore<T> for Host {
    async fn fetch(
        accessor: &Accessor<T, Self>,
        request: wit::Request,
    ) -> wasmtime::Result<Result<wit::Response, Error>> {
        let plugin = caller(accessor);
        let body = match request.body {
            wit::Body::Empty => SendBody::Empty,
            wit::Body::Bytes(bytes) => {
                if let Err(error) = plugin.check_bytes(bytes.len()) {
                    return Ok(Err(error.into()));
                }
                SendBody::Bytes(bytes.into())
            }
            wit::Body::Stream(reader) => {
                let (sender, mut receiver) = mpsc::channel::<Bytes>(16);
                accessor.with(|mut access| reader.pipe(access.as_context_mut(), IntoQueue::new(sender)))?;
                SendBody::Stream(stream::poll_fn(move |context| receiver.poll_recv(context)).map(Ok).boxed())
            }
        };
        let send = SendRequest {
            method: request.method,
            url: request.url,
            headers: request.headers.into_iter().map(|header| (header.name, header.value)).collect(),
            body,
            timeout: request.timeout_ms.map(Duration::from_millis),
            idle_timeout: request.idle_timeout_ms.map(Duration::from_millis),
            max_redirects: request.max_redirects,
        };
        let received = match plugin.shared.http.send(&plugin, send).await {
            Ok(received) => received,
            Err(error) => return Ok(Err(error.into())),
        };
        if let Some(models) = plugin.shared.services.get().and_then(|services| services.models.as_ref())
            && plugin.is_model_server(&received.url)
        {
            let shown: Vec<(String, String)> = (received.headers.iter())
                .filter(|(name, _)| !name.eq_ignore_ascii_case("set-cookie"))
                .map(|(name, value)| (name.clone(), plugin.redacted(value)))
                .collect();
            models.responded(received.status, &shown);
        }
        let done = received.done;
        let outcome = async move {
            let outcome = done.await.unwrap_or(Ok(()));
            wasmtime::error::Ok(outcome.map_err(Error::from))
        };
        accessor.with(|mut access| {
            Ok(Ok(wit::Response {
                status: received.status,
                url: received.url,
                headers: received.headers.into_iter().map(|(name, value)| wit::Header { name, value }).collect(),
                body: StreamReader::new(access.as_context_mut(), FromQueue::new(received.body))?,
                done: FutureReader::new(access.as_context_mut(), outcome)?,
            }))
        })
    }
}
