use std::time::Duration;

use serde_json::json;

use super::*;
use crate::wire::{Line, ProgramEnd, Wire, wire};

/// A server that a test plays by hand.
struct Server {
    end: ProgramEnd,
}

impl Server {
    async fn line(&mut self) -> Value {
        let line = self.end.to_program.recv().await.expect("the client sends something");
        serde_json::from_slice(&line).expect("what the client sends is JSON")
    }

    /// The next request of this method; what it is given.
    async fn asked(&mut self, method: &str) -> (Value, Value) {
        loop {
            let line = self.line().await;
            if line["method"] == method {
                return (line["id"].clone(), line["params"].clone());
            }
        }
    }

    async fn print(&self, text: &str) {
        self.end.from_program.send(Line::Whole(text.as_bytes().to_vec())).await.expect("the client listens");
    }

    async fn answer(&self, id: &Value, result: Value) {
        self.print(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()).await;
    }

    async fn tell(&self, method: &str, params: Value) {
        self.print(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()).await;
    }

    async fn hello(&mut self, revision: &str) {
        let (id, params) = self.asked("initialize").await;
        assert_eq!(params["protocolVersion"], "2025-11-25");
        assert_eq!(params["capabilities"], json!({"roots": {}}));
        assert_eq!(params["clientInfo"], json!({"name": "atoll", "version": "1"}));
        let capabilities = json!({"tools": {"listChanged": true}});
        let info = json!({"name": "by hand", "version": "2"});
        let result = json!({"protocolVersion": revision, "capabilities": capabilities, "serverInfo": info,
            "instructions": "Be kind."});
        self.answer(&id, result).await;
    }
}

fn identity() -> Identity {
    Identity { name: "atoll".to_owned(), version: "1".to_owned(), root: "/home/me/a b".to_owned(), answers: false }
}

fn pair() -> (Wire, Server, mpsc::Sender<Told>, mpsc::Receiver<Told>) {
    let (teller, told) = told();
    let (wire, end) = wire(teller.clone());
    (wire, Server { end }, teller, told)
}

async fn connected() -> (Session, Server, mpsc::Receiver<Told>) {
    let (wire, mut server, teller, told) = pair();
    let (session, ()) = tokio::join!(Session::open(wire, identity(), teller), server.hello("2025-06-18"));
    (session.expect("a connection"), server, told)
}

async fn forever() {
    std::future::pending::<()>().await;
}

fn object(value: &Value) -> serde_json::Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_connection_knows_its_server_and_says_where_the_user_works() {
    let (session, mut server, _told) = connected().await;
    assert_eq!((session.revision(), session.server()), ("2025-06-18", Some(("by hand", "2"))));
    assert_eq!((session.instructions(), session.has()), (Some("Be kind."), (true, false, false)));
    server.asked("notifications/initialized").await;
    server.print(r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#).await;
    let answer = server.line().await;
    assert_eq!(answer["result"], json!({"roots": [{"uri": "file:///home/me/a%20b", "name": "a b"}]}));
    server
        .print(r#"{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#)
        .await;
    assert_eq!(server.line().await["error"]["code"], -32601, "what is not there is said");
}

#[tokio::test]
async fn a_revision_that_nobody_knows_and_a_server_that_ends_are_failures() {
    let (wire, mut server, teller, _told) = pair();
    let (session, ()) = tokio::join!(Session::open(wire, identity(), teller), server.hello("1999-01-01"));
    let failure = session.err().map(|failure| failure.to_string()).unwrap_or_default();
    assert!(failure.contains("\"1999-01-01\"") && failure.contains("2025-11-25"), "{failure}");

    let (wire, server, teller, _told) = pair();
    drop(server);
    assert_eq!(Session::open(wire, identity(), teller).await.err(), Some(Failure::Closed));

    let (wire, mut server, teller, _told) = pair();
    let refuse = async {
        let (id, _) = server.asked("initialize").await;
        server
            .print(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "not\ntoday"}}).to_string())
            .await;
    };
    let (session, ()) = tokio::join!(Session::open(wire, identity(), teller), refuse);
    assert_eq!(session.err().map(|failure| failure.to_string()).as_deref(), Some("it says: not\u{fffd}today (-32000)"));
}

