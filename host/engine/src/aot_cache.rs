//! The private cache of compiled user plugins, of what they say of themselves, and of their files' digests. An entry's bytes are mapped as code, so
//! it is used only if nobody but this user can have written it and it is whole; anything else in the folder is rebuilt,
//! never fatal, never run.
//!
//! Whole is what a checksum says: it finds damage. Against whoever can write here as this user nothing would help, and
//! a digest of a compiled plugin takes longer than everything else about loading it.

use std::{
    fs,
    hash::{Hash, Hasher},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use atoll_caps::Digest;
use wasmtime::{Engine, component::Component};

use crate::{
    description::Description,
    seen::{Identity, Memory},
};

/// Starts every image; changes when the layout does.
const MAGIC: &[u8; 8] = b"atollA03";
/// Starts every description; changes when the layout does, or what a description says.
const DESCRIPTION_MAGIC: &[u8; 8] = b"atollD01";
/// Starts what is remembered of a file; changes when the layout does.
const MEMORY_MAGIC: &[u8; 8] = b"atollS01";
/// The hashes of the contract's files: what a plugin says is understood as the contract says.
const CONTRACT: &str = include_str!("../../../wit/FROZEN");

/// The cache folder, usable by several processes at once.
#[derive(Clone)]
pub(crate) struct AotCache {
    folder: PathBuf,
}

impl AotCache {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// What is in an entry, if nobody but this user can have written it.
    fn get(&self, path: &Path) -> Option<Vec<u8>> {
        if !is_private(&self.folder) {
            return None;
        }
        let mut options = fs::File::options();
        options.read(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let mut file = options.open(path).ok()?;
        let facts = file.metadata().ok()?;
        if !facts.is_file() || !is_only_written_by_user(&facts) {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(facts.len()).unwrap_or(0).saturating_add(1));
        file.read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Where the image of a component with this digest is kept for this engine.
    fn entry(&self, engine: &Engine, source: &Digest) -> PathBuf {
        let mut hasher = Fnv::default();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        self.folder.join(format!("{}-{:016x}.image", source.as_str(), hasher.finish()))
    }

    /// The stored image, if there is one that is whole and fits this engine.
    pub(crate) fn load(&self, engine: &Engine, source: &Digest) -> Option<Component> {
        let path = self.entry(engine, source);
        let bytes = self.get(&path)?;
        let image = checked(bytes.strip_prefix(MAGIC)?.strip_prefix(source.as_str().as_bytes())?)?;
        // SAFETY: folder and file are writable by this user alone, the checksum shows that the bytes are those that were
        // written, and wasmtime itself checks version and settings.
        match unsafe { Component::deserialize(engine, image) } {
            Ok(component) => Some(component),
            Err(reason) => {
                tracing::debug!(path = %path.display(), %reason, "a stored image does not fit; compiling again");
                None
            }
        }
    }

    /// Stores an image. Readers see all of it or nothing.
    pub(crate) fn store(&self, engine: &Engine, source: &Digest, component: &Component) -> io::Result<()> {
        let image = component.serialize().map_err(io::Error::other)?;
        self.put(&self.entry(engine, source), &[MAGIC, source.as_str().as_bytes(), &checksum(&image), &image])
    }

    /// Where the description of a component with this digest is kept, and what tells the versions of the program apart
    /// that may use it.
    fn description_entry(&self, engine: &Engine, source: &Digest) -> (PathBuf, String) {
        let mut hasher = Fnv::default();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        (env!("CARGO_PKG_VERSION"), CONTRACT).hash(&mut hasher);
        let version = format!("{:016x}", hasher.finish());
        (self.folder.join(format!("{}-{version}.description", source.as_str())), version)
    }

    /// The stored description, if there is one that is whole and of this version.
    pub(crate) fn load_description(&self, engine: &Engine, source: &Digest) -> Option<Description> {
        let (path, version) = self.description_entry(engine, source);
        let bytes = self.get(&path)?;
        let rest = bytes.strip_prefix(DESCRIPTION_MAGIC)?.strip_prefix(version.as_bytes())?;
        let description = Description::parse(checked(rest.strip_prefix(source.as_str().as_bytes())?)?);
        if let Err(reason) = &description {
            tracing::debug!(path = %path.display(), %reason, "a stored description can not be used; asking again");
        }
        description.ok()
    }

    /// Stores a description. Readers see all of it or nothing.
    pub(crate) fn store_description(
        &self,
        engine: &Engine,
        source: &Digest,
        description: &Description,
    ) -> io::Result<()> {
        let (path, version) = self.description_entry(engine, source);
        let text = description.text()?;
        let text = text.as_bytes();
        let head: [&[u8]; 4] = [DESCRIPTION_MAGIC, version.as_bytes(), source.as_str().as_bytes(), &checksum(text)];
        self.put(&path, &[head.concat().as_slice(), text])
    }

    /// Where it is kept what a file was when it was read.
    fn memory_entry(&self, identity: &Identity) -> PathBuf {
        self.folder.join(format!("{:x}-{:x}.seen", identity.device, identity.inode))
    }

    /// What is remembered of a file, if it is still the same.
    pub(crate) fn recall(&self, identity: &Identity) -> Option<Memory> {
        let bytes = self.get(&self.memory_entry(identity))?;
        let text = checked(bytes.strip_prefix(MEMORY_MAGIC)?)?;
        let memory: Memory = serde_json::from_slice(text).ok()?;
        (memory.identity == *identity).then_some(memory)
    }

    /// Remembers what a file is.
    pub(crate) fn remember(&self, memory: &Memory) -> io::Result<()> {
        let text = serde_json::to_vec(memory)?;
        self.put(&self.memory_entry(&memory.identity), &[MEMORY_MAGIC, &checksum(&text), &text])
    }

    /// Puts an entry where it belongs, all of it at once.
    fn put(&self, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
        create_private(&self.folder)?;
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.folder)?;
        for part in parts {
            file.write_all(part)?;
        }
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// What follows its checksum in an entry, if it is whole.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (sum, content) = bytes.split_first_chunk()?;
    (checksum(content) == *sum).then_some(content)
}

fn checksum(content: &[u8]) -> [u8; 4] {
    crc32fast::hash(content).to_le_bytes()
}

fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)?;
    if is_private(folder) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("{} can be written by others; run: chmod go-w {}", folder.display(), folder.display()),
    ))
}

