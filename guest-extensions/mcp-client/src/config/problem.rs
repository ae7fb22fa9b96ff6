//! What is wrong in a file, or worth knowing.

use std::fmt;

use crate::text::one_line;
pub(super) use crate::text::shown;

/// Whether something is left out for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The server is there all the same.
    Note,
    /// The server, or what the file says otherwise, is left out.
    Error,
}

/// What is wrong in a file, or worth knowing: one line for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file; empty where the text names it.
    pub path: String,
    /// The server, if it is about one.
    pub server: Option<String>,
    /// What comes of it.
    pub severity: Severity,
    /// What is wrong, and what to do about it.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        if let Some(server) = &self.server {
            write!(f, "server {}: ", shown(server))?;
        }
        f.write_str(&self.text)
    }
}

/// What is found in an entry.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Worth knowing.
    pub(super) notes: Vec<String>,
    /// Why it can not be used.
    pub(super) errors: Vec<String>,
}

impl Findings {
    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(one_line(&text.into()));
    }

    pub(super) fn error(&mut self, text: impl Into<String>) {
        self.errors.push(one_line(&text.into()));
    }

    /// A value, or that it is an error, said of a field.
    pub(super) fn take<T>(&mut self, field: &str, read: Result<T, String>) -> Option<T> {
        read.map_err(|text| self.error(format!("{}: {text}", shown(field)))).ok()
    }

    /// As problems of a server in a file.
    pub(super) fn problems(self, path: &str, server: &str) -> impl Iterator<Item = Problem> {
        let of = |severity| {
            let (path, server) = (path.to_owned(), server.to_owned());
            move |text| Problem { path: path.clone(), server: Some(server.clone()), severity, text }
        };
        let (error, note) = (of(Severity::Error), of(Severity::Note));
        self.errors.into_iter().map(error).chain(self.notes.into_iter().map(note))
    }
}
