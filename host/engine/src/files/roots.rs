//! Which directories a plugin may reach, and how a path is found beneath them.

use std::{
    io,
    path::{Path, PathBuf},
};

use atoll_caps::{Access, Denied, Effective, FilesWant, RootPattern, RootVars, ScopedRoot, Wants};
use atoll_table::Error;
use cap_std::{
    ambient_authority,
    fs::{Dir, Metadata},
};

use super::{
    at_hand::is_local,
    io_error::{explain, is_escape},
    private::Private,
    spelling::{beneath, cleaned, is_clean},
};
use crate::{approval::Once, call::check_length, state::Places};

/// A directory a plugin may reach, or a single file.
struct Root {
    /// As the grant spells it.
    given: PathBuf,
    /// With every link resolved.
    real: PathBuf,
    /// The directory, or the one the file is in.
    dir: Dir,
    /// The file's name, if it is one.
    file: Option<PathBuf>,
    access: Access,
    /// Something of the host's own is beneath `dir`, or the other way round. Otherwise no name in it can lead there.
    guarded: bool,
    /// Something beneath `dir` may be read and not changed.
    holds_project: bool,
    /// `dir` is on a disk of this machine, or in its memory.
    is_local: bool,
}

impl Root {
    /// Opens `path` beneath `within`, which is what the user named: between the two may be a link that was put
    /// there by someone else.
    fn open(root: &ScopedRoot, private: &Private) -> io::Result<Self> {
        let within = Dir::open_ambient_dir(&root.within, ambient_authority());
        let real = match root.path.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !root.path.is_symlink() => {
                let (Some(parent), Some(name)) = (root.path.parent(), root.path.file_name()) else { return Err(error) };
                parent.canonicalize()?.join(name)
            }
            real => real?,
        };
        let (dir, file) = match within {
            Ok(within) => match root.path.strip_prefix(&root.within) {
                Ok(rest) if !rest.as_os_str().is_empty() => (within.open_dir(rest)?, None),
                _ => (within, None),
            },
            // A single file, which may be yet to come. Where its name is a link, that is the file it leads to.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotADirectory | io::ErrorKind::NotFound) => {
                let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else { return Err(error) };
                if root.path != root.within {
                    return Err(error);
                }
                (Dir::open_ambient_dir(parent, ambient_authority())?, Some(PathBuf::from(name)))
            }
            Err(error) => return Err(error),
        };
        // Where `dir` is for certain; by its name it was there a moment ago.
        let found = private.place_of(&dir);
        if private.is_folder_of_skills(&root.within) && found.as_ref() != Some(&root.path) {
            return Err(io::Error::other("it has become a link, or lies behind one; put the folder itself there"));
        }
        let at = found.unwrap_or_else(|| root.within.clone());
        let guarded = private.touches(&at);
        let holds_project = private.holds_project(&at);
        let is_local = is_local(&dir);
        Ok(Self { given: cleaned(&root.path), real, dir, file, access: root.access, guarded, holds_project, is_local })
    }

    /// The path relative to `dir`, if it is this root or beneath it.
    fn relative(&self, path: &Path) -> Option<PathBuf> {
        let rest = beneath(path, &self.given).or_else(|| beneath(path, &self.real))?;
        match (&self.file, rest.as_os_str().is_empty()) {
            (Some(name), true) => Some(name.clone()),
            (Some(_), false) => None,
            (None, true) => Some(PathBuf::from(".")),
            (None, false) => Some(rest.to_owned()),
        }
    }
}

/// All of them, and what is out of reach even inside them.
pub(crate) struct Roots {
    effective: Effective,
    vars: RootVars,
    roots: Vec<Root>,
    private: Private,
    cwd: PathBuf,
    home: PathBuf,
}

/// A path beneath a root.
pub(super) struct Located<'a> {
    pub(super) dir: &'a Dir,
    /// Relative to `dir`; `.` for the root itself.
    pub(super) relative: PathBuf,
    /// What is opened may turn out to be the host's own.
    pub(super) guarded: bool,
    /// What is to be done.
    pub(super) access: Access,
    /// The root is this one file.
    pub(super) is_file: bool,
    /// `dir` is on a disk of this machine, or in its memory.
    pub(super) is_local: bool,
    /// For messages.
    pub(super) absolute: PathBuf,
}

