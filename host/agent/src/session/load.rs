//! The file's format, and finding and reading files: a header, then one entry a line, each naming its parent.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{SessionError, context::Entry};

/// The version of the format.
const VERSION: u64 = 3;

/// The header is looked for in no more than the first MiB of a file, which is the bound of other readers.
const LONGEST_HEADER: u64 = 1 << 20;

/// The folder of a directory's sessions. Other directories may share it, so the header says which one is meant.
pub fn folder(sessions: &Path, cwd: &Path) -> PathBuf {
    let text = cwd.to_string_lossy();
    let trimmed = text.trim_start_matches(['/', '\\']);
    sessions.join(format!("--{}--", trimmed.replace(['/', '\\', ':'], "-")))
}

/// The first line. The directory is text there, whatever its name is made of.
pub(super) fn header(id: &str, timestamp: &str, cwd: &Path) -> Value {
    let cwd = cwd.to_string_lossy();
    json!({"type": "session", "version": VERSION, "id": id, "timestamp": timestamp, "cwd": cwd})
}

/// What a session file holds.
pub(super) struct Loaded {
    pub(super) header: Value,
    pub(super) id: String,
    pub(super) entries: Vec<Entry>,
}

/// Reads the text of a session file. Malformed lines are passed over.
pub(super) fn parse(path: &Path, text: &str) -> Result<Loaded, SessionError> {
    let format = |reason: &str| SessionError::Format { path: path.to_owned(), reason: reason.to_owned() };
    let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let header = lines.next().ok_or_else(|| format("it has no entries"))?;
    if header["type"] != "session" {
        return Err(format("it does not begin with a session header"));
    }
    match header["version"].as_u64() {
        Some(VERSION) => {}
        version => {
            let version = version.unwrap_or(1);
            return Err(format(&format!("it is of version {version}, and this program reads version {VERSION}")));
        }
    }
    let id = header["id"].as_str().ok_or_else(|| format("its header has no id"))?.to_owned();
    let entries = lines.filter_map(|line| match line {
        Value::Object(entry) if entry.get("id").is_some_and(Value::is_string) => Some(entry),
        _ => None,
    });
    Ok(Loaded { entries: entries.collect(), header, id })
}

/// The file of `cwd` that was written to last. A file that does not say whose it is counts: passing over it would
/// silently go on with another session than the user means.
pub(super) fn latest(folder: &Path, cwd: &Path) -> Result<PathBuf, SessionError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |reason: io::Error| SessionError::Unreadable { path, reason }
    };
    let nothing = || SessionError::NothingToContinue { cwd: cwd.to_owned() };
    let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let listing = match std::fs::read_dir(folder) {
        Err(error) if is_gone(&error) => return Err(nothing()),
        listing => listing.map_err(unreadable(folder))?,
    };
    let mut files = Vec::new();
    for entry in listing {
        let path = entry.map_err(unreadable(folder))?.path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        match path.metadata() {
            Ok(facts) if facts.is_file() => files.push((facts.modified().map_err(unreadable(&path))?, path)),
            Ok(_) => {}
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(unreadable(&path)(error)),
        }
    }
    files.sort();
    while let Some((_, path)) = files.pop() {
        let header = read_header(&path).map_err(unreadable(&path))?;
        let named = header.as_ref().and_then(|header| header["cwd"].as_str());
        if named.is_none_or(|named| Path::new(named) == Path::new(&*cwd.to_string_lossy())) {
            return Ok(path);
        }
    }
    Err(nothing())
}

/// The first entry of a file, if it has one.
fn read_header(path: &Path) -> io::Result<Option<Value>> {
    for line in BufReader::new(File::open(path)?.take(LONGEST_HEADER)).split(b'\n') {
        if let Ok(entry) = serde_json::from_slice(&line?) {
            return Ok(Some(entry));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_are_refused_with_the_reason_and_the_way_out() {
        for (text, reason) in [
            ("", "no entries"),
            ("{\"type\":\"message\"}", "does not begin"),
            ("{\"type\":\"session\",\"version\":2,\"id\":\"x\"}", "version 2"),
        ] {
            let error = parse(Path::new("/s/x.jsonl"), text).err().unwrap().to_string();
            assert!(error.contains(reason) && error.contains("/s/x.jsonl") && error.contains("--continue"), "{error}");
        }
    }

    #[test]
    fn a_directory_has_its_folder() {
        assert_eq!(folder(Path::new("/s"), Path::new("/tmp/peer/w")), Path::new("/s/--tmp-peer-w--"));
    }

    /// The header used to be made of the path itself, which panicked.
    #[cfg(unix)]
    #[test]
    fn a_directory_whose_name_is_not_text_has_a_header_and_is_found_again() {
        use std::os::unix::ffi::OsStrExt as _;
        let cwd = Path::new(std::ffi::OsStr::from_bytes(b"/p/caf\xe9"));
        let header = header("i", "t", cwd);
        assert_eq!(header["cwd"], "/p/caf\u{fffd}");
        let sessions = tempfile::tempdir().unwrap();
        let path = sessions.path().join("x.jsonl");
        std::fs::write(&path, format!("{header}\n")).unwrap();
        assert_eq!(latest(sessions.path(), cwd).unwrap(), path);
    }

    /// `/a/b` and `/a-b` share a folder; the one used to go on with the other's session.
    #[test]
    fn a_session_of_another_directory_is_passed_over() {
        let sessions = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(sessions.path().join(name), text).unwrap();
        let found = |cwd: &str| latest(sessions.path(), Path::new(cwd));
        assert!(matches!(found("/a/b"), Err(SessionError::NothingToContinue { .. })));
        write("1.jsonl", &header("1", "", Path::new("/a/b")).to_string());
        write("2.jsonl", &header("2", "", Path::new("/a-b")).to_string());
        write("notes.txt", "");
        assert_eq!(found("/a/b").unwrap(), sessions.path().join("1.jsonl"));
        assert_eq!(found("/a-b").unwrap(), sessions.path().join("2.jsonl"));
        assert!(matches!(found("/a"), Err(SessionError::NothingToContinue { .. })));
    }

    #[test]
    fn a_folder_that_can_not_be_listed_is_not_taken_for_an_empty_one() {
        let sessions = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(latest(sessions.path(), Path::new("/p")), Err(SessionError::Unreadable { .. })));
    }
}
