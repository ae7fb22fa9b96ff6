//! Extensions in a run: what they are told, and what comes of their answers.

use atoll_table::extension::EventKind;
use serde_json::{Value, json};

use crate::common::{
    Sandbox, json_lines,
    plugins::workspace_root,
    puppets::{no_call, one_call},
    server::{Reply, Server},
    text_of,
};

/// The texts of the user's messages in a request.
fn user_texts(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user");
    messages.map(|message| text_of(&message["content"])).collect()
}

fn system_text(body: &Value) -> String {
    text_of(&body["messages"][0]["content"])
}

/// A run that asks a server, with these puppets; gives what the server was asked.
#[track_caller]
fn asked(puppets: &[(&str, Value)], replies: usize, prompts: &[&str]) -> (Sandbox, Vec<Value>) {
    let server = Server::start((0..replies).map(|_| Reply::text("done")).collect());
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    let names = sandbox.puppets(puppets);
    sandbox.atoll().args(names).arg("-p").args(prompts).run().ok();
    (sandbox, server.bodies())
}

/// The name of every event there is.
/// Who wants to hear of servers takes the place of the adapter that is built in, which is said.
const WITHOUT_ADAPTER: [&str; 2] = ["-e", "-builtin:mcp"];

fn all_events() -> Vec<&'static str> {
    EventKind::ALL.into_iter().map(EventKind::as_str).collect()
}

#[test]
fn an_extension_sees_every_event_of_a_run_in_order() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "alpha\n");
    let does = json!({"events": all_events(), "record": "store"});
    let script = one_call("read", &json!({"path": "a.txt"}));
    sandbox.with_puppets(&[("watcher", does)], &script).args(WITHOUT_ADAPTER).arg("go").run().ok().silent();
    let mut names: Vec<String> = sandbox.told_in_store("watcher").into_iter().map(|(name, _)| name).collect();
    names.dedup();
    let guide = std::fs::read_to_string(workspace_root().join("guest-extensions/README.md")).unwrap();
    let table = guide.lines().filter(|line| line.starts_with("| `")).collect::<Vec<_>>().join("\n");
    for name in names.iter().filter(|name| !["start", "stop"].contains(&name.as_str())) {
        assert!(table.contains(&format!("`{name}`")), "the guide's table does not name {name}");
    }
    insta::assert_snapshot!(names.join("\n"));
}

/// The events of JSON mode, without what differs from run to run.
fn shape(stdout: &str) -> Vec<Value> {
    let mut events = json_lines(stdout);
    fn settle(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match name.as_str() {
                        "timestamp" | "durationMs" | "id" | "responseId" | "toolCallId" => *value = Value::Null,
                        _ => settle(value),
                    }
                }
            }
            Value::Array(values) => values.iter_mut().for_each(settle),
            _ => {}
        }
    }
    events.iter_mut().for_each(settle);
    events
}

#[test]
fn an_extension_that_only_watches_changes_nothing_of_json_mode() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "alpha\n");
    let script = one_call("read", &json!({"path": "a.txt"}));
    let options = ["--no-session", "--mode", "json", "-t", "read", "go"];
    let without = sandbox.scripted(&script).args(options).run().ok().silent();
    let watching = sandbox
        .with_puppets(&[("watcher", json!({"events": all_events()}))], &script)
        .args(WITHOUT_ADAPTER)
        .args(options)
        .run()
        .ok()
        .silent();
    assert_eq!(shape(&without.stdout), shape(&watching.stdout));
}

#[test]
fn a_block_is_what_the_model_reads_and_the_call_does_not_run() {
    let sandbox = Sandbox::new();
    let gate = json!({"events": ["tool-call", "tool-result"], "record": "entry", "answers": {"tool-call": [
        {"when": "rm -rf", "block": "Not with this one."}]}});
    let script = json!({"turns": [
        {"calls": [{"tool": "bash", "arguments": {"command": "touch ran; rm -rf x"}}]},
        {"calls": [{"tool": "bash", "arguments": {"command": "touch allowed"}}]}, {"text": "done"}]});
    sandbox.with_puppets(&[("gate", gate)], &script).arg("go").run().ok();
    let results = sandbox.results();
    assert_eq!(
        (text_of(&results[0]["content"]).as_str(), &results[0]["isError"]),
        ("Not with this one.", &json!(true))
    );
    assert_eq!(results[1]["isError"], false);
    assert!(!sandbox.work().join("ran").exists() && sandbox.work().join("allowed").exists());
    let told = sandbox.told();
    let results = told.iter().filter(|(name, _)| name == "tool-result").count();
    assert_eq!(results, 1, "what was blocked has no result to show: {told:#?}");
    let (_, call) = told.iter().find(|(name, _)| name == "tool-call").unwrap();
    assert_eq!((&call["tool"], &call["plugin"]), (&json!("bash"), &json!("bash")));
}