/// Why something could not be opened.
pub(super) enum OpenError {
    /// The system says no.
    Io(io::Error),
    /// We do.
    Refused(Error),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Roots {
    /// Opens the roots that exist. A root that appears later is not seen, except the spill folder, which the
    /// host makes before anything is written there.
    pub(crate) fn open(plugin: &str, effective: &Effective, places: &Places) -> Self {
        let private = Private::new(places, effective.granted_by_name(&places.root_vars()));
        let mut roots = Vec::new();
        for root in effective.scoped_roots(&places.root_vars()) {
            match Root::open(&root, &private) {
                Ok(root) => roots.push(root),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(reason) => tracing::warn!(plugin, root = %root.path.display(), %reason, "a root can not be opened"),
            }
        }
        Self {
            effective: effective.clone(),
            vars: places.root_vars(),
            roots,
            private,
            cwd: places.cwd.clone(),
            home: places.home.clone(),
        }
    }

    /// The absolute form of a path as a plugin gives it, without `.` and `..`; links are not looked at.
    pub(super) fn absolute(&self, path: &str) -> Result<PathBuf, Error> {
        self.spelt_out(path).map(|path| self.as_stored(path))
    }

    fn spelt_out(&self, path: &str) -> Result<PathBuf, Error> {
        if path.is_empty() {
            return Err(Error::InvalidArguments("the path is empty".to_owned()));
        }
        check_length(path)?;
        if path.contains('\0') {
            return Err(Error::InvalidArguments("the path has a NUL byte in it".to_owned()));
        }
        let path = match path.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with('/') => self.home.join(rest.trim_start_matches('/')),
            _ => self.cwd.join(path.strip_prefix("./").filter(|rest| !rest.starts_with('/')).unwrap_or(path)),
        };
        Ok(if is_clean(&path) { path } else { cleaned(&path) })
    }

    /// Finds the root a path is beneath, by its spelling.
    pub(super) fn locate(&self, path: &Path, access: Access) -> Result<Located<'_>, Error> {
        self.check_excluded(path, access)?;
        self.beneath_root(path, access).ok_or_else(|| self.denied(path, access))
    }

    /// The same, without looking at the file system to say what is missing.
    pub(super) fn locate_by_name(&self, path: &Path, access: Access) -> Option<Located<'_>> {
        self.check_excluded(path, access).ok()?;
        self.beneath_root(path, access)
    }

    fn beneath_root(&self, path: &Path, access: Access) -> Option<Located<'_>> {
        self.roots.iter().filter(|root| root.access >= access).find_map(|root| {
            Some(Located {
                dir: &root.dir,
                relative: root.relative(path)?,
                guarded: root.guarded || (access == Access::ReadWrite && root.holds_project),
                access,
                is_file: root.file.is_some(),
                is_local: root.is_local,
                absolute: path.to_owned(),
            })
        })
    }

    /// Runs `open` on a path beneath its root. If a link in it leads out of that root, the path with all links
    /// resolved is tried once, for it may be beneath another root or spelt absolutely inside this one.
    pub(super) fn with_located<T>(
        &self,
        doing: &str,
        path: &Path,
        access: Access,
        open: impl Fn(&Located<'_>) -> Result<T, OpenError>,
    ) -> Result<T, Error> {
        let first = match self.locate(path, access) {
            Ok(located) => match open(&located) {
                Ok(value) => return Ok(value),
                Err(OpenError::Io(error)) if is_escape(&error) => Err(self.denied(path, access)),
                Err(OpenError::Io(error)) => return Err(explain(doing, path, &error)),
                Err(OpenError::Refused(error)) => return Err(error),
            },
            Err(denied) => Err(denied),
        };
        let Some(real) = resolve_existing(path) else { return first };
        if real == path {
            return first;
        }
        let located = self.locate(&real, access)?;
        open(&located).map_err(|error| match error {
            OpenError::Io(error) if is_escape(&error) => self.denied(&real, access),
            OpenError::Io(error) => explain(doing, path, &error),
            OpenError::Refused(error) => error,
        })
    }

    /// Refuses what turns out to be the host's own, whatever name it was opened by. Gives its real path.
    pub(super) fn check_opened(
        &self,
        opened: &impl std::os::fd::AsRawFd,
        access: Access,
    ) -> Result<PathBuf, OpenError> {
        self.private.check_opened(opened, access)
    }

    /// As [`Self::check_opened`] for reading, for a directory of a tree that was come by from above.
    pub(super) fn check_entered(&self, dir: &Dir) -> Result<(), OpenError> {
        self.private.check_entered(dir, Access::Read)
    }

    /// Refuses a name in an open directory that stands, or would stand, for something of the host's own.
    pub(super) fn check_child(&self, dir: &Dir, name: &Path, access: Access) -> Result<(), OpenError> {
        let real = self.check_opened(dir, access)?;
        self.private.check_path(&real.join(name), access).map_err(OpenError::Refused)
    }

    /// Refuses an open file that is the host's own under a second name.
    pub(super) fn check_file(&self, path: &Path, facts: &Metadata, access: Access) -> Result<(), OpenError> {
        self.private.check_file(path, facts, access).map_err(OpenError::Refused)
    }

    /// Refuses what belongs to the host itself.
    pub(super) fn check_excluded(&self, path: &Path, access: Access) -> Result<(), Error> {
        self.private.check_path(path, access)
    }

    /// A path as a plugin gave it, as it is shown and written down. Nothing is looked at.
    pub(crate) fn shown(&self, path: &str) -> String {
        self.spelt_out(path).map_or_else(|_| path.to_owned(), |path| path.to_string_lossy().into_owned())
    }

    /// What is missing to reach a path that was denied, if that is something a grant could give: the path, or what the
    /// links in it lead to. What belongs to the host itself is never offered.
    pub(crate) fn missing(&self, path: &str, access: Access) -> Option<(PathBuf, Denied)> {
        let spelt = self.absolute(path).ok()?;
        let real = resolve_existing(&spelt);
        for path in [Some(spelt), real].into_iter().flatten() {
            self.check_excluded(&path, access).ok()?;
            if let Some(denied) = self.refusal(&path, access) {
                return denied.offer.is_some().then_some((path, denied));
            }
        }
        None
    }

    /// The one thing that an answer of `once` allows: the path itself, or what it has to be made in.
    pub(crate) fn exactly(&self, denied: &Denied) -> Wants {
        let offered = denied.offer.as_ref().map(|offer| offer.wants.clone()).unwrap_or_default();
        let exact = Path::new(&denied.target);
        let narrowed = offered.files.iter().map(|want| {
            let path = grantable(exact);
            let root = path.to_str().and_then(|text| RootPattern::parse(text).ok());
            let inside = want.root.resolve(&self.vars).iter().any(|root| path.starts_with(root));
            FilesWant { root: root.filter(|_| inside).unwrap_or_else(|| want.root.clone()), ..want.clone() }
        });
        Wants { files: narrowed.collect(), ..Wants::default() }
    }

    /// What an answer of `once` would open for the sake of `path`.
    pub(crate) fn opened_once(&self, denied: &Denied, path: &Path) -> Once {
        let exactly = self.exactly(denied);
        let mut opened = exactly.files.iter().flat_map(|want| want.root.resolve(&self.vars)).peekable();
        if opened.peek().is_none() || opened.any(|root| root != path) {
            // Where a file is to be made in a directory that is not there yet, only one far above it can be opened.
            return Once::Never;
        }
        if path.is_dir() { Once::More(exactly.describe().join(", ")) } else { Once::This }
    }

    /// What would have to be granted to reach `path`.
    fn denied(&self, path: &Path, access: Access) -> Error {
        match self.refusal(path, access) {
            Some(denied) => crate::convert::denied(&denied),
            // By its spelling it is granted, but a link in it leads elsewhere.
            None => Error::Denied {
                capability: "files".to_owned(),
                target: format!("{} ({access})", path.display()),
                hint: "use a path without the link that leads out of the granted directories".to_owned(),
            },
        }
    }
}

