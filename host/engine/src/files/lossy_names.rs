//! Names that are not UTF-8. Plugins see each byte that is not as U+FFFD, and may give the name back in that form.

use std::{
    ffi::{OsStr, OsString},
    path::{Component, Path, PathBuf},
};

use atoll_caps::Access;

use super::Roots;

/// U+FFFD in UTF-8.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

impl Roots {
    /// The path with each name as it is stored, where a plugin can only have seen it with U+FFFD in it. A name that
    /// exists as it is given, or that several could be meant by, stays.
    pub(super) fn as_stored(&self, path: PathBuf) -> PathBuf {
        if !is_lossy(path.as_os_str()) {
            return path;
        }
        let mut stored = PathBuf::new();
        for part in path.components() {
            match part {
                Component::Normal(name) if is_lossy(name) => {
                    let name = self.only_name_like(&stored, name).unwrap_or_else(|| name.to_owned());
                    stored.push(name);
                }
                part => stored.push(part),
            }
        }
        stored
    }

    /// The one name in a directory that is shown as `shown` and is not stored so.
    fn only_name_like(&self, directory: &Path, shown: &OsStr) -> Option<OsString> {
        let place = self.locate(directory, Access::Read).ok()?;
        let dir = place.dir.open_dir(&place.relative).ok()?;
        if dir.symlink_metadata(shown).is_ok() {
            return None;
        }
        let names = dir.entries().ok()?.flatten().map(|entry| entry.file_name());
        let mut alike = names.filter(|name| OsStr::new(&*name.to_string_lossy()) == shown);
        let found = alike.next()?;
        alike.next().is_none().then_some(found)
    }
}

fn is_lossy(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    // Nearly all names are ASCII, and looking for one byte is quick.
    bytes.contains(&0xef) && bytes.windows(REPLACEMENT.len()).any(|part| part == REPLACEMENT)
}
