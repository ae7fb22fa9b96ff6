use super::*;
use crate::{exposure::Exposure, template::Template};
use proptest::prelude::*;
use serde_json::{Value, json};

fn user(text: &str) -> Document<'_> {
    Document { place: Place::User, path: "~/.atoll/mcp.json", text }
}

fn project(text: &str) -> Document<'_> {
    Document { place: Place::Project, path: ".atoll/mcp.json", text }
}

fn read(value: &Value) -> Configuration {
    Configuration::read(&[user(&value.to_string())])
}

fn problems(all: &Configuration) -> String {
    let line = |problem: &Problem| format!("{:?} {problem}\n", problem.severity);
    all.problems.iter().map(line).collect()
}

/// One line for each server.
fn servers(all: &Configuration) -> String {
    let line = |server: &Server| {
        let Entry { transport, greeting, timeout, enabled, description, exposure } = &server.entry;
        let how = match transport {
            Transport::Stdio(stdio) => {
                let env: Vec<String> = stdio.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
                format!("{} {:?} env {env:?} cwd {:?}", stdio.program, stdio.arguments, stdio.cwd)
            }
            Transport::Http(http) => {
                let headers: Vec<String> =
                    http.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
                format!("{} {headers:?} {:?}", http.url, http.authentication)
            }
        };
        let greeting = if *greeting == Greeting::Auto { String::new() } else { format!(" {greeting:?}") };
        format!(
            "{} {:?} {how} {timeout:?} {enabled} {description:?} {exposure:?}{greeting}\n",
            server.name, server.place
        )
    };
    all.servers.iter().map(line).collect()
}

