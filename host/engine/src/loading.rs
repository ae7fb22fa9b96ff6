//! From a file to a plugin that can be called: size and kind are checked before anything is compiled, compiling
//! is bounded in time, and nothing is linked that was not granted.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, RwLock, mpsc},
    time::Duration,
};

use atoll_caps::{Capability, Digest, Effective, Limits, Manifest, Pin, UserLimits, Wants};
use atoll_table::{
    Error, Origin, Tool, ToolRunner,
    extension::{Extension, Services},
    model::ModelProvider,
};
use tokio::sync::Semaphore;
use wasmtime::{
    Engine,
    component::{Component, InstancePre},
};

use crate::{
    actor::{Home, OnDemand, Recipe},
    aot_cache::AotCache,
    approval::{Approvals, Approver},
    audit::{AuditLog, Uses, Verdict},
    config::{Purpose, Ticker, max_workers},
    contract_check::{self, Surface},
    extension_plugin::{ExtensionPlugin, Generation, LiveExtension, Replacement},
    files::{MutationLocks, OpenFiles, Walks},
    http_client::HttpClient,
    linking,
    permits::Permits,
    processes::Confinement,
    provider_plugin::{ProviderPlugin, QUEUE},
    state::{Places, PluginContext, PluginState, SecretSource, Shared},
    tool_plugin::ToolPlugin,
    workers::WorkerPlugin,
};

/// The largest component that is compiled.
const MAX_COMPONENT: u64 = 64 << 20;
/// How long compiling one may take. It can not be interrupted: past it the work is left to end by itself, unused.
const COMPILE_TIME: Duration = Duration::from_secs(60);

/// A plugin that was compiled into the program.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// Its manifest.
    pub manifest: &'static str,
    /// Its image, made by the build.
    pub image: &'static [u8],
}

/// A plugin of the user's.
#[derive(Clone, Debug)]
pub struct UserPlugin {
    /// Where it came from, for messages.
    pub file: PathBuf,
    /// Its component, as [`read_component`] gave it: what is looked at for grants is what runs.
    pub component: Vec<u8>,
    /// Its manifest.
    pub manifest: Manifest,
    /// What it may do.
    pub effective: Effective,
    /// What its grants are pinned to. The component's digest has to be that of `component`.
    pub pin: Pin,
    /// Where it comes from: the user, or a project.
    pub origin: Origin,
}

/// A plugin, ready to use.
pub struct LoadedPlugin {
    /// Its name.
    pub name: String,
    /// Its manifest.
    pub manifest: Manifest,
    /// Its tools, if it exports any, and what runs them.
    pub tools: Option<(Vec<Tool>, Arc<dyn ToolRunner>)>,
    /// Its provider, if it exports one.
    pub provider: Option<Arc<dyn ModelProvider>>,
    /// The extension that it is, if it is one. Nobody has started it.
    pub extension: Option<Arc<dyn Extension>>,
    /// The same, for whoever reloads it.
    pub live: Option<LiveExtension>,
}

/// Where a component comes from.
struct Pedigree {
    pin: Option<Pin>,
    origin: Origin,
    is_concurrent: bool,
}

/// What a file is, found out without running it.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// What it imports and exports.
    pub surface: Surface,
    /// Why it could not be used as it is, if so.
    pub refusal: Option<Error>,
}

/// Where plugins are loaded and run.
pub struct PluginHost {
    engine: Engine,
    shared: Arc<Shared>,
    cache: AotCache,
}

impl PluginHost {
    /// Sets up the sandbox. Starts one thread.
    ///
    /// # Errors
    /// `failed` if the machine can not run it, with the reason.
    pub fn new(places: Places) -> Result<Self, Error> {
        let failed = |reason: String| Error::Failed(format!("the sandbox can not be set up: {reason}"));
        let engine = crate::config::engine(Purpose::Run).map_err(|reason| failed(format!("{reason:#}")))?;
        let ticker = Ticker::start(&engine).map_err(|reason| failed(reason.to_string()))?;
        let cache = AotCache::new(places.cache.join("aot"));
        let open_files = OpenFiles::of_all();
        let shared = Shared {
            places,
            http: HttpClient::default(),
            locks: MutationLocks::default(),
            walks: Walks::of_all(&open_files),
            open_files,
            ticker: Arc::new(ticker),
            permits: Permits::default(),
            workers: Arc::new(Semaphore::new(max_workers())),
            process_env: RwLock::default(),
            confinement: OnceLock::new(),
            user_limits: RwLock::default(),
            audit: OnceLock::new(),
            secrets: OnceLock::new(),
            approvals: Approvals::default(),
            services: OnceLock::new(),
        };
        Ok(Self { engine, shared: Arc::new(shared), cache })
    }

