//! What is kept of a server from one session to the next: its tools are searched and described before it is connected to.

use std::fmt::Write as _;

use atoll_mcp_client::{cache, session::ServerTool};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::settings::Proxied;

/// The version of what is kept: another one is not read.
const VERSION: u64 = 1;
/// How long it holds, in milliseconds: what a server says of itself may be shorter.
const LONGEST_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// The most that is kept of one server, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// The key that says that there was a session before this one.
pub(crate) const BEGUN: &str = "begun";

/// The key under which a server is kept.
pub(crate) fn key(server: &str) -> String {
    format!("server/{server}")
}

/// Something of a server that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) uri: String,
    pub(crate) name: String,
    pub(crate) description: String,
}

impl Resource {
    /// Reads one, as the server describes it.
    pub(crate) fn read(resource: &Value) -> Option<Self> {
        let text = |key: &str| resource[key].as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let uri = text("uri")?;
        let name = text("name").unwrap_or_else(|| uri.clone());
        let description = text("description").or_else(|| text("title")).unwrap_or_default();
        Some(Self { uri, name, description })
    }
}

/// What is known of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Kept {
    pub(crate) tools: Vec<ServerTool>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) instructions: Option<String>,
    /// How long it holds, as the server says, in milliseconds.
    pub(crate) ttl_ms: Option<u64>,
}

/// Why nothing is known of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stale {
    /// It was never there.
    Missing,
    /// It is another one now, or reached in another way.
    Changed,
    /// It was there too long ago.
    Old,
}

