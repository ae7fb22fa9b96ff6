//! The output of a command, kept as far as it is needed.

use atoll_tool_text::{MAX_BYTES, MAX_LINES, Tail, Utf8Decoder, ceil_boundary, floor_boundary, tail};

use crate::clean::{Cleaner, Sink};

/// Bytes kept of each end of the output for scripts.
const HALF: usize = 512 * 1024;

/// Bytes kept of the end of the output for the model: enough that a whole result is there.
const KEPT: usize = 2 * MAX_BYTES;

/// Takes output piece by piece, in bounded memory.
#[derive(Debug)]
pub(crate) struct Capture {
    decoder: Utf8Decoder,
    cleaner: Cleaner,
    script: Ends,
    model: End,
}

impl Capture {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            decoder: Utf8Decoder::default(),
            cleaner: Cleaner::new(),
            script: Ends::default(),
            model: End::default(),
        }
    }

    /// Takes the next piece.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let text = self.decoder.decode(bytes);
        self.take(&text);
    }

    /// The end of the output.
    pub(crate) fn finish(&mut self) {
        let text = self.decoder.finish();
        self.take(text);
    }

    fn take(&mut self, text: &str) {
        self.script.push(text);
        self.cleaner.clean(text, &mut self.model);
        self.model.shrink();
    }

    /// The output as scripts get it: its bytes as UTF-8, with the middle left out if it is over 1 MiB.
    pub(crate) fn for_scripts(&self) -> (String, bool) {
        self.script.join()
    }

    /// The last lines, cleaned and cut to the limits.
    pub(crate) fn tail(&self) -> Tail<'_> {
        tail(&self.model.text, MAX_LINES, MAX_BYTES)
    }

    /// Part of the cleaned output is no longer here.
    pub(crate) fn dropped(&self) -> bool {
        self.model.dropped
    }

    /// How many lines there were.
    pub(crate) fn total_lines(&self) -> usize {
        self.model.ends + usize::from(self.model.line_bytes > 0)
    }

    /// Bytes of the cleaned output.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.model.bytes
    }

    /// Bytes of the last line, without its end.
    pub(crate) fn last_line_bytes(&self) -> u64 {
        if self.model.line_bytes > 0 { self.model.line_bytes } else { self.model.last_line_bytes }
    }
}

/// The first and the last bytes of a text.
#[derive(Debug, Default)]
struct Ends {
    head: String,
    tail: String,
    /// Bytes left out between them.
    dropped: u64,
}

impl Ends {
    fn push(&mut self, text: &str) {
        let mut rest = text;
        if self.head.len() < HALF && self.tail.is_empty() {
            let (fits, more) = rest.split_at(floor_boundary(rest, HALF - self.head.len()));
            self.head.push_str(fits);
            rest = more;
        }
        self.tail.push_str(rest);
        // Moving the text for each piece would cost its square.
        if self.tail.len() > 2 * HALF {
            self.dropped += keep_end(&mut self.tail, HALF);
        }
    }

    fn join(&self) -> (String, bool) {
        let start = ceil_boundary(&self.tail, self.tail.len().saturating_sub(HALF));
        let dropped = self.dropped + start as u64;
        if dropped == 0 {
            return (format!("{}{}", self.head, self.tail), false);
        }
        (format!("{}\n[{dropped} bytes left out here]\n{}", self.head, &self.tail[start..]), true)
    }
}

/// The end of the cleaned output.
#[derive(Debug, Default)]
struct End {
    text: String,
    /// The start of the output is no longer in `text`.
    dropped: bool,
    /// Line ends so far.
    ends: usize,
    /// Bytes so far.
    bytes: u64,
    /// Bytes of the line that has not ended.
    line_bytes: u64,
    /// Bytes of the last line that has ended.
    last_line_bytes: u64,
}

impl End {
    fn shrink(&mut self) {
        if self.text.len() > 4 * KEPT {
            keep_end(&mut self.text, KEPT);
            self.dropped = true;
        }
    }
}