    /// Sets the variables that every process a plugin starts gets.
    pub fn set_process_env(&self, variables: Vec<(String, String)>) {
        *self.shared.process_env.write().unwrap_or_else(std::sync::PoisonError::into_inner) = variables;
    }

    /// Sets the user's limits, for all plugins that are loaded from now on.
    pub fn set_user_limits(&self, limits: UserLimits) {
        *self.shared.user_limits.write().unwrap_or_else(std::sync::PoisonError::into_inner) = limits;
    }

    /// From now on every use of a capability is written down there. To be called before plugins are loaded.
    pub fn set_audit_log(&self, log: AuditLog) {
        let _ = self.shared.audit.set(log);
    }

    /// Where secrets of the user's are looked up, each when a plugin first uses one that its manifest asks for and that it
    /// is granted. The first source counts.
    pub fn set_secrets(&self, source: SecretSource) {
        let _ = self.shared.secrets.set(source);
    }

    /// From now on every program that a plugin starts runs under `bwrap`: without a network, writing in the workspace and
    /// in temporary files of its own only, and without seeing what is in `hidden`. Of this process's variables it gets
    /// neither those that `keys` names nor those whose names end as names of keys do. If that can not be had, it does not
    /// run.
    pub fn confine_processes(&self, hidden: Vec<PathBuf>, keys: Vec<String>) {
        let _ = self.shared.confinement.set(Confinement::new(hidden, keys));
    }

    /// From now on this one is asked about what only the user's grant is missing for. To be called before plugins are
    /// loaded: what they may be asked about is linked, and checked with each use.
    pub fn set_approver(&self, approver: Arc<dyn Approver>) {
        self.shared.approvals.set(approver);
    }

    /// What extensions reach of the session. To be called before the first of them starts; the first counts.
    pub fn set_services(&self, services: Services) {
        let _ = self.shared.services.set(services);
    }

    /// Loads a built-in plugin. Nothing is compiled.
    ///
    /// # Errors
    /// `failed` if the program was built wrongly or the processor lacks what images rely on.
    pub async fn load_builtin(&self, builtin: &Builtin) -> Result<LoadedPlugin, Error> {
        self.load_builtin_with(builtin, &Wants::default()).await
    }

    /// The same, with what the user grants it beside its manifest: see [`Effective::builtin_with`].
    ///
    /// # Errors
    /// As [`Self::load_builtin`].
    pub async fn load_builtin_with(&self, builtin: &Builtin, added: &Wants) -> Result<LoadedPlugin, Error> {
        let (manifest, component) = self.builtin_component(builtin)?;
        let effective = Effective::builtin_with(&manifest, added);
        // What is built here is written with the Rust SDK, which lifts asynchronously.
        let pedigree = Pedigree { pin: None, origin: Origin::Builtin, is_concurrent: true };
        self.finish(&component, manifest, effective, pedigree).await
    }

    fn builtin_component(&self, builtin: &Builtin) -> Result<(Manifest, Component), Error> {
        let manifest = Manifest::parse(builtin.manifest, &format!("{}/plugin.toml", builtin.name))
            .map_err(|error| Error::Failed(error.to_string()))?;
        // SAFETY: the bytes were made by the build and are part of this program.
        let component = unsafe { Component::deserialize(&self.engine, builtin.image) }.map_err(|reason| {
            Error::Failed(format!("the built-in plugin {} can not be used on this machine: {reason:#}", builtin.name))
        })?;
        Ok((manifest, component))
    }

    /// Loads a plugin of the user's, from the cache if it was compiled before.
    ///
    /// # Errors
    /// `failed` or `unsupported-contract` if the file is no plugin for this host, `denied` if it imports what it was
    /// not granted, `limit` or `timeout` if it is too large or takes too long to compile.
    pub async fn load_user(&self, plugin: UserPlugin) -> Result<LoadedPlugin, Error> {
        let component = self.compile(&plugin.file, &plugin.component, &plugin.pin.component).await?;
        let is_concurrent = contract_check::is_concurrent(&plugin.component);
        let pedigree = Pedigree { pin: Some(plugin.pin), origin: plugin.origin, is_concurrent };
        self.finish(&component, plugin.manifest, plugin.effective, pedigree)
            .await
            .map_err(|error| in_file(&plugin.file, error))
    }

