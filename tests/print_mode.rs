//! `atoll -p`: what goes in, what comes out, what is sent and what is kept.

use std::fs;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::common::{
    Sandbox, json_lines,
    server::{Gate, Reply, Server, Step},
    text_of,
};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";

/// A server that answers so, and a sandbox whose model is behind it.
pub(crate) fn server_and_sandbox(replies: Vec<Reply>) -> (Server, Sandbox) {
    let server = Server::start(replies);
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    (server, sandbox)
}

/// The text of the last message of the user in a request.
fn last_user(body: &Value) -> String {
    let messages = body["messages"].as_array().unwrap();
    text_of(&messages.iter().rev().find(|message| message["role"] == "user").unwrap()["content"])
}

#[test]
fn the_answers_text_and_nothing_else_is_on_stdout() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("It is Tuesday.")]);
    let run = sandbox.atoll().args(["-p", "What day is it?"]).run().ok().silent();
    assert_eq!(run.stdout, "It is Tuesday.\n");
    assert_eq!(last_user(&server.bodies()[0]), "What day is it?");
}

#[test]
fn only_the_last_answers_text_is_on_stdout_after_a_tool_turn() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "alpha\n");
    let script = json!({"turns": [
        {"text": "I look.", "calls": [{"tool": "read", "arguments": {"path": "a.txt"}}]},
        {"when": {"last-tool-result-contains": "alpha"}, "text": "It says alpha."}]});
    let run = sandbox.scripted(&script).arg("What is in a.txt?").run().ok().silent();
    assert_eq!(run.stdout, "It says alpha.\n");
}

#[test]
fn an_answer_that_ends_with_a_line_break_is_not_given_another() {
    let (_server, sandbox) = server_and_sandbox(vec![Reply::text("done\n")]);
    assert_eq!(sandbox.atoll().args(["-p", "x"]).run().ok().stdout, "done\n");
}

#[test]
fn json_mode_gives_the_header_then_the_events_of_a_tool_turn_in_order() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "alpha\n");
    let script = json!({"turns": [
        {"thinking": "hm", "text": "I look.", "calls": [{"tool": "read", "arguments": {"path": "a.txt"}}]},
        {"text": "done"}]});
    let run = sandbox.scripted(&script).args(["--mode", "json", "go"]).run().ok().silent();
    let events = json_lines(&run.stdout);
    let header = &events[0];
    assert_eq!((&header["type"], &header["version"]), (&json!("session"), &json!(3)));
    assert_eq!(header["cwd"], json!(sandbox.work()));
    let mut shape: Vec<String> = Vec::new();
    for event in &events[1..] {
        let kind = event["type"].as_str().unwrap();
        shape.push(match kind {
            "message_start" | "message_end" => format!("{kind} {}", event["message"]["role"].as_str().unwrap()),
            "message_update" => format!("+{}", event["assistantMessageEvent"]["type"].as_str().unwrap()),
            _ => kind.to_owned(),
        });
    }
    shape.dedup();
    assert_eq!(
        shape,
        [
            "agent_start",
            "turn_start",
            "message_start system",
            "message_end system",
            "message_start user",
            "message_end user",
            "message_start assistant",
            "+thinking_start",
            "+thinking_delta",
            "+thinking_end",
            "+text_start",
            "+text_delta",
            "+text_end",
            "+toolcall_start",
            "+toolcall_delta",
            "+toolcall_end",
            "message_end assistant",
            "tool_execution_start",
            "tool_execution_end",
            "message_start toolResult",
            "message_end toolResult",
            "turn_end",
            "turn_start",
            "message_start assistant",
            "+text_start",
            "+text_delta",
            "+text_end",
            "message_end assistant",
            "turn_end",
            "agent_end",
            "agent_settled",
        ]
    );
    let find = |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap();
    let started = events.iter().find(|e| e["type"] == "message_start" && e["message"]["role"] == "assistant").unwrap();
    assert_eq!(started["message"]["stopReason"], "pending");
    let system = events.iter().find(|e| e["type"] == "message_end" && e["message"]["role"] == "system").unwrap();
    assert!(system["message"]["sections"].is_object() && system["message"]["toolsAdded"].is_array());
    let ended = find("tool_execution_end");
    assert_eq!((&ended["toolName"], &ended["isError"]), (&json!("read"), &json!(false)));
    assert!(ended["durationMs"].is_u64() && ended["result"]["content"].is_array(), "{ended:#}");
    let turn = find("turn_end");
    assert_eq!(turn["toolResults"].as_array().unwrap().len(), 1);
    let end = find("agent_end");
    let roles: Vec<&str> =
        end["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "toolResult", "assistant"]);
    assert_eq!(end["willRetry"], false);
    assert_eq!(find("agent_settled")["aborted"], false);
}

