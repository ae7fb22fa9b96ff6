//! Messages as lines, for servers that are programs: how bytes become lines, and lines become the messages of rmcp.
//!
//! Both ends are channels, so whoever holds the process may be anywhere. A line that is too long, or that is no message, is
//! told and left out: it never ends the connection, and it never takes more memory than a message may.

use std::{collections::VecDeque, fmt};

use rmcp::{
    RoleClient,
    model::{
        CustomRequest, CustomResult, ErrorData, JsonRpcError, JsonRpcMessage, JsonRpcResponse, JsonRpcVersion2_0,
        RequestId, ServerRequest, ServerResult,
    },
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};
use tokio::sync::mpsc;

use crate::{session::Told, text::shown};

/// The longest message, in bytes.
pub const MAX_MESSAGE: usize = 16 << 20;

/// How many lines may wait for each side.
const WAITING: usize = 64;

/// What a program printed, as lines.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
    /// The rest of a line is left out, for it was too long.
    skipping: bool,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// All of it, without its end.
    Whole(Vec<u8>),
    /// It was longer than a message may be.
    TooLong,
}

impl Lines {
    /// Adds bytes, and gives the lines that end in them.
    pub fn push(&mut self, mut bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(end) = bytes.iter().position(|b| *b == b'\n') {
            let (line, rest) = bytes.split_at(end);
            self.begin(line);
            let line = std::mem::take(&mut self.begun);
            if std::mem::take(&mut self.skipping) {
                lines.push(Line::TooLong);
            } else if line.iter().any(|b| !b.is_ascii_whitespace()) {
                lines.push(Line::Whole(line));
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.begin(bytes);
        lines
    }

    fn begin(&mut self, bytes: &[u8]) {
        if self.skipping {
            return;
        }
        if self.begun.len() + bytes.len() > MAX_MESSAGE {
            self.skipping = true;
            self.begun = Vec::new();
        } else {
            self.begun.extend_from_slice(bytes);
        }
    }
}

/// The end of a wire at which the program is.
#[derive(Debug)]
pub struct ProgramEnd {
    /// What it is to be sent, a line each, with its end.
    pub to_program: mpsc::Receiver<Vec<u8>>,
    /// Where to put what it printed. Dropped: it prints nothing any more.
    pub from_program: mpsc::Sender<Line>,
}

/// The end of a wire at which the client is.
#[derive(Debug)]
pub struct Wire {
    to_program: Option<mpsc::Sender<Vec<u8>>>,
    from_program: mpsc::Receiver<Line>,
    /// Messages of one line that are still to be taken.
    batch: VecDeque<RxJsonRpcMessage<RoleClient>>,
    told: mpsc::Sender<Told>,
}

/// Nobody takes what is sent any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server takes no messages any more")
    }
}

impl std::error::Error for Closed {}

/// A wire. What is no message is told to `told`, as long as there is room.
pub fn wire(told: mpsc::Sender<Told>) -> (Wire, ProgramEnd) {
    let (to_program, sent) = mpsc::channel(WAITING);
    let (printed, from_program) = mpsc::channel(WAITING);
    let wire = Wire { to_program: Some(to_program), from_program, batch: VecDeque::new(), told };
    (wire, ProgramEnd { to_program: sent, from_program: printed })
}

/// The messages of a line, or of anything else that may have several: two revisions of the protocol have.
///
/// # Errors
/// Why there are none.
pub fn messages(text: &[u8]) -> serde_json::Result<VecDeque<RxJsonRpcMessage<RoleClient>>> {
    match text.iter().find(|b| !b.is_ascii_whitespace()) {
        Some(b'[') => serde_json::from_slice::<Vec<&RawValue>>(text)?.into_iter().map(message).collect(),
        _ => Ok(VecDeque::from([message(serde_json::from_slice(text)?)?])),
    }
}

/// An answer, as far as it is told from other messages. Whoever answers both ways at once has failed.
#[derive(Deserialize)]
struct Answer<'a> {
    jsonrpc: JsonRpcVersion2_0,
    id: RequestId,
    #[serde(borrow)]
    result: &'a RawValue,
    method: Option<IgnoredAny>,
    error: Option<ErrorData>,
}

/// What only the answers to a greeting have.
#[derive(Deserialize)]
struct Greeting {
    capabilities: Option<IgnoredAny>,
}

fn is_greeting(result: &RawValue) -> bool {
    is_object(result.get()) && matches!(serde_json::from_str(result.get()), Ok(Greeting { capabilities: Some(_) }))
}

fn is_object(text: &str) -> bool {
    text.starts_with('{')
}