    /// Finds out what a component is, as [`read_component`] gave it. It is compiled, but not run. `file` is for messages.
    ///
    /// # Errors
    /// As [`Self::load_user`], if it is not a component at all.
    pub async fn inspect(
        &self,
        file: &Path,
        bytes: &[u8],
        manifest: &Manifest,
        effective: &Effective,
    ) -> Result<Inspection, Error> {
        let component = self.compile(file, bytes, &Digest::of(bytes)).await?;
        let surface = contract_check::surface(&self.engine, &component);
        let refusal =
            contract_check::check_declared(manifest).and_then(|()| contract_check::check(&surface, effective, false));
        Ok(Inspection { surface, refusal: refusal.err() })
    }

    /// Finds out what a built-in plugin is. It is not run.
    ///
    /// # Errors
    /// As [`Self::load_builtin`].
    pub fn inspect_builtin(&self, builtin: &Builtin) -> Result<(Manifest, Surface), Error> {
        let (manifest, component) = self.builtin_component(builtin)?;
        Ok((manifest, contract_check::surface(&self.engine, &component)))
    }

    /// Fetches a component for the user, over https or from this machine. It has still to be checked, with
    /// [`check_component`].
    ///
    /// # Errors
    /// `invalid-arguments` for a URL that is not fetched from, `not-found`, `unavailable`, `timeout`, or `failed` if it is
    /// too large or redirects where it must not.
    pub async fn download(&self, url: &str) -> Result<Vec<u8>, Error> {
        crate::download::fetch(&self.shared.http, url, MAX_COMPONENT).await
    }

    fn limits(&self, manifest: &Manifest) -> Limits {
        let user = self.shared.user_limits.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        user.of(manifest.name.as_str(), &manifest.limits)
    }

    /// `digest` is that of the bytes.
    async fn compile(&self, file: &Path, bytes: &[u8], digest: &Digest) -> Result<Component, Error> {
        if let Some(component) = self.cache.load(&self.engine, digest) {
            return Ok(component);
        }
        // On a thread of its own, for a compilation that runs away must not hold up the end of the program.
        let (sender, receiver) = mpsc::channel();
        let (engine, bytes) = (self.engine.clone(), bytes.to_vec());
        std::thread::spawn(move || {
            let _ = sender.send(Component::from_binary(&engine, &bytes));
        });
        let waited = tokio::task::spawn_blocking(move || receiver.recv_timeout(COMPILE_TIME)).await;
        let component = match waited {
            Ok(Ok(Ok(component))) => component,
            Ok(Ok(Err(reason))) => {
                return Err(Error::Failed(format!(
                    "{} is not a usable component: {}",
                    file.display(),
                    reason.root_cause()
                )));
            }
            Ok(Err(mpsc::RecvTimeoutError::Disconnected)) => {
                return Err(Error::Failed(format!(
                    "{} can not be compiled: the compiler gave up on it",
                    file.display()
                )));
            }
            _ => {
                return Err(Error::Timeout(format!(
                    "{} takes more than {} s to compile",
                    file.display(),
                    COMPILE_TIME.as_secs()
                )));
            }
        };
        if let Err(reason) = self.cache.store(&self.engine, digest, &component) {
            tracing::warn!(%reason, "a compiled plugin could not be cached; it will be compiled again");
        }
        Ok(component)
    }

