//! `atoll plugin test`: what a plugin's author is told about a plugin by the scenarios they write.

mod reading;

use std::path::PathBuf;

use crate::common::{
    Command, Finished, Sandbox,
    plugins::{MISBEHAVE_TOML, misbehave, test_plugin, workspace_root},
    puppets::PUPPET_TOML,
};

/// A sandbox with a puppet as its author has it: in a project's folder.
fn project() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::new();
    let file = sandbox.offered("puppet", &test_plugin("puppet"), Some(PUPPET_TOML));
    (sandbox, file)
}

fn test(sandbox: &Sandbox, file: &PathBuf) -> Command {
    sandbox.atoll().args(["plugin", "test"]).arg(file)
}

/// Plays one scenario with a puppet.
#[track_caller]
fn played(scenario: &str) -> Finished {
    let (sandbox, file) = project();
    played_in(&sandbox, &file, scenario)
}

fn played_in(sandbox: &Sandbox, file: &PathBuf, scenario: &str) -> Finished {
    let scenario = sandbox.file("s.toml", scenario);
    test(sandbox, file).arg(scenario).run()
}

/// What a puppet answers and does in the scenarios below.
const SETTINGS: &str = r#"
[settings]
events = ["tool-call", "tool-result", "input", "message-start", "context", "turn-end", "session-shutdown"]
topics = ["news"]
flags = ["loud", "who="]
tools = [{ name = "added" }]
[settings.commands]
say.completes = ["alpha", "beta"]
say.steps = [
    { notify = "hi there" }, { status = "busy" }, { append = { type = "note", data = { a = 1, b = 2 } } },
    { emit = { topic = "out", data = [1] } }, { send = { text = "go on", delivery = "steer" } },
    { name = "a session" }, { log = "first" }, { log = "second" },
]
ask = [{ confirm = { title = "Really?", message = "" } }]
choose = [{ select = { title = "Which?", options = ["one", "two"] } }]
model = [{ complete = { prompt = "sum up", system = "" } }]
call = [{ call = { tool = "fetcher", arguments = { url = "x" } } }]
fail = [{ fail = "it can not be" }]
[settings.answers]
tool-call = [
    { when = "rm -rf", block = "Not this one.", terminate = true }, { when = "swap", rewrite = { command = "ls" } },
    { when = "broken", steps = [{ fail = "no look" }] },
]
tool-result = [{ when = "key", patch = { text = "[gone]", details = { n = 1 }, isError = true } }]
input = [{ when = "loud", transform = "QUIET" }, { when = "eat", handled = true }]
context = [{ reply = { messages = [{ role = "user", content = "hello" }] } }]
message-start = [{ steps = [{ log = "saw a message" }] }]
bus = [{ steps = [{ log = "heard it" }] }]
session-shutdown = [{ steps = [{ log = "bye" }] }]
"#;

fn with_settings(rest: &str) -> String {
    // Keys of the whole come before the first table.
    let at = rest.find("\n[").unwrap_or(rest.len());
    let (own, tables) = rest.split_at(at);
    format!("{own}\n{SETTINGS}\n{tables}\n")
}

