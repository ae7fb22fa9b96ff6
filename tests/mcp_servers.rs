//! The adapter with servers that nobody here wrote. `cargo xtask test` fetches them, and says where they are in
//! `ATOLL_MCP_SERVERS_DIR`.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::common::{mcp::Place, skipped, text_of};

/// Where the servers are, if they are there.
pub(crate) fn folder(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("ATOLL_MCP_SERVERS_DIR").map(PathBuf::from);
    if folder.is_none() {
        skipped(&format!("{test}: ATOLL_MCP_SERVERS_DIR is not set"));
    }
    folder
}

/// A place with servers, each by its name and with these arguments; none where they are not there.
fn place(test: &str, servers: &[(&str, &[&str])]) -> Option<Place> {
    let folder = folder(test)?;
    let entry = |(name, arguments): &(&str, &[&str])| {
        let program = folder.join("node_modules/.bin").join(format!("mcp-server-{name}"));
        let arguments = arguments.iter().map(|argument| json!(argument));
        let all: Vec<Value> = std::iter::once(json!(program)).chain(arguments).collect();
        ((*name).to_owned(), json!({"command": "node", "args": all, "env": {"MEMORY_FILE_PATH": "memory.jsonl"}}))
    };
    let servers: serde_json::Map<String, Value> = servers.iter().map(entry).collect();
    Some(Place::with(&Value::Object(servers)))
}

#[test]
fn every_tool_of_four_servers_is_there_at_once_and_what_only_reads_is_called() {
    let all: [(&str, &[&str]); 4] =
        [("everything", &[]), ("filesystem", &["."]), ("memory", &[]), ("sequential-thinking", &[])];
    let Some(place) = place("every_tool_of_four_servers_is_there_at_once_and_what_only_reads_is_called", &all) else {
        return;
    };
    place.sandbox.file("note.txt", "in the workspace");
    let table = place.atoll().args(["tool", "list", "--json"]).run().json();
    let names: Vec<String> = (table.as_array().unwrap().iter())
        .filter(|tool| tool["plugin"] == "mcp")
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    let count = |server: &str| names.iter().filter(|name| name.starts_with(&format!("mcp__{server}__"))).count();
    // One of `everything` is there only for a client that says where its user works.
    assert_eq!(["everything", "filesystem", "memory", "sequential_thinking"].map(count), [14, 14, 9, 1], "{names:#?}");
    let gave = place.script(
        "const everything = 'mcp__everything__', call = async (name, args = {}) => (await tools[name](args));
         const text = (result) => result.content.map((piece) => piece.text ?? piece.type).join(' ');
         const weather = await call(everything + 'get_structured_content', {location: 'Chicago'});
         const links = await call(everything + 'get_resource_links', {count: 2});
         const image = await call(everything + 'get_tiny_image');
         const note = await call('mcp__filesystem__read_text_file', {path: 'note.txt'});
         const outside = await call('mcp__filesystem__read_text_file', {path: '/etc/passwd'});
         const graph = await call('mcp__memory__read_graph');
         return {
             echo: text(await call(everything + 'echo', {message: 'hello'})),
             sum: text(await call(everything + 'get_sum', {a: 20, b: 22})),
             weather: typeof weather.structuredContent.temperature,
             roots: text(await call(everything + 'get_roots_list')).includes('file://'),
             links: links.content.filter((piece) => piece.type === 'resource_link').length,
             image: image.content.some((piece) => piece.type === 'image'),
             note: text(note), outside: outside.isError, graph: Array.isArray(graph.structuredContent.entities),
         };",
    );
    let gave: Value = serde_json::from_str(gave.trim()).unwrap();
    insta::assert_json_snapshot!(gave);
}

#[test]
fn progress_of_a_long_operation_keeps_it_alive() {
    let Some(place) = place("progress_of_a_long_operation_keeps_it_alive", &[("everything", &[])]) else { return };
    let record = place.call("mcp__everything__trigger_long_running_operation", &json!({"duration": 2, "steps": 4}));
    assert_eq!(record["isError"], false, "{record:#}");
    assert!(text_of(&record["content"]).contains("4"), "{record:#}");
}
