//! Plays a scenario: the plugin in the real engine with its real limits, and around it a host that the scenario makes up.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use atoll_agent::{
    Extensions, Pipeline,
    extensions::{Failure, own_tables::OwnTables},
    nested_calls::{NestedEvent, NestedStep, Watch},
    pipeline::Caller,
};
use atoll_caps::{AuditRecord, Capability, Effective, UserLimits, Wants};
use atoll_engine::{AuditLog, LoadedPlugin, Places, PluginHost, UserPlugin};
use atoll_table::{
    Content, Error, Origin, Registration, Table, ToolRunner,
    extension::{Bus, Event, HostFacts, ModelAccess, Services, SessionAccess, Tables, Ui},
    model::{Declaration, Model, ModelEvent, ModelProvider, ModelRequest, PromptMessage, Secret},
};
use futures::StreamExt as _;
use serde_json::{Value, json};

use super::{
    check::{Done, Said, difference, effects_differ, files_differ, is_error, shown_error},
    event,
    pattern::fits,
    record::{Effect, Record},
    scenario::{Action, Expect, ModelSetup, Scenario, StartKind, Step, line_of},
    stage::{FakeTools, Stage},
    subject::Subject,
};
use crate::builtins;

/// How long one step may take. Longer than the plugin's own limits, so that these are what ends it.
const STEP: Duration = Duration::from_secs(180);
/// The same for waiting until something happens.
const UNTIL: Duration = Duration::from_secs(20);

/// A scenario as it was read.
pub(super) struct Script {
    pub(super) file: PathBuf,
    pub(super) text: String,
    pub(super) scenario: Arc<Scenario>,
}

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

/// What came of a scenario.
pub(super) struct Played {
    pub(super) problems: Vec<Problem>,
    pub(super) steps: usize,
    pub(super) transcript: String,
    /// Golden files that were written.
    pub(super) written: Vec<PathBuf>,
}

/// Folders that are there for as long as a scenario is played.
struct Folders {
    _all: tempfile::TempDir,
    root: PathBuf,
    workspace: PathBuf,
    home: PathBuf,
}

impl Folders {
    fn new(scenario: &Scenario) -> anyhow::Result<Self> {
        let all = tempfile::Builder::new().prefix("atoll-plugin-test-").tempdir().context("no temporary folder")?;
        let root = all.path().canonicalize()?;
        let folders = Self { workspace: root.join("workspace"), home: root.join("home"), root, _all: all };
        std::fs::create_dir_all(&folders.workspace)?;
        std::fs::create_dir_all(&folders.home)?;
        for (name, text) in &scenario.files {
            let path = folders.place(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(&path, text).with_context(|| format!("the file {name} can not be made"))?;
        }
        Ok(folders)
    }

    fn place(&self, name: &str) -> PathBuf {
        match name.strip_prefix("~/") {
            Some(name) => self.home.join(name),
            None => self.workspace.join(name),
        }
    }

    /// Without what differs from run to run.
    fn plain(&self, text: &str) -> String {
        let folder = |path: &Path| path.to_string_lossy().into_owned();
        text.replace(&folder(&self.workspace), "$WORKSPACE")
            .replace(&folder(&self.home), "$HOME")
            .replace(&folder(&self.root), "$TEST")
    }
}

/// A plugin that was loaded, in its host.
struct Play<'a> {
    subject: &'a Subject,
    scenario: &'a Scenario,
    host: Arc<PluginHost>,
    effective: Effective,
    plugin: LoadedPlugin,
    extensions: Extensions,
    pipeline: Pipeline,
    stage: Arc<Stage>,
    watch: Watch,
}

fn places(folders: &Folders, cache: &Path) -> Places {
    Places {
        cwd: folders.workspace.clone(),
        home: folders.home.clone(),
        atoll_home: folders.root.join("atoll"),
        cache: cache.to_owned(),
        sessions: folders.root.join("sessions"),
        spill: folders.root.join("spill"),
        skills: Vec::new(),
        shell: None,
    }
}

/// What is granted: all that the manifest asks for, or of that what the scenario says.
fn granted(scenario: &Scenario, wants: &Wants) -> Wants {
    let Some(granted) = &scenario.granted else { return wants.clone() };
    let is_granted = |capability: Capability| granted.iter().any(|name| name == capability.as_str());
    let mut given = wants.clone();
    given.flags.retain(|capability, _| is_granted(*capability));
    if !is_granted(Capability::Files) {
        given.files.clear();
    }
    if !is_granted(Capability::Http) {
        given.http.clear();
    }
    if !is_granted(Capability::Process) {
        given.process.clear();
    }
    if !is_granted(Capability::Secrets) {
        given.secrets.clear();
    }
    given
}

