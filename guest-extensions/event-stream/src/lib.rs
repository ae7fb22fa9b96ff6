//! Server-sent events (as in the HTML standard) from chunks of bytes, whose borders may be anywhere.
//!
//! Must never look at a byte more often than a fixed number of times, nor hold more than one event: a server decides what comes
//! here.

use std::fmt;

/// How long a line, and the data of one event, may be, in bytes.
pub const MAX_EVENT: usize = 16 << 20;

/// An event. What carries no data may still carry an id or a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerEvent {
    /// What it is called; none is a message.
    pub name: Option<String>,
    /// What to ask for what follows it by.
    pub id: Option<String>,
    /// How long to wait before it is asked for, in milliseconds.
    pub retry: Option<u64>,
    /// Its data; empty if it has none.
    pub data: String,
}

/// A line or an event is longer than [`MAX_EVENT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "The server sent a line of more than {} MiB.", MAX_EVENT >> 20)
    }
}

impl std::error::Error for TooLong {}

/// Reads events.
#[derive(Debug, Default)]
pub struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    next: ServerEvent,
    /// Something that matters is in `next` or `data`.
    has_any: bool,
    /// The last byte was a carriage return: a line feed now belongs to it.
    after_return: bool,
    /// The first line is over, and with it the place of a byte order mark.
    begun: bool,
}

