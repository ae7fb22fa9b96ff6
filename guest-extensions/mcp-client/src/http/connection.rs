//! One connection to a server at an address.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    pin::pin,
    time::Duration,
};

use futures::{
    FutureExt as _, StreamExt as _,
    future::{AbortHandle, Abortable, LocalBoxFuture},
    stream::FuturesUnordered,
};
use serde_json::Value;

use super::{
    Access, Endpoint, Refused, Verdict, Way,
    failing::failing,
    message::{Sent, refusal},
    reply::within,
    stateless::Marked,
};
use crate::{
    net::{Net, Request, Response, Unreachable},
    text::{one_line, shown},
    wire::{Line, ProgramEnd},
};

/// How long to wait before hello is said again, each time.
const HELLO_AGAIN: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];
/// How long to wait before what only reads is asked for again.
const READ_AGAIN: [Duration; 1] = [Duration::from_millis(250)];
/// How often a request is sent with other credentials.
const MAX_REFUSALS: u32 = 3;
/// How much of a refusal is read.
const MAX_REFUSAL: usize = 8 << 10;
/// How long the server may take to forget the session.
const FAREWELL: Duration = Duration::from_secs(2);
/// How many redirects are followed.
pub(super) const REDIRECTS: u32 = 3;
/// How long a session's name may be.
const MAX_SESSION: usize = 4 << 10;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nobody needs it any more.
    Unneeded,
    /// The server does not know the session any more.
    Expired,
    /// The server ended it.
    Dropped,
}

/// What has come of something under way.
pub(super) enum Done {
    /// Nothing that matters to others.
    Plain,
    /// The request of this id is not under way any more.
    Asked(Value),
    /// The server has heard that the client is ready.
    Ready,
    /// The stream for all answers has ended.
    Dropped,
}

/// What is asked for, as far as the answer matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Which revision is spoken.
    Hello,
    /// The tools.
    Tools,
    /// Something else.
    Other,
}

/// A connection.
pub(super) struct Connection<'a> {
    pub(super) net: &'a dyn Net,
    access: &'a dyn Access,
    pub(super) endpoint: &'a Endpoint,
    to_client: tokio::sync::mpsc::Sender<Line>,
    /// The session, once the server has named one.
    pub(super) session: RefCell<Option<String>>,
    /// The revision of the protocol, once it is agreed on.
    pub(super) revision: RefCell<Option<String>>,
    pub(super) is_expired: Cell<bool>,
    /// What of tools' arguments is to be in headers.
    pub(super) marked: RefCell<Marked>,
    /// Where to send to, if the server speaks the transport of old.
    pub(super) of_old: RefCell<Option<String>>,
    /// The stream of such a server, until it is read.
    pub(super) answers: RefCell<Option<super::of_old::Answers>>,
}

