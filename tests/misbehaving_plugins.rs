//! Plugins that do what they must not do: each is stopped by the limit for it, which is named, and whatever comes
//! after works.

use serde_json::{Value, json};

use crate::common::{
    Sandbox, components,
    plugins::{self, MISBEHAVE_TOML},
    server::{Gate, Reply, Server, Step},
    text_of,
};

/// A call that has to end with an error of this code and text, and exit code 1.
#[track_caller]
fn stopped(sandbox: &Sandbox, arguments: &Value, code: &str, message: &str) {
    let run = sandbox.atoll().args(["tool", "call", "misbehave", &arguments.to_string(), "--json"]).run().code(1);
    let record = run.json();
    assert_eq!(record["isError"], true, "{record:#}");
    assert_eq!(record["details"]["error"]["code"], code, "{record:#}");
    let text = text_of(&record["content"]);
    assert!(text.contains(message), "{text:?} does not contain {message:?}");
}

#[track_caller]
fn limited(arguments: &Value, limit: &str) {
    stopped(&Sandbox::with_misbehave(), arguments, "limit", &format!("stopped by the limit {limit}"));
}

#[test]
fn a_tool_that_keeps_to_its_limits_works() {
    let sandbox = Sandbox::with_misbehave();
    assert_eq!(sandbox.good_call("misbehave", &json!({"how": "behave", "target": "x"})), "behaved: x");
    assert_eq!(sandbox.good_call("misbehave", &json!({"how": "large-result"})).len(), 1000 << 10);
}

#[test]
fn an_endless_loop_ends_at_cpu_ms_wassette_173() {
    limited(&json!({"how": "loop"}), "cpu-ms (300)");
}

#[test]
fn an_endless_loop_of_host_calls_ends_at_cpu_ms() {
    limited(&json!({"how": "loop-with-host-calls"}), "cpu-ms (300)");
}

#[test]
fn endless_allocation_ends_at_memory() {
    limited(&json!({"how": "allocate"}), "memory (33554432)");
}

#[test]
fn endless_allocation_in_small_pieces_ends_at_memory() {
    limited(&json!({"how": "allocate-little"}), "memory (33554432)");
}

#[test]
fn endless_growth_of_a_table_ends_at_table_elements() {
    let sandbox = Sandbox::new();
    let grow = "(loop $more (drop (table.grow $table (ref.null func) (i32.const 1000))) (br $more)) unreachable";
    let manifest = "name = \"grower\"\nversion = \"1\"\ncontract = \"0.1\"\n[limits]\ntable-elements = 20000\n";
    sandbox.plugin("grower", &components::tool("grower", grow), Some(manifest));
    let run = sandbox.atoll().args(["tool", "call", "grower"]).run().code(1);
    assert!(run.stderr.contains("stopped by the limit table-elements (20000)"), "{run:#?}");
}

#[test]
fn the_limit_on_memory_is_over_all_memories_together_spin_3705() {
    let sandbox = Sandbox::new();
    let grow = "(loop $more
        (drop (memory.grow 0 (i32.const 16))) (drop (memory.grow $second (i32.const 16))) (br $more)) unreachable";
    let manifest = "name = \"grower\"\nversion = \"1\"\ncontract = \"0.1\"\n[limits]\nmemory-mib = 8\n";
    // Each memory for itself may have as much as the limit and no more, so only the sum can reach it.
    let component = components::tool_with("grower", grow, "(memory $second 0 64)", "(i32.const 16)");
    sandbox.plugin("grower", &component, Some(manifest));
    let run = sandbox.atoll().args(["tool", "call", "grower"]).run().code(1);
    assert!(run.stderr.contains("stopped by the limit memory (8388608)"), "{run:#?}");
}