impl Events {
    /// Takes the next bytes, and gives the events that end in them.
    ///
    /// # Errors
    /// One is longer than [`MAX_EVENT`]; nothing can be read after that.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<ServerEvent>, TooLong> {
        let mut events = Vec::new();
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, rest) = bytes.split_at(end);
            self.extend(line)?;
            self.end_line(&mut events)?;
            bytes = if let Some(rest) = rest.strip_prefix(b"\r") {
                self.after_return = rest.is_empty();
                rest.strip_prefix(b"\n").unwrap_or(rest)
            } else {
                rest.get(1..).unwrap_or_default()
            };
        }
        self.extend(bytes)?;
        Ok(events)
    }

    /// The stream is over: gives the event that lacks only its empty line, where that is taken for one.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn finish(&mut self) -> Result<Option<ServerEvent>, TooLong> {
        let mut events = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut events)?;
        }
        self.end_line(&mut events)?;
        Ok(events.pop())
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        // A comment is not kept, so it may be of any length.
        if self.line.first() == Some(&b':') {
            return Ok(());
        }
        if self.line.len() + self.data.len() + bytes.len() > MAX_EVENT {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<ServerEvent>) -> Result<(), TooLong> {
        let line = std::mem::take(&mut self.line);
        let mut text = line.as_slice();
        if !std::mem::replace(&mut self.begun, true) {
            text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
        }
        if text.is_empty() {
            if std::mem::take(&mut self.has_any) {
                let mut event = std::mem::take(&mut self.next);
                event.data = String::from_utf8_lossy(&std::mem::take(&mut self.data)).into_owned();
                self.has_data = false;
                events.push(event);
            }
            return Ok(());
        }
        let colon = text.iter().position(|byte| *byte == b':').unwrap_or(text.len());
        let (field, value) = text.split_at(colon);
        let value = value.get(1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let as_text = || String::from_utf8_lossy(value).into_owned();
        match field {
            b"data" => {
                if self.data.len() + value.len() >= MAX_EVENT {
                    return Err(TooLong);
                }
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.next.name = Some(as_text()).filter(|name| name != "message" && !name.is_empty()),
            b"id" if !value.contains(&0) => self.next.id = Some(as_text()),
            b"retry" if value.iter().all(u8::is_ascii_digit) => self.next.retry = as_text().parse().ok(),
            _ => return Ok(()),
        }
        self.has_any = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn data(data: &str) -> ServerEvent {
        ServerEvent { data: data.to_owned(), ..ServerEvent::default() }
    }

    #[test]
    fn all_fields_and_all_line_ends_are_read() {
        for end in ["\n", "\r", "\r\n"] {
            let lines = [
                "\u{feff}: hello",
                "id: 7",
                "retry: 1500",
                "data:",
                "",
                "",
                "event: endpoint",
                "data: /m?s=1",
                "",
                "event: message",
                "id: 8",
                "data: {\"a\":",
                "data:1}",
                "datax: no",
                "retry: 1x",
                "",
                "data: last",
                "",
            ];
            let text = lines.map(|line| format!("{line}{end}")).concat();
            let expected = [
                ServerEvent { id: Some("7".into()), retry: Some(1500), ..data("") },
                ServerEvent { name: Some("endpoint".into()), ..data("/m?s=1") },
                ServerEvent { id: Some("8".into()), ..data("{\"a\":\n1}") },
                data("last"),
            ];
            assert_eq!(Events::default().push(text.as_bytes()).unwrap(), expected, "{end:?}");
        }
    }

    #[test]
    fn an_event_that_is_too_long_is_refused_and_a_comment_is_not_kept() {
        let much = vec![b'x'; MAX_EVENT / 2];
        let mut events = Events::default();
        events.push(b": ").unwrap();
        for _ in 0..3 {
            events.push(&much).unwrap();
        }
        assert_eq!(events.push(b"\ndata: a\n\n").unwrap(), [data("a")]);
        for between in [&b""[..], b"\ndata: "] {
            let mut events = Events::default();
            events.push(b"data: ").unwrap();
            events.push(&much).unwrap();
            let rest = events.push(between).and_then(|_| events.push(&much)).and_then(|_| events.push(b"xx\n"));
            assert_eq!(rest, Err(TooLong));
        }
    }

    fn texts(chunks: &[&[u8]]) -> Vec<String> {
        let mut events = Events::default();
        let mut came: Vec<ServerEvent> = chunks.iter().flat_map(|chunk| events.push(chunk).unwrap()).collect();
        came.extend(events.finish().unwrap());
        came.into_iter().map(|event| event.data).collect()
    }

    #[test]
    fn a_line_feed_after_an_empty_chunk_belongs_to_the_return() {
        assert_eq!(texts(&[b"data: a\r", b"", b"\ndata: b\r", b"\n\r", b"\n"]), ["a\nb"]);
    }

    #[test]
    fn lines_of_data_are_joined_and_what_is_no_field_is_passed_over() {
        let text = b": hello\ndata: one\ndata:two\ndata\ndatabase: no\ndata:  three\n\n";
        assert_eq!(texts(&[text]), ["one\ntwo\n\n three"]);
        assert_eq!(texts(&[b": ping\n\n\n\n: ping\n\n"]), Vec::<String>::new());
    }

    #[test]
    fn a_byte_order_mark_and_a_character_may_be_split() {
        assert_eq!(texts(&[b"\xEF", b"\xBB", b"\xBFdata: a\n\n"]), ["a"]);
        assert_eq!(texts(&[b"data: \xEF\xBB\xBFa\n\n"]), ["\u{feff}a"]);
        let text = "data: häß 🦀\n\n".as_bytes();
        for at in 0..text.len() {
            assert_eq!(texts(&[&text[..at], &text[at..]]), ["häß 🦀"]);
        }
        assert_eq!(texts(&[b"data: a\xFFb\n\n"]), ["a\u{fffd}b"]);
    }

    #[test]
    fn the_last_event_needs_no_empty_line_where_the_stream_is_over() {
        for text in ["data: a\n\ndata: b", "data: a\n\ndata: b\n", "data: a\n\ndata: b\n\n"] {
            assert_eq!(texts(&[text.as_bytes()]), ["a", "b"], "{text:?}");
        }
    }

    #[test]
    fn events_of_many_lines_have_a_bound_and_many_small_chunks_take_linear_time() {
        let mut events = Events::default();
        let mut line = b"data:".to_vec();
        line.resize(1 << 20, b'x');
        line.push(b'\n');
        assert!((0..32).any(|_| events.push(&line).is_err()));
        let mut events = Events::default();
        for _ in 0..MAX_EVENT / 16 {
            assert_eq!(events.push(b"0123456789abcde"), Ok(Vec::new()));
        }
        assert_eq!(events.push(b"\ndata: x\n\n"), Ok(vec![data("x")]));
    }

    proptest! {
        #[test]
        fn events_are_the_same_however_they_arrive(
            pieces in proptest::collection::vec("(data: ?|id: |retry: 1|event: e|:|x|\n|\r|\r\n){0,6}", 0..9),
        ) {
            let whole = pieces.concat();
            let mut events = Events::default();
            let piecewise: Vec<ServerEvent> =
                pieces.iter().flat_map(|piece| events.push(piece.as_bytes()).unwrap()).collect();
            prop_assert_eq!(piecewise, Events::default().push(whole.as_bytes()).unwrap());
        }
    }
}
