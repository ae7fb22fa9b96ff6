//! The audit log: every use of a capability is in it, what was denied too, and no secret ever is.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use crate::common::{
    Sandbox, json_lines,
    sandbox::KEY,
    server::{Reply, Server},
};

impl Sandbox {
    /// The entries of the log, oldest first.
    fn audit(&self) -> Vec<Value> {
        let path = self.atoll_home().join("audit.log");
        fs::read_to_string(&path).map(|text| json_lines(&text)).unwrap_or_default()
    }

    /// The entries about one capability, without what differs from run to run.
    fn used(&self, capability: &str) -> Vec<Value> {
        let mut entries = self.audit();
        entries.retain(|entry| entry["capability"] == capability);
        for entry in &mut entries {
            let time = entry.as_object_mut().unwrap().remove("time").unwrap();
            assert_eq!(time.as_str().unwrap().len(), 24, "{time}");
        }
        entries
    }
}

#[test]
fn a_read_that_was_allowed_is_in_the_log_with_its_bytes() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("a.txt", "twelve bytes");
    sandbox.good_call("read", &json!({"path": "a.txt"}));
    assert_eq!(
        sandbox.used("files"),
        [json!({"plugin": "read", "capability": "files", "operation": "open", "target": file, "allowed": true,
            "bytes": 12, "call": "call-1"})]
    );
    let mode = fs::metadata(sandbox.atoll_home().join("audit.log")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_read_that_was_denied_is_in_the_log() {
    let sandbox = Sandbox::new();
    sandbox.bad_call("read", &json!({"path": "/etc/passwd"}));
    let denied = sandbox.used("files");
    assert!(!denied.is_empty());
    for entry in &denied {
        assert_eq!((&entry["target"], &entry["allowed"]), (&json!("/etc/passwd"), &json!(false)), "{entry:#}");
    }
    // Not even a look at what belongs to atoll goes unseen.
    sandbox.bad_call("read", &json!({"path": sandbox.atoll_home().join("grants.toml")}));
    assert_eq!(sandbox.used("files").last().unwrap()["allowed"], false);
}

#[test]
fn a_process_is_in_the_log_without_the_secrets_of_its_command() {
    let sandbox = Sandbox::new();
    let command = format!("printf %s {KEY} --password hunter2; MY_TOKEN=abcdef true");
    sandbox.good_call("bash", &json!({"command": command}));
    let started = sandbox.used("process");
    assert_eq!(started.len(), 1, "{started:#?}");
    let target = started[0]["target"].as_str().unwrap();
    assert!(target.contains("printf %s [redacted] --password [redacted]; MY_TOKEN=[redacted] true"), "{target}");
}

#[test]
fn a_request_with_a_key_is_in_the_log_and_the_key_is_not() {
    let sandbox = Sandbox::new();
    let server = Server::start(vec![Reply::calls(&[("bash", &format!("{{\"command\": \"echo {KEY}x\"}}"))]), {
        Reply::text("done")
    }]);
    sandbox.model_behind(&server);
    sandbox.atoll().args(["-p", "go"]).run().ok();
    let asked = sandbox.used("http");
    assert_eq!(asked.len(), 2, "{asked:#?}");
    assert_eq!(asked[0]["plugin"], "openai-completions");
    assert_eq!(asked[0]["operation"], "POST");
    assert_eq!(asked[0]["target"], format!("{}/v1/chat/completions", server.origin()));
    assert!(asked[0]["bytes"].as_u64().unwrap() > 100, "{asked:#?}");
    assert_eq!(sandbox.used("secrets")[0]["target"], "mock-key");
    let session = sandbox.session()[0]["id"].clone();
    assert!(sandbox.audit().iter().all(|entry| entry["session"] == session), "{:#?}", sandbox.audit());
    let text = fs::read_to_string(sandbox.atoll_home().join("audit.log")).unwrap();
    assert!(!text.contains(KEY) && text.contains("echo [redacted]x"), "{text}");
}

#[test]
fn a_search_of_many_files_is_a_few_entries_with_counts() {
    let sandbox = Sandbox::new();
    for number in 0..400 {
        sandbox.file(&format!("src/{number}.txt"), "nothing in it\n");
    }
    sandbox.good_call("grep", &json!({"pattern": "needle"}));
    let entries = sandbox.used("files");
    assert!(entries.len() <= 6, "{entries:#?}");
    let counted: u64 = entries
        .iter()
        .filter(|entry| entry["bytes"].is_u64())
        .map(|entry| entry.get("count").map_or(1, |count| count.as_u64().unwrap()))
        .sum();
    let bytes: u64 = entries.iter().filter_map(|entry| entry["bytes"].as_u64()).sum();
    assert_eq!((counted, bytes), (400, 400 * 14), "{entries:#?}");
}

#[test]
fn a_full_log_is_set_aside_and_a_bounded_number_of_files_is_kept() {
    let sandbox = Sandbox::new();
    sandbox.settings(&json!({"audit": {"maxBytes": 600}}));
    sandbox.file("a.txt", "x");
    for _ in 0..12 {
        sandbox.good_call("read", &json!({"path": "a.txt"}));
    }
    let mut logs: Vec<_> = fs::read_dir(sandbox.atoll_home())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("audit.log"))
        .collect();
    logs.sort();
    assert_eq!(logs, ["audit.log", "audit.log.1", "audit.log.2", "audit.log.3", "audit.log.lock"]);
    for name in &logs {
        assert!(fs::metadata(sandbox.atoll_home().join(name)).unwrap().len() <= 600, "{name}");
    }
    // All that is kept is shown.
    let kept: usize =
        logs.iter().map(|name| json_lines(&fs::read_to_string(sandbox.atoll_home().join(name)).unwrap()).len()).sum();
    assert!(kept >= 4, "{kept}");
    let shown = sandbox.atoll().args(["plugin", "log", "--json"]).run().ok();
    assert_eq!(json_lines(&shown.stdout).len(), kept);
}

