//! Requests over the host's network.
//!
//! The host fills in a secret that a header names. What a server, a model or a file says must never be what names one: values
//! are sent as they are, or not at all, but for the one that this module writes itself.

use std::time::Duration;

use atoll_mcp_client::net::{Body, Net, Request, Response, Unreachable};
use atoll_plugin::{Error, FutureReader, StreamReader, clock, http, next_chunk};
use futures::future::LocalBoxFuture;

/// How much of a body is read at once.
const READ: usize = 64 * 1024;

/// What begins the name of a secret in a header.
const SECRET: &str = "{{secret:";

/// The host's network and clock.
#[derive(Clone, Copy, Debug)]
pub struct Imports;

/// The same for one server.
#[derive(Clone, Debug)]
pub(crate) enum Reach {
    /// One of the user's.
    Users,
    /// One of the user's that gets the key of this model provider with each request. Nobody here sees the key.
    WithKey(String),
    /// One of another extension's: it is asked where that one may ask, and does not lead on to where it may not.
    Others,
}

impl Net for Reach {
    fn fetch(&self, mut request: Request) -> LocalBoxFuture<'_, Result<Response, Unreachable>> {
        let key = match self {
            Self::Users => None,
            Self::WithKey(provider) => {
                let value = format!("Bearer {SECRET}provider/{provider}}}}}");
                Some(http::Header { name: "authorization".to_owned(), value })
            }
            Self::Others => {
                request.redirects = 0;
                None
            }
        };
        Box::pin(fetch(request, key))
    }

    fn sleep(&self, time: Duration) -> LocalBoxFuture<'static, ()> {
        Imports.sleep(time)
    }
}

/// A body as it comes.
struct Stream {
    bytes: StreamReader<u8>,
    /// Says whether it is whole, once it has ended.
    done: Option<FutureReader<Result<(), Error>>>,
}

impl Body for Stream {
    fn next(&mut self) -> LocalBoxFuture<'_, Option<Result<Vec<u8>, String>>> {
        Box::pin(async {
            if let Some(bytes) = next_chunk(&mut self.bytes, READ).await {
                return Some(Ok(bytes));
            }
            let done = self.done.take()?;
            done.await.err().map(|error| Err(error.message()))
        })
    }
}

impl Net for Imports {
    fn fetch(&self, request: Request) -> LocalBoxFuture<'_, Result<Response, Unreachable>> {
        Box::pin(fetch(request, None))
    }

    fn sleep(&self, time: Duration) -> LocalBoxFuture<'static, ()> {
        Box::pin(clock::sleep(milliseconds(time)))
    }
}

async fn fetch(request: Request, more: Option<http::Header>) -> Result<Response, Unreachable> {
    if let Some((name, _)) = request.headers.iter().find(|(_, value)| value.contains(SECRET)) {
        let why = format!("its header {name} names a secret, and only \"auth\" sends one");
        return Err(Unreachable { is_passing: false, was_sent: false, why });
    }
    let headers = request.headers.into_iter().map(|(name, value)| http::Header { name, value });
    let sent = http::fetch(http::Request {
        method: request.method.to_owned(),
        url: request.url,
        headers: headers.chain(more).collect(),
        body: request.body.map_or(http::Body::Empty, http::Body::Bytes),
        timeout_ms: request.timeout.map(milliseconds),
        idle_timeout_ms: None,
        max_redirects: request.redirects,
    });
    let response = sent.await.map_err(|error| Unreachable {
        is_passing: matches!(error, Error::Unavailable(_) | Error::Timeout(_)),
        was_sent: was_sent(&error),
        why: error.message(),
    })?;
    Ok(Response {
        status: response.status,
        headers: response.headers.into_iter().map(|header| (header.name, header.value)).collect(),
        body: Box::new(Stream { bytes: response.body, done: Some(response.done) }),
    })
}

/// Whether a request that has no answer may have got there. Without a connection nothing is sent, which the host has no code
/// for: it begins what it says with these words.
fn was_sent(error: &Error) -> bool {
    match error {
        Error::Unavailable(why) => !why.starts_with("could not connect to "),
        Error::Timeout(_) | Error::Failed(_) | Error::Cancelled(_) => true,
        _ => false,
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
