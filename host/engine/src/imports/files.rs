//! `files`.

use std::sync::Arc;

use atoll_caps::LimitName;
use tokio::sync::Mutex;
use wasmtime::component::{Accessor, Resource};

use super::{Host, blocking, caller, contract, handle};
use crate::{
    files::{
        Facts, FileKind, FileWalk, FoundContent, FoundFile, ListedEntry, MutationGuard, OpenFile, WalkPlan, WriteMode,
    },
    state::{PluginContext, PluginState},
    trap::limit_error,
};
use contract::files as wit;

/// The most bytes one `reader.read` gives.
const MAX_READ: u32 = 1 << 20;
/// The most names one `list-dir` gives, whatever was asked for.
const MAX_ENTRIES: u32 = 100_000;
/// The most files one step of a walk gives.
const MAX_WALK_STEP: u32 = 4_096;

/// Handle of an open file.
#[derive(Clone)]
pub struct Reader(Arc<std::sync::Mutex<OpenFile>>);

/// Handle of the right to change a file.
pub struct Exclusive(MutationGuard);

/// Handle of a walk.
#[derive(Clone)]
pub struct Walker(Arc<Mutex<FileWalk>>);

impl From<FileKind> for wit::Kind {
    fn from(kind: FileKind) -> Self {
        match kind {
            FileKind::File => Self::File,
            FileKind::Directory => Self::Directory,
            FileKind::Symlink => Self::Symlink,
            FileKind::Other => Self::Other,
        }
    }
}

impl From<Facts> for wit::Metadata {
    fn from(facts: Facts) -> Self {
        Self { kind: facts.kind.into(), size: facts.size, modified: facts.modified_ms, version: facts.version }
    }
}

impl From<ListedEntry> for wit::Entry {
    fn from(entry: ListedEntry) -> Self {
        Self {
            name: entry.name.to_string_lossy().into_owned(),
            kind: entry.kind.into(),
            size: entry.size,
            is_link: entry.is_link,
        }
    }
}

impl From<FoundFile> for wit::Found {
    fn from(file: FoundFile) -> Self {
        Self { path: file.path, kind: file.kind.into(), size: file.size }
    }
}

impl From<FoundContent> for wit::FoundContent {
    fn from(file: FoundContent) -> Self {
        Self { path: file.path, data: file.data, truncated: file.truncated }
    }
}

impl wit::Host for PluginState {}

impl wit::HostReader for PluginState {
    fn metadata(&mut self, reader: Resource<Reader>) -> wasmtime::Result<wit::Metadata> {
        let reader = self.resources.get(&reader)?;
        Ok(crate::state::lock(&reader.0).facts().into())
    }

    fn drop(&mut self, reader: Resource<Reader>) -> wasmtime::Result<()> {
        self.resources.delete(reader)?;
        Ok(())
    }
}

impl wit::HostExclusive for PluginState {
    fn real_path(&mut self, held: Resource<Exclusive>) -> wasmtime::Result<String> {
        Ok(self.resources.get(&held)?.0.path.to_string_lossy().into_owned())
    }

    fn drop(&mut self, held: Resource<Exclusive>) -> wasmtime::Result<()> {
        self.resources.delete(held)?;
        Ok(())
    }
}

impl wit::HostWalker for PluginState {
    fn drop(&mut self, walker: Resource<Walker>) -> wasmtime::Result<()> {
        self.resources.delete(walker)?;
        Ok(())
    }
}

type Answer<V> = wasmtime::Result<Result<V, contract::types::Error>>;

impl<T: Send + 'static> wit::HostReaderWithStore<T> for Host {
    async fn read(accessor: &Accessor<T, Self>, reader: Resource<Reader>, max: u32) -> Answer<Vec<u8>> {
        let Reader(file) = handle(accessor, &reader)?;
        let max = max.min(MAX_READ).into();
        if let Some(bytes) = crate::state::lock(&file).read_at_hand(max) {
            return Ok(Ok(bytes));
        }
        Ok(blocking(move || crate::state::lock(&file).read(max)).await)
    }

    async fn seek(accessor: &Accessor<T, Self>, reader: Resource<Reader>, offset: u64) -> Answer<()> {
        let Reader(file) = handle(accessor, &reader)?;
        Ok(blocking(move || crate::state::lock(&file).seek(offset)).await)
    }
}