/// Carries the messages of a wire to a server and back, until the client's end is dropped, or the server's is, or `done` ends.
pub async fn serve(
    net: &dyn Net,
    access: &dyn Access,
    endpoint: &Endpoint,
    end: ProgramEnd,
    done: impl Future<Output = ()>,
) -> Ended {
    let ProgramEnd { mut to_program, from_program } = end;
    let connection = Connection {
        net,
        access,
        endpoint,
        to_client: from_program,
        session: RefCell::default(),
        revision: RefCell::default(),
        is_expired: Cell::new(false),
        marked: RefCell::default(),
        of_old: RefCell::default(),
        answers: RefCell::default(),
    };
    let mut done = pin!(done);
    // What the client waits for, what it has said, and what is merely listened to.
    let mut asked: FuturesUnordered<LocalBoxFuture<'_, Done>> = FuturesUnordered::new();
    let mut said: FuturesUnordered<LocalBoxFuture<'_, Done>> = FuturesUnordered::new();
    let mut heard: FuturesUnordered<LocalBoxFuture<'_, Done>> = FuturesUnordered::new();
    let mut wanted: Vec<(Value, AbortHandle)> = Vec::new();
    let mut is_greeting = false;
    let ended = loop {
        if connection.is_expired.get() && asked.is_empty() {
            break Ended::Expired;
        }
        tokio::select! {
            biased;
            () = &mut done => break Ended::Unneeded,
            Some(came) = asked.next(), if !asked.is_empty() => {
                if let Done::Asked(id) = came {
                    wanted.retain(|(known, _)| *known != id);
                }
                if let Some(answers) = connection.answers.borrow_mut().take() {
                    heard.push(Box::pin(connection.pump(answers)));
                }
            }
            Some(came) = said.next(), if !said.is_empty() => {
                if let Done::Ready = came {
                    is_greeting = false;
                    heard.push(Box::pin(connection.listen()));
                }
            }
            Some(came) = heard.next(), if !heard.is_empty() => {
                if matches!(came, Done::Dropped) {
                    break Ended::Dropped;
                }
            }
            // Before the server knows that the client is ready, nothing else is said.
            line = to_program.recv(), if !is_greeting => {
                let Some(line) = line else { break Ended::Unneeded };
                let sent = Sent::read(&line);
                match &sent {
                    Sent::Request { id, method } => {
                        let (handle, registration) = AbortHandle::new_pair();
                        wanted.push((id.clone(), handle));
                        let (id, method) = (id.clone(), method.clone());
                        let request = Abortable::new(connection.ask(line, id.clone(), method), registration);
                        asked.push(Box::pin(request.map(|_| Done::Asked(id))));
                        continue;
                    }
                    Sent::Cancels(id) => {
                        for (_, handle) in wanted.extract_if(.., |(known, _)| known == id) {
                            handle.abort();
                        }
                    }
                    Sent::Notification { method } => is_greeting = method == "notifications/initialized",
                    Sent::Answer => {}
                }
                said.push(Box::pin(connection.tell(line, sent)));
            }
        }
    };
    drop((asked, heard));
    if ended == Ended::Unneeded {
        // The last that the client said may be that it does not want something any more.
        while let Ok(line) = to_program.try_recv() {
            let sent = Sent::read(&line);
            if !matches!(sent, Sent::Request { .. }) {
                said.push(Box::pin(connection.tell(line, sent)));
            }
        }
        if !said.is_empty() {
            within(net, FAREWELL, async { while said.next().await.is_some() {} }).await;
        }
        connection.farewell().await;
    }
    ended
}

/// How often a request may be sent, and when again.
fn again(method: &str) -> &'static [Duration] {
    match method {
        "initialize" => &HELLO_AGAIN,
        "tools/list"
        | "resources/list"
        | "resources/templates/list"
        | "resources/read"
        | "prompts/list"
        | "prompts/get"
        | "completion/complete" => &READ_AGAIN,
        _ => &[],
    }
}

/// What may be otherwise in a moment.
fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}

/// What came of sending a message.
enum Posted {
    /// The head of an answer, of a status below 300.
    Answer(Response),
    /// A refusal that is an answer of the protocol.
    Said(Vec<u8>),
    /// None.
    Not(Way, String),
}

impl<'a> Connection<'a> {
    /// The headers that every request has.
    pub(super) async fn dressed(&self, mut request: Request) -> Result<Request, String> {
        if let Some(session) = &*self.session.borrow() {
            request.headers.push(("mcp-session-id".to_owned(), session.clone()));
        }
        if let Some(revision) = &*self.revision.borrow() {
            request.headers.push(("mcp-protocol-version".to_owned(), revision.clone()));
        }
        request.headers.extend(self.endpoint.headers.iter().cloned());
        request.headers.extend(self.access.headers().await?);
        request.redirects = REDIRECTS;
        Ok(request)
    }

    /// Gives the client a message of the server's.
    pub(super) async fn give(&self, message: Vec<u8>) {
        let _ = self.to_client.send(Line::Whole(message)).await;
    }

    pub(super) async fn fail(&self, id: &Value, way: Way, why: &str) {
        self.give(failing(id, way, &one_line(why))).await;
    }

    /// Whether the access gives other credentials, and what else is to be done.
    pub(super) async fn refused(&self, response: &Response, sent: Option<String>, before: u32) -> Verdict {
        if before >= MAX_REFUSALS {
            return Verdict::Stands;
        }
        let challenges = response.headers.iter().filter(|(name, _)| name == "www-authenticate");
        let challenges = challenges.map(|(_, value)| value.clone()).collect();
        self.access.refused(&Refused { status: response.status, challenges, sent, before }).await
    }

