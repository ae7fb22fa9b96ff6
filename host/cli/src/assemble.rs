//! Puts the parts together: settings, the sandbox, the tool table, a provider.

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use anyhow::Context as _;
use atoll_agent::{
    Extensions, Pipeline,
    extensions::{Flags, Report},
    models::Models,
    secrets::Secrets,
    settings::{BashSandbox, Settings},
};
use atoll_caps::{Capability, Effective, Grants, Manifest, Pin, Wants, shell_word};
use atoll_engine::{AuditLog, LoadedPlugin, PluginHost, SeenComponent, UserPlugin};
use atoll_table::{Error, Origin, Registration, Table, model::ModelProvider};
use futures::future::join_all;

use crate::{
    approval::TerminalApprover,
    arguments::{ExtensionArguments, TrustArguments},
    assembled::Assembled,
    builtins,
    directories::Directories,
    exit,
    installed::{Catalog, Installed, PluginFiles},
    person::Person,
    project::Project,
    scripts::{self, Script},
    signals::Stop,
    terminal,
};

/// What a plugin that the user names for one run is granted, if its manifest asks for it: what it may do in the session. The
/// README and the threat model list the same.
const NAMED: [Capability; 6] =
    [Capability::Table, Capability::Session, Capability::Models, Capability::Ui, Capability::Store, Capability::Bus];

/// The parts that every command which runs plugins needs.
pub(crate) struct Parts {
    pub(crate) directories: Directories,
    pub(crate) settings: Settings,
    pub(crate) project: Project,
    pub(crate) host: Arc<PluginHost>,
    grants: OnceLock<Grants>,
    audit: Option<AuditLog>,
}

/// A plugin that is not built in, ready to use.
struct Loaded {
    origin: Origin,
    /// The built-in tools that its own may stand in for.
    replaces: Vec<String>,
    plugin: LoadedPlugin,
    /// The user named it for this run.
    is_named: bool,
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
        if let Some(engine) = builtins::script_engine() {
            host.set_script_engine(*engine);
        }
        let secrets = Secrets::new(directories.secrets(), environment());
        host.set_secrets(Arc::new(secrets));
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
        let (table, others) = tokio::join!(self.builtin_table(), self.other_plugins(wanted));
        let (mut table, others) = (table?, others?);
        let mut plugins = Vec::new();
        let mut ranked = Vec::new();
        for Loaded { origin, replaces, plugin, is_named } in others {
            let who = Registration::new(plugin.name.clone(), origin).replacing(replaces);
            if let Err(error) = register(&mut table, who, &plugin) {
                if is_named {
                    return Err(error).with_context(|| format!("-e: the plugin {}", plugin.name));
                }
                terminal::note(format_args!("the plugin {} is left out: {error}", plugin.name));
                continue;
            }
            if let Some(extension) = &plugin.extension {
                ranked.push(((!is_named).then_some(rank(origin)), is_named, Arc::clone(extension)));
            }
            plugins.push(plugin);
        }
        // Those that the user named come first, in that order, then a project's and then the user's: whoever guards
        // calls for the user sees what others made of them.
        ranked.sort_by_key(|(rank, ..)| *rank);
        let extensions = Extensions::new(report);
        let mut named = HashSet::new();
        for (_, is_named, extension) in ranked {
            if is_named {
                named.insert(extension.name().to_owned());
            }
            extensions.add(extension);
        }
        Ok(Assembled {
            parts: Arc::clone(self),
            pipeline: Pipeline::new(table),
            plugins: Arc::new(plugins),
            extensions,
            named,
            flags: Flags::default(),
        })
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

    /// The plugins that the user named for this run, then those that are installed.
    async fn other_plugins(&self, wanted: &ExtensionArguments) -> anyhow::Result<Vec<Loaded>> {
        let named = self.named_plugins(&wanted.named).await?;
        let names: HashSet<&str> = named.iter().map(|loaded| loaded.plugin.name.as_str()).collect();
        let mut others = self.installed_plugins(&names).await;
        if wanted.no_extensions {
            others.retain(|loaded| loaded.plugin.extension.is_none());
        }
        Ok(named.into_iter().chain(others).collect())
    }

