//! `atoll codemode`: scripts without a model. The scripts here are those of a test plugin, whose tool says that it runs
//! scripts.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{Sandbox, plugins::test_plugin, skipped, text_of};

const NEST_TOML: &str = include_str!("plugins/nest/plugin.toml");

/// A place whose only tool that runs scripts is `interpret`.
pub(crate) fn with_interpreter() -> Sandbox {
    let sandbox = Sandbox::new();
    let component = test_plugin("nest");
    let manifest = NEST_TOML.replace("[table]", "runs-scripts = \"interpret\"\n\n[table]");
    sandbox.plugin("nest", &component, Some(&manifest));
    sandbox.grant("nest", &component, "all = true");
    sandbox
}

fn run(sandbox: &Sandbox, script: &str, more: &[&str]) -> crate::common::Finished {
    sandbox.file("script", script);
    sandbox.atoll().args(["codemode", "run", "script"]).args(more).run()
}

#[test]
fn what_a_script_gives_is_on_standard_output_and_the_rest_on_standard_error() {
    let sandbox = with_interpreter();
    sandbox.file("a.txt", "alpha\n");
    let done = run(&sandbox, "text one\nlog aside\ncall read {\"path\": \"a.txt\"}", &[]).ok();
    assert_eq!(done.stdout, "one\n{\"text\":\"alpha\\n\",\"isError\":false}\n");
    assert_eq!(done.stderr, "Began.\naside\n");
    // The same from standard input, as a whole record.
    let done =
        sandbox.atoll().args(["codemode", "run", "-", "--json"]).input("call pause {\"milliseconds\": 0}").run().ok();
    let record: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&record["tool"], &record["isError"]), (&json!("interpret"), &json!(false)), "{record:#}");
    assert_eq!(record["nestedCalls"]["calls"][0]["name"], "pause");
}

#[test]
fn how_a_script_ends_is_the_exit_code() {
    let sandbox = with_interpreter();
    sandbox.settings(&json!({"defaultTools": ["+ls"]}));
    run(&sandbox, "text fine", &[]).code(0);
    let failed = run(&sandbox, "what", &[]).code(1);
    assert!(failed.stdout.is_empty() && failed.stderr.contains("what is what?"), "{failed:#?}");
    run(&sandbox, "call nobody", &[]).code(1);
    let denied = run(&sandbox, "text before\ncall ls", &["--allow", "read"]).code(3);
    assert_eq!(denied.stdout, "before\n");
    assert!(denied.stderr.contains("--allow ls"), "{denied:#?}");
    let missing = sandbox.atoll().args(["codemode", "run", "nowhere.js"]).run().code(2);
    assert!(missing.one_line().contains("nowhere.js"), "{missing:#?}");
    sandbox.file("binary", [0xff, 0xfe].as_slice());
    sandbox.atoll().args(["codemode", "run", "binary"]).run().code(2);
    for timeout in ["0", "soon", "-1", "3601"] {
        run(&sandbox, "text fine", &["--timeout", timeout]).code(2);
    }
}

#[test]
fn allow_narrows_what_a_script_reaches_and_the_tools_that_it_calls_reach() {
    let sandbox = with_interpreter();
    sandbox.settings(&json!({"defaultTools": ["+ls"]}));
    let through = |tool: &str| format!("call nest {{\"tool\": \"{tool}\", \"arguments\": {{}}}}");
    let allowed = run(&sandbox, &format!("call ls\n{}", through("ls")), &["--allow", "l*", "--allow", "nest"]).ok();
    assert_eq!(allowed.stdout.matches("isError\":false").count(), 2, "{allowed:#?}");
    // Nor does another tool call for it what it may not call itself.
    let around = run(&sandbox, &through("read"), &["--allow", "nest"]).ok();
    assert!(around.stdout.contains("denied"), "{around:#?}");
    let note = run(&sandbox, "text fine", &["--allow", "reed"]).ok();
    assert!(note.stderr.contains("--allow reed is none of the tools"), "{note:#?}");
    // What is not active is not reached by being allowed; `--tools` says what is active.
    run(&sandbox, "call grep {\"pattern\": \"x\"}", &["--allow", "grep"]).code(1);
    run(&sandbox, "call grep {\"pattern\": \"x\"}", &["--tools", "+grep"]).ok();
    run(&sandbox, "call ls", &["--tools", "-ls"]).code(1);
}

