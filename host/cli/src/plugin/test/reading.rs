//! Reads scenarios. What is not understood is an error that says where, and what may have been meant: a test that is read
//! wrongly must not pass.

use std::{ops::Range, path::Path};

use atoll_caps::{Capability, printable};
use atoll_table::{extension::EventKind, names::near_matches};
use toml::de::{DeTable, DeValue};

use super::{
    beside, event,
    pattern::fits,
    scenario::{Action, DialogAnswer, Expect, Recording, Scenario, StartKind, Step},
};

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

/// Where a key is, by those of the tables that it is in; as much of it as there is.
fn key(text: &str, path: &[&str]) -> Range<usize> {
    let (mut span, Ok(whole)) = (0..0, DeTable::parse(text)) else { return 0..0 };
    let mut table = whole.get_ref();
    for name in path {
        let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == name) else { break };
        span = key.span();
        let DeValue::Table(below) = value.get_ref() else { break };
        table = below;
    }
    span
}

/// What a reader says, with a suggestion where a key is unknown.
pub(super) fn reason(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let one_line = message.trim_end().split('\n').collect::<Vec<_>>().join(", ");
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
        scenario.check(text).map_err(|(at, reason)| bad(at.start, reason))?;
        Ok(scenario)
    }

    /// What the types do not say.
    fn check(&self, text: &str) -> Result<(), (Range<usize>, String)> {
        for name in self.granted.iter().flatten() {
            if name.parse::<Capability>().is_err() {
                let reason = format!("`granted`: {}", unknown("capability", name, &capabilities()));
                return Err((key(text, &["granted"]), reason));
            }
        }
        for (name, content) in &self.files {
            if !is_place(name) {
                return Err((content.span(), format!("[files]: {}", outside(name))));
            }
        }
        for recording in &self.http {
            let Recording { body, json, body_file, unreachable, .. } = recording.get_ref();
            let given = [body.is_some(), json.is_some(), body_file.is_some(), unreachable.is_some()];
            if given.iter().filter(|given| **given).count() > 1 {
                let reason = "an answer has one of `body`, `json`, `body-file` and `unreachable`; leave the others out";
                return Err((recording.span(), reason.to_owned()));
            }
            if let Some(name) = body_file.as_deref().filter(|name| !beside::is_below(name)) {
                return Err((recording.span(), format!("`body-file`: {}", outside(name))));
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
        let given = self.expect.given();
        if let Some((name, of, _)) = given.iter().find(|(.., whole)| !whole) {
            let reason =
                format!("[expect]: `{name}` is expected of a step that is {}; put it below that [[step]]", names(of));
            return Err((key(text, &["expect", name]), reason));
        }
        self.expect.check().map_err(|(name, reason)| (key(text, &["expect", name]), format!("[expect]: {reason}")))?;
        if given.is_empty() && self.step.is_empty() {
            let reason = "there is nothing that could fail: write a [[step]], or what is expected below [expect]; a plugin \
                that only has to start has `[[step]]` with `start = \"startup\"`";
            return Err((0..0, reason.to_owned()));
        }
        if self.expect.error.is_some() && !self.step.is_empty() {
            let reason = "[expect]: `error` says that the plugin can not be used, so no [[step]] would happen; put it below \
                the step that fails, or leave the steps out";
            return Err((key(text, &["expect", "error"]), reason.to_owned()));
        }
        for (index, step) in self.step.iter().enumerate() {
            step.get_ref().check(index == 0).map_err(|reason| (step.span(), reason))?;
        }
        Ok(())
    }
}

fn capabilities() -> Vec<&'static str> {
    Capability::ALL.iter().map(|known| known.as_str()).collect()
}

/// Whether a name is that of a file in one of the scenario's own folders.
fn is_place(name: &str) -> bool {
    beside::is_below(name.strip_prefix("~/").unwrap_or(name))
}

