//! The format of a scenario: what a plugin is given, what happens to it, and what is expected of it.
//!
//! What is not understood is an error that says where and what may have been meant: a test that is read wrongly must not
//! pass.

use std::{collections::BTreeMap, ops::Range, path::Path};

use atoll_caps::{Capability, LimitsSpec, printable};
use atoll_table::{extension::EventKind, names::near_matches};
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;

/// A scenario, as its file has it. The guide for authors explains each key.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Scenario {
    /// What it shows.
    pub(super) about: Option<String>,
    /// The capabilities that are granted, of those that the manifest asks for. Default: all.
    pub(super) granted: Option<Vec<String>>,
    /// Whether there is a person to ask. Default: if answers of one are given.
    pub(super) person: Option<bool>,
    /// Whether the project is trusted.
    #[serde(default = "yes")]
    pub(super) trusted: bool,
    /// Built-in tools that are there, beside the plugin's own and those of the scenario.
    pub(super) builtin_tools: Vec<String>,
    /// `pluginSettings` of the plugin.
    pub(super) settings: Map<String, Value>,
    /// What the user said to the plugin's options.
    pub(super) flags: BTreeMap<String, FlagValue>,
    /// Secrets of the user's.
    pub(super) secrets: BTreeMap<String, String>,
    /// The user's limits for the plugin, as keys of a manifest's `[limits]`.
    pub(super) limits: LimitsSpec,
    /// Files in the workspace; below `~/`, in the home directory.
    pub(super) files: BTreeMap<String, String>,
    pub(super) session: SessionSetup,
    pub(super) http: Vec<Spanned<Recording>>,
    pub(super) ui: Vec<Spanned<DialogAnswer>>,
    pub(super) model: Vec<Spanned<ModelReply>>,
    pub(super) tool: Vec<Spanned<FakeTool>>,
    pub(super) step: Vec<Spanned<Step>>,
    /// What is expected of the whole.
    pub(super) expect: Expect,
}

fn yes() -> bool {
    true
}

/// What a flag was given.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum FlagValue {
    Is(bool),
    Text(String),
}

/// The session that the plugin is in.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct SessionSetup {
    pub(super) name: Option<String>,
    /// `provider/id`.
    pub(super) model: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) system_prompt: String,
    /// Entries that are there, oldest first.
    pub(super) entries: Vec<Map<String, Value>>,
}

/// A request, and what answers it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Recording {
    #[serde(default)]
    pub(super) method: Option<String>,
    pub(super) url: String,
    /// What the request's body has to be.
    #[serde(default)]
    pub(super) request_body: Option<String>,
    /// What its headers have to be.
    #[serde(default)]
    pub(super) request_headers: BTreeMap<String, String>,
    #[serde(default = "ok")]
    pub(super) status: u16,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) body: Option<Body>,
    /// The body as data, written as JSON.
    #[serde(default)]
    pub(super) json: Option<Value>,
    /// The file beside the scenario that holds the body.
    #[serde(default)]
    pub(super) body_file: Option<String>,
    /// No answer comes, for this reason.
    #[serde(default)]
    pub(super) unreachable: Option<String>,
    /// It is no mistake if nobody asks for it.
    #[serde(default)]
    pub(super) optional: bool,
}

fn ok() -> u16 {
    200
}

/// A body: whole, or in the pieces in which it arrives.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Body {
    Whole(String),
    Pieces(Vec<String>),
}

/// What the person answers to one dialog.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[derive(Default)]
pub(super) struct DialogAnswer {
    /// What the question has to be.
    pub(super) title: Option<String>,
    /// The text of the option.
    pub(super) select: Option<String>,
    pub(super) confirm: Option<bool>,
    pub(super) input: Option<String>,
    pub(super) editor: Option<String>,
    /// No answer.
    pub(super) decline: bool,
}

/// What a model answers to the plugin.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ModelReply {
    /// What it has to be asked.
    #[serde(default)]
    pub(super) prompt: Option<String>,
    #[serde(default)]
    pub(super) text: String,
    /// It fails with this.
    #[serde(default)]
    pub(super) error: Option<String>,
}

/// A tool that the plugin finds in the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FakeTool {
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    /// What the arguments have to be for this answer.
    #[serde(default)]
    pub(super) arguments: Option<Value>,
    #[serde(default)]
    pub(super) text: String,
    #[serde(default)]
    pub(super) details: Option<Value>,
    #[serde(default)]
    pub(super) structured: Option<Value>,
    #[serde(default)]
    pub(super) is_error: bool,
}

