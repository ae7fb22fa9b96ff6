//! What can not be looked at when extensions are loaded anew: it goes on as it was.

use serde_json::{Value, json};

use crate::common::{
    Sandbox,
    plugins::test_plugin,
    puppets::{manifest, one_call},
    text_of,
};

/// A script that blocks what is dangerous.
const GATE: &str = "export default function (atoll: any) {\n  atoll.on(\"tool_call\", (event: any) =>\n    \
                    event.input.command?.includes(\"rm -rf\") ? { block: true, reason: \"GATED\" } : undefined);\n}\n";

/// A run in which something is damaged before all is loaded anew, and a dangerous call is made then. Gives what the call
/// gave, and what the user was told.
#[track_caller]
fn damaged(sandbox: &Sandbox, damage: &str, named: &[&str]) -> (String, String) {
    let step = json!([{"call": {"tool": "bash", "arguments": {"command": damage}}}]);
    let breaker = sandbox.puppets(&[("breaker", json!({"commands": {"damage": step}}))]);
    let call = one_call("bash", &json!({"command": "echo rm -rf x"}));
    let run = sandbox.scripted(&call).args(breaker).args(named).args(["/damage", "/reload", "go"]).run().ok();
    (text_of(&sandbox.results()[0]["content"]), run.stderr)
}

/// As [`damaged`]: the call is blocked, and the user is told that the gate goes on, and why.
#[track_caller]
fn goes_on(sandbox: &Sandbox, damage: &str, named: &[&str], why: &str) {
    let (gave, said) = damaged(sandbox, damage, named);
    assert!(gave.contains("GATED"), "{damage}: {gave}\n{said}");
    assert!(!said.contains("left out"), "{damage}: {said}");
    let told = said.lines().find(|line| line.starts_with("atoll: the plugin gate goes on as it was: "));
    assert!(told.is_some_and(|told| told.contains(why)), "{damage}: {said}");
}

#[test]
fn what_is_among_the_users_extensions_goes_on_while_it_can_not_be_looked_at() {
    for (files, damage, why) in [
        (&["gate.ts"][..], "echo '{' > plugins.json", "plugins.json"),
        (&["gate.ts"], "cd extensions; seq 1001 | xargs touch", "more than 1000 entries"),
        (&["gate/index.ts"], "echo '{' > extensions/gate/package.json", "package.json: it can not be understood"),
        (
            &["gate/index.ts"],
            "echo '{\"pi\": {\"extensions\": [\"indx.ts\"]}}' > extensions/gate/package.json",
            "indx.ts: package.json names it",
        ),
        (
            &["gate/index.ts"],
            "echo '{\"pi\": {\"extensions\": [\"../gate/index.ts\"]}}' > extensions/gate/package.json",
            "not in its folder",
        ),
        // It comes before the index.
        (&["gate/index.ts"], "cd extensions/gate; echo 'version = \"1\"' > plugin.toml; echo no > zz.wasm", "gate/"),
    ] {
        let sandbox = Sandbox::new();
        for file in files {
            sandbox.home_file(&format!("extensions/{file}"), GATE);
        }
        goes_on(&sandbox, &format!("cd \"$ATOLL_HOME\"; {damage}"), &[], why);
    }
}

#[test]
fn a_component_goes_on_while_its_folder_has_two() {
    let sandbox = Sandbox::new();
    sandbox.home_file("extensions/gate/one.wasm", test_plugin("puppet"));
    sandbox.home_file("extensions/gate/plugin.toml", manifest("gate"));
    let copy = "cd \"$ATOLL_HOME/extensions/gate\"; cp one.wasm another.wasm";
    let step = json!([{"call": {"tool": "bash", "arguments": {"command": copy}}}]);
    let named = sandbox.puppets(&[
        ("breaker", json!({"commands": {"damage": step}})),
        ("gate", json!({"events": ["tool-result"], "answers": {"tool-result": [{"patch": {"text": "GATED"}}]}})),
    ]);
    let call = one_call("bash", &json!({"command": "echo plain"}));
    let run = sandbox.scripted(&call).args(&named[..2]).args(["/damage", "/reload", "go"]).run().ok();
    assert!(text_of(&sandbox.results()[0]["content"]).contains("GATED"), "{run:#?}");
    assert!(run.stderr.contains("gate goes on as it was") && run.stderr.contains("several components"), "{run:#?}");
}

