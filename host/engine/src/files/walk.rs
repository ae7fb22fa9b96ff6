//! Walking a tree with ignore rules, on threads of its own.
//!
//! Nothing here may open a path by its name alone: each directory is opened beneath a root that was granted.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

use atoll_caps::Access;
use atoll_table::Error;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use ignore::{
    Match,
    overrides::{Override, OverrideBuilder},
};
use tokio::sync::mpsc;

use super::{
    FileKind, Roots, Walks,
    access::MAX_NAMES,
    ignore_rules::IgnoreRules,
    io_error::explain,
    open_files::WalkPlace,
    roots::{Located, OpenError},
};
use crate::state::lock;

/// How many files a walking thread finds before it hands them on.
const BATCH: usize = 256;
/// Bytes of names that are read from a directory at once.
const NAMES_AT_ONCE: usize = 32 << 10;
/// How many batches may wait to be taken.
const QUEUE: usize = 16;
/// How long a step of a walk waits for more, once it has something.
const GATHER: Duration = Duration::from_millis(10);

/// What a walk visits.
#[derive(Clone, Debug)]
pub(crate) struct WalkPlan {
    pub(crate) root: String,
    pub(crate) respect_ignore: bool,
    pub(crate) hidden: bool,
    pub(crate) follow_links: bool,
    pub(crate) globs: Vec<String>,
    pub(crate) max_depth: Option<u32>,
    pub(crate) directories: bool,
    pub(crate) sizes: bool,
}

/// A file found by a walk, with its path relative to the walk's root.
#[derive(Clone, Debug)]
pub(crate) struct FoundFile {
    pub(crate) path: String,
    pub(crate) kind: FileKind,
    pub(crate) size: u64,
}

/// A found file with its first bytes.
#[derive(Clone, Debug)]
pub(crate) struct FoundContent {
    pub(crate) path: String,
    pub(crate) data: Vec<u8>,
    pub(crate) truncated: bool,
}

/// A walk under way. Dropped: it stops.
pub(crate) struct FileWalk {
    found: mpsc::Receiver<Vec<FoundFile>>,
    /// Received, not taken yet.
    waiting: VecDeque<FoundFile>,
    root: PathBuf,
}

/// Whether a walk goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    More,
    Stop,
}

/// What one walking thread has found. Dropped: handed on.
struct Batch {
    files: Vec<FoundFile>,
    sender: mpsc::Sender<Vec<FoundFile>>,
}

impl Batch {
    fn push(&mut self, file: FoundFile) -> Next {
        self.files.push(file);
        if self.files.len() < BATCH || self.flush() { Next::More } else { Next::Stop }
    }