#[test]
fn two_atolls_at_once_write_whole_lines_into_one_log() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "x");
    let arguments = json!({"path": "a.txt"}).to_string();
    let running: Vec<_> = (0..8).map(|_| sandbox.atoll().args(["tool", "call", "read", &arguments]).start()).collect();
    for run in running {
        run.wait().ok();
    }
    assert_eq!(sandbox.used("files").len(), 8);
}

#[test]
fn a_log_that_can_not_be_written_is_one_warning_and_no_failure() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "x");
    fs::create_dir(sandbox.atoll_home().join("audit.log")).unwrap();
    let arguments = json!({"path": "a.txt"}).to_string();
    let run = sandbox.atoll().args(["tool", "call", "read", &arguments]).run().ok();
    assert!(run.one_line().contains("audit.log can not be written"), "{run:#?}");
    assert_eq!(run.stdout, "x\n");
    sandbox.settings(&json!({"audit": {"enabled": false}}));
    sandbox.atoll().args(["tool", "call", "read", &arguments]).run().ok().silent();
}

#[test]
fn a_log_is_filtered_and_shown_as_a_table() {
    let sandbox = Sandbox::new();
    let shown = |arguments: &[&str]| sandbox.atoll().args(["plugin", "log"]).args(arguments).run().ok().silent().stdout;
    assert_eq!(shown(&[]).lines().count(), 1, "an empty log is a heading");
    sandbox.file("a.txt", "x");
    sandbox.good_call("read", &json!({"path": "a.txt"}));
    sandbox.bad_call("write", &json!({"path": "/etc/x\n\u{1b}[31m", "content": "x"}));
    let table = shown(&[]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("TIME (UTC)") && lines[0].ends_with("TARGET"), "{table}");
    assert!(lines[1].contains(" read ") && lines[1].contains(" allowed ") && lines[1].ends_with("a.txt"), "{table}");
    assert!(lines[2].contains(" denied ") && lines[2].ends_with("/etc/x\\n\\u{1b}[31m"), "{table}");
    assert_eq!(shown(&["--denied"]).lines().count(), lines.len() - 1, "{table}");
    assert_eq!(shown(&["--plugin", "read"]).lines().count(), 2);
    assert_eq!(shown(&["--plugin", "read", "--denied", "--json"]), "");
    assert_eq!(shown(&["--since", "1h"]), table);
    assert_eq!(shown(&["--since", "0s"]).lines().count(), 1);
    let wrong = sandbox.atoll().args(["plugin", "log", "--since", "soon"]).run().code(2);
    assert!(wrong.stderr.contains("15m"), "{wrong:#?}");
}

#[test]
fn a_log_that_is_followed_shows_what_comes() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "x");
    let following = sandbox.atoll().args(["plugin", "log", "--follow"]).start();
    following.wait_for_output("TARGET");
    sandbox.good_call("read", &json!({"path": "a.txt"}));
    following.wait_for_output("a.txt");
    following.signal(rustix::process::Signal::INT);
    following.wait().code(130);
}
