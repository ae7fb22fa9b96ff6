//! Every limit has a name, a default, a key in the manifest and one in the user's settings; whoever reaches it is told
//! its name, and everybody else is unharmed.

use std::fs;

use serde_json::{Value, json};

use crate::common::{
    Command, Sandbox, components,
    plugins::{self, MISBEHAVE_TOML, test_plugin},
    text_of,
};

const NEST_TOML: &str = include_str!("plugins/nest/plugin.toml");

/// A plugin that only ever asks for more table elements.
fn grower() -> Vec<u8> {
    let grow = "(loop $more (drop (table.grow $table (ref.null func) (i32.const 1000))) (br $more)) unreachable";
    components::tool("grower", grow)
}

/// A sandbox with plugins that reach all limits, under the user's own limits.
fn with_limits(limits: &Value) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.settings(&json!({"limits": limits}));
    sandbox.plugin("grower", &grower(), None);
    let (misbehave, nest) = (plugins::misbehave(), test_plugin("nest"));
    sandbox.plugin("misbehave", &misbehave, Some(MISBEHAVE_TOML));
    sandbox.plugin("nest", &nest, Some(NEST_TOML));
    let grant = |name: &str, component: &[u8]| {
        format!("[plugin.{name}]\nsha256 = \"{}\"\nall = true\n", plugins::digest(component))
    };
    sandbox.home_file("grants.toml", format!("{}{}", grant("misbehave", &misbehave), grant("nest", &nest)));
    sandbox.file("a.txt", "alpha\n");
    sandbox.file("big.txt", vec![b'x'; (2 << 20) + 1]);
    sandbox
}

/// Nested calls, one more than `depth` of them.
fn nested(depth: usize) -> Value {
    (0..depth).fold(
        json!({"tool": "read", "arguments": {"path": "a.txt"}}),
        |inner, _| json!({"tool": "nest", "arguments": inner}),
    )
}

/// For each limit: what the user sets it to, a call that reaches exactly it, and what is said then.
fn each_limit() -> Vec<(&'static str, u64, Value, &'static str)> {
    let misbehave = |arguments: Value| json!({"tool": "misbehave", "arguments": arguments});
    let print = "yes | head -c 3000000";
    vec![
        ("memory-mib", 8, misbehave(json!({"how": "allocate"})), "memory (8388608)"),
        ("table-elements", 5_000, json!({"tool": "grower", "arguments": {}}), "table-elements (5000)"),
        ("cpu-ms", 900, misbehave(json!({"how": "loop"})), "cpu-ms (900)"),
        ("wall-ms", 9_000, misbehave(json!({"how": "sleep"})), "wall-ms (9000)"),
        ("host-call-mib", 2, misbehave(json!({"how": "read", "target": "big.txt"})), "host-call-bytes (2097152)"),
        ("handles", 7, misbehave(json!({"how": "open-files", "target": "a.txt"})), "handles (7)"),
        ("output-mib", 2, misbehave(json!({"how": "result", "count": 5 << 20})), "output-bytes (2097152)"),
        ("nesting", 3, json!({"tool": "nest", "arguments": nested(3)}), "nesting"),
        (
            "command-output-mib",
            1,
            json!({"tool": "bash", "arguments": {"command": print}}),
            "command-output-bytes (1048576)",
        ),
    ]
}

#[test]
fn each_limit_can_be_set_by_the_user_and_is_named_by_whoever_reaches_it() {
    for (key, number, call, says) in each_limit() {
        let sandbox = with_limits(&json!({call["tool"].as_str().unwrap(): {key: number}}));
        let behave = json!({"tool": "misbehave", "arguments": {"how": "behave", "target": "after"}});
        let script = json!({"turns": [{"calls": [call]}, {"calls": [behave]}, {"text": "done"}]});
        sandbox.scripted(&script).arg("go").run().ok();
        let results = sandbox.results();
        let text = text_of(&results[0]["content"]);
        assert!(text.contains(says), "{key}: {text:.400}");
        assert_eq!(text_of(&results[1]["content"]), "behaved: after", "{key}");
    }
}

