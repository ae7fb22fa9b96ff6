//! What is kept of a server from one session to the next: its tools are searched and described before it is connected to.

use std::fmt::Write as _;

use atoll_mcp_client::{cache, tool::ServerTool};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};
use sha2::{Digest as _, Sha256};

use crate::settings::Proxied;

/// The version of what is kept: another one is not read.
const VERSION: u64 = 2;
/// How long it holds, in milliseconds: what a server says of itself may be shorter.
const LONGEST_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// The most that is kept of one server, in bytes: several of that size have to fit into the store.
const MAX_BYTES: usize = 4 << 20;
/// The most in one part, in bytes: so much fits under a key.
const MAX_PART: usize = 1 << 20;
/// The most that is kept of one tool or resource as it is, in bytes. Of longer ones it is less than all.
const MAX_ONE: usize = 64 << 10;
/// The longest text of a tool that is not kept as it is, in characters, and its longest schema, in bytes.
const MAX_TEXT: usize = 200;
const MAX_SCHEMA: usize = 1 << 10;
/// The longest instructions that are kept, in characters.
const MAX_INSTRUCTIONS: usize = 20_000;
/// What the keys of servers begin with.
pub(crate) const KEYS: &str = "server/";
/// The key that says that there was a session before this one.
pub(crate) const BEGUN: &str = "begun";

/// The key under which it is kept what holds of a server.
pub(crate) fn key(server: &str) -> String {
    format!("{KEYS}{server}")
}

/// What the keys of a server's parts begin with.
pub(crate) fn parts(server: &str) -> String {
    format!("{KEYS}{server}/")
}

/// The server that something of is kept under a key.
pub(crate) fn server_of(key: &str) -> Option<&str> {
    // In no server's name there is a slash.
    key.strip_prefix(KEYS)?.split('/').next()
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
    hex(what.to_string().as_bytes())
}

/// A digest of bytes.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// What is kept of a server, as it is in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    /// What holds, under the server's key.
    pub(crate) head: Vec<u8>,
    /// What the server has, each part with its key, which is another one for other bytes.
    pub(crate) parts: Vec<(String, Vec<u8>)>,
}

impl Kept {
    /// As it is kept, at this time, in milliseconds since 1970. Of what is long, or of all where it is too much, only the
    /// beginning is kept. None if that is too much, too.
    pub(crate) fn pack(&self, server: &str, digest: &str, now_ms: u64) -> Option<Packed> {
        let whole: Vec<String> = self.entries(|entry| if entry.len() > MAX_ONE { None } else { Some(entry) });
        let is_much = |entries: &[String]| entries.iter().map(|entry| entry.len() + 1).sum::<usize>() > MAX_BYTES;
        let entries = if is_much(&whole) { self.entries(|_| None) } else { whole };
        if is_much(&entries) {
            return None;
        }
        let mut parts: Vec<String> = Vec::new();
        for entry in entries {
            match parts.last_mut() {
                Some(part) if part.len() + entry.len() + 2 <= MAX_PART => {
                    part.push(',');
                    part.push_str(&entry);
                }
                _ => parts.push(format!("[{entry}")),
            }
        }
        let parts: Vec<(String, Vec<u8>)> = (parts.into_iter())
            .map(|part| {
                let bytes = (part + "]").into_bytes();
                (format!("{}{}", self::parts(server), hex(&bytes)), bytes)
            })
            .collect();
        let names: Vec<&str> = parts.iter().filter_map(|(key, _)| key.rsplit('/').next()).collect();
        let instructions =
            self.instructions.as_ref().map(|said| said.chars().take(MAX_INSTRUCTIONS).collect::<String>());
        let head = json!({
            "version": VERSION, "configHash": digest, "cachedAt": now_ms, "ttlMs": self.ttl_ms,
            "instructions": instructions, "parts": names,
        });
        Some(Packed { head: head.to_string().into_bytes(), parts })
    }

