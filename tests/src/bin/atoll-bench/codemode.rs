//! Scripts of the tool `codemode`: how soon one gives its result, what its calls take, and what many hold at once.
//!
//! All of them go through the same pipeline as a model's calls, from the script's text to the result as the model reads it.

use std::{path::Path, process::Command, time::Instant};

use anyhow::Context as _;
use atoll_agent::Pipeline;
use atoll_table::{Content, Table, ToolOutput};
use serde_json::{Value, json};

use crate::{
    Figure,
    concurrency::{call, load},
    engines,
    in_process::{Tools, resident_mb},
    median, percentile,
    processes::{Home, command, timed},
};

/// How many scripts run at once.
const AT_ONCE: usize = 100;
/// How many calls one script makes, one after the other and all together.
const CALLS: usize = 1_000;
/// How many bytes of a result one script looks through.
const LARGE: usize = 5_000_000;

/// What a script does that does nothing.
const ADDS: &str = "return 1+1";

/// What a call takes is what the whole script takes, by the number of its calls: its start is in there, too.
const ONE_BY_ONE: &str = "let last;
for (let n = 0; n < 1000; n++) last = await tools.say({n});
return last;";

/// The cap is raised by the script itself; there is no other way.
const ALL_TOGETHER: &str = r#"// @options: {"max_parallel_calls": 256}
const awake = await Promise.all(Array.from({length: 1000}, () => tools.sleep({ms: 10})));
return awake.filter(said => said === "awake").length;"#;

const FILTERS: &str = "const records = await tools.big({records: 10000, filler: 470});
return records.filter(record => record.id % 2000 === 0).map(({id, group}) => ({id, group}));";

/// Holds a megabyte while it waits.
const WAITS: &str = r#"const held = Array.from({length: 16}, (_, n) => String.fromCharCode(97 + n).repeat(64 << 10));
await new Promise(done => setTimeout(done, 2000));
return held.reduce((sum, text) => sum + text.length, 0);"#;

/// Measures `atoll codemode run` as a process, and what else runs scripts beside it.
pub(crate) fn processes(atoll: &Path, quick: bool) -> anyhow::Result<Vec<Figure>> {
    let runs = if quick { 5 } else { 21 };
    let home = Home::empty()?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("script.js"), ADDS)?;
    let program = atoll.to_str().context("the path of atoll is not UTF-8")?.to_owned();
    let mut ours = command(&[program], &["codemode", "run", "script.js"])?;
    home.apply(&mut ours);
    ours.current_dir(folder.path());
    let mut figures = vec![process("atoll codemode run, `return 1+1`: process", &mut ours, runs)?.below(25.0)];
    if let Some(node) = engines::node() {
        let mut node = command(&[node], &["-e", "1+1"])?;
        figures.push(process("node -e 1+1: process", &mut node, runs)?);
    }
    Ok(figures)
}

fn process(name: &str, command: &mut Command, runs: usize) -> anyhow::Result<Figure> {
    // The first only fills the page cache.
    timed(command)?;
    let mut times = (0..runs).map(|_| Ok(timed(command)?.0)).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Figure::new(name, median(&mut times), "ms", runs))
}

/// Measures scripts inside this process.
pub(crate) async fn measure(quick: bool) -> anyhow::Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let Tools { host, pipeline } = Tools::load(&folder.path().canonicalize()?, &["codemode"]).await?;
    let mut table = pipeline.change(std::mem::take::<Table>);
    load(&host, &mut table, "script-tools", include_str!("../../../plugins/script-tools/plugin.toml")).await?;
    let pipeline = Pipeline::new(table);
    let mut figures = starts(&pipeline, if quick { 300 } else { 3_000 }).await?;
    figures.extend(many_at_once(&pipeline).await?);
    let runs = if quick { 3 } else { 11 };
    let mut times = timed_scripts(&pipeline, ONE_BY_ONE, r#"{"n":999}"#, runs).await?;
    let each = median(&mut times) * 1e3 / CALLS as f64;
    let name = format!("call from a script and back: script of {CALLS} calls, by {CALLS}");
    figures.push(Figure::new(name, each, "µs", runs).below(100.0));
    let mut times = timed_scripts(&pipeline, ALL_TOGETHER, &CALLS.to_string(), runs).await?;
    let name = format!("script with {CALLS} parallel calls of a 10 ms tool");
    figures.push(Figure::new(name, median(&mut times), "ms", runs).below(150.0));
    figures.extend(filters(&pipeline, runs).await?);
    figures.extend(engines::measure(&pipeline, quick).await?);
    Ok(figures)
}

