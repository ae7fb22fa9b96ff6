//! What a scenario has in place of the user's host: folders of its own, recordings in place of servers, and the real limits.

use std::path::PathBuf;

use super::{played, project, test};
use crate::common::{
    Sandbox,
    plugins::{MISBEHAVE_TOML, misbehave, workspace_root},
};

#[test]
fn nothing_of_the_users_is_read_or_written() {
    let (sandbox, file) = project();
    sandbox.settings(&serde_json::json!({"pluginSettings": {"puppet": {"start": [{"fail": "the user's settings"}]}}}));
    let before = crate::common::probes::snapshot(&sandbox.atoll_home());
    let scenario = sandbox.file(
        "s.toml",
        "[[step]]\ncall = \"puppet\"\narguments.steps = [{ keep = { key = \"k\", value = \"v\" } }, { kept = \"k\" }]\nexpect.text = '*\"v\"*'\n",
    );
    test(&sandbox, &file).arg(scenario).run().ok();
    assert_eq!(crate::common::probes::snapshot(&sandbox.atoll_home()), before);
    assert_eq!(std::fs::read_dir(sandbox.root().join("tmp")).unwrap().count(), 0, "the folders are cleared away");
}

#[test]
fn limits_deaths_and_failures_that_nobody_waits_for_are_the_real_ones() {
    let (sandbox, file) = project();
    for scenario in [
        "[limits]\nevent-ms = 50\n[settings]\nevents = [\"input\"]\nanswers.input = [{ steps = [{ never = 1 }] }]\n\
         [[step]]\nevent = \"input\"\nfields.text = \"\"\nexpect.error = \"*event-ms*\"\n",
        "[limits]\nmemory-mib = 16\n[[step]]\ncall = \"puppet\"\narguments.steps = [{ leakMemory = 1 }]\n\
         expect.error = \"limit\"\n[[step]]\nuntil = \"failure: *memory*\"\n[expect]\nfailures = [\"*memory*\"]\n",
        "[[step]]\ncall = \"puppet\"\narguments.steps = [{ trap = \"cut\" }]\nexpect.error = \"*cut*\"\n\
         [[step]]\nuntil = \"failure: *cut*\"\n[expect]\nfailures = [\"*cut*\"]\n",
    ] {
        let path = sandbox.file("s.toml", scenario);
        test(&sandbox, &file).arg(path).run().ok();
    }
    // Nobody waits for it, and the scenario says nothing of it.
    let scenario = "[settings]\nevents = [\"session-shutdown\"]\nanswers.session-shutdown = [{ steps = [{ fail = \"no end\" }] }]\n\
                    [[step]]\ncall = \"puppet\"\narguments.steps = []\n";
    let path = sandbox.file("s.toml", scenario);
    let stdout = test(&sandbox, &file).arg(path).run().code(1).stdout;
    assert!(stdout.contains("the plugin failed\n    session-shutdown: no end"), "{stdout}");
}

#[test]
fn a_reload_hands_over_what_is_in_the_store() {
    let scenario = "[settings]\nrecord = \"store\"\nevents = [\"input\"]\n\
        [[step]]\nevent = \"input\"\nfields.text = \"one\"\n\
        [[step]]\ncall = \"puppet\"\narguments.steps = [{ keep = { key = \"k\", value = \"kept\" } }]\n\
        [[step]]\nstart = \"reload\"\n\
        [[step]]\ncall = \"puppet\"\narguments.steps = [{ kept = \"k\" }, { told = 1 }]\n\
        expect.text = '[\"kept\",[{\"event\":\"start\",\"fields\":{\"reason\":\"reload\"}}]]'\n";
    played(scenario).ok();
}

/// The tool that fetches whatever it is told to.
fn fetcher() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::new();
    let file = sandbox.offered("misbehave", &misbehave(), Some(MISBEHAVE_TOML));
    (sandbox, file)
}

#[test]
fn requests_are_answered_by_recordings_and_checked_as_real_ones() {
    let (sandbox, file) = fetcher();
    let recording = "[[http]]\nurl = \"http://127.0.0.1:1/a\"\nstatus = 302\nheaders.location = \"/b\"\noptional = true\n\
        [[http]]\nurl = \"http://127.0.0.1:1/b\"\nbody = [\"first \", \"second\"]\noptional = true\n\
        [[http]]\nurl = \"http://127.0.0.1:1/none\"\nunreachable = \"nobody listens\"\noptional = true\n\
        [[http]]\nurl = \"http://127.0.0.1:1/twice\"\nbody = \"one\"\noptional = true\n\
        [[http]]\nurl = \"http://127.0.0.1:1/twice\"\nbody = \"two\"\noptional = true\n";
    let step = |target: &str, expect: &str| {
        format!("[[step]]\ncall = \"misbehave\"\narguments = {{ how = \"fetch\", target = \"{target}\" }}\n{expect}\n")
    };
    let good = [
        recording.to_owned(),
        "[[step]]\ncall = \"misbehave\"\narguments = { how = \"fetch\", target = \"http://127.0.0.1:1/a\", count = 1 }\n\
         expect = { text = \"*first second*\", http = [\"GET */a\", \"GET */b\"] }\n"
            .to_owned(),
        step("http://127.0.0.1:1/b", "expect = { text = \"*first second*\", http = [\"GET http://127.0.0.1:1/b\"] }"),
        step("http://127.0.0.1:1/none", "expect.error = \"unavailable\""),
        step("http://127.0.0.1:1/twice", "expect.text = \"*one*\""),
        step("http://127.0.0.1:1/twice", "expect.text = \"*two*\""),
        step("http://127.0.0.1:1/twice", "expect.text = \"*two*\""),
        step("https://elsewhere.example/", "expect = { error = \"denied\", http = [] }"),
        "[expect]\nused = [\"http GET http://127.0.0.1:1/b\"]\ndenied = [\"http GET https://elsewhere.example/\"]\n"
            .to_owned(),
    ];
    let path = sandbox.file("good.toml", good.concat());
    test(&sandbox, &file).arg(path).run().ok();
    let bad = format!("{recording}{}", step("http://127.0.0.1:1/c?q=1", "expect.error = \"unavailable\""));
    let path = sandbox.file("bad.toml", bad);
    let said = test(&sandbox, &file).arg(path).run().code(1).stdout;
    assert!(said.contains("no [[http]] fits the request GET http://127.0.0.1:1/c?q=1"), "{said}");
    assert!(said.contains("recorded are\n        GET http://127.0.0.1:1/a"), "{said}");
}

