//! The adapter for MCP servers, with servers that are programs.

use std::fs;

use serde_json::{Value, json};

use crate::common::{
    mcp::{Place, is_alive, peer},
    text_of, until,
};

#[test]
fn tools_of_a_server_are_in_the_table_and_are_called_like_others() {
    let place = Place::of_peer(&["--clash", "--log", "wire"]);
    let table = place.atoll().args(["tool", "list", "--json"]).run().json();
    let of_server = table.as_array().unwrap().iter().filter(|tool| tool["plugin"] == "mcp");
    let shown: Vec<Value> = of_server
        .map(|tool| json!([tool["name"], tool["label"], tool["exposure"], tool["active"], tool["annotations"]]))
        .collect();
    insta::assert_json_snapshot!(shown);

    let record = place.call("mcp__peer__echo", &json!({"value": "hello\nworld"}));
    assert_eq!(
        (text_of(&record["content"]).as_str(), &record["isError"]),
        ("hello\nworld", &json!(false)),
        "{record:#}"
    );
    let record = place.call("mcp__peer__add", &json!({"a": 1, "b": 2.5}));
    assert_eq!(
        record["structuredContent"],
        json!({"content": [{"type": "text", "text": "3.5"}], "structuredContent": {"sum": 3.5}}),
        "scripts get all of it but what is not theirs"
    );
    let record = place.call("mcp__peer__fail", &json!({}));
    assert_eq!((text_of(&record["content"]).as_str(), &record["isError"]), ("it does not work", &json!(true)));
    let record = place.call("mcp__peer__picture", &json!({}));
    assert_eq!(record["content"][0]["mimeType"], "image/png", "{record:#}");
    // Of names that look the same each has its own, and leads to its own.
    for (name, tool) in [("mcp__peer__a_b_72cadccb", "a-b"), ("mcp__peer__a_b_f2541ede", "a_b")] {
        assert_eq!(text_of(&place.call(name, &json!({}))["content"]), tool);
    }
    // Arguments that do not fit are not sent.
    let before = place.lines("wire").len();
    let record = place.call("mcp__peer__add", &json!({"a": "x"}));
    assert_eq!(record["isError"], true);
    let sent = place.lines("wire").split_off(before);
    assert!(!sent.iter().any(|line| line.contains("tools/call")), "{sent:#?}");
    assert!(place.lines("wire").iter().any(|line| line.contains("\"protocolVersion\":\"2025-11-25\"")));
}

#[test]
fn scripts_find_tools_call_them_and_get_whole_results() {
    let place = Place::of_peer(&[]);
    let gave = place.script(
        "const found = await searchTools('adds numbers');
         const group = await describeNamespace('peer');
         const sum = await tools.mcp__peer__add({a: 20, b: 22});
         const failed = await tools.mcp__peer__fail({});
         const big = await tools.mcp__peer__big({bytes: 300000});
         return [found[0].name, group.instructions, sum.structuredContent.sum, failed.isError, big.content[0].text.length];",
    );
    let gave: Value = serde_json::from_str(gave.trim()).unwrap();
    assert_eq!(gave, json!(["mcp__peer__add", "Ask it to echo.", 42, true, 300_000]));
}

#[test]
fn calls_run_beside_each_other() {
    let place = Place::with(&json!({
        "one": {"command": peer()}, "two": {"command": peer()}, "three": {"command": peer()},
    }));
    // Were those of one server to run one after the other, they would take longer than a test may.
    let gave = place.script(
        "const calls = [];
         for (let at = 0; at < 240; at++) calls.push(tools[`mcp__${['one', 'two', 'three'][at % 3]}__slow`]({ms: 3000}));
         const texts = (await Promise.all(calls)).map((result) => result.content[0].text);
         // mcp__one mcp__two mcp__three
         return texts.filter((text) => text === 'done').length;",
    );
    assert_eq!(gave.trim(), "240");
}

