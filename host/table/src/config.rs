//! Where files of configuration are that users write for plugins.

use std::path::PathBuf;

use crate::{Error, model::Secret};

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigPlace {
    /// The user's.
    User,
    /// The project's.
    Project,
}

/// A file as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigDocument {
    /// Whose it is.
    pub place: ConfigPlace,
    /// Where it is.
    pub path: PathBuf,
    /// What is in it; empty if it is not trusted.
    pub text: String,
    /// Changes with the text.
    pub version: String,
    /// It counts.
    pub trusted: bool,
}

/// What a string of a file stands for.
#[derive(Clone, Debug)]
pub struct ConfigValue {
    /// The value.
    pub value: String,
    /// What of it came from elsewhere and must not be seen in anything a plugin says, each with what it is called.
    pub private: Vec<(String, Secret)>,
}

/// The files. Whoever asks has made sure that it may, and that `file` is a name for it. Everything may block.
pub trait ConfigFiles: Send + Sync {
    /// Those of this name that exist, the user's first.
    ///
    /// # Errors
    /// `failed` if one can not be read.
    fn read(&self, file: &str) -> Result<Vec<ConfigDocument>, Error>;

    /// Replaces one that has this version, or makes it where none is given. Durable when it returns.
    ///
    /// # Errors
    /// `stale` if it has another version, `denied` if it is a project's that is not trusted, `invalid-arguments` if the
    /// text is too long, `failed` if it can not be written.
    fn write(
        &self,
        file: &str,
        place: ConfigPlace,
        text: &str,
        expected: Option<&str>,
    ) -> Result<ConfigDocument, Error>;

    /// What a string stands for. A command takes at most 10 s.
    ///
    /// # Errors
    /// `denied` unless the user wrote that it may be filled in, `unavailable` if it can not be had.
    fn resolve(&self, file: &str, value: &str) -> Result<ConfigValue, Error>;
}
