//! What names have to look like.

use atoll_plugin::Error;
use globset::{GlobBuilder, GlobMatcher};

/// A pattern. Without a `/` it is about names, else about paths from the searched directory on.
#[derive(Debug)]
pub(crate) struct Pattern {
    glob: GlobMatcher,
    about: About,
    directories_only: bool,
    /// As it was given, without what says where it starts and what it is for.
    text: String,
}

#[derive(Debug, PartialEq, Eq)]
enum About {
    Names,
    Paths,
}

/// What a pattern names without leaving it open.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named<'a> {
    /// One path.
    Path(&'a str),
    /// A directory that everything it matches is below.
    Below(&'a str),
    /// Neither.
    Nothing,
}

impl Pattern {
    /// Reads a pattern. `root` is the searched directory, absolute, which a pattern may start with.
    pub(crate) fn new(pattern: &str, root: &str) -> Result<Self, Error> {
        let root = root.trim_end_matches('/');
        let within = pattern.strip_prefix(root).filter(|rest| rest.starts_with('/'));
        let mut text = within.unwrap_or(pattern);
        let anchored = text.starts_with('/');
        loop {
            let shorter = text.strip_prefix("./").unwrap_or(text).trim_start_matches('/');
            if shorter == text {
                break;
            }
            text = shorter;
        }
        let directories_only = text.ends_with('/');
        let text = text.trim_end_matches('/');
        if text.is_empty() {
            return Err(Error::invalid_arguments("The pattern is empty; `*` stands for any name."));
        }
        let about = if anchored || text.contains('/') { About::Paths } else { About::Names };
        let glob = GlobBuilder::new(text)
            .literal_separator(true)
            .case_insensitive(!text.chars().any(char::is_uppercase))
            .build()
            .map_err(|error| Error::invalid_arguments(format!("The pattern can not be used: {error}")))?
            .compile_matcher();
        Ok(Self { glob, about, directories_only, text: text.to_owned() })
    }

    /// Whether a path matches, relative to the searched directory and without a `/` at its end.
    pub(crate) fn matches(&self, path: &str, is_directory: bool) -> bool {
        if self.directories_only && !is_directory {
            return false;
        }
        match self.about {
            About::Paths => self.glob.is_match(path),
            About::Names => self.glob.is_match(path.rsplit('/').next().unwrap_or(path)),
        }
    }

    /// What it names.
    pub(crate) fn named(&self) -> Named<'_> {
        let Some(open) = self.text.find(['*', '?', '[', '{', '\\']) else { return Named::Path(&self.text) };
        match self.text[..open].rfind('/') {
            Some(end) => Named::Below(&self.text[..end]),
            None => Named::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        Pattern::new(pattern, "/project/Dir").expect("usable").matches(path.trim_end_matches('/'), path.ends_with('/'))
    }

    #[test]
    fn names_match_at_any_depth() {
        assert!(matches("*.rs", "a.rs"));
        assert!(matches("*.rs", "src/deep/a.rs"));
        assert!(matches("*.{ts,tsx}", "b/a.tsx"));
        assert!(matches("[ab].txt", "x/b.txt"));
        assert!(!matches("*.rs", "a.rsx"));
        assert!(matches("*", ".hidden"));
        assert!(matches("src", "src/"));
    }

    #[test]
    fn paths_start_at_the_searched_directory() {
        assert!(matches("src/*.rs", "src/a.rs"));
        assert!(!matches("src/*.rs", "x/src/a.rs"));
        assert!(!matches("src/*.rs", "src/deep/a.rs"));
        assert!(matches("src/**/*.rs", "src/a.rs"));
        assert!(matches("src/**/*.rs", "src/b/c/a.rs"));
        assert!(matches("**/src/*.rs", "src/a.rs"));
        assert!(matches("modules/**/*.nix", "modules/nixos/a/b.nix"));
        for same in ["./src/*.rs", "././src/*.rs", "/src/*.rs", "/project/Dir/src/*.rs"] {
            assert!(matches(same, "src/a.rs"), "{same}");
        }
        assert!(matches("./*.rs", "deep/a.rs"));
        assert!(matches("/*.rs", "a.rs") && !matches("/*.rs", "deep/a.rs"));
        assert!(matches("/project/Dir/*.rs", "a.rs") && !matches("/project/Dir/*.rs", "deep/a.rs"));
    }

    #[test]
    fn a_slash_at_the_end_is_for_directories() {
        assert!(matches("build/", "x/build/"));
        assert!(!matches("build/", "build"));
    }

    #[test]
    fn small_letters_stand_for_both() {
        assert!(matches("readme*", "README.md"));
        assert!(!matches("README*", "readme.md"));
    }

    #[test]
    fn what_can_not_be_used_is_refused() {
        for bad in ["", "./", "/", "[a", "{a", "/project/Dir/"] {
            assert_eq!(Pattern::new(bad, "/project/Dir").expect_err(bad).code(), "invalid-arguments");
        }
    }

    #[test]
    fn named_parts_are_known() {
        let named = |pattern: &str| format!("{:?}", Pattern::new(pattern, "/w").expect("usable").named());
        assert_eq!(named("a/b.txt"), "Path(\"a/b.txt\")");
        assert_eq!(named("./b"), "Path(\"b\")");
        assert_eq!(named("a/b/c*.txt"), "Below(\"a/b\")");
        assert_eq!(named("a*/b"), "Nothing");
    }
}
