//! Model providers and MCP servers that extensions add to the session.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use crate::common::{
    Command, Sandbox,
    plugins::{digest, test_plugin},
    puppets::no_call,
    server::{Reply, Server},
};

const CANARY: &str = "sk-added-77aa11bb";

/// A puppet that adds a provider when it starts.
fn adding(config: &Value) -> Value {
    json!({"start": [{"provider": {"name": "added", "config": config}}]})
}

fn config(server: &Server) -> Value {
    json!({
        "baseUrl": format!("{}/v1", server.origin()), "api": "openai-completions", "apiKey": "kept/key",
        "headers": {"x-from": "the-puppet"}, "models": [{"id": "m", "contextWindow": 1000}],
    })
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let path = sandbox.home_file("secrets.json", json!({"kept/key": CANARY, "other": CANARY}).to_string());
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    sandbox
}

fn run(sandbox: &Sandbox, does: &Value) -> Command {
    let named = sandbox.puppets(&[("puppet", does.clone())]);
    sandbox.atoll().args(named)
}

#[test]
fn a_model_that_an_extension_adds_can_be_asked_by_name_and_is_listed() {
    let server = Server::start(vec![Reply::text("from the added one"), Reply::text("again")]);
    let sandbox = sandbox();
    let mut does = adding(&config(&server));
    does["commands"] = json!({"list": [{"models": 1}, {"describeSession": 1}], "drop": [{"dropProvider": "added"}]});
    does["record"] = json!("store");
    let ran = run(&sandbox, &does).args(["--model", "added/m", "-p", "/list", "hello"]).run().ok();
    assert!(ran.stdout.contains("from the added one"), "{}", ran.stdout);
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization"), Some(format!("Bearer {CANARY}").as_str()));
    assert_eq!(request.header("x-from"), Some("the-puppet"));
    let told = sandbox.told_in_store("puppet");
    let (_, listed) = told.iter().find(|(name, _)| name == "command-end").unwrap();
    assert_eq!(listed["gave"][0][0], "added/m");
    assert_eq!(listed["gave"][1]["model"], "added/m");
    for file in sandbox.session_files() {
        assert!(!fs::read_to_string(file).unwrap().contains(CANARY));
    }
    // A session goes on with it, once it is there again.
    let ran = run(&sandbox, &does).args(["-c", "-p", "go on"]).run().ok();
    assert!(ran.stdout.contains("again"), "{}", ran.stdout);
    assert!(!ran.stderr.contains("not set up"), "{}", ran.stderr);
    let gone = run(&sandbox, &does).args(["--model", "nobodys/m", "-p", "hello"]).run().code(1);
    assert!(gone.one_line().contains("there is no provider `nobodys`"), "{}", gone.stderr);
    assert!(gone.one_line().contains("added"), "{}", gone.stderr);
}

#[test]
fn an_extension_switches_to_a_model_it_adds_and_takes_it_away_again() {
    let server = Server::start(vec![Reply::text("from the added one")]);
    let sandbox = sandbox();
    let does = json!({"record": "store", "commands": {
        "add": [{"provider": {"name": "added", "config": config(&server)}}, {"model": "added/m"}],
        "drop": [{"dropProvider": "added"}, {"try": {"dropProvider": "added"}}, {"try": {"model": "added/m"}}],
    }});
    let named = sandbox.puppets(&[("puppet", does)]);
    let ran = sandbox.scripted(&no_call()).args(named).args(["/add", "hello", "/drop"]).run().ok();
    assert!(ran.stdout.contains("from the added one"), "{}", ran.stdout);
    let told = sandbox.told_in_store("puppet");
    let (_, dropped) = told.iter().rfind(|(name, _)| name == "command-end").unwrap();
    assert_eq!(dropped["gave"][1]["code"], "not-found", "{dropped}");
    assert_eq!(dropped["gave"][2]["code"], "not-found", "{dropped}");
}

