//! Searching one file after another. No host calls.

use std::io::{self, Read};

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch};

use crate::line::shown;
use crate::query::{FileLines, Kind, Line, Query};

/// The longest line that is searched, in bytes.
const MAX_LINE: usize = 32 << 20;

/// Bytes of found lines after which no more are collected: far more than is shown or handed on.
pub(crate) const MAX_COLLECTED: usize = 4 << 20;

/// Searches files until there is enough.
pub(crate) struct Search {
    matcher: RegexMatcher,
    searchers: Searchers,
    /// Matches that may still be collected.
    room: usize,
    /// Bytes that may still be collected.
    bytes: usize,
}

/// One for each way to treat bytes that are no text.
struct Searchers {
    /// For text that is known to be text.
    plain: Searcher,
    /// For anything: ends at the first NUL byte.
    careful: Searcher,
    /// For files that the caller named: takes NUL bytes for line ends.
    named: Searcher,
}

impl Search {
    /// A search that ends after `enough` matches.
    pub(crate) fn new(matcher: RegexMatcher, query: &Query, enough: usize) -> Self {
        let searcher = |binary| {
            SearcherBuilder::new()
                .line_number(true)
                .before_context(query.context)
                .after_context(query.context)
                .binary_detection(binary)
                .heap_limit(Some(MAX_LINE))
                .build()
        };
        let searchers = Searchers {
            plain: searcher(BinaryDetection::none()),
            careful: searcher(BinaryDetection::quit(0)),
            named: searcher(BinaryDetection::convert(0)),
        };
        Self { matcher, searchers, room: enough, bytes: MAX_COLLECTED }
    }

    /// There is enough: files that follow need not be searched.
    pub(crate) fn is_done(&self) -> bool {
        self.room == 0 || self.is_full()
    }

    /// There is more than can be handed on.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes == 0
    }

    /// Searches a file that was read whole; none if nothing matches.
    pub(crate) fn bytes(&mut self, path: String, bytes: &[u8]) -> io::Result<Option<FileLines>> {
        if is_plain(bytes) {
            return self.run(path, |matcher, search, sink| search.plain.search_slice(matcher, bytes, sink));
        }
        self.reader(path, bytes)
    }

    /// Searches a file piece by piece.
    pub(crate) fn reader(&mut self, path: String, reader: impl Read) -> io::Result<Option<FileLines>> {
        self.run(path, |matcher, search, sink| search.careful.search_reader(matcher, reader, sink))
    }

    /// Searches a file that the caller named, whatever is in it.
    pub(crate) fn named(&mut self, path: String, reader: impl Read) -> io::Result<Option<FileLines>> {
        self.run(path, |matcher, search, sink| search.named.search_reader(matcher, reader, sink))
    }

    fn run(
        &mut self,
        path: String,
        search: impl FnOnce(&RegexMatcher, &mut Searchers, &mut Collector<'_>) -> io::Result<()>,
    ) -> io::Result<Option<FileLines>> {
        // Never a copy of the matcher: each copy builds its tables anew, for every file.
        let mut sink = Collector { matcher: &self.matcher, lines: Vec::new(), room: self.room, bytes: self.bytes };
        let result = search(&self.matcher, &mut self.searchers, &mut sink);
        (self.room, self.bytes) = (sink.room, sink.bytes);
        // What was found before the trouble still counts.
        match result {
            Err(error) if sink.lines.is_empty() => Err(error),
            _ if sink.lines.is_empty() => Ok(None),
            _ => Ok(Some(FileLines { path, lines: sink.lines })),
        }
    }
}

/// UTF-8 or something like it, without NUL bytes: what no encoding and no rule for binary files applies to.
fn is_plain(bytes: &[u8]) -> bool {
    !is_marked(bytes) && memchr::memchr(0, bytes).is_none()
}

/// It starts with a byte order mark.
fn is_marked(bytes: &[u8]) -> bool {
    [&b"\xef\xbb\xbf"[..], b"\xfe\xff", b"\xff\xfe"].iter().any(|mark| bytes.starts_with(mark))
}

/// Whether a file that starts with these bytes is left out as a whole. As long as the searcher's buffer, which it
/// does not search if there is a NUL byte in it.
pub(crate) fn is_binary(first: &[u8]) -> bool {
    !is_marked(first) && memchr::memchr(0, first).is_some()
}

/// Bytes that a line takes on its way to the caller, as JSON.
pub(crate) fn handed_on(text: &str) -> usize {
    const FIELDS: usize = 48;
    const ESCAPE: usize = 5;
    text.len() + ESCAPE * text.bytes().filter(|&byte| byte < b' ' || byte == b'"' || byte == b'\\').count() + FIELDS
}

