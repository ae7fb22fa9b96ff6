//! What is kept of a server from one session to the next, so that its tools can be found before it is connected to.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};
use sha2::{Digest as _, Sha256};

use crate::{
    commands::ServerPrompt,
    config::{Entry, Transport},
    tool::ServerTool,
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

/// What is kept, as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    version: u64,
    digest: &'a str,
    kept_at: u64,
    instructions: Option<&'a str>,
    has_resources: bool,
    tools: &'a [ServerTool],
    prompts: Vec<Value>,
}

/// The same, as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read<'a> {
    version: u64,
    digest: String,
    kept_at: u64,
    instructions: Option<String>,
    has_resources: bool,
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    prompts: Vec<Value>,
}

impl Kept {
    /// As bytes to keep, now, in milliseconds since 1970. None if it is too much to keep.
    pub fn to_bytes(&self, digest: &str, now_ms: u64) -> Option<Vec<u8>> {
        let written = Written {
            version: VERSION,
            digest,
            kept_at: now_ms,
            instructions: self.instructions.as_deref(),
            has_resources: self.has_resources,
            tools: &self.tools,
            prompts: self.prompts.iter().map(ServerPrompt::to_json).collect(),
        };
        serde_json::to_vec(&written).ok().filter(|bytes| bytes.len() <= MAX_BYTES)
    }

    /// What was kept, if it holds: it is of the same server and not too old, nor from the future. And whether it is so young
    /// that it need not be kept anew as long as nothing changes.
    pub fn read(bytes: &[u8], digest: &str, now_ms: u64) -> Option<(Self, bool)> {
        let read: Read<'_> = serde_json::from_slice(bytes).ok()?;
        let age = now_ms.checked_sub(read.kept_at)?;
        if read.version != VERSION || read.digest != digest || age >= LONGEST_MS {
            return None;
        }
        let tools: Option<Vec<ServerTool>> = read.tools.into_iter().map(|tool| ServerTool::read(tool).ok()).collect();
        let prompts: Option<Vec<ServerPrompt>> =
            read.prompts.iter().map(|prompt| ServerPrompt::read(prompt).ok()).collect();
        let kept = Self {
            tools: tools?,
            instructions: read.instructions,
            has_resources: read.has_resources,
            prompts: prompts?,
        };
        Some((kept, age < FRESH_MS))
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
            tools: vec![ServerTool::of(&tool).expect("a tool"), ServerTool::of(&json!({"name": "b"})).expect("a tool")],
            instructions: Some("Be kind.".to_owned()),
            has_resources: true,
            prompts: vec![ServerPrompt::read(&json!({"name": "p", "arguments": [{"name": "x"}]})).expect("a prompt")],
        };
        let bytes = kept.to_bytes("d", 1_000).expect("bytes");
        assert_eq!(Kept::read(&bytes, "d", 1_000), Some((kept.clone(), true)));
        assert_eq!(Kept::read(&bytes, "d", 999 + FRESH_MS), Some((kept.clone(), true)));
        assert_eq!(Kept::read(&bytes, "d", 1_000 + FRESH_MS), Some((kept.clone(), false)));
        assert_eq!(Kept::read(&bytes, "d", 999 + LONGEST_MS), Some((kept.clone(), false)));
        assert_eq!(Kept::read(&bytes, "d", 1_000 + LONGEST_MS), None, "too old");
        assert_eq!(Kept::read(&bytes, "d", 999), None, "from the future");
        assert_eq!(Kept::read(&bytes, "e", 1_000), None, "another server");
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
