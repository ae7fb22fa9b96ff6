//! Programs of other people that tests run against. Never part of this repository: fetched into the user's cache.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use crate::process::{self, step};

/// Where programs are from.
#[derive(Clone, Copy)]
enum Registry {
    /// npm's registry.
    Npm,
    /// The registry of Python's packages.
    PyPi,
}

/// Programs from a registry.
struct Peer {
    registry: Registry,
    /// What they are called there, with their versions.
    packages: &'static [&'static str],
    /// The variable that tells tests where it is.
    variable: &'static str,
    /// The name of its folder.
    folder: &'static str,
    /// What is there once it is, in that folder.
    program: &'static str,
}

const PEERS: [Peer; 5] = [
    // An independent server that speaks the wire formats of several model providers.
    Peer {
        registry: Registry::Npm,
        packages: &["@copilotkit/aimock@1.43.0"],
        variable: "ATOLL_AIMOCK_DIR",
        folder: "aimock-1.43.0",
        program: "node_modules/.bin/llmock",
    },
    // The compiler that says whether declarations are TypeScript.
    Peer {
        registry: Registry::Npm,
        packages: &["typescript@5.9.3"],
        variable: "ATOLL_TYPESCRIPT_DIR",
        folder: "typescript-5.9.3",
        program: "node_modules/.bin/tsc",
    },
    // MCP servers of those who wrote the protocol.
    Peer {
        registry: Registry::Npm,
        packages: &[
            "@modelcontextprotocol/server-everything@2026.8.31",
            "@modelcontextprotocol/server-filesystem@2026.8.31",
            "@modelcontextprotocol/server-memory@2026.8.31",
            "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
        ],
        variable: "ATOLL_MCP_SERVERS_DIR",
        folder: "mcp-servers-2026.8.31",
        program: "node_modules/.bin/mcp-server-everything",
    },
    // More of them, in Python. One needs an older library than the others, and so a folder of its own.
    Peer {
        registry: Registry::PyPi,
        packages: &[
            "mcp==2.3.0",
            "mcp-server-git==2026.10.19",
            "mcp-server-time==2026.10.19",
            "mcp-server-fetch==2026.10.24",
        ],
        variable: "ATOLL_MCP_PYTHON_DIR",
        folder: "mcp-python-2026.10.24",
        program: "bin/python",
    },
    Peer {
        registry: Registry::PyPi,
        packages: &["mcp==1.30.0", "mcp-server-sqlite==2025.4.25"],
        variable: "ATOLL_MCP_SQLITE_DIR",
        folder: "mcp-sqlite-2025.4.25",
        program: "bin/python",
    },
];

/// How long fetching one may take.
const FETCH_TIME: Duration = Duration::from_secs(300);

/// Fetches what is missing; the variables to give to tests. Without npm or Python, or when one can not be had, the tests that
/// need it say that they were skipped.
pub(crate) fn ensure() -> Vec<(&'static str, PathBuf)> {
    let found = PEERS.iter().filter_map(|peer| {
        if let Some(given) = std::env::var_os(peer.variable) {
            return Some((peer.variable, given.into()));
        }
        match peer.ensure() {
            Ok(folder) => Some((peer.variable, folder)),
            Err(error) => {
                step(&format!("tests with {} will be skipped: {error:#}", peer.packages.join(", ")));
                None
            }
        }
    });
    found.collect()
}

impl Peer {
    fn ensure(&self) -> Result<PathBuf> {
        let peers = process::cache_dir()?.join("peers");
        let folder = peers.join(self.folder);
        if folder.join(self.program).exists() {
            return Ok(folder);
        }
        let (tester, argument, missing) = match self.registry {
            Registry::Npm => ("npm", "--version", "npm is not there; install Node.js with npm to run them"),
            Registry::PyPi => ("python3", "-mensurepip", "python3 is not there; install Python to run them"),
        };
        let mut has_it = Command::new(tester);
        has_it.arg(argument).stdout(Stdio::null()).stderr(Stdio::null());
        if let Registry::PyPi = self.registry {
            has_it.arg("--help");
        }
        if !has_it.status().is_ok_and(|status| status.success()) {
            bail!("{missing}");
        }
        fs::create_dir_all(&peers).with_context(|| format!("cannot make {}", peers.display()))?;
        let lock = fs::File::create(peers.join("lock")).context("cannot make a lock file")?;
        lock.lock().context("cannot lock the peers' folder")?;
        // Another process may have been quicker.
        if folder.join(self.program).exists() {
            return Ok(folder);
        }
        step(&format!("fetching {} for tests", self.packages.join(", ")));
        self.install(&peers, &folder)?;
        Ok(folder)
    }

    /// Into a folder beside the final one, which only ever appears whole.
    fn install(&self, peers: &Path, folder: &Path) -> Result<()> {
        let fresh = tempfile::Builder::new().prefix("new-").tempdir_in(peers).context("cannot make a folder")?;
        match self.registry {
            Registry::Npm => {
                let mut npm = Command::new("npm");
                npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--prefix"])
                    .arg(fresh.path())
                    .args(self.packages)
                    .stdin(Stdio::null());
                fetched(&mut npm)?;
            }
            Registry::PyPi => {
                // What pip writes for a shell names this folder, which is moved: modules are run by `python -m`.
                let mut venv = Command::new("python3");
                venv.args(["-m", "venv"]).arg(fresh.path()).stdin(Stdio::null());
                fetched(&mut venv)?;
                let mut pip = Command::new(fresh.path().join(self.program));
                pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"])
                    .args(self.packages)
                    .stdin(Stdio::null());
                fetched(&mut pip)?;
            }
        }
        fs::rename(fresh.keep(), folder).with_context(|| format!("cannot move it to {}", folder.display()))
    }
}

/// Runs what fetches something, to a good end.
fn fetched(command: &mut Command) -> Result<()> {
    let ended = process::bounded(command, FETCH_TIME)?;
    if !ended.success() {
        let last = ended.text.lines().last().unwrap_or_default().to_owned();
        bail!("{} could not fetch it: {last}", command.get_program().to_string_lossy());
    }
    Ok(())
}
