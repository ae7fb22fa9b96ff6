//! Puts the parts together: settings, the sandbox, the tool table, a provider.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, PoisonError, RwLock},
};

use anyhow::Context as _;
use atoll_agent::{
    Extensions, Pipeline,
    config_files::UserConfig,
    extensions::{Flags, Report},
    models::Models,
    secrets::Secrets,
    settings::{BashSandbox, Settings},
};
use atoll_caps::{Grants, Manifest};
use atoll_engine::{AuditLog, Builtin, PluginHost};
use atoll_table::{Registration, Table, model::ModelProvider};
use futures::future::join_all;

use crate::{
    additions::Additions,
    approval::TerminalApprover,
    arguments::{ExtensionArguments, TrustArguments},
    assembled::{Assembled, Told},
    builtins,
    candidates::{Candidate, Candidates, named_failure},
    directories::Directories,
    dormant::Setup,
    exit,
    extension_files::Unsure,
    host_facts::PluginSettings,
    loaded::{Loaded, Plugins, register},
    person::Person,
    project::Project,
    project_trust,
    replaceable::{Replaceable, check_named},
    settings_of::Said,
    signals::Stop,
    terminal,
};

/// The parts that every command which runs plugins needs.
pub(crate) struct Parts {
    pub(crate) directories: Directories,
    pub(crate) settings: Settings,
    pub(crate) project: Project,
    pub(crate) host: Arc<PluginHost>,
    grants: RwLock<Option<Arc<Grants>>>,
    audit: Option<AuditLog>,
}

impl Parts {
    /// Reads the settings and sets up the sandbox, with the working directory as the workspace. What the project there
    /// brings counts if it is trusted; `may_ask` says whether the user may be asked about that.
    pub(crate) fn new(trust: TrustArguments, may_ask: bool) -> anyhow::Result<Self> {
        let directories = Directories::find()?;
        let settings = Settings::load(&directories.settings())?;
        let audit = start_audit_log(&directories, &settings);
        let project = Project::decide(&directories, settings.default_project_trust, trust, None, may_ask);
        Self::of_project(directories, project, audit)
    }

    /// The same for a run with extensions: those of the user's may say whether the project is trusted. With
    /// `confined`, programs are run in a sandbox, whatever the settings say.
    pub(crate) async fn for_run(
        trust: TrustArguments,
        may_ask: bool,
        wanted: &ExtensionArguments,
        confined: bool,
    ) -> anyhow::Result<Self> {
        let directories = Directories::find()?;
        let settings = Settings::load(&directories.settings())?;
        let audit = start_audit_log(&directories, &settings);
        let word = project_trust::word(&directories, &settings, audit.as_ref(), trust, wanted, confined).await;
        let word = word.map(|word| word.trusted);
        let project = Project::decide(&directories, settings.default_project_trust, trust, word, may_ask);
        let parts = Self::of_project(directories, project, audit)?;
        parts.confine_programs(confined);
        Ok(parts)
    }

    fn of_project(directories: Directories, project: Project, audit: Option<AuditLog>) -> anyhow::Result<Self> {
        let said = Said::read(&directories, &project)?;
        said.note(&project);
        if let Some(path) = project.grants() {
            let path = path.display();
            terminal::note(format_args!("{path} is left out: a project grants nothing; use `atoll plugin grant`"));
        }
        let places = directories.places(&said.settings, &directories.cwd, project.skills());
        Self::with(directories, said.settings, project, places, audit)
    }

    /// The same with another folder as the workspace, and without any project.
    pub(crate) fn in_folder(cwd: &Path) -> anyhow::Result<Self> {
        let directories = Directories::find()?;
        let settings = Settings::load(&directories.settings())?;
        let places = directories.places(&settings, cwd, Vec::new());
        let project = Project::none(&directories);
        let audit = start_audit_log(&directories, &settings);
        Self::with(directories, settings, project, places, audit)
    }

    pub(crate) fn with(
        directories: Directories,
        settings: Settings,
        project: Project,
        places: atoll_engine::Places,
        audit: Option<AuditLog>,
    ) -> anyhow::Result<Self> {
        let host = PluginHost::new(places)?;
        host.set_user_limits(settings.limits.clone());
        if let Some(engine) = builtins::script_engine() {
            host.set_script_engine(*engine);
        }
        let secrets = Secrets::new(directories.secrets(), environment()).with_keys_of(directories.models());
        host.set_secrets(Arc::new(secrets));
        let config = UserConfig::new(directories.atoll_home.clone(), project.config(), environment());
        host.set_config(Arc::new(config));
        host.keep_logs(directories.logs());
        if let Some(log) = &audit {
            host.set_audit_log(log.clone());
        }
        let parts = Self { host: Arc::new(host), directories, settings, project, grants: RwLock::default(), audit };
        parts.confine_programs(parts.settings.bash.sandbox == BashSandbox::Bubblewrap);
        Ok(parts)
    }

