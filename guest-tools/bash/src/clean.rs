//! Terminal output as text for the model.
//!
//! A program may write for a terminal even where there is none. What only moves a cursor or sets colours is
//! dropped; what a terminal would overwrite is overwritten; other control characters are shown as pictures:
//!
//! | in the output | in the text |
//! |---|---|
//! | escape sequences (colours, cursor, titles, links) | nothing |
//! | BEL, and the controls U+0080 to U+009F | nothing |
//! | CR LF | LF |
//! | CR before other text | replaces the line so far, as a progress bar does |
//! | backspace | removes the character before it on the line |
//! | NUL and other controls, DEL | their pictures: `␀`, `␛`, `␡` |
//!
//! Line ends are kept one for one, so line numbers are those of the unchanged output.

/// Escape sequences longer than this, in characters, are taken for a mistake: text is shown again after it.
const LONGEST_SEQUENCE: usize = 4096;

/// Where in an escape sequence the cleaner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In text.
    Text,
    /// After a CR.
    Return,
    /// After ESC.
    Escape,
    /// After ESC and a character that wants one more.
    Designate,
    /// After ESC `[`: parameters up to a letter.
    Control,
    /// In a string that ends with BEL or ESC `\`.
    String,
    /// After ESC in such a string.
    StringEscape,
}

/// Cleans output that comes in pieces. What it gives is a line's text only when the line has ended: until then
/// it may still take some back.
#[derive(Debug)]
pub(crate) struct Cleaner {
    state: State,
    /// Characters of the escape sequence so far.
    length: usize,
}

/// Takes what a cleaner gives.
pub(crate) trait Sink {
    /// Adds text without control characters other than tab and line feed.
    fn push_text(&mut self, text: &str);
    /// Takes back the last character of the line, if it has one.
    fn pop(&mut self);
    /// Takes back the whole line.
    fn restart_line(&mut self);
}

impl Cleaner {
    /// A cleaner at the start of an output.
    pub(crate) fn new() -> Self {
        Self { state: State::Text, length: 0 }
    }

    /// Takes the next piece.
    pub(crate) fn clean(&mut self, text: &str, sink: &mut impl Sink) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if self.state == State::Text {
                let (plain, odd) = rest.split_at(plain_length(rest));
                if !plain.is_empty() {
                    sink.push_text(plain);
                    rest = odd;
                    continue;
                }
            }
            rest = &rest[c.len_utf8()..];
            if self.state != State::Text && self.state != State::Return {
                self.length += 1;
                if c == '\n' || self.length > LONGEST_SEQUENCE {
                    self.state = State::Text;
                }
            }
            self.state = match self.state {
                State::Text => text_character(c, sink),
                State::Return => {
                    if c != '\n' && c != '\r' {
                        sink.restart_line();
                    }
                    text_character(c, sink)
                }
                State::Escape => match c {
                    '[' => State::Control,
                    ']' | 'P' | 'X' | '^' | '_' => State::String,
                    ' '..='/' => State::Designate,
                    '\u{1b}' => State::Escape,
                    _ => State::Text,
                },
                State::Designate => match c {
                    ' '..='/' => State::Designate,
                    _ => State::Text,
                },
                State::Control => match c {
                    '@'..='~' => State::Text,
                    '\u{1b}' => State::Escape,
                    _ => State::Control,
                },
                State::String | State::StringEscape if c == '\u{7}' || c == '\u{9c}' => State::Text,
                State::String => {
                    if c == '\u{1b}' {
                        State::StringEscape
                    } else {
                        State::String
                    }
                }
                State::StringEscape => match c {
                    '\\' => State::Text,
                    '\u{1b}' => State::StringEscape,
                    _ => State::String,
                },
            };
            if self.state == State::Text {
                self.length = 0;
            }
        }
    }
}

/// Bytes at the start of a text before what may be a control character other than tab and line feed.
fn plain_length(text: &str) -> usize {
    // Controls above ASCII, and some harmless characters, begin with 0xC2.
    let odd = |byte: u8| matches!(byte, 0..=8 | 11..=31 | 0x7f | 0xc2);
    text.bytes().position(odd).unwrap_or(text.len())
}

/// Takes a character of the text itself and tells what it starts.
fn text_character(c: char, sink: &mut impl Sink) -> State {
    match c {
        '\u{1b}' => return State::Escape,
        '\u{9b}' => return State::Control,
        '\u{90}' | '\u{9d}'..='\u{9f}' => return State::String,
        '\r' => return State::Return,
        '\u{7}' | '\u{80}'..='\u{9f}' => {}
        '\u{8}' => sink.pop(),
        '\u{7f}' => sink.push_text("␡"),
        '\0'..='\u{1f}' if c != '\t' && c != '\n' => {
            let picture = char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER);
            sink.push_text(picture.encode_utf8(&mut [0; 4]));
        }
        _ => sink.push_text(c.encode_utf8(&mut [0; 4])),
    }
    State::Text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Sink for String {
        fn push_text(&mut self, text: &str) {
            self.push_str(text);
        }

        fn pop(&mut self) {
            if !self.is_empty() && !self.ends_with('\n') {
                String::pop(self);
            }
        }

        fn restart_line(&mut self) {
            let start = self.rfind('\n').map_or(0, |at| at + 1);
            self.truncate(start);
        }
    }

    fn clean(text: &str) -> String {
        let mut out = String::new();
        Cleaner::new().clean(text, &mut out);
        out
    }

    #[test]
    fn plain_text_passes() {
        assert_eq!(clean("a\tb\nç 漢 😀\n"), "a\tb\nç 漢 😀\n");
    }

    #[test]
    fn escape_sequences_go() {
        assert_eq!(clean("\u{1b}[1;31mred\u{1b}[0m \u{1b}[2Kx"), "red x");
        assert_eq!(clean("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\"), "alink");
        assert_eq!(clean("\u{1b}(Ba\u{1b}=b\u{1b}Pq#0\u{1b}\\c\u{9b}1md"), "abcd");
    }

    #[test]
    fn an_unfinished_sequence_does_not_swallow_what_follows() {
        assert_eq!(clean("\u{1b}]0;never ended\nnext"), "\nnext");
        let long = format!("\u{1b}]{}shown", "x".repeat(LONGEST_SEQUENCE));
        assert!(clean(&long).ends_with("shown"));
    }

    #[test]
    fn controls_are_dropped_or_shown() {
        assert_eq!(clean("a\u{7}b\0c\u{c}d\u{7f}"), "ab␀c␌d␡");
    }

    #[test]
    fn carriage_returns_and_backspaces_overwrite() {
        assert_eq!(clean("a\r\nb\r\n"), "a\nb\n");
        assert_eq!(clean("10%\r50%\r100%\ndone"), "100%\ndone");
        assert_eq!(clean("kept\r"), "kept");
        assert_eq!(clean("N\u{8}NA\u{8}A\n\u{8}"), "NA\n");
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(text in "[ab\r\n\u{8}\u{1b}\\[\\]m;\u{7}\\\\é]{0,60}", at in 0usize..60) {
            let at = (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            let mut pieces = String::new();
            let mut cleaner = Cleaner::new();
            cleaner.clean(&text[..at], &mut pieces);
            cleaner.clean(&text[at..], &mut pieces);
            prop_assert_eq!(&pieces, &clean(&text));
            let ends = |text: &str| text.matches('\n').count();
            prop_assert_eq!(ends(&pieces), ends(&text));
        }
    }
}
