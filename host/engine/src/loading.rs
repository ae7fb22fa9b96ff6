//! From a file to a plugin that can be called. What it says of itself is enough for a start; its component is loaded when
//! it is first used.
//!
//! Must never let what was kept of a plugin decide what it may do: contract, grants and limits are checked at each start,
//! and again when the component is loaded.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, RwLock, atomic::AtomicUsize},
};

use atoll_caps::{Capability, Digest, Effective, Limits, Manifest, Pin, Wants};
use atoll_table::{Error, Origin, Tool, ToolRunner, extension::Extension, model::ModelProvider};
use wasmtime::{Engine, component::Component};

use crate::{
    actor::{Home, OnDemand, Recipe},
    audit::{Uses, Verdict},
    components::{self, MAX_COMPONENT, Source},
    contract_check::{self, Surface},
    description::Description,
    extension_plugin::{ExtensionPlugin, Generation, LiveExtension, Replacement},
    files::{OpenFiles, Walks},
    lazy::{LazyComponent, LazyTools},
    linking::Linking,
    plugin_host::PluginHost,
    provider_plugin::{ProviderPlugin, QUEUE},
    scripts::{ScriptEngine, ScriptPlugin, SourceFile},
    seen::SeenComponent,
    state::PluginContext,
};

/// A plugin that was compiled into the program.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// Its manifest.
    pub manifest: &'static str,
    /// Its image, made by the build.
    pub image: &'static [u8],
    /// What it says of itself, as [`PluginHost::describe`] told the build.
    pub description: &'static str,
}

impl Builtin {
    /// Its manifest.
    ///
    /// # Errors
    /// `failed` if the program was built wrongly.
    pub fn manifest(&self) -> Result<Manifest, Error> {
        Manifest::parse(self.manifest, &format!("{}/plugin.toml", self.name))
            .map_err(|error| Error::Failed(error.to_string()))
    }

    /// Whether it is an extension.
    ///
    /// # Errors
    /// `failed` if the program was built wrongly.
    pub fn is_extension(&self) -> Result<bool, Error> {
        Ok(self.read_description()?.surface().exports.contains("extension"))
    }

    /// What it says of itself.
    ///
    /// # Errors
    /// `failed` if the program was built wrongly.
    pub(crate) fn read_description(&self) -> Result<Description, Error> {
        Description::parse(self.description.as_bytes())
            .map_err(|reason| Error::Failed(format!("the built-in plugin {} was built wrongly: {reason}", self.name)))
    }
}

/// A plugin of the user's.
#[derive(Clone, Debug)]
pub struct UserPlugin {
    /// Where it came from, for messages.
    pub file: PathBuf,
    /// Its component, as [`PluginHost::see_component`] gave it: what is looked at for grants is what runs.
    pub component: SeenComponent,
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

/// What a file is, found out without running it.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// What it imports and exports.
    pub surface: Surface,
    /// Why it could not be used as it is, if so.
    pub refusal: Option<Error>,
}

impl PluginHost {
    /// Gets a built-in plugin ready. Nothing is compiled, and of a plugin that only brings tools nothing is run.
    ///
    /// # Errors
    /// `failed` if the program was built wrongly, or if a provider's image relies on what the processor lacks.
    pub async fn load_builtin(&self, builtin: &Builtin) -> Result<LoadedPlugin, Error> {
        self.load_builtin_with(builtin, &Wants::default()).await
    }

    /// The same, with what the user grants it beside its manifest: see [`Effective::builtin_with`].
    ///
    /// # Errors
    /// As [`Self::load_builtin`].
    pub async fn load_builtin_with(&self, builtin: &Builtin, added: &Wants) -> Result<LoadedPlugin, Error> {
        let manifest = builtin.manifest()?;
        let description = builtin.read_description()?;
        let effective = Effective::builtin_with(&manifest, added);
        self.finish(
            Source::Image(builtin.image),
            Known::Description(description),
            manifest,
            effective,
            Pedigree::BUILTIN,
            Arc::default(),
        )
        .await
    }