    /// Has programs that plugins start run in a sandbox, if `wanted`. Nothing takes that back.
    pub(crate) fn confine_programs(&self, wanted: bool) {
        if wanted {
            let Directories { atoll_home, cache, .. } = &self.directories;
            let sessions = self.settings.session_dir.clone().filter(|path| path.is_absolute());
            // Names that can not be read from a broken models.json are said to be missing by whoever asks a model.
            let keys = self.models().map(|models| models.key_variables()).unwrap_or_default();
            self.host
                .confine_processes([atoll_home.clone(), cache.clone()].into_iter().chain(sessions).collect(), keys);
        }
    }

    /// Finds the person at the terminal, if there is one, who is then asked about what is not granted. To be called before
    /// plugins are loaded.
    pub(crate) fn ask_the_person(&self, stop: &Stop) -> Option<Arc<Person>> {
        let person = Arc::new(Person::find(stop)?);
        self.host.set_approver(Arc::new(TerminalApprover::new(Arc::clone(&person), self.directories.grants())));
        Some(person)
    }

    /// What is used from here on belongs to this session.
    pub(crate) fn set_session(&self, id: &str) {
        if let Some(log) = &self.audit {
            log.set_session(id);
        }
    }

    /// The user's grants. Where they can not be read, that is said once, and nothing is granted.
    pub(crate) fn grants(&self) -> Arc<Grants> {
        let known = self.grants.read().unwrap_or_else(PoisonError::into_inner).clone();
        known.unwrap_or_else(|| self.read_grants())
    }

