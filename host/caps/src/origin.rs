//! Where a request goes.

use std::fmt;

use crate::text::serialize_as_text;

/// A scheme, host and port, as a URL parser gives them: host in lower case, IPv6 without brackets.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// `http` or `https`.
    pub scheme: String,
    /// The host.
    pub host: String,
    /// The port, the scheme's own written out.
    pub port: u16,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "{}://[{}]", self.scheme, self.host)?;
        } else {
            write!(f, "{}://{}", self.scheme, self.host)?;
        }
        if default_port(&self.scheme) == Some(self.port) { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

/// The port of a scheme whose URLs name none.
pub(crate) fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

serialize_as_text!(Origin);
