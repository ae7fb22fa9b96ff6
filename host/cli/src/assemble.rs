//! Puts the parts together: settings, the sandbox, the tool table, a provider.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, OnceLock},
};

use anyhow::Context as _;
use atoll_agent::{
    Pipeline,
    models::Models,
    secrets::Secrets,
    settings::{BashSandbox, Settings},
};
use atoll_caps::{Effective, Grants};
use atoll_engine::{AuditLog, LoadedPlugin, PluginHost, UserPlugin};
use atoll_table::{Origin, Registration, Table, model::ModelProvider};
use futures::future::join_all;

use crate::{
    approval::TerminalApprover,
    arguments::TrustArguments,
    builtins,
    directories::Directories,
    exit,
    installed::{Catalog, Installed, PluginFiles},
    project::Project,
    signals::Stop,
    terminal,
};

/// The parts that every command which runs plugins needs.
pub(crate) struct Parts {
    pub(crate) directories: Directories,
    pub(crate) settings: Settings,
    pub(crate) project: Project,
    pub(crate) host: Arc<PluginHost>,
    grants: OnceLock<Grants>,
    audit: Option<AuditLog>,
}

/// A plugin of the user's or of a project's, ready to use.
struct Loaded {
    origin: Origin,
    /// The built-in tools that its own may stand in for.
    replaces: Vec<String>,
    plugin: LoadedPlugin,
}

impl Parts {
    /// Reads the settings and sets up the sandbox, with the working directory as the workspace. What the project there
    /// brings counts if it is trusted; `may_ask` says whether the user may be asked about that.
    pub(crate) fn new(trust: TrustArguments, may_ask: bool) -> anyhow::Result<Self> {
        let directories = Directories::find()?;
        let user = directories.settings();
        let mut settings = Settings::load(&user)?;
        let project = Project::decide(&directories, settings.default_project_trust, trust, may_ask);
        if let Some(path) = project.settings() {
            let refused;
            (settings, refused) = Settings::load_with_project(&user, &path)?;
            for key in refused {
                let path = path.display();
                terminal::note(format_args!("{path}: `{key}` is left out: only your own settings may say that"));
            }
        }
        if let Some(path) = project.grants() {
            let path = path.display();
            terminal::note(format_args!("{path} is left out: a project grants nothing; use `atoll plugin grant`"));
        }
        let places = directories.places(&settings, &directories.cwd, project.skills());
        Self::with(directories, settings, project, places)
    }

    /// The same with another folder as the workspace, and without any project.
    pub(crate) fn in_folder(cwd: &Path) -> anyhow::Result<Self> {
        let directories = Directories::find()?;
        let settings = Settings::load(&directories.settings())?;
        let places = directories.places(&settings, cwd, Vec::new());
        let project = Project::none(&directories);
        Self::with(directories, settings, project, places)
    }

