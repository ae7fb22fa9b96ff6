//! Instructions that a project or the user keeps in files: `AGENTS.md` and its relatives.

use std::path::{Path, PathBuf};

/// The names looked for in each directory; the first regular file counts.
const NAMES: [&str; 5] = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];
/// A larger file is cut, with a note: it would crowd out everything else.
const MAX_BYTES: usize = 256 << 10;

/// A file with instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

/// The files in force: Atoll's own directory first, then from the root of the file system down to `cwd`. A file
/// that can not be read as text is left out.
pub fn find(atoll_home: &Path, cwd: &Path) -> Vec<ContextFile> {
    let mut directories: Vec<&Path> = cwd.ancestors().collect();
    directories.push(atoll_home);
    directories.reverse();
    let mut files: Vec<ContextFile> = Vec::new();
    for directory in directories {
        let Some(path) = NAMES.iter().map(|name| directory.join(name)).find(|path| path.is_file()) else { continue };
        if files.iter().any(|known| known.path == path) {
            continue;
        }
        let Ok(bytes) = read_start(&path) else { continue };
        let Ok(text) = String::from_utf8(bytes) else {
            tracing::warn!(path = %path.display(), "instructions that are not UTF-8 are left out");
            continue;
        };
        let text = text.trim_start_matches('\u{feff}');
        let cut = text.floor_char_boundary(MAX_BYTES);
        let note = if cut < text.len() { "\n[cut: the file is too long]" } else { "" };
        files.push(ContextFile { path, text: format!("{}{note}", &text[..cut]) });
    }
    files
}

/// As much of a file as can count, and a little more to see that there is more.
fn read_start(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MAX_BYTES as u64 + 4).read_to_end(&mut bytes)?;
    // A character may have been cut in two.
    if bytes.len() > MAX_BYTES
        && let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_from_the_user_then_from_the_outside_in_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let (home, project) = (folder.path().join("home"), folder.path().join("p"));
        let inner = project.join("inner");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join("AGENTS.md"), "user").unwrap();
        std::fs::write(project.join("CLAUDE.md"), "\u{feff}outer").unwrap();
        std::fs::write(inner.join("AGENTS.md"), "plain").unwrap();
        std::fs::write(inner.join("AGENTS.override.md"), "override").unwrap();
        let texts: Vec<String> = find(&home, &inner).into_iter().map(|file| file.text).collect();
        assert_eq!(texts, ["user", "outer", "override"]);
        let texts: Vec<String> = find(&project, &inner).into_iter().map(|file| file.text).collect();
        assert_eq!(texts, ["outer", "override"]);
    }
}