#[test]
fn a_script_is_told_how_long_it_has_and_is_ended_with_what_it_has_shown() {
    let sandbox = with_interpreter();
    let told = run(&sandbox, "left", &["--timeout", "120"]).ok();
    assert_eq!(told.stdout, "Some(119)\n");
    let late = run(&sandbox, "show half of it\nwait", &["--timeout", "0.2"]).code(1);
    assert!(late.stderr.contains("half of it") && late.stderr.contains("it took longer"), "{late:#?}");
}

#[test]
fn a_signal_ends_a_script_and_what_it_has_started() {
    let sandbox = with_interpreter();
    sandbox.file("script", "call bash {\"command\": \"touch began; sleep 987\"}");
    let running = sandbox.atoll().args(["codemode", "run", "script"]).start();
    crate::common::until("it runs", || sandbox.work().join("began").exists().then_some(()));
    running.signal(Signal::INT);
    running.wait().code(130);
}

#[test]
fn without_a_tool_that_runs_scripts_it_says_so() {
    let sandbox = Sandbox::new();
    sandbox.file("script", "1");
    sandbox.settings(&json!({"extensions": ["-builtin:codemode"]}));
    let none = sandbox.atoll().args(["codemode", "run", "script"]).run().code(1);
    assert!(none.stderr.contains("no tool here runs scripts"), "{none:#?}");
}

#[test]
fn the_types_are_those_of_the_tools_that_can_be_called() {
    let sandbox = with_interpreter();
    let types = sandbox.atoll().args(["codemode", "types"]).run().ok().stdout;
    assert!(types.starts_with("// What scripts of `atoll codemode run` find here."), "{types}");
    assert!(types.contains("declare const tools: Tools;") && types.contains("  read(args: {"), "{types}");
    assert!(!types.contains("tool_search(") && !types.contains("  grep("), "{types}");
    let all = sandbox.atoll().args(["codemode", "types", "--all"]).run().ok().stdout;
    assert!(all.contains("  grep(args: {") && !all.contains("tool_search("), "{all}");
    let again = sandbox.atoll().args(["codemode", "types"]).run().ok().stdout;
    assert_eq!(types, again);
    sandbox.settings(&json!({"defaultTools": ["-bash"]}));
    let without = sandbox.atoll().args(["codemode", "types", "--all"]).run().ok().stdout;
    assert!(!without.contains("  bash("), "what the user switched off is not there: {without}");
}

/// Has TypeScript's own compiler read files of the workspace beside the types of all tools, where it is there.
#[track_caller]
pub(crate) fn typescript_accepts(sandbox: &Sandbox, files: &[&str]) {
    let Some(folder) = std::env::var_os("ATOLL_TYPESCRIPT_DIR").map(std::path::PathBuf::from) else {
        skipped(&format!("{}: the variable ATOLL_TYPESCRIPT_DIR is not set", files.join(", ")));
        return;
    };
    let types = sandbox.atoll().args(["codemode", "types", "--all"]).run().ok().stdout;
    sandbox.file("atoll.d.ts", types);
    let compiler = folder.join("node_modules/.bin/tsc");
    let arguments = ["--noEmit", "--strict", "--target", "esnext", "--lib", "esnext,dom", "atoll.d.ts"];
    crate::common::Command::of(compiler)
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        .args(arguments)
        .args(files)
        .cwd(sandbox.work())
        .longest(120)
        .run()
        .ok();
}