/// Whether only this user can put files into the folder.
fn is_private(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|facts| facts.is_dir() && is_only_written_by_user(&facts))
}

/// Whether it belongs to this user, and nobody else may write it.
fn is_only_written_by_user(facts: &fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        facts.mode() & 0o022 == 0 && facts.uid() == rustix::process::geteuid().as_raw()
    }
    #[cfg(not(unix))]
    {
        !facts.permissions().readonly()
    }
}

/// FNV-1a: the same in every process and build, which the standard library's hasher does not promise.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Purpose, engine};

    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    fn setup() -> (tempfile::TempDir, AotCache, Engine, Digest) {
        let folder = tempfile::tempdir().unwrap();
        let cache = AotCache::new(folder.path().join("aot"));
        (folder, cache, engine(Purpose::Run).unwrap(), Digest::of(EMPTY))
    }

    fn only_entry(cache: &AotCache) -> PathBuf {
        let entries: Vec<_> = fs::read_dir(&cache.folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(entries.len(), 1, "{entries:?}");
        entries[0].clone()
    }

    #[test]
    fn a_stored_image_is_found_again() {
        let (_folder, cache, engine, digest) = setup();
        assert!(cache.load(&engine, &digest).is_none());
        cache.store(&engine, &digest, &Component::new(&engine, EMPTY).unwrap()).unwrap();
        assert!(cache.load(&engine, &digest).is_some());
    }

    #[test]
    fn a_damaged_truncated_or_foreign_entry_is_not_used() {
        let (_folder, cache, engine, digest) = setup();
        cache.store(&engine, &digest, &Component::new(&engine, EMPTY).unwrap()).unwrap();
        let path = only_entry(&cache);
        let whole = fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        let last = flipped.len() - 1;
        flipped[last] ^= 1;
        for bad in [&flipped[..], &whole[..whole.len() / 2], b"", b"not an image at all"] {
            fs::write(&path, bad).unwrap();
            assert!(cache.load(&engine, &digest).is_none());
        }
        fs::write(&path, &whole).unwrap();
        assert!(cache.load(&engine, &digest).is_some());
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_others_can_write_is_not_trusted() {
        use std::os::unix::fs::PermissionsExt as _;
        let (_folder, cache, engine, digest) = setup();
        let component = Component::new(&engine, EMPTY).unwrap();
        cache.store(&engine, &digest, &component).unwrap();
        let entry = only_entry(&cache);
        fs::set_permissions(&entry, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(cache.load(&engine, &digest).is_none(), "others may have written the entry");
        fs::set_permissions(&entry, fs::Permissions::from_mode(0o600)).unwrap();
        let elsewhere = cache.folder.join("elsewhere");
        fs::rename(&entry, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &entry).unwrap();
        assert!(cache.load(&engine, &digest).is_none(), "a link is no entry");
        fs::rename(&elsewhere, &entry).unwrap();
        assert!(cache.load(&engine, &digest).is_some());
        fs::set_permissions(&cache.folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(cache.load(&engine, &digest).is_none());
        assert!(cache.store(&engine, &digest, &component).is_err());
    }
}