#[test]
fn what_a_plugin_answers_and_does_is_compared_step_by_step() {
    let scenario = with_settings(
        r#"
about = "everything the puppet does"
builtin-tools = ["read"]

[flags]
loud = true

[files]
"a.txt" = "alpha"

[session]
model = "other/model"

[[ui]]
title = "Real*"
confirm = true
[[ui]]
select = "two"

[[model]]
prompt = "sum*"
text = "in short"

[[tool]]
name = "fetcher"
arguments = { url = "x" }
text = "fetched"

[[step]]
start = "startup"
expect.tools = ["puppet", "added"]

[[step]]
event = "tool-call"
fields = { tool = "bash", arguments = { command = "rm -rf /" } }
expect = { block = "Not*", terminate = true }
[[step]]
event = "tool_call"
fields = { tool = "bash", arguments = { command = "swap" } }
expect.rewrite = { command = "ls" }
[[step]]
event = "tool-call"
fields.tool = "bash"
expect.pass = true
[[step]]
event = "tool-call"
fields = { tool = "bash", arguments = { command = "broken" } }
expect.error = "no look"
[[step]]
event = "tool-result"
fields = { tool = "bash", text = "key" }
expect.patch = { text = "[gone]", details = { n = 1 }, is-error = true }
[[step]]
event = "input"
fields.text = "loud"
expect.transform = "QUIET"
[[step]]
event = "input"
fields.text = "eat"
expect.handled = true
[[step]]
event = "context"
fields.messages = []
expect.reply = { messages = [{ content = "hel*" }] }
[[step]]
event = "message-start"
expect.log = ["saw a message"]
[[step]]
event = "agent-end"
expect.subscribed = false
[[step]]
bus = "news"
data = { n = 1 }
sender = "somebody"
expect.log = ["info: heard it"]
[[step]]
bus = "gossip"
expect.subscribed = false
[[step]]
command = "say"
arguments = "it"
[step.expect]
notify = ["hi*"]
status = "busy"
entries = [{ type = "note", data = { a = 1 } }]
bus = ["out [1]"]
messages = ["steer user: go on"]
session = ["name: a session"]
log = ["first", "second"]
[[step]]
complete = "say"
arguments = "al"
expect.completions = ["alpha"]
[[step]]
command = "ask"
[[step]]
command = "choose"
[[step]]
command = "model"
[[step]]
command = "call"
expect.tool-calls = ['fetcher {"url":"x"}: fetched']
[[step]]
command = "fail"
expect.error = "failed"
[[step]]
call = "puppet"
arguments = { steps = [{ call = { tool = "read", arguments = { path = "a.txt" } } }, { flag = "loud" }, { flag = "who" }, { model = "x/y" }, { describeSession = true }] }
expect.text = '*alpha*"true","unsaid",*x/y*'
[[step]]
call = "puppet"
arguments = { stops = [] }
expect.error = "invalid-arguments"

[expect]
used = ["session append note", "ui confirm", "models"]
not-used = ["process", "files read"]
denied = []
log = ["bye"]
files = { "a.txt" = "al*", "b.txt" = false }
"#,
    );
    let said = played(&scenario).ok();
    assert!(said.stdout.contains("everything the puppet does (22 steps)\n1 scenario passed"), "{}", said.stdout);
}

