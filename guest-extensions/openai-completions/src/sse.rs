//! Server-sent events from chunks of bytes, whose borders may be anywhere.
//!
//! Must never look at a byte more often than a fixed number of times, nor hold more than one event: a server
//! decides what comes here.

use std::fmt;

/// How long a line, and the data of one event, may be.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;

/// A line or an event is longer than [`MAX_BYTES`].
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "The server sent a line of more than {} MiB.", MAX_BYTES / 1024 / 1024)
    }
}

/// Reads events. Only their data matters here; names, ids and retry times are passed over.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was a carriage return: a line feed now belongs to it.
    after_return: bool,
    /// The first line is over, and with it the place of a byte order mark.
    begun: bool,
}

impl Parser {
    /// Takes the next bytes and gives the data of each event that they complete to `event`.
    pub fn push(&mut self, mut bytes: &[u8], event: &mut impl FnMut(&str)) -> Result<(), TooLong> {
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, rest) = bytes.split_at(end);
            self.extend(line)?;
            self.end_line(event)?;
            bytes = if let Some(rest) = rest.strip_prefix(b"\r") {
                self.after_return = rest.is_empty();
                rest.strip_prefix(b"\n").unwrap_or(rest)
            } else {
                rest.get(1..).unwrap_or_default()
            };
        }
        self.extend(bytes)
    }

    /// The stream is over: an event that lacks only its empty line is complete.
    pub fn finish(&mut self, event: &mut impl FnMut(&str)) -> Result<(), TooLong> {
        if !self.line.is_empty() {
            self.end_line(event)?;
        }
        self.dispatch(event);
        Ok(())
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + bytes.len() > MAX_BYTES {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, event: &mut impl FnMut(&str)) -> Result<(), TooLong> {
        let mut line = self.line.as_slice();
        if !self.begun {
            self.begun = true;
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            self.line.clear();
            self.dispatch(event);
            return Ok(());
        }
        let value = match line.strip_prefix(b"data") {
            Some(b"") => Some(b"".as_slice()),
            Some(rest) => rest.strip_prefix(b":").map(|value| value.strip_prefix(b" ").unwrap_or(value)),
            None => None,
        };
        if let Some(value) = value {
            if self.data.len() + value.len() >= MAX_BYTES {
                return Err(TooLong);
            }
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value);
            self.has_data = true;
        }
        self.line.clear();
        Ok(())
    }

    fn dispatch(&mut self, event: &mut impl FnMut(&str)) {
        if self.has_data {
            event(&String::from_utf8_lossy(&self.data));
            self.data.clear();
            self.has_data = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(chunks: &[&[u8]]) -> Vec<String> {
        let mut parser = Parser::default();
        let mut out = Vec::new();
        for chunk in chunks {
            parser.push(chunk, &mut |data| out.push(data.to_owned())).unwrap();
        }
        parser.finish(&mut |data| out.push(data.to_owned())).unwrap();
        out
    }

    #[test]
    fn all_three_line_ends() {
        for text in ["data: a\n\ndata: b\n\n", "data: a\r\rdata: b\r\r", "data: a\r\n\r\ndata: b\r\n\r\n"] {
            assert_eq!(events(&[text.as_bytes()]), ["a", "b"], "{text:?}");
            let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(events(&single), ["a", "b"], "{text:?}");
        }
    }

    #[test]
    fn a_line_feed_after_an_empty_chunk_belongs_to_the_return() {
        assert_eq!(events(&[b"data: a\r", b"", b"\ndata: b\r", b"\n\r", b"\n"]), ["a\nb"]);
    }

    #[test]
    fn lines_of_data_are_joined_and_other_fields_passed_over() {
        let text = b": hello\nevent: x\nid: 7\nretry: 9\ndata: one\ndata:two\ndata\ndatabase: no\ndata:  three\n\n";
        assert_eq!(events(&[text]), ["one\ntwo\n\n three"]);
    }

    #[test]
    fn comments_and_empty_lines_alone_are_no_event() {
        assert_eq!(events(&[b": ping\n\n\n\n: ping\n\n"]), Vec::<String>::new());
    }

    #[test]
    fn a_byte_order_mark_may_be_split() {
        assert_eq!(events(&[b"\xEF", b"\xBB", b"\xBFdata: a\n\n"]), ["a"]);
        assert_eq!(events(&[b"data: \xEF\xBB\xBFa\n\n"]), ["\u{feff}a"]);
    }

    #[test]
    fn borders_inside_a_character() {
        let text = "data: häß 🦀\n\n".as_bytes();
        for at in 0..text.len() {
            assert_eq!(events(&[&text[..at], &text[at..]]), ["häß 🦀"]);
        }
    }

    #[test]
    fn bytes_that_are_not_utf_8_do_not_end_the_stream() {
        assert_eq!(events(&[b"data: a\xFFb\n\n"]), ["a\u{fffd}b"]);
    }

    #[test]
    fn the_last_event_needs_no_empty_line() {
        assert_eq!(events(&[b"data: a\n\ndata: b"]), ["a", "b"]);
        assert_eq!(events(&[b"data: a\n\ndata: b\n"]), ["a", "b"]);
    }

    #[test]
    fn lines_have_a_bound() {
        let mut parser = Parser::default();
        let chunk = vec![b'x'; MAX_BYTES / 2];
        let mut none = |_: &str| panic!("there is no event");
        assert_eq!(parser.push(&chunk, &mut none), Ok(()));
        assert_eq!(parser.push(&chunk, &mut none), Ok(()));
        assert_eq!(parser.push(b"x", &mut none), Err(TooLong));
    }

    #[test]
    fn events_of_many_lines_have_a_bound() {
        let mut parser = Parser::default();
        let mut line = b"data:".to_vec();
        line.resize(1024 * 1024, b'x');
        line.push(b'\n');
        let mut none = |_: &str| panic!("there is no event");
        let fails = (0..32).any(|_| parser.push(&line, &mut none).is_err());
        assert!(fails);
    }

    #[test]
    fn many_small_chunks_take_linear_time() {
        let mut parser = Parser::default();
        let mut seen = 0;
        for _ in 0..MAX_BYTES / 16 {
            parser.push(b"0123456789abcde", &mut |_| seen += 1).unwrap();
        }
        parser.push(b"\ndata: x\n\n", &mut |_| seen += 1).unwrap();
        assert_eq!(seen, 1);
    }
}
