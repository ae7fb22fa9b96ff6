//! The one vocabulary of errors.

use std::fmt;
use std::str::FromStr;

use crate::text::serialize_as_text;

/// The stable code of an error: the same word in the WIT variant, in JSON output and in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ErrorCode {
    /// A capability that was asked for and not granted.
    Denied,
    /// There is no such thing.
    NotFound,
    /// More than one thing answers to that name.
    Ambiguous,
    /// The arguments do not fit.
    InvalidArguments,
    /// A limit ended it.
    Limit,
    /// It took longer than the caller allowed.
    Timeout,
    /// The user or the caller stopped it.
    Cancelled,
    /// It can not be had now; trying later may work.
    Unavailable,
    /// A handle or version that was valid once and is no more.
    Stale,
    /// The other side speaks another version of the contract.
    UnsupportedContract,
    /// Anything else.
    Failed,
}

impl ErrorCode {
    /// Every code.
    pub const ALL: [Self; 11] = [
        Self::Denied,
        Self::NotFound,
        Self::Ambiguous,
        Self::InvalidArguments,
        Self::Limit,
        Self::Timeout,
        Self::Cancelled,
        Self::Unavailable,
        Self::Stale,
        Self::UnsupportedContract,
        Self::Failed,
    ];

    /// The code's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::NotFound => "not-found",
            Self::Ambiguous => "ambiguous",
            Self::InvalidArguments => "invalid-arguments",
            Self::Limit => "limit",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Unavailable => "unavailable",
            Self::Stale => "stale",
            Self::UnsupportedContract => "unsupported-contract",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no error code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an error code")]
pub struct UnknownErrorCode(pub String);

impl FromStr for ErrorCode {
    type Err = UnknownErrorCode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|code| code.as_str() == text).ok_or_else(|| UnknownErrorCode(text.to_owned()))
    }
}

serialize_as_text!(ErrorCode);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        for code in ErrorCode::ALL {
            assert_eq!(code.as_str().parse(), Ok(code));
        }
        assert!("oops".parse::<ErrorCode>().is_err());
    }
}
