//! A built-in extension that is there without running: it is loaded and started when what its manifest names is there, or
//! comes. Until then it costs nothing but its place among the extensions.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use atoll_caps::{Claims, Manifest, Wants};
use atoll_engine::{Builtin, LiveExtension, LoadedPlugin, PluginHost};
use atoll_table::{
    Error, Origin,
    extension::{Command, Completion, Event, EventKind, Extension, FailureReport, Outcome, StartReason, Subscription},
};
use futures::future::BoxFuture;
use serde_json::json;
use tokio::{sync::OnceCell, task::JoinHandle};

/// What a built-in extension is loaded with.
pub(crate) struct Setup {
    pub(crate) host: Arc<PluginHost>,
    pub(crate) builtin: &'static Builtin,
    pub(crate) manifest: Manifest,
    /// What the user grants it beside its manifest.
    pub(crate) added: Wants,
    /// Files that start it with the session.
    pub(crate) files: Vec<PathBuf>,
}

/// A built-in extension, running or not. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Dormant(Arc<Inner>);

struct Inner {
    setup: Setup,
    /// What it wants while it does not run: to be woken.
    asleep: Arc<Subscription>,
    /// Something happened that starts it.
    needed: AtomicBool,
    /// It was settled once: from here on it is started as soon as it is needed.
    settled: AtomicBool,
    /// It is not to run any more.
    stopped: AtomicBool,
    /// Being loaded before it is known whether it will run.
    loading: Mutex<Option<JoinHandle<Result<LoadedPlugin, Error>>>>,
    running: OnceLock<(Arc<dyn Extension>, LiveExtension)>,
    started: OnceCell<()>,
    report: Mutex<Option<FailureReport>>,
}

impl Dormant {
    pub(crate) fn new(setup: Setup) -> Self {
        let manifest = &setup.manifest;
        let describe = |name: &str| {
            let known = manifest.subcommands.iter().find(|command| command.name == name);
            known.map_or_else(|| manifest.description.clone(), |command| command.description.clone())
        };
        let claimed = manifest.replaceable.as_ref().map(|claims| claims.commands.as_slice()).unwrap_or_default();
        let commands = claimed.iter().map(|name| Command {
            name: name.clone(),
            description: describe(name),
            hidden: false,
            completes: false,
        });
        let events = manifest.start_when.iter().flat_map(|when| &when.events);
        let asleep = Arc::new(Subscription {
            events: events.filter_map(|name| EventKind::of_name(name)).collect(),
            commands: commands.collect(),
            ..Subscription::default()
        });
        Self(Arc::new(Inner {
            setup,
            asleep,
            needed: AtomicBool::new(false),
            settled: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            loading: Mutex::default(),
            running: OnceLock::new(),
            started: OnceCell::new(),
            report: Mutex::default(),
        }))
    }

    /// What it gives up to others.
    pub(crate) fn claims(&self) -> Claims {
        self.0.setup.manifest.replaceable.clone().unwrap_or_default()
    }

    /// Whether it is to run now.
    fn is_wanted(&self) -> bool {
        let Inner { setup, needed, .. } = &*self.0;
        setup.manifest.start_when.is_none()
            || needed.load(Ordering::Acquire)
            || setup.files.iter().any(|file| file.exists())
    }

    /// Begins to load it, if it is to run anyway. Nothing of it runs before it is settled.
    pub(crate) fn prepare(&self) {
        if self.is_wanted() {
            let this = self.clone();
            let task = tokio::spawn(async move { this.load().await });
            *self.0.loading.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
        }
    }

    async fn load(&self) -> Result<LoadedPlugin, Error> {
        let Setup { host, builtin, added, .. } = &self.0.setup;
        host.load_builtin_with(builtin, added).await
    }

    /// Starts it if it is to run now and does not. From here on it is started when it is needed.
    ///
    /// # Errors
    /// Why it can not be loaded or started.
    pub(crate) async fn settle(&self) -> Result<(), Error> {
        let is_late = self.0.settled.swap(true, Ordering::AcqRel);
        match self.is_wanted() && !self.0.started.initialized() {
            true => self.wake(is_late).await.map(drop),
            false => Ok(()),
        }
    }

