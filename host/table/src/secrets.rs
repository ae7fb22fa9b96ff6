//! Where the user's secrets are.

use crate::{Error, model::Secret};

/// The user's secrets. Whoever asks has made sure that it may. Everything may block.
pub trait SecretStore: Send + Sync {
    /// The value of a secret.
    ///
    /// # Errors
    /// `not-found` if there is no such secret; `unavailable` or `failed` if its value can not be had.
    fn get(&self, name: &str) -> Result<Secret, Error>;

    /// The names of those that have a value. What a value is that has to be worked out is not looked at.
    ///
    /// # Errors
    /// `failed` if they can not be known.
    fn names(&self) -> Result<Vec<String>, Error>;

    /// Keeps a value, in place of the one there is. Durable when it returns.
    ///
    /// # Errors
    /// `invalid-arguments` if it can not be kept as it is, `failed` if it can not be written.
    fn save(&self, name: &str, value: &Secret) -> Result<(), Error>;
}
