//! Reading, writing and listing, one call each. All of it blocks; callers run it off the async threads.

use std::{
    ffi::OsString,
    io::{self, Read as _, Seek as _, Write as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use atoll_caps::{Access, LimitName};
use atoll_table::Error;
use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::fs::{Dir, FileType, Metadata, OpenOptions};

use super::{
    io_error::explain,
    open_files::Slot,
    roots::{Located, OpenError, Roots, resolve_existing},
};
use crate::trap::limit_error;

/// A directory with more names is only listed in part.
pub(super) const MAX_NAMES: usize = 1_000_000;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    File,
    Directory,
    Symlink,
    Other,
}

impl FileKind {
    pub(super) fn of(file_type: FileType) -> Self {
        if file_type.is_file() {
            Self::File
        } else if file_type.is_dir() {
            Self::Directory
        } else if file_type.is_symlink() {
            Self::Symlink
        } else {
            Self::Other
        }
    }
}

/// Facts about a file.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) kind: FileKind,
    pub(crate) size: u64,
    pub(crate) modified_ms: Option<u64>,
    pub(crate) version: String,
}

impl Facts {
    fn of(metadata: &Metadata) -> Self {
        let modified = metadata.modified().ok().map(cap_std::time::SystemTime::into_std);
        let since = modified.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        let kind = FileKind::of(metadata.file_type());
        Self {
            kind,
            size: if kind == FileKind::Directory { 0 } else { metadata.len() },
            modified_ms: since.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            version: version(metadata, since.unwrap_or_default().as_nanos()),
        }
    }
}

#[cfg(unix)]
fn version(metadata: &Metadata, nanos: u128) -> String {
    use cap_std::fs::MetadataExt as _;
    format!("{nanos:x}-{:x}-{:x}", metadata.len(), metadata.ino())
}

#[cfg(not(unix))]
fn version(metadata: &Metadata, nanos: u128) -> String {
    format!("{nanos:x}-{:x}", metadata.len())
}

/// How much is read along with opening. Most files that agents look at fit, and need no further trip to a thread
/// that may block.
pub(super) const READ_AHEAD: u64 = 64 << 10;

/// The most memory that is set aside because a file claims to be large.
const MAX_EXPECTED: u64 = 1 << 20;

/// What is set aside for a file that claims to be empty.
const LEAST_EXPECTED: u64 = 4 << 10;

/// A regular file that is open for reading.
pub(crate) struct OpenFile {
    /// The standard library's, which reads into memory that was not cleared first.
    file: std::fs::File,
    path: PathBuf,
    metadata: Metadata,
    /// Read ahead, not taken yet.
    ahead: std::collections::VecDeque<u8>,
    /// What was read ahead goes up to the file's end.
    ended: bool,
    /// The right to hold it open, for one that a plugin holds.
    _slot: Option<Slot>,
}

impl OpenFile {
    pub(super) fn new(file: std::fs::File, path: PathBuf, metadata: Metadata) -> Self {
        Self { file, path, metadata, ahead: Default::default(), ended: false, _slot: None }
    }

    pub(super) fn file(&self) -> &std::fs::File {
        &self.file
    }

    /// Makes it one that a plugin holds.
    pub(super) fn in_slot(self, slot: Slot) -> Self {
        Self { _slot: Some(slot), ..self }
    }

    /// Notes bytes that were read ahead, and whether the file ends with them.
    pub(super) fn set_ahead(&mut self, bytes: Vec<u8>, ended: bool) {
        self.ended = ended;
        self.ahead = bytes.into();
    }

    /// Its facts when it was opened.
    pub(crate) fn facts(&self) -> Facts {
        Facts::of(&self.metadata)
    }