#[test]
fn a_provider_is_not_sent_more_than_its_extension_could_send_itself() {
    let server = Server::start(Vec::new());
    let sandbox = sandbox();
    sandbox.model_behind(&server);
    let good = config(&server);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut config = good.clone();
        change(&mut config);
        config
    };
    let cases = [
        ("mine", with(&|config| config["baseUrl"] = json!("https://elsewhere.example/v1")), "denied"),
        ("mine", with(&|config| config["models"][0]["baseUrl"] = json!("https://elsewhere.example/v1")), "denied"),
        ("mine", with(&|config| config["baseUrl"] = json!("file:///etc/passwd")), "invalid-arguments"),
        ("mine", with(&|config| config["apiKey"] = json!("other")), "denied"),
        ("mine", with(&|config| config["apiKey"] = json!("$HOME")), "denied"),
        ("mine", with(&|config| config["apiKey"] = json!("!touch ran")), "denied"),
        ("mine", with(&|config| config["apiKey"] = json!(["x"])), "invalid-arguments"),
        ("mine", with(&|config| config["apiKey"] = json!("kept/missing")), "not-found"),
        ("mine", with(&|config| config["headers"]["x"] = json!("$HOME")), "invalid-arguments"),
        ("mine", with(&|config| config["headers"]["x"] = json!("{{secret:mock-key}}")), "invalid-arguments"),
        ("mine", with(&|config| config["models"] = json!([])), "invalid-arguments"),
        ("mine", json!("x".repeat(70 << 10)), "invalid-arguments"),
        ("mock", good.clone(), "invalid-arguments"),
        ("openai", good.clone(), "invalid-arguments"),
        ("a/b", good.clone(), "invalid-arguments"),
    ];
    let steps: Vec<Value> =
        cases.iter().map(|(name, config, _)| json!({"try": {"provider": {"name": name, "config": config}}})).collect();
    let many = (0..110).map(|number| json!({"try": {"provider": {"name": format!("n{number}"), "config": good}}}));
    let steps: Vec<Value> = steps.into_iter().chain(many).collect();
    let arguments = json!({"steps": steps}).to_string();
    let gave = run(&sandbox, &json!({})).args(["tool", "call", "puppet", &arguments]).run().ok();
    let gave: Value = serde_json::from_str(&gave.stdout).unwrap();
    for (at, (name, config, code)) in cases.iter().enumerate() {
        // A command without a model has none of the user's.
        let code = if *name == "mock" { "" } else { code };
        assert_eq!(gave[at]["code"].as_str().unwrap_or_default(), code, "{name} {config}: {}", gave[at]);
    }
    assert_eq!(gave.as_array().unwrap().iter().filter(|gave| gave["code"] == "limit").count(), 11);
    assert!(!gave.to_string().contains(CANARY));
    assert!(server.requests().is_empty() && !sandbox.work().join("ran").exists());
    let log = fs::read_to_string(sandbox.atoll_home().join("audit.log")).unwrap();
    assert!(log.contains("\"providers\"") && log.contains("https://elsewhere.example/v1"), "{log}");
}

#[test]
fn a_provider_of_the_users_is_never_replaced() {
    let (server, other) = (Server::start(vec![Reply::text("from the user's")]), Server::start(Vec::new()));
    let sandbox = sandbox();
    sandbox.model_behind(&server);
    let does = json!({"start": [{"try": {"provider": {"name": "mock", "config": config(&other)}}}]});
    let ran = run(&sandbox, &does).args(["--model", "mock/m", "-p", "hello"]).run().ok();
    assert!(ran.stdout.contains("from the user's") && other.requests().is_empty(), "{}", ran.stdout);
}

#[test]
fn servers_are_told_to_whoever_subscribed_and_each_changes_its_own() {
    let sandbox = Sandbox::new();
    let adder = json!({"commands": {
        "add": [{"server": {"name": "files", "config": {"command": "serve", "args": ["x"]}}}, {"servers": 1}],
        "drop": [{"dropServer": "files"}, {"try": {"dropServer": "files"}}],
    }, "record": "store"});
    let connector = json!({"events": ["mcp-servers-change"], "record": "store", "commands": {
        "take": [{"try": {"server": {"name": "files", "config": {}}}}, {"try": {"dropServer": "files"}}, {"servers": 1}],
    }});
    let named = sandbox.puppets(&[("adder", adder), ("connector", connector)]);
    sandbox.scripted(&no_call()).args(named).args(["/add", "/take", "/drop"]).run().ok();
    let told = sandbox.told_in_store("connector");
    let changes: Vec<&Value> =
        told.iter().filter(|(name, _)| name == "mcp-servers-change").map(|(_, fields)| fields).collect();
    let config = json!({"command": "serve", "args": ["x"]});
    assert_eq!(
        changes,
        [&json!({"servers": [{"name": "files", "plugin": "adder", "config": config}]}), &json!({"servers": []})]
    );
    let (_, took) = told.iter().find(|(name, _)| name == "command-end").unwrap();
    assert_eq!(
        (&took["gave"][0]["code"], &took["gave"][1]["code"]),
        (&json!("invalid-arguments"), &json!("not-found"))
    );
    assert_eq!(took["gave"][2], json!([["files", "adder", config.to_string()]]));
    let told = sandbox.told_in_store("adder");
    let (_, dropped) = told.iter().rfind(|(name, _)| name == "command-end").unwrap();
    assert_eq!(dropped["gave"][1]["code"], "not-found");
}

#[test]
fn floods_of_servers_and_bad_ones_end_at_a_limit() {
    let sandbox = Sandbox::new();
    let bad = [
        json!({"name": "", "config": {}}),
        json!({"name": "a b", "config": {}}),
        json!({"name": "a", "config": []}),
        json!({"name": "a", "config": {"x": "y".repeat(70 << 10)}}),
    ];
    let many = (0..110).map(|number| json!({"name": format!("s{number}"), "config": {}}));
    let steps: Vec<Value> = bad.into_iter().chain(many).map(|server| json!({"try": {"server": server}})).collect();
    let arguments = json!({"steps": steps}).to_string();
    let gave = run(&sandbox, &json!({})).args(["tool", "call", "puppet", &arguments]).run().ok();
    let gave: Value = serde_json::from_str(&gave.stdout).unwrap();
    let count = |code: &str| gave.as_array().unwrap().iter().filter(|gave| gave["code"] == code).count();
    assert_eq!((count("invalid-arguments"), count("limit")), (4, 10), "{gave}");
}

