//! Which directories a plugin may reach, and how a path is found beneath them.

use std::{
    io,
    path::{Component, Path, PathBuf},
};

use atoll_caps::{Access, Effective, RootVars, ScopedRoot};
use atoll_table::Error;
use cap_std::{ambient_authority, fs::Dir};

use super::io_error::{explain, is_escape};
use crate::state::Places;

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
}

impl Root {
    /// Opens `path` beneath `within`, which is what the user named: between the two may be a link that was put
    /// there by someone else.
    fn open(root: &ScopedRoot, excluded: &[PathBuf]) -> io::Result<Self> {
        let within = Dir::open_ambient_dir(&root.within, ambient_authority());
        let real = root.path.canonicalize()?;
        let (dir, file) = match within {
            Ok(within) => match root.path.strip_prefix(&root.within) {
                Ok(rest) if !rest.as_os_str().is_empty() => (within.open_dir(rest)?, None),
                _ => (within, None),
            },
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else { return Err(error) };
                (Dir::open_ambient_dir(parent, ambient_authority())?, Some(PathBuf::from(name)))
            }
            Err(error) => return Err(error),
        };
        let base = if file.is_some() { real.parent().unwrap_or(&real) } else { &real };
        // `dir` is beneath `within` for certain; that it is at `real` too was true a moment ago.
        let bounds = [base.to_owned(), root.within.canonicalize().unwrap_or_else(|_| root.within.clone())];
        let guarded = excluded.iter().any(|kept| bounds.iter().any(|at| kept.starts_with(at) || at.starts_with(kept)));
        Ok(Self { given: cleaned(&root.path), real, dir, file, access: root.access, guarded })
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
    excluded: Vec<PathBuf>,
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
        let excluded = [&places.atoll_home, &places.cache]
            .into_iter()
            .filter(|path| !path.as_os_str().is_empty())
            .flat_map(|path| [path.clone(), path.canonicalize().unwrap_or_else(|_| path.clone())])
            .map(|path| cleaned(&path))
            .collect::<Vec<_>>();
        let mut roots = Vec::new();
        for root in effective.scoped_roots(&places.root_vars()) {
            match Root::open(&root, &excluded) {
                Ok(root) => roots.push(root),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(reason) => tracing::warn!(plugin, root = %root.path.display(), %reason, "a root can not be opened"),
            }
        }
        Self {
            effective: effective.clone(),
            vars: places.root_vars(),
            roots,
            excluded,
            cwd: places.cwd.clone(),
            home: places.home.clone(),
        }
    }

    /// The absolute form of a path as a plugin gives it, without `.` and `..`; links are not looked at.
    pub(super) fn absolute(&self, path: &str) -> Result<PathBuf, Error> {
        if path.is_empty() {
            return Err(Error::InvalidArguments("the path is empty".to_owned()));
        }
        if path.contains('\0') {
            return Err(Error::InvalidArguments("the path has a NUL byte in it".to_owned()));
        }
        let path = match path.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with('/') => self.home.join(rest.trim_start_matches('/')),
            _ => self.cwd.join(path.strip_prefix("./").filter(|rest| !rest.starts_with('/')).unwrap_or(path)),
        };
        let clean = if is_clean(&path) { path } else { cleaned(&path) };
        Ok(self.as_stored(clean))
    }

    /// Finds the root a path is beneath, by its spelling.
    pub(super) fn locate(&self, path: &Path, access: Access) -> Result<Located<'_>, Error> {
        self.check_excluded(path)?;
        for root in &self.roots {
            if root.access < access {
                continue;
            }
            if let Some(relative) = root.relative(path) {
                return Ok(Located { dir: &root.dir, relative, guarded: root.guarded, absolute: path.to_owned() });
            }
        }
        Err(self.denied(path, access))
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

    /// Refuses what turns out to be the host's own, whatever name it was opened by.
    pub(super) fn check_opened(&self, opened: &impl std::os::fd::AsRawFd) -> Result<(), OpenError> {
        match std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd())) {
            Ok(real) => self.check_excluded(&real).map_err(OpenError::Refused),
            Err(_) => Ok(()),
        }
    }

    /// The directories that may be read, with every link resolved, and those that are out of reach even so.
    pub(super) fn readable(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        (self.roots.iter().map(|root| root.real.clone()).collect(), self.excluded.clone())
    }

    /// Refuses what belongs to the host itself.
    pub(super) fn check_excluded(&self, path: &Path) -> Result<(), Error> {
        if self.excluded.iter().any(|kept| beneath(path, kept).is_some()) {
            return Err(Error::Denied {
                capability: "files".to_owned(),
                target: path.display().to_string(),
                hint: "look at it outside of atoll; what belongs to atoll itself is granted to no plugin".to_owned(),
            });
        }
        Ok(())
    }

    /// What would have to be granted to reach `path`.
    fn denied(&self, path: &Path, access: Access) -> Error {
        match self.effective.check_path(&self.vars, path, access) {
            Err(denied) => crate::convert::denied(&denied),
            // By its spelling it is granted, but a link in it leads elsewhere.
            Ok(()) => Error::Denied {
                capability: "files".to_owned(),
                target: format!("{} ({access})", path.display()),
                hint: "use a path without the link that leads out of the granted directories".to_owned(),
            },
        }
    }
}

/// What follows `folder` in a path beneath it, both without `.` and `..`. Most folders are told apart by their bytes;
/// a search asks this for every file.
fn beneath<'a>(path: &'a Path, folder: &Path) -> Option<&'a Path> {
    let same = path.as_os_str().as_encoded_bytes().strip_prefix(folder.as_os_str().as_encoded_bytes());
    same.and_then(|_| path.strip_prefix(folder).ok())
}

/// Whether an absolute path has no `.`, `..` or empty name in it.
fn is_clean(path: &Path) -> bool {
    let names = path.as_os_str().as_encoded_bytes().strip_prefix(b"/");
    names.is_some_and(|names| names.split(|&byte| byte == b'/').all(|name| !matches!(name, b"" | b"." | b"..")))
}

/// A path without `.` and `..`.
fn cleaned(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    clean
}

/// The path with all links resolved; where only its end does not exist, that end is kept.
fn resolve_existing(path: &Path) -> Option<PathBuf> {
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
