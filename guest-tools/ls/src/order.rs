//! The order of names: as a person expects it, whatever the case.

use atoll_plugin::files::Entry;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Marks and signs in the order of the Unicode collation, before digits and letters.
const SIGNS: &str = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

/// Sorts by signs, digits and letters without case and accents, then with accents, then by bytes, so that the
/// order does not depend on how the directory is stored.
pub(crate) fn sort(entries: &mut [Entry]) {
    entries.sort_by_cached_key(|entry| key(&entry.name));
}

fn key(name: &str) -> (Vec<u32>, String, String) {
    let lower = name.to_lowercase();
    let base = lower.nfd().filter(|&c| !is_combining_mark(c)).map(rank).collect();
    (base, lower, name.to_owned())
}

/// A character's place. Signs come before everything that is not in their list.
fn rank(c: char) -> u32 {
    const AFTER_SIGNS: u32 = 64;
    match SIGNS.chars().position(|sign| sign == c).and_then(|at| u32::try_from(at).ok()) {
        Some(at) => at,
        None => u32::from(c) + AFTER_SIGNS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_accents_do_not_matter_and_signs_come_first() {
        let mut names = ["zeta", "Éclair", "beta", "Alpha", "10", "2", ".git", "_x", "alpha", "eclipse", "-y"];
        names.sort_by_cached_key(|name| key(name));
        assert_eq!(names, ["_x", "-y", ".git", "10", "2", "Alpha", "alpha", "beta", "Éclair", "eclipse", "zeta"]);
    }
}
