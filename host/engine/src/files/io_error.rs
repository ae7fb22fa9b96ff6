//! What the system says about a file, in the contract's words.

use std::{io, path::Path};

use atoll_table::Error;

/// The error for a failed operation on `path`. `doing` completes "could not …".
pub(super) fn explain(doing: &str, path: &Path, error: &io::Error) -> Error {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => Error::NotFound(format!("{shown} does not exist")),
        io::ErrorKind::IsADirectory => Error::Failed(format!("{shown} is a directory")),
        io::ErrorKind::NotADirectory => Error::Failed(format!("a part of {shown} is not a directory")),
        io::ErrorKind::AlreadyExists => Error::Failed(format!("{shown} exists already")),
        io::ErrorKind::DirectoryNotEmpty => Error::Failed(format!("the directory {shown} is not empty")),
        io::ErrorKind::PermissionDenied => {
            Error::Failed(format!("the system does not let this user {doing} {shown} (permission denied)"))
        }
        io::ErrorKind::StorageFull => Error::Failed(format!("could not {doing} {shown}: the disk is full")),
        _ => Error::Failed(format!("could not {doing} {shown}: {error}")),
    }
}

/// Whether cap-std refused a path because it leads out of the directory it was opened beneath.
pub(super) fn is_escape(error: &io::Error) -> bool {
    error.raw_os_error().is_none() && error.kind() == io::ErrorKind::PermissionDenied
}
