//! Unpacking packages without installing them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::process;

/// Unpacks every package of a directory and returns their versions.
pub(super) fn unpack(downloads: &Path, prefix: &Path) -> Result<BTreeMap<String, String>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(downloads)? {
        files.push(entry?.path());
    }
    files.sort();
    let packages = files
        .iter()
        .filter_map(|file| parse_deb_name(&file.file_name()?.to_string_lossy()))
        .collect::<BTreeMap<_, _>>();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || -> Result<()> {
        while let Some(file) = files.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            process::output(Command::new("dpkg").arg("-x").arg(file).arg(prefix))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for handle in handles {
            handle.join().map_err(|_| anyhow::anyhow!("a thread that unpacks packages ended early"))??;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(packages)
}

/// `name_version_arch.deb` to name and version.
fn parse_deb_name(file: &str) -> Option<(String, String)> {
    let mut parts = file.strip_suffix(".deb")?.split('_');
    Some((parts.next()?.to_owned(), parts.next()?.replace("%3a", ":")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_called_after_package_and_version() {
        assert_eq!(
            parse_deb_name("zlib1g_1%3a1.3.dfsg_amd64.deb"),
            Some(("zlib1g".to_owned(), "1:1.3.dfsg".to_owned()))
        );
        assert_eq!(parse_deb_name("notes.txt"), None);
    }
}
