//! `cargo xtask check`: everything that is wrong is reported, not only the first thing.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::process::{self, step};
use crate::workspace::Workspace;
use crate::{direction, guest_toolchain, wit_freeze};

/// How long the advisory database may take to arrive.
const ADVISORY_LIMIT: Duration = Duration::from_secs(180);

/// How one check ended, when it could be made at all.
enum Verdict {
    Passed,
    /// Not made, and why that is no failure.
    Skipped(String),
}

type Check = fn(&Workspace) -> Result<Verdict>;

const CHECKS: [(&str, Check); 6] = [
    ("formatting", formatting),
    ("clippy", clippy),
    ("dependencies (licenses, bans, sources)", policies),
    ("dependencies (advisories)", advisories),
    ("frozen contract", contract),
    ("dependency direction", dependency_direction),
];

/// Makes every check and sums up on stdout.
///
/// # Errors
/// None of its own: a check that cannot be made counts as failed.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    let mut summary = Vec::new();
    let mut failed = false;
    for (name, check) in CHECKS {
        step(&format!("check: {name}"));
        summary.push(match check(workspace) {
            Ok(Verdict::Passed) => format!("ok       {name}"),
            Ok(Verdict::Skipped(why)) => format!("skipped  {name}: {why}"),
            Err(error) => {
                failed = true;
                format!("FAILED   {name}: {error:#}")
            }
        });
    }
    println!("{}", summary.join("\n"));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn formatting(workspace: &Workspace) -> Result<Verdict> {
    process::run(process::cargo(&workspace.root).args(["fmt", "--all", "--check"])).context("run `cargo fmt --all`")?;
    Ok(Verdict::Passed)
}

fn clippy(workspace: &Workspace) -> Result<Verdict> {
    let mut command = process::cargo(&workspace.root);
    command.args(["clippy", "--workspace", "--all-targets"]).args(workspace.locked()).args(["--", "-D", "warnings"]);
    process::run(&mut command)?;
    Ok(Verdict::Passed)
}

fn policies(workspace: &Workspace) -> Result<Verdict> {
    let mut command = deny(workspace)?;
    process::run(command.args(["check", "licenses", "bans", "sources"]))?;
    Ok(Verdict::Passed)
}

/// Known vulnerabilities. The database comes from a git server that a build machine may not reach; that says nothing
/// about the code, so it is told and not failed.
fn advisories(workspace: &Workspace) -> Result<Verdict> {
    let mut command = deny(workspace)?;
    command.args(["check", "advisories"]);
    let ended = process::bounded(&mut command, ADVISORY_LIMIT)?;
    if ended.success() {
        return Ok(Verdict::Passed);
    }
    if ended.status.is_none() {
        let limit = ADVISORY_LIMIT.as_secs();
        return Ok(Verdict::Skipped(format!("advisories were NOT checked: no answer in {limit} s")));
    }
    if let Some(why) = database_unavailable(&ended.text) {
        return Ok(Verdict::Skipped(format!("advisories were NOT checked: {why}")));
    }
    eprintln!("{}", ended.text);
    bail!("cargo-deny reports advisories; its output is above")
}

/// The reason, in one line, when cargo-deny could not get the database at all.
fn database_unavailable(output: &str) -> Option<String> {
    let is_about_the_database = |line: &str| {
        let line = line.to_ascii_lowercase();
        line.contains("advisory database") && (line.contains("fail") || line.contains("unable"))
    };
    let start = output.lines().position(is_about_the_database)?;
    // The last line is the deepest cause, the one that names the server.
    let cause = output.lines().skip(start).map(str::trim).filter(|line| !line.is_empty()).last()?;
    Some(format!("the database cannot be fetched: {cause}"))
}

/// cargo-deny from PATH or from our cache, where it is installed when it is missing.
fn deny(workspace: &Workspace) -> Result<Command> {
    let tools = process::cache_dir()?.join("cargo-tools");
    let ours: PathBuf = tools.join("bin/cargo-deny");
    let program = if let Some(found) = process::find_program("cargo-deny") {
        found
    } else {
        if !ours.is_file() {
            step(&format!("cargo-deny is missing: installing it into {} (some minutes, once)", tools.display()));
            let mut install = process::cargo(&workspace.root);
            install.args(["install", "cargo-deny", "--locked", "--root"]).arg(&tools);
            process::run(&mut install).context("cargo-deny cannot be installed; install it by hand")?;
        }
        ours
    };
    let mut command = Command::new(program);
    command.current_dir(&workspace.root);
    Ok(command)
}

fn contract(workspace: &Workspace) -> Result<Verdict> {
    verdict(&wit_freeze::check(&workspace.root.join("wit"))?)
}

fn dependency_direction(workspace: &Workspace) -> Result<Verdict> {
    let metadata = workspace.resolved(&guest_toolchain::host(&workspace.root)?)?;
    verdict(&direction::check(&direction::Graph::read(&workspace.root, &metadata)?))
}

fn verdict(wrong: &[String]) -> Result<Verdict> {
    if wrong.is_empty() {
        return Ok(Verdict::Passed);
    }
    bail!("{}", wrong.join("\n         "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreachable_database_is_told_apart_from_findings() {
        let unreachable = "2026-01-01 [WARN] no config\n\
            2026-01-01 [ERROR] failed to fetch advisory database https://example/db with cli: failed to clone\n\
            Cloning into 'db'...\nfatal: unable to access 'https://example/db': Could not resolve host\n\n";
        let why = database_unavailable(unreachable).unwrap();
        assert!(why.ends_with("fatal: unable to access 'https://example/db': Could not resolve host"), "{why}");
        assert!(!why.contains('\n'));
        assert_eq!(
            database_unavailable("error[vulnerability]: overflow in x\n advisory: RUSTSEC-1\nadvisories FAILED"),
            None
        );
    }
}