#[test]
fn a_server_that_ends_in_a_call_fails_that_call_and_is_there_again_for_the_next() {
    let place = Place::of_peer(&["--pid", "pids"]);
    let gave = place.script(
        "const failed = await tools.mcp__peer__crash({}).catch((error) => error.message);
         const again = await tools.mcp__peer__echo({value: 'again'});
         return [failed, again.content[0].text];",
    );
    let gave: Value = serde_json::from_str(gave.trim()).unwrap();
    let failed = gave[0].as_str().unwrap();
    assert!(failed.contains("peer ended while it ran crash") && failed.contains("is not known"), "{failed}");
    assert_eq!(gave[1], "again");
    assert_eq!(place.lines("pids").len(), 2, "it was started twice, and the call was sent once");
}

#[test]
fn servers_that_can_not_be_had_cost_nobody_but_who_asks_for_them() {
    let place = Place::with(&json!({
        "good": {"command": peer(), "args": ["--junk"]},
        "silent": {"command": peer(), "args": ["--silent"], "timeout": 1},
        "dead": {"command": peer(), "args": ["--die"]},
        "missing": {"command": "no-such-program-xyz"},
        "off": {"command": peer(), "args": ["--pid", "off"], "enabled": false},
        "wrong": {"command": peer(), "exposure": "all"},
    }));
    assert_eq!(text_of(&place.call("mcp__good__echo", &json!({"value": "x"}))["content"]), "x");
    let done = place.atoll().env("ATOLL_LOG", "info").args(["tool", "list"]).run().ok();
    for said in [
        "silent: it did not answer in time",
        "dead: the connection ended (it exited with 4); its last words: no good reason",
        "missing: there is no program no-such-program-xyz",
        "server \"wrong\": \"exposure\": it has to be one of",
        "good: printed what is no message: \"Listening on stdio",
    ] {
        assert!(done.stderr.contains(said), "{said}: {done:#?}");
    }
    assert!(place.lines("off").is_empty(), "what is switched off is not started");
}

#[test]
fn nothing_of_a_server_is_left_when_the_program_ends() {
    let place = Place::with(&json!({
        "kind": {"command": peer(), "args": ["--pid", "pids"]},
        "deaf": {"command": peer(), "args": ["--pid", "pids", "--deaf"]},
        "wrapped": {"command": "sh", "args": ["-c", format!("{} --pid pids --deaf & wait", peer())]},
    }));
    // The last of the three has no input, and so it never answers: the script waits until it runs.
    place.script(
        "await tools.mcp__kind__echo({value: 'x'});
         await tools.mcp__deaf__echo({value: 'x'});
         await tools.bash({command: 'until [ $(wc -l < pids) = 3 ]; do sleep 0.05; done'});",
    );
    let pids = place.lines("pids");
    assert_eq!(pids.len(), 3);
    for pid in pids {
        until("the server is gone", || (!is_alive(&pid)).then_some(()));
    }
}

#[test]
fn what_a_server_adds_is_there_at_once_for_the_same_script() {
    let place = Place::of_peer(&[]);
    let gave = place.script(
        "await tools.mcp__peer__change({});
         for (;;) {
             const found = await searchTools('was added');
             if (found.some((tool) => tool.name === 'mcp__peer__later')) break;
         }
         return (await tools.mcp__peer__later({})).content[0].text;",
    );
    assert_eq!(gave.trim(), "later");
}

#[test]
fn a_server_gets_its_variables_and_folder_and_a_long_result_is_whole_in_a_file() {
    let place = Place::with(
        &json!({"peer": {"command": peer(), "env": {"GREETING": "a$$b", "N": 3}, "args": ["--pid", "here"], "cwd": "sub"}}),
    );
    fs::create_dir(place.sandbox.work().join("sub")).unwrap();
    let variable = |name: &str| text_of(&place.call("mcp__peer__variable", &json!({"name": name}))["content"]);
    assert_eq!([variable("GREETING"), variable("N")], ["a$b", "3"]);
    assert!(!place.lines("sub/here").is_empty(), "it ran in its folder");
}