    /// Hands on what there is. False if nobody wants it any more.
    fn flush(&mut self) -> bool {
        self.files.is_empty() || self.sender.blocking_send(std::mem::take(&mut self.files)).is_ok()
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Roots {
    /// Starts a walk, which takes its place among `walks`.
    pub(crate) fn walk(self: &Arc<Self>, plan: &WalkPlan, walks: &Walks) -> Result<FileWalk, Error> {
        let root = self.absolute(&plan.root)?;
        let (base, real, guarded) = self.with_located("walk", &root, Access::Read, |place| {
            let dir = place.dir.open_dir(&place.relative)?;
            let real = if place.guarded { self.check_opened(&dir, place.access)? } else { root.canonicalize()? };
            Ok((dir, real, place.guarded))
        })?;
        let mut overrides = OverrideBuilder::new(&real);
        for glob in &plan.globs {
            overrides
                .add(glob)
                .map_err(|error| Error::InvalidArguments(format!("the glob `{glob}` can not be used: {error}")))?;
        }
        let overrides = overrides.build().map_err(|error| Error::InvalidArguments(error.to_string()))?;
        let place = walks.begin()?;
        let threads = place.threads;
        let (sender, found) = mpsc::channel(QUEUE);
        let tree = Arc::new(Tree {
            roots: Arc::clone(self),
            base,
            path: real.clone(),
            guarded,
            overrides,
            global: plan.respect_ignore.then(|| IgnoreRules::of_user(&real)),
            plan: plan.clone(),
            queue: Mutex::new(Queue::default()),
            changed: Condvar::new(),
            sender,
            _place: place,
        });
        let rules = if plan.respect_ignore { IgnoreRules::above(&real) } else { None };
        lock(&tree.queue).waiting.push(Folder { relative: PathBuf::new(), rules, above: None });
        for _ in 0..threads {
            let tree = Arc::clone(&tree);
            std::thread::Builder::new()
                .name("atoll-walk".to_owned())
                .spawn(move || tree.work())
                .map_err(|error| explain("walk", &root, &error))?;
        }
        Ok(FileWalk { found, waiting: VecDeque::new(), root: real })
    }
}

/// A directory that is to be looked into.
struct Folder {
    /// Where it is beneath the walk's root; empty for the root.
    relative: PathBuf,
    /// The rules of the directories above it.
    rules: Option<Arc<IgnoreRules>>,
    /// The directories above it, where links are followed: one of them must not come again.
    above: Option<Arc<Above>>,
}

struct Above {
    identity: (u64, u64),
    above: Option<Arc<Above>>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Folder>,
    /// How many threads are looking into one, and may add more.
    busy: usize,
    ended: bool,
}

/// What the threads of a walk share. Each directory is opened beneath the walk's root by the name it was found
/// under, so that no link which takes its place meanwhile leads out.
struct Tree {
    roots: Arc<Roots>,
    base: Dir,
    /// Where `base` is.
    path: PathBuf,
    /// Something of the host's own may be beneath it.
    guarded: bool,
    overrides: Override,
    /// The user's rules for all trees.
    global: Option<IgnoreRules>,
    plan: WalkPlan,
    queue: Mutex<Queue>,
    changed: Condvar,
    sender: mpsc::Sender<Vec<FoundFile>>,
    /// Given back when the last thread has ended.
    _place: WalkPlace,
}

impl Tree {
    fn work(&self) {
        let mut batch = Batch { files: Vec::new(), sender: self.sender.clone() };
        while let Some(folder) = self.take() {
            let inner = self.look_into(&folder, &mut batch);
            let mut queue = lock(&self.queue);
            queue.busy -= 1;
            match inner {
                Some(inner) => queue.waiting.extend(inner),
                None => queue.ended = true,
            }
            self.changed.notify_all();
        }
    }

    /// The next directory; none when there will be no more.
    fn take(&self) -> Option<Folder> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.ended || (queue.busy == 0 && queue.waiting.is_empty()) {
                return None;
            }
            if let Some(folder) = queue.waiting.pop() {
                queue.busy += 1;
                return Some(folder);
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Reports what is in a directory and gives the directories in it; none if nobody wants to know any more. What
    /// can not be opened is passed over.
    fn look_into(&self, folder: &Folder, batch: &mut Batch) -> Option<Vec<Folder>> {
        if self.sender.is_closed() {
            return None;
        }
        let mut inner = Vec::new();
        let Ok(dir) = self.open(&folder.relative) else { return Some(inner) };
        let Ok(above) = self.enter(&dir, folder) else { return Some(inner) };
        let names = names_in(&dir);
        let path = self.path.join(&folder.relative);
        let rules = if self.plan.respect_ignore {
            IgnoreRules::of(&dir, &path, names.iter().map(|(name, _)| name.as_os_str()), folder.rules.as_ref())
        } else {
            None
        };
        let depth = folder.relative.components().count() + 1;
        let deeper = self.plan.max_depth.is_none_or(|most| depth < most as usize);
        if self.plan.max_depth == Some(0) {
            return Some(inner);
        }
        for (name, kind) in names {
            if name == ".git" {
                continue;
            }
            let relative = folder.relative.join(&name);
            let Some((kind, size)) = self.kind(&dir, &name, &relative, kind) else { continue };
            let is_dir = kind == FileKind::Directory;
            if self.is_left_out(&path.join(&name), &name, is_dir, rules.as_deref()) {
                continue;
            }
            if is_dir && self.guarded && self.roots.check_excluded(&path.join(&name), Access::Read).is_err() {
                continue;
            }
            if !is_dir || self.plan.directories {
                // As a plugin may give it back: see `lossy_names`.
                let mut shown = relative.to_string_lossy().into_owned();
                if is_dir {
                    shown.push('/');
                }
                if batch.push(FoundFile { path: shown, kind, size }) == Next::Stop {
                    return None;
                }
            }
            if is_dir && deeper {
                inner.push(Folder { relative, rules: rules.clone(), above: above.clone() });
            }
        }
        Some(inner)
    }

    /// Opens a directory of the tree.
    fn open(&self, relative: &Path) -> Result<Dir, OpenError> {
        let dir = if self.plan.follow_links && !relative.as_os_str().is_empty() {
            let open = |place: &Located<'_>| {
                let dir = readable_dir(place.dir, &place.relative, FollowSymlinks::Yes)?;
                if place.guarded {
                    self.roots.check_opened(&dir, place.access)?;
                }
                Ok(dir)
            };
            return self
                .roots
                .with_located("walk", &self.path.join(relative), Access::Read, open)
                .map_err(OpenError::Refused);
        } else {
            let name = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
            readable_dir(&self.base, name, FollowSymlinks::No)?
        };
        if self.guarded {
            self.roots.check_entered(&dir)?;
        }
        Ok(dir)
    }

    /// Notes a directory where links are followed; an error if it is one of those above it.
    fn enter(&self, dir: &Dir, folder: &Folder) -> Result<Option<Arc<Above>>, ()> {
        use cap_std::fs::MetadataExt as _;
        if !self.plan.follow_links {
            return Ok(None);
        }
        let facts = dir.dir_metadata().map_err(drop)?;
        let identity = (facts.dev(), facts.ino());
        let mut above = folder.above.as_ref();
        while let Some(one) = above {
            if one.identity == identity {
                return Err(());
            }
            above = one.above.as_ref();
        }
        Ok(Some(Arc::new(Above { identity, above: folder.above.clone() })))
    }

    /// What a name stands for, and its size if that was asked for. None for a link that is to be followed and
    /// leads nowhere that may be looked at.
    fn kind(&self, dir: &Dir, name: &OsStr, relative: &Path, kind: FileKind) -> Option<(FileKind, u64)> {
        if kind == FileKind::Symlink && self.plan.follow_links {
            let facts = self.roots.facts(&self.path.join(relative).to_string_lossy()).ok()?;
            return Some((facts.kind, facts.size));
        }
        let sized = self.plan.sizes && kind == FileKind::File;
        Some((kind, if sized { dir.symlink_metadata(name).map_or(0, |facts| facts.len()) } else { 0 }))
    }

    /// Whether the globs, the ignore rules or a leading dot leave something out.
    fn is_left_out(&self, path: &Path, name: &OsStr, is_dir: bool, rules: Option<&IgnoreRules>) -> bool {
        let chosen = self.overrides.matched(path, is_dir);
        if !chosen.is_none() {
            return chosen.is_ignore();
        }
        let ruled = match rules.map_or(Match::None, |rules| rules.matched(path, is_dir)) {
            Match::None => self.global.as_ref().map_or(Match::None, |global| global.matched(path, is_dir)),
            ruled => ruled,
        };
        match ruled {
            Match::Ignore(()) => true,
            Match::Whitelist(()) => false,
            Match::None => !self.plan.hidden && name.as_encoded_bytes().starts_with(b"."),
        }
    }
}

/// Opens a directory so that its names can be read from it as it is. One that is only opened to open others beneath it
/// has to be opened once more for that.
fn readable_dir(base: &Dir, name: &Path, follow: FollowSymlinks) -> io::Result<Dir> {
    let mut options = OpenOptions::new();
    options.read(true).follow(follow).custom_flags(libc::O_DIRECTORY | libc::O_NONBLOCK | libc::O_NOCTTY);
    Ok(Dir::from_std_file(base.open_with(name, &options)?.into_std()))
}

/// The names in a directory, and what they stand for. What can not be read is passed over.
fn names_in(dir: &Dir) -> Vec<(OsString, FileKind)> {
    use rustix::fs::{FileType, RawDir};
    let mut names = Vec::new();
    let mut buffer = [std::mem::MaybeUninit::uninit(); NAMES_AT_ONCE];
    let mut entries = RawDir::new(dir, &mut buffer);
    while names.len() < MAX_NAMES
        && let Some(Ok(entry)) = entries.next()
    {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Directory,
            FileType::Symlink => FileKind::Symlink,
            // Not every file system says so along with the name.
            FileType::Unknown => match dir.symlink_metadata(name) {
                Ok(facts) => FileKind::of(facts.file_type()),
                Err(_) => continue,
            },
            _ => FileKind::Other,
        };
        names.push((name.to_owned(), kind));
    }
    names
}

impl FileWalk {
    /// The next files, up to `max`; empty at the end.
    pub(crate) async fn next(&mut self, max: usize) -> Vec<FoundFile> {
        let max = max.max(1);
        let deadline = tokio::time::Instant::now() + GATHER;
        while self.waiting.len() < max {
            let batch = if self.waiting.is_empty() {
                self.found.recv().await
            } else {
                // A step costs more than what it brings, so it waits a little to bring more.
                tokio::time::timeout_at(deadline, self.found.recv()).await.unwrap_or_default()
            };
            match batch {
                Some(batch) => self.waiting.extend(batch),
                None => break,
            }
        }
        let count = self.waiting.len().min(max);
        self.waiting.drain(..count).collect()
    }

    /// Hands files back, for a later [`Self::next`].
    pub(crate) fn give_back(&mut self, files: Vec<FoundFile>) {
        for file in files.into_iter().rev() {
            self.waiting.push_front(file);
        }
    }

    /// The absolute path of a found file.
    pub(crate) fn absolute(&self, file: &FoundFile) -> String {
        self.root.join(&file.path).to_string_lossy().into_owned()
    }
}
