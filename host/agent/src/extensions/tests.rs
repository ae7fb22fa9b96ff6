#[path = "test_stage.rs"]
mod stage;

use std::sync::Mutex;

use atoll_table::{
    ToolRunner,
    extension::{
        Bus as _, Command, Delivery, Flag, FlagKind, ModelAccess as _, SessionAccess as _, Subscription, Tables as _,
    },
};

use super::*;
use crate::{Teller, event::Sink, extensions::own_tables::OwnTables, nested_calls::NestedEvent};
use stage::{Fake, Log, Work, pass, reply, stage, tool, who};

#[tokio::test]
async fn an_extension_sees_a_run_from_its_beginning_to_its_end() {
    let all = Arc::new(Fake::new("all", &EventKind::ALL, pass));
    let stage = stage(&[&all], &["work"]);
    stage.prompt("go").await;
    let mut kinds = all.kinds();
    assert!(kinds.contains(&"provider-stream-event"));
    // Each piece of an answer is one, before what is made of it.
    kinds.retain(|kind| *kind != "provider-stream-event");
    let turn = |kinds: &mut Vec<&str>, answer: &[&'static str]| {
        kinds.extend(["context", "context-with-system", "before-provider-headers", "before-provider-request"]);
        kinds.push("message-start");
        kinds.extend(answer);
        kinds.push("message-end");
    };
    let mut expected = vec!["agent-start", "before-agent-start", "turn-start"];
    expected.extend(["message-start", "message-end", "message-start", "message-end"]);
    turn(&mut expected, &["message-update"; 2]);
    expected.extend(["tool-execution-start", "tool-call", "tool-result", "tool-execution-end"]);
    expected.extend(["message-start", "message-end", "turn-end", "turn-start"]);
    turn(&mut expected, &["message-update"; 3]);
    expected.extend(["turn-end", "agent-before-settle", "agent-end", "agent-settled"]);
    assert_eq!(kinds, expected);
    let begin = all.fields(EventKind::BeforeAgentStart);
    assert_eq!((&begin["prompt"], &begin["messageType"]), (&json!("go"), &json!("user")));
    assert!(begin["systemPrompt"].as_str().unwrap().contains("<cwd>"), "{begin}");
    assert_eq!(begin["systemPromptOptions"]["selectedTools"], json!(["work", "other"]));
    let turn = all.fields(EventKind::TurnEnd);
    assert_eq!((&turn["outcome"], turn["toolResultEntryIds"].as_array().unwrap().len()), (&json!("completed"), 1));
    assert_eq!(all.fields(EventKind::TurnStart)["turnIndex"], 0);
    assert_eq!(all.fields(EventKind::AgentSettled), json!({"aborted": false}));
    let update = all.fields(EventKind::MessageUpdate);
    assert_eq!(
        (&update["message"]["role"], &update["assistantMessageEvent"]["type"]),
        (&json!("assistant"), &json!("toolcall_start"))
    );
    assert!(stage.failed().is_empty());
}

#[tokio::test]
async fn what_is_shown_is_the_same_with_an_extension_that_only_watches() {
    let all = Arc::new(Fake::new("all", &EventKind::ALL, pass));
    let (with, without) = (stage(&[&all], &["work"]), stage(&[], &["work"]));
    with.prompt("go").await;
    without.prompt("go").await;
    assert_eq!(*with.shown.lock().unwrap(), *without.shown.lock().unwrap());
}

