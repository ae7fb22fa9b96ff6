//! MCP servers that die, flood, never stop changing or never answer: what it costs, and whom.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{
    mcp::{Place, is_alive, peer},
    text_of, until,
};

#[test]
fn a_server_that_is_killed_in_a_call_fails_that_call_and_no_other() {
    let place = Place::with(&json!({
        "one": {"command": peer(), "args": ["--pid", "one", "--log", "wire1"]}, "two": {"command": peer(), "args": ["--pid", "two", "--log", "wire2"]},
    }));
    let script = place.sandbox.file(
        "script.js",
        "const two = tools.mcp__two__slow({ms: 3000, steps: 2});
         const one = await tools.mcp__one__slow({ms: 60000}).catch((error) => error.message);
         const again = (await tools.mcp__one__echo({value: 'again'})).content[0].text;
         return [one, again, (await two).content[0].text];",
    );
    let running = place.atoll().args(["codemode", "run"]).arg(script).start();
    let in_call = |wire: &str| place.lines(wire).iter().any(|line| line.contains("\"slow\"")).then_some(());
    until("both are in their calls", || in_call("wire1").and(in_call("wire2")));
    let pid = place.lines("one").remove(0);
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    let gave: Value = serde_json::from_str(running.wait().ok().stdout.trim()).unwrap();
    assert!(gave[0].as_str().unwrap().contains("one ended while it ran slow"), "{gave}");
    assert_eq!((&gave[1], &gave[2]), (&json!("again"), &json!("done")));
    assert_eq!((place.lines("one").len(), place.lines("two").len()), (2, 1), "only one was started again");
}

#[test]
fn nothing_of_a_server_is_left_when_the_program_is_killed() {
    let place = Place::with(&json!({
        "kind": {"command": peer(), "args": ["--pid", "pids", "--log", "wire"]},
        "deaf": {"command": peer(), "args": ["--pid", "pids", "--deaf"]},
        "wrapped": {"command": "sh", "args": ["-c", format!("{} --pid pids --deaf & wait", peer())]},
    }));
    let script = place.sandbox.file(
        "script.js",
        "await tools.mcp__deaf__slow({ms: 1});
         await tools.mcp__kind__slow({ms: 60000}); // mcp__wrapped has no input, so it never answers",
    );
    let running = place.atoll().args(["codemode", "run"]).arg(script).start();
    // All three were started long before: one of a moment ago may not be known of to what looks after them.
    let in_call = || place.lines("wire").iter().any(|line| line.contains("\"slow\"")).then_some(());
    until("the servers are in their calls", in_call);
    let pids = until("all servers run", || Some(place.lines("pids")).filter(|pids| pids.len() == 3));
    running.signal(rustix::process::Signal::KILL);
    for pid in pids {
        until("the server is gone", || (!is_alive(&pid)).then_some(()));
    }
}

#[test]
fn a_hundred_megabytes_that_are_no_message_cost_a_line_in_the_log() {
    let place = Place::of_peer(&["--more"]);
    let script = place.sandbox.file(
        "script.js",
        "const flood = await tools.mcp__peer__flood({bytes: 100 << 20});
         return [flood.content[0].text, (await tools.mcp__peer__echo({value: 'after'})).content[0].text];",
    );
    let done = place.atoll().env("ATOLL_LOG", "info").args(["codemode", "run"]).arg(script).run().ok();
    assert_eq!(serde_json::from_str::<Value>(done.stdout.trim()).unwrap(), json!(["flooded", "after"]));
    assert!(done.stderr.contains("a message of more than 16 MiB was left out"), "{done:#?}");
}

#[test]
fn tools_that_change_a_thousand_times_are_as_they_are_at_the_end() {
    let place = Place::of_peer(&["--more", "--log", "wire"]);
    let gave = place.script(
        "await tools.mcp__peer__change_many({times: 1001});
         for (;;) { if ((await searchTools('was added')).some((tool) => tool.name === 'mcp__peer__later')) break; }
         return (await tools.mcp__peer__later({})).content[0].text;",
    );
    assert_eq!(gave.trim(), "later");
    let lists = place.lines("wire").iter().filter(|line| line.contains("tools/list")).count();
    assert!(lists < 2_000, "not every change is looked at: {lists} pages were asked for");
}

#[test]
fn a_call_that_nobody_wants_any_more_is_cancelled_at_the_server() {
    let place = Place::of_peer(&["--more", "--log", "wire"]);
    let script = place
        .sandbox
        .file("script.js", "tools.mcp__peer__slow({ms: 600000});\nawait tools.mcp__peer__slow_begun({});\nexit();");
    place.atoll().args(["codemode", "run"]).arg(script).run();
    let cancelled: Vec<String> =
        place.lines("wire").into_iter().filter(|line| line.contains("notifications/cancelled")).collect();
    assert_eq!(cancelled.len(), 1, "{cancelled:#?}");
    assert!(cancelled[0].contains("not wanted any more"), "{cancelled:?}");
}