    fn with(
        directories: Directories,
        settings: Settings,
        project: Project,
        places: atoll_engine::Places,
    ) -> anyhow::Result<Self> {
        let host = PluginHost::new(places)?;
        host.set_user_limits(settings.limits.clone());
        let secrets = Secrets::new(directories.secrets(), environment());
        host.set_secrets(Arc::new(move |name| secrets.get(name)));
        let audit = start_audit_log(&directories, &settings);
        if let Some(log) = &audit {
            host.set_audit_log(log.clone());
        }
        let parts = Self { host: Arc::new(host), directories, settings, project, grants: OnceLock::new(), audit };
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

    /// Asks the person at the terminal about what is not granted, if there is one. To be called before plugins are
    /// loaded.
    pub(crate) fn ask_the_person(&self, stop: &Stop) {
        if let Some(approver) = TerminalApprover::find(stop.clone(), self.directories.grants()) {
            self.host.set_approver(Arc::new(approver));
        }
    }

    /// What is used from here on belongs to this session.
    pub(crate) fn set_session(&self, id: &str) {
        if let Some(log) = &self.audit {
            log.set_session(id);
        }
    }

    /// The user's grants. Where they can not be read, that is said once, and nothing is granted.
    fn grants(&self) -> &Grants {
        self.grants.get_or_init(|| {
            Grants::load(&self.directories.grants()).unwrap_or_else(|error| {
                terminal::note(format_args!("no plugin of yours is granted anything: {error}"));
                Grants::default()
            })
        })
    }

    /// The models that can be asked.
    pub(crate) fn models(&self) -> anyhow::Result<Models> {
        Ok(Models::load(&self.directories.models(), environment())?)
    }

    /// Loads all tools, built-in ones first. A plugin that can not be used is reported and left out.
    pub(crate) async fn tools(&self) -> anyhow::Result<(Pipeline, Vec<LoadedPlugin>)> {
        let (table, others) = tokio::join!(self.builtin_table(), self.other_plugins());
        let mut table = table?;
        let mut plugins = Vec::new();
        for Loaded { origin, replaces, plugin } in others {
            let who = Registration::new(plugin.name.clone(), origin).replacing(replaces);
            if let Err(error) = register(&mut table, who, &plugin) {
                terminal::note(format_args!("the plugin {} is left out: {error}", plugin.name));
            }
            plugins.push(plugin);
        }
        if let Some(selection) = &self.settings.default_tools {
            table.select(selection).context("defaultTools in settings.json")?;
        }
        // A project's tools may be of a plugin that is not granted anything yet; that must not stop everything else.
        if let Some(changes) = &self.settings.tool_changes
            && let Err(error) = table.select(changes)
        {
            terminal::note(format_args!("defaultTools in .atoll/settings.json is left out: {error}"));
        }
        Ok((Pipeline::new(table), plugins))
    }

    /// The built-in tools alone.
    pub(crate) async fn builtin_tools(&self) -> anyhow::Result<Pipeline> {
        Ok(Pipeline::new(self.builtin_table().await?))
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
    pub(crate) async fn provider(&self, api: &str, user: &[LoadedPlugin]) -> anyhow::Result<Arc<dyn ModelProvider>> {
        if let Some(builtin) = builtins::provider(api) {
            let loaded = self.host.load_builtin(builtin).await?;
            return loaded.provider.with_context(|| format!("the plugin {api} is no provider"));
        }
        let speaks = |plugin: &&LoadedPlugin| {
            plugin.provider.as_ref().is_some_and(|provider| provider.apis().iter().any(|known| known == api))
        };
        user.iter().find(speaks).and_then(|plugin| plugin.provider.clone()).with_context(|| {
            format!("no provider speaks the api `{api}`; this version brings openai-completions and scripted")
        })
    }

    async fn other_plugins(&self) -> Vec<Loaded> {
        let catalog = match Catalog::read(&self.directories, &self.project) {
            Ok(catalog) => catalog,
            Err(error) => {
                terminal::note(format_args!("no plugin of yours is loaded: {error:#}"));
                return Vec::new();
            }
        };
        for (folder, reason) in &catalog.strays {
            terminal::note(format_args!("the plugin in {} is left out: {reason}", folder.display()));
        }
        if catalog.plugins.is_empty() {
            return Vec::new();
        }
        let grants = self.grants();
        // Reading a component and taking its digest may keep a core busy for a while; more threads than cores only get
        // into each other's way.
        let mut enabled: Vec<Installed> = catalog.plugins.into_iter().filter(|plugin| plugin.enabled).collect();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let share = enabled.len().div_ceil(cores).max(1);
        let mut reading = Vec::new();
        while !enabled.is_empty() {
            let rest = enabled.split_off(share.min(enabled.len()));
            let some = std::mem::replace(&mut enabled, rest);
            let host = Arc::clone(&self.host);
            reading.push(tokio::task::spawn_blocking(move || {
                some.into_iter().map(|installed| (installed.see(&host), installed)).collect::<Vec<_>>()
            }));
        }
        let mut loading = Vec::new();
        for (files, installed) in join_all(reading).await.into_iter().flatten().flatten() {
            let files = match files {
                Ok(files) => files,
                Err(error) => {
                    let folder = installed.folder.display();
                    terminal::note(format_args!("the plugin in {folder} is left out: {error:#}"));
                    continue;
                }
            };
            let granted = files.granted(grants);
            if granted.is_none() {
                terminal::note(changed(&files));
            }
            let replaces = match installed.origin {
                Origin::User => grants.replaces(&files.manifest, &files.pin),
                Origin::Builtin | Origin::Project => Vec::new(),
            };
            let effective = Effective::intersect(&files.manifest, granted.as_ref());
            let PluginFiles { file, component, manifest, pin, .. } = files;
            let (host, origin) = (Arc::clone(&self.host), installed.origin);
            let plugin = UserPlugin { file, component, manifest, effective, pin, origin };
            let task = tokio::spawn(async move { host.load_user(plugin).await });
            loading.push((installed, replaces, task));
        }
        let mut loaded = Vec::new();
        for (installed, replaces, task) in loading {
            let outcome = task.await;
            let Installed { name, origin, .. } = installed;
            match outcome {
                Ok(Ok(plugin)) => loaded.push(Loaded { origin, replaces, plugin }),
                Ok(Err(error)) => terminal::note(format_args!("the plugin {name} is left out: {error}")),
                Err(error) => terminal::note(format_args!("the plugin {name} is left out: {error}")),
            }
        }
        loaded
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

/// That a plugin's files are not those that were granted anything, and what to do about it.
pub(crate) fn changed<C>(files: &PluginFiles<C>) -> String {
    let name = &files.manifest.name;
    format!(
        "{} has changed since it was granted anything, so it is granted nothing; look at it with `atoll plugin inspect {name}`, and if you trust it, run atoll plugin grant {name} --all",
        files.file.display()
    )
}

fn register(table: &mut Table, who: Registration, plugin: &LoadedPlugin) -> Result<(), atoll_table::Error> {
    match &plugin.tools {
        Some((tools, runner)) => table.register(who, tools.clone(), runner),
        None => Ok(()),
    }
}
