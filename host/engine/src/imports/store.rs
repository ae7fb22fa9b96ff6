//! `store`: a file for each key, in a folder of the plugin's own. Locks of keys are files beside them.

use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use atoll_caps::Capability;
use atoll_table::Error;
use wasmtime::component::{Accessor, Resource};

use super::{Host, caller, contract};
use crate::{
    call::Use,
    state::{PluginContext, PluginState},
};

const MAX_KEY: usize = 256;
const MAX_VALUE: usize = 1 << 20;
const MAX_TOTAL: u64 = 16 << 20;
const MAX_KEYS: usize = 10_000;
/// The folder of locks. No key is spelled like this.
const LOCKS: &str = ".locks";
/// How often it is looked whether a lock is free: soon at first, for most are held for a moment only.
const LOOK_AGAIN: [Duration; 4] =
    [Duration::from_millis(1), Duration::from_millis(5), Duration::from_millis(20), Duration::from_millis(50)];

/// Holds the lock of a key until it is dropped.
pub struct Lease(#[expect(dead_code, reason = "closing it gives the lock back")] fs::File);

type Answer<V> = wasmtime::Result<Result<V, contract::types::Error>>;

fn folder(plugin: &PluginContext) -> PathBuf {
    plugin.shared.places.atoll_home.join("store").join(&plugin.store)
}

/// The file of a key: letters, digits, `-` and `_` as they are, other bytes as `%XX`. A long key is spelled in
/// parts, each a directory, for file names are bounded.
fn file_of(folder: &Path, key: &str) -> Result<PathBuf, Error> {
    if key.is_empty() || key.len() > MAX_KEY {
        return Err(Error::InvalidArguments(format!("a key has 1 to {MAX_KEY} bytes, this one has {}", key.len())));
    }
    let mut name = String::new();
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    let mut path = folder.to_owned();
    let mut rest = name.as_str();
    while rest.len() > 200 {
        path.push(format!("{}+", &rest[..200]));
        rest = &rest[200..];
    }
    path.push(format!("{rest}="));
    Ok(path)
}

/// The key of a path below the folder, the inverse of [`file_of`].
fn key_of(folder: &Path, file: &Path) -> Option<String> {
    let relative = file.strip_prefix(folder).ok()?.to_str()?;
    let name = relative.strip_suffix('=')?.replace("+/", "");
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            let hex = tail.get(..2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && entry.file_name() == LOCKS => {}
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(_) => files.push(entry.path()),
                Err(_) => {}
            }
        }
    }
    files
}

fn failed(error: &io::Error) -> Error {
    Error::Failed(format!("the plugin's store can not be used: {error}"))
}

fn get(folder: &Path, key: &str) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(file_of(folder, key)?) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(&error)),
    }
}

fn set(folder: &Path, key: &str, value: &[u8]) -> Result<(), Error> {
    let path = file_of(folder, key)?;
    if value.len() > MAX_VALUE {
        return Err(Error::InvalidArguments(format!(
            "a value has at most {MAX_VALUE} bytes, this one has {}",
            value.len()
        )));
    }
    let files = all_files(folder);
    if files.len() >= MAX_KEYS && !files.contains(&path) {
        return Err(Error::InvalidArguments(format!("the plugin's store holds at most {MAX_KEYS} keys")));
    }
    let others: u64 = files
        .iter()
        .filter(|file| **file != path)
        .filter_map(|file| fs::metadata(file).ok())
        .map(|facts| facts.len())
        .sum();
    if others + value.len() as u64 > MAX_TOTAL {
        return Err(Error::InvalidArguments(format!("the plugin's store holds at most {MAX_TOTAL} bytes in all")));
    }
    let parent = path.parent().unwrap_or(folder);
    fs::create_dir_all(parent).map_err(|error| failed(&error))?;
    let write = || -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(parent)?;
        file.write_all(value)?;
        file.as_file().sync_data()?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| failed(&error))
}

fn remove(folder: &Path, key: &str) -> Result<(), Error> {
    match fs::remove_file(file_of(folder, key)?) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&error)),
        _ => Ok(()),
    }
}

fn keys(folder: &Path, prefix: &str) -> Vec<String> {
    let mut keys: Vec<String> = all_files(folder)
        .iter()
        .filter_map(|file| key_of(folder, file))
        .filter(|key| key.starts_with(prefix))
        .collect();
    keys.sort();
    keys
}

/// The file that stands for a key's lock. It stays: whoever removed it could take it from under somebody who has just
/// opened it.
fn lock_file(folder: &Path, key: &str) -> Result<fs::File, Error> {
    let locks = folder.join(LOCKS);
    let path = file_of(&locks, key)?;
    if !path.exists() && all_files(&locks).len() >= MAX_KEYS {
        return Err(Error::InvalidArguments(format!("the plugin's store holds at most {MAX_KEYS} locks")));
    }
    // Nobody else may hold it up.
    let folder = path.parent().unwrap_or(&locks);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| failed(&error))?;
    let mut options = fs::File::options();
    options.write(true).create(true).truncate(false).mode(0o600).open(path).map_err(|error| failed(&error))
}

/// Waits for a lock. Whoever drops this has not got it. The system knows no way to wait for it that could be given up, so it
/// is looked for again and again.
async fn acquire(file: fs::File) -> Result<Lease, Error> {
    let mut pauses = LOOK_AGAIN.into_iter();
    let mut pause = Duration::ZERO;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Lease(file)),
            Err(fs::TryLockError::WouldBlock) => {
                pause = pauses.next().unwrap_or(pause);
                tokio::time::sleep(pause).await;
            }
            Err(fs::TryLockError::Error(error)) => return Err(failed(&error)),
        }
    }
}