#[tokio::test]
async fn all_pages_are_read_and_a_tool_that_is_none_costs_no_other() {
    let (session, mut server, _told) = connected().await;
    let pages = async {
        let (id, params) = server.asked("tools/list").await;
        assert!(params["cursor"].is_null());
        let first = json!({"name": "a", "title": "A", "description": " Does a. ", "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true, "title": "other"}});
        server.answer(&id, json!({"tools": [first], "nextCursor": "2"})).await;
        let (id, params) = server.asked("tools/list").await;
        assert_eq!(params["cursor"], "2");
        let others = json!([
            {"name": "b", "inputSchema": {"properties": {"x": {}}, "$defs": {"X": {}}}, "annotations": {"title": "B"}},
            {"name": "c"}, {"name": "bad", "inputSchema": "x"}, {"inputSchema": {}}, {"name": "a"}, 7,
            {"name": "list", "inputSchema": {"type": "array"}},
        ]);
        server.answer(&id, json!({"tools": others, "nextCursor": ""})).await;
    };
    let (listed, ()) = tokio::join!(session.tools(), pages);
    let (tools, strange) = listed.expect("a list");
    let shown: Vec<_> =
        tools.iter().map(|tool| (tool.name.as_str(), tool.title.as_deref(), tool.description.as_str())).collect();
    assert_eq!(shown, [("a", Some("A"), "Does a."), ("b", Some("B"), ""), ("c", None, "")]);
    assert_eq!(tools[0].annotations["readOnlyHint"], true);
    assert_eq!(
        tools[1].input_schema.read(),
        object(&json!({"properties": {"x": {}}, "$defs": {"X": {}}, "type": "object"}))
    );
    assert_eq!(tools[2].input_schema.read(), object(&json!({"type": "object"})));
    insta::assert_snapshot!(strange.join("\n"));
}

#[tokio::test]
async fn a_list_without_end_ends() {
    let (session, mut server, _told) = connected().await;
    let pages = async {
        for _ in 0..1_000 {
            let (id, _) = server.asked("tools/list").await;
            server.answer(&id, json!({"tools": [], "nextCursor": "more"})).await;
        }
    };
    let (listed, ()) = tokio::join!(session.tools(), pages);
    assert!(listed.is_err_and(|failure| failure.to_string().contains("1000 pages")));
}

#[tokio::test]
async fn resources_are_listed_by_pages_and_read_without_what_is_not_for_a_model() {
    let (session, mut server, _told) = connected().await;
    let play = async {
        let (id, params) = server.asked("resources/list").await;
        assert_eq!(params["cursor"], "2");
        let shown = json!({"uri": "file:///a", "name": "a", "icons": [{"src": "x"}], "_meta": {}, "size": 3});
        let app = json!({"uri": "file:///b", "name": "b", "mimeType": "text/html;profile=mcp-app"});
        server.answer(&id, json!({"resources": [shown, app, {"uri": "ui://c", "name": "c"}], "nextCursor": "3"})).await;
        let (id, _) = server.asked("resources/templates/list").await;
        server.answer(&id, json!({"resourceTemplates": [{"uriTemplate": "file:///{x}", "name": "t"}]})).await;
        let (id, params) = server.asked("resources/read").await;
        assert_eq!(params["uri"], "file:///a");
        server.answer(&id, json!({"contents": [{"uri": "file:///a", "text": "abc"}]})).await;
        let (id, _) = server.asked("resources/read").await;
        server.answer(&id, json!({"none": 1})).await;
    };
    let ask = async {
        let resources = session.resources(Some("2")).await.expect("a list");
        assert_eq!(resources.items, [json!({"uri": "file:///a", "name": "a", "size": 3})]);
        assert_eq!(resources.next.as_deref(), Some("3"));
        let templates = session.resource_templates(None).await.expect("a list");
        assert_eq!((templates.items.len(), templates.next), (1, None));
        let contents = session.read_resource("file:///a").await.expect("what is in it");
        assert_eq!(contents, [json!({"uri": "file:///a", "text": "abc"})]);
        assert!(
            session.read_resource("file:///b").await.is_err_and(|failure| failure.to_string().contains("contents"))
        );
    };
    tokio::join!(ask, play);
}

#[tokio::test]
async fn calls_run_beside_each_other_and_each_gets_its_answer_whatever_is_in_it() {
    let (session, mut server, _told) = connected().await;
    let one = session.call("one", object(&json!({"a": 1}))).await.expect("sent");
    let two = session.call("two", object(&json!({}))).await.expect("sent");
    let play = async {
        let (first, params) = server.asked("tools/call").await;
        assert_eq!((&params["name"], &params["arguments"]), (&json!("one"), &json!({"a": 1})));
        let (second, params) = server.asked("tools/call").await;
        assert_eq!(params["name"], "two");
        let strange = json!({"content": [{"type": "hologram", "data": 1}], "structuredContent": [1.0, null], "x": 1});
        server.answer(&second, strange).await;
        server
            .print(&json!({"jsonrpc": "2.0", "id": first, "error": {"code": -32602, "message": "no"}}).to_string())
            .await;
    };
    let (one, two, ()) =
        tokio::join!(one.answer(forever, forever(), |_| {}), two.answer(forever, forever(), |_| {}), play);
    assert_eq!(one, Err(Failure::Refused { code: -32602, message: "no".to_owned() }));
    assert_eq!(
        two,
        Ok(json!({"content": [{"type": "hologram", "data": 1}], "structuredContent": [1.0, null], "x": 1}))
    );
}

#[tokio::test]
async fn who_answers_both_ways_at_once_has_failed() {
    let (session, mut server, _told) = connected().await;
    let call = session.call("one", object(&json!({}))).await.expect("sent");
    let play = async {
        let (id, _) = server.asked("tools/call").await;
        let error = json!({"code": -32000, "message": "no"});
        server.print(&json!({"jsonrpc": "2.0", "id": id, "result": null, "error": error}).to_string()).await;
    };
    let (answer, ()) = tokio::join!(call.answer(forever, forever(), |_| {}), play);
    assert_eq!(answer, Err(Failure::Refused { code: -32000, message: "no".to_owned() }));
}

#[tokio::test]
async fn progress_is_told_and_makes_patient() {
    let (session, mut server, _told) = connected().await;
    let running = session.call("slow", object(&json!({}))).await.expect("sent");
    let (mut steps, mut begun) = (Vec::new(), 0);
    let patience = || {
        begun += 1;
        // The third time is the last.
        let is_last = begun == 3;
        async move { if is_last { std::future::ready(()).await } else { forever().await } }
    };
    let play = async {
        let (id, params) = server.asked("tools/call").await;
        let token = params["_meta"]["progressToken"].clone();
        server.tell("notifications/progress", json!({"progressToken": token, "progress": 1, "total": 4})).await;
        server
            .tell("notifications/progress", json!({"progressToken": token, "progress": 2.5, "message": "half"}))
            .await;
        server.tell("notifications/progress", json!({"progressToken": 987, "progress": 3})).await;
        let (_, cancelled) = server.asked("notifications/cancelled").await;
        assert_eq!(cancelled["requestId"], id);
        assert_eq!(cancelled["reason"], "it took longer than it may");
    };
    let (answer, ()) = tokio::join!(running.answer(patience, forever(), |step| steps.push(step)), play);
    assert_eq!(answer, Err(Failure::Timeout));
    assert_eq!(
        steps,
        [
            Progress { done: 1.0, total: Some(4.0), message: None },
            Progress { done: 2.5, total: None, message: Some("half".to_owned()) },
        ]
    );
    assert!(session.watched.is_empty(), "nobody watches what has ended");
}

#[tokio::test]
async fn what_nobody_wants_is_cancelled_and_what_the_server_ends_is_closed() {
    let (session, mut server, _told) = connected().await;
    let running = session.call("a", object(&json!({}))).await.expect("sent");
    assert_eq!(running.answer(forever, std::future::ready(()), |_| {}).await, Err(Failure::Cancelled));
    let (_, cancelled) = server.asked("notifications/cancelled").await;
    assert_eq!(cancelled["reason"], "its result is not wanted any more");

    let running = session.call("b", object(&json!({}))).await.expect("sent");
    drop(server);
    assert_eq!(running.answer(forever, forever(), |_| {}).await, Err(Failure::Closed));
    session.ended().await;
    assert!(session.is_closed());
    assert_eq!(session.call("c", object(&json!({}))).await.err(), Some(Failure::Closed));
}

#[tokio::test]
async fn what_is_no_message_is_told_and_the_connection_goes_on() {
    let (session, mut server, mut told) = connected().await;
    server.print("Listening on stdio\u{1b}[2J").await;
    server.print("{\"jsonrpc\": \"2.0\"").await;
    server.end.from_program.send(Line::TooLong).await.expect("the client listens");
    server.tell("notifications/message", json!({"level": "warning", "logger": "db", "data": {"a": 1}})).await;
    server.tell("notifications/message", json!({"level": "info", "data": "text"})).await;
    server.tell("notifications/unheard_of", json!({})).await;
    // Several in one line, as two revisions have it.
    server.print(r#"[{"jsonrpc":"2.0","method":"notifications/tools/list_changed"},{"jsonrpc":"2.0","id":9,"method":"ping"}]"#).await;
    loop {
        let line = server.line().await;
        if line["id"] == 9 {
            assert_eq!(line["result"], json!({}));
            break;
        }
    }
    session.changes().tools.notified().await;
    let log = |level: &str, logger: Option<&str>, text: &str| Told::Log {
        level: level.to_owned(),
        logger: logger.map(str::to_owned),
        text: text.to_owned(),
    };
    let mut all = Vec::new();
    while let Ok(one) = told.try_recv() {
        all.push(one);
    }
    assert_eq!(
        all,
        [
            Told::Strange("printed what is no message: \"Listening on stdio\\u001b[2J\"".to_owned()),
            Told::Strange("printed what is no message: \"{\\\"jsonrpc\\\": \\\"2.0\\\"\"".to_owned()),
            Told::Strange("a message of more than 16 MiB was left out".to_owned()),
            log("warning", Some("db"), "{\"a\":1}"),
            log("info", None, "text"),
        ]
    );
}

#[tokio::test]
async fn a_flood_of_changes_is_one_change_and_a_flood_of_lines_holds_nothing_up() {
    let (session, mut server, mut told) = connected().await;
    for at in 0..3_000 {
        server.tell("notifications/tools/list_changed", json!({})).await;
        server.tell("notifications/message", json!({"level": "info", "data": at})).await;
    }
    server.print(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#).await;
    while server.line().await["id"] != 9 {}
    let changes = session.changes();
    changes.tools.notified().await;
    let again = tokio::time::timeout(Duration::from_millis(1), changes.tools.notified()).await;
    assert!(again.is_err(), "one permit, however often it was told");
    let mut count = 0;
    while told.try_recv().is_ok() {
        count += 1;
    }
    assert_eq!(count, WAITING);
    drop(session);
    assert_eq!(server.end.to_program.recv().await, None);
}

/// A connection whose client answers what it is asked.
async fn answering() -> (Session, Server) {
    let (wire, mut server, teller, _told) = pair();
    let hello = async {
        let (id, params) = server.asked("initialize").await;
        let expected = json!({"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}});
        assert_eq!(params["capabilities"], expected);
        server.answer(&id, json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}})).await;
        server.asked("notifications/initialized").await;
    };
    let (session, ()) = tokio::join!(Session::open(wire, Identity { answers: true, ..identity() }, teller), hello);
    (session.expect("a connection"), server)
}

#[tokio::test]
async fn what_a_server_asks_is_passed_on_as_it_is_and_so_is_the_answer() {
    let (session, mut server) = answering().await;
    // The fields are in an order that is not the alphabet's, and there is one of a kind that the library does not know.
    let elicit = r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"z":{"type":"string","x":1},"a":{"type":"boolean"}}}}}"#;
    let sample = r#"{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"Why?"}}],"maxTokens":5,"new":true}}"#;
    server.print(elicit).await;
    server.print(sample).await;
    let (first, second) = (session.asked().await.expect("a request"), session.asked().await.expect("a request"));
    let sent = |text: &str| serde_json::from_str::<Value>(text).expect("JSON")["params"].clone();
    assert_eq!(first.what, Asked::Elicit(sent(elicit)));
    let Asked::Elicit(params) = &first.what else { return };
    assert_eq!(
        params["requestedSchema"]["properties"].to_string(),
        r#"{"z":{"type":"string","x":1},"a":{"type":"boolean"}}"#
    );
    assert_eq!(second.what, Asked::Sample(sent(sample)));
    second.answer_with(std::future::ready(Err(Refusal::unwanted("no")))).await;
    assert_eq!(server.line().await, json!({"jsonrpc": "2.0", "id": 2, "error": {"code": -1, "message": "no"}}));
    first.answer_with(std::future::ready(Ok(json!({"action": "accept", "content": {"z": "x"}})))).await;
    let given = json!({"action": "accept", "content": {"z": "x"}});
    assert_eq!(server.line().await, json!({"jsonrpc": "2.0", "id": 1, "result": given}));
}

