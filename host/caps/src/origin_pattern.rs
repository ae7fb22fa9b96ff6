//! Origins of the `http` capability.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::origin::{Origin, default_port};
use crate::pattern_error::PatternError;
use crate::text::serialize_as_text;

/// The schemes of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SchemePattern {
    /// `http`.
    Http,
    /// `https`.
    Https,
    /// `*`: both.
    Any,
}

/// The hosts of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostPattern {
    /// `*`: every host, addresses too.
    Any,
    /// A name.
    Name(String),
    /// `*.suffix`: every name with one or more labels before the suffix, never the suffix itself.
    Below(String),
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 address.
    V6(Ipv6Addr),
}

/// The ports of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PortPattern {
    /// The scheme's own port.
    Default,
    /// This port.
    Number(u16),
    /// `*`: every port.
    Any,
}

/// The origins that requests may go to: `scheme://host[:port]`, or `$models` for the origins of the configured
/// models.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OriginPattern {
    /// `$models`.
    Models,
    /// Origins by their parts.
    Parts {
        /// The schemes.
        scheme: SchemePattern,
        /// The hosts.
        host: HostPattern,
        /// The ports.
        port: PortPattern,
    },
}

impl OriginPattern {
    /// Reads a pattern. The case of letters does not matter.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if text == "$models" {
            return Ok(Self::Models);
        }
        let Some((scheme_text, rest)) = text.split_once("://") else {
            return Err(PatternError::at(
                text,
                0,
                "an origin is `scheme://host[:port]`, such as `https://example.com`",
            ));
        };
        let scheme = match scheme_text.to_ascii_lowercase().as_str() {
            "http" => SchemePattern::Http,
            "https" => SchemePattern::Https,
            "*" => SchemePattern::Any,
            _ => {
                return Err(PatternError::at(text, 0, "the scheme is `http`, `https` or `*`"));
            }
        };
        let start = scheme_text.len() + 3;
        for (offset, c) in rest.char_indices() {
            let reason = match c {
                '@' => "an origin has no user information",
                '/' | '\\' => "an origin ends after host and port, without a path or a slash",
                '?' => "an origin has no query",
                '#' => "an origin has no fragment",
                '%' => "escapes are not allowed; write the host itself",
                c if c.is_whitespace() || c.is_control() => "an origin has no spaces",
                c if !c.is_ascii() => "write the host in its ASCII form (`xn--…`)",
                _ => continue,
            };
            return Err(PatternError::at(text, start + offset, reason));
        }
        let host_end = if rest.starts_with('[') {
            rest.find(']').map(|at| at + 1).ok_or_else(|| PatternError::at(text, start, "`[` without `]`"))?
        } else {
            rest.find(':').unwrap_or(rest.len())
        };
        let (host_text, after) = rest.split_at(host_end);
        let host = parse_host(text, start, host_text)?;
        let port = match after.strip_prefix(':') {
            Some(digits) => parse_port(text, start + host_end + 1, digits)?,
            None if after.is_empty() => PortPattern::Default,
            None => {
                return Err(PatternError::at(text, start + host_end, "only `:` and a port may follow `]`"));
            }
        };
        let port = match (scheme, port) {
            (SchemePattern::Http, PortPattern::Number(80)) | (SchemePattern::Https, PortPattern::Number(443)) => {
                PortPattern::Default
            }
            (_, port) => port,
        };
        Ok(Self::Parts { scheme, host, port })
    }

    /// Whether an origin is one of these. Of the scheme, host and port of a parsed URL: host in lower case, IPv6
    /// without brackets. `$models` matches nothing here; see [`OriginPattern::matches_with`].
    pub fn matches(&self, scheme: &str, host: &str, port: u16) -> bool {
        let Self::Parts { scheme: schemes, host: hosts, port: ports } = self else {
            return false;
        };
        let Some(own_port) = default_port(scheme) else {
            return false;
        };
        let scheme_fits = match schemes {
            SchemePattern::Http => scheme == "http",
            SchemePattern::Https => scheme == "https",
            SchemePattern::Any => true,
        };
        let port_fits = match ports {
            PortPattern::Default => port == own_port,
            PortPattern::Number(number) => port == *number,
            PortPattern::Any => true,
        };
        scheme_fits && port_fits && hosts.matches(host)
    }

    /// The same, with `$models` standing for these origins.
    pub fn matches_with(&self, origin: &Origin, models: &[Origin]) -> bool {
        match self {
            Self::Models => models.contains(origin),
            Self::Parts { .. } => self.matches(&origin.scheme, &origin.host, origin.port),
        }
    }

    /// Whether the two could have an origin in common.
    pub(crate) fn may_overlap(&self, other: &Self) -> bool {
        let (Self::Parts { scheme, host, port }, Self::Parts { scheme: scheme2, host: host2, port: port2 }) =
            (self, other)
        else {
            return true;
        };
        ["http", "https"].into_iter().any(|name| {
            let own = default_port(name).unwrap_or_default();
            let ports = |port: &PortPattern| match port {
                PortPattern::Default => Some(own),
                PortPattern::Number(number) => Some(*number),
                PortPattern::Any => None,
            };
            let has = |scheme: SchemePattern| match scheme {
                SchemePattern::Http => name == "http",
                SchemePattern::Https => name == "https",
                SchemePattern::Any => true,
            };
            let ports_meet = match (ports(port), ports(port2)) {
                (Some(a), Some(b)) => a == b,
                _ => true,
            };
            has(*scheme) && has(*scheme2) && ports_meet
        }) && host.may_overlap(host2)
    }
}

