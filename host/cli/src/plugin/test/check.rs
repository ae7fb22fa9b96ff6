//! Compares what a step gave with what is expected of it. Each difference is a text for people: what was expected, and
//! what there is.

use atoll_table::{Content, Data, Error, ToolOutput, extension::Outcome, hooks::ResultPatch, model::DoneReason};
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use super::{
    beside,
    folders::Folders,
    pattern::{data_fits, fits},
    record::Effect,
    scenario::{CallExpected, EntryExpected, Expect, FileExpected, PatchExpected},
};

/// What a model said through the provider under test.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) thinking: String,
    /// Names and arguments, as they came.
    pub(super) calls: Vec<(String, String)>,
    pub(super) stop: Option<DoneReason>,
}

/// What came of a step.
#[derive(Clone, Debug)]
pub(super) enum Done {
    /// Nothing but what it did.
    Nothing,
    /// The plugin does not want to hear of it.
    Unsubscribed(String),
    Answered(Outcome),
    Called(ToolOutput, Option<Error>),
    Completed(Vec<String>),
    Said(Said),
    Failed(Error),
}

const CODES: [&str; 11] = [
    "denied",
    "not-found",
    "ambiguous",
    "invalid-arguments",
    "limit",
    "timeout",
    "cancelled",
    "unavailable",
    "stale",
    "unsupported-contract",
    "failed",
];

/// Whether an error is what is expected: a code, or a text of it, with or without its code.
pub(super) fn is_error(expected: &str, error: &Error) -> bool {
    if CODES.contains(&expected) {
        return error.code() == expected;
    }
    fits(expected, &error.to_string()) || fits(expected, &shown_error(error))
}

pub(super) fn shown_error(error: &Error) -> String {
    format!("{}: {error}", error.code())
}

/// How a text differs from what was expected, line by line.
pub(super) fn difference(expected: &str, actual: &str) -> String {
    let diff = TextDiff::from_lines(expected.trim_end_matches('\n'), actual.trim_end_matches('\n'));
    let mut lines = Vec::new();
    for change in diff.iter_all_changes() {
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => ' ',
        };
        lines.push(format!("{sign}{}", change.value().trim_end_matches('\n')));
    }
    lines.join("\n")
}

fn text_differs(key: &str, expected: &str, actual: &str) -> Option<String> {
    (!fits(expected, actual)).then(|| format!("`{key}` differs\n{}", difference(expected, actual)))
}

fn data_differs(key: &str, expected: &Value, actual: Option<&Value>) -> Option<String> {
    match actual {
        Some(actual) => data_fits(expected, actual).err().map(|reason| format!("`{key}` differs\n{reason}")),
        None => Some(format!("`{key}` differs\nexpected {expected}, there is none")),
    }
}

/// An answer in one line, or more if its text has more.
pub(super) fn shown_outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Pass => "pass".to_owned(),
        Outcome::Handled => "handled".to_owned(),
        Outcome::Block { reason, terminate } => {
            let how = if *terminate { "block and end the run" } else { "block" };
            match reason {
                Some(reason) => format!("{how}: {reason}"),
                None => how.to_owned(),
            }
        }
        Outcome::Rewrite(arguments) => format!("rewrite: {arguments}"),
        Outcome::Transform { text, .. } => format!("transform: {text}"),
        Outcome::Reply(fields) => format!("reply: {}", Value::Object(fields.clone())),
        Outcome::Patch(ResultPatch { content, details, structured, is_error, .. }) => {
            let mut parts = Vec::new();
            parts.extend(content.as_ref().map(|content| format!("text {:?}", Content::joined_text(content))));
            parts.extend(details.as_ref().map(|details| format!("details {details}")));
            parts.extend(structured.as_ref().map(|data| format!("structured {data}")));
            parts.extend(is_error.map(|is_error| format!("is-error {is_error}")));
            format!("patch: {}", parts.join(", "))
        }
    }
}

/// Why the answers stopped, as a scenario has it.
pub(super) fn shown_stop(reason: DoneReason) -> &'static str {
    match reason {
        DoneReason::Stop => "stop",
        DoneReason::Length => "length",
        DoneReason::ToolUse => "tool-use",
    }
}

