//! What no plugin may reach, whatever name leads there: the host's own directories, and the kernel's view of
//! processes, in which every process's memory, environment and open files lie. And what none may change: the folder in
//! which a project says what Atoll is to do, which would let a tool decide about the next run.
//!
//! Nothing here may take "it could not be found out" for "it is not the host's own".

use std::{
    collections::HashSet,
    fs,
    os::{fd::AsRawFd, unix::fs::MetadataExt as _},
    path::{Path, PathBuf},
    sync::Mutex,
    time::{Duration, Instant},
};

use atoll_caps::Access;
use atoll_table::Error;
use cap_std::fs::{Dir, Metadata};

use super::{
    roots::{OpenError, resolve_existing},
    spelling::{beneath, cleaned},
};
use crate::state::{Places, lock};

/// Why the host's own is refused.
const OWN: &str = "only a grant that names the very directory would; it belongs to atoll itself";
/// Why what processes hold is refused.
const PROCESSES: &str = "only a grant that names the very place would; it shows what processes hold";
/// Why what decides about the project is refused.
const PROJECT: &str = "only a grant that names it would; it decides what atoll does in this project";
/// Where the kernel shows processes as files.
const PROC: &str = "/proc";
/// How long a list of the host's files that have several names is used. Making it means looking at all of them.
const LINKED_FOR: Duration = Duration::from_secs(1);
/// More files than that are not looked at; then every file with several names on their disk counts as the host's.
const MAX_OWN_FILES: usize = 200_000;

/// What a file is, whatever it is called: its disk and its number there.
type Identity = (u64, u64);

/// What is out of reach.
pub(crate) struct Private {
    /// The host's own directories and files: as they are called, and with every link resolved.
    own: Vec<PathBuf>,
    /// What may be read and not changed, in the same way.
    project: Vec<PathBuf>,
    /// Places in what is out of reach that the user granted by their own names, and with what access.
    by_name: Vec<(PathBuf, Access)>,
    /// Folders of skills: there to be read, wherever they are. Never what a link in their place leads to.
    skills: Vec<PathBuf>,
    /// The disk that view is on.
    proc_disk: Option<u64>,
    /// The host's files that have more than one name.
    linked: Mutex<Option<(Instant, Linked)>>,
}

/// Files with more than one name.
enum Linked {
    These(HashSet<Identity>),
    /// There are too many files to tell.
    Unknown,
}