    /// Asks a built-in plugin what it is, for the build to keep: it is loaded and run. Its `description` is not looked at.
    ///
    /// # Errors
    /// As [`Self::load_builtin`], and whatever it fails with.
    pub async fn describe(&self, builtin: &Builtin) -> Result<String, Error> {
        let manifest = builtin.manifest()?;
        let effective = Effective::builtin(&manifest);
        let component = components::from_image(&self.components.engine, builtin.name, builtin.image)?;
        let surface = contract_check::surface(&self.components.engine, &component);
        let context = self.context(&manifest, effective, Pedigree::BUILTIN, Arc::default());
        let lazy = Arc::new(LazyComponent::new(
            self.components.clone(),
            Source::Image(builtin.image),
            context,
            // It may use nothing, whatever is linked.
            Linking::Checked,
        ));
        // What is built here is written with the Rust SDK, which lifts asynchronously.
        let description = Self::ask(&surface, &lazy, true).await?;
        description.text().map_err(|reason| Error::Failed(format!("{} can not be described: {reason}", builtin.name)))
    }

    /// Looks at a component's file, for [`Self::load_user`]. It is not read if it was before and has not changed since.
    /// May block.
    ///
    /// # Errors
    /// As [`crate::read_component`].
    pub fn see_component(&self, file: &Path) -> Result<SeenComponent, Error> {
        self.components.see(file)
    }

    /// Gets a plugin of the user's ready: from what was kept of it, else it is compiled and asked.
    ///
    /// # Errors
    /// `failed` or `unsupported-contract` if the file is no plugin for this host, `denied` if it imports what it was
    /// not granted, `limit` or `timeout` if it is too large or takes too long to compile.
    pub async fn load_user(&self, plugin: UserPlugin) -> Result<LoadedPlugin, Error> {
        let UserPlugin { file, component, manifest, effective, pin, origin } = plugin;
        let (source, known) = self.known(&file, component, &manifest, &pin).await?;
        let pedigree = Pedigree { pin: Some(pin), origin, store: None };
        self.finish(source, known, manifest, effective, pedigree, Arc::default())
            .await
            .map_err(|error| in_file(&file, error))
    }

    /// Gets a component ready that is to take over from a running extension of the same name. It is checked, linked and
    /// asked for its tools, but not started.
    ///
    /// # Errors
    /// As [`Self::load_user`], and `invalid-arguments` if it is no extension.
    pub async fn load_replacement(&self, plugin: UserPlugin) -> Result<Replacement, Error> {
        let UserPlugin { file, component, manifest, effective, pin, origin } = plugin;
        let (source, known) = self.known(&file, component, &manifest, &pin).await?;
        let load = async {
            let pedigree = Pedigree { pin: Some(pin), origin, store: None };
            let ready = self.ready(source, known, &manifest, effective, pedigree, Arc::default()).await?;
            if !ready.surface.exports.contains("extension") {
                return Err(Error::InvalidArguments(format!(
                    "the plugin {} is no extension any more; start anew to have its tools",
                    ready.context.name
                )));
            }
            Ok(Replacement(ready.generation(&self.components.engine).await?))
        };
        load.await.map_err(|error| in_file(&file, error))
    }

    /// Gets a built-in extension ready that is to take over from the one that runs. It is not started.
    ///
    /// # Errors
    /// As [`Self::load_builtin`].
    pub async fn load_builtin_replacement(&self, builtin: &Builtin, added: &Wants) -> Result<Replacement, Error> {
        let (manifest, description) = (builtin.manifest()?, builtin.read_description()?);
        let effective = Effective::builtin_with(&manifest, added);
        let (source, known) = (Source::Image(builtin.image), Known::Description(description));
        let ready = self.ready(source, known, &manifest, effective, Pedigree::BUILTIN, Arc::default()).await?;
        Ok(Replacement(ready.generation(&self.components.engine).await?))
    }

    /// From now on scripts are run by this one. To be called before any is loaded; the first counts. Nothing of it is
    /// looked at before that.
    pub fn set_script_engine(&self, builtin: Builtin) {
        let _ = self.shared.scripts.set(Arc::new(ScriptEngine::new(builtin)));
    }

