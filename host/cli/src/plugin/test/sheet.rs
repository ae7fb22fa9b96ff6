//! What is written down of a scenario while it is played: the transcript, and what is not as expected.

use std::path::{Path, PathBuf};

use atoll_caps::AuditRecord;
use atoll_engine::AuditLog;
use atoll_table::Error;
use serde_json::Value;

use super::{
    beside,
    check::{difference, effects_differ, files_differ},
    folders::Folders,
    pattern::fits,
    play::{Play, Script, text_of},
    reading::line_of,
    record::{Effect, Record},
    scenario::{Action, Expect, StartKind, Step},
};
use crate::builtins;

/// Something that is not as expected.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct Problem {
    /// Where in the scenario.
    pub(super) line: usize,
    /// What was done.
    pub(super) step: String,
    /// What is not as expected. May have several lines.
    pub(super) message: String,
}

/// What is written down of a scenario while it is played.
pub(super) struct Sheet<'a> {
    script: &'a Script,
    folders: &'a Folders,
    update: bool,
    pub(super) problems: Vec<Problem>,
    pub(super) steps: usize,
    pub(super) transcript: String,
    /// Golden files that were written.
    pub(super) written: Vec<PathBuf>,
    /// A step expected an error.
    expects_failures: bool,
    /// How much of what happened belongs to steps.
    in_steps: usize,
}

impl<'a> Sheet<'a> {
    pub(super) fn new(script: &'a Script, folders: &'a Folders, update: bool) -> Self {
        Self {
            script,
            folders,
            update,
            problems: Vec::new(),
            steps: 0,
            transcript: String::new(),
            written: Vec::new(),
            expects_failures: false,
            in_steps: 0,
        }
    }

    pub(super) fn problem(&mut self, step: Option<usize>, what: &str, message: &str) {
        let line = step.and_then(|index| self.script.scenario.step.get(index));
        let line = line.map_or(1, |step| line_of(&self.script.text, &step.span()));
        self.problems.push(Problem { line, step: what.to_owned(), message: self.folders.plain(message) });
    }

    /// Does the steps. Gives why the plugin can not be used, if that is no step of its own.
    pub(super) async fn play(&mut self, play: &Play<'_>, record: &Record) -> Option<Error> {
        let script = self.script;
        let is_said = script.scenario.step.first().is_some_and(|step| step.get_ref().start.is_some());
        if !is_said {
            let before = record.len();
            if let Err(error) = play.start().await {
                return Some(error);
            }
            let effects = record.since(before);
            if !effects.is_empty() {
                self.write("start", &effects, None);
            }
            for complaint in record.complaints() {
                self.problem(None, "start", &complaint);
            }
            self.in_steps = record.len();
        }
        for (index, step) in script.scenario.step.iter().enumerate() {
            let step = step.get_ref();
            let what = title(step);
            let before = record.len();
            let done = play.act(step, index + 1).await;
            self.steps += 1;
            let effects = record.since(before);
            self.in_steps = before + effects.len();
            let text = self.write(&what, &effects, done.shown());
            let mut found = done.differs(&step.expect);
            found.extend(record.complaints());
            found.extend(effects_differ(&step.expect, &effects, &play.tools()));
            found.extend(files_differ(&step.expect, self.folders));
            self.expects_failures |= step.expect.error.is_some();
            if step.expect.failures.is_none() {
                found.extend(self.unexpected_failures(&effects));
            }
            found.extend(self.golden(&step.expect, &text));
            for message in found {
                self.problem(Some(index), &what, &message);
            }
        }
        None
    }

    /// Failures that nobody waited for are mistakes, unless the scenario speaks of failures: what dies of one that is
    /// expected is reported when it has, which may be in a later step.
    fn unexpected_failures(&self, effects: &[Effect]) -> Vec<String> {
        if self.expects_failures || self.script.scenario.expect.failures.is_some() {
            return Vec::new();
        }
        let failures = effects.iter().filter(|effect| effect.kind() == "failure");
        failures.map(|failure| format!("the plugin failed\n{}", failure.text())).collect()
    }

    /// Adds to the transcript; gives what was added.
    fn write(&mut self, what: &str, effects: &[Effect], outcome: Option<String>) -> String {
        let mut text = format!("{what}\n");
        for effect in effects {
            let shown = effect.to_string();
            text.push_str(&format!("  {}\n", shown.trim_end().replace('\n', "\n    ")));
        }
        if let Some(outcome) = outcome {
            text.push_str(&format!("  = {}\n", outcome.trim_end().replace('\n', "\n    ")));
        }
        let text = self.folders.plain(&text);
        self.transcript.push_str(&text);
        text
    }

