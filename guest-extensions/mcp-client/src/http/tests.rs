use std::{cell::RefCell, collections::VecDeque, rc::Rc, time::Duration};

use futures::future::LocalBoxFuture;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::*;
use crate::{
    net::{Body, Net, Request, Response, Unreachable},
    session::{Era, Failure, Identity, Session, Told, told},
    wire::wire,
};

/// What a body brings, one after the other.
enum Bring {
    Bytes(String),
    /// Nothing more until the test says so.
    After(Rc<Notify>),
    /// Nothing more, for ever.
    Never,
    Breaks,
}

struct Pieces {
    pieces: VecDeque<Bring>,
    /// Told when nobody reads any more.
    dropped: Rc<Notify>,
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
struct Reply {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    pieces: Vec<Bring>,
    dropped: Rc<Notify>,
}

/// A server of a test, which has for each kind of request what it is to be answered with, one after the other.
#[derive(Default)]
struct Script {
    replies: RefCell<Vec<(&'static str, Result<Reply, Unreachable>)>>,
    requests: RefCell<Vec<(String, Request)>>,
    slept: RefCell<Vec<u128>>,
}

impl Script {
    fn on(self, what: &'static str, reply: Reply) -> Self {
        self.replies.borrow_mut().push((what, Ok(reply)));
        self
    }

    fn unreachable(self, what: &'static str, is_passing: bool) -> Self {
        self.replies.borrow_mut().push((what, Err(Unreachable { is_passing, why: "nobody is there".to_owned() })));
        self
    }

    fn hello(self) -> Self {
        let result = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "script", "version": "1"}});
        self.on("initialize", answer(&result).with("mcp-session-id", "s1")).ready()
    }

    fn ready(self) -> Self {
        self.on("notifications/initialized", status(202)).on("GET", status(405)).on("DELETE", status(200))
    }

    fn asked(&self) -> Vec<String> {
        self.requests.borrow().iter().map(|(what, _)| what.clone()).collect()
    }

    fn of(&self, what: &str) -> Vec<Request> {
        self.requests.borrow().iter().filter(|(known, _)| known == what).map(|(_, request)| request.clone()).collect()
    }

    /// How long was waited, in milliseconds, but for the ends of streams.
    fn waited(&self) -> Vec<u128> {
        self.slept.borrow().iter().copied().filter(|time| *time != 50).collect()
    }
}

fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
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
    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    fn then(mut self, piece: Bring) -> Self {
        self.pieces.push(piece);
        self
    }

    fn text(self, text: &str) -> Self {
        self.then(Bring::Bytes(text.to_owned()))
    }

    fn message(self, id: Option<&str>, message: &Value) -> Self {
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        self.text(&format!("{id}data: {message}\n\n"))
    }

    fn result(self, id: Option<&str>, result: &Value) -> Self {
        self.message(id, &json!({"jsonrpc": "2.0", "id": "ID", "result": result}))
    }
}

fn status(status: u16) -> Reply {
    Reply { status, headers: Vec::new(), pieces: Vec::new(), dropped: Rc::default() }
}

fn answer(result: &Value) -> Reply {
    status(200)
        .with("content-type", "application/json; charset=utf-8")
        .text(&json!({"jsonrpc": "2.0", "id": "ID", "result": result}).to_string())
}

fn stream() -> Reply {
    status(200).with("content-type", "text/event-stream")
}

fn endpoint() -> Endpoint {
    let headers = vec![("x-key".to_owned(), "k".to_owned())];
    Endpoint { url: "http://127.0.0.1:1/mcp".to_owned(), headers, patience: Duration::from_secs(9) }
}

/// What is done with a connection to such a server, and how the connection ended.
async fn with<T>(
    script: &Script,
    access: &dyn Access,
    act: impl AsyncFnOnce(Result<Session, Failure>, tokio::sync::mpsc::Receiver<Told>) -> T,
) -> (T, Ended) {
    greeted(Era::Sessions, script, access, act).await
}

