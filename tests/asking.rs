//! A denial can be answered by the person at the terminal: once, for the session, always, or not at all.

use std::fs;

use serde_json::{Value, json};

use crate::common::{
    Sandbox, json_lines,
    plugins::{self, MISBEHAVE_TOML},
    server::{Reply, Server},
    terminal::AtTerminal,
    text_of,
};

const QUESTION: &str = "[N]o: ";

/// A sandbox with a file outside of the workspace.
fn with_outside() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    let outside = sandbox.root().join("outside/secret.txt");
    fs::create_dir_all(outside.parent().unwrap()).unwrap();
    fs::write(&outside, "from outside\n").unwrap();
    let path = outside.to_str().unwrap().to_owned();
    (sandbox, path)
}

fn read_at_terminal(sandbox: &Sandbox, path: &str) -> AtTerminal {
    AtTerminal::start(sandbox.atoll().args(["tool", "call", "read", &json!({"path": path}).to_string()]))
}

fn answers(sandbox: &Sandbox) -> Vec<(bool, String)> {
    let text = fs::read_to_string(sandbox.atoll_home().join("audit.log")).unwrap();
    json_lines(&text)
        .into_iter()
        .filter_map(|entry| Some((entry["allowed"].as_bool()?, entry["answer"].as_str()?.to_owned())))
        .collect()
}

#[test]
fn once_allows_it_for_this_call_and_leaves_nothing_behind() {
    let (sandbox, path) = with_outside();
    let mut run = read_at_terminal(&sandbox, &path);
    let shown = run.wait_for(QUESTION);
    assert!(shown.contains(&format!("the built-in plugin read asks for files: open {path}")), "{shown}");
    assert!(shown.contains(&format!("this would be allowed: files: {path} (read)")), "{shown}");
    run.press("o\n");
    assert_eq!(run.wait().ok().stdout, "from outside\n");
    assert!(!sandbox.atoll_home().join("grants.toml").exists());
    assert_eq!(answers(&sandbox), [(true, "once".to_owned())]);
    read_at_terminal(&sandbox, &path).wait_for(QUESTION);
}

#[test]
fn no_denies_it_and_so_does_any_other_way_of_not_saying_yes() {
    for keys in ["n\n", "\n", "maybe\nno\n", "\u{4}", "\u{3}"] {
        let (sandbox, path) = with_outside();
        let mut run = read_at_terminal(&sandbox, &path);
        run.wait_for(QUESTION);
        run.press(keys);
        let run = run.wait().code(3);
        assert_eq!(run.stdout, "", "{keys:?}");
        assert!(run.stderr.contains(&format!("atoll plugin grant read --files {path}:read")), "{run:#?}");
        // Asked once; what the tool tries on it after that is refused without a question.
        assert_eq!(run.stderr.matches("asks for").count(), 1, "{run:#?}");
        let answers = answers(&sandbox);
        assert!(!answers.is_empty() && answers.iter().all(|one| *one == (false, "no".to_owned())), "{answers:?}");
    }
}

#[test]
fn always_is_written_down_and_holds_for_later_runs() {
    let (sandbox, path) = with_outside();
    let mut run = read_at_terminal(&sandbox, &path);
    run.wait_for(QUESTION);
    run.press("a\n");
    run.wait().ok();
    let grants = fs::read_to_string(sandbox.atoll_home().join("grants.toml")).unwrap();
    assert!(grants.contains("builtin.read") && grants.contains(&path), "{grants}");
    assert_eq!(sandbox.good_call("read", &json!({"path": path})), "from outside\n");
    // For that plugin and that file only.
    sandbox.bad_call("ls", &json!({"path": sandbox.root().join("outside")}));
    sandbox.bad_call("edit", &json!({"path": path, "edits": [{"oldText": "from", "newText": "x"}]}));
}