    /// Gets a script ready: it becomes an extension with grants, limits and a store of its own. Its text is read when the
    /// extension starts.
    ///
    /// # Errors
    /// `unavailable` if this host runs no scripts, `unsupported-contract` if its manifest is for another host.
    pub async fn load_script(&self, script: ScriptPlugin) -> Result<LoadedPlugin, Error> {
        let ScriptPlugin { file, files, manifest, effective, pin, origin, store } = script;
        let (source, known) = self.script_engine(&file)?;
        let pedigree = Pedigree { pin: Some(pin), origin, store };
        let loaded = self.finish(source, known, manifest, effective, pedigree, files.into()).await;
        loaded.map_err(|error| in_file(&file, error))
    }

    /// Gets a script ready that is to take over from a running extension of the same name. It is not started.
    ///
    /// # Errors
    /// As [`Self::load_script`].
    pub async fn load_script_replacement(&self, script: ScriptPlugin) -> Result<Replacement, Error> {
        let ScriptPlugin { file, files, manifest, effective, pin, origin, store } = script;
        let (source, known) = self.script_engine(&file)?;
        let load = async {
            let pedigree = Pedigree { pin: Some(pin), origin, store };
            let ready = self.ready(source, known, &manifest, effective, pedigree, files.into()).await?;
            Ok(Replacement(ready.generation(&self.components.engine).await?))
        };
        load.await.map_err(|error| in_file(&file, error))
    }

    /// What runs scripts, and what is known of it.
    fn script_engine(&self, file: &Path) -> Result<(Source, Known), Error> {
        let engine = self.shared.scripts.get().ok_or_else(|| {
            let shown = file.display();
            Error::Unavailable(format!("{shown} can not be run: this program was built without an engine for scripts"))
        })?;
        Ok((Source::Scripts(Arc::clone(engine)), Known::Description(engine.description()?)))
    }

    /// Where a plugin of the user's comes from, and what is known of it.
    async fn known(
        &self,
        file: &Path,
        component: SeenComponent,
        manifest: &Manifest,
        pin: &Pin,
    ) -> Result<(Source, Known), Error> {
        let source = Source::File { file: file.to_owned(), digest: pin.component.clone() };
        let known = match component {
            SeenComponent { description: Some(description), .. } => Known::Description(description),
            SeenComponent { bytes, .. } => {
                let bytes = match bytes {
                    Some(bytes) => bytes,
                    None => self.components.bytes(manifest.name.as_str(), file, &pin.component).await?,
                };
                let is_concurrent = contract_check::is_concurrent(&bytes);
                Known::Component(self.components.compile(file, &bytes, &pin.component).await?, is_concurrent)
            }
        };
        Ok((source, known))
    }

