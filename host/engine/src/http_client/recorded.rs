//! Answers that were recorded, in place of the network: for tests of plugins. What a plugin may fetch, its headers and
//! their secrets are checked as for a real request.

use std::sync::Arc;

use atoll_table::Error;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use reqwest::{Method, Response, ResponseBuilderExt as _, Url};

use super::SendBody;

/// A request that a plugin made. Each redirect that is followed is one more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    /// The method.
    pub method: String,
    /// The URL.
    pub url: String,
    /// The headers as the plugin gave them: what stands for a secret is not filled in.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// What it is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedAnswer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body, in the pieces in which it arrives.
    pub body: Vec<Vec<u8>>,
}

/// Answers requests. Must not block.
pub type Recordings = Arc<dyn Fn(RecordedRequest) -> Result<RecordedAnswer, Error> + Send + Sync>;

/// The recorded answer to a request, and the body to send again if that is a redirect.
pub(super) async fn answer(
    recordings: &Recordings,
    method: &Method,
    url: &Url,
    headers: &[(String, String)],
    body: SendBody,
) -> Result<(Response, Option<SendBody>), Error> {
    let (replayable, body) = match body {
        SendBody::Empty => (Some(SendBody::Empty), Bytes::new()),
        SendBody::Bytes(bytes) => (Some(SendBody::Bytes(bytes.clone())), bytes),
        SendBody::Stream(pieces) => {
            let pieces: Vec<Bytes> = pieces.filter_map(|piece| async { piece.ok() }).collect().await;
            (None, pieces.concat().into())
        }
    };
    let request = RecordedRequest {
        method: method.to_string(),
        url: url.to_string(),
        headers: headers.to_vec(),
        body: body.to_vec(),
    };
    let RecordedAnswer { status, headers, body } = recordings(request)?;
    let mut response = http::Response::builder().status(status).url(url.clone());
    for (name, value) in headers {
        response = response.header(name, value);
    }
    let pieces = stream::iter(body.into_iter().map(|piece| Ok::<_, std::convert::Infallible>(Bytes::from(piece))));
    let response = response
        .body(reqwest::Body::wrap_stream(pieces))
        .map_err(|error| Error::InvalidArguments(format!("the answer that was recorded for {url} is none: {error}")))?;
    Ok((response.into(), replayable))
}
