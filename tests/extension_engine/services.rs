//! A session that only writes down what extensions do to it, and a plugin host that runs some.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use atoll_caps::{Digest, Effective, Manifest, Pin, UserLimits};
use atoll_engine::{LoadedPlugin, Places, PluginHost, UserPlugin};
use atoll_table::{
    Content, Error, Found, Listed, Origin, TableAccess, Tool, ToolOutput, ToolRunner,
    callable::Callables,
    describe::Summary,
    extension::{
        ContextSize, CustomMessage, Delivery, Event, EventKind, Extension, HostFacts, HostInfo, Mode, Outcome,
        Services, SessionAccess, SessionInfo, StartReason, Subscription, Tables, Tone, Ui, Who,
    },
    hooks::CallEvent,
    registry::Group,
    tool::Annotations,
};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use crate::common::plugins::test_plugin;

/// What is known of the extensions from outside.
#[derive(Default)]
pub(super) struct Stage {
    settings: Mutex<HashMap<String, Value>>,
    /// What was appended to the session.
    appended: Mutex<Vec<Value>>,
    more: Notify,
    /// What the table was asked to do.
    pub(super) table: Mutex<Vec<String>>,
    /// Tools that were registered, and what runs them.
    pub(super) registered: Mutex<Vec<(String, Arc<dyn ToolRunner>)>>,
    /// Is asked about calls of the tool `look`.
    pub(super) looks: Mutex<Option<Arc<dyn Extension>>>,
    /// What each extension wants.
    pub(super) wants: Mutex<HashMap<String, Arc<Subscription>>>,
    /// What the person says; nothing before they have made up their mind.
    person: watch::Sender<Option<bool>>,
    /// How many questions are open.
    pub(super) asked: watch::Sender<usize>,
    /// Failures that nobody waited for.
    failures: watch::Sender<Vec<(String, Option<EventKind>, Error)>>,
}

impl Stage {
    /// Appended data whose `event` is this, once there are so many.
    pub(super) async fn told(&self, event: &str, number: usize) -> Vec<Value> {
        loop {
            let more = self.more.notified();
            let told: Vec<Value> = {
                let all = self.appended.lock().unwrap();
                all.iter().filter(|told| told["event"] == event).map(|told| told["fields"].clone()).collect()
            };
            if told.len() >= number {
                return told;
            }
            more.await;
        }
    }

    /// The names of all events that were told so far, in order.
    pub(super) fn events(&self) -> Vec<String> {
        let all = self.appended.lock().unwrap();
        all.iter().map(|told| told["event"].as_str().unwrap().to_owned()).collect()
    }

    /// The table, as a call of one of its tools may use it.
    pub(super) fn table_of_a_call(self: &Arc<Self>) -> Arc<dyn TableAccess> {
        Arc::new(TableOf {
            part: Part(Arc::clone(self)),
            plugin: "puppet".to_owned(),
            parent: Some("a call".to_owned()),
            depth: 9,
        })
    }

    pub(super) fn answer(&self, answer: bool) {
        self.person.send_replace(Some(answer));
    }

    /// The failures, once there are so many.
    pub(super) async fn failures(&self, number: usize) -> Vec<(String, Option<EventKind>, Error)> {
        let mut failures = self.failures.subscribe();
        failures.wait_for(|failures| failures.len() >= number).await.unwrap().clone()
    }
}

/// The parts of a stage that extensions reach.
#[derive(Clone)]
struct Part(Arc<Stage>);

impl HostFacts for Part {
    fn describe(&self) -> HostInfo {
        let cwd = "/".into();
        HostInfo { version: "0".to_owned(), mode: Mode::Print, has_person: true, cwd, trusted: true }
    }
    fn flag(&self, _: &Who, name: &str) -> Option<String> {
        (name == "known").then(|| "value".to_owned())
    }
    fn settings(&self, who: &Who) -> Value {
        self.0.settings.lock().unwrap().get(&who.plugin).cloned().unwrap_or_else(|| json!({}))
    }
    fn changed(&self, who: &Who, wants: &Arc<Subscription>) {
        self.0.wants.lock().unwrap().insert(who.plugin.clone(), Arc::clone(wants));
    }
}