async fn greeted<T>(
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

async fn forever() {
    std::future::pending::<()>().await;
}

async fn call(session: &Session, tool: &str) -> Result<Value, Failure> {
    session.call(tool, serde_json::Map::new()).await?.answer(forever, forever(), |_| {}).await
}

fn way(result: &Result<Value, Failure>) -> Option<(Way, String)> {
    match result {
        Err(Failure::OnTheWay { way, why }) => Some((*way, why.clone())),
        _ => None,
    }
}

#[tokio::test]
async fn a_session_is_begun_kept_to_and_ended() {
    let script = Script::default().hello().on("tools/call", answer(&json!({"content": []})));
    let (gave, ended) = with(&script, &Anybody, async |session, _| call(&session.unwrap(), "a").await).await;
    assert_eq!((gave, ended), (Ok(json!({"content": []})), Ended::Unneeded));
    assert_eq!(script.asked(), ["initialize", "notifications/initialized", "GET", "tools/call", "DELETE"]);
    for (what, request) in script.requests.borrow().iter() {
        let is_first = what == "initialize";
        let expected = if is_first { (None, None) } else { (Some("s1"), Some("2025-06-18")) };
        assert_eq!((header(request, "mcp-session-id"), header(request, "mcp-protocol-version")), expected, "{what}");
        assert_eq!(header(request, "x-key"), Some("k"), "{what}");
        if request.method == "POST" {
            assert_eq!(header(request, "accept"), Some("application/json, text/event-stream"), "{what}");
            assert_eq!(header(request, "content-type"), Some("application/json"), "{what}");
            assert_eq!(request.timeout.is_none(), what == "tools/call", "an answer of a tool takes its time: {what}");
        }
    }
}

#[tokio::test]
async fn an_answer_may_be_a_stream_of_many_messages() {
    let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "hi"}});
    let roots = json!({"jsonrpc": "2.0", "id": "r", "method": "roots/list"});
    let reply = stream().text("id: 0\ndata:\n\n").message(Some("1"), &note).message(None, &roots);
    let dropped = Rc::clone(&reply.dropped);
    let reply = reply.result(Some("2"), &json!({"content": []})).then(Bring::Never);
    let script = Script::default().hello().on("tools/call", reply).on("answer", status(202));
    let ((gave, told), _) =
        with(&script, &Anybody, async |session, mut told| (call(&session.unwrap(), "a").await, told.try_recv())).await;
    assert_eq!(gave, Ok(json!({"content": []})));
    let hi = Told::Log { level: "info".to_owned(), logger: None, text: "hi".to_owned() };
    assert_eq!(told, Ok(hi));
    let sent: Value = serde_json::from_slice(script.of("answer")[0].body.as_deref().unwrap()).unwrap();
    assert_eq!(sent["result"]["roots"][0]["uri"], "file:///w");
    dropped.notified().await;
}

#[tokio::test]
async fn a_stream_that_ends_early_goes_on_where_it_was() {
    let note = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let script = Script::default()
        .hello()
        .on("tools/call", stream().text("id: a/1\nretry: 700\ndata: \n\n"))
        .on("GET", status(503))
        .on("GET", stream().message(Some("a/2"), &note).then(Bring::Breaks))
        .on("GET", stream().message(None, &json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}})));
    let (gave, _) = with(&script, &Anybody, async |session, _| call(&session.unwrap(), "a").await).await;
    assert_eq!(gave, Ok(json!({"content": []})));
    let asked: Vec<Option<String>> =
        script.of("GET").iter().map(|request| header(request, "last-event-id").map(str::to_owned)).collect();
    assert_eq!(asked, [None, Some("a/1".into()), Some("a/1".into()), Some("a/2".into())]);
    assert_eq!(script.waited(), [700, 700, 700]);
    assert_eq!(script.of("tools/call").len(), 1);
}

#[tokio::test]
async fn a_stream_that_can_not_go_on_is_a_failure_of_that_call_alone() {
    let mut script = Script::default().hello().on("tools/call", stream().text("id: 1\ndata:\n\n"));
    for _ in 0..5 {
        script = script.on("GET", status(500));
    }
    // A stream that has no events that are numbered can not.
    script = script.on("tools/call", stream().text(": hi\n\n")).on("tools/call", stream().text("id: 1\ndata:\n\n"));
    script = script.on("GET", status(404)).on("tools/call", answer(&json!({"content": []})));
    let ((first, second, third, last), _) = with(&script, &Anybody, async |session, _| {
        let session = session.unwrap();
        (call(&session, "a").await, call(&session, "b").await, call(&session, "c").await, call(&session, "d").await)
    })
    .await;
    assert_eq!(way(&first), Some((Way::Lost, "its answer broke off, and could not be had again".to_owned())));
    assert_eq!(way(&second), Some((Way::Lost, "its answer broke off".to_owned())));
    assert_eq!(
        way(&third),
        Some((Way::Lost, "its answer broke off, and asking for the rest gives HTTP 404".to_owned()))
    );
    assert_eq!(last, Ok(json!({"content": []})));
    assert_eq!(script.waited(), [1000, 2000, 4000, 8000, 16000, 1000]);
}

