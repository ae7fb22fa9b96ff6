//! The whole path against a server that is not ours: `@copilotkit/aimock`. `cargo xtask test` installs it and names
//! its folder in `ATOLL_AIMOCK_DIR`.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Stdio},
};

use serde_json::{Value, json};

use crate::common::{Sandbox, sandbox::KEY, skipped, text_of, until};

/// The server; killed when dropped.
struct Aimock {
    child: Child,
    port: u16,
}

impl Drop for Aimock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Aimock {
    /// Starts it; `None`, after saying so, where it is not installed.
    fn start(test: &str, arguments: &[&str]) -> Option<Self> {
        let Some(folder) = std::env::var_os("ATOLL_AIMOCK_DIR").map(PathBuf::from) else {
            skipped(&format!("{test}: ATOLL_AIMOCK_DIR is not set"));
            return None;
        };
        let program = folder.join("node_modules/.bin/llmock");
        let node = std::process::Command::new("node").arg("--version").output();
        if !node.is_ok_and(|output| output.status.success()) {
            skipped(&format!("{test}: there is no node"));
            return None;
        }
        // Below here nothing is skipped: a folder that was named has to be good.
        assert!(program.exists(), "{} is not there", program.display());
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/aimock");
        let child = std::process::Command::new("node")
            .arg(program)
            .args(["--host", "127.0.0.1", "--log-level", "warn", "--strict", "-p", &port.to_string(), "-f"])
            .arg(fixtures)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Self { child, port };
        until("aimock answers", || {
            assert!(server.child.try_wait().unwrap().is_none(), "aimock ended before it answered");
            server.get("/__aimock/journal")
        });
        Some(server)
    }

    fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.split_whitespace().nth(1).filter(|status| *status == "200")?;
        serde_json::from_str(body).ok()
    }

    /// The bodies of the requests for answers.
    fn bodies(&self) -> Vec<Value> {
        let journal = self.get("/__aimock/journal").unwrap();
        let entries = journal.as_array().or_else(|| journal["entries"].as_array()).unwrap().clone();
        entries.into_iter().filter(|e| e["path"] == "/v1/chat/completions").map(|e| e["body"].clone()).collect()
    }

    fn sandbox(&self) -> Sandbox {
        let sandbox = Sandbox::new();
        sandbox.model_at(&format!("http://127.0.0.1:{}/v1", self.port));
        sandbox
    }
}

/// A repository of some thousand files, with the one to be worked on among them.
fn fill(sandbox: &Sandbox) {
    for folder in 0..60 {
        for file in 0..50 {
            let text = format!("//! Part {file} of crate {folder}.\n\n").repeat(20);
            sandbox.file(&format!("crates/part-{folder}/src/module_{file}.rs"), text);
        }
    }
    sandbox.file(
        "crates/hello/src/lib.rs",
        "/// What is said first.\npub fn greeting() -> &'static str {\n    \"hello\"\n}\n",
    );
    sandbox.file("crates/hello/src/main.rs", "fn main() {\n    println!(\"{}\", hello::greeting());\n}\n");
    sandbox.file("AGENTS.md", "Names in this project are long words.\n");
}

#[test]
fn an_independent_server_has_a_repository_read_and_edited() {
    let Some(server) = Aimock::start("an_independent_server_has_a_repository_read_and_edited", &["--chunk-size", "3"])
    else {
        return;
    };
    let sandbox = server.sandbox();
    fill(&sandbox);
    let run = sandbox.atoll().args(["-p", "Please rename the greeting everywhere."]).run().ok().silent();
    assert_eq!(run.stdout, "Renamed `greeting` to `salutation` in both files.\n");
    assert!(sandbox.read("crates/hello/src/lib.rs").contains("pub fn salutation()"));
    assert!(sandbox.read("crates/hello/src/main.rs").contains("hello::salutation()"));

    let bodies = server.bodies();
    assert_eq!(bodies.len(), 4);
    for body in &bodies {
        assert_eq!((&body["model"], &body["stream"]), (&json!("m"), &json!(true)));
        let names: Vec<&str> =
            body["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
        for name in ["read", "bash", "edit", "write"] {
            assert!(names.contains(&name), "{names:?}");
        }
        let messages = body["messages"].as_array().unwrap();
        assert!(text_of(&messages[0]["content"]).contains("Names in this project are long words."));
        assert_eq!(text_of(&messages[1]["content"]), "Please rename the greeting everywhere.");
    }
    // Every request is the one before it with an answer and its results added: what servers cache stays the same.
    for pair in bodies.windows(2) {
        let (before, after) = (pair[0]["messages"].as_array().unwrap(), pair[1]["messages"].as_array().unwrap());
        assert_eq!(&after[..before.len()], &before[..]);
        assert_eq!(after[before.len()]["role"], "assistant");
        assert!(after[before.len() + 1..].iter().all(|message| message["role"] == "tool"));
    }
    let last = bodies[3]["messages"].as_array().unwrap();
    let results: Vec<(&str, String)> = last
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| (message["tool_call_id"].as_str().unwrap(), text_of(&message["content"])))
        .collect();
    let ids: Vec<&str> = results.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, ["look_1", "look_2", "change_1", "change_2", "check_1"]);
    assert!(results[0].1.contains("pub fn greeting()"));
    assert_eq!(results[1].1, "crates/hello/src/lib.rs\ncrates/hello/src/main.rs\n");
    assert!(results[4].1.contains("lib.rs:1\n") && results[4].1.contains("main.rs:1"), "{}", results[4].1);
    let said = &last[2];
    assert_eq!(text_of(&said["content"]), "I'll read both places first — “greeting” occurs in two files ✓");
    let arguments: Value =
        serde_json::from_str(said["tool_calls"][0]["function"]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, json!({"path": "crates/hello/src/lib.rs"}));
    let kept = std::fs::read_to_string(&sandbox.session_files()[0]).unwrap();
    assert!(!kept.contains(KEY));
    sandbox.session();
}

#[test]
fn an_independent_servers_refusal_is_one_line() {
    let Some(server) = Aimock::start("an_independent_servers_refusal_is_one_line", &[]) else { return };
    let run = server.sandbox().atoll().args(["-p", "Are you too busy?"]).run().code(1);
    assert!(run.one_line().contains("429: Too many requests right now"), "{run:#?}");
}

#[test]
fn an_independent_servers_thinking_is_kept_apart_from_its_text() {
    let Some(server) = Aimock::start("an_independent_servers_thinking_is_kept_apart_from_its_text", &[]) else {
        return;
    };
    let sandbox = server.sandbox();
    let run = sandbox.atoll().args(["-p", "Please think first."]).run().ok();
    assert_eq!(run.stdout, "42\n");
    let answer = sandbox.messages().pop().unwrap();
    assert_eq!(
        (&answer["content"][0]["type"], &answer["content"][0]["thinking"]),
        (&json!("thinking"), &json!("Six times seven."))
    );
}

#[test]
fn an_independent_server_that_sends_malformed_chunks_or_breaks_off_is_one_line() {
    for chaos in ["--chaos-malformed", "--chaos-disconnect", "--chaos-drop"] {
        let test = "an_independent_server_that_sends_malformed_chunks_or_breaks_off_is_one_line";
        let Some(server) = Aimock::start(test, &[chaos, "1"]) else { return };
        let run = server.sandbox().atoll().args(["-p", "Please think first."]).run().code(1);
        assert!(!run.one_line().is_empty(), "{chaos}: {run:#?}");
    }
}
