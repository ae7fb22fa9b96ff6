//! What a server answers with: one message, or a stream of them, which goes on elsewhere when it breaks off.

use std::time::Duration;

use atoll_event_stream::{Events, MAX_EVENT};
use futures::future::{Either, select};
use serde_json::Value;

use super::{
    Way,
    connection::{Connection, Done, What, authorization},
    message::answers,
};
use crate::{
    http::Verdict,
    net::{Request, Response},
    wire::MAX_MESSAGE,
};

/// How often a stream that broke off is asked to go on, with nothing new in between.
const TRIES: u32 = 5;
/// How long to wait before that, first and at most, if the server does not say.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LAST_WAIT: Duration = Duration::from_secs(30);
/// The shortest that a server may have us wait, a few times; from then on it is what is usual at first.
const LEAST_WAIT: Duration = Duration::from_millis(250);
const FEW: u32 = 4;
/// The longest that it may.
const MAX_WAIT: Duration = Duration::from_secs(300);
/// How long the end of a stream is waited for whose answer has come: a connection that ends in order can be used again.
const END: Duration = Duration::from_millis(50);
const STREAM: &str = "text/event-stream";

/// Where a stream is.
#[derive(Debug, Default)]
struct Place {
    /// The last event that had an id.
    last: Option<String>,
    /// How long to wait before it is asked to go on.
    retry: Option<Duration>,
    /// How often it was asked to with nothing to show for it.
    tries: u32,
    /// How often it was asked to.
    asked: u32,
}

impl Place {
    /// The time to wait before the next try; none if there were enough.
    fn next_wait(&mut self) -> Option<Duration> {
        let waited = self.tries;
        self.tries += 1;
        if waited >= TRIES {
            return None;
        }
        let usual = FIRST_WAIT.saturating_mul(1 << waited).min(LAST_WAIT);
        // One that ends each stream at once, and wants it to go on at once, is not asked without end.
        let least = if self.asked < FEW { LEAST_WAIT } else { FIRST_WAIT };
        self.asked = self.asked.saturating_add(1);
        Some(self.retry.map_or(usual, |retry| retry.clamp(least, MAX_WAIT)))
    }
}

/// How reading a stream ended.
enum Read {
    /// With the answer that was waited for.
    Answered,
    /// Without it.
    Over,
    /// With something that is none.
    Strange(String),
}