struct Collector<'a> {
    matcher: &'a RegexMatcher,
    lines: Vec<Line>,
    room: usize,
    bytes: usize,
}

impl Collector<'_> {
    fn push(&mut self, number: Option<u64>, kind: Kind, (text, cut): (String, bool)) {
        self.bytes = self.bytes.saturating_sub(handed_on(&text));
        self.lines.push(Line { number: number.unwrap_or(0), kind, text, cut });
    }
}

impl Sink for Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        // The context of the last match may have ended the search of an earlier file only.
        if self.room == 0 || self.bytes == 0 {
            return Ok(false);
        }
        let line = found.bytes();
        let at = self.matcher.find(line).ok().flatten().map(|found| found.start()..found.end());
        self.push(found.line_number(), Kind::Match, shown(line, at));
        self.room -= 1;
        Ok(self.room > 0 && self.bytes > 0)
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let kind = match context.kind() {
            SinkContextKind::Before => Kind::Before,
            SinkContextKind::After | SinkContextKind::Other => Kind::After,
        };
        self.push(context.line_number(), kind, shown(context.bytes(), None));
        Ok(self.bytes > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(pattern: &str, context: usize, enough: usize) -> Search {
        let query = Query { pattern: pattern.to_owned(), ignore_case: false, literal: false, context };
        Search::new(query.matcher().expect("compiles"), &query, enough)
    }

    fn found(search: &mut Search, bytes: &[u8]) -> Vec<(u64, Kind, String)> {
        let lines = search.bytes("f".to_owned(), bytes).expect("searched").map(|file| file.lines).unwrap_or_default();
        lines.into_iter().map(|line| (line.number, line.kind, line.text)).collect()
    }

    fn line(number: u64, kind: Kind, text: &str) -> (u64, Kind, String) {
        (number, kind, text.to_owned())
    }

    #[test]
    fn lines_are_numbered() {
        let mut search = search("b", 0, 9);
        let expected = [line(2, Kind::Match, "b"), line(4, Kind::Match, "bb")];
        assert_eq!(found(&mut search, b"a\nb\r\nc\nbb"), expected);
        assert_eq!(found(&mut search, b"a\n"), []);
    }

    #[test]
    fn context_is_told_apart() {
        let expected = [
            line(1, Kind::Before, "a"),
            line(2, Kind::Match, "x"),
            line(3, Kind::After, "b"),
            line(4, Kind::Before, "c"),
            line(5, Kind::Match, "x"),
        ];
        assert_eq!(found(&mut search("x", 1, 9), b"a\nx\nb\nc\nx\n"), expected);
    }

    #[test]
    fn it_ends_when_there_is_enough() {
        let mut search = search("x", 0, 2);
        assert_eq!(found(&mut search, b"x\n").len(), 1);
        assert!(!search.is_done());
        assert_eq!(found(&mut search, b"x\nx\nx\n").len(), 1);
        assert!(search.is_done() && !search.is_full());
        let mut search = self::search("x", 0, usize::MAX);
        let many = "xxxxxxxx\n".repeat(400_000);
        assert!(found(&mut search, many.as_bytes()).len() < 400_000);
        assert!(search.is_full());
    }

    #[test]
    fn binary_files_are_left_out() {
        assert_eq!(found(&mut search("x", 0, 9), b"x\n\0x\n"), []);
        // As ripgrep does: what stands before the piece with the NUL byte counts.
        let mut late = b"x\n".to_vec();
        late.resize(200_000, b'\n');
        late.push(0);
        assert_eq!(found(&mut search("x", 0, 9), &late), [line(1, Kind::Match, "x")]);
        let named = search("x", 0, 9).named("f".to_owned(), &b"ax\0bx"[..]).expect("searched");
        assert_eq!(named.map(|file| file.lines.len()), Some(2));
        assert!(is_binary(b"x\n\0") && !is_binary(b"x\n") && !is_binary(b"\xff\xfex\0"));
    }

    #[test]
    fn byte_order_marks_are_understood() {
        let utf16: Vec<u8> = "\u{feff}one\ntwo\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(found(&mut search("two", 0, 9), &utf16), [line(2, Kind::Match, "two")]);
        assert_eq!(found(&mut search("^one", 0, 9), b"\xef\xbb\xbfone\n"), [line(1, Kind::Match, "one")]);
    }

    #[test]
    fn both_ways_find_the_same() {
        let text = "one\ntwo\r\nx one\n\nlast one";
        let careful = search("one|^$", 1, 9).reader("f".to_owned(), text.as_bytes()).expect("searched");
        assert_eq!(search("one|^$", 1, 9).bytes("f".to_owned(), text.as_bytes()).expect("searched"), careful);
    }
}