#[test]
fn what_is_not_as_expected_is_named_with_its_line() {
    let (sandbox, file) = project();
    for (step, said) in [
        ("event = \"tool-call\"\nfields.tool = \"x\"\nexpect.block = \"no\"", "expected block, the answer is pass"),
        (
            "event = \"tool-call\"\nfields = { tool = \"bash\", arguments = { c = \"rm -rf\" } }\nexpect.block = \"No.\"",
            "`block` differs\n    -No.\n    +Not this one.",
        ),
        (
            "event = \"tool-call\"\nfields = { tool = \"bash\", arguments = { c = \"rm -rf\" } }\nexpect.terminate = false",
            "`terminate` differs",
        ),
        (
            "event = \"tool-call\"\nfields = { tool = \"bash\", arguments = { c = \"rm -rf\" } }\nexpect.pass = true",
            "expected pass, the answer is block and end the run: Not this one.",
        ),
        (
            "event = \"tool-call\"\nfields = { tool = \"b\", arguments = { c = \"swap\" } }\nexpect.rewrite = { command = \"rm\" }",
            "command: expected \"rm\", there is \"ls\"",
        ),
        (
            "event = \"tool-call\"\nfields = { tool = \"b\", arguments = { c = \"broken\" } }",
            "it failed\n    failed: no look",
        ),
        (
            "event = \"tool-result\"\nfields = { tool = \"b\", text = \"key\" }\nexpect.patch.text = \"key\"",
            "`patch.text`",
        ),
        (
            "event = \"tool-result\"\nfields = { tool = \"b\", text = \"key\" }\nexpect.patch.structured = 1",
            "`patch.structured`",
        ),
        (
            "event = \"tool-result\"\nfields = { tool = \"b\", text = \"key\" }\nexpect.patch.is-error = false",
            "`patch.is-error`",
        ),
        ("event = \"input\"\nfields.text = \"loud\"\nexpect.transform = \"LOUD\"", "`transform` differs"),
        ("event = \"input\"\nfields.text = \"loud\"\nexpect.handled = true", "expected handled"),
        ("event = \"context\"\nexpect.reply = { messages = [] }", "messages: expected 0 items, there are 1"),
        ("event = \"agent-end\"", "did not subscribe to `agent-end`"),
        ("event = \"message-start\"\nexpect.subscribed = false", "`subscribed` differs"),
        ("bus = \"gossip\"", "did not subscribe to the topic `gossip`"),
        ("command = \"say\"\nexpect.notify = []", "`notify` differs"),
        ("command = \"say\"\nexpect.status = \"idle\"", "`status` differs"),
        ("command = \"say\"\nexpect.entries = [{ type = \"note\", data = { a = 2 } }]", "`entries` differs"),
        ("command = \"say\"\nexpect.bus = [\"in *\"]", "`bus` differs"),
        ("command = \"say\"\nexpect.messages = [\"follow-up*\"]", "`messages` differs"),
        ("command = \"say\"\nexpect.session = []", "`session` differs"),
        ("command = \"say\"\nexpect.log = [\"second\", \"first\"]", "expected the line \"first\""),
        ("command = \"say\"\nexpect.http = [\"GET*\"]", "`http` differs"),
        ("command = \"say\"\nexpect.files = { \"x.txt\" = true }", "the file x.txt is missing"),
        ("command = \"say\"\nexpect.files = { \"a.txt\" = false }", "there is a file a.txt"),
        ("command = \"say\"\nexpect.files = { \"a.txt\" = \"beta\" }", "`files.a.txt` differs"),
        ("command = \"say\"\nexpect.tools = [\"puppet\"]", "`tools` differs"),
        ("command = \"sya\"", "the plugin has no command `sya`"),
        ("command = \"fail\"\nexpect.error = \"denied\"", "`error` differs"),
        ("command = \"say\"\nexpect.error = \"failed\"", "it did not fail"),
        ("command = \"ask\"", "the plugin asks confirm \"Really?\", and [[ui]] has no answer for it"),
        ("command = \"model\"", "[[model]] has no answer for it"),
        ("command = \"call\"", "no [[tool]] fetcher fits the arguments {\"url\":\"x\"}"),
        ("complete = \"say\"\nexpect.completions = [\"gamma\"]", "`completions` differs"),
        ("call = \"puppet\"\narguments = { steps = [{ fail = \"no\" }] }", "the call failed\n    failed: no"),
        ("call = \"puppet\"\narguments = { steps = [] }\nexpect.text = \"x\"", "`text` differs"),
        ("call = \"puppet\"\narguments = { steps = [] }\nexpect.structured = 1", "`structured` differs"),
        ("call = \"puppet\"\narguments = { steps = [] }\nexpect.is-error = true", "`is-error` differs"),
        ("call = \"puppet\"\narguments = { steps = [] }\nexpect.error = \"failed\"", "`error` differs"),
        ("prompt = \"hi\"", "the plugin exports no provider"),
    ] {
        let person = if step.contains("\"ask\"") { "person = true\n" } else { "" };
        let tool = if step.contains("\"call\"") { "[[tool]]\nname = \"fetcher\"\narguments.url = \"y\"\n" } else { "" };
        let scenario = with_settings(&format!("{person}\n{tool}[files]\n\"a.txt\" = \"alpha\"\n\n[[step]]\n{step}\n"));
        let line = scenario.lines().position(|line| line == "[[step]]").unwrap() + 1;
        let stdout = played_in(&sandbox, &file, &scenario).stdout;
        assert!(stdout.contains(said) && stdout.contains("1 of 1 scenarios failed"), "{step}\n{stdout}");
        assert!(stdout.contains(&format!("s.toml:{line}: ")), "{step}\n{stdout}");
    }
}

