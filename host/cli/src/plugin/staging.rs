//! Putting a plugin's folder in its place, and taking it away: at every moment there is the old one whole, the new one
//! whole, or none. Work under way is in folders whose names begin with a dot, which nobody loads.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

const PREFIX: &str = ".staging-";

/// The folder of plugins, changed by nobody else while this is held.
pub(super) struct PluginFolder {
    path: PathBuf,
    _lock: File,
}

impl PluginFolder {
    /// Waits for others, and clears away what a process left behind that was ended in the middle of it.
    pub(super) fn lock(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let lock = File::options().write(true).create(true).truncate(false).open(path.join(".lock"))?;
        lock.lock()?;
        for entry in fs::read_dir(path)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                clear(&entry.path());
            }
        }
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Puts a plugin of these files in the place of the one of its name, if there is one. Gives its folder.
    pub(super) fn put(&self, name: &str, files: &[(&str, &[u8])]) -> io::Result<PathBuf> {
        let staged = self.path.join(format!("{PREFIX}{name}"));
        fs::create_dir(&staged)?;
        let done = self.put_staged(&staged, name, files);
        // What is there now is the old plugin, or what could not be put into place.
        clear(&staged);
        done
    }

    fn put_staged(&self, staged: &Path, name: &str, files: &[(&str, &[u8])]) -> io::Result<PathBuf> {
        for (file, content) in files {
            let mut file = File::create_new(staged.join(file))?;
            file.write_all(content)?;
            file.sync_all()?;
        }
        File::open(staged)?.sync_all()?;
        let place = self.path.join(name);
        if fs::symlink_metadata(&place).is_ok() {
            swap(staged, &place)?;
        } else {
            fs::rename(staged, &place)?;
        }
        File::open(&self.path)?.sync_all()?;
        Ok(place)
    }

    /// Takes a plugin away.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        let place = self.path.join(name);
        if fs::symlink_metadata(&place).is_err() {
            return Ok(());
        }
        let gone = self.path.join(format!("{PREFIX}{name}"));
        fs::rename(&place, &gone)?;
        clear(&gone);
        Ok(())
    }
}

/// Exchanges two folders in one step. Where the file system can not do that, in two, with the old one put back if the
/// second fails.
fn swap(new: &Path, old: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP) => {
            let aside = old.with_file_name(format!("{PREFIX}old"));
            fs::rename(old, &aside)?;
            let done = fs::rename(new, old);
            if done.is_err() {
                fs::rename(&aside, old)?;
            }
            clear(&aside);
            done
        }
        Err(error) => Err(error.into()),
    }
}

/// A link goes, not what it leads to. What can not be removed now is left for the next time.
fn clear(path: &Path) {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir());
    let done = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    if let Err(error) = done
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "could not be removed");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_plugin_is_replaced_whole_and_leftovers_are_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plugins");
        let plugins = PluginFolder::lock(&path).unwrap();
        plugins.put("a", &[("plugin.wasm", b"old"), ("plugin.toml", b"old")]).unwrap();
        // A process was ended while it staged another one.
        fs::create_dir_all(path.join(".staging-a/half")).unwrap();
        drop(plugins);
        let plugins = PluginFolder::lock(&path).unwrap();
        plugins.put("a", &[("plugin.wasm", b"new")]).unwrap();
        assert_eq!(names(&path), [".lock", "a"]);
        assert_eq!(names(&path.join("a")), ["plugin.wasm"]);
        assert_eq!(fs::read(path.join("a/plugin.wasm")).unwrap(), b"new");
        plugins.remove("a").unwrap();
        plugins.remove("a").unwrap();
        assert_eq!(names(&path), [".lock"]);
    }

    #[test]
    fn what_can_not_be_staged_leaves_the_old_one_whole() {
        let folder = tempfile::tempdir().unwrap();
        let plugins = PluginFolder::lock(folder.path()).unwrap();
        plugins.put("a", &[("plugin.wasm", b"old")]).unwrap();
        assert!(plugins.put("a", &[("plugin.wasm", b"new"), ("no/such/folder", b"x")]).is_err());
        assert_eq!(fs::read(folder.path().join("a/plugin.wasm")).unwrap(), b"old");
        assert_eq!(names(folder.path()), [".lock", "a"]);
    }

    #[test]
    fn a_link_is_replaced_and_removed_not_what_it_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("elsewhere");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("plugin.wasm"), "mine").unwrap();
        let path = folder.path().join("plugins");
        let plugins = PluginFolder::lock(&path).unwrap();
        std::os::unix::fs::symlink(&target, path.join("a")).unwrap();
        plugins.put("a", &[("plugin.wasm", b"new")]).unwrap();
        std::os::unix::fs::symlink(&target, path.join("b")).unwrap();
        plugins.remove("b").unwrap();
        assert_eq!(fs::read_to_string(target.join("plugin.wasm")).unwrap(), "mine");
        assert_eq!(fs::read(path.join("a/plugin.wasm")).unwrap(), b"new");
    }
}
