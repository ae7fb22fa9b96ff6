//! Addresses of servers that are reached over HTTP, as far as the configuration has to understand them. The host checks
//! them again, with the grants, for each request.

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// It is `https`.
    pub is_secure: bool,
    /// The host in lower case, without brackets.
    pub host: String,
    /// The port, if it is written.
    pub port: Option<u16>,
    /// Path, query and fragment, as written.
    pub rest: String,
}

impl Address {
    /// Reads an absolute `http` or `https` URL.
    ///
    /// # Errors
    /// What it lacks.
    pub fn parse(url: &str) -> Result<Self, String> {
        if url.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
            return Err("an address has no white space, control characters or backslashes".to_owned());
        }
        let (scheme, rest) = url.split_once("://").unwrap_or((url, ""));
        let is_secure = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            "ws" | "wss" => {
                return Err("web sockets are no transport of MCP; give the http or https address".to_owned());
            }
            _ => return Err("it has to begin with http:// or https://".to_owned()),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err("an address holds no user name and password; use \"headers\"".to_owned());
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(inner) => match inner.split_once(']') {
                Some((host, port)) => (host, port),
                None => return Err("a `[` has no `]`".to_owned()),
            },
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => None,
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => match digits.parse::<u16>() {
                Ok(port) if port > 0 => Some(port),
                _ => return Err("a port is a number from 1 to 65535".to_owned()),
            },
            _ => return Err("a port is a number from 1 to 65535".to_owned()),
        };
        if host.is_empty() {
            return Err("it names no host".to_owned());
        }
        Ok(Self { is_secure, host: host.to_ascii_lowercase(), port, rest: path.to_owned() })
    }

    /// Whether it is this machine itself.
    pub fn is_loopback(&self) -> bool {
        matches!(self.host.as_str(), "localhost" | "127.0.0.1" | "::1")
    }

    /// Whether what is sent there can be read by nobody else.
    pub fn is_private(&self) -> bool {
        self.is_secure || self.is_loopback()
    }

    /// Scheme, host and port, as they are written.
    pub fn origin(&self) -> String {
        let scheme = if self.is_secure { "https" } else { "http" };
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{scheme}://{host}{port}")
    }

    /// Whether both lead to the same server.
    pub fn is_beside(&self, other: &Self) -> bool {
        let port = |address: &Self| address.port.unwrap_or(if address.is_secure { 443 } else { 80 });
        (self.is_secure, &self.host, port(self)) == (other.is_secure, &other.host, port(other))
    }

    /// The URL that a reference stands for here, if it leads to the same server.
    pub fn join_own(&self, reference: &str) -> Option<String> {
        if reference.contains("://") {
            let other = Self::parse(reference).ok()?;
            return self.is_beside(&other).then(|| reference.to_owned());
        }
        if reference.starts_with("//") || reference.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
            return None;
        }
        let origin = self.origin();
        if reference.starts_with('/') {
            return Some(format!("{origin}{reference}"));
        }
        let path = self.path();
        if reference.starts_with('?') {
            return Some(format!("{origin}{path}{reference}"));
        }
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        Some(format!("{origin}{folder}/{reference}"))
    }

    /// The path, without query and fragment.
    pub fn path(&self) -> &str {
        self.rest.split(['?', '#']).next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_or_say_what_they_lack() {
        let read = |url: &str| {
            Address::parse(url).map(|address| (address.is_secure, address.host, address.port, address.rest))
        };
        assert_eq!(read("HTTPS://Example.com/mcp?x"), Ok((true, "example.com".into(), None, "/mcp?x".into())));
        assert_eq!(read("http://[::1]:3401"), Ok((false, "::1".into(), Some(3401), String::new())));
        for wrong in [
            "",
            "example.com/mcp",
            "file:///x",
            "ws://x",
            "http://",
            "http:///mcp",
            "http://u:p@x/",
            "http://x:0/",
            "http://x:99999/",
            "http://x:+1/",
            "http://[::1",
            "http://[::1]x",
            "http://a b/",
            "http://a\\@b/",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_reference_leads_to_the_same_server_or_nowhere() {
        let base = Address::parse("http://Host:80/a/sse?x").unwrap();
        for (reference, expected) in [
            ("/messages?s=1", Some("http://host:80/messages?s=1")),
            ("messages", Some("http://host:80/a/messages")),
            ("?s=1", Some("http://host:80/a/sse?s=1")),
            ("http://host/x", Some("http://host/x")),
            ("https://host/x", None),
            ("http://other/x", None),
            ("//other/x", None),
            ("/\\other/x", None),
            ("/a b", None),
        ] {
            assert_eq!(base.join_own(reference).as_deref(), expected, "{reference}");
        }
    }

    #[test]
    fn only_this_machine_is_loopback_however_it_is_spelled() {
        let private = |url: &str| Address::parse(url).is_ok_and(|address| address.is_private());
        for url in ["https://x", "http://localhost:1/a", "http://127.0.0.1", "http://[::1]/"] {
            assert!(private(url), "{url}");
        }
        for url in [
            "http://x",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "http://evil.example/#localhost",
        ] {
            assert!(!private(url), "{url}");
        }
    }
}