/// Notes the calls of tools that the plugin makes.
fn watch(record: &Arc<Record>) -> Watch {
    let record = Arc::clone(record);
    Arc::new(move |event: NestedEvent| {
        if let NestedStep::End { output, .. } = event.what {
            let text = Content::joined_text(&output.content);
            record.add(Effect::Call { tool: event.tool, arguments: event.arguments, text, is_error: output.is_error });
        }
    })
}

impl<'a> Play<'a> {
    async fn load(
        subject: &'a Subject,
        script: &'a Script,
        host: PluginHost,
        record: &Arc<Record>,
        folders: &Folders,
    ) -> Result<Self, Error> {
        let failed = |error: anyhow::Error| match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => Error::Failed(format!("{error:#}")),
        };
        let scenario = &*script.scenario;
        let host = Arc::new(host);
        let beside = script.file.parent().unwrap_or(Path::new("."));
        let stage = Arc::new(Stage::new(Arc::clone(&script.scenario), Arc::clone(record), &folders.workspace, beside));
        host.set_user_limits(UserLimits::for_all(scenario.limits));
        let secrets: HashMap<String, String> =
            scenario.secrets.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        host.set_secrets(Arc::new(move |name| match secrets.get(name) {
            Some(value) => Ok(Secret::new(value)),
            None => Err(Error::NotFound(format!("there is no secret {name}"))),
        }));
        let network = Arc::clone(&stage);
        host.set_recordings(Arc::new(move |request| network.answer(&request)));
        let log = Arc::clone(record);
        host.set_log(Arc::new(move |_, level, line| {
            log.add(Effect::Log { level: level.to_string().to_lowercase(), line: line.to_owned() });
        }));
        let files = subject.read(&host).map_err(failed)?;
        let effective = Effective::intersect(&files.manifest, Some(&granted(scenario, &files.manifest.wants)));
        let plugin = host.load_user(user_plugin(files, effective.clone())).await?;
        let pipeline = Pipeline::new(table(&host, scenario, script, record, &plugin).await?);
        let reports = Arc::clone(record);
        let extensions = Extensions::new(Arc::new(move |failure: &Failure| {
            let text = match failure.event {
                Some(event) => format!("{event}: {}", failure.error),
                None => failure.error.clone(),
            };
            reports.add(Effect::Failure(text));
        }));
        let watch = watch(record);
        if let Some(extension) = &plugin.extension {
            extensions.add(Arc::clone(extension));
            stage.set_extension(Arc::clone(extension));
        }
        host.set_services(Services {
            tables: Some(Arc::new(OwnTables::new(pipeline.clone(), Arc::clone(&watch))) as Arc<dyn Tables>),
            session: Some(Arc::clone(&stage) as Arc<dyn SessionAccess>),
            models: Some(Arc::clone(&stage) as Arc<dyn ModelAccess>),
            ui: Some(Arc::clone(&stage) as Arc<dyn Ui>),
            bus: Some(Arc::clone(&stage) as Arc<dyn Bus>),
            facts: Some(Arc::clone(&stage) as Arc<dyn HostFacts>),
        });
        Ok(Self { subject, scenario, host, effective, plugin, extensions, pipeline, stage, watch })
    }

    async fn start(&self) -> Result<(), Error> {
        if let Some((_, error)) = self.extensions.start().await.into_iter().next() {
            return Err(error);
        }
        self.pipeline.set_hooks(self.extensions.hooks());
        if let Some(extension) = &self.plugin.extension {
            let wanted = extension.subscription();
            let unknown = self.scenario.flags.keys().find(|name| wanted.flags.iter().all(|flag| flag.name != **name));
            if let Some(name) = unknown {
                self.stage.record.complain(format!("[flags]: the plugin has no option `{name}`"));
            }
        }
        Ok(())
    }

    async fn reload(&self) -> Result<(), Error> {
        let Some(live) = &self.plugin.live else { return Err(no_extension()) };
        let files = self.subject.read(&self.host).map_err(|error| Error::Failed(format!("{error:#}")))?;
        let replacement = self.host.load_replacement(user_plugin(files, self.effective.clone())).await?;
        live.replace(replacement).await.map(drop)
    }

    /// The names of the plugin's tools in the table.
    fn tools(&self) -> Vec<String> {
        self.pipeline.table(|table| {
            let own = table.tools().iter().filter(|entry| entry.plugin == self.plugin.name);
            own.map(|entry| entry.tool.name.clone()).collect()
        })
    }

    async fn act(&self, step: &Step, number: usize) -> Done {
        let Some(action) = step.action() else { return Done::Nothing };
        let acted = async {
            match action {
                Action::Start(StartKind::Startup) => self.start().await.map(|()| Done::Nothing),
                Action::Start(StartKind::Reload) => self.reload().await.map(|()| Done::Nothing),
                Action::Event(kind) => {
                    let event = event::event(kind, &step.fields).map_err(Error::InvalidArguments)?;
                    self.tell(event, || format!("`{kind}`")).await
                }
                Action::Bus(topic) => {
                    let event = Event::Bus {
                        topic: topic.into(),
                        sender: step.sender.as_deref().unwrap_or("another").into(),
                        data: Arc::new(step.data.clone().unwrap_or_default()),
                    };
                    self.tell(event, || format!("the topic `{topic}`")).await
                }
                Action::Call(tool) => Ok(self.call(tool, step, number).await),
                Action::Command(name) => self.command(name, text_of(step)).await,
                Action::Complete(name) => self.complete(name, text_of(step)).await,
                Action::Prompt(prompt) => match &self.plugin.provider {
                    Some(provider) => ask(&**provider, prompt, step, number).await.map(Done::Said),
                    None => Err(Error::Unavailable("the plugin exports no provider".to_owned())),
                },
                Action::Until(expected) => self.until(expected).await,
            }
        };
        let done = tokio::time::timeout(STEP, acted).await;
        let late = || Err(Error::Timeout(format!("the step did not end within {} s", STEP.as_secs())));
        done.unwrap_or_else(|_| late()).unwrap_or_else(Done::Failed)
    }

    async fn tell(&self, event: Event, what: impl Fn() -> String) -> Result<Done, Error> {
        let Some(extension) = &self.plugin.extension else { return Err(no_extension()) };
        let wanted = extension.subscription();
        let is_wanted = match &event {
            Event::Bus { topic, .. } => wanted.topics.iter().any(|wanted| **wanted == **topic),
            event => event.kind().is_some_and(|kind| wanted.wants(kind)),
        };
        if !is_wanted {
            return Ok(Done::Unsubscribed(what()));
        }
        // Also where nobody would wait: what the handler does is to be seen in this step.
        let counts = event.kind().is_some_and(|kind| kind.is_asked());
        let outcome = extension.ask(event, 0).await?;
        Ok(if counts { Done::Answered(outcome) } else { Done::Nothing })
    }

    async fn call(&self, tool: &str, step: &Step, number: usize) -> Done {
        let arguments = step.arguments.clone().unwrap_or_else(|| json!({}));
        let id = format!("call-{number}");
        let done = match self.pipeline.ready(Caller::Person, &id, tool, arguments).await {
            Ok(ready) => ready.run(Arc::new(|_, _| {}), Arc::clone(&self.watch)).await,
            Err(error) => return Done::Failed(error),
        };
        Done::Called(done.output, done.error)
    }

    async fn command(&self, name: &str, arguments: &str) -> Result<Done, Error> {
        match self.extensions.run_command(&format!("/{name} {arguments}")).await {
            Some(ran) => ran.map(|()| Done::Nothing),
            None => Err(Error::NotFound(format!("the plugin has no command `{name}`"))),
        }
    }

    async fn complete(&self, name: &str, arguments: &str) -> Result<Done, Error> {
        let Some(extension) = &self.plugin.extension else { return Err(no_extension()) };
        let found = extension.complete_command(name.to_owned(), arguments.to_owned()).await?;
        Ok(Done::Completed(found.into_iter().map(|completion| completion.value).collect()))
    }

    async fn until(&self, expected: &str) -> Result<Done, Error> {
        let is_it = |effect: &Effect| {
            fits(expected, &effect.to_string())
                || fits(expected, &effect.text())
                || effect.short().is_some_and(|short| fits(expected, short))
        };
        match tokio::time::timeout(UNTIL, self.stage.record.until(is_it)).await {
            Ok(()) => Ok(Done::Nothing),
            Err(_) => {
                Err(Error::Timeout(format!("nothing that fits {expected:?} happened within {} s", UNTIL.as_secs())))
            }
        }
    }
}