    /// Its size when it was opened, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.metadata.len()
    }

    /// Makes it one that a plugin holds. Reads the first bytes ahead; what goes wrong will go wrong again in
    /// [`Self::read`].
    pub(crate) fn held(mut self, slot: Slot) -> Self {
        if slot.reads_ahead
            && let Ok(bytes) = self.read(READ_AHEAD)
        {
            let ended = (bytes.len() as u64) < READ_AHEAD;
            self.set_ahead(bytes, ended);
        }
        self.in_slot(slot)
    }

    /// The next bytes, if they can be had without touching the file.
    pub(crate) fn read_at_hand(&mut self, max: u64) -> Option<Vec<u8>> {
        if self.ahead.is_empty() && !self.ended {
            return None;
        }
        let length = usize::try_from(max).unwrap_or(usize::MAX).min(self.ahead.len());
        Some(self.ahead.drain(..length).collect())
    }

    /// The next bytes, up to `max`; empty at the end.
    pub(crate) fn read(&mut self, max: u64) -> Result<Vec<u8>, Error> {
        if let Some(bytes) = self.read_at_hand(max) {
            return Ok(bytes);
        }
        self.read_on(max).map_err(|error| explain("read", &self.path, &error))
    }

    fn read_on(&mut self, max: u64) -> io::Result<Vec<u8>> {
        // Room for all of it at once, and to notice its end; growing step by step would read step by step. What claims to
        // be empty may be made by the kernel as it is read, and only whole.
        let expected = match self.size() {
            0 => LEAST_EXPECTED,
            size => size.saturating_add(1),
        };
        let expected = expected.min(max).min(MAX_EXPECTED);
        let room = usize::try_from(expected).unwrap_or(0);
        let mut bytes = Vec::with_capacity(room);
        if bytes.capacity() == room {
            let read = || rustix::io::read(&self.file, rustix::buffer::spare_capacity(&mut bytes));
            let first = rustix::io::retry_on_intr(read)?;
            // A file that gave exactly what it claims to have, and less than it was asked for, has ended.
            if first == 0 || (first < room && first as u64 == self.size()) {
                return Ok(bytes);
            }
        }
        (&mut self.file).take(max.saturating_sub(bytes.len() as u64)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Moves to a byte offset from the start.
    pub(crate) fn seek(&mut self, offset: u64) -> Result<(), Error> {
        self.ahead.clear();
        self.ended = false;
        self.file.seek(io::SeekFrom::Start(offset)).map(|_| ()).map_err(|error| explain("read", &self.path, &error))
    }
}

/// How to write a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteMode {
    pub(crate) create_parents: bool,
    pub(crate) expected: Option<String>,
    pub(crate) exclusive: bool,
}

/// One name in a directory.
#[derive(Clone, Debug)]
pub(crate) struct ListedEntry {
    pub(crate) name: OsString,
    pub(crate) kind: FileKind,
    pub(crate) size: u64,
    pub(crate) is_link: bool,
}

fn read_only() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt as _;
        // Opening a pipe or a terminal must neither wait for the other side nor take it over.
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    }
    options
}

/// For looking at a file without opening it: no device and no pipe notices.
fn look_only() -> OpenOptions {
    use cap_std::fs::OpenOptionsExt as _;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_PATH);
    options
}

/// Whether a name stands for a regular file at first sight. Nothing may follow from it but to open it, beneath its root:
/// this look may go through a link that leads out.
fn seems_regular(place: &Located<'_>) -> bool {
    use rustix::fs::{AtFlags, FileType, statat};
    let flags = if place.is_file { AtFlags::SYMLINK_NOFOLLOW } else { AtFlags::empty() };
    statat(place.dir, &place.relative, flags | AtFlags::NO_AUTOMOUNT)
        .is_ok_and(|facts| FileType::from_raw_mode(facts.st_mode).is_file())
}

impl Roots {
    /// Opens a regular file for reading. Devices, pipes and sockets are refused, without being opened.
    pub(crate) fn open_file(&self, path: &str) -> Result<OpenFile, Error> {
        self.open_located(path, true)
    }

    /// As [`Self::open_file`], for a file that was a regular one a moment ago.
    pub(crate) fn open_found(&self, path: &str) -> Result<OpenFile, Error> {
        self.open_located(path, false)
    }

