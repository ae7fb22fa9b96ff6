//! The adapter for MCP servers, with servers at an address.

use std::{
    net::TcpListener,
    process::{Child, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};

use crate::common::{
    mcp::Place,
    server::{Gate, Reply, Request, Server, Step},
    text_of, until,
};

/// What a request asks, or how it does.
fn asked(request: &Request) -> String {
    let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    match message["method"].as_str() {
        Some(method) => method.to_owned(),
        None => request.line.split(' ').next().unwrap_or_default().to_owned(),
    }
}

fn result(request: &Request, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": result})
}

fn answer(request: &Request, given: &Value, headers: &[(&str, &str)]) -> Reply {
    let mut all = vec![("content-type", "application/json")];
    all.extend_from_slice(headers);
    Reply::status(200, &all, &result(request, given).to_string())
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// A server of a few tools that does as the protocol says, where `other` has nothing else to say.
fn server(other: impl Fn(&str, &Request) -> Option<Reply> + Send + Sync + 'static) -> Server {
    Server::answering(move |_, request| {
        let what = asked(request);
        if let Some(reply) = other(&what, request) {
            return reply;
        }
        let tool = |name: &str| json!({"name": name, "description": format!("It is {name}."), "inputSchema": {"type": "object"}});
        match what.as_str() {
            "initialize" => {
                let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "scripted", "version": "1"}});
                answer(request, &hello, &[("mcp-session-id", "session-1")])
            }
            "notifications/initialized" | "notifications/cancelled" => Reply::status(202, &[], ""),
            "tools/list" => answer(request, &json!({"tools": [tool("one"), tool("two")]}), &[]),
            "tools/call" => answer(request, &text(request.json()["params"]["name"].as_str().unwrap()), &[]),
            "DELETE" => Reply::status(204, &[], ""),
            _ => Reply::status(405, &[], ""),
        }
    })
}

fn place(server: &Server) -> Place {
    Place::with(&json!({"far": {"url": format!("{}/mcp", server.origin()), "headers": {"X-Key": "k"}, "timeout": 10}}))
}

#[test]
fn a_server_at_an_address_is_called_in_a_session_that_is_ended() {
    let server = server(|_, _| None);
    let record = place(&server).call("mcp__far__one", &json!({}));
    assert_eq!((text_of(&record["content"]).as_str(), &record["isError"]), ("one", &json!(false)), "{record:#}");
    let requests = server.requests();
    let of = |what: &str| requests.iter().filter(|request| asked(request) == what).count();
    let all = ["initialize", "notifications/initialized", "GET", "tools/list", "tools/call", "DELETE"];
    assert_eq!(all.map(of), [1, 1, 1, 1, 1, 1], "{requests:#?}");
    for request in &requests {
        assert_eq!(request.header("x-key"), Some("k"));
        let is_first = asked(request) == "initialize";
        assert_eq!(request.header("mcp-session-id"), (!is_first).then_some("session-1"));
        assert_eq!(request.header("mcp-protocol-version"), (!is_first).then_some("2025-11-25"));
    }
}

#[test]
fn calls_run_beside_each_other_and_a_stream_that_breaks_off_goes_on() {
    let server = server(|what, request| match (what, request.header("last-event-id")) {
        // A stream whose end comes before the answer; what follows is asked for by the event it ended with.
        ("tools/call", _) if request.json()["params"]["name"] == "two" => {
            let id = request.json()["id"].clone();
            Some(Reply::stream().send(format!("id: {id}\nretry: 10\ndata:\n\n")))
        }
        ("GET", Some(id)) => {
            let answer = json!({"jsonrpc": "2.0", "id": id.parse::<u64>().unwrap(), "result": text("later")});
            Some(Reply::stream().event(&answer))
        }
        _ => None,
    });
    let gave = place(&server).script(
        "const calls = [];
         for (let at = 0; at < 40; at++) calls.push(at % 2 ? tools.mcp__far__one({}) : tools.mcp__far__two({}));
         const texts = (await Promise.all(calls)).map((result) => result.content[0].text);
         return [texts.filter((text) => text === 'one').length, texts.filter((text) => text === 'later').length].join();",
    );
    assert_eq!(gave.trim(), "20,20");
}