impl Private {
    /// `named`: what the user granted by its own name.
    pub(super) fn new(places: &Places, named: Vec<(PathBuf, Access)>) -> Self {
        let mut own = Vec::new();
        for path in [&places.atoll_home, &places.cache, &places.sessions] {
            if path.as_os_str().is_empty() {
                continue;
            }
            own.push(cleaned(path));
            // It may not be there yet; what is above it may be a link all the same.
            own.extend(resolve_existing(path));
        }
        // Whoever keeps their settings elsewhere has links to them here.
        for entry in fs::read_dir(&places.atoll_home).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                own.extend(resolve_existing(&entry.path()));
            }
        }
        own.sort();
        own.dedup();
        let project = places.project();
        let project: Vec<PathBuf> = resolve_existing(&project).into_iter().chain([cleaned(&project)]).collect();
        let proc_disk = fs::metadata(PROC).ok().map(|facts| facts.dev());
        // A grant for a place elsewhere, at which somebody put a link to here, does not name what is here.
        let by_name = named
            .into_iter()
            .filter(|(path, _)| own.iter().chain(&project).any(|kept| path.starts_with(kept)) || is_below_proc(path))
            .flat_map(|(path, access)| {
                [(path.canonicalize().unwrap_or_else(|_| path.clone()), access), (cleaned(&path), access)]
            })
            .collect();
        // Of the user's own folder, the name by which the user knows it too.
        let named = places.atoll_home.join("skills");
        let is_it = |real: &PathBuf| places.skills.contains(real);
        let spelt = resolve_existing(&places.atoll_home).map(|home| home.join("skills")).filter(is_it);
        let skills = places.skills.iter().cloned().chain(spelt.map(|_| cleaned(&named))).collect();
        Self { own, project, by_name, skills, proc_disk, linked: Mutex::new(None) }
    }

    /// Whether something private may be beneath `path`, or `path` beneath something private.
    pub(super) fn touches(&self, path: &Path) -> bool {
        let proc = PathBuf::from(PROC);
        let mut kept = self.own.iter().chain([&proc]);
        kept.any(|kept| kept.starts_with(path) || path.starts_with(kept)) || self.has_own_above(path)
    }

    /// Whether something beneath `path` may be read and not changed, or `path` is beneath such a thing.
    pub(super) fn holds_project(&self, path: &Path) -> bool {
        self.project.iter().any(|kept| kept.starts_with(path) || path.starts_with(kept))
    }

    /// Whether it is a folder of skills that was there at the start.
    pub(super) fn is_folder_of_skills(&self, path: &Path) -> bool {
        self.skills.iter().any(|folder| folder == path)
    }

    /// Whether it is named by a grant, or a skill to be read.
    fn is_let_through(&self, path: &Path, access: Access) -> bool {
        let is_skill = access == Access::Read && self.skills.iter().any(|folder| beneath(path, folder).is_some());
        is_skill || self.is_granted_by_name(path, access)
    }

    fn is_granted_by_name(&self, path: &Path, access: Access) -> bool {
        self.by_name.iter().any(|(named, given)| *given >= access && beneath(path, named).is_some())
    }

    /// Refuses what is private by its name.
    pub(super) fn check_path(&self, path: &Path, access: Access) -> Result<(), Error> {
        if self.is_let_through(path, access) {
            return Ok(());
        }
        if self.own.iter().any(|kept| beneath(path, kept).is_some()) {
            return Err(refused(path, OWN));
        }
        if beneath(path, Path::new(PROC)).is_some() {
            return Err(refused(path, PROCESSES));
        }
        if access == Access::ReadWrite && self.project.iter().any(|kept| beneath(path, kept).is_some()) {
            return Err(refused(path, PROJECT));
        }
        Ok(())
    }

    /// Refuses what turns out to be private once it is open, by whatever name. Gives its real path.
    pub(super) fn check_opened(&self, opened: &impl AsRawFd, access: Access) -> Result<PathBuf, OpenError> {
        let real = self.check_place(opened, access)?;
        // The same directory may have another name: another mount of it, or another spelling where the file system
        // does not tell upper from lower case.
        if !self.is_let_through(&real, access) {
            if self.has_own_above(&real) {
                return Err(OpenError::Refused(refused(&real, OWN)));
            }
            if access == Access::ReadWrite
                && is_one_above(self.project.iter().filter_map(|path| directory(path)), &real)
            {
                return Err(OpenError::Refused(refused(&real, PROJECT)));
            }
        }
        Ok(real)
    }

    /// As [`Self::check_opened`], for a directory whose parents were all checked the same way.
    pub(super) fn check_entered(&self, dir: &Dir, access: Access) -> Result<(), OpenError> {
        use cap_std::fs::MetadataExt as _;
        let real = self.check_place(dir, access)?;
        let facts = dir.dir_metadata()?;
        if !self.is_let_through(&real, access) && self.own_directories().any(|own| own == (facts.dev(), facts.ino())) {
            return Err(OpenError::Refused(refused(&real, OWN)));
        }
        Ok(())
    }

    /// Where something open is.
    pub(super) fn place_of(&self, opened: &impl AsRawFd) -> Option<PathBuf> {
        fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd())).ok()
    }

    fn check_place(&self, opened: &impl AsRawFd, access: Access) -> Result<PathBuf, OpenError> {
        let Some(real) = self.place_of(opened) else {
            return Err(OpenError::Refused(Error::Failed(
                "what was opened can not be told from atoll's own files without /proc; mount it, or use a workspace \
                 that is not above atoll's own directories"
                    .to_owned(),
            )));
        };
        self.check_path(&real, access).map_err(OpenError::Refused)?;
        Ok(real)
    }

    fn own_directories(&self) -> impl Iterator<Item = Identity> {
        self.own.iter().filter_map(|path| directory(path))
    }

    /// Refuses an open file that is the host's own under a second name, or belongs to the kernel's view of processes.
    /// Links that are made within [`LINKED_FOR`] may be missed; a plugin has no way to make any.
    pub(super) fn check_file(&self, path: &Path, facts: &Metadata, access: Access) -> Result<(), Error> {
        use cap_std::fs::MetadataExt as _;
        if self.is_granted_by_name(path, access) {
            return Ok(());
        }
        if self.proc_disk == Some(facts.dev()) {
            return Err(refused(path, PROCESSES));
        }
        if facts.nlink() > 1 && facts.is_file() && self.is_linked((facts.dev(), facts.ino())) {
            return Err(refused(path, "nothing would; it is a second name of a file that belongs to atoll itself"));
        }
        Ok(())
    }

    /// Whether a directory of the host's own is `path` or above it.
    fn has_own_above(&self, path: &Path) -> bool {
        is_one_above(self.own_directories(), path)
    }

    fn is_linked(&self, file: Identity) -> bool {
        let mut linked = lock(&self.linked);
        let fresh = linked.take().filter(|(made, _)| made.elapsed() < LINKED_FOR);
        let (made, list) = fresh.unwrap_or_else(|| (Instant::now(), self.list_linked()));
        let found = match &list {
            Linked::These(files) => files.contains(&file),
            Linked::Unknown => {
                self.own.iter().filter_map(|path| fs::metadata(path).ok()).any(|facts| facts.dev() == file.0)
            }
        };
        *linked = Some((made, list));
        found
    }

    fn list_linked(&self) -> Linked {
        let (mut files, mut seen) = (HashSet::new(), 0);
        let mut open = self.own.clone();
        while let Some(path) = open.pop() {
            seen += 1;
            if seen > MAX_OWN_FILES {
                return Linked::Unknown;
            }
            let Ok(facts) = fs::symlink_metadata(&path) else { continue };
            if facts.is_dir() {
                open.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            } else if facts.nlink() > 1 {
                files.insert((facts.dev(), facts.ino()));
            }
        }
        Linked::These(files)
    }
}

/// A place in the kernel's view of processes, but not all of it.
fn is_below_proc(path: &Path) -> bool {
    path.starts_with(PROC) && path != Path::new(PROC)
}

/// Whether one of these directories is `path` or above it.
fn is_one_above(directories: impl Iterator<Item = Identity>, path: &Path) -> bool {
    let these: Vec<Identity> = directories.collect();
    !these.is_empty() && path.ancestors().filter_map(directory).any(|one| these.contains(&one))
}

fn directory(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().filter(fs::Metadata::is_dir).map(|facts| (facts.dev(), facts.ino()))
}

fn refused(path: &Path, why: &str) -> Error {
    Error::Denied { capability: "files".to_owned(), target: path.display().to_string(), hint: why.to_owned() }
}
