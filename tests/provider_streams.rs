//! Answers that come in awkward pieces, and calls that can not be carried out: the run goes on.

use serde_json::{Value, json};

use crate::common::{
    Sandbox,
    sandbox::session_entries,
    server::{Gate, Reply, Server, Step},
    text_of,
};

fn run(replies: Vec<Reply>) -> (Server, Sandbox, crate::common::Finished) {
    let server = Server::start(replies);
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    sandbox.file("a.txt", "alpha\n");
    sandbox.file("b.txt", "beta\n");
    let run = sandbox.atoll().args(["-p", "go"]).run();
    (server, sandbox, run)
}

/// The results in a request's messages: id of the call and text.
fn sent_results(body: &Value) -> Vec<(String, String)> {
    let messages = body["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] == "tool")
        .map(|message| (message["tool_call_id"].as_str().unwrap().to_owned(), text_of(&message["content"])))
        .collect()
}

#[test]
fn a_character_split_over_chunks_stays_whole() {
    let text = "häßlich 🦀 日本";
    let event = format!("data: {}\n\n", json!({"choices": [{"delta": {"content": text}}]}));
    let mut reply = Reply::stream();
    for byte in event.bytes() {
        reply = reply.send([byte]);
    }
    let (_server, _sandbox, run) = run(vec![reply.end("stop")]);
    assert_eq!(run.ok().silent().stdout, format!("{text}\n"));
}

#[test]
fn text_is_shown_while_the_answer_still_comes() {
    let go_on = Gate::default();
    let reply = Reply::stream()
        .delta(&json!({"content": "first "}))
        .then(Step::Wait(go_on.clone()))
        .delta(&json!({"content": "second"}))
        .end("stop");
    let server = Server::start(vec![reply]);
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    let running = sandbox.atoll().args(["--mode", "json", "-p", "hi"]).start();
    running.wait_for_output("\"delta\":\"first \"");
    go_on.open();
    running.wait_for_output("\"delta\":\"second\"");
    running.wait().ok();
}

#[test]
fn arguments_split_over_chunks_are_put_together() {
    let arguments = "{\"path\":\"a.txt\",\"limit\":1}";
    let mut reply = Reply::stream().calls_delta(&[("read", "")]);
    for character in arguments.chars() {
        let piece = json!([{"index": 0, "function": {"arguments": character.to_string()}}]);
        reply = reply.delta(&json!({"tool_calls": piece}));
    }
    let (server, _sandbox, run) = run(vec![reply.end("tool_calls"), Reply::text("done")]);
    assert_eq!(run.ok().silent().stdout, "done\n");
    let body = server.bodies().remove(1);
    assert_eq!(sent_results(&body), [("c0".to_owned(), "alpha\n".to_owned())]);
    let call = &body["messages"][2]["tool_calls"][0];
    assert_eq!(call["id"], "c0");
    let sent: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(sent, json!({"path": "a.txt", "limit": 1}));
}

#[test]
fn two_calls_whose_arguments_are_mixed_are_both_carried_out() {
    let piece = |index: u8, text: &str| json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]});
    let reply = Reply::stream()
        .calls_delta(&[("read", "{\"pa"), ("read", "{\"path\":")])
        .delta(&piece(0, "th\":\"a.txt\"}"))
        .delta(&piece(1, "\"b.txt\"}"))
        .end("tool_calls");
    let (server, _sandbox, run) = run(vec![reply, Reply::text("done")]);
    run.ok().silent();
    let pair = |id: &str, text: &str| (id.to_owned(), text.to_owned());
    assert_eq!(sent_results(&server.bodies()[1]), [pair("c0", "alpha\n"), pair("c1", "beta\n")]);
}

#[test]
fn calls_that_can_not_be_carried_out_are_results_and_the_run_goes_on() {
    let calls = [
        ("raed", "{}"),
        ("read", "{\"path\": 3, \"offset\": \"x\"}"),
        ("read", "{\"path\": \"a.t"),
        ("read", "[\"a.txt\"]"),
        ("read", "{\"path\":\"a.txt\"}"),
    ];
    let (server, sandbox, run) = run(vec![Reply::calls(&calls), Reply::text("I see.")]);
    assert_eq!(run.ok().silent().stdout, "I see.\n");
    let results = sandbox.results();
    let errors: Vec<bool> = results.iter().map(|result| result["isError"].as_bool().unwrap()).collect();
    assert_eq!(errors, [true, true, true, true, false]);
    let texts: Vec<String> = sent_results(&server.bodies()[1]).into_iter().map(|(_, text)| text).collect();
    assert!(texts[0].contains("raed"), "{texts:#?}");
    assert!(texts[1].contains("offset"), "{texts:#?}");
    assert!(texts[2].contains("not carried out"), "{texts:#?}");
    assert_eq!(texts[4], "alpha\n");
    for result in &results[..4] {
        assert!(result.get("durationMs").is_none(), "it never ran: {result:#}");
    }
}