#[tokio::test]
async fn calls_are_rewritten_blocked_and_patched_in_load_order() {
    let log = Log::default();
    let rewrite = |key: &'static str| {
        move |event: &Event| match event {
            Event::ToolCall(call) => {
                let mut arguments = call.arguments.clone();
                arguments[key] = json!(arguments.as_object().unwrap().len());
                Ok(Outcome::Rewrite(arguments))
            }
            Event::ToolResult(_, output) => {
                let text = format!("{} {key}", Content::joined_text(&output.content));
                let content = Some(vec![Content::text(text)]);
                Ok(Outcome::Patch(atoll_table::hooks::ResultPatch { content, ..Default::default() }))
            }
            _ => Ok(Outcome::Pass),
        }
    };
    let kinds = [EventKind::ToolCall, EventKind::ToolResult];
    let mut fakes = [Fake::new("a", &kinds, rewrite("x")), Fake::new("b", &kinds, rewrite("y"))];
    fakes.iter_mut().for_each(|fake| fake.log = Arc::clone(&log));
    let [a, b] = fakes.map(Arc::new);
    let both = stage(&[&a, &b], &["work"]);
    both.prompt("go").await;
    assert_eq!(*log.lock().unwrap(), ["a tool-call", "b tool-call", "a tool-result", "b tool-result"]);
    let Some(Message::ToolResult(result)) = both.messages().into_iter().find(|message| message.role() == "toolResult")
    else {
        panic!("no result")
    };
    assert_eq!(Content::joined_text(&result.content), "c1 {\"x\":0,\"y\":1} x y");
    let gate = Arc::new(Fake::new("gate", &[EventKind::ToolCall], |_| {
        Ok(Outcome::Block { reason: Some("not here".to_owned()), terminate: true })
    }));
    let blocked = stage(&[&gate, &a], &["work"]);
    log.lock().unwrap().clear();
    blocked.prompt("go").await;
    assert!(log.lock().unwrap().is_empty(), "whoever comes later is not asked, and there is no result to show");
    assert_eq!(blocked.model.requests(), 1, "the run ends");
    let broken = Arc::new(Fake::new("gate", &[EventKind::ToolCall], |_| Err(Error::Failed("boom".to_owned()))));
    let failed = stage(&[&broken], &["work", "work"]);
    failed.prompt("go").await;
    let texts: Vec<String> = failed
        .messages()
        .iter()
        .filter_map(|message| match message {
            Message::ToolResult(result) => Some(Content::joined_text(&result.content)),
            _ => None,
        })
        .collect();
    assert!(texts.iter().all(|text| text.contains("not carried out") && text.contains("boom")), "{texts:?}");
    assert_eq!(failed.failed(), ["gate: boom", "gate: it failed in the same way (failed) once more"]);
}

