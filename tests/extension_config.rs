//! Files of configuration that users write for extensions, what a command prints, and locks that processes share.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::common::{
    Sandbox,
    puppets::{no_call, one_call},
    text_of,
};

const CANARY: &str = "a-token-of-the-users-77";

/// What the steps of a call give.
#[track_caller]
fn steps(sandbox: &Sandbox, arguments: &[&str], steps: &Value) -> Value {
    let named = sandbox.puppets(&[("puppet", json!({}))]);
    let call = json!({"steps": steps}).to_string();
    let run = sandbox.atoll().env("TOKEN", CANARY).env("OTHER", "another value");
    let run = run.args(arguments).args(named).args(["tool", "call", "puppet", &call, "--json"]).run().ok();
    serde_json::from_str(&text_of(&run.json()["content"])).unwrap()
}

fn audit(sandbox: &Sandbox) -> String {
    fs::read_to_string(sandbox.atoll_home().join("audit.log")).unwrap()
}

#[test]
fn files_of_configuration_are_read_written_and_filled_in() {
    let sandbox = Sandbox::new();
    let text = "{\"a\": [\"Bearer $TOKEN\", \"!echo made; echo x >> ran\"]} // mine";
    let gave = steps(
        &sandbox,
        &["-a"],
        &json!([
            {"readConfig": "puppet.json"},
            {"writeConfig": {"file": "puppet.json", "text": text}},
            {"writeConfig": {"file": "puppet.json", "text": "[]", "project": true}},
            {"try": {"writeConfig": {"file": "puppet.json", "text": "lost", "expected": "another"}}},
            {"readConfig": "puppet.json"},
            {"resolvedBytes": {"file": "puppet.json", "value": "Bearer $TOKEN"}},
            {"resolve": {"file": "puppet.json", "value": "Bearer $TOKEN"}},
            {"resolvedBytes": {"file": "puppet.json", "value": "!echo made; echo x >> ran"}},
            {"try": {"resolve": {"file": "puppet.json", "value": "$OTHER"}}},
            {"try": {"resolve": {"file": "puppet.json", "value": "!echo x >> ran"}}},
            {"call": {"tool": "bash", "arguments": {"command": "echo $TOKEN"}}},
        ]),
    );
    let user = sandbox.atoll_home().join("puppet.json");
    let project = sandbox.work().join(".atoll/puppet.json");
    assert_eq!(gave[0], json!([]));
    assert_eq!((&gave[1], &gave[2]), (&json!(user), &json!(project)));
    assert_eq!(gave[3]["code"], "stale");
    let both = gave[4].as_array().unwrap();
    let shown = |at: usize| (both[at]["place"].clone(), both[at]["text"].clone(), both[at]["trusted"].clone());
    assert_eq!(shown(0), (json!("Place::User"), json!(text), json!(true)));
    assert_eq!(shown(1), (json!("Place::Project"), json!("[]"), json!(true)));
    // It had the value, and what it says of it is taken out.
    assert_eq!((&gave[5], &gave[6]), (&json!("Bearer ".len() + CANARY.len()), &json!("Bearer [secret]")));
    assert_eq!(gave[7], json!(4));
    assert_eq!((&gave[8]["code"], &gave[9]["code"]), (&json!("denied"), &json!("denied")));
    assert_eq!(gave[10]["text"], "[secret]\n");
    assert_eq!(fs::read_to_string(sandbox.work().join("ran")).unwrap(), "x\n");
    assert_eq!(fs::metadata(&user).unwrap().permissions().mode() & 0o777, 0o600);
    let log = audit(&sandbox);
    assert!(!log.contains(CANARY) && log.contains("\"resolve\"") && log.contains("puppet.json"), "{log}");
}

