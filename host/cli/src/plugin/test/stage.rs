//! The host as a plugin under test finds it: a session in memory, a person, models, a network and tools that answer what
//! the scenario says. What it does not say is a complaint, so that a test never passes for the wrong reason.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use atoll_engine::{RecordedAnswer, RecordedRequest};
use atoll_table::{
    Content, Error,
    extension::{
        Bus, ContextSize, CustomMessage, Delivery, Extension, FlagKind, HostFacts, HostInfo, McpServer, Mode,
        ModelAccess, ModelAnswer, ModelChoice, SessionAccess, SessionInfo, Subscription, Tone, Ui, Who,
    },
    model::{Secret, Usage},
};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{
    beside,
    pattern::fits,
    record::{Effect, Record},
    scenario::{Body, DialogAnswer, FlagValue, ModelReply, Recording, Scenario},
};

/// The host of one scenario.
pub(super) struct Stage {
    scenario: Arc<Scenario>,
    pub(super) record: Arc<Record>,
    workspace: PathBuf,
    /// Where the scenario is: what it names is beside it.
    beside: PathBuf,
    session: Mutex<Session>,
    /// How often each recorded answer was given.
    requests: Mutex<Vec<u32>>,
    dialogs: Mutex<usize>,
    replies: Mutex<usize>,
    pub(super) secrets: Mutex<BTreeMap<String, Secret>>,
    pub(super) providers: Mutex<BTreeMap<String, Value>>,
    pub(super) servers: Mutex<BTreeMap<String, McpServer>>,
    extension: OnceLock<Arc<dyn Extension>>,
}

#[derive(Default)]
struct Session {
    name: Option<String>,
    model: String,
    thinking: String,
    entries: Vec<Value>,
    sections: BTreeMap<String, String>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The start of a long text, for messages.
fn cut(text: &str) -> String {
    const MOST: usize = 300;
    match text.len() {
        0..=MOST => text.to_owned(),
        _ => format!("{}…", text.get(..text.floor_char_boundary(MOST)).unwrap_or_default()),
    }
}

impl Stage {
    pub(super) fn new(scenario: Arc<Scenario>, record: Arc<Record>, workspace: &Path, beside: &Path) -> Self {
        let setup = &scenario.session;
        let session = Session {
            name: setup.name.clone(),
            model: setup.model.clone().unwrap_or_else(|| "test/model".to_owned()),
            thinking: setup.thinking.clone().unwrap_or_else(|| "off".to_owned()),
            entries: setup.entries.iter().cloned().map(Value::Object).collect(),
            sections: BTreeMap::new(),
        };
        Self {
            record,
            workspace: workspace.to_owned(),
            beside: beside.to_owned(),
            session: Mutex::new(session),
            requests: Mutex::new(vec![0; scenario.http.len()]),
            dialogs: Mutex::default(),
            replies: Mutex::default(),
            secrets: Mutex::new(
                scenario.secrets.iter().map(|(name, value)| (name.clone(), Secret::new(value))).collect(),
            ),
            providers: Mutex::default(),
            servers: Mutex::default(),
            extension: OnceLock::new(),
            scenario,
        }
    }

    /// The extension under test: its defaults are those of flags that are not set.
    pub(super) fn set_extension(&self, extension: Arc<dyn Extension>) {
        let _ = self.extension.set(extension);
    }

    fn has_person(&self) -> bool {
        self.scenario.person.unwrap_or(!self.scenario.ui.is_empty())
    }

    /// What was provided for and never came.
    pub(super) fn unused(&self) -> Vec<String> {
        let mut unused = Vec::new();
        for (recording, count) in self.scenario.http.iter().zip(lock(&self.requests).iter()) {
            let Recording { method, url, optional, .. } = recording.get_ref();
            if *count == 0 && !optional {
                unused.push(format!(
                    "nobody made the request {} {url} that was recorded; take it out, or say `optional = true`",
                    method.as_deref().unwrap_or("GET")
                ));
            }
        }
        let (asked, answers) = (*lock(&self.dialogs), self.scenario.ui.len());
        if asked < answers {
            unused.push(format!("{answers} answers of the person were given in [[ui]], and {asked} were asked for"));
        }
        let (asked, replies) = (*lock(&self.replies), self.scenario.model.len());
        if asked < replies {
            unused.push(format!("{replies} answers of the model were given in [[model]], and {asked} were asked for"));
        }
        unused
    }