#[tokio::test]
async fn hello_and_what_reads_is_tried_again_and_a_call_never_is() {
    let script = Script::default()
        .unreachable("initialize", true)
        .on("initialize", status(503))
        .hello()
        .on("tools/list", status(502))
        .on("tools/list", answer(&json!({"tools": []})))
        .on("tools/call", status(502))
        .on("tools/call", status(429).text("later\u{7}"))
        .unreachable("tools/call", true)
        .unreachable("tools/call", false);
    let (calls, _) = with(&script, &Anybody, async |session, _| {
        let session = session.unwrap();
        assert_eq!(session.tools().await, Ok((Vec::new(), Vec::new())));
        let mut calls = Vec::new();
        for _ in 0..4 {
            calls.push(way(&call(&session, "a").await).unwrap());
        }
        calls
    })
    .await;
    assert_eq!(script.waited(), [250, 1000, 250]);
    let expected = [
        (Way::Lost, "it answers with HTTP 502"),
        (Way::Refused, "it answers with HTTP 429 and \"later\\u0007\""),
        (Way::Lost, "nobody is there"),
        (Way::Refused, "nobody is there"),
    ];
    assert_eq!(calls, expected.map(|(way, why)| (way, why.to_owned())));
}

#[tokio::test]
async fn a_server_that_is_not_there_says_why() {
    let mut script = Script::default();
    for _ in 0..3 {
        script = script.unreachable("initialize", true);
    }
    let (failure, _) = with(&script, &Anybody, async |session, _| session.err()).await;
    assert_eq!(failure.map(|failure| failure.to_string()).as_deref(), Some("nobody is there"));
}

#[tokio::test]
async fn a_session_that_is_forgotten_ends_the_connection_and_what_waited_for_it_was_not_carried_out() {
    for reply in [
        status(404),
        status(400).text(
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid Session ID"},"id":null}"#,
        ),
    ] {
        let gate = Rc::new(Notify::new());
        let slow = stream().then(Bring::After(Rc::clone(&gate))).result(None, &json!({"content": []}));
        let script = Script::default().hello().on("tools/call", slow).on("tools/call", reply);
        let ((slow, gone, more), ended) = with(&script, &Anybody, async |session, _| {
            let session = session.unwrap();
            let rest = async {
                let gone = call(&session, "b").await;
                let more = call(&session, "c").await;
                gate.notify_one();
                (gone, more)
            };
            let (slow, (gone, more)) = tokio::join!(call(&session, "a"), rest);
            session.ended().await;
            (slow, gone, more)
        })
        .await;
        assert_eq!(ended, Ended::Expired);
        assert_eq!(slow, Ok(json!({"content": []})), "what is under way ends as it does");
        for gone in [gone, more] {
            assert_eq!(way(&gone).map(|(way, _)| way), Some(Way::Expired), "{gone:?}");
        }
        assert_eq!(script.of("tools/call").len(), 2, "nothing more is sent");
        assert!(script.of("DELETE").is_empty());
    }
}

