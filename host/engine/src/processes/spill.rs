//! Files that hold what is too long to show, in a folder that only the user can look into.

use std::{
    fs::{self, File, Permissions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, Once},
    time::{Duration, SystemTime},
};

use atoll_table::Error;
use tempfile::TempPath;

use crate::state::lock;

/// How much of one process's output is kept in its file.
///
/// Default: 256 MiB. Cost: that much disk for each process that prints so much, until its file is
/// [swept](KEPT_FOR). Failure: the file holds the first 256 MiB only; the process goes on. The tool `bash` has the
/// same number, for what it says of the file.
const MAX_BYTES: u64 = 256 << 20;
/// How long files are kept.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How the names of files of text end.
const SUFFIX: &str = ".log";
/// How those of other files end.
const OTHER_SUFFIXES: [&str; 4] = [".png", ".jpg", ".gif", ".webp"];

/// The spill file of a process; removed when dropped unless it was kept.
pub(super) struct Spill {
    path: Option<TempPath>,
    log: Arc<Mutex<Log>>,
}

/// What is written to a spill file.
pub(super) struct Log {
    /// The file, or why there is none.
    file: Result<File, String>,
    /// How many more bytes it may hold.
    left: u64,
}

impl Log {
    /// Adds output, as far as there is room.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        let Ok(file) = &mut self.file else { return };
        let fits = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        match file.write_all(&bytes[..fits]) {
            Ok(()) => self.left -= fits as u64,
            Err(error) => self.file = Err(format!("it could not be written: {error}")),
        }
    }
}

impl Spill {
    /// Makes a file. If that is not possible, only [`Spill::keep`] fails: the process can run all the same.
    pub(super) fn open(folder: &Path, prefix: &str) -> Result<Self, Error> {
        let plain =
            !prefix.is_empty() && prefix.len() <= 32 && prefix.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if !plain {
            return Err(Error::InvalidArguments("a spill prefix has 1 to 32 of A-Z a-z 0-9 -".to_owned()));
        }
        let made = make_private(folder)
            .and_then(|()| tempfile::Builder::new().prefix(&format!("{prefix}-")).suffix(SUFFIX).tempfile_in(folder));
        let (path, file) = match made {
            Ok(made) => {
                sweep_once(folder);
                let (file, path) = made.into_parts();
                (Some(path), Ok(file))
            }
            Err(error) => (None, Err(format!("{} can not be used: {error}", folder.display()))),
        };
        Ok(Self { path, log: Arc::new(Mutex::new(Log { file, left: MAX_BYTES })) })
    }

    /// Where output is to be written.
    pub(super) fn log(&self) -> Arc<Mutex<Log>> {
        Arc::clone(&self.log)
    }

    /// Keeps the file and gives its path. Fails if output is missing in it that should be there.
    pub(super) fn keep(&mut self) -> Result<PathBuf, Error> {
        if let Err(reason) = &lock(&self.log).file {
            return Err(Error::Failed(reason.clone()));
        }
        let Some(path) = &mut self.path else { return Err(Error::Failed("there is no file".to_owned())) };
        path.disable_cleanup(true);
        Ok(path.to_path_buf())
    }
}

/// Makes a file of its own for these bytes.
///
/// # Errors
/// `failed` if it can not be made or written; then there is none.
pub(crate) fn save(folder: &Path, prefix: &str, suffix: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
    let save = || {
        make_private(folder)?;
        let mut file =
            tempfile::Builder::new().prefix(&format!("{prefix}-")).suffix(&format!(".{suffix}")).tempfile_in(folder)?;
        file.write_all(bytes)?;
        let (_, path) = file.keep()?;
        io::Result::Ok(path)
    };
    let path = save().map_err(|error| Error::Failed(format!("{} can not be used: {error}", folder.display())))?;
    sweep_once(folder);
    Ok(path)
}

fn sweep_once(folder: &Path) {
    static SWEPT: Once = Once::new();
    SWEPT.call_once(|| sweep(folder));
}