/// What files that people have come to: one line for each.
const FOUND: [(&str, &str); 29] = [
    ("plain", r#"{"mcpServers": {"a": {"command": "node", "args": ["./server.js"]}}}"#),
    ("type local", r#"{"mcpServers": {"a": {"type": "local", "command": ["node", "./server.js"]}}}"#),
    ("url only", r#"{"mcpServers": {"a": {"url": "http://127.0.0.1:3401/mcp"}}}"#),
    ("streamable-http", r#"{"mcpServers": {"a": {"type": "streamable-http", "url": "http://127.0.0.1:3401/mcp"}}}"#),
    (
        "streamableHttp",
        r#"{"mcpServers": {"a": {"type": "streamableHttp", "url": "http://127.0.0.1:1/mcp", "disabled": false, "autoApprove": []}}}"#,
    ),
    ("sse address", r#"{"mcpServers": {"a": {"url": "http://127.0.0.1:3402/sse"}}}"#),
    ("sse type", r#"{"mcpServers": {"a": {"type": "sse", "url": "http://127.0.0.1:3402/sse"}}}"#),
    ("transport", r#"{"mcpServers": {"a": {"transport": "stdio", "command": "node"}}}"#),
    ("env:", r#"{"mcpServers": {"a": {"url": "http://x/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}}}}"#),
    ("default", r#"{"mcpServers": {"a": {"url": "${WHERE:-http://127.0.0.1:3401/mcp}"}}}"#),
    ("numbers in env", r#"{"mcpServers": {"a": {"command": "node", "env": {"PORT": 3000, "DEBUG": true}}}}"#),
    ("disabled", r#"{"mcpServers": {"a": {"command": "node", "disabled": true}}}"#),
    (
        "approvals",
        r#"{"mcpServers": {"a": {"command": "node", "disabled": false, "autoApprove": ["x"], "alwaysAllow": ["y"], "timeout": 60, "description": "d"}}}"#,
    ),
    ("variable in cwd", r#"{"mcpServers": {"a": {"command": "node", "cwd": "${PLUGIN_ROOT}"}}}"#),
    (
        "VS Code",
        r#"{"inputs": [], "servers": {"a": {"type": "stdio", "command": "node", "env": {"K": "${input:k}"}}}}"#,
    ),
    ("no wrapper", r#"{"a": {"command": "node"}}"#),
    ("only disabled", r#"{"mcpServers": {"a": {"disabled": true}}}"#),
    ("only settings", r#"{"settings": {"directTools": false}}"#),
    (
        "token variable",
        r#"{"mcpServers": {"a": {"url": "http://x/mcp", "auth": "bearer", "bearerTokenEnv": "TOKEN"}}}"#,
    ),
    ("oauth", r#"{"mcpServers": {"a": {"url": "http://x/mcp", "oauth": {"clientId": "x", "callbackPort": 8765}}}}"#),
    ("empty entry", r#"{"mcpServers": {"a": {}}}"#),
    ("bad name", r#"{"mcpServers": {"My Server v1.2": {"command": "node"}, "a": {"command": "node"}}}"#),
    ("args as text", r#"{"mcpServers": {"a": {"command": "node", "args": "x.js --y"}}}"#),
    (
        "bridge",
        r#"{"mcpServers": {"a": {"command": "npx", "args": ["mcp-remote", "https://x.example/mcp", "--header", "Authorization:${AUTH}"], "env": {"AUTH": "Bearer t"}}}}"#,
    ),
    ("command as value", r#"{"mcpServers": {"a": {"url": "http://x/mcp", "headers": {"X-Tok": "!echo abc"}}}}"#),
    (
        "exposure",
        r#"{"mcpServers": {"a": {"command": "node", "exposure": "direct", "toolExposure": {"delete_*": "hidden"}}}}"#,
    ),
    ("opencode", r#"{"mcp": {"a": {"type": "remote", "url": "http://127.0.0.1:3401/mcp", "enabled": true}}}"#),
    ("BOM", "\u{feff}{\"mcpServers\": {\"a\": {\"command\": \"node\"}}}"),
    ("truncated", r#"{"mcpServers": {"a": {"command": "node""#),
];

#[test]
fn what_people_have_is_understood_or_refused_with_a_way_out() {
    let shown = |(name, text): (&str, &str)| {
        let all = Configuration::read(&[user(text)]);
        format!("## {name}\n{}{}", servers(&all), problems(&all))
    };
    insta::assert_snapshot!(FOUND.map(shown).concat());
}

#[test]
fn what_is_wrong_in_an_entry_is_said_and_costs_no_other() {
    let wrong = [
        json!("node"),
        json!({"command": ""}),
        json!({"command": ["", "x"]}),
        json!({"command": 1}),
        json!({"command": "npx -y server"}),
        json!({"command": "n", "args": [["x"]]}),
        json!({"command": "n", "args": ["${HERE}"]}),
        json!({"command": "n", "env": {"A=B": "x", "C": null, "D": "${input:my-key}"}}),
        json!({"command": "n", "env": ["A=B"]}),
        json!({"command": "n", "cwd": ""}),
        json!({"command": "n", "timeout": 0}),
        json!({"command": "n", "timeout": 30000}),
        json!({"command": "n", "enabled": "yes"}),
        json!({"command": "n", "enabled": true, "disabled": true}),
        json!({"command": "n", "description": 1}),
        json!({"command": "n", "exposure": "all"}),
        json!({"command": "n", "toolExposure": ["x"]}),
        json!({"command": "n", "toolExposure": {"x": "off"}}),
        json!({"command": "n", "comand": "x"}),
        json!({"command": "n", "somethingElse": "x"}),
        json!({"command": "n", "excludeTools": ["x"]}),
        json!({"command": "n", "envFile": ".env"}),
        json!({"command": "n", "headers": {"a": "b"}}),
        json!({"type": "stdio", "url": "http://x"}),
        json!({"type": "http", "command": "n"}),
        json!({"type": "websocket", "url": "ws://x"}),
        json!({"type": 1, "url": "http://x"}),
        json!({"url": "x.example/mcp"}),
        json!({"url": "http://u:p@x/"}),
        json!({"url": "!echo http://x"}),
        json!({"url": 1}),
        json!({"url": "http://x", "serverUrl": "http://y"}),
        json!({"url": "http://x", "headers": {"a b": "c", "d": {"e": "f"}}}),
        json!({"url": "http://x", "headers": {"authorization": "x"}, "bearerTokenEnv": "T"}),
        json!({"url": "http://x", "headers": {"authorization": "x"}, "oauth": {"clientId": "x"}}),
        json!({"url": "http://x", "auth": {"provider": "github"}}),
        json!({"url": "${WHERE}", "auth": {"provider": "github"}}),
        json!({"url": "https://x", "auth": {"provider": "github"}, "headers": {"Authorization": "x"}}),
        json!({"url": "https://x", "auth": "github"}),
        json!({"url": "https://x", "oauth": true}),
        json!({"url": "https://x", "oauth": {"clientID": "x", "callbackPort": 0, "scope": [1], "clientName": ""}}),
        json!({"url": "https://x", "oauth": {"callbackUrl": "http://x/callback"}}),
        json!({"url": "https://x", "oauth": {"callbackUrl": "http://localhost:1/callback", "callbackPort": 2}}),
        json!({"url": "https://x", "oauth": {"clientRegistration": "cimd", "clientId": "x", "callbackUrl": "http://[::1]/callback"}}),
        json!({"url": "https://x", "oauth": {"clientRegistration": "always", "authServerMetadataUrl": "http://x/"}}),
    ];
    let shown = |entry: &Value| {
        let all = read(&json!({"mcpServers": {"x": entry, "fine": {"command": "n"}}}));
        assert!(all.servers.iter().any(|server| server.name == "fine"), "{entry}");
        assert!(!all.problems.is_empty(), "{entry}");
        assert_eq!(all.has_errors(), all.servers.len() == 1, "{entry}: left out, or not, without a word");
        format!("{entry}\n{}", problems(&all))
    };
    insta::assert_snapshot!(wrong.iter().map(shown).collect::<String>());
}

#[test]
fn what_is_wrong_in_a_file_is_said() {
    let files = [
        "",
        "null",
        "[]",
        "{\"mcpServers\": []}",
        "{\"mcpServers\": {},\n \"autoEnableCodemode\": 1}",
        "{\"mcpServers\": {}\n \"x\": 1}",
        "{'mcpServers': {}}",
        "{\"mcp_servers\": {}}",
        "{\"mcpservers\": {\"a\": {\"command\": \"x\"}}}",
        "// why\n{\"mcpServers\": {\"a\": {\"command\": \"x\", /* y */},},}",
        "{\"$schema\": \"x\", \"mcpServers\": {}, \"more\u{1b}[2J\": 1}",
    ];
    let shown = |text: &&str| {
        let all = Configuration::read(&[user(text)]);
        format!("{text:?}\n{}{}", servers(&all), problems(&all))
    };
    insta::assert_snapshot!(files.iter().map(shown).collect::<String>());
    let deep = "[".repeat(100_000);
    assert!(problems(&Configuration::read(&[user(&deep)])).contains("nesting"), "one line, and no overflow");
}

#[test]
fn a_project_changes_or_defines_and_says_nothing_of_credentials() {
    let users = json!({"mcpServers": {
        "docs": {"url": "https://docs.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}, "exposure": "deferred"},
        "tools": {"command": "tools", "toolExposure": {"a": "direct"}},
        "dev-one": {"command": "dev"},
    }, "autoEnableCodemode": false});
    let of_project = json!({"mcpServers": {
        "docs": {"enabled": false, "toolExposure": {"x": "hidden"}},
        "tools": {"command": "other"},
        "dev_one": {"command": "evil"},
        "dev-on": {"disabled": true},
        "docs2": {"url": "https://docs.example/mcp", "auth": {"provider": "github"}},
        "new": {"command": "new"},
    }, "autoEnableCodemode": true});
    let all = Configuration::read(&[user(&users.to_string()), project(&of_project.to_string())]);
    assert_eq!(all.auto_enable_codemode, Some(true));
    insta::assert_snapshot!(format!("{}{}", servers(&all), problems(&all)));
    let refused =
        json!({"mcpServers": {"docs": {"enabled": true, "env": {"A": "b"}, "headers": {"Authorization": "x"}}}});
    let all = Configuration::read(&[user(&users.to_string()), project(&refused.to_string())]);
    insta::assert_snapshot!(problems(&all));
    let Some(Transport::Http(http)) = all.servers.first().map(|server| server.entry.transport.clone()) else {
        panic!("{all:?}")
    };
    assert_eq!(http.headers, [("Authorization".to_owned(), Template::parse("Bearer ${TOKEN}").unwrap())]);
}

#[test]
fn files_of_others_become_entries_of_ours() {
    let vscode = r#"{
        // asked for once
        "inputs": [{"type": "promptString", "id": "api-key"}],
        "servers": {
            "My Server": {"type": "stdio", "command": "node", "args": ["${workspaceFolder}/x.js"],
                          "cwd": "${workspaceFolder}", "env": {"K": "${input:api-key}", "P": 1}},
            "web": {"type": "http", "url": "https://x.example/mcp", "headers": {"X": "${env:X}"}},
            "old": {"type": "sse", "url": "https://x.example/sse"},
        },
    }"#;
    let codex = r#"
        model = "x"
        [mcp_servers.docs]
        command = "docs"
        args = ["--fast"]
        env_vars = ["DOCS_KEY"]
        startup_timeout_sec = 20
        tool_timeout_sec = 45.5
        disabled_tools = ["delete"]
        [mcp_servers.docs.env]
        MODE = "x"
        [mcp_servers.web]
        url = "https://x.example/mcp"
        bearer_token_env_var = "WEB_TOKEN"
        http_headers = { "X-A" = "1", "X-C" = "!echo ${HOME}" }
        env_http_headers = { "X-B" = "B_VALUE" }
        enabled_tools = ["search"]
        enabled = false
    "#;
    let opencode = r#"{"mcp": {
        "local": {"type": "local", "command": ["bun", "x", "server"], "environment": {"K": "{env:KEY}"}, "timeout": 5000},
        "remote": {"type": "remote", "url": "https://x.example/mcp", "headers": {"Authorization": "Bearer {env:T}"}, "oauth": false}
    }}"#;
    let claude = r#"{"mcpServers": {
        "a": {"type": "stdio", "command": "npx", "args": ["-y", "server", "${HOME}"],
              "env": {"K": "${K:-none}", "P": "pa$$w0rd", "Q": "ab$cd", "R": "!touch pwned"}},
        "a!": {"command": "x"}, "a?": {"command": "y"}
    }}"#;
    let of_folders = r#"{"projects": {"/home/me/here": {"mcpServers": {"a": {"command": "local"}}}, "/else": {"mcpServers": {"b": {"command": "x"}}}},
        "mcpServers": {"a": {"command": "all"}, "c": {"command": "c"}}}"#;
    let cursor = r#"{"mcpServers": {
        "a": {"command": "${userHome}/bin/x", "args": ["--key", "${input:k}", "${workspaceFolder}/y"],
              "env": {"A": "${env:A}", "B": "$B", "C": "${workspaceFolder}/z"}},
        "b": {"command": "x", "env": {"A": "${command:secret}"}},
        "c": {"url": "https://x.example/mcp", "bearerTokenEnv": "T"},
        "d": {"url": "https://x.example/mcp", "bearerTokenEnv": "T", "headers": {"authorization": "x"}}
    }}"#;
    let windsurf = r#"{"mcpServers": {"a": {"serverUrl": "https://x.example/mcp", "disabledTools": ["x"]}}}"#;
    let cases = [
        (Kind::VsCode, vscode),
        (Kind::Codex, codex),
        (Kind::OpenCode, opencode),
        (Kind::ClaudeCode, claude),
        (Kind::Windsurf, windsurf),
        (Kind::ClaudeCode, of_folders),
        (Kind::Cursor, cursor),
        (Kind::Cursor, r#"{"servers": {}}"#),
        (Kind::Codex, "[mcp_servers\nx"),
    ];
    let shown = |(kind, text): (Kind, &str)| {
        let Imported { servers, said } = match Imported::read(kind, text, "/home/me/here") {
            Ok(imported) => imported,
            Err(why) => return format!("## {kind}: {why}\n"),
        };
        // Whatever is taken over is read as it is, without a word.
        let entries: serde_json::Map<String, Value> =
            servers.iter().map(|(name, entry)| (name.clone(), Value::Object(entry.clone()))).collect();
        let ours = json!({"mcpServers": entries});
        let all = read(&ours);
        assert!(!all.has_errors(), "{}", problems(&all));
        assert_eq!(all.servers.len(), servers.len());
        let said: String = said.iter().map(|(name, text)| format!("{name}: {text}\n")).collect();
        format!("## {kind}\n{ours:#}\n{said}")
    };
    insta::assert_snapshot!(cases.map(shown).concat());
}

/// Values as somebody may write them.
fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        Just("stdio".to_owned()),
        Just("http".to_owned()),
        Just("http://x/mcp".to_owned()),
        Just("${A:-b}".to_owned()),
        Just("hidden".to_owned()),
        any::<String>(),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// An entry of fields that exist, with any values.
fn entry() -> impl Strategy<Value = Value> {
    let fields = [
        "type",
        "command",
        "args",
        "env",
        "cwd",
        "url",
        "headers",
        "oauth",
        "auth",
        "timeout",
        "enabled",
        "disabled",
        "description",
        "exposure",
        "toolExposure",
        "transport",
        "serverUrl",
        "bearerTokenEnv",
        "environment",
        "http_headers",
        "inheritEnv",
        "autoApprove",
        "x",
    ];
    proptest::collection::vec((proptest::sample::select(fields.to_vec()), value()), 0..6)
        .prop_map(|pairs| Value::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()))
}

proptest! {
    #[test]
    fn no_text_harms_and_no_message_has_two_lines(text in "[\\[\\]{}:,\"a-z/*\\n ]{0,40}|.*") {
        for place in [Place::User, Place::Project] {
            let all = Configuration::read(&[Document { place, path: "x", text: &text }]);
            prop_assert!(all.problems.iter().all(|problem| !problem.to_string().contains(char::is_control)), "{:?}", all.problems);
        }
        for kind in Kind::ALL {
            let _ = Imported::read(kind, &text, "/home/me/here");
        }
    }

    #[test]
    fn an_entry_is_a_server_or_an_error(entry in entry()) {
        let all = read(&json!({"mcpServers": {"x": entry}}));
        prop_assert_eq!(all.servers.is_empty(), all.has_errors());
        prop_assert!(all.problems.iter().all(|problem| !problem.to_string().contains(char::is_control)), "{:?}", all.problems);
    }

    #[test]
    fn nothing_that_an_extension_says_is_looked_up(entry in entry(), name in "env|environment|headers|http_headers|oauth") {
        let mut entry = entry;
        let texts = json!({"X": "${HOME}", "Y": "!echo", "Z": "{env:HOME}", "W": "$$"});
        entry[&name] = if name == "oauth" { json!({"clientId": "x", "clientSecret": "$HOME"}) } else { texts };
        let text = json!({"mcpServers": {"x": entry}}).to_string();
        let all = Configuration::read(&[Document { place: Place::Extension, path: "x", text: &text }]);
        prop_assert_eq!(all.servers.is_empty(), all.has_errors());
        for server in all.servers {
            prop_assert!(server.entry.values().iter().all(|value| value.known().is_some()), "{:?}", server);
            let is_sent = server.entry.values().iter().any(|value| value.known().as_deref() == Some("!echo"));
            let shown = format!("{:?}", server.entry);
            prop_assert!(is_sent || !shown.contains("!echo"));
        }
    }

    #[test]
    fn what_a_project_changes_is_never_how_a_server_is_reached(change in entry()) {
        let users = json!({"mcpServers": {"x": {"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer ${T}"}}}});
        let before = read(&users);
        let text = json!({"mcpServers": {"x": change}}).to_string();
        let all = Configuration::read(&[user(&users.to_string()), project(&text)]);
        let (before, after) = (before.servers.first().unwrap(), all.servers.first().unwrap());
        if after.place == Place::User {
            prop_assert_eq!(&before.entry.transport, &after.entry.transport);
            prop_assert_eq!(before.entry.timeout, after.entry.timeout);
            prop_assert_eq!(&before.entry.description, &after.entry.description);
        } else {
            // It is another server, with nothing of the user's.
            let shown = format!("{:?}", after.entry);
            prop_assert!(!shown.contains("x.example"), "{}", shown);
        }
    }

    #[test]
    fn of_servers_that_are_read_no_two_share_a_group(names in proptest::collection::vec("[a_-]{1,3}", 0..8)) {
        let half = |names: &[String]| {
            let all: serde_json::Map<String, Value> =
                names.iter().map(|name| (name.clone(), json!({"command": "x"}))).collect();
            json!({"mcpServers": all}).to_string()
        };
        let (first, second) = names.split_at(names.len() / 2);
        let all = Configuration::read(&[user(&half(first)), project(&half(second))]);
        let groups: std::collections::HashSet<String> =
            all.servers.iter().map(|server| crate::names::namespace(&server.name)).collect();
        prop_assert_eq!(groups.len(), all.servers.len());
    }
}

#[test]
fn exposures_are_those_of_the_file() {
    let all = read(&json!({"mcpServers": {"x": {"command": "n", "exposure": "codemode-deferred", "toolExposure": {
        "get_*": "direct", "get_x": "hidden"}}}}));
    let exposure = &all.servers.first().unwrap().entry.exposure;
    assert_eq!(
        ["get_x", "get_y", "z"].map(|tool| exposure.of(tool)),
        [Exposure::Hidden, Exposure::Direct, Exposure::Codemode]
    );
}

#[test]
fn how_a_server_is_greeted_is_one_of_three_words() {
    let greeting = |said: Value| {
        let all = read(&json!({"mcpServers": {"a": {"command": "a", "protocolVersion": said}}}));
        all.servers.first().map(|server| server.entry.greeting).ok_or_else(|| problems(&all))
    };
    assert_eq!(greeting(json!("auto")), Ok(Greeting::Auto));
    assert_eq!(greeting(json!("legacy")), Ok(Greeting::Legacy));
    assert_eq!(greeting(json!("2026-07-28")), Ok(Greeting::Stateless));
    let wrong = greeting(json!("2025-11-25")).unwrap_err();
    assert!(wrong.contains("one of \"auto\", \"legacy\", \"2026-07-28\""), "{wrong}");
}
