//! The conformance suite of the language, test262. Never part of this repository: fetched into the user's cache, from the
//! source package of an engine that Debian keeps for years.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::apt_sources;
use crate::debian_prefix::apt::{Apt, Kind};
use crate::process::{self, step};

/// The variable that tells tests where it is.
pub(crate) const VARIABLE: &str = "ATOLL_TEST262_DIR";
/// The release of Debian and its source package that hold the suite. With others, the list of known failures may be another.
const SUITE: &str = "trixie";
const PACKAGE: &str = "mozjs128";
/// Where it is in the package, and how many names that are.
const INSIDE: (&str, u32) = ("*/js/src/tests/test262", 5);
/// What of it is used: the tests, what they are built upon, and whose they are.
const USED: [&str; 5] = ["built-ins", "language", "shell.js", "LICENSE", "GIT-INFO"];
/// Large parts of it that nothing here is about.
const UNUSED: [&str; 3] = ["built-ins/Temporal", "built-ins/TypedArray*", "language/module-code"];
/// What has to be on the machine.
const PROGRAMS: [&str; 5] = ["apt-get", "apt-config", "dpkg", "tar", "xz"];
/// How long unpacking may take.
const UNPACK_TIME: Duration = Duration::from_secs(600);

/// Where the suite is, fetched first if it is not there.
///
/// # Errors
/// The machine has no apt, or none of its mirrors has the package.
pub(crate) fn ensure() -> Result<PathBuf> {
    if let Some(given) = std::env::var_os(VARIABLE) {
        return Ok(given.into());
    }
    let peers = process::cache_dir()?.join("peers");
    let folder = peers.join(format!("test262-{PACKAGE}"));
    if folder.join("shell.js").is_file() {
        return Ok(folder);
    }
    if let Some(missing) = PROGRAMS.iter().find(|name| process::find_program(name).is_none()) {
        bail!("this machine has no {missing}");
    }
    fs::create_dir_all(&peers).with_context(|| format!("cannot make {}", peers.display()))?;
    let lock = fs::File::create(peers.join("lock-test262")).context("cannot make a lock file")?;
    lock.lock().context("cannot lock the peers' folder")?;
    // Another process may have been quicker.
    if folder.join("shell.js").is_file() {
        return Ok(folder);
    }
    let work = tempfile::Builder::new().prefix("new-").tempdir_in(&peers).context("cannot make a folder")?;
    let mut reasons = Vec::new();
    for mirror in apt_sources::mirrors()? {
        match fetch(work.path(), &mirror) {
            Ok(fresh) => {
                fs::rename(fresh, &folder).with_context(|| format!("cannot move it to {}", folder.display()))?;
                return Ok(folder);
            }
            Err(error) => reasons.push(format!("{mirror}: {error:#}")),
        }
    }
    bail!("no Debian mirror of this machine has {PACKAGE} of {SUITE}: {}", reasons.join("; "))
}

/// Fetches and unpacks it below `work`.
fn fetch(work: &Path, mirror: &str) -> Result<PathBuf> {
    step(&format!("fetching test262 from {mirror} {SUITE} (once per machine, about 160 MB)"));
    let architecture = process::output(Command::new("dpkg").arg("--print-architecture"))?;
    let apt = Apt::new(work, mirror, SUITE, Kind::Source, architecture.trim())?;
    apt.update()?;
    let downloads = work.join("source");
    fs::create_dir_all(&downloads)?;
    apt.download_source(PACKAGE, &downloads)?;
    let archive = fs::read_dir(&downloads)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().contains(".orig.tar."))
        .context("the package has no archive")?;
    let fresh = work.join("suite");
    fs::create_dir_all(&fresh)?;
    let (inside, depth) = INSIDE;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(&archive).arg("-C").arg(&fresh).args(["--wildcards", "--no-same-owner"]);
    tar.arg(format!("--strip-components={depth}"));
    tar.args(UNUSED.map(|unused| format!("--exclude={inside}/{unused}")));
    tar.args(USED.map(|used| format!("{inside}/{used}")));
    let unpacked = process::bounded(&mut tar, UNPACK_TIME)?;
    if !unpacked.success() || !fresh.join("shell.js").is_file() {
        bail!("{PACKAGE} can not be unpacked: {}", unpacked.why(UNPACK_TIME));
    }
    Ok(fresh)
}
