//! Reading files that are small by nature: settings, manifests, grants. Some are brought by others, so none is read before
//! it is known to be a regular file, nor beyond a bound.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// The longest that is read, in bytes.
pub const MAX_SMALL_FILE: u64 = 1 << 20;

/// The text of a file; `None` if it is not there. Links are followed.
///
/// # Errors
/// If it can not be read, is no regular file, has more than [`MAX_SMALL_FILE`] bytes, or is not UTF-8. A pipe or a device is
/// not opened.
pub fn read_small_file(path: &Path) -> io::Result<Option<String>> {
    match read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn read(path: &Path) -> io::Result<String> {
    // Looked at first, for opening a device may do something, and opening a pipe is noticed at its other side.
    check(&fs::metadata(path)?)?;
    let file = open(path)?;
    check(&file.metadata()?)?;
    let mut text = String::new();
    // It may grow meanwhile, and some files do not say how long they are.
    file.take(MAX_SMALL_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_SMALL_FILE { Err(too_large()) } else { Ok(text) }
}

fn check(facts: &fs::Metadata) -> io::Result<()> {
    if facts.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !facts.is_file() {
        return Err(io::Error::other("it is a device, pipe or socket, not a regular file"));
    }
    if facts.len() > MAX_SMALL_FILE { Err(too_large()) } else { Ok(()) }
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {MAX_SMALL_FILE} bytes"))
}

/// Opens what was a regular file a moment ago; a pipe that took its place is not waited for.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_regular_file_is_read_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert_eq!(read_small_file(&at("none")).unwrap(), None);
        fs::write(at("small"), "text").unwrap();
        assert_eq!(read_small_file(&at("small")).unwrap().as_deref(), Some("text"));
        let longest = "x".repeat(1 << 20);
        fs::write(at("longest"), &longest).unwrap();
        assert_eq!(read_small_file(&at("longest")).unwrap(), Some(longest));
        File::create(at("huge")).unwrap().set_len(MAX_SMALL_FILE + 1).unwrap();
        fs::write(at("binary"), [0xff]).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for (name, reason) in [("huge", "1048576 bytes"), ("binary", "UTF-8"), (".", "directory"), ("socket", "socket")]
        {
            let error = read_small_file(&at(name)).unwrap_err().to_string();
            assert!(error.contains(reason), "{name}: {error}");
        }
        drop(socket);
        // It says 0 bytes and has no end.
        assert!(read_small_file(Path::new("/dev/zero")).is_err());
        // Without the flag, opening this would wait for somebody to write to it.
        let pipe = at("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(read_small_file(&pipe).is_err());
        assert!(!open(&pipe).unwrap().metadata().unwrap().is_file());
    }
}
