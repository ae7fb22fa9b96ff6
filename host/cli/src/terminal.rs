//! Standard output and standard error. Either may be closed or full at any time, so nothing is printed in a way that
//! could panic: what belongs to standard output fails as an error, a note to the user is dropped.

use std::io::{self, Write as _};

/// Writes a line to standard output.
///
/// # Errors
/// If it can not be written: nobody reads it any more, or the disk is full.
pub(crate) fn line(text: impl std::fmt::Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
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

/// Tells the user something on standard error, in one line.
pub(crate) fn note(text: impl std::fmt::Display) {
    plain(format_args!("atoll: {text}"));
}

/// Writes a line to standard error as it is.
pub(crate) fn plain(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether the program should end without a word because whoever read its output has gone.
pub(crate) fn is_closed(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe))
}
