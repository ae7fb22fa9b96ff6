//! The person at the terminal: one question at a time, whoever asks, and only what is typed after a question answers it.
//!
//! What is shown is escaped by whoever writes it; [`cut`] does that.

use std::{
    fs::File,
    io::{self, IsTerminal as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
};

use atoll_caps::printable;
use rustix::termios::{QueueSelector, tcflush};
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    sync::{Mutex, MutexGuard},
};

use crate::{
    signals::{OpenQuestion, Stop},
    terminal,
};

/// How much of a text of a plugin's is shown, in characters. More would push the question off the screen.
const SHOWN: usize = 2_000;
/// The longest answer that is read, in bytes.
const LONGEST: usize = 1_024;

/// The person at the terminal.
pub(crate) struct Person {
    stop: Stop,
    turn: Mutex<()>,
}

impl Person {
    /// There is a person if both standard input and standard error are the terminal this program runs in.
    pub(crate) fn find(stop: &Stop) -> Option<Self> {
        let is_there = io::stdin().is_terminal() && io::stderr().is_terminal() && terminal_file().is_ok();
        is_there.then(|| Self { stop: stop.clone(), turn: Mutex::new(()) })
    }

    /// Waits until nobody else asks, and begins to. Dropped: the question is taken back.
    pub(crate) async fn begin(&self) -> io::Result<Exchange<'_>> {
        let turn = self.turn.lock().await;
        // A terminal is read like a pipe: what has been typed, and no more.
        let file = pipe::Receiver::from_file_unchecked(terminal_file()?)?;
        let open = self.stop.open_question();
        // What was typed before cannot have been meant for this question.
        tcflush(&file, QueueSelector::IFlush)?;
        Ok(Exchange { file, open, _turn: turn })
    }

    /// Whether the run is being stopped: nobody is to be asked any more.
    pub(crate) fn is_leaving(&self) -> bool {
        self.stop.token.is_cancelled()
    }
}

/// Questions and answers, until it is dropped.
pub(crate) struct Exchange<'a> {
    file: pipe::Receiver,
    open: OpenQuestion<'a>,
    _turn: MutexGuard<'a, ()>,
}

impl Exchange<'_> {
    /// Shows a text and reads a line. None: Ctrl-C.
    pub(crate) async fn ask(&mut self, text: &str) -> io::Result<Option<String>> {
        io::stderr().lock().write_all(text.as_bytes())?;
        tokio::select! {
            line = line(&mut self.file) => line.map(Some),
            () = self.open.interrupted() => {
                terminal::plain("");
                Ok(None)
            }
        }
    }
}

/// A text that a plugin or a model chose, for a terminal: in one line, and not too long.
pub(crate) fn cut(text: &str) -> String {
    let text = printable(text);
    let count = text.chars().count();
    if count <= SHOWN {
        return text;
    }
    let start: String = text.chars().take(SHOWN).collect();
    format!("{start}… ({} more characters are not shown)", count - SHOWN)
}

/// The terminal this program runs in, opened anew so that waiting for it changes nothing for others.
fn terminal_file() -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open("/dev/tty")
}

/// The next line, without its break. At the end of input: an empty one.
async fn line(file: &mut pipe::Receiver) -> io::Result<String> {
    let mut bytes = Vec::new();
    loop {
        // Byte by byte: a terminal gives a line at a time, and where less comes than there is room for, more is only
        // waited for once something new has been typed.
        let mut buffer = [0; 1];
        let read = file.read(&mut buffer).await?;
        let piece = buffer.get(..read).unwrap_or_default();
        let end = piece.iter().position(|byte| *byte == b'\n');
        bytes.extend_from_slice(&piece[..end.unwrap_or(piece.len())]);
        if end.is_some() || read == 0 || bytes.len() > LONGEST {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}