    /// Checks and links a component.
    fn link(
        &self,
        component: &Component,
        manifest: &Manifest,
        effective: Effective,
        pedigree: Pedigree,
    ) -> Result<Linked, Error> {
        let name = manifest.name.as_str().to_owned();
        let surface = contract_check::surface(&self.engine, component);
        contract_check::check_declared(manifest)?;
        let can_ask = self.shared.approvals.can_ask();
        if let Err(error) = contract_check::check(&surface, &effective, can_ask) {
            if let Error::Denied { capability, .. } = &error {
                let uses = Uses::new(self.shared.audit.get().cloned(), &name, None, false);
                let capability = capability.parse().map_or("", Capability::as_str);
                uses.used(capability, "link", "the interface", Verdict::Denied);
            }
            return Err(error);
        }
        let pre: InstancePre<PluginState> = linking::linker(&self.engine, &effective, can_ask)
            .and_then(|linker| linker.instantiate_pre(component))
            .map_err(|reason| unfit(&name, &reason))?;
        let open_files = OpenFiles::of_plugin(&self.shared.open_files);
        let context = Arc::new(PluginContext {
            name,
            limits: self.limits(manifest),
            origin: pedigree.origin,
            pin: pedigree.pin,
            granted: RwLock::new(effective.into()),
            shared: Arc::clone(&self.shared),
            walks: Walks::of_plugin(&self.shared.walks, &open_files),
            open_files,
            worker: OnceLock::new(),
            runner: OnceLock::new(),
            extension: OnceLock::new(),
            added: Mutex::default(),
            model_origins: RwLock::default(),
            secrets: RwLock::default(),
            used_secrets: RwLock::default(),
        });
        if surface.exports.contains("worker") {
            let worker = WorkerPlugin::new(self.engine.clone(), pre.clone());
            let worker = worker.map_err(|reason| unfit(&context.name, &reason))?;
            context.worker.get_or_init(|| worker);
        }
        Ok(Linked { pre, context, surface, is_concurrent: pedigree.is_concurrent })
    }

    async fn finish(
        &self,
        component: &Component,
        manifest: Manifest,
        effective: Effective,
        pedigree: Pedigree,
    ) -> Result<LoadedPlugin, Error> {
        let origin = pedigree.origin;
        let linked = self.link(component, &manifest, effective, pedigree)?;
        let name = linked.context.name.clone();
        let mut loaded = LoadedPlugin { name, manifest, tools: None, provider: None, extension: None, live: None };
        let tools = linked.tools(&self.engine).await?;
        if linked.surface.exports.contains("extension") {
            let listed = tools.map(|(tools, _)| tools);
            let extension = ExtensionPlugin::new(linked.generation(&self.engine, listed.as_deref())?, origin);
            loaded.tools = listed.map(|tools| (tools, Arc::clone(extension.inner().runner())));
            loaded.provider = linked.provider(&self.engine, || Ok(Arc::new(extension.clone()))).await?;
            loaded.live = Some(LiveExtension(extension.clone()));
            loaded.extension = Some(Arc::new(extension));
            return Ok(loaded);
        }
        loaded.tools = tools.map(|(tools, runner)| {
            linked.context.runner.get_or_init(|| Arc::downgrade(&runner));
            (tools, runner)
        });
        let on_demand = || Ok(Arc::new(OnDemand::new(linked.recipe(&self.engine, QUEUE)?)) as Arc<dyn Home>);
        loaded.provider = linked.provider(&self.engine, on_demand).await?;
        Ok(loaded)
    }

    /// Loads a component that is to take over from a running extension of the same name. It is compiled, checked, linked
    /// and asked for its tools, but not started.
    ///
    /// # Errors
    /// As [`Self::load_user`], and `invalid-arguments` if it is no extension.
    pub async fn load_replacement(&self, plugin: UserPlugin) -> Result<Replacement, Error> {
        let UserPlugin { file, component: bytes, manifest, effective, pin, origin } = plugin;
        let component = self.compile(&file, &bytes, &pin.component).await?;
        let is_concurrent = contract_check::is_concurrent(&bytes);
        let load = async {
            let linked =
                self.link(&component, &manifest, effective, Pedigree { pin: Some(pin), origin, is_concurrent })?;
            if !linked.surface.exports.contains("extension") {
                return Err(Error::InvalidArguments(format!(
                    "the plugin {} is no extension any more; start anew to have its tools",
                    linked.context.name
                )));
            }
            let tools = linked.tools(&self.engine).await?;
            Ok(Replacement(linked.generation(&self.engine, tools.as_ref().map(|(tools, _)| tools.as_slice()))?))
        };
        load.await.map_err(|error| in_file(&file, error))
    }
}

fn unfit(name: &str, reason: &wasmtime::Error) -> Error {
    Error::Failed(format!("the plugin {name} does not fit the contract: {reason:#}"))
}

/// A component that can be instantiated.
struct Linked {
    pre: InstancePre<PluginState>,
    context: Arc<PluginContext>,
    surface: Surface,
    is_concurrent: bool,
}

impl Linked {
    fn recipe(&self, engine: &Engine, queue: usize) -> Result<Arc<Recipe>, Error> {
        let (pre, context) = (self.pre.clone(), Arc::clone(&self.context));
        let recipe = Recipe::new(engine.clone(), pre, context, &self.surface.exports, queue);
        Ok(Arc::new(recipe.map_err(|reason| unfit(&self.context.name, &reason))?))
    }