#[test]
fn the_user_can_also_give_a_plugin_more_than_its_manifest_does() {
    let sandbox = with_limits(&json!({"misbehave": {"output-mib": 6, "cpu-ms": 60_000}, "*": {"output-mib": 1}}));
    assert_eq!(sandbox.good_call("misbehave", &json!({"how": "result", "count": 5 << 20})).len(), 5 << 20);
}

#[test]
fn a_plugin_with_more_tools_than_it_may_have_is_left_out_with_the_name_of_the_limit() {
    // By the user's word, and by the manifest's.
    let sandbox = with_limits(&json!({"misbehave": {"tools": 1}}));
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.one_line().contains("the plugin misbehave is left out: stopped by the limit tools (1)"), "{run:#?}");
    assert!(!run.stdout.contains("misbehave") && run.stdout.contains("grower"), "{run:#?}");
    let component = plugins::misbehave();
    let sandbox = Sandbox::new();
    sandbox.plugin("misbehave", &component, Some(&MISBEHAVE_TOML.replace("[limits]", "[limits]\ntools = 1")));
    sandbox.grant("misbehave", &component, "all = true");
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.one_line().contains("stopped by the limit tools (1)"), "{run:#?}");
}

#[test]
fn the_limits_of_nesting_and_of_a_commands_output_can_be_set_by_the_manifest() {
    let sandbox = Sandbox::new();
    let component = plugins::misbehave();
    let manifest = MISBEHAVE_TOML
        .replace("program = \"/bin/true\"", "program = \"/bin/yes\"")
        .replace("[limits]", "[limits]\ncommand-output-mib = 2");
    sandbox.plugin("misbehave", &component, Some(&manifest));
    sandbox.grant("misbehave", &component, "all = true");
    let program = ["/bin/yes", "/usr/bin/yes"].into_iter().find(|path| fs::exists(path).unwrap()).unwrap();
    assert_eq!(program, "/bin/yes");
    let text = sandbox.bad_call("misbehave", &json!({"how": "spawn-loud", "target": program}));
    assert!(text.contains("stopped by the limit command-output-bytes (2097152)"), "{text}");
    // That of nesting is tried in `nested_calls`.
}

#[test]
fn table_elements_can_be_given_as_many_as_the_pool_has_room_for() {
    let grow = "(if (i32.eq (table.grow $table (ref.null func) (i32.const 999999)) (i32.const -1)) (then unreachable))
        (i32.const 64)";
    let sandbox = Sandbox::new();
    sandbox.plugin("large", &components::tool("large", grow), None);
    assert!(sandbox.bad_call("large", &json!({})).contains("table-elements (100000)"));
    sandbox.settings(&json!({"limits": {"large": {"table-elements": 1_000_000}}}));
    sandbox.good_call("large", &json!({}));
    sandbox.settings(&json!({"limits": {"large": {"table-elements": 1_000_001}}}));
    let run = sandbox.atoll().args(["tool", "list"]).run().code(1);
    assert!(run.one_line().contains("`table-elements` has to be a whole number from 1 to 1000000"), "{run:#?}");
}

#[test]
fn a_path_or_a_url_that_is_too_long_is_refused() {
    let sandbox = Sandbox::with_misbehave();
    let long = "x/".repeat(33_000);
    for (how, target) in
        [("read", long.clone()), ("walk", long.clone()), ("fetch", format!("http://127.0.0.1:1/{long}"))]
    {
        let text = sandbox.bad_call("misbehave", &json!({"how": how, "target": target}));
        assert!(text.contains("a path or a URL may have 65536") && text.len() < 300, "{how}: {text}");
    }
}

#[test]
fn one_call_reads_only_so_many_files() {
    let sandbox = Sandbox::with_misbehave();
    sandbox.file("a.txt", "alpha\n");
    let many = |count: u32| {
        let answer = sandbox.good_call("misbehave", &json!({"how": "read-so-many", "target": "a.txt", "count": count}));
        serde_json::from_str::<Value>(&answer).unwrap()
    };
    assert_eq!(many(4_096), json!({"answers": 4_096, "first": "6"}));
    let refused = many(4_097);
    assert!(refused["answers"] == 1 && refused["first"].as_str().unwrap().contains("at most 4096"), "{refused}");
}

