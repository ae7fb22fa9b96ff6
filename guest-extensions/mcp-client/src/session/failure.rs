//! Why something was not had of a server.

use std::fmt;

use rmcp::service::{ClientInitializeError, ServiceError};

use crate::{
    elicitation::{Page, pages},
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
    /// The server does what the protocol does not allow.
    Strange(String),
}

/// The code of a server that wants a page to be opened first.
const NEEDS_PAGES: i32 = -32042;

impl Failure {
    pub(super) fn of_opening(error: ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::JsonRpcError(error) => Self::refused(error.code.0, &error.message),
            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => Self::Closed,
            ClientInitializeError::Cancelled => Self::Cancelled,
            other => Self::Strange(format!("its answer to initialize is none: {}", shown(&other.to_string()))),
        }
    }

    pub(super) fn of_request(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => match pages(error.data.as_ref().unwrap_or(&serde_json::Value::Null)) {
                pages if error.code.0 == NEEDS_PAGES && !pages.is_empty() => Self::NeedsPages(pages),
                _ => Self::refused(error.code.0, &error.message),
            },
            ServiceError::TransportSend(_) | ServiceError::TransportClosed => Self::Closed,
            ServiceError::Cancelled { .. } => Self::Cancelled,
            ServiceError::Timeout { .. } => Self::Timeout,
            other => Self::Strange(shown(&other.to_string())),
        }
    }

    fn refused(code: i32, message: &str) -> Self {
        Self::Refused { code, message: one_line(message) }
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
            Self::Strange(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Failure {}
