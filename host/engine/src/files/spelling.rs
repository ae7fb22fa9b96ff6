//! How paths are spelt. Nothing here looks at the file system: what a link leads to is not known from its name.

use std::path::{Component, Path, PathBuf};

/// What follows `folder` in a path beneath it, both without `.` and `..`. Most folders are told apart by their bytes;
/// a search asks this for every file.
pub(super) fn beneath<'a>(path: &'a Path, folder: &Path) -> Option<&'a Path> {
    let same = path.as_os_str().as_encoded_bytes().strip_prefix(folder.as_os_str().as_encoded_bytes());
    same.and_then(|_| path.strip_prefix(folder).ok())
}

/// Whether an absolute path has no `.`, `..` or empty name in it.
pub(super) fn is_clean(path: &Path) -> bool {
    let names = path.as_os_str().as_encoded_bytes().strip_prefix(b"/");
    names.is_some_and(|names| names.split(|&byte| byte == b'/').all(|name| !matches!(name, b"" | b"." | b"..")))
}

/// A path without `.` and `..`.
pub(super) fn cleaned(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every absolute path of up to five of these parts.
    fn paths() -> Vec<PathBuf> {
        let mut all = vec![String::new()];
        let mut last = all.clone();
        for _ in 0..5 {
            last =
                last.iter().flat_map(|path| ["/", "a", "ab", ".", ".."].map(|part| format!("{path}{part}"))).collect();
            all.extend(last.clone());
        }
        all.into_iter().map(|path| PathBuf::from(format!("/{path}"))).collect()
    }

    #[test]
    fn a_clean_path_is_what_cleaning_makes_of_it() {
        for path in paths() {
            let clean = cleaned(&path);
            assert!(clean == Path::new("/") || is_clean(&clean), "{}", path.display());
            assert_eq!(
                is_clean(&path),
                clean.as_os_str() == path.as_os_str() && path != Path::new("/"),
                "{}",
                path.display()
            );
        }
    }

    #[test]
    fn what_is_beneath_agrees_with_the_standard_library() {
        let clean: std::collections::BTreeSet<PathBuf> = paths().iter().map(|path| cleaned(path)).collect();
        for folder in &clean {
            for path in &clean {
                assert_eq!(
                    beneath(path, folder),
                    path.strip_prefix(folder).ok(),
                    "{} {}",
                    path.display(),
                    folder.display()
                );
            }
        }
    }
}
