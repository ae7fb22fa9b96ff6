//! Making and reading the contract's errors.

use crate::types::Error;

impl Error {
    /// A failure that none of the other cases describes; `text` is a sentence a person can act on.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }

    /// There is no such thing; `text` names it.
    pub fn not_found(text: impl Into<String>) -> Self {
        Self::NotFound(text.into())
    }

    /// The arguments do not fit; `text` says which and how.
    pub fn invalid_arguments(text: impl Into<String>) -> Self {
        Self::InvalidArguments(text.into())
    }

    /// It took longer than the caller allowed.
    pub fn timeout(text: impl Into<String>) -> Self {
        Self::Timeout(text.into())
    }

    /// It can not be had now; trying later may work.
    pub fn unavailable(text: impl Into<String>) -> Self {
        Self::Unavailable(text.into())
    }

    /// The stable code of the case, the same in every interface and output of the host.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Denied(_) => "denied",
            Self::NotFound(_) => "not-found",
            Self::Ambiguous(_) => "ambiguous",
            Self::InvalidArguments(_) => "invalid-arguments",
            Self::Limit(_) => "limit",
            Self::Timeout(_) => "timeout",
            Self::Cancelled(_) => "cancelled",
            Self::Unavailable(_) => "unavailable",
            Self::Stale(_) => "stale",
            Self::UnsupportedContract(_) => "unsupported-contract",
            Self::Failed(_) => "failed",
        }
    }

    /// The error as a sentence for the model. Leaves out the hint of a denial, which is for people.
    pub fn message(&self) -> String {
        match self {
            Self::Denied(denial) => {
                format!("This tool is not allowed to use {} on {}.", denial.capability, denial.target)
            }
            Self::Ambiguous(ambiguity) => {
                format!("{} could be any of: {}", ambiguity.name, ambiguity.candidates.join(", "))
            }
            Self::Limit(hit) => format!("The limit {} ({}) was reached.", hit.name, hit.value),
            Self::UnsupportedContract(mismatch) if mismatch.served.is_empty() => {
                format!("{} is not supported here.", mismatch.wanted)
            }
            Self::UnsupportedContract(mismatch) => {
                format!("{} is not supported here, only {}.", mismatch.wanted, mismatch.served)
            }
            Self::NotFound(text)
            | Self::InvalidArguments(text)
            | Self::Timeout(text)
            | Self::Cancelled(text)
            | Self::Unavailable(text)
            | Self::Stale(text)
            | Self::Failed(text) => text.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Denial, LimitHit};

    #[test]
    fn codes_are_those_of_the_contract() {
        assert_eq!(Error::not_found("x").code(), "not-found");
        assert_eq!(Error::invalid_arguments("x").code(), "invalid-arguments");
        assert_eq!(Error::Cancelled("x".into()).code(), "cancelled");
    }

    #[test]
    fn message_of_a_denial_keeps_the_hint_from_the_model() {
        let error = Error::Denied(Denial {
            capability: "files".into(),
            target: "/etc/passwd".into(),
            hint: "atoll plugin grant …".into(),
        });
        assert_eq!(error.message(), "This tool is not allowed to use files on /etc/passwd.");
    }

    #[test]
    fn message_of_a_limit_names_it() {
        let error = Error::Limit(LimitHit { name: "memory".into(), value: 7 });
        assert_eq!(error.message(), "The limit memory (7) was reached.");
    }
}
