//! Measures what the README promises. Whole processes first, while this one is still small (a child starts with
//! its parent's memory), then calls inside this process.
//!
//! Must never decide anything by a single run: every figure is a median, and says of how many.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program that reports")]

mod concurrency;
mod extension_life;
mod extensions;
mod in_process;
mod model_server;
mod processes;
mod tools;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use serde::Serialize;

/// One measured figure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    /// What was measured.
    pub(crate) name: String,
    /// The figure.
    pub(crate) value: f64,
    /// `ms`, `µs`, `MB`, `%` or `x`, how many times as much.
    pub(crate) unit: &'static str,
    /// It has to stay below this, if there is a promise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ceiling: Option<f64>,
    /// How many runs it is the median of, or how many it comes from.
    pub(crate) runs: usize,
    /// The same of another agent, measured in the same way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer: Option<f64>,
}

impl Figure {
    pub(crate) fn new(name: impl Into<String>, value: f64, unit: &'static str, runs: usize) -> Self {
        Self { name: name.into(), value, unit, ceiling: None, runs, peer: None }
    }

    pub(crate) fn below(mut self, ceiling: f64) -> Self {
        self.ceiling = Some(ceiling);
        self
    }

    fn holds(&self) -> bool {
        self.ceiling.is_none_or(|ceiling| self.value < ceiling)
    }
}

/// What the program was asked for.
struct Options {
    json: bool,
    quick: bool,
    /// Leave out whole processes.
    calls: bool,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("atoll-bench: a figure is above its ceiling");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("atoll-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<bool> {
    let mut options = Options { json: false, quick: false, calls: false };
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--json" => options.json = true,
            "--quick" => options.quick = true,
            "--calls" => options.calls = true,
            other => anyhow::bail!("unknown argument `{other}`; there are --json, --quick and --calls"),
        }
    }
    let mut figures = Vec::new();
    let mut tools = None;
    if !options.calls {
        let atoll = std::env::var_os("ATOLL_BIN").map(PathBuf::from);
        let atoll = atoll.context("ATOLL_BIN is not set; run `cargo xtask bench`")?;
        figures = processes::measure(&atoll, options.quick)?;
        tools = Some(tools::processes(&atoll, options.quick)?);
    }
    figures.extend(in_process::measure(options.quick, tools)?);
    if options.json {
        println!("{}", serde_json::to_string_pretty(&figures)?);
    } else {
        table(&figures);
    }
    Ok(figures.iter().all(Figure::holds))
}

fn table(figures: &[Figure]) {
    println!("{:<58} {:>12} {:>10} {:>12} {:>7}", "figure", "measured", "ceiling", "Pi 1.6.0", "runs");
    for figure in figures {
        let shown = |value: f64| format!("{value:.1} {}", figure.unit);
        let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), shown);
        let mark = if figure.holds() { "" } else { "  ABOVE" };
        println!(
            "{:<58} {:>12} {:>10} {:>12} {:>7}{mark}",
            figure.name,
            shown(figure.value),
            optional(figure.ceiling),
            optional(figure.peer),
            figure.runs
        );
    }
}

/// The middle of the values.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    percentile(values, 50)
}

/// The value that `percent` of the values do not exceed.
pub(crate) fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((values.len() * percent / 100).min(last)).copied().unwrap_or(f64::NAN)
}
