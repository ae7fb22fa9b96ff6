//! The variables that a plugin sets for programs are a scope of their own: what is not granted is not set.

use std::fs;

use serde_json::{Value, json};

use crate::common::{
    Sandbox, json_lines,
    plugins::{MISBEHAVE_TOML, misbehave},
    terminal::AtTerminal,
};

const PROGRAM: &str = "/usr/bin/env";

/// A sandbox with a plugin that may start [`PROGRAM`], and asks for two variables of it.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let wish = format!(
        "{MISBEHAVE_TOML}\n[[process]]\nprogram = \"{PROGRAM}\"\nenv = [\"SHOWN\", \"MORE_*\"]\nreason = \"to show them\"\n"
    );
    sandbox.plugin("misbehave", &misbehave(), Some(&wish));
    granted(&sandbox, "");
    sandbox
}

/// Grants it all, with these variables.
fn granted(sandbox: &Sandbox, env: &str) {
    let wants = format!(
        "files = [{{ root = \"$workspace\" }}]\nhttp = [{{ origin = \"http://127.0.0.1:1\" }}]\n\
         process = [{{ program = \"{PROGRAM}\", env = [{env}] }}]"
    );
    sandbox.grant("misbehave", &misbehave(), &wants);
}

fn spawn(variables: &[&str]) -> Value {
    let env: serde_json::Map<String, Value> =
        variables.iter().map(|name| ((*name).to_owned(), json!(format!("value of {name}")))).collect();
    json!({"how": "spawn-with", "target": PROGRAM, "env": env})
}

#[test]
fn a_variable_that_is_granted_is_set_and_written_down() {
    let sandbox = sandbox();
    granted(&sandbox, "\"SHOWN\", \"MORE_*\"");
    let shown = sandbox.good_call("misbehave", &spawn(&["SHOWN", "MORE_OF_IT"]));
    for line in ["SHOWN=value of SHOWN", "MORE_OF_IT=value of MORE_OF_IT"] {
        assert!(shown.lines().any(|found| found == line), "{shown}");
    }
    let log = json_lines(&fs::read_to_string(sandbox.atoll_home().join("audit.log")).unwrap());
    let used: Vec<[&Value; 3]> = log
        .iter()
        .filter(|entry| entry["capability"] == "process")
        .map(|entry| [&entry["operation"], &entry["target"], &entry["allowed"]])
        .collect();
    let expected =
        [["set", "MORE_OF_IT for /usr/bin/env"], ["set", "SHOWN for /usr/bin/env"], ["spawn", "/usr/bin/env"]];
    assert_eq!(json!(used), json!(expected.map(|[operation, target]| json!([operation, target, true]))));
}

#[test]
fn a_variable_that_is_not_granted_is_denied_with_the_command_that_would_give_it() {
    let sandbox = sandbox();
    sandbox.good_call("misbehave", &spawn(&[]));
    let arguments = spawn(&["MORE_OF_IT"]).to_string();
    let call = || sandbox.atoll().args(["tool", "call", "misbehave", &arguments]).run();
    let denied = call().code(3);
    assert_eq!(denied.stdout, "");
    let command = "atoll plugin grant misbehave --process /usr/bin/env:env=MORE_OF_IT";
    assert!(denied.stderr.contains("the variable MORE_OF_IT for /usr/bin/env"), "{denied:#?}");
    assert!(denied.stderr.trim_end().ends_with(&format!("to allow it: {command}")), "{denied:#?}");
    let log = fs::read_to_string(sandbox.atoll_home().join("audit.log")).unwrap();
    let last = json_lines(&log).pop().unwrap();
    assert_eq!([&last["operation"], &last["allowed"]], [&json!("set"), &json!(false)], "{last:#}");
    sandbox.shell(command).ok();
    assert!(call().ok().stdout.contains("MORE_OF_IT=value"));
    // Only that, and it can be taken back without the program.
    sandbox.bad_call("misbehave", &spawn(&["SHOWN"]));
    sandbox.shell("atoll plugin revoke misbehave --process /usr/bin/env:env=MORE_OF_IT").ok();
    sandbox.bad_call("misbehave", &spawn(&["MORE_OF_IT"]));
    sandbox.good_call("misbehave", &spawn(&[]));
}

