//! Servers with sessions.

use std::rc::Rc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::played::{Bring, Script, answer, call, endpoint, forever, header, status, stream, way, with};
use crate::{
    http::{Anybody, Ended, Way, serve},
    session::{Failure, Identity, Session, Told, told},
    wire::wire,
};

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
        .unreachable("tools/call", false)
        .unsent("tools/call");
    let (calls, _) = with(&script, &Anybody, async |session, _| {
        let session = session.unwrap();
        assert_eq!(session.tools().await, Ok((Vec::new(), Vec::new())));
        let mut calls = Vec::new();
        for _ in 0..5 {
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
        (Way::Refused, "nobody listens"),
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

/// What a server is told that ends each stream at once, and wants it to go on at once; and how long is waited each time.
async fn waits_of_streams(event: &str, streams: usize) -> (usize, Vec<u128>) {
    let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
        "serverInfo": {"name": "script", "version": "1"}});
    let mut script = Script::default().on("initialize", answer(&result)).on("notifications/initialized", status(202));
    for _ in 0..streams {
        script = script.on("GET", stream().text(event));
    }
    let script = script.on("GET", status(405)).on("tools/call", answer(&json!({"content": []})));
    with(&script, &Anybody, async |session, _| {
        let session = session.unwrap();
        // Nothing takes long here: what is to be asked is asked soon.
        for _ in 0..100 * streams {
            tokio::task::yield_now().await;
        }
        call(&session, "a").await.unwrap();
    })
    .await;
    (script.of("GET").len(), script.waited())
}

#[tokio::test]
async fn a_server_that_wants_to_be_asked_again_at_once_is_asked_after_a_moment() {
    let message = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let (asked, waited) = waits_of_streams(&format!("retry: 0\ndata: {message}\n\n"), 8).await;
    assert_eq!((asked, waited), (9, vec![250, 250, 250, 250, 1000, 1000, 1000, 1000]));
}

#[tokio::test]
async fn what_is_no_message_does_not_have_a_stream_go_on_for_ever() {
    for event in ["retry: 0\ndata: still here\n\n", "retry: 0\nid: 1\ndata:\n\n", ": nothing\n\n"] {
        let (asked, waited) = waits_of_streams(event, 20).await;
        assert_eq!((asked, waited.len()), (6, 5), "{event}");
    }
}
