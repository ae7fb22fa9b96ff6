//! Listening for one request on the loopback address: where a browser is sent back to after a sign-in.
//!
//! Whatever runs on this machine, and any page in its browser, can connect. So a request counts only if it is the one that
//! was expected, as a browser sends it that was sent here; everything is bounded; and nothing is kept of the others.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use atoll_table::Error;
use futures::{StreamExt as _, stream::FuturesUnordered};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{Mutex, OwnedSemaphorePermit},
    time::timeout,
};

/// The longest page, in bytes.
pub(crate) const MAX_PAGE: usize = 64 << 10;
/// The longest path, in bytes.
const MAX_PATH: usize = 1_024;
/// The longest head of a request, in bytes.
const MAX_HEAD: usize = 16 << 10;
/// How long a request's head may take, and how long its answer.
const HEAD: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(5);
/// How long the other side has to close, once it was answered.
const CLOSING: Duration = Duration::from_millis(250);
/// How many connections are looked at beside each other. Browsers open some that they never use.
const MAX_CONNECTIONS: usize = 16;
/// How many may listen at once, of all plugins.
pub(crate) const MAX_LISTENERS: usize = 32;

/// A listener that is open until it is dropped or a request has come.
pub(crate) struct CallbackListener {
    port: u16,
    path: String,
    page: String,
    socket: Mutex<Option<TcpListener>>,
    _permit: OwnedSemaphorePermit,
}

impl CallbackListener {
    /// Listens on this port of 127.0.0.1, any free one for 0.
    ///
    /// # Errors
    /// `invalid-arguments` if the path or the page can not be, `unavailable` if the port can not be had.
    pub(crate) async fn open(
        port: u16,
        path: String,
        page: String,
        permit: OwnedSemaphorePermit,
    ) -> Result<Self, Error> {
        let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'?' && byte != b'#';
        if !path.starts_with('/') || path.len() > MAX_PATH || !path.bytes().all(is_plain) {
            let shown = path.get(..path.floor_char_boundary(100)).unwrap_or_default().escape_debug();
            return Err(Error::InvalidArguments(format!(
                "`{shown}` is no path to listen for: it begins with `/`, has no query, and {MAX_PATH} bytes at most"
            )));
        }
        if page.len() > MAX_PAGE {
            return Err(Error::InvalidArguments(format!(
                "the page may have {MAX_PAGE} bytes; this one has {}",
                page.len()
            )));
        }
        let refused = |error: io::Error| {
            let reason = match error.kind() {
                io::ErrorKind::AddrInUse => "another program listens there".to_owned(),
                _ => error.to_string(),
            };
            Error::Unavailable(format!("127.0.0.1:{port} can not be listened on: {reason}"))
        };
        let socket = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await.map_err(refused)?;
        let port = socket.local_addr().map_err(refused)?.port();
        Ok(Self { port, path, page, socket: Mutex::new(Some(socket)), _permit: permit })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Waits for the request, and answers it. Gives its path and query.
    ///
    /// # Errors
    /// `timeout`, and `stale` once one has come.
    pub(crate) async fn wait(&self, limit: Duration) -> Result<String, Error> {
        let late =
            || Error::Timeout(format!("no browser came back to port {} within {} ms", self.port, limit.as_millis()));
        timeout(limit, self.served()).await.unwrap_or_else(|_| Err(late()))
    }

    async fn served(&self) -> Result<String, Error> {
        let mut held = self.socket.lock().await;
        let gone = || Error::Stale(format!("the request to port {} has come; open another listener", self.port));
        let socket = held.as_ref().ok_or_else(gone)?;
        let mut connections = FuturesUnordered::new();
        let target = loop {
            tokio::select! {
                accepted = socket.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                    Ok((stream, _)) => connections.push(self.serve(stream)),
                    // One that was given up meanwhile; or there is no room for it, which may pass.
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                },
                Some(served) = connections.next() => if let Some(target) = served { break target },
            }
        };
        drop(connections);
        *held = None;
        Ok(target)
    }

    /// Answers one connection. Gives what was asked for, if it is what is waited for.
    async fn serve(&self, mut stream: TcpStream) -> Option<String> {
        let read = timeout(HEAD, head(&mut stream)).await.ok()?.ok()?;
        let Some(head) = read else {
            answer(&mut stream, "431 Request Header Fields Too Large", "text/plain", "").await;
            return None;
        };
        match self.expected(&head) {
            Some(target) => {
                let is_html = self.page.trim_start().starts_with('<');
                let kind = if is_html { "text/html" } else { "text/plain" };
                answer(&mut stream, "200 OK", kind, &self.page).await;
                Some(target)
            }
            None => {
                answer(&mut stream, "404 Not Found", "text/plain", "There is nothing here.\n").await;
                None
            }
        }
    }

    /// The target of a request, if it is what is waited for: its method, its path, and that it is this machine which the
    /// browser was sent to, and not a name of somebody else's that leads here.
    fn expected(&self, head: &str) -> Option<String> {
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if method != "GET" || !version.starts_with("HTTP/1.") || words.next().is_some() {
            return None;
        }
        if target.split('?').next() != Some(self.path.as_str()) || target.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return None;
        }
        let mut hosts =
            lines.filter_map(|line| line.split_once(':')).filter(|(name, _)| name.eq_ignore_ascii_case("host"));
        let (_, host) = hosts.next()?;
        let host = host.trim().to_ascii_lowercase();
        let name = host.strip_suffix(&format!(":{}", self.port)).unwrap_or(&host);
        let is_here = ["127.0.0.1", "localhost"].contains(&name) && hosts.next().is_none();
        is_here.then(|| target.to_owned())
    }
}

