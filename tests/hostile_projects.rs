//! Projects made to harm whoever works in them: files that never end, pipes and devices where files should be, trees
//! without a bottom, expressions and documents that explode. Each costs a call at most, in bounded memory, and the
//! next call works.

use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::{Value, json};

use crate::common::{
    Command, Sandbox,
    probes::{call, every_way, raw},
    server::{Reply, Server},
    skipped, until,
};

/// The program with a bound on the memory it may write to, in KiB. What wasm reserves and never touches is not counted.
fn bounded(sandbox: &Sandbox, kib: u64) -> Command {
    let script = format!("ulimit -d {kib} && exec \"$0\" \"$@\"");
    sandbox.equipped(Command::after(&["sh", "-c", &script]))
}

const GIB: u64 = 1 << 20;

/// One call in bounded memory; its text and whether it failed.
#[track_caller]
fn bounded_call(sandbox: &Sandbox, tool: &str, arguments: &Value) -> (bool, String) {
    let run = bounded(sandbox, GIB).args(["tool", "call", tool, &arguments.to_string(), "--json"]).run();
    assert!(matches!(run.status.code(), Some(0 | 1 | 3)), "{run:#?}");
    let record = run.json();
    (record["isError"] == true, crate::common::text_of(&record["content"]))
}

fn sparse(path: &Path, bytes: u64) {
    fs::File::create(path).unwrap().set_len(bytes).unwrap();
}

fn fifo(path: &Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
}

/// Searches a tree; everything in it has to be found.
#[track_caller]
fn searches_work(sandbox: &Sandbox) {
    let (failed, text) = bounded_call(sandbox, "grep", &json!({"pattern": "needle"}));
    assert!(!failed && text.contains("src/a.txt"), "{text}");
    let (failed, text) = bounded_call(sandbox, "find", &json!({"pattern": "*.txt"}));
    assert!(!failed && text.contains("src/a.txt"), "{text}");
}

#[test]
fn rules_that_are_a_device_a_pipe_or_endless_do_not_count_and_hold_nothing_up() {
    type Make = fn(&Path);
    let makes: [(&str, Make); 5] = [
        ("endless device", |path| symlink("/dev/zero", path).unwrap()),
        ("pipe", fifo),
        ("a gibibyte", |path| sparse(path, 1 << 30)),
        ("directory", |path| fs::create_dir(path).unwrap()),
        ("link in a circle", |path| symlink(path.file_name().unwrap(), path).unwrap()),
    ];
    for (what, make) in makes {
        for place in [".gitignore", "src/.gitignore", "src/.ignore", ".git/info/exclude"] {
            let sandbox = Sandbox::new();
            sandbox.file("src/a.txt", "needle\n");
            fs::create_dir_all(sandbox.work().join(".git/info")).unwrap();
            make(&sandbox.work().join(place));
            eprintln!("{what} as {place}");
            searches_work(&sandbox);
        }
    }
}

#[test]
fn rules_are_not_read_through_a_link() {
    let sandbox = Sandbox::new();
    sandbox.file("src/a.txt", "needle\n");
    fs::write(sandbox.root().join("outside.txt"), "*.txt\n").unwrap();
    symlink(sandbox.root().join("outside.txt"), sandbox.work().join(".gitignore")).unwrap();
    searches_work(&sandbox);
}

#[test]
fn tens_of_thousands_of_rules_are_cut_and_do_not_fill_the_memory() {
    let sandbox = Sandbox::new();
    sandbox.file("src/a.txt", "needle\n");
    let rule = |n: usize| format!("x{n}[a-z]*/**/?[!b-d]{{p,q}}\n");
    let rules: String = (0..)
        .map(rule)
        .scan(0, |length, rule| {
            *length += rule.len();
            (*length < 250 << 10).then_some(rule)
        })
        .collect();
    sandbox.file(".gitignore", rules);
    searches_work(&sandbox);
    sandbox.file("src/.gitignore", format!("{}\n", "{a,b}".repeat(20_000)));
    searches_work(&sandbox);
}

#[test]
fn a_pipe_in_the_project_is_not_opened_so_nobody_at_its_other_side_notices() {
    let sandbox = Sandbox::with_probes();
    let work = sandbox.work();
    fifo(&work.join("pipe"));
    // Whoever writes to it waits until somebody opens it.
    let script = "echo started > started; echo x > pipe; echo woken > woken";
    let mut writer = std::process::Command::new("sh").args(["-c", script]).current_dir(&work).spawn().unwrap();
    until("the writer", || work.join("started").exists().then_some(()));
    let calls: Vec<Value> = every_way("pipe")
        .into_iter()
        .chain([raw("walk-read", "."), call("grep", json!({"pattern": "x"}))])
        .filter(|call| call["arguments"]["how"] != "remove")
        .collect();
    for (call, (failed, text)) in calls.iter().zip(sandbox.probe(&work, &calls)) {
        let looked = ["stat", "lock"].contains(&call["arguments"]["how"].as_str().unwrap_or_default());
        let refused = failed || text.contains("{\"error\":\"") || text.starts_with("No ");
        assert!(
            refused || looked || call["arguments"]["path"] != "pipe" && call["arguments"]["target"] != "pipe",
            "{call} worked: {text}"
        );
    }
    assert!(!work.join("woken").exists());
    writer.kill().unwrap();
    writer.wait().unwrap();
}