/// The puppet `a` among the user's extensions, which adds a provider and a server, and one that does this to it.
fn adds_beside(server: &Server, change: &str) -> Sandbox {
    let sandbox = sandbox();
    let mut a = adding(&config(server));
    a["start"].as_array_mut().unwrap().push(json!({"server": {"name": "files", "config": {"command": "serve"}}}));
    let b = json!({"events": ["mcp-servers-change"], "record": "store", "commands": {
        "change": [{"call": {"tool": "bash", "arguments": {"command": change}}}],
        "look": [{"models": 1}, {"servers": 1}],
    }});
    for name in ["a", "b"] {
        sandbox.loose_puppet(name);
    }
    sandbox.direct(&[("a", a), ("b", b.clone())]);
    let digest = digest(&test_plugin("puppet"));
    let grant = |name: &str| format!("[plugin.{name}]\nsha256 = \"{digest}\"\nall = true\n");
    sandbox.home_file("grants.toml", grant("a") + &grant("b"));
    // What the settings may be changed to.
    let with = |start: Value| json!({"pluginSettings": {"a": {"start": start}, "b": b}}).to_string();
    sandbox.file("adds-nothing.json", with(json!([])));
    sandbox.file("fails.json", with(json!([{"provider": {"name": "more", "config": config(server)}}, {"fail": "no"}])));
    sandbox
}

/// What there is of models and servers, as `b` saw it last.
#[track_caller]
fn seen_by_b(sandbox: &Sandbox) -> (bool, bool, Value) {
    let told = sandbox.told_in_store("b");
    let (_, end) = told.iter().rfind(|(name, fields)| name == "command-end" && fields["name"] == "look").unwrap();
    let models = end["gave"][0].as_array().unwrap();
    let last = told.iter().rfind(|(name, _)| name == "mcp-servers-change");
    let last = last.map_or(Value::Null, |(_, fields)| fields["servers"].clone());
    (models.contains(&json!("added/m")), end["gave"][1] != json!([]), last)
}

#[test]
fn providers_and_servers_of_an_extension_go_with_it() {
    for (change, told) in [
        ("rm \"$ATOLL_HOME/extensions/a.wasm\"", json!([])),
        // Of what another version leaves out, it was the `b` before this one that was told.
        ("cp adds-nothing.json \"$ATOLL_HOME/settings.json\"", Value::Null),
    ] {
        let server = Server::start(vec![Reply::text("from the added one")]);
        let sandbox = adds_beside(&server, change);
        let prompts = ["hello", "/change", "/reload", "/look", "hello again"];
        let ran = sandbox.atoll().args(["--model", "added/m", "-p"]).args(prompts).run().code(1);
        assert!(ran.stdout.contains("from the added one"), "{change}: {ran:#?}");
        assert!(ran.stderr.contains("there is no provider `added`"), "{change}: {ran:#?}");
        assert_eq!(server.requests().len(), 1, "{change}");
        assert_eq!(seen_by_b(&sandbox), (false, false, told), "{change}");
    }
}

#[test]
fn providers_and_servers_of_one_that_goes_on_stay() {
    let server = Server::start((0..2).map(|_| Reply::text("from the added one")).collect());
    let sandbox = adds_beside(&server, "cp fails.json \"$ATOLL_HOME/settings.json\"");
    let prompts = ["hello", "/change", "/reload", "/look", "hello again"];
    let ran = sandbox.atoll().args(["--model", "added/m", "-p"]).args(prompts).run().ok();
    assert!(ran.stderr.contains("the plugin a goes on as it was: no"), "{ran:#?}");
    assert_eq!(server.requests().len(), 2);
    let (models, servers, _) = seen_by_b(&sandbox);
    assert!(models && servers);
    let told = sandbox.stored("b", "told").unwrap();
    assert!(!told.contains("more/m"), "what the one that failed had added is gone: {told}");
}

#[test]
fn without_a_grant_of_them_one_that_adds_providers_or_servers_is_not_loaded() {
    for capability in ["providers", "servers"] {
        let sandbox = Sandbox::new();
        let named = sandbox.puppets(&[("puppet", json!({}))]);
        let others = ["providers", "servers"].into_iter().filter(|other| *other != capability);
        let flags: String = others.map(|other| format!("{other} = {{}}\n")).collect();
        let rest = "files = [{ root = \"$workspace\" }]\nprocess = [{ program = \"sh\" }]\n\
                    secrets = [{ name = \"shown/*\", reveal = true }]\n\
                    config = [{ file = \"puppet.json\" }]\nlistener = {}";
        sandbox.home_file("grants.toml", sandbox.grants().replace("all = true", &format!("{flags}{rest}")));
        let refused = sandbox.scripted(&no_call()).args(named).arg("go").run().code(3);
        assert!(refused.stderr.contains(&format!("--{capability}")), "{}", refused.stderr);
    }
}
