//! Extensions of the user's that decide whether a project is trusted.

use serde_json::{Value, json};

use crate::common::{Sandbox, plugins::test_plugin, puppets::manifest};

/// An extension that says this of projects.
fn says(answer: &Value) -> Value {
    json!({"events": ["project-trust"], "answers": {"project-trust": [{"reply": answer}]}})
}

/// A sandbox whose project leaves `read` alone active, where it is trusted.
fn with_project() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file(".atoll/settings.json", json!({"defaultTools": ["read"]}).to_string());
    sandbox
}

/// Whether the project counts, and what was said of it.
#[track_caller]
fn trusted(sandbox: &Sandbox, options: &[&str]) -> (bool, String) {
    let run = sandbox.atoll().args(["tool", "list", "--json"]).args(options).run().ok();
    let list = run.json();
    let bash = list.as_array().unwrap().iter().find(|tool| tool["name"] == "bash").unwrap();
    (bash["active"] == false, run.stderr)
}

#[test]
fn the_command_line_comes_before_an_extension_and_an_extension_before_what_is_saved() {
    let sandbox = with_project();
    let named = |answer: &Value| sandbox.puppets(&[("judge", says(answer))]);
    let look = |names: &[String], more: &[&str]| {
        let options: Vec<&str> = names.iter().map(String::as_str).chain(more.iter().copied()).collect();
        trusted(&sandbox, &options)
    };
    let yes = named(&json!({"trusted": "yes"}));
    assert_eq!(look(&yes, &[]), (true, "atoll: this project is trusted: the extension judge says so\n".to_owned()));
    assert_eq!(look(&yes, &["-na"]), (false, String::new()));
    // Who says nothing leaves it to what is saved, and that to the default.
    let undecided = named(&json!({"trusted": "undecided", "remember": true}));
    let (is_trusted, said) = look(&undecided, &[]);
    assert!(!is_trusted && said.contains("this project is not trusted, so"), "{said}");
    sandbox.atoll().args(["trust", "allow"]).run().ok();
    assert_eq!(look(&undecided, &[]), (true, String::new()));
    let no = named(&json!({"trusted": "no"}));
    assert_eq!(look(&no, &[]), (false, "atoll: this project is not trusted: the extension judge says so\n".to_owned()));
    assert_eq!(look(&no, &["-a"]), (true, String::new()));
}

#[test]
fn what_is_to_be_remembered_holds_without_the_extension() {
    let sandbox = with_project();
    sandbox.loose_puppet("judge");
    sandbox.grant_outward(&["judge"]);
    sandbox.direct(&[("judge", says(&json!({"trusted": "yes", "remember": true})))]);
    assert!(trusted(&sandbox, &[]).0);
    assert_eq!(trusted(&sandbox, &["-ne"]), (true, String::new()));
}

#[test]
fn one_that_fails_or_says_nothing_that_can_be_understood_leaves_the_project_untrusted() {
    let sandbox = with_project();
    for answer in [json!({"trusted": true}), json!({"trust": "yes"})] {
        let names = sandbox.puppets(&[("judge", says(&answer))]);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (is_trusted, said) = trusted(&sandbox, &names);
        assert!(!is_trusted && said.contains("judge failed at project-trust"), "{said}");
    }
}

#[test]
fn no_extension_of_the_project_is_asked_about_it() {
    let sandbox = with_project();
    sandbox.file(".atoll/extensions/own.wasm", test_plugin("puppet"));
    sandbox.file(".atoll/extensions/own.toml", manifest("own"));
    let list = sandbox.atoll().args(["-a", "plugin", "list", "--json"]).run().json();
    let names = list.as_array().unwrap().iter().map(|plugin| plugin["name"].as_str().unwrap());
    let name = names.clone().find(|name| name.starts_with("own-in-")).unwrap();
    sandbox.atoll().args(["-a", "plugin", "grant", name, "--all"]).run().ok();
    let mut does = says(&json!({"trusted": "yes"}));
    does["record"] = json!("store");
    sandbox.direct(&[(name, does)]);
    assert!(!trusted(&sandbox, &[]).0);
    sandbox.atoll().args(["trust", "allow"]).run().ok();
    assert_eq!(trusted(&sandbox, &[]), (true, String::new()));
    let told: Vec<String> = sandbox.told_in_store(name).into_iter().map(|(event, _)| event).collect();
    assert_eq!(told, ["start", "stop"]);
}

/// What it wants may depend on anything, so nothing is concluded from what it wanted elsewhere or before.
#[test]
fn one_that_has_nothing_to_say_elsewhere_is_asked_here() {
    let sandbox = Sandbox::new();
    sandbox.home_file(
        "extensions/judge.ts",
        "export default function (atoll: any) {\n  if (!process.cwd().endsWith(\"/theirs\")) return;\n  \
         atoll.on(\"project_trust\", () => ({ trusted: \"no\" }));\n}\n",
    );
    let settings = json!({"defaultTools": ["read"]}).to_string();
    let look = |name: &str| {
        sandbox.file(&format!("{name}/.atoll/settings.json"), &settings);
        let cwd = sandbox.work().join(name);
        sandbox.atoll().cwd(&cwd).args(["trust", "allow"]).run().ok();
        let run = sandbox.atoll().cwd(&cwd).args(["tool", "list", "--json"]).run().ok();
        let list = run.json();
        let bash = list.as_array().unwrap().iter().find(|tool| tool["name"] == "bash").unwrap();
        (bash["active"] == false, run.stderr)
    };
    assert_eq!(look("mine"), (true, String::new()));
    assert_eq!(look("theirs"), (false, "atoll: this project is not trusted: the extension judge says so\n".to_owned()));
    assert_eq!(look("mine"), (true, String::new()));
    assert!(!sandbox.root().join("cache/atoll/project-trust.json").exists());
}
