//! The changes to a source: blanks over what goes away, and the few texts that come in.
//!
//! It must never lose or add a line, and never cut a character in half.

use std::collections::BTreeMap;

use oxc_span::Span;

use crate::{Insertion, trivia};

/// A text that stands in for a part of the source.
struct Replacement {
    start: usize,
    end: usize,
    text: String,
}

/// A place where a `;` is needed if what comes after it would otherwise go on with what comes before.
struct Separation {
    /// The blanked part that has room for it.
    blank: Span,
    /// Where to look for what comes after.
    after: usize,
    /// Whether it is between members of a class, where more can go on.
    in_class: bool,
}

pub(crate) struct Edits<'s> {
    source: &'s str,
    /// The source, overwritten in place.
    bytes: Vec<u8>,
    /// The start of each blanked part, by its end.
    blanks: BTreeMap<u32, u32>,
    replacements: Vec<Replacement>,
    separations: Vec<Separation>,
}

impl<'s> Edits<'s> {
    pub(crate) fn new(source: &'s str) -> Self {
        Self {
            source,
            bytes: source.as_bytes().to_vec(),
            blanks: BTreeMap::new(),
            replacements: Vec::new(),
            separations: Vec::new(),
        }
    }

    /// Overwrites a part with white space that is as long in bytes and in UTF-16 units, and keeps its lines.
    pub(crate) fn blank(&mut self, span: Span) {
        let Some(text) = self.source.get(span.start as usize..span.end as usize) else { return };
        if text.is_empty() {
            return;
        }
        self.blanks.entry(span.end).and_modify(|start| *start = span.start.min(*start)).or_insert(span.start);
        for (at, character) in text.char_indices() {
            let filler: &[u8] = match character {
                '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => continue,
                // A no-break space for two bytes and one unit, an ideographic one for three and one.
                _ => match character.len_utf8() {
                    1 => b" ",
                    2 => "\u{a0}".as_bytes(),
                    3 => "\u{3000}".as_bytes(),
                    _ => "\u{a0}\u{a0}".as_bytes(),
                },
            };
            self.write(span.start as usize + at, filler);
        }
    }

    /// Overwrites the token of one byte at `at`.
    pub(crate) fn put(&mut self, at: u32, token: u8) {
        self.write(at as usize, &[token]);
    }

    fn write(&mut self, at: usize, with: &[u8]) {
        if let Some(target) = self.bytes.get_mut(at..at + with.len()) {
            target.copy_from_slice(with);
        }
    }

    /// Where the blanked part that ends at `end` begins.
    pub(crate) fn blank_ending_at(&self, end: u32) -> Option<Span> {
        self.blanks.get(&end).map(|start| Span::new(*start, end))
    }

    /// Puts `text` in the place of a part of the source. The lines that end in that part end after the text.
    pub(crate) fn replace(&mut self, span: Span, text: impl Into<String>) {
        let (start, end) = (span.start as usize, span.end as usize);
        self.replacements.push(Replacement { start, end, text: text.into() });
    }

    /// Puts `text` before the byte at `at`.
    pub(crate) fn insert(&mut self, at: u32, text: impl Into<String>) {
        self.replace(Span::new(at, at), text);
    }

    /// Asks for a `;` in `blank`, should what follows `after` need it.
    pub(crate) fn separate(&mut self, blank: Span, after: u32, in_class: bool) {
        self.separations.push(Separation { blank, after: after as usize, in_class });
    }

    /// Puts a `;` into a blanked part.
    pub(crate) fn put_semicolon(&mut self, blank: Span) {
        // Every part that is blanked has punctuation or a keyword in it. Only a whole character may be overwritten.
        let text = self.source.as_bytes().get(blank.start as usize..blank.end as usize).unwrap_or_default();
        if let Some(at) = text.iter().position(|byte| byte.is_ascii() && *byte != b'\n' && *byte != b'\r') {
            self.write(blank.start as usize + at, b";");
        }
    }

    /// Puts the `;` in that were asked for and are needed. From the end on, so that the blanks after many types in a row
    /// are read once, and one `;` is enough for all of them.
    fn put_semicolons(&mut self) {
        let mut separations = std::mem::take(&mut self.separations);
        separations.sort_by_key(|separation| std::cmp::Reverse(separation.after));
        let mut known = usize::MAX..usize::MAX;
        for separation in separations {
            let next = trivia::skip_knowing(&self.bytes, separation.after, &known);
            known = separation.after..next;
            if goes_on(self.bytes.get(next..).unwrap_or_default(), separation.in_class) {
                self.put_semicolon(separation.blank);
            }
        }
    }

    /// What comes in without taking anything's place. The replacements are in the order of the source.
    fn insertions(&self) -> Vec<Insertion> {
        let (mut line, mut line_start, mut seen) = (1_u32, 0_usize, 0_usize);
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let mut all = Vec::new();
        for Replacement { start, text, .. } in self.replacements.iter().filter(|it| it.start == it.end) {
            for (at, byte) in self.source.bytes().enumerate().take(*start).skip(seen) {
                if byte == b'\n' {
                    line = line.saturating_add(1);
                    line_start = at + 1;
                }
            }
            seen = *start;
            let column = number(start.saturating_sub(line_start));
            all.push(Insertion { line, column, bytes: number(text.len()) });
        }
        all
    }

    /// The code, and what of it is not where it was in the source.
    pub(crate) fn finish(mut self) -> Result<Edited, std::string::FromUtf8Error> {
        self.put_semicolons();
        let moved = !self.replacements.is_empty();
        self.replacements.sort_by_key(|replacement| replacement.start);
        let mut code = Vec::with_capacity(self.bytes.len());
        let mut done = 0;
        for Replacement { start, end, text } in &self.replacements {
            code.extend_from_slice(self.bytes.get(done..*start).unwrap_or_default());
            code.extend_from_slice(text.as_bytes());
            let mut at = done.max(*start);
            while at < *end {
                let rest = self.bytes.get(at..*end).unwrap_or_default();
                let newline = trivia::newline_len(rest);
                code.extend_from_slice(rest.get(..newline).unwrap_or_default());
                at += newline.max(1);
            }
            done = done.max(*end);
        }
        code.extend_from_slice(self.bytes.get(done..).unwrap_or_default());
        let insertions = self.insertions();
        String::from_utf8(code).map(|code| Edited { code, moved, insertions })
    }
}

/// What edits made of a source.
pub(crate) struct Edited {
    pub(crate) code: String,
    /// Whether any of it is not where it was in the source.
    pub(crate) moved: bool,
    pub(crate) insertions: Vec<Insertion>,
}

/// Whether JavaScript would read `code` as going on with a line that ends without `;`.
fn goes_on(code: &[u8], in_class: bool) -> bool {
    match code.first() {
        Some(b'(' | b'[' | b'`' | b'+' | b'-' | b'/') => true,
        Some(b'*') => in_class,
        Some(b'i') if in_class => {
            matches!(code.get(..trivia::word_end(code, 0)), Some(b"in" | b"instanceof"))
        }
        _ => false,
    }
}
