//! The adapter with servers in Python that nobody here wrote, and with ten servers of all kinds at once. `cargo xtask test`
//! fetches them, and says where they are in `ATOLL_MCP_PYTHON_DIR`, `ATOLL_MCP_SQLITE_DIR` and `ATOLL_MCP_SERVERS_DIR`.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::common::{mcp::Place, skipped, terminal::AtTerminal, text_of};

/// Where servers are; none, and a word about it, where they are not there.
fn folder(test: &str, variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    if folder.is_none() {
        skipped(&format!("{test}: {variable} is not set"));
    }
    folder
}

fn python(test: &str) -> Option<Map<String, Value>> {
    let (python, sqlite) = (folder(test, "ATOLL_MCP_PYTHON_DIR")?, folder(test, "ATOLL_MCP_SQLITE_DIR")?);
    let module =
        |name: &str| json!({"command": python.join("bin/python"), "args": ["-m", format!("mcp_server_{name}")]});
    let mut servers: Map<String, Value> =
        ["git", "time", "fetch"].iter().map(|name| ((*name).to_owned(), module(name))).collect();
    let main = "import mcp_server_sqlite; mcp_server_sqlite.main()";
    servers.insert(
        "sqlite".to_owned(),
        json!({"command": sqlite.join("bin/python"), "args": ["-c", main, "--db-path", "data.db"]}),
    );
    Some(servers)
}

fn node(test: &str, names: &[(&str, &str)]) -> Option<Map<String, Value>> {
    let folder = folder(test, "ATOLL_MCP_SERVERS_DIR")?;
    let entry = |(name, server): &(&str, &str)| {
        let program = folder.join("node_modules/.bin").join(format!("mcp-server-{server}"));
        let mut arguments = vec![json!(program)];
        arguments.extend((*server == "filesystem").then(|| json!(".")));
        let memory = format!("{name}.jsonl");
        ((*name).to_owned(), json!({"command": "node", "args": arguments, "env": {"MEMORY_FILE_PATH": memory}}))
    };
    Some(names.iter().map(entry).collect())
}

/// A repository with one commit.
fn with_repository(place: &Place) {
    place.sandbox.file("a.txt", "one\n");
    let line = "git init -q . && git add a.txt && git -c user.name=A -c user.email=a@b commit -q -m first && echo two >> a.txt";
    place.sandbox.shell(line).ok();
}