    /// Has it begin anew, with what it reads as it is now.
    ///
    /// # Errors
    /// Why it can not. It then goes on as it was.
    pub(crate) async fn renew(&self) -> Result<(), Error> {
        let Some((extension, live)) = self.0.running.get().filter(|_| self.0.started.initialized()) else {
            return self.settle().await;
        };
        let Setup { host, builtin, added, .. } = &self.0.setup;
        let new = host.load_builtin_replacement(builtin, added).await?;
        let wanted = live.replace(new).await?;
        if wanted.wants(EventKind::SessionStart) {
            extension.ask(Event::other(EventKind::SessionStart, json!({"reason": "reload"})), 0).await?;
        }
        Ok(())
    }

    fn running(&self) -> Option<&Arc<dyn Extension>> {
        self.0.running.get().map(|(extension, _)| extension)
    }

    async fn wake(&self, is_late: bool) -> Result<&Arc<dyn Extension>, Error> {
        self.0.started.get_or_try_init(|| self.begin(is_late)).await?;
        self.running().ok_or_else(|| self.ended())
    }

    fn ended(&self) -> Error {
        Error::Unavailable(format!("the built-in {} has ended", self.name()))
    }

    async fn begin(&self, is_late: bool) -> Result<(), Error> {
        if self.0.stopped.load(Ordering::Acquire) {
            return Err(self.ended());
        }
        if self.0.running.get().is_some() {
            return Err(Error::Unavailable(format!("the built-in {} could not be started", self.name())));
        }
        let loading = self.0.loading.lock().unwrap_or_else(PoisonError::into_inner).take();
        let loaded = match loading {
            Some(task) => task.await.unwrap_or_else(|error| Err(Error::Failed(error.to_string())))?,
            None => self.load().await?,
        };
        let has_tools = loaded.tools.is_some_and(|(tools, _)| !tools.is_empty());
        let (Some(extension), Some(live), false) = (loaded.extension, loaded.live, has_tools) else {
            let name = self.name();
            return Err(Error::Failed(format!("the built-in {name} is no extension that brings its tools itself")));
        };
        if let Some(report) = &*self.0.report.lock().unwrap_or_else(PoisonError::into_inner) {
            extension.on_failure(Arc::clone(report));
        }
        // Known before it starts: what it wants counts from its first moment on.
        let (extension, _) = self.0.running.get_or_init(|| (extension, live));
        let wanted = extension.start(StartReason::Startup).await?;
        if is_late && wanted.wants(EventKind::SessionStart) {
            extension.ask(Event::other(EventKind::SessionStart, json!({"reason": "startup"})), 0).await?;
        }
        Ok(())
    }

    /// Starts it, with nobody who waits for that.
    fn wake_alone(&self) {
        let this = self.clone();
        tokio::spawn(async move {
            let Err(error) = this.wake(true).await else { return };
            if let Some(report) = &*this.0.report.lock().unwrap_or_else(PoisonError::into_inner) {
                report(this.name(), None, &error);
            }
        });
    }
}

impl Extension for Dormant {
    fn name(&self) -> &str {
        self.0.setup.builtin.name
    }

    fn origin(&self) -> Origin {
        Origin::Builtin
    }

    fn subscription(&self) -> Arc<Subscription> {
        self.running().map_or_else(|| Arc::clone(&self.0.asleep), |extension| extension.subscription())
    }

    /// Does not start it: [`Dormant::settle`] does, once it is known who else is there.
    fn start(&self, _: StartReason) -> BoxFuture<'_, Result<Arc<Subscription>, Error>> {
        Box::pin(async { Ok(self.subscription()) })
    }

    fn ask(&self, event: Event, depth: u32) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move { self.wake(true).await?.ask(event, depth).await })
    }

    fn tell(&self, event: Event) -> bool {
        if let Some(extension) = self.running().filter(|_| self.0.started.initialized()) {
            return extension.tell(event);
        }
        // What it would be told of is there to be read when it starts.
        self.0.needed.store(true, Ordering::Release);
        if self.0.settled.load(Ordering::Acquire) {
            self.wake_alone();
        }
        true
    }

    fn run_command(&self, name: String, arguments: String) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.wake(true).await?.run_command(name, arguments).await })
    }

    fn complete_command(&self, name: String, arguments: String) -> BoxFuture<'_, Result<Vec<Completion>, Error>> {
        Box::pin(async move {
            match self.running() {
                Some(extension) => extension.complete_command(name, arguments).await,
                None => Ok(Vec::new()),
            }
        })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.0.stopped.store(true, Ordering::Release);
            if let Some(extension) = self.running() {
                extension.stop().await;
            }
        })
    }

    fn on_failure(&self, report: FailureReport) {
        if let Some(extension) = self.running() {
            extension.on_failure(Arc::clone(&report));
        }
        *self.0.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }
}