    fn open_located(&self, path: &str, look_first: bool) -> Result<OpenFile, Error> {
        let absolute = self.absolute(path)?;
        let (file, metadata) = self.with_located("open", &absolute, Access::Read, |place| {
            // Opening a pipe would be noticed at its other side, and opening a device may do something.
            if look_first && !seems_regular(place) {
                let metadata = self.glance(place)?;
                if !metadata.is_file() {
                    return Ok((None, metadata));
                }
            }
            let mut options = read_only();
            if place.is_file {
                // What was granted is this file, not what somebody may have put in its place since.
                options.follow(FollowSymlinks::No);
            }
            let file = place.dir.open_with(&place.relative, &options)?;
            if place.guarded {
                self.check_opened(&file, place.access)?;
            }
            let metadata = file.metadata()?;
            self.check_file(&absolute, &metadata, place.access)?;
            Ok((Some(file.into_std()), metadata))
        })?;
        match (FileKind::of(metadata.file_type()), file) {
            (FileKind::File, Some(file)) => Ok(OpenFile::new(file, absolute, metadata)),
            (FileKind::Directory, _) => Err(Error::Failed(format!("{} is a directory", absolute.display()))),
            _ => Err(Error::Failed(format!(
                "{} is a device, pipe or socket; only regular files can be read",
                absolute.display()
            ))),
        }
    }

    /// Reads a file or a part of it.
    pub(crate) fn read(&self, path: &str, range: Option<(u64, u64)>, max: u64) -> Result<Vec<u8>, Error> {
        let mut file = self.open_file(path)?;
        let wanted = match range {
            Some((offset, length)) => {
                if offset > 0 {
                    file.seek(offset)?;
                }
                length.min(file.size().saturating_sub(offset))
            }
            None => file.size(),
        };
        if wanted > max {
            return Err(limit_error(LimitName::HostCallBytes, max));
        }
        // A file that grows meanwhile, or one of those whose size is always 0, is read up to the same bound.
        let bound = range.map_or(max, |(_, length)| length.min(max));
        let mut bytes = file.read(bound.saturating_add(1))?;
        if bytes.len() as u64 > bound && range.is_none() {
            return Err(limit_error(LimitName::HostCallBytes, max));
        }
        bytes.truncate(usize::try_from(bound).unwrap_or(usize::MAX));
        Ok(bytes)
    }

    /// Facts about a path, links followed.
    pub(crate) fn facts(&self, path: &str) -> Result<Facts, Error> {
        let absolute = self.absolute(path)?;
        self.with_located("look at", &absolute, Access::Read, |place| {
            let facts = if place.guarded && !place.is_file {
                self.look(place.dir, &place.relative, place.access)?
            } else {
                self.glance(place)?
            };
            self.check_file(&absolute, &facts, place.access)?;
            Ok(facts)
        })
        .map(|metadata| Facts::of(&metadata))
    }

    /// Facts about what is beneath a directory where something of the host's own may be: what is checked is what
    /// they are about.
    fn look(&self, dir: &Dir, relative: &Path, access: Access) -> Result<Metadata, OpenError> {
        let seen = dir.open_with(relative, &look_only())?;
        self.check_opened(&seen, access)?;
        Ok(seen.metadata()?)
    }

    /// Facts without opening anything. A file that was granted by itself is not looked for where a link in its place
    /// leads.
    fn glance(&self, place: &Located<'_>) -> io::Result<Metadata> {
        let name = &place.relative;
        if place.is_file { place.dir.symlink_metadata(name) } else { place.dir.metadata(name) }
    }

    /// The names in a directory, in byte order, at most `max`; and whether there were more.
    pub(crate) fn list(&self, path: &str, max: usize) -> Result<(Vec<ListedEntry>, bool), Error> {
        let absolute = self.absolute(path)?;
        self.with_located("list", &absolute, Access::Read, |place| {
            let dir = place.dir.open_dir(&place.relative)?;
            if place.guarded {
                self.check_opened(&dir, place.access)?;
            }
            let mut names = Vec::new();
            for entry in dir.entries()?.take(MAX_NAMES) {
                let entry = entry?;
                names.push((entry.file_name(), entry.file_type()?));
            }
            let truncated = names.len() > max || names.len() == MAX_NAMES;
            names.sort_by(|a, b| a.0.cmp(&b.0));
            names.truncate(max);
            let list = |(name, file_type)| self.listed(&dir, name, file_type, place.guarded.then_some(place.access));
            Ok((names.into_iter().map(list).collect(), truncated))
        })
    }