fn message(text: &RawValue) -> serde_json::Result<RxJsonRpcMessage<RoleClient>> {
    let text = text.get();
    // The library finds out of which type an answer is by trying one after the other, each with a copy of all of it. What was
    // asked for is known to who asked, so it is passed on as the text that it is. A greeting is the library's own.
    match serde_json::from_str(text) {
        Ok(Answer { jsonrpc, id, method: None, error: Some(error), .. }) if is_object(text) => {
            return Ok(JsonRpcMessage::Error(JsonRpcError { jsonrpc, id: Some(id), error }));
        }
        Ok(Answer { jsonrpc, id, result, method: None, error: None }) if is_object(text) && !is_greeting(result) => {
            let result = ServerResult::CustomResult(CustomResult::new(Value::from(result.get())));
            return Ok(JsonRpcMessage::Response(JsonRpcResponse { jsonrpc, id, result }));
        }
        _ => {}
    }
    let mut message: RxJsonRpcMessage<RoleClient> = serde_json::from_str(text)?;
    // The library's types of what is asked of a person or a model leave out what they do not know, and put a form's fields into
    // another order: that is passed on as it is, too.
    if let JsonRpcMessage::Request(request) = &mut message
        && matches!(request.request, ServerRequest::CreateMessageRequest(_) | ServerRequest::ElicitRequest(_))
    {
        let mut plain: Value = serde_json::from_str(text)?;
        let method = plain["method"].as_str().unwrap_or_default().to_owned();
        request.request = ServerRequest::CustomRequest(CustomRequest::new(method, Some(plain["params"].take())));
    }
    Ok(message)
}

impl Wire {
    fn take(&mut self, line: Line) {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong => {
                return self.tell(format!("a message of more than {} MiB was left out", MAX_MESSAGE >> 20));
            }
        };
        match messages(&line) {
            Ok(mut messages) => self.batch.append(&mut messages),
            Err(_) => self.tell(format!("printed what is no message: {}", shown(&String::from_utf8_lossy(&line)))),
        }
    }

    fn tell(&self, text: String) {
        let _ = self.told.try_send(Told::Strange(text));
    }
}

impl Transport<RoleClient> for Wire {
    type Error = Closed;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let to_program = self.to_program.clone();
        async move {
            let mut line = serde_json::to_vec(&message).map_err(|_| Closed)?;
            line.push(b'\n');
            to_program.ok_or(Closed)?.send(line).await.map_err(|_| Closed)
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Some(message) = self.batch.pop_front() {
                return Some(message);
            }
            let line = self.from_program.recv().await?;
            self.take(line);
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.to_program = None;
        self.from_program.close();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_that_is_too_long_is_left_out_and_the_next_one_is_whole() {
        let mut lines = Lines::default();
        let much = vec![b'x'; MAX_MESSAGE / 2];
        assert_eq!(lines.push(&much), []);
        assert_eq!(lines.push(&much), []);
        assert_eq!(lines.push(b"x"), []);
        assert_eq!(lines.begun.capacity(), 0, "nothing of it is kept");
        assert_eq!(lines.push(&much), []);
        assert_eq!(lines.push(b"\n{}\n"), [Line::TooLong, Line::Whole(b"{}".to_vec())]);
        let mut exact = vec![b'y'; MAX_MESSAGE];
        exact.push(b'\n');
        assert!(matches!(lines.push(&exact).as_slice(), [Line::Whole(line)] if line.len() == MAX_MESSAGE));
    }

    #[test]
    fn answers_are_passed_on_as_they_were_written_and_greetings_are_read() {
        let of = |text: &str| messages(text.as_bytes()).map(|mut all| all.pop_front().unwrap());
        let raw = |message: RxJsonRpcMessage<RoleClient>| match message {
            JsonRpcMessage::Response(JsonRpcResponse {
                result: ServerResult::CustomResult(CustomResult(text)),
                ..
            }) => text,
            other => panic!("{other:?}"),
        };
        for result in ["{ \"b\": 1.50, \"a\" : [] }", "null", "\"text\"", "7", "[]", "{\"capabilities\":null}"] {
            let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{result}}}");
            assert_eq!(raw(of(&text).unwrap()), *result);
        }
        let greeting = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"a","version":"1"}}}"#;
        let is_read = |message| {
            matches!(
                message,
                JsonRpcMessage::Response(JsonRpcResponse { result: ServerResult::InitializeResult(_), .. })
            )
        };
        assert!(is_read(of(greeting).unwrap()));
        let several =
            messages(format!(" [{greeting}, {{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{{}}}}]").as_bytes())
                .unwrap();
        assert_eq!(several.len(), 2);
        for none in ["", "7", "{}", "[7]", "[\"2.0\", 1, {}, null, null]", r#"{"jsonrpc":"1.0","id":1,"result":{}}"#] {
            assert!(messages(none.as_bytes()).is_err(), "{none}");
        }
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_arrive(
            pieces in proptest::collection::vec(proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..9), 0..9),
        ) {
            let whole: Vec<u8> = pieces.concat();
            let mut lines = Lines::default();
            let piecewise: Vec<Line> = pieces.iter().flat_map(|piece| lines.push(piece)).collect();
            prop_assert_eq!(piecewise, Lines::default().push(&whole));
        }
    }
}