/// Makes calls at once where few files may be open: the first two get no more than their plugin may have, and all others
/// what they need.
fn two_are_held_up_and_no_other(sandbox: &Sandbox, calls: &Value) {
    let script = json!({"turns": [{"calls": calls}, {"text": "done"}]});
    let run = Command::after(&["sh", "-c", "ulimit -n 256 && exec \"$0\" \"$@\""]);
    let path = sandbox.root().join("script.json");
    fs::write(&path, script.to_string()).unwrap();
    let run = sandbox.equipped(run).env("ATOLL_SCRIPT", path).args(["--model", "scripted/default", "-p", "go"]).run();
    run.ok();
    let results = sandbox.results();
    for held in &results[..2] {
        assert!(text_of(&held["content"]).contains("handles (64)"), "{held:#}");
    }
    for other in &results[2..] {
        assert_eq!(other["isError"], false, "{other:#}");
    }
}

#[test]
fn a_plugin_that_holds_walks_leaves_the_others_their_files_and_threads() {
    let sandbox = Sandbox::new();
    sandbox.settings(&json!({
        "limits": {"misbehave": {"handles": 1_000_000, "wall-ms": 60_000}}, "defaultTools": ["+find"]}));
    let component = plugins::misbehave();
    sandbox.plugin("misbehave", &component, Some(MISBEHAVE_TOML));
    sandbox.grant("misbehave", &component, "all = true");
    // More than waits to be taken, so that no walk ends by itself.
    for number in 0..6_000 {
        sandbox.file(&format!("many/{number}"), "");
    }
    sandbox.file("few/a.txt", "alpha\n");
    let greedy = json!({"tool": "misbehave", "arguments": {"how": "hold-walks", "target": "many", "count": 100_000}});
    let calls = json!([
        greedy,
        greedy,
        {"tool": "read", "arguments": {"path": "few/a.txt"}},
        {"tool": "bash", "arguments": {"command": "cat few/a.txt"}},
        {"tool": "find", "arguments": {"pattern": "*.txt", "path": "few"}},
    ]);
    two_are_held_up_and_no_other(&sandbox, &calls);
}

#[test]
fn a_result_beyond_every_bound_is_a_result_that_is_too_large() {
    let sandbox = Sandbox::with_misbehave();
    for count in [(1 << 20) + 1, 3 << 20, 9 << 20] {
        let text = sandbox.bad_call("misbehave", &json!({"how": "result", "count": count}));
        assert!(text.contains("stopped by the limit output-bytes (1048576)"), "{count}: {text}");
    }
}