#[test]
fn json_mode_tells_calls_in_source_order_and_their_results_in_source_order() {
    let sandbox = Sandbox::new();
    let bash = |command: &str| json!({"tool": "bash", "arguments": {"command": command}});
    let script = json!({"turns": [
        {"calls": [bash("until test -e ended; do sleep 0.01; done; echo one"), bash("echo two")]}, {"text": "done"}]});
    let running = sandbox.scripted(&script).args(["--mode", "json", "go"]).start();
    // The first can only end after the second has been told to have ended.
    running.wait_for_output("\"type\":\"tool_execution_end\"");
    sandbox.file("ended", "");
    let run = running.wait().ok();
    let events = json_lines(&run.stdout);
    let ids = |kind: &str, field: &str| -> Vec<String> {
        let matching = events.iter().filter(|event| event["type"] == kind);
        matching.filter_map(|event| Some(event.pointer(field)?.as_str()?.to_owned())).collect()
    };
    let starts = ids("tool_execution_start", "/toolCallId");
    assert_eq!(starts.len(), 2);
    let ends = ids("tool_execution_end", "/toolCallId");
    assert_eq!(ends, [starts[1].clone(), starts[0].clone()]);
    assert_eq!(ids("message_end", "/message/toolCallId"), starts);
}

#[test]
fn line_separators_inside_strings_do_not_break_json_lines() {
    let text = "a\u{2028}b\u{2029}c\u{85}d\r\ne";
    let (_server, sandbox) = server_and_sandbox(vec![Reply::text(text)]);
    let run = sandbox.atoll().args(["--mode", "json", "-p", text]).run().ok();
    let events = json_lines(&run.stdout);
    let last = events.iter().rev().find(|event| event["type"] == "message_end").unwrap();
    assert_eq!(text_of(&last["message"]["content"]), text);
    let messages = sandbox.messages();
    assert_eq!(text_of(&messages[1]["content"]), text);
    assert_eq!(text_of(&messages[2]["content"]), text);
}

fn declared(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_active_tools_are_declared_and_can_be_chosen() {
    let all = ["read", "bash", "edit", "write"];
    for (list, expected) in [
        (None, &all[..]),
        (Some("read"), &["read"]),
        (Some("ls,read"), &["read", "ls"]),
        (Some("+ls"), &["read", "bash", "edit", "write", "ls"]),
        (Some("-bash,-write"), &["read", "edit"]),
        (Some("*"), &["read", "bash", "edit", "write", "ls"]),
    ] {
        let (server, sandbox) = server_and_sandbox(vec![Reply::text("x")]);
        let mut command = sandbox.atoll();
        if let Some(list) = list {
            command = command.args(["--tools", list]);
        }
        command.args(["-p", "hi"]).run().ok();
        let mut names = declared(&server.bodies()[0]);
        let mut expected: Vec<String> = expected.iter().map(|name| (*name).to_owned()).collect();
        // What is declared counts here; grep and find may come later.
        names.retain(|name| all.contains(&name.as_str()) || name == "ls");
        names.sort();
        expected.sort();
        assert_eq!(names, expected, "{list:?}");
    }
}

#[test]
fn an_unknown_tool_in_the_list_is_one_line_and_nothing_is_sent() {
    for list in ["raed", "+raed", "read,raed"] {
        let (server, sandbox) = server_and_sandbox(vec![]);
        let run = sandbox.atoll().args(["--tools", list, "-p", "hi"]).run().code(1);
        assert!(run.one_line().contains("raed"), "{run:#?}");
        assert_eq!(server.requests().len(), 0);
        assert_eq!(sandbox.session_files().len(), 0);
    }
}

#[test]
fn a_tool_that_is_not_active_can_not_be_called_by_the_model() {
    let sandbox = Sandbox::new();
    let script = json!({"turns": [
        {"calls": [{"tool": "bash", "arguments": {"command": "touch made"}}]}, {"text": "ok"}]});
    sandbox.scripted(&script).args(["--tools", "read", "go"]).run().ok();
    assert_eq!(sandbox.results()[0]["isError"], true);
    assert!(!sandbox.work().join("made").exists());
}

#[test]
fn default_tools_in_settings_choose_the_active_tools() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("x")]);
    sandbox.settings(&json!({"defaultTools": ["read", "ls"]}));
    sandbox.atoll().args(["-p", "hi"]).run().ok();
    let mut names = declared(&server.bodies()[0]);
    names.sort();
    assert_eq!(names, ["ls", "read"]);
}

