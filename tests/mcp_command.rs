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
fn what_is_wrong_in_the_files_fails_both_checks() {
    let sandbox = Sandbox::new();
    let files: [(&[u8], &str); 4] = [
        (b"{\"mcpServers\": {\"a\": {\"command\": 1}}}", "server \"a\""),
        (b"{\"mcpServers\": {\"a\": ", "this is no JSON"),
        (b"{\"mcpServers\": {\"a\": {\"command\": \"\xff\"}}}", "UTF-8"),
        (b"{\"servers\": {\"a\": {\"command\": \"x\"}}}", "VS Code"),
    ];
    for (text, says) in files {
        sandbox.home_file("mcp.json", text);
        for check in ["list", "test"] {
            let run = sandbox.mcp(&[check]).code(1);
            assert!(run.stdout.contains("Left out: ") && run.stdout.contains(says), "{check}: {run:#?}");
            assert!(run.stdout.contains("mcp.json") && run.stderr.contains("an entry is wrong"), "{check}: {run:#?}");
        }
        let tried = sandbox.mcp(&["test", "--json"]).code(1).json();
        assert_eq!(tried[0]["ok"], false, "{tried:#}");
        let run = sandbox.mcp(&["test", "a"]).code(1);
        assert!(run.stderr.contains(says), "{run:#?}");
    }
    // One that is asked for by its name is no worse for another.
    let place = Place::with(&json!({"peer": {"command": peer()}, "wrong": {"command": 1}}));
    place.sandbox.mcp(&["test", "peer"]).ok();
    place.sandbox.mcp(&["test"]).code(1);
    sandbox.home_file("mcp.json", "{}");
    assert!(sandbox.mcp(&["test"]).ok().stdout.contains("no MCP servers"));
}

#[test]
fn a_server_of_the_projects_file_can_be_meant_when_one_signs_in_and_out() {
    let place = Place::with(&json!({"far": {"url": "http://127.0.0.1:1/mcp"}}));
    for command in ["login", "logout"] {
        let run = place.sandbox.mcp(&[command, "-l", "far"]).code(1);
        assert!(run.one_line().contains("leave out -l"), "{run:#?}");
    }
    place
        .sandbox
        .file(".atoll/mcp.json", json!({"mcpServers": {"far": {"url": "http://127.0.0.1:1/other"}}}).to_string());
    let run = place.atoll().args(["-a", "mcp", "logout", "far", "-l"]).run().ok();
    assert!(run.stdout.contains("You were not signed in to far."), "{run:#?}");
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

#[test]
fn values_that_are_taken_over_stand_for_what_they_stood_for_and_none_becomes_a_command() {
    let sandbox = Sandbox::new();
    let env = json!({"P": "pa$$w0rd", "Q": "ab$cd", "R": "!touch pwned", "S": "x-${OUTSIDE}", "T": "${NOT_THERE:-of its own}"});
    sandbox.file(".mcp.json", json!({"mcpServers": {"a": {"command": peer(), "env": env}}}).to_string());
    sandbox.mcp(&["import", "--from", "claude-code", "--yes"]).ok();
    let variable = |name: &str| {
        let atoll = sandbox.atoll().env("cd", "something else").env("OUTSIDE", "ab");
        let arguments = json!({"name": name}).to_string();
        atoll.args(["tool", "call", "mcp__a__variable", &arguments]).run().ok().stdout.trim_end().to_owned()
    };
    let got = ["P", "Q", "R", "S", "T"].map(variable);
    assert_eq!(got, ["pa$$w0rd", "ab$cd", "!touch pwned", "x-ab", "of its own"]);
    assert!(!sandbox.work().join("pwned").exists());
}

#[test]
fn servers_that_claude_code_keeps_for_a_folder_are_taken_over_in_that_folder() {
    let sandbox = Sandbox::new();
    let local = json!({"here": {"command": "h"}, "both": {"command": "local"}});
    let projects = json!({sandbox.work().display().to_string(): {"mcpServers": local}, "/elsewhere": {"mcpServers": {"there": {"command": "t"}}}});
    let all = json!({"projects": projects, "mcpServers": {"both": {"command": "everywhere"}}});
    std::fs::write(sandbox.user_home().join(".claude.json"), all.to_string()).unwrap();
    sandbox.mcp(&["import", "--yes"]).ok();
    assert_eq!(sandbox.mcp_json(), json!({"mcpServers": local}));
    // A file of its that is about other things is no error beside one that has servers.
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.user_home().join(".claude.json"), "{\"numStartups\": 1}").unwrap();
    let run = sandbox.mcp(&["import", "--from", "claude-code"]).code(1);
    assert!(run.one_line().contains("there are no servers of claude-code"), "{run:#?}");
    sandbox.file(".mcp.json", r#"{"mcpServers": {"shared": {"command": "s"}}}"#);
    let run = sandbox.mcp(&["import", "--from", "claude-code", "--yes"]).ok();
    assert!(!run.stdout.contains("left out"), "{run:#?}");
    assert_eq!(sandbox.mcp_json(), json!({"mcpServers": {"shared": {"command": "s"}}}));
}

#[test]
fn what_is_to_be_taken_over_is_shown_without_keys() {
    let sandbox = Sandbox::new();
    let servers = json!({
        "far": {"url": "https://x.example/mcp?api_key=very-secret", "oauth": {"clientId": "me", "clientSecret": "very-secret"}},
        "near": {"command": "x", "args": ["--token", "very-secret", "--api-key=very-secret", "sk-very-secret-0123"]},
    });
    sandbox.file(".mcp.json", json!({"mcpServers": servers}).to_string());
    let run = sandbox.mcp(&["import"]).ok();
    assert!(!run.stdout.contains("secret"), "{run:#?}");
    assert!(run.stdout.contains("https://x.example/mcp?api_key=…") && run.stdout.contains("--token"), "{run:#?}");
}
