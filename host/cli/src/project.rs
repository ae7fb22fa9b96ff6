//! The project in the working directory, and whether it is trusted. Only what is trusted is read; what is left out is
//! said once.

use std::path::{Path, PathBuf};

use atoll_agent::config_files::ProjectConfig;
use atoll_caps::{Answer, DefaultTrust, TrustQuestion, TrustStore, project_resources, shell_word, skill_folders};

use atoll_engine::PROJECT_FOLDER as FOLDER;

use crate::{arguments::TrustArguments, directories::Directories, terminal};

/// What is known of the working directory.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    /// The working directory, with every link resolved.
    directory: PathBuf,
    home: PathBuf,
    is_own_home: bool,
    /// Its settings, plugins and skills count.
    pub(crate) trusted: bool,
}

/// What happens where nothing is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asking {
    /// The user is asked, at a terminal.
    Person,
    /// The user is told what is left out.
    Nobody,
    /// Nothing is said.
    Quiet,
}

impl Project {
    /// No project at all, whatever is in the directory.
    pub(crate) fn none(directories: &Directories) -> Self {
        Self { trusted: false, ..Self::at(directories) }
    }

    fn at(directories: &Directories) -> Self {
        let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let directory = resolved(&directories.cwd);
        // Where Atoll's own directory is the project's, as in the user's home, it is the user's.
        let is_own_home = resolved(&directory.join(FOLDER)) == resolved(&directories.atoll_home);
        Self { directory, home: resolved(&directories.home), is_own_home, trusted: false }
    }

    /// Whether there is anything here that counts only with trust.
    pub(crate) fn has_resources(directories: &Directories) -> bool {
        !Self::at(directories).resources(directories).is_empty()
    }

    fn resources(&self, directories: &Directories) -> Vec<PathBuf> {
        let own = if self.is_own_home { self.own() } else { directories.atoll_home.clone() };
        project_resources(&self.directory, &self.home, &own, Path::exists)
    }

    /// Decides, and asks if need be and `may_ask` allows it. `word` is what an extension of the user's says.
    pub(crate) fn decide(
        directories: &Directories,
        default: DefaultTrust,
        arguments: TrustArguments,
        word: Option<bool>,
        may_ask: bool,
    ) -> Self {
        let asking = if may_ask { Asking::Person } else { Asking::Nobody };
        Self::decided(directories, default, arguments.for_this_run().or(word), asking)
    }

    /// The same without a question or a notice.
    pub(crate) fn quietly(directories: &Directories, default: DefaultTrust, arguments: TrustArguments) -> Self {
        Self::decided(directories, default, arguments.for_this_run(), Asking::Quiet)
    }

    fn decided(directories: &Directories, default: DefaultTrust, for_this_run: Option<bool>, asking: Asking) -> Self {
        let mut project = Self::at(directories);
        let path = directories.trust();
        let saved = match TrustStore::load(&path) {
            Ok(store) => store.decision(&project.directory).map(|found| found.trusted),
            Err(error) => {
                terminal::note(format_args!("{error}"));
                None
            }
        };
        let resources = project.resources(directories);
        let question = TrustQuestion { for_this_run, saved, is_needed: !resources.is_empty(), default };
        project.trusted = match question.answer() {
            Answer::Yes => true,
            Answer::No => false,
            Answer::Ask if asking == Asking::Quiet => false,
            Answer::Ask if asking == Asking::Person && terminal::can_ask() => project.ask(&path, &resources),
            Answer::Ask => {
                let dir = shell_word(&project.directory.to_string_lossy());
                terminal::note(format_args!(
                    "this project is not trusted, so {} left out; --approve (-a) trusts it for this run, `atoll trust allow {dir}` from now on",
                    left_out(&project.directory, &resources)
                ));
                false
            }
        };
        project
    }

    fn ask(&self, store: &Path, resources: &[PathBuf]) -> bool {
        terminal::plain(format_args!(
            "The project {} brings {}. Settings and plugins of a project can change what atoll does.",
            atoll_caps::printable(&self.directory.to_string_lossy()),
            names(&self.directory, resources)
        ));
        let answer = terminal::ask("Trust it? [y] this time, [a]lways, [n]o (default), ne[v]er: ");
        let (trusted, save) = match answer.as_deref().map(str::to_lowercase).as_deref() {
            Some("y" | "yes") => (true, None),
            Some("a" | "always") => (true, Some(true)),
            Some("v" | "never") => (false, Some(false)),
            _ => (false, None),
        };
        if save.is_some()
            && let Err(error) = TrustStore::save(store, &self.directory, save)
        {
            terminal::note(format_args!("the answer holds for this run only: {error}"));
        }
        trusted
    }

    fn own(&self) -> PathBuf {
        self.directory.join(FOLDER)
    }

    fn trusted_file(&self, name: &str) -> Option<PathBuf> {
        (self.trusted && !self.is_own_home).then(|| self.own().join(name))
    }

    /// The directory that relative names in messages mean.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its settings, if they count.
    pub(crate) fn settings(&self) -> Option<PathBuf> {
        self.trusted_file("settings.json")
    }

    /// A file of its directory, if it counts.
    pub(crate) fn config_file(&self, name: &str) -> Option<PathBuf> {
        self.trusted_file(name)
    }

    /// The folder of files that it has for plugins, whether they count or not; none where that is the user's own.
    pub(crate) fn config(&self) -> Option<ProjectConfig> {
        (!self.is_own_home).then(|| ProjectConfig {
            directory: self.directory.clone(),
            folder: self.own(),
            trusted: self.trusted,
        })
    }

    /// The folder of its plugins, if they count.
    pub(crate) fn plugins(&self) -> Option<PathBuf> {
        self.trusted_file("plugins")
    }

    /// The folder that its list of extensions is about, and that holds its folder of extensions, if they count.
    pub(crate) fn extensions_base(&self) -> Option<PathBuf> {
        (self.trusted && !self.is_own_home).then(|| self.own())
    }

    /// A file that would widen the user's grants, if it could.
    pub(crate) fn grants(&self) -> Option<PathBuf> {
        self.trusted_file("grants.toml").filter(|path| path.exists())
    }

    /// Its folders of skills, if they count. A link is none: it would make readable what is behind it, which the user
    /// has not agreed to.
    pub(crate) fn skills(&self) -> Vec<PathBuf> {
        if !self.trusted {
            return Vec::new();
        }
        let mut folders: Vec<PathBuf> = self.trusted_file("skills").filter(|path| path.exists()).into_iter().collect();
        folders.extend(skill_folders(&self.directory, &self.home, Path::exists));
        folders.retain(|folder| {
            let is_real = folder.canonicalize().is_ok_and(|real| real == *folder);
            if !is_real {
                terminal::note(format_args!(
                    "the skills in {} are left out: a link leads elsewhere; put the folder itself there",
                    atoll_caps::printable(&folder.to_string_lossy())
                ));
            }
            is_real
        });
        folders
    }
}

fn names(directory: &Path, resources: &[PathBuf]) -> String {
    let shown: Vec<String> = resources
        .iter()
        .map(|path| atoll_caps::printable(&path.strip_prefix(directory).unwrap_or(path).to_string_lossy()))
        .collect();
    match shown.split_last() {
        Some((last, most)) if !most.is_empty() => format!("{} and {last}", most.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

fn left_out(directory: &Path, resources: &[PathBuf]) -> String {
    let verb = if resources.len() == 1 { "is" } else { "are" };
    format!("its {} {verb}", names(directory, resources))
}