#[tokio::test]
async fn who_wants_to_know_of_calls_of_one_tool_hears_of_no_other() {
    let mut fake = Fake::new("one", &[], |event| match event {
        Event::ToolCall(call) => Ok(Outcome::Block { reason: Some(format!("not {}", call.tool)), terminate: false }),
        _ => Ok(Outcome::Pass),
    });
    fake.wants.of_tools = vec![(EventKind::ToolCall, "other".to_owned()), (EventKind::ToolResult, "work".to_owned())];
    let log = Arc::clone(&fake.log);
    let stage = stage(&[&Arc::new(fake)], &["work", "other"]);
    stage.prompt("go").await;
    let texts: Vec<String> = (stage.messages().iter())
        .filter_map(|message| match message {
            Message::ToolResult(result) => Some(Content::joined_text(&result.content)),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["c1 {}", "not other"]);
    // The calls run beside each other.
    log.lock().unwrap().sort_unstable();
    assert_eq!(*log.lock().unwrap(), ["one tool-call", "one tool-result"]);
}

#[tokio::test]
async fn an_answer_that_means_nothing_is_reported_and_changes_nothing() {
    let odd = Arc::new(Fake::new("odd", &EventKind::ALL, |event| match event {
        Event::Input(_) => Ok(Outcome::Rewrite(json!({}))),
        Event::ToolCall(_) => Ok(Outcome::Pass),
        _ => Ok(Outcome::Handled),
    }));
    let stage = stage(&[&odd], &["work"]);
    let content = vec![Content::text("go")];
    let input = stage.agent.extensions.input(content.clone(), "interactive", &CancellationToken::new()).await;
    assert_eq!(input, InputEffect::Go(content));
    let outcome = stage.prompt("go").await;
    assert!(!outcome.aborted && stage.model.requests() == 2);
    let failed = stage.failed();
    for kind in
        ["input", "before-agent-start", "context", "context-with-system", "message-end", "tool-result", "turn-end"]
    {
        let said = format!("odd: its answer to {kind} was");
        assert!(failed.iter().any(|line| line.starts_with(&said)), "{kind}: {failed:#?}");
    }
}

#[tokio::test]
async fn input_goes_through_all_until_one_deals_with_it() {
    let adds = |text: &'static str| {
        move |event: &Event| {
            let Event::Input(input) = event else { panic!("{event:?}") };
            Ok(Outcome::Transform { text: format!("{}{text}", input.text), images: None })
        }
    };
    let kinds = [EventKind::Input];
    let (a, b) = (Arc::new(Fake::new("a", &kinds, adds(" a"))), Arc::new(Fake::new("b", &kinds, adds(" b"))));
    let ends = Arc::new(Fake::new("ends", &kinds, |_| Ok(Outcome::Handled)));
    let stop = CancellationToken::new();
    let input = |fakes: Vec<&Arc<Fake>>| {
        let (stage, stop) = (stage(&fakes, &[]), stop.clone());
        async move { stage.agent.extensions.input(vec![Content::text("go")], "interactive", &stop).await }
    };
    assert_eq!(input(vec![&a, &b]).await, InputEffect::Go(vec![Content::text("go a b")]));
    assert_eq!(input(vec![&ends, &a]).await, InputEffect::Handled);
    assert_eq!(a.told.lock().unwrap().len(), 1, "what is dealt with is not shown to later ones");
}

#[tokio::test]
async fn another_prompt_holds_for_one_run_and_messages_are_injected() {
    let once = Mutex::new(true);
    let begin = Arc::new(Fake::new("begin", &[EventKind::BeforeAgentStart], move |_| {
        if !std::mem::replace(&mut *once.lock().unwrap(), false) {
            return Ok(Outcome::Pass);
        }
        let message = json!({"customType": "rules", "content": "Mind the rules.", "display": true});
        reply(json!({"systemPrompt": "Be a pirate.", "message": message}))
    }));
    let stage = stage(&[&begin], &[]);
    stage.prompt("one").await;
    stage.prompt("two").await;
    assert_eq!(stage.model.system(0), "Be a pirate.");
    assert!(stage.model.system(1).contains("<cwd>"), "{}", stage.model.system(1));
    assert_eq!(stage.model.user(0), ["one", "Mind the rules."]);
    let roles: Vec<String> = stage.messages().iter().map(|message| message.role().to_owned()).collect();
    assert_eq!(roles, ["system", "user", "custom", "assistant", "user", "assistant"]);
}

#[tokio::test]
async fn context_is_changed_for_the_request_and_not_in_the_session() {
    let forget = Arc::new(Fake::new("forget", &[EventKind::Context], |_| {
        reply(json!({"messages": [{"role": "user", "content": "instead"}]}))
    }));
    let shout = Arc::new(Fake::new("shout", &[EventKind::ContextWithSystem], |event| {
        let Event::Other(_, fields) = event else { panic!("{event:?}") };
        assert_eq!(fields["messages"][1]["content"][0]["text"], "instead", "it sees what the ones before made");
        reply(json!({"messages": [{"role": "system", "content": "S"}, fields["messages"][1]]}))
    }));
    let stage = stage(&[&forget, &shout], &[]);
    stage.prompt("secret").await;
    assert_eq!((stage.model.user(0), stage.model.system(0)), (vec!["instead".to_owned()], "S".to_owned()));
    assert!(matches!(&stage.messages()[1], Message::User(user) if user.content == [Content::text("secret")]));
}