impl Done {
    /// What it says in the transcript; nothing where nothing came of it.
    pub(super) fn shown(&self) -> Option<String> {
        Some(match self {
            Self::Nothing => return None,
            Self::Unsubscribed(_) => "not subscribed".to_owned(),
            Self::Answered(outcome) => shown_outcome(outcome),
            Self::Failed(error) => format!("failed: {}", shown_error(error)),
            Self::Completed(values) => values.join("\n"),
            Self::Called(output, error) => {
                let mut text = Content::joined_text(&output.content);
                if output.is_error {
                    text = match error {
                        Some(error) => format!("failed: {}", shown_error(error)),
                        None => format!("failed: {text}"),
                    };
                }
                for (name, data) in data_of(output) {
                    if let Some(data) = data
                        && error.is_none()
                    {
                        text.push_str(&format!("\n{name}: {data}"));
                    }
                }
                text
            }
            Self::Said(said) => {
                let mut lines = Vec::new();
                if !said.thinking.is_empty() {
                    lines.push(format!("thinking: {}", said.thinking));
                }
                lines.push(said.text.clone());
                lines.extend(said.calls.iter().map(|(name, arguments)| format!("call {name} {arguments}")));
                lines.extend(said.stop.map(|reason| format!("stop: {}", shown_stop(reason))));
                lines.join("\n")
            }
        })
    }

    /// How this differs from what is expected of it.
    pub(super) fn differs(&self, expect: &Expect) -> Vec<String> {
        match self {
            Self::Failed(error) => match &expect.error {
                Some(expected) if is_error(expected, error) => Vec::new(),
                Some(expected) => vec![format!("`error` differs\n{}", difference(expected, &shown_error(error)))],
                None => vec![format!("it failed\n{}", shown_error(error))],
            },
            Self::Called(output, error) => called(output, error.as_ref(), expect),
            _ if expect.error.is_some() => {
                let found = self.shown().unwrap_or_else(|| "it worked".to_owned());
                vec![format!(
                    "`error` differs\nexpected {}, it did not fail: {found}",
                    expect.error.as_deref().unwrap_or_default()
                )]
            }
            Self::Unsubscribed(what) if expect.subscribed == Some(false) => {
                tracing::debug!(what, "not subscribed, as expected");
                Vec::new()
            }
            Self::Unsubscribed(what) => vec![format!(
                "the plugin did not subscribe to {what}; if that is as it should be, say `expect.subscribed = false`"
            )],
            Self::Answered(_) | Self::Nothing if expect.subscribed == Some(false) => {
                vec!["`subscribed` differs\nexpected that the plugin does not hear of it, it does".to_owned()]
            }
            Self::Answered(outcome) => answered(outcome, expect).into_iter().collect(),
            Self::Completed(values) => {
                let expected = expect.completions.as_deref();
                expected.and_then(|expected| lists_differ("completions", expected, values)).into_iter().collect()
            }
            Self::Said(said) => said.differs(expect),
            Self::Nothing => Vec::new(),
        }
    }
}

fn lists_differ(key: &str, expected: &[String], actual: &[String]) -> Option<String> {
    let is_same = expected.len() == actual.len() && expected.iter().zip(actual).all(|(one, other)| fits(one, other));
    (!is_same).then(|| format!("`{key}` differs\n{}", difference(&expected.join("\n"), &actual.join("\n"))))
}

