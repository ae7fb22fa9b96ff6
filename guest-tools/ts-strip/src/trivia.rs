//! Finding tokens between the nodes of a tree: what lies there is blanks, comments and punctuation only.
//!
//! Works on bytes, so that it can look at a source and at a half-edited one. It must never be used inside of a string,
//! a template or a regular expression.

use std::ops::Range;

/// The length of the white space or line terminator that `bytes` begins with; 0 if there is none. It is what the parser
/// takes for white space, which is a little more than JavaScript does.
pub(crate) fn blank_len(bytes: &[u8]) -> usize {
    match bytes {
        [b'\t' | b'\n' | 0x0B | 0x0C | b'\r' | b' ', ..] => 1,
        [0xC2, 0x85 | 0xA0, ..] => 2,
        [0xE1, 0x9A, 0x80, ..]
        | [0xE2, 0x80, 0x80..=0x8B | 0xA8 | 0xA9 | 0xAF, ..]
        | [0xE2, 0x81, 0x9F, ..]
        | [0xE3, 0x80, 0x80, ..]
        | [0xEF, 0xBB, 0xBF, ..] => 3,
        _ => 0,
    }
}

/// The length of the line terminator that `bytes` begins with; 0 if there is none. `\r\n` counts as two.
pub(crate) fn newline_len(bytes: &[u8]) -> usize {
    match bytes {
        [b'\n' | b'\r', ..] => 1,
        [0xE2, 0x80, 0xA8 | 0xA9, ..] => 3,
        _ => 0,
    }
}

/// The length of the comment that `bytes` begins with, without the line terminator of a line comment; 0 if there is
/// none.
pub(crate) fn comment_len(bytes: &[u8]) -> usize {
    match bytes {
        [b'/', b'/', rest @ ..] => {
            let length = (0..rest.len()).find(|at| newline_len(rest.get(*at..).unwrap_or_default()) > 0);
            2 + length.unwrap_or(rest.len())
        }
        [b'/', b'*', rest @ ..] => match rest.windows(2).position(|two| two == b"*/") {
            Some(length) => length + 4,
            None => bytes.len(),
        },
        _ => 0,
    }
}

/// The first place at or after `from` that is neither blank nor in a comment.
pub(crate) fn skip(bytes: &[u8], from: usize) -> usize {
    skip_knowing(bytes, from, &(usize::MAX..usize::MAX))
}

/// The same, when it is known that there is nothing else in `known` and something at its end.
pub(crate) fn skip_knowing(bytes: &[u8], mut from: usize, known: &Range<usize>) -> usize {
    loop {
        if known.contains(&from) {
            return known.end;
        }
        let rest = bytes.get(from..).unwrap_or_default();
        match blank_len(rest).max(comment_len(rest)) {
            0 => return from,
            length => from += length,
        }
    }
}

/// The end of the name that starts at `from`; `from` if none starts there.
pub(crate) fn word_end(bytes: &[u8], from: usize) -> usize {
    let mut end = from;
    while let Some(rest @ [first, ..]) = bytes.get(end..)
        && (first.is_ascii_alphanumeric() || matches!(first, b'_' | b'$' | 0x80..))
        && blank_len(rest) == 0
    {
        end += 1;
    }
    end
}

/// Whether a line ends in `bytes`.
pub(crate) fn has_newline(bytes: &[u8]) -> bool {
    (0..bytes.len()).any(|at| newline_len(bytes.get(at..).unwrap_or_default()) > 0)
}

#[cfg(test)]
mod tests {
    use super::{has_newline, skip, word_end};

    #[test]
    fn blanks_and_comments_of_all_kinds_are_skipped() {
        let source = " \t\u{a0}\u{3000}/* a \n * b */ // c\u{2028}\r\n//\n d";
        assert_eq!(source.get(skip(source.as_bytes(), 0)..), Some("d"));
        assert_eq!(skip(b"/* open", 0), 7);
        assert_eq!(skip(b"// open", 0), 7);
    }

    #[test]
    fn a_word_ends_where_no_name_goes_on() {
        assert_eq!(word_end("a$_1é(".as_bytes(), 0), 6);
        assert_eq!(word_end("a\u{a0}b".as_bytes(), 0), 1);
        assert_eq!(word_end(b"(", 0), 0);
        assert_eq!(word_end(b"ab", 9), 9);
    }

    #[test]
    fn a_line_ends_at_any_of_the_four_terminators() {
        for text in ["a\n", "\r", "a\u{2028}b", "\u{2029}"] {
            assert!(has_newline(text.as_bytes()), "{text:?}");
        }
        assert!(!has_newline("a\t\u{a0}é".as_bytes()));
    }
}