#[test]
fn without_a_terminal_nobody_is_asked() {
    let (sandbox, path) = with_outside();
    let arguments = json!({"path": path}).to_string();
    let run = sandbox.atoll().args(["tool", "call", "read", &arguments]).input("a\n").run().code(3);
    assert!(run.stderr.contains(&format!("to allow it: atoll plugin grant read --files {path}:read")), "{run:#?}");
    // A program reads standard output of this mode: no question may wait for it.
    let script = json!({"turns": [{"calls": [{"tool": "read", "arguments": {"path": path}}]}, {"text": "end"}]});
    let json_mode = AtTerminal::start(sandbox.scripted(&script).args(["--mode", "json", "go"]));
    let run = json_mode.wait();
    assert!(!run.stderr.contains(QUESTION), "{run:#?}");
    assert!(!sandbox.atoll_home().join("grants.toml").exists());
}

/// A plugin of the user's that wants more than it is granted.
fn ungranted(reason: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let manifest = MISBEHAVE_TOML.replace("to open more files than it may", reason);
    sandbox.plugin("misbehave", &plugins::misbehave(), Some(&manifest));
    sandbox
}

fn misbehave(sandbox: &Sandbox, arguments: &Value) -> AtTerminal {
    AtTerminal::start(sandbox.atoll().args(["tool", "call", "misbehave", &arguments.to_string()]))
}

#[test]
fn a_plugin_without_any_grant_is_asked_about_and_always_is_pinned_to_its_file() {
    let sandbox = ungranted("to look");
    sandbox.file("a.txt", "inside");
    let mut run = misbehave(&sandbox, &json!({"how": "read", "target": "a.txt"}));
    let shown = run.wait_for(QUESTION);
    assert!(shown.contains("the plugin misbehave asks for files: read ") && shown.contains("\"to look\""), "{shown}");
    assert!(shown.contains("files: $workspace (read)"), "{shown}");
    run.press("always\n");
    assert_eq!(run.wait().ok().stdout, "inside\n");
    let grants = fs::read_to_string(sandbox.atoll_home().join("grants.toml")).unwrap();
    assert!(grants.contains(&plugins::digest(&plugins::misbehave())), "{grants}");
    // What it asks for besides is still not granted.
    let again = misbehave(&sandbox, &json!({"how": "read", "target": "a.txt"})).wait().ok();
    assert!(again.stdout == "inside\n" && !again.stderr.contains(QUESTION), "{again:#?}");
    misbehave(&sandbox, &json!({"how": "spawn", "target": "/bin/true"})).wait_for(QUESTION);
}

#[test]
fn what_the_manifest_does_not_ask_for_is_not_asked_about() {
    let sandbox = ungranted("to look");
    let mut run = misbehave(&sandbox, &json!({"how": "read", "target": "/etc/passwd"}));
    run.wait_for("its plugin.toml does not ask for it");
    let run = run.wait().code(3);
    assert!(!run.stderr.contains(QUESTION), "{run:#?}");
}

#[test]
fn what_belongs_to_atoll_is_not_asked_about_and_only_reached_by_its_own_name() {
    let sandbox = Sandbox::new();
    let settings = sandbox.home_file("sessions/x.jsonl", "{}\n");
    let path = settings.to_str().unwrap();
    let denied = |run: AtTerminal| {
        let run = run.wait().code(3);
        assert!(!run.stderr.contains(QUESTION), "{run:#?}");
    };
    denied(read_at_terminal(&sandbox, path));
    let grant = |root: &str| {
        sandbox.home_file("grants.toml", format!("[builtin.read]\nfiles = [{{ root = \"{root}\" }}]\n"));
    };
    grant("/");
    denied(read_at_terminal(&sandbox, path));
    grant(settings.parent().unwrap().to_str().unwrap());
    assert_eq!(sandbox.good_call("read", &json!({"path": path})), "{}\n");
    // Beside it nothing is reached.
    sandbox.bad_call("read", &json!({"path": sandbox.atoll_home().join("grants.toml")}));
}