#[test]
fn a_session_that_is_forgotten_is_begun_anew_and_the_call_sent_once_more() {
    let (sessions, calls) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let carried_out = Arc::clone(&calls);
    let server = server(move |what, request| match what {
        "initialize" => {
            let name = format!("session-{}", sessions.fetch_add(1, Ordering::Relaxed));
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "scripted", "version": "1"}});
            Some(answer(request, &hello, &[("mcp-session-id", &name)]))
        }
        "tools/call" if request.header("mcp-session-id") == Some("session-0") => {
            Some(Reply::status(404, &[("content-type", "text/plain")], "no such session"))
        }
        "tools/call" => {
            carried_out.fetch_add(1, Ordering::Relaxed);
            None
        }
        _ => None,
    });
    let gave = place(&server).script(
        "const many = await Promise.all([tools.mcp__far__one({}), tools.mcp__far__two({}), tools.mcp__far__one({})]);
         return many.map((result) => result.content[0].text).join();",
    );
    assert_eq!((gave.trim(), calls.load(Ordering::Relaxed)), ("one,two,one", 3));
}

#[test]
fn what_fails_is_said_and_a_call_is_never_sent_again() {
    let is_down = Arc::new(AtomicBool::new(false));
    let down = Arc::clone(&is_down);
    let server = server(move |what, request| match what {
        // The first hello comes too early.
        "initialize" if !down.swap(true, Ordering::Relaxed) => Some(Reply::status(503, &[], "")),
        "tools/call" if request.json()["params"]["name"] == "one" => Some(Reply::status(500, &[], "it broke")),
        "tools/call" => {
            let much = "x".repeat(17 << 20);
            Some(answer(request, &text(&much), &[]))
        }
        _ => None,
    });
    let place = place(&server);
    let (one, two) = (place.call("mcp__far__one", &json!({})), place.call("mcp__far__two", &json!({})));
    let said = [text_of(&one["content"]), text_of(&two["content"])];
    assert!(
        said[0].contains("it answers with HTTP 500 and \"it broke\"") && said[0].contains("is not known"),
        "{said:?}"
    );
    assert!(said[1].contains("its answer is longer than 16384 KiB"), "{said:?}");
    let requests = server.requests();
    let names = requests.iter().filter(|request| asked(request) == "tools/call");
    let names: Vec<Value> = names.map(|request| request.json()["params"]["name"].clone()).collect();
    assert_eq!(names, ["one", "two"]);
    let hellos = requests.iter().filter(|request| asked(request) == "initialize").count();
    assert_eq!(hellos, 3, "once in vain, and once for each of the two");
}

#[test]
fn a_call_that_takes_too_long_is_cancelled_and_its_connection_closed() {
    let closed = Gate::default();
    let gate = closed.clone();
    let server =
        server(move |what, _| (what == "tools/call").then(|| Reply::stream().then(Step::UntilClosed(gate.clone()))));
    let place = Place::with(&json!({"far": {"url": server.origin(), "timeout": 4}}));
    let record = place.call("mcp__far__one", &json!({}));
    assert!(text_of(&record["content"]).contains("no answer and no progress for 4 s"), "{record:#}");
    closed.wait();
    assert_eq!(server.requests().iter().filter(|request| asked(request) == "notifications/cancelled").count(), 1);
}

#[test]
fn a_redirect_is_followed_without_what_says_who_asks() {
    let target = Arc::new(server(|_, _| None));
    let to = format!("{}/moved", target.origin());
    let first = Server::answering(move |_, _| Reply::status(307, &[("location", &to)], ""));
    let url = format!("{}/mcp", first.origin());
    let place = Place::with(&json!({"far": {"url": url, "headers": {"Authorization": "Bearer secret"}}}));
    assert_eq!(text_of(&place.call("mcp__far__two", &json!({}))["content"]), "two");
    assert!(first.requests().iter().all(|request| request.header("authorization") == Some("Bearer secret")));
    let requests = target.requests();
    assert!(!requests.is_empty() && requests.iter().all(|request| request.header("authorization").is_none()));
}