#[tokio::test]
async fn a_flood_of_questions_is_refused_and_a_question_that_is_not_wanted_is_dropped() {
    let (session, mut server) = answering().await;
    for id in 0..20 {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {"message": "x",
            "requestedSchema": {"type": "object", "properties": {}}}});
        server.print(&request.to_string()).await;
    }
    for _ in 0..4 {
        let refused = server.line().await;
        assert_eq!(refused["error"]["code"], -32603, "{refused}");
    }
    let ask = session.asked().await.expect("a request");
    server.tell("notifications/cancelled", json!({"requestId": 0, "reason": "never mind"})).await;
    // It would never end by itself.
    ask.answer_with(std::future::pending()).await;
}

#[tokio::test]
async fn pages_to_visit_first_are_known_and_prompts_are_listed_and_given() {
    let (session, mut server, _told) = connected().await;
    let play = async {
        let (id, _) = server.asked("tools/call").await;
        let page = json!({"mode": "url", "elicitationId": "1", "url": "https://a.example/x", "message": "Sign in."});
        let error = json!({"code": -32042, "message": "first", "data": {"elicitations": [page]}});
        server.print(&json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()).await;
        let (id, _) = server.asked("prompts/list").await;
        server.answer(&id, json!({"prompts": [{"name": "a"}, 7], "nextCursor": "2"})).await;
        let (id, params) = server.asked("prompts/list").await;
        assert_eq!(params["cursor"], "2");
        server
            .answer(
                &id,
                json!({"prompts": [{"name": "a"}, {"name": "b", "arguments": [{"name": "x", "required": true}]}]}),
            )
            .await;
        let (id, params) = server.asked("prompts/get").await;
        assert_eq!((&params["name"], &params["arguments"]), (&json!("b"), &json!({"x": "y"})));
        server.answer(&id, json!({"messages": []})).await;
    };
    let ask = async {
        let running = session.call("a", object(&json!({}))).await.expect("sent");
        let failure = running.answer(forever, forever(), |_| {}).await.expect_err("it is refused");
        assert!(matches!(&failure, Failure::NeedsPages(pages) if pages[0].host == "a.example"), "{failure}");
        let (prompts, strange) = session.prompts().await.expect("a list");
        assert_eq!(prompts.iter().map(|prompt| prompt.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(strange, ["a prompt without a name"]);
        assert_eq!(session.prompt("b", object(&json!({"x": "y"}))).await, Ok(json!({"messages": []})));
    };
    tokio::join!(ask, play);
}

/// A connection without a session, whose client answers what it is asked if `answers`.
async fn stateless(answers: bool) -> (Session, Server) {
    let (wire, mut server, teller, _told) = pair();
    let hello = async {
        let (id, _) = server.asked("server/discover").await;
        let found = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "prompts": {}},
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private"});
        server.answer(&id, found).await;
    };
    let opening = Session::open_in(Era::Stateless, wire, Identity { answers, ..identity() }, teller);
    let (session, ()) = tokio::join!(opening, hello);
    (session.expect("a connection"), server)
}

fn wanted(requests: Value, state: Option<&str>) -> Value {
    let mut wanted = json!({"resultType": "input_required"});
    if requests != json!({}) {
        wanted["inputRequests"] = requests;
    }
    if let Some(state) = state {
        wanted["requestState"] = json!(state);
    }
    wanted
}

/// What a round adds to a request.
fn added(params: &Value) -> (Value, Value) {
    (params["inputResponses"].clone(), params["requestState"].clone())
}

#[tokio::test]
async fn a_server_that_wants_to_know_more_is_asked_again_with_that_and_with_what_it_wants_back() {
    let (session, mut server) = stateless(true).await;
    let play = async {
        let (id, params) = server.asked("tools/call").await;
        assert_eq!(added(&params), (Value::Null, Value::Null));
        let form =
            json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {"z": {"type": "string"}}}});
        let requests =
            json!({"who": {"method": "elicitation/create", "params": form}, "where": {"method": "roots/list"}});
        server.answer(&id, wanted(requests, Some("s1"))).await;
        let (again, params) = server.asked("tools/call").await;
        assert_ne!(id, again, "it is a request of its own");
        assert_eq!(params["arguments"], json!({"x": 1}));
        let roots = json!({"roots": [{"uri": "file:///home/me/a%20b", "name": "a b"}]});
        let (responses, state) = added(&params);
        assert_eq!(state, "s1");
        assert_eq!(responses, json!({"who": {"action": "accept", "content": {"z": "me"}}, "where": roots}));
        // Nothing but what it wants back, and then nothing of the rounds before.
        server.answer(&again, wanted(json!({}), Some("s2"))).await;
        let (id, params) = server.asked("tools/call").await;
        assert_eq!(added(&params), (Value::Null, json!("s2")));
        server.answer(&id, wanted(json!({"where": {"method": "roots/list"}}), None)).await;
        let (id, params) = server.asked("tools/call").await;
        assert_eq!(added(&params), (json!({"where": roots}), Value::Null));
        server.answer(&id, json!({"content": [], "resultType": "complete"})).await;
        let (id, params) = server.asked("prompts/get").await;
        assert_eq!(added(&params), (Value::Null, Value::Null));
        server.answer(&id, wanted(json!({}), Some("p"))).await;
        let (id, params) = server.asked("prompts/get").await;
        assert_eq!(added(&params), (Value::Null, json!("p")));
        server.answer(&id, json!({"messages": [], "resultType": "complete"})).await;
    };
    let answer = async {
        let ask = session.asked().await.expect("a question");
        assert!(matches!(&ask.what, Asked::Elicit(params) if params["message"] == "Who?"), "{:?}", ask.what);
        ask.answer_with(std::future::ready(Ok(json!({"action": "accept", "content": {"z": "me"}})))).await;
    };
    let ask = async {
        let running = session.call("a", object(&json!({"x": 1}))).await.expect("sent");
        let given = running.answer(forever, forever(), |_| {}).await.expect("a result");
        assert_eq!(given["content"], json!([]));
        assert_eq!(session.prompt("p", object(&json!({}))).await.expect("a prompt")["messages"], json!([]));
    };
    tokio::join!(ask, answer, play);
}

