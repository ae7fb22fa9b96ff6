//! A model server on the loopback address that notes when it is first asked.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::Instant,
};

use anyhow::Context as _;

const ANSWER: &str = concat!(
    "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"done\"}}]}\n\n",
    "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: [DONE]\n\n"
);

/// The server. It answers every request with the same short text.
pub(crate) struct ModelServer {
    pub(crate) port: u16,
    requests: mpsc::Receiver<Instant>,
}

impl ModelServer {
    pub(crate) fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port on the loopback address")?;
        let port = listener.local_addr()?.port();
        let (sender, requests) = mpsc::channel();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let sender = sender.clone();
                std::thread::spawn(move || answer(connection, &sender));
            }
        });
        Ok(Self { port, requests })
    }

    /// When the first request since the last call arrived.
    pub(crate) fn first_request(&self) -> Option<Instant> {
        let first = self.requests.try_recv().ok();
        while self.requests.try_recv().is_ok() {}
        first
    }
}

fn answer(mut connection: TcpStream, sender: &mpsc::Sender<Instant>) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    loop {
        let mut length = 0;
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        sender.send(Instant::now()).ok()?;
        loop {
            line.clear();
            reader.read_line(&mut line).ok()?;
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line.trim().is_empty() {
                break;
            }
        }
        std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink()).ok()?;
        let size = ANSWER.len();
        write!(
            connection,
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {size}\r\n\r\n{ANSWER}"
        )
        .ok()?;
    }
}