/// What decides which tools a server has here. When it connects and which of its tools are declared is not in it.
pub(crate) fn digest(server: &Proxied) -> String {
    let what = json!([cache::digest(&server.entry), server.choice()]);
    let mut text = String::new();
    for byte in Sha256::digest(what.to_string()) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

impl Kept {
    /// As bytes to keep, at this time, in milliseconds since 1970. None if it is too much to keep.
    pub(crate) fn to_bytes(&self, digest: &str, now_ms: u64) -> Option<Vec<u8>> {
        let tools: Vec<Value> = self.tools.iter().map(ServerTool::to_json).collect();
        let resources: Vec<Value> = (self.resources.iter())
            .map(|one| json!({"uri": one.uri, "name": one.name, "description": one.description}))
            .collect();
        let kept = json!({
            "version": VERSION, "configHash": digest, "cachedAt": now_ms, "ttlMs": self.ttl_ms,
            "instructions": self.instructions, "tools": tools, "resources": resources,
        });
        let bytes = kept.to_string().into_bytes();
        (bytes.len() <= MAX_BYTES).then_some(bytes)
    }

    /// What was kept, if it holds.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) fn read(bytes: Option<&[u8]>, digest: &str, now_ms: u64) -> Result<Self, Stale> {
        let kept: Value = bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).ok_or(Stale::Missing)?;
        if kept["version"] != VERSION {
            return Err(Stale::Missing);
        }
        if kept["configHash"] != digest {
            return Err(Stale::Changed);
        }
        let ttl_ms = kept["ttlMs"].as_u64();
        let longest = ttl_ms.unwrap_or(LONGEST_MS).min(LONGEST_MS);
        // From the future is from a clock that was wrong.
        let age = kept["cachedAt"].as_u64().and_then(|at| now_ms.checked_sub(at));
        if age.is_none_or(|age| age >= longest) {
            return Err(Stale::Old);
        }
        let all = |key: &str| kept[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let tools: Option<Vec<ServerTool>> = all("tools").iter().map(|tool| ServerTool::read(tool).ok()).collect();
        Ok(Self {
            tools: tools.ok_or(Stale::Missing)?,
            resources: all("resources").iter().filter_map(Resource::read).collect(),
            instructions: kept["instructions"].as_str().map(str::to_owned),
            ttl_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atoll_mcp_client::config::{Document, Place};
    use proptest::prelude::*;

    fn server(fields: &str) -> Proxied {
        let text = format!("{{\"mcpServers\": {{\"a\": {{{fields}}}}}}}");
        crate::settings::read(&[Document { place: Place::User, path: "x", text: &text }]).servers.remove(0)
    }

    #[test]
    fn a_digest_is_of_what_decides_which_tools_there_are() {
        let one = digest(&server(r#""command": "a", "args": ["b"]"#));
        for same in [
            r#""command": "a", "args": ["b"], "lifecycle": "eager", "directTools": "search", "idleTimeout": 3"#,
            r#""command": "a", "args": ["b"], "exposure": "direct", "timeout": 3, "searchKeywords": ["x"]"#,
        ] {
            assert_eq!(one, digest(&server(same)), "{same}");
        }
        for other in [
            r#""command": "a", "args": ["c"]"#,
            r#""command": "a", "args": ["b"], "env": {"X": "y"}"#,
            r#""command": "a", "args": ["b"], "includeTools": ["x"]"#,
            r#""command": "a", "args": ["b"], "excludeTools": ["x"]"#,
            r#""command": "a", "args": ["b"], "exposeResources": false"#,
        ] {
            assert_ne!(one, digest(&server(other)), "{other}");
        }
    }

    #[test]
    fn it_holds_for_the_same_server_for_a_week_or_as_long_as_that_says() {
        let tool = json!({"name": "t", "description": "Does.", "inputSchema": {"type": "object"}});
        let resource = json!({"uri": "file:///x", "name": "x", "description": "An x."});
        let kept = Kept {
            tools: vec![ServerTool::read(&tool).unwrap()],
            resources: vec![Resource::read(&resource).unwrap()],
            instructions: Some("Do.".to_owned()),
            ttl_ms: None,
        };
        let bytes = kept.to_bytes("d", 1_000).unwrap();
        let read = |bytes: &[u8], digest: &str, now: u64| Kept::read(Some(bytes), digest, now);
        assert_eq!(read(&bytes, "d", 999 + LONGEST_MS), Ok(kept.clone()));
        assert_eq!(read(&bytes, "d", 1_000 + LONGEST_MS), Err(Stale::Old));
        assert_eq!(read(&bytes, "d", 999), Err(Stale::Old), "from the future");
        assert_eq!(read(&bytes, "e", 1_000), Err(Stale::Changed));
        assert_eq!(Kept::read(None, "d", 1_000), Err(Stale::Missing));
        let short = Kept { ttl_ms: Some(50), ..kept.clone() }.to_bytes("d", 1_000).unwrap();
        assert!(read(&short, "d", 1_049).is_ok());
        assert_eq!(read(&short, "d", 1_050), Err(Stale::Old));
        let never = Kept { ttl_ms: Some(0), ..kept.clone() }.to_bytes("d", 1_000).unwrap();
        assert_eq!(read(&never, "d", 1_000), Err(Stale::Old));
        let long = Kept { ttl_ms: Some(u64::MAX), ..kept.clone() }.to_bytes("d", 1_000).unwrap();
        assert_eq!(read(&long, "d", 1_000 + LONGEST_MS), Err(Stale::Old), "a week is the most");
        let much = Kept { instructions: Some("x".repeat(MAX_BYTES)), ..kept };
        assert_eq!(much.to_bytes("d", 0), None);
    }

    proptest! {
        #[test]
        fn nothing_that_was_kept_harms(bytes in proptest::collection::vec(any::<u8>(), 0..64), text in "[\\[\\]{}:,\"a-z0-9]{0,40}") {
            let _ = Kept::read(Some(&bytes), "d", 0);
            let whole = format!("{{\"version\":1,\"configHash\":\"d\",\"cachedAt\":0,\"tools\":[{text}]}}");
            let _ = Kept::read(Some(whole.as_bytes()), "d", 1);
        }
    }
}