#[test]
fn a_call_is_stopped_when_there_is_neither_answer_nor_progress_and_not_before() {
    let place = Place::with(&json!({"peer": {"command": peer(), "args": ["--log", "wire"], "timeout": 3}}));
    let patient = place.call("mcp__peer__slow", &json!({"ms": 7000, "steps": 9}));
    assert_eq!(text_of(&patient["content"]), "done", "{patient:#}");
    let late = place.call("mcp__peer__slow", &json!({"ms": 60_000}));
    let text = text_of(&late["content"]);
    assert!(text.contains("no answer and no progress for 3 s"), "{late:#}");
    let cancelled: Vec<String> =
        place.lines("wire").into_iter().filter(|line| line.contains("notifications/cancelled")).collect();
    assert_eq!(cancelled.len(), 1, "{cancelled:#?}");
}

#[test]
fn a_model_is_declared_what_is_direct_and_finds_the_rest() {
    let exposures = json!({"echo": "direct", "fail": "hidden"});
    let place = Place::with(&json!({"peer": {"command": peer(), "exposure": "deferred", "toolExposure": exposures}}));
    let turns = json!([
        {"calls": [{"tool": "mcp__peer__echo", "arguments": {"value": "from the model"}}]},
        {"calls": [{"tool": "tool_search", "arguments": {"query": "adds numbers"}}]},
        {"calls": [{"tool": "mcp__peer__add", "arguments": {"a": 1, "b": 2}}]},
        {"calls": [{"tool": "mcp__peer__fail", "arguments": {}}]},
        {"text": "done"},
    ]);
    let sandbox = &place.sandbox;
    sandbox.scripted(&json!({"turns": turns})).arg("go").run().ok();
    // What each request declares for the first time.
    let declared: Vec<Vec<String>> = (sandbox.messages().iter())
        .filter_map(|message| message["toolsAdded"].as_array().cloned())
        .map(|tools| {
            let names = tools.iter().filter_map(|tool| tool["name"].as_str());
            names.filter(|name| name.starts_with("mcp__")).map(str::to_owned).collect()
        })
        .collect();
    assert_eq!(declared.first().map(Vec::as_slice), Some(&["mcp__peer__echo".to_owned()][..]), "{declared:?}");
    let results = sandbox.results();
    let shown: Vec<(String, bool)> =
        results.iter().map(|result| (text_of(&result["content"]), result["isError"] == true)).collect();
    assert_eq!(shown[0], ("from the model".to_owned(), false));
    assert_eq!(shown[2], ("3".to_owned(), false));
    assert!(shown[3].1, "what is hidden is not there: {shown:?}");
}

#[test]
fn a_program_that_knows_no_sessions_is_called_without_one() {
    let place = Place::of_peer(&["--stateless", "--log", "wire", "--pid", "pids"]);
    let record = place.call("mcp__peer__echo", &json!({"value": "x"}));
    assert_eq!(text_of(&record["content"]), "x", "{record:#}");
    let wire = place.lines("wire");
    let methods: Vec<Value> =
        wire.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["method"].clone()).collect();
    assert_eq!(methods[..2], ["initialize", "server/discover"], "{methods:?}");
    assert!(!methods.contains(&json!("notifications/initialized")), "{methods:?}");
    assert_eq!(place.lines("pids").len(), 2, "it is started again to be greeted otherwise");
    // Who names a revision gets that greeting alone.
    let place = Place::with(
        &json!({"peer": {"command": peer(), "args": ["--stateless"], "protocolVersion": "legacy", "timeout": 5}}),
    );
    let listed = place.atoll().args(["mcp", "list"]).run().code(1);
    assert!(listed.stdout.contains("not here"), "{listed:?}");
}