#[test]
fn the_key_of_a_provider_goes_where_the_users_own_file_says_and_nowhere_else() {
    const KEY: &str = "sk-5eed-of-a-provider";
    let (far, behind) = (server(|_, _| None), server(|_, _| None));
    let to = format!("{}/mcp", behind.origin());
    let redirecting = Server::answering(move |_, _| Reply::status(307, &[("location", &to)], ""));
    let other = server(|_, _| None);
    let entry = |server: &Server| json!({"url": format!("{}/mcp", server.origin()), "auth": {"provider": "mock"}});
    let place = Place::with(&json!({
        "far": entry(&far), "moved": entry(&redirecting),
        "none": {"url": format!("{}/mcp", other.origin()), "auth": {"provider": "nobody"}},
        // What names a secret in a file is only text, and is not sent.
        "named": {"url": format!("{}/mcp", other.origin()), "headers": {"X-Key": "{{secret:provider/mock}}"}},
    }));
    place.sandbox.home_file("models.json", json!({"providers": {"mock": {"apiKey": "$MOCK_KEY"}}}).to_string());
    let call = |tool: &str| {
        let done = place
            .atoll()
            .env("MOCK_KEY", KEY)
            .env("ATOLL_LOG", "trace")
            .args(["tool", "call", tool, "{}", "--json"])
            .run();
        assert!(!done.stdout.contains(KEY) && !done.stderr.contains(KEY), "{done:#?}");
        text_of(&done.json()["content"])
    };
    assert_eq!(call("mcp__far__one"), "one");
    let expected = format!("Bearer {KEY}");
    assert!(far.requests().iter().all(|request| request.header("authorization") == Some(&expected)));
    call("mcp__moved__one");
    assert!(redirecting.requests().iter().all(|request| request.header("authorization") == Some(&expected)));
    assert!(behind.requests().iter().all(|request| request.header("authorization").is_none()));
    let done = place.atoll().env("MOCK_KEY", KEY).args(["mcp", "list"]).run();
    assert!(done.stdout.contains("there is no secret provider/nobody"), "{done:#?}");
    assert!(done.stdout.contains("its header x-key names a secret, and only \"auth\" sends one"), "{done:#?}");
    assert!(other.requests().is_empty(), "{:#?}", other.requests());
    let kept = place.sandbox.atoll_home();
    for file in ["audit.log", "logs/mcp.log"] {
        let text = std::fs::read_to_string(kept.join(file)).unwrap();
        assert!(!text.contains(KEY), "{file}: {text}");
    }
}

#[test]
fn what_can_not_be_reached_costs_nobody_but_who_asks_for_it() {
    // Nobody listens there any more.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = server(|_, _| None);
    let place = Place::with(&json!({
        "far": {"url": format!("{}/mcp", server.origin())},
        "gone": {"url": format!("http://127.0.0.1:{port}/mcp")},
        "page": {"url": format!("{}/mcp", Server::answering(|_, _| Reply::status(200, &[("content-type", "text/html")], "<p>")).origin())},
    }));
    assert_eq!(text_of(&place.call("mcp__far__one", &json!({}))["content"]), "one");
    let done = place.atoll().env("ATOLL_LOG", "info").args(["tool", "list"]).run().ok();
    for said in ["the server gone: ", "the server page: its answer is no message: HTTP 200 with \"text/html\""] {
        assert!(done.stderr.contains(said), "{said}: {}", done.stderr);
    }
}

/// The server of those who wrote the protocol, at an address.
struct Everything {
    child: Child,
    port: u16,
}

impl Everything {
    fn start(folder: &std::path::Path, transport: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let program = folder.join("node_modules/.bin/mcp-server-everything");
        let mut node = std::process::Command::new("node");
        node.arg(program).arg(transport).env("PORT", port.to_string()).stdin(Stdio::null()).stdout(Stdio::null());
        let child = node.stderr(Stdio::null()).spawn().unwrap();
        until("the server listens", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
        Self { child, port }
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_of_others_is_had_by_both_transports() {
    let test = "a_server_of_others_is_had_by_both_transports";
    let Some(folder) = crate::mcp_servers::folder(test) else { return };
    for (transport, path) in [("streamableHttp", "mcp"), ("sse", "sse")] {
        let everything = Everything::start(&folder, transport);
        let place = Place::with(&json!({"far": {"url": format!("http://127.0.0.1:{}/{path}", everything.port)}}));
        let gave = place.script(
            "const text = (result) => result.content.map((piece) => piece.text ?? piece.type).join(' ');
             const many = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map((b) => tools.mcp__far__get_sum({a: 1, b})));
             const weather = await tools.mcp__far__get_structured_content({location: 'Chicago'});
             const image = await tools.mcp__far__get_tiny_image({});
             const slow = await tools.mcp__far__trigger_long_running_operation({duration: 1, steps: 2});
             return {
                 echo: text(await tools.mcp__far__echo({message: 'hello'})),
                 sums: many.map(text).filter((sum) => sum.includes('is')).length,
                 weather: typeof weather.structuredContent.temperature,
                 image: image.content.some((piece) => piece.type === 'image'),
                 slow: text(slow).includes('completed'),
             };",
        );
        let gave: Value = serde_json::from_str(gave.trim()).unwrap();
        let expected = json!({"echo": "Echo: hello", "sums": 8, "weather": "number", "image": true, "slow": true});
        assert_eq!(gave, expected, "{transport}");
    }
}
