//! An apt of our own: it knows one suite of one mirror, and neither reads nor changes what the system's knows.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::closure::{Dependencies, parse_depends};
use crate::process;

/// The keyring that knows the keys of coming releases too.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// What is fetched of a suite.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Packages to run.
    Binary,
    /// What they are built from.
    Source,
}

/// An apt that shares nothing with the system's but its settings for reaching servers.
pub(crate) struct Apt {
    config: PathBuf,
}

impl Apt {
    pub(crate) fn new(work: &Path, mirror: &str, suite: &str, kind: Kind, architecture: &str) -> Result<Self> {
        let home = work.join("apt");
        for directory in ["state/lists/partial", "cache/archives/partial", "etc"] {
            fs::create_dir_all(home.join(directory))?;
        }
        fs::write(home.join("status"), "")?;
        let signed_by = if Path::new(KEYRING).is_file() { format!("[signed-by={KEYRING}] ") } else { String::new() };
        let kind = match kind {
            Kind::Binary => "deb",
            Kind::Source => "deb-src",
        };
        fs::write(home.join("sources.list"), format!("{kind} {signed_by}{mirror} {suite} main\n"))?;
        let system = process::output(Command::new("apt-config").arg("dump"))?;
        let config = home.join("apt.conf");
        fs::write(&config, apt_conf(&home, architecture, &system))?;
        Ok(Self { config })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", &self.config).env("LC_ALL", "C");
        command
    }

    pub(crate) fn update(&self) -> Result<()> {
        process::output(self.command("apt-get").args(["-q", "-o", "APT::Update::Error-Mode=any", "update"])).map(drop)
    }

    /// What these packages need, and what that needs.
    pub(super) fn depends(&self, roots: &[&str]) -> Result<Dependencies> {
        let listing = process::output(
            self.command("apt-cache")
                .args(["depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts"])
                .args(["--no-breaks", "--no-replaces", "--no-enhances"])
                .args(roots),
        )
        .context("the mirror does not have these packages")?;
        Ok(parse_depends(&listing))
    }

    pub(super) fn download(&self, packages: &BTreeSet<String>, directory: &Path) -> Result<()> {
        process::output(self.command("apt-get").args(["-q", "download"]).args(packages).current_dir(directory))
            .map(drop)
    }

    /// The archives of a source package, which apt checks and does not unpack.
    pub(crate) fn download_source(&self, package: &str, directory: &Path) -> Result<()> {
        process::output(
            self.command("apt-get").args(["-q", "source", "--download-only", package]).current_dir(directory),
        )
        .map(drop)
    }
}

/// The private configuration: own directories, no hooks, and the system's `Acquire` settings (proxies, checks of
/// dates), which say how this machine reaches its servers. Index targets are left to apt's defaults: others would be
/// fetched for nothing.
fn apt_conf(home: &Path, architecture: &str, system_dump: &str) -> String {
    let home = home.display();
    let mut text = format!(
        "Dir::State \"{home}/state\";\nDir::State::status \"{home}/status\";\nDir::Cache \"{home}/cache\";\n\
         Dir::Etc::sourcelist \"{home}/sources.list\";\nDir::Etc::sourceparts \"/dev/null\";\n\
         Dir::Etc::main \"/dev/null\";\nDir::Etc::parts \"/dev/null\";\nDir::Etc::preferences \"/dev/null\";\n\
         Dir::Etc::preferencesparts \"/dev/null\";\nAPT::Sandbox::User \"root\";\n\
         APT::Architecture \"{architecture}\";\nAPT::Architectures {{ \"{architecture}\"; }};\n"
    );
    for line in system_dump.lines() {
        let setting = line.starts_with("Acquire::")
            && !line.starts_with("Acquire::IndexTargets")
            && !line.starts_with("Acquire::Languages")
            && !line.starts_with("Acquire::CompressionTypes");
        if setting {
            text.push_str(line);
            text.push('\n');
        }
    }
    text.push_str("Acquire::Languages \"none\";\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_configuration_keeps_how_to_reach_servers_and_drops_hooks() {
        let dump = "Acquire::http::Proxy \"http://p:1\";\nAcquire::Check-Date \"false\";\n\
                    Acquire::IndexTargets::deb::DEP-11 \"\";\nAPT::Update::Post-Invoke:: \"rm -f x\";\nDir \"/\";\n";
        let text = apt_conf(Path::new("/private"), "arm64", dump);
        assert!(text.contains("Acquire::http::Proxy \"http://p:1\";"));
        assert!(text.contains("Acquire::Check-Date \"false\";"));
        assert!(text.contains("APT::Architecture \"arm64\";"));
        assert!(!text.contains("DEP-11") && !text.contains("Post-Invoke") && !text.contains("Dir \"/\""));
    }
}