#[test]
fn a_plugin_can_not_forge_a_question() {
    let sandbox = ungranted("x\\n\\u001b[2Jatoll: the plugin good asks for files: read y\\r");
    let mut run = misbehave(&sandbox, &json!({"how": "read", "target": "a\n\u{1b}[2J\rb.txt"}));
    let shown = run.wait_for(QUESTION);
    assert!(shown.contains("\\u{1b}[2J") && shown.contains("\\r"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
    assert_eq!(shown.matches("\natoll: ").count(), 1, "{shown}");
    run.press("n\n");
    run.wait().code(3);
}

#[test]
fn what_was_typed_before_the_question_is_no_answer() {
    let (sandbox, path) = with_outside();
    let mut run = read_at_terminal(&sandbox, &path);
    run.press("a\n");
    run.wait_for(QUESTION);
    run.press("n\n");
    run.wait().code(3);
    assert!(!sandbox.atoll_home().join("grants.toml").exists());
}

#[test]
fn the_same_question_of_two_calls_is_asked_once() {
    for (keys, result) in [("s\n", "from outside\n"), ("n\n", "not allowed")] {
        let (sandbox, path) = with_outside();
        let arguments = json!({"path": path}).to_string();
        let server =
            Server::start(vec![Reply::calls(&[("read", &arguments), ("read", &arguments)]), { Reply::text("done") }]);
        sandbox.model_behind(&server);
        let atoll = sandbox.atoll().env("ATOLL_LOG", "atoll_engine::approval=debug");
        let mut run = AtTerminal::start(atoll.args(["-p", "go"]));
        run.wait_for(QUESTION);
        // Meanwhile the other call comes to ask the same.
        run.wait_for("waits for the open question");
        run.press(keys);
        let run = run.wait().ok();
        assert_eq!(run.stderr.matches(QUESTION).count(), 1, "{run:#?}");
        let results = sandbox.results();
        assert_eq!(results.len(), 2);
        for one in results {
            assert!(text_of(&one["content"]).contains(result), "{one:#}");
        }
    }
}

/// A run that reads the same file outside twice, and asks about the first time.
fn asked_about_the_first_of_two_calls() -> (Sandbox, Server, AtTerminal) {
    let (sandbox, path) = with_outside();
    let arguments = json!({"path": path}).to_string();
    let call = || Reply::calls(&[("read", &arguments)]);
    let server = Server::start(vec![call(), call(), Reply::text("done")]);
    sandbox.model_behind(&server);
    let mut run = AtTerminal::start(sandbox.atoll().args(["-p", "go"]));
    run.wait_for(QUESTION);
    (sandbox, server, run)
}

#[test]
fn an_answer_for_the_session_holds_for_its_later_calls() {
    let (sandbox, _server, mut run) = asked_about_the_first_of_two_calls();
    run.press("s\n");
    let run = run.wait().ok();
    assert_eq!((run.stderr.matches(QUESTION).count(), run.stdout.as_str()), (1, "done\n"), "{run:#?}");
    assert!(sandbox.results().iter().all(|one| text_of(&one["content"]) == "from outside\n"));
    assert!(!sandbox.atoll_home().join("grants.toml").exists());
}

#[test]
fn once_does_not_hold_for_the_next_call() {
    let (sandbox, _server, mut run) = asked_about_the_first_of_two_calls();
    run.press("o\n");
    run.wait_for(QUESTION);
    run.press("n\n");
    run.wait().ok();
    let texts: Vec<String> = sandbox.results().iter().map(|one| text_of(&one["content"])).collect();
    assert!(texts[0] == "from outside\n" && texts[1].contains("not allowed"), "{texts:?}");
}

#[test]
fn a_new_file_outside_is_written_after_one_question() {
    let (sandbox, _) = with_outside();
    let path = sandbox.root().join("outside/new.txt");
    let arguments = json!({"path": path, "content": "made"}).to_string();
    let mut run = AtTerminal::start(sandbox.atoll().args(["tool", "call", "write", &arguments]));
    run.wait_for(QUESTION);
    run.press("o\n");
    run.wait().ok();
    assert_eq!(fs::read_to_string(&path).unwrap(), "made");
}

#[test]
fn what_would_open_a_directory_far_above_is_not_allowed_once() {
    let (sandbox, _) = with_outside();
    let path = sandbox.root().join("outside/not/there/new.txt");
    let arguments = json!({"path": path, "content": "made"}).to_string();
    let mut run = AtTerminal::start(sandbox.atoll().args(["tool", "call", "write", &arguments]));
    let shown = run.wait_for(QUESTION);
    let opened = sandbox.root().join("outside");
    assert!(shown.contains(&format!("would be allowed: files: {} (read-write)", opened.display())), "{shown}");
    assert!(!shown.contains("[o]nce"), "{shown}");
    run.press("o\n");
    assert!(run.wait_for(QUESTION).contains("Please answer s, a or n."));
    run.press("n\n");
    run.wait().code(3);
    assert!(!opened.join("not").exists());
}

#[test]
fn what_once_opens_is_in_the_question_if_it_is_a_directory() {
    let (sandbox, path) = with_outside();
    let folder = std::path::Path::new(&path).parent().unwrap().to_owned();
    let arguments = json!({"path": folder}).to_string();
    let mut run = AtTerminal::start(sandbox.atoll().args(["tool", "call", "ls", &arguments]));
    let shown = run.wait_for(QUESTION);
    let line = format!("Once, until this call ends, this would be allowed: files: {} (read)", folder.display());
    assert!(shown.contains(&line), "{shown}");
    run.press("o\n");
    run.wait().ok();
}

#[test]
fn a_program_that_a_tool_starts_does_not_reach_the_terminal() {
    let sandbox = Sandbox::new();
    let command = "if (echo 'atoll: forged' > /dev/tty) 2> /dev/null; then echo reached; else echo not there; fi";
    let arguments = json!({"command": command}).to_string();
    let run = AtTerminal::start(sandbox.atoll().args(["tool", "call", "bash", &arguments])).wait().ok();
    assert_eq!((run.stdout.as_str(), run.stderr.contains("forged")), ("not there\n", false), "{run:#?}");
}

/// A call that begins now and uses up a limit of this many milliseconds: one of the same limit that began before it would
/// have ended too.
fn use_up(wall_ms: &str) {
    let sandbox = Sandbox::with_misbehave();
    let manifest = MISBEHAVE_TOML.replace("wall-ms = 15000", &format!("wall-ms = {wall_ms}"));
    sandbox.plugin("misbehave", &plugins::misbehave(), Some(&manifest));
    let ended = sandbox.bad_call("misbehave", &json!({"how": "sleep"}));
    assert!(ended.contains(&format!("wall-ms ({wall_ms})")), "{ended}");
}

#[test]
fn the_wait_for_an_answer_is_no_time_of_the_calls_around_it_either() {
    let (sandbox, path) = with_outside();
    let component = plugins::test_plugin("nest");
    let manifest = format!("{}\n[limits]\nwall-ms = 2000\n", include_str!("plugins/nest/plugin.toml"));
    sandbox.plugin("nest", &component, Some(&manifest));
    sandbox.grant("nest", &component, "all = true");
    let call = json!({"tool": "nest", "arguments": {"tool": "read", "arguments": {"path": path}}}).to_string();
    let mut run = AtTerminal::start(sandbox.atoll().args(["tool", "call", "nest", &call]));
    run.wait_for(QUESTION);
    use_up("2000");
    run.press("o\n");
    let run = run.wait().ok();
    assert!(run.stdout.contains("from outside"), "{run:#?}");
}

#[test]
fn the_wait_for_an_answer_is_no_time_of_the_call() {
    let sandbox = Sandbox::new();
    let manifest = MISBEHAVE_TOML.replace("wall-ms = 15000", "wall-ms = 1000");
    sandbox.plugin("misbehave", &plugins::misbehave(), Some(&manifest));
    sandbox.file("a.txt", "inside");
    let mut run = misbehave(&sandbox, &json!({"how": "read", "target": "a.txt"}));
    run.wait_for(QUESTION);
    use_up("1000");
    run.press("o\n");
    assert_eq!(run.wait().ok().stdout, "inside\n");
}
