//! Plays a scenario: the plugin in the real engine with its real limits, and around it a host that the scenario makes up.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use atoll_agent::{
    Extensions, Pipeline,
    extensions::{Failure, own_tables::OwnTables},
    nested_calls::{NestedEvent, NestedStep, Watch},
    pipeline::Caller,
};
use atoll_caps::{Capability, Effective, UserLimits, Wants};
use atoll_engine::{AuditLog, LoadedPlugin, PluginHost};
use atoll_table::{
    Content, Error, Registration, Table, ToolRunner,
    extension::{
        Bus, Event, EventKind, HostFacts, ModelAccess, Providers, Servers, Services, SessionAccess, Tables, Ui,
    },
    secrets::SecretStore,
};
use serde_json::{Value, json};

use super::{
    asking::ask,
    check::{Done, is_error, shown_error},
    event,
    fake_tools::FakeTools,
    folders::Folders,
    pattern::fits,
    record::{Effect, Record},
    scenario::{Action, Scenario, StartKind, Step},
    sheet::{Problem, Sheet},
    stage::Stage,
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

/// What came of a scenario.
pub(super) struct Played {
    pub(super) problems: Vec<Problem>,
    pub(super) steps: usize,
    pub(super) transcript: String,
    /// Golden files that were written.
    pub(super) written: Vec<PathBuf>,
}

/// A plugin that was loaded, in its host.
pub(super) struct Play<'a> {
    subject: &'a Subject,
    scenario: &'a Scenario,
    host: Arc<PluginHost>,
    plugin: LoadedPlugin,
    extensions: Extensions,
    pipeline: Pipeline,
    stage: Arc<Stage>,
    watch: Watch,
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
    if !is_granted(Capability::Config) {
        given.config.clear();
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
        host.set_secrets(Arc::clone(&stage) as Arc<dyn SecretStore>);
        host.set_config(Arc::new(folders.config(scenario)));
        let network = Arc::clone(&stage);
        host.set_recordings(Arc::new(move |request| network.answer(&request)));
        let log = Arc::clone(record);
        host.set_log(Arc::new(move |_, level, line| {
            log.add(Effect::Log { level: level.to_string().to_lowercase(), line: line.to_owned() });
        }));
        if let Some(engine) = builtins::script_engine() {
            host.set_script_engine(*engine);
        }
        let files = subject.read(&host).map_err(failed)?;
        let wants = granted(scenario, &files.manifest().wants);
        let effective = Effective::intersect(files.manifest(), Some(&wants));
        let plugin = files.load(&host, effective).await?;
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
            providers: Some(Arc::clone(&stage) as Arc<dyn Providers>),
            servers: Some(Arc::clone(&stage) as Arc<dyn Servers>),
        });
        Ok(Self { subject, scenario, host, plugin, extensions, pipeline, stage, watch })
    }

    pub(super) async fn start(&self) -> Result<(), Error> {
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
        let wants = granted(self.scenario, &files.manifest().wants);
        let effective = Effective::intersect(files.manifest(), Some(&wants));
        let replacement = files.load_replacement(&self.host, effective).await?;
        live.replace(replacement).await.map(drop)
    }

    /// The names of the plugin's tools in the table.
    pub(super) fn tools(&self) -> Vec<String> {
        self.pipeline.table(|table| {
            let own = table.tools().iter().filter(|entry| entry.plugin == self.plugin.name);
            own.map(|entry| entry.tool.name.clone()).collect()
        })
    }

    pub(super) async fn act(&self, step: &Step, number: usize) -> Done {
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
            Event::ToolCall(call) => wanted.wants_call(EventKind::ToolCall, &call.tool),
            Event::ToolResult(call, _) => wanted.wants_call(EventKind::ToolResult, &call.tool),
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

pub(super) fn text_of(step: &Step) -> &str {
    step.arguments.as_ref().and_then(Value::as_str).unwrap_or_default()
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
        let who = who.running_scripts(plugin.manifest.runs_scripts.clone());
        table.register(who, tools.clone(), runner)?;
    }
    Ok(table)
}

/// Plays a scenario.
///
/// # Errors
/// If the machine does not let it: no folder can be made, or the sandbox can not be set up.
pub(super) async fn play(subject: &Subject, script: &Script, cache: &Path, update: bool) -> anyhow::Result<Played> {
    let scenario = &*script.scenario;
    let folders = Folders::new(scenario)?;
    let record = Arc::new(Record::default());
    let host = PluginHost::new(folders.places(cache))?;
    let audit_file = folders.root.join("audit.log");
    let audit = AuditLog::start(audit_file.clone(), u64::MAX, |_| {})?;
    host.set_audit_log(audit.clone());
    let mut out = Sheet::new(script, &folders, update);
    let loaded = Play::load(subject, script, host, &record, &folders).await;
    let error = match loaded {
        Ok(play) => {
            let error = out.play(&play, &record).await;
            play.extensions.end("quit").await;
            if error.is_none() {
                for unused in play.stage.unused() {
                    out.problem(None, "the end", &unused);
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
            out.whole(&record, &[], &audit_file);
            Some(error)
        }
    };
    match (error, &scenario.expect.error) {
        (Some(error), Some(expected)) if is_error(expected, &error) => {}
        (Some(error), _) => out.problem(None, "start", &format!("the plugin can not be used\n{}", shown_error(&error))),
        (None, Some(expected)) => {
            out.problem(None, "start", &format!("`error` differs\nexpected {expected}, the plugin started"));
        }
        (None, None) => {}
    }
    let Sheet { problems, steps, transcript, written, .. } = out;
    Ok(Played { problems, steps, transcript, written })
}
