//! The configuration of servers: `mcp.json`, the user's and that of a trusted project.
//!
//! Nothing that stands in such a file is left out without a word: what is wrong is a problem that names the file, the
//! server and the way out, and takes away that server and no other. Values are not looked up here; see [`crate::template`].

mod address;
mod document;
pub mod edit;
mod entry;
mod import;
mod oauth;
mod overlay;
mod problem;
mod spelling;

pub use address::Address;
pub use document::parse;
pub use entry::{Authentication, Entry, Greeting, Http, Stdio, Transport};
pub use import::{Imported, Kind};
pub use oauth::{OAuth, Registration};
pub use overlay::{Configuration, Server};
pub use problem::{Problem, Severity};

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The user's.
    User,
    /// A project's, which the user trusts.
    Project,
}

/// A file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    /// Whose it is.
    pub place: Place,
    /// Where it is, as it is shown to people.
    pub path: &'a str,
    /// What is in it.
    pub text: &'a str,
}

#[cfg(test)]
mod tests;
