//! MCP servers that die, flood, never stop changing or never answer: what it costs, and whom.

use serde_json::{Value, json};

use crate::common::{
    mcp::{Place, is_alive, peer},
    until,
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