#[tokio::test]
async fn a_message_is_replaced_before_it_is_kept_and_told() {
    let redact = Arc::new(Fake::new("redact", &[EventKind::MessageEnd], |event| {
        let Event::Other(_, fields) = event else { panic!("{event:?}") };
        let mut message = fields["message"].clone();
        if message["role"] == "user" || message["role"] == "assistant" {
            message["content"][0]["text"] = json!("***");
        }
        reply(json!({"message": message}))
    }));
    let stage = stage(&[&redact], &[]);
    let outcome = stage.prompt("secret").await;
    assert_eq!(stage.model.user(0), ["***"]);
    assert_eq!(outcome.answer.unwrap().texts().collect::<String>(), "***");
    assert!(matches!(stage.messages().last(), Some(Message::Assistant(answer)) if answer.texts().eq(["***"])));
}

#[tokio::test]
async fn a_handler_adds_entries_and_has_one_more_request_made() {
    for kind in [EventKind::TurnEnd, EventKind::AgentBeforeSettle] {
        let once = Mutex::new(true);
        let more = Arc::new(Fake::new("more", &[kind], move |_| {
            if !std::mem::replace(&mut *once.lock().unwrap(), false) {
                return Ok(Outcome::Pass);
            }
            let message =
                json!({"type": "custom_message", "customType": "a", "content": "Check again.", "display": false});
            reply(json!({"continue": true, "entries": [message, {"type": "custom", "customType": "a", "data": 1}]}))
        }));
        let stage = stage(&[&more], &[]);
        stage.prompt("go").await;
        assert_eq!(
            (stage.model.requests(), stage.model.user(1)),
            (2, vec!["go".into(), "Check again.".into()]),
            "{kind}"
        );
        let entries = stage.access().entries().await.unwrap();
        assert!(entries.iter().any(|entry| entry["type"] == "custom" && entry["data"] == 1), "{entries:#?}");
    }
}

#[tokio::test]
async fn messages_are_said_when_they_are_due() {
    let stage = Arc::new(stage(&[], &["work"]));
    let access = stage.access();
    let me = who("me");
    let say = |text: &str, delivery| access.send(&me, vec![Content::text(text)], delivery);
    say("with the next prompt", Delivery::NextTurn).await.unwrap();
    say("after", Delivery::FollowUp).await.unwrap();
    say("steer", Delivery::Steer).await.unwrap();
    assert!(access.info().pending && access.info().idle);
    stage.prompt("go").await;
    assert_eq!(stage.model.user(0), ["go", "with the next prompt"]);
    assert_eq!(stage.model.user(1), ["go", "with the next prompt", "steer"]);
    assert_eq!(stage.model.user(2).last().unwrap(), "after");
    assert_eq!(stage.model.requests(), 3);
    assert!(!access.info().pending);
    let shown = stage.shown.lock().unwrap();
    assert!(shown.iter().any(|shown| shown == "queue_update"), "{shown:?}");
}

#[tokio::test]
async fn what_is_sent_while_nothing_runs_begins_a_run_and_a_custom_message_only_if_asked_to() {
    let stage = stage(&[], &[]);
    let access = stage.access();
    let message = |text: &str| atoll_table::extension::CustomMessage {
        custom_type: "a".to_owned(),
        content: vec![Content::text(text)],
        display: true,
        details: None,
    };
    access.send_custom(&who("me"), message("noted"), Delivery::Steer, false).await.unwrap();
    assert!(stage.agent.settle().await.unwrap().is_none());
    assert_eq!(stage.messages().len(), 1);
    access.send_custom(&who("me"), message("go"), Delivery::FollowUp, true).await.unwrap();
    assert!(stage.agent.settle().await.unwrap().is_some());
    assert_eq!(stage.model.user(0), ["noted", "go"]);
}