    /// Finds out what a component is, as [`crate::read_component`] gave it. It is compiled, but not run. `file` is for messages.
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
        let component = self.components.compile(file, bytes, &Digest::of(bytes)).await?;
        let surface = contract_check::surface(&self.components.engine, &component);
        let refusal = contract_check::check_declared(manifest)
            .and_then(|()| contract_check::check(&surface, effective, Linking::Granted));
        Ok(Inspection { surface, refusal: refusal.err() })
    }

    /// Finds out what a built-in plugin is. It is not run.
    ///
    /// # Errors
    /// As [`Self::load_builtin`].
    pub fn inspect_builtin(&self, builtin: &Builtin) -> Result<(Manifest, Surface), Error> {
        let manifest = builtin.manifest()?;
        let component = components::from_image(&self.components.engine, builtin.name, builtin.image)?;
        Ok((manifest, contract_check::surface(&self.components.engine, &component)))
    }

    /// Fetches a component for the user, over https or from this machine. It has still to be checked, with
    /// [`crate::check_component`].
    ///
    /// # Errors
    /// `invalid-arguments` for a URL that is not fetched from, `not-found`, `unavailable`, `timeout`, or `failed` if it is
    /// too large or redirects where it must not.
    pub async fn download(&self, url: &str) -> Result<Vec<u8>, Error> {
        crate::download::fetch(&self.shared.http, url, MAX_COMPONENT).await
    }

    /// Keeps what is too long to show in a file of its own, which the user's tools can read; gives its path. Blocks for as
    /// long as the disk takes. Such files are removed after a week. `name` and `ending` are plain letters and digits.
    ///
    /// # Errors
    /// `failed` if it can not be written.
    pub fn spill(&self, name: &str, ending: &str, bytes: &[u8]) -> Result<std::path::PathBuf, Error> {
        let plain = |text: &str| -> String {
            text.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).take(64).collect()
        };
        crate::processes::spill::save(&self.shared.places.spill, &plain(name), &plain(ending), bytes)
    }

    fn limits(&self, manifest: &Manifest) -> Limits {
        let user = self.shared.user_limits.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        user.of(manifest.name.as_str(), &manifest.limits)
    }

    /// Checks a component and gets it ready. Nothing of it is loaded that is not needed for that.
    async fn ready(
        &self,
        source: Source,
        known: Known,
        manifest: &Manifest,
        effective: Effective,
        pedigree: Pedigree,
        files: Arc<[SourceFile]>,
    ) -> Result<Ready, Error> {
        let name = manifest.name.as_str();
        let surface = match &known {
            Known::Description(description) => description.surface(),
            Known::Component(component, _) => contract_check::surface(&self.components.engine, component),
        };
        contract_check::check_declared(manifest)?;
        if manifest.replaceable.is_some() && pedigree.origin != Origin::Builtin {
            return Err(Error::InvalidArguments(format!(
                "only what is part of atoll can be replaceable; take `replaceable` and [claims] out of the manifest of {name}"
            )));
        }
        if manifest.start_when.is_some() && pedigree.origin != Origin::Builtin {
            return Err(Error::InvalidArguments(format!(
                "only what is part of atoll is started later; take [start-when] out of the manifest of {name}"
            )));
        }
        let linking = match &source {
            Source::Scripts(_) => Linking::Checked,
            Source::Image(_) | Source::File { .. } => Linking::of_component(self.shared.approvals.can_ask()),
        };
        if let Err(error) = contract_check::check(&surface, &effective, linking) {
            if let Error::Denied { capability, .. } = &error {
                let uses = Uses::new(self.shared.audit.get().cloned(), name, None, false);
                let capability = capability.parse().map_or("", Capability::as_str);
                uses.used(capability, "link", "the interface", Verdict::Denied);
            }
            return Err(error);
        }
        let context = self.context(manifest, effective, pedigree, files);
        let lazy = LazyComponent::new(self.components.clone(), source, Arc::clone(&context), linking);
        let lazy = Arc::new(lazy);
        let (description, is_new) = match known {
            Known::Description(description) => (description, false),
            Known::Component(component, is_concurrent) => {
                lazy.get_from(component).await?;
                (Self::ask(&surface, &lazy, is_concurrent).await?, true)
            }
        };
        let tools = description.tools(name, &context.limits)?;
        let is_concurrent = description.is_concurrent();
        // One that is refused is asked again next time.
        if is_new && let Some(pin) = &context.pin {
            self.components.keep_description(&pin.component, description).await;
        }
        Ok(Ready { context, lazy, surface, tools, is_concurrent })
    }

    async fn finish(
        &self,
        source: Source,
        known: Known,
        manifest: Manifest,
        effective: Effective,
        pedigree: Pedigree,
        files: Arc<[SourceFile]>,
    ) -> Result<LoadedPlugin, Error> {
        let engine = &self.components.engine;
        let ready = self.ready(source, known, &manifest, effective, pedigree, files).await?;
        let Ready { context, lazy, surface, .. } = &ready;
        let name = context.name.clone();
        let mut loaded = LoadedPlugin { name, manifest, tools: None, provider: None, extension: None, live: None };
        let extension = match surface.exports.contains("extension") {
            true => Some(ExtensionPlugin::new(ready.generation(engine).await?, context.origin)),
            false => None,
        };
        if surface.exports.contains("tools") {
            let runner: Arc<dyn ToolRunner> = match &extension {
                Some(extension) => Arc::clone(extension.inner().runner()),
                None => Arc::new(LazyTools::new(Arc::clone(lazy))),
            };
            context.runner.get_or_init(|| Arc::downgrade(&runner));
            loaded.tools = Some((ready.tools.clone(), runner));
        }
        if surface.exports.contains("provider") {
            let pre = lazy.get().await?;
            let home: Arc<dyn Home> = match &extension {
                Some(extension) => Arc::new(extension.clone()),
                None => Arc::new(OnDemand::new(ready.recipe(engine, QUEUE).await?)),
            };
            let provider = ProviderPlugin::start(engine, &pre, Arc::clone(context), home).await?;
            loaded.provider = Some(Arc::new(provider));
        }
        if let Some(extension) = extension {
            loaded.live = Some(LiveExtension(extension.clone()));
            loaded.extension = Some(Arc::new(extension));
        }
        Ok(loaded)
    }

    /// Has a plugin say what it is.
    async fn ask(surface: &Surface, component: &Arc<LazyComponent>, is_concurrent: bool) -> Result<Description, Error> {
        let tools = if surface.exports.contains("tools") {
            LazyTools::new(Arc::clone(component)).list().await?
        } else {
            Vec::new()
        };
        Ok(Description::new(surface, tools, is_concurrent))
    }

    fn context(
        &self,
        manifest: &Manifest,
        effective: Effective,
        pedigree: Pedigree,
        files: Arc<[SourceFile]>,
    ) -> Arc<PluginContext> {
        let open_files = OpenFiles::of_plugin(&self.shared.open_files);
        Arc::new(PluginContext {
            name: manifest.name.as_str().to_owned(),
            store: pedigree.store.unwrap_or_else(|| manifest.name.as_str().to_owned()),
            limits: self.limits(manifest),
            origin: pedigree.origin,
            pin: pedigree.pin,
            granted: RwLock::new(effective.into()),
            shared: Arc::clone(&self.shared),
            walks: Walks::of_plugin(&self.shared.walks, &open_files),
            open_files,
            files,
            worker: OnceLock::new(),
            runner: OnceLock::new(),
            extension: OnceLock::new(),
            commands: AtomicUsize::new(0),
            added: Mutex::default(),
            model_origins: RwLock::default(),
            user_origins: RwLock::default(),
            secrets: RwLock::default(),
            used_secrets: RwLock::default(),
            sent_credentials: RwLock::default(),
        })
    }
}

