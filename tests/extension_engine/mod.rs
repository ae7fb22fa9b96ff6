//! Extensions as whoever runs a session reaches them: the engine with a session that only writes down what is done to it.

mod by_hand;
mod services;

use std::{sync::Arc, time::Duration};

use atoll_table::{
    Content, Error, Invocation, ToolOutput,
    extension::{Event, EventKind, Input, Outcome, StartReason},
    runner::KeptNow,
};
use serde_json::{Value, json};
use services::{World, ask_about, call};

fn no_limits() -> Value {
    json!({})
}

fn passed(outcome: &Result<Outcome, Error>) {
    assert_eq!(outcome, &Ok(Outcome::Pass));
}

#[tokio::test]
async fn answers_come_back_as_they_were_given() {
    let world = World::new(no_limits());
    let settings = json!({
        "events": ["tool-call", "tool-result", "input", "context", "tomorrow"],
        "commands": {"hello": []},
        "answers": {
            "tool-call": [
                {"when": "rm -rf", "block": "not here", "terminate": true},
                {"when": "shout", "rewrite": {"command": "SHOUT"}},
                {"when": "odd", "transform": "x"},
                {"when": "text", "rewriteRaw": "\"text\""},
                {"when": "broken", "steps": [{"fail": "out of order"}]},
            ],
            "tool-result": [{"patch": {"text": "new", "isError": true}}],
            "input": [{"when": "done", "handled": true}, {"transform": "other words"}],
            "context": [{"reply": {"messages": []}}],
        },
    });
    let (extension, _plugin) = world.started(&settings).await;
    let subscription = extension.subscription();
    assert!(subscription.wants(EventKind::ToolCall) && !subscription.wants(EventKind::TurnEnd));
    assert_eq!((&subscription.unknown[..], subscription.commands.len()), (&["tomorrow".to_owned()][..], 1));

    passed(&ask_about(&extension, "ls").await);
    let blocked = Outcome::Block { reason: Some("not here".to_owned()), terminate: true };
    assert_eq!(ask_about(&extension, "rm -rf /").await, Ok(blocked));
    let rewritten = Outcome::Rewrite(json!({"command": "SHOUT"}));
    assert_eq!(ask_about(&extension, "shout").await, Ok(rewritten));
    for (command, says) in [("odd", "`transform`, which means nothing there"), ("text", "no JSON object")] {
        let error = ask_about(&extension, command).await.unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
    assert_eq!(ask_about(&extension, "broken").await, Err(Error::Failed("out of order".to_owned())));

    let output = ToolOutput { content: vec![Content::text("old")], ..ToolOutput::default() };
    let Ok(Outcome::Patch(patch)) = extension.ask(Event::ToolResult(call("c", "ls"), Box::new(output)), 0).await else {
        panic!("no patch")
    };
    assert_eq!((patch.content, patch.is_error, patch.details), (Some(vec![Content::text("new")]), Some(true), None));

    let typed = |text: &str| {
        Event::Input(Input { text: text.to_owned(), images: Vec::new(), source: "interactive", delivery: None })
    };
    assert_eq!(extension.ask(typed("done"), 0).await, Ok(Outcome::Handled));
    let transformed = Outcome::Transform { text: "other words".to_owned(), images: None };
    assert_eq!(extension.ask(typed("words"), 0).await, Ok(transformed));
    let context = Event::other(EventKind::Context, json!({"messages": [1]}));
    let Ok(Outcome::Reply(fields)) = extension.ask(context, 0).await else { panic!("no reply") };
    assert_eq!(fields["messages"], json!([]));
}

#[tokio::test]
async fn handlers_begin_in_order_and_do_not_wait_for_each_other() {
    let world = World::new(no_limits());
    let settings = json!({
        "events": ["tool-call", "turn-start"], "record": "entry",
        "answers": {"tool-call": [{"when": "slow", "steps": [{"confirm": {"title": "go on?"}}]}]},
    });
    let (extension, _plugin) = world.started(&settings).await;
    let slow = Arc::clone(&extension);
    let slow = tokio::spawn(async move { ask_about(&slow, "slow").await });
    world.stage.asked.subscribe().wait_for(|asked| *asked == 1).await.unwrap();
    for number in 0..20 {
        assert!(extension.tell(Event::other(EventKind::TurnStart, json!({"turnIndex": number}))));
    }
    passed(&ask_about(&extension, "ls").await);
    let turns = world.stage.told("turn-start", 20).await;
    let order: Vec<u64> = turns.iter().map(|turn| turn["turnIndex"].as_u64().unwrap()).collect();
    assert_eq!(order, (0..20).collect::<Vec<_>>());
    assert!(!slow.is_finished(), "it waits for the person");
    world.stage.answer(true);
    passed(&slow.await.unwrap());
}

#[tokio::test]
async fn the_time_of_a_person_is_not_the_handlers() {
    let world = World::new(json!({"puppet": {"event-ms": 50}}));
    let settings = json!({
        "events": ["tool-call"],
        "answers": {"tool-call": [
            {"when": "ask", "steps": [{"confirm": {"title": "go on?"}}]},
            {"when": "never", "steps": [{"never": true}]},
        ]},
    });
    let (extension, _plugin) = world.started(&settings).await;
    let asking = Arc::clone(&extension);
    let asking = tokio::spawn(async move { ask_about(&asking, "ask").await });
    world.stage.asked.subscribe().wait_for(|asked| *asked == 1).await.unwrap();
    // One beside it, which begins later and asks nobody, reaches its limit while the person still thinks. Its clock
    // stands still meanwhile too: whoever asks, it is the instance that waits.
    let never = Arc::clone(&extension);
    let never = tokio::spawn(async move { ask_about(&never, "never").await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!asking.is_finished());
    world.stage.answer(true);
    passed(&asking.await.unwrap());
    assert_eq!(never.await.unwrap(), Err(Error::Limit { name: "event-ms".to_owned(), value: 50 }));
}

#[tokio::test]
async fn a_handler_that_takes_too_long_is_told_so_and_the_others_go_on() {
    let world = World::new(json!({"puppet": {"event-ms": 100}}));
    let settings = json!({
        "events": ["tool-call"],
        "answers": {"tool-call": [{"when": "long", "steps": [
            {"untilCancelled": true}, {"append": {"type": "t", "data": {"event": "let go", "fields": {}}}},
        ]}]},
    });
    let (extension, _plugin) = world.started(&settings).await;
    let late = ask_about(&extension, "long").await;
    assert_eq!(late, Err(Error::Limit { name: "event-ms".to_owned(), value: 100 }));
    world.stage.told("let go", 1).await;
    passed(&ask_about(&extension, "ls").await);
}

#[tokio::test]
async fn an_instance_that_lets_too_much_run_on_is_given_up() {
    let world = World::new(json!({"puppet": {"event-ms": 20}}));
    let settings = json!({
        "events": ["tool-call"], "record": "entry",
        "answers": {"tool-call": [{"when": "never", "steps": [{"never": true}]}]},
    });
    let (extension, _plugin) = world.started(&settings).await;
    let asked = (0..8).map(|_| ask_about(&extension, "never"));
    for late in futures::future::join_all(asked).await {
        assert_eq!(late.unwrap_err().code(), "limit");
    }
    let starts = world.stage.told("start", 2).await;
    assert_eq!(starts[1]["reason"], "restart");
    let failures = world.stage.failures(1).await;
    assert_eq!(failures[0].2.code(), "limit", "{failures:?}");
}

#[tokio::test]
async fn one_that_dies_is_started_again_by_itself() {
    let world = World::new(no_limits());
    let settings = json!({
        "events": ["tool-call"], "record": "entry",
        "answers": {"tool-call": [{"when": "die", "steps": [{"trap": "no more"}]}, {"when": "loop", "steps": [{"loop": 1}]}]},
    });
    let (extension, _plugin) = world.started(&settings).await;
    let error = ask_about(&extension, "die").await.unwrap_err();
    assert!(error.to_string().contains("no more"), "{error}");
    // Waited for, although it is not there yet.
    passed(&ask_about(&extension, "ls").await);
    let starts = world.stage.told("start", 2).await;
    assert_eq!((&starts[0]["reason"], &starts[1]["reason"]), (&json!("startup"), &json!("restart")));
    let failures = world.stage.failures(1).await;
    assert_eq!((failures.len(), failures[0].1), (1, None), "{failures:?}");
}

#[tokio::test]
async fn a_gate_that_dies_again_and_again_stays_shut() {
    let world = World::new(no_limits());
    let settings = json!({
        "events": ["tool-call", "turn-end"], "commands": {"hello": []},
        "answers": {"tool-call": [{"steps": [{"trap": "no more"}]}]},
    });
    let (extension, _plugin) = world.started(&settings).await;
    let mut last = None;
    for _ in 0..6 {
        last = Some(ask_about(&extension, "ls").await.unwrap_err());
        if last.as_ref().is_some_and(|error| error.code() == "unavailable") {
            break;
        }
    }
    let error = last.unwrap();
    let text = error.to_string();
    assert_eq!(error.code(), "unavailable");
    assert!(text.contains("died 5 times") && text.contains("no more"), "{text}");
    assert!(text.contains("atoll plugin disable puppet"), "{text}");
    let left = extension.subscription();
    assert_eq!(left.events.iter().collect::<Vec<_>>(), [EventKind::ToolCall]);
    assert!(left.commands.is_empty());
    assert_eq!(world.stage.wants.lock().unwrap()["puppet"], left, "the session was told");
    assert!(!extension.tell(Event::other(EventKind::TurnEnd, json!({}))));
}

fn invocation(world: &World, id: &str, steps: &Value) -> Invocation {
    let table = world.stage.table_of_a_call();
    let arguments = json!({"steps": steps});
    let tool = "puppet".to_owned();
    let kept: KeptNow = Arc::new(Arc::default);
    Invocation { id: id.to_owned(), parent_id: None, tool, arguments, depth: 3, table, kept, deadline: None }
}

fn text(output: &ToolOutput) -> String {
    Content::joined_text(&output.content)
}

#[tokio::test]
async fn tools_of_an_extension_run_in_its_one_instance() {
    let world = World::new(no_limits());
    let settings = json!({
        "events": ["turn-end"],
        "tools": [{"name": "added", "steps": [{"told": true}]}],
    });
    let (extension, plugin) = world.started(&settings).await;
    passed(&extension.ask(Event::other(EventKind::TurnEnd, json!({"n": 1})), 0).await);
    let (tools, runner) = plugin.tools.as_ref().unwrap();
    assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["puppet"]);
    let output = runner.call(invocation(&world, "c", &json!([{"told": true}])), Arc::new(|_, _| {})).await.unwrap();
    assert!(text(&output).contains("turn-end"), "what it was told is there for its tools: {output:?}");
    // The one it added itself is there too, with the same memory.
    let (name, added) = world.stage.registered.lock().unwrap()[0].clone();
    assert_eq!(name, "added");
    let call = Invocation { tool: "added".to_owned(), ..invocation(&world, "d", &json!([])) };
    assert!(text(&added.call(call, Arc::new(|_, _| {})).await.unwrap()).contains("turn-end"));
}

#[tokio::test]
async fn calls_know_what_is_around_them() {
    let world = World::new(no_limits());
    let settings = json!({
        "events": ["tool-call"],
        "answers": {"tool-call": [{"when": "own", "steps": [{"call": {"tool": "ls", "own": true}}]},
            {"steps": [{"call": {"tool": "ls"}}, {"call": {"tool": "ls"}}]}]},
    });
    let (extension, plugin) = world.started(&settings).await;
    passed(&extension.ask(Event::ToolCall(call("c", "twice")), 2).await);
    passed(&extension.ask(Event::ToolCall(call("c", "own")), 4).await);
    let (_, runner) = plugin.tools.as_ref().unwrap();
    let steps = json!([{"call": {"tool": "ls", "own": true}}]);
    runner.call(invocation(&world, "c", &steps), Arc::new(|_, _| {})).await.unwrap();
    extension.run_command("nothing".to_owned(), String::new()).await.unwrap();
    let table = world.stage.table.lock().unwrap().clone();
    assert_eq!(
        table,
        [
            "puppet:2 calls ls with 3 around",
            "puppet:2 calls ls with 3 around",
            "itself calls ls with 5 around",
            "itself calls ls with 4 around",
        ]
    );
}

#[tokio::test]
async fn a_call_that_is_stopped_is_told_so_and_calls_nothing_any_more() {
    let world = World::new(no_limits());
    let (_extension, plugin) = world.started(&json!({})).await;
    let (_, runner) = plugin.tools.as_ref().unwrap();
    let steps = json!([
        {"append": {"type": "t", "data": {"event": "begun", "fields": {}}}},
        {"untilCancelled": true},
        {"try": {"call": {"tool": "ls"}}},
        {"append": {"type": "t", "data": {"event": "let go", "fields": {}}}},
    ]);
    let stopped = runner.call(invocation(&world, "c", &steps), Arc::new(|_, _| {}));
    tokio::select! {
        output = stopped => panic!("it ended: {output:?}"),
        _ = world.stage.told("begun", 1) => {}
    }
    world.stage.told("let go", 1).await;
    assert_eq!(world.stage.table.lock().unwrap().as_slice(), [] as [&str; 0]);
    // The instance lives on.
    runner.call(invocation(&world, "d", &json!([])), Arc::new(|_, _| {})).await.unwrap();
}

#[tokio::test]
async fn commands_run_and_say_how_they_could_go_on() {
    let world = World::new(no_limits());
    let settings = json!({
        "record": "entry", "flags": ["known"],
        "commands": {
            "hello": {"completes": ["world", "wide", "you"], "steps": [{"flag": "known"}]},
            "broken": [{"fail": "no such thing"}],
        },
    });
    let (extension, _plugin) = world.started(&settings).await;
    extension.run_command("hello".to_owned(), "world".to_owned()).await.unwrap();
    let gave = world.stage.told("command-end", 1).await;
    assert_eq!(gave[0]["gave"], json!(["value"]));
    let completions = extension.complete_command("hello".to_owned(), "w".to_owned()).await.unwrap();
    assert_eq!(completions.iter().map(|one| one.value.as_str()).collect::<Vec<_>>(), ["world", "wide"]);
    let error = extension.run_command("broken".to_owned(), String::new()).await.unwrap_err();
    assert_eq!(error, Error::Failed("no such thing".to_owned()));
}

#[tokio::test]
async fn one_that_is_stopped_while_it_starts_does_not_come_up_after_all() {
    let world = World::new(no_limits());
    let settings = json!({"record": "entry", "events": ["tool-call"], "start": [{"sleep": 1_000}]});
    let loaded = world.puppet("puppet", &settings).await;
    let extension = Arc::clone(loaded.extension.as_ref().unwrap());
    let starting = tokio::spawn({
        let extension = Arc::clone(&extension);
        async move { extension.start(StartReason::Startup).await }
    });
    world.stage.told("start", 1).await;
    extension.stop().await;
    assert_eq!(starting.await.unwrap().unwrap_err().code(), "unavailable");
    assert_eq!(ask_about(&extension, "ls").await.unwrap_err().code(), "unavailable");
}

#[tokio::test]
async fn it_ends_in_order_and_then_answers_nothing() {
    let world = World::new(no_limits());
    let (extension, plugin) = world.started(&json!({"events": ["tool-call"], "record": "entry"})).await;
    extension.stop().await;
    assert_eq!(world.stage.events(), ["start", "stop"]);
    assert_eq!(ask_about(&extension, "ls").await.unwrap_err().code(), "unavailable");
    assert!(!extension.tell(Event::other(EventKind::TurnEnd, json!({}))));
    let (_, runner) = plugin.tools.as_ref().unwrap();
    let error = runner.call(invocation(&world, "c", &json!([])), Arc::new(|_, _| {})).await.unwrap_err();
    assert_eq!(error.code(), "unavailable");
}

#[tokio::test]
async fn one_that_can_not_start_says_why_and_is_not_there() {
    for (settings, says) in [
        (json!({"start": [{"fail": "no rules"}]}), "no rules"),
        (json!({"start": [{"trap": "no more"}]}), "no more"),
        (json!({"commands": {"two words": []}}), "a command `two words`"),
        (json!({"start": [{"leakMemory": true}]}), "memory"),
    ] {
        let world = World::new(json!({"puppet": {"memory-mib": 32}}));
        let plugin = world.puppet("puppet", &settings).await;
        let extension = plugin.extension.unwrap();
        let error = extension.start(StartReason::Startup).await.unwrap_err();
        assert!(error.to_string().contains(says), "{says}: {error}");
        assert!(extension.subscription().events.is_empty());
        assert_eq!(ask_about(&extension, "ls").await, Err(error));
    }
}

#[tokio::test]
async fn what_it_is_told_faster_than_it_listens_is_dropped_and_never_waited_for() {
    let world = World::new(json!({"puppet": {"queue": 10}}));
    let settings = json!({
        "events": ["turn-start"], "record": "entry",
        "answers": {"turn-start": [{"steps": [{"never": true}]}]},
    });
    let (extension, _plugin) = world.started(&settings).await;
    let tell = |times: usize| -> Vec<bool> {
        (0..times).map(|_| extension.tell(Event::other(EventKind::TurnStart, json!({})))).collect()
    };
    assert_eq!(tell(12), [vec![true; 10], vec![false; 2]].concat());
    // The same once its handlers have begun: what does not end takes room too.
    world.stage.told("turn-start", 10).await;
    assert_eq!(tell(2), [false; 2]);
}

#[tokio::test]
async fn it_may_want_something_else_later_but_no_other_flags() {
    let world = World::new(no_limits());
    let settings = json!({
        "events": ["turn-end"], "flags": ["known"],
        "commands": {
            "more": [{"subscribe": {"events": ["input"], "commands": {"late": []}}}],
            "flags": [{"subscribe": {"flags": ["other"]}}],
        },
    });
    let (extension, _plugin) = world.started(&settings).await;
    extension.run_command("more".to_owned(), String::new()).await.unwrap();
    let wants = extension.subscription();
    assert!(wants.wants(EventKind::Input) && !wants.wants(EventKind::TurnEnd));
    assert_eq!((wants.commands[0].name.as_str(), wants.flags.len()), ("late", 1));
    let error = extension.run_command("flags".to_owned(), String::new()).await.unwrap_err();
    assert_eq!(error.code(), "invalid-arguments");
    assert_eq!(extension.subscription(), wants);
}

#[tokio::test]
async fn what_is_under_way_ends_on_the_old_one_when_another_takes_over() {
    let world = World::new(no_limits());
    let settings = json!({
        "events": ["tool-call"], "record": "entry",
        "answers": {"tool-call": [{"when": "slow", "steps": [{"confirm": {"title": "go on?"}}], "block": "the old one"}]},
    });
    let (extension, plugin) = world.started(&settings).await;
    let slow = Arc::clone(&extension);
    let slow = tokio::spawn(async move { ask_about(&slow, "slow").await });
    world.stage.asked.subscribe().wait_for(|asked| *asked == 1).await.unwrap();
    let new = json!({"events": ["tool-call"], "answers": {"tool-call": [{"block": "the new one"}]}});
    world.replace(&plugin, &new).await.unwrap();
    let blocked = |reason: &str| Ok(Outcome::Block { reason: Some(reason.to_owned()), terminate: false });
    assert_eq!(ask_about(&extension, "ls").await, blocked("the new one"));
    assert!(!slow.is_finished() && !world.stage.events().contains(&"stop".to_owned()));
    world.stage.answer(true);
    assert_eq!(slow.await.unwrap(), blocked("the old one"));
    world.stage.told("stop", 1).await;
}

#[tokio::test]
async fn what_one_puts_into_its_store_is_there_for_the_one_that_takes_over() {
    let world = World::new(no_limits());
    let settings = json!({
        "record": "entry", "flags": ["known"],
        "commands": {"remember": [{"keep": {"key": "k", "value": "v"}}], "recall": [{"kept": "k"}]},
    });
    let (extension, plugin) = world.started(&settings).await;
    extension.run_command("remember".to_owned(), String::new()).await.unwrap();
    let wants =
        world.replace(&plugin, &json!({"record": "entry", "flags": [], "commands": settings["commands"]})).await;
    assert_eq!(wants.unwrap().flags.len(), 1, "flags were read once");
    extension.run_command("recall".to_owned(), String::new()).await.unwrap();
    let ends = world.stage.told("command-end", 2).await;
    assert_eq!(ends[1]["gave"], json!(["v"]));
    let starts = world.stage.told("start", 2).await;
    assert_eq!(starts[1]["reason"], "reload");
}

#[tokio::test]
async fn one_that_can_not_take_over_leaves_the_old_one_running() {
    let world = World::new(no_limits());
    let settings = json!({
        "events": ["tool-call"], "record": "entry", "tools": [{"name": "kept", "steps": []}],
        "answers": {"tool-call": [{"block": "the old one"}]},
    });
    let (extension, plugin) = world.started(&settings).await;
    for (broken, says) in
        [(json!({"start": [{"fail": "no rules"}]}), "no rules"), (json!({"start": [{"trap": "dead"}]}), "dead")]
    {
        let error = world.replace(&plugin, &broken).await.unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert!(matches!(ask_about(&extension, "ls").await, Ok(Outcome::Block { .. })));
    }
    assert!(!world.stage.events().contains(&"stop".to_owned()));
    assert!(world.stage.table.lock().unwrap().is_empty(), "nothing was withdrawn");
}

#[tokio::test]
async fn tools_that_the_new_one_does_not_have_are_withdrawn() {
    let world = World::new(no_limits());
    let settings = json!({"tools": [{"name": "one", "steps": []}, {"name": "two", "steps": []}]});
    let (_extension, plugin) = world.started(&settings).await;
    world
        .replace(&plugin, &json!({"tools": [{"name": "two", "steps": []}, {"name": "three", "steps": []}]}))
        .await
        .unwrap();
    assert_eq!(world.stage.table.lock().unwrap().as_slice(), ["withdrawn: one"]);
}

#[tokio::test]
async fn tools_that_one_adds_again_after_its_death_stay_and_others_are_withdrawn() {
    let world = World::new(no_limits());
    let settings = json!({
        "events": ["tool-call"], "record": "entry", "tools": [{"name": "stays", "steps": []}],
        "commands": {"more": [{"register": ["goes"]}]},
        "answers": {"tool-call": [{"when": "die", "steps": [{"trap": "no more"}]}]},
    });
    let (extension, _plugin) = world.started(&settings).await;
    extension.run_command("more".to_owned(), String::new()).await.unwrap();
    ask_about(&extension, "die").await.unwrap_err();
    world.stage.told("start", 2).await;
    passed(&ask_about(&extension, "ls").await);
    while world.stage.table.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.stage.table.lock().unwrap().as_slice(), ["withdrawn: goes"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_while_one_takes_over_from_another_again_and_again() {
    let world = Arc::new(World::new(no_limits()));
    let settings = json!({"events": ["tool-call"], "answers": {"tool-call": [{"when": "x", "block": "seen"}]}});
    let (extension, plugin) = world.started(&settings).await;
    let (_, runner) = plugin.tools.as_ref().unwrap();
    let asks = (0..200).map(|number| {
        let (extension, runner, world) = (Arc::clone(&extension), Arc::clone(runner), Arc::clone(&world));
        tokio::spawn(async move {
            let asked = ask_about(&extension, "x").await;
            let called = runner.call(invocation(&world, &format!("c{number}"), &json!([])), Arc::new(|_, _| {})).await;
            (asked, called)
        })
    });
    let asks: Vec<_> = asks.collect();
    for _ in 0..20 {
        world.replace(&plugin, &settings).await.unwrap();
    }
    for ask in asks {
        let (asked, called) = ask.await.unwrap();
        assert!(matches!(asked, Ok(Outcome::Block { .. })), "{asked:?}");
        assert!(called.is_ok_and(|output| !output.is_error));
    }
}

#[tokio::test]
async fn a_handler_hears_of_a_call_that_it_makes_itself() {
    let world = World::new(no_limits());
    let settings = json!({
        "events": ["tool-call"],
        "answers": {"tool-call": [{"when": "nested", "block": "its own"}, {"steps": [{"call": {"tool": "look"}}]}]},
    });
    let (extension, _plugin) = world.started(&settings).await;
    *world.stage.looks.lock().unwrap() = Some(Arc::clone(&extension));
    passed(&ask_about(&extension, "ls").await);
    let looked = world.stage.table.lock().unwrap().join("\n");
    assert!(looked.contains("looked: Ok(Block { reason: Some(\"its own\")"), "{looked}");
}

#[tokio::test]
async fn one_that_does_one_thing_at_a_time_is_not_asked_about_its_own_call() {
    let world = World::new(json!({"slow": {"event-ms": 20_000}}));
    let extension = world.other("slow", &by_hand::one_thing_at_a_time()).await;
    assert!(extension.subscription().wants(EventKind::ToolCall));
    *world.stage.looks.lock().unwrap() = Some(Arc::clone(&extension));
    // It answers in the end, and at once: had it been asked, it would have waited for itself.
    passed(&ask_about(&extension, "ls").await);
    let looked = world.stage.table.lock().unwrap().join("\n");
    assert!(looked.contains("Unavailable") && looked.contains("one thing at a time"), "{looked}");
}