    /// The answer that was recorded for a request.
    pub(super) fn answer(&self, request: &RecordedRequest) -> Result<RecordedAnswer, Error> {
        let shown = format!("{} {}", request.method, request.url);
        let mut used = lock(&self.requests);
        let fitting: Vec<usize> = (self.scenario.http.iter().enumerate())
            .filter(|(_, recording)| is_request(recording.get_ref(), request))
            .map(|(index, _)| index)
            .collect();
        let unused = fitting.iter().copied().find(|index| used.get(*index) == Some(&0));
        let found = unused.or_else(|| fitting.last().copied()).and_then(|index| {
            let count = used.get_mut(index)?;
            *count += 1;
            self.scenario.http.get(index)
        });
        drop(used);
        let Some(recording) = found.map(toml::Spanned::get_ref) else {
            let effect = Effect::Http { request: shown.clone(), answer: "nothing was recorded".to_owned() };
            self.record.add(effect);
            let body = String::from_utf8_lossy(&request.body);
            let headers = request.headers.iter().map(|(name, value)| format!("\n    {name}: {value}"));
            let known = self.scenario.http.iter().map(|recording| {
                let Recording { method, url, .. } = recording.get_ref();
                format!("\n    {} {url}", method.as_deref().unwrap_or("GET"))
            });
            let known: String = known.collect();
            self.record.complain(format!(
                "no [[http]] fits the request {shown}{}{}{}",
                headers.collect::<String>(),
                if body.is_empty() { String::new() } else { format!("\n    body: {}", cut(&body)) },
                if known.is_empty() { "\n  none is recorded".to_owned() } else { format!("\n  recorded are{known}") },
            ));
            return Err(Error::Unavailable(format!("no answer to {shown} was recorded")));
        };
        if let Some(reason) = &recording.unreachable {
            self.record.add(Effect::Http { request: shown, answer: format!("unreachable: {reason}") });
            return Err(Error::Unavailable(reason.clone()));
        }
        self.record.add(Effect::Http { request: shown, answer: recording.status.to_string() });
        let mut headers: Vec<(String, String)> =
            recording.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let body = match (&recording.body, &recording.json, &recording.body_file) {
            (Some(Body::Whole(text)), ..) => vec![text.clone().into_bytes()],
            (Some(Body::Pieces(pieces)), ..) => pieces.iter().map(|piece| piece.clone().into_bytes()).collect(),
            (_, Some(data), _) => {
                if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                    headers.push(("content-type".to_owned(), "application/json".to_owned()));
                }
                vec![data.to_string().into_bytes()]
            }
            (.., Some(file)) => {
                let path = self.beside.join(file);
                vec![beside::read(&self.beside, file).map_err(|error| {
                    let reason = format!("body-file {}: {error}", path.display());
                    self.record.complain(reason.clone());
                    Error::Unavailable(reason)
                })?]
            }
            _ => Vec::new(),
        };
        Ok(RecordedAnswer { status: recording.status, headers, body })
    }

    /// What the person answers next, if that is an answer to this.
    fn dialog<T>(
        &self,
        kind: &'static str,
        title: &str,
        pick: impl FnOnce(&DialogAnswer) -> Option<(T, String)>,
    ) -> Option<T> {
        let add = |answer: Option<String>| {
            self.record.add(Effect::Dialog { kind, title: title.to_owned(), answer });
        };
        if !self.has_person() {
            add(None);
            return None;
        }
        let mut next = lock(&self.dialogs);
        let Some(answer) = self.scenario.ui.get(*next) else {
            self.record.complain(format!("the plugin asks {kind} {title:?}, and [[ui]] has no answer for it"));
            add(None);
            return None;
        };
        *next += 1;
        let number = *next;
        drop(next);
        let answer = answer.get_ref();
        if let Some(expected) = &answer.title
            && !fits(expected, title)
        {
            self.record
                .complain(format!("the answer {number} of [[ui]] is for {expected:?}, and the plugin asks {title:?}"));
        }
        if answer.decline {
            add(None);
            return None;
        }
        match pick(answer) {
            Some((value, shown)) => {
                add(Some(shown));
                Some(value)
            }
            None => {
                self.record.complain(format!(
                    "the answer {number} of [[ui]] is none to {kind} {title:?}; give it `{kind} = …`, one of what there is \
                     to choose from"
                ));
                add(None);
                None
            }
        }
    }
}

fn is_request(recording: &Recording, request: &RecordedRequest) -> bool {
    recording.method.as_deref().unwrap_or("GET").eq_ignore_ascii_case(&request.method)
        && fits(&recording.url, &request.url)
        && recording.request_headers.iter().all(|(name, value)| {
            request.headers.iter().any(|(given, is)| given.eq_ignore_ascii_case(name) && fits(value, is))
        })
        && recording
            .request_body
            .as_ref()
            .is_none_or(|expected| fits(expected, &String::from_utf8_lossy(&request.body)))
}