#[test]
fn an_answer_cut_off_by_its_length_runs_no_call_and_the_run_goes_on() {
    let reply = Reply::stream().calls_delta(&[("bash", "{\"command\":\"touch made\"}")]).end("length");
    let (server, sandbox, run) = run(vec![reply, Reply::text("shorter now")]);
    assert_eq!(run.ok().silent().stdout, "shorter now\n");
    assert!(!sandbox.work().join("made").exists());
    assert!(sent_results(&server.bodies()[1])[0].1.contains("not carried out"));
    assert_eq!(sandbox.results()[0]["isError"], true);
}

#[test]
fn a_text_cut_off_by_its_length_is_shown_with_a_line_that_says_so() {
    let (_server, _sandbox, run) = run(vec![Reply::stream().delta(&json!({"content": "to be cont"})).end("length")]);
    let run = run.code(1);
    assert_eq!(run.stdout, "to be cont\n");
    assert!(run.one_line().contains("not complete"), "{run:#?}");
}

#[test]
fn comments_crlf_and_a_byte_order_mark_in_the_stream_are_no_trouble() {
    let data = json!({"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]});
    let reply = Reply::stream()
        .send(format!("\u{feff}: ping\r\n\r\nevent: x\r\nid: 1\r\ndata: {data}\r\n\r\ndata: [DONE]\r\n\r\n"));
    let (_server, _sandbox, run) = run(vec![reply]);
    assert_eq!(run.ok().silent().stdout, "ok\n");
}

#[test]
fn tokens_are_counted() {
    let (_server, sandbox, run) = run(vec![Reply::text("x")]);
    run.ok();
    let usage = sandbox.messages().pop().unwrap()["usage"].clone();
    assert_eq!((&usage["input"], &usage["output"], &usage["totalTokens"]), (&json!(11), &json!(7), &json!(18)));
}

#[test]
fn an_answer_of_a_megabyte_in_small_pieces_arrives_whole() {
    let mut reply = Reply::stream();
    let piece = "0123456789abcdef".repeat(64);
    for _ in 0..1024 {
        reply = reply.delta(&json!({"content": piece}));
    }
    let (_server, _sandbox, run) = run(vec![reply.end("stop")]);
    assert_eq!(run.ok().silent().stdout.len(), (1 << 20) + 1);
}

#[test]
fn a_run_of_many_turns_sends_all_of_them() {
    let mut replies: Vec<Reply> = (0..30).map(|_| Reply::calls(&[("read", "{\"path\":\"a.txt\"}")])).collect();
    replies.push(Reply::text("enough"));
    let (server, sandbox, run) = run(replies);
    assert_eq!(run.ok().silent().stdout, "enough\n");
    assert_eq!(server.bodies()[30]["messages"].as_array().unwrap().len(), 2 + 60);
    session_entries(&sandbox.session_files()[0]);
}

#[test]
fn a_failing_scripted_model_is_one_line() {
    let sandbox = Sandbox::new();
    let script = json!({"turns": [{"fail": {"message": "Overloaded", "status": 529, "after-text": "I was"}}]});
    let run = sandbox.scripted(&script).arg("go").run().code(1);
    assert!(run.one_line().contains("Overloaded"), "{run:#?}");
    let run = sandbox.scripted(&json!({"turns": [{"txt": "typo"}]})).arg("go").run().code(1);
    assert!(run.stderr.contains("txt"), "{run:#?}");
    let run = sandbox.scripted(&json!({"turns": []})).arg("go").run().code(1);
    assert!(!run.stderr.is_empty(), "{run:#?}");
}

#[test]
fn a_complete_answer_is_not_held_up_by_a_server_that_keeps_the_connection_open() {
    let gate = Gate::default();
    let finished = json!({"choices": [{"delta": {"content": "all of it"}, "finish_reason": "stop"}]});
    let server =
        Server::start(vec![Reply::stream().send(format!("data: {finished}\n\n")).then(Step::Wait(gate.clone()))]);
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    let run = sandbox.atoll().args(["-p", "hi"]).run().ok();
    assert_eq!(run.stdout, "all of it\n");
    gate.open();
}
