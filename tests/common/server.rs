//! A server on the loopback address that does exactly what a test tells it, one reply for each request, and keeps
//! what it was sent.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// Waiting longer than this for the other side means that it hangs.
const PATIENCE: Duration = Duration::from_secs(80);

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Something that happens once and that others wait for.
#[derive(Clone, Default)]
pub(crate) struct Gate {
    state: Arc<(Mutex<bool>, Condvar)>,
}

impl Gate {
    pub(crate) fn open(&self) {
        *self.state.0.lock().unwrap() = true;
        self.state.1.notify_all();
    }

    pub(crate) fn wait(&self) {
        let open = self.state.0.lock().unwrap();
        let (open, _) = self.state.1.wait_timeout_while(open, PATIENCE, |open| !*open).unwrap();
        assert!(*open, "waited in vain for the other side");
    }
}

/// One step of a reply.
pub(crate) enum Step {
    /// These bytes, in a write of their own.
    Send(Vec<u8>),
    /// Goes on when the test says so.
    Wait(Gate),
    /// Waits until the client closes the connection, then tells the test.
    UntilClosed(Gate),
}

/// What to answer to a request. The connection is closed at its end.
pub(crate) struct Reply(pub(crate) Vec<Step>);

impl Reply {
    /// These bytes, as they are.
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self(vec![Step::Send(bytes.into())])
    }

    /// A whole response.
    pub(crate) fn status(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        Self::raw(format!("{head}\r\n{body}"))
    }

    /// The head of a stream of events that ends with the connection.
    pub(crate) fn stream() -> Self {
        Self::raw("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    }

    pub(crate) fn then(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }

    pub(crate) fn send(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.then(Step::Send(bytes.into()))
    }

    /// An event with this data.
    pub(crate) fn event(self, data: &Value) -> Self {
        self.send(format!("data: {data}\n\n"))
    }

    pub(crate) fn delta(self, delta: &Value) -> Self {
        self.event(&json!({"id": "r1", "choices": [{"index": 0, "delta": delta}]}))
    }

    /// The end of a good answer.
    pub(crate) fn end(self, reason: &str) -> Self {
        self.event(&json!({"id": "r1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
            .event(&json!({"id": "r1", "choices": [],
                "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}}))
            .send("data: [DONE]\n\n")
    }

    /// An answer of text.
    pub(crate) fn text(text: &str) -> Self {
        Self::stream().delta(&json!({"role": "assistant", "content": ""})).delta(&json!({"content": text})).end("stop")
    }

    /// An answer of calls: name and arguments as the model writes them. Ids are `c0`, `c1`, ….
    pub(crate) fn calls(calls: &[(&str, &str)]) -> Self {
        Self::stream().calls_delta(calls).end("tool_calls")
    }

    pub(crate) fn calls_delta(self, calls: &[(&str, &str)]) -> Self {
        let calls: Vec<Value> = calls
            .iter()
            .enumerate()
            .map(|(index, (name, arguments))| {
                json!({"index": index, "id": format!("c{index}"), "type": "function",
                    "function": {"name": name, "arguments": arguments}})
            })
            .collect();
        self.delta(&json!({"tool_calls": calls}))
    }
}

/// What says how a request is answered, by its number.
type Answering = Arc<dyn Fn(usize, &Request) -> Reply + Send + Sync>;

/// The server.
pub(crate) struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// One that gives these replies, one after the other. Requests beyond the last get a 500.
    pub(crate) fn start(replies: Vec<Reply>) -> Self {
        let replies: Mutex<Vec<Option<Reply>>> = Mutex::new(replies.into_iter().map(Some).collect());
        Self::answering(move |number, _| {
            let reply = replies.lock().unwrap().get_mut(number).and_then(Option::take);
            reply.unwrap_or_else(|| Reply::status(500, &[], "no reply left"))
        })
    }

    /// One that answers each request by what it is.
    pub(crate) fn answering(answer: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let kept = Arc::clone(&requests);
        let answer: Answering = Arc::new(answer);
        // Ends with the test process; an idle listener costs nothing.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                std::thread::spawn(move || {
                    stream.set_nodelay(true).unwrap();
                    stream.set_read_timeout(Some(PATIENCE)).unwrap();
                    let Some(request) = receive(&mut stream) else { return };
                    let number = {
                        let mut requests = kept.lock().unwrap();
                        requests.push(request.clone());
                        requests.len() - 1
                    };
                    play(&mut stream, answer(number, &request));
                });
            }
        });
        Self { port, requests }
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The bodies of all requests.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.requests().iter().map(Request::json).collect()
    }
}

fn receive(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 64 << 10];
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        match stream.read(&mut buffer) {
            Ok(length @ 1..) => bytes.extend_from_slice(&buffer[..length]),
            _ => return None,
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let line = lines.next()?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect();
    let mut request = Request { line, headers, body: bytes[end + 4..].to_vec() };
    let length: usize = request.header("content-length").map_or(0, |text| text.parse().unwrap());
    while request.body.len() < length {
        match stream.read(&mut buffer) {
            Ok(read @ 1..) => request.body.extend_from_slice(&buffer[..read]),
            _ => return None,
        }
    }
    Some(request)
}

/// Nothing more is sent to a client that has gone.
fn play(stream: &mut TcpStream, reply: Reply) {
    let mut gone = false;
    for step in reply.0 {
        match step {
            Step::Send(_) if gone => {}
            Step::Send(bytes) => gone = stream.write_all(&bytes).and_then(|()| stream.flush()).is_err(),
            Step::Wait(gate) => gate.wait(),
            Step::UntilClosed(gate) => {
                let deadline = Instant::now() + PATIENCE;
                let mut buffer = [0; 1024];
                while Instant::now() < deadline && matches!(stream.read(&mut buffer), Ok(1..)) {}
                gate.open();
            }
        }
    }
}