#[tokio::test]
async fn stopping_a_run_drops_what_would_have_followed() {
    let all = Arc::new(Fake::new("all", &[EventKind::TurnEnd], |_| Ok(Outcome::Pass)));
    let stage = Arc::new(stage(&[&all], &["work"]));
    let access = Arc::new(stage.access());
    let at = Arc::clone(&access);
    let gate = Arc::new(Fake::new("gate", &[EventKind::ToolCall], move |_| {
        at.abort();
        Ok(Outcome::Pass)
    }));
    stage.agent.extensions.add(gate);
    stage.agent.pipeline.set_hooks(stage.agent.extensions.hooks());
    access.send(&who("me"), vec![Content::text("after")], Delivery::FollowUp).await.unwrap();
    let outcome = stage.prompt("go").await;
    assert!(outcome.aborted && stage.agent.settle().await.unwrap().is_none());
    assert_eq!(stage.model.requests(), 1);
    assert!(access.info().idle);
}

#[tokio::test]
async fn the_session_is_named_labelled_and_asked_of() {
    let all = Arc::new(Fake::new("all", &EventKind::ALL, pass));
    let stage = stage(&[&all], &[]);
    let access = stage.access();
    access.set_name(" work ".to_owned()).await.unwrap();
    assert_eq!(access.info().name.as_deref(), Some("work"));
    let id = access.append(&who("me"), "state".to_owned(), json!({"n": 1})).await.unwrap();
    access.set_label(id.clone(), Some("here".to_owned())).await.unwrap();
    assert_eq!(access.set_label("gone".to_owned(), None).await.unwrap_err().code(), "not-found");
    access.set_thinking("high".to_owned()).await.unwrap();
    assert_eq!(access.info().thinking, "high");
    assert_eq!(access.set_thinking("harder".to_owned()).await.unwrap_err().code(), "invalid-arguments");
    access.set_model("scripted/other".to_owned()).await.unwrap();
    assert_eq!(
        (access.info().model.unwrap(), access.info().thinking),
        ("scripted/other".to_owned(), "high".to_owned())
    );
    assert_eq!(access.available()[0].name, "scripted/other");
    let kinds: Vec<String> =
        access.entries().await.unwrap().iter().map(|entry| entry["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["session_info", "custom", "label", "thinking_level_change", "model_change"]);
    assert_eq!(all.kinds(), ["session-info-changed", "thinking-level-select", "model-select"]);
    assert_eq!(access.compact(None).await.unwrap_err().code(), "unavailable");
    let answer = access.complete(&who("me"), None, "S".to_owned(), vec![Content::text("q")], Some(5)).await.unwrap();
    assert_eq!(answer.text, "done");
}

#[tokio::test]
async fn a_completion_of_its_own_takes_no_tools_and_is_no_message() {
    let stage = stage(&[], &[]);
    let answer =
        stage.access().complete(&who("me"), None, "S".to_owned(), vec![Content::text("q")], Some(5)).await.unwrap();
    assert_eq!(answer.text, "done");
    let asked = stage.model.asked.lock().unwrap();
    assert!(asked[0].tools.is_empty() && asked[0].model.max_tokens == 5);
    drop(asked);
    assert!(stage.messages().is_empty());
}

#[tokio::test]
async fn an_extension_calls_tools_by_itself_and_its_calls_have_numbers() {
    let stage = stage(&[], &[]);
    let events: Arc<Mutex<Vec<NestedEvent>>> = Arc::default();
    let to = Arc::clone(&events);
    let tables = OwnTables::new(
        stage.agent.pipeline.clone(),
        Arc::new(move |event: NestedEvent| to.lock().unwrap().push(event)),
    );
    let call = |parent: Option<&str>, depth| {
        let access = tables.access(&who("me"), parent, depth);
        async move { access.call(8, "work".to_owned(), json!({})).await.map(|done| Content::joined_text(&done.content)) }
    };
    assert_eq!(call(None, 0).await.unwrap(), "me/1 {}");
    assert_eq!(call(None, 0).await.unwrap(), "me/2 {}");
    assert_eq!(call(Some("me:7"), 8).await.unwrap(), "me:7/1 {}");
    assert_eq!(call(None, 9).await.unwrap_err(), Error::Limit { name: "nesting".to_owned(), value: 8 });
    assert_eq!(events.lock().unwrap()[0].parent_id, "me");
    let access = tables.access(&who("me"), None, 0);
    let runner: Arc<dyn ToolRunner> = Arc::new(Work);
    access.register(vec![tool("mine")], runner, 10).await.unwrap();
    assert_eq!(access.list().len(), 3);
    assert_eq!(call(None, 0).await.unwrap(), "me/3 {}");
    access.unregister(vec!["mine".to_owned()]).await.unwrap();
    assert_eq!(access.list().len(), 2);
}

#[tokio::test]
async fn who_can_not_be_started_is_left_out_and_named() {
    let (good, broken) = (
        Arc::new(Fake::new("good", &[EventKind::SessionShutdown], pass)),
        Arc::new(Fake::new("broken", &EventKind::ALL, pass)),
    );
    let stage = stage(&[&broken, &good], &[]);
    let failed = stage.agent.extensions.start().await;
    assert_eq!((failed.len(), failed[0].0.as_str()), (1, "broken"));
    assert_eq!(stage.agent.extensions.all().len(), 1);
    assert!(!stage.agent.extensions.wants(EventKind::Input));
    stage.agent.extensions.end("quit").await;
    assert_eq!(*good.log.lock().unwrap(), ["good session-shutdown", "good stop"]);
}

#[test]
fn the_bus_reaches_whoever_subscribed_but_the_sender() {
    let with_topics = |name, room| {
        let wants = Subscription { topics: vec!["news".to_owned()], ..Subscription::default() };
        Arc::new(Fake { wants, room, ..Fake::new(name, &[], pass) })
    };
    let (a, b, c) = (with_topics("a", 9), with_topics("b", 1), Arc::new(Fake::new("c", &[], pass)));
    let stage = stage(&[&a, &b, &c], &[]);
    let bus = &stage.agent.extensions;
    bus.emit(&who("a"), "news", json!(1)).unwrap();
    bus.emit(&who("c"), "other", json!(2)).unwrap();
    let count = |fake: &Arc<Fake>| fake.told.lock().unwrap().len();
    assert_eq!((count(&a), count(&b), count(&c)), (0, 1, 0));
    assert_eq!(bus.emit(&who("c"), "news", json!(3)).unwrap_err().code(), "limit", "b has no room");
    assert_eq!((count(&a), count(&b)), (1, 1), "whoever has room is told all the same");
}

fn command(name: &str) -> Command {
    Command { name: name.to_owned(), description: String::new(), hidden: false, completes: false }
}

#[tokio::test]
async fn commands_of_one_name_get_numbers_in_load_order() {
    let with = |name, commands: &[&str]| {
        let commands = commands.iter().map(|name| command(name)).collect();
        Arc::new(Fake { wants: Subscription { commands, ..Subscription::default() }, ..Fake::new(name, &[], pass) })
    };
    let (a, b, c) = (with("a", &["hello"]), with("b", &["hello", "hello:1"]), with("c", &["hello"]));
    let stage = stage(&[&a, &b, &c], &[]);
    let names: Vec<String> = stage.agent.extensions.commands().into_iter().map(|listed| listed.name).collect();
    assert_eq!(names, ["hello", "hello:1", "hello:1:1", "hello:2"]);
    let run = |text: &'static str| stage.agent.extensions.run_command(text);
    assert!(run("/hello:1  big\nworld ").await.unwrap().is_ok());
    assert_eq!(*b.log.lock().unwrap(), ["b /hello big\nworld"]);
    assert!(run("/nobody").await.is_none() && run("hello").await.is_none() && run("/").await.is_none());
}

#[test]
fn options_of_extensions_take_what_they_take() {
    let flag = |name: &str, kind, default: Option<&str>| Flag {
        name: name.to_owned(),
        description: String::new(),
        kind,
        default: default.map(str::to_owned),
    };
    let (plan, rules) = (flag("plan", FlagKind::Boolean, None), flag("rules", FlagKind::Text, None));
    let wants = Subscription { flags: vec![plan.clone(), rules.clone()], ..Subscription::default() };
    let fake = Arc::new(Fake { wants, ..Fake::new("a", &[], pass) });
    let stage = stage(&[&fake], &[]);
    let flags = Flags::default();
    let say = |name: &str, value: Option<&str>, detached| {
        flags.say(&stage.agent.extensions, name, value.map(str::to_owned), detached)
    };
    assert_eq!(flags.value(&plan).as_deref(), Some("false"));
    assert_eq!(say("plan", Some("go"), true).unwrap().as_deref(), Some("go"), "what stood behind it is a message");
    assert_eq!(flags.value(&plan).as_deref(), Some("true"));
    assert_eq!(say("plan", Some("false"), false).unwrap(), None);
    assert_eq!(flags.value(&plan).as_deref(), Some("false"));
    assert_eq!(flags.value(&rules), None);
    assert_eq!(say("rules", Some("strict"), true).unwrap(), None);
    assert_eq!(flags.value(&rules).as_deref(), Some("strict"));
    for (name, value, says) in [
        ("plam", None, "did you mean --plan?"),
        ("nothing-like-it", None, "no option --nothing-like-it;"),
        ("rules", None, "--rules=VALUE"),
        ("plan", Some("maybe"), "no value but true or false"),
    ] {
        let error = say(name, value, false).unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn what_is_dropped_for_want_of_room_is_counted() {
    let full = Arc::new(Fake { room: 0, ..Fake::new("full", &[EventKind::MessageUpdate], pass) });
    let stage = stage(&[&full], &[]);
    stage.agent.extensions.observe(EventKind::MessageUpdate, || json!({}));
    stage.agent.extensions.observe(EventKind::AgentStart, || panic!("nobody asked for this"));
    stage.agent.extensions.report_repeated();
    assert_eq!(stage.failed(), ["full: 1 event was not told to it, for it does not keep up"]);
}

#[tokio::test]
async fn a_teller_tells_of_what_nested_calls_do() {
    let all = Arc::new(Fake::new("all", &[EventKind::AgentStart], pass));
    let stage = stage(&[&all], &[]);
    let teller = Teller { sink: Sink::clone(&stage.agent.sink), extensions: stage.agent.extensions.clone() };
    teller.tell(&crate::Event::AgentStart);
    assert_eq!((all.kinds(), stage.shown.lock().unwrap().len()), (vec!["agent-start"], 1));
}

#[tokio::test]
async fn the_first_word_on_trust_counts_and_a_yes_only_of_one_that_may_say_so() {
    let says = |name: &'static str, word: &'static str| {
        Arc::new(Fake::new(name, &[EventKind::ProjectTrust], move |_| reply(json!({"trusted": word}))))
    };
    let (silent, bold, judge) = (says("silent", "undecided"), says("bold", "yes"), says("judge", "no"));
    let stage = stage(&[&silent, &bold, &judge], &[]);
    let word = stage.agent.extensions.project_trust(std::path::Path::new("/p"), |one| one.name() != "bold").await;
    assert_eq!(word, Some(TrustWord { by: "judge".to_owned(), trusted: false, remember: false }));
    assert_eq!(stage.failed().len(), 1, "{:?}", stage.failed());
    let word = stage.agent.extensions.project_trust(std::path::Path::new("/p"), |_| true).await;
    assert_eq!(word, Some(TrustWord { by: "bold".to_owned(), trusted: true, remember: false }));
    assert_eq!(judge.kinds(), ["project-trust"], "nobody is asked once there is a word");
}
