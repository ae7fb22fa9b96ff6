//! What a store holds, what all instances of one plugin share, and what all plugins of the host share.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use atoll_caps::{Effective, LimitName, Limits, Origin, Pin, RootVars, UserLimits, Wants};
use atoll_table::{
    Content, Error, Progress, TableAccess, ToolOutput, ToolRunner,
    config::ConfigFiles,
    extension::{Services, Who},
    model::Secret,
    secrets::SecretStore,
};
use serde_json::Value;
use tokio::sync::{Semaphore, watch};
use tracing::Level;
use wasmtime::{Store, component::ResourceTable};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::{
    all_memory::AllMemory,
    approval::Approvals,
    audit::AuditLog,
    beside::Beside,
    bindings::atoll::plugin::types::ToolOutput as WitOutput,
    call::{Call, Clock, OwnThread},
    config::Ticker,
    convert,
    files::{MutationLocks, OpenFiles, Roots, Walks},
    http_client::HttpClient,
    imports::servers::ServerOwners,
    limits::{CpuBudget, CpuMeter, LimitReached, SpaceLimiter},
    log_files::LogFiles,
    output_lines::{Allowance, MAX_LINE, OutputLines},
    permits::Permits,
    processes::Confinement,
    redaction::{self, SentCredentials},
    scripts::{ScriptEngine, SourceFile},
    trap::limit_error,
    wishes::Wishes,
    workers::WorkerPlugin,
};

/// The folder in a project's directory that holds what it says to Atoll. No plugin and no confined program changes it.
pub const PROJECT_FOLDER: &str = ".atoll";

/// Where things are, for all plugins of this host.
#[derive(Clone, Debug)]
pub struct Places {
    /// The session's working directory.
    pub cwd: PathBuf,
    /// The user's home directory.
    pub home: PathBuf,
    /// Atoll's own directory: out of reach of every plugin's `files`.
    pub atoll_home: PathBuf,
    /// The cache directory: likewise out of reach.
    pub cache: PathBuf,
    /// Where sessions are kept: likewise out of reach.
    pub sessions: PathBuf,
    /// Where long outputs are spilled; made when first needed.
    pub spill: PathBuf,
    /// Folders with skills, with every link resolved. One that has become a link since is none any more.
    pub skills: Vec<PathBuf>,
    /// The user's shell, if another than the default was chosen.
    pub shell: Option<PathBuf>,
}

impl Places {
    /// Everything in one directory: for a host whose plugins only say what they are.
    pub fn all_in(directory: &Path) -> Self {
        let there = || directory.to_owned();
        Self {
            cwd: there(),
            home: there(),
            atoll_home: there(),
            cache: there(),
            sessions: there(),
            spill: there(),
            skills: Vec::new(),
            shell: None,
        }
    }

    /// A workspace and nothing else.
    #[cfg(test)]
    pub(crate) fn of_workspace(cwd: &Path) -> Self {
        Self { cwd: cwd.to_owned(), ..Self::all_in(Path::new("")) }
    }

    /// What the project in the working directory says of itself: what decides about its settings, plugins and skills.
    pub(crate) fn project(&self) -> PathBuf {
        self.cwd.join(PROJECT_FOLDER)
    }

    /// What the variables of root patterns stand for.
    pub fn root_vars(&self) -> RootVars {
        RootVars {
            workspace: self.cwd.clone(),
            skills: self.skills.clone(),
            spill: self.spill.clone(),
            home: self.home.clone(),
        }
    }
}

/// What all plugins share.
pub(crate) struct Shared {
    pub(crate) places: Places,
    pub(crate) http: HttpClient,
    pub(crate) locks: MutationLocks,
    pub(crate) open_files: OpenFiles,
    pub(crate) walks: Walks,
    pub(crate) ticker: Arc<Ticker>,
    pub(crate) permits: Permits,
    pub(crate) all_memory: Arc<AllMemory>,
    /// A permit for each share of work under way.
    pub(crate) workers: Semaphore,
    /// A permit for each listener that is open.
    pub(crate) listeners: Arc<Semaphore>,
    /// Variables given to every process a plugin starts, such as the session's id.
    pub(crate) process_env: RwLock<Vec<(String, String)>>,
    /// How programs are confined, if they are.
    pub(crate) confinement: OnceLock<Confinement>,
    /// What the user says of plugins' limits.
    pub(crate) user_limits: RwLock<UserLimits>,
    /// Where uses of capabilities are written down, if anywhere.
    pub(crate) audit: OnceLock<AuditLog>,
    /// Where secrets of the user's are looked up, if anywhere.
    pub(crate) secrets: OnceLock<Arc<dyn SecretStore>>,
    /// Where files of configuration are that users write for plugins, if anywhere.
    pub(crate) config: OnceLock<Arc<dyn ConfigFiles>>,
    /// Who is asked about what is not granted, if anybody.
    pub(crate) approvals: Approvals,
    /// What runs scripts, if anything does.
    pub(crate) scripts: OnceLock<Arc<ScriptEngine>>,
    /// What extensions reach of the session.
    pub(crate) services: OnceLock<Services>,
    /// Which plugin added which server.
    pub(crate) server_owners: ServerOwners,
    /// Where extensions' lines are kept, if anywhere.
    pub(crate) log_files: OnceLock<LogFiles>,
    /// Who is shown what plugins log, beside the program's own log.
    pub(crate) log: OnceLock<LogSink>,
}

