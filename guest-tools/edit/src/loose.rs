//! A form of a text in which what looks alike is the same, and the way back to the text.
//!
//! Per line: Unicode compatibility form NFKC, no white space at the end, and plain quotes, dashes and spaces for
//! their typographic kin.

use std::iter::once;
use std::ops::Range;

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// A text in loose form.
#[derive(Debug, Default)]
pub(crate) struct Loose {
    text: String,
    /// Where the loose form differs, in order. Between them it is the same, byte for byte.
    changes: Vec<Change>,
}

/// A part of a text that is different in loose form.
#[derive(Debug)]
struct Change {
    /// In the loose form; empty for white space that is gone.
    loose: Range<usize>,
    /// In the text.
    exact: Range<usize>,
}

/// A part of a text that matches a part of its loose form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The part.
    pub(crate) exact: Range<usize>,
    /// Loose form of what is in the part but before the match: the match began inside a character.
    pub(crate) before: String,
    /// The same after the match.
    pub(crate) after: String,
}

impl Loose {
    /// Makes the loose form.
    pub(crate) fn new(exact: &str) -> Self {
        let mut loose = Self::default();
        let mut at = 0;
        for line in exact.split_inclusive('\n') {
            let body = line.strip_suffix('\n').unwrap_or(line);
            let kept = body.trim_end();
            loose.push_line(kept, at);
            if kept.len() < body.len() {
                let here = loose.text.len();
                loose.changes.push(Change { loose: here..here, exact: at + kept.len()..at + body.len() });
            }
            if body.len() < line.len() {
                loose.text.push('\n');
            }
            at += line.len();
        }
        loose
    }

    /// The loose form as text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The part of the text that a part of the loose form, not empty, stands for. White space at a line's end is
    /// in it only if the part goes on after it.
    pub(crate) fn span(&self, part: Range<usize>) -> Span {
        let first = self.changes.partition_point(|change| change.loose.end <= part.start);
        let (start, before) = match self.changes.get(first) {
            Some(change) if change.loose.start < part.start => {
                (change.exact.start, self.text[change.loose.start..part.start].to_owned())
            }
            _ => (self.exact_after(first, part.start), String::new()),
        };
        let last = self.changes.partition_point(|change| {
            change.loose.end < part.end || (change.loose.end == part.end && !change.loose.is_empty())
        });
        let (end, after) = match self.changes.get(last) {
            Some(change) if change.loose.start < part.end => {
                (change.exact.end, self.text[part.end..change.loose.end].to_owned())
            }
            _ => (self.exact_after(last, part.end), String::new()),
        };
        Span { exact: start..end, before, after }
    }

    /// Where a place of the loose form is in the text, given how many changes come before it.
    fn exact_after(&self, changes: usize, at: usize) -> usize {
        match changes.checked_sub(1).and_then(|last| self.changes.get(last)) {
            Some(change) => change.exact.end + (at - change.loose.end),
            None => at,
        }
    }

    /// Adds a line without its end, which begins at `at` in the text.
    fn push_line(&mut self, line: &str, at: usize) {
        let mut start = 0;
        for (next, c) in line.char_indices().skip(1).chain(once((line.len(), 'x'))) {
            if next > start && begins_segment(c) {
                self.push_segment(&line[start..next], at + start);
                start = next;
            }
        }
    }

    /// Adds characters that may combine with each other, but not with what is around them.
    fn push_segment(&mut self, segment: &str, at: usize) {
        if segment.is_ascii() {
            self.text.push_str(segment);
            return;
        }
        let start = self.text.len();
        self.text.extend(segment.nfkc().map(plain));
        if self.text[start..] != *segment {
            self.changes.push(Change { loose: start..self.text.len(), exact: at..at + segment.len() });
        }
    }
}

/// Whether normal forms never combine a character with what is before it.
fn begins_segment(c: char) -> bool {
    if c.is_ascii() {
        return true;
    }
    once(c)
        .nfkd()
        .next()
        .is_some_and(|first| canonical_combining_class(first) == 0 && is_nfkc_quick(once(first)) == IsNormalized::Yes)
}

/// The plain character for a typographic one.
fn plain(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The exact text that stands for a part of the loose form.
    fn exact<'a>(text: &'a str, part: &str) -> &'a str {
        let loose = Loose::new(text);
        let start = loose.text().find(part).expect("there");
        let span = loose.span(start..start + part.len());
        assert_eq!((span.before.as_str(), span.after.as_str()), ("", ""));
        &text[span.exact]
    }

    #[test]
    fn what_looks_alike_is_the_same() {
        let text = "\u{201c}it\u{2019}s\u{201d} \u{2014} a\u{a0}b  \ncafe\u{301} \u{fb01}n\t\n";
        assert_eq!(Loose::new(text).text(), "\"it's\" - a b\ncaf\u{e9} fin\n");
    }

    #[test]
    fn parts_lead_back_to_the_exact_text() {
        let text = "x \u{201c}a\u{201d}  \ny cafe\u{301}\u{2026} z \n";
        assert_eq!(exact(text, "\"a\""), "\u{201c}a\u{201d}");
        assert_eq!(exact(text, "\"a\"\ny"), "\u{201c}a\u{201d}  \ny");
        assert_eq!(exact(text, "\ny"), "\ny");
        assert_eq!(exact(text, "caf\u{e9}"), "cafe\u{301}");
        assert_eq!(exact(text, "caf\u{e9}..."), "cafe\u{301}\u{2026}");
        assert_eq!(exact(text, " z"), " z");
        assert_eq!(exact(text, "z\n"), "z \n");
    }

    #[test]
    fn parts_may_begin_or_end_inside_a_character() {
        let loose = Loose::new("a\u{fb01}b");
        assert_eq!(loose.text(), "afib");
        let inside = Span { exact: 1..4, before: "f".into(), after: String::new() };
        assert_eq!(loose.span(2..3), inside);
        let inside = Span { exact: 0..4, before: String::new(), after: "i".into() };
        assert_eq!(loose.span(0..2), inside);
    }

    proptest! {
        #[test]
        fn segments_do_not_change_the_normal_form(text in "[ae \u{301}\u{327}\u{e9}\u{fb01}\u{2026}\u{a0}\u{1100}\u{1161}\u{11a8}\u{ac00}\u{ff9e}\u{ff76}\n]{0,30}") {
            let expected: Vec<String> = text
                .split('\n')
                .map(|line| line.trim_end().nfkc().map(plain).collect())
                .collect();
            let loose = Loose::new(&text);
            prop_assert_eq!(loose.text(), expected.join("\n"));
        }

        #[test]
        fn every_part_leads_back(text in "[ab \u{e9}\u{301}\u{fb01}\u{201c}\u{a0}\n]{0,30}", from in 0usize..40, length in 1usize..9) {
            let loose = Loose::new(&text);
            let places: Vec<usize> = loose.text().char_indices().map(|(at, _)| at).chain(once(loose.text().len())).collect();
            if from + length < places.len() {
                let part = places[from]..places[from + length];
                let wanted = loose.text()[part.clone()].to_owned();
                let span = loose.span(part);
                let back = Loose::new(&text[span.exact]);
                let expected = format!("{}{wanted}{}", span.before, span.after);
                prop_assert_eq!(back.text(), expected.trim_end_matches(' '));
            }
        }
    }
}
