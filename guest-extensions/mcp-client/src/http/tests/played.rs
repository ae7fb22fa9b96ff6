//! A server that a test plays: for each kind of request it has what that is answered with, one after the other.

use std::{cell::RefCell, collections::VecDeque, rc::Rc, time::Duration};

use futures::future::LocalBoxFuture;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    http::{Access, Ended, Endpoint, Way, serve},
    net::{Body, Net, Request, Response, Unreachable},
    session::{Era, Failure, Identity, Session, Told, told},
    wire::wire,
};

/// What a body brings, one after the other.
pub(super) enum Bring {
    Bytes(String),
    /// Nothing more until the test says so.
    After(Rc<Notify>),
    /// Nothing more, for ever.
    Never,
    Breaks,
}

pub(super) struct Pieces {
    pub(super) pieces: VecDeque<Bring>,
    /// Told when nobody reads any more.
    pub(super) dropped: Rc<Notify>,
}

impl Body for Pieces {
    fn next(&mut self) -> LocalBoxFuture<'_, Option<Result<Vec<u8>, String>>> {
        Box::pin(async {
            loop {
                match self.pieces.pop_front()? {
                    Bring::Bytes(text) => return Some(Ok(text.into_bytes())),
                    Bring::After(notify) => notify.notified().await,
                    Bring::Never => std::future::pending().await,
                    Bring::Breaks => return Some(Err("reset".to_owned())),
                }
            }
        })
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        self.dropped.notify_one();
    }
}

/// What a request is answered with.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) pieces: Vec<Bring>,
    pub(super) dropped: Rc<Notify>,
}

/// A server of a test, which has for each kind of request what it is to be answered with, one after the other.
#[derive(Default)]
pub(super) struct Script {
    pub(super) replies: RefCell<Vec<(&'static str, Result<Reply, Unreachable>)>>,
    pub(super) requests: RefCell<Vec<(String, Request)>>,
    pub(super) slept: RefCell<Vec<u128>>,
}

impl Script {
    pub(super) fn on(self, what: &'static str, reply: Reply) -> Self {
        self.replies.borrow_mut().push((what, Ok(reply)));
        self
    }

    pub(super) fn unreachable(self, what: &'static str, is_passing: bool) -> Self {
        let why = "nobody is there".to_owned();
        self.replies.borrow_mut().push((what, Err(Unreachable { is_passing, was_sent: is_passing, why })));
        self
    }

    /// There is no connection, and so nothing was sent.
    pub(super) fn unsent(self, what: &'static str) -> Self {
        let why = "nobody listens".to_owned();
        self.replies.borrow_mut().push((what, Err(Unreachable { is_passing: true, was_sent: false, why })));
        self
    }

    pub(super) fn hello(self) -> Self {
        let result = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "script", "version": "1"}});
        self.on("initialize", answer(&result).with("mcp-session-id", "s1")).ready()
    }

    pub(super) fn ready(self) -> Self {
        self.on("notifications/initialized", status(202)).on("GET", status(405)).on("DELETE", status(200))
    }

    pub(super) fn asked(&self) -> Vec<String> {
        self.requests.borrow().iter().map(|(what, _)| what.clone()).collect()
    }

    pub(super) fn of(&self, what: &str) -> Vec<Request> {
        self.requests.borrow().iter().filter(|(known, _)| known == what).map(|(_, request)| request.clone()).collect()
    }

    /// How long was waited, in milliseconds, but for the ends of streams.
    pub(super) fn waited(&self) -> Vec<u128> {
        self.slept.borrow().iter().copied().filter(|time| *time != 50).collect()
    }
}

pub(super) fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