/// Something that happens.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Step {
    /// It is started, or loaded anew.
    pub(super) start: Option<StartKind>,
    /// An event, by its name.
    pub(super) event: Option<String>,
    /// Its fields.
    pub(super) fields: Map<String, Value>,
    /// A tool is called.
    pub(super) call: Option<String>,
    /// A command is run.
    pub(super) command: Option<String>,
    /// It is asked how a command's arguments could go on.
    pub(super) complete: Option<String>,
    /// The arguments of a call, an object, or of a command, a text.
    pub(super) arguments: Option<Value>,
    /// Another extension says something under this topic.
    pub(super) bus: Option<String>,
    pub(super) data: Option<Value>,
    pub(super) sender: Option<String>,
    /// Its provider is asked this.
    pub(super) prompt: Option<String>,
    pub(super) system: Option<String>,
    pub(super) model: Option<ModelSetup>,
    pub(super) tools: Vec<DeclaredTool>,
    /// Waits until this is in what has happened.
    pub(super) until: Option<String>,
    pub(super) expect: Expect,
}

/// How it is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StartKind {
    Startup,
    Reload,
}

/// The model that a provider is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct ModelSetup {
    pub(super) id: String,
    /// The wire format; default: the provider's first.
    pub(super) api: Option<String>,
    pub(super) base_url: String,
    pub(super) key: Option<String>,
    pub(super) reasoning: bool,
    pub(super) images: bool,
    pub(super) context_window: u64,
    pub(super) max_tokens: u64,
    pub(super) thinking: Option<String>,
    pub(super) compat: Option<Value>,
}

impl Default for ModelSetup {
    fn default() -> Self {
        Self {
            id: "test-model".to_owned(),
            api: None,
            base_url: "https://models.example.com/v1".to_owned(),
            key: Some("test-key".to_owned()),
            reasoning: false,
            images: false,
            context_window: 128_000,
            max_tokens: 4_096,
            thinking: None,
            compat: None,
        }
    }
}

/// A tool that is declared to a provider.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct DeclaredTool {
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) parameters: Option<Value>,
}

/// What is expected: of a step, or of the whole. What is left out is not looked at.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Expect {
    // Of an event.
    pub(super) subscribed: Option<bool>,
    pub(super) pass: Option<bool>,
    pub(super) block: Option<String>,
    pub(super) terminate: Option<bool>,
    pub(super) rewrite: Option<Value>,
    pub(super) patch: Option<PatchExpected>,
    pub(super) transform: Option<String>,
    pub(super) handled: Option<bool>,
    pub(super) reply: Option<Value>,
    // Of a call or a provider.
    pub(super) text: Option<String>,
    pub(super) details: Option<Value>,
    pub(super) structured: Option<Value>,
    pub(super) is_error: Option<bool>,
    pub(super) thinking: Option<String>,
    pub(super) calls: Option<Vec<CallExpected>>,
    pub(super) stop: Option<String>,
    pub(super) completions: Option<Vec<String>>,
    /// Of any: a code, or a text.
    pub(super) error: Option<String>,
    // What it did meanwhile.
    pub(super) notify: Option<Vec<String>>,
    pub(super) status: Option<String>,
    pub(super) entries: Option<Vec<EntryExpected>>,
    pub(super) messages: Option<Vec<String>>,
    pub(super) bus: Option<Vec<String>>,
    pub(super) http: Option<Vec<String>>,
    pub(super) log: Option<Vec<String>>,
    pub(super) session: Option<Vec<String>>,
    pub(super) tool_calls: Option<Vec<String>>,
    pub(super) failures: Option<Vec<String>>,
    pub(super) tools: Option<Vec<String>>,
    pub(super) files: BTreeMap<String, FileExpected>,
    pub(super) golden: Option<String>,
    // Of the whole only.
    pub(super) used: Vec<String>,
    pub(super) not_used: Vec<String>,
    pub(super) denied: Option<Vec<String>>,
}

/// What a result is to be changed to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PatchExpected {
    #[serde(default)]
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) details: Option<Value>,
    #[serde(default)]
    pub(super) structured: Option<Value>,
    #[serde(default)]
    pub(super) is_error: Option<bool>,
}

/// A call that a model is to make.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct CallExpected {
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: Option<Value>,
}

/// An entry of the session.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct EntryExpected {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) data: Option<Value>,
}

/// What is to be in a file, or whether it is to be there.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum FileExpected {
    Is(bool),
    Holds(String),
}

