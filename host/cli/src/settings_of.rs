//! What the settings of the user and of a trusted project say together.

use atoll_agent::settings::{Settings, SettingsError};

use crate::{directories::Directories, project::Project, terminal};

/// What was said.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) settings: Settings,
    /// What a project says and only the user may.
    refused: Vec<String>,
}

impl Said {
    /// Reads the files, as they are now.
    pub(crate) fn read(directories: &Directories, project: &Project) -> Result<Self, SettingsError> {
        let user = directories.settings();
        let (settings, refused) = match project.settings() {
            Some(path) => Settings::load_with_project(&user, &path)?,
            None => (Settings::load(&user)?, Vec::new()),
        };
        Ok(Self { settings, refused })
    }

    /// Says what does not count.
    pub(crate) fn note(&self, project: &Project) {
        for key in &self.refused {
            let path = project.settings().unwrap_or_default();
            let path = path.display();
            terminal::note(format_args!("{path}: `{key}` is left out: only your own settings may say that"));
        }
    }
}
