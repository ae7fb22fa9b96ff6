//! What is kept of a server from one session to the next, so that its tools can be found before it is connected to.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    commands::ServerPrompt,
    config::{Entry, Transport},
    session::ServerTool,
};

/// The version of what is kept: another one is not read.
const VERSION: u64 = 2;
/// How long it holds: what a server says of itself may be shorter.
const LONGEST_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// How old it may become before it is kept anew, though nothing has changed.
const FRESH_MS: u64 = 24 * 60 * 60 * 1000;
/// The most that is kept of one server, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// What is kept of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// Its tools.
    pub tools: Vec<ServerTool>,
    /// What it says of how it is used.
    pub instructions: Option<String>,
    /// It has resources.
    pub has_resources: bool,
    /// Its prompts.
    pub prompts: Vec<ServerPrompt>,
}

/// What decides which tools a server has: another server, or the same one reached in another way, has another digest. What
/// only says who may reach them is not in it.
pub fn digest(entry: &Entry) -> String {
    let what = match &entry.transport {
        Transport::Stdio(stdio) => {
            let env: Vec<String> = stdio.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
            json!(["stdio", stdio.program, stdio.arguments, env, stdio.cwd, stdio.inherits])
        }
        Transport::Http(http) => {
            let headers: Vec<String> = http.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            json!(["http", http.url.to_string(), headers])
        }
    };
    let mut text = String::new();
    for byte in Sha256::digest(what.to_string()) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

impl Kept {
    /// As bytes to keep, now, in milliseconds since 1970. None if it is too much to keep.
    pub fn to_bytes(&self, digest: &str, now_ms: u64) -> Option<Vec<u8>> {
        let tools: Vec<Value> = self.tools.iter().map(ServerTool::to_json).collect();
        let kept = json!({
            "version": VERSION,
            "digest": digest,
            "keptAt": now_ms,
            "instructions": self.instructions,
            "hasResources": self.has_resources,
            "tools": tools,
            "prompts": self.prompts.iter().map(ServerPrompt::to_json).collect::<Vec<Value>>(),
        });
        let bytes = kept.to_string().into_bytes();
        (bytes.len() <= MAX_BYTES).then_some(bytes)
    }

    /// Whether what was kept is so young that it need not be kept anew as long as nothing changes.
    pub fn is_fresh(bytes: &[u8], now_ms: u64) -> bool {
        let kept: Value = serde_json::from_slice(bytes).unwrap_or_default();
        kept["keptAt"].as_u64().is_some_and(|kept_at| kept_at <= now_ms && now_ms - kept_at < FRESH_MS)
    }

    /// What was kept, if it holds: it is of the same server and not too old, nor from the future.
    pub fn read(bytes: &[u8], digest: &str, now_ms: u64) -> Option<Self> {
        let kept: Value = serde_json::from_slice(bytes).ok()?;
        let kept_at = kept["keptAt"].as_u64()?;
        let is_young = kept_at <= now_ms && now_ms - kept_at < LONGEST_MS;
        if kept["version"] != VERSION || kept["digest"] != digest || !is_young {
            return None;
        }
        let tools: Option<Vec<ServerTool>> =
            kept["tools"].as_array()?.iter().map(|tool| ServerTool::read(tool).ok()).collect();
        let prompts: Option<Vec<ServerPrompt>> =
            kept["prompts"].as_array()?.iter().map(|prompt| ServerPrompt::read(prompt).ok()).collect();
        Some(Self {
            tools: tools?,
            instructions: kept["instructions"].as_str().map(str::to_owned),
            has_resources: kept["hasResources"] == true,
            prompts: prompts?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Configuration, Document, Place};
    use proptest::prelude::*;

    fn entry(text: &str) -> Entry {
        let text = format!("{{\"mcpServers\": {{\"x\": {text}}}}}");
        let all = Configuration::read(&[Document { place: Place::User, path: "x", text: &text }]);
        all.servers.first().expect("a server").entry.clone()
    }

    #[test]
    fn a_digest_is_of_how_a_server_is_reached_and_of_nothing_else() {
        let one = digest(&entry(r#"{"command": "a", "args": ["b"], "env": {"C": "d"}}"#));
        assert_eq!(one.len(), 64);
        let same = r#"{"command": "a", "args": ["b"], "env": {"C": "d"}, "exposure": "direct", "timeout": 5, "description": "e"}"#;
        assert_eq!(one, digest(&entry(same)));
        for other in [
            r#"{"command": "a", "args": ["b", ""], "env": {"C": "d"}}"#,
            r#"{"command": "a", "args": ["b"], "env": {"C": "e"}}"#,
            r#"{"command": "a", "args": ["b"], "env": {"C": "d"}, "cwd": "x"}"#,
            r#"{"command": "ab", "env": {"C": "d"}}"#,
            r#"{"url": "http://a"}"#,
            r#"{"url": "http://a", "headers": {"x": "y"}}"#,
        ] {
            assert_ne!(one, digest(&entry(other)), "{other}");
        }
    }

    #[test]
    fn what_was_kept_holds_for_the_same_server_for_a_week() {
        let tool = json!({"name": "a", "title": "A", "description": "Does a.", "inputSchema": {"type": "object", "$defs": {}},
            "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
        let kept = Kept {
            tools: vec![
                ServerTool::read(&tool).expect("a tool"),
                ServerTool::read(&json!({"name": "b"})).expect("a tool"),
            ],
            instructions: Some("Be kind.".to_owned()),
            has_resources: true,
            prompts: vec![ServerPrompt::read(&json!({"name": "p", "arguments": [{"name": "x"}]})).expect("a prompt")],
        };
        let bytes = kept.to_bytes("d", 1_000).expect("bytes");
        assert_eq!(Kept::read(&bytes, "d", 1_000), Some(kept.clone()));
        assert_eq!(Kept::read(&bytes, "d", 999 + LONGEST_MS), Some(kept.clone()));
        assert_eq!(Kept::read(&bytes, "d", 1_000 + LONGEST_MS), None, "too old");
        assert_eq!(Kept::read(&bytes, "d", 999), None, "from the future");
        assert_eq!(Kept::read(&bytes, "e", 1_000), None, "another server");
        assert!(Kept::is_fresh(&bytes, 999 + FRESH_MS) && !Kept::is_fresh(&bytes, 1_000 + FRESH_MS));
        let older = String::from_utf8(bytes).expect("text").replace("\"version\":2", "\"version\":1");
        assert_eq!(Kept::read(older.as_bytes(), "d", 1_000), None);
        let much = Kept { instructions: Some("x".repeat(MAX_BYTES)), ..kept };
        assert_eq!(much.to_bytes("d", 1_000), None);
    }

    proptest! {
        #[test]
        fn nothing_that_was_kept_harms(bytes in proptest::collection::vec(any::<u8>(), 0..64), text in "[\\[\\]{}:,\"a-z0-9]{0,40}") {
            let _ = Kept::read(&bytes, "d", 0);
            let _ = Kept::read(text.as_bytes(), "d", 0);
        }
    }
}
