//! Secrets that an extension holds itself, or keeps: only by the names that its manifest asks for and that are granted, and
//! nowhere in what it says from then on.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use crate::common::{
    Sandbox,
    puppets::{no_call, one_call},
    text_of,
};

const CANARY: &str = "sk-held-5eed-c0ffee";

/// A sandbox with these secrets of the user's.
fn with_secrets(secrets: &Value) -> Sandbox {
    let sandbox = Sandbox::new();
    let path = sandbox.home_file("secrets.json", secrets.to_string());
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    sandbox
}

/// What the steps of a call give.
#[track_caller]
fn steps(sandbox: &Sandbox, steps: &Value) -> Value {
    let named = sandbox.puppets(&[("puppet", json!({}))]);
    let arguments = json!({"steps": steps}).to_string();
    let run = sandbox.atoll().args(named).args(["tool", "call", "puppet", &arguments, "--json"]).run().ok();
    serde_json::from_str(&text_of(&run.json()["content"])).unwrap()
}

#[test]
fn a_secret_is_revealed_to_whom_it_is_granted_and_is_said_nowhere() {
    let sandbox = with_secrets(&json!({"shown/key": CANARY}));
    let used = [
        json!({"revealedBytes": "shown/key"}),
        json!({"reveal": "shown/key"}),
        json!({"log": format!("it is {CANARY}")}),
        json!({"append": {"type": "note", "data": {CANARY: [CANARY]}}}),
        json!({"sendCustom": {"type": "note", "text": CANARY, "details": {"k": CANARY}, "delivery": "nextTurn"}}),
        json!({"section": {"name": "s", "text": CANARY}}),
        json!({"notify": CANARY}),
        json!({"call": {"tool": "bash", "arguments": {"command": format!("echo {CANARY}")}}}),
    ];
    let model = one_call("puppet", &json!({"steps": used}));
    let run =
        sandbox.with_puppets(&[("puppet", json!({}))], &model).env("ATOLL_LOG", "plugin=trace").arg("go").run().ok();
    let gave: Value = serde_json::from_str(&text_of(&sandbox.results()[0]["content"])).unwrap();
    // It really had it; and what it says of it is taken out.
    assert_eq!((&gave[0], &gave[1]), (&json!(CANARY.len()), &json!("[secret]")));
    assert_eq!(gave[7]["text"], "[secret]\n");
    let session = fs::read_to_string(&sandbox.session_files()[0]).unwrap();
    let log = fs::read_to_string(sandbox.atoll_home().join("audit.log")).unwrap();
    // The script of the model is the test's own words; everything the puppet made of them is not.
    let made = |line: &&str| !line.contains("\"toolCall\"");
    for text in [session.lines().filter(made).collect::<String>(), log.clone(), run.stdout, run.stderr] {
        assert!(!text.contains(CANARY), "{text}");
    }
    assert!(log.contains("\"reveal\"") && log.contains("shown/key"), "{log}");
}

#[test]
fn what_is_not_granted_or_not_asked_for_is_not_revealed_listed_or_kept() {
    let sandbox = with_secrets(&json!({"shown/key": CANARY, "kept/key": CANARY, "other": CANARY, "shown": CANARY}));
    let gave = steps(
        &sandbox,
        &json!([
            {"secrets": 1},
            {"try": {"reveal": "kept/key"}},
            {"try": {"reveal": "other"}},
            {"try": {"reveal": "shown"}},
            {"try": {"reveal": "shown/missing"}},
            {"try": {"reveal": "shown/*"}},
            {"try": {"saveSecret": {"name": "other", "value": "mine"}}},
            {"try": {"saveSecret": {"name": "../secrets", "value": "mine"}}},
        ]),
    );
    assert_eq!(gave[0], json!(["kept/key", "shown/key"]));
    for at in [1, 2, 3, 6, 7] {
        assert_eq!(gave[at]["code"], "denied", "{gave:#}");
    }
    assert!(gave[4]["code"] == "not-found" && gave[5]["code"] != "denied" || gave[5]["code"] == "denied", "{gave:#}");
    assert!(!gave.to_string().contains(CANARY));
    let kept = fs::read_to_string(sandbox.atoll_home().join("secrets.json")).unwrap();
    assert!(!kept.contains("mine"), "{kept}");
    let log = fs::read_to_string(sandbox.atoll_home().join("audit.log")).unwrap();
    let denied = log.lines().filter(|line| line.contains("\"allowed\":false")).count();
    assert!(denied >= 5, "{log}");
}

#[test]
fn without_a_grant_of_them_one_that_holds_secrets_is_not_loaded() {
    let sandbox = with_secrets(&json!({"shown/key": CANARY}));
    let named = sandbox.puppets(&[("puppet", json!({}))]);
    let grants = sandbox.grants().replace(
        "all = true",
        "table = {}\nsession = {}\nproviders = {}\nservers = {}\nlistener = {}\n\
        config = [{ file = \"puppet.json\" }]\n\
        files = [{ root = \"$workspace\" }]\nprocess = [{ program = \"sh\" }]",
    );
    sandbox.home_file("grants.toml", grants);
    let refused = sandbox.scripted(&no_call()).args(named).arg("go").run().code(3);
    assert!(refused.stderr.contains("secrets"), "{}", refused.stderr);
}

#[test]
fn a_secret_that_is_kept_is_the_users_from_then_on_and_never_worked_out() {
    let sandbox = with_secrets(&json!({"mine": "!echo mine"}));
    let trap = format!("!touch {}", sandbox.root().join("ran").display());
    let gave = steps(
        &sandbox,
        &json!([
            {"saveSecret": {"name": "shown/new", "value": trap}},
            {"revealedBytes": "shown/new"},
            {"saveSecret": {"name": "kept/new", "value": CANARY}},
            {"call": {"tool": "bash", "arguments": {"command": format!("echo {CANARY}")}}},
            {"try": {"saveSecret": {"name": "kept/new", "value": ""}}},
        ]),
    );
    assert_eq!(gave[1], json!(trap.len()));
    assert_eq!(gave[3]["text"], "[secret]\n");
    assert_eq!(gave[4]["code"], "invalid-arguments");
    // Another process has it as it was given.
    assert_eq!(steps(&sandbox, &json!([{"revealedBytes": "shown/new"}]))[0], json!(trap.len()));
    assert!(!sandbox.root().join("ran").exists());
    let path = sandbox.atoll_home().join("secrets.json");
    let kept: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!((&kept["mine"], &kept["kept/new"]), (&json!("!echo mine"), &json!(CANARY)));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn keeping_secrets_without_end_ends_at_a_limit_and_loses_none() {
    let sandbox = with_secrets(&json!({"mine": "as it was"}));
    let many: Vec<Value> = (0..30)
        .map(|number| json!({"try": {"saveSecret": {"name": format!("kept/{number}"), "value": "x", "repeat": 60 << 10}}}))
        .collect();
    let gave = steps(&sandbox, &Value::from(many));
    let refused = gave.as_array().unwrap().iter().filter(|gave| gave["code"] == "failed").count();
    assert!((1..30).contains(&refused), "{refused}");
    let kept: Value =
        serde_json::from_str(&fs::read_to_string(sandbox.atoll_home().join("secrets.json")).unwrap()).unwrap();
    assert_eq!((kept.as_object().unwrap().len(), &kept["mine"]), (31 - refused, &json!("as it was")));
}
