//! Commands of plugins that are commands of the program: `atoll NAME …`.

use serde_json::json;

use crate::common::{Sandbox, puppets::manifest};

/// A place with a puppet that has the subcommand `greet`.
fn place() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.loose_puppet("greeter");
    sandbox.loose_puppet("other");
    sandbox.grant_outward(&["greeter", "other"]);
    let text = manifest("greeter") + "\n[[subcommand]]\nname = \"greet\"\ndescription = \"Greets.\"\n";
    sandbox.home_file("extensions/greeter.toml", text);
    let greet = json!([{"describeHost": null}, {"print": "hello"}]);
    let greeter = json!({"commands": {"greet": greet, "fail": []}, "record": "store"});
    sandbox.direct(&[("greeter", greeter), ("other", json!({"record": "store"}))]);
    sandbox
}

#[test]
fn a_command_of_a_plugins_is_one_of_the_program() {
    let sandbox = place();
    let words = ["greet", "--help", "a b", "it's", "", "--", "-p", "$X \"y\"", "ü\n"];
    let run = sandbox.atoll().args(words).run().ok().silent();
    assert_eq!(run.stdout, "hello\n");
    let told = sandbox.told_in_store("greeter");
    let (_, begun) = told.iter().find(|(name, _)| name == "command").unwrap();
    let arguments = shlex::split(begun["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, words[1..], "what is typed arrives as it is");
    let (_, end) = told.iter().find(|(name, _)| name == "command-end").unwrap();
    assert_eq!(end["gave"][0]["command"], "greet", "{end}");
    assert_eq!(end["gave"][0]["mode"], "Mode::Command");
    assert_eq!(sandbox.stored("other", "told"), None, "nobody else is loaded for it");
    // Options of the program stand before it.
    sandbox.atoll().args(["-na", "greet"]).run().ok();
}

#[test]
fn what_is_no_command_of_a_plugins_is_a_message_as_before() {
    let sandbox = place();
    for line in [&["-p", "greet"][..], &["greets"], &["fail"]] {
        let script = json!({"turns": [{"text": "a model"}]});
        let script = sandbox.home_file("script.json", script.to_string());
        let run =
            sandbox.atoll().env("ATOLL_SCRIPT", script).args(["--model", "scripted/default"]).args(line).run().ok();
        assert_eq!(run.stdout, "a model\n", "{line:?}");
    }
    // Without its plugin it is none.
    sandbox.atoll().args(["plugin", "disable", "greeter"]).run().ok();
    let run = sandbox.atoll().args(["greet"]).run();
    assert!(!run.stdout.contains("hello"), "{run:#?}");
}

#[test]
fn its_end_is_that_of_the_program() {
    let sandbox = place();
    for (step, code) in [
        (json!({"fail": "it does not work"}), 1),
        (json!({"call": {"tool": "no-such-tool", "arguments": {}}}), 1),
        (json!({"subscribe": {"flags": ["late"]}}), 2),
        (json!({"reveal": "others/secret"}), 3),
    ] {
        sandbox.direct(&[("greeter", json!({"commands": {"greet": [step]}}))]);
        let run = sandbox.atoll().arg("greet").run().code(code);
        assert!(run.stdout.is_empty() && !run.one_line().is_empty(), "{run:#?}");
    }
}

#[test]
fn what_is_built_in_is_named_by_help() {
    let run = Sandbox::new().atoll().arg("--help").run().ok();
    let line = run.stdout.lines().find(|line| line.trim_start().starts_with("mcp ")).unwrap();
    assert!(line.contains("MCP servers"), "{line}");
}
