//! Programs of other people that tests run against. Never part of this repository: fetched into the user's cache.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use crate::process::{self, step};

/// Programs from npm's registry.
struct Peer {
    /// What npm calls them, with their versions.
    packages: &'static [&'static str],
    /// The variable that tells tests where it is.
    variable: &'static str,
    /// The name of its folder.
    folder: &'static str,
    /// What is there once it is, in that folder.
    program: &'static str,
}

const PEERS: [Peer; 3] = [
    // An independent server that speaks the wire formats of several model providers.
    Peer {
        packages: &["@copilotkit/aimock@1.43.0"],
        variable: "ATOLL_AIMOCK_DIR",
        folder: "aimock-1.43.0",
        program: "node_modules/.bin/llmock",
    },
    // The compiler that says whether declarations are TypeScript.
    Peer {
        packages: &["typescript@5.9.3"],
        variable: "ATOLL_TYPESCRIPT_DIR",
        folder: "typescript-5.9.3",
        program: "node_modules/.bin/tsc",
    },
    // MCP servers of those who wrote the protocol.
    Peer {
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
];

/// How long fetching one may take.
const FETCH_TIME: Duration = Duration::from_secs(300);

/// Fetches what is missing; the variables to give to tests. Without npm, or when one can not be had, the tests that
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
        let has_npm = Command::new("npm").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !has_npm.is_ok_and(|status| status.success()) {
            bail!("npm is not there; install Node.js with npm to run them");
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
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--prefix"])
            .arg(fresh.path())
            .args(self.packages)
            .stdin(Stdio::null());
        process::bounded(&mut npm, FETCH_TIME).context("npm could not fetch it")?;
        fs::rename(fresh.keep(), folder).with_context(|| format!("cannot move it to {}", folder.display()))
    }
}
