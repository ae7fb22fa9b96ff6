//! Dividing files into shares.

/// Files of the first share. Each share is larger than the one before it, so that a search which soon has enough
/// looks at little, and one which looks at everything starts few workers.
const FIRST: usize = 64;
/// Files of a share at most.
const MOST: usize = 2_048;
/// Shares for each worker, at least: the last ones should end at about the same time.
const PER_WORKER: usize = 4;

/// Divides files into shares, in order.
pub(crate) fn divide(files: Vec<String>, workers: usize) -> Vec<Vec<String>> {
    let most = files.len().div_ceil(workers.max(1).saturating_mul(PER_WORKER)).clamp(FIRST, MOST);
    let mut shares = Vec::new();
    let mut files = files.into_iter();
    let mut size = FIRST;
    loop {
        let share: Vec<String> = files.by_ref().take(size).collect();
        if share.is_empty() {
            return shares;
        }
        shares.push(share);
        size = (size * 2).min(most);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn files(count: usize) -> Vec<String> {
        (0..count).map(|n| n.to_string()).collect()
    }

    #[test]
    fn shares_grow() {
        let shares = divide(files(10_000), 2);
        let lengths: Vec<usize> = shares.iter().map(Vec::len).collect();
        assert_eq!(lengths[..6], [64, 128, 256, 512, 1_024, 1_250]);
        assert!(divide(Vec::new(), 2).is_empty());
    }

    proptest! {
        #[test]
        fn nothing_is_lost(count in 0usize..6_000, workers in 0usize..99) {
            let shares = divide(files(count), workers);
            prop_assert!(shares.iter().all(|share| !share.is_empty() && share.len() <= MOST));
            prop_assert_eq!(shares.concat(), files(count));
        }
    }
}