/// Is shown the lines that plugins log: the plugin's name, the level, the line. Must not block.
pub type LogSink = Arc<dyn Fn(&str, Level, &str) + Send + Sync>;

/// A secret that a plugin may name in a header.
#[derive(Clone)]
pub(crate) struct GrantedSecret {
    pub(crate) value: Secret,
    /// The only origins it may be sent to.
    pub(crate) origins: Vec<Origin>,
}

/// What all instances of one plugin share.
pub(crate) struct PluginContext {
    pub(crate) name: String,
    /// The name of the folder that holds what it keeps.
    pub(crate) store: String,
    /// Where it comes from.
    pub(crate) origin: atoll_table::Origin,
    /// The component that its grants are pinned to; none for a built-in plugin.
    pub(crate) pin: Option<Pin>,
    pub(crate) granted: RwLock<Granted>,
    pub(crate) limits: Limits,
    pub(crate) shared: Arc<Shared>,
    pub(crate) open_files: OpenFiles,
    pub(crate) walks: Walks,
    /// The text that it runs, if it is one that does.
    pub(crate) files: Arc<[SourceFile]>,
    /// What does shares of its work, if it exports that.
    pub(crate) worker: OnceLock<WorkerPlugin>,
    /// What runs its tools, if it exports any.
    pub(crate) runner: OnceLock<Weak<dyn ToolRunner>>,
    /// The extension that it is, if it is one.
    pub(crate) extension: OnceLock<Weak<crate::extension_plugin::Inner>>,
    /// How many of its commands are under way.
    pub(crate) commands: AtomicUsize,
    /// The names of the tools that it has added and not withdrawn, as it gave them.
    pub(crate) added: Mutex<BTreeSet<String>>,
    /// Base URLs of the models this plugin serves: what `$models` in its manifest stands for.
    pub(crate) model_origins: RwLock<Vec<Origin>>,
    /// Those of them that the user chose, which may lead anywhere.
    pub(crate) user_origins: RwLock<Vec<Origin>>,
    pub(crate) secrets: RwLock<HashMap<String, GrantedSecret>>,
    /// Secrets of the user's that it has used: they are taken out of what it says.
    pub(crate) used_secrets: RwLock<HashMap<String, Secret>>,
    /// What it has sent in headers to say who asks, wherever it has it from: taken out as well.
    pub(crate) sent_credentials: RwLock<SentCredentials>,
}

/// Stands for a command that is under way.
pub(crate) struct UnderWay(Arc<PluginContext>);

impl UnderWay {
    /// A command of this plugin begins.
    pub(crate) fn of(plugin: &Arc<PluginContext>) -> Self {
        plugin.commands.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(plugin))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.commands.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What a plugin may do now. More is granted while it runs only where a person says so.
pub(crate) struct Granted {
    effective: Arc<Effective>,
    /// The directories that come of it, opened at first use.
    roots: Option<Arc<Roots>>,
}

impl From<Effective> for Granted {
    fn from(effective: Effective) -> Self {
        Self { effective: Arc::new(effective), roots: None }
    }
}

impl PluginContext {
    /// Who it is for whoever serves extensions.
    pub(crate) fn who(&self) -> Who {
        Who { plugin: self.name.clone(), origin: self.origin }
    }

    /// What it may do now.
    pub(crate) fn effective(&self) -> Arc<Effective> {
        Arc::clone(&self.granted.read().unwrap_or_else(PoisonError::into_inner).effective)
    }