#[test]
fn the_default_reason_is_said_where_an_extension_gives_none_and_a_run_can_end_with_it() {
    let sandbox = Sandbox::new();
    let answer = json!({"block": "", "terminate": true});
    let gate = json!({"events": ["tool-call"], "answers": {"tool-call": [answer]}});
    let run = sandbox
        .with_puppets(&[("gate", gate)], &one_call("bash", &json!({"command": "ls"})))
        .args(["--mode", "json", "go"])
        .run();
    let run = run.ok();
    let text = text_of(&sandbox.results()[0]["content"]);
    assert!(text.contains("extension blocked"), "{text}");
    let ended = json_lines(&run.stdout).into_iter().find(|event| event["type"] == "tool_execution_end").unwrap();
    assert_eq!((&ended["isError"], &ended["durationMs"]), (&json!(true), &Value::Null));
    let answers = sandbox.messages().iter().filter(|message| message["role"] == "assistant").count();
    assert_eq!(answers, 1, "the run ended with the block");
}

#[test]
fn arguments_are_rewritten_in_load_order_and_not_checked_again() {
    let sandbox = Sandbox::new();
    let rewrite = |command: &str, when: &str| {
        let answer = json!({"when": when, "rewrite": {"command": command}});
        json!({"events": ["tool-call"], "answers": {"tool-call": [answer]}})
    };
    let puppets = [("one", rewrite("echo one", "first")), ("two", rewrite("echo two > won", "echo one"))];
    let script = one_call("bash", &json!({"command": "echo first"}));
    sandbox.with_puppets(&puppets, &script).arg("go").run().ok();
    assert_eq!(sandbox.read("won"), "two\n");
    // What does not fit the schema reaches the tool, which says so itself.
    let sandbox = Sandbox::new();
    let odd = json!({"events": ["tool-call"], "answers": {"tool-call": [{"rewrite": {"command": 7}}]}});
    sandbox.with_puppets(&[("odd", odd)], &script).arg("go").run().ok();
    let text = text_of(&sandbox.results()[0]["content"]);
    assert!(sandbox.results()[0]["isError"] == true && !text.contains("Validation"), "{text}");
}

#[test]
fn a_patched_result_is_what_the_model_reads_and_loses_its_data() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "the secret\n");
    let redact = json!({"events": ["tool-result"], "answers": {"tool-result": [
        {"when": "secret", "patch": {"text": "the ***", "details": {"redacted": 1}}}]}});
    let watch = json!({"events": ["tool-result"], "record": "entry"});
    let puppets = [("redactor", redact), ("watcher", watch)];
    sandbox.with_puppets(&puppets, &one_call("read", &json!({"path": "a.txt"}))).arg("go").run().ok();
    let result = &sandbox.results()[0];
    assert_eq!((text_of(&result["content"]).as_str(), &result["details"]["redacted"]), ("the ***", &json!(1)));
    let told = sandbox.told();
    let (_, seen) = told.iter().find(|(name, _)| name == "tool-result").unwrap();
    assert_eq!((&seen["text"], &seen["structured"]), (&json!("the ***"), &Value::Null), "later ones see the patch");
}

#[test]
fn input_is_transformed_in_order_and_handled_input_reaches_no_model() {
    let transform = |text: &str| json!({"events": ["input"], "answers": {"input": [{"transform": text}]}});
    let puppets = [("one", transform("from one")), ("two", transform("from two"))];
    let (_, bodies) = asked(&puppets, 1, &["hello"]);
    assert_eq!(user_texts(&bodies[0]), ["from two"]);
    let deals = json!({"events": ["input"], "answers": {"input": [{"when": "ping", "handled": true}]}});
    let (sandbox, bodies) = asked(&[("deals", deals)], 1, &["ping", "hello"]);
    assert_eq!(bodies.len(), 1);
    assert_eq!(user_texts(&bodies[0]), ["hello"]);
    assert_eq!(sandbox.messages().iter().filter(|message| message["role"] == "user").count(), 1);
}