/// What a step does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action<'a> {
    Start(StartKind),
    Event(EventKind),
    Call(&'a str),
    Command(&'a str),
    Complete(&'a str),
    Bus(&'a str),
    Prompt(&'a str),
    Until(&'a str),
}

/// The line and the column of a place in a text, both from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..text.floor_char_boundary(at)).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
    (before.matches('\n').count() + 1, column)
}

/// The line of a place, from 1.
pub(super) fn line_of(text: &str, span: &Range<usize>) -> usize {
    place(text, span.start).0
}

/// What a reader says, with a suggestion where a key is unknown.
pub(super) fn reason(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let one_line = message.split('\n').collect::<Vec<_>>().join(", ");
    let (Some((unknown, known)), Some(kind)) = (
        quoted.split_first(),
        ["field", "variant"].into_iter().find(|kind| message.starts_with(&format!("unknown {kind}"))),
    ) else {
        return one_line;
    };
    let what = if kind == "field" { "key" } else { "value" };
    let near = near_matches(unknown, known.iter().copied());
    let way_out = match near.as_slice() {
        [] => format!("what can be here: {}", known.join(", ")),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    format!("unknown {what} `{unknown}`; {way_out}")
}

impl Scenario {
    /// Reads one. `file` is for messages.
    ///
    /// # Errors
    /// Where it is wrong, and why, in one line.
    pub(super) fn parse(text: &str, file: &Path) -> Result<Self, String> {
        let bad = |at: usize, reason: String| {
            let (line, column) = place(text, at);
            format!("{}:{line}:{column}: {}", printable(&file.to_string_lossy()), printable(&reason))
        };
        let scenario: Self = toml::from_str(text)
            .map_err(|error| bad(error.span().map_or(0, |span| span.start), reason(error.message())))?;
        scenario.check().map_err(|(at, reason)| bad(at.start, reason))?;
        Ok(scenario)
    }

    /// What the types do not say.
    fn check(&self) -> Result<(), (Range<usize>, String)> {
        for name in self.granted.iter().flatten() {
            if name.parse::<Capability>().is_err() {
                let known: Vec<&str> = Capability::ALL.iter().map(|known| known.as_str()).collect();
                return Err((0..0, format!("`granted`: {}", unknown("capability", name, &known))));
            }
        }
        for recording in &self.http {
            let Recording { body, json, body_file, unreachable, .. } = recording.get_ref();
            let given = [body.is_some(), json.is_some(), body_file.is_some(), unreachable.is_some()];
            if given.iter().filter(|given| **given).count() > 1 {
                let reason = "an answer has one of `body`, `json`, `body-file` and `unreachable`; leave the others out";
                return Err((recording.span(), reason.to_owned()));
            }
        }
        for answer in &self.ui {
            let DialogAnswer { select, confirm, input, editor, decline, .. } = answer.get_ref();
            let given = [select.is_some(), confirm.is_some(), input.is_some(), editor.is_some(), *decline];
            if given.iter().filter(|given| **given).count() != 1 {
                let reason = "an answer has exactly one of `select`, `confirm`, `input`, `editor` and `decline = true`";
                return Err((answer.span(), reason.to_owned()));
            }
        }
        if let Some((key, of, _)) = self.expect.given().into_iter().find(|(.., whole)| !whole) {
            let reason =
                format!("[expect]: `{key}` is expected of a step that is {}; put it below that [[step]]", names(of));
            return Err((0..0, reason));
        }
        for (index, step) in self.step.iter().enumerate() {
            step.get_ref().check(index == 0).map_err(|reason| (step.span(), reason))?;
        }
        Ok(())
    }
}

fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    match near_matches(name, known.iter().copied()).as_slice() {
        [] => format!("there is no {what} `{name}`; there are {}", known.join(", ")),
        near => format!("there is no {what} `{name}`; did you mean {}?", near.join(" or ")),
    }
}

impl Step {
    /// What it does. Checked when it was read.
    pub(super) fn action(&self) -> Option<Action<'_>> {
        let event = self.event.as_deref().and_then(EventKind::of_name).map(Action::Event);
        self.start
            .map(Action::Start)
            .or(event)
            .or(self.call.as_deref().map(Action::Call))
            .or(self.command.as_deref().map(Action::Command))
            .or(self.complete.as_deref().map(Action::Complete))
            .or(self.bus.as_deref().map(Action::Bus))
            .or(self.prompt.as_deref().map(Action::Prompt))
            .or(self.until.as_deref().map(Action::Until))
    }

    fn check(&self, is_first: bool) -> Result<(), String> {
        let does = [
            ("start", self.start.is_some()),
            ("event", self.event.is_some()),
            ("call", self.call.is_some()),
            ("command", self.command.is_some()),
            ("complete", self.complete.is_some()),
            ("bus", self.bus.is_some()),
            ("prompt", self.prompt.is_some()),
            ("until", self.until.is_some()),
        ];
        let given: Vec<&str> = does.iter().filter(|(_, given)| *given).map(|(key, _)| *key).collect();
        let [action] = given.as_slice() else {
            let all: Vec<&str> = does.iter().map(|(key, _)| *key).collect();
            let found = if given.is_empty() { "none".to_owned() } else { given.join(" and ") };
            return Err(format!("a step does exactly one of {}; this one has {found}", all.join(", ")));
        };
        let belongs = [
            ("fields", !self.fields.is_empty(), &["event"][..]),
            ("arguments", self.arguments.is_some(), &["call", "command", "complete"]),
            ("data", self.data.is_some(), &["bus"]),
            ("sender", self.sender.is_some(), &["bus"]),
            ("system", self.system.is_some(), &["prompt"]),
            ("model", self.model.is_some(), &["prompt"]),
            ("tools", !self.tools.is_empty(), &["prompt"]),
        ];
        if let Some((key, _, to)) = belongs.iter().find(|(_, given, to)| *given && !to.contains(action)) {
            return Err(format!("`{key}` goes with {}, not with `{action}`; leave it out", to.join(", ")));
        }
        if self.start == Some(StartKind::Startup) && !is_first {
            return Err("only the first step can be `start = \"startup\"`; later it is \"reload\"".to_owned());
        }
        if let Some(name) = &self.event
            && EventKind::of_name(name).is_none()
        {
            let known: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
            return Err(unknown("event", name, &known));
        }
        if let Some(Action::Event(kind)) = self.action() {
            super::event::event(kind, &self.fields)?;
        }
        match (&self.arguments, *action) {
            (Some(arguments), "call") if !arguments.is_object() => {
                return Err("the `arguments` of a call are a table".to_owned());
            }
            (Some(arguments), "command" | "complete") if !arguments.is_string() => {
                return Err("the `arguments` of a command are a text".to_owned());
            }
            _ => {}
        }
        if let Some((key, of, _)) = self.expect.given().into_iter().find(|(_, of, _)| !of.contains(action)) {
            return Err(match of {
                [] => format!("`{key}` is expected of the whole, not of a step; put it below [expect]"),
                of => format!("`{key}` is expected of a step that is {}, not of `{action}`; leave it out", names(of)),
            });
        }
        Ok(())
    }
}

fn names(keys: &[&str]) -> String {
    keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(" or ")
}

/// What any step may have as its outcome.
const ANY: &[&str] = &["start", "event", "call", "command", "complete", "bus", "prompt", "until"];

impl Expect {
    /// The keys that are given, the steps that each is for, and whether it is for the whole too.
    fn given(&self) -> Vec<(&'static str, &'static [&'static str], bool)> {
        let all: [(_, &'static [&'static str], _, _); 34] = [
            ("subscribed", &["event", "bus"], false, self.subscribed.is_some()),
            ("pass", &["event"], false, self.pass.is_some()),
            ("block", &["event"], false, self.block.is_some()),
            ("terminate", &["event"], false, self.terminate.is_some()),
            ("rewrite", &["event"], false, self.rewrite.is_some()),
            ("patch", &["event"], false, self.patch.is_some()),
            ("transform", &["event"], false, self.transform.is_some()),
            ("handled", &["event"], false, self.handled.is_some()),
            ("reply", &["event"], false, self.reply.is_some()),
            ("text", &["call", "prompt"], false, self.text.is_some()),
            ("details", &["call"], false, self.details.is_some()),
            ("structured", &["call"], false, self.structured.is_some()),
            ("is-error", &["call"], false, self.is_error.is_some()),
            ("thinking", &["prompt"], false, self.thinking.is_some()),
            ("calls", &["prompt"], false, self.calls.is_some()),
            ("stop", &["prompt"], false, self.stop.is_some()),
            ("completions", &["complete"], false, self.completions.is_some()),
            ("error", ANY, true, self.error.is_some()),
            ("notify", ANY, true, self.notify.is_some()),
            ("status", ANY, true, self.status.is_some()),
            ("entries", ANY, true, self.entries.is_some()),
            ("messages", ANY, true, self.messages.is_some()),
            ("bus", ANY, true, self.bus.is_some()),
            ("http", ANY, true, self.http.is_some()),
            ("log", ANY, true, self.log.is_some()),
            ("session", ANY, true, self.session.is_some()),
            ("tool-calls", ANY, true, self.tool_calls.is_some()),
            ("failures", ANY, true, self.failures.is_some()),
            ("tools", ANY, true, self.tools.is_some()),
            ("files", ANY, true, !self.files.is_empty()),
            ("golden", ANY, true, self.golden.is_some()),
            ("used", &[], true, !self.used.is_empty()),
            ("not-used", &[], true, !self.not_used.is_empty()),
            ("denied", &[], true, self.denied.is_some()),
        ];
        all.into_iter().filter(|(.., given)| *given).map(|(key, of, whole, _)| (key, of, whole)).collect()
    }
}
