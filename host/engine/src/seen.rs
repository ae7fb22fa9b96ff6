//! A component's file as a start needs it: its digest and the manifest inside, without reading it again while it is the
//! file that was read before.
//!
//! A file is known again by its device, inode, size and times, as git's index does it. Where that is wrong, what runs is
//! still what has the remembered digest, and never what the file has become: must never be more than a way to a digest.

use std::{
    fs::{File, Metadata},
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use atoll_caps::Digest;
use atoll_table::Error;
use serde::{Deserialize, Serialize};

use crate::{
    components::{open_component, read_open},
    contract_check,
    description::Description,
    embedded_manifest::embedded_manifest,
};

/// How long a file has to have been left alone before it is remembered. Times have steps, of two seconds at worst: a file
/// that changes again within one looks the same.
const SETTLED: Duration = Duration::from_secs(2);

/// A component's file, as far as it had to be looked at.
#[derive(Clone, Debug)]
pub struct SeenComponent {
    /// The digest of its bytes.
    pub digest: Digest,
    /// The manifest inside it, or why there is none to be had.
    pub manifest: Result<Option<String>, Error>,
    /// Its bytes, if they had to be read.
    pub(crate) bytes: Option<Vec<u8>>,
    /// What is kept of its description.
    pub(crate) description: Option<Description>,
}

impl SeenComponent {
    /// Whether it is an extension. Nothing is compiled for it. What is not known is none.
    pub fn is_extension(&self) -> bool {
        match (&self.description, &self.bytes) {
            (Some(description), _) => description.surface().exports.contains("extension"),
            (None, Some(bytes)) => contract_check::is_extension(bytes),
            (None, None) => false,
        }
    }

    /// Whether it may turn out to be an extension: as [`Self::is_extension`], but what is not known may be one.
    pub fn may_be_extension(&self) -> bool {
        (self.description.is_none() && self.bytes.is_none()) || self.is_extension()
    }
}

/// What tells a file from what it was before, and from others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    size: u64,
    /// When its content changed, in seconds and nanoseconds.
    modified: (i64, i64),
    /// When anything of it changed; nobody can set this.
    changed: (i64, i64),
}

/// What is remembered of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Memory {
    pub(crate) identity: Identity,
    pub(crate) digest: Digest,
    pub(crate) manifest: Option<String>,
}

impl Identity {
    /// Of a regular file, where the system tells all of it.
    #[cfg(unix)]
    pub(crate) fn of(facts: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        facts.is_file().then(|| Self {
            device: facts.dev(),
            inode: facts.ino(),
            size: facts.size(),
            modified: (facts.mtime(), facts.mtime_nsec()),
            changed: (facts.ctime(), facts.ctime_nsec()),
        })
    }

    #[cfg(not(unix))]
    pub(crate) fn of(_: &Metadata) -> Option<Self> {
        None
    }

    /// Whether the file had been left alone for long enough at this time.
    fn is_settled(&self, now: SystemTime) -> bool {
        let Ok(now) = now.duration_since(UNIX_EPOCH) else { return false };
        let nanoseconds = |(seconds, rest): (i64, i64)| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        let last = nanoseconds(self.modified).max(nanoseconds(self.changed));
        i128::try_from(now.saturating_sub(SETTLED).as_nanos()).is_ok_and(|settled| last <= settled)
    }
}

/// Reads a component's file; with what to remember of it, if it can be known again.
///
/// # Errors
/// As [`crate::read_component`].
pub(crate) fn read(file: &Path) -> Result<(SeenComponent, Option<Memory>), Error> {
    let began = SystemTime::now();
    let mut source = open_component(file)?;
    let identity = |source: &File| source.metadata().ok().as_ref().and_then(Identity::of);
    let before = identity(&source);
    let bytes = read_open(&mut source, file)?;
    let digest = Digest::of(&bytes);
    let manifest = embedded_manifest(&bytes);
    let memory = match (before, identity(&source), &manifest) {
        (Some(before), Some(after), Ok(manifest)) if before == after && before.is_settled(began) => {
            Some(Memory { identity: before, digest: digest.clone(), manifest: manifest.clone() })
        }
        _ => None,
    };
    Ok((SeenComponent { digest, manifest, bytes: Some(bytes), description: None }, memory))
}

impl From<Memory> for SeenComponent {
    fn from(memory: Memory) -> Self {
        Self { digest: memory.digest, manifest: Ok(memory.manifest), bytes: None, description: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(modified: i64, changed: i64) -> Identity {
        Identity { device: 1, inode: 2, size: 3, modified: (modified, 0), changed: (changed, 0) }
    }

    #[test]
    fn a_file_that_changed_a_moment_ago_or_in_the_future_is_not_settled() {
        let now = UNIX_EPOCH + Duration::from_secs(100);
        for (modified, changed, settled) in
            [(98, 98, true), (99, 98, false), (98, 99, false), (0, 100, false), (200, 0, false), (0, 200, false)]
        {
            assert_eq!(at(modified, changed).is_settled(now), settled, "{modified} {changed}");
        }
        // A clock that stands before 1970 tells nothing.
        assert!(!at(0, 0).is_settled(UNIX_EPOCH - Duration::from_secs(1)));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_was_just_written_is_read_and_not_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plugin.wasm");
        std::fs::write(&file, b"\0asm\x0d\0\x01\0").unwrap();
        let (seen, memory) = read(&file).unwrap();
        assert_eq!((seen.digest, memory), (Digest::of(b"\0asm\x0d\0\x01\0"), None));
        assert_eq!(Identity::of(&std::fs::metadata(folder.path()).unwrap()), None);
    }
}
