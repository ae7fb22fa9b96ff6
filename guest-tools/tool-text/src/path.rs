//! Paths as models write them.

use unicode_normalization::UnicodeNormalization;

/// A path argument as it is meant: one leading `@` dropped (a habit from mentioning files) and Unicode spaces
/// made plain. `~` and relative paths are the host's to resolve.
pub fn path_argument(path: &str) -> String {
    let path = path.strip_prefix('@').unwrap_or(path);
    path.chars().map(|c| if is_unicode_space(c) { ' ' } else { c }).collect()
}

/// The spellings under which an existing file may be meant, most likely first and each once: models change
/// characters that look alike, and file systems differ in how they store accents.
pub fn path_spellings(path: &str) -> Vec<String> {
    let meant = path_argument(path);
    let decomposed: String = meant.nfd().collect();
    let candidates = [
        meant.clone(),
        path.strip_prefix('@').unwrap_or(path).to_owned(),
        path.to_owned(),
        // macOS puts U+202F before AM and PM in the names of its screenshots.
        meant.replace(" AM.", "\u{202f}AM.").replace(" PM.", "\u{202f}PM."),
        decomposed.clone(),
        meant.nfc().collect(),
        meant.replace('\'', "\u{2019}"),
        decomposed.replace('\'', "\u{2019}"),
    ];
    let mut spellings: Vec<String> = Vec::new();
    for candidate in candidates {
        if !spellings.contains(&candidate) {
            spellings.push(candidate);
        }
    }
    spellings
}

/// A space character that is not the plain space.
fn is_unicode_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_at_sign_is_dropped() {
        assert_eq!(path_argument("@src/lib.rs"), "src/lib.rs");
        assert_eq!(path_argument("@@odd"), "@odd");
        assert_eq!(path_argument("a@b"), "a@b");
        assert_eq!(path_argument("~/x"), "~/x");
    }

    #[test]
    fn unicode_spaces_are_plain() {
        assert_eq!(path_argument("a\u{a0}b\u{202f}c\u{3000}d"), "a b c d");
    }

    #[test]
    fn spellings_cover_what_differs_between_systems() {
        assert_eq!(path_spellings("plain.txt"), ["plain.txt"]);
        assert!(path_spellings("Shot at 9.41 AM.png").contains(&"Shot at 9.41\u{202f}AM.png".to_owned()));
        assert!(path_spellings("caf\u{e9}.txt").contains(&"cafe\u{301}.txt".to_owned()));
        assert!(path_spellings("cafe\u{301}.txt").contains(&"caf\u{e9}.txt".to_owned()));
        assert!(path_spellings("it's").contains(&"it\u{2019}s".to_owned()));
        assert!(path_spellings("l'\u{e9}t\u{e9}").contains(&"l\u{2019}e\u{301}te\u{301}".to_owned()));
        assert!(path_spellings("@at").contains(&"@at".to_owned()));
        assert!(path_spellings("a\u{a0}b").contains(&"a\u{a0}b".to_owned()));
    }

    proptest! {
        #[test]
        fn spellings_start_with_the_argument_and_are_distinct(path in "\\PC{0,20}") {
            let spellings = path_spellings(&path);
            prop_assert_eq!(&spellings[0], &path_argument(&path));
            for (at, spelling) in spellings.iter().enumerate() {
                prop_assert!(!spellings[..at].contains(spelling));
            }
        }
    }
}
