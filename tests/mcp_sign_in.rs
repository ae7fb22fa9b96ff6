//! Signing in to MCP servers, with a server that signs its users in itself and gives each renewal once.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

use crate::common::{
    mcp::{Place, peer},
    server::{Reply, Request, Server},
    text_of, until,
};

/// What the server knows.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// How many tokens it has given.
    pub(crate) given: usize,
    /// How many of those it has taken back.
    revoked: usize,
    /// How long they last, in seconds.
    lasts: u64,
    /// How often it was asked for one with a renewal that was used before.
    pub(crate) misused: usize,
}

fn access(number: usize) -> String {
    format!("access-canary-{number}-7f3a-and-then-as-long-as-tokens-are")
}

fn renewal(number: usize) -> String {
    format!("renewal-canary-{number}-7f3a")
}

fn json_reply(status: u16, body: &Value) -> Reply {
    Reply::status(status, &[("content-type", "application/json")], &body.to_string())
}

/// A server of one tool, which lets in who has a token. What renews one does so once.
pub(crate) fn server(lasts: u64) -> (Server, Arc<Mutex<State>>) {
    let state = Arc::new(Mutex::new(State { lasts, ..State::default() }));
    let kept = Arc::clone(&state);
    let server = Server::answering(move |_, request| answer(&mut kept.lock().unwrap(), request));
    (server, state)
}

fn answer(state: &mut State, request: &Request) -> Reply {
    let origin = format!("http://{}", request.header("host").unwrap());
    let path = request.line.split(' ').nth(1).unwrap();
    let form = String::from_utf8_lossy(&request.body).into_owned();
    match path.split('?').next().unwrap() {
        "/.well-known/oauth-protected-resource/mcp" => json_reply(
            200,
            &json!({"resource": format!("{origin}/mcp"), "authorization_servers": [origin], "scopes_supported": ["all"]}),
        ),
        "/.well-known/oauth-authorization-server" => json_reply(
            200,
            &json!({"issuer": origin, "authorization_endpoint": format!("{origin}/authorize"),
                "token_endpoint": format!("{origin}/token"), "registration_endpoint": format!("{origin}/register"),
                "token_endpoint_auth_methods_supported": ["none"], "code_challenge_methods_supported": ["S256"]}),
        ),
        "/register" => json_reply(201, &json!({"client_id": "atoll-client"})),
        "/token" => {
            let renews = state.given > state.revoked && form.contains(&renewal(state.given));
            let is_good = form.contains("code=the-code") || renews;
            if !is_good {
                state.misused += 1;
                return json_reply(400, &json!({"error": "invalid_grant"}));
            }
            state.given += 1;
            json_reply(
                200,
                &json!({"access_token": access(state.given), "token_type": "Bearer", "expires_in": state.lasts,
                    "refresh_token": renewal(state.given)}),
            )
        }
        "/mcp" if request.line.starts_with("POST") => mcp(state, request),
        _ => Reply::status(404, &[], ""),
    }
}

fn mcp(state: &State, request: &Request) -> Reply {
    let mut good = (state.revoked + 1..=state.given).map(|number| format!("Bearer {}", access(number)));
    if !good.any(|good| request.header("authorization") == Some(&good)) {
        let challenge = "Bearer error=\"invalid_token\", scope=\"all\"";
        return Reply::status(401, &[("www-authenticate", challenge)], "");
    }
    let message = request.json();
    let result = match message["method"].as_str() {
        Some("initialize") => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "signed", "version": "1"}}),
        Some("tools/list") => {
            let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
            json!({"tools": Value::from(["one", "tells", "breaks"].map(tool).to_vec())})
        }
        // What it was told of who asks comes back, whole or where the text is cut.
        Some("tools/call") if message["params"]["name"] == "tells" => {
            let told = request.header("authorization").unwrap();
            json!({"content": [{"type": "text", "text": told}], "structuredContent": {"told": [told]}})
        }
        Some("tools/call") if message["params"]["name"] == "breaks" => {
            let at: usize = message["params"]["arguments"]["at"].as_u64().unwrap().try_into().unwrap();
            let told = format!("{}{}", "-".repeat(at), request.header("authorization").unwrap());
            return Reply::status(500, &[("content-type", "text/plain")], &told);
        }
        Some("tools/call") => json!({"content": [{"type": "text", "text": "you are in"}]}),
        _ => return Reply::status(202, &[], ""),
    };
    json_reply(200, &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

fn place(server: &Server) -> Place {
    Place::with(&json!({"far": {"url": format!("{}/mcp", server.origin()), "timeout": 20}}))
}

/// A field of a query, as a browser would read it.
pub(crate) fn field(url: &str, name: &str) -> String {
    let (_, query) = url.split_once('?').unwrap();
    let value = query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}="))).unwrap();
    value.replace("%3A", ":").replace("%2F", "/")
}