#[test]
fn a_projects_file_counts_only_with_trust_and_no_other_file_is_to_be_had() {
    let sandbox = Sandbox::new();
    sandbox.file(".atoll/puppet.json", "[\"$TOKEN\", \"!touch ran\"]");
    let names = ["settings.json", "secrets.json", "other.json", "../puppet.json", "/etc/passwd", "", "Puppet.json"];
    let mut all = vec![
        json!({"readConfig": "puppet.json"}),
        json!({"try": {"resolve": {"file": "puppet.json", "value": "$TOKEN"}}}),
        json!({"try": {"resolve": {"file": "puppet.json", "value": "!touch ran"}}}),
        json!({"try": {"writeConfig": {"file": "puppet.json", "text": "", "project": true}}}),
    ];
    all.extend(names.map(|name| json!({"try": {"readConfig": name}})));
    all.extend(names.map(|name| json!({"try": {"writeConfig": {"file": name, "text": "mine"}}})));
    let gave = steps(&sandbox, &["-na"], &Value::from(all));
    let gave = gave.as_array().unwrap();
    assert_eq!(gave[0][0]["trusted"], json!(false));
    assert_eq!((gave[0][0]["text"].as_str(), gave[0].as_array().unwrap().len()), (Some(""), 1));
    for gave in &gave[1..] {
        assert_eq!(gave["code"], "denied", "{gave}");
    }
    assert!(gave[3]["message"].as_str().unwrap().contains("atoll trust allow"), "{}", gave[3]);
    assert!(!sandbox.work().join("ran").exists());
    // With trust it is that very text.
    let gave = steps(&sandbox, &["-a"], &json!([{"resolvedBytes": {"file": "puppet.json", "value": "$TOKEN"}}]));
    assert_eq!(gave[0], json!(CANARY.len()));
}

#[test]
fn without_a_grant_of_it_one_that_has_files_of_configuration_is_not_loaded() {
    let sandbox = Sandbox::new();
    let named = sandbox.puppets(&[("puppet", json!({}))]);
    let call = ["tool", "call", "puppet", "{\"steps\": [{\"readConfig\": \"puppet.json\"}]}"];
    sandbox.atoll().args(named.clone()).args(call).run().ok();
    let revoked = sandbox.grants().replace("all = true", &crate::common::puppets::OUTWARD.replace("config", "#"));
    sandbox.home_file("grants.toml", revoked);
    let refused = sandbox.atoll().args(named).args(call).run().code(3);
    assert!(refused.stderr.contains("--config puppet.json"), "{}", refused.stderr);
    sandbox.installed_puppet("puppet");
    let bad = sandbox.atoll().args(["plugin", "grant", "puppet", "--config", "settings.json"]).run().code(1);
    assert!(bad.stderr.contains("Atoll's own"), "{}", bad.stderr);
}

#[test]
fn what_a_command_prints_is_on_standard_output_and_nowhere_among_events() {
    let sandbox = Sandbox::new();
    let puppet = json!({"commands": {"say": [{"print": "first"}, {"print": "second\n"}, {"print": "\u{1b}[2J"}]}});
    let named = sandbox.puppets(&[("puppet", puppet)]);
    let run = sandbox.scripted(&no_call()).args(named.clone()).arg("/say").run().ok();
    // Not a terminal's: as it is.
    assert_eq!(run.stdout, "first\nsecond\n\u{1b}[2J\n");
    let run = sandbox.scripted(&no_call()).args(named.clone()).args(["--mode", "json", "/say"]).run().ok();
    assert!(run.stdout.lines().all(|line| line.starts_with('{')) && !run.stdout.contains("second"), "{run:#?}");
    let call = ["tool", "call", "puppet", "{\"steps\": [{\"print\": \"said\"}]}"];
    let run = sandbox.atoll().args(named).args(call).run().ok();
    // Nobody asked it for that.
    assert_eq!(run.stdout, "[null]\n");
    assert!(run.stderr.contains("the plugin puppet: said"), "{run:#?}");
}