#[test]
fn a_plugin_that_breaks_when_it_lists_its_tools_costs_one_line() {
    let endless = "(loop $more (br $more)) unreachable";
    let wild = "(i32.const 65500)";
    for (list_tools, fields, reason) in [
        ("unreachable", "", "gave up"),
        (endless, "", "cpu-ms (200)"),
        (wild, "(data (i32.const 65500) \"\\ff\\ff\\ff\\ff\\ff\\ff\\ff\\ff\")", "x"),
        ("(i32.const 16)", "(func $start unreachable) (start $start)", "gave up"),
        ("(i32.const 16)", "(func $start (loop $more (br $more))) (start $start)", "cpu-ms (200)"),
        ("(i32.const 16)", "(memory 1000)", "memory (16777216)"),
        ("(i32.const 16)", "(table 5000 funcref)", "table-elements (2000)"),
    ] {
        let sandbox = Sandbox::new();
        let manifest = "name = \"x\"\nversion = \"1\"\ncontract = \"0.1\"\n\
            [limits]\ncpu-ms = 200\nmemory-mib = 16\ntable-elements = 2000\n";
        sandbox.plugin("x", &components::tool_with("x", "unreachable", fields, list_tools), Some(manifest));
        let run = sandbox.atoll().args(["tool", "list"]).run().ok();
        assert!(run.one_line().contains("the plugin x is left out"), "{run:#?}");
        assert!(run.one_line().contains(reason), "{reason:?} is missing: {run:#?}");
        assert!(run.stdout.contains("bash"));
    }
}

#[test]
fn a_component_that_lifts_the_async_call_synchronously_works() {
    let sandbox = Sandbox::new();
    sandbox.plugin("plain", &components::tool("plain", "(i32.const 64)"), None);
    let record = sandbox.call("plain", &json!({}));
    assert_eq!((&record["isError"], &record["content"]), (&json!(false), &json!([])), "{record:#}");
}

#[test]
fn open_files_without_end_end_at_handles() {
    let sandbox = Sandbox::with_misbehave();
    sandbox.file("a.txt", "a");
    stopped(&sandbox, &json!({"how": "open-files", "target": "a.txt"}), "limit", "stopped by the limit handles (100)");
}

#[test]
fn open_streams_without_end_end_at_handles() {
    limited(&json!({"how": "open-streams"}), "handles (100)");
}

#[test]
fn huge_data_for_a_host_call_ends_at_host_call_bytes() {
    for how in ["huge-argument", "huge-list-argument", "huge-progress"] {
        limited(&json!({"how": how}), "host-call-bytes (1048576)");
    }
}

#[test]
fn a_file_larger_than_one_host_call_may_bring_ends_at_host_call_bytes() {
    let sandbox = Sandbox::with_misbehave();
    sandbox.file("big", vec![b'x'; (1 << 20) + 1]);
    let arguments = json!({"how": "read", "target": "big"});
    stopped(&sandbox, &arguments, "limit", "stopped by the limit host-call-bytes (1048576)");
}

/// The plugin with other limits than its own.
fn with_limits(changes: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::new();
    let component = plugins::misbehave();
    let manifest = changes.iter().fold(MISBEHAVE_TOML.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replace(old, new)
    });
    sandbox.plugin("misbehave", &component, Some(&manifest));
    sandbox.grant("misbehave", &component, "all = true");
    sandbox
}

#[test]
fn a_huge_result_ends_at_output_bytes() {
    let sandbox = with_limits(&[("host-call-mib = 1", "host-call-mib = 8")]);
    stopped(&sandbox, &json!({"how": "huge-result"}), "limit", "stopped by the limit output-bytes (1048576)");
}

#[test]
fn a_result_is_bounded_by_output_bytes_and_not_by_what_one_host_call_may_bring() {
    let sandbox = with_limits(&[("output-mib = 1", "output-mib = 4")]);
    assert_eq!(sandbox.good_call("misbehave", &json!({"how": "huge-result"})).len(), (1 << 20) + 1);
    limited(&json!({"how": "huge-result"}), "output-bytes (1048576)");
}

/// The plugin with another bound on the wall clock.
fn impatient() -> Sandbox {
    with_limits(&[("wall-ms = 15000", "wall-ms = 700")])
}

