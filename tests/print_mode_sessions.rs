//! Sessions of `atoll -p`: what is kept of a run, and going on with it.

use std::fs;

use serde_json::{Value, json};

use crate::{
    common::{
        Sandbox, json_lines,
        sandbox::session_entries,
        server::{Gate, Reply, Step},
        text_of,
    },
    print_mode::server_and_sandbox,
};

#[test]
fn the_session_file_holds_header_model_level_instructions_and_messages() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "alpha\n");
    let script = json!({"turns": [
        {"text": "look", "calls": [{"tool": "read", "arguments": {"path": "a.txt"}}]}, {"text": "done"}]});
    sandbox.scripted(&script).arg("go").run().ok();
    let entries = sandbox.session();
    assert_eq!(entries[0]["cwd"], json!(sandbox.work()));
    let shape: Vec<String> = entries
        .iter()
        .map(|entry| match entry["message"]["role"].as_str() {
            Some(role) => format!("message {role}"),
            None => entry["type"].as_str().unwrap().to_owned(),
        })
        .collect();
    assert_eq!(
        shape,
        [
            "session",
            "model_change",
            "thinking_level_change",
            "message system",
            "message user",
            "message assistant",
            "message toolResult",
            "message assistant"
        ]
    );
    assert_eq!((&entries[1]["provider"], &entries[1]["modelId"]), (&json!("scripted"), &json!("default")));
    assert_eq!(entries[2]["thinkingLevel"], "off");
    let answer = &entries[5]["message"];
    assert_eq!(answer["stopReason"], "toolUse");
    assert_eq!(answer["content"][1]["type"], "toolCall");
    let result = &entries[6]["message"];
    assert_eq!(result["toolCallId"], answer["content"][1]["id"]);
    assert_eq!((text_of(&result["content"]), &result["isError"]), ("alpha\n".to_owned(), &json!(false)));
    for entry in &entries[1..] {
        assert!(entry["timestamp"].as_str().unwrap().ends_with('Z'), "{entry:#}");
    }
    let folder = sandbox.session_files()[0].parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
    let work = sandbox.work().to_string_lossy().trim_start_matches('/').replace('/', "-");
    assert_eq!(folder, format!("--{work}--"));
}

#[test]
fn sessions_are_private_to_the_user() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_server, sandbox) = server_and_sandbox(vec![Reply::text("x")]);
    sandbox.atoll().args(["-p", "hi"]).run().ok();
    let file = sandbox.session_files().remove(0);
    assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o077, 0);
}

#[test]
fn continue_goes_on_with_the_same_session_and_sends_what_was_said() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("Noted."), Reply::text("It was 42.")]);
    sandbox.atoll().args(["-p", "Remember 42."]).run().ok();
    let first = sandbox.session();
    let run = sandbox.atoll().args(["--continue", "-p", "What was it?"]).run().ok().silent();
    assert_eq!(run.stdout, "It was 42.\n");
    let second = sandbox.session();
    assert_eq!(&second[..first.len()], &first[..]);
    let said: Vec<(String, String)> = server.bodies()[1]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| (message["role"].as_str().unwrap().to_owned(), text_of(&message["content"])))
        .skip(1)
        .collect();
    let pair = |role: &str, text: &str| (role.to_owned(), text.to_owned());
    assert_eq!(said, [pair("user", "Remember 42."), pair("assistant", "Noted."), pair("user", "What was it?")]);
}

#[test]
fn continue_tells_only_what_changed_in_the_instructions() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("a"), Reply::text("b"), Reply::text("c")]);
    sandbox.atoll().args(["-p", "1"]).run().ok();
    sandbox.atoll().args(["-c", "-p", "2"]).run().ok();
    let systems = |sandbox: &Sandbox| sandbox.messages().iter().filter(|m| m["role"] == "system").count();
    assert_eq!(systems(&sandbox), 1);
    sandbox.file("AGENTS.md", "Speak plainly.");
    sandbox.atoll().args(["-c", "-p", "3"]).run().ok();
    assert_eq!(systems(&sandbox), 2);
    let body = server.bodies().remove(2);
    let system = text_of(&body["messages"][0]["content"]);
    assert!(system.contains("Speak plainly."), "{system}");
}