#[test]
fn a_lock_is_held_by_one_instance_of_all_processes_and_not_lost_with_its_holder() {
    let sandbox = Sandbox::new();
    // Within one process.
    let gave = steps(
        &sandbox,
        &[],
        &json!([
            {"locked": {"key": "a", "steps": [
                {"tryLock": {"key": "a", "ms": 60}},
                {"tryLock": {"key": "b", "ms": 20_000}},
            ]}},
            {"tryLock": {"key": "a", "ms": 20_000}},
            {"keys": ""},
            {"try": {"tryLock": {"key": "", "ms": 20_000}}},
        ]),
    );
    assert_eq!(gave, json!([[false, true], true, [], {"code": "invalid-arguments", "message": gave[3]["message"]}]));
    // Held by another process until that is killed.
    let waits = "touch held; until [ -e go ]; do sleep 0.02; done";
    let holds = json!([{"locked": {"key": "a", "steps": [
        {"call": {"tool": "bash", "arguments": {"command": waits}}},
    ]}}]);
    let named = sandbox.puppets(&[("puppet", json!({}))]);
    let call = json!({"steps": holds}).to_string();
    let mut holder = sandbox.atoll().args(named).args(["tool", "call", "puppet", &call]).into_std();
    let mut holder = holder.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until_there(&sandbox.work().join("held"));
    let tried = steps(&sandbox, &[], &json!([{"tryLock": {"key": "a", "ms": 60}}]));
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(tried[0], json!(false));
    assert_eq!(steps(&sandbox, &[], &json!([{"tryLock": {"key": "a", "ms": 20_000}}]))[0], json!(true));
    sandbox.file("go", "");
}