/// What is known of a plugin when it is got ready.
enum Known {
    /// What it said of itself before.
    Description(Description),
    /// Its component, and whether it hears of events while it waits for something.
    Component(Component, bool),
}

/// Where a plugin comes from.
struct Pedigree {
    /// What its grants are pinned to; nothing for a built-in one.
    pin: Option<Pin>,
    origin: Origin,
    /// What its store is called, if not by its name.
    store: Option<String>,
}

impl Pedigree {
    const BUILTIN: Self = Self { pin: None, origin: Origin::Builtin, store: None };
}

/// A plugin that was checked, and is loaded when it is needed.
struct Ready {
    context: Arc<PluginContext>,
    lazy: Arc<LazyComponent>,
    surface: Surface,
    tools: Vec<Tool>,
    is_concurrent: bool,
}

impl Ready {
    async fn recipe(&self, engine: &Engine, queue: usize) -> Result<Arc<Recipe>, Error> {
        let (pre, context) = (self.lazy.get().await?, Arc::clone(&self.context));
        let recipe = Recipe::new(engine.clone(), pre, context, &self.surface.exports, queue);
        recipe.map(Arc::new).map_err(|reason| {
            Error::Failed(format!("the plugin {} does not fit the contract: {reason:#}", self.context.name))
        })
    }

    async fn generation(&self, engine: &Engine) -> Result<Generation, Error> {
        let queue = usize::try_from(self.context.limits.queue).unwrap_or(usize::MAX);
        let recipe = self.recipe(engine, queue).await?;
        Ok(Generation { recipe, is_concurrent: self.is_concurrent, tools: self.tools.clone() })
    }
}

fn in_file(file: &Path, error: Error) -> Error {
    match error {
        Error::Failed(text) if !text.contains(&*file.to_string_lossy()) => {
            Error::Failed(format!("{}: {text}", file.display()))
        }
        error => error,
    }
}
