//! The format of a scenario: what a plugin is given, what happens to it, and what is expected of it.

use std::collections::BTreeMap;

use atoll_caps::LimitsSpec;
use atoll_table::extension::EventKind;
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
    /// Variables that files of configuration may name.
    pub(super) environment: BTreeMap<String, String>,
    /// The user's limits for the plugin, as keys of a manifest's `[limits]`.
    pub(super) limits: LimitsSpec,
    /// Files in the workspace; below `~/`, in the home directory.
    pub(super) files: BTreeMap<String, Spanned<String>>,
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
    pub(super) print: Option<Vec<String>>,
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
