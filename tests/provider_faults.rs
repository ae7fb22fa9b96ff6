//! Servers that fail: each failure is one clear line and exit code 1, and leaves a session that can be continued.

use serde_json::{Value, json};

use crate::common::{
    Finished, Sandbox, json_lines,
    sandbox::KEY,
    server::{Gate, Reply, Server, Step},
    text_of,
};

/// Runs one prompt against a server that answers so, then continues the session against one that works; gives
/// the failed run and what the continued request held.
#[track_caller]
fn fails(reply: Reply, expected: &str) -> Finished {
    fails_with(reply, &json!({}), expected)
}

#[track_caller]
fn fails_with(reply: Reply, settings: &Value, expected: &str) -> Finished {
    let server = Server::start(vec![reply, Reply::text("better now")]);
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    sandbox.settings(settings);
    let run = sandbox.atoll().args(["-p", "first try"]).run().code(1);
    assert!(run.one_line().contains(expected), "{expected:?} is missing: {run:#?}");
    assert_eq!(run.stdout, "", "{run:#?}");
    assert_eq!(server.requests().len(), 1);
    let entries = sandbox.session();
    let last = &entries.last().unwrap()["message"];
    assert_eq!((&last["role"], &last["stopReason"]), (&json!("assistant"), &json!("error")), "{last:#}");
    assert!(last["errorMessage"].as_str().unwrap().contains(expected), "{last:#}");
    let again = sandbox.atoll().args(["--continue", "-p", "second try"]).run().ok().silent();
    assert_eq!(again.stdout, "better now\n");
    sandbox.session();
    let said: Vec<String> = server.bodies()[1]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .skip(1)
        .map(|message| format!("{}: {}", message["role"].as_str().unwrap(), text_of(&message["content"])))
        .collect();
    assert_eq!(said, ["user: first try", "user: second try"], "a failed answer is not sent again");
    run
}

#[test]
fn a_server_that_closes_in_mid_stream() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let event = format!("data: {}\n\n", json!({"choices": [{"delta": {"content": "half an ans"}}]}));
    fails(Reply::raw(head).send(format!("{:x}\r\n{event}\r\n", event.len())), "broke off");
}

#[test]
fn a_server_that_ends_its_stream_too_early() {
    fails(Reply::stream().delta(&json!({"content": "half an ans"})), "ended without a reason");
}

#[test]
fn a_server_that_ends_in_the_middle_of_a_chunk() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    fails(Reply::raw(head).send("40\r\ndata: {\"choices\""), "broke off");
}

#[test]
fn a_server_that_closes_without_a_word() {
    fails(Reply(vec![]), "does not answer");
}

#[test]
fn a_server_that_sends_no_http() {
    fails(Reply::raw("SSH-2.0-OpenSSH_9.2p1\r\n"), "does not answer");
}

#[test]
fn a_key_that_is_refused() {
    let body = json!({"error": {"message": "Incorrect API key provided", "type": "invalid_request_error"}});
    fails(Reply::status(401, &[], &body.to_string()), "401: Incorrect API key provided");
}

#[test]
fn too_many_requests_with_a_time_to_wait() {
    let body = json!({"error": {"message": "Rate limit reached", "type": "rate_limit_error"}}).to_string();
    fails(Reply::status(429, &[("retry-after", "7")], &body), "429: Rate limit reached");
}

#[test]
fn an_error_of_the_server() {
    fails(Reply::status(500, &[], "boom\nand a stack trace"), "500: boom and a stack trace");
}

#[test]
fn an_error_page_is_cut_to_one_short_line() {
    let page = format!("<html><body>{}</body></html>", "<p>sorry</p>\n".repeat(5000));
    let run = fails(Reply::status(502, &[("content-type", "text/html")], &page), "502");
    assert!(run.stderr.len() < 1000, "{} bytes", run.stderr.len());
}

#[test]
fn a_body_of_garbage() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    fails(Reply::raw(head).send(b"\xff\xfe\0\0garbage\0\x80\n\n".to_vec()), "ended without a reason");
}

#[test]
fn events_that_are_not_json() {
    fails(Reply::stream().send("data: {\"choices\": [{\n\n"), "JSON");
}

#[test]
fn a_page_with_a_good_status() {
    let page = "<!doctype html><title>Log in to the hotel's network</title>";
    fails(Reply::status(200, &[("content-type", "text/html")], page), "Log in to the hotel's network");
}

#[test]
fn an_error_object_with_a_good_status() {
    fails(Reply::status(200, &[], "{\"error\": {\"message\": \"model not loaded\"}}"), "model not loaded");
}

#[test]
fn an_error_in_mid_stream() {
    let error = json!({"error": {"message": "overloaded, sorry", "code": 529}});
    fails(Reply::stream().delta(&json!({"content": "half"})).event(&error), "overloaded, sorry");
}

#[test]
fn a_server_that_never_answers_is_given_up_and_its_connection_closed() {
    let closed = Gate::default();
    let reply = Reply(vec![Step::UntilClosed(closed.clone())]);
    fails_with(reply, &json!({"httpIdleTimeoutMs": 300}), "300 ms");
    closed.wait();
}

