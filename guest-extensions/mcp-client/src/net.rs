//! What has to be there to ask something over HTTP: somebody who sends requests and knows what time it is. In a component that
//! is the host, by its imports; in a test it is a script.

use std::{fmt, time::Duration};

use futures::future::LocalBoxFuture;

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The method, in upper case.
    pub method: &'static str,
    /// Where it goes.
    pub url: String,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// Its body, if it has one.
    pub body: Option<Vec<u8>>,
    /// How long the head of the answer may take; for ever without it.
    pub timeout: Option<Duration>,
    /// How many redirects are followed.
    pub redirects: u32,
}

impl Request {
    /// One without a body, for which nothing is followed.
    pub fn new(method: &'static str, url: &str) -> Self {
        Self { method, url: url.to_owned(), ..Self::default() }
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a body of this type.
    #[must_use]
    pub fn body(mut self, content_type: &str, body: Vec<u8>) -> Self {
        self.body = Some(body);
        self.header("content-type", content_type)
    }

    /// Given up after this time.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

/// The head of an answer, and what brings its body.
pub struct Response {
    /// The status.
    pub status: u16,
    /// Its headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body. Dropped, the connection is closed.
    pub body: Box<dyn Body>,
}

impl Response {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether its body is of this type, whatever is said of it beside.
    pub fn is(&self, content_type: &str) -> bool {
        let said = self.header("content-type").unwrap_or_default();
        said.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(content_type)
    }

    /// The body, if it is no longer than so many bytes.
    ///
    /// # Errors
    /// Why it can not be had.
    pub async fn whole(&mut self, max: usize) -> Result<Vec<u8>, String> {
        let mut whole = Vec::new();
        while let Some(piece) = self.body.next().await {
            let piece = piece?;
            if whole.len() + piece.len() > max {
                return Err(format!("its answer is longer than {} KiB", max >> 10));
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    /// The first bytes of the body, as many as may matter for a message.
    pub async fn start(&mut self, max: usize) -> Vec<u8> {
        let mut start = Vec::new();
        while start.len() < max {
            let Some(Ok(piece)) = self.body.next().await else { break };
            start.extend_from_slice(&piece);
        }
        start.truncate(max);
        start
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response").field("status", &self.status).finish_non_exhaustive()
    }
}

/// The body of an answer.
pub trait Body {
    /// Its next bytes; none once it is whole, or why it is not.
    fn next(&mut self) -> LocalBoxFuture<'_, Option<Result<Vec<u8>, String>>>;
}

/// Why there is no answer at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// It may be there in a moment.
    pub is_passing: bool,
    /// Something of the request may have got there.
    pub was_sent: bool,
    /// Why, for a person.
    pub why: String,
}

/// Who sends requests, and knows what time it is.
pub trait Net {
    /// Sends a request, and waits for the head of the answer. Dropped, it is given up.
    fn fetch(&self, request: Request) -> LocalBoxFuture<'_, Result<Response, Unreachable>>;

    /// Returns after this time.
    fn sleep(&self, time: Duration) -> LocalBoxFuture<'static, ()>;
}