fn no_extension() -> Error {
    Error::Unavailable("the plugin is no extension, so it hears of nothing".to_owned())
}

fn text_of(step: &Step) -> &str {
    step.arguments.as_ref().and_then(Value::as_str).unwrap_or_default()
}

fn user_plugin(files: crate::installed::PluginFiles<atoll_engine::SeenComponent>, effective: Effective) -> UserPlugin {
    let crate::installed::PluginFiles { file, component, manifest, pin, .. } = files;
    UserPlugin { file, component, manifest, effective, pin, origin: Origin::User }
}

/// The tools of the scenario, those built-in ones it names, and the plugin's.
async fn table(
    host: &PluginHost,
    scenario: &Scenario,
    script: &Script,
    record: &Arc<Record>,
    plugin: &LoadedPlugin,
) -> Result<Table, Error> {
    let mut table = Table::new();
    for name in &scenario.builtin_tools {
        let builtin = builtins::tools().into_iter().find(|builtin| builtin.name == name).ok_or_else(|| {
            let known: Vec<&str> = builtins::tools().iter().map(|builtin| builtin.name).collect();
            Error::NotFound(format!(
                "`builtin-tools`: there is no built-in tool `{name}`; there are {}",
                known.join(", ")
            ))
        })?;
        if let Some((tools, runner)) = host.load_builtin(builtin).await?.tools {
            table.register(Registration::builtin(builtin.name), tools, &runner)?;
        }
    }
    let fakes = Arc::new(FakeTools::new(Arc::clone(&script.scenario), Arc::clone(record)));
    let tools = fakes.tools();
    table.register(Registration::builtin("scenario"), tools, &(fakes as Arc<dyn ToolRunner>))?;
    if let Some((tools, runner)) = &plugin.tools {
        let who = Registration::user(&plugin.name).replacing(plugin.manifest.replaces.iter().cloned());
        table.register(who, tools.clone(), runner)?;
    }
    Ok(table)
}