impl Ui for Stage {
    fn available(&self) -> bool {
        self.has_person()
    }

    fn select(
        &self,
        _: &Who,
        title: String,
        options: Vec<String>,
        _: Option<Duration>,
    ) -> BoxFuture<'_, Result<Option<usize>, Error>> {
        Box::pin(async move {
            Ok(self.dialog("select", &title, |answer| {
                let wanted = answer.select.as_ref()?;
                let index = options.iter().position(|option| fits(wanted, option))?;
                Some((index, options.get(index).cloned().unwrap_or_default()))
            }))
        })
    }

    fn confirm(
        &self,
        _: &Who,
        title: String,
        _: String,
        _: Option<Duration>,
    ) -> BoxFuture<'_, Result<Option<bool>, Error>> {
        Box::pin(async move {
            Ok(self.dialog("confirm", &title, |answer| {
                answer.confirm.map(|yes| (yes, if yes { "yes" } else { "no" }.to_owned()))
            }))
        })
    }

    fn input(
        &self,
        _: &Who,
        title: String,
        _: String,
        _: Option<Duration>,
    ) -> BoxFuture<'_, Result<Option<String>, Error>> {
        Box::pin(async move {
            Ok(self.dialog("input", &title, |answer| answer.input.clone().map(|text| (text.clone(), text))))
        })
    }

    fn editor(&self, _: &Who, title: String, _: String) -> BoxFuture<'_, Result<Option<String>, Error>> {
        Box::pin(async move {
            Ok(self.dialog("editor", &title, |answer| answer.editor.clone().map(|text| (text.clone(), text))))
        })
    }

    fn print(&self, _: &Who, text: String) {
        self.record.add(Effect::Print(text));
    }

    fn notify(&self, _: &Who, message: String, tone: Tone) {
        self.record.add(Effect::Notify { tone, message });
    }

    fn set_status(&self, _: &Who, text: Option<String>) {
        self.record.add(Effect::Status(text));
    }
}

impl Bus for Stage {
    fn emit(&self, _: &Who, topic: &str, data: Value) -> Result<(), Error> {
        self.record.add(Effect::Bus { topic: topic.to_owned(), data });
        Ok(())
    }
}

impl HostFacts for Stage {
    fn describe(&self) -> HostInfo {
        HostInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            mode: if self.has_person() { Mode::Terminal } else { Mode::Print },
            has_person: self.has_person(),
            cwd: self.workspace.clone(),
            trusted: self.scenario.trusted,
        }
    }

    fn flag(&self, _: &Who, name: &str) -> Option<String> {
        let said = self.scenario.flags.get(name).map(|value| match value {
            FlagValue::Is(is) => is.to_string(),
            FlagValue::Text(text) => text.clone(),
        });
        said.or_else(|| {
            let wanted = self.extension.get()?.subscription();
            let flag = wanted.flags.iter().find(|flag| flag.name == name)?;
            flag.default.clone().or_else(|| (flag.kind == FlagKind::Boolean).then(|| "false".to_owned()))
        })
    }

    fn settings(&self, _: &Who) -> Value {
        Value::Object(self.scenario.settings.clone())
    }

    fn changed(&self, _: &Who, _: &Arc<Subscription>) {}
}

impl ModelAccess for Stage {
    fn available(&self) -> Vec<ModelChoice> {
        vec![ModelChoice { name: lock(&self.session).model.clone(), images: true, context_window: 128_000 }]
    }

    fn complete(
        &self,
        _: &Who,
        _: Option<String>,
        _: String,
        prompt: Vec<Content>,
        _: Option<u32>,
    ) -> BoxFuture<'_, Result<ModelAnswer, Error>> {
        Box::pin(async move {
            let prompt = Content::joined_text(&prompt);
            let mut next = lock(&self.replies);
            let Some(reply) = self.scenario.model.get(*next).map(toml::Spanned::get_ref) else {
                self.record.complain(format!(
                    "the plugin asks a model {:?}, and [[model]] has no answer for it",
                    cut(&prompt)
                ));
                return Err(Error::Unavailable("no answer of a model was given".to_owned()));
            };
            *next += 1;
            let number = *next;
            drop(next);
            let ModelReply { prompt: expected, text, error } = reply;
            if let Some(expected) = expected
                && !fits(expected, &prompt)
            {
                self.record.complain(format!(
                    "the answer {number} of [[model]] is for {expected:?}, and the plugin asks {:?}",
                    cut(&prompt)
                ));
            }
            let answer = error.as_ref().unwrap_or(text).clone();
            self.record.add(Effect::Model { prompt, answer: answer.clone() });
            match error {
                Some(_) => Err(Error::Failed(answer)),
                None => Ok(ModelAnswer { text: answer, usage: Usage::default() }),
            }
        })
    }
}

