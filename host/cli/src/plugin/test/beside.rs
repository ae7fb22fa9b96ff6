//! The files that a scenario names. Whoever wrote the plugin wrote the scenario, which may be anybody.
//!
//! Must never read or write outside of the folder that it is given, whatever is named and whatever links lie there.

use std::{
    io,
    path::{Component, Path},
};

use cap_std::{ambient_authority, fs::Dir};

/// Whether a name, relative to a folder, is one below it.
pub(super) fn is_below(name: &str) -> bool {
    let mut parts = Path::new(name).components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn open(folder: &Path) -> io::Result<Dir> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    Dir::open_ambient_dir(folder, ambient_authority())
}

/// That a file is no link, device or pipe.
fn check(folder: &Dir, name: &str) -> io::Result<()> {
    let kind = folder.symlink_metadata(name)?.file_type();
    if kind.is_symlink() {
        return Err(io::Error::other("it is a link, which is not followed; put the file itself there"));
    }
    if kind.is_file() { Ok(()) } else { Err(io::Error::other("it is no regular file")) }
}

/// Whether something of this name is in the folder.
pub(super) fn is_there(folder: &Path, name: &str) -> bool {
    open(folder).is_ok_and(|folder| folder.symlink_metadata(name).is_ok())
}

/// What is in a file of the folder.
///
/// # Errors
/// If it can not be read, is a link or no regular file, or is not in the folder.
pub(super) fn read(folder: &Path, name: &str) -> io::Result<Vec<u8>> {
    let folder = open(folder)?;
    check(&folder, name)?;
    folder.read(name)
}

/// Writes a file of the folder, with the folders above it.
///
/// # Errors
/// If it can not be written, there is a link or no regular file of this name, or it would not be in the folder.
pub(super) fn write(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let folder = open(folder)?;
    if let Some(parent) = Path::new(name).parent().filter(|parent| !parent.as_os_str().is_empty()) {
        folder.create_dir_all(parent)?;
    }
    match check(&folder, name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => folder.write(name, text),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_below_a_folder_have_no_root_and_do_not_go_up() {
        for name in ["a", "a/b.txt", "..a", "a..", ".hidden/x", "~"] {
            assert!(is_below(name), "{name}");
        }
        for name in ["", ".", "..", "/a", "../a", "a/../../b", "a/..", "//a", "./a"] {
            assert!(!is_below(name), "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        let all = tempfile::tempdir().unwrap();
        let (inside, outside) = (all.path().join("inside"), all.path().join("outside"));
        std::fs::create_dir_all(&inside).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("kept.txt"), "kept").unwrap();
        std::os::unix::fs::symlink("../outside/kept.txt", inside.join("file")).unwrap();
        std::os::unix::fs::symlink("../outside/new.txt", inside.join("dangling")).unwrap();
        std::os::unix::fs::symlink("../outside", inside.join("folder")).unwrap();
        for name in
            ["file", "dangling", "folder/kept.txt", "folder/new.txt", "folder/sub/new.txt", "../outside/kept.txt"]
        {
            assert!(read(&inside, name).is_err(), "{name}");
            assert!(write(&inside, name, "gone").is_err(), "{name}");
        }
        let left: Vec<_> = std::fs::read_dir(&outside).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["kept.txt"]);
        assert_eq!(std::fs::read_to_string(outside.join("kept.txt")).unwrap(), "kept");
        write(&inside, "sub/mine.txt", "mine").unwrap();
        assert_eq!(read(&inside, "sub/mine.txt").unwrap(), b"mine");
        assert!(is_there(&inside, "sub/mine.txt") && is_there(&inside, "dangling") && !is_there(&inside, "none"));
    }

    proptest! {
        #[test]
        fn a_name_below_a_folder_stays_there(name in "([a.~]{0,3}/?){0,5}") {
            let joined = Path::new("/base").join(&name);
            if is_below(&name) {
                prop_assert!(joined.starts_with("/base") && !name.split('/').any(|part| part == ".."));
            }
        }
    }
}