#[test]
fn a_message_is_injected_and_another_system_prompt_holds_for_one_run_only() {
    let message = json!({"customType": "rules", "content": "Mind the rules.", "display": true});
    let begin = json!({"events": ["before-agent-start"], "answers": {"before-agent-start": [
        {"when": "first", "reply": {"message": message, "systemPrompt": "Be a pirate."}}]}});
    let (sandbox, bodies) = asked(&[("begin", begin)], 2, &["first", "next"]);
    assert_eq!(user_texts(&bodies[0]), ["first", "Mind the rules."]);
    assert_eq!(system_text(&bodies[0]), "Be a pirate.");
    assert!(system_text(&bodies[1]).contains("<cwd>"), "{}", system_text(&bodies[1]));
    let entry = sandbox.session().into_iter().find(|entry| entry["type"] == "custom_message").unwrap();
    assert_eq!((&entry["customType"], &entry["display"]), (&json!("rules"), &json!(true)));
}

#[test]
fn context_is_changed_for_the_request_and_not_in_the_session() {
    let instead = json!([{"role": "user", "content": "something else"}]);
    let forget = json!({"events": ["context"], "answers": {"context": [{"reply": {"messages": instead}}]}});
    let (sandbox, bodies) = asked(&[("forget", forget)], 1, &["my secret"]);
    assert_eq!(user_texts(&bodies[0]), ["something else"]);
    assert!(system_text(&bodies[0]).contains("<cwd>"));
    assert_eq!(text_of(&sandbox.messages()[1]["content"]), "my secret");
    // The instructions have to stay at the start; else everything stays as it was, and it is said.
    let bare = json!({"events": ["context-with-system"], "answers": {"context-with-system": [
        {"reply": {"messages": instead}}]}});
    let server = Server::start(vec![Reply::text("done")]);
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    let names = sandbox.puppets(&[("bare", bare)]);
    let run = sandbox.atoll().args(names).args(["-p", "hello"]).run().ok();
    assert!(run.stderr.contains("bare") && run.stderr.contains("context-with-system"), "{run:#?}");
    assert_eq!(user_texts(&server.bodies()[0]), ["hello"]);
}

#[test]
fn a_replaced_message_keeps_its_role() {
    let replace = |role: &str| {
        let message = json!({"role": role, "content": [{"type": "text", "text": "redacted"}]});
        json!({"events": ["message-end"], "answers": {"message-end": [
            {"when": "my secret", "reply": {"message": message}}]}})
    };
    let (sandbox, bodies) = asked(&[("redactor", replace("user"))], 1, &["my secret"]);
    assert_eq!(user_texts(&bodies[0]), ["redacted"]);
    assert!(!sandbox.messages().iter().any(|message| message.to_string().contains("my secret")));
    let (_, bodies) = asked(&[("redactor", replace("assistant"))], 1, &["my secret"]);
    assert_eq!(user_texts(&bodies[0]), ["my secret"]);
}

#[test]
fn one_more_request_is_made_when_a_handler_says_so() {
    for event in ["turn-end", "agent-before-settle"] {
        let once = json!([{"times": {"key": "asked", "most": 1, "steps": [
            {"send": {"text": "Check again.", "delivery": "steer"}}]}}]);
        let more = json!({"events": [event], "answers": {event: [{"steps": once, "reply": {"entries": [
            {"type": "custom", "customType": "note", "data": {"n": 1}}]}}]}});
        let (sandbox, bodies) = asked(&[("more", more)], 2, &["hello"]);
        assert_eq!((bodies.len(), user_texts(&bodies[1])), (2, vec!["hello".to_owned(), "Check again.".to_owned()]));
        assert!(sandbox.session().iter().any(|entry| entry["customType"] == "note"), "{event}");
    }
    let go_on = json!({"events": ["turn-end"], "answers": {"turn-end": [
        {"when": "first answer", "reply": {"continue": true}}]}});
    let server = Server::start(vec![Reply::text("first answer"), Reply::text("second")]);
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    let names = sandbox.puppets(&[("more", go_on)]);
    assert_eq!(sandbox.atoll().args(names).args(["-p", "hello"]).run().ok().stdout, "second\n");
}

#[test]
fn a_handler_that_always_wants_one_more_request_does_not_get_it_for_ever() {
    let go_on = json!({"events": ["turn-end"], "answers": {"turn-end": [{"reply": {"continue": true}}]}});
    let server = Server::start((0..60).map(|number| Reply::text(&number.to_string())).collect());
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    let names = sandbox.puppets(&[("more", go_on)]);
    let run = sandbox.atoll().args(names).args(["-p", "hello"]).run().ok();
    assert!(run.stderr.contains("the extension more failed at turn-end: 50 requests in a row"), "{run:#?}");
    assert_eq!(server.bodies().len(), 51);
    // Nor does one that has something said at the end of each run as well: all are counted together.
    let steps = json!([{"send": {"text": "again", "delivery": "followUp"}}]);
    let both =
        json!({"events": ["turn-end"], "answers": {"turn-end": [{"steps": steps, "reply": {"continue": true}}]}});
    let server = Server::start((0..120).map(|number| Reply::text(&number.to_string())).collect());
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    let names = sandbox.puppets(&[("more", both)]);
    sandbox.atoll().args(names).args(["-p", "hello"]).run().ok();
    assert_eq!(server.bodies().len(), 51);
}