#[test]
fn a_text_file_named_with_at_is_sent_with_its_path() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("x")]);
    let path = sandbox.file("notes.md", "\u{feff}# Notes\n");
    sandbox.atoll().args(["-p", "@notes.md", "Sum up."]).run().ok();
    let text = last_user(&server.bodies()[0]);
    assert_eq!(text, format!("<file name=\"{}\">\n# Notes\n\n</file>\nSum up.", path.display()));
}

#[test]
fn a_picture_named_with_at_is_sent_as_a_picture() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("x")]);
    sandbox.file("dot.png", PNG);
    sandbox.atoll().args(["--model", "mock/seeing", "-p", "@dot.png", "What is it?"]).run().ok();
    let body = server.bodies().remove(0);
    let url = format!("data:image/png;base64,{}", STANDARD.encode(PNG));
    assert!(body["messages"].to_string().contains(&url), "{body:#}");
    let user = sandbox.messages().remove(1);
    assert_eq!((&user["content"][1]["type"], &user["content"][1]["mimeType"]), (&json!("image"), &json!("image/png")));
}

#[test]
fn files_that_can_not_be_sent_are_one_line_and_nothing_is_sent() {
    let (server, sandbox) = server_and_sandbox(vec![]);
    sandbox.file("binary", b"\0\x01\x02");
    for (name, reason) in [("@missing.txt", "missing.txt"), ("@.", "not a file"), ("@binary", "neither")] {
        let run = sandbox.atoll().args(["-p", name, "x"]).run().code(1);
        assert!(run.one_line().contains(reason), "{run:#?}");
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn piped_text_goes_before_the_prompt_with_a_blank_line_between() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("x")]);
    sandbox.atoll().args(["-p", "Sum up."]).input("\n  The news.\n\n").run().ok().silent();
    assert_eq!(last_user(&server.bodies()[0]), "The news.\n\nSum up.");
}

#[test]
fn piped_text_alone_is_the_prompt() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("x"), Reply::text("y")]);
    sandbox.atoll().arg("-p").input("Hello there.").run().ok().silent();
    sandbox.atoll().input("Without the flag.").run().ok().silent();
    let bodies = server.bodies();
    assert_eq!((last_user(&bodies[0]), last_user(&bodies[1])), ("Hello there.".into(), "Without the flag.".into()));
}

#[test]
fn piped_text_that_is_not_utf_8_is_replaced_not_refused() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("x")]);
    sandbox.atoll().arg("-p").input(b"caf\xe9".to_vec()).run().ok();
    assert_eq!(last_user(&server.bodies()[0]), "caf\u{fffd}");
}

#[test]
fn a_prompt_with_an_open_silent_pipe_starts_and_ends_pi_5571() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("still here")]);
    let running = sandbox.atoll().args(["-p", "hi"]).open_input().start();
    running.wait_for_output("still here");
    let run = running.wait().ok();
    assert_eq!(run.stdout, "still here\n");
    assert!(run.one_line().contains("standard input"), "{run:#?}");
    assert_eq!(last_user(&server.bodies()[0]), "hi");
}

#[test]
fn a_dash_waits_for_standard_input_however_long_it_takes() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("x")]);
    let mut running = sandbox.atoll().args(["-p", "-", "Sum up."]).open_input().start();
    running.write("Late news.");
    running.close_input();
    running.wait().ok().silent();
    assert_eq!(last_user(&server.bodies()[0]), "Late news.\n\nSum up.");
}

#[test]
fn several_messages_are_carried_out_one_after_the_other() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    let run = sandbox.atoll().args(["-p", "first", "second", "third"]).run().ok().silent();
    assert_eq!(run.stdout, "one\ntwo\nthree\n");
    let prompts: Vec<String> = server.bodies().iter().map(last_user).collect();
    assert_eq!(prompts, ["first", "second", "third"]);
    assert_eq!(sandbox.messages().iter().filter(|message| message["role"] == "user").count(), 3);
}