/// The head of a request; none if it is too long.
async fn head(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 2048];
    loop {
        let length = stream.read(&mut piece).await?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // The end may lie across two pieces.
        let looked_at = bytes.len().saturating_sub(3);
        bytes.extend_from_slice(piece.get(..length).unwrap_or_default());
        if let Some(end) = bytes.get(looked_at..).unwrap_or_default().windows(4).position(|four| four == b"\r\n\r\n") {
            bytes.truncate(looked_at + end);
            return Ok(Some(String::from_utf8(bytes).unwrap_or_default()));
        }
        if bytes.len() > MAX_HEAD {
            return Ok(None);
        }
    }
}

/// Answers and closes. That it can not be sent is nobody's loss.
async fn answer(stream: &mut TcpStream, status: &str, kind: &str, page: &str) {
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    let send = async {
        stream.write_all(text.as_bytes()).await?;
        stream.shutdown().await
    };
    let _ = timeout(ANSWER, send).await;
    // What is still unread would reset the connection before the other side has read the answer.
    let read = async {
        let mut rest = [0; 2048];
        let mut left = MAX_HEAD;
        while left > 0 {
            match stream.read(&mut rest).await {
                Ok(0) | Err(_) => break,
                Ok(length) => left = left.saturating_sub(length),
            }
        }
    };
    let _ = timeout(CLOSING, read).await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;

    async fn open(path: &str, page: &str) -> Result<CallbackListener, Error> {
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        CallbackListener::open(0, path.to_owned(), page.to_owned(), permit).await
    }

    /// What a request is answered.
    async fn ask(port: u16, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        answer
    }

    fn get(target: &str, host: &str) -> String {
        format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nCookie: a\r\n\r\n")
    }

    #[tokio::test]
    async fn only_the_expected_request_counts() {
        let listener = Arc::new(open("/back", "<p>Done.</p>").await.unwrap());
        let port = listener.port();
        let waiting = tokio::spawn({
            let listener = Arc::clone(&listener);
            async move { listener.wait(Duration::from_secs(20)).await }
        });
        // One that says nothing holds nobody up.
        let silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let here = format!("localhost:{port}");
        for request in [
            get("/", &here),
            get("/favicon.ico", &here),
            get("/back/more?code=x", &here),
            get("/backup", &here),
            get("/back?code=x", "rebound.example"),
            get("/back?code=x", &format!("127.0.0.1.example:{port}")),
            get("http://127.0.0.1/back?code=x", &here),
            "GET /back?code=x HTTP/1.1\r\n\r\n".to_owned(),
            format!("POST /back?code=x HTTP/1.1\r\nHost: {here}\r\nContent-Length: 1\r\n\r\nx"),
            format!("GET /back?code=x HTTP/1.1\r\nHost: {here}\r\nHost: other\r\n\r\n"),
            format!("GET /back?code=x HTTP/2\r\nHost: {here}\r\n\r\n"),
        ] {
            let answer = ask(port, &request).await;
            assert!(answer.starts_with("HTTP/1.1 404 ") && !answer.contains("Done."), "{request}: {answer}");
        }
        let long = format!("GET /back HTTP/1.1\r\nX: {}", "x".repeat(MAX_HEAD));
        assert!(ask(port, &long).await.starts_with("HTTP/1.1 431 "));
        assert!(!waiting.is_finished());
        let answer = ask(port, &get("/back?code=a%20b&state=c", &format!("127.0.0.1:{port}"))).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\n<p>Done.</p>"), "{answer}");
        for header in ["Content-Type: text/html; charset=utf-8", "Cache-Control: no-store", "Connection: close"] {
            assert!(answer.contains(&format!("\r\n{header}\r\n")), "{answer}");
        }
        assert_eq!(waiting.await.unwrap().unwrap(), "/back?code=a%20b&state=c");
        drop(silent);
        // It was the one.
        assert_eq!(listener.wait(Duration::from_secs(20)).await.unwrap_err().code(), "stale");
        assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
    }

    #[tokio::test]
    async fn it_can_be_waited_for_again_and_is_closed_with_its_owner() {
        let listener = open("/", "plain").await.unwrap();
        let port = listener.port();
        assert_eq!(listener.wait(Duration::from_millis(1)).await.unwrap_err().code(), "timeout");
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let taken = CallbackListener::open(port, "/".to_owned(), String::new(), permit).await.err().unwrap();
        assert_eq!(taken.code(), "unavailable");
        assert!(taken.to_string().contains("another program listens there"), "{taken}");
        let (asked, found) = tokio::join!(
            async { ask(port, &get("/?a", &format!("localhost:{port}"))).await },
            listener.wait(Duration::from_secs(20))
        );
        assert!(asked.contains("text/plain") && asked.ends_with("plain"), "{asked}");
        assert_eq!(found.unwrap(), "/?a");
        let listener = open("/", "plain").await.unwrap();
        let port = listener.port();
        drop(listener);
        assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
    }

    #[tokio::test]
    async fn what_can_not_be_listened_for_is_refused() {
        for path in ["", "back", "/a?b", "/a#b", "/a b", "/\r\n", "/ä", &format!("/{}", "x".repeat(MAX_PATH))] {
            assert_eq!(open(path, "").await.err().unwrap().code(), "invalid-arguments", "{path}");
        }
        assert_eq!(open("/", &"x".repeat(MAX_PAGE + 1)).await.err().unwrap().code(), "invalid-arguments");
    }
}