#[test]
fn the_types_are_typescript_and_tell_good_scripts_from_bad_ones() {
    let sandbox = with_interpreter();
    sandbox.file(
        "script.ts",
        r#"async function script() {
            const found = await tools.grep({ pattern: "x" });
            for (const line of found.lines) text(`${line.path}:${line.line}`);
            const page = await tools.read({ path: "a" });
            if (typeof page !== "string") image(page);
            store("a", load("a") ?? 1);
            const [first] = await searchTools("words", { limit: 3 });
            text(first.declaration + ALL_TOOLS[0].id);
            // @ts-expect-error an argument is missing
            await tools.read({});
            // @ts-expect-error there is no such tool
            await tools.nobody();
        }
        script();
        "#,
    );
    typescript_accepts(&sandbox, &["script.ts"]);
}

#[test]
fn a_model_gets_the_ends_of_a_long_result_and_can_read_the_rest() {
    let sandbox = with_interpreter();
    let script = json!({"turns": [
        {"calls": [{"tool": "interpret", "arguments": {"code": "long a line of it"}}]},
        {"text": "done"}]});
    sandbox.scripted(&script).arg("go").run().ok();
    let result = sandbox.results()[0].clone();
    let text = text_of(&result["content"]);
    assert!(text.contains("characters left out") && text.chars().count() < 700, "{text}");
    let path = result["details"]["fullOutputPath"].as_str().unwrap().to_owned();
    assert!(text.contains(&format!("Whole output: {path} (read it with offset and limit)")), "{text}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a line of it\n".repeat(100));
    assert!(sandbox.good_call("read", &json!({"path": path, "limit": 1})).contains("a line of it"));
    std::fs::remove_file(path).unwrap();
    // A person gets all of it.
    assert_eq!(run(&sandbox, "long a line of it", &[]).ok().stdout, "a line of it\n".repeat(100));
}

#[test]
fn what_is_kept_is_kept_with_the_session_if_the_call_succeeds() {
    let sandbox = with_interpreter();
    let call = |code: &str| json!({"calls": [{"tool": "interpret", "arguments": {"code": code}}]});
    let script =
        json!({"turns": [call("keep a\nkept a"), call("keep b\nwhat"), call("kept a\nkept b"), {"text": "done"}]});
    sandbox.scripted(&script).arg("go").run().ok();
    let texts = |at: usize| text_of(&sandbox.results()[at]["content"]);
    assert_eq!(texts(0), "Began.null", "a call does not see what it keeps itself");
    assert_eq!(texts(2), "Began.\"a\"null", "one that failed keeps nothing");
    let entries = sandbox.session();
    let kept: Vec<&Value> = entries.iter().filter(|entry| entry["customType"] == "interpret-store").collect();
    assert_eq!(kept.len(), 1, "{kept:#?}");
    assert_eq!(kept[0]["data"], json!({"set": {"a": "a"}, "delete": []}));
    // It is there when the session is gone on with.
    let mut turns = script["turns"].as_array().unwrap().clone();
    turns.extend([call("kept a"), json!({"text": "done"})]);
    sandbox.scripted(&json!({"turns": turns})).args(["-c", "go"]).run().ok();
    let results = sandbox.results();
    assert_eq!(text_of(&results[results.len() - 1]["content"]), "Began.\"a\"");
}

#[test]
fn a_stopped_call_leaves_what_it_has_shown() {
    let sandbox = with_interpreter();
    let script = json!({"turns": [
        {"calls": [{"tool": "interpret", "arguments": {"code": "show half of it\nwait"}}]},
        {"text": "never"}]});
    let running = sandbox.scripted(&script).args(["--mode", "json", "go"]).start();
    running.wait_for_output("tool_execution_update");
    running.signal(Signal::INT);
    running.wait().code(130);
    assert_eq!(text_of(&sandbox.results()[0]["content"]), "half of itThe user stopped this call.");
}
