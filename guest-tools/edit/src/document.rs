//! A file's text with its byte order mark and line endings set aside.

const MARK: &[u8] = b"\xef\xbb\xbf";

/// A text to match against and the way back to the bytes of the file.
#[derive(Debug)]
pub(crate) struct Document {
    /// The file starts with a byte order mark.
    marked: bool,
    /// The file without the mark.
    original: String,
    /// `original` with CR LF as LF. A CR alone is no line ending and stays.
    text: String,
    /// Where in `text` an LF stands for CR LF.
    pairs: Vec<usize>,
}

/// A part of the text to put something else in place of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replacement {
    /// First byte in the text.
    pub(crate) start: usize,
    /// The byte after the last.
    pub(crate) end: usize,
    /// What comes there, with LF line endings.
    pub(crate) new: String,
}

/// A file that is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotUtf8 {
    /// Where the first bad byte is.
    pub(crate) offset: usize,
    /// It starts with the byte order mark of UTF-16.
    pub(crate) utf_16: bool,
}

impl Document {
    /// Takes a file's bytes.
    pub(crate) fn new(mut bytes: Vec<u8>) -> Result<Self, NotUtf8> {
        let marked = bytes.starts_with(MARK);
        if marked {
            bytes.drain(..MARK.len());
        }
        let utf_16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
        let original = String::from_utf8(bytes).map_err(|error| NotUtf8 {
            offset: error.utf8_error().valid_up_to() + if marked { MARK.len() } else { 0 },
            utf_16,
        })?;
        let mut text = String::with_capacity(original.len());
        let mut pairs = Vec::new();
        let mut rest = original.as_str();
        while let Some(at) = rest.find("\r\n") {
            text.push_str(&rest[..at]);
            pairs.push(text.len());
            text.push('\n');
            rest = &rest[at + 2..];
        }
        text.push_str(rest);
        Ok(Self { marked, original, text, pairs })
    }

    /// The text with LF line endings.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The file without its byte order mark.
    pub(crate) fn original(&self) -> &str {
        &self.original
    }

    /// The file with replacements made, without its byte order mark. They must be in order and apart. A new line
    /// gets the line ending of the place; all else keeps its bytes.
    pub(crate) fn replaced(&self, replacements: &[Replacement]) -> String {
        let mut out = String::with_capacity(self.original.len());
        let mut done = 0;
        for replacement in replacements {
            out.push_str(&self.original[done..self.offset(replacement.start)]);
            if self.has_pair_at(replacement.start) {
                out.push_str(&replacement.new.replace('\n', "\r\n"));
            } else {
                out.push_str(&replacement.new);
            }
            done = self.offset(replacement.end);
        }
        out.push_str(&self.original[done..]);
        out
    }

    /// A text without the byte order mark, if the file has it already.
    pub(crate) fn without_mark<'a>(&self, text: &'a str) -> &'a str {
        text.strip_prefix('\u{feff}').filter(|_| self.marked).unwrap_or(text)
    }

    /// A file of this content, with the byte order mark this one has.
    pub(crate) fn into_bytes(self, content: String) -> Vec<u8> {
        if self.marked { [MARK, content.as_bytes()].concat() } else { content.into_bytes() }
    }

    /// Where a place of the text is in the original: before the CR of a pair, not inside it.
    fn offset(&self, at: usize) -> usize {
        at + self.pairs.partition_point(|&pair| pair < at)
    }

    /// Whether the line at a place ends in CR LF; the last line is taken to end like the one before it.
    fn has_pair_at(&self, at: usize) -> bool {
        let end = self.text[at..].find('\n').map(|found| at + found).or_else(|| self.text[..at].rfind('\n'));
        end.is_some_and(|end| self.pairs.binary_search(&end).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(file: &str, old: &str, new: &str) -> String {
        let document = Document::new(file.as_bytes().to_vec()).expect("UTF-8");
        let start = document.text().find(old).expect("there");
        let replacement = Replacement { start, end: start + old.len(), new: new.to_owned() };
        let content = document.replaced(&[replacement]);
        String::from_utf8(document.into_bytes(content)).expect("UTF-8")
    }

    #[test]
    fn new_lines_end_like_their_place() {
        assert_eq!(replaced("a\r\nb\r\nc\n", "b\n", "x\ny\n"), "a\r\nx\r\ny\r\nc\n");
        assert_eq!(replaced("a\r\nb\nc\r\n", "b", "x\ny"), "a\r\nx\ny\nc\r\n");
        assert_eq!(replaced("a\r\nb", "b", "x\ny"), "a\r\nx\r\ny");
        assert_eq!(replaced("a", "a", "x\ny"), "x\ny");
    }

    #[test]
    fn a_match_may_begin_or_end_at_a_pair() {
        assert_eq!(replaced("a\r\nb\r\n", "\nb", "\nx"), "a\r\nx\r\n");
        assert_eq!(replaced("a\r\nb\r\n", "a", "x"), "x\r\nb\r\n");
        assert_eq!(replaced("a\r\nb\r\n", "a\n", ""), "b\r\n");
    }

    #[test]
    fn a_lone_carriage_return_is_text() {
        assert_eq!(replaced("a\rb\nc\r\r\nd", "b", "x"), "a\rx\nc\r\r\nd");
    }

    #[test]
    fn the_mark_is_kept_once() {
        assert_eq!(replaced("\u{feff}a\n", "a", "b"), "\u{feff}b\n");
        assert_eq!(replaced("a\n", "a", "b"), "b\n");
    }

    #[test]
    fn other_encodings_are_refused() {
        let error = Document::new(b"caf\xe9".to_vec()).err();
        assert_eq!(error, Some(NotUtf8 { offset: 3, utf_16: false }));
        let error = Document::new(b"\xff\xfea\0".to_vec()).err();
        assert_eq!(error, Some(NotUtf8 { offset: 0, utf_16: true }));
    }
}