#[test]
fn continue_without_a_session_is_one_line() {
    let (server, sandbox) = server_and_sandbox(vec![]);
    let run = sandbox.atoll().args(["--continue", "-p", "x"]).run().code(1);
    assert!(run.one_line().contains("no session"), "{run:#?}");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn continue_looks_only_at_sessions_of_this_directory() {
    let (_server, sandbox) = server_and_sandbox(vec![Reply::text("a")]);
    sandbox.atoll().args(["-p", "1"]).run().ok();
    fs::create_dir(sandbox.work().join("inner")).unwrap();
    sandbox.atoll().cwd(sandbox.work().join("inner")).args(["--continue", "-p", "x"]).run().code(1);
}

#[test]
fn a_session_with_a_torn_last_line_is_continued() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("a"), Reply::text("b")]);
    sandbox.atoll().args(["-p", "first"]).run().ok();
    let path = sandbox.session_files().remove(0);
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str("{\"type\":\"message\",\"id\":\"to");
    fs::write(&path, text).unwrap();
    sandbox.atoll().args(["-c", "-p", "second"]).run().ok();
    assert!(server.bodies()[1].to_string().contains("first"));
    let text = fs::read_to_string(&path).unwrap();
    let good = text.lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count();
    assert_eq!(good, text.lines().count() - 1, "only the torn line is lost: {text}");
}

#[test]
fn no_session_writes_nothing() {
    let (_server, sandbox) = server_and_sandbox(vec![Reply::text("x")]);
    sandbox.atoll().args(["--no-session", "-p", "hi"]).run().ok();
    let names = fs::read_dir(sandbox.atoll_home()).unwrap().map(|entry| entry.unwrap().file_name());
    // The audit log is of every run.
    let left: Vec<_> = names.filter(|name| name != "audit.log").collect();
    assert_eq!(left, ["models.json"]);
    sandbox.atoll().args(["--no-session", "--continue", "-p", "hi"]).run().code(2);
}

#[test]
fn a_session_that_can_not_be_written_is_one_line_and_nothing_is_sent() {
    let (server, sandbox) = server_and_sandbox(vec![]);
    sandbox.home_file("sessions", "in the way");
    let run = sandbox.atoll().args(["-p", "hi"]).run().code(1);
    assert!(run.one_line().contains("--no-session"), "{run:#?}");
    assert_eq!(run.stderr.matches("os error").count(), 1, "the reason is said once: {run:#?}");
    assert_eq!(server.requests().len(), 0);
}

/// A reader of JSON mode used to wait in vain for the end.
#[test]
fn json_mode_ends_in_order_when_the_session_can_not_be_written() {
    let (server, sandbox) = server_and_sandbox(vec![]);
    sandbox.home_file("sessions", "in the way");
    let run = sandbox.atoll().args(["--mode", "json", "-p", "hi"]).run().code(1);
    let events = json_lines(&run.stdout);
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    // The instructions wait in memory until there is something to keep.
    let expected =
        ["session", "agent_start", "turn_start", "message_start", "message_end", "agent_end", "agent_settled"];
    assert_eq!(kinds, expected);
    assert_eq!((&events[5]["willRetry"], &events[6]["aborted"]), (&json!(false), &json!(false)));
    assert!(run.one_line().contains("--no-session"), "{run:#?}");
    assert_eq!(server.requests().len(), 0);
}

/// An older session used to be taken without a word.
#[test]
fn continue_never_takes_an_older_session_in_place_of_one_it_can_not_use() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("x"), Reply::text("y")]);
    sandbox.atoll().args(["-p", "good"]).run().ok();
    let good = sandbox.session_files().remove(0);
    let newer = good.with_file_name("9999.jsonl");
    let version = json!({"type": "session", "version": 9, "id": "x", "cwd": sandbox.work()}).to_string();
    for (text, reason) in [(version.as_str(), "version 9"), ("{\"type\":\"ses", "no entries")] {
        fs::write(&newer, text).unwrap();
        let run = sandbox.atoll().args(["-c", "-p", "again"]).run().code(1);
        let line = run.one_line();
        assert!(line.contains("9999.jsonl") && line.contains(reason) && line.contains("without --continue"), "{line}");
    }
    assert_eq!(server.requests().len(), 1);
    fs::remove_file(&newer).unwrap();
    sandbox.atoll().args(["-c", "-p", "again"]).run().ok();
    assert!(session_entries(&good).iter().any(|entry| text_of(&entry["message"]["content"]) == "again"));
}