/// The folder for spill files: `atoll-UID` among the temporary files. Where others got there first, a new folder
/// for this process alone; where neither can be made, `otherwise`, which no plugin may read.
///
/// It is made at once: it is a root of plugins, which see only what is there when they first look.
pub fn spill_folder(otherwise: PathBuf) -> PathBuf {
    let temporary = std::path::absolute(std::env::temp_dir()).unwrap_or_else(|_| std::env::temp_dir());
    let usual = temporary.join(format!("atoll-{}", rustix::process::geteuid().as_raw()));
    match make_private(&usual) {
        Ok(()) => return usual,
        Err(reason) => tracing::warn!(folder = %usual.display(), %reason, "long output goes elsewhere"),
    }
    let private = Permissions::from_mode(0o700);
    match tempfile::Builder::new().prefix("atoll-spill-").permissions(private).tempdir_in(temporary) {
        Ok(folder) => folder.keep(),
        Err(reason) => {
            tracing::warn!(%reason, "long output goes where no plugin can read it");
            otherwise
        }
    }
}

/// Makes a folder only this user can look into. One that is there already has to be such a folder: among the
/// temporary files, anybody may have put something in its place.
fn make_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let facts = fs::symlink_metadata(folder)?;
    if !facts.is_dir() {
        return Err(io::Error::other("it is a link"));
    }
    if facts.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it belongs to somebody else"));
    }
    if facts.mode() & 0o077 != 0 {
        return Err(io::Error::other(format!("others may use it (mode {:o})", facts.mode() & 0o7777)));
    }
    Ok(())
}

/// Removes the files that are older than [`KEPT_FOR`].
fn sweep(folder: &Path) {
    let now = SystemTime::now();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // `metadata` of an entry does not follow links.
        let Ok(facts) = entry.metadata() else { continue };
        let age = facts.modified().ok().and_then(|modified| now.duration_since(modified).ok());
        let is_ours = facts.is_file() && {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            [SUFFIX].iter().chain(&OTHER_SUFFIXES).any(|suffix| name.ends_with(suffix))
        };
        if is_ours
            && age.is_some_and(|age| age > KEPT_FOR)
            && let Err(error) = fs::remove_file(entry.path())
        {
            tracing::warn!(file = %entry.path().display(), %error, "an old file could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(folder: &Path, mode: u32) {
        fs::set_permissions(folder, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn only_a_real_folder_of_ones_own_is_private() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("a/b");
        make_private(&folder).unwrap();
        make_private(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o7777, 0o700);
        for open in [0o777, 0o750, 0o701] {
            mode(&folder, open);
            assert!(make_private(&folder).is_err(), "{open:o}");
        }
        mode(&folder, 0o700);
        symlink(&folder, base.path().join("link")).unwrap();
        assert!(make_private(&base.path().join("link")).is_err());
        fs::write(base.path().join("file"), "").unwrap();
        assert!(make_private(&base.path().join("file")).is_err());
    }

    #[test]
    fn a_folder_that_can_not_be_used_loses_the_output_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        mode(base.path(), 0o755);
        let mut spill = Spill::open(base.path(), "x").unwrap();
        lock(&spill.log()).write(b"output");
        assert!(spill.keep().is_err());
        assert!(matches!(Spill::open(base.path(), "../x"), Err(Error::InvalidArguments(_))));
    }

    #[test]
    fn a_file_holds_the_start_up_to_the_bound_and_goes_unless_kept() {
        let base = tempfile::tempdir().unwrap();
        mode(base.path(), 0o700);
        let mut spill = Spill::open(base.path(), "x").unwrap();
        lock(&spill.log).left = 5;
        lock(&spill.log()).write(b"abc");
        lock(&spill.log()).write(b"def");
        lock(&spill.log()).write(b"ghi");
        let kept = spill.keep().unwrap();
        assert_eq!(spill.keep().unwrap(), kept);
        drop(spill);
        assert_eq!(fs::read(kept).unwrap(), b"abcde");
        drop(Spill::open(base.path(), "y").unwrap());
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_old_files_are_swept() {
        let base = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - KEPT_FOR - Duration::from_secs(60);
        for name in ["old.log", "new.log", "old.txt"] {
            let file = File::create(base.path().join(name)).unwrap();
            if name.starts_with("old") {
                file.set_modified(old).unwrap();
            }
        }
        sweep(base.path());
        let mut left: Vec<_> = fs::read_dir(base.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["new.log", "old.txt"]);
    }
}
