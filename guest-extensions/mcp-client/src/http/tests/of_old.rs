//! The transport of old.

use std::rc::Rc;

use serde_json::json;
use tokio::sync::Notify;

use super::played::{Bring, Script, call, status, stream, with};
use crate::http::{Anybody, Ended};

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
