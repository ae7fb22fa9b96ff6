//! What files with ignore rules a walk may read. They are read as a whole, by the host and before anything of the
//! walk is shown, so one that never ends or takes too long must not be among them.

use std::path::{Path, PathBuf};

/// The most bytes of rules in one file. What people write has a few thousand; this many are ready in about a second.
const MAX_BYTES: u64 = 64 << 10;

/// Where a directory has rules.
const NAMES: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];

/// The file in a directory that looks like rules and must not be read as such: a pipe, a device, or far too long. Links
/// are followed, as whoever reads them does.
pub(super) fn unusable(directory: &Path) -> Option<PathBuf> {
    NAMES.iter().map(|name| directory.join(name)).find(|path| {
        path.metadata().is_ok_and(|facts| !facts.is_dir() && (!facts.is_file() || facts.len() > MAX_BYTES))
    })
}