#[test]
fn a_direct_server_that_does_not_answer_is_named_once_and_the_model_is_asked_without_it() {
    let place = Place::with(&json!({
        "late": {"command": peer(), "args": ["--silent"], "exposure": "direct"},
        "there": {"command": peer(), "exposure": "direct"},
        "other": {"command": peer(), "args": ["--silent"]},
    }));
    let run =
        place.sandbox.scripted(&json!({"turns": [{"text": "one"}, {"text": "two"}]})).args(["go", "on"]).run().ok();
    let notice = "MCP servers that have not answered for 10 s: late; the model is asked without their tools";
    assert!(run.stderr.contains(notice), "{run:#?}");
    let asked = place.sandbox.messages().iter().filter(|message| message["role"] == "user").count();
    assert_eq!(asked, 2);
}

#[test]
fn where_nothing_reaches_the_tools_of_a_server_that_is_said_once_and_the_model_is_not_told_of_it() {
    let place = || {
        let place = Place::of_peer(&[]);
        let servers = json!({"peer": {"command": peer(), "description": "Is described."}});
        place.sandbox.home_file("mcp.json", json!({"mcpServers": servers, "autoEnableCodemode": false}).to_string());
        place
    };
    let turns = json!({"turns": [{"text": "one"}, {"text": "two"}]});
    let sections = |place: &Place| -> Vec<String> {
        let messages = place.sandbox.messages();
        let told = messages.iter().filter_map(|message| message["sections"]["mcp_servers"].as_str());
        told.map(str::to_owned).collect()
    };
    let silent = place();
    let run = silent.sandbox.scripted(&turns).args(["go", "on"]).run().ok();
    let warning = "the model reaches no tools of peer, for neither codemode nor tool_search is on";
    assert!(run.stderr.contains(warning), "{run:#?}");
    assert_eq!(run.stderr.matches("reaches no tools").count(), run.stderr.matches(warning).count(), "{run:#?}");
    assert_eq!(sections(&silent), Vec::<String>::new());
    // What the user switches on instead is what the model is told of.
    let told = place();
    let run = told.sandbox.scripted(&turns).args(["--tools=+tool_search", "go", "on"]).run().ok();
    assert!(!run.stderr.contains("the model reaches no tools"), "{run:#?}");
    let told = sections(&told).pop().unwrap();
    assert!(told.contains("\n- mcp__peer (tool_search): Is described.\n") && !told.contains("codemode"), "{told}");
}

#[test]
fn a_model_is_told_of_servers_whose_tools_it_is_not_declared_and_has_what_reaches_them() {
    let place = Place::with(&json!({
        "peer": {"command": peer()},
        "described": {"command": peer(), "exposure": "deferred", "description": "Is described."},
        "declared": {"command": peer(), "exposure": "direct"},
        "off": {"command": peer(), "enabled": false},
    }));
    let sandbox = &place.sandbox;
    let code = "return (await tools.mcp__peer__echo({value: 'by script'})).content[0].text";
    let turns = json!([
        {"calls": [{"tool": "codemode", "arguments": {"code": code}}]}, {"text": "done"}, {"text": "done"},
    ]);
    sandbox.scripted(&json!({"turns": turns})).args(["go", "on"]).run().ok();
    let results = sandbox.results();
    assert!(text_of(&results[0]["content"]).contains("by script"), "{results:#?}");
    let sections = sandbox.messages();
    let told = sections.iter().find_map(|message| message["sections"]["mcp_servers"].as_str()).unwrap();
    let lines: Vec<&str> = told.lines().filter(|line| line.starts_with("- ")).collect();
    assert_eq!((lines.len(), lines[0]), (2, "- mcp__described (tool_search): Is described."), "{told}");
    // What it says of itself is there as soon as it is.
    assert!(lines[1].starts_with("- mcp__peer (codemode)"), "{told}");
    let declared = sandbox
        .messages()
        .iter()
        .flat_map(|message| message["toolsAdded"].as_array().cloned().unwrap_or_default())
        .filter_map(|tool| tool["name"].as_str().map(str::to_owned))
        .collect::<Vec<_>>();
    for name in ["codemode", "tool_search", "mcp__declared__echo"] {
        assert!(declared.iter().any(|known| known == name), "{name}: {declared:?}");
    }
}