    /// The roots it may reach, opened at first use.
    pub(crate) fn roots(&self) -> Arc<Roots> {
        if let Some(roots) = &self.granted.read().unwrap_or_else(PoisonError::into_inner).roots {
            return Arc::clone(roots);
        }
        let mut granted = self.granted.write().unwrap_or_else(PoisonError::into_inner);
        let Granted { effective, roots } = &mut *granted;
        Arc::clone(roots.get_or_insert_with(|| Arc::new(Roots::open(&self.name, effective, &self.shared.places))))
    }

    /// Lets it do more from here on.
    pub(crate) fn grant(&self, more: &Wants) {
        let mut granted = self.granted.write().unwrap_or_else(PoisonError::into_inner);
        *granted = granted.effective.with_granted(more).into();
    }
}

/// What an instance needs to know of a call, an event or a command that it carries out.
pub(crate) struct RunningCall {
    /// Where partial results go.
    pub(crate) progress: Progress,
    /// The table, as this may use it; none before it has been used, if it is no call.
    pub(crate) table: Option<Arc<dyn TableAccess>>,
    /// Closed once nobody waits for what it gives.
    pub(crate) wanted: watch::Receiver<()>,
    /// How long it takes.
    pub(crate) clock: Arc<Clock>,
    /// How many calls are around those that it makes.
    pub(crate) below: u32,
    /// Where one of the calls that it makes is done; none if all of them have tasks of their own.
    pub(crate) beside: Option<Beside>,
    /// What it says about its end; none if it is no call of a tool.
    pub(crate) wishes: Option<Arc<Wishes>>,
}

/// What an instance carries out, by its id.
pub(crate) type RunningCalls = Arc<Mutex<HashMap<String, RunningCall>>>;

/// What a store holds.
pub(crate) struct PluginState {
    pub(crate) resources: ResourceTable,
    wasi: WasiCtx,
    pub(crate) space: SpaceLimiter,
    pub(crate) plugin: Arc<PluginContext>,
    /// The call it serves.
    pub(crate) call: Arc<Call>,
    pub(crate) meter: Arc<CpuMeter>,
    pub(crate) running: RunningCalls,
    /// How much it may still log.
    pub(crate) log: Arc<Mutex<Allowance>>,
    /// How much it may still say to the person of its own accord.
    pub(crate) notices: Allowance,
    /// It is the living instance of an extension, which does things of its own accord.
    pub(crate) is_extension: bool,
    /// That of an instance which does a share of another's work.
    pub(crate) own_thread: Option<OwnThread>,
}

impl WasiView for PluginState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.resources }
    }
}

/// A store with every limit set, and what is needed to run it from outside.
pub(crate) struct Prepared {
    pub(crate) store: Store<PluginState>,
    pub(crate) meter: Arc<CpuMeter>,
    pub(crate) stderr: OutputLines,
    pub(crate) running: RunningCalls,
}

impl PluginContext {
    /// Refuses more bytes than one host call may bring.
    pub(crate) fn check_bytes(&self, length: usize) -> Result<(), Error> {
        let limit = self.limits.host_call_bytes;
        if length as u64 > limit {
            return Err(crate::trap::limit_error(LimitName::HostCallBytes, limit));
        }
        Ok(())
    }

    /// As [`Self::check_bytes`], for imports that have no way to say no: it ends the instance.
    pub(crate) fn trap_on_bytes(&self, length: usize) -> wasmtime::Result<()> {
        let value = self.limits.host_call_bytes;
        if length as u64 > value {
            return Err(LimitReached { name: LimitName::HostCallBytes, value }.into());
        }
        Ok(())
    }

    /// A text from outside without the secrets this plugin may use, which a server may have sent back.
    pub(crate) fn redacted(&self, text: &str) -> String {
        let secrets = self.secrets.read().unwrap_or_else(PoisonError::into_inner);
        let used = self.used_secrets.read().unwrap_or_else(PoisonError::into_inner);
        let sent = self.sent_credentials.read().unwrap_or_else(PoisonError::into_inner);
        let all = secrets.values().map(|secret| &secret.value).chain(used.values()).chain(sent.iter());
        all.map(Secret::reveal).fold(text.to_owned(), redaction::without)
    }

    /// Takes secrets out of what it says that another one has used.
    pub(crate) fn know_secrets_of(&self, other: &Self) {
        let known = other.used_secrets.read().unwrap_or_else(PoisonError::into_inner).clone();
        self.used_secrets.write().unwrap_or_else(PoisonError::into_inner).extend(known);
        let sent = other.sent_credentials.read().unwrap_or_else(PoisonError::into_inner);
        self.sent_credentials.write().unwrap_or_else(PoisonError::into_inner).extend(&sent);
    }