#[test]
fn what_the_manifest_does_not_ask_for_is_denied_whatever_is_granted() {
    let sandbox = sandbox();
    granted(&sandbox, "\"*\"");
    sandbox.good_call("misbehave", &spawn(&["SHOWN"]));
    let text = sandbox.bad_call("misbehave", &spawn(&["OTHER"]));
    assert!(text.contains("the variable OTHER"), "{text}");
}

#[test]
fn variables_that_decide_what_code_runs_are_refused_to_everybody() {
    let sandbox = Sandbox::new();
    let wish = format!("{MISBEHAVE_TOML}\n[[process]]\nprogram = \"*\"\nenv = [\"*\"]\nreason = \"to show them\"\n");
    sandbox.plugin("misbehave", &misbehave(), Some(&wish));
    sandbox.grant("misbehave", &misbehave(), "all = true");
    assert!(sandbox.good_call("misbehave", &spawn(&["PATHS"])).contains("PATHS=value"));
    for name in ["PATH", "ENV", "BASH_ENV", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES"] {
        let run = sandbox.atoll().args(["tool", "call", "misbehave", &spawn(&[name]).to_string()]).run().code(3);
        assert!(run.stderr.contains(&format!("the variable {name}")), "{run:#?}");
        let reason = if ["PATH", "ENV"].contains(&name) {
            "only a plugin that may start every program"
        } else {
            "no plugin may set it"
        };
        assert!(run.stderr.contains(reason), "{run:#?}");
    }
    // But for the two that may be asked for by name, together with every program.
    sandbox.plugin("misbehave", &misbehave(), Some(&wish.replace("\"*\"]", "\"*\", \"PATH\"]")));
    sandbox.good_call("misbehave", &spawn(&["PATH"]));
    let some = wish.replace("program = \"*\"\nenv = [\"*\"]", "program = \"git\"\nenv = [\"PATH\"]");
    sandbox.plugin("misbehave", &misbehave(), Some(&some));
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.one_line().contains("may start every program"), "{run:#?}");
    // Nor may anybody ask for them by name.
    sandbox.plugin("misbehave", &misbehave(), Some(&wish.replace("\"*\"]", "\"LD_PRELOAD\"]")));
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.one_line().contains("`env`: `LD_PRELOAD`, character 1"), "{run:#?}");
}

#[test]
fn the_person_at_the_terminal_is_asked_about_a_variable() {
    let sandbox = sandbox();
    let start =
        || AtTerminal::start(sandbox.atoll().args(["tool", "call", "misbehave", &spawn(&["SHOWN"]).to_string()]));
    let mut run = start();
    let shown = run.wait_for("[N]o: ");
    assert!(shown.contains("asks for process: set SHOWN for /usr/bin/env"), "{shown}");
    assert!(shown.contains("process: /usr/bin/env (may set SHOWN)"), "{shown}");
    run.press("n\n");
    assert_eq!(run.wait().code(3).stdout, "");
    let mut run = start();
    run.wait_for("[N]o: ");
    run.press("a\n");
    assert!(run.wait().ok().stdout.contains("SHOWN=value"));
    assert!(sandbox.grants().contains("SHOWN"), "{}", sandbox.grants());
    assert!(sandbox.good_call("misbehave", &spawn(&["SHOWN"])).contains("SHOWN=value"));
}

#[test]
fn what_may_be_set_is_shown() {
    let sandbox = sandbox();
    let show = |arguments: &[&str]| sandbox.atoll().arg("plugin").args(arguments).run().ok().stdout;
    let wish = "process: /usr/bin/env (may set SHOWN, MORE_*)";
    let text = show(&["inspect", "misbehave"]);
    assert!(text.contains(&format!("  {wish}: to show them")), "{text}");
    let record: Value = serde_json::from_str(&show(&["inspect", "misbehave", "--json"])).unwrap();
    assert_eq!(record["asks"]["process"][1]["env"], json!(["SHOWN", "MORE_*"]), "{record:#}");
    assert!(record["gets"].as_array().unwrap().contains(&json!("process: /usr/bin/env")), "{record:#}");
    assert!(record["notGranted"].as_array().unwrap().contains(&json!(wish)), "{record:#}");
    granted(&sandbox, "\"MORE_*\"");
    let record: Value = serde_json::from_str(&show(&["inspect", "misbehave", "--json"])).unwrap();
    assert!(record["gets"].as_array().unwrap().contains(&json!(wish)), "{record:#}");
    assert!(show(&["list"]).contains("process: /usr/bin/env (may set MORE_*)"));
}
