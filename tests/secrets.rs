//! Secrets of the user's by name: they reach a server that the plugin may ask, in a header, and nobody else.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use crate::common::{
    Sandbox,
    plugins::{self, MISBEHAVE_TOML},
    server::{Reply, Server},
};

const CANARY: &str = "sk-by-name-71c0ffee";

/// A sandbox whose plugin asks for two secrets and the network, and is granted `wants`.
fn sandbox(wants: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let secrets = "[[secrets]]\nname = \"KEY\"\nreason = \"to be known\"\n\n[[secrets]]\nname = \"RUN\"\n\
                   reason = \"to be known\"\n\n# Small,";
    let component = plugins::misbehave();
    sandbox.plugin("misbehave", &component, Some(&MISBEHAVE_TOML.replace("# Small,", secrets)));
    // It imports these too, and is not loaded without.
    let rest = "files = [{ root = \"$workspace\", access = \"read-write\" }]\nprocess = [{ program = \"/bin/true\" }]";
    sandbox.grant("misbehave", &component, &format!("{rest}\n{wants}"));
    let command = format!("!touch {}; echo {CANARY}", sandbox.root().join("ran").display());
    let path = sandbox.home_file("secrets.json", json!({"KEY": "$BY_NAME", "RUN": command, "OTHER": "x"}).to_string());
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    sandbox
}

fn fetch(sandbox: &Sandbox, server: &Server, name: &str) -> Value {
    let headers = json!({"authorization": format!("Bearer {{{{secret:{name}}}}}")});
    let arguments = json!({"how": "fetch", "target": format!("{}/", server.origin()), "headers": headers}).to_string();
    let run = sandbox.atoll().env("BY_NAME", CANARY).args(["tool", "call", "misbehave", &arguments, "--json"]).run();
    run.json()
}

fn text(record: &Value) -> String {
    crate::common::text_of(&record["content"])
}

fn log(sandbox: &Sandbox) -> String {
    fs::read_to_string(sandbox.atoll_home().join("audit.log")).unwrap()
}

#[test]
fn a_granted_secret_is_sent_to_a_granted_server_and_said_nowhere() {
    let sandbox =
        sandbox("http = [{ origin = \"http://127.0.0.1:*\" }]\nsecrets = [{ name = \"KEY\" }, { name = \"RUN\" }]");
    for name in ["KEY", "RUN"] {
        // A server that says it back: the plugin can see it then, and nobody after it does.
        let server = Server::start(vec![Reply::status(200, &[], &format!("you sent {CANARY}"))]);
        let record = fetch(&sandbox, &server, name);
        assert_eq!(record["isError"], false, "{record:#}");
        let expected = format!("Bearer {CANARY}");
        assert_eq!(server.requests()[0].header("authorization"), Some(expected.as_str()), "{name}");
        assert!(text(&record).contains("you sent [secret]") && !record.to_string().contains(CANARY), "{record:#}");
        let data = json!({"body": ["you sent [secret]"], "you sent [secret]": true});
        assert_eq!((&record["details"], &record["structuredContent"]), (&data, &data));
    }
    let log = log(&sandbox);
    assert!(!log.contains(CANARY), "{log}");
    assert!(log.contains("\"secrets\"") && log.contains("\"KEY\""), "{log}");
}

#[test]
fn without_a_grant_or_a_wish_it_is_not_even_looked_up_and_the_command_that_is_told_gives_it() {
    let sandbox = sandbox("http = [{ origin = \"http://127.0.0.1:*\" }]");
    let server = Server::start(vec![Reply::status(200, &[], "ok")]);
    let denied = text(&fetch(&sandbox, &server, "RUN"));
    let command = denied.split("to allow it: ").nth(1).unwrap_or_else(|| panic!("{denied}")).to_owned();
    assert!(command.contains("atoll plugin grant misbehave --secret RUN"), "{denied}");
    let unasked = text(&fetch(&sandbox, &server, "OTHER"));
    assert!(unasked.contains("does not ask for it"), "{unasked}");
    assert!(!sandbox.root().join("ran").exists(), "a value nobody may use is not had");
    assert!(server.requests().is_empty());
    sandbox.shell(&command).ok();
    assert_eq!(fetch(&sandbox, &server, "RUN")["isError"], false);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn it_is_not_sent_to_a_server_that_is_not_granted_nor_by_a_redirect() {
    let elsewhere = Server::start(vec![Reply::status(200, &[], "got it")]);
    let to = format!("{}/", elsewhere.origin());
    let server = Server::start(vec![Reply::status(302, &[("location", &to)], "")]);
    let wants = format!("http = [{{ origin = \"{}\" }}]\nsecrets = [{{ name = \"KEY\" }}]", server.origin());
    let sandbox = sandbox(&wants);
    assert!(text(&fetch(&sandbox, &elsewhere, "KEY")).contains("not allowed: http"));
    // The answer of the one that is granted is the redirect itself, or a denial.
    fetch(&sandbox, &server, "KEY");
    assert_eq!(server.requests().len(), 1);
    assert!(elsewhere.requests().is_empty());
}

#[test]
fn values_that_others_can_read_or_that_are_not_there_are_errors_in_one_line() {
    let sandbox = sandbox("http = [{ origin = \"http://127.0.0.1:*\" }]\nsecrets = [{ name = \"KEY\" }]");
    let server = Server::start(vec![]);
    let path = sandbox.atoll_home().join("secrets.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(text(&fetch(&sandbox, &server, "KEY")).contains("chmod 600"));
    fs::remove_file(&path).unwrap();
    let said = text(&fetch(&sandbox, &server, "KEY"));
    assert!(said.contains("no secret KEY") && said.contains("secrets.json"), "{said}");
    assert!(server.requests().is_empty());
}
