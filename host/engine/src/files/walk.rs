//! Walking a tree with ignore rules, on a thread of its own.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    time::Duration,
};

use atoll_caps::Access;
use atoll_table::Error;
use ignore::{WalkBuilder, WalkState, overrides::OverrideBuilder};
use tokio::sync::mpsc;

use super::{FileKind, Roots, ignore_files::unusable, io_error::explain};

/// How many files a walking thread finds before it hands them on.
const BATCH: usize = 256;
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

/// What one walking thread has found. Dropped: handed on.
struct Batch {
    files: Vec<FoundFile>,
    sender: mpsc::Sender<Vec<FoundFile>>,
}

impl Batch {
    fn push(&mut self, file: FoundFile) -> WalkState {
        self.files.push(file);
        if self.files.len() < BATCH || self.flush() { WalkState::Continue } else { WalkState::Quit }
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
    /// Starts a walk.
    pub(crate) fn walk(&self, plan: &WalkPlan) -> Result<FileWalk, Error> {
        let root = self.absolute(&plan.root)?;
        // Opened beneath its root first: what may not be listed may not be walked.
        let real = self.with_located("walk", &root, Access::Read, |place| {
            let dir = place.dir.open_dir(&place.relative)?;
            self.check_opened(&dir, place.access)?;
            Ok(root.canonicalize()?)
        })?;
        self.locate(&real, Access::Read)?;
        let (sender, found) = mpsc::channel(QUEUE);
        let (directories, sizes) = (plan.directories, plan.sizes);
        let (respect_ignore, follow_links) = (plan.respect_ignore, plan.follow_links);
        if respect_ignore && let Some(file) = real.ancestors().find_map(unusable) {
            return Err(Error::Failed(format!(
                "{} can not be taken for ignore rules: it is longer than 64 KiB, or a pipe or device; remove or shorten it",
                file.display()
            )));
        }
        let (readable, out_of_reach) = (self.readable(), self.out_of_reach());
        let (base, passed_over) = (real.clone(), sender.clone());
        let mut overrides = OverrideBuilder::new(&real);
        for glob in &plan.globs {
            overrides
                .add(glob)
                .map_err(|error| Error::InvalidArguments(format!("the glob `{glob}` can not be used: {error}")))?;
        }
        let overrides = overrides.build().map_err(|error| Error::InvalidArguments(error.to_string()))?;
        let mut builder = WalkBuilder::new(&real);
        builder
            .standard_filters(respect_ignore)
            .require_git(false)
            .hidden(!plan.hidden)
            .follow_links(follow_links)
            .max_depth(plan.max_depth.map(|depth| depth as usize))
            .overrides(overrides)
            .threads(std::thread::available_parallelism().map_or(2, std::num::NonZero::get))
            .filter_entry(move |entry| {
                let beneath = |folders: &[PathBuf], path: &Path| folders.iter().any(|folder| path.starts_with(folder));
                if entry.file_name() == ".git" || out_of_reach.has(entry.path()) {
                    return false;
                }
                // A link is only followed to what could be named directly.
                let allowed = !follow_links
                    || !entry.path_is_symlink()
                    || entry
                        .path()
                        .canonicalize()
                        .is_ok_and(|real| beneath(&readable, &real) && !out_of_reach.has(&real));
                if allowed
                    && respect_ignore
                    && entry.file_type().is_some_and(|kind| kind.is_dir())
                    && let Some(file) = unusable(entry.path())
                {
                    // Nothing in it can be told apart from what its rules leave out; only itself is shown.
                    tracing::warn!(file = %file.display(), "not taken for ignore rules; its directory is passed over");
                    if let Some(directory) = describe(entry, &base, directories, sizes) {
                        let _ = passed_over.blocking_send(vec![directory]);
                    }
                    return false;
                }
                allowed
            });
        let base = real.clone();
        std::thread::Builder::new()
            .name("atoll-walk".to_owned())
            .spawn(move || {
                builder.build_parallel().run(|| {
                    let mut batch = Batch { files: Vec::new(), sender: sender.clone() };
                    let base = base.clone();
                    Box::new(move |entry| {
                        match entry.ok().and_then(|entry| describe(&entry, &base, directories, sizes)) {
                            Some(file) => batch.push(file),
                            None => WalkState::Continue,
                        }
                    })
                });
            })
            .map_err(|error| explain("walk", &root, &error))?;
        Ok(FileWalk { found, waiting: VecDeque::new(), root: real })
    }
}

fn describe(entry: &ignore::DirEntry, base: &Path, directories: bool, sizes: bool) -> Option<FoundFile> {
    let relative = entry.path().strip_prefix(base).ok()?;
    if relative.as_os_str().is_empty() {
        return None;
    }
    let file_type = entry.file_type()?;
    let mut path = relative.to_string_lossy().into_owned();
    let kind = if file_type.is_dir() {
        if !directories {
            return None;
        }
        path.push('/');
        FileKind::Directory
    } else if file_type.is_file() {
        FileKind::File
    } else if file_type.is_symlink() {
        FileKind::Symlink
    } else {
        FileKind::Other
    };
    let size = if sizes && kind == FileKind::File { entry.metadata().map_or(0, |facts| facts.len()) } else { 0 };
    Some(FoundFile { path, kind, size })
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
