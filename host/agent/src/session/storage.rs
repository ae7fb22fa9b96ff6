//! The file a session is kept in, and appending to it.
//!
//! Nothing is written before there is something to keep. An append that fails must leave the file as it was, and must
//! never take away what somebody else has written.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Write},
    path::{Path, PathBuf},
};

use super::SessionError;

/// Where a session is kept.
#[derive(Debug)]
pub(super) struct Storage {
    path: PathBuf,
    /// Locked for as long as it is open. None: nothing was worth keeping so far.
    file: Option<File>,
    /// Lines that are not in the file yet.
    pending: String,
    /// The file ends within a line.
    is_torn: bool,
    /// Every append fails once this is cancelled.
    #[cfg(test)]
    pub(super) breaks: tokio_util::sync::CancellationToken,
}

impl Storage {
    /// A file to be made once there is something to keep.
    pub(super) fn new(path: PathBuf, header: &str) -> Self {
        Self::with(path, None, format!("{header}\n"), false)
    }

    /// Takes a file over, and reads it.
    pub(super) fn open(path: &Path) -> Result<(Self, String), SessionError> {
        let unreadable = |reason| SessionError::Unreadable { path: path.to_owned(), reason };
        let mut file = OpenOptions::new().read(true).append(true).open(path).map_err(unreadable)?;
        if !lock(&file) {
            return Err(SessionError::InUse { path: path.to_owned() });
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(unreadable)?;
        let is_torn = !bytes.ends_with(b"\n");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok((Self::with(path.to_owned(), Some(file), String::new(), is_torn), text))
    }

    fn with(path: PathBuf, file: Option<File>, pending: String, is_torn: bool) -> Self {
        Self {
            path,
            file,
            pending,
            is_torn,
            #[cfg(test)]
            breaks: tokio_util::sync::CancellationToken::new(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line. Unless it is worth keeping, it waits until there is a file.
    pub(super) fn append(&mut self, line: &str, keep: bool) -> Result<(), SessionError> {
        let before = self.pending.len();
        self.pending.push_str(line);
        self.pending.push('\n');
        if !keep && self.file.is_none() {
            return Ok(());
        }
        match self.write() {
            Ok(()) => {
                self.pending.clear();
                Ok(())
            }
            Err(reason) => {
                self.pending.truncate(before);
                Err(SessionError::Unwritable { path: self.path.clone(), reason })
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        #[cfg(test)]
        if self.breaks.is_cancelled() {
            self.file = Some(File::open(&self.path)?);
        }
        let Some(file) = &mut self.file else {
            self.file = Some(create(&self.path, &self.pending)?);
            return Ok(());
        };
        let before = file.metadata()?.len();
        let text = if self.is_torn { format!("\n{}", self.pending) } else { self.pending.clone() };
        let (written, outcome) = write_counted(file, text.as_bytes());
        match outcome {
            Ok(()) => self.is_torn = false,
            // Half a line would be lost with whatever is appended to it.
            Err(_) if written > 0 => self.is_torn |= !take_back(file, before, written),
            Err(_) => {}
        }
        outcome
    }
}

/// Makes the file with its first lines. It appears whole and locked, so that nobody finds half of it.
fn create(path: &Path, text: &str) -> io::Result<File> {
    let parent = path.parent().unwrap_or(Path::new("."));
    make_private(parent)?;
    let mut file = tempfile::Builder::new().append(true).tempfile_in(parent)?;
    file.write_all(text.as_bytes())?;
    lock(file.as_file());
    Ok(file.persist(path)?)
}

/// Makes sure that nobody else appends: two programs in one file would each continue from an entry of their own.
/// False if somebody does. The lock is advisory and ends with the process. Where there are no locks, none is missed.
fn lock(file: &File) -> bool {
    match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(error)) => {
            tracing::warn!(%error, "the session file can not be locked");
            true
        }
    }
}

/// As `write_all`, but tells how much was written.
fn write_counted(target: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match target.write(&bytes[written..]) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

/// Takes back the start of an append, unless something else has been appended too. Whether it is gone.
fn take_back(file: &File, before: u64, written: usize) -> bool {
    let end = before + written as u64;
    file.metadata().is_ok_and(|facts| facts.len() == end) && file.set_len(before).is_ok()
}

/// Sessions hold what the user and the project said: nobody else's business.
fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn lines_wait_for_one_that_is_worth_keeping() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s/x.jsonl");
        let mut storage = Storage::new(path.clone(), "header");
        storage.append("a", false).unwrap();
        assert!(!path.exists());
        storage.append("b", true).unwrap();
        storage.append("c", false).unwrap();
        assert_eq!(read(&path), "header\na\nb\nc\n");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_has_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let mut storage = Storage::new(path.clone(), "header");
        storage.append("a", true).unwrap();
        assert!(matches!(Storage::open(&path), Err(SessionError::InUse { .. })));
        drop(storage);
        let (again, text) = Storage::open(&path).unwrap();
        assert_eq!(text, "header\na\n");
        assert!(matches!(Storage::open(&path), Err(SessionError::InUse { .. })));
        drop(again);
    }

    #[test]
    fn a_torn_line_is_ended_by_the_next_append_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        std::fs::write(&path, "header\nto").unwrap();
        let (mut storage, _) = Storage::open(&path).unwrap();
        assert_eq!(read(&path), "header\nto");
        storage.append("a", false).unwrap();
        storage.append("b", false).unwrap();
        assert_eq!(read(&path), "header\nto\na\nb\n");
    }

    #[test]
    fn a_failed_append_keeps_the_file_and_can_be_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let mut storage = Storage::new(path.clone(), "header");
        storage.append("a", true).unwrap();
        let good = storage.file.take();
        // It can only be read.
        storage.file = Some(File::open(&path).unwrap());
        assert!(matches!(storage.append("b", true), Err(SessionError::Unwritable { .. })));
        assert!(storage.file.is_some());
        storage.file = good;
        storage.append("c", true).unwrap();
        assert_eq!(read(&path), "header\na\nc\n");
    }

    #[test]
    fn what_others_appended_after_a_torn_write_is_not_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "one\ntw").unwrap();
        let file = OpenOptions::new().append(true).open(&path).unwrap();
        assert!(take_back(&file, 4, 2));
        assert_eq!(read(&path), "one\n");
        std::fs::write(&path, "one\ntwOTHER\n").unwrap();
        assert!(!take_back(&file, 4, 2));
        assert_eq!(read(&path), "one\ntwOTHER\n");
    }

    #[test]
    fn it_is_known_how_much_of_a_failed_write_was_written() {
        let mut room = [0; 5];
        let (written, outcome) = write_counted(&mut &mut room[..], b"12345678");
        assert_eq!((written, outcome.map_err(|error| error.kind())), (5, Err(io::ErrorKind::WriteZero)));
        assert_eq!(room, *b"12345");
    }
}