impl<T: Send + 'static> wit::HostWalkerWithStore<T> for Host {
    async fn next(accessor: &Accessor<T, Self>, walker: Resource<Walker>, max: u32) -> Answer<Vec<wit::Found>> {
        let Walker(walk) = handle(accessor, &walker)?;
        let found = walk.lock().await.next(max.min(MAX_WALK_STEP) as usize).await;
        Ok(Ok(found.into_iter().map(Into::into).collect()))
    }

    async fn next_contents(
        accessor: &Accessor<T, Self>,
        walker: Resource<Walker>,
        max: u32,
        max_bytes: u64,
    ) -> Answer<Vec<wit::FoundContent>> {
        let Walker(walk) = handle(accessor, &walker)?;
        let plugin = caller(accessor);
        let mut walk = walk.lock().await;
        let mut contents = Vec::new();
        // A step may hold nothing that can be read; only the end of the walk gives an empty answer.
        while contents.is_empty() {
            let found = walk.next(max.min(MAX_WALK_STEP) as usize).await;
            if found.is_empty() {
                break;
            }
            let files = found.into_iter().filter(|file| file.kind == FileKind::File);
            let files = files.map(|file| (walk.absolute(&file), file)).collect();
            let left;
            (contents, left) = read_all(&plugin, files, max_bytes).await;
            walk.give_back(left);
        }
        Ok(Ok(contents.into_iter().map(Into::into).collect()))
    }
}

/// Reads files on as many threads as there are cores, until together they have as many bytes as one host call may
/// bring; gives those that are left. Files that can not be read are passed over.
async fn read_all(
    plugin: &Arc<PluginContext>,
    files: Vec<(String, FoundFile)>,
    max_bytes: u64,
) -> (Vec<FoundContent>, Vec<FoundFile>) {
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let share = files.len().div_ceil(threads).max(1);
    let max = max_bytes.min(plugin.limits.host_call_bytes);
    // Each thread has its part, so that what comes back does not depend on which one is quicker.
    let budget = plugin.limits.host_call_bytes / threads as u64;
    let mut tasks = Vec::new();
    for chunk in files.chunks(share) {
        let (chunk, plugin) = (chunk.to_vec(), Arc::clone(plugin));
        tasks.push(tokio::task::spawn_blocking(move || {
            let (mut contents, mut left, mut spent) = (Vec::new(), Vec::new(), 0);
            for (absolute, file) in chunk {
                // At least one, for otherwise a large file would never come.
                if spent > 0 && spent + file.size.min(max) > budget {
                    left.push(file);
                    continue;
                }
                let Ok(mut open) = plugin.roots().open_file(&absolute) else { continue };
                let Ok(data) = open.read(max) else { continue };
                spent += data.len() as u64;
                let truncated = data.len() as u64 == max && open.size() > max;
                contents.push(FoundContent { path: file.path, data, truncated });
            }
            (contents, left)
        }));
    }
    let (mut contents, mut left) = (Vec::new(), Vec::new());
    for task in tasks {
        let (read, rest) = task.await.unwrap_or_default();
        contents.extend(read);
        left.extend(rest);
    }
    (contents, left)
}

