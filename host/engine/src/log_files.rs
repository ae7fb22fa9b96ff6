//! What extensions log, each in a file of its own: `NAME.log`, and `NAME.log.1` with what was before. Several processes may
//! write to one.
//!
//! A line that can not be written is lost: nothing waits for a log, and nothing fails because of one. What is written has no
//! secret in it and no character that could steer a terminal: both are seen to before.

use std::{
    collections::{HashMap, hash_map::Entry},
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Mutex,
};

use atoll_caps::{PrivateLock, printable};
use jiff::{Timestamp, fmt::temporal::DateTimePrinter};
use tracing::Level;

use crate::state::lock;

/// The longest file, in bytes, but for a line of each other process that writes at the same moment: writing waits for nobody. With
/// the one before it, twice that.
const MAX_FILE: u64 = 1 << 20;

/// The files of a folder, opened when a plugin first logs something.
pub(crate) struct LogFiles {
    folder: PathBuf,
    open: Mutex<HashMap<String, File>>,
}

impl LogFiles {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, open: Mutex::default() }
    }

    /// Writes a line of a plugin's. The least important ones, which are many, are left out.
    pub(crate) fn write(&self, plugin: &str, level: Level, line: &str) {
        if level == Level::TRACE {
            return;
        }
        let time = DateTimePrinter::new().precision(Some(3)).timestamp_to_string(&Timestamp::now());
        let line = format!("{time} {level:5} {}\n", printable(line));
        let mut open = lock(&self.open);
        if self.append(&mut open, plugin, &line).is_err() {
            open.remove(plugin);
        }
    }

    fn append(&self, open: &mut HashMap<String, File>, plugin: &str, line: &str) -> io::Result<()> {
        let path = self.folder.join(format!("{plugin}.log"));
        // Another process may have begun a new one, or the user have removed it.
        let there = fs::symlink_metadata(&path).ok();
        let is_same = |file: &File, there: &fs::Metadata| file.metadata().is_ok_and(|own| own.ino() == there.ino());
        let length = there.as_ref().map_or(0, fs::Metadata::len);
        if !there.zip(open.get(plugin)).is_some_and(|(there, file)| is_same(file, &there)) {
            open.remove(plugin);
        }
        if length + line.len() as u64 > MAX_FILE {
            open.remove(plugin);
            self.begin_anew(&path, line.len() as u64)?;
        }
        let file = match open.entry(plugin.to_owned()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
                let mut options = File::options();
                // A link there would have others' files written to.
                options.append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
                entry.insert(options.open(&path)?)
            }
        };
        // At once, so that lines of several processes do not mix.
        file.write_all(line.as_bytes())
    }

    /// Puts a file aside that is full, unless another process has just done so.
    fn begin_anew(&self, path: &Path, more: u64) -> io::Result<()> {
        let _lock = PrivateLock::of(&self.folder.join("logs"))?;
        if fs::symlink_metadata(path)?.len() + more > MAX_FILE {
            let mut aside = path.as_os_str().to_owned();
            aside.push(".1");
            fs::rename(path, aside)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn lines(path: &Path) -> Vec<String> {
        fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn lines_are_whole_and_private_and_files_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("home/logs");
        let files: Vec<LogFiles> = (0..3).map(|_| LogFiles::new(logs.clone())).collect();
        let long = "x".repeat(4_000);
        std::thread::scope(|scope| {
            for (number, files) in files.iter().enumerate() {
                let long = &long;
                scope.spawn(move || {
                    for line in 0..200 {
                        files.write("it", Level::INFO, &format!("{number} {line} {long}"));
                    }
                });
            }
        });
        let (now, before) = (logs.join("it.log"), logs.join("it.log.1"));
        for path in [&now, &before] {
            let facts = fs::metadata(path).unwrap();
            let bound = MAX_FILE + 2 * (long.len() as u64 + 100);
            assert!(facts.len() <= bound && facts.permissions().mode() & 0o777 == 0o600, "{path:?}");
            assert!(lines(path).iter().all(|line| line.ends_with(&long) && line.contains(" INFO  ")), "{path:?}");
        }
        // 2.4 MB were written: the last two files of it are there, each nearly full or begun.
        let left = lines(&now).len() + lines(&before).len();
        assert!((261..600).contains(&left), "{left}");
        files[0].write("other", Level::ERROR, "two\nlines \u{1b}[2J");
        files[0].write("other", Level::TRACE, "left out");
        let other = lines(&logs.join("other.log"));
        assert!(other.len() == 1 && other[0].contains(" ERROR two\\nlines \\"), "{other:?}");
        // The user takes it away.
        fs::remove_file(logs.join("other.log")).unwrap();
        files[0].write("other", Level::WARN, "again");
        assert_eq!(lines(&logs.join("other.log")).len(), 1);
    }

    #[test]
    fn a_link_in_a_files_place_is_not_followed_and_a_folder_that_can_not_be_is_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        fs::write(&target, "kept").unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join("it.log")).unwrap();
        LogFiles::new(folder.path().to_owned()).write("it", Level::INFO, "line");
        assert_eq!(fs::read_to_string(&target).unwrap(), "kept");
        LogFiles::new(target.join("no-folder")).write("it", Level::INFO, "line");
    }
}
