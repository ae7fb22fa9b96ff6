//! The configuration of servers: `mcp.json`, the user's and that of a trusted project.
//!
//! Nothing that stands in such a file is left out without a word: what is wrong is a problem that names the file, the
//! server and the way out, and takes away that server and no other. Values are not looked up here; see [`crate::template`].

mod address;
mod document;
pub mod edit;
mod entry;
mod foreign;
mod import;
mod oauth;
mod overlay;
mod problem;
mod spelling;

pub use address::Address;
pub use document::parse;
pub use entry::{Authentication, Entry, Greeting, Http, Stdio, Transport};
pub use import::{Imported, Kind, NotImported};
pub use oauth::{OAuth, Registration};
pub use overlay::{Configuration, Server};
pub use problem::{Problem, Severity};

use crate::template::Template;

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The user's.
    User,
    /// A project's, which the user trusts.
    Project,
    /// None: another extension says it. Its values stand for themselves, or it would have the user's variables and commands.
    Extension,
}

impl Place {
    /// Reads a value that may say where the real one is, if whose file it is may say so.
    fn value(self, text: &str) -> Result<Template, String> {
        match self {
            Self::User | Self::Project => Template::parse(text),
            Self::Extension => Ok(Template::literal(text)),
        }
    }
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