#[test]
fn a_folder_that_the_user_named_goes_on_while_it_can_not_be_read() {
    for (damage, why) in [
        ("echo '{' > package.json", "package.json"),
        ("echo '{' > plugin.toml", "plugin.toml"),
        ("mv index.ts index.ts.bak", "gate"),
        ("cd ..; mv gate gone", "gate"),
    ] {
        let sandbox = Sandbox::new();
        let folder = sandbox.root().join("scripts/gate");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("index.ts"), GATE).unwrap();
        let named = folder.to_str().unwrap();
        goes_on(&sandbox, &format!("cd '{named}'; {damage}"), &["-e", named], why);
    }
}

/// Which then says no name, so that its file's stands for it.
#[test]
fn one_that_can_not_be_read_takes_nobodys_place() {
    let sandbox = Sandbox::new();
    sandbox.home_file("extensions/offered.ts", GATE);
    let toml = sandbox.puppet("breaker").with_file_name("plugin.toml");
    let (gave, said) = damaged(&sandbox, &format!("echo '{{' > '{}'", toml.display()), &[]);
    assert!(gave.contains("GATED"), "{gave}\n{said}");
    assert!(said.contains("loaded anew: offered") && said.contains("breaker goes on as it was"), "{said}");
}

#[test]
fn what_the_user_took_away_ends_though_something_else_can_not_be_looked_at() {
    for damage in ["rm extensions/gate.ts", "echo '{\"disabled\": [\"gate\"]}' > plugins.json"] {
        let sandbox = Sandbox::new();
        sandbox.home_file("extensions/gate.ts", GATE);
        let damage =
            format!("cd \"$ATOLL_HOME\"; mkdir extensions/other; echo '{{' > extensions/other/package.json; {damage}");
        let (gave, said) = damaged(&sandbox, &damage, &[]);
        assert!(gave.contains("rm -rf x"), "{damage}: {gave}\n{said}");
        assert!(said.contains("ended: gate"), "{damage}: {said}");
    }
}

/// One of another name is another plugin, though it lies where the other lay.
#[test]
fn one_that_is_called_otherwise_now_leaves_nothing_of_the_old_one() {
    let sandbox = Sandbox::new();
    let says = |name: &str| json!({"tools": [{"name": name}], "events": ["session-shutdown"], "record": "entry"});
    let file = sandbox.puppet("one");
    let toml = file.with_file_name("plugin.toml");
    let rename = format!("sed -i 's/name = \"one\"/name = \"two\"/' '{}'", toml.display());
    let step = json!([{"call": {"tool": "bash", "arguments": {"command": rename}}}]);
    let puppets: [(&str, Value); 3] =
        [("breaker", json!({"commands": {"rename": step}})), ("one", says("first")), ("two", says("second"))];
    let named = sandbox.puppets(&puppets);
    let script = json!({"turns": [{"calls": [{"tool": "first"}, {"tool": "second"}]}, {"text": "done"}]});
    let run = sandbox.scripted(&script).args(&named[..4]).args(["/rename", "/reload", "go"]).run().ok();
    assert_eq!(run.one_line(), "atoll: loaded anew: breaker; new: two; ended: one");
    let results = sandbox.results();
    let gone = text_of(&results[0]["content"]);
    assert!(results[0]["isError"] == true && !gone.contains("has ended"), "{gone}");
    assert_eq!(results[1]["isError"], false, "{results:#?}");
    let shutdowns =
        sandbox.told().into_iter().filter(|(name, fields)| name == "session-shutdown" && fields["reason"] == "reload");
    assert_eq!(shutdowns.count(), 1);
}
