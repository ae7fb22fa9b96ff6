//! What MCP servers have beside tools: resources, prompts, and results that are no text; and what is kept of all of it from one
//! session to the next.

use std::fs;

use serde_json::{Value, json};

use crate::common::{
    mcp::{Place, peer},
    text_of,
};

#[test]
fn resources_are_listed_and_read_by_three_tools() {
    let place = Place::with(&json!({
        "one": {"command": peer(), "args": ["--more"]}, "two-b": {"command": peer(), "args": ["--more"]},
        "without": {"command": peer()}, "off": {"command": peer(), "args": ["--more"], "exposure": "hidden"},
        "dead": {"command": peer(), "args": ["--die"]},
    }));
    let all = place.call("list_mcp_resources", &json!({}));
    insta::assert_json_snapshot!(all["structuredContent"]);
    let text: Value = serde_json::from_str(&text_of(&all["content"])).unwrap();
    assert_eq!(text, all["structuredContent"], "a model reads the same");
    let page = place.call("list_mcp_resources", &json!({"server": "mcp__two_b"}));
    let uris = |record: &Value| -> Vec<String> {
        let items = record["structuredContent"]["resources"].as_array().unwrap();
        items.iter().map(|item| item["uri"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((uris(&page), &page["structuredContent"]["nextCursor"]), (vec!["peer://note".to_owned()], &json!("2")));
    let rest = place.call("list_mcp_resources", &json!({"server": "two-b", "cursor": "2"}));
    assert_eq!(
        (uris(&rest), &rest["structuredContent"]["nextCursor"]),
        (vec!["peer://bytes".to_owned()], &Value::Null)
    );
    let templates = place.call("list_mcp_resource_templates", &json!({}));
    assert_eq!(templates["structuredContent"]["resourceTemplates"][1]["server"], "two-b", "{templates:#}");
    let note = place.call("read_mcp_resource", &json!({"server": "one", "uri": "peer://note"}));
    assert_eq!(text_of(&note["content"]), "what is in peer://note");
    assert_eq!(note["structuredContent"]["contents"][0]["mimeType"], "text/plain", "{note:#}");
    for (arguments, said) in [
        (json!({"cursor": "2"}), "give \"server\", too"),
        (json!({"server": "nobody"}), "There is no MCP server \"nobody\". There are: one, two-b, without, dead."),
        (json!({"server": "off"}), "There is no MCP server \"off\""),
        (json!({"server": "dead"}), "The MCP server dead can not be reached"),
    ] {
        let record = place.call("list_mcp_resources", &arguments);
        let text = text_of(&record["content"]);
        assert!(record["isError"] == true && text.contains(said), "{arguments}: {text}");
    }
}

#[test]
fn the_tools_for_resources_are_there_only_with_resources_and_as_widely_as_those() {
    let exposure = |servers: &Value| -> Vec<Value> {
        let place = Place::with(servers);
        let table = place.atoll().args(["tool", "list", "--json"]).run().json();
        let of = |tool: &&Value| tool["name"].as_str().unwrap().contains("_mcp_resource");
        let tools = table.as_array().unwrap().iter().filter(of);
        tools.map(|tool| json!([tool["exposure"], tool["active"], tool["annotations"]["readOnlyHint"]])).collect()
    };
    assert_eq!(exposure(&json!({"a": {"command": peer()}})), Vec::<Value>::new());
    let hidden = json!({"a": {"command": peer(), "args": ["--more"], "exposure": "hidden"}});
    assert_eq!(exposure(&hidden), Vec::<Value>::new());
    let found = json!({"a": {"command": peer(), "args": ["--more"]}});
    assert_eq!(exposure(&found), vec![json!(["deferred", false, true]); 3]);
    let direct = json!({"a": {"command": peer(), "args": ["--more"]}, "b": {"command": peer(), "args": ["--more"], "exposure": "direct"}});
    assert_eq!(exposure(&direct), vec![json!(["direct", true, true]); 3]);
}

#[test]
fn what_is_no_text_is_shown_or_kept_or_named_for_a_model_and_whole_for_scripts() {
    let place = Place::with(&json!({"peer": {"command": peer(), "args": ["--more"], "exposure": "direct"}}));
    let turns = json!([
        {"calls": [{"tool": "mcp__peer__gifts", "arguments": {}}]},
        {"calls": [{"tool": "read_mcp_resource", "arguments": {"server": "peer", "uri": "peer://bytes"}}]},
        {"calls": [{"tool": "mcp__peer__big", "arguments": {"bytes": 50_000}}]},
        {"text": "done"},
    ]);
    place.sandbox.scripted(&json!({"turns": turns})).arg("go").run().ok();
    let results = place.sandbox.results();
    let gifts = results[0]["content"].as_array().unwrap();
    assert_eq!(gifts.iter().filter(|piece| piece["type"] == "image").count(), 1, "the picture stays: {gifts:#?}");
    let text = text_of(&results[0]["content"]);
    for said in [
        "[audio audio/wav omitted]",
        "[Resource peer://note \"A note\" (text/plain, 5 bytes). Read it with read_mcp_resource",
        "embedded",
        "hologram",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains("ui://") && !text.contains("secret"), "{text}");
    for text in [text, text_of(&results[1]["content"])] {
        let path = text.split("File saved: ").nth(1).and_then(|rest| rest.split(" (application/pdf").next());
        assert_eq!(fs::read(path.unwrap_or_else(|| panic!("{text}"))).unwrap(), [0xff, 0, 1, 2]);
    }
    let big = text_of(&results[2]["content"]);
    assert!(big.len() < 22_000 && big.contains("characters left out"), "{}", big.len());
    let path = big.split("Whole output: ").nth(1).and_then(|rest| rest.split(" (read").next()).unwrap();
    assert_eq!(fs::read_to_string(path).unwrap().len(), 50_000);

    let gave = place.script("const all = await tools.mcp__peer__gifts({}); return [all.structuredContent, all.content.length, all._meta ?? null];");
    let gave: Value = serde_json::from_str(gave.trim()).unwrap();
    assert_eq!(gave, json!([[1.5, null, "x"], 7, null]));
}

#[test]
fn a_prompt_is_a_command_whose_messages_are_the_users() {
    let place = Place::of_peer(&["--more"]);
    let turns = json!({"turns": [{"text": "hello"}, {"text": "hello"}]});
    let run = |line: &str| place.sandbox.scripted(&turns).arg(line).run();
    // At first it is not known what the server has, and then it is.
    run("/mcp__peer__greet Bob how=\"very loud\"").ok();
    assert_eq!(place.said(), ["greet: {\"how\":\"very loud\",\"who\":\"Bob\"}"]);
    run("/mcp__peer__greet 'Ann Lee'").ok();
    assert_eq!(place.said().last().map(String::as_str), Some("greet: {\"who\":\"Ann Lee\"}"), "{:?}", place.said());
    let wrong = run("/mcp__peer__greet");
    assert!(wrong.stderr.contains("who is missing; it takes <who> [how]"), "{wrong:#?}");
}

#[test]
fn prompts_come_and_are_told_of() {
    let place = Place::of_peer(&["--more"]);
    let code = "await tools.mcp__peer__more_prompts({}); return 1";
    let turns = json!({"turns": [{"calls": [{"tool": "codemode", "arguments": {"code": code}}]}, {"text": "a"}, {"text": "b"}]});
    place.sandbox.scripted(&turns).args(["go", "/mcp__peer__second"]).run().ok();
    assert!(place.said().contains(&"second: {}".to_owned()), "{:?}", place.said());
}

/// A place whose server is a script that can be changed without a change of the configuration.
fn scripted_server(options: &str, more: &Value) -> Place {
    let mut entry = json!({"command": "sh", "args": ["server.sh"], "exposure": "deferred"});
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    let place = Place::with(&json!({"peer": entry}));
    serve(&place, options);
    place
}

fn serve(place: &Place, options: &str) {
    place.sandbox.file("server.sh", format!("exec '{}' {options}\n", peer()));
}

#[test]
fn what_a_server_had_is_found_and_declared_before_it_is_there() {
    let place = scripted_server("--more", &json!({"toolExposure": {"echo": "direct"}}));
    place.call("mcp__peer__echo", &json!({"value": "x"}));
    // From here on it never answers, and nobody may wait for it to do what needs no server.
    serve(&place, "--silent");
    let turns = json!({"turns": [
        {"calls": [{"tool": "tool_search", "arguments": {"query": "adds numbers"}}]}, {"text": "done"},
    ]});
    place.sandbox.scripted(&turns).arg("go").longest(20).run().ok();
    let messages = place.sandbox.messages();
    let declared = messages.iter().flat_map(|message| message["toolsAdded"].as_array().cloned().unwrap_or_default());
    let declared: Vec<String> = declared.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect();
    assert!(declared.contains(&"mcp__peer__echo".to_owned()), "{declared:?}");
    let found = text_of(&place.sandbox.results()[0]["content"]);
    assert!(found.contains("mcp__peer__add"), "{found}");
}

#[test]
fn a_call_waits_for_its_own_server_and_what_is_kept_of_another_does_not_count() {
    let place = scripted_server("--more", &json!({}));
    place.call("mcp__peer__echo", &json!({"value": "x"}));
    // It is there again, with one tool more, and a call finds both it and what it has now.
    serve(&place, "--more --tools 1");
    let gave = place.script(
        "const first = await tools.mcp__peer__echo({value: 'again'});
         const isThere = async () => (await searchTools('one of many')).some(({name}) => name === 'mcp__peer__more_0');
         // A script may ask so often and no more.
         while (!(await isThere())) await new Promise((done) => setTimeout(done, 20));
         return [first.content[0].text, (await tools.mcp__peer__more_0({})).content[0].text];",
    );
    assert_eq!(serde_json::from_str::<Value>(gave.trim()).unwrap(), json!(["again", "more_0"]));
    // The same name, and another way to reach it: what was kept is not its.
    let servers = json!({"peer": {"command": peer(), "args": ["--die"], "exposure": "deferred"}});
    place.sandbox.home_file("mcp.json", json!({"mcpServers": servers}).to_string());
    let table = place.atoll().args(["tool", "list", "--json"]).run().json();
    let names: Vec<&str> = table.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(!names.iter().any(|name| name.starts_with("mcp__")), "{names:?}");
}

#[test]
fn a_command_finds_what_a_server_has_got_since_it_was_kept() {
    let place = scripted_server("--more", &json!({}));
    place.call("mcp__peer__echo", &json!({"value": "x"}));
    serve(&place, "--more --tools 1");
    let record = place.call("mcp__peer__more_0", &json!({}));
    assert_eq!(text_of(&record["content"]), "more_0", "{record:#}");
}

#[test]
fn a_server_that_could_not_be_had_is_tried_again_when_somebody_looks_for_its_tools() {
    let place = scripted_server("--die", &json!({}));
    let search = json!({"calls": [{"tool": "tool_search", "arguments": {"query": "adds numbers"}}]});
    // It is not tried again at once.
    let repair = format!("echo \"exec '{}'\" > server.sh; sleep 3", peer());
    let turns = json!({"turns": [
        search, {"calls": [{"tool": "bash", "arguments": {"command": repair}}]}, search, {"text": "done"},
    ]});
    place.sandbox.scripted(&turns).arg("go").run().ok();
    let results = place.sandbox.results();
    let found: Vec<bool> =
        [0, 2].iter().map(|at| text_of(&results[*at]["content"]).contains("mcp__peer__add")).collect();
    assert_eq!(found, [false, true], "{results:#?}");
}

#[test]
fn a_server_that_fails_after_it_was_kept_keeps_its_tools_and_says_why() {
    let place = scripted_server("--more", &json!({}));
    place.call("mcp__peer__echo", &json!({"value": "x"}));
    serve(&place, "--die");
    let record = place.call("mcp__peer__echo", &json!({"value": "x"}));
    let text = text_of(&record["content"]);
    assert!(text.contains("The MCP server peer can not be reached") && text.contains("no good reason"), "{text}");
}