impl Sink for End {
    fn push_text(&mut self, text: &str) {
        self.text.push_str(text);
        self.bytes += text.len() as u64;
        let Some(last) = text.rfind('\n') else {
            self.line_bytes += text.len() as u64;
            return;
        };
        self.ends += text.bytes().filter(|&byte| byte == b'\n').count();
        self.last_line_bytes = match text[..last].rfind('\n') {
            Some(before) => (last - before - 1) as u64,
            None => self.line_bytes + last as u64,
        };
        self.line_bytes = (text.len() - last - 1) as u64;
    }

    fn pop(&mut self) {
        if self.line_bytes == 0 {
            return;
        }
        if let Some(c) = self.text.pop() {
            self.line_bytes -= c.len_utf8() as u64;
            self.bytes -= c.len_utf8() as u64;
        }
    }

    fn restart_line(&mut self) {
        let start = self.text.rfind('\n').map_or(0, |at| at + 1);
        self.text.truncate(start);
        self.bytes -= self.line_bytes;
        self.line_bytes = 0;
    }
}

/// Drops all but the last `bytes` of a text, and tells how many bytes that were.
fn keep_end(text: &mut String, bytes: usize) -> u64 {
    let start = ceil_boundary(text, text.len().saturating_sub(bytes));
    text.drain(..start);
    start as u64
}

#[cfg(test)]
mod tests {
    use atoll_tool_text::Cut;
    use proptest::prelude::*;

    use super::*;

    fn capture(output: &[u8], size: usize) -> Capture {
        let mut capture = Capture::new();
        for piece in output.chunks(size) {
            capture.push(piece);
        }
        capture.finish();
        capture
    }

    #[test]
    fn small_outputs_are_whole() {
        let capture = capture("één\r\n\u{1b}[1mtwee\u{1b}[m\n".as_bytes(), 1);
        assert_eq!(capture.tail().text, "één\ntwee\n");
        assert_eq!(capture.tail().cut, None);
        assert_eq!(capture.total_lines(), 2);
        assert_eq!(capture.for_scripts(), ("één\r\n\u{1b}[1mtwee\u{1b}[m\n".to_owned(), false));
    }

    #[test]
    fn lines_are_counted_in_all_that_was_dropped() {
        let output: String = (1..=200_000).map(|n| format!("{n}\n")).collect();
        let capture = capture(output.as_bytes(), 60_000);
        assert_eq!(capture.total_lines(), 200_000);
        assert_eq!(capture.total_bytes(), output.len() as u64);
        assert_eq!(capture.tail().lines, MAX_LINES);
        assert_eq!(capture.tail().cut, Some(Cut::Lines));
        assert!(capture.tail().text.ends_with("\n200000"));
        let (text, cut) = capture.for_scripts();
        assert!(cut && text.starts_with("1\n2\n") && text.ends_with("199999\n200000\n"));
        assert!(text.contains("bytes left out here]") && text.len() <= 2 * HALF + 60);
    }

    #[test]
    fn a_huge_last_line_is_measured() {
        for end in ["", "\n"] {
            let capture = capture(format!("first\n{}{end}", "x".repeat(3_000_000)).as_bytes(), 65_536);
            assert_eq!(capture.last_line_bytes(), 3_000_000);
            assert_eq!(capture.total_lines(), 2);
            assert!(capture.tail().partial);
            assert_eq!(capture.tail().text.len(), MAX_BYTES);
        }
    }

    #[test]
    fn a_progress_bar_stays_one_line() {
        let output: String = (0..100_000).map(|n| format!("{n:100}\r")).collect();
        let capture = capture(output.as_bytes(), 65_536);
        assert_eq!(capture.total_lines(), 1);
        assert_eq!(capture.tail().text.trim(), "99999");
        assert_eq!(capture.total_bytes(), 100);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(bytes in prop::collection::vec(any::<u8>(), 0..60), size in 1usize..9) {
            let (whole, pieces) = (capture(&bytes, 100), capture(&bytes, size));
            prop_assert_eq!(whole.tail(), pieces.tail());
            prop_assert_eq!(whole.for_scripts(), pieces.for_scripts());
            prop_assert_eq!(whole.total_lines(), pieces.total_lines());
            prop_assert_eq!(whole.last_line_bytes(), pieces.last_line_bytes());
        }
    }
}
