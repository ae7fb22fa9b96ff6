//! The command line itself: help, versions, completions, exit codes, and what a user gets wrong.

use serde_json::json;

use crate::common::{
    Sandbox,
    server::{Reply, Server},
};

#[test]
fn help_names_every_command_and_every_exit_code() {
    let sandbox = Sandbox::new();
    let run = sandbox.atoll().arg("--help").run().ok().silent();
    for word in [
        "demo",
        "tool",
        "plugin",
        "trust",
        "--approve",
        "doctor",
        "completions",
        "--model",
        "--continue",
        "Exit codes:",
        "130",
        "143",
    ] {
        assert!(run.stdout.contains(word), "{word} is missing: {}", run.stdout);
    }
    for command in [&["tool", "--help"][..], &["tool", "call", "--help"], &["plugin", "inspect", "--help"]] {
        sandbox.atoll().args(command).run().ok().silent();
    }
}

#[test]
fn the_version_is_one_line() {
    let run = Sandbox::new().atoll().arg("--version").run().ok().silent();
    assert!(run.stdout.starts_with("atoll 0.") && run.stdout.lines().count() == 1, "{run:#?}");
}

#[test]
fn completions_are_scripts_that_their_shell_reads() {
    let sandbox = Sandbox::new();
    for (shell, mark) in [("bash", "complete -F"), ("zsh", "#compdef atoll"), ("fish", "complete -c atoll")] {
        let run = sandbox.atoll().args(["completions", shell]).run().ok().silent();
        assert!(run.stdout.contains(mark), "{shell}");
    }
    let script = sandbox.atoll().args(["completions", "bash"]).run().ok().stdout;
    let path = sandbox.file("atoll.bash", script);
    let check = std::process::Command::new("bash").arg("-n").arg(path).status();
    assert!(check.is_ok_and(|status| status.success()));
}

#[test]
fn completions_into_a_closed_pipe_end_without_a_panic() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let run = Sandbox::new().atoll().args(["completions", "bash"]).stdout(writer.into()).run();
    assert!(!run.stderr.contains("panicked"), "{run:#?}");
}

