//! Where things are.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use atoll_agent::settings::Settings;
use atoll_caps::PluginName;
use atoll_engine::{Places, spill_folder};

use crate::terminal;

/// Atoll's directory and what is in it.
#[derive(Clone, Debug)]
pub(crate) struct Directories {
    pub(crate) atoll_home: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) cache: PathBuf,
    pub(crate) cwd: PathBuf,
}

impl Directories {
    pub(crate) fn find() -> anyhow::Result<Self> {
        let home = env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let atoll_home = match env::var_os("ATOLL_HOME").filter(|path| !path.is_empty()) {
            Some(path) => std::path::absolute(path)?,
            None => home.as_ref().context("HOME is not set; set it, or ATOLL_HOME")?.join(".atoll"),
        };
        let cache = match env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute()) {
            Some(cache) => cache,
            None => home.as_ref().map_or_else(|| atoll_home.clone(), |home| home.join(".cache")),
        };
        let cwd = env::current_dir().context("the working directory does not exist any more")?;
        Ok(Self { home: home.unwrap_or_else(|| atoll_home.clone()), cache: cache.join("atoll"), atoll_home, cwd })
    }

    pub(crate) fn models(&self) -> PathBuf {
        self.atoll_home.join("models.json")
    }

    /// Values of the user's secrets.
    pub(crate) fn secrets(&self) -> PathBuf {
        self.atoll_home.join("secrets.json")
    }

    pub(crate) fn settings(&self) -> PathBuf {
        self.atoll_home.join("settings.json")
    }

    pub(crate) fn grants(&self) -> PathBuf {
        self.atoll_home.join("grants.toml")
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.atoll_home.join("audit.log")
    }

    /// What extensions log, a file for each.
    pub(crate) fn logs(&self) -> PathBuf {
        self.atoll_home.join("logs")
    }

    /// The files of one that are there.
    pub(crate) fn logs_of(&self, plugin: &PluginName) -> Vec<PathBuf> {
        let names = ["log", "log.1"].map(|ending| self.logs().join(format!("{plugin}.{ending}")));
        names.into_iter().filter(|path| path.exists()).collect()
    }

    pub(crate) fn plugins(&self) -> PathBuf {
        self.atoll_home.join("plugins")
    }

    /// Which plugins are switched off.
    pub(crate) fn plugin_state(&self) -> PathBuf {
        self.atoll_home.join("plugins.json")
    }

    /// The user's folder of extensions.
    pub(crate) fn extensions(&self) -> PathBuf {
        self.atoll_home.join("extensions")
    }

    /// What plugins of a name keep with the `store` capability: the one that is there, and scripts of that name that were
    /// named for a run, of which each has one by its place.
    pub(crate) fn stores_of(&self, plugin: &PluginName) -> Vec<PathBuf> {
        let is_its = |folder: &PathBuf| {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            name.split('@').next() == Some(plugin.as_str())
        };
        let folders = std::fs::read_dir(self.atoll_home.join("store")).into_iter().flatten().flatten();
        folders.map(|entry| entry.path()).filter(is_its).collect()
    }

    /// Which projects are trusted.
    pub(crate) fn trust(&self) -> PathBuf {
        self.atoll_home.join("trust.json")
    }

    /// The folder of this directory's sessions.
    pub(crate) fn sessions(&self, settings: &Settings) -> PathBuf {
        atoll_agent::session::folder(&self.all_sessions(settings), &self.cwd)
    }

    fn all_sessions(&self, settings: &Settings) -> PathBuf {
        settings.session_dir.clone().unwrap_or_else(|| self.atoll_home.join("sessions"))
    }

    /// The user's own folder of skills. A link is none: what it leads to would become readable without having been granted.
    fn skills(&self) -> Option<PathBuf> {
        let folder = self.atoll_home.join("skills");
        let real = folder.canonicalize().ok()?;
        if self.atoll_home.canonicalize().is_ok_and(|home| home.join("skills") == real) {
            return real.is_dir().then_some(real);
        }
        terminal::note(format_args!(
            "the skills in {} are left out: a link leads elsewhere; put the folder itself there",
            folder.display()
        ));
        None
    }

    /// What plugins are told about places, with `cwd` as the workspace and these folders of skills beside the user's.
    pub(crate) fn places(&self, settings: &Settings, cwd: &Path, skills: Vec<PathBuf>) -> Places {
        Places {
            cwd: cwd.to_owned(),
            home: self.home.clone(),
            atoll_home: self.atoll_home.clone(),
            cache: self.cache.clone(),
            sessions: self.cwd.join(self.all_sessions(settings)),
            // Not below the cache, which is out of reach of plugins: `read` has to reach what was spilled.
            spill: spill_folder(self.cache.join("spill")),
            skills: self.skills().into_iter().chain(skills).collect(),
            shell: settings.shell_path.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use atoll_caps::ConfigFile;

    /// Whatever is kept in Atoll's directory is named here or, for what is there beside it, in the list: a new file of
    /// Atoll's own makes this red until no plugin can have it.
    #[test]
    fn no_file_of_atolls_own_is_one_that_a_plugin_can_be_granted() {
        let code = include_str!("directories.rs").split("#[cfg(test)]").next().unwrap_or_default();
        let named = code.split("atoll_home.join(\"").skip(1).filter_map(|rest| rest.split('"').next());
        let named: Vec<&str> = named.chain(["history.json", "keybindings.json", "auth.json", "logs"]).collect();
        assert!(named.contains(&"secrets.json") && named.len() > 12, "{named:?}");
        for name in named {
            let stem = name.split('.').next().unwrap_or_default();
            for file in [name.to_owned(), format!("{stem}.json"), format!("{stem}.toml"), format!("{name}.json")] {
                assert!(ConfigFile::parse(&file).is_err(), "{file}");
            }
        }
    }
}