    /// Sends a message until it is answered, as often as that may be done.
    async fn post(&self, line: &[u8], id: Option<&Value>, method: &str) -> Posted {
        let mut waits = again(method).iter();
        let mut refusals = 0;
        loop {
            let url = self.of_old.borrow().clone().unwrap_or_else(|| self.endpoint.url.clone());
            let mut request = Request::new("POST", &url)
                .header("accept", "application/json, text/event-stream")
                .body("application/json", line.trim_ascii_end().to_vec());
            request.headers.extend(self.marked.borrow().headers(line));
            if method != "tools/call" {
                request.timeout = Some(self.endpoint.patience);
            }
            let request = match self.dressed(request).await {
                Ok(request) => request,
                Err(why) => return Posted::Not(Way::Refused, why),
            };
            let sent = authorization(&request);
            let (way, why) = match self.net.fetch(request).await {
                Ok(response) if response.status < 300 => return Posted::Answer(response),
                Ok(mut response) => {
                    let status = response.status;
                    if matches!(status, 401 | 403) {
                        match self.refused(&response, sent, refusals).await {
                            Verdict::Again => {
                                refusals += 1;
                                continue;
                            }
                            Verdict::SignIn(why) => return Posted::Not(Way::SignIn, why),
                            Verdict::Stands => {}
                        }
                    }
                    let body = response.start(MAX_REFUSAL).await;
                    let has_session = self.session.borrow().is_some();
                    if has_session && (status == 404 || status == 400 && is_of_session(&body)) {
                        self.is_expired.set(true);
                        return Posted::Not(Way::Expired, "it does not know the session any more".to_owned());
                    }
                    if !is_passing(status)
                        && let Some(answer) = id.and_then(|id| refusal(&body, id))
                    {
                        return Posted::Said(answer);
                    }
                    if id.is_some()
                        && method == "initialize"
                        && matches!(status, 400 | 404 | 405)
                        && self.is_of_old().await
                    {
                        continue;
                    }
                    let why = told(status, &body);
                    if !is_passing(status) {
                        return Posted::Not(Way::Refused, why);
                    }
                    // What a server does after it has failed is not known; what it has put off it has not done.
                    (if matches!(status, 429 | 503) { Way::Refused } else { Way::Lost }, why)
                }
                Err(Unreachable { is_passing, was_sent, why }) => {
                    let way = if was_sent { Way::Lost } else { Way::Refused };
                    if !is_passing {
                        return Posted::Not(way, why);
                    }
                    (way, why)
                }
            };
            match waits.next() {
                Some(wait) => self.net.sleep(*wait).await,
                None => return Posted::Not(way, why),
            }
        }
    }

    /// Sends a request, and gives its answer, and what comes before it.
    async fn ask(&self, line: Vec<u8>, id: Value, method: String) {
        if self.is_expired.get() {
            return self.fail(&id, Way::Expired, "it does not know the session any more").await;
        }
        match self.post(&line, Some(&id), &method).await {
            Posted::Answer(response) => {
                let what = match method.as_str() {
                    "initialize" => What::Hello,
                    "tools/list" => What::Tools,
                    _ => What::Other,
                };
                if what == What::Hello {
                    let fits =
                        |session: &&str| session.len() <= MAX_SESSION && session.bytes().all(|b| b.is_ascii_graphic());
                    *self.session.borrow_mut() = response.header("mcp-session-id").filter(fits).map(str::to_owned);
                }
                if self.of_old.borrow().is_none()
                    && let Err((way, why)) = self.answered(response, &id, what).await
                {
                    self.fail(&id, way, &why).await;
                }
            }
            Posted::Said(answer) => self.give(answer).await,
            Posted::Not(way, why) => self.fail(&id, way, &why).await,
        }
    }

    /// Sends what wants no answer. Nobody can be told that it did not arrive.
    async fn tell(&self, line: Vec<u8>, sent: Sent) -> Done {
        let method = if let Sent::Notification { method } = &sent { method } else { "" };
        if !self.is_expired.get() {
            self.post(&line, None, method).await;
        }
        if method == "notifications/initialized" { Done::Ready } else { Done::Plain }
    }

    /// Has the server forget the session.
    async fn farewell(&self) {
        if self.session.borrow().is_none() {
            return;
        }
        if let Ok(request) = self.dressed(Request::new("DELETE", &self.endpoint.url).within(FAREWELL)).await {
            let _ = self.net.fetch(request).await;
        }
    }
}

/// What a request says of who asks.
pub(super) fn authorization(request: &Request) -> Option<String> {
    let header = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    header.map(|(_, value)| value.clone())
}

/// Whether a refusal says that it is the session that is wrong. Many servers say so with 400 in place of 404.
fn is_of_session(body: &[u8]) -> bool {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return false };
    body["error"]["message"].as_str().is_some_and(|message| message.to_ascii_lowercase().contains("session"))
}

/// A status, and what the server says beside.
fn told(status: u16, body: &[u8]) -> String {
    let said = String::from_utf8_lossy(body);
    match said.trim() {
        "" => format!("it answers with HTTP {status}"),
        said => format!("it answers with HTTP {status} and {}", shown(said)),
    }
}
