//! `files`.

use std::sync::{Arc, Weak};

use atoll_caps::{Access, LimitName};
use atoll_table::Error;
use tokio::sync::Mutex;
use wasmtime::component::{Accessor, Resource};

use super::{Host, caller, contract, handle};
use crate::{
    audit::Verdict,
    call::{Caller, Use},
    files::{
        Facts, FileKind, FileWalk, FoundContent, FoundFile, ListedEntry, MutationGuard, OpenFile, Roots, WalkPlan,
        WriteMode,
    },
    state::PluginState,
    trap::limit_error,
};
use contract::files as wit;

/// The most bytes one `reader.read` gives.
const MAX_READ: u32 = 1 << 20;
/// The most names one `list-dir` gives, whatever was asked for.
const MAX_ENTRIES: u32 = 100_000;
/// The most files one step of a walk gives.
const MAX_WALK_STEP: u32 = 4_096;

/// The most files that one `read-many` reads.
const MAX_MANY: usize = 4_096;

/// How much of a file one step of a walk always brings, if that much was asked for.
const LEAST_OF_A_FILE: u64 = 1 << 20;

/// Handle of an open file.
#[derive(Clone)]
pub struct Reader {
    file: Arc<std::sync::Mutex<OpenFile>>,
    /// What it was when it was opened.
    facts: Facts,
    /// As it is written down.
    shown: Arc<str>,
    verdict: Verdict,
}

/// Handle of the right to change a file.
pub struct Exclusive(MutationGuard);

/// Handle of a walk.
#[derive(Clone)]
pub struct Walker {
    walk: Arc<Mutex<FileWalk>>,
    /// Its root, as it is written down.
    shown: Arc<str>,
}

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
        Ok(self.resources.get(&reader)?.facts.clone().into())
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
        let Reader { file, shown, verdict, .. } = handle(accessor, &reader)?;
        let max = max.min(MAX_READ).into();
        // Somebody else may be reading from it, which can take long.
        let at_hand = file.try_lock().ok().and_then(|mut file| file.read_at_hand(max));
        let read = match at_hand {
            Some(bytes) => Ok(bytes),
            None => caller(accessor).blocking(move || crate::state::lock(&file).read(max)).await,
        };
        if let Ok(bytes) = &read {
            // It belongs to the entry that opening the file made.
            caller(accessor).call.uses.add("files", "open", &shown, verdict, 0, Some(bytes.len() as u64));
        }
        Ok(read.map_err(Into::into))
    }

    async fn seek(accessor: &Accessor<T, Self>, reader: Resource<Reader>, offset: u64) -> Answer<()> {
        let Reader { file, .. } = handle(accessor, &reader)?;
        let seek = move || crate::state::lock(&file).seek(offset);
        Ok(caller(accessor).blocking(seek).await.map_err(Into::into))
    }
}

impl<T: Send + 'static> wit::HostWalkerWithStore<T> for Host {
    async fn next(accessor: &Accessor<T, Self>, walker: Resource<Walker>, max: u32) -> Answer<Vec<wit::Found>> {
        let Walker { walk, .. } = handle(accessor, &walker)?;
        let found = walk.lock().await.next(max.min(MAX_WALK_STEP) as usize).await;
        Ok(Ok(found.into_iter().map(Into::into).collect()))
    }

    async fn next_contents(
        accessor: &Accessor<T, Self>,
        walker: Resource<Walker>,
        max: u32,
        max_bytes: u64,
    ) -> Answer<Vec<wit::FoundContent>> {
        let Walker { walk, shown } = handle(accessor, &walker)?;
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
        if !contents.is_empty() {
            let bytes = contents.iter().map(|file| file.data.len() as u64).sum();
            let count = contents.len() as u64;
            plugin.call.uses.add_batch("walk-read", &shown, count, bytes);
        }
        Ok(Ok(contents.into_iter().map(Into::into).collect()))
    }
}

