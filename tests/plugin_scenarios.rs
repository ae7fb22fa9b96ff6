//! `atoll plugin test`: what a plugin's author is told about a plugin by the scenarios they write.

mod host;
mod outcomes;
mod reading;

use std::path::PathBuf;

use crate::common::{
    Command, Finished, Sandbox,
    plugins::{test_plugin, workspace_root},
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
fn a_script_can_look_at_calls_of_one_tool() {
    let sandbox = Sandbox::new();
    let script = r#"
export default function (atoll) {
    const off = atoll.on("tool_call:other_tool", () => console.log("never"));
    atoll.on("tool_call:my_tool", (event) => ({ input: { ...event.input, first: true } }));
    atoll.on("tool-call:my_tool", (event) => ({ block: true, reason: JSON.stringify(event.input) }));
    off();
}
"#;
    let file = sandbox.file("gate.ts", script);
    let step =
        |tool: &str| format!("[[step]]\nevent = \"tool-call\"\nfields = {{ tool = \"{tool}\", arguments = {{}} }}\n");
    sandbox.file("tests/gate.toml", format!("{}expect.block = '{{\"first\":true}}'\n", step("my_tool")));
    test(&sandbox, &file).run().ok();
    sandbox.file("tests/gate.toml", format!("{}expect.block = \"*\"\n", step("my-tool")));
    let said = test(&sandbox, &file).run().code(1).stdout;
    assert!(said.contains("did not subscribe to `tool-call`"), "{said}");
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