/// What a result has as data, with the names that scenarios have for it.
fn data_of(output: &ToolOutput) -> [(&'static str, Option<&Value>); 2] {
    [("details", output.details.as_ref()), ("structured", output.structured.as_ref().map(Data::value))]
}

fn called(output: &ToolOutput, error: Option<&Error>, expect: &Expect) -> Vec<String> {
    let mut found = Vec::new();
    let text = Content::joined_text(&output.content);
    if output.is_error {
        match (&expect.error, error) {
            (Some(expected), Some(error)) if is_error(expected, error) => {}
            (Some(expected), None) if fits(expected, &text) => {}
            (Some(expected), error) => {
                let shown = error.map_or_else(|| text.clone(), shown_error);
                found.push(format!("`error` differs\n{}", difference(expected, &shown)));
            }
            (None, _) if expect.is_error == Some(true) => {}
            (None, error) => found.push(format!("the call failed\n{}", error.map_or(text.clone(), shown_error))),
        }
    } else if let Some(expected) = &expect.error {
        found.push(format!("`error` differs\nexpected {expected}, the call worked:\n{text}"));
    }
    if expect.is_error == Some(false) && output.is_error || expect.is_error == Some(true) && !output.is_error {
        found.push(format!("`is-error` differs\nexpected {}, it is {}", !output.is_error, output.is_error));
    }
    found.extend(expect.text.as_ref().and_then(|expected| text_differs("text", expected, &text)));
    for ((key, actual), expected) in data_of(output).into_iter().zip([&expect.details, &expect.structured]) {
        found.extend(expected.as_ref().and_then(|expected| data_differs(key, expected, actual)));
    }
    found
}

fn answered(outcome: &Outcome, expect: &Expect) -> Option<String> {
    let other = |wanted: &str| Some(format!("expected {wanted}, the answer is {}", shown_outcome(outcome)));
    if let Some(pass) = expect.pass
        && pass != (*outcome == Outcome::Pass)
    {
        return other(if pass { "pass" } else { "anything but pass" });
    }
    if let Some(handled) = expect.handled
        && handled != (*outcome == Outcome::Handled)
    {
        return other(if handled { "handled" } else { "anything but handled" });
    }
    if expect.block.is_some() || expect.terminate.is_some() {
        let Outcome::Block { reason, terminate } = outcome else { return other("block") };
        if expect.terminate.is_some_and(|expected| expected != *terminate) {
            return Some(format!("`terminate` differs\nexpected {}, it is {terminate}", !terminate));
        }
        let reason = reason.as_deref().unwrap_or_default();
        return expect.block.as_ref().and_then(|expected| text_differs("block", expected, reason));
    }
    if let Some(expected) = &expect.rewrite {
        let Outcome::Rewrite(arguments) = outcome else { return other("rewrite") };
        return data_differs("rewrite", expected, Some(arguments));
    }
    if let Some(expected) = &expect.transform {
        let Outcome::Transform { text, .. } = outcome else { return other("transform") };
        return text_differs("transform", expected, text);
    }
    if let Some(expected) = &expect.reply {
        let Outcome::Reply(fields) = outcome else { return other("reply") };
        return data_differs("reply", expected, Some(&Value::Object(fields.clone())));
    }
    if let Some(PatchExpected { text, details, structured, is_error }) = &expect.patch {
        let Outcome::Patch(patch) = outcome else { return other("patch") };
        let content = patch.content.as_ref().map(|content| Content::joined_text(content));
        let text = text.as_ref().and_then(|expected| match &content {
            Some(actual) => text_differs("patch.text", expected, actual),
            None => Some("`patch.text` differs\nthe text is not changed".to_owned()),
        });
        let data = |key, expected: &Option<Value>, actual: &Option<Value>| {
            expected.as_ref().and_then(|expected| data_differs(key, expected, actual.as_ref()))
        };
        let is_error = is_error.filter(|expected| patch.is_error != Some(*expected)).map(|expected| {
            let found = patch.is_error.map_or_else(|| "not changed".to_owned(), |is| is.to_string());
            format!("`patch.is-error` differs\nexpected {expected}, it is {found}")
        });
        return text
            .or_else(|| data("patch.details", details, &patch.details))
            .or_else(|| data("patch.structured", structured, &patch.structured))
            .or(is_error);
    }
    None
}

impl Said {
    fn differs(&self, expect: &Expect) -> Vec<String> {
        let mut found = Vec::new();
        found.extend(expect.text.as_ref().and_then(|expected| text_differs("text", expected, &self.text)));
        found.extend(expect.thinking.as_ref().and_then(|expected| text_differs("thinking", expected, &self.thinking)));
        if let Some(expected) = &expect.stop {
            let stop = self.stop.map_or("none", shown_stop);
            found.extend(text_differs("stop", expected, stop));
        }
        if let Some(expected) = &expect.calls {
            let shown: Vec<String> = self.calls.iter().map(|(name, arguments)| format!("{name} {arguments}")).collect();
            let is_call = |(expected, (name, arguments)): (&CallExpected, &(String, String))| {
                let arguments: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments));
                fits(&expected.name, name)
                    && expected.arguments.as_ref().is_none_or(|expected| data_fits(expected, &arguments).is_ok())
            };
            if expected.len() != self.calls.len() || !expected.iter().zip(&self.calls).all(is_call) {
                let wanted: Vec<String> = expected
                    .iter()
                    .map(|call| match &call.arguments {
                        Some(arguments) => format!("{} {arguments}", call.name),
                        None => call.name.clone(),
                    })
                    .collect();
                found.push(format!("`calls` differs\n{}", difference(&wanted.join("\n"), &shown.join("\n"))));
            }
        }
        found
    }
}