/// `a-b` and `a/b` share a folder of sessions; the one used to go on with the other's.
#[test]
fn continue_does_not_take_the_session_of_a_directory_with_a_similar_name() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("x"), Reply::text("y"), Reply::text("z")]);
    let (nested, flat) = (sandbox.work().join("a/b"), sandbox.work().join("a-b"));
    fs::create_dir_all(&nested).unwrap();
    fs::create_dir(&flat).unwrap();
    sandbox.atoll().cwd(&nested).args(["-p", "nested"]).run().ok();
    let run = sandbox.atoll().cwd(&flat).args(["-c", "-p", "flat"]).run().code(1);
    assert!(run.one_line().contains("no session"), "{run:#?}");
    sandbox.atoll().cwd(&flat).args(["-p", "flat"]).run().ok();
    sandbox.atoll().cwd(&nested).args(["-c", "-p", "nested again"]).run().ok();
    let body = server.bodies().remove(2).to_string();
    assert!(body.contains("nested again") && !body.contains("flat"), "{body}");
}

/// The default model used to be asked instead.
#[test]
fn continue_goes_on_with_the_sessions_model_and_level() {
    let (server, sandbox) = server_and_sandbox((0..3).map(|_| Reply::text("x")).collect());
    sandbox.atoll().args(["--model", "mock/seeing:high", "-p", "1"]).run().ok();
    sandbox.atoll().args(["-c", "-p", "2"]).run().ok().silent();
    let changes = |sandbox: &Sandbox| -> Vec<Value> {
        let named = |entry: &Value| {
            Some([entry.get("modelId"), entry.get("thinkingLevel")].into_iter().flatten().next()?.clone())
        };
        sandbox.session().iter().filter_map(named).collect()
    };
    assert_eq!(changes(&sandbox), ["seeing", "high"]);
    sandbox.atoll().args(["-c", "--model", "mock/m", "-p", "3"]).run().ok().silent();
    assert_eq!(changes(&sandbox), ["seeing", "high", "m", "off"]);
    let asked: Vec<Value> = server.bodies().iter().map(|body| body["model"].clone()).collect();
    assert_eq!(asked, ["seeing", "seeing", "m"]);
}

#[test]
fn continue_says_so_when_the_sessions_model_is_not_set_up_any_more() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("x"), Reply::text("y")]);
    sandbox.atoll().args(["-p", "1"]).run().ok();
    let models = fs::read_to_string(sandbox.atoll_home().join("models.json")).unwrap();
    sandbox.home_file("models.json", models.replace("\"mock\"", "\"fresh\""));
    let run = sandbox.atoll().args(["-c", "-p", "2"]).run().ok();
    assert_eq!(run.one_line(), "atoll: mock/m, which this session used, is not set up any more; going on with fresh/m");
    assert_eq!(run.stdout, "y\n");
    assert_eq!(server.requests().len(), 2);
}

/// Both used to append, each to an entry of its own, and the later one hid what the other did.
#[test]
fn a_session_in_use_is_not_continued_by_another_process() {
    let gate = Gate::default();
    let slow = Reply::stream().delta(&json!({"content": "one"})).then(Step::Wait(gate.clone())).end("stop");
    let (server, sandbox) = server_and_sandbox(vec![slow, Reply::text("two"), Reply::text("three")]);
    let running = sandbox.atoll().args(["--mode", "json", "-p", "first"]).start();
    running.wait_for_output("message_update");
    let path = sandbox.session_files().remove(0);
    let run = sandbox.atoll().args(["-c", "-p", "second"]).run().code(1);
    let line = run.one_line();
    assert!(line.contains("another atoll") && line.contains(&*path.to_string_lossy()), "{line}");
    assert_eq!(server.requests().len(), 1);
    // A session of its own is no trouble, even in the same directory.
    sandbox.atoll().args(["--no-session", "-p", "aside"]).run().ok();
    gate.open();
    running.wait().ok();
    sandbox.atoll().args(["-c", "-p", "third"]).run().ok();
    let said: Vec<String> =
        sandbox.messages().iter().filter(|m| m["role"] == "user").map(|m| text_of(&m["content"])).collect();
    assert_eq!(said, ["first", "third"]);
}