#[tokio::test]
async fn a_refusal_is_what_the_server_says_or_its_status() {
    let script = Script::default()
        .hello()
        .on(
            "tools/call",
            status(400).text(r#"{"jsonrpc":"2.0","error":{"code":-32602,"message":"no such tool"},"id":null}"#),
        )
        .on("tools/call", status(403).text("<html>no"))
        .on("tools/call", status(200).with("content-type", "text/html").text("<html>"))
        .on("tools/call", status(202))
        .on("tools/call", status(200).with("content-type", "application/json").text("{}"));
    let (calls, _) = with(&script, &Anybody, async |session, _| {
        let session = session.unwrap();
        let mut calls = Vec::new();
        for _ in 0..5 {
            calls.push(call(&session, "a").await.unwrap_err().to_string());
        }
        calls
    })
    .await;
    insta::assert_snapshot!(calls.join("\n"));
}

#[tokio::test]
async fn what_is_cancelled_is_told_and_its_connection_closed() {
    let reply = stream().then(Bring::Never);
    let dropped = Rc::clone(&reply.dropped);
    let script = Script::default().hello().on("tools/call", reply).on("notifications/cancelled", status(202));
    with(&script, &Anybody, async |session, _| {
        let session = session.unwrap();
        let running = session.call("slow", serde_json::Map::new()).await.unwrap();
        let given = running.answer(forever, tokio::task::yield_now(), |_| {}).await;
        assert_eq!(given, Err(Failure::Cancelled));
        dropped.notified().await;
        while script.of("notifications/cancelled").is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_was_said_last_is_sent_before_the_connection_ends() {
    let script = Script::default()
        .hello()
        .on("tools/call", stream().then(Bring::Never))
        .on("notifications/cancelled", status(202));
    let (closing, closed) = tokio::sync::oneshot::channel::<()>();
    let (teller, _told) = told();
    let (wire, end) = wire(teller.clone());
    let identity =
        Identity { name: "atoll".to_owned(), version: "1".to_owned(), root: "/w".to_owned(), answers: false };
    let endpoint = endpoint();
    let acting = async {
        let session = Session::open(wire, identity, teller).await.unwrap();
        let running = session.call("slow", serde_json::Map::new()).await.unwrap();
        let given = running.answer(forever, tokio::task::yield_now(), |_| {}).await;
        // Nobody waits for what is sent.
        closing.send(()).unwrap();
        given
    };
    let done = async {
        let _ = closed.await;
    };
    let (given, ended) = tokio::join!(acting, serve(&script, &Anybody, &endpoint, end, done));
    assert_eq!((given, ended), (Err(Failure::Cancelled), Ended::Unneeded));
    let asked = script.asked();
    assert_eq!(&asked[asked.len() - 2..], ["notifications/cancelled", "DELETE"], "{asked:?}");
}

#[tokio::test]
async fn what_a_server_tells_by_itself_is_heard_and_asked_for_again() {
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
        "serverInfo": {"name": "script", "version": "1"}});
    let script = Script::default()
        .on("initialize", stream().result(None, &result))
        .on("GET", stream().message(Some("7"), &changed))
        .on("GET", stream().message(None, &changed).then(Bring::Never))
        .ready();
    let ((), ended) = with(&script, &Anybody, async |session, _| {
        let session = session.unwrap();
        session.changes().tools.notified().await;
        session.changes().tools.notified().await;
    })
    .await;
    assert_eq!(ended, Ended::Unneeded);
    assert_eq!(header(&script.of("GET")[1], "last-event-id"), Some("7"));
    assert_eq!(header(&script.of("GET")[1], "mcp-protocol-version"), Some("2025-11-25"));
    assert!(script.of("DELETE").is_empty(), "there is no session to forget");
}

#[tokio::test]
async fn a_server_of_old_is_spoken_to_as_it_was_then() {
    let gate = Rc::new(Notify::new());
    let result = json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
        "serverInfo": {"name": "old", "version": "1"}});
    let script = Script::default()
        .on("initialize", status(405))
        .on(
            "GET",
            stream()
                .text("event: endpoint\ndata: /messages?session=1\n\n")
                .message(None, &json!({"jsonrpc": "2.0", "id": 0, "result": result}))
                .then(Bring::After(Rc::clone(&gate)))
                .message(None, &json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}}))
                .then(Bring::After(Rc::clone(&gate))),
        )
        .on("initialize", status(202))
        .on("notifications/initialized", status(202))
        .on("tools/call", status(202));
    let (given, ended) = with(&script, &Anybody, async |session, _| {
        let session = session.unwrap();
        let opening = async {
            while script.of("tools/call").is_empty() {
                tokio::task::yield_now().await;
            }
            gate.notify_one();
        };
        let (given, ()) = tokio::join!(call(&session, "a"), opening);
        gate.notify_one();
        session.ended().await;
        given
    })
    .await;
    assert_eq!((given, ended), (Ok(json!({"content": []})), Ended::Dropped));
    for request in script.of("tools/call") {
        assert_eq!(request.url, "http://127.0.0.1:1/messages?session=1");
    }
}

#[tokio::test]
async fn a_server_of_old_does_not_send_us_elsewhere() {
    let script = Script::default()
        .on("initialize", status(404).text("nothing here"))
        .on("GET", stream().text("event: endpoint\ndata: http://evil.example/messages\n\n").then(Bring::Never));
    let (failure, _) = with(&script, &Anybody, async |session, _| session.err()).await;
    assert_eq!(
        failure.map(|failure| failure.to_string()).as_deref(),
        Some("it answers with HTTP 404 and \"nothing here\"")
    );
}