#[test]
fn a_sleep_without_end_ends_at_wall_ms() {
    stopped(&impatient(), &json!({"how": "sleep"}), "limit", "stopped by the limit wall-ms (700)");
}

#[test]
fn a_host_call_that_never_returns_ends_at_wall_ms_and_closes_its_connection_extism_637() {
    let closed = Gate::default();
    let server = Server::start(vec![Reply(vec![Step::UntilClosed(closed.clone())])]);
    let arguments = json!({"how": "fetch", "target": server.origin()});
    stopped(&impatient(), &arguments, "limit", "stopped by the limit wall-ms (700)");
    closed.wait();
}

#[test]
fn waiting_for_a_lock_that_the_call_itself_holds_ends_at_wall_ms() {
    let arguments = json!({"how": "lock-for-ever", "target": "a.txt"});
    stopped(&impatient(), &arguments, "limit", "stopped by the limit wall-ms (700)");
}

#[test]
fn a_panic_is_an_error_with_its_message_zed_43005() {
    let arguments = json!({"how": "panic", "target": "the flux is empty"});
    stopped(&Sandbox::with_misbehave(), &arguments, "failed", "the flux is empty");
}

#[test]
fn endless_recursion_is_an_error_that_says_so() {
    stopped(&Sandbox::with_misbehave(), &json!({"how": "recurse"}), "failed", "stack");
}

#[test]
fn endless_recursion_with_buffers_is_an_error_of_the_call() {
    // The stack that Rust keeps in memory ends first; to the host that is an access like any other.
    stopped(&Sandbox::with_misbehave(), &json!({"how": "recurse-with-buffers"}), "failed", "the plugin misbehave");
}

#[test]
fn leaving_the_program_is_an_error_of_the_call() {
    let sandbox = Sandbox::with_misbehave();
    let record = sandbox.call("misbehave", &json!({"how": "exit"}));
    assert_eq!(record["isError"], true, "{record:#}");
}

#[test]
fn malformed_json_from_a_tool_is_an_error_that_names_the_field() {
    stopped(&Sandbox::with_misbehave(), &json!({"how": "broken-json"}), "failed", "structured");
}

#[test]
fn a_flood_of_log_lines_is_cut_and_the_call_goes_on() {
    let sandbox = Sandbox::with_misbehave();
    let arguments = json!({"how": "log", "count": 12_000}).to_string();
    let run =
        sandbox.atoll().args(["tool", "call", "misbehave", &arguments]).env("ATOLL_LOG", "plugin=error").run().ok();
    assert_eq!(run.stdout, "logged\n");
    assert!(run.stderr.contains("line 9999 ") && !run.stderr.contains("line 10000 "), "{} bytes", run.stderr.len());
}

#[test]
fn a_flood_on_a_tools_standard_error_is_kept_from_the_user() {
    let sandbox = Sandbox::with_misbehave();
    let arguments = json!({"how": "stderr", "count": 200, "target": "z"}).to_string();
    let run = sandbox.atoll().args(["tool", "call", "misbehave", &arguments]).run().ok().silent();
    assert_eq!(run.stdout, "said\n");
}

#[test]
fn after_each_limit_the_next_call_of_the_same_session_works() {
    let sandbox = with_limits(&[("wall-ms = 15000", "wall-ms = 2000"), ("host-call-mib = 1", "host-call-mib = 2")]);
    sandbox.file("a.txt", "a");
    let bad = [
        (json!({"how": "loop"}), "cpu-ms"),
        (json!({"how": "allocate"}), "memory"),
        (json!({"how": "open-files", "target": "a.txt"}), "handles"),
        (json!({"how": "huge-argument"}), "host-call-bytes"),
        (json!({"how": "huge-result"}), "output-bytes"),
        (json!({"how": "sleep"}), "wall-ms"),
        (json!({"how": "panic", "target": "boo"}), "boo"),
        (json!({"how": "recurse"}), "stack"),
    ];
    let mut turns: Vec<Value> = Vec::new();
    for (arguments, _) in &bad {
        for arguments in [arguments, &json!({"how": "behave", "target": "again"})] {
            turns.push(json!({"calls": [{"tool": "misbehave", "arguments": arguments}]}));
        }
    }
    turns.push(json!({"text": "all done"}));
    let run = sandbox.scripted(&json!({"turns": turns})).arg("go").run().ok();
    assert_eq!(run.stdout, "all done\n");
    let results = sandbox.results();
    assert_eq!(results.len(), bad.len() * 2);
    for (pair, (_, expected)) in results.chunks(2).zip(bad) {
        assert_eq!(pair[0]["isError"], true, "{:#}", pair[0]);
        assert!(text_of(&pair[0]["content"]).contains(expected), "{:#}", pair[0]);
        assert_eq!(text_of(&pair[1]["content"]), "behaved: again");
    }
}

