//! The one vocabulary of errors: the same cases as the contract's `error` variant, with the same stable codes.

use serde::Serialize;

/// Why something did not work. `Display` is one line for a person or a model; [`Error::code`] is what programs
/// match on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A capability was not granted.
    #[error("not allowed: {capability}{}; to allow it: {hint}", on(target))]
    Denied {
        /// The capability as named in a manifest.
        capability: String,
        /// What it was to be used on.
        target: String,
        /// The command that would grant it.
        hint: String,
    },
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// Several things answer to the name.
    #[error("`{name}` is ambiguous: it could be {}", candidates.join(", "))]
    Ambiguous {
        /// The name as given.
        name: String,
        /// Names that would be unique.
        candidates: Vec<String>,
    },
    /// Arguments do not fit.
    #[error("{0}")]
    InvalidArguments(String),
    /// A limit ended it.
    #[error("stopped by the limit {name} ({value})")]
    Limit {
        /// The limit's name as in a manifest.
        name: String,
        /// The value in force.
        value: u64,
    },
    /// It took too long.
    #[error("{0}")]
    Timeout(String),
    /// The user or the caller stopped it.
    #[error("{0}")]
    Cancelled(String),
    /// It can not be had now.
    #[error("{0}")]
    Unavailable(String),
    /// Valid once, no more.
    #[error("{0}")]
    Stale(String),
    /// The other side speaks another contract.
    #[error("it needs {wanted}, which this host does not serve{}", served_note(served))]
    UnsupportedContract {
        /// What is wanted, as `package/interface@version`.
        wanted: String,
        /// What there is in its place; may be empty.
        served: String,
    },
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// Some capabilities have no target.
fn on(target: &str) -> String {
    if target.is_empty() { String::new() } else { format!(" on {target}") }
}

fn served_note(served: &str) -> String {
    if served.is_empty() { String::new() } else { format!(" (it serves {served})") }
}

impl Error {
    /// The stable code of the case, the same in the contract, in logs and in JSON output.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Denied { .. } => "denied",
            Self::NotFound(_) => "not-found",
            Self::Ambiguous { .. } => "ambiguous",
            Self::InvalidArguments(_) => "invalid-arguments",
            Self::Limit { .. } => "limit",
            Self::Timeout(_) => "timeout",
            Self::Cancelled(_) => "cancelled",
            Self::Unavailable(_) => "unavailable",
            Self::Stale(_) => "stale",
            Self::UnsupportedContract { .. } => "unsupported-contract",
            Self::Failed(_) => "failed",
        }
    }
}

impl Serialize for Error {
    /// `{"code": …, "message": …}`.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut record = serializer.serialize_struct("Error", 2)?;
        record.serialize_field("code", self.code())?;
        record.serialize_field("message", &self.to_string())?;
        record.end()
    }
}