    /// Loads the plugins of `-e`. Naming one is the user's word for it: of what its manifest asks for, it is granted
    /// [`NAMED`]. What reaches outside needs a grant all the same, or an answer.
    async fn named_plugins(&self, files: &[PathBuf]) -> anyhow::Result<Vec<Loaded>> {
        let mut found: Vec<Named> = Vec::new();
        let mut paths = HashSet::new();
        for file in files {
            let shown = file.display();
            let named = named(&self.host, &self.directories.cwd.join(file)).with_context(|| format!("-e {shown}"))?;
            for one in named {
                // The same file named twice is loaded once.
                if !paths.insert(one.file().canonicalize().unwrap_or_else(|_| one.file().to_owned())) {
                    continue;
                }
                let name = &one.manifest().name;
                if builtins::by_name(name.as_str()).is_some() {
                    anyhow::bail!("-e {shown}: `{name}` is the name of a built-in plugin; give this one another");
                }
                if let Some(other) = found.iter().find(|other| other.manifest().name == *name) {
                    let (first, second) = (other.file().display(), one.file().display());
                    anyhow::bail!("{first} and {second} are both the plugin {name}; leave out one of them");
                }
                found.push(one);
            }
        }
        let loading = found.into_iter().map(|one| {
            let (manifest, pin) = (one.manifest(), one.pin());
            let mut granted = one.granted(self.grants()).unwrap_or_default();
            let wanted = manifest.wants.flags.iter().filter(|(capability, _)| NAMED.contains(capability));
            granted.flags.extend(wanted.map(|(capability, reason)| (*capability, reason.clone())));
            let replaces = self.grants().replaces(manifest, pin);
            let effective = Effective::intersect(manifest, Some(&granted));
            let (host, shown) = (Arc::clone(&self.host), one.file().to_owned());
            let task = tokio::spawn(async move {
                match one {
                    Named::Script(script) => host.load_script(script.plugin(effective, Origin::User)).await,
                    Named::Component(files) => {
                        let PluginFiles { file, component, manifest, pin, .. } = *files;
                        let plugin = UserPlugin { file, component, manifest, effective, pin, origin: Origin::User };
                        host.load_user(plugin).await
                    }
                }
            });
            async move { (shown, replaces, task.await) }
        });
        let mut loaded = Vec::new();
        for (file, replaces, outcome) in join_all(loading.collect::<Vec<_>>()).await {
            let plugin = outcome.context("a plugin could not be loaded")?;
            let plugin = match plugin {
                Err(error @ Error::Denied { .. }) => {
                    let file = shell_word(&file.to_string_lossy());
                    return Err(error).context(format!(
                        "-e {file}: what reaches outside is granted to plugins that are installed: atoll plugin install {file}"
                    ));
                }
                other => other?,
            };
            loaded.push(Loaded { origin: Origin::User, replaces, plugin, is_named: true });
        }
        Ok(loaded)
    }

    /// Loads the plugins that are installed, but for those of these names.
    async fn installed_plugins(&self, named: &HashSet<&str>) -> Vec<Loaded> {
        let mut catalog = match Catalog::read(&self.directories, &self.project) {
            Ok(catalog) => catalog,
            Err(error) => {
                terminal::note(format_args!("no plugin of yours is loaded: {error:#}"));
                return Vec::new();
            }
        };
        for (folder, reason) in &catalog.strays {
            terminal::note(format_args!("the plugin in {} is left out: {reason}", folder.display()));
        }
        catalog.plugins.retain(|plugin| {
            let is_hidden = plugin.enabled && named.contains(plugin.name.as_str());
            if is_hidden {
                let name = &plugin.name;
                terminal::note(format_args!("the installed plugin {name} is left out: -e names another of that name"));
            }
            !is_hidden
        });
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
                Ok(Ok(plugin)) => loaded.push(Loaded { origin, replaces, plugin, is_named: false }),
                Ok(Err(error)) => terminal::note(format_args!("the plugin {name} is left out: {error}")),
                Err(error) => terminal::note(format_args!("the plugin {name} is left out: {error}")),
            }
        }
        loaded
    }
}

/// Which come first among extensions that are installed.
fn rank(origin: Origin) -> u8 {
    match origin {
        Origin::Project => 0,
        Origin::User => 1,
        Origin::Builtin => 2,
    }
}

/// A plugin that the user named for this run.
enum Named {
    Component(Box<PluginFiles<SeenComponent>>),
    Script(Box<Script>),
}

impl Named {
    fn file(&self) -> &Path {
        match self {
            Self::Component(files) => &files.file,
            Self::Script(script) => &script.file,
        }
    }

    fn manifest(&self) -> &Manifest {
        match self {
            Self::Component(files) => &files.manifest,
            Self::Script(script) => &script.manifest,
        }
    }

    fn pin(&self) -> &Pin {
        match self {
            Self::Component(files) => &files.pin,
            Self::Script(script) => &script.pin,
        }
    }

    fn granted(&self, grants: &Grants) -> Option<Wants> {
        match self {
            Self::Component(files) => files.granted(grants),
            Self::Script(script) => script.granted(grants),
        }
    }
}

fn script(entry: &Path, folder: Option<&Path>) -> anyhow::Result<Named> {
    Ok(Named::Script(Box::new(Script::read(entry, folder, scripts::name_of(entry)?)?)))
}

/// Reads what the user named: a component, a script, or a folder with a script or several.
fn named(host: &PluginHost, path: &Path) -> anyhow::Result<Vec<Named>> {
    if path.is_dir() {
        let entries = scripts::entries(path)?;
        if entries.is_empty() {
            let shown = path.display();
            anyhow::bail!(Error::NotFound(format!(
                "{shown} holds no script: there is no index.ts, no index.js, and no package.json that names one"
            )));
        }
        let read = |entry: PathBuf| script(&entry, Some(path));
        return entries.into_iter().map(read).collect();
    }
    if scripts::is_script(path) {
        return Ok(vec![script(path, None)?]);
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase().replace(['_', '.'], "-");
    let name = stem.parse().context("its file's name can not name a plugin; give it a manifest that does")?;
    Ok(vec![Named::Component(Box::new(PluginFiles::seen(host, path, name)?))])
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

fn register(table: &mut Table, who: Registration, plugin: &LoadedPlugin) -> Result<(), Error> {
    match &plugin.tools {
        Some((tools, runner)) => table.register(who, tools.clone(), runner),
        None => Ok(()),
    }
}