/// Opens a page on this machine; what it shows.
pub(crate) fn open(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut shown = String::new();
    stream.read_to_string(&mut shown).unwrap();
    shown
}

/// Signs in as a person does; what the program says.
fn sign_in(place: &Place) -> String {
    let login = place.atoll().args(["mcp", "login", "far"]).start();
    login.wait_for_output("curl 'ADDRESS'");
    let shown = login.wait_for_output("response_type=code");
    let page = shown.lines().find(|line| line.starts_with("http")).unwrap();
    let (redirect, state) = (field(page, "redirect_uri"), field(page, "state"));
    // What is not the way back does not count.
    let forged = open(&format!("{redirect}/other?code=evil&state={state}"));
    assert!(!forged.contains("can be closed"), "{forged}");
    let end = open(&format!("{redirect}?code=the-code&state={state}"));
    assert!(end.contains("this page can be closed"), "{end}");
    login.wait().ok().stdout
}

/// All that is kept in a folder, with where it is.
fn kept(folder: &Path, all: &mut Vec<(std::path::PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => kept(&entry.path(), all),
            kind if kind.is_file() => all.push((entry.path(), fs::read(entry.path()).unwrap_or_default())),
            _ => {}
        }
    }
}

#[test]
fn a_person_signs_in_and_out_and_what_lets_them_in_is_in_their_store_alone() {
    let (server, state) = server(3_600);
    let place = place(&server);
    let listed = place.atoll().args(["mcp", "list"]).run().code(1);
    assert!(listed.stdout.contains("atoll mcp login far"), "{listed:?}");
    assert!(sign_in(&place).contains("Signed in to far."));
    let called = place.atoll().env("ATOLL_LOG", "debug").args(["tool", "call", "mcp__far__one", "{}"]).run().ok();
    assert_eq!(called.stdout, "you are in\n");
    let again = place.atoll().args(["mcp", "login", "far"]).run().ok();
    assert!(again.stdout.contains("far lets you in as you are"), "{again:?}");

    let canary = access(1);
    assert!(!called.stderr.contains(&canary), "it is in no log");
    let mut all = Vec::new();
    kept(&place.sandbox.user_home(), &mut all);
    kept(&place.sandbox.work(), &mut all);
    let with: Vec<&std::path::PathBuf> = all
        .iter()
        .filter(|(_, bytes)| {
            String::from_utf8_lossy(bytes).contains(&canary) || bytes.windows(8).any(|b| b == b"the-code")
        })
        .map(|(path, _)| path)
        .collect();
    let store = place.sandbox.atoll_home().join("store");
    assert!(!with.is_empty() && with.iter().all(|path| path.starts_with(&store)), "{with:?}");
    for path in with {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o077, 0, "{path:?}");
    }

    let out = place.atoll().args(["mcp", "logout", "far"]).run().ok();
    assert!(out.stdout.contains("Signed out of far."), "{out:?}");
    let gone = place.atoll().args(["mcp", "logout", "far"]).run().ok();
    assert!(gone.stdout.contains("not signed in to far"), "{gone:?}");
    place.atoll().args(["tool", "call", "mcp__far__one", "{}"]).run().code(1);
    assert_eq!(state.lock().unwrap().given, 1);
}

