//! Many calls at once inside this process, through the same pipeline as a model's calls: fresh instance each.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use atoll_agent::{Pipeline, pipeline::Caller};
use atoll_caps::{Digest, Effective, Manifest, Pin};
use atoll_engine::{PluginHost, UserPlugin};
use atoll_table::{Origin, Table, ToolOutput};
use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;

use crate::{Figure, in_process::resident_mb, median, percentile};

/// How many callers there are in the first measurement.
const CALLERS: usize = 64;
/// How often each of them calls there.
const PACE: Duration = Duration::from_millis(20);
/// How many calls are in flight in the second measurement.
const IN_FLIGHT: usize = 1_000;

/// Measures calls of a tool that does nothing, and of one that waits, both of the test plugin `nest`.
pub(crate) async fn measure(host: &PluginHost, quick: bool) -> anyhow::Result<Vec<Figure>> {
    let pipeline = pipeline(host).await?;
    let mut figures = Vec::new();

    let mut alone = Vec::new();
    for round in 0..1_100 {
        let began = Instant::now();
        pause(&pipeline, 0).await?;
        if round >= 100 {
            alone.push(began.elapsed().as_secs_f64() * 1e6);
        }
    }
    figures.push(Figure::new("call of a tool that does nothing: median", median(&mut alone), "µs", 1_000).below(100.0));

    // Calls that come one after the other from each caller, at a pace that leaves some of the machine free: what is
    // measured is how long a call takes while others run, not how many the machine can do.
    let rounds = if quick { 20 } else { 150 };
    let mut times = callers(&pipeline, rounds, Some(PACE)).await?;
    let runs = times.len();
    let name = format!("{CALLERS} callers, each every {} ms: 99th percentile", PACE.as_millis());
    figures.push(Figure::new(name, percentile(&mut times, 99) / 1e3, "ms", runs).below(1.0));

    let began = Instant::now();
    let mut times = callers(&pipeline, rounds, None).await?;
    let runs = times.len();
    #[expect(clippy::cast_precision_loss, reason = "a count of calls")]
    let rate = runs as f64 / began.elapsed().as_secs_f64();
    figures.push(Figure::new(format!("{CALLERS} callers without a pause: calls a second"), rate, "", runs));
    let name = format!("{CALLERS} callers without a pause: 99th percentile");
    figures.push(Figure::new(name, percentile(&mut times, 99) / 1e3, "ms", runs));

    let before = resident_mb()?;
    let calls: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let pipeline = pipeline.clone();
            tokio::spawn(async move { pause(&pipeline, 2_000).await })
        })
        .collect();
    let mut peak = before;
    let mut answered = 0;
    for one in calls {
        while !one.is_finished() {
            peak = peak.max(resident_mb()?);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        one.await??;
        answered += 1;
    }
    anyhow::ensure!(answered == IN_FLIGHT, "only {answered} calls were answered");
    figures.push(
        Figure::new(format!("{IN_FLIGHT} calls in flight: memory of the process"), peak, "MB", IN_FLIGHT).below(400.0),
    );
    Ok(figures)
}

/// Times of calls from all callers at once, in microseconds.
async fn callers(pipeline: &Pipeline, rounds: usize, pace: Option<Duration>) -> anyhow::Result<Vec<f64>> {
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let pipeline = pipeline.clone();
            tokio::spawn(async move {
                // Not all at the same moment.
                let offset = pace.unwrap_or_default() * u32::try_from(caller)? / u32::try_from(CALLERS)?;
                let start = tokio::time::Instant::now() + offset;
                let mut clock = pace.map(|pace| {
                    let mut clock = tokio::time::interval_at(start, pace);
                    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
                    clock
                });
                let mut times = Vec::new();
                for _ in 0..rounds {
                    if let Some(clock) = &mut clock {
                        clock.tick().await;
                    }
                    let began = Instant::now();
                    pause(&pipeline, 0).await?;
                    times.push(began.elapsed().as_secs_f64() * 1e6);
                }
                anyhow::Ok(times)
            })
        })
        .collect();
    let mut all = Vec::new();
    for caller in callers {
        all.extend(caller.await??);
    }
    Ok(all)
}

async fn pause(pipeline: &Pipeline, milliseconds: u64) -> anyhow::Result<()> {
    call(pipeline, "pause", json!({"milliseconds": milliseconds})).await.map(drop)
}

/// Calls a tool, which has to work.
pub(crate) async fn call(pipeline: &Pipeline, tool: &str, arguments: Value) -> anyhow::Result<ToolOutput> {
    call_as(pipeline, "bench", tool, arguments).await
}

/// The same with an id, for tools whose instances see more than one call.
pub(crate) async fn call_as(pipeline: &Pipeline, id: &str, tool: &str, arguments: Value) -> anyhow::Result<ToolOutput> {
    let ready = pipeline.ready(Caller::Person, id, tool, arguments).await?;
    let done = ready.run(Arc::new(|_, _| {}), Arc::new(|_| {})).await;
    anyhow::ensure!(!done.output.is_error, "the call failed: {:?}", done.output.content);
    Ok(done.output)
}

async fn pipeline(host: &PluginHost) -> anyhow::Result<Pipeline> {
    let mut table = Table::new();
    load(host, &mut table, "nest", include_str!("../../../plugins/nest/plugin.toml")).await?;
    Ok(Pipeline::new(table))
}

/// Loads a test plugin and puts its tools into a table.
pub(crate) async fn load(host: &PluginHost, table: &mut Table, name: &str, manifest: &str) -> anyhow::Result<()> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let component = format!("atoll_test_{}.wasm", name.replace('-', "_"));
    let file = tests.join("../target/guests/wasm32-wasip2/guest").join(component);
    let component = host.see_component(&file).context("no test plugins; run `cargo xtask bench`")?;
    let pin = Pin { component: component.digest.clone(), manifest: Digest::of(manifest.as_bytes()) };
    let manifest = Manifest::parse(manifest, &format!("{name}/plugin.toml"))?;
    let effective = Effective::builtin(&manifest);
    let plugin = host.load_user(UserPlugin { file, component, manifest, effective, pin, origin: Origin::User }).await?;
    let (tools, runner) = plugin.tools.with_context(|| format!("{name} brings no tool"))?;
    table.register(name, tools, &runner)?;
    Ok(())
}