/// Waits for a file that another process makes.
#[track_caller]
fn until_there(path: &Path) {
    let end = Instant::now() + Duration::from_secs(30);
    while !path.exists() {
        assert!(Instant::now() < end, "{} does not come", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn whoever_connects_to_servers_learns_whether_their_owner_may_reach_them() {
    let sandbox = Sandbox::new();
    let server = json!({"server": {"name": "files", "config": {"command": "sh"}}});
    let spawn = |program: &str, variables: &[&str]| json!({"server": "files", "program": program, "arguments": ["-c", "true"], "variables": variables});
    let request = |method: &str, url: &str| json!({"server": "files", "method": method, "url": url});
    let asked = [
        (spawn("sh", &[]), "true"),
        (spawn("curl", &[]), "denied"),
        (spawn("sh", &["MORE"]), "denied"),
        (request("POST", "http://127.0.0.1:1/x"), "true"),
        (request("GET", "http://127.0.0.1:1/x"), "denied"),
        (request("POST", "http://elsewhere.example/"), "denied"),
        (request("POST", "nothing"), "invalid-arguments"),
        (json!({"server": "none", "program": "sh"}), "not-found"),
    ];
    let all: Vec<Value> = asked.iter().map(|(what, _)| json!({"try": {"permit": what}})).collect();
    let adder =
        json!({"record": "store", "commands": {"add": [server], "own": all, "drop": [{"dropServer": "files"}]}});
    let connector = json!({"events": ["mcp-servers-change"], "record": "store", "commands": {"ask": all}});
    let named = sandbox.puppets(&[("adder", adder), ("connector", connector)]);
    sandbox.scripted(&no_call()).args(named).args(["/add", "/ask", "/own", "/drop", "/ask"]).run().ok();
    let told = sandbox.told_in_store("connector");
    let answers: Vec<&Value> =
        told.iter().filter(|(name, _)| name == "command-end").map(|(_, fields)| &fields["gave"]).collect();
    for ((what, expected), gave) in asked.iter().zip(answers[0].as_array().unwrap()) {
        let code = gave["code"].as_str().map_or_else(|| gave.to_string(), str::to_owned);
        assert_eq!(code, *expected, "{what}: {gave}");
        // It is the one who added the server to whom it would have to be granted.
        let names_it = || gave["message"].as_str().unwrap().contains("atoll plugin grant adder");
        assert!(code != "denied" || names_it(), "{what}: {gave}");
    }
    // Once it is taken away, nobody owns it.
    let after = answers[1].as_array().unwrap();
    assert!(after.iter().all(|gave| gave["code"] == "not-found"), "{after:?}");
    // It is nobody's business who does not connect to servers.
    let told = sandbox.told_in_store("adder");
    let (_, own) = told.iter().find(|(name, fields)| name == "command-end" && fields["name"] == "own").unwrap();
    assert!(own["gave"].as_array().unwrap().iter().all(|gave| gave["code"] == "denied"), "{own}");
}

#[test]
fn a_value_that_was_filled_in_is_said_nowhere() {
    let sandbox = Sandbox::new();
    sandbox.home_file("puppet.json", "[\"$TOKEN\"]");
    let used = json!([
        {"resolvedBytes": {"file": "puppet.json", "value": "$TOKEN"}},
        {"append": {"type": "note", "data": {"k": CANARY}}},
        {"print": CANARY},
        {"notify": CANARY},
        {"log": CANARY},
    ]);
    let model = one_call("puppet", &json!({"steps": used}));
    let run =
        sandbox.with_puppets(&[("puppet", json!({}))], &model).env("TOKEN", CANARY).env("ATOLL_LOG", "plugin=trace");
    let run = run.arg("go").run().ok();
    let session = fs::read_to_string(&sandbox.session_files()[0]).unwrap();
    let made: String = session.lines().filter(|line| !line.contains("\"toolCall\"")).collect();
    for text in [made, audit(&sandbox), run.stdout, run.stderr.clone()] {
        assert!(!text.contains(CANARY), "{text}");
    }
    assert_eq!(run.stderr.matches("the plugin puppet: [secret]").count(), 2, "{}", run.stderr);
}

/// What is answered to a request for this on a port of this machine.
fn got(port: &str, target: &str) -> String {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    write!(stream, "GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The port in what a program prints on standard error, once it is there.
#[track_caller]
fn port_in(stderr: impl Read) -> String {
    let line = BufReader::new(stderr).lines().map_while(Result::ok).find(|line| line.contains("listens on "));
    let line = line.unwrap();
    line.rsplit("listens on ").next().unwrap().chars().take_while(char::is_ascii_digit).collect()
}

#[test]
fn one_request_is_listened_for_and_no_other_counts() {
    let sandbox = Sandbox::new();
    let named = sandbox.puppets(&[("puppet", json!({}))]);
    let listen = json!({"listen": {"path": "/back", "page": "<h1>Go back</h1>", "wait": [60_000, 1]}});
    let call = json!({"steps": [listen]}).to_string();
    let run = sandbox.atoll().env("ATOLL_LOG", "plugin=info").args(named).args(["tool", "call", "puppet", &call]);
    let mut run = run.into_std();
    let mut run = run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let port = port_in(run.stderr.take().unwrap());
    assert!(got(&port, "/elsewhere?code=x").starts_with("HTTP/1.1 404 "));
    assert!(got(&port, "/back?code=a&state=b").ends_with("<h1>Go back</h1>"));
    let done = run.wait_with_output().unwrap();
    let gave: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(gave, json!([["/back?code=a&state=b", "stale"]]));
    let log = audit(&sandbox);
    // That it listened is written down; what came is a secret for a while.
    assert!(log.contains("\"listener\"") && !log.contains("code=a"), "{log}");
    // A port that is taken, and what can not be listened for.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let gave = steps(
        &sandbox,
        &[],
        &json!([
            {"try": {"listen": {"port": port, "path": "/"}}},
            {"try": {"listen": {"path": "back"}}},
            {"try": {"listen": {"path": "/", "page": "x".repeat(70 << 10)}}},
        ]),
    );
    assert_eq!(gave[0]["code"], "unavailable", "{gave}");
    assert!(gave[0]["message"].as_str().unwrap().contains(&port.to_string()), "{gave}");
    assert_eq!((&gave[1]["code"], &gave[2]["code"]), (&json!("invalid-arguments"), &json!("invalid-arguments")));
}

#[test]
fn what_an_extension_logs_is_kept_in_a_file_of_its_own() {
    let sandbox = Sandbox::new();
    sandbox.home_file("puppet.json", "[\"$TOKEN\"]");
    let used =
        json!([{"resolvedBytes": {"file": "puppet.json", "value": "$TOKEN"}}, {"log": format!("it is {CANARY}\nso")}]);
    steps(&sandbox, &[], &used);
    let path = sandbox.atoll_home().join("logs/puppet.log");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.lines().count() == 1 && text.contains(" INFO  it is [secret]"), "{text}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    // It is no extension that does this.
    let sandbox = Sandbox::with_misbehave();
    sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(!sandbox.atoll_home().join("logs").exists());
}