impl<T: Send + 'static> wit::HostWithStore<T> for Host {
    async fn read(accessor: &Accessor<T, Self>, path: String, range: Option<wit::Range>) -> Answer<Vec<u8>> {
        let plugin = caller(accessor);
        let range = range.map(|range| (range.offset, range.length));
        Ok(blocking(move || plugin.roots().read(&path, range, plugin.limits.host_call_bytes)).await)
    }

    async fn read_many(
        accessor: &Accessor<T, Self>,
        paths: Vec<String>,
        max_bytes: u64,
    ) -> wasmtime::Result<Vec<Result<Vec<u8>, contract::types::Error>>> {
        let plugin = caller(accessor);
        let all = blocking(move || {
            let mut budget = plugin.limits.host_call_bytes;
            let mut results = Vec::new();
            for path in &paths {
                let max = max_bytes.min(budget);
                let result = if max == 0 {
                    Err(limit_error(LimitName::HostCallBytes, plugin.limits.host_call_bytes))
                } else {
                    plugin.roots().read(path, Some((0, max)), max)
                };
                budget -= result.as_ref().map_or(0, |bytes| bytes.len() as u64);
                results.push(result);
            }
            Ok(results)
        })
        .await;
        match all {
            Ok(results) => Ok(results.into_iter().map(|result| result.map_err(Into::into)).collect()),
            Err(error) => Ok(vec![Err(error)]),
        }
    }

    async fn open(accessor: &Accessor<T, Self>, path: String) -> Answer<Resource<Reader>> {
        let plugin = caller(accessor);
        match blocking(move || plugin.roots().open_file(&path).map(OpenFile::read_ahead)).await {
            Ok(file) => {
                let reader = Reader(Arc::new(std::sync::Mutex::new(file)));
                Ok(Ok(accessor.with(|mut access| access.get().resources.push(reader))?))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    async fn write(
        accessor: &Accessor<T, Self>,
        path: String,
        data: Vec<u8>,
        options: wit::WriteOptions,
    ) -> Answer<wit::Metadata> {
        let plugin = caller(accessor);
        if let Err(error) = plugin.check_bytes(data.len()) {
            return Ok(Err(error.into()));
        }
        let mode = WriteMode {
            create_parents: options.create_parents,
            expected: options.expected,
            exclusive: options.exclusive,
        };
        Ok(blocking(move || plugin.roots().write(&path, &data, &mode)).await.map(Into::into))
    }

    async fn list_dir(accessor: &Accessor<T, Self>, path: String, max: u32) -> Answer<wit::Listing> {
        let plugin = caller(accessor);
        let listed = blocking(move || plugin.roots().list(&path, max.min(MAX_ENTRIES) as usize)).await;
        Ok(listed.map(|(entries, truncated)| wit::Listing {
            entries: entries.into_iter().map(Into::into).collect(),
            truncated,
        }))
    }

    async fn stat(accessor: &Accessor<T, Self>, path: String) -> Answer<wit::Metadata> {
        let plugin = caller(accessor);
        Ok(blocking(move || plugin.roots().facts(&path)).await.map(Into::into))
    }

    async fn walk(accessor: &Accessor<T, Self>, options: wit::WalkOptions) -> Answer<Resource<Walker>> {
        let plugin = caller(accessor);
        let plan = WalkPlan {
            root: options.root,
            respect_ignore: options.respect_ignore,
            hidden: options.hidden,
            follow_links: options.follow_links,
            globs: options.globs,
            max_depth: options.max_depth,
            directories: options.directories,
            sizes: options.sizes,
        };
        match blocking(move || plugin.roots().walk(&plan)).await {
            Ok(walk) => {
                let walker = Walker(Arc::new(Mutex::new(walk)));
                Ok(Ok(accessor.with(|mut access| access.get().resources.push(walker))?))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    async fn remove(accessor: &Accessor<T, Self>, path: String) -> Answer<()> {
        let plugin = caller(accessor);
        Ok(blocking(move || plugin.roots().remove(&path)).await)
    }

    async fn lock(accessor: &Accessor<T, Self>, path: String) -> Answer<Resource<Exclusive>> {
        let plugin = caller(accessor);
        let locks = plugin.shared.locks.clone();
        match blocking(move || plugin.roots().real_path(&path)).await {
            Ok(real) => {
                let held = Exclusive(locks.acquire(&real).await);
                Ok(Ok(accessor.with(|mut access| access.get().resources.push(held))?))
            }
            Err(error) => Ok(Err(error)),
        }
    }
}
