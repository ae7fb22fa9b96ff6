//! What the program's end says to scripts. The list is part of `--help`.

use std::{process::ExitCode, sync::OnceLock};

use atoll_engine::AuditLog;

/// The model, a tool or a file failed.
pub(crate) const FAILED: u8 = 1;
/// The command line can not be understood.
pub(crate) const USAGE: ExitStatus = ExitStatus(2);
/// Something was not allowed.
pub(crate) const DENIED: u8 = 3;

/// The audit log, to be closed at the end.
static LOG: OnceLock<AuditLog> = OnceLock::new();

/// Sees to it that a log is written to its end. Gives the one that is in use, which is the first.
pub(crate) fn keep(log: AuditLog) -> AuditLog {
    LOG.get_or_init(|| log).clone()
}

/// Writes down what is still waiting. To be called before the program ends, however it does.
pub(crate) fn close_log() {
    if let Some(log) = LOG.get() {
        log.close();
    }
}

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
    if error.is::<atoll_agent::extensions::UnknownFlag>() {
        return USAGE;
    }
    match error.downcast_ref::<atoll_table::Error>() {
        Some(atoll_table::Error::Denied { .. }) => ExitStatus(DENIED),
        _ => ExitStatus(FAILED),
    }
}
