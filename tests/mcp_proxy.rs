//! The other adapter for MCP servers: one tool for all of them. What a model is sent, request by request, and when servers
//! are there.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::common::{
    Command, Sandbox,
    mcp::peer,
    plugins::workspace_root,
    server::{Reply, Server},
    text_of,
};

const MANIFEST: &str = include_str!("../guest-extensions/mcp-proxy/plugin.toml");

/// A place with the adapter, and this configuration of it.
pub(crate) struct Place {
    pub(crate) sandbox: Sandbox,
    pub(crate) file: PathBuf,
}

impl Place {
    pub(crate) fn with(configuration: &Value) -> Self {
        let sandbox = Sandbox::new();
        let path = workspace_root().join("target/guests/wasm32-wasip2/guest/atoll_mcp_proxy.wasm");
        let component = fs::read(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; run the tests with `cargo xtask test`", path.display()));
        sandbox.grant("mcp-proxy", &component, "all = true");
        let file = sandbox.offered("adapter", &component, Some(MANIFEST));
        let place = Self { sandbox, file };
        place.configure(configuration);
        place
    }

    pub(crate) fn configure(&self, configuration: &Value) {
        self.sandbox.home_file("mcp.json", configuration.to_string());
    }

    /// With one server, `peer`, that has these fields and writes down each start and what it is sent.
    pub(crate) fn of_peer(settings: &Value, fields: &Value) -> Self {
        let mut entry = json!({"command": peer(), "args": ["--pid", "pids", "--log", "wire"]});
        entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        Self::with(&json!({"settings": settings, "mcpServers": {"peer": entry}}))
    }

    pub(crate) fn atoll(&self) -> Command {
        self.sandbox.atoll().arg("-e").arg(&self.file)
    }

    /// Has whatever is found out at the very first start be known.
    pub(crate) fn known(self) -> Self {
        self.table();
        self
    }

    /// The names of its tools in the table, those that are not declared in brackets.
    pub(crate) fn table(&self) -> Vec<String> {
        let table = self.atoll().args(["tool", "list", "--json"]).run().json();
        let own = table.as_array().unwrap().iter().filter(|tool| tool["plugin"] == "mcp-proxy");
        let shown = own.map(|tool| {
            let name = tool["name"].as_str().unwrap().to_owned();
            if tool["active"] == true { name } else { format!("({name})") }
        });
        shown.collect()
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.atoll().args(["tool", "call", tool, &arguments.to_string(), "--json"]).run().json()
    }

    #[track_caller]
    pub(crate) fn good(&self, tool: &str, arguments: &Value) -> String {
        let record = self.call(tool, arguments);
        assert_eq!(record["isError"], false, "{record:#}");
        text_of(&record["content"])
    }

    #[track_caller]
    pub(crate) fn bad(&self, tool: &str, arguments: &Value) -> String {
        let record = self.call(tool, arguments);
        assert_eq!(record["isError"], true, "{record:#}");
        text_of(&record["content"])
    }

    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.sandbox.work().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// How often a server was started, and how often one of these methods was asked of it.
    pub(crate) fn asked(&self, file: &str, method: &str) -> usize {
        let method = format!("\"method\":\"{method}\"");
        self.lines(file).iter().filter(|line| line.contains(&method)).count()
    }

    /// Plays these turns, and gives the results of the calls.
    pub(crate) fn play(&self, turns: &Value) -> Vec<Value> {
        self.sandbox.scripted(&json!({"turns": turns})).arg("-e").arg(&self.file).arg("go").run().ok();
        self.sandbox.results()
    }
}

/// Two servers, each with two tools, and what they are sent written down.
fn two_servers(direct: &Value) -> Place {
    let server = |name: &str| {
        json!({
            "command": env!("CARGO_BIN_EXE_atoll-mcp-stub"), "args": [name, format!("{name}.json"), format!("{name}.log")],
            "lifecycle": "lazy", "directTools": direct,
        })
    };
    let place = Place::with(&json!({"mcpServers": {"a": server("a"), "b": server("b")}}));
    let tool = |server: &str, name: &str, argument: &str, kind: &str| {
        json!({"name": name, "description": format!("Call server {server} {name}"),
            "inputSchema": {"type": "object", "properties": {argument: {"type": kind}}, "required": [argument]}})
    };
    let a = json!([tool("a", "tool1", "value", "string"), tool("a", "tool2", "id", "number")]);
    let b = json!([tool("b", "tool1", "query", "string"), tool("b", "tool2", "count", "number")]);
    place.sandbox.file("a.json", a.to_string());
    place.sandbox.file("b.json", b.to_string());
    // The first start of all fills what is known of them.
    place.known()
}

/// A request as it is compared: which tools it declares, and its messages but the system prompt.
fn shown(request: &Value) -> (Vec<String>, Vec<String>) {
    let tools = request["tools"].as_array().unwrap().iter();
    let tools = tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect();
    let messages = request["messages"].as_array().unwrap().iter().filter(|message| message["role"] != "system");
    let messages = messages.map(|message| match message["tool_calls"].as_array() {
        Some(calls) => {
            let call = &calls[0]["function"];
            format!("call {}({})", call["name"].as_str().unwrap(), call["arguments"].as_str().unwrap())
        }
        None => {
            let content = &message["content"];
            let text = content.as_str().map_or_else(|| text_of(content), str::to_owned);
            format!("{} {}", message["role"].as_str().unwrap(), text.replace('\n', " | "))
        }
    });
    (tools, messages.collect())
}

/// The lines of a request's system prompt that name tools of the adapter.
fn named(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap();
    let system = messages.iter().filter(|message| message["role"] == "system");
    let text: String = system.map(|message| message["content"].to_string().replace("\\n", "\n")).collect();
    let own = |line: &&str| ["- mcp", "- a_", "- b_"].iter().any(|begin| line.starts_with(begin));
    text.lines().filter(own).map(|line| line.trim_end_matches('"').to_owned()).collect()
}

/// What the user says.
const U1: &str = "Call tool1 of server a with {\"value\":\"first\"}.";
const U2: &str = "Now call tool2 of server b with {\"count\":2}.";

/// Both sequences: what the model calls after each search, and what each of the six requests has to be.
fn six_requests(place: &Place, tools: &str, calls: [(&str, &str); 2]) -> Vec<Value> {
    let model = Server::start(vec![
        Reply::calls(&[("mcp", r#"{"search":"tool1","server":"a"}"#)]),
        Reply::calls(&[calls[0]]),
        Reply::text("A_TOOL1:FIRST"),
        Reply::calls(&[("mcp", r#"{"search":"tool2","server":"b"}"#)]),
        Reply::calls(&[calls[1]]),
        Reply::text("B_TOOL2:2"),
    ]);
    place.sandbox.model_behind(&model);
    let starts = |name: &str| place.asked(&format!("{name}.log"), "initialize");
    let before = (starts("a"), starts("b"));
    place.atoll().args(["--tools", tools, "-p", U1, U2]).run().ok();
    assert_eq!(
        (starts("a"), starts("b")),
        (before.0 + 1, before.1 + 1),
        "each was connected to once, when it was called"
    );
    assert_eq!([place.asked("a.log", "tools/call"), place.asked("b.log", "tools/call")], [1, 1]);
    model.bodies()
}

/// Messages of each request: those of the one before, and these.
fn growing(news: [&[&str]; 6]) -> Vec<Vec<String>> {
    let mut all: Vec<String> = Vec::new();
    let add = |news: &&[&str]| {
        all.extend(news.iter().map(|text| (*text).to_owned()));
        all.clone()
    };
    news.iter().map(add).collect()
}

#[test]
fn six_requests_with_a_gateway_and_a_tool_for_each_server() {
    let place = two_servers(&json!(false));
    assert_eq!(place.table(), ["mcp", "mcp__a", "mcp__b"]);
    let calls = [
        ("mcp__a", r#"{"tool":"tool1","args":{"value":"first"}}"#),
        ("mcp__b", r#"{"tool":"tool2","args":{"count":2}}"#),
    ];
    let requests = six_requests(&place, "mcp,mcp__a,mcp__b", calls);
    let (tools, messages): (Vec<_>, Vec<_>) = requests.iter().map(shown).unzip();
    assert_eq!(tools, vec![["mcp", "mcp__a", "mcp__b"]; 6]);
    let found = |server: &str, tool: &str, arguments: &str| {
        format!(
            "tool 1 tool of {server} matches \"{tool}\": |  | {server}_{tool} |   Call server {server} {tool} |   Arguments: \
             {arguments} |  | Call one: mcp({{ tool: \"{server}_{tool}\", args: … }}) or mcp__{server}({{ tool: \"{tool}\", args: … }})."
        )
    };
    let (a, b) = (found("a", "tool1", "{ value: string }"), found("b", "tool2", "{ count: number }"));
    let (u1, u2) = (format!("user {U1}"), format!("user {U2}"));
    let expected = growing([
        &[&u1],
        &[r#"call mcp({"search":"tool1","server":"a"})"#, &a],
        &[r#"call mcp__a({"tool":"tool1","args":{"value":"first"}})"#, "tool A_TOOL1:FIRST"],
        &["assistant A_TOOL1:FIRST", &u2],
        &[r#"call mcp({"search":"tool2","server":"b"})"#, &b],
        &[r#"call mcp__b({"tool":"tool2","args":{"count":2}})"#, "tool B_TOOL2:2"],
    ]);
    assert_eq!(messages, expected);
    for request in &requests {
        let lines = named(request);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].starts_with("- mcp: ") && lines[2].starts_with("- mcp__b: "), "{lines:?}");
    }
}

#[test]
fn six_requests_with_a_gateway_and_tools_that_a_search_declares() {
    let place = two_servers(&json!("search"));
    assert_eq!(place.table(), ["mcp", "(a_tool1)", "(a_tool2)", "(b_tool1)", "(b_tool2)"]);
    let calls = [("a_tool1", r#"{"value":"first"}"#), ("b_tool2", r#"{"count":2}"#)];
    let requests = six_requests(&place, "mcp", calls);
    let (tools, messages): (Vec<_>, Vec<_>) = requests.iter().map(shown).unzip();
    let (first, second, third) = (vec!["mcp"], vec!["mcp", "a_tool1"], vec!["mcp", "a_tool1", "b_tool2"]);
    assert_eq!(tools, [&first, &second, &second, &second, &third, &third].map(Clone::clone));
    let found = |server: &str, tool: &str, arguments: &str| {
        format!(
            "tool 1 tool of {server} matches \"{tool}\": |  | {server}_{tool} |   Call server {server} {tool} |   Arguments: \
             {arguments} |  | Declared to you from the next call on: {server}_{tool}."
        )
    };
    let (a, b) = (found("a", "tool1", "{ value: string }"), found("b", "tool2", "{ count: number }"));
    let (u1, u2) = (format!("user {U1}"), format!("user {U2}"));
    let expected = growing([
        &[&u1],
        &[r#"call mcp({"search":"tool1","server":"a"})"#, &a],
        &[r#"call a_tool1({"value":"first"})"#, "tool A_TOOL1:FIRST"],
        &["assistant A_TOOL1:FIRST", &u2],
        &[r#"call mcp({"search":"tool2","server":"b"})"#, &b],
        &[r#"call b_tool2({"count":2})"#, "tool B_TOOL2:2"],
    ]);
    assert_eq!(messages, expected);
    // What was declared has its own schema.
    let declared = &requests[5]["tools"][1]["function"]["parameters"];
    assert_eq!(declared["properties"]["value"]["type"], "string", "{declared:#}");
    // The list in the prompt follows with the next prompt of the user: until then what was sent stays as it was. The adapter of
    // which these requests are changes it with the second and the fifth: the host keeps what it has sent in one prompt.
    let named: Vec<usize> = requests.iter().map(|request| named(request).len()).collect();
    assert_eq!(named, [1, 1, 1, 2, 2, 2]);
}

#[test]
fn what_the_gateway_says_of_servers_and_tools() {
    let place =
        Place::of_peer(&json!({}), &json!({"excludeTools": ["crash", "more_*"], "description": "For tests"})).known();
    insta::assert_snapshot!(
        [
            place.good("mcp", &json!({})),
            place.good("mcp", &json!({"search": "add numbers", "limit": 1})),
            place.good("mcp", &json!({"describe": "add"})),
            place.good("mcp", &json!({"instructions": "peer"})),
            place.bad("mcp", &json!({"tool": "peer_ecko"})),
            place.bad("mcp", &json!({"tool": "crash"})),
            place.bad("mcp", &json!({"connect": "pear"})),
            place.bad("mcp", &json!({"tool": "fail", "args": "{}"})),
            place.bad("mcp", &json!({"tool": "add", "search": "add"})),
        ]
        .join("\n=======\n")
    );
    assert_eq!(place.lines("pids").len(), 2, "the very first start, and the one call that was made");
    assert_eq!(place.good("mcp", &json!({"tool": "peer_echo", "args": {"value": "x"}})), "x");
    assert_eq!(place.good("mcp__peer", &json!({"tool": "echo", "args": "{\"value\": \"y\"}"})), "y");
    assert!(place.bad("mcp__peer", &json!({"tool": "crash"})).contains("There is no tool \"crash\""));
}

#[test]
fn scripts_call_a_server_by_its_tool_and_get_whole_results() {
    let place = Place::of_peer(&json!({}), &json!({"directTools": ["add"]})).known();
    assert_eq!(place.table(), ["mcp", "peer_add"]);
    let script = place.sandbox.file("s.js", "return (await tools.peer_add({a: 20, b: 22})).structuredContent.sum");
    assert_eq!(place.atoll().args(["codemode", "run"]).arg(script).run().ok().stdout.trim(), "42");
}

#[test]
fn a_lazy_server_is_left_when_nobody_calls_and_is_there_again_for_the_next_call() {
    // Three tenths of a second.
    let place = Place::of_peer(&json!({}), &json!({"idleTimeout": 0.005})).known();
    assert_eq!(place.lines("pids").len(), 1);
    let gone = "for i in $(seq 600); do kill -0 $(tail -n1 pids) 2>/dev/null || { echo gone; exit; }; sleep 0.1; done; echo there";
    let echo =
        |value: &str| json!({"calls": [{"tool": "mcp", "arguments": {"tool": "peer_echo", "args": {"value": value}}}]});
    let results = place.play(&json!([
        {"calls": [{"tool": "mcp", "arguments": {"search": "gives back a value"}}]},
        {"calls": [{"tool": "bash", "arguments": {"command": "wc -l < pids"}}]},
        echo("one"),
        {"calls": [{"tool": "bash", "arguments": {"command": gone}}]},
        echo("two"),
        {"calls": [{"tool": "bash", "arguments": {"command": "wc -l < pids"}}]},
        {"text": "done"},
    ]));
    let texts: Vec<String> = results.iter().map(|result| text_of(&result["content"]).trim().to_owned()).collect();
    assert_eq!(texts[1..], ["1", "one", "gone", "two", "3"], "{texts:#?}");
}

#[test]
fn a_server_in_a_long_call_is_not_idle() {
    let place = Place::of_peer(&json!({}), &json!({"idleTimeout": 0.002})).known();
    let text = place.good("mcp", &json!({"tool": "slow", "args": {"ms": 1500}}));
    assert_eq!(text, "done");
}

#[test]
fn a_server_that_is_kept_is_there_from_the_start_and_comes_back_by_itself() {
    let settings = json!({"healthCheckSeconds": 0.2});
    let place = Place::of_peer(&settings, &json!({"lifecycle": "keep-alive"})).known();
    let bash = |command: &str| json!({"calls": [{"tool": "bash", "arguments": {"command": command}}]});
    let until = |holds: &str| {
        bash(&format!("for i in $(seq 600); do {holds} && {{ echo yes; exit; }}; sleep 0.1; done; echo no"))
    };
    // What stops one writes down how many there were, so that only one that comes after that is a new one.
    let stopped = |signal: &str| bash(&format!("wc -l < pids > before; kill -{signal} $(tail -n1 pids)"));
    let new = "[ $(wc -l < pids) -gt $(cat before) ]";
    // It is asked again and again, and not connected to again in between: who answers is not taken for gone.
    let steady = "awk '/\"initialize\"/ {n = 0} /\"ping\"/ {if (++n > 2) found = 1} END {exit !found}' wire";
    let results = place.play(&json!([
        // Beside the one of the very first start.
        until("[ $(wc -l < pids) -ge 2 ]"),
        until(steady),
        stopped("KILL"),
        until(new),
        until(steady),
        // What hangs is as good as gone.
        stopped("STOP"),
        until(new),
        {"text": "done"},
    ]));
    let texts: Vec<String> = results.iter().map(|result| text_of(&result["content"]).trim().to_owned()).collect();
    assert_eq!([0, 1, 3, 4, 6].map(|at| texts[at].as_str()), ["yes"; 5], "{texts:#?}");
}

#[test]
fn one_that_is_kept_from_the_first_call_on_is_not_there_before() {
    let settings = json!({"healthCheckSeconds": 0.2});
    let place = Place::of_peer(&settings, &json!({"lifecycle": "lazy-keep-alive"})).known();
    let bash = |command: &str| json!({"calls": [{"tool": "bash", "arguments": {"command": command}}]});
    let again =
        "for i in $(seq 600); do [ $(wc -l < pids) -ge 3 ] && { echo there; exit; }; sleep 0.1; done; echo missing";
    let results = place.play(&json!([
        bash("wc -l < pids"),
        {"calls": [{"tool": "mcp__peer", "arguments": {"tool": "echo", "args": {"value": "x"}}}]},
        bash("kill -9 $(tail -n1 pids)"),
        bash(again),
        {"text": "done"},
    ]));
    let texts: Vec<String> = results.iter().map(|result| text_of(&result["content"]).trim().to_owned()).collect();
    assert_eq!([&texts[0], &texts[1], &texts[3]], ["1", "x", "there"], "{texts:#?}");
}

#[test]
fn an_eager_server_is_there_from_the_start() {
    let place = Place::of_peer(&json!({}), &json!({"lifecycle": "eager"})).known();
    let wait =
        "for i in $(seq 600); do [ $(wc -l < pids) -ge 2 ] && { echo there; exit; }; sleep 0.1; done; echo missing";
    let results = place.play(&json!([{"calls": [{"tool": "bash", "arguments": {"command": wait}}]}, {"text": "done"}]));
    assert_eq!(text_of(&results[0]["content"]).trim(), "there");
    // A command without a model connects to nobody whom it does not need.
    let before = place.lines("pids").len();
    place.table();
    assert_eq!(place.lines("pids").len(), before);
}

#[test]
fn a_server_that_is_new_has_to_be_asked_and_one_that_has_changed_is_asked_at_once() {
    let place = Place::of_peer(&json!({}), &json!({})).known();
    let entry = |extra: &[&str]| {
        let options: Vec<&str> = ["--pid", "pids", "--log", "wire"].iter().chain(extra).copied().collect();
        json!({"command": peer(), "args": options})
    };
    place.configure(&json!({"mcpServers": {"peer": entry(&[]), "fresh": entry(&[])}}));
    assert_eq!(place.table(), ["mcp", "mcp__peer"], "nothing was ever heard of the new one");
    let text = place.good("mcp", &json!({"search": "numbers", "server": "fresh"}));
    assert!(text.contains("The tools of fresh are not known yet: mcp({ connect: \"fresh\" })"), "{text}");
    let text = place.good("mcp", &json!({"connect": "fresh"}));
    assert!(text.contains("fresh_add") && text.contains("Arguments: { a?: number, b?: number }"), "{text}");
    assert_eq!(place.table(), ["mcp", "mcp__peer", "mcp__fresh"]);
    // Another server by the old name: what was known is not told of it, nor is it empty.
    place.configure(&json!({"mcpServers": {"peer": entry(&["--clash"])}}));
    let text = place.good("mcp", &json!({"search": "One", "server": "peer"}));
    assert!(text.contains("peer_a-b"), "{text}");
}

#[test]
fn what_a_server_says_does_not_hold_is_not_kept() {
    let tools = json!([{"name": "t", "description": "Does it.", "inputSchema": {"type": "object"}}]);
    // How often it was connected to in three runs, of which the first waits until all is known of it.
    let connected = |ttl: u64| {
        let place = Place::with(&json!({"mcpServers": {"one": {
            "command": env!("CARGO_BIN_EXE_atoll-mcp-stub"), "args": ["one", "one.json", "one.log"],
        }}}));
        place.sandbox.file("one.json", json!({"tools": tools, "ttlMs": ttl}).to_string());
        place.good("mcp", &json!({"connect": "one"}));
        for _ in 0..2 {
            // A search finds what is known. What does not hold is not known, and has to be asked for.
            let found = place.good("mcp", &json!({"search": "Does it"}));
            if ttl == 0 {
                place.good("mcp", &json!({"connect": "one"}));
            } else {
                assert!(found.contains("one_t"), "{found}");
            }
        }
        place.asked("one.log", "initialize")
    };
    assert_eq!(connected(3_600_000), 1);
    // A search may end before it was connected to. Whoever waits for it has it connected to.
    assert!((3..=5).contains(&connected(0)), "each run that needs it connects to it");
}

#[test]
fn resources_are_tools_unless_the_configuration_says_otherwise() {
    let place =
        Place::of_peer(&json!({}), &json!({"args": ["--more"], "directTools": true, "includeTools": ["read_*"]}))
            .known();
    assert_eq!(place.table(), ["mcp", "peer_read_note", "peer_read_bytes"]);
    assert_eq!(place.good("peer_read_note", &json!({})), "what is in peer://note");
}

#[test]
fn names_of_tools_begin_as_the_configuration_says_and_take_nothing_from_others() {
    let names = |prefix: &str| {
        let place = Place::of_peer(
            &json!({"toolPrefix": prefix, "disableProxyTool": true}),
            &json!({"directTools": true,
            "includeTools": ["echo", "add"]}),
        )
        .known();
        place.table()
    };
    assert_eq!(names("server"), ["peer_echo", "peer_add"]);
    assert_eq!(names("none"), ["echo", "add"]);
    assert_eq!(names("mcp"), ["mcp__peer_echo", "mcp__peer_add"]);
}

#[test]
fn a_mistake_in_the_configuration_is_said_and_costs_that_server_alone() {
    let place = Place::with(&json!({"settings": {"toolPrefx": "none"}, "mcpServers": {
        "good": {"command": peer()}, "bad": {"command": peer(), "lifecycle": "sometimes"},
    }}));
    let done = place.atoll().env("ATOLL_LOG", "warn").args(["tool", "call", "mcp", "{}"]).run().ok();
    assert!(done.stdout.contains("1 MCP server") && !done.stdout.contains("bad"), "{}", done.stdout);
    for said in [
        "\"bad\": \"lifecycle\": it has to be one of lazy",
        "\"toolPrefx\": there is no such setting; there is toolPrefix",
    ] {
        assert!(done.stderr.contains(said), "{said}: {}", done.stderr);
    }
}

#[test]
fn in_a_session_the_command_shows_how_it_is_with_the_servers() {
    let place = Place::of_peer(&json!({}), &json!({})).known();
    let run = place.sandbox.scripted(&json!({"turns": []})).arg("-e").arg(&place.file).arg("/mcp").run().ok();
    assert!(run.stdout.contains("- peer: not connected before it is called, 9 tools"), "{run:#?}");
}