#[test]
fn steer_follow_up_and_next_turn_come_when_they_are_due() {
    let send = |text: &str, delivery: &str| json!({"send": {"text": text, "delivery": delivery}});
    let steps = json!([send("later", "nextTurn"), send("after", "followUp"), send("now", "steer")]);
    let sends = json!({"events": ["tool-call"], "answers": {"tool-call": [{"steps": steps}]}});
    let server = Server::start(vec![
        Reply::calls(&[("ls", "{}")]),
        Reply::text("one"),
        Reply::text("two"),
        Reply::text("three"),
    ]);
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    let names = sandbox.puppets(&[("sends", sends)]);
    let run = sandbox.atoll().args(names).args(["-t", "ls", "--mode", "json", "-p", "first", "second"]).run().ok();
    let texts: Vec<Vec<String>> = server.bodies().iter().map(user_texts).collect();
    assert_eq!(texts[0], ["first"]);
    assert_eq!(texts[1], ["first", "now"]);
    assert_eq!(texts[2], ["first", "now", "after"]);
    assert_eq!(texts[3], ["first", "now", "after", "second", "later"]);
    let updates = json_lines(&run.stdout).into_iter().filter(|event| event["type"] == "queue_update");
    let fullest = updates
        .max_by_key(|event| event["followUp"].as_array().unwrap().len() + event["steering"].as_array().unwrap().len());
    assert_eq!(
        fullest.map(|event| (event["steering"].clone(), event["followUp"].clone())),
        Some((json!(["now"]), json!(["after"])))
    );
}

#[test]
fn what_is_sent_while_nothing_runs_begins_a_run_of_its_own() {
    let does = json!({"events": ["session-start"], "answers": {"session-start": [
        {"steps": [{"send": {"text": "before", "delivery": "steer"}}]}]}});
    let (_, bodies) = asked(&[("eager", does)], 2, &["hello"]);
    assert_eq!(user_texts(&bodies[0]), ["before"]);
    assert_eq!(user_texts(&bodies[1]), ["before", "hello"]);
}

#[test]
fn entries_labels_and_names_are_in_the_session_file() {
    let sandbox = Sandbox::new();
    let steps = json!([
        {"append": {"type": "state", "data": {"n": 1}}}, {"name": "my work"},
        {"try": {"label": {"entry": "gone", "label": "x"}}}, {"thinking": "high"}]);
    let does = json!({"commands": {"keep": steps}, "record": "entry"});
    sandbox.with_puppets(&[("keeper", does)], &no_call()).args(["hello", "/keep it"]).run().ok();
    let entries = sandbox.session();
    let of = |kind: &str| entries.iter().find(|entry| entry["type"] == kind).unwrap_or_else(|| panic!("no {kind}"));
    assert_eq!(of("session_info")["name"], "my work");
    assert_eq!(entries.iter().find(|entry| entry["customType"] == "state").unwrap()["data"], json!({"n": 1}));
    let told = sandbox.told();
    let (_, ran) = told.iter().find(|(name, _)| name == "command").unwrap();
    assert_eq!(*ran, json!({"name": "keep", "arguments": "it"}));
    let (_, end) = told.iter().find(|(name, _)| name == "command-end").unwrap();
    assert_eq!(end["gave"][2]["code"], "not-found");
    assert_eq!(
        sandbox.messages().iter().filter(|message| message["role"] == "user").count(),
        1,
        "a command is no prompt"
    );
}

#[test]
fn a_command_that_fails_ends_the_run_with_its_reason() {
    let sandbox = Sandbox::new();
    let does = json!({"commands": {"bad": [{"fail": "It is Sunday."}]}});
    let run = sandbox.with_puppets(&[("lazy", does)], &no_call()).args(["/bad"]).run().code(1);
    assert!(run.one_line().contains("It is Sunday."), "{run:#?}");
}