/// Who has a new key each time.
#[derive(Default)]
struct Keys {
    refused: RefCell<Vec<Refused>>,
    gives_up: bool,
}

impl Access for Keys {
    fn headers(&self) -> LocalBoxFuture<'_, Result<Vec<(String, String)>, String>> {
        let key = format!("Bearer {}", self.refused.borrow().len());
        Box::pin(std::future::ready(Ok(vec![("authorization".to_owned(), key)])))
    }

    fn refused<'a>(&'a self, refused: &'a Refused) -> LocalBoxFuture<'a, Verdict> {
        self.refused.borrow_mut().push(refused.clone());
        let verdict = if self.gives_up { Verdict::SignIn("sign in".to_owned()) } else { Verdict::Again };
        Box::pin(std::future::ready(verdict))
    }
}

#[tokio::test]
async fn who_asks_is_said_anew_when_it_is_not_believed_and_not_for_ever() {
    let refusal = || status(401).with("www-authenticate", "Bearer error=\"invalid_token\"");
    let keys = Keys::default();
    let script = Script::default()
        .on("initialize", refusal())
        .hello()
        .on("tools/call", refusal())
        .on("tools/call", refusal())
        .on("tools/call", refusal())
        .on("tools/call", refusal());
    let (given, _) = with(&script, &keys, async |session, _| call(&session.unwrap(), "a").await).await;
    assert_eq!(way(&given), Some((Way::Refused, "it answers with HTTP 401".to_owned())));
    let keys_sent: Vec<String> =
        script.of("tools/call").iter().map(|request| header(request, "authorization").unwrap().to_owned()).collect();
    assert_eq!(keys_sent, ["Bearer 1", "Bearer 2", "Bearer 3", "Bearer 4"]);
    let before: Vec<u32> = keys.refused.borrow().iter().map(|refused| refused.before).collect();
    assert_eq!(before, [0, 0, 1, 2]);
    assert_eq!(keys.refused.borrow()[0].challenges, ["Bearer error=\"invalid_token\""]);

    let keys = Keys { gives_up: true, ..Keys::default() };
    let script = Script::default().on("initialize", refusal());
    let (failure, _) = with(&script, &keys, async |session, _| session.err()).await;
    assert_eq!(failure, Some(Failure::OnTheWay { way: Way::SignIn, why: "sign in".to_owned() }));
}

#[tokio::test]
async fn without_sessions_each_request_says_for_itself_what_it_is() {
    let found = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete",
        "ttlMs": 0, "cacheScope": "private"});
    let schema = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let wrong = json!({"type": "object", "properties": {"n": {"type": "number", "x-mcp-header": "N"}}});
    let listed = json!({"tools": [{"name": "a", "inputSchema": schema}, {"name": "b", "inputSchema": wrong}],
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private"});
    let script = Script::default()
        .on("server/discover", answer(&found))
        .on("tools/list", answer(&listed))
        .on("tools/call", answer(&json!({"content": [], "resultType": "complete"})));
    let (tools, ended) = greeted(Era::Stateless, &script, &Anybody, async |session, _| {
        let session = session.unwrap();
        assert!(session.is_stateless());
        let (tools, strange) = session.tools().await.unwrap();
        let arguments = json!({"region": "eu"}).as_object().cloned().unwrap();
        let running = session.call("a", arguments).await.unwrap();
        running.answer(forever, forever(), |_| {}).await.unwrap();
        (tools.len(), strange)
    })
    .await;
    assert_eq!((tools.0, ended), (1, Ended::Unneeded), "a tool that can not be called is left out");
    assert!(tools.1[0].contains("the tool \"b\""), "{:?}", tools.1);
    assert_eq!(script.asked(), ["server/discover", "tools/list", "tools/call"]);
    for (what, request) in script.requests.borrow().iter() {
        assert_eq!(header(request, "mcp-protocol-version"), Some("2026-07-28"), "{what}");
        assert_eq!(header(request, "mcp-method"), Some(what.as_str()));
        let of_call = (what == "tools/call").then_some(("a", "eu"));
        let said = header(request, "mcp-name").zip(header(request, "mcp-param-region"));
        assert_eq!(said, of_call);
    }
}
