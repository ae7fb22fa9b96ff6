//! Loops and strings: a script that only computes, in `codemode`, in QuickJS as a native program built from the very sources
//! that `codemode` is built from, and in node. Each takes the time itself, and its best of several.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;
use atoll_agent::Pipeline;
use serde::Deserialize;

use crate::{Figure, codemode};

/// The benchmarks: an expression that gives the time of each, in milliseconds.
const BENCHMARKS: &str = include_str!("engines.js");

/// Times of each benchmark, in milliseconds.
type Times = BTreeMap<String, f64>;

/// Measures all that are there.
pub(crate) async fn measure(pipeline: &Pipeline, quick: bool) -> anyhow::Result<Vec<Figure>> {
    let rounds = if quick { 2 } else { 5 };
    let expression = BENCHMARKS.trim().replace("ROUNDS", &rounds.to_string());
    let script = format!("return {expression}");
    let program = format!("console.log(JSON.stringify({expression}))");
    let output = codemode::script(pipeline, &script).await?;
    let ours: Times = serde_json::from_str(&codemode::returned(&output)?)?;
    let mut figures = Vec::new();
    let mut known: Vec<(&str, Times)> = Vec::new();
    if let Some(qjs) = quickjs()? {
        let native = run(&qjs, &["--eval", &program])?;
        figures.extend(compared("native QuickJS", &ours, &native, rounds, Some(2.5))?);
        known.push(("QuickJS", native));
    }
    if let Some(node) = node() {
        let native = run(&node, &["--eval", &program])?;
        figures.extend(compared("node", &ours, &native, rounds, None)?);
        known.push(("node", native));
    }
    for (name, ms) in &ours {
        let beside = known.iter().map(|(who, times)| format!("{who} {:.1} ms", times.get(name).unwrap_or(&f64::NAN)));
        eprintln!("atoll-bench: {name}: {ms:.1} ms, {}", beside.collect::<Vec<_>>().join(", "));
    }
    Ok(figures)
}

/// How many times as long ours take: all together, and the one that is worst.
fn compared(name: &str, ours: &Times, theirs: &Times, runs: usize, most: Option<f64>) -> anyhow::Result<Vec<Figure>> {
    let ratio = |(what, ms): (&String, &f64)| {
        let other = theirs.get(what).with_context(|| format!("{name} did not run {what}"))?;
        Ok((what.clone(), ms / other))
    };
    let ratios = ours.iter().map(ratio).collect::<anyhow::Result<Vec<_>>>()?;
    let mean = (ratios.iter().map(|(_, ratio)| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    let worst = ratios.iter().max_by(|a, b| a.1.total_cmp(&b.1)).context("there are no benchmarks")?;
    let mut all = Figure::new(format!("loops and strings, times {name}: geometric mean"), mean, "x", runs);
    all.ceiling = most;
    Ok(vec![all, Figure::new(format!("loops and strings, times {name}: worst, {}", worst.0), worst.1, "x", runs)])
}

fn run(program: &str, arguments: &[&str]) -> anyhow::Result<Times> {
    let output = Command::new(program).args(arguments).output().with_context(|| format!("{program} can not be run"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{program} failed: {said}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Where node is, if it is there: `ATOLL_BENCH_NODE` names it, or it is on the PATH.
pub(crate) fn node() -> Option<String> {
    let named = std::env::var("ATOLL_BENCH_NODE").unwrap_or_else(|_| "node".to_owned());
    if Command::new(&named).arg("--version").output().is_ok_and(|said| said.status.success()) {
        return Some(named);
    }
    eprintln!("atoll-bench: node is not installed; its figures are left out");
    None
}

/// The native program: `ATOLL_BENCH_QJS` names it, or it is built once, as QuickJS builds it by itself. `None` if there is no
/// compiler for that.
fn quickjs() -> anyhow::Result<Option<String>> {
    if let Ok(named) = std::env::var("ATOLL_BENCH_QJS") {
        return Ok(Some(named));
    }
    let (version, sources) = sources()?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench");
    let program = folder.join(format!("qjs-{version}"));
    if !program.is_file() {
        std::fs::create_dir_all(&folder)?;
        let made = folder.join(format!("qjs-{version}.new"));
        let mut cc = Command::new("cc");
        cc.current_dir(&sources).args([
            "-O2",
            "-DNDEBUG",
            "-D_GNU_SOURCE",
            "-DQUICKJS_NG_BUILD",
            "-funsigned-char",
            "-w",
        ]);
        cc.args(["dtoa.c", "libregexp.c", "libunicode.c", "quickjs.c", "quickjs-libc.c", "qjs.c"]);
        cc.args(["gen/repl.c", "gen/standalone.c", "-lm", "-ldl", "-lpthread", "-o"]).arg(&made);
        eprintln!("atoll-bench: building {}", program.display());
        let Ok(said) = cc.output() else {
            eprintln!("atoll-bench: there is no C compiler; figures beside native QuickJS are left out");
            return Ok(None);
        };
        anyhow::ensure!(said.status.success(), "QuickJS does not build: {}", String::from_utf8_lossy(&said.stderr));
        std::fs::rename(made, &program)?;
    }
    Ok(Some(program.to_str().context("the path of the native program is not UTF-8")?.to_owned()))
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    manifest_path: PathBuf,
}

/// The version of the crate that has the sources, and where they are.
fn sources() -> anyhow::Result<(String, PathBuf)> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--format-version", "1", "--locked", "--manifest-path"]);
    let output = cargo.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).output()?;
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cargo says nothing of what is built")?;
    let found = metadata.packages.into_iter().find(|package| package.name == "rquickjs-sys");
    let package = found.context("QuickJS is not among the dependencies")?;
    Ok((package.version, package.manifest_path.with_file_name("quickjs")))
}
