//! Running other programs: one way to start cargo, one way to report failure, one way to bound the time.

use std::ffi::{OsStr, OsString};
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Says on stderr what is being done; for steps that take long.
pub(crate) fn step(message: &str) {
    eprintln!("xtask: {message}");
}

/// A cargo command in `root`, the same cargo that started this program.
///
/// `cargo run` leaves variables about *this* package in the environment. Build scripts of some dependencies ask to
/// be rerun when those change, so they are removed: a plain `cargo build` and one started here must share their work.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    for (name, _) in std::env::vars_os() {
        if describes_running_package(&name) {
            command.env_remove(name);
        }
    }
    command
}

fn describes_running_package(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        name.starts_with("CARGO_PKG_")
            || name.starts_with("CARGO_MANIFEST_")
            || matches!(name, "CARGO_BIN_NAME" | "CARGO_CRATE_NAME" | "CARGO_PRIMARY_PACKAGE")
    })
}

/// The command as a person would type it, without its environment.
pub(crate) fn display(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs a command with our own stdin, stdout and stderr.
///
/// # Errors
/// The program cannot be started.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    command.status().with_context(|| format!("cannot start `{}`", display(command)))
}

/// Runs a command that shows its own errors.
///
/// # Errors
/// The program cannot be started, or ends with anything but success.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = status(command)?;
    if !status.success() {
        bail!("`{}` failed ({status}); its output is above", display(command));
    }
    Ok(())
}

/// Runs a command and returns its standard output.
///
/// # Errors
/// The program cannot be started, fails (the error carries one line of its stderr) or prints no UTF-8.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start `{}`", display(command)))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed ({}): {}", display(command), output.status, reason(&stderr));
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` printed something that is not UTF-8", display(command)))
}

/// How a command with a time limit ended.
#[derive(Debug)]
pub(crate) struct Bounded {
    /// `None` when the time ran out and the program was killed.
    pub(crate) status: Option<ExitStatus>,
    /// Standard output and standard error together.
    pub(crate) text: String,
}

impl Bounded {
    /// Whether the program ended by itself, successfully.
    pub(crate) fn success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// The one line that says why it did not: what it printed, or that it took longer than this.
    pub(crate) fn why(&self, limit: Duration) -> String {
        match self.status {
            Some(_) => reason(&self.text).to_owned(),
            None => format!("it took more than {} s", limit.as_secs()),
        }
    }
}

/// Runs a command for at most `limit`, without input, and collects what it prints.
///
/// Only the program itself is killed at the limit, not what it may have started.
///
/// # Errors
/// The program cannot be started or waited for, or there is no place for a temporary file.
pub(crate) fn bounded(command: &mut Command, limit: Duration) -> Result<Bounded> {
    // A file, not a pipe: nobody has to drain it while we wait.
    let mut log = tempfile::tempfile().context("cannot make a temporary file for a program's output")?;
    let (out, err) = (log.try_clone()?, log.try_clone()?);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn()
        .with_context(|| format!("cannot start `{}`", display(command)))?;
    let deadline = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if Instant::now() >= deadline {
            // It may have ended between the two lines; either way there is nothing left to do about it.
            let _ = child.kill();
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let mut bytes = Vec::new();
    log.rewind()?;
    log.read_to_end(&mut bytes)?;
    Ok(Bounded { status, text: String::from_utf8_lossy(&bytes).into_owned() })
}

/// The one line of a failed program's output that says most: its first error, else its last words.
pub(crate) fn reason(output: &str) -> &str {
    let lines = || output.lines().map(str::trim);
    lines()
        // `E: ` is apt's.
        .find_map(|line| line.strip_prefix("error: ").or_else(|| line.strip_prefix("E: ")))
        .or_else(|| lines().rfind(|line| !line.is_empty()))
        .unwrap_or("it printed nothing")
}

/// The first file called `name` in the directories of PATH.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|candidate| candidate.is_file())
}

/// PATH with these directories in front.
///
/// # Errors
/// A directory's name holds the separator of PATH.
pub(crate) fn path_with(first: &[PathBuf]) -> Result<OsString> {
    let rest = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(first.iter().cloned().chain(std::env::split_paths(&rest)))
        .context("a directory of the toolchain has a name that cannot be on PATH: move it")
}

/// The directory for what we keep between runs: `$XDG_CACHE_HOME/atoll`, else `~/.cache/atoll`.
///
/// # Errors
/// Neither variable is usable.
pub(crate) fn cache_dir() -> Result<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("atoll"))
        .context("no cache directory: neither XDG_CACHE_HOME nor HOME is an absolute path; set one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_kills_at_the_limit() {
        let started = Instant::now();
        let ended = bounded(Command::new("sleep").arg("30"), Duration::from_millis(200)).unwrap();
        assert!(ended.status.is_none());
        assert!(!ended.success());
        assert!(started.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn bounded_collects_both_outputs() {
        let ended =
            bounded(Command::new("sh").args(["-c", "echo one; echo two >&2"]), Duration::from_secs(10)).unwrap();
        assert!(ended.success());
        assert!(ended.text.contains("one") && ended.text.contains("two"));
    }

    #[test]
    fn output_names_the_program_and_its_last_words() {
        let error = output(Command::new("sh").args(["-c", "echo first >&2; echo why >&2; exit 3"])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("sh") && text.contains("why") && !text.contains("first >&2\n"), "{text}");
    }

    #[test]
    fn reason_is_one_line() {
        assert_eq!(
            reason("info: downloading\nerror: could not download\n\nCaused by:\n  timed out\n"),
            "could not download"
        );
        assert_eq!(reason("Ign:1 x\nE: Failed to fetch x\nE: Some index files failed\n"), "Failed to fetch x");
        assert_eq!(reason("first\nlast words\n\n"), "last words");
        assert_eq!(reason(""), "it printed nothing");
    }

    #[test]
    fn variables_about_this_package_are_recognised() {
        assert!(describes_running_package(OsStr::new("CARGO_PKG_VERSION")));
        assert!(describes_running_package(OsStr::new("CARGO_MANIFEST_DIR")));
        assert!(!describes_running_package(OsStr::new("CARGO_HOME")));
        assert!(!describes_running_package(OsStr::new("CARGO_TARGET_DIR")));
    }
}