#[test]
fn devices_in_the_project_are_refused_by_everything() {
    let sandbox = Sandbox::with_probes();
    let work = sandbox.work();
    let device = |name: &str, kind, major, minor| {
        rustix::fs::mknodat(rustix::fs::CWD, work.join(name), kind, 0o666.into(), rustix::fs::makedev(major, minor))
    };
    use rustix::fs::FileType::{BlockDevice, CharacterDevice};
    if device("zero", CharacterDevice, 1, 5).is_err() || device("disk", BlockDevice, 7, 200).is_err() {
        return skipped("this user can not make devices");
    }
    let _ = device("terminal", CharacterDevice, 5, 0);
    symlink("/dev/zero", work.join("linked")).unwrap();
    for path in ["zero", "disk", "terminal", "linked"] {
        let calls: Vec<Value> = every_way(path)
            .into_iter()
            .filter(|call| !["remove", "stat", "lock"].contains(&call["arguments"]["how"].as_str().unwrap_or_default()))
            .collect();
        for (call, (failed, text)) in calls.iter().zip(sandbox.probe(&work, &calls)) {
            let refused = failed || text.contains("{\"error\":\"") || text.starts_with("No ");
            assert!(refused, "{call} worked: {text}");
        }
    }
    let looks = [raw("walk-read", "."), call("grep", json!({"pattern": "x"})), call("ls", json!({}))];
    assert!(sandbox.probe(&work, &looks).iter().all(|(failed, _)| !failed));
}

#[test]
fn a_gibibyte_of_nothing_is_read_searched_and_refused_for_edits_in_bounded_memory() {
    let sandbox = Sandbox::new();
    sandbox.file("src/a.txt", "needle\n");
    sparse(&sandbox.work().join("huge.txt"), 1 << 30);
    let (_, text) = bounded_call(&sandbox, "read", &json!({"path": "huge.txt"}));
    assert!(text.len() < 200_000, "{} bytes", text.len());
    let edit = json!({"path": "huge.txt", "edits": [{"oldText": "a", "newText": "b"}]});
    let (failed, text) = bounded_call(&sandbox, "edit", &edit);
    assert!(failed && text.contains("more than the 16.0MB"), "{text}");
    let (failed, text) = bounded_call(&sandbox, "grep", &json!({"pattern": "needle", "path": "huge.txt"}));
    assert!(!failed || text.contains("limit"), "{text}");
    searches_work(&sandbox);
}

#[test]
fn a_tree_of_thousands_of_levels_and_one_of_thousands_of_names_are_walked() {
    let sandbox = Sandbox::with_probes();
    sandbox.file("src/a.txt", "needle\n");
    // Deeper than a path may be long.
    let mut path = sandbox.work();
    let start = std::env::current_dir().unwrap();
    path.push("deep");
    fs::create_dir(&path).unwrap();
    let mut dir = fs::File::open(&path).unwrap();
    for _ in 0..3_000 {
        rustix::fs::mkdirat(&dir, "d", 0o755.into()).unwrap();
        let next = rustix::fs::openat(&dir, "d", rustix::fs::OFlags::DIRECTORY, 0o000.into()).unwrap();
        dir = next.into();
    }
    assert_eq!(std::env::current_dir().unwrap(), start);
    for n in 0..5_000 {
        fs::write(sandbox.work().join(format!("many-{n}")), "").unwrap();
    }
    searches_work(&sandbox);
    for how in ["walk", "walk-links", "walk-read"] {
        let (failed, text) = bounded_call(&sandbox, "misbehave", &json!({"how": how, "target": "."}));
        assert!(!failed && text.contains("src/a.txt"), "{how}: {text:.300}");
    }
    // The sandbox's own clean-up goes by paths and would not get to the bottom.
    std::process::Command::new("rm").arg("-rf").arg(sandbox.work().join("deep")).status().unwrap();
}

#[test]
fn expressions_that_explode_elsewhere_take_time_in_proportion_or_name_their_limit() {
    let sandbox = Sandbox::new();
    sandbox.file("src/a.txt", format!("{}b needle\n", "a".repeat(50_000)));
    for pattern in ["(a*)*c", "(a+)+$", "(a|a)*c", "(.*)(.*)(.*)(.*)(.*)(.*)c$", "([a-z]+)*[0-9]"] {
        let (failed, text) = bounded_call(&sandbox, "grep", &json!({"pattern": pattern}));
        assert!(!failed, "{pattern}: {text}");
    }
    let nested = format!("{}a{}", "(".repeat(5_000), ")".repeat(5_000));
    for (pattern, says) in [
        ("((a{100}){100}){1000}", "size"),
        ("\\w{10000}", "size"),
        ("a{99999999999}", "decimal"),
        (nested.as_str(), "nest"),
        ("(a", "unclosed"),
    ] {
        let (failed, text) = bounded_call(&sandbox, "grep", &json!({"pattern": pattern}));
        assert!(failed && text.to_lowercase().contains(says), "{pattern:.40}: {text:.400}");
    }
    let (failed, text) = bounded_call(&sandbox, "find", &json!({"pattern": "{a,b}".repeat(3_000)}));
    assert!(failed || text.starts_with("No "), "{text:.300}");
}