    /// A credential that goes with a request. From here on it is taken out of what the plugin says.
    pub(crate) fn sends_credential(&self, value: &str) {
        if !self.sent_credentials.read().unwrap_or_else(PoisonError::into_inner).has(value) {
            self.sent_credentials.write().unwrap_or_else(PoisonError::into_inner).add(value);
        }
    }

    /// An error whose text may hold what a server said, without the secrets it may have sent back.
    pub(crate) fn redacted_error(&self, error: Error) -> Error {
        match error {
            Error::NotFound(text) => Error::NotFound(self.redacted(&text)),
            Error::InvalidArguments(text) => Error::InvalidArguments(self.redacted(&text)),
            Error::Timeout(text) => Error::Timeout(self.redacted(&text)),
            Error::Cancelled(text) => Error::Cancelled(self.redacted(&text)),
            Error::Unavailable(text) => Error::Unavailable(self.redacted(&text)),
            Error::Stale(text) => Error::Stale(self.redacted(&text)),
            Error::Failed(text) => Error::Failed(self.redacted(&text)),
            error => error,
        }
    }

    /// Has something done within the time that a call may take.
    pub(crate) async fn within_wall<R>(&self, clock: &Clock, work: impl Future<Output = R>) -> Result<R, Error> {
        let Some(limit) = self.limits.wall_ms else { return Ok(work.await) };
        let done = clock.within(Duration::from_millis(limit), work).await;
        done.ok_or_else(|| limit_error(LimitName::WallMs, limit))
    }

    /// What a call of one of its tools gave: within its limit, with its data as JSON, and without secrets.
    pub(crate) fn tool_output(&self, output: WitOutput) -> Result<ToolOutput, Error> {
        if convert::output_size(&output) as u64 > self.limits.output_bytes {
            return Err(limit_error(LimitName::OutputBytes, self.limits.output_bytes));
        }
        let mut output = convert::output_from_wit(&self.name, output)?;
        self.redact_parts(&mut output.content, [&mut output.details]);
        // Without a secret nobody has to look into it.
        if !self.knows_no_secret()
            && let Some(data) = &mut output.structured
        {
            let mut value = data.value().clone();
            self.redact_data(&mut value);
            *data = value.into();
        }
        Ok(output)
    }

    /// There is nothing that would have to be taken out of what it says.
    fn knows_no_secret(&self) -> bool {
        self.used_secrets.read().unwrap_or_else(PoisonError::into_inner).is_empty()
            && self.secrets.read().unwrap_or_else(PoisonError::into_inner).is_empty()
            && self.sent_credentials.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Takes the secrets out of texts and data that a call gives.
    pub(crate) fn redact_parts<'a>(
        &self,
        content: &mut [Content],
        data: impl IntoIterator<Item = &'a mut Option<Value>>,
    ) {
        if self.knows_no_secret() {
            return;
        }
        for piece in content {
            if let Content::Text { text } = piece {
                *text = self.redacted(text);
            }
        }
        for value in data.into_iter().flatten() {
            self.redact_data(value);
        }
    }