#[test]
fn a_limit_of_the_users_that_can_not_be_is_one_line_with_its_name() {
    for (limits, says) in [
        (json!({"*": {"memory": 5}}), "`memory` is no limit; the limits are memory-mib, "),
        (json!({"misbehave": {"nesting": 100}}), "`nesting` has to be a whole number from 1 to 64"),
        (json!({"misbehave": {"cpu-ms": "5"}}), "settings.json"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.settings(&json!({"limits": limits}));
        let run = sandbox.atoll().args(["tool", "list"]).run().code(1);
        assert!(run.one_line().contains(says), "{run:#?}");
    }
}

#[test]
fn all_limits_reached_at_once_harm_nobody_else() {
    let mut limits = json!({});
    for (key, number, call, _) in each_limit() {
        limits[call["tool"].as_str().unwrap()][key] = json!(number);
    }
    // With so much else to do, what behaves may not be made to look as if it did not.
    limits["misbehave"]["cpu-ms"] = json!(2_500);
    limits["misbehave"]["wall-ms"] = json!(20_000);
    let sandbox = with_limits(&limits);
    let (mut calls, mut says) = (Vec::new(), Vec::new());
    for round in 0..4 {
        for (key, _, call, expected) in each_limit() {
            let expected = match key {
                "cpu-ms" => "cpu-ms (2500)",
                "wall-ms" => "wall-ms (20000)",
                _ => expected,
            };
            calls.push(call);
            says.push(expected.to_owned());
            // Between any two of them one that behaves.
            let name = format!("{key}-{round}");
            calls.push(json!({"tool": "misbehave", "arguments": {"how": "behave", "target": name}}));
            says.push(format!("behaved: {name}"));
        }
    }
    calls.push(json!({"tool": "read", "arguments": {"path": "a.txt"}}));
    says.push("alpha\n".to_owned());
    let after = json!([{"tool": "read", "arguments": {"path": "a.txt"}}, {"tool": "bash", "arguments": {"command": "echo fine"}}]);
    let script = json!({"turns": [{"calls": calls}, {"calls": after}, {"text": "all done"}]});
    let run = sandbox.scripted(&script).arg("go").run().ok();
    assert_eq!(run.stdout, "all done\n");
    let results = sandbox.results();
    says.extend(["alpha\n".to_owned(), "fine\n".to_owned()]);
    assert_eq!(results.len(), says.len());
    for (result, expected) in results.iter().zip(&says) {
        let text = text_of(&result["content"]);
        assert!(text.contains(expected), "{expected:?} is missing: {text:.300}");
        if expected.starts_with("behaved") || expected == "alpha\n" || expected == "fine\n" {
            assert_eq!((result["isError"].as_bool(), &text), (Some(false), expected));
        }
    }
}

#[test]
fn instances_that_take_much_of_the_pool_wait_for_room_instead_of_failing() {
    let sandbox = Sandbox::new();
    // As many memories as an instance may have. It computes so long that all calls are under way together.
    let memories = "(memory 1)".repeat(7);
    let work = "(local $n i32) (local.set $n (i32.const 60000000))
        (loop $more (local.set $n (i32.sub (local.get $n) (i32.const 1))) (br_if $more (local.get $n)))
        (i32.const 64)";
    sandbox.plugin("wide", &components::tool_with("wide", work, &memories, "(i32.const 16)"), None);
    sandbox.file("a.txt", "alpha\n");
    let mut calls = vec![json!({"tool": "wide", "arguments": {}}); 260];
    calls.push(json!({"tool": "read", "arguments": {"path": "a.txt"}}));
    let script = json!({"turns": [{"calls": calls}, {"text": "done"}]});
    sandbox.scripted(&script).arg("go").run().ok();
    let results = sandbox.results();
    assert_eq!(results.len(), 261);
    for result in &results {
        assert_eq!(result["isError"], false, "{result:#}");
    }
}

#[test]
fn a_component_with_more_parts_than_an_instance_may_have_is_refused_when_it_is_loaded() {
    let sandbox = Sandbox::new();
    for (fields, says) in [("(memory 1)".repeat(8), "memor"), ("(table 1 funcref)".repeat(8), "table")] {
        let component = components::tool_with("wide", "(i32.const 64)", &fields, "(i32.const 16)");
        sandbox.plugin("wide", &component, None);
        let run = sandbox.atoll().args(["tool", "list"]).run().ok();
        assert!(run.one_line().contains("wide is left out") && run.stderr.contains(says), "{run:#?}");
    }
}

#[test]
fn a_plugin_that_opens_a_hundred_thousand_files_leaves_the_others_theirs() {
    let sandbox = Sandbox::new();
    sandbox.settings(&json!({"limits": {"misbehave": {
        "handles": 1_000_000, "memory-mib": 512, "cpu-ms": 60_000, "wall-ms": 60_000}}}));
    let component = plugins::misbehave();
    sandbox.plugin("misbehave", &component, Some(MISBEHAVE_TOML));
    sandbox.grant("misbehave", &component, "all = true");
    sandbox.file("a.txt", "alpha\n");
    let greedy = json!({"tool": "misbehave", "arguments": {"how": "hold-files", "target": "a.txt", "count": 100_000}});
    let others = [
        json!({"tool": "read", "arguments": {"path": "a.txt"}}),
        json!({"tool": "bash", "arguments": {"command": "cat a.txt"}}),
        json!({"tool": "edit", "arguments": {"path": "b.txt", "edits": [{"oldText": "old", "newText": "new"}]}}),
    ];
    sandbox.file("b.txt", "old\n");
    // All of them at once, while the greedy one still holds what it has.
    let mut calls = vec![greedy.clone(), greedy];
    calls.extend(others);
    two_are_held_up_and_no_other(&sandbox, &json!(calls));
    assert_eq!(sandbox.read("b.txt"), "new\n");
}