impl Tables for Part {
    fn access(&self, who: &Who, parent: Option<&str>, depth: u32) -> Arc<dyn TableAccess> {
        let parent = parent.map(str::to_owned);
        Arc::new(TableOf { part: self.clone(), plugin: who.plugin.clone(), parent, depth })
    }
}

struct TableOf {
    part: Part,
    plugin: String,
    parent: Option<String>,
    depth: u32,
}

impl TableAccess for TableOf {
    fn call(self: Arc<Self>, _: u32, name: String, _: Value) -> BoxFuture<'static, Result<ToolOutput, Error>> {
        let parent = self.parent.as_deref().unwrap_or("itself");
        self.part.0.table.lock().unwrap().push(format!("{parent} calls {name} with {} around", self.depth));
        Box::pin(async move {
            match name.as_str() {
                "look" => {
                    let id = format!("{}/1", self.parent.as_ref().unwrap_or(&self.plugin));
                    let looks = self.part.0.looks.lock().unwrap().clone().unwrap();
                    let looked = looks.ask(Event::ToolCall(call(&id, "nested")), self.depth).await;
                    self.part.0.table.lock().unwrap().push(format!("looked: {looked:?}"));
                    Ok(ToolOutput::default())
                }
                _ => Ok(ToolOutput { content: vec![Content::text("called")], ..ToolOutput::default() }),
            }
        })
    }
    fn callable(&self) -> Callables {
        Callables { version: 0, tools: Vec::new() }
    }
    fn find(&self, _: &str, _: usize, _: Option<&str>) -> Result<Found, Error> {
        Ok(Found::default())
    }
    fn group(&self, name: &str) -> Result<Group, Error> {
        Err(Error::NotFound(name.to_owned()))
    }
    fn expect(&self, _: String, _: bool) -> Result<(), Error> {
        Ok(())
    }
    fn list(&self) -> Vec<Listed> {
        Vec::new()
    }
    fn describe(&self, name: &str) -> Result<Summary, Error> {
        Err(Error::NotFound(name.to_owned()))
    }
    fn activate(&self, names: Vec<String>, active: bool) -> BoxFuture<'_, Result<(), Error>> {
        self.part.0.table.lock().unwrap().push(format!("active = {active}: {}", names.join(" ")));
        Box::pin(async { Ok(()) })
    }
    fn register(&self, tools: Vec<Tool>, runner: Arc<dyn ToolRunner>, _: u64) -> BoxFuture<'_, Result<(), Error>> {
        let added = tools.into_iter().map(|tool| (tool.name, Arc::clone(&runner)));
        self.part.0.registered.lock().unwrap().extend(added);
        Box::pin(async { Ok(()) })
    }
    fn unregister(&self, names: Vec<String>) -> BoxFuture<'_, Result<(), Error>> {
        self.part.0.table.lock().unwrap().push(format!("withdrawn: {}", names.join(" ")));
        Box::pin(async { Ok(()) })
    }
}

fn nothing() -> BoxFuture<'static, Result<(), Error>> {
    Box::pin(async { Err(Error::Unavailable("this session only writes down".to_owned())) })
}