    fn redact_data(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.redacted(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_data(item)),
            Value::Object(fields) => {
                let known = std::mem::take(fields);
                fields.extend(known.into_iter().map(|(name, mut value)| {
                    self.redact_data(&mut value);
                    (self.redacted(&name), value)
                }));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// What is said of an answer that ended before its end, if nothing better is known.
    pub(crate) fn stopped(&self) -> String {
        format!("the plugin {} stopped in the middle of its answer", self.name)
    }

    /// Writes a line into the plugin's log, if its instance may still write some.
    pub(crate) fn log_line(&self, allowance: &Mutex<Allowance>, level: Level, line: &str) {
        let (may, is_last) = lock(allowance).take();
        if !may {
            return;
        }
        let line = self.redacted(line);
        let line = line.get(..line.floor_char_boundary(MAX_LINE)).unwrap_or_default();
        let plugin = self.name.as_str();
        if let Some(log) = self.shared.log.get() {
            log(plugin, level, line);
        }
        if let Some(files) = self.shared.log_files.get().filter(|_| self.extension.get().is_some()) {
            files.write(plugin, level, line);
        }
        match level {
            Level::TRACE => tracing::trace!(target: "plugin", plugin, "{line}"),
            Level::DEBUG => tracing::debug!(target: "plugin", plugin, "{line}"),
            Level::INFO => tracing::info!(target: "plugin", plugin, "{line}"),
            Level::WARN => tracing::warn!(target: "plugin", plugin, "{line}"),
            Level::ERROR => tracing::error!(target: "plugin", plugin, "{line}"),
        }
        if is_last {
            let line = "it logs too much; lines are dropped from here on";
            tracing::warn!(target: "plugin", plugin, "{line}");
            if let Some(log) = self.shared.log.get() {
                log(plugin, Level::WARN, line);
            }
        }
    }

    /// A new store for an instance of this plugin.
    pub(crate) fn store(self: &Arc<Self>, engine: &wasmtime::Engine, budget: CpuBudget, call: Arc<Call>) -> Prepared {
        self.metered_store(engine, Arc::new(CpuMeter::new(budget, &self.limits)), call, None)
    }

    /// A new store for an instance that does a share of the work of the one that `caller` measures.
    pub(crate) fn worker_store(
        self: &Arc<Self>,
        engine: &wasmtime::Engine,
        caller: Arc<CpuMeter>,
        call: Arc<Call>,
        wanted: Weak<()>,
    ) -> Prepared {
        let meter = Arc::new(CpuMeter::of_worker(caller, &self.limits));
        let own_thread = OwnThread { meter: Arc::clone(&meter), wanted };
        self.metered_store(engine, meter, call, Some(own_thread))
    }

    fn metered_store(
        self: &Arc<Self>,
        engine: &wasmtime::Engine,
        meter: Arc<CpuMeter>,
        call: Arc<Call>,
        own_thread: Option<OwnThread>,
    ) -> Prepared {
        let log = Arc::new(Mutex::new(Allowance::new(call.is_one())));
        let notices = Allowance::of_notices(call.is_one());
        let lines = |level| {
            let (plugin, log) = (Arc::downgrade(self), Arc::clone(&log));
            OutputLines::new(move |line| {
                if let Some(plugin) = plugin.upgrade() {
                    plugin.log_line(&log, level, line);
                }
            })
        };
        let (stdout, stderr) = (lines(Level::INFO), lines(Level::WARN));
        let mut wasi = WasiCtx::builder();
        wasi.stdout(stdout).stderr(stderr.clone()).max_random_size(1 << 20);
        let running = RunningCalls::default();
        let mut resources = ResourceTable::new();
        resources.set_max_capacity(usize::try_from(self.limits.handles).unwrap_or(usize::MAX));
        let state = PluginState {
            resources,
            wasi: wasi.build(),
            space: SpaceLimiter::new(&self.limits, &self.shared.all_memory),
            plugin: Arc::clone(self),
            call,
            meter: Arc::clone(&meter),
            running: Arc::clone(&running),
            log,
            notices,
            is_extension: false,
            own_thread,
        };
        let mut store = Store::new(engine, state);
        store.limiter(|state| &mut state.space);
        // The results of calls count too, and have a limit of their own. What one host call brings is looked at
        // where it arrives, by `check_bytes`.
        let fuel = self.limits.host_call_bytes.saturating_add(self.limits.output_bytes);
        store.set_hostcall_fuel(usize::try_from(fuel).unwrap_or(usize::MAX));
        store.set_max_component_handles(usize::try_from(self.limits.handles).unwrap_or(usize::MAX));
        meter.install(&mut store);
        Prepared { store, meter, stderr, running }
    }

    /// The error for what ended one of its instances.
    pub(crate) fn explain(&self, reason: &wasmtime::Error, stderr: &OutputLines) -> Error {
        let said = stderr.contents();
        let said = String::from_utf8_lossy(&said);
        let line = panic_line(&said);
        crate::trap::explain(&self.name, reason, &self.limits, line.as_deref())
    }
}

/// The line of a guest's standard error that says most: what follows Rust's `panicked at`, else the last line.
fn panic_line(said: &str) -> Option<String> {
    let mut lines = said.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("note: "));
    let last = said.lines().skip_while(|line| !line.contains("panicked at")).nth(1).or_else(|| lines.next_back())?;
    Some(last.trim().chars().take(300).collect())
}

/// Locks a mutex; a panic of another holder does not matter for what these protect.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::panic_line;

    #[test]
    fn the_panic_message_explains_a_crash() {
        let rust = "\nthread '<unnamed>' panicked at src/lib.rs:3:5:\nboom\nnote: run with `RUST_BACKTRACE=1`\n";
        assert_eq!(panic_line(rust).as_deref(), Some("boom"));
        assert_eq!(panic_line("one\ntwo\n").as_deref(), Some("two"));
        assert_eq!(panic_line(""), None);
    }
}