    /// The real path of a file that may not exist yet, if it may be changed.
    pub(crate) fn real_path(&self, path: &str) -> Result<PathBuf, Error> {
        let absolute = self.absolute(path)?;
        self.locate(&absolute, Access::ReadWrite)?;
        let Some(real) = resolve_existing(&absolute) else { return Ok(absolute) };
        // Where a link leads is told only to whoever may go there.
        self.locate(&real, Access::ReadWrite)?;
        Ok(real)
    }

    /// Replaces a file as a whole.
    pub(crate) fn write(&self, path: &str, data: &[u8], mode: &WriteMode) -> Result<Facts, Error> {
        let absolute = self.absolute(path)?;
        let target = self.write_target(&absolute)?;
        if let Some(expected) = &mode.expected {
            let current = self.facts(path)?;
            if current.version != *expected {
                return Err(Error::Stale(format!(
                    "{} was changed by something else meanwhile; read it again",
                    absolute.display()
                )));
            }
        }
        let Some(name) = target.file_name() else {
            return Err(Error::Failed(format!("{} is a directory", absolute.display())));
        };
        let place = self.locate(&target, Access::ReadWrite)?;
        if place.is_file {
            // Its directory is no root, but this name in it is.
            let written = replace(place.dir, &place.relative, data, mode.exclusive);
            return written.map_err(|error| explain("write", &absolute, &error));
        }
        let parent = target.parent().unwrap_or(Path::new("/"));
        let written = self
            .with_located("write", parent, Access::ReadWrite, |place| {
                let dir =
                    if mode.create_parents { self.make_dirs(place)? } else { place.dir.open_dir(&place.relative)? };
                if place.guarded {
                    self.check_child(&dir, Path::new(name), place.access)?;
                }
                // What goes wrong from here on is about the file, not about its directory.
                Ok(replace(&dir, Path::new(name), data, mode.exclusive))
            })
            .map_err(|error| match error {
                Error::NotFound(_) => Error::NotFound(format!("the directory {} does not exist", parent.display())),
                error => error,
            })?;
        written.map_err(|error| explain("write", &absolute, &error))
    }

    /// Makes a directory and those above it, and opens it. What there is already is looked at before anything is
    /// made in it.
    fn make_dirs(&self, place: &Located<'_>) -> Result<Dir, OpenError> {
        let mut existing = place.relative.as_path();
        let mut dir = loop {
            match place.dir.open_dir(existing) {
                Ok(dir) => break dir,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    existing =
                        existing.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
                }
                Err(error) => return Err(error.into()),
            }
        };
        if existing == place.relative {
            return Ok(dir);
        }
        let missing = place.relative.strip_prefix(existing).unwrap_or(&place.relative);
        // One by one, and following no link: what is made is where it was looked at.
        for name in missing.components() {
            let name = Path::new(name.as_os_str());
            if place.guarded {
                self.check_child(&dir, name, place.access)?;
            }
            match dir.create_dir(name) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
                _ => dir = dir.open_dir_nofollow(name)?,
            }
        }
        Ok(dir)
    }

    /// Where a write to `path` really goes: the end of the links at its own name.
    fn write_target(&self, path: &Path) -> Result<PathBuf, Error> {
        let located = self.locate(path, Access::ReadWrite)?;
        match located.dir.symlink_metadata(&located.relative) {
            Ok(metadata) if metadata.is_symlink() => path.canonicalize().map_err(|_| {
                Error::Failed(format!("{} is a link that leads nowhere; remove it first", located.absolute.display()))
            }),
            _ => Ok(path.to_owned()),
        }
    }

    /// Removes a file, a link or an empty directory.
    pub(crate) fn remove(&self, path: &str) -> Result<(), Error> {
        let absolute = self.absolute(path)?;
        self.check_excluded(&absolute, Access::ReadWrite)?;
        let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
            return Err(Error::Failed("the root of the file system can not be removed".to_owned()));
        };
        // The name itself is not followed: what is removed is what stands there, be it a link.
        let removed = self.with_located("remove", parent, Access::ReadWrite, |place| {
            let dir = place.dir.open_dir(&place.relative)?;
            if place.guarded {
                self.check_child(&dir, Path::new(name), place.access)?;
            }
            let is_dir = match dir.symlink_metadata(name) {
                Ok(metadata) => metadata.is_dir(),
                Err(error) => return Ok(Err(error)),
            };
            Ok(if is_dir { dir.remove_dir(name) } else { dir.remove_file(name) })
        })?;
        removed.map_err(|error| explain("remove", &absolute, &error))
    }

    fn listed(&self, dir: &Dir, name: OsString, file_type: FileType, guarded: Option<Access>) -> ListedEntry {
        let is_link = file_type.is_symlink();
        // Followed beneath the directory only: a link that leads out stays a link, and so does one to what is the
        // host's own.
        let followed = match guarded.filter(|_| is_link) {
            Some(access) => self.look(dir, Path::new(&name), access).ok(),
            None => dir.metadata(&name).ok(),
        };
        match followed {
            Some(metadata) => {
                ListedEntry { kind: FileKind::of(metadata.file_type()), size: metadata.len(), name, is_link }
            }
            None => ListedEntry { kind: FileKind::of(file_type), size: 0, name, is_link },
        }
    }
}