#[test]
fn lists_into_a_closed_pipe_end_without_a_panic() {
    for arguments in [&["tool", "list"][..], &["doctor"], &["--help"], &["demo", "--fast"], &["tool", "list", "--json"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let run = Sandbox::new().atoll().args(arguments).stdout(writer.into()).run();
        assert!(!run.stderr.contains("panicked"), "{arguments:?}: {run:#?}");
    }
}

#[test]
fn a_command_line_that_can_not_be_understood_exits_with_2() {
    let sandbox = Sandbox::new();
    for arguments in [&["--nonsense"][..], &["tool", "nonsense"], &["--mode", "xml", "-p", "x"], &["plugin"]] {
        let run = sandbox.atoll().args(arguments).run().code(2);
        assert_eq!(run.stdout, "", "{run:#?}");
        assert!(!run.stderr.is_empty());
    }
}

#[test]
fn no_prompt_says_how_to_give_one() {
    let run = Sandbox::new().atoll().run().code(1);
    assert!(run.one_line().contains("atoll -p"), "{run:#?}");
}

#[test]
fn no_model_at_all_is_one_line_that_says_how_to_add_one() {
    let run = Sandbox::new().atoll().args(["-p", "hi"]).run().code(1);
    assert!(run.one_line().contains("models.json"), "{run:#?}");
    assert_eq!(run.stdout, "");
}

#[test]
fn an_unknown_provider_is_one_line_with_the_known_ones_and_nothing_is_sent() {
    let server = Server::start(vec![]);
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    let run = sandbox.atoll().args(["--model", "nope/m", "-p", "hi"]).run().code(1);
    let line = run.one_line();
    assert!(line.contains("nope") && line.contains("mock"), "{line}");
    let run = sandbox.atoll().args(["--model", "unheard-of", "-p", "hi"]).run().code(1);
    assert!(run.one_line().contains("unheard-of"), "{run:#?}");
    assert_eq!(server.requests().len(), 0);
    assert_eq!(sandbox.session_files().len(), 0);
}

#[test]
fn an_unknown_model_of_a_known_provider_is_asked_as_it_is_with_a_note() {
    let server = Server::start(vec![Reply::text("hello")]);
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    let run = sandbox.atoll().args(["--model", "mock/brand-new", "-p", "hi"]).run().ok();
    assert_eq!(run.stdout, "hello\n");
    assert!(run.one_line().contains("brand-new"), "{run:#?}");
    assert_eq!(server.bodies()[0]["model"], "brand-new");
}

#[test]
fn a_key_whose_variable_is_not_set_is_one_line_that_names_it_and_nothing_is_sent_ironclaw_1537() {
    let server = Server::start(vec![]);
    let sandbox = Sandbox::new();
    let models = json!({"providers": {"mock": {"baseUrl": format!("{}/v1", server.origin()),
        "api": "openai-completions", "apiKey": "$MOCK_KEY_UNSET", "models": [{"id": "m"}]}}});
    sandbox.home_file("models.json", models.to_string());
    let run = sandbox.atoll().args(["-p", "hi"]).run().code(1);
    assert!(run.one_line().contains("MOCK_KEY_UNSET"), "{run:#?}");
    assert_eq!(server.requests().len(), 0);
    assert_eq!(sandbox.session_files().len(), 0);
}

#[test]
fn the_environment_alone_is_enough_for_one_server() {
    let server = Server::start(vec![Reply::text("hello")]);
    let sandbox = Sandbox::new();
    let run = sandbox
        .atoll()
        .env("OPENAI_API_KEY", "sk-env")
        .env("OPENAI_BASE_URL", format!("{}/v1", server.origin()))
        .env("OPENAI_MODEL", "some-model")
        .args(["-p", "hi"])
        .run()
        .ok();
    assert_eq!(run.stdout, "hello\n");
    assert_eq!(server.bodies()[0]["model"], "some-model");
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer sk-env"));
}

#[test]
fn a_broken_settings_or_models_file_is_one_line_that_names_it() {
    for name in ["settings.json", "models.json"] {
        let sandbox = Sandbox::new();
        sandbox.home_file(name, "{ not json");
        let run = sandbox.atoll().args(["-p", "hi"]).run().code(1);
        assert!(run.one_line().contains(name), "{run:#?}");
    }
}

#[test]
fn a_home_that_is_not_there_is_no_obstacle() {
    let sandbox = Sandbox::new();
    let run =
        sandbox.atoll().env("ATOLL_HOME", sandbox.root().join("never-made")).args(["tool", "list"]).run().ok().silent();
    assert!(run.stdout.contains("bash"));
}

#[test]
fn without_home_and_atoll_home_one_line_says_what_to_set() {
    let sandbox = Sandbox::new();
    let run = sandbox.atoll().without_env("HOME").without_env("ATOLL_HOME").args(["tool", "list"]).run().code(1);
    assert!(run.one_line().contains("HOME"), "{run:#?}");
}

#[test]
fn doctor_says_what_is_missing_and_how_to_fix_it() {
    let sandbox = Sandbox::new();
    let run = sandbox.atoll().arg("doctor").run().ok();
    assert!(run.stdout.contains("fix:") && run.stdout.contains("models.json"), "{run:#?}");
    sandbox.model_at("http://127.0.0.1:1/v1");
    let findings = sandbox.atoll().args(["doctor", "--json"]).run().ok().json();
    assert!(findings.as_array().unwrap().iter().all(|finding| finding["verdict"] == "ok"), "{findings:#}");
    sandbox.home_file("settings.json", "{");
    sandbox.atoll().arg("doctor").run().code(1);
}

#[test]
fn tool_list_shows_the_table() {
    let sandbox = Sandbox::new();
    let run = sandbox.atoll().args(["tool", "list"]).run().ok().silent();
    for name in ["read", "bash", "edit", "write", "ls"] {
        assert!(run.stdout.lines().any(|line| line.starts_with(&format!("{name} "))), "{}", run.stdout);
    }
    let tools = sandbox.atoll().args(["tool", "list", "--json"]).run().ok().json();
    let read = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "read").unwrap();
    assert_eq!((&read["active"], &read["plugin"]), (&json!(true), &json!("read")));
    assert_eq!(read["parameters"]["type"], "object");
}

#[test]
fn an_unknown_tool_is_answered_with_near_matches() {
    let run = Sandbox::new().atoll().args(["tool", "call", "raed", "{}"]).run().code(1);
    assert!(run.stderr.contains("`read`"), "{run:#?}");
}

#[test]
fn tool_call_reports_what_is_wrong_with_a_call() {
    let sandbox = Sandbox::new();
    let run = sandbox.atoll().args(["tool", "call", "raed", "{}"]).run().code(1);
    assert!(run.stderr.contains("`raed`") && run.stderr.contains("atoll tool list"), "{run:#?}");
    let run = sandbox.atoll().args(["tool", "call", "read", "{"]).run().code(1);
    assert!(run.one_line().contains("not JSON"), "{run:#?}");
    let run = sandbox.atoll().args(["tool", "call", "read", "{}"]).run().code(1);
    assert!(run.stderr.contains("path: missing"), "{run:#?}");
    let run = sandbox.atoll().args(["tool", "call", "read", "[1]"]).run().code(1);
    assert!(!run.stderr.is_empty() && run.stdout.is_empty(), "{run:#?}");
}
