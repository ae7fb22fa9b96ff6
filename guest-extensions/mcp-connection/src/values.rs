//! Values of a configuration, filled in by the host.

use atoll_mcp_client::template::Template;
use atoll_plugin::{Error, config};

/// What a value of this file stands for. Asked for each time, so that what has changed counts.
///
/// # Errors
/// Why it can not be had.
pub async fn value(template: &Template, file: &str) -> Result<String, Error> {
    match template.known() {
        Some(value) => Ok(value),
        None => config::resolve(file.to_owned(), template.to_string()).await,
    }
}

/// The error with what it is about in front, such as `env.KEY`.
#[must_use]
pub fn about(error: Error, what: &str) -> Error {
    let said = |text: String| format!("{what}: {text}");
    match error {
        Error::NotFound(text) => Error::NotFound(said(text)),
        Error::Unavailable(text) => Error::Unavailable(said(text)),
        Error::Failed(text) => Error::Failed(said(text)),
        Error::InvalidArguments(text) => Error::InvalidArguments(said(text)),
        other => Error::Failed(said(other.message())),
    }
}