/// Asks the plugin's provider once.
async fn ask(provider: &dyn ModelProvider, prompt: &str, step: &Step, number: usize) -> Result<Said, Error> {
    let setup = step.model.as_ref();
    let default = ModelSetup::default();
    let setup = setup.unwrap_or(&default);
    let api = setup.api.clone().or_else(|| provider.apis().into_iter().next()).unwrap_or_default();
    let thinking = setup.thinking.as_ref().map(|level| serde_json::from_value(json!(level)));
    let thinking = thinking.transpose().map_err(|_| {
        Error::InvalidArguments("`model.thinking` is off, minimal, low, medium, high, xhigh or max".to_owned())
    })?;
    let system = step.system.clone().map(PromptMessage::System);
    let user = PromptMessage::User(vec![Content::text(prompt)]);
    let declare = |tool: &super::scenario::DeclaredTool| Declaration {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.parameters.clone().unwrap_or_else(|| json!({"type": "object"})),
    };
    let request = ModelRequest {
        id: format!("request-{number}"),
        model: Model {
            id: setup.id.clone(),
            name: setup.id.clone(),
            provider: "test".to_owned(),
            api,
            base_url: setup.base_url.clone(),
            reasoning: setup.reasoning,
            images: setup.images,
            context_window: setup.context_window,
            max_tokens: setup.max_tokens,
            headers: Vec::new(),
            compat: setup.compat.clone().unwrap_or_else(|| json!({})),
        },
        key: setup.key.as_ref().map(Secret::new),
        header_secrets: Vec::new(),
        messages: system.into_iter().chain([user]).collect(),
        tools: step.tools.iter().map(declare).collect(),
        thinking: thinking.unwrap_or_default(),
        idle_timeout_ms: 60_000,
    };
    let mut said = Said::default();
    let mut events = provider.complete(request).await?;
    while let Some(event) = events.next().await {
        match event {
            ModelEvent::TextDelta(_, delta) => said.text.push_str(&delta),
            ModelEvent::ThinkingDelta(_, delta) => said.thinking.push_str(&delta),
            ModelEvent::CallStart { name, .. } => said.calls.push((name, String::new())),
            ModelEvent::CallDelta(_, delta) => {
                if let Some((_, arguments)) = said.calls.last_mut() {
                    arguments.push_str(&delta);
                }
            }
            ModelEvent::Done { reason, .. } => {
                said.stop = Some(reason);
                return Ok(said);
            }
            ModelEvent::Failed { error, .. } => return Err(error),
            _ => {}
        }
    }
    Err(Error::Failed(format!("the answer has no end; so far: {:?}", said.text)))
}