/// Reads files on as many threads as there are cores, until together they have as many bytes as one host call may
/// bring; gives those that are left. Files that can not be read are passed over.
async fn read_all(
    plugin: &Caller,
    files: Vec<(String, FoundFile)>,
    max_bytes: u64,
) -> (Vec<FoundContent>, Vec<FoundFile>) {
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let share = files.len().div_ceil(threads).max(1);
    // Each thread has its part, so that what comes back does not depend on which one is quicker.
    let budget = plugin.limits.host_call_bytes / threads as u64;
    // Each brings one file at least, so all of them together stay near the limit only if none takes more than its part.
    let max = max_bytes.min(budget.max(LEAST_OF_A_FILE));
    let mut tasks = Vec::new();
    for chunk in files.chunks(share) {
        let (chunk, roots) = (chunk.to_vec(), plugin.roots());
        tasks.push(tokio::task::spawn_blocking(move || {
            let (mut contents, mut left, mut spent) = (Vec::new(), Vec::new(), 0);
            for (absolute, file) in chunk {
                // At least one, for otherwise a large file would never come.
                if spent > 0 && spent + file.size.min(max) > budget {
                    left.push(file);
                    continue;
                }
                let Ok(mut open) = roots.open_found(&absolute) else { continue };
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

/// Reads files one after the other while they are `wanted`, up to `limit` bytes in all; gives what is left of it.
fn read_each(
    roots: &Roots,
    paths: &[String],
    max_bytes: u64,
    limit: u64,
    wanted: &Weak<()>,
) -> (Vec<Result<Vec<u8>, Error>>, u64) {
    let mut budget = limit;
    let read = |path: &String| {
        let max = max_bytes.min(budget);
        let result = if max == 0 {
            Err(limit_error(LimitName::HostCallBytes, limit))
        } else {
            roots.read(path, Some((0, max)), max)
        };
        budget -= result.as_ref().map_or(0, |bytes| bytes.len() as u64);
        result
    };
    let results = paths.iter().take_while(|_| wanted.strong_count() > 0).map(read).collect();
    (results, budget)
}

/// What a batch of reads is written down under: the directory that all of its files are in.
fn common_directory(paths: &[String]) -> String {
    let mut parts: Option<Vec<&str>> = None;
    for path in paths {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let now: Vec<&str> = folder.split('/').collect();
        parts = Some(match parts {
            None => now,
            Some(before) => before.into_iter().zip(now).take_while(|(a, b)| a == b).map(|(part, _)| part).collect(),
        });
    }
    parts.map(|parts| parts.join("/")).filter(|folder| !folder.is_empty()).unwrap_or_else(|| ".".to_owned())
}

impl<T: Send + 'static> wit::HostWithStore<T> for Host {
    async fn read(accessor: &Accessor<T, Self>, path: String, range: Option<wit::Range>) -> Answer<Vec<u8>> {
        let plugin = caller(accessor);
        let range = range.map(|range| (range.offset, range.length));
        let (max, shown) = (plugin.limits.host_call_bytes, path.clone());
        let read = plugin.files(
            "read",
            &shown,
            Access::Read,
            move |roots| roots.read(&path, range, max),
            |bytes| Some(bytes.len() as u64),
        );
        Ok(read.await.map_err(Into::into))
    }

    async fn read_many(
        accessor: &Accessor<T, Self>,
        paths: Vec<String>,
        max_bytes: u64,
    ) -> wasmtime::Result<Vec<Result<Vec<u8>, contract::types::Error>>> {
        let plugin = caller(accessor);
        let limit = plugin.limits.host_call_bytes;
        if paths.len() > MAX_MANY {
            let reason = format!("{} files are too many for one call; read at most {MAX_MANY}", paths.len());
            return Ok(vec![Err(Error::InvalidArguments(reason).into())]);
        }
        let the_use = Use { capability: "files", operation: "read-many", target: &common_directory(&paths) };
        if let Err(error) = plugin.check_in_call(the_use) {
            return Ok(paths.iter().map(|_| Err(error.clone().into())).collect());
        }
        let paths: Arc<[String]> = paths.into();
        let mut roots = plugin.roots();
        // Dropped with this future when the call is gone: then the rest is not read any more.
        let here = Arc::new(());
        let wanted = plugin.own_thread.as_ref().map_or_else(|| Arc::downgrade(&here), |own| own.wanted.clone());
        let read = {
            let (paths, roots) = (Arc::clone(&paths), Arc::clone(&roots));
            move || Ok(read_each(&roots, &paths, max_bytes, limit, &wanted))
        };
        let (mut results, mut budget) = match plugin.blocking(read).await {
            Ok(read) => read,
            Err(error) => return Ok(vec![Err(error.into())]),
        };
        for (path, result) in paths.iter().zip(&mut results) {
            if matches!(result, Err(Error::Denied { .. }))
                && let Some((_, more)) = plugin.ask_for_path("read-many", path, Access::Read, &roots).await
            {
                roots = more;
                let (roots, path, max) = (Arc::clone(&roots), path.clone(), max_bytes.min(budget));
                *result = plugin.blocking(move || roots.read(&path, Some((0, max)), max)).await;
                budget -= result.as_ref().map_or(0, |bytes| bytes.len() as u64);
            }
        }
        let read = results.iter().flatten();
        let (count, bytes) = (read.clone().count() as u64, read.map(|bytes| bytes.len() as u64).sum());
        if count > 0 {
            let shown = roots.shown(&common_directory(&paths));
            plugin.call.uses.add_batch("read-many", &shown, count, bytes);
        }
        Ok(results.into_iter().map(|result| result.map_err(Into::into)).collect())
    }

    async fn open(accessor: &Accessor<T, Self>, path: String) -> Answer<Resource<Reader>> {
        let plugin = caller(accessor);
        let shown: Arc<str> = plugin.roots().shown(&path).into();
        let at_hand =
            plugin.files_at_hand("open", &shown, |roots| roots.open_at_hand(&path, || plugin.open_files.take().ok()));
        let opened = match at_hand {
            Some(file) => Ok((file, Verdict::Allowed)),
            None => {
                let open_files = plugin.open_files.clone();
                let open = move |roots: &Arc<Roots>| {
                    let slot = open_files.take()?;
                    Ok(roots.open_file(&path)?.held(slot))
                };
                plugin.files_with("open", &shown, Access::Read, open, |_| None).await
            }
        };
        match opened {
            Ok((file, verdict)) => {
                let facts = file.facts();
                let reader = Reader { file: Arc::new(std::sync::Mutex::new(file)), facts, shown, verdict };
                Ok(Ok(accessor.with(|mut access| access.get().resources.push(reader))?))
            }
            Err(error) => Ok(Err(error.into())),
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
        let (length, shown) = (data.len() as u64, path.clone());
        let work = move |roots: &Arc<Roots>| roots.write(&path, &data, &mode);
        let written = plugin.files("write", &shown, Access::ReadWrite, work, |_| Some(length)).await;
        Ok(written.map(Into::into).map_err(Into::into))
    }

    async fn list_dir(accessor: &Accessor<T, Self>, path: String, max: u32) -> Answer<wit::Listing> {
        let (plugin, shown) = (caller(accessor), path.clone());
        let work = move |roots: &Arc<Roots>| roots.list(&path, max.min(MAX_ENTRIES) as usize);
        let listed = plugin.files("list", &shown, Access::Read, work, |_| None).await;
        Ok(listed
            .map(|(entries, truncated)| wit::Listing {
                entries: entries.into_iter().map(Into::into).collect(),
                truncated,
            })
            .map_err(Into::into))
    }

    async fn stat(accessor: &Accessor<T, Self>, path: String) -> Answer<wit::Metadata> {
        let (plugin, shown) = (caller(accessor), path.clone());
        let facts = plugin.files("stat", &shown, Access::Read, move |roots| roots.facts(&path), |_| None).await;
        Ok(facts.map(Into::into).map_err(Into::into))
    }

    async fn walk(accessor: &Accessor<T, Self>, options: wit::WalkOptions) -> Answer<Resource<Walker>> {
        let plugin = caller(accessor);
        let shown: Arc<str> = plugin.roots().shown(&options.root).into();
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
        let walks = plugin.walks.clone();
        let work = move |roots: &Arc<Roots>| roots.walk(&plan, &walks);
        match plugin.files("walk", &shown, Access::Read, work, |_| None).await {
            Ok(walk) => {
                let walker = Walker { walk: Arc::new(Mutex::new(walk)), shown };
                Ok(Ok(accessor.with(|mut access| access.get().resources.push(walker))?))
            }
            Err(error) => Ok(Err(error.into())),
        }
    }

    async fn remove(accessor: &Accessor<T, Self>, path: String) -> Answer<()> {
        let (plugin, shown) = (caller(accessor), path.clone());
        let removed = plugin.files("remove", &shown, Access::ReadWrite, move |roots| roots.remove(&path), |()| None);
        Ok(removed.await.map_err(Into::into))
    }

    async fn lock(accessor: &Accessor<T, Self>, path: String) -> Answer<Resource<Exclusive>> {
        let (plugin, shown) = (caller(accessor), path.clone());
        let locks = plugin.shared.locks.clone();
        let located = plugin.files("lock", &shown, Access::ReadWrite, move |roots| roots.real_path(&path), |_| None);
        match located.await {
            Ok(real) => {
                let held = Exclusive(locks.acquire(&real).await);
                Ok(Ok(accessor.with(|mut access| access.get().resources.push(held))?))
            }
            Err(error) => Ok(Err(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {

    use atoll_caps::{Effective, Manifest};

    use super::*;
    use crate::state::Places;

    #[test]
    fn reading_many_files_ends_when_nobody_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "alpha").unwrap();
        let manifest = "name = \"x\"\nversion = \"1.0.0\"\ncontract = \"0.1\"\n\
                        [[files]]\nroot = \"$workspace\"\nreason = \"x\"\n";
        let manifest = Manifest::parse(manifest, "plugin.toml").unwrap();
        let effective = Effective::intersect(&manifest, Some(&manifest.wants));
        let places = Places::of_workspace(folder.path());
        let roots = Roots::open("x", &effective, &places);
        let paths = vec!["a.txt".to_owned(); 3];
        let wanted = Arc::new(());
        let weak = Arc::downgrade(&wanted);
        let read = || read_each(&roots, &paths, 100, 12, &weak).0;
        let sizes: Vec<usize> = read().into_iter().map(|one| one.unwrap().len()).collect();
        assert_eq!(sizes, [5, 5, 2]);
        drop(wanted);
        assert!(read().is_empty());
    }

    #[test]
    fn a_batch_is_written_down_under_the_directory_of_all_its_files() {
        let common = |paths: &[&str]| common_directory(&paths.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(common(&["/a/b/c", "/a/b/d/e", "/a/bc/f"]), "/a");
        assert_eq!(common(&["/a/b/c"]), "/a/b");
        assert_eq!(common(&["a", "b"]), ".");
        assert_eq!(common(&[]), ".");
    }
}