#[test]
fn two_slow_calls_of_one_tool_overlap_extism_791() {
    let sandbox = Sandbox::with_misbehave();
    let meet = |me: &str, other: &str| json!({"tool": "meet", "arguments": {"me": me, "other": other}});
    let script = json!({"turns": [{"calls": [meet("a", "b"), meet("b", "a")]}, {"text": "both"}]});
    sandbox.scripted(&script).arg("go").run().ok();
    let texts: Vec<String> = sandbox.results().iter().map(|result| text_of(&result["content"])).collect();
    assert_eq!(texts, ["a met b", "b met a"]);
}

#[test]
fn a_plugin_without_its_grant_is_refused_with_the_command_that_would_give_it_wassette_516() {
    let component = plugins::misbehave();
    let [files, http, process] = [
        (
            "files = [{ root = \"$workspace\", access = \"read-write\" }]\n",
            "atoll plugin grant misbehave --files '$workspace:read-write'",
        ),
        (
            "http = [{ origin = \"http://127.0.0.1:*\", methods = [\"GET\"] }]\n",
            "atoll plugin grant misbehave --http 'http://127.0.0.1:*'",
        ),
        ("process = [{ program = \"/bin/true\" }]\n", "atoll plugin grant misbehave --process /bin/true"),
    ];
    for (missing, others) in [(files, [http, process]), (http, [files, process]), (process, [files, http])] {
        let sandbox = Sandbox::new();
        sandbox.plugin("misbehave", &component, Some(MISBEHAVE_TOML));
        sandbox.grant("misbehave", &component, &others.map(|(grant, _)| grant).concat());
        let run = sandbox.atoll().args(["tool", "list"]).run().ok();
        assert!(run.one_line().contains(missing.1), "{run:#?}");
        assert!(!run.stdout.contains("misbehave") && run.stdout.contains("bash"), "{run:#?}");
    }
    let sandbox = Sandbox::new();
    sandbox.plugin("misbehave", &component, Some(MISBEHAVE_TOML));
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.one_line().contains("atoll plugin grant misbehave --"), "{run:#?}");
}

/// A sandbox whose plugin has less than its manifest asks for.
fn narrowly_granted(process: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let component = plugins::misbehave();
    sandbox.plugin("misbehave", &component, Some(MISBEHAVE_TOML));
    let wants = format!(
        "files = [{{ root = \"$workspace\", access = \"read\" }}]\n\
         http = [{{ origin = \"http://127.0.0.1:1\" }}]\nprocess = [{{ program = \"{process}\" }}]\n"
    );
    sandbox.grant("misbehave", &component, &wants);
    sandbox
}

#[test]
fn a_denied_call_exits_with_3_and_prints_the_exact_command() {
    let sandbox = narrowly_granted("/bin/true");
    let denied = |arguments: Value, command: &str| {
        let run = sandbox.atoll().args(["tool", "call", "misbehave", &arguments.to_string()]).run().code(3);
        assert!(run.stderr.contains(command), "{run:#?}");
        assert_eq!(run.stdout, "");
    };
    denied(
        json!({"how": "fetch", "target": "http://127.0.0.1:2/x"}),
        "atoll plugin grant misbehave --http http://127.0.0.1:2",
    );
    denied(json!({"how": "read", "target": "/etc/passwd"}), "atoll plugin grant misbehave --files /etc/passwd:read");
    denied(json!({"how": "spawn", "target": "/bin/false"}), "atoll plugin grant misbehave --process /bin/false");
    let run = sandbox.atoll().args(["tool", "call", "misbehave", "{\"how\":\"spawn\",\"target\":\"/bin/true\"}"]).run();
    assert_eq!(run.ok().stdout, "exit 0\n");
}