#[test]
fn a_tool_that_an_extension_adds_is_declared_and_called_in_its_one_instance() {
    let server = Server::start(vec![Reply::calls(&[("remember", "{}")]), Reply::text("done")]);
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    let does = json!({"events": ["turn-start"], "tools": [{"name": "remember", "steps": [{"told": null}]}]});
    let names = sandbox.puppets(&[("keeper", does)]);
    sandbox.atoll().args(names).args(["-p", "hello"]).run().ok();
    let bodies = server.bodies();
    let declared: Vec<&str> =
        bodies[0]["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert_eq!(declared.last(), Some(&"remember"), "{declared:?}");
    let text = text_of(&sandbox.results()[0]["content"]);
    assert!(text.contains("\"event\":\"start\"") && text.contains("turn-start"), "{text}");
}

#[test]
fn a_nested_call_from_a_handler_has_its_id_and_goes_through_the_same_checks() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "alpha\n");
    let calls = json!([{"call": {"tool": "read", "arguments": {"path": "a.txt"}}}]);
    let does = json!({"events": ["turn-end"], "answers": {"turn-end": [{"steps": calls}]}});
    let gate = json!({"events": ["tool-call"], "record": "entry", "answers": {"tool-call": [{"when": "a.txt", "block": "no"}]}});
    let run =
        sandbox.with_puppets(&[("caller", does), ("gate", gate)], &no_call()).args(["--mode", "json", "go"]).run().ok();
    let events = json_lines(&run.stdout);
    let ended = events.iter().find(|event| event["type"] == "tool_execution_end").unwrap();
    let (id, parent) = (ended["toolCallId"].as_str().unwrap(), ended["parentToolCallId"].as_str().unwrap());
    assert!(parent.starts_with("caller:") && id == format!("{parent}/1"), "{ended:#}");
    assert_eq!(ended["isError"], true, "{ended:#}");
    assert!(sandbox.told().iter().any(|(name, fields)| name == "tool-call" && fields["id"] == id));
}

#[test]
fn a_section_of_the_prompt_comes_and_goes() {
    let set = |text: &Value| json!([{"section": {"name": "weather", "text": text}}]);
    let does = json!({"commands": {"rain": set(&json!("It rains.")), "clear": set(&Value::Null),
        "steal": [{"section": {"name": "preamble", "text": "Mine."}}]}});
    let (_, bodies) = asked(&[("sky", does.clone())], 3, &["one", "/rain", "two", "/clear", "three"]);
    let has = |at: usize| system_text(&bodies[at]).contains("<weather>\nIt rains.\n</weather>");
    assert_eq!((has(0), has(1), has(2)), (false, true, false));
    let sandbox = Sandbox::new();
    let run = sandbox.with_puppets(&[("sky", does)], &no_call()).args(["/steal"]).run().code(3);
    assert!(run.one_line().contains("preamble"), "{run:#?}");
}

#[test]
fn a_completion_of_its_own_takes_no_tools_and_is_no_message() {
    let does =
        json!({"commands": {"ask": [{"complete": {"system": "Be brief.", "prompt": "And?"}}]}, "record": "entry"});
    let (sandbox, bodies) = asked(&[("asker", does)], 2, &["/ask", "hello"]);
    assert_eq!((system_text(&bodies[0]).as_str(), user_texts(&bodies[0])), ("Be brief.", vec!["And?".to_owned()]));
    assert!(bodies[0]["tools"].as_array().is_none_or(Vec::is_empty), "{}", bodies[0]["tools"]);
    let told = sandbox.told();
    let (_, end) = told.iter().find(|(name, _)| name == "command-end").unwrap();
    assert_eq!(end["gave"][0]["text"], "done");
    assert_eq!(sandbox.messages().iter().filter(|message| message["role"] == "assistant").count(), 1);
}

#[test]
fn what_one_says_on_the_bus_others_hear() {
    let sandbox = Sandbox::new();
    let says = json!({"commands": {"say": [{"emit": {"topic": "news", "data": {"n": 1}}}]}, "topics": ["news"], "record": "log"});
    let hears = json!({"topics": ["news"], "events": ["turn-end"], "record": "entry"});
    sandbox.with_puppets(&[("says", says), ("hears", hears)], &no_call()).args(["/say", "hello"]).run().ok();
    let told = sandbox.told();
    let (_, news) = told.iter().find(|(name, _)| name == "bus").unwrap();
    assert_eq!(*news, json!({"topic": "news", "sender": "says", "data": {"n": 1}}));
}

#[test]
fn an_extension_that_shuts_down_ends_the_run_after_the_prompt() {
    let does = json!({"events": ["turn-end"], "answers": {"turn-end": [{"steps": [{"shutdown": null}]}]}});
    let (_, bodies) = asked(&[("ends", does)], 1, &["one", "two"]);
    assert_eq!(bodies.len(), 1);
}
