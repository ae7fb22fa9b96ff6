//! What a file is, by its first bytes.

use atoll_tool_image::{Format, Problem, is_animated_png};
use atoll_tool_text::format_size;

/// How many bytes are searched for a NUL, which text does not have.
const SNIFFED: usize = 8192;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text, possibly with bytes that are not UTF-8.
    Text,
    /// A picture.
    Image(Format),
    /// Neither.
    Other(Other),
}

/// A file that is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Other {
    /// What it is, to follow "is".
    what: &'static str,
    /// How to get at its text.
    advice: &'static str,
}

const UTF_16: Other =
    Other { what: "text in UTF-16", advice: "convert it with `iconv -f UTF-16 -t UTF-8` in a shell command" };
const UTF_32: Other =
    Other { what: "text in UTF-32", advice: "convert it with `iconv -f UTF-32 -t UTF-8` in a shell command" };
const PDF: Other = Other { what: "a PDF document", advice: "extract its text with a program such as `pdftotext`" };
const ARCHIVE: Other = Other { what: "a compressed archive", advice: "list or unpack it with a shell command" };
const PROGRAM: Other =
    Other { what: "a compiled program", advice: "examine it with programs such as `file`, `nm` or `strings`" };
const DATABASE: Other = Other { what: "an SQLite database", advice: "query it with `sqlite3`" };

/// Models take it for its still picture or refuse it, so nobody could tell what they have seen.
const ANIMATED_PNG: Other = Other {
    what: "an animated PNG",
    advice: "save the frame to see as a picture of its own, for example with `ffmpeg -i FILE -frames:v 1 FRAME.png`",
};

/// A file with NUL bytes of no known kind.
pub(crate) const BINARY: Other =
    Other { what: "a binary file", advice: "examine it with programs such as `file`, `strings` or `xxd`" };

/// Signatures of files that are not text, longest first where one starts another.
const SIGNATURES: [(&[u8], Other); 17] = [
    (b"\xff\xfe\0\0", UTF_32),
    (b"\0\0\xfe\xff", UTF_32),
    (b"\xff\xfe", UTF_16),
    (b"\xfe\xff", UTF_16),
    (b"%PDF-", PDF),
    (b"PK\x03\x04", ARCHIVE),
    (b"\x1f\x8b", ARCHIVE),
    (b"\x28\xb5\x2f\xfd", ARCHIVE),
    (b"\xfd7zXZ\0", ARCHIVE),
    (b"7z\xbc\xaf\x27\x1c", ARCHIVE),
    (b"\x7fELF", PROGRAM),
    (b"\0asm", PROGRAM),
    (b"\xcf\xfa\xed\xfe", PROGRAM),
    (b"\xca\xfe\xba\xbe", PROGRAM),
    (b"MZ\x90\0", PROGRAM),
    (b"SQLite format 3\0", DATABASE),
    (b"BZh91AY&SY", ARCHIVE),
];

/// Tells what a file is from its first bytes, all that were read of it so far.
pub(crate) fn of(start: &[u8]) -> Kind {
    if is_animated_png(start) {
        return Kind::Other(ANIMATED_PNG);
    }
    if let Some(format) = Format::of(start) {
        return Kind::Image(format);
    }
    if let Some((_, other)) = SIGNATURES.iter().find(|(signature, _)| start.starts_with(signature)) {
        return Kind::Other(*other);
    }
    if start[..start.len().min(SNIFFED)].contains(&0) {
        return Kind::Other(BINARY);
    }
    Kind::Text
}

/// Why a file is not shown, for the model. `size` in bytes.
pub(crate) fn refusal(path: &str, other: Other, size: u64) -> String {
    format!("{path} is {} ({}) and can not be shown as text; {}.", other.what, format_size(size), other.advice)
}

/// Why a picture is not shown. `problem` is a sentence without its end.
pub(crate) fn no_picture(path: &str, format: Format, problem: &Problem) -> String {
    format!("{path} ({format}) can not be shown: {problem}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures() {
        assert_eq!(of(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"), Kind::Image(Format::Png));
        assert_eq!(of(b"\xff\xd8\xff\xe0"), Kind::Image(Format::Jpeg));
        assert_eq!(of(b"BMW is a make of car"), Kind::Text);
        assert_eq!(of(b"\x89PNG\r\n\x1a\n\0\0\0\0acTL"), Kind::Other(ANIMATED_PNG));
    }

    #[test]
    fn binaries_are_named() {
        for (start, what) in [
            (b"\x7fELF\x02\x01".as_slice(), "a compiled program"),
            (b"\xff\xfeh\0i\0", "text in UTF-16"),
            (b"\xff\xfe\0\0h\0\0\0", "text in UTF-32"),
            (b"%PDF-1.7\n", "a PDF document"),
            (b"PK\x03\x04rest", "a compressed archive"),
            (b"some\0thing", "a binary file"),
        ] {
            let Kind::Other(other) = of(start) else { panic!("{what} was taken for something else") };
            assert!(refusal("x", other, 2048).starts_with(&format!("x is {what} (2.0KB) and")));
        }
    }

    #[test]
    fn text_may_have_odd_bytes() {
        assert_eq!(of(b""), Kind::Text);
        assert_eq!(of(b"caf\xe9"), Kind::Text);
        assert_eq!(of(b"\xef\xbb\xbfwith a mark"), Kind::Text);
        let mut late = vec![b'a'; SNIFFED];
        late.push(0);
        assert_eq!(of(&late), Kind::Text);
    }
}