/// An array in an array in an array …
fn deep(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

#[test]
fn documents_nested_a_hundred_thousand_deep_are_errors_wherever_they_come_from() {
    let sandbox = Sandbox::with_probes();
    // Arguments on the command line.
    let run = sandbox.atoll().args(["tool", "call", "read", &deep(100_000 / 2)]).run().code(1);
    assert!(run.one_line().contains("recursion limit"), "{:.300}", run.stderr);
    let arguments = format!("{{\"path\": {}}}", deep(100_000 / 2));
    sandbox.atoll().args(["tool", "call", "read", &arguments]).run().code(1);
    // What a plugin gives back.
    for place in ["structured", "details"] {
        let text = sandbox.bad_call("misbehave", &json!({"how": "deep-json", "target": place, "count": 100_000}));
        assert!(text.contains("malformed JSON") && text.contains(place), "{text:.300}");
    }
    let progress = json!({"how": "deep-json", "target": "progress", "count": 100_000});
    assert_eq!(sandbox.good_call("misbehave", &progress), "deep-json was let through");
    // Settings and models.
    sandbox.settings(&json!({}));
    for file in ["settings.json", "models.json"] {
        sandbox.home_file(file, deep(100_000));
        let run = sandbox.atoll().args(["--model", "x/y", "-p", "go"]).run().code(1);
        assert!(run.stderr.contains(file), "{:.300}", run.stderr);
        fs::remove_file(sandbox.atoll_home().join(file)).unwrap();
    }
}

#[test]
fn a_manifest_or_grants_nested_a_hundred_thousand_deep_are_one_line() {
    let sandbox = Sandbox::new();
    let head = "name = \"x\"\nversion = \"1\"\ncontract = \"0.1\"\n";
    let tables: String = (0..100_000).map(|n| if n == 0 { "a".to_owned() } else { ".a".to_owned() }).collect();
    for text in [
        format!("{head}x = {}\n", deep(100_000)),
        format!("{head}x = {}\n", "{a=".repeat(100_000)),
        format!("{head}[{tables}]\n"),
        format!("{head}{tables} = 1\n"),
    ] {
        sandbox.plugin("x", &crate::common::components::tool("x", "(i32.const 64)"), Some(&text));
        sandbox.home_file("grants.toml", &text);
        let run = sandbox.atoll().args(["tool", "list"]).run().ok();
        assert!(run.stderr.contains("plugin.toml") && run.stderr.contains("grants.toml"), "{:.600}", run.stderr);
        assert!(run.stdout.contains("bash"));
    }
}

#[test]
fn a_model_that_sends_arguments_nested_a_hundred_thousand_deep_gets_an_error_and_goes_on() {
    let arguments = format!("{{\"path\": {}", "[".repeat(100_000));
    let server = Server::start(vec![Reply::calls(&[("read", &arguments)]), Reply::text("gone on")]);
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    let run = sandbox.atoll().args(["-p", "go"]).run().ok();
    assert_eq!(run.stdout, "gone on\n");
    let results = sandbox.results();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["isError"], true, "{:#}", results[0]);
    // A whole stream of such a kind is an error too.
    let server = Server::start(vec![Reply::stream().send(format!("data: {}\n\n", deep(100_000)))]);
    sandbox.model_behind(&server);
    let run = sandbox.atoll().args(["-p", "go"]).run().code(1);
    assert!(!run.stderr.contains("panicked"), "{:.300}", run.stderr);
}

#[test]
fn a_schema_that_refers_to_itself_to_files_or_to_servers_is_checked_without_any_of_it() {
    let server = Server::start(vec![Reply::text("{}")]);
    let sandbox = Sandbox::new();
    for (name, schema) in [
        ("loop", json!({"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}})),
        ("root", json!({"$ref": "#", "type": "object"})),
        ("file", json!({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}})),
        ("server", json!({"type": "object", "properties": {"a": {"$ref": server.origin()}}})),
        ("backtrack", json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a*)*(a*)*$"}}})),
    ] {
        let component = crate::common::components::tool_described(name, "(i32.const 64)", &schema.to_string());
        sandbox.plugin(name, &component, None);
        let arguments = json!({"a": format!("{}!", "a".repeat(20_000))}).to_string();
        let run = sandbox.atoll().args(["tool", "call", name, &arguments]).run();
        assert!(matches!(run.status.code(), Some(0 | 1)), "{name}: {run:#?}");
        assert!(!run.stderr.contains("panicked"), "{name}: {run:#?}");
    }
    assert_eq!(server.requests().len(), 0);
}