impl Connection<'_> {
    /// Gives what the answer to a request brings.
    ///
    /// # Errors
    /// What came of the request, if there is no answer.
    pub(super) async fn answered(&self, mut response: Response, id: &Value, what: What) -> Result<(), (Way, String)> {
        if response.is(STREAM) {
            return self.streamed(response, id, what).await;
        }
        let status = response.status;
        if !response.is("application/json") {
            let said = response.header("content-type").unwrap_or("nothing").to_owned();
            let said = crate::text::shown(&said);
            return Err((Way::Lost, format!("its answer is no message: HTTP {status} with {said}")));
        }
        let body = response.whole(MAX_MESSAGE).await.map_err(|why| (Way::Lost, why))?;
        if !answers(&body, id) {
            return Err((Way::Lost, "its answer is none to what was asked".to_owned()));
        }
        self.learn(&body, what);
        self.give(body).await;
        Ok(())
    }

    /// Remembers what of an answer matters to requests that follow.
    pub(super) fn learn(&self, message: &[u8], what: What) {
        match what {
            What::Hello => {}
            What::Tools => return self.marked.borrow_mut().learn(message),
            What::Other => return,
        }
        let message: Value = serde_json::from_slice(message).unwrap_or_default();
        let revision = message["result"]["protocolVersion"].as_str();
        let fits = |revision: &&str| revision.len() <= 64 && revision.bytes().all(|b| b.is_ascii_graphic());
        *self.revision.borrow_mut() = revision.filter(fits).map(str::to_owned);
    }

    async fn streamed(&self, mut response: Response, id: &Value, what: What) -> Result<(), (Way, String)> {
        let mut place = Place::default();
        loop {
            match self.read(&mut response, &mut place, Some(id), what).await {
                Read::Answered => {
                    let rest = Box::pin(async { while let Some(Ok(_)) = response.body.next().await {} });
                    select(rest, self.net.sleep(END)).await;
                    return Ok(());
                }
                Read::Strange(why) => return Err((Way::Lost, why)),
                Read::Over => {}
            }
            response = loop {
                let Some(last) = place.last.clone() else {
                    return Err((Way::Lost, "its answer broke off".to_owned()));
                };
                let Some(wait) = place.next_wait() else {
                    return Err((Way::Lost, "its answer broke off, and could not be had again".to_owned()));
                };
                self.net.sleep(wait).await;
                match self.stream(Some(&last)).await {
                    Ok(again) => break again,
                    Err(Closed::ForNow) => {}
                    Err(Closed::ForGood(status)) => {
                        return Err((
                            Way::Lost,
                            format!("its answer broke off, and asking for the rest gives HTTP {status}"),
                        ));
                    }
                }
            };
        }
    }

    /// Reads a stream to its end, or to the answer that is waited for.
    async fn read(&self, response: &mut Response, place: &mut Place, id: Option<&Value>, what: What) -> Read {
        let mut events = Events::default();
        while let Some(Ok(bytes)) = response.body.next().await {
            let Ok(came) = events.push(&bytes) else {
                return Read::Strange(format!("an event is longer than {} MiB", MAX_EVENT >> 20));
            };
            for event in came {
                if let Some(retry) = event.retry {
                    place.retry = Some(Duration::from_millis(retry));
                }
                if let Some(last) = event.id {
                    place.last = Some(last).filter(|last| !last.is_empty());
                }
                // Such an event only says where the stream is.
                if event.data.trim().is_empty() || event.name.is_some() {
                    continue;
                }
                let data = event.data.into_bytes();
                if is_message(&data) {
                    place.tries = 0;
                }
                let is_answer = id.is_some_and(|id| answers(&data, id));
                if is_answer {
                    self.learn(&data, what);
                }
                self.give(data).await;
                if is_answer {
                    return Read::Answered;
                }
            }
        }
        Read::Over
    }

    /// Listens to what the server says of itself, for as long as it lets us.
    pub(super) async fn listen(&self) -> Done {
        if self.of_old.borrow().is_some() {
            return Done::Plain;
        }
        let mut place = Place::default();
        loop {
            match self.stream(place.last.as_deref()).await {
                Ok(mut response) => {
                    if let Read::Strange(_) = self.read(&mut response, &mut place, None, What::Other).await {
                        place.last = None;
                    }
                }
                Err(Closed::ForNow) => {}
                // Most have nothing to say.
                Err(Closed::ForGood(_)) => return Done::Plain,
            }
            let Some(wait) = place.next_wait() else { return Done::Plain };
            self.net.sleep(wait).await;
        }
    }

    /// Asks for a stream, from after this event on.
    async fn stream(&self, last: Option<&str>) -> Result<Response, Closed> {
        let mut refusals = 0;
        loop {
            let mut request = Request::new("GET", &self.endpoint.url).header("accept", STREAM);
            if let Some(last) = last {
                request = request.header("last-event-id", last);
            }
            let Ok(request) = self.dressed(request).await else { return Err(Closed::ForNow) };
            let sent = authorization(&request);
            match self.net.fetch(request).await {
                Ok(response) if response.status == 200 && response.is(STREAM) => return Ok(response),
                Ok(response) if matches!(response.status, 408 | 425 | 429 | 500..=599) => return Err(Closed::ForNow),
                Ok(response) if matches!(response.status, 401 | 403) => {
                    if self.refused(&response, sent, refusals).await != Verdict::Again {
                        return Err(Closed::ForGood(response.status));
                    }
                    refusals += 1;
                }
                Ok(response) => return Err(Closed::ForGood(response.status)),
                Err(_) => return Err(Closed::ForNow),
            }
        }
    }
}

/// Whether it may be a message of the protocol, or several.
fn is_message(data: &[u8]) -> bool {
    matches!(data.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// There is no stream.
enum Closed {
    /// There may be one soon.
    ForNow,
    /// There will be none.
    ForGood(u16),
}

/// Waits for something at most so long.
pub(super) async fn within<T>(net: &dyn crate::net::Net, time: Duration, waited: impl Future<Output = T>) -> Option<T> {
    match select(Box::pin(waited), net.sleep(time)).await {
        Either::Left((came, _)) => Some(came),
        Either::Right(_) => None,
    }
}
