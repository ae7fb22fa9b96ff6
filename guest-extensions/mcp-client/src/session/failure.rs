//! Why something was not had of a server.

use std::fmt;

use rmcp::{
    model::ErrorData,
    service::{ClientInitializeError, ServiceError},
};

use crate::{
    elicitation::{Page, pages},
    http::{Way, on_the_way},
    text::{one_line, shown},
};

/// Why something was not had of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The connection ended.
    Closed,
    /// It took longer than it may.
    Timeout,
    /// Nobody wants it any more.
    Cancelled,
    /// The server says no.
    Refused {
        /// The code, as in the protocol.
        code: i32,
        /// What it says.
        message: String,
    },
    /// The server says no until the person has opened these pages.
    NeedsPages(Vec<Page>),
    /// It did not get there, or its answer did not get here.
    OnTheWay {
        /// What came of it.
        way: Way,
        /// Why.
        why: String,
    },
    /// The server does what the protocol does not allow.
    Strange(String),
}

/// The code of a server that wants a page to be opened first.
const NEEDS_PAGES: i32 = -32042;

impl Failure {
    pub(super) fn of_opening(error: ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::JsonRpcError(error) => Self::refused(&error),
            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => Self::Closed,
            ClientInitializeError::Cancelled => Self::Cancelled,
            other => Self::Strange(format!("its answer to initialize is none: {}", shown(&other.to_string()))),
        }
    }

    pub(super) fn of_request(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => Self::refused(&error),
            ServiceError::TransportSend(_) | ServiceError::TransportClosed => Self::Closed,
            ServiceError::Cancelled { .. } => Self::Cancelled,
            ServiceError::Timeout { .. } => Self::Timeout,
            other => Self::Strange(shown(&other.to_string())),
        }
    }

    fn refused(error: &ErrorData) -> Self {
        let (code, message) = (error.code.0, one_line(&error.message));
        let pages = error.data.as_ref().filter(|_| code == NEEDS_PAGES).map(pages).unwrap_or_default();
        if !pages.is_empty() {
            return Self::NeedsPages(pages);
        }
        match on_the_way(code, error.data.as_ref()) {
            Some(way) => Self::OnTheWay { way, why: message },
            None => Self::Refused { code, message },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the connection ended"),
            Self::Timeout => f.write_str("it did not answer in time"),
            Self::Cancelled => f.write_str("it is not wanted any more"),
            Self::Refused { code, message } => write!(f, "it says: {message} ({code})"),
            Self::NeedsPages(pages) => {
                let pages: Vec<&str> = pages.iter().map(|page| page.url.as_str()).collect();
                write!(f, "it wants to be visited first at {}", pages.join(" and "))
            }
            Self::OnTheWay { why, .. } | Self::Strange(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Failure {}