#[test]
fn servers_in_python_have_their_tools_resources_and_prompts() {
    let Some(servers) = python("servers_in_python_have_their_tools_resources_and_prompts") else { return };
    let place = Place::with(&Value::Object(servers));
    with_repository(&place);
    let gave = place.script(
        "const text = async (name, args) => { const all = await tools[name](args); return all.content.map((piece) => piece.text).join(' '); };
         const count = async (name) => (await describeNamespace(name)).tools.length;
         const repo_path = '.';
         const time = await tools.mcp__time__convert_time({source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Tokyo'});
         const refused = await tools.mcp__fetch__fetch({url: 'http://127.0.0.1:9/'}).then((all) => all.isError === true, () => true);
         return {
             counts: [await count('git'), await count('time'), await count('fetch'), await count('sqlite')],
             status: (await text('mcp__git__git_status', {repo_path})).includes('a.txt'),
             log: (await text('mcp__git__git_log', {repo_path, max_count: 5})).includes('first'),
             diff: (await text('mcp__git__git_diff_unstaged', {repo_path})).includes('+two'),
             tokyo: JSON.stringify(time).includes('21:00'),
             now: (await text('mcp__time__get_current_time', {timezone: 'UTC'})).includes('UTC'),
             wrong: (await tools.mcp__time__get_current_time({timezone: 'No/Where'})).isError,
             one: await text('mcp__sqlite__read_query', {query: 'select 1 as one'}),
             tables: await text('mcp__sqlite__list_tables', {}),
             refused,
         };",
    );
    let gave: Value = serde_json::from_str(gave.trim()).unwrap();
    insta::assert_json_snapshot!(gave);
    let resources = place.call("list_mcp_resources", &json!({}));
    assert_eq!(resources["structuredContent"]["resources"][0]["uri"], "memo://insights", "{resources:#}");
    let read = place.call("read_mcp_resource", &json!({"server": "sqlite", "uri": "memo://insights"}));
    assert_eq!(read["isError"], false, "{read:#}");
    let turns = json!({"turns": [{"text": "done"}]});
    place.sandbox.scripted(&turns).arg("/mcp__sqlite__mcp_demo topic='red shoes'").run().ok();
    let said = place.sandbox.messages().iter().map(|message| text_of(&message["content"])).collect::<Vec<_>>();
    assert!(said.iter().any(|text| text.contains("red shoes")), "{said:?}");
}

#[test]
fn everything_that_one_server_has_is_there() {
    let name = "everything_that_one_server_has_is_there";
    let Some(servers) = node(name, &[("everything", "everything")]) else { return };
    let place = Place::with(&Value::Object(servers));
    let listed = place.call("list_mcp_resources", &json!({"server": "everything"}));
    let first = listed["structuredContent"]["resources"][0]["uri"].as_str().unwrap().to_owned();
    let templates = place.call("list_mcp_resource_templates", &json!({}));
    assert_eq!(templates["structuredContent"]["resourceTemplates"].as_array().unwrap().len(), 2, "{templates:#}");
    let read = place.call("read_mcp_resource", &json!({"server": "everything", "uri": first}));
    assert!(read["isError"] == false && !text_of(&read["content"]).is_empty(), "{read:#}");
    let turns = json!({"turns": [{"text": "done"}]});
    let run = |line: &str| place.sandbox.scripted(&turns).arg(line).run();
    run("/mcp__everything__simple_prompt").ok();
    run("/mcp__everything__args_prompt Oslo").ok();
    let said = place.sandbox.messages().iter().map(|message| text_of(&message["content"])).collect::<Vec<_>>();
    assert!(said.iter().any(|text| text.contains("Oslo")), "{said:?}");
    // It asks the person for a form with fields of every kind.
    let call = place.atoll().args(["tool", "call", "mcp__everything__trigger_elicitation_request", "{}"]);
    let declined = AtTerminal::start(call).answer("Decline", "").wait();
    assert!(declined.stdout.contains("cancel"), "{declined:#?}");
}

#[test]
fn ten_servers_of_all_kinds_serve_one_script() {
    let name = "ten_servers_of_all_kinds_serve_one_script";
    let all = [
        ("everything", "everything"),
        ("everything2", "everything"),
        ("filesystem", "filesystem"),
        ("memory", "memory"),
        ("memory2", "memory"),
        ("thinking", "sequential-thinking"),
    ];
    let (Some(python), Some(mut servers)) = (python(name), node(name, &all)) else { return };
    servers.extend(python);
    assert_eq!(servers.len(), 10);
    let place = Place::with(&Value::Object(servers));
    with_repository(&place);
    let gave = place.script(
        "const calls = [];
         const add = (tool, args) => calls.push(tools[tool](args).then((all) => all.isError !== true));
         for (let at = 0; at < 5; at++) {
             add('mcp__everything__echo', {message: String(at)});
             add('mcp__everything2__get_sum', {a: at, b: at});
             add('mcp__filesystem__list_allowed_directories', {});
             add('mcp__memory__read_graph', {});
             add('mcp__memory2__search_nodes', {query: 'x'});
             add('mcp__thinking__sequentialthinking', {thought: 'hm', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1});
             add('mcp__git__git_status', {repo_path: '.'});
             add('mcp__time__get_current_time', {timezone: 'UTC'});
             add('mcp__sqlite__list_tables', {});
         }
         // mcp__fetch
         const good = await Promise.all(calls);
         return [good.length, good.every((one) => one), (await describeNamespace('fetch')).tools.length];",
    );
    assert_eq!(serde_json::from_str::<Value>(gave.trim()).unwrap(), json!([45, true, 1]));
}