    /// Compares with a golden file, or writes it.
    fn golden(&mut self, expect: &Expect, text: &str) -> Option<String> {
        let name = expect.golden.as_ref()?;
        let folder = self.script.file.parent().unwrap_or(Path::new(""));
        let path = folder.join(name);
        let way_out = "ATOLL_UPDATE=1 writes it";
        let kept = beside::read(folder, name).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        if self.update {
            if kept.is_ok_and(|kept| kept == text) {
                return None;
            }
            if let Err(error) = beside::write(folder, name, text) {
                return Some(format!("the golden file {} can not be written: {error}", path.display()));
            }
            self.written.push(path);
            return None;
        }
        match kept {
            Ok(kept) if kept.trim_end() == text.trim_end() => None,
            Ok(kept) => {
                Some(format!("the golden file {} differs; {way_out}\n{}", path.display(), difference(&kept, text)))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Some(format!("there is no golden file {}; {way_out}", path.display()))
            }
            Err(error) => Some(format!("the golden file {} can not be read: {error}", path.display())),
        }
    }

    /// What is expected of the whole, once everything has ended.
    pub(super) fn whole(&mut self, record: &Record, tools: &[String], audit: &Path) {
        let script = self.script;
        let expect = &script.scenario.expect;
        let effects = record.since(0);
        let mut found = record.complaints();
        let last = effects.get(self.in_steps..).unwrap_or_default();
        found.extend(self.unexpected_failures(last));
        if !last.is_empty() {
            self.write("end", last, None);
        }
        found.extend(effects_differ(expect, &effects, tools));
        found.extend(files_differ(expect, self.folders));
        let uses: Vec<AuditRecord> = AuditLog::files(audit)
            .iter()
            .filter_map(|file| std::fs::read_to_string(file).ok())
            .flat_map(|text| text.lines().filter_map(AuditRecord::from_line).collect::<Vec<_>>())
            .filter(|used| used.plugin != "scenario" && builtins::by_name(&used.plugin).is_none())
            .collect();
        found.extend(uses_differ(expect, &uses).into_iter().map(|text| self.folders.plain(&text)));
        let transcript = self.transcript.clone();
        found.extend(self.golden(expect, &transcript));
        for message in found {
            self.problem(None, "the whole", &message);
        }
    }
}

/// Whether a use of a capability is the one that is meant: `http`, `http GET`, `http GET https://…`.
fn is_use(expected: &str, used: &AuditRecord) -> bool {
    let AuditRecord { capability, operation, target, .. } = used;
    fits(expected, capability)
        || fits(expected, &format!("{capability} {operation}"))
        || fits(expected, &format!("{capability} {operation} {target}"))
}

fn uses_differ(expect: &Expect, uses: &[AuditRecord]) -> Vec<String> {
    let shown = |used: &AuditRecord| format!("{} {} {}", used.capability, used.operation, used.target);
    let list = |allowed: bool| {
        let mut all: Vec<String> = uses.iter().filter(|used| used.allowed == allowed).map(shown).collect();
        all.dedup();
        if all.is_empty() { "nothing".to_owned() } else { all.join("\n") }
    };
    let mut found = Vec::new();
    for expected in &expect.used {
        if !uses.iter().any(|used| used.allowed && is_use(expected, used)) {
            found.push(format!("`used`: {expected} was not used; used was\n{}", list(true)));
        }
    }
    for unwanted in &expect.not_used {
        if let Some(used) = uses.iter().find(|used| used.allowed && is_use(unwanted, used)) {
            found.push(format!("`not-used`: {unwanted} was used\n{}", shown(used)));
        }
    }
    if let Some(expected) = &expect.denied {
        for expected in expected {
            if !uses.iter().any(|used| !used.allowed && is_use(expected, used)) {
                found.push(format!("`denied`: {expected} was not denied; denied was\n{}", list(false)));
            }
        }
        if expected.is_empty() && uses.iter().any(|used| !used.allowed) {
            found.push(format!("`denied`: nothing was to be denied; denied was\n{}", list(false)));
        }
    }
    found
}

/// What a step does, in a few words.
fn title(step: &Step) -> String {
    match step.action() {
        Some(Action::Start(StartKind::Startup)) => "start".to_owned(),
        Some(Action::Start(StartKind::Reload)) => "start reload".to_owned(),
        Some(Action::Event(kind)) => match step.fields.get("tool").and_then(Value::as_str) {
            Some(tool) => format!("event {kind} {tool}"),
            None => format!("event {kind}"),
        },
        Some(Action::Call(tool)) => format!("call {tool}"),
        Some(Action::Command(name)) => format!("command {}", format!("{name} {}", text_of(step)).trim()),
        Some(Action::Complete(name)) => format!("complete {}", format!("{name} {}", text_of(step)).trim()),
        Some(Action::Bus(topic)) => format!("bus {topic}"),
        Some(Action::Prompt(prompt)) => format!("prompt {prompt:?}"),
        Some(Action::Until(expected)) => format!("until {expected:?}"),
        None => "nothing".to_owned(),
    }
}
