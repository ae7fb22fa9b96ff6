//! Errors of file calls as the model should read them.

use atoll_plugin::Error;

/// Whether an error says that there is no such file.
pub fn is_not_found(error: &Error) -> bool {
    matches!(error, Error::NotFound(_))
}

/// The same error, with the path in its text if it is not there yet. Cases with fields of their own stay as
/// they are.
pub fn name_path(path: &str, error: Error) -> Error {
    let named = |text: String| if text.contains(path) { text } else { format!("{path}: {text}") };
    match error {
        Error::NotFound(text) => Error::NotFound(named(text)),
        Error::Unavailable(text) => Error::Unavailable(named(text)),
        Error::Stale(text) => Error::Stale(named(text)),
        Error::Failed(text) => Error::Failed(named(text)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_named_once() {
        assert_eq!(name_path("a.txt", Error::failed("is a pipe")).message(), "a.txt: is a pipe");
        assert_eq!(name_path("a.txt", Error::not_found("no a.txt here")).message(), "no a.txt here");
        assert!(is_not_found(&name_path("a", Error::not_found(""))));
    }
}
