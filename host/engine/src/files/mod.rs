//! The one way to files. Everything a plugin reads, writes or lists goes through [`Roots`], which opens each
//! path beneath a granted directory, so that no `..`, link or race leads out of it.
//!
//! Nothing here may open a path that did not come through [`Roots::locate`].

mod access;
mod at_hand;
mod ignore_rules;
mod io_error;
mod locks;
mod lossy_names;
mod open_files;
mod private;
mod roots;
mod spelling;
mod walk;

pub(crate) use access::{Facts, FileKind, ListedEntry, OpenFile, WriteMode};
pub(crate) use locks::{MutationGuard, MutationLocks};
pub(crate) use open_files::{OpenFiles, Walks};
pub(crate) use roots::Roots;
pub(crate) use walk::{FileWalk, FoundContent, FoundFile, WalkPlan};
