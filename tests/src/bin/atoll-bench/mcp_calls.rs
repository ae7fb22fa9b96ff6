//! The adapter in this process: a call of a server's tool as a model makes it, without a script around it; and how long it takes
//! until tools are in the table.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use atoll_agent::{
    Extensions, Pipeline,
    config_files::UserConfig,
    extensions::{Failure, own_tables::OwnTables, servers::SessionServers},
};
use atoll_engine::{AuditLog, Places, PluginHost};
use atoll_table::{
    Table,
    extension::{HostFacts, HostInfo, Mode, Services, Subscription, Who},
};
use serde_json::{Value, json};

use crate::{concurrency::call_as, in_process::builtin};

/// How many calls come before those that are measured.
const WARM: usize = 50;
/// How long it may take until a tool is there.
const PATIENCE: Duration = Duration::from_secs(30);

/// A command's run in a folder.
struct Facts(String);

impl HostFacts for Facts {
    fn describe(&self) -> HostInfo {
        let (version, cwd) = ("0".to_owned(), self.0.clone().into());
        HostInfo { version, mode: Mode::Command, has_person: false, cwd, trusted: false }
    }
    fn flag(&self, _: &Who, _: &str) -> Option<String> {
        None
    }
    fn settings(&self, _: &Who) -> Value {
        json!({})
    }
    fn changed(&self, _: &Who, _: &Arc<Subscription>) {}
}

/// What the adapter says of it.
fn log(atoll: &Path) -> String {
    std::fs::read_to_string(atoll.join("logs/mcp.log")).unwrap_or_else(|error| error.to_string())
}

/// The adapter in this process, with one server.
struct Adapter {
    pipeline: Pipeline,
    extensions: Extensions,
    /// How long it took from its start until a tool was in the table, in milliseconds.
    took_ms: f64,
    _folder: tempfile::TempDir,
}

impl Adapter {
    /// Starts it with a server with these options, of which nothing is known yet, and waits for the tool.
    async fn start(server: &Path, options: &[String], tool: &str) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let home = folder.path().canonicalize()?;
        let (work, atoll) = (home.join("work"), home.join(".atoll"));
        std::fs::create_dir_all(&work)?;
        std::fs::create_dir_all(&atoll)?;
        let servers = json!({"mcpServers": {"s0": {"command": server, "args": options}}});
        std::fs::write(atoll.join("mcp.json"), servers.to_string())?;
        let host = PluginHost::new(Places {
            cwd: work.clone(),
            cache: home.join("cache"),
            sessions: atoll.join("sessions"),
            spill: home.join("spill"),
            atoll_home: atoll.clone(),
            home,
            skills: Vec::new(),
            shell: None,
        })?;
        host.set_config(Arc::new(UserConfig::new(atoll.clone(), None, BTreeMap::new())));
        host.keep_logs(atoll.join("logs"));
        let audit = AuditLog::start(atoll.join("audit.log"), 1 << 30, |text| eprintln!("atoll-bench: {text}"))?;
        host.set_audit_log(audit);
        let pipeline = Pipeline::new(Table::new());
        let extensions = Extensions::new(Arc::new(|failure: &Failure| eprintln!("atoll-bench: {failure:?}")));
        host.set_services(Services {
            tables: Some(Arc::new(OwnTables::new(pipeline.clone(), Arc::new(|_| {})))),
            facts: Some(Arc::new(Facts(work.display().to_string()))),
            servers: Some(Arc::new(SessionServers::new(extensions.clone()))),
            ..Services::default()
        });
        let plugin = host.load_builtin(&builtin("mcp")?).await?;
        extensions.add(plugin.extension.context("the adapter is no extension")?);
        let began = Instant::now();
        let failed = extensions.start().await;
        anyhow::ensure!(failed.is_empty(), "the adapter can not be started: {failed:?}");
        let there = pipeline.until(|table| table.tools().iter().any(|entry| entry.tool.name == tool));
        let in_time = tokio::time::timeout(PATIENCE, there).await.is_ok();
        anyhow::ensure!(in_time, "{tool} does not come: {}", log(&atoll));
        let took_ms = began.elapsed().as_secs_f64() * 1e3;
        pipeline.set_hooks(extensions.hooks());
        Ok(Self { pipeline, extensions, took_ms, _folder: folder })
    }

    async fn end(self) -> f64 {
        self.extensions.end("quit").await;
        self.took_ms
    }
}

/// How long it takes until the last tool of a server with so many is in the table, in milliseconds.
pub(crate) async fn until_registered(server: &Path, tools: usize) -> anyhow::Result<f64> {
    let options = ["--tools".to_owned(), tools.to_string()];
    let last = format!("mcp__s0__more_{}", tools.saturating_sub(1));
    Ok(Adapter::start(server, &options, &last).await?.end().await)
}

/// What a call of the server's `echo` takes, one after the other, in milliseconds, by the mean.
pub(crate) async fn mean(server: &Path, count: usize) -> anyhow::Result<f64> {
    let adapter = Adapter::start(server, &[], "mcp__s0__echo").await?;
    let mut began = Instant::now();
    for number in 0..count + WARM {
        if number == WARM {
            began = Instant::now();
        }
        call_as(&adapter.pipeline, &format!("call-{number}"), "mcp__s0__echo", json!({"value": "x"})).await?;
    }
    let mean = began.elapsed().as_secs_f64() * 1e3 / count as f64;
    adapter.end().await;
    Ok(mean)
}