    /// The user's grants as they are now.
    pub(crate) fn read_grants(&self) -> Arc<Grants> {
        let grants = Grants::load(&self.directories.grants()).unwrap_or_else(|error| {
            terminal::note(format_args!("no plugin of yours is granted anything: {error}"));
            Grants::default()
        });
        let grants = Arc::new(grants);
        *self.grants.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&grants));
        grants
    }

    /// The models that can be asked.
    pub(crate) fn models(&self) -> anyhow::Result<Models> {
        Ok(Models::load(&self.directories.models(), environment())?)
    }

    /// Loads all plugins, built-in ones first. One that can not be used is reported and left out, unless the user named it
    /// for this run. Extensions have still to be started.
    ///
    /// # Errors
    /// If a plugin that is built in, or that the user named, can not be used.
    pub(crate) async fn load(
        self: &Arc<Self>,
        wanted: &ExtensionArguments,
        report: Report,
    ) -> anyhow::Result<Assembled> {
        let (table, replaceable, others) = tokio::join!(self.builtin_table(), self.replaceable(), self.others(wanted));
        let (mut table, replaceable, (others, told)) = (table?, replaceable?, others?);
        replaceable.begin(&told.switched, &mut table)?;
        let mut plugins = Vec::new();
        for loaded in others {
            if let Err(error) = loaded.register(&mut table) {
                if loaded.is_named {
                    return Err(error).with_context(|| format!("-e: the plugin {}", loaded.plugin.name));
                }
                terminal::note(format_args!("the plugin {} is left out: {error}", loaded.plugin.name));
                continue;
            }
            plugins.push(Arc::new(loaded));
        }
        let plugins = Plugins::new(plugins);
        let extensions = Extensions::new(report);
        for loaded in plugins.in_load_order() {
            if let Some(extension) = &loaded.plugin.extension {
                extensions.add(Arc::clone(extension));
            }
        }
        Ok(Assembled {
            parts: Arc::clone(self),
            pipeline: Pipeline::new(table),
            plugins,
            extensions,
            flags: Flags::default(),
            plugin_settings: PluginSettings::default(),
            replaceable,
            additions: Additions::default(),
            told,
        })
    }

    /// Loads the plugins that are not built in, beside each other.
    /// Gives also what was said of others.
    async fn others(&self, wanted: &ExtensionArguments) -> anyhow::Result<(Vec<Loaded>, Told)> {
        let Candidates { mut all, builtins, mut notes, unread, unsure } =
            self.candidates(wanted, &self.settings, &self.grants()).await;
        if !wanted.no_extensions {
            notes.extend(unsure.iter().map(Unsure::note));
        }
        notes.extend(unread.map(|reason| format!("no plugin of yours is loaded: {reason}")));
        if let Some(at) = all.iter().position(|candidate| candidate.is_named && candidate.plugin.is_err())
            && let Err(error) = all.swap_remove(at).plugin
        {
            return Err(error);
        }
        check_named(wanted)?;
        notes.iter().for_each(terminal::note);
        let mut loading = Vec::new();
        for candidate in all {
            let Candidate { name, origin, is_named, place, file, plugin } = candidate;
            match plugin {
                Ok(wanted) => {
                    let (replaces, pin) = (wanted.replaces.clone(), wanted.pin().clone());
                    let task = tokio::spawn(wanted.load(Arc::clone(&self.host)));
                    let shown = file.clone();
                    let with = move |plugin| Loaded::new((origin, is_named, place, file), pin, replaces, plugin);
                    loading.push((name, is_named.then_some(shown), with, task));
                }
                Err(error) => {
                    let file = file.display();
                    terminal::note(format_args!("the plugin in {file} is left out: {error:#}"));
                }
            }
        }
        let mut loaded = Vec::new();
        for (name, named, with, task) in loading {
            match (task.await.context("a plugin could not be loaded")?, named) {
                // One whose bytes did not say so.
                (Ok(plugin), None) if wanted.no_extensions && plugin.extension.is_some() => {}
                (Ok(plugin), _) => loaded.push(with(plugin)),
                (Err(error), Some(file)) => return Err(named_failure(&file, error)),
                (Err(error), None) => terminal::note(format_args!("the plugin {name} is left out: {error}")),
            }
        }
        Ok((loaded, Told { notes, switched: builtins }))
    }

    /// The built-in tools alone, those that give way among them.
    pub(crate) async fn builtin_tools(self: &Arc<Self>) -> anyhow::Result<Pipeline> {
        let (table, replaceable) = tokio::join!(self.builtin_table(), self.replaceable());
        let mut table = table?;
        replaceable?.tools_alone().begin(&[], &mut table)?;
        Ok(Pipeline::new(table))
    }

    /// The built-in plugins that give way. They are not in the table yet.
    async fn replaceable(self: &Arc<Self>) -> anyhow::Result<Replaceable> {
        let (mut all, mut living) = (Vec::new(), Vec::new());
        for builtin in builtins::replaceable() {
            if builtin.is_extension()? {
                living.push((builtin, builtin.manifest()?));
            } else {
                all.push(self.host.load_builtin(builtin).await?);
            }
        }
        let this = Arc::clone(self);
        Ok(Replaceable::new(all, move || {
            living.iter().map(|(builtin, manifest)| this.setup(builtin, manifest)).collect()
        }))
    }

    /// What a built-in extension is loaded with now.
    pub(crate) fn setup(&self, builtin: &'static Builtin, manifest: &Manifest) -> Setup {
        let named = manifest.start_when.iter().flat_map(|when| &when.config);
        let both = |name: &String| {
            [Some(self.directories.atoll_home.join(name)), self.project.config_file(name)].into_iter().flatten()
        };
        Setup {
            host: Arc::clone(&self.host),
            builtin,
            manifest: manifest.clone(),
            added: self.grants().for_builtin(&manifest.name),
            files: named.flat_map(both).collect(),
        }
    }

    async fn builtin_table(&self) -> anyhow::Result<Table> {
        let loading = builtins::tools().into_iter().map(|builtin| {
            let host = Arc::clone(&self.host);
            let added = builtin.name.parse().map(|name| self.grants().for_builtin(&name)).unwrap_or_default();
            tokio::spawn(async move { host.load_builtin_with(builtin, &added).await })
        });
        let mut table = Table::new();
        for loaded in join_all(loading).await {
            let plugin = loaded.context("a built-in plugin could not be loaded")??;
            register(&mut table, Registration::builtin(&plugin.name), &plugin)?;
        }
        Ok(table)
    }

    /// The provider for a wire format: a built-in one, else one of the user's plugins.
    pub(crate) async fn provider(&self, api: &str, user: &Plugins) -> anyhow::Result<Arc<dyn ModelProvider>> {
        if let Some(builtin) = builtins::provider(api) {
            let loaded = self.host.load_builtin(builtin).await?;
            return loaded.provider.with_context(|| format!("the plugin {api} is no provider"));
        }
        user.provider(api).with_context(|| {
            format!("no provider speaks the api `{api}`; this version brings openai-completions and scripted")
        })
    }
}

/// The variables that configuration files may name.
fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The audit log, unless the settings switch it off. That it can not be written is a note, and stops nothing.
fn start_audit_log(directories: &Directories, settings: &Settings) -> Option<AuditLog> {
    if !settings.audit.enabled {
        return None;
    }
    match AuditLog::start(directories.audit_log(), settings.audit.max_bytes, |warning| terminal::note(warning)) {
        Ok(log) => Some(exit::keep(log)),
        Err(error) => {
            terminal::note(format_args!("there is no audit log of this run: {error}"));
            None
        }
    }
}