impl SessionAccess for Part {
    fn info(&self) -> SessionInfo {
        SessionInfo {
            id: "s".to_owned(),
            file: None,
            cwd: "/".into(),
            name: None,
            idle: true,
            pending: false,
            model: None,
            thinking: "off".to_owned(),
        }
    }
    fn entries(&self) -> BoxFuture<'_, Result<Vec<Value>, Error>> {
        Box::pin(async { Ok(self.0.appended.lock().unwrap().clone()) })
    }
    fn append(&self, who: &Who, _: String, mut data: Value) -> BoxFuture<'_, Result<String, Error>> {
        data["by"] = json!(who.plugin);
        self.0.appended.lock().unwrap().push(data);
        self.0.more.notify_waiters();
        Box::pin(async { Ok("e".to_owned()) })
    }
    fn send(&self, _: &Who, _: Vec<Content>, _: Delivery) -> BoxFuture<'_, Result<(), Error>> {
        nothing()
    }
    fn send_custom(&self, _: &Who, _: CustomMessage, _: Delivery, _: bool) -> BoxFuture<'_, Result<(), Error>> {
        nothing()
    }
    fn set_label(&self, _: String, _: Option<String>) -> BoxFuture<'_, Result<(), Error>> {
        nothing()
    }
    fn set_name(&self, _: String) -> BoxFuture<'_, Result<(), Error>> {
        nothing()
    }
    fn set_model(&self, _: String) -> BoxFuture<'_, Result<(), Error>> {
        nothing()
    }
    fn set_thinking(&self, _: String) -> BoxFuture<'_, Result<(), Error>> {
        nothing()
    }
    fn set_prompt_section(&self, _: &Who, _: String, _: Option<String>) -> BoxFuture<'_, Result<(), Error>> {
        nothing()
    }
    fn system_prompt(&self) -> String {
        String::new()
    }
    fn context_usage(&self) -> Option<ContextSize> {
        None
    }
    fn compact(&self, _: Option<String>) -> BoxFuture<'_, Result<(), Error>> {
        nothing()
    }
    fn wait_idle(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }
    fn reload(&self) -> BoxFuture<'_, Result<(), Error>> {
        nothing()
    }
    fn abort(&self) {}
    fn shutdown(&self) {}
}

impl Ui for Part {
    fn available(&self) -> bool {
        true
    }
    fn select(
        &self,
        _: &Who,
        _: String,
        _: Vec<String>,
        _: Option<Duration>,
    ) -> BoxFuture<'_, Result<Option<usize>, Error>> {
        Box::pin(async { Ok(Some(0)) })
    }
    fn confirm(
        &self,
        _: &Who,
        _: String,
        _: String,
        _: Option<Duration>,
    ) -> BoxFuture<'_, Result<Option<bool>, Error>> {
        Box::pin(async {
            self.0.asked.send_modify(|asked| *asked += 1);
            let answer = self.0.person.subscribe().wait_for(Option::is_some).await.map(|answer| *answer);
            self.0.asked.send_modify(|asked| *asked -= 1);
            Ok(answer.unwrap_or_default())
        })
    }
    fn input(
        &self,
        _: &Who,
        _: String,
        _: String,
        _: Option<Duration>,
    ) -> BoxFuture<'_, Result<Option<String>, Error>> {
        Box::pin(async { Ok(None) })
    }
    fn editor(&self, _: &Who, _: String, _: String) -> BoxFuture<'_, Result<Option<String>, Error>> {
        Box::pin(async { Ok(None) })
    }
    fn print(&self, _: &Who, _: String) {}
    fn notify(&self, _: &Who, _: String, _: Tone) {}
    fn set_status(&self, _: &Who, _: Option<String>) {}
}

/// A plugin host with a stage.
pub(super) struct World {
    host: PluginHost,
    pub(super) stage: Arc<Stage>,
    folder: tempfile::TempDir,
}