fn outside(name: &str) -> String {
    format!("`{name}` is outside of the scenario's own folder; use a relative name without `.` and `..`")
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
            event::event(kind, &self.fields)?;
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
        self.expect.check().map_err(|(_, reason)| reason)?;
        // What is compared first would hide the rest.
        let outcomes = self.expect.outcomes(action);
        if let [one, other, ..] = outcomes.as_slice() {
            return Err(format!("`{one}` and `{other}` can not both come of one step; leave one out"));
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
    /// What the types do not say. Gives the key that is wrong, and why.
    fn check(&self) -> Result<(), (&'static str, String)> {
        if let Some(name) = self.files.keys().find(|name| !is_place(name)) {
            return Err(("files", format!("`files`: {}", outside(name))));
        }
        if let Some(name) = self.golden.as_deref().filter(|name| !beside::is_below(name)) {
            return Err(("golden", format!("`golden`: {}", outside(name))));
        }
        let uses = [
            ("used", self.used.as_slice()),
            ("not-used", &self.not_used),
            ("denied", self.denied.as_deref().unwrap_or_default()),
        ];
        for (key, uses) in uses {
            for wanted in uses {
                let capability = wanted.split(' ').next().unwrap_or_default();
                // A name that no use ever has would be `not-used` whatever happens.
                if !Capability::ALL.iter().any(|known| fits(capability, known.as_str())) {
                    return Err((key, format!("`{key}`: {}", unknown("capability", capability, &capabilities()))));
                }
            }
        }
        Ok(())
    }

    /// Those of the keys that are given of which one step can fulfil only one.
    fn outcomes(&self, action: &str) -> Vec<&'static str> {
        let own = [
            ("subscribed = false", self.subscribed == Some(false)),
            ("pass = true", self.pass == Some(true)),
            ("handled = true", self.handled == Some(true)),
            ("block", self.block.is_some() || self.terminate.is_some()),
            ("rewrite", self.rewrite.is_some()),
            ("transform", self.transform.is_some()),
            ("reply", self.reply.is_some()),
            ("patch", self.patch.is_some()),
        ];
        let mut given: Vec<&str> = own.iter().filter(|(_, given)| *given).map(|(key, _)| *key).collect();
        if self.error.is_some() {
            given.insert(0, "error");
            // The result of a call may say more of a failure; what was not answered has nothing else to compare.
            if action != "call" {
                let answer = [
                    ("pass", self.pass.is_some()),
                    ("handled", self.handled.is_some()),
                    ("text", self.text.is_some()),
                    ("thinking", self.thinking.is_some()),
                    ("calls", self.calls.is_some()),
                    ("stop", self.stop.is_some()),
                    ("completions", self.completions.is_some()),
                ];
                given.extend(answer.iter().filter(|(_, given)| *given).map(|(key, _)| *key));
            }
        } else if self.subscribed == Some(false) {
            let answer = [("pass", self.pass.is_some()), ("handled", self.handled.is_some())];
            given.extend(answer.iter().filter(|(_, given)| *given).map(|(key, _)| *key));
        }
        given
    }

    /// The keys that are given, the steps that each is for, and whether it is for the whole too.
    fn given(&self) -> Vec<(&'static str, &'static [&'static str], bool)> {
        let all: [(_, &'static [&'static str], _, _); 35] = [
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
            ("print", ANY, true, self.print.is_some()),
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_count_from_one() {
        let text = "a\nüb\n";
        assert_eq!([place(text, 0), place(text, 2), place(text, 4), place(text, 99)], [(1, 1), (2, 1), (2, 2), (3, 1)]);
    }

    #[test]
    fn what_the_reader_says_of_unknown_keys_becomes_a_suggestion() {
        let said = "unknown field `evnt`, expected one of `start`, `event`";
        assert_eq!(reason(said), "unknown key `evnt`; did you mean event?");
        let said = "unknown variant `restart`, expected `startup` or `reload`";
        assert_eq!(reason(said), "unknown value `restart`; what can be here: startup, reload");
        assert_eq!(reason("missing field `url`\n"), "missing field `url`");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(\\[\\[?(step|http|ui|expect)\\]?\\]\n)?([a-z-]{1,8}(\\.[a-z]{1,5})? = .{0,12}\n){0,4}") {
            let _ = Scenario::parse(&text, Path::new("s.toml"));
        }
    }
}
