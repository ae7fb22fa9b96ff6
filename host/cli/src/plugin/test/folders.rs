//! The folders of a scenario: a workspace and a home directory, which are there for as long as it is played.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use atoll_agent::config_files::{ProjectConfig, UserConfig};
use atoll_engine::{PROJECT_FOLDER, Places};

use super::{beside, scenario::Scenario};

/// Folders that are there for as long as a scenario is played.
pub(super) struct Folders {
    _all: tempfile::TempDir,
    pub(super) root: PathBuf,
    pub(super) workspace: PathBuf,
    home: PathBuf,
}

impl Folders {
    pub(super) fn new(scenario: &Scenario) -> anyhow::Result<Self> {
        let all = tempfile::Builder::new().prefix("atoll-plugin-test-").tempdir().context("no temporary folder")?;
        let root = all.path().canonicalize()?;
        let folders = Self { workspace: root.join("workspace"), home: root.join("home"), root, _all: all };
        std::fs::create_dir_all(&folders.workspace)?;
        std::fs::create_dir_all(&folders.home)?;
        for (name, text) in &scenario.files {
            let (folder, below) = folders.place(name);
            beside::write(folder, below, text.get_ref()).with_context(|| format!("the file {name} can not be made"))?;
        }
        Ok(folders)
    }

    /// The folder that a file is in, and its name there.
    pub(super) fn place<'a>(&self, name: &'a str) -> (&Path, &'a str) {
        match name.strip_prefix("~/") {
            Some(name) => (&self.home, name),
            None => (&self.workspace, name),
        }
    }

    /// Without what differs from run to run.
    pub(super) fn plain(&self, text: &str) -> String {
        let folder = |path: &Path| path.to_string_lossy().into_owned();
        text.replace(&folder(&self.workspace), "$WORKSPACE")
            .replace(&folder(&self.home), "$HOME")
            .replace(&folder(&self.root), "$TEST")
    }

    /// The files of configuration: those of the workspace's and of the home directory's `.atoll`.
    pub(super) fn config(&self, scenario: &Scenario) -> UserConfig {
        let (directory, folder) = (self.workspace.clone(), self.workspace.join(PROJECT_FOLDER));
        let project = ProjectConfig { directory, folder, trusted: scenario.trusted };
        UserConfig::new(self.home.join(PROJECT_FOLDER), Some(project), scenario.environment.clone())
    }

    /// What plugins are told about places.
    pub(super) fn places(&self, cache: &Path) -> Places {
        Places {
            cwd: self.workspace.clone(),
            home: self.home.clone(),
            atoll_home: self.root.join("atoll"),
            cache: cache.to_owned(),
            sessions: self.root.join("sessions"),
            spill: self.root.join("spill"),
            skills: Vec::new(),
            shell: None,
        }
    }
}