#[test]
fn what_a_server_says_for_the_log_is_there_with_its_level() {
    let place = Place::of_peer(&["--more"]);
    let done = place.atoll().env("ATOLL_LOG", "info").args(["tool", "call", "mcp__peer__say", "{}"]).run().ok();
    assert_eq!(done.stdout, "said\n");
    for said in ["peer: debug db: a", "peer: error: {\"code\":7}"] {
        assert!(done.stderr.contains(said), "{said}: {}", done.stderr);
    }
}

#[test]
fn ten_servers_of_which_three_are_no_good_serve_two_hundred_calls() {
    let mut servers = serde_json::Map::new();
    for at in 0..7 {
        servers.insert(format!("good{at}"), json!({"command": peer()}));
    }
    servers.insert("silent".to_owned(), json!({"command": peer(), "args": ["--silent"]}));
    servers.insert("dead".to_owned(), json!({"command": peer(), "args": ["--die"]}));
    servers.insert("junk".to_owned(), json!({"command": "sh", "args": ["-c", "yes no | head -c 20000000; sleep 60"]}));
    let place = Place::with(&Value::Object(servers));
    let gave = place.script(
        "const calls = [];
         for (let at = 0; at < 200; at++) calls.push(tools[`mcp__good${at % 7}__add`]({a: at, b: 1}));
         const sums = (await Promise.all(calls)).map((result) => result.structuredContent.sum);
         // mcp__good0 mcp__good1 mcp__good2 mcp__good3 mcp__good4 mcp__good5 mcp__good6
         return sums.every((sum, at) => sum === at + 1) && sums.length;",
    );
    assert_eq!(gave.trim(), "200");
}

#[test]
fn a_server_that_takes_no_input_any_more_holds_up_only_its_own_calls() {
    // It says hello, lists nothing, and then reads no more.
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}});
    let tools = json!({"tools": [{"name": "swallow", "inputSchema": {"type": "object"}}]});
    let script = format!(
        "read line; echo '{}'; read line; read line; echo '{}'; sleep 60",
        json!({"jsonrpc": "2.0", "id": 0, "result": hello}),
        json!({"jsonrpc": "2.0", "id": 1, "result": tools})
    );
    let place = Place::with(&json!({
        "full": {"command": "bash", "args": ["-c", script], "timeout": 2}, "good": {"command": peer()},
    }));
    let gave = place.script(
        "const much = 'x'.repeat(1 << 20);
         const calls = [1, 2, 3].map(() => tools.mcp__full__swallow({much}).catch((error) => error.message));
         const good = (await tools.mcp__good__echo({value: 'good'})).content[0].text;
         return [good, (await Promise.all(calls)).map((message) => message.includes('no answer'))];",
    );
    assert_eq!(serde_json::from_str::<Value>(gave.trim()).unwrap(), json!(["good", [true, true, true]]));
}

