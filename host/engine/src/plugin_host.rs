//! Where plugins are loaded and run: the sandbox, and what all plugins share of the program around it.
//!
//! Must never know a plugin: what is set here is for all of them. `loading` is what loads one.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use atoll_caps::UserLimits;
use atoll_table::{Error, config::ConfigFiles, extension::Services, secrets::SecretStore};
use tokio::sync::Semaphore;

use crate::{
    aot_cache::AotCache,
    approval::{Approvals, Approver},
    audit::AuditLog,
    callback_listener::MAX_LISTENERS,
    components::Components,
    config::{Purpose, Ticker, max_workers},
    files::{MutationLocks, OpenFiles, Walks},
    http_client::{HttpClient, Recordings},
    imports::servers::ServerOwners,
    log_files::LogFiles,
    permits::Permits,
    processes::Confinement,
    state::{LogSink, Places, Shared},
};

/// Where plugins are loaded and run.
pub struct PluginHost {
    pub(crate) components: Components,
    pub(crate) shared: Arc<Shared>,
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
            all_memory: Arc::default(),
            workers: Semaphore::new(max_workers()),
            listeners: Arc::new(Semaphore::new(MAX_LISTENERS)),
            process_env: RwLock::default(),
            confinement: OnceLock::new(),
            user_limits: RwLock::default(),
            audit: OnceLock::new(),
            secrets: OnceLock::new(),
            config: OnceLock::new(),
            approvals: Approvals::default(),
            scripts: OnceLock::new(),
            services: OnceLock::new(),
            server_owners: ServerOwners::default(),
            log_files: OnceLock::new(),
            log: OnceLock::new(),
        };
        Ok(Self { components: Components::new(engine, cache), shared: Arc::new(shared) })
    }

    /// Sets the variables that every process a plugin starts gets.
    pub fn set_process_env(&self, variables: Vec<(String, String)>) {
        *self.shared.process_env.write().unwrap_or_else(PoisonError::into_inner) = variables;
    }

    /// Sets the user's limits, for all plugins that are loaded from now on.
    pub fn set_user_limits(&self, limits: UserLimits) {
        *self.shared.user_limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// From now on every use of a capability is written down there. To be called before plugins are loaded.
    pub fn set_audit_log(&self, log: AuditLog) {
        let _ = self.shared.audit.set(log);
    }

    /// Where secrets of the user's are looked up, each when a plugin first uses one that its manifest asks for and that it
    /// is granted. The first source counts.
    pub fn set_secrets(&self, store: Arc<dyn SecretStore>) {
        let _ = self.shared.secrets.set(store);
    }

    /// Where files of configuration are that users write for plugins. The first counts.
    pub fn set_config(&self, files: Arc<dyn ConfigFiles>) {
        let _ = self.shared.config.set(files);
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

    /// From now on requests of plugins are not sent, but answered by these, once they have passed every check. For tests
    /// of plugins. The first counts.
    pub fn set_recordings(&self, recordings: Recordings) {
        self.shared.http.play(recordings);
    }

    /// From now on what extensions log is kept in this folder too, in a file for each. The first counts.
    pub fn keep_logs(&self, folder: PathBuf) {
        let _ = self.shared.log_files.set(LogFiles::new(folder));
    }

    /// From now on this one is shown every line that a plugin logs, whatever the filter of the program's own log says.
    /// The first counts.
    pub fn set_log(&self, log: LogSink) {
        let _ = self.shared.log.set(log);
    }
}
