//! Calls inside this process, through the same pipeline as a model's calls: fresh instance each.

use std::{path::Path, time::Instant};

use anyhow::Context as _;
use atoll_agent::Pipeline;
use atoll_engine::{Builtin, Places, PluginHost};
use atoll_table::Table;
use serde_json::{Value, json};

use crate::{
    Figure,
    concurrency::{self, call},
    median, percentile,
};

/// Tools to call, as a session has them.
pub(crate) struct Tools {
    pub(crate) host: PluginHost,
    pub(crate) pipeline: Pipeline,
}

impl Tools {
    /// Loads built-in plugins for a workspace.
    pub(crate) async fn load(work: &Path, names: &[&'static str]) -> anyhow::Result<Self> {
        // Outside of the workspace, as on most machines: what lies around Atoll's own files is looked at more closely.
        let none = std::env::temp_dir().join("none-of-this-is-there");
        let host = PluginHost::new(Places {
            cwd: work.to_owned(),
            home: none.clone(),
            atoll_home: none.join(".atoll"),
            cache: none.join("cache"),
            sessions: none.join(".atoll/sessions"),
            spill: none.join("spill"),
            skills: Vec::new(),
            shell: None,
        })?;
        let mut table = Table::new();
        for &name in names {
            let plugin = host.load_builtin(&builtin(name)?).await?;
            let (tools, runner) = plugin.tools.with_context(|| format!("{name} brings no tool"))?;
            table.register(name, tools, &runner)?;
        }
        Ok(Self { host, pipeline: Pipeline::new(table) })
    }

    /// Calls a tool, which has to work.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> anyhow::Result<()> {
        concurrency::call(&self.pipeline, name, arguments).await.map(drop)
    }
}

/// Tools that read in a folder with a small file, which has to be there as long as they are called.
pub(crate) async fn with_small_file() -> anyhow::Result<(tempfile::TempDir, Tools)> {
    let folder = tempfile::tempdir()?;
    let work = folder.path().canonicalize()?;
    std::fs::write(work.join("small.txt"), "a line of text\n".repeat(64))?;
    let tools = Tools::load(&work, &["read"]).await?;
    Ok((folder, tools))
}

/// Measures calls of the built-in tool `read`, then of tools that do less.
pub(crate) async fn measure(quick: bool) -> anyhow::Result<Vec<Figure>> {
    let (_folder, Tools { host, pipeline }) = with_small_file().await?;
    let mut figures = Vec::new();

    let count = if quick { 300 } else { 3_000 };
    for _ in 0..100 {
        read(&pipeline).await?;
    }
    let mut times = Vec::new();
    for _ in 0..count {
        let began = Instant::now();
        read(&pipeline).await?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    figures.push(Figure::new("tool call, warm, fresh instance: median", median(&mut times), "µs", count).below(100.0));
    figures.push(Figure::new(
        "tool call, warm, fresh instance: 99th percentile",
        percentile(&mut times, 99),
        "µs",
        count,
    ));

    let before = resident_mb()?;
    let mut peak = before;
    let began = Instant::now();
    let calls: Vec<_> = (0..200)
        .map(|_| {
            let pipeline = pipeline.clone();
            tokio::spawn(async move { read(&pipeline).await })
        })
        .collect();
    for one in calls {
        one.await??;
        peak = peak.max(resident_mb()?);
    }
    figures.push(Figure::new("200 calls at once: all done after", began.elapsed().as_secs_f64() * 1e3, "ms", 200));
    figures.push(Figure::new("200 calls at once: memory above before, at most", peak - before, "MB", 200));
    figures.push(Figure::new("200 calls at once: memory above before, afterwards", resident_mb()? - before, "MB", 200));

    let cycles = if quick { 2_000 } else { 10_000 };
    for _ in 0..cycles / 10 {
        read(&pipeline).await?;
    }
    let early = resident_mb()?;
    for _ in 0..cycles {
        read(&pipeline).await?;
    }
    let late = resident_mb()?;
    let growth = ((late - early) / early * 100.0).max(0.0);
    let name = format!("{cycles} instantiate-call-drop cycles: resident memory grows by");
    figures.push(Figure::new(name, growth, "%", cycles).below(5.0));
    figures.extend(concurrency::measure(&host, quick).await?);
    Ok(figures)
}

async fn read(pipeline: &Pipeline) -> anyhow::Result<()> {
    call(pipeline, "read", json!({"path": "small.txt"})).await.map(drop)
}

/// A built-in plugin's image as the build left it. It is embedded in the program; here it is read from where the
/// program's build takes it.
pub(crate) fn builtin(name: &'static str) -> anyhow::Result<Builtin> {
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/guests/images");
    let image = std::fs::read(images.join(format!("{name}.image"))).context("no images; run `cargo xtask bench`")?;
    let text = |extension| std::fs::read_to_string(images.join(format!("{name}.{extension}")));
    let (manifest, description) = (text("toml")?, text("json")?);
    Ok(Builtin { name, manifest: manifest.leak(), image: image.leak(), description: description.leak() })
}

/// Resident memory of this process.
pub(crate) fn resident_mb() -> anyhow::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS in /proc/self/status")?;
    let kib: f64 = line.split_whitespace().nth(1).context("VmRSS has no value")?.parse()?;
    Ok(kib / 1024.0)
}