/// Plays a scenario.
///
/// # Errors
/// If the machine does not let it: no folder can be made, or the sandbox can not be set up.
pub(super) async fn play(subject: &Subject, script: &Script, cache: &Path, update: bool) -> anyhow::Result<Played> {
    let scenario = &*script.scenario;
    let folders = Folders::new(scenario)?;
    let record = Arc::new(Record::default());
    let host = PluginHost::new(places(&folders, cache))?;
    let audit_file = folders.root.join("audit.log");
    let audit = AuditLog::start(audit_file.clone(), u64::MAX, |_| {})?;
    host.set_audit_log(audit.clone());
    let mut out = Sheet {
        script,
        folders: &folders,
        update,
        problems: Vec::new(),
        transcript: String::new(),
        written: Vec::new(),
        expects_failures: false,
        in_steps: 0,
    };
    let mut steps = 0;
    let loaded = Play::load(subject, script, host, &record, &folders).await;
    let error = match loaded {
        Ok(play) => {
            let error = out.play(&play, &record, &mut steps).await;
            play.extensions.end("quit").await;
            if error.is_none() {
                for unused in play.stage.unused() {
                    out.problem(None, "the end", unused);
                }
            }
            let tools = play.tools();
            drop(play);
            audit.close();
            out.whole(&record, &tools, &audit_file);
            error
        }
        Err(error) => {
            audit.close();
            Some(error)
        }
    };
    match (error, &scenario.expect.error) {
        (Some(error), Some(expected)) if is_error(expected, &error) => {}
        (Some(error), _) => out.problem(None, "start", format!("the plugin can not be used\n{}", shown_error(&error))),
        (None, Some(expected)) => {
            out.problem(None, "start", format!("`error` differs\nexpected {expected}, the plugin started"));
        }
        (None, None) => {}
    }
    let Sheet { problems, transcript, written, .. } = out;
    Ok(Played { problems, steps, transcript, written })
}

/// What is written down of a scenario while it is played.
struct Sheet<'a> {
    script: &'a Script,
    folders: &'a Folders,
    update: bool,
    problems: Vec<Problem>,
    transcript: String,
    written: Vec<PathBuf>,
    /// A step expected an error.
    expects_failures: bool,
    /// How much of what happened belongs to steps.
    in_steps: usize,
}

impl Sheet<'_> {
    fn problem(&mut self, step: Option<usize>, what: &str, message: String) {
        let line = step.and_then(|index| self.script.scenario.step.get(index));
        let line = line.map_or(1, |step| line_of(&self.script.text, &step.span()));
        self.problems.push(Problem { line, step: what.to_owned(), message: self.folders.plain(&message) });
    }

    /// Does the steps. Gives why the plugin can not be used, if that is no step of its own.
    async fn play(&mut self, play: &Play<'_>, record: &Record, steps: &mut usize) -> Option<Error> {
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
                self.problem(None, "start", complaint);
            }
            self.in_steps = record.len();
        }
        for (index, step) in script.scenario.step.iter().enumerate() {
            let step = step.get_ref();
            let what = title(step);
            let before = record.len();
            let done = play.act(step, index + 1).await;
            *steps += 1;
            let effects = record.since(before);
            self.in_steps = before + effects.len();
            let text = self.write(&what, &effects, done.shown());
            let mut found = done.differs(&step.expect);
            found.extend(record.complaints());
            found.extend(effects_differ(&step.expect, &effects, &play.tools()));
            found.extend(files_differ(&step.expect, |name| self.folders.place(name)));
            self.expects_failures |= step.expect.error.is_some();
            if step.expect.failures.is_none() {
                found.extend(self.unexpected_failures(&effects));
            }
            found.extend(self.golden(&step.expect, &text));
            for message in found {
                self.problem(Some(index), &what, message);
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
        let path = self.script.file.parent().unwrap_or(Path::new("")).join(name);
        let way_out = "ATOLL_UPDATE=1 writes it";
        let kept = std::fs::read_to_string(&path);
        if self.update {
            if kept.is_ok_and(|kept| kept == text) {
                return None;
            }
            let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            if let Err(error) = made.and_then(|()| std::fs::write(&path, text)) {
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
            Err(error) => Some(format!("the golden file {} can not be read: {error}; {way_out}", path.display())),
        }
    }

    /// What is expected of the whole, once everything has ended.
    fn whole(&mut self, record: &Record, tools: &[String], audit: &Path) {
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
        found.extend(files_differ(expect, |name| self.folders.place(name)));
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
            self.problem(None, "the whole", message);
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