/// A script that does nothing, again and again.
async fn starts(pipeline: &Pipeline, count: usize) -> anyhow::Result<Vec<Figure>> {
    let mut times = Vec::new();
    for round in 0..count + 100 {
        let began = Instant::now();
        let output = script(pipeline, ADDS).await?;
        let took = began.elapsed().as_secs_f64() * 1e6;
        if round >= 100 {
            times.push(took);
        }
        anyhow::ensure!(returned(&output)? == "2", "the script gave {:?}", output.content);
    }
    Ok(vec![
        Figure::new("script `return 1+1`, warm: median", median(&mut times), "µs", count).below(150.0),
        Figure::new("script `return 1+1`, warm: 99th percentile", percentile(&mut times, 99), "µs", count),
    ])
}

/// Scripts that wait at once, each with something of its own to hold.
async fn many_at_once(pipeline: &Pipeline) -> anyhow::Result<Vec<Figure>> {
    let before = resident_mb()?;
    let began = Instant::now();
    let scripts: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let pipeline = pipeline.clone();
            tokio::spawn(async move { script(&pipeline, WAITS).await })
        })
        .collect();
    let mut peak = before;
    for one in scripts {
        while !one.is_finished() {
            peak = peak.max(resident_mb()?);
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let output = one.await??;
        anyhow::ensure!(returned(&output)? == (1 << 20).to_string(), "a script gave {:?}", output.content);
    }
    let took = began.elapsed().as_secs_f64() * 1e3;
    let each = (peak - before) / AT_ONCE as f64;
    Ok(vec![
        Figure::new(format!("{AT_ONCE} scripts at once, each holds 1 MB: memory of each"), each, "MB", AT_ONCE)
            .below(8.0),
        Figure::new(format!("{AT_ONCE} scripts at once that wait for 2 s: all done after"), took, "ms", AT_ONCE),
    ])
}

/// A script that looks through a large result and gives little of it.
async fn filters(pipeline: &Pipeline, runs: usize) -> anyhow::Result<Vec<Figure>> {
    let whole = call(pipeline, "big", json!({"records": 10_000, "filler": 470})).await?;
    let bytes = whole.structured.context("there is no result to look through")?.to_string().len();
    anyhow::ensure!(bytes >= LARGE, "the result has only {bytes} bytes");
    let (mut times, mut shown) = (Vec::new(), 0);
    for _ in 0..=runs {
        let began = Instant::now();
        let output = script(pipeline, FILTERS).await?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
        let five: Vec<Value> = serde_json::from_str(&returned(&output)?)?;
        anyhow::ensure!(five.len() == 5, "the model sees {} records", five.len());
        shown =
            output.content.iter().map(|piece| if let Content::Text { text } = piece { text.len() } else { 0 }).sum();
    }
    let name = format!("filter 10,000 records of {:.1} MB to five", bytes as f64 / 1e6);
    Ok(vec![
        Figure::new(name, median(times.get_mut(1..).unwrap_or_default()), "ms", runs).below(250.0),
        Figure::new("the same: what the model reads", f64::from(u32::try_from(shown)?), "bytes", runs),
    ])
}

/// Runs a script so often, which has to return this each time; how long each took, in milliseconds.
async fn timed_scripts(pipeline: &Pipeline, code: &str, returns: &str, runs: usize) -> anyhow::Result<Vec<f64>> {
    let mut times = Vec::new();
    for run in 0..=runs {
        let began = Instant::now();
        let output = script(pipeline, code).await?;
        let took = began.elapsed().as_secs_f64() * 1e3;
        anyhow::ensure!(returned(&output)? == returns, "the script gave {:?}", output.content);
        // The first one fills the pool.
        if run > 0 {
            times.push(took);
        }
    }
    Ok(times)
}

/// Runs a script, which has to work.
pub(crate) async fn script(pipeline: &Pipeline, code: &str) -> anyhow::Result<ToolOutput> {
    call(pipeline, "codemode", json!({"code": code})).await
}

/// What a script returned, as the model reads it: behind the line that says how long it took.
pub(crate) fn returned(output: &ToolOutput) -> anyhow::Result<String> {
    match output.content.as_slice() {
        [Content::Text { .. }, Content::Text { text }] => Ok(text.clone()),
        other => anyhow::bail!("a script gave other pieces than its value: {other:?}"),
    }
}
