//! `cargo xtask …`: everything a developer or the CI does with this workspace beyond plain cargo.
//!
//! Kept free of wasmtime and of our own crates, so that the first command on a fresh machine compiles in seconds.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool: results go to stdout, progress and errors to stderr"
)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that cannot go on should fail"))]

mod apt_sources;
mod checks;
mod commands;
mod debian_prefix;
mod direction;
mod examples;
mod guest_toolchain;
mod guests;
mod peers;
mod process;
mod test262;
mod wit_freeze;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::{Profile, Workspace};

/// Build, test and check the Atoll workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find or fetch a compiler for wasm32-wasip2 and say which one is used and why.
    Setup {
        /// Print the environment of a guest build as `export` lines, for `eval` in a subshell.
        #[arg(long)]
        env: bool,
    },
    /// Compile the plugins to components and compile those ahead of time.
    Guests {
        /// Use the release profile of the host for the ahead-of-time compiler.
        #[arg(long)]
        release: bool,
    },
    /// Compile the plugins, then the `atoll` binary.
    Build {
        /// Optimised build: target/release/atoll.
        #[arg(long)]
        release: bool,
    },
    /// Build the examples in other languages than Rust, with toolchains from the package registries.
    Examples,
    /// Build, then run every test of the workspace.
    Test {
        /// Also what takes long: ten minutes of fuzzing, and races tried thousands of times.
        #[arg(long)]
        long: bool,
        /// Passed to `cargo test`: a test name filter, `-p PACKAGE`, and so on.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Build, then run the conformance suite of the language on the engine of scripts.
    Test262 {
        /// All tests of its directories, not a sample.
        #[arg(long)]
        full: bool,
        /// Only the tests whose paths begin so, such as `built-ins/Array/prototype`.
        directories: Vec<String>,
    },
    /// Build, then run `atoll demo`.
    Demo {
        /// Passed to `atoll demo`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Build optimised, then run the benchmarks.
    Bench {
        /// Passed to `atoll-bench`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Formatting, lints, dependencies, the frozen contract and the dependency direction.
    Check,
    /// Rewrite wit/FROZEN after an intended change of the contract.
    WitFreeze,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::load()?;
    match command {
        Command::Setup { env } => commands::setup(&workspace, env),
        Command::Guests { release } => commands::guests(&workspace, Profile::new(release)),
        Command::Build { release } => commands::build(&workspace, Profile::new(release)),
        Command::Examples => commands::examples(&workspace),
        Command::Test { long, args } => commands::test(&workspace, long, &args),
        Command::Test262 { full, directories } => commands::test262(&workspace, full, &directories),
        Command::Demo { args } => commands::demo(&workspace, &args),
        Command::Bench { args } => commands::bench(&workspace, &args),
        Command::Check => checks::run(&workspace),
        Command::WitFreeze => commands::wit_freeze(&workspace),
    }
}
