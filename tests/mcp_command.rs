//! `atoll mcp …`: servers put in and taken out, listed, tried and taken over.

use std::fs;

use serde_json::{Value, json};

use crate::common::{
    Finished, Sandbox,
    mcp::{Place, peer},
};

impl Sandbox {
    fn mcp(&self, line: &[&str]) -> Finished {
        self.atoll().arg("mcp").args(line).run()
    }

    fn mcp_json(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.atoll_home().join("mcp.json")).unwrap()).unwrap()
    }
}

#[test]
fn servers_are_put_in_and_taken_out_and_the_rest_of_the_file_stays() {
    let sandbox = Sandbox::new();
    let text = "// mine\n{\n    \"mcpServers\": {\n        \"a\": {\"command\": \"x\"}, // why\n    },\n}\n";
    let path = sandbox.home_file("mcp.json", text);
    let run = sandbox.mcp(&["add", "files", "--env", "KEY=${KEY}", "--", "npx", "-y", "server", "a b"]).ok();
    assert!(run.stdout.contains("Added files in ") && run.stdout.contains("atoll mcp test files"), "{run:#?}");
    sandbox.mcp(&["add", "docs", "https://example.com/mcp", "--bearer-token-env-var", "TOKEN"]).ok();
    insta::assert_snapshot!(fs::read_to_string(&path).unwrap());
    let run = sandbox.mcp(&["add", "files", "--", "other"]).ok();
    assert!(run.stdout.starts_with("Replaced files"), "{run:#?}");
    sandbox.mcp(&["remove", "files"]).ok();
    sandbox.mcp(&["remove", "docs"]).ok();
    let after = fs::read_to_string(&path).unwrap();
    assert!(after.starts_with("// mine\n") && after.contains("// why"), "{after}");
    // Where there is no file one begins, which nobody else reads.
    fs::remove_file(&path).unwrap();
    sandbox.mcp(&["add", "a", "--", "x"]).ok();
    assert_eq!(sandbox.mcp_json(), json!({"mcpServers": {"a": {"command": "x"}}}));
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn what_can_not_be_understood_changes_nothing_and_exits_with_two() {
    let sandbox = Sandbox::new();
    for (line, says) in [
        (&["add", "a", "npx"][..], "put -- before"),
        (&["add", "a b", "--", "x"], "a name has letters"),
        (&["add", "a", "https://x", "--exposure", "all"], "exposure"),
        (&["add", "a", "https://x", "--env", "A=b"], "--env is for a server that is a program"),
        (&["add", "a", "--", "x", "--env"], ""),
        (&["add", "a", "ftp://x"], "put -- before"),
        (&["nothing"], "there is no command"),
        (&["list", "--jsn"], "--jsn"),
        (&["import", "--from", "nobody"], "nobody"),
    ] {
        let run = sandbox.mcp(line);
        if says.is_empty() {
            fs::remove_file(sandbox.atoll_home().join("mcp.json")).unwrap();
            continue;
        }
        let run = run.code(2);
        assert!(run.one_line().contains(says), "{line:?}: {run:#?}");
        assert!(!sandbox.atoll_home().join("mcp.json").exists(), "{line:?}");
    }
    let run = sandbox.mcp(&["remove", "a"]).code(1);
    assert!(run.one_line().contains("there is no MCP server \"a\""), "{run:#?}");
    sandbox.home_file("mcp.json", "{\"mcpServers\": {\"peer\": {\"command\": \"x\"}}");
    let run = sandbox.mcp(&["add", "a", "--", "x"]).code(1);
    assert!(run.one_line().contains("mcp.json is left as it is"), "{run:#?}");
    sandbox.home_file("mcp.json", "{\"mcpServers\": {\"peer\": {\"command\": \"x\"}}}");
    let run = sandbox.mcp(&["remove", "pear"]).code(1);
    assert!(run.one_line().contains("\"peer\" meant"), "{run:#?}");
}

#[test]
fn help_is_that_of_the_command() {
    let sandbox = Sandbox::new();
    let all = sandbox.mcp(&["--help"]).ok().stdout;
    assert!(all.starts_with("Usage: atoll mcp COMMAND"), "{all}");
    for name in ["add", "remove", "list", "test", "import"] {
        let text = sandbox.mcp(&[name, "--help"]).ok().stdout;
        assert!(text.starts_with(&format!("Usage: atoll mcp {name}")), "{text}");
    }
}

#[test]
fn a_projects_file_is_changed_where_the_project_is_trusted() {
    let sandbox = Sandbox::new();
    let run = sandbox.mcp(&["add", "-l", "a", "--", "x"]).code(3);
    assert!(run.stderr.contains("trust"), "{run:#?}");
    sandbox.atoll().args(["-a", "mcp", "add", "-l", "a", "--", "x"]).run().ok();
    assert!(sandbox.read(".atoll/mcp.json").contains("\"a\""));
    let run = sandbox.atoll().args(["-a", "mcp", "remove", "a"]).run().code(1);
    assert!(run.one_line().contains("-l takes that one out"), "{run:#?}");
    sandbox.atoll().args(["-a", "mcp", "remove", "-l", "a"]).run().ok();
    assert!(!sandbox.read(".atoll/mcp.json").contains("\"a\""));
}

#[test]
fn a_list_connects_and_is_a_check() {
    let place = Place::with(&json!({
        "peer": {"command": peer(), "toolExposure": {"echo": "direct", "fail": "hidden"}},
        "off": {"command": "no-such-program", "enabled": false},
    }));
    let run = place.sandbox.mcp(&["list"]).ok();
    assert!(run.stdout.contains("peer  connected, ") && run.stdout.contains("echo (direct)"), "{run:#?}");
    assert!(!run.stdout.contains("fail"), "{run:#?}");
    let list = place.sandbox.mcp(&["list", "--json"]).ok().json();
    let row = list["servers"].as_array().unwrap().iter().find(|row| row["name"] == "peer").unwrap();
    assert_eq!(
        (&row["state"], &row["transport"], &row["scope"]),
        (&json!("connected"), &json!("stdio"), &json!("user"))
    );
    assert!(row["tools"].as_array().unwrap().contains(&json!("add")), "{row:#}");
    for (servers, says) in [
        (json!({"dead": {"command": peer(), "args": ["--die"]}}), "a server is not there"),
        (json!({"wrong": {"command": 1}}), "an entry is wrong"),
    ] {
        let place = Place::with(&servers);
        let run = place.sandbox.mcp(&["list"]).code(1);
        assert!(run.stderr.contains(says), "{run:#?}");
    }
}

#[test]
fn a_test_says_what_each_step_took_and_fails_with_the_server() {
    let place = Place::with(&json!({
        "peer": {"command": peer(), "args": ["--pid", "pids"]},
        "dead": {"command": peer(), "args": ["--die"], "enabled": false},
    }));
    let run = place.sandbox.mcp(&["test", "peer"]).ok();
    assert!(run.stdout.starts_with("peer: connected in ") && run.stdout.contains(" ms, "), "{run:#?}");
    let tried = place.sandbox.mcp(&["test", "--json"]).ok().json();
    assert_eq!((tried[0]["ok"].as_bool(), tried.as_array().unwrap().len()), (Some(true), 1), "{tried:#}");
    assert!(
        tried[0]["called"]["ms"].as_f64().is_some_and(|took| took > 0.0),
        "a tool that only reads was called: {tried:#}"
    );
    let run = place.sandbox.mcp(&["test", "dead"]).code(1);
    assert!(run.stdout.contains("dead: failed after ") && run.stdout.contains("no good reason"), "{run:#?}");
    let run = place.sandbox.mcp(&["test", "pear"]).code(1);
    assert!(run.one_line().contains("\"peer\" meant"), "{run:#?}");
}

#[test]
fn what_needs_no_server_starts_none() {
    let place = Place::of_peer(&["--pid", "pids"]);
    for line in [&["add", "b", "--", "x"][..], &["remove", "b"], &["--help"], &["import", "--from", "cursor"]] {
        place.sandbox.mcp(line);
    }
    assert!(place.lines("pids").is_empty());
}

#[test]
fn servers_of_other_programs_are_shown_and_then_taken_over() {
    let sandbox = Sandbox::new();
    let home = |name: &str, text: &str| {
        let path = sandbox.user_home().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    sandbox.file(".mcp.json", r#"{"mcpServers": {"shared": {"command": "npx", "args": ["-y", "a"]}}}"#);
    sandbox.file(".vscode/mcp.json", r#"{"servers": {"asks": {"command": "x", "env": {"K": "${input:api-key}"}}}}"#);
    sandbox.file(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"shared": {"command": "y"}, "old": {"url": "http://x/sse", "type": "sse"}}}"#,
    );
    home(".codex/config.toml", "[mcp_servers.docs]\nurl = \"https://x/mcp\"\nbearer_token_env_var = \"DOCS\"\n");
    home(
        ".claude.json",
        r#"{"numStartups": 3, "mcpServers": {"mine": {"command": "m", "env": {"TOKEN": "very-secret"}}}}"#,
    );
    home(
        ".config/Claude/claude_desktop_config.json",
        r#"{"mcpServers": {"desktop": {"command": "d", "args": ["x"]}}}"#,
    );
    home(
        ".config/opencode/opencode.json",
        r#"{"mcp": {"open": {"type": "local", "command": ["o", "p"], "environment": {"A": "{env:B}"}}}}"#,
    );
    let run = sandbox.mcp(&["import"]).ok();
    assert!(!run.stdout.contains("very-secret"), "{run:#?}");
    assert!(!sandbox.atoll_home().join("mcp.json").exists(), "it is only shown");
    let shown = run.stdout.replace(&sandbox.user_home().display().to_string(), "~");
    insta::assert_snapshot!(shown);
    let run = sandbox.mcp(&["import", "--yes"]).ok();
    assert!(run.stdout.contains("Written to "), "{run:#?}");
    insta::assert_json_snapshot!(sandbox.mcp_json());
    let run = sandbox.mcp(&["import", "--yes"]).ok();
    assert!(run.stdout.contains("nothing to take over"), "{run:#?}");
    // Another file, of a kind that is named.
    sandbox.file("elsewhere.json", r#"{"mcpServers": {"else": {"command": "e"}}}"#);
    sandbox.mcp(&["import", "--from", "claude-desktop", "elsewhere.json", "--yes"]).ok();
    assert_eq!(sandbox.mcp_json()["mcpServers"]["else"], json!({"command": "e"}));
    let run = sandbox.mcp(&["import", "--from", "windsurf"]).code(1);
    assert!(run.one_line().contains("mcp_config.json"), "{run:#?}");
}