impl Net for Script {
    fn fetch(&self, request: Request) -> LocalBoxFuture<'_, Result<Response, Unreachable>> {
        Box::pin(async move {
            let message: Value =
                serde_json::from_slice(request.body.as_deref().unwrap_or_default()).unwrap_or_default();
            let what = match message["method"].as_str() {
                Some(method) => method.to_owned(),
                None if request.method == "POST" => "answer".to_owned(),
                None => request.method.to_owned(),
            };
            self.requests.borrow_mut().push((what.clone(), request));
            let reply = {
                let mut replies = self.replies.borrow_mut();
                let at = replies.iter().position(|(known, _)| *known == what);
                at.map(|at| replies.remove(at).1)
            };
            let Reply { status, headers, pieces, dropped } = reply.unwrap_or_else(|| panic!("no reply to {what}"))?;
            let id = message["id"].to_string();
            let pieces = pieces.into_iter().map(|piece| match piece {
                Bring::Bytes(text) => Bring::Bytes(text.replace("\"ID\"", &id)),
                other => other,
            });
            let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            Ok(Response { status, headers, body: Box::new(Pieces { pieces: pieces.collect(), dropped }) })
        })
    }

    fn sleep(&self, time: Duration) -> LocalBoxFuture<'static, ()> {
        self.slept.borrow_mut().push(time.as_millis());
        // Nothing takes long here but what waits for the test.
        Box::pin(async {
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        })
    }
}

impl Reply {
    pub(super) fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(super) fn then(mut self, piece: Bring) -> Self {
        self.pieces.push(piece);
        self
    }

    pub(super) fn text(self, text: &str) -> Self {
        self.then(Bring::Bytes(text.to_owned()))
    }

    pub(super) fn message(self, id: Option<&str>, message: &Value) -> Self {
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        self.text(&format!("{id}data: {message}\n\n"))
    }

    pub(super) fn result(self, id: Option<&str>, result: &Value) -> Self {
        self.message(id, &json!({"jsonrpc": "2.0", "id": "ID", "result": result}))
    }
}

pub(super) fn status(status: u16) -> Reply {
    Reply { status, headers: Vec::new(), pieces: Vec::new(), dropped: Rc::default() }
}

pub(super) fn answer(result: &Value) -> Reply {
    status(200)
        .with("content-type", "application/json; charset=utf-8")
        .text(&json!({"jsonrpc": "2.0", "id": "ID", "result": result}).to_string())
}

pub(super) fn stream() -> Reply {
    status(200).with("content-type", "text/event-stream")
}

pub(super) fn endpoint() -> Endpoint {
    let headers = vec![("x-key".to_owned(), "k".to_owned())];
    Endpoint { url: "http://127.0.0.1:1/mcp".to_owned(), headers, patience: Duration::from_secs(9) }
}

/// What is done with a connection to such a server, and how the connection ended.
pub(super) async fn with<T>(
    script: &Script,
    access: &dyn Access,
    act: impl AsyncFnOnce(Result<Session, Failure>, tokio::sync::mpsc::Receiver<Told>) -> T,
) -> (T, Ended) {
    greeted(Era::Sessions, script, access, act).await
}

pub(super) async fn greeted<T>(
    era: Era,
    script: &Script,
    access: &dyn Access,
    act: impl AsyncFnOnce(Result<Session, Failure>, tokio::sync::mpsc::Receiver<Told>) -> T,
) -> (T, Ended) {
    let (teller, told) = told();
    let (wire, end) = wire(teller.clone());
    let identity =
        Identity { name: "atoll".to_owned(), version: "1".to_owned(), root: "/w".to_owned(), answers: false };
    let endpoint = endpoint();
    let acting = async { act(Session::open_in(era, wire, identity, teller).await, told).await };
    tokio::join!(acting, serve(script, access, &endpoint, end, std::future::pending()))
}

pub(super) async fn forever() {
    std::future::pending::<()>().await;
}

pub(super) async fn call(session: &Session, tool: &str) -> Result<Value, Failure> {
    session.call(tool, serde_json::Map::new()).await?.answer(forever, forever(), |_| {}).await
}

pub(super) fn way(result: &Result<Value, Failure>) -> Option<(Way, String)> {
    match result {
        Err(Failure::OnTheWay { way, why }) => Some((*way, why.clone())),
        _ => None,
    }
}