#[test]
fn what_lets_us_in_is_not_said_though_the_server_says_it() {
    let (server, _) = server(3_600);
    let place = place(&server);
    sign_in(&place);
    let called = place.atoll().args(["tool", "call", "mcp__far__tells", "{}", "--json"]).run().ok();
    assert!(called.stdout.contains("[secret]") && !called.stdout.contains("canary"), "{called:?}");
    let gave = place.script("return await tools.mcp__far__tells({})");
    assert!(gave.contains("[secret]") && !gave.contains("canary"), "{gave}");
    // However much of it is left where the text is cut, more than half of it is never there.
    let half = &access(1)[..access(1).len() / 2 + 1];
    for at in (0..400).step_by(7) {
        let failed = place.call("mcp__far__breaks", &json!({"at": at}));
        assert!(!failed.to_string().contains(half), "{at}: {failed:#}");
    }
    let log = fs::read_to_string(place.sandbox.atoll_home().join("logs/mcp.log")).unwrap_or_default();
    assert!(!log.contains(half), "{log}");
}

#[test]
fn what_ends_is_renewed_once_however_many_need_it() {
    // Each token is over as soon as it is there: every request needs a new one, and each renewal is good once.
    let (server, state) = server(1);
    let place = place(&server);
    sign_in(&place);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let record = place.call("mcp__far__one", &json!({}));
                assert_eq!(text_of(&record["content"]), "you are in", "{record:#}");
            });
        }
    });
    let state = state.lock().unwrap();
    assert_eq!(state.misused, 0, "{state:?}");
    assert!(state.given > 3, "{state:?}");
}

#[test]
fn who_is_thrown_out_is_told_to_sign_in_again() {
    let (server, state) = server(3_600);
    let place = place(&server);
    sign_in(&place);
    // What was given is taken back, and so is what renews it.
    state.lock().unwrap().revoked = 1;
    let listed = place.atoll().args(["mcp", "list"]).run().code(1);
    assert!(listed.stdout.contains("its sign-in has ended") && listed.stdout.contains("mcp login far"), "{listed:?}");
    assert_eq!(state.lock().unwrap().misused, 1, "what is not good any more is shown once");
    place.atoll().args(["mcp", "list"]).run().code(1);
    assert_eq!(state.lock().unwrap().misused, 1);
    sign_in(&place);
    assert_eq!(text_of(&place.call("mcp__far__one", &json!({}))["content"]), "you are in");
}

#[test]
fn what_is_not_signed_in_to_says_why() {
    let place = Place::with(&json!({
        "program": {"command": peer()},
        "keyed": {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer x"}},
    }));
    let said = |name: &str| place.atoll().args(["mcp", "login", name]).run().stderr;
    assert!(said("program").contains("it is a program"), "{}", said("program"));
    assert!(said("keyed").contains("has a header \"Authorization\""), "{}", said("keyed"));
    assert!(said("keyd").contains("is \"keyed\" meant?"), "{}", said("keyd"));
}

#[test]
fn a_session_that_runs_notices_that_somebody_has_signed_in() {
    let (server, _) = server(3_600);
    let place = place(&server);
    let listed = place.atoll().args(["mcp", "list", "--json"]).run().code(1);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["servers"][0]["state"], "needs-auth", "{listed:#}");
    let code = "return (await tools.mcp__far__one({})).content[0].text";
    let call = json!({"calls": [{"tool": "codemode", "arguments": {"code": code}}]});
    let wait = "touch waits; until [ -e signed-in ]; do sleep 0.05; done";
    let wait = json!({"calls": [{"tool": "bash", "arguments": {"command": wait}}]});
    let session = place.sandbox.scripted(&json!({"turns": [call, wait, call, {"text": "done"}]})).arg("go").start();
    until("the session has been refused", || place.sandbox.work().join("waits").exists().then_some(()));
    sign_in(&place);
    place.sandbox.file("signed-in", "");
    session.wait().ok();
    let results = place.sandbox.results();
    let texts = [0, 2].map(|at| text_of(&results[at]["content"]));
    assert!(texts[0].starts_with("Failed") && texts[1].contains("you are in"), "{texts:#?}");
}