#[test]
fn a_server_that_hangs_costs_nobody_who_does_not_name_it() {
    let good = json!({"command": peer()});
    let alone = Place::with(&json!({"good": good}));
    let beside = Place::with(&json!({
        "good": good, "hangs": {"command": peer(), "args": ["--silent"]}, "sleeps": {"command": "sleep", "args": ["600"]},
    }));
    let took = |place: &Place, line: &[&str]| {
        let began = Instant::now();
        place.atoll().args(line).run().ok();
        began.elapsed()
    };
    for place in [&alone, &beside] {
        place.sandbox.file("note.txt", "a note");
        place.sandbox.file("one.js", "return 1");
    }
    for line in [
        &["tool", "call", "read", r#"{"path": "note.txt"}"#][..],
        &["codemode", "run", "one.js"],
        &["tool", "call", "mcp__good__echo", r#"{"value": "x"}"#],
    ] {
        let (alone, beside) = (took(&alone, line), took(&beside, line));
        // It used to be eight seconds more, each time.
        assert!(beside < alone + Duration::from_secs(6), "{line:?}: {alone:?} alone, {beside:?} beside one that hangs");
    }
}

#[test]
fn a_server_that_fails_while_what_others_had_is_read_is_not_waited_for() {
    let place = Place::with(&json!({
        "many": {"command": peer(), "args": ["--tools", "3000"]}, "none": {"command": "/none/of/this/is/there"},
    }));
    // So that it is kept.
    assert_eq!(place.script("return (await tools.mcp__many__more_0({})).isError ?? false").trim(), "false");
    let began = Instant::now();
    let run = place.atoll().args(["tool", "call", "mcp__none__x", "{}"]).run();
    assert!(!run.status.success(), "{run:#?}");
    assert!(began.elapsed() < Duration::from_secs(120), "nobody says that its tools do not come");
}

#[test]
fn a_server_that_takes_its_time_to_start_is_waited_for_by_who_names_it() {
    let slow = format!("sleep 11; exec {}", peer());
    let place = Place::with(&json!({"slow": {"command": "sh", "args": ["-c", slow]}, "good": {"command": peer()}}));
    let record = place.call("mcp__slow__echo", &json!({"value": "late"}));
    assert_eq!(text_of(&record["content"]), "late", "{record:#}");
    let missing = place.call("mcp__good__nothing", &json!({}));
    assert_eq!(missing["isError"], true, "{missing:#}");
}

#[test]
fn tools_that_do_not_fit_are_left_out_and_that_is_said_once() {
    let left_out = |stderr: &str| {
        let lines: Vec<String> =
            stderr.lines().filter(|line| line.contains("tools are left out")).map(str::to_owned).collect();
        assert!(lines.iter().all(|line| line.contains("\"toolExposure\"")), "{lines:?}");
        lines
    };
    let run = |place: &Place, script: &str| {
        let script = place.sandbox.file("script.js", script);
        place.atoll().args(["codemode", "run"]).arg(script).run().ok()
    };
    let place = Place::with(&json!({
        "many": {"command": peer(), "args": ["--tools", "10000"]}, "small": {"command": peer()},
    }));
    let done = run(
        &place,
        "const texts = [await tools.mcp__small__echo({value: 'small'}), await tools.mcp__many__more_9000({})];
         return texts.map((result) => result.content[0].text).join();",
    );
    assert_eq!(done.stdout.trim(), "small,more_9000");
    let lines = left_out(&done.stderr);
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains("of its 10010 tools")), "{done:#?}");

    let place = Place::with(&json!({
        "one": {"command": peer(), "args": ["--tools", "6000"]}, "two": {"command": peer(), "args": ["--tools", "6000"]},
    }));
    let done = run(
        &place,
        "const calls = [tools.mcp__one__more_3000({}), tools.mcp__two__more_3000({})];
         return (await Promise.all(calls)).map((result) => result.content[0].text).join();",
    );
    assert_eq!(done.stdout.trim(), "more_3000,more_3000");
    let lines = left_out(&done.stderr);
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains("of its 6010 tools")), "{done:#?}");

    // Who hides what is not needed is told nothing.
    let hidden = json!({"more_1*": "codemode", "more_*": "hidden"});
    let place =
        Place::with(&json!({"many": {"command": peer(), "args": ["--tools", "12000"], "toolExposure": hidden}}));
    let done = run(&place, "return (await tools.mcp__many__more_11999({})).content[0].text;");
    assert_eq!(done.stdout.trim(), "more_11999");
    assert!(left_out(&done.stderr).is_empty(), "{done:#?}");
}

#[test]
fn a_server_whose_many_tools_change_leaves_the_others_their_turn() {
    let place = Place::with(&json!({
        "many": {"command": peer(), "args": ["--tools", "5000"]}, "good": {"command": peer()},
    }));
    let gave = place.script(
        "const call = async (name) => { try { return await tools[name]({}); } catch { return null; } };
         await tools.mcp__many__rename({});
         let calls = 0;
         for (;;) {
             await tools.mcp__good__echo({value: 'x'});
             calls++;
             const there = await call('mcp__many__more_1_4999');
             if (there) return [calls > 1, there.content[0].text].join();
         }",
    );
    assert_eq!(gave.trim(), "true,more_1_4999", "it used to be stopped, with the calls of all servers");
}

#[test]
fn a_server_that_changes_its_tools_all_the_time_leaves_the_others_their_turn() {
    let place = Place::with(&json!({
        "many": {"command": peer(), "args": ["--tools", "300", "--log", "wire"]}, "good": {"command": peer()},
    }));
    let gave = place.script(
        "await tools.mcp__many__rename({times: 600, ms: 20});
         for (let at = 0; at < 300; at++) await tools.mcp__good__echo({value: 'x'});
         // Once they are at an end, the tools are what they are at the end.
         const is_there = async (name) => { try { await tools[name]({}); return true; } catch { return false; } };
         const was_over = await is_there('mcp__many__more_600_299');
         while (!(await is_there('mcp__many__more_600_299')));
         return [was_over, await is_there('mcp__many__more_599_0')].join();",
    );
    assert_eq!(gave.trim(), "false,false", "three hundred calls took as long as the changes did");
    let lists = place.lines("wire").iter().filter(|line| line.contains("tools/list")).count();
    assert!(lists < 40, "not every change is looked at: {lists}");
}
