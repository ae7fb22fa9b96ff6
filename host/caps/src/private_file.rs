//! Small files of the user's that only their owner may read: whoever reads one sees the old or the new text, and two
//! processes that change one do so after each other.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Holds the lock of a file, `<file>.lock` beside it, until it is dropped. Makes the directory if there is none.
#[derive(Debug)]
pub struct PrivateLock(#[expect(dead_code, reason = "closing it gives the lock back")] fs::File);

impl PrivateLock {
    /// Waits until no other process holds it.
    ///
    /// # Errors
    /// If the file that stands for it can not be made.
    pub fn of(path: &Path) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let file = private().truncate(false).open(with_suffix(path, ".lock"))?;
        file.lock()?;
        Ok(Self(file))
    }
}

/// Puts a text in a file's place, for its owner alone. It is there when this returns.
///
/// # Errors
/// If it can not be written; the old text is there then.
pub fn write_private_file(path: &Path, text: &str) -> io::Result<()> {
    // Where the file is a link, its target is replaced and the link stays.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let temporary = with_suffix(path, &format!(".{}.tmp", std::process::id()));
    // Left over from a process of this number that was killed; a new file, so that nobody else has it open.
    let _ = fs::remove_file(&temporary);
    let written = private().create_new(true).open(&temporary).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let done = written.and_then(|()| fs::rename(&temporary, path));
    if done.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    done
}

fn private() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
