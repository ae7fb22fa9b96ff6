//! What the program's end says to scripts. The list is part of `--help`.

use std::process::ExitCode;

/// The model, a tool or a file failed.
pub(crate) const FAILED: u8 = 1;
/// The command line can not be understood.
pub(crate) const USAGE: ExitStatus = ExitStatus(2);
/// Something was not allowed.
pub(crate) const DENIED: u8 = 3;

/// A code to exit with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExitStatus(pub(crate) u8);

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.0)
    }
}

/// The code for an error.
pub(crate) fn code_of(error: &anyhow::Error) -> ExitStatus {
    match error.downcast_ref::<atoll_table::Error>() {
        Some(atoll_table::Error::Denied { .. }) => ExitStatus(DENIED),
        _ => ExitStatus(FAILED),
    }
}