#[test]
fn a_server_that_goes_silent_in_mid_stream_is_given_up_and_its_connection_closed() {
    let closed = Gate::default();
    let reply = Reply::stream().delta(&json!({"content": "half"})).then(Step::UntilClosed(closed.clone()));
    fails_with(reply, &json!({"httpIdleTimeoutMs": 300}), "300 ms");
    closed.wait();
}

#[test]
fn a_server_that_goes_silent_in_the_middle_of_an_error() {
    let head = "HTTP/1.1 503 X\r\ncontent-length: 1000\r\n\r\nhalf an err";
    let reply = Reply::raw(head).then(Step::UntilClosed(Gate::default()));
    fails_with(reply, &json!({"httpIdleTimeoutMs": 300}), "503");
}

#[test]
fn nobody_listens_there() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let sandbox = Sandbox::new();
    sandbox.model_at(&format!("http://127.0.0.1:{port}/v1"));
    let run = sandbox.atoll().args(["-p", "hi"]).run().code(1);
    let line = run.one_line();
    assert!(line.contains(&format!("127.0.0.1:{port}")) && line.contains("refused"), "{line}");
    sandbox.session();
}

#[test]
fn a_host_that_does_not_exist() {
    let sandbox = Sandbox::new();
    sandbox.model_at("http://no-such-host.invalid/v1");
    let run = sandbox.atoll().args(["-p", "hi"]).run().code(1);
    assert!(run.one_line().contains("no-such-host.invalid"), "{run:#?}");
}

#[test]
fn a_base_url_that_is_no_url() {
    let sandbox = Sandbox::new();
    sandbox.model_at("localhost:8080");
    let run = sandbox.atoll().args(["-p", "hi"]).run().code(1);
    assert!(run.one_line().contains("models.json") || run.one_line().contains("http"), "{run:#?}");
}

#[test]
fn a_redirect_is_not_followed_and_the_key_stays() {
    let other = Server::start(vec![Reply::text("gotcha")]);
    for status in [301, 302, 307, 308] {
        fails(
            Reply::status(status, &[("location", &format!("{}/v1/chat/completions", other.origin()))], ""),
            "redirect",
        );
    }
    assert_eq!(other.requests().len(), 0);
}

#[test]
fn the_key_is_sent_and_shown_nowhere() {
    let replies = vec![
        Reply::calls(&[("bash", "{\"command\":\"env; echo done\"}")]),
        Reply::text("fine"),
        Reply::status(401, &[], &json!({"error": {"message": "bad key"}}).to_string()),
    ];
    let server = Server::start(replies);
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    let mut seen = String::new();
    for arguments in [["--mode", "json", "-p", "go"], ["--continue", "--mode=json", "-p", "again"]] {
        let run = sandbox.atoll().env("ATOLL_LOG", "trace").args(arguments).run();
        seen.push_str(&run.stdout);
        seen.push_str(&run.stderr);
    }
    for file in sandbox.session_files() {
        seen.push_str(&std::fs::read_to_string(file).unwrap());
    }
    assert_eq!(server.requests().len(), 3);
    for request in server.requests() {
        assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        assert!(!String::from_utf8_lossy(&request.body).contains(KEY));
    }
    assert!(seen.contains("DEBUG") || seen.contains("TRACE"), "the log was on");
    let base64 = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, KEY);
    for secret in [KEY, base64.as_str()] {
        let at = seen.find(secret);
        assert!(at.is_none(), "the key is shown: {}", &seen[at.unwrap().saturating_sub(300)..][..400]);
    }
}

#[test]
fn a_header_of_the_users_with_a_secret_is_sent_and_not_kept() {
    let server = Server::start(vec![Reply::text("x")]);
    let sandbox = Sandbox::new();
    let models = json!({"providers": {"mock": {"baseUrl": server.origin(), "api": "openai-completions",
        "headers": {"X-Team": "$TEAM_TOKEN"}, "models": [{"id": "m"}]}}});
    sandbox.home_file("models.json", models.to_string());
    sandbox.atoll().env("TEAM_TOKEN", "team-canary").args(["-p", "hi"]).run().ok();
    assert_eq!(server.requests()[0].header("x-team"), Some("team-canary"));
    assert!(server.requests()[0].header("authorization").is_none());
    let kept = std::fs::read_to_string(&sandbox.session_files()[0]).unwrap();
    assert!(!kept.contains("team-canary"));
}

#[test]
fn ctrl_c_while_the_model_answers_stops_it_and_keeps_what_was_said() {
    let closed = Gate::default();
    let reply = Reply::stream().delta(&json!({"content": "I was saying"})).then(Step::UntilClosed(closed.clone()));
    let server = Server::start(vec![reply, Reply::text("go on")]);
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    let running = sandbox.atoll().args(["--mode", "json", "-p", "hi"]).start();
    running.wait_for_output("I was saying");
    running.signal(rustix::process::Signal::INT);
    let run = running.wait().code(130);
    closed.wait();
    let events = json_lines(&run.stdout);
    assert_eq!(events.last().unwrap()["type"], "agent_settled");
    assert_eq!(events.last().unwrap()["aborted"], true);
    let last = sandbox.messages().pop().unwrap();
    assert_eq!((last["stopReason"].as_str(), text_of(&last["content"])), (Some("aborted"), "I was saying".into()));
    sandbox.atoll().args(["-c", "-p", "and?"]).run().ok();
}
