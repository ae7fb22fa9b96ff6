//! Measures what the README promises. Whole processes first, while this one is still small (a child starts with
//! its parent's memory), then calls inside this process.
//!
//! Must never decide anything by a single run: every figure is a median, and says of how many.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program that reports")]

mod codemode;
mod concurrency;
mod engines;
mod extension_life;
mod extensions;
mod in_process;
mod mcp;
mod mcp_calls;
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
    /// Only figures of these groups; empty for all.
    only: Vec<Group>,
}

/// Figures that can be measured without the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// Starts of the program.
    Start,
    /// Calls of tools that do little, alone and many at once.
    Calls,
    /// Tools for files on much to do.
    Files,
    /// What extensions cost.
    Extensions,
    /// Scripts that call tools.
    Codemode,
    /// MCP servers.
    Mcp,
}

impl Group {
    const ALL: [(&str, Self); 6] = [
        ("start", Self::Start),
        ("calls", Self::Calls),
        ("files", Self::Files),
        ("extensions", Self::Extensions),
        ("codemode", Self::Codemode),
        ("mcp", Self::Mcp),
    ];

    /// Reads names with commas between them.
    fn read(names: &str) -> anyhow::Result<Vec<Self>> {
        let one = |name: &str| {
            let found = Self::ALL.iter().find(|(known, _)| *known == name.trim()).map(|(_, group)| *group);
            let known = Self::ALL.map(|(known, _)| known).join(", ");
            found.with_context(|| format!("there is no group of figures `{name}`; there are {known}"))
        };
        names.split(',').map(one).collect()
    }
}

impl Options {
    fn read() -> anyhow::Result<Self> {
        let mut options = Self { json: false, quick: false, calls: false, only: Vec::new() };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--json" => options.json = true,
                "--quick" => options.quick = true,
                "--calls" => options.calls = true,
                "--only" => {
                    let names = arguments.next().context("--only takes names of groups, with commas between them")?;
                    options.only.extend(Group::read(&names)?);
                }
                other => anyhow::bail!("unknown argument `{other}`; there are --json, --quick, --calls and --only"),
            }
        }
        Ok(options)
    }

    fn wants(&self, group: Group) -> bool {
        self.only.is_empty() || self.only.contains(&group)
    }

    /// Whether whole processes of this group are wanted, too.
    fn wants_processes(&self, group: Group) -> bool {
        !self.calls && self.wants(group)
    }
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
    let options = Options::read()?;
    let quick = options.quick;
    let atoll = || {
        let atoll = std::env::var_os("ATOLL_BIN").map(PathBuf::from);
        atoll.context("ATOLL_BIN is not set; run `cargo xtask bench`")
    };
    let mut figures = Vec::new();
    if options.wants_processes(Group::Start) {
        figures.extend(processes::measure(&atoll()?, quick)?);
    }
    if options.wants_processes(Group::Codemode) {
        figures.extend(codemode::processes(&atoll()?, quick)?);
    }
    if options.wants_processes(Group::Mcp) {
        figures.extend(mcp::measure(&atoll()?, quick)?);
    }
    let files = options.wants_processes(Group::Files).then(|| tools::processes(&atoll()?, quick)).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if options.wants(Group::Calls) {
        figures.extend(runtime.block_on(in_process::measure(quick))?);
    }
    if options.wants(Group::Codemode) {
        figures.extend(runtime.block_on(codemode::measure(quick))?);
    }
    if options.wants(Group::Extensions) {
        figures.extend(runtime.block_on(extensions::measure(quick))?);
        figures.extend(runtime.block_on(extension_life::measure(quick))?);
    }
    if let Some(files) = files {
        figures.extend(runtime.block_on(files.calls())?);
    }
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
