//! Standard output and standard error. Either may be closed or full at any time, so nothing is printed in a way that
//! could panic: what belongs to standard output fails as an error, a note to the user is dropped.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use atoll_caps::printable;
use rustix::termios::{QueueSelector, tcflush};

/// Writes a line to standard output.
///
/// # Errors
/// If it can not be written: nobody reads it any more, or the disk is full.
pub(crate) fn line(text: impl std::fmt::Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Writes what a tool gave to standard output: to a terminal so that it can do nothing to it, to anything else as it is.
///
/// # Errors
/// As [`line`].
pub(crate) fn output(text: &str) -> io::Result<()> {
    if !io::stdout().is_terminal() {
        return line(text);
    }
    text.split('\n').try_for_each(|part| line(part.split('\t').map(printable).collect::<Vec<_>>().join("\t")))
}

/// Writes a line of JSON to standard output. At a terminal, characters that could do something to it are escaped, which
/// means the same.
///
/// # Errors
/// As [`line`].
pub(crate) fn json(value: &serde_json::Value) -> io::Result<()> {
    let text = value.to_string();
    if !io::stdout().is_terminal() {
        return line(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if printable(c.encode_utf8(&mut [0; 4])).starts_with('\\') && c != '\\' {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    line(out)
}

/// Writes to standard output without a line break.
///
/// # Errors
/// As [`line`].
pub(crate) fn piece(text: impl std::fmt::Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{text}")?;
    out.flush()
}

/// Tells the user something on standard error, in one line. What may come from elsewhere, such as a plugin's error or a
/// file's name, can do nothing to the terminal.
pub(crate) fn note(text: impl std::fmt::Display) {
    plain(format_args!("atoll: {}", printable(&text.to_string())));
}

/// Writes lines to standard error, each as [`note`] would.
pub(crate) fn lines(text: &str) {
    for line in text.lines() {
        plain(printable(line));
    }
}

/// Writes a line to standard error as it is.
pub(crate) fn plain(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether there is a person to ask: both the question and the answer go through a terminal.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks on standard error and reads a line. None at the end of the input, or if it can not be read. What was typed before
/// cannot have been meant for this question and is discarded.
pub(crate) fn ask(question: &str) -> Option<String> {
    tcflush(io::stdin(), QueueSelector::IFlush).ok()?;
    let mut error = io::stderr().lock();
    write!(error, "{question}").and_then(|()| error.flush()).ok()?;
    let mut answer = String::new();
    match io::stdin().lock().take(4096).read_line(&mut answer) {
        Ok(1..) => Some(answer.trim().to_owned()),
        _ => None,
    }
}

/// Asks a question whose answer is no unless it is a plain yes.
pub(crate) fn confirm(question: &str) -> bool {
    ask(&format!("{question} [y/N] ")).is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes"))
}

/// Whether the program should end without a word because whoever read its output has gone.
pub(crate) fn is_closed(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe))
}