impl contract::store::Host for PluginState {}

impl contract::store::HostLease for PluginState {
    fn drop(&mut self, lease: Resource<Lease>) -> wasmtime::Result<()> {
        self.resources.delete(lease)?;
        Ok(())
    }
}

impl<T: Send + 'static> contract::store::HostWithStore<T> for Host {
    async fn get(accessor: &Accessor<T, Self>, key: String) -> Answer<Option<Vec<u8>>> {
        let shown = key.clone();
        used(accessor, "get", &shown, move |folder| get(folder, &key), |value| value.as_ref().map(Vec::len)).await
    }

    async fn set(accessor: &Accessor<T, Self>, key: String, value: Vec<u8>) -> Answer<()> {
        let (shown, length) = (key.clone(), value.len());
        used(accessor, "set", &shown, move |folder| set(folder, &key, &value), |()| Some(length)).await
    }

    async fn remove(accessor: &Accessor<T, Self>, key: String) -> Answer<()> {
        let shown = key.clone();
        used(accessor, "remove", &shown, move |folder| remove(folder, &key), |()| None).await
    }

    async fn keys(accessor: &Accessor<T, Self>, prefix: String) -> Answer<Vec<String>> {
        let shown = format!("{prefix}*");
        used(accessor, "keys", &shown, move |folder| Ok(keys(folder, &prefix)), |_| None).await
    }

    async fn lock(accessor: &Accessor<T, Self>, key: String) -> Answer<Resource<Lease>> {
        let shown = key.clone();
        let file = match used(accessor, "lock", &shown, move |folder| lock_file(folder, &key), |_| None).await? {
            Ok(file) => file,
            Err(error) => return Ok(Err(error)),
        };
        match acquire(file).await {
            Ok(lease) => Ok(Ok(accessor.with(|mut access| access.get().resources.push(lease))?)),
            Err(error) => Ok(Err(error.into())),
        }
    }
}

/// One use of the store: checked, done and written down, with as many bytes as `measure` finds in its result.
async fn used<T: Send, R: Send + 'static>(
    accessor: &Accessor<T, Host>,
    operation: &str,
    key: &str,
    work: impl FnOnce(&Path) -> Result<R, Error> + Send + 'static,
    measure: impl Fn(&R) -> Option<usize>,
) -> Answer<R> {
    let plugin = caller(accessor);
    let the_use = Use { capability: "store", operation, target: key };
    let verdict = match plugin.permit(the_use, |effective| effective.check(Capability::Store)).await {
        Ok(verdict) => verdict,
        Err(error) => return Ok(Err(error.into())),
    };
    let folder = folder(&plugin);
    let done = plugin.blocking(move || work(&folder)).await;
    let bytes = done.as_ref().ok().and_then(measure).map(|length| length as u64);
    plugin.call.uses.add("store", operation, key, verdict, 1, bytes);
    Ok(done.map_err(Into::into))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_any_spelling_come_back_as_they_went_in() {
        let folder = tempfile::tempdir().unwrap();
        let long = "ä/".repeat(80);
        for key in ["a", "../../escape", ".", "a b", "ключ", "A%41", long.as_str()] {
            set(folder.path(), key, key.as_bytes()).unwrap();
            assert_eq!(get(folder.path(), key).unwrap().as_deref(), Some(key.as_bytes()));
        }
        let mut expected = ["a", "../../escape", ".", "a b", "ключ", "A%41", long.as_str()];
        expected.sort_unstable();
        assert_eq!(keys(folder.path(), ""), expected);
        assert_eq!(keys(folder.path(), "a"), ["a", "a b"]);
        remove(folder.path(), "a").unwrap();
        remove(folder.path(), "a").unwrap();
        assert_eq!(get(folder.path(), "a").unwrap(), None);
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(set(folder.path(), "", b"").is_err());
        assert!(set(folder.path(), &"k".repeat(257), b"").is_err());
        assert!(set(folder.path(), "k", &vec![0; MAX_VALUE + 1]).is_err());
        for index in 0..16 {
            set(folder.path(), &format!("k{index}"), &vec![0; MAX_VALUE]).unwrap();
        }
        assert!(set(folder.path(), "one-more", &[1]).is_err());
        set(folder.path(), "k3", b"smaller").unwrap();
        set(folder.path(), "one-more", &[1]).unwrap();
    }

    #[tokio::test]
    async fn a_lock_is_held_by_one_and_waited_for_by_those_who_go_on_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let take = |key| acquire(lock_file(folder.path(), key).unwrap());
        let held = take("a").await.unwrap();
        drop(take("b").await.unwrap());
        let mut given_up = Box::pin(take("a"));
        assert!(futures::poll!(&mut given_up).is_pending());
        let waiting = tokio::spawn(take("a"));
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(given_up);
        drop(held);
        drop(waiting.await.unwrap().unwrap());
        // It says nothing about the key, and is none.
        assert_eq!(keys(folder.path(), ""), Vec::<String>::new());
        set(folder.path(), ".locks", b"x").unwrap();
        assert_eq!(keys(folder.path(), ""), [".locks"]);
        assert!(lock_file(folder.path(), "").is_err() && lock_file(folder.path(), &"k".repeat(257)).is_err());
    }
}
