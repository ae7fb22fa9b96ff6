//! Cutting a text to whole lines, from its start or its end.

/// Which limit cut a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The number of lines.
    Lines,
    /// The number of bytes.
    Bytes,
}

/// The first lines of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head<'a> {
    /// The lines, without the last line's end if the text was cut.
    pub text: &'a str,
    /// How many lines `text` has. 0 of a text that has some: the first line alone is over the byte limit.
    pub lines: usize,
    /// What cut it; `None`: it is whole.
    pub cut: Option<Cut>,
}

/// The last lines of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail<'a> {
    /// The lines, without the last line's end if the text was cut.
    pub text: &'a str,
    /// How many lines `text` has, a part of one included.
    pub lines: usize,
    /// What cut it; `None`: it is whole.
    pub cut: Option<Cut>,
    /// `text` is only the end of the last line, which alone is over the byte limit.
    pub partial: bool,
}

/// Counts lines: a line end adds no empty line after it, and an empty text has none.
pub fn count_lines(text: &str) -> usize {
    let ends = text.bytes().filter(|&byte| byte == b'\n').count();
    ends + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// The largest character boundary of `text` that is not after `index`.
pub fn floor_boundary(text: &str, index: usize) -> usize {
    let mut at = index.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The smallest character boundary of `text` that is not before `index`; the end if there is none.
pub fn ceil_boundary(text: &str, index: usize) -> usize {
    let mut at = index.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// The first whole lines of `text`, up to `max_lines` and `max_bytes` (line ends between them counted, the last
/// one's not).
pub fn head(text: &str, max_lines: usize, max_bytes: usize) -> Head<'_> {
    let mut lines = 0;
    let mut kept = 0;
    let mut start = 0;
    let mut cut = None;
    while start < text.len() {
        let end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        if lines == max_lines {
            cut = Some(Cut::Lines);
            break;
        }
        if end > max_bytes {
            cut = Some(Cut::Bytes);
            break;
        }
        lines += 1;
        kept = end;
        start = end + 1;
    }
    let text = if cut.is_none() { text } else { without_line_end(&text[..kept]) };
    Head { text, lines, cut }
}

/// The last whole lines of `text`, up to `max_lines` and `max_bytes` (line ends between them counted, the last
/// one's not). If the last line alone is over `max_bytes`, its end.
pub fn tail(text: &str, max_lines: usize, max_bytes: usize) -> Tail<'_> {
    let whole = Tail { text, lines: count_lines(text), cut: None, partial: false };
    let body = text.strip_suffix('\n').unwrap_or(text);
    if text.is_empty() {
        return whole;
    }
    let mut lines = 0;
    let mut kept = body.len();
    let mut end = body.len();
    let cut = loop {
        let start = body[..end].rfind('\n').map_or(0, |at| at + 1);
        if lines == max_lines {
            break Cut::Lines;
        }
        if body.len() - start > max_bytes {
            break Cut::Bytes;
        }
        lines += 1;
        kept = start;
        if start == 0 {
            return whole;
        }
        end = start - 1;
    };
    if lines == 0 && cut == Cut::Bytes {
        let start = ceil_boundary(body, body.len() - max_bytes);
        return Tail { text: &body[start..], lines: 1, cut: Some(cut), partial: true };
    }
    Tail { text: without_line_end(&body[kept..]), lines, cut: Some(cut), partial: false }
}

/// The rest of a line end that was split at its line feed.
fn without_line_end(text: &str) -> &str {
    text.strip_suffix('\r').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_end_adds_no_line() {
        assert_eq!(count_lines(""), 0);
        assert_eq!(count_lines("a"), 1);
        assert_eq!(count_lines("a\n"), 1);
        assert_eq!(count_lines("a\n\n"), 2);
        assert_eq!(count_lines("\n"), 1);
    }

    #[test]
    fn whole_texts_are_not_touched() {
        for text in ["", "a", "a\n", "a\r\nb\r\n", "\n\n"] {
            assert_eq!(head(text, 2, 10).text, text);
            assert_eq!(head(text, 2, 10).cut, None);
            assert_eq!(tail(text, 2, 10).text, text);
            assert_eq!(tail(text, 2, 10).cut, None);
        }
    }

    #[test]
    fn head_keeps_whole_lines() {
        assert_eq!(head("a\nb\nc\n", 2, 10), Head { text: "a\nb", lines: 2, cut: Some(Cut::Lines) });
        assert_eq!(head("a\nbbb\nc\n", 9, 4), Head { text: "a", lines: 1, cut: Some(Cut::Bytes) });
        assert_eq!(head("a\r\nb\r\n", 1, 10), Head { text: "a", lines: 1, cut: Some(Cut::Lines) });
    }

    #[test]
    fn head_of_a_huge_first_line_is_empty() {
        assert_eq!(head("aaaaa\nb", 9, 4), Head { text: "", lines: 0, cut: Some(Cut::Bytes) });
    }

    #[test]
    fn tail_keeps_whole_lines() {
        let expected = Tail { text: "b\nc", lines: 2, cut: Some(Cut::Lines), partial: false };
        assert_eq!(tail("a\nb\nc\n", 2, 10), expected);
        let expected = Tail { text: "c", lines: 1, cut: Some(Cut::Bytes), partial: false };
        assert_eq!(tail("a\nbbb\nc\n", 9, 4), expected);
    }

    #[test]
    fn tail_of_a_huge_last_line_is_its_end() {
        let expected = Tail { text: "cdef", lines: 1, cut: Some(Cut::Bytes), partial: true };
        assert_eq!(tail("a\nbcdef\n", 9, 4), expected);
        // A character is never split.
        assert_eq!(tail("ééé", 9, 3).text, "é");
    }

    proptest! {
        #[test]
        fn head_is_a_prefix_within_the_limits(text in "[a\u{e9}\u{1f600}\r\n]{0,60}", lines in 1usize..6, bytes in 1usize..40) {
            let head = head(&text, lines, bytes);
            prop_assert!(text.starts_with(head.text));
            prop_assert!(head.lines <= lines);
            prop_assert!(head.text.strip_suffix('\n').unwrap_or(head.text).len() <= bytes);
            prop_assert_eq!(head.cut.is_none(), head.text == text);
            if head.cut.is_none() {
                prop_assert_eq!(head.lines, count_lines(&text));
            }
        }

        #[test]
        fn tail_is_a_suffix_within_the_limits(text in "[a\u{e9}\u{1f600}\n]{0,60}", lines in 1usize..6, bytes in 1usize..40) {
            let tail = tail(&text, lines, bytes);
            let body = text.strip_suffix('\n').unwrap_or(&text);
            prop_assert!(text.ends_with(tail.text) || body.ends_with(tail.text));
            prop_assert!(tail.lines <= lines);
            prop_assert!(tail.text.strip_suffix('\n').unwrap_or(tail.text).len() <= bytes);
            prop_assert_eq!(tail.cut.is_none(), tail.text == text);
            if tail.cut.is_none() {
                prop_assert_eq!(tail.lines, count_lines(&text));
            }
        }
    }
}