#[test]
fn a_provider_is_asked_and_its_key_is_never_shown() {
    let sandbox = Sandbox::new();
    let component = workspace_root().join("target/guests/wasm32-wasip2/guest/atoll_provider_openai_completions.wasm");
    let manifest = include_str!("../../guest-extensions/openai-completions/plugin.toml");
    let file = sandbox.offered("provider", &std::fs::read(component).unwrap(), Some(manifest));
    let chunk = |delta: &str, finish: &str| {
        format!(r#"'data: {{"id":"c","choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}'"#)
    };
    let recording = format!(
        "[[http]]\nmethod = \"POST\"\nurl = \"https://models.example.com/v1/chat/completions\"\n\
         headers.content-type = \"text/event-stream\"\nrequest-body = '*\"content\":*Say hello*'\n\
         request-headers.authorization = \"Bearer {{{{secret:*}}}}\"\n\
         body = [{}, \"\\n\\n\", {}, \"\\n\\n\", {}, \"\\n\\ndata: [DONE]\\n\\n\"]\n",
        chunk(r#"{"role":"assistant","content":"Hel"}"#, "null"),
        chunk(
            r#"{"content":"lo","tool_calls":[{"index":0,"id":"t","function":{"name":"look","arguments":"{\"a\":1}"}}]}"#,
            "null"
        ),
        chunk("{}", "\"tool_calls\""),
    );
    let step = "[[step]]\nprompt = \"Say hello\"\nsystem = \"Be brief.\"\ntools = [{ name = \"look\" }]\n\
        model.key = \"canary-7777\"\n";
    let expect =
        "[step.expect]\ntext = \"Hello\"\ncalls = [{ name = \"look\", arguments = { a = 1 } }]\nstop = \"tool-use\"\n";
    let path = sandbox.file("good.toml", format!("{recording}{step}{expect}"));
    test(&sandbox, &file).arg(path).run().ok();
    for (scenario, said) in [
        (format!("{recording}{step}[step.expect]\ntext = \"Bye\"\n"), "-Bye\n    +Hello"),
        (format!("{recording}{step}[step.expect]\ncalls = []\n"), "`calls` differs"),
        (format!("{recording}{step}[step.expect]\nstop = \"length\"\n"), "`stop` differs"),
        (step.to_owned(), "authorization: Bearer {{secret:"),
    ] {
        let path = sandbox.file("bad.toml", &scenario);
        let finished = test(&sandbox, &file).arg(path).run().code(1);
        assert!(finished.stdout.contains(said), "{}", finished.stdout);
        assert!(!finished.stdout.contains("canary-7777"), "{}", finished.stdout);
    }
}

#[test]
fn files_of_configuration_and_what_is_printed_are_part_of_a_scenario() {
    let scenario = r#"
trusted = false

[settings.commands]
look = [
    { resolvedBytes = { file = "puppet.json", value = "$KEY" } },
    { try = { resolve = { file = "puppet.json", value = "$OTHER" } } },
    { writeConfig = { file = "puppet.json", text = "[]" } },
    { print = "done with $KEY" }, { print = "twice" },
]

[environment]
KEY = "value-of-the-key"

[files]
"~/.atoll/puppet.json" = '["$KEY"]'
".atoll/puppet.json" = '["$OTHER"]'

[[step]]
start = "startup"
[[step]]
command = "look"
expect.print = ["done with $KEY", "twice"]

[expect]
used = ["config"]
files."~/.atoll/puppet.json" = "[]"
files.".atoll/puppet.json" = '["$OTHER"]'
"#;
    played(scenario).ok();
    let other = played(&scenario.replace("\"twice\"]\n", "\"thrice\"]\n")).code(1);
    assert!(other.stdout.contains("`print` differs"), "{}", other.stdout);
    // Without the file, and without the grant, it is an error of the plugin's.
    let others = r#"["table", "session", "models", "ui", "store", "bus", "providers", "servers", "secrets", "http", "files",
        "process", "listener"]"#;
    for changed in [
        scenario.replace("\"~/.atoll/puppet.json\" = '[\"$KEY\"]'\n", ""),
        scenario.replacen("trusted = false", &format!("trusted = false\ngranted = {others}"), 1),
    ] {
        assert!(played(&changed).code(1).stdout.contains("config"), "{changed}");
    }
}
