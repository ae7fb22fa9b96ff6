//! Puts the parts together: settings, the sandbox, the tool table, a provider.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, OnceLock},
};

use anyhow::Context as _;
use atoll_agent::{Pipeline, models::Models, settings::Settings};
use atoll_caps::{Digest, Effective, GrantState, Grants, Manifest, PluginName};
use atoll_engine::{AuditLog, LoadedPlugin, PluginHost, UserPlugin};
use atoll_table::{Registration, Table, model::ModelProvider};
use futures::future::join_all;

use crate::{approval::TerminalApprover, builtins, directories::Directories, exit, signals::Stop, terminal};

/// The parts that every command which runs plugins needs.
pub(crate) struct Parts {
    pub(crate) directories: Directories,
    pub(crate) settings: Settings,
    pub(crate) host: Arc<PluginHost>,
    grants: OnceLock<Grants>,
    audit: Option<AuditLog>,
}

impl Parts {
    /// Reads the settings and sets up the sandbox, with `cwd` (or the working directory) as the workspace.
    pub(crate) fn new(cwd: Option<&Path>) -> anyhow::Result<Self> {
        let directories = Directories::find()?;
        let settings = Settings::load(&directories.settings())?;
        let places = directories.places(&settings, cwd.unwrap_or(&directories.cwd));
        let host = PluginHost::new(places)?;
        let audit = start_audit_log(&directories, &settings);
        if let Some(log) = &audit {
            host.set_audit_log(log.clone());
        }
        Ok(Self { host: Arc::new(host), directories, settings, grants: OnceLock::new(), audit })
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
        let environment: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Ok(Models::load(&self.directories.models(), environment)?)
    }

    /// Loads all tools, built-in ones first. A plugin of the user's that can not be used is reported and left out.
    pub(crate) async fn tools(&self) -> anyhow::Result<(Pipeline, Vec<LoadedPlugin>)> {
        let (table, user) = tokio::join!(self.builtin_table(), self.user_plugins());
        let mut table = table?;
        for plugin in &user {
            if let Err(error) = register(&mut table, Registration::user(&plugin.name), plugin) {
                terminal::note(format_args!("the plugin {} is left out: {error}", plugin.name));
            }
        }
        if let Some(selection) = &self.settings.default_tools {
            table.select(selection).context("defaultTools in settings.json")?;
        }
        Ok((Pipeline::new(table), user))
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

    async fn user_plugins(&self) -> Vec<LoadedPlugin> {
        let grants = self.grants();
        let mut plugins = Vec::new();
        for folder in std::fs::read_dir(self.directories.plugins()).into_iter().flatten().flatten() {
            let folder = folder.path();
            if folder.is_dir() {
                match found(&folder, grants) {
                    Ok(plugin) => plugins.push(plugin),
                    Err(error) => {
                        terminal::note(format_args!("the plugin in {} is left out: {error:#}", folder.display()));
                    }
                }
            }
        }
        plugins.sort_by(|a, b| a.manifest.name.cmp(&b.manifest.name));
        let loading = plugins.into_iter().map(|plugin| {
            let host = Arc::clone(&self.host);
            async move {
                let name = plugin.manifest.name.clone();
                (name, tokio::spawn(async move { host.load_user(plugin).await }).await)
            }
        });
        let mut loaded = Vec::new();
        for (name, outcome) in join_all(loading).await {
            match outcome {
                Ok(Ok(plugin)) => loaded.push(plugin),
                Ok(Err(error)) => terminal::note(format_args!("the plugin {name} is left out: {error}")),
                Err(error) => terminal::note(format_args!("the plugin {name} is left out: {error}")),
            }
        }
        loaded
    }
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

/// A plugin of the user's: a folder with `plugin.wasm` and, if it wants anything, `plugin.toml`.
fn found(folder: &Path, grants: &Grants) -> anyhow::Result<UserPlugin> {
    let file = folder.join("plugin.wasm");
    let name: PluginName = folder
        .file_name()
        .and_then(|name| name.to_str())
        .context("its name is not text")?
        .parse()
        .context("its name can not name a plugin")?;
    let manifest = manifest_beside(&file, name)?;
    let component = atoll_engine::read_component(&file)?;
    let digest = Digest::of(&component);
    let granted = match grants.for_plugin(&manifest.name, &digest) {
        GrantState::Granted(wants) => Some(wants),
        GrantState::Changed { .. } => {
            terminal::note(format_args!(
                "{} has changed since it was granted anything, so it is granted nothing; grant it again if you trust it",
                file.display()
            ));
            None
        }
        GrantState::None => None,
    };
    let effective = Effective::intersect(&manifest, granted.as_ref());
    Ok(UserPlugin { file, component, manifest, effective })
}

/// The manifest beside a component, or one that wants nothing.
pub(crate) fn manifest_beside(file: &Path, name: PluginName) -> anyhow::Result<Manifest> {
    let path = file.with_file_name("plugin.toml");
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Manifest::parse(&text, &path.to_string_lossy())?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Manifest::bare(name)),
        Err(error) => Err(error).with_context(|| format!("{} can not be read", path.display())),
    }
}

fn register(table: &mut Table, who: Registration, plugin: &LoadedPlugin) -> Result<(), atoll_table::Error> {
    match &plugin.tools {
        Some((tools, runner)) => table.register(who, tools.clone(), runner),
        None => Ok(()),
    }
}
