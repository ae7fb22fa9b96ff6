//! Taking the first matches out of what was found.

use crate::query::{FileLines, Found, Kind};
use crate::search::{MAX_COLLECTED, handed_on};

/// What is shown.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) limit: usize,
    pub(crate) files: Vec<FileLines>,
    pub(crate) matches: usize,
    /// There are more matches than `limit`.
    pub(crate) more: bool,
    /// There is more than can be handed on.
    pub(crate) full: bool,
    /// Files that could not be searched.
    pub(crate) failed: usize,
    bytes: usize,
}

impl Taken {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, files: Vec::new(), matches: 0, more: false, full: false, failed: 0, bytes: 0 }
    }

    /// Matches after which nothing changes any more: one over the limit tells that there are more.
    pub(crate) fn enough(&self) -> usize {
        self.limit.saturating_add(1)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.more || self.full
    }

    /// Adds what comes next in the order of paths.
    pub(crate) fn add(&mut self, found: Found) {
        self.failed += found.failed;
        for mut file in found.files {
            if self.is_done() {
                return;
            }
            let keep = self.keep(&file);
            file.lines.truncate(keep);
            self.bytes += file.lines.iter().map(|line| handed_on(&line.text) + file.path.len()).sum::<usize>();
            self.full |= self.bytes > MAX_COLLECTED;
            if !file.lines.is_empty() {
                self.files.push(file);
            }
        }
        self.full |= found.full;
    }

    /// How many of a file's lines are shown. Lines that lead up to a match which is not shown are not shown either.
    fn keep(&mut self, file: &FileLines) -> usize {
        let mut keep = 0;
        for (at, line) in file.lines.iter().enumerate() {
            match line.kind {
                Kind::Before => continue,
                Kind::After => {}
                Kind::Match if self.matches == self.limit => {
                    self.more = true;
                    break;
                }
                Kind::Match => self.matches += 1,
            }
            keep = at + 1;
        }
        keep
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Line;

    fn file(path: &str, kinds: &[Kind]) -> FileLines {
        let line = |(at, &kind): (usize, &Kind)| Line { number: at as u64 + 1, kind, text: String::new(), cut: false };
        FileLines { path: path.to_owned(), lines: kinds.iter().enumerate().map(line).collect() }
    }

    fn found(files: Vec<FileLines>) -> Found {
        Found { files, ..Found::default() }
    }

    #[test]
    fn exactly_the_limit_is_not_more() {
        let mut taken = Taken::new(2);
        taken.add(found(vec![file("a", &[Kind::Match, Kind::Match])]));
        assert!(!taken.is_done());
        taken.add(found(vec![file("b", &[Kind::Before, Kind::Match])]));
        assert!(taken.more);
        assert_eq!((taken.matches, taken.files.len()), (2, 1));
    }

    #[test]
    fn context_of_the_last_match_is_kept() {
        let mut taken = Taken::new(1);
        taken.add(found(vec![file("a", &[Kind::Before, Kind::Match, Kind::After, Kind::Before, Kind::Match])]));
        assert_eq!(taken.files[0].lines.len(), 3);
        assert!(taken.more);
    }

    #[test]
    fn too_much_to_hand_on_ends_it() {
        let mut taken = Taken::new(usize::MAX);
        assert_eq!(taken.enough(), usize::MAX);
        taken.add(Found { files: vec![file("a", &[Kind::Match])], failed: 2, full: true });
        assert!(taken.is_done() && !taken.more);
        assert_eq!(taken.failed, 2);
    }
}
