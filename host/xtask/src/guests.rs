//! Compiling the guests: to components, then ahead of time to images that the host maps.

use std::ffi::OsString;

use anyhow::{Result, bail};

use crate::guest_toolchain::{GuestToolchain, TARGET};
use crate::process::{self, step};
use crate::workspace::{Guest, Profile, Workspace};

/// Compiles all guests and their images. Whether anything has to be done is for cargo and `atoll-aot` to say.
///
/// # Errors
/// There is no guest, one does not compile, or an image cannot be made.
pub(crate) fn build(workspace: &Workspace, toolchain: &GuestToolchain, profile: Profile) -> Result<()> {
    let guests = workspace.guests();
    if guests.is_empty() {
        bail!("no guest to compile: no member below guest-tools/ or guest-extensions/ is a cdylib");
    }
    compile(workspace, toolchain, &guests)?;
    images(workspace, &guests, profile)
}

/// One cargo invocation for all guests, so that their dependencies are compiled once.
fn compile(workspace: &Workspace, toolchain: &GuestToolchain, guests: &[Guest]) -> Result<()> {
    step(&format!("compiling {} guests", guests.len()));
    let mut command = process::cargo(&workspace.root);
    command
        .args(["build", "--lib", "--target", TARGET, "--profile", "guest", "--target-dir"])
        .arg(workspace.guest_target())
        .args(workspace.locked())
        .args(guests.iter().flat_map(|guest| ["--package", &guest.package]))
        // Flags meant for the host (a CPU, a linker) would reach the guests, and would hide the target's own flags.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .envs(toolchain.env.iter().map(|(name, value)| (name, value)));
    process::run(&mut command)?;
    if let Some(missing) = guests.iter().find(|guest| !guest.wasm.is_file()) {
        bail!("{} was compiled, but {} is not there", missing.package, missing.wasm.display());
    }
    Ok(())
}

/// Runs the ahead-of-time compiler, which is part of the engine so that it compiles for exactly the engine's settings.
fn images(workspace: &Workspace, guests: &[Guest], profile: Profile) -> Result<()> {
    step("building the ahead-of-time compiler");
    host_binary(workspace, profile, "atoll-aot")?;
    let mut command = std::process::Command::new(workspace.binary(profile, "atoll-aot"));
    command.current_dir(&workspace.root).arg("--out").arg(workspace.guest_target().join("images"));
    let built_in = || guests.iter().filter(|guest| guest.built_in);
    for name in built_in().filter(|guest| guest.pre_initialised).filter_map(|guest| guest.directory.file_name()) {
        command.arg("--pre-initialise").arg(name);
    }
    for guest in built_in() {
        let mut pair = OsString::from(&guest.directory);
        pair.push("=");
        pair.push(&guest.wasm);
        command.arg(pair);
    }
    process::run(&mut command)
}

/// Builds one binary of the host.
///
/// Cargo unifies features over the packages that are selected, so building `atoll-engine` alone and then `atoll`
/// could compile the sandbox twice. The selection is therefore the same for every binary of a profile, and `--bin`
/// picks what is built: everything for the dev profile, as `cargo test --workspace` does, and only what is shipped
/// for release.
///
/// # Errors
/// It does not compile.
pub(crate) fn host_binary(workspace: &Workspace, profile: Profile, name: &str) -> Result<()> {
    let mut command = process::cargo(&workspace.root);
    command.arg("build").args(workspace.locked());
    match profile {
        Profile::Dev => command.args(["--workspace", "--exclude", "xtask"]),
        Profile::Release => {
            command.args(["--release", "--package", "atoll", "--package", "atoll-engine", "--package", "atoll-tests"])
        }
    };
    process::run(command.args(["--bin", name]))
}