impl Stage {
    fn did(&self, what: String) -> BoxFuture<'_, Result<(), Error>> {
        self.record.add(Effect::Session(what));
        Box::pin(async { Ok(()) })
    }
}

impl SessionAccess for Stage {
    fn info(&self) -> SessionInfo {
        let session = lock(&self.session);
        SessionInfo {
            id: "test-session".to_owned(),
            file: None,
            cwd: self.workspace.clone(),
            name: session.name.clone(),
            idle: true,
            pending: false,
            model: Some(session.model.clone()),
            thinking: session.thinking.clone(),
        }
    }

    fn entries(&self) -> BoxFuture<'_, Result<Vec<Value>, Error>> {
        Box::pin(async { Ok(lock(&self.session).entries.clone()) })
    }

    fn append(&self, _: &Who, custom_type: String, data: Value) -> BoxFuture<'_, Result<String, Error>> {
        let mut session = lock(&self.session);
        let id = format!("entry-{}", session.entries.len() + 1);
        session.entries.push(json!({"type": "custom", "id": id, "customType": custom_type, "data": data}));
        drop(session);
        self.record.add(Effect::Entry { kind: custom_type, data });
        Box::pin(async { Ok(id) })
    }

    fn send(&self, _: &Who, content: Vec<Content>, delivery: Delivery) -> BoxFuture<'_, Result<(), Error>> {
        self.record.add(Effect::Message { delivery, kind: None, text: Content::joined_text(&content) });
        Box::pin(async { Ok(()) })
    }

    fn send_custom(
        &self,
        _: &Who,
        message: CustomMessage,
        delivery: Delivery,
        _: bool,
    ) -> BoxFuture<'_, Result<(), Error>> {
        let text = Content::joined_text(&message.content);
        self.record.add(Effect::Message { delivery, kind: Some(message.custom_type), text });
        Box::pin(async { Ok(()) })
    }

    fn set_label(&self, entry_id: String, label: Option<String>) -> BoxFuture<'_, Result<(), Error>> {
        let is_known = lock(&self.session).entries.iter().any(|entry| entry["id"] == entry_id.as_str());
        if !is_known {
            return Box::pin(async move { Err(Error::NotFound(format!("the session has no entry `{entry_id}`"))) });
        }
        self.did(match label {
            Some(label) => format!("label of {entry_id}: {label}"),
            None => format!("no label of {entry_id}"),
        })
    }

    fn set_name(&self, name: String) -> BoxFuture<'_, Result<(), Error>> {
        lock(&self.session).name = Some(name.clone());
        self.did(format!("name: {name}"))
    }

    fn set_model(&self, name: String) -> BoxFuture<'_, Result<(), Error>> {
        lock(&self.session).model.clone_from(&name);
        self.did(format!("model: {name}"))
    }

    fn set_thinking(&self, level: String) -> BoxFuture<'_, Result<(), Error>> {
        lock(&self.session).thinking.clone_from(&level);
        self.did(format!("thinking: {level}"))
    }

    fn set_prompt_section(&self, _: &Who, name: String, text: Option<String>) -> BoxFuture<'_, Result<(), Error>> {
        let did = match &text {
            Some(text) => format!("prompt section {name}: {text}"),
            None => format!("no prompt section {name}"),
        };
        let mut session = lock(&self.session);
        match text {
            Some(text) => session.sections.insert(name, text),
            None => session.sections.remove(&name),
        };
        drop(session);
        self.did(did)
    }

    fn system_prompt(&self) -> String {
        let session = lock(&self.session);
        let sections = session.sections.values().map(String::as_str);
        let prompt = Some(self.scenario.session.system_prompt.as_str()).filter(|prompt| !prompt.is_empty());
        prompt.into_iter().chain(sections).collect::<Vec<_>>().join("\n\n")
    }

    fn context_usage(&self) -> Option<ContextSize> {
        Some(ContextSize { tokens: None, window: 128_000 })
    }

    fn compact(&self, instructions: Option<String>) -> BoxFuture<'_, Result<(), Error>> {
        self.did(instructions.map_or_else(|| "compact".to_owned(), |text| format!("compact: {text}")))
    }

    fn wait_idle(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }

    fn reload(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.did("reload".to_owned())
    }

    fn abort(&self) {
        self.record.add(Effect::Session("abort".to_owned()));
    }

    fn shutdown(&self) {
        self.record.add(Effect::Session("shutdown".to_owned()));
    }
}