impl HostPattern {
    fn matches(&self, host: &str) -> bool {
        match self {
            Self::Any => !host.is_empty(),
            Self::Name(name) => name == host,
            Self::Below(suffix) => {
                host.strip_suffix(suffix.as_str()).and_then(|front| front.strip_suffix('.')).is_some_and(|front| {
                    front.split('.').all(|label| !label.is_empty() && label.bytes().all(is_label_byte))
                })
            }
            Self::V4(address) => host.parse() == Ok(*address),
            Self::V6(address) => host.parse() == Ok(*address),
        }
    }

    fn may_overlap(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) | (_, Self::Any) => true,
            (Self::Below(a), Self::Below(b)) => {
                a == b || Self::Below(a.clone()).matches(b) || Self::Below(b.clone()).matches(a)
            }
            (below @ Self::Below(_), Self::Name(name)) | (Self::Name(name), below @ Self::Below(_)) => {
                below.matches(name)
            }
            (a, b) => a == b,
        }
    }
}

fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'
}

fn parse_port(text: &str, start: usize, digits: &str) -> Result<PortPattern, PatternError> {
    if digits == "*" {
        return Ok(PortPattern::Any);
    }
    let at = |offset| PatternError::at(text, start + offset, "a port is a number from 1 to 65535, or `*`");
    if let Some(offset) = digits.find(|c: char| !c.is_ascii_digit()) {
        return Err(at(offset));
    }
    if digits.is_empty() || digits.starts_with('0') {
        return Err(at(0));
    }
    digits.parse().map(PortPattern::Number).map_err(|_| at(0))
}

fn parse_host(text: &str, start: usize, host: &str) -> Result<HostPattern, PatternError> {
    let at = |offset: usize, reason: &str| PatternError::at(text, start + offset, reason);
    if let Some(inner) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return inner.parse().map(HostPattern::V6).map_err(|_| at(1, "this is not an IPv6 address"));
    }
    if host == "*" {
        return Ok(HostPattern::Any);
    }
    let host = host.to_ascii_lowercase();
    let (name, skipped, below) = match host.strip_prefix("*.") {
        Some(suffix) => (suffix, 2, true),
        None => (host.as_str(), 0, false),
    };
    if name.is_empty() {
        return Err(at(skipped, "the host is missing"));
    }
    if host.len() > 253 {
        return Err(at(253, "a host has at most 253 characters"));
    }
    let mut offset = skipped;
    for label in name.split('.') {
        if label.is_empty() {
            let last = offset == host.len();
            let reason = if last { "a host does not end in a dot" } else { "a label of the host is empty" };
            return Err(at(if last { offset - 1 } else { offset }, reason));
        }
        if let Some(bad) = label.bytes().position(|byte| !is_label_byte(byte)) {
            let star = label.as_bytes().get(bad) == Some(&b'*');
            let reason = if star {
                "`*` stands for a whole host or, as `*.`, for the labels in front of a suffix"
            } else {
                "a host has letters, digits, `-`, `_` and dots only"
            };
            return Err(at(offset + bad, reason));
        }
        if label.len() > 63 {
            return Err(at(offset + 63, "a label of a host has at most 63 characters"));
        }
        if label.starts_with('-') || label.ends_with('-') {
            let bad = if label.starts_with('-') { 0 } else { label.len() - 1 };
            return Err(at(offset + bad, "a label does not start or end with `-`"));
        }
        offset += label.len() + 1;
    }
    // URL parsers read a host whose last label is a number as an IPv4 address, in any of its old spellings.
    let last = name.rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().all(|byte| byte.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if !numeric {
        let name = name.to_owned();
        return Ok(if below { HostPattern::Below(name) } else { HostPattern::Name(name) });
    }
    if below {
        return Err(at(0, "`*.` goes before a name, not before an address"));
    }
    name.parse().map(HostPattern::V4).map_err(|_| {
        let mut offset = 0;
        for part in name.split('.') {
            if part.parse::<u8>().map(|value| value.to_string()).as_deref() != Ok(part) {
                break;
            }
            offset += part.len() + 1;
        }
        let offset = if offset > name.len() { 0 } else { offset };
        at(offset, "write an IPv4 address as four decimal numbers from 0 to 255, without leading zeros")
    })
}

impl fmt::Display for OriginPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Parts { scheme, host, port } = self else {
            return f.write_str("$models");
        };
        f.write_str(match scheme {
            SchemePattern::Http => "http://",
            SchemePattern::Https => "https://",
            SchemePattern::Any => "*://",
        })?;
        match host {
            HostPattern::Any => f.write_str("*")?,
            HostPattern::Name(name) => f.write_str(name)?,
            HostPattern::Below(suffix) => write!(f, "*.{suffix}")?,
            HostPattern::V4(address) => write!(f, "{address}")?,
            HostPattern::V6(address) => write!(f, "[{address}]")?,
        }
        match port {
            PortPattern::Default => Ok(()),
            PortPattern::Number(number) => write!(f, ":{number}"),
            PortPattern::Any => f.write_str(":*"),
        }
    }
}

impl FromStr for OriginPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

serialize_as_text!(OriginPattern);

#[cfg(test)]
#[path = "origin_pattern_tests.rs"]
mod tests;