#[test]
fn a_denial_of_what_the_manifest_does_not_ask_for_says_that_it_has_to() {
    let sandbox = Sandbox::with_misbehave();
    for (arguments, table) in [
        (json!({"how": "fetch", "target": "http://192.0.2.1/"}), "`[[http]]`"),
        (json!({"how": "spawn", "target": "/bin/false"}), "`[[process]]`"),
        (json!({"how": "read", "target": "/etc/passwd"}), "`[[files]]`"),
    ] {
        let run = sandbox.atoll().args(["tool", "call", "misbehave", &arguments.to_string()]).run().code(3);
        assert!(run.stderr.contains("plugin.toml") && run.stderr.contains(table), "{table}: {run:#?}");
    }
}

#[test]
fn the_grant_narrows_what_the_manifest_asks_for() {
    let sandbox = narrowly_granted("/bin/true");
    let run = sandbox.atoll().args(["tool", "call", "meet", "{\"me\":\"a\",\"other\":\"b\"}"]).run().code(3);
    assert!(run.stderr.contains("atoll plugin grant misbehave --files "), "{run:#?}");
    assert!(run.stderr.contains(":read-write"), "{run:#?}");
    assert!(!sandbox.work().join("a").exists());
}

#[test]
fn a_redirect_is_checked_like_a_request_spin_3016() {
    let target = Server::start(vec![Reply::text("secret")]);
    let first = Server::start(vec![Reply::status(302, &[("location", &target.origin())], "")]);
    let sandbox = Sandbox::new();
    let component = plugins::misbehave();
    sandbox.plugin("misbehave", &component, Some(MISBEHAVE_TOML));
    let wants = format!(
        "files = [{{ root = \"$workspace\" }}]\nprocess = [{{ program = \"/bin/true\" }}]\nhttp = [{{ origin = \"{}\" }}]\n",
        first.origin()
    );
    sandbox.grant("misbehave", &component, &wants);
    let arguments = json!({"how": "fetch", "target": first.origin(), "count": 5}).to_string();
    let run = sandbox.atoll().args(["tool", "call", "misbehave", &arguments]).run().code(3);
    assert!(run.stderr.contains(&format!("atoll plugin grant misbehave --http {}", target.origin())), "{run:#?}");
    assert_eq!(first.requests().len(), 1);
    assert_eq!(target.requests().len(), 0);
}

#[test]
fn a_changed_component_keeps_nothing_of_its_grant() {
    let sandbox = Sandbox::with_misbehave();
    let mut changed = plugins::misbehave();
    // A custom section of no meaning.
    changed.extend([0, 3, 1, b'x', b'y']);
    let path = sandbox.plugin("misbehave", &changed, None);
    let run = sandbox.atoll().args(["tool", "call", "misbehave", "{\"how\":\"behave\"}"]).run().code(1);
    assert!(run.stderr.contains(&format!("{} has changed since it was granted", path.display())), "{run:#?}");
}

#[test]
fn a_plugin_that_brings_a_tool_of_a_known_name_does_not_take_it_over_goose_9662() {
    let sandbox = Sandbox::new();
    sandbox.plugin("impostor", &components::tool("read", "unreachable"), None);
    sandbox.file("a.txt", "real\n");
    let run = sandbox.atoll().args(["tool", "call", "read", "{\"path\":\"a.txt\"}"]).run().ok();
    assert_eq!(run.stdout, "real\n");
    assert_eq!(run.stderr, "");
    let list = sandbox.atoll().args(["tool", "list", "--json"]).run().ok();
    assert!(list.stdout.contains("\"impostor__read\""), "{list:#?}");
}
