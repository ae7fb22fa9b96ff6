//! The lines to show of a file that comes in pieces.

use atoll_tool_text::{MAX_BYTES, MAX_LINES};

/// Takes a file piece by piece; keeps the lines to show and counts the others.
#[derive(Debug)]
pub(crate) struct Window {
    /// Lines before the first to show.
    skip: usize,
    /// Lines to keep.
    want: usize,
    /// What is kept: `want` lines, or fewer if they are more than can be shown.
    kept: Vec<u8>,
    /// Line ends seen so far.
    ends: usize,
    /// Bytes of the first line to show, without its end.
    first_line_bytes: u64,
    /// The last byte seen.
    last: Option<u8>,
}

/// What a window held at the end of the file.
#[derive(Debug)]
pub(crate) struct Contents {
    /// The number of the first line, counted from 1.
    pub(crate) first: usize,
    /// Whole lines from the first on, or more than can be shown of them.
    pub(crate) text: String,
    /// Bytes of `text` were not UTF-8 and are U+FFFD in it.
    pub(crate) lossy: bool,
    /// Lines of the file.
    pub(crate) total: usize,
    /// Bytes of the first line, without its end.
    pub(crate) first_line_bytes: u64,
}

impl Window {
    /// A window that starts at line `offset` (counted from 1; 0 and none: the first) and has up to `limit` lines.
    pub(crate) fn new(offset: Option<usize>, limit: Option<usize>) -> Self {
        Self {
            skip: offset.unwrap_or(0).saturating_sub(1),
            want: limit.unwrap_or(MAX_LINES).min(MAX_LINES),
            kept: Vec::new(),
            ends: 0,
            first_line_bytes: 0,
            last: None,
        }
    }

    /// Takes the next piece.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.last = piece.last().copied().or(self.last);
        let mut rest = piece;
        if self.ends < self.skip {
            let ends = count_ends(rest);
            if self.ends + ends < self.skip {
                self.ends += ends;
                return;
            }
            while self.ends < self.skip {
                rest = split_line(rest).1;
                self.ends += 1;
            }
        }
        while !rest.is_empty() {
            let in_first = self.ends == self.skip;
            if !in_first && (self.ends - self.skip >= self.want || self.kept.len() > MAX_BYTES) {
                self.ends += count_ends(rest);
                return;
            }
            let (line, after) = split_line(rest);
            let ended = line.ends_with(b"\n");
            if in_first {
                self.first_line_bytes += (line.len() - usize::from(ended)) as u64;
            }
            // One byte over the limit and a line end, which does not count, tell that the line can not be shown.
            let room = (MAX_BYTES + 2).saturating_sub(self.kept.len());
            self.kept.extend_from_slice(&line[..line.len().min(room)]);
            self.ends += usize::from(ended);
            rest = after;
        }
    }

    /// The end of the file.
    pub(crate) fn finish(self) -> Contents {
        let text = String::from_utf8(self.kept);
        let (text, lossy) = match text {
            Ok(text) => (text, false),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
        };
        Contents {
            first: self.skip + 1,
            text,
            lossy,
            total: self.ends + usize::from(!matches!(self.last, None | Some(b'\n'))),
            first_line_bytes: self.first_line_bytes,
        }
    }
}

/// The first line with its end, and what follows it.
fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |at| at + 1);
    bytes.split_at(end)
}

/// How many lines end in `bytes`.
fn count_ends(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window(text: &[u8], offset: Option<usize>, limit: Option<usize>, size: usize) -> Contents {
        let mut window = Window::new(offset, limit);
        for piece in text.chunks(size) {
            window.push(piece);
        }
        window.finish()
    }

    #[test]
    fn a_trailing_line_end_adds_no_line() {
        assert_eq!(window(b"", None, None, 9).total, 0);
        assert_eq!(window(b"a\nb", None, None, 9).total, 2);
        assert_eq!(window(b"a\nb\n", None, None, 9).total, 2);
    }

    #[test]
    fn a_huge_line_is_measured_and_not_kept() {
        let text = [vec![b'x'; 300_000], b"\nnext\n".to_vec()].concat();
        let contents = window(&text, None, None, 4096);
        assert_eq!(contents.first_line_bytes, 300_000);
        assert_eq!(contents.total, 2);
        assert!(contents.text.len() <= MAX_BYTES + 2);
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_replaced() {
        let contents = window(b"caf\xe9\n", None, None, 2);
        assert_eq!(contents.text, "caf\u{fffd}\n");
        assert!(contents.lossy);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(text in "[ab\u{e9}\n]{0,60}", offset in 0usize..8, limit in 1usize..8, size in 1usize..9) {
            let contents = window(text.as_bytes(), Some(offset), Some(limit), size);
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let expected: String = lines.iter().skip(offset.saturating_sub(1)).take(limit).copied().collect();
            prop_assert_eq!(contents.text, expected);
            prop_assert_eq!(contents.total, lines.len());
            prop_assert!(!contents.lossy);
        }
    }
}
