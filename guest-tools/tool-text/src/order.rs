//! The order of paths: that of a directory tree read from the top, names in byte order.

use std::cmp::Ordering;

/// Compares two paths name by name.
pub fn compare_paths(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    // Most of two paths is the same, so it is skipped in large steps.
    const STEP: usize = 8;
    let same = a.chunks_exact(STEP).zip(b.chunks_exact(STEP)).take_while(|(a, b)| a == b).count() * STEP;
    // A name ends before any character it could go on with.
    let rank = |byte: &u8| if *byte == b'/' { 0 } else { *byte };
    a[same..].iter().map(rank).cmp(b[same..].iter().map(rank))
}

/// Puts paths into this order.
pub fn in_order(paths: Vec<String>) -> Vec<String> {
    // No name has a NUL byte in it, so it can stand for the end of one; then bytes are all there is to compare.
    let mut keys: Vec<String> = paths.into_iter().map(|path| path.replace('/', "\0")).collect();
    keys.sort_unstable();
    keys.into_iter().map(|key| key.replace('\0', "/")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_compared_not_characters() {
        let mut paths = ["a-b/x", "a/z", "a.txt", "a/b/c", "B", "a/b-c"];
        paths.sort_unstable_by(|a, b| compare_paths(a, b));
        assert_eq!(paths, ["B", "a/b/c", "a/b-c", "a/z", "a-b/x", "a.txt"]);
    }

    proptest! {
        #[test]
        fn both_ways_have_the_same_order(paths in prop::collection::vec("[-./ab\u{e9}]{0,9}", 0..20)) {
            let mut expected = paths.clone();
            expected.sort_by(|a, b| compare_paths(a, b));
            prop_assert_eq!(in_order(paths), expected);
        }
    }

    proptest! {
        #[test]
        fn it_is_the_order_of_lists_of_names(a in "[-./ab]{0,20}", b in "[-./ab]{0,20}") {
            let names = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(compare_paths(&a, &b), names(&a).cmp(&names(&b)));
        }
    }
}
