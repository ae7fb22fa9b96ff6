//! What each subcommand does, in terms of the other modules.

use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context as _, Result};

use crate::guest_toolchain::GuestToolchain;
use crate::process::{self, step};
use crate::workspace::{Profile, Workspace};
use crate::{debian_prefix, examples as example_builds, guests as guest_builds, peers, test262, wit_freeze as freeze};

/// Finds the guest compiler and says which; with `env`, prints what a build by hand has to set.
///
/// # Errors
/// There is none, and none can be fetched.
pub(crate) fn setup(workspace: &Workspace, env: bool) -> Result<ExitCode> {
    let toolchain = GuestToolchain::ensure(workspace)?;
    if env {
        for (name, value) in &toolchain.env {
            println!("export {name}={}", debian_prefix::quote(value));
        }
    } else {
        println!("guest toolchain: {:?}", toolchain.kind);
        println!("why: {}", toolchain.why);
        println!("rustc: {}", toolchain.rustc.display());
        for (name, value) in toolchain.env.iter().filter(|(name, _)| name != "PATH") {
            println!("  {name}={value}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The guests and their images.
///
/// # Errors
/// As [`guest_builds::build`], and when there is no guest compiler.
pub(crate) fn guests(workspace: &Workspace, profile: Profile) -> Result<ExitCode> {
    let toolchain = GuestToolchain::ensure(workspace)?;
    step(&format!("guest toolchain: {}", toolchain.why));
    guest_builds::build(workspace, &toolchain, profile)?;
    Ok(ExitCode::SUCCESS)
}

/// The guests, then the `atoll` binary, which embeds them.
///
/// # Errors
/// Something does not compile.
pub(crate) fn build(workspace: &Workspace, profile: Profile) -> Result<ExitCode> {
    guests(workspace, profile)?;
    step("building atoll");
    guest_builds::host_binary(workspace, profile, "atoll")?;
    step(&format!("built {}", workspace.binary(profile, "atoll").display()));
    Ok(ExitCode::SUCCESS)
}

/// The examples in other languages than Rust. What can not be had is skipped; what does not build is a failure.
///
/// # Errors
/// Something of ours can not be read or written.
pub(crate) fn examples(workspace: &Workspace) -> Result<ExitCode> {
    let failures = example_builds::build(workspace, &GuestToolchain::ensure(workspace)?)?;
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What tells tests to take their time.
const LONG_TESTS: &str = "ATOLL_LONG_TESTS";

/// Builds, then runs the tests of the workspace and those of this program. All of them run even when some fail. With
/// `long`, those that can take their time are told to.
///
/// # Errors
/// Something does not compile. Failing tests are no error but the exit code.
pub(crate) fn test(workspace: &Workspace, long: bool, args: &[String]) -> Result<ExitCode> {
    build(workspace, Profile::Dev)?;
    // Tests run all the same, and miss what was not built.
    let examples = examples(workspace)?;
    let mut variables = peers::ensure();
    match test262::ensure() {
        Ok(folder) => variables.push((test262::VARIABLE, folder)),
        Err(error) => step(&format!("the conformance suite of the language will be skipped: {error:#}")),
    }
    if long {
        variables.push((LONG_TESTS, "1".into()));
    }
    let atoll = workspace.binary(Profile::Dev, "atoll");
    if selects_package(args) {
        let chosen = process::status(cargo_test(workspace, &atoll, &[], args).envs(variables))?;
        return Ok(code(chosen));
    }
    // Apart from the others, because this program is running: its tests must not be mixed into the host's features.
    let host =
        process::status(cargo_test(workspace, &atoll, &["--workspace", "--exclude", "xtask"], args).envs(variables))?;
    let own = process::status(&mut cargo_test(workspace, &atoll, &["--package", "xtask"], args))?;
    let tested = code(if host.success() { own } else { host });
    Ok(if host.success() && own.success() { examples } else { tested })
}

fn cargo_test(workspace: &Workspace, atoll: &Path, selection: &[&str], args: &[String]) -> Command {
    let mut command = process::cargo(&workspace.root);
    command
        .args(["test", "--no-fail-fast"])
        .args(workspace.locked())
        .args(selection)
        .args(args)
        .env("ATOLL_BIN", atoll);
    command
}

/// Whether the arguments for `cargo test` choose packages themselves.
fn selects_package(args: &[String]) -> bool {
    args.iter()
        .take_while(|arg| *arg != "--")
        .any(|arg| arg.starts_with("-p") || arg == "--package" || arg.starts_with("--package="))
}

/// Builds, then runs the conformance suite of the language, all of it or a sample, and shows its figures.
///
/// # Errors
/// Something does not compile, or the suite can not be had. Failing tests are no error but the exit code.
pub(crate) fn test262(workspace: &Workspace, full: bool, directories: &[String]) -> Result<ExitCode> {
    let folder = test262::ensure()?;
    build(workspace, Profile::Dev)?;
    let atoll = workspace.binary(Profile::Dev, "atoll");
    let selection = ["--package", "atoll-tests", "--test", "all", "test262::", "--", "--nocapture"];
    let mut command = cargo_test(workspace, &atoll, &selection, &[]);
    command.env(test262::VARIABLE, folder).env("ATOLL_TEST262_ONLY", directories.join(" "));
    if full {
        command.env("ATOLL_TEST262_FULL", "1");
    }
    Ok(code(process::status(&mut command)?))
}

/// Builds with the profile that is ready sooner on a fresh machine, then shows the whole path offline.
///
/// # Errors
/// Something does not compile. What the demo says is the exit code.
pub(crate) fn demo(workspace: &Workspace, args: &[String]) -> Result<ExitCode> {
    build(workspace, Profile::Dev)?;
    let mut command = Command::new(workspace.binary(Profile::Dev, "atoll"));
    Ok(code(process::status(command.arg("demo").args(args))?))
}

/// Builds optimised, then measures.
///
/// # Errors
/// Something does not compile. What the benchmarks say is the exit code.
pub(crate) fn bench(workspace: &Workspace, args: &[String]) -> Result<ExitCode> {
    build(workspace, Profile::Release)?;
    step("building the benchmarks");
    guest_builds::host_binary(workspace, Profile::Release, "atoll-bench")?;
    guest_builds::host_binary(workspace, Profile::Release, "atoll-mcp-peer")?;
    let mut command = Command::new(workspace.binary(Profile::Release, "atoll-bench"));
    command.args(args).current_dir(&workspace.root).env("ATOLL_BIN", workspace.binary(Profile::Release, "atoll"));
    command.envs(peers::ensure());
    Ok(code(process::status(&mut command)?))
}

/// Rewrites the list of frozen WIT files.
///
/// # Errors
/// The `wit` directory cannot be read or written.
pub(crate) fn wit_freeze(workspace: &Workspace) -> Result<ExitCode> {
    let wit = workspace.root.join("wit");
    let count = freeze::rewrite(&wit).with_context(|| format!("cannot freeze {}", wit.display()))?;
    println!("{} lists {count} files", wit.join(freeze::LIST).display());
    Ok(ExitCode::SUCCESS)
}

/// The exit code of a program we ran for the user, as our own.
fn code(status: ExitStatus) -> ExitCode {
    match status.code() {
        Some(code) => u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from),
        // Ended by a signal.
        None => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(args: &[&str]) -> bool {
        selects_package(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn package_selection_is_seen_before_the_separator_only() {
        assert!(selects(&["-p", "atoll-caps"]));
        assert!(selects(&["--package=atoll-caps", "name"]));
        assert!(!selects(&["name", "--", "-p"]));
        assert!(!selects(&["name"]));
    }
}