impl World {
    /// With these limits, by plugin, as the user's settings have them.
    pub(super) fn new(limits: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("work")).unwrap();
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("extension-cache");
        let places = Places {
            cwd: at("work"),
            home: at("home"),
            atoll_home: at("atoll"),
            cache,
            sessions: at("sessions"),
            spill: at("spill"),
            skills: Vec::new(),
            shell: None,
        };
        let host = PluginHost::new(places).unwrap();
        host.set_user_limits(serde_json::from_value::<UserLimits>(limits).unwrap());
        let stage = Arc::<Stage>::default();
        let part = Arc::new(Part(Arc::clone(&stage)));
        host.set_services(Services {
            tables: Some(Arc::clone(&part) as Arc<dyn Tables>),
            session: Some(Arc::clone(&part) as Arc<dyn SessionAccess>),
            models: None,
            ui: Some(Arc::clone(&part) as Arc<dyn Ui>),
            bus: None,
            facts: Some(part),
            ..Services::default()
        });
        Self { host, stage, folder }
    }

    /// What the settings say to a plugin from its next start on.
    pub(super) fn settings(&self, name: &str, settings: &Value) {
        self.stage.settings.lock().unwrap().insert(name.to_owned(), settings.clone());
    }

    pub(super) fn plugin(&self, name: &str, component: &[u8], manifest: &str) -> UserPlugin {
        let text = manifest.replace("name = \"puppet\"", &format!("name = \"{name}\""));
        let manifest = Manifest::parse(&text, "plugin.toml").unwrap();
        let pin = Pin { component: Digest::of(component), manifest: Digest::of(text.as_bytes()) };
        let effective = Effective::builtin(&manifest);
        let file = self.folder.path().join(format!("{name}.wasm"));
        std::fs::write(&file, component).unwrap();
        let component = self.host.see_component(&file).unwrap();
        UserPlugin { file, component, manifest, effective, pin, origin: Origin::User }
    }

    /// A puppet that is not started.
    pub(super) async fn puppet(&self, name: &str, settings: &Value) -> LoadedPlugin {
        self.settings(name, settings);
        let manifest = include_str!("../plugins/puppet/plugin.toml");
        let loaded = self.host.load_user(self.plugin(name, &test_plugin("puppet"), manifest)).await.unwrap();
        let failures = self.stage.failures.clone();
        loaded.extension.as_ref().unwrap().on_failure(Arc::new(move |name, kind, error| {
            failures.send_modify(|failures| failures.push((name.to_owned(), kind, error.clone())));
        }));
        loaded
    }

    /// Another puppet, with these settings, that takes over from the one of its name.
    pub(super) async fn replace(&self, plugin: &LoadedPlugin, settings: &Value) -> Result<Arc<Subscription>, Error> {
        self.settings("puppet", settings);
        let manifest = include_str!("../plugins/puppet/plugin.toml");
        let new = self.host.load_replacement(self.plugin("puppet", &test_plugin("puppet"), manifest)).await?;
        plugin.live.as_ref().unwrap().replace(new).await
    }

    /// Another component that runs, with no more than the table.
    pub(super) async fn other(&self, name: &str, component: &[u8]) -> Arc<dyn Extension> {
        let manifest = "name = \"puppet\"\nversion = \"1\"\ncontract = \"0.1\"\n[table]\nreason = \"r\"\n";
        let loaded = self.host.load_user(self.plugin(name, component, manifest)).await.unwrap();
        let extension = loaded.extension.unwrap();
        extension.start(StartReason::Startup).await.unwrap();
        extension
    }

    /// A puppet that runs.
    pub(super) async fn started(&self, settings: &Value) -> (Arc<dyn Extension>, LoadedPlugin) {
        let loaded = self.puppet("puppet", settings).await;
        let extension = Arc::clone(loaded.extension.as_ref().unwrap());
        extension.start(StartReason::Startup).await.unwrap();
        (extension, loaded)
    }
}

/// A call of `bash` that is about to run.
pub(super) fn call(id: &str, command: &str) -> CallEvent {
    CallEvent {
        call_id: id.to_owned(),
        parent_id: None,
        tool: "bash".to_owned(),
        arguments: json!({"command": command}),
        plugin: "bash".to_owned(),
        annotations: Annotations { read_only_hint: Some(false), ..Annotations::default() },
        depth: 0,
    }
}

/// Asks about a call of `bash`.
pub(super) async fn ask_about(extension: &Arc<dyn Extension>, command: &str) -> Result<Outcome, Error> {
    extension.ask(Event::ToolCall(call("c", command)), 0).await
}