/// How what a plugin did meanwhile differs from what is expected. `tools`: those it has in the table.
pub(super) fn effects_differ(expect: &Expect, effects: &[Effect], tools: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let lists = [
        ("notify", "notify", &expect.notify),
        ("print", "print", &expect.print),
        ("messages", "message", &expect.messages),
        ("bus", "bus", &expect.bus),
        ("http", "http", &expect.http),
        ("session", "session", &expect.session),
        ("tool-calls", "call", &expect.tool_calls),
        ("failures", "failure", &expect.failures),
    ];
    for (key, kind, expected) in lists {
        if let Some(expected) = expected {
            let actual: Vec<&Effect> = effects.iter().filter(|effect| effect.kind() == kind).collect();
            found.extend(list_differs(key, expected, &actual));
        }
    }
    if let Some(expected) = &expect.log {
        let lines: Vec<&Effect> = effects.iter().filter(|effect| effect.kind() == "log").collect();
        found.extend(log_differs(expected, &lines));
    }
    if let Some(expected) = &expect.status {
        let last = effects.iter().rev().find(|effect| effect.kind() == "status").map(Effect::text);
        found.extend(text_differs("status", expected, &last.unwrap_or_default()));
    }
    if let Some(expected) = &expect.entries {
        found.extend(entries_differ(expected, effects));
    }
    if let Some(expected) = &expect.tools {
        let (mut expected, mut actual) = (expected.clone(), tools.to_vec());
        expected.sort();
        actual.sort();
        found.extend(lists_differ("tools", &expected, &actual));
    }
    found
}

fn is_it(expected: &str, effect: &Effect) -> bool {
    fits(expected, &effect.text()) || effect.short().is_some_and(|short| fits(expected, short))
}

/// All of them, in order.
fn list_differs(key: &str, expected: &[String], actual: &[&Effect]) -> Option<String> {
    let is_same = expected.len() == actual.len() && expected.iter().zip(actual).all(|(one, other)| is_it(one, other));
    (!is_same).then(|| {
        // What fits is shown alike on both sides.
        let shown = |index: usize, effect: &&Effect| match expected.get(index) {
            Some(expected) if is_it(expected, effect) => expected.clone(),
            _ => effect.text(),
        };
        let actual: Vec<String> = actual.iter().enumerate().map(|(index, effect)| shown(index, effect)).collect();
        format!("`{key}` differs\n{}", difference(&expected.join("\n"), &actual.join("\n")))
    })
}

/// These lines, in this order, with any others between them.
fn log_differs(expected: &[String], lines: &[&Effect]) -> Option<String> {
    let mut left = lines.iter();
    let missing = expected.iter().find(|expected| !left.any(|line| is_it(expected, line)))?;
    let all: Vec<String> = lines.iter().map(|line| line.text()).collect();
    let all = if all.is_empty() { "it logged nothing".to_owned() } else { format!("it logged\n{}", all.join("\n")) };
    Some(format!("`log` differs\nexpected the line {missing:?} after those before it; {all}"))
}

fn entries_differ(expected: &[EntryExpected], effects: &[Effect]) -> Option<String> {
    let actual: Vec<(&String, &Value)> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Entry { kind, data } => Some((kind, data)),
            _ => None,
        })
        .collect();
    let is_entry = |(expected, (kind, data)): (&EntryExpected, &(&String, &Value))| {
        fits(&expected.kind, kind) && expected.data.as_ref().is_none_or(|expected| data_fits(expected, data).is_ok())
    };
    let is_same = expected.len() == actual.len() && expected.iter().zip(&actual).all(is_entry);
    (!is_same).then(|| {
        let wanted: Vec<String> = expected
            .iter()
            .map(|entry| match &entry.data {
                Some(data) => format!("{} {data}", entry.kind),
                None => entry.kind.clone(),
            })
            .collect();
        let there: Vec<String> = actual.iter().map(|(kind, data)| format!("{kind} {data}")).collect();
        format!("`entries` differs\n{}", difference(&wanted.join("\n"), &there.join("\n")))
    })
}

/// How files differ from what is expected of them.
pub(super) fn files_differ(expect: &Expect, folders: &Folders) -> Vec<String> {
    let mut found = Vec::new();
    for (name, expected) in &expect.files {
        let (folder, below) = folders.place(name);
        match expected {
            FileExpected::Is(true) if !beside::is_there(folder, below) => {
                found.push(format!("the file {name} is missing"));
            }
            FileExpected::Is(false) if beside::is_there(folder, below) => {
                found.push(format!("there is a file {name}, expected none"));
            }
            FileExpected::Is(_) => {}
            FileExpected::Holds(text) => match beside::read(folder, below) {
                Ok(actual) => {
                    let actual = String::from_utf8_lossy(&actual);
                    found.extend(text_differs(&format!("files.{name}"), text, &actual));
                }
                Err(reason) => found.push(format!("the file {name} can not be read: {reason}")),
            },
        }
    }
    found
}