    fn generation(&self, engine: &Engine, tools: Option<&[Tool]>) -> Result<Generation, Error> {
        let queue = usize::try_from(self.context.limits.queue).unwrap_or(usize::MAX);
        let tools = tools.unwrap_or_default().to_vec();
        Ok(Generation { recipe: self.recipe(engine, queue)?, is_concurrent: self.is_concurrent, tools })
    }

    /// Its tools, and what runs each call in a fresh instance.
    async fn tools(&self, engine: &Engine) -> Result<Option<(Vec<Tool>, Arc<dyn ToolRunner>)>, Error> {
        if !self.surface.exports.contains("tools") {
            return Ok(None);
        }
        let plugin = ToolPlugin::new(engine.clone(), self.pre.clone(), Arc::clone(&self.context));
        let plugin = plugin.map_err(|reason| unfit(&self.context.name, &reason))?;
        let tools = plugin.list().await?;
        Ok(Some((tools, Arc::new(plugin))))
    }

    /// Its provider, whose instance is at `home`.
    async fn provider(
        &self,
        engine: &Engine,
        home: impl FnOnce() -> Result<Arc<dyn Home>, Error>,
    ) -> Result<Option<Arc<dyn ModelProvider>>, Error> {
        if !self.surface.exports.contains("provider") {
            return Ok(None);
        }
        let provider = ProviderPlugin::start(engine, &self.pre, Arc::clone(&self.context), home()?).await?;
        Ok(Some(Arc::new(provider)))
    }
}

/// Reads a file that claims to be a component, after looking at its kind, its size and its first bytes.
///
/// # Errors
/// `not-found` or `failed`, with what it is instead.
pub fn read_component(file: &Path) -> Result<Vec<u8>, Error> {
    use std::io::Read as _;
    let shown = file.display();
    let unreadable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound(format!("{shown} does not exist")),
        _ => Error::Failed(format!("{shown} can not be read: {error}")),
    };
    let facts = std::fs::metadata(file).map_err(unreadable)?;
    if !facts.is_file() {
        return Err(Error::Failed(format!("{shown} is not a file")));
    }
    let mut source = std::fs::File::open(file).map_err(unreadable)?;
    let mut head = Vec::new();
    (&mut source).take(8).read_to_end(&mut head).map_err(unreadable)?;
    check_head(&head, &shown.to_string())?;
    if facts.len() > MAX_COMPONENT {
        return Err(Error::Failed(format!(
            "{shown} has {} bytes; a component may have at most {MAX_COMPONENT}",
            facts.len()
        )));
    }
    let mut bytes = head;
    source.take(MAX_COMPONENT).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

/// Looks at the size and the first bytes of something that claims to be a component. `shown` is what messages call it.
///
/// # Errors
/// `failed`, with what it is instead.
pub fn check_component(bytes: &[u8], shown: &str) -> Result<(), Error> {
    check_head(bytes.get(..8).unwrap_or(bytes), shown)?;
    if bytes.len() as u64 > MAX_COMPONENT {
        let length = bytes.len();
        return Err(Error::Failed(format!("{shown} has {length} bytes; a component may have at most {MAX_COMPONENT}")));
    }
    Ok(())
}

fn check_head(head: &[u8], shown: &str) -> Result<(), Error> {
    let hint = "a plugin is a WebAssembly component, such as `cargo build --target wasm32-wasip2` makes";
    match head {
        [] => return Err(Error::Failed(format!("{shown} is empty; {hint}"))),
        [0, b'a', b's', b'm', 1, 0, 0, 0] => {
            return Err(Error::Failed(format!("{shown} is a core WebAssembly module, not a component; {hint}")));
        }
        [0, b'a', b's', b'm', _, _, 1, 0] => {}
        [0, b'a', b's', b'm', ..] => {
            return Err(Error::Failed(format!("{shown} is cut off or of an unknown kind; {hint}")));
        }
        _ => return Err(Error::Failed(format!("{shown} is not WebAssembly; {hint}"))),
    }
    Ok(())
}

fn in_file(file: &Path, error: Error) -> Error {
    match error {
        Error::Failed(text) if !text.contains(&*file.to_string_lossy()) => {
            Error::Failed(format!("{}: {text}", file.display()))
        }
        error => error,
    }
}
