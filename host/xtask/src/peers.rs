//! Programs of other people that tests run against. Never part of this repository: fetched into the user's cache.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use crate::process::{self, step};

/// An independent server that speaks the wire formats of several model providers.
const AIMOCK: &str = "@copilotkit/aimock@1.43.0";
/// The variable that tells tests where it is.
const AIMOCK_VARIABLE: &str = "ATOLL_AIMOCK_DIR";
/// How long fetching it may take.
const FETCH_TIME: Duration = Duration::from_secs(300);

/// Fetches what is missing; the variables to give to tests. Without npm, or when it can not be had, the tests that
/// need it say that they were skipped.
pub(crate) fn ensure() -> Vec<(&'static str, PathBuf)> {
    if let Some(given) = std::env::var_os(AIMOCK_VARIABLE) {
        return vec![(AIMOCK_VARIABLE, given.into())];
    }
    match aimock() {
        Ok(folder) => vec![(AIMOCK_VARIABLE, folder)],
        Err(error) => {
            step(&format!("tests against {AIMOCK} will be skipped: {error:#}"));
            Vec::new()
        }
    }
}

fn aimock() -> Result<PathBuf> {
    let peers = process::cache_dir()?.join("peers");
    let folder = peers.join("aimock-1.43.0");
    if folder.join("node_modules/.bin/llmock").exists() {
        return Ok(folder);
    }
    let has_npm = Command::new("npm").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !has_npm.is_ok_and(|status| status.success()) {
        bail!("npm is not there; install Node.js with npm to run them");
    }
    fs::create_dir_all(&peers).with_context(|| format!("cannot make {}", peers.display()))?;
    let lock = fs::File::create(peers.join("lock")).context("cannot make a lock file")?;
    lock.lock().context("cannot lock the peers' folder")?;
    // Another process may have been quicker.
    if folder.join("node_modules/.bin/llmock").exists() {
        return Ok(folder);
    }
    step(&format!("fetching {AIMOCK} for tests"));
    install(&peers, &folder)?;
    Ok(folder)
}

/// Into a folder beside the final one, which only ever appears whole.
fn install(peers: &Path, folder: &Path) -> Result<()> {
    let fresh = tempfile::Builder::new().prefix("new-").tempdir_in(peers).context("cannot make a folder")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--prefix"])
        .arg(fresh.path())
        .arg(AIMOCK)
        .stdin(Stdio::null());
    process::bounded(&mut npm, FETCH_TIME).context("npm could not fetch it")?;
    fs::rename(fresh.keep(), folder).with_context(|| format!("cannot move it to {}", folder.display()))
}