    /// Each tool and resource as text, short where `as_it_is` says so.
    fn entries(&self, as_it_is: impl Fn(String) -> Option<String>) -> Vec<String> {
        let tools = self.tools.iter().map(|tool| {
            let whole = serde_json::to_string(&Whole { tool }).ok().and_then(&as_it_is);
            whole.unwrap_or_else(|| json!({ "tool": short(tool) }).to_string())
        });
        let resources = self.resources.iter().map(|one| {
            let of = |description: &str| {
                json!({"resource": {"uri": one.uri, "name": one.name, "description": description}}).to_string()
            };
            as_it_is(of(&one.description)).unwrap_or_else(|| of(&beginning(&one.description)))
        });
        // What is longer even so is heard of again from the server.
        tools.chain(resources).filter(|entry| entry.len() <= MAX_PART - 2).collect()
    }
}

/// An entry that is all of a tool.
#[derive(Serialize)]
struct Whole<'a> {
    tool: &'a ServerTool,
}

/// An entry, read: a tool or a resource.
#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    tool: Option<&'a RawValue>,
    resource: Option<Value>,
}

/// The beginning of a text.
fn beginning(text: &str) -> String {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().chars().take(MAX_TEXT).collect()
}

/// Enough of a tool to find it and to call it. Its arguments are known where that takes little.
fn short(tool: &ServerTool) -> Value {
    let schema = Value::Object(tool.input_schema.read());
    let is_long = schema.to_string().len() > MAX_SCHEMA;
    json!({
        "name": tool.name, "title": tool.title.as_deref().map(beginning), "description": beginning(&tool.description),
        "inputSchema": if is_long { json!({"type": "object"}) } else { schema },
    })
}

/// What holds of a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Head(Value);