#[tokio::test]
async fn rounds_end_and_what_nobody_can_answer_is_said() {
    let (session, mut server) = stateless(false).await;
    let failure = async |session: &Session| {
        let running = session.call("a", object(&json!({}))).await.expect("sent");
        running.answer(forever, forever(), |_| {}).await.expect_err("no result").to_string()
    };
    let endless = async {
        for _ in 0..rounds::MOST {
            let (id, _) = server.asked("tools/call").await;
            server.answer(&id, wanted(json!({}), Some("again"))).await;
        }
    };
    let (said, ()) = tokio::join!(failure(&session), endless);
    assert_eq!(said, "it wants to know more, 10 times in a row, and does not answer");
    for (requests, expected) in [
        (
            json!({"x": {"method": "elicitation/create", "params": {"message": "Who?",
            "requestedSchema": {"type": "object", "properties": {}}}}}),
            "elicitation/create answered first, and there is nobody to ask",
        ),
        (
            json!({"x": {"method": "files/delete", "params": {}}}),
            "\"files/delete\" answered first, which is not known here",
        ),
        (json!({}), "does not say what"),
    ] {
        let want = async {
            let (id, _) = server.asked("tools/call").await;
            server.answer(&id, wanted(requests, None)).await;
        };
        let (said, ()) = tokio::join!(failure(&session), want);
        assert!(said.contains(expected), "{said}");
    }
    // Not for a list.
    let want = async {
        let (id, _) = server.asked("tools/list").await;
        server.answer(&id, wanted(json!({}), Some("s"))).await;
    };
    let (tools, ()) = tokio::join!(session.tools(), want);
    assert!(tools.expect_err("no list").to_string().contains("does not allow for this"));
}