#[test]
fn what_is_expected_of_the_whole_and_what_was_provided_for_nothing_is_named() {
    let (sandbox, file) = project();
    for (own, said) in [
        (
            "[[step]]\ncommand = \"say\"\n[expect]\nused = [\"http\"]",
            "`used`: http was not used; used was\n    ui notify hi there",
        ),
        (
            "[[step]]\ncommand = \"say\"\n[expect]\nnot-used = [\"session append *\"]",
            "was used\n    session append note",
        ),
        (
            "[[step]]\ncommand = \"say\"\n[expect]\ndenied = [\"files\"]",
            "`denied`: files was not denied; denied was\n    nothing",
        ),
        (
            "[[ui]]\nconfirm = true\n[expect]\nlog = []",
            "1 answers of the person were given in [[ui]], and 0 were asked for",
        ),
        ("[[ui]]\ninput = \"x\"\n[[step]]\ncommand = \"ask\"", "the answer 1 of [[ui]] is none to confirm"),
        (
            "[[ui]]\ntitle = \"What?\"\nconfirm = true\n[[step]]\ncommand = \"ask\"",
            "is for \"What?\", and the plugin asks",
        ),
        ("[[model]]\ntext = \"x\"\n[expect]\nlog = []", "1 answers of the model were given"),
        (
            "[[http]]\nurl = \"https://a.example/\"\n[expect]\nlog = []",
            "nobody made the request GET https://a.example/",
        ),
        ("[flags]\nquiet = true\n[expect]\nlog = []", "the plugin has no option `quiet`"),
        ("[expect]\nerror = \"denied\"", "expected denied, the plugin started"),
    ] {
        let finished = played_in(&sandbox, &file, &with_settings(&format!("\n{own}\n"))).code(1);
        assert!(finished.stdout.contains(said), "{own}\n{}", finished.stdout);
    }
}

#[test]
fn scenarios_are_those_of_the_project_if_none_is_named() {
    let sandbox = Sandbox::new();
    sandbox.file("p/plugin.toml", PUPPET_TOML);
    let file = sandbox.file("p/target/wasm32-wasip2/release/p.wasm", test_plugin("puppet"));
    let finished = test(&sandbox, &file).run().code(2);
    assert!(finished.one_line().contains("p/tests; write one, as NAME.toml, or name its file"), "{}", finished.stderr);
    for name in ["b", "a"] {
        sandbox.file(&format!("p/tests/{name}.toml"), "[[step]]\ncall = \"puppet\"\narguments.steps = []\n");
    }
    let said = test(&sandbox, &file).run().ok().stdout;
    let lines: Vec<&str> = said.lines().map(|line| line.rsplit('/').next().unwrap()).collect();
    assert_eq!(lines, ["a.toml (1 step)", "b.toml (1 step)", "2 scenarios passed"]);
    let missing = test(&sandbox, &sandbox.work().join("p/none.wasm")).run().code(1);
    assert!(missing.one_line().contains("build the plugin first"), "{}", missing.stderr);
}

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
fn golden_files_are_written_when_the_user_says_so_and_compared_otherwise() {
    let (sandbox, file) = project();
    let step = "[[step]]\ncall = \"puppet\"\narguments = { steps = [{ notify = \"one\" }, { describeHost = true }] }\nexpect.golden = \"golden/call.txt\"\n";
    let scenario = sandbox.file("s.toml", format!("{step}\n[expect]\ngolden = \"golden/all.txt\"\n"));
    let missing = test(&sandbox, &file).arg(&scenario).run().code(1);
    assert!(missing.stdout.contains("ATOLL_UPDATE=1 writes it"), "{}", missing.stdout);
    let written = test(&sandbox, &file).arg(&scenario).env("ATOLL_UPDATE", "1").run().ok();
    assert!(written.stdout.contains("written: ") && written.stdout.contains("golden/all.txt"), "{}", written.stdout);
    let golden = sandbox.read("golden/call.txt");
    assert!(golden.starts_with("call puppet\n  notify: info: one\n  = [null,{\"version\":"), "{golden}");
    assert!(golden.contains("\"cwd\":\"$WORKSPACE\""), "{golden}");
    test(&sandbox, &file).arg(&scenario).run().ok();
    sandbox.file("golden/call.txt", golden.replace("one", "two"));
    let differs = test(&sandbox, &file).arg(&scenario).run().code(1).stdout;
    assert!(differs.contains("-  notify: info: two\n    +  notify: info: one"), "{differs}");
}

#[test]
fn the_outcome_is_there_as_json() {
    let (sandbox, file) = project();
    let good = sandbox.file("good.toml", "about = \"fine\"\n[[step]]\ncall = \"puppet\"\narguments.steps = []\n");
    let bad = sandbox.file("bad.toml", "\n[[step]]\ncall = \"puppet\"\narguments.steps = []\nexpect.text = \"x\"\n");
    let said = test(&sandbox, &file).args([&good, &bad]).arg("--json").run().code(1).json();
    assert_eq!(said["passed"], false);
    let scenarios = said["scenarios"].as_array().unwrap();
    assert_eq!((&scenarios[0]["passed"], &scenarios[0]["about"]), (&true.into(), &"fine".into()));
    let problem = &scenarios[1]["problems"][0];
    assert_eq!((&problem["line"], &problem["step"]), (&2.into(), &"call puppet".into()));
    assert_eq!(problem["message"], "`text` differs\n-x\n+[]");
    assert_eq!(scenarios[1]["transcript"], "call puppet\n  = []\n");
}