#[test]
fn a_failure_ends_the_rest_of_several_messages() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("one"), Reply::status(400, &[], "no")]);
    let run = sandbox.atoll().args(["-p", "first", "second", "third"]).run().code(1);
    assert_eq!(run.stdout, "one\n");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn nothing_to_do_is_no_error() {
    let (server, sandbox) = server_and_sandbox(vec![]);
    sandbox.file("empty.txt", "");
    let run = sandbox.atoll().args(["-p", "@empty.txt"]).run().ok();
    assert_eq!(run.stdout, "");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_closed_stdout_ends_the_run_without_a_panic_or_a_hang() {
    for mode in ["text", "json"] {
        let (_server, sandbox) = server_and_sandbox(vec![Reply::text("x")]);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let run = sandbox.atoll().args(["--mode", mode, "-p", "hi"]).stdout(writer.into()).run();
        assert!(!run.stderr.contains("panicked"), "{run:#?}");
    }
}

#[test]
fn a_stdout_that_closes_in_the_middle_ends_a_run_that_would_go_on_for_ever() {
    let closed = Gate::default();
    let mut reply = Reply::stream();
    let more = Gate::default();
    reply = reply.delta(&json!({"content": "begin"})).then(Step::Wait(more.clone()));
    for _ in 0..50 {
        reply = reply.delta(&json!({"content": "more"}));
    }
    let (_server, sandbox) = server_and_sandbox(vec![reply.then(Step::UntilClosed(closed.clone()))]);
    let (reader, writer) = std::io::pipe().unwrap();
    let running = sandbox.atoll().args(["--mode", "json", "-p", "hi"]).stdout(writer.into()).start();
    let mut seen = String::new();
    let mut reader = std::io::BufReader::new(reader);
    while !seen.contains("begin") {
        seen.clear();
        std::io::BufRead::read_line(&mut reader, &mut seen).unwrap();
    }
    drop(reader);
    more.open();
    let run = running.wait();
    assert!(!run.stderr.contains("panicked"), "{run:#?}");
    closed.wait();
}

#[test]
fn instructions_from_files_reach_the_model_unless_told_otherwise() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("x"), Reply::text("y")]);
    sandbox.file("AGENTS.md", "Always use tabs.");
    sandbox.home_file("AGENTS.md", "Be kind.");
    sandbox.atoll().args(["-p", "hi"]).run().ok();
    sandbox.atoll().args(["--no-context-files", "-p", "hi"]).run().ok();
    let bodies = server.bodies();
    let system = text_of(&bodies[0]["messages"][0]["content"]);
    assert!(system.find("Be kind.").unwrap() < system.find("Always use tabs.").unwrap(), "{system}");
    let without = bodies[1].to_string();
    assert!(!without.contains("Always use tabs.") && !without.contains("Be kind."), "{without}");
}

#[test]
fn the_request_is_a_streaming_chat_completion_with_the_instructions_first() {
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("x")]);
    sandbox.atoll().args(["-p", "hi"]).run().ok();
    let request = server.requests().remove(0);
    assert!(request.line.starts_with("POST /v1/chat/completions "), "{}", request.line);
    assert_eq!(request.header("content-type").map(|kind| kind.split(';').next().unwrap()), Some("application/json"));
    let body = request.json();
    assert_eq!((&body["model"], &body["stream"]), (&json!("m"), &json!(true)));
    assert_eq!(body["messages"][0]["role"], "system");
    let system = text_of(&body["messages"][0]["content"]);
    assert!(system.contains(&*sandbox.work().to_string_lossy()), "{system}");
}

/// The header of the session used to end the program with a panic.
#[test]
fn a_directory_whose_name_is_not_text_can_be_worked_in() {
    use std::os::unix::ffi::OsStrExt as _;
    let (server, sandbox) = server_and_sandbox(vec![Reply::text("x"), Reply::text("y")]);
    let odd = sandbox.work().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&odd).unwrap();
    let run = sandbox.atoll().cwd(&odd).args(["--mode", "json", "-p", "first"]).run().ok();
    assert_eq!(json_lines(&run.stdout)[0]["cwd"], json!(odd.to_string_lossy()));
    sandbox.atoll().cwd(&odd).args(["-c", "-p", "second"]).run().ok();
    assert!(server.bodies()[1].to_string().contains("first"));
}