impl Head {
    /// What was kept, if it holds.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) fn read(bytes: Option<&[u8]>, digest: &str, now_ms: u64) -> Result<Self, Stale> {
        let head: Value = bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).ok_or(Stale::Missing)?;
        if head["version"] != VERSION {
            return Err(Stale::Old);
        }
        if head["configHash"] != digest {
            return Err(Stale::Changed);
        }
        let longest = head["ttlMs"].as_u64().unwrap_or(LONGEST_MS).min(LONGEST_MS);
        // From the future is from a clock that was wrong.
        let age = head["cachedAt"].as_u64().and_then(|at| now_ms.checked_sub(at));
        if age.is_none_or(|age| age >= longest) {
            return Err(Stale::Old);
        }
        Ok(Self(head))
    }

    /// The keys of the parts.
    pub(crate) fn parts(&self, server: &str) -> Vec<String> {
        let names = self.0["parts"].as_array().into_iter().flatten().filter_map(Value::as_str);
        names.map(|name| format!("{}{name}", parts(server))).collect()
    }

    /// All of it, with these parts.
    ///
    /// # Errors
    /// That they are none of ours.
    pub(crate) fn with(self, parts: &[Vec<u8>]) -> Result<Kept, Stale> {
        let mut kept = Kept {
            instructions: self.0["instructions"].as_str().map(str::to_owned),
            ttl_ms: self.0["ttlMs"].as_u64(),
            ..Kept::default()
        };
        for part in parts {
            let entries: Vec<Entry<'_>> = serde_json::from_slice(part).map_err(|_| Stale::Old)?;
            for entry in entries {
                match (entry.tool, entry.resource.as_ref().and_then(Resource::read)) {
                    (Some(tool), _) => kept.tools.push(ServerTool::read(tool).map_err(|_| Stale::Old)?),
                    (None, Some(resource)) => kept.resources.push(resource),
                    (None, None) => {}
                }
            }
        }
        Ok(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atoll_mcp_client::{
        config::{Document, Place},
        tool::Schema,
    };
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
            tools: vec![ServerTool::of(&tool).unwrap()],
            resources: vec![Resource::read(&resource).unwrap()],
            instructions: Some("Do.".to_owned()),
            ttl_ms: None,
        };
        let of = |kept: &Kept| kept.pack("a", "d", 1_000).unwrap();
        let packed = of(&kept);
        let read = |packed: &Packed, digest: &str, now: u64| unpacked(packed, digest, now);
        assert_eq!(read(&packed, "d", 999 + LONGEST_MS), Ok(kept.clone()));
        assert_eq!(read(&packed, "d", 1_000 + LONGEST_MS), Err(Stale::Old));
        assert_eq!(read(&packed, "d", 999), Err(Stale::Old), "from the future");
        assert_eq!(read(&packed, "e", 1_000), Err(Stale::Changed));
        assert_eq!(Head::read(None, "d", 1_000), Err(Stale::Missing));
        let short = of(&Kept { ttl_ms: Some(50), ..kept.clone() });
        assert!(read(&short, "d", 1_049).is_ok());
        assert_eq!(read(&short, "d", 1_050), Err(Stale::Old));
        let never = of(&Kept { ttl_ms: Some(0), ..kept.clone() });
        assert_eq!(read(&never, "d", 1_000), Err(Stale::Old));
        let long = of(&Kept { ttl_ms: Some(u64::MAX), ..kept });
        assert_eq!(read(&long, "d", 1_000 + LONGEST_MS), Err(Stale::Old), "a week is the most");
    }

    fn unpacked(packed: &Packed, digest: &str, now: u64) -> Result<Kept, Stale> {
        let head = Head::read(Some(&packed.head), digest, now)?;
        let keys: Vec<String> = packed.parts.iter().map(|(key, _)| key.clone()).collect();
        assert_eq!(head.parts("a"), keys);
        head.with(&packed.parts.iter().map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>())
    }

    /// So many tools, with descriptions of so many characters.
    fn many(count: usize, length: usize) -> Kept {
        let tool = |at: usize| {
            let described = json!({"name": format!("tool-{at}"), "description": format!("Does {at}.\n{}", "x".repeat(length)),
                "inputSchema": {"type": "object", "properties": {"id": {"type": "integer"}}}});
            ServerTool::of(&described).unwrap()
        };
        Kept { tools: (0..count).map(tool).collect(), ..Kept::default() }
    }

    #[test]
    fn what_does_not_fit_under_one_key_is_in_several_parts() {
        let kept = many(5_000, 300);
        let packed = kept.pack("a", "d", 0).unwrap();
        assert!((2..=4).contains(&packed.parts.len()), "{}", packed.parts.len());
        assert!(packed.parts.iter().all(|(key, bytes)| bytes.len() <= MAX_PART && server_of(key) == Some("a")));
        assert_eq!(unpacked(&packed, "d", 0), Ok(kept.clone()));
        // Where one tool is another one, what is before it is under the key of before.
        let mut other = kept;
        other.tools.last_mut().unwrap().description = "Another.".to_owned();
        let other = other.pack("a", "d", 0).unwrap();
        assert_eq!(other.parts[0], packed.parts[0]);
        assert_ne!(other.parts.last(), packed.parts.last());
    }

    #[test]
    fn of_what_is_too_much_the_beginning_is_kept() {
        let kept = many(5_000, 2_000);
        let read = unpacked(&kept.pack("a", "d", 0).unwrap(), "d", 0).unwrap();
        assert_eq!((read.tools.len(), read.tools[7].description.as_str()), (5_000, "Does 7."));
        assert_eq!(read.tools[7].input_schema, kept.tools[7].input_schema);
        // One that is long costs the others nothing.
        let mut kept = many(2, 10);
        kept.tools[0].description = "y".repeat(100_000);
        let big: serde_json::Map<String, Value> = (0..9_000).map(|at| (format!("p{at}"), json!({}))).collect();
        kept.tools[0].input_schema = Schema::of(json!({"type": "object", "properties": big}).as_object().unwrap());
        let read = unpacked(&kept.pack("a", "d", 0).unwrap(), "d", 0).unwrap();
        assert_eq!((read.tools[0].description.len(), read.tools[0].input_schema.read().len()), (MAX_TEXT, 1));
        assert_eq!(read.tools[1], kept.tools[1]);
        assert!(many(60_000, 10).pack("a", "d", 0).is_none(), "even so it is too much");
        assert_eq!([server_of("server/a"), server_of("server/a/12"), server_of("begun")], [Some("a"), Some("a"), None]);
    }

    proptest! {
        #[test]
        fn nothing_that_was_kept_harms(bytes in proptest::collection::vec(any::<u8>(), 0..64), text in "[\\[\\]{}:,\"a-z0-9]{0,40}") {
            let _ = Head::read(Some(&bytes), "d", 0);
            let whole = format!("{{\"version\":2,\"configHash\":\"d\",\"cachedAt\":0,\"parts\":[{text}]}}");
            if let Ok(head) = Head::read(Some(whole.as_bytes()), "d", 1) {
                head.parts("a");
                let _ = head.with(&[bytes, format!("[{text}]").into_bytes()]);
            }
        }
    }
}