#[test]
fn a_plugin_that_can_not_be_used_fails_its_scenario_unless_that_is_expected() {
    let (sandbox, file) = project();
    let start = "[settings]\nstart = [{ fail = \"no way\" }]\n";
    for (scenario, passes, said) in [
        (format!("{start}[expect]\nlog = []\n"), false, "the plugin can not be used\n    failed: no way"),
        (format!("{start}[expect]\nerror = \"no way\"\n"), true, "1 scenario passed"),
        (format!("{start}[[step]]\nstart = \"startup\"\nexpect.error = \"failed\"\n"), true, "1 scenario passed"),
        ("granted = [\"table\"]\n[expect]\nlog = []\n".to_owned(), false, "denied: not allowed: "),
        ("granted = [\"table\"]\n[expect]\nerror = \"denied\"\n".to_owned(), true, "1 scenario passed"),
        ("[settings]\nstart = [{ trap = \"down\" }]\n[[step]]\nstart = \"startup\"\n".to_owned(), false, "down"),
        // What else is expected counts also where the plugin can not be loaded.
        (
            "granted = [\"table\"]\n[expect]\nerror = \"denied\"\nfiles = { \"a.txt\" = true }\n".to_owned(),
            false,
            "the file a.txt is missing",
        ),
    ] {
        let path = sandbox.file("s.toml", &scenario);
        let finished = test(&sandbox, &file).arg(path).run().code(i32::from(!passes));
        assert!(finished.stdout.contains(said), "{scenario}\n{}", finished.stdout);
    }
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
    let manifest = include_str!("../guest-extensions/openai-completions/plugin.toml");
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
fn the_scenario_of_the_guide_is_one() {
    let guide = std::fs::read_to_string(workspace_root().join("guest-extensions/README.md")).unwrap();
    let (_, after) = guide.split_once("```toml\n# tests/gate.toml\n").unwrap();
    let (scenario, _) = after.split_once("```").unwrap();
    // A puppet that was told to do nothing is no gate.
    let said = played(scenario).code(1).stdout;
    assert!(said.contains("what deletes everything is blocked (2 steps)"), "{said}");
    assert!(said.contains("the plugin did not subscribe to `tool-call`"), "{said}");
    let gate =
        "[settings]\nevents = [\"tool-call\"]\nanswers.tool-call = [{ when = \"rm -rf\", block = \"no rm -rf\" }]\n";
    let (about, steps) = scenario.split_once("\n\n").unwrap();
    played(&format!("{about}\n{gate}\n{steps}")).ok();
}

#[test]
fn a_script_is_tested_as_a_component_is() {
    let sandbox = Sandbox::new();
    let script = r#"
export default function (atoll) {
    atoll.on("tool_call", (event) => {
        console.log("looked at", event.toolName);
        if (event.toolName === "bash" && event.input.command.includes("rm -rf")) {
            return { block: true, reason: "no rm -rf here" };
        }
    });
    atoll.registerCommand("hello", { handler: async (words: string, ctx: any) => ctx.ui.notify(`hi ${words}`, "info") });
}
"#;
    let file = sandbox.file("gate.ts", script);
    sandbox.file(
        "tests/gate.toml",
        "[[step]]\nevent = \"tool-call\"\nfields = { tool = \"bash\", arguments = { command = \"rm -rf /\" } }\n\
         expect = { block = \"no rm -rf*\", log = [\"looked at bash\"] }\n\
         [[step]]\ncommand = \"hello\"\narguments = \"you\"\nexpect.notify = [\"hi you\"]\n",
    );
    test(&sandbox, &file).run().ok();
    sandbox.file("tests/gate.toml", "[[step]]\ncommand = \"hello\"\nexpect.notify = [\"bye\"]\n");
    let said = test(&sandbox, &file).run().code(1).stdout;
    assert!(said.contains("`notify` differs\n    -bye\n    +info: hi"), "{said}");
}
