//! A provider for servers that speak OpenAI's chat completions: it turns a request of the contract into one HTTP
//! request, and the events that the server streams back into events of the contract.
//!
//! Must never hold a key (headers name it, the host fills it in), keep anything from one request to the next, or
//! try a request again: whether to do so is the host's decision.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail so"))]

pub mod chunks;
pub mod compat;
pub mod failure;
pub mod request;

mod calls;
mod messages;
mod outlet;

use atoll_event_stream::Events;
use atoll_plugin::provider::{self, AuthKind, Description, ModelEvent, Request};
use atoll_plugin::{Error, StreamReader, clock, http, next_chunk, spawn_local};

use crate::chunks::Answer;
use crate::outlet::{Outlet, Waited};

/// The wire format this provider speaks.
const API: &str = "openai-completions";

/// How much of a body is read at once.
const READ: usize = 64 * 1024;
/// How often the reader is looked at, half a second apart, while only the count of tokens can still come.
const LATE_LOOKS: u32 = 4;

struct Component;

impl provider::Guest for Component {
    fn describe() -> Description {
        Description {
            name: API.to_owned(),
            apis: vec![API.to_owned()],
            models: Vec::new(),
            auth: vec![AuthKind::ApiKey],
            key_variables: vec!["OPENAI_API_KEY".to_owned()],
        }
    }

    async fn complete(request: Request) -> Result<StreamReader<ModelEvent>, Error> {
        let compat = compat::Compat::of(&request.model)?;
        let body = request::body(&request, &compat)?;
        let answer = Answer::new(&request.model.id, &request.id, compat.finish_reason);
        let patience = Some(request.idle_timeout_ms).filter(|ms| *ms > 0);
        let outgoing = http::Request {
            method: "POST".to_owned(),
            url: request::url(&request.model.base_url),
            headers: request::headers(&request).into_iter().map(|(name, value)| http::Header { name, value }).collect(),
            body: http::Body::Bytes(body),
            timeout_ms: patience,
            idle_timeout_ms: patience,
            // A redirect would send the conversation, and perhaps the key, to another address than the user chose.
            max_redirects: 0,
        };
        let (writer, reader) = provider::wit_stream::new();
        spawn_local(exchange(outgoing, answer, Outlet::new(writer)));
        Ok(reader)
    }
}

provider::export!(Component);

/// Sends the request and passes the answer on, until it ends or nobody reads it any more. Everything that is held
/// here is dropped then, and the connection with it.
async fn exchange(outgoing: http::Request, mut answer: Answer, mut outlet: Outlet) {
    let mut events = Vec::new();
    match outlet.unless_gone(http::fetch(outgoing)).await {
        None => return,
        Some(Err(error)) => answer.fail(failure::of_transport(error, "The server does not answer"), &mut events),
        Some(Ok(response)) if (200..300).contains(&response.status) => {
            return relay(response, answer, outlet).await;
        }
        Some(Ok(mut response)) => {
            let Some(body) = outlet.unless_gone(start_of(&mut response.body, Vec::new())).await else { return };
            let header = |name: &str| {
                response.headers.iter().find(|header| header.name == name).map(|header| header.value.as_str())
            };
            answer.fail(failure::of_response(response.status, header, &body, clock::now()), &mut events);
        }
    }
    outlet.send(events).await;
}

/// Passes on the events of an answer that has begun.
async fn relay(mut response: http::Response, mut answer: Answer, mut outlet: Outlet) {
    let mut lines = Events::default();
    let mut events = Vec::new();
    let mut first = true;
    loop {
        let looks = if answer.has_reason() { LATE_LOOKS } else { u32::MAX };
        let chunk = match outlet.wait(next_chunk(&mut response.body, READ), looks).await {
            Waited::Done(Some(chunk)) => chunk,
            Waited::Done(None) => break,
            Waited::Gone => return,
            // The answer is complete; a server that neither says so nor closes is not waited for.
            Waited::Late => {
                answer.finish(&mut events);
                outlet.send(events).await;
                return;
            }
        };
        if std::mem::take(&mut first) {
            if is_document(&chunk) {
                let Some(body) = outlet.unless_gone(start_of(&mut response.body, chunk)).await else { return };
                answer.fail(failure::of_document(&body), &mut events);
                outlet.send(events).await;
                return;
            }
            events.push(ModelEvent::Start);
        }
        match lines.push(&chunk) {
            // Names, ids and retry times do not matter here.
            Ok(came) => came.iter().for_each(|event| answer.data(&event.data, &mut events)),
            Err(error) => answer.fail(failure::plain(Error::Failed(error.to_string())), &mut events),
        }
        // All that one chunk gave in one write: crossing the boundary is what costs.
        if !outlet.send(std::mem::take(&mut events)).await || answer.ended() {
            return;
        }
    }
    let Some(end) = outlet.unless_gone(async { response.done.await }).await else { return };
    match end {
        Ok(()) => {
            match lines.finish() {
                Ok(last) => last.iter().for_each(|event| answer.data(&event.data, &mut events)),
                Err(error) => answer.fail(failure::plain(Error::Failed(error.to_string())), &mut events),
            }
            answer.finish(&mut events);
        }
        Err(error) => answer.broke_off(failure::of_transport(error, "The answer broke off"), &mut events),
    }
    outlet.send(events).await;
}

/// The body begins like JSON or a web page: no line of an event stream does.
fn is_document(chunk: &[u8]) -> bool {
    chunk.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|byte| matches!(byte, b'{' | b'[' | b'<'))
}

/// The first bytes of a body, as many as an error's text may need.
async fn start_of(body: &mut StreamReader<u8>, mut start: Vec<u8>) -> Vec<u8> {
    while start.len() < failure::MAX_BODY {
        let Some(chunk) = next_chunk(body, failure::MAX_BODY - start.len()).await else { break };
        start.extend_from_slice(&chunk);
    }
    start.truncate(failure::MAX_BODY);
    start
}

#[cfg(test)]
mod tests;
