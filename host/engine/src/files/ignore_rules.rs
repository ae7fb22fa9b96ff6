//! What `.gitignore`, `.ignore` and git's own exclude files leave out.
//!
//! Whoever wrote the project wrote these files. So nothing here may follow a link, wait for a pipe, or read without
//! end: a rule file is a regular file of a bounded size, or it does not count.

use std::{ffi::OsStr, io::Read as _, path::Path, sync::Arc};

use cap_std::{
    ambient_authority,
    fs::{Dir, OpenOptions, OpenOptionsExt as _},
};
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder, gitconfig_excludes_path},
};

/// The longest file of rules that counts, in bytes. The longest known in the wild has a tenth of it.
const MAX_BYTES: u64 = 256 << 10;
/// The most rules of one file that count; more would take longer to compile than a search takes.
const MAX_RULES: usize = 5_000;

/// The rules of a directory and of those above it.
pub(super) struct IgnoreRules {
    above: Option<Arc<IgnoreRules>>,
    /// Of `.ignore`, which counts more than what git says.
    ignore: Gitignore,
    /// Of `.gitignore`.
    git: Gitignore,
    /// Of `.git/info/exclude`.
    exclude: Gitignore,
    /// A repository begins here: what git is told above does not hold in it.
    is_repository: bool,
}

impl IgnoreRules {
    /// Those in a directory with these names in it, beneath `above`.
    pub(super) fn of<'a>(
        dir: &Dir,
        path: &Path,
        names: impl Iterator<Item = &'a OsStr>,
        above: Option<&Arc<Self>>,
    ) -> Option<Arc<Self>> {
        let (mut has_ignore, mut has_git, mut is_repository) = (false, false, false);
        for name in names {
            has_ignore |= name == ".ignore";
            has_git |= name == ".gitignore";
            is_repository |= name == ".git";
        }
        if !(has_ignore || has_git || is_repository) {
            return above.map(Arc::clone);
        }
        let read = |there: bool, file: &str| if there { rules(dir, path, Path::new(file)) } else { Gitignore::empty() };
        Some(Arc::new(Self {
            above: above.map(Arc::clone),
            ignore: read(has_ignore, ".ignore"),
            git: read(has_git, ".gitignore"),
            exclude: read(is_repository, ".git/info/exclude"),
            is_repository,
        }))
    }

    /// Those of the directories above one. They are looked at as git does, wherever the granted roots end: they say
    /// what is left out, and nothing of them is shown to anybody.
    pub(super) fn above(path: &Path) -> Option<Arc<Self>> {
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.reverse();
        above.into_iter().fold(None, |rules, path| {
            let Ok(dir) = Dir::open_ambient_dir(path, ambient_authority()) else { return rules };
            let there = [".ignore", ".gitignore", ".git"].map(OsStr::new).into_iter();
            Self::of(&dir, path, there.filter(|name| dir.symlink_metadata(name).is_ok()), rules.as_ref())
        })
    }

    /// The user's own for all repositories, as they hold in the directory `path`.
    pub(super) fn of_user(path: &Path) -> Self {
        let file = gitconfig_excludes_path();
        let git = file.as_deref().and_then(|file| {
            let dir = Dir::open_ambient_dir(file.parent()?, ambient_authority()).ok()?;
            Some(rules(&dir, path, Path::new(file.file_name()?)))
        });
        let git = git.unwrap_or_else(Gitignore::empty);
        Self { above: None, ignore: Gitignore::empty(), git, exclude: Gitignore::empty(), is_repository: false }
    }

    /// What they say about a path. Of each kind of file the nearest rule counts.
    pub(super) fn matched(&self, path: &Path, is_dir: bool) -> Match<()> {
        let (mut ignore, mut git, mut exclude) = (Match::None, Match::None, Match::None);
        let (mut next, mut same_repository) = (Some(self), true);
        while let Some(rules) = next {
            let ask = |of: &Gitignore, known: &mut Match<()>| {
                if known.is_none() {
                    *known = of.matched(path, is_dir).map(drop);
                }
            };
            ask(&rules.ignore, &mut ignore);
            if same_repository {
                ask(&rules.git, &mut git);
                ask(&rules.exclude, &mut exclude);
            }
            same_repository &= !rules.is_repository;
            next = rules.above.as_deref();
        }
        ignore.or(git).or(exclude)
    }
}

/// The rules in a file. What is no rule is passed over.
fn rules(dir: &Dir, path: &Path, file: &Path) -> Gitignore {
    let Some(text) = read(dir, file) else { return Gitignore::empty() };
    let text = String::from_utf8_lossy(&text);
    let mut builder = GitignoreBuilder::new(path);
    for line in text.trim_start_matches('\u{feff}').lines().take(MAX_RULES) {
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|reason| {
        tracing::debug!(folder = %path.display(), file = %file.display(), %reason, "the rules can not be used");
        Gitignore::empty()
    })
}

/// The bytes of a file of rules, if it is one.
fn read(dir: &Dir, file: &Path) -> Option<Vec<u8>> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    // Looking first, for opening a pipe would be noticed at its other side.
    let is_rules = |facts: &cap_std::fs::Metadata| facts.is_file() && facts.len() <= MAX_BYTES;
    if !is_rules(&dir.symlink_metadata(file).ok()?) {
        return None;
    }
    let opened = dir.open_with(file, &options).ok()?;
    if !is_rules(&opened.metadata().ok()?) {
        return None;
    }
    let mut bytes = Vec::new();
    opened.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