impl Roots {
    /// What the manifest or the grant say against a path. What they would have to say is about something that exists:
    /// below it nothing can be opened.
    fn refusal(&self, path: &Path, access: Access) -> Option<Denied> {
        let denied = self.effective.check_path(&self.vars, path, access).err()?;
        let grantable = grantable(path);
        if denied.offer.is_none() || grantable == path {
            return Some(denied);
        }
        if grantable.parent().is_none() {
            // To open everything for the sake of one name would be too much.
            let hint = format!("make the directory {} first", path.parent().unwrap_or(path).display());
            return Some(Denied { hint, offer: None, ..denied });
        }
        let wider = self.effective.check_path(&self.vars, grantable, access).err()?;
        Some(Denied { target: denied.target, ..wider })
    }
}

/// What a grant for a path can name: the path, if it exists or can be made where it is, else the nearest directory above
/// it that exists.
fn grantable(path: &Path) -> &Path {
    if path.parent().is_none_or(Path::is_dir) {
        return path;
    }
    path.ancestors().skip(1).find(|path| path.is_dir()).unwrap_or(path)
}

/// The path with all links resolved; where only its end does not exist, that end is kept.
pub(super) fn resolve_existing(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    let mut tail = Vec::new();
    let mut head = path;
    loop {
        tail.push(head.file_name()?.to_owned());
        head = head.parent()?;
        // A link that leads nowhere must not be taken for a name that is free.
        if head.join(tail.last()?).is_symlink() {
            return None;
        }
        if let Ok(mut real) = head.canonicalize() {
            real.extend(tail.iter().rev());
            return Some(real);
        }
    }
}