/// Writes beside the file and renames over it, so that no reader ever sees a part.
fn replace(dir: &Dir, name: &Path, data: &[u8], exclusive: bool) -> io::Result<Facts> {
    let before = match dir.symlink_metadata(name) {
        Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if metadata.is_file() => {
            if exclusive {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            // A file that is write-protected is not replaced behind its owner's back.
            dir.open_with(name, &write_only())?;
            Some(metadata)
        }
        Ok(_) => {
            return Err(io::Error::other("it is a device, pipe or socket; only regular files can be written"));
        }
        Err(_) => None,
    };
    let temporary = PathBuf::from(format!(".atoll-{}.tmp", unique()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if before.is_some() {
        use cap_std::fs::OpenOptionsExt as _;
        // What replaces a private file must not be readable by others for a moment.
        options.mode(0o600);
    }
    let written = (|| {
        let mut file = dir.open_with(&temporary, &options)?;
        file.write_all(data)?;
        if let Some(before) = &before {
            keep_owner_and_mode(&file, before)?;
        }
        let facts = Facts::of(&file.metadata()?);
        dir.rename(&temporary, dir, name)?;
        Ok(facts)
    })();
    if written.is_err() {
        let _ = dir.remove_file(&temporary);
    }
    written
}

/// For finding out whether a file may be written: a link or a pipe that took its place meanwhile is neither followed
/// nor waited for.
fn write_only() -> OpenOptions {
    use cap_std::fs::OpenOptionsExt as _;
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

/// Gives a file the mode of the one it replaces, and its owner where the system lets this user.
fn keep_owner_and_mode(file: &cap_std::fs::File, before: &Metadata) -> io::Result<()> {
    use cap_std::fs::{MetadataExt as _, PermissionsExt as _};
    let now = file.metadata()?;
    if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
        use rustix::fs::{Gid, Uid};
        let _ = rustix::fs::fchown(file, Some(Uid::from_raw(before.uid())), Some(Gid::from_raw(before.gid())));
    }
    // Other content does not inherit the right to run as its owner.
    file.set_permissions(cap_std::fs::Permissions::from_mode(before.permissions().mode() & 0o777))
}

/// A name part that no other writer uses, not even one that was killed and had the same process id.
fn unique() -> String {
    use std::{
        hash::{BuildHasher as _, Hasher as _, RandomState},
        sync::atomic::{AtomicU64, Ordering},
    };
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let random = RandomState::new().build_hasher().finish();
    format!("{}-{}-{random:016x}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
