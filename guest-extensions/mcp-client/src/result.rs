//! What a tool of a server gave, for the model and for scripts.
//!
//! Results are taken as JSON, not as types: a piece of a kind that nobody here knows must not cost the pieces beside it.

use std::{borrow::Cow, sync::LazyLock};

use base64::Engine as _;
use serde_json::{Map, Value, json};

use crate::tool::Schema;

/// A piece of what the model reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text.
    Text(String),
    /// A picture.
    Image {
        /// Its bytes.
        data: Vec<u8>,
        /// Its media type.
        mime_type: String,
    },
    /// Bytes that are no picture, which the model can be given as a file.
    Blob {
        /// Where they are on the server.
        uri: String,
        /// The bytes.
        data: Vec<u8>,
        /// Their media type.
        mime_type: String,
    },
}

/// A result, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Shaped {
    /// What the model reads, in order. Never empty.
    pub pieces: Vec<Piece>,
    /// What scripts get: all of it but `_meta`.
    pub whole: Value,
    /// The tool failed.
    pub is_error: bool,
}

/// Reads the result of a call.
pub fn shape(server: &str, tool: &str, mut result: Value) -> Shaped {
    if let Some(object) = result.as_object_mut() {
        object.shift_remove("_meta");
        object.shift_remove("resultType");
        object.entry("content").or_insert_with(|| json!([]));
    }
    let is_error = result["isError"] == true;
    let content = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut pieces: Vec<Piece> = content.iter().filter_map(|block| piece(server, block)).collect();
    if pieces.is_empty() {
        let text = match result.get("structuredContent") {
            Some(structured) => structured.to_string(),
            None if is_error => format!("The tool {tool} of the MCP server {server} failed and does not say of what."),
            None => "The tool gave nothing.".to_owned(),
        };
        pieces.push(Piece::Text(text));
    }
    Shaped { pieces, whole: result, is_error }
}

/// A block of content for a model; none if it is nothing for one.
pub fn piece(server: &str, block: &Value) -> Option<Piece> {
    let text = |key: &str| block[key].as_str();
    let mime_type = text("mimeType");
    match text("type") {
        Some("text") => Some(Piece::Text(text("text").unwrap_or_default().to_owned())),
        Some("image") => Some(match bytes(text("data").unwrap_or_default()) {
            Some(data) => Piece::Image { data, mime_type: mime_type.unwrap_or("image/png").to_owned() },
            None => Piece::Text("[A picture that can not be read: its data is no base64]".to_owned()),
        }),
        Some("audio") => Some(Piece::Text(format!("[audio {} omitted]", mime_type.unwrap_or("of an unknown type")))),
        Some("resource_link") => is_shown(block).then(|| Piece::Text(link(server, block))),
        Some("resource") => resource(&block["resource"]),
        Some(other) => Some(Piece::Text(format!("[Content of the type {} omitted]", Value::from(other)))),
        None => None,
    }
}

/// A resource as a tool gave it, or a part of one that was read; none if it is nothing for a model.
pub fn resource(resource: &Value) -> Option<Piece> {
    if !is_shown(resource) {
        return None;
    }
    let uri = resource["uri"].as_str().unwrap_or_default();
    let mime_type = resource["mimeType"].as_str();
    if let Some(text) = resource["text"].as_str() {
        return Some(Piece::Text(text.to_owned()));
    }
    let Some(data) = bytes(resource["blob"].as_str().unwrap_or_default()) else {
        return Some(Piece::Text(format!("[Resource {uri} can not be read: its data is no base64]")));
    };
    let mime_type = mime_type.unwrap_or("application/octet-stream").to_owned();
    if mime_type.starts_with("image/") {
        return Some(Piece::Image { data, mime_type });
    }
    match String::from_utf8(data) {
        Ok(text) if is_text(&mime_type) => Some(Piece::Text(text)),
        Ok(text) => Some(Piece::Blob { uri: uri.to_owned(), data: text.into_bytes(), mime_type }),
        Err(error) => Some(Piece::Blob { uri: uri.to_owned(), data: error.into_bytes(), mime_type }),
    }
}

/// Whether it is something for a model: user interfaces are not.
pub fn is_shown(resource: &Value) -> bool {
    let is_ui = resource["uri"].as_str().is_some_and(|uri| uri.starts_with("ui://"));
    let mime_type = resource["mimeType"].as_str().unwrap_or_default();
    let is_app = mime_type.split(';').skip(1).any(|parameter| parameter.trim() == "profile=mcp-app");
    !is_ui && !is_app
}

fn is_text(mime_type: &str) -> bool {
    let essence = mime_type.split(';').next().unwrap_or_default().trim();
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || matches!(
            essence,
            "application/json" | "application/xml" | "application/javascript" | "application/yaml" | "application/toml"
        )
}

fn link(server: &str, block: &Value) -> String {
    let text = |key: &str| block[key].as_str().filter(|text| !text.is_empty());
    let uri = text("uri").unwrap_or_default();
    let mut line = format!("[Resource {uri}");
    if let Some(title) = text("title").or_else(|| text("name")) {
        line.push_str(&format!(" \"{title}\""));
    }
    let size = block["size"].as_u64().map(|size| format!("{size} bytes"));
    let facts: Vec<String> = text("mimeType").map(str::to_owned).into_iter().chain(size).collect();
    if !facts.is_empty() {
        line.push_str(&format!(" ({})", facts.join(", ")));
    }
    if let Some(description) = text("description") {
        line.push_str(&format!(": {description}"));
    }
    line.push_str(&format!(". Read it with read_mcp_resource (server \"{server}\")]"));
    line
}

fn bytes(data: &str) -> Option<Vec<u8>> {
    let plain: String = data.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let plain = plain.trim_end_matches('=');
    // Some servers leave out the padding, and some use the letters of addresses.
    let standard = base64::engine::general_purpose::STANDARD_NO_PAD;
    standard.decode(plain).or_else(|_| base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(plain)).ok()
}

/// How much of a result's text a model gets, in bytes: half of it from the beginning and half from the end.
pub const MAX_TEXT: usize = 20 * 1024;

/// The longest first piece that the host may leave as it is, beside what it counts, in bytes.
const MAX_HEADING: usize = 2_000;

/// How many characters of these texts, one below the other, are at most [`MAX_TEXT`] bytes: as many from the beginning as from
/// the end. The host counts characters, and takes a short first piece for a heading.
pub fn most_characters(texts: &[&str]) -> u32 {
    let whole = texts.join("\n");
    if whole.len() <= MAX_TEXT {
        return u32::try_from(MAX_TEXT).unwrap_or(u32::MAX);
    }
    let (heading, rest) = match texts {
        [first, rest @ ..] if first.len() <= MAX_HEADING => (first.len(), rest.join("\n")),
        _ => (0, String::new()),
    };
    let most = (MAX_TEXT - heading) / 2;
    let fitting = |characters: &mut dyn Iterator<Item = char>| {
        let mut bytes = 0;
        let within = |c: &char| {
            bytes += c.len_utf8();
            bytes <= most
        };
        characters.take_while(within).count()
    };
    let mut half = fitting(&mut whole.chars()).min(fitting(&mut whole.chars().rev()));
    if heading > 0 && rest.len() > 2 * most {
        half = half.min(fitting(&mut rest.chars()));
    }
    u32::try_from(2 * half).unwrap_or(u32::MAX)
}

/// The schema of what scripts get of a tool that says what its structured content is, as text.
pub fn whole_schema(output_schema: Option<&Schema>) -> Cow<'static, str> {
    static WITHOUT: LazyLock<String> = LazyLock::new(|| with_structured(None).to_string());
    match output_schema {
        None => Cow::Borrowed(&*WITHOUT),
        Some(structured) => Cow::Owned(with_structured(Some(structured.read())).to_string()),
    }
}

fn with_structured(structured: Option<Map<String, Value>>) -> Value {
    let mut schema = json!({
        "type": "object",
        "properties": {
            "content": {"type": "array", "items": {"type": "object"}},
            "structuredContent": {},
            "isError": {"type": "boolean"},
        },
        "required": ["content"],
    });
    if let Some(mut structured) = structured {
        // What is referred to from the root has to stay at the root.
        for key in ["$defs", "definitions"] {
            if let Some(definitions) = structured.shift_remove(key)
                && let Some(root) = schema.as_object_mut()
            {
                root.insert(key.to_owned(), definitions);
            }
        }
        structured.shift_remove("$schema");
        schema["properties"]["structuredContent"] = Value::Object(structured);
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(shaped: &Shaped) -> String {
        let text = |piece: &Piece| match piece {
            Piece::Text(text) => format!("{text}\n"),
            Piece::Image { data, mime_type } => format!("<image {mime_type} {data:?}>\n"),
            Piece::Blob { uri, data, mime_type } => format!("<blob {uri} {mime_type} {data:?}>\n"),
        };
        shaped.pieces.iter().map(text).collect()
    }

    #[test]
    fn each_kind_of_content_is_what_a_model_can_read() {
        let shaped = shape(
            "docs",
            "get",
            json!({"content": [
                {"type": "text", "text": "hello"},
                {"type": "image", "data": "AQID", "mimeType": "image/png"},
                {"type": "image", "data": "AQI", "mimeType": "image/jpeg"},
                {"type": "image", "data": "!", "mimeType": "image/png"},
                {"type": "audio", "data": "AQID", "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "file:///a", "name": "a"},
                {"type": "resource_link", "uri": "file:///b", "name": "b", "title": "The b", "mimeType": "text/plain",
                 "size": 12, "description": "What b is"},
                {"type": "resource_link", "uri": "ui://x", "name": "x"},
                {"type": "resource", "resource": {"uri": "file:///t", "mimeType": "text/plain", "text": "inside"}},
                {"type": "resource", "resource": {"uri": "file:///j", "mimeType": "application/json", "blob": "e30="}},
                {"type": "resource", "resource": {"uri": "file:///p", "mimeType": "image/gif", "blob": "AQID"}},
                {"type": "resource", "resource": {"uri": "file:///z", "mimeType": "application/zip", "blob": "AQID"}},
                {"type": "resource", "resource": {"uri": "file:///h", "mimeType": "text/html;profile=mcp-app", "text": "x"}},
                {"type": "resource", "resource": {"uri": "file:///e", "blob": "!"}},
                {"type": "hologram", "data": 1},
                "no object", {"type": 1},
            ]}),
        );
        insta::assert_snapshot!(texts(&shaped));
    }

    #[test]
    fn without_content_the_model_reads_what_there_is() {
        let read = |result: Value| {
            let shaped = shape("s", "t", result);
            (texts(&shaped), shaped.is_error)
        };
        assert_eq!(read(json!({"content": [], "structuredContent": {"a": 1}})), ("{\"a\":1}\n".to_owned(), false));
        for structured in [json!(null), json!([1]), json!("x"), json!(0)] {
            assert_eq!(read(json!({"structuredContent": structured})).0, format!("{structured}\n"));
        }
        assert_eq!(
            read(json!({"isError": true, "content": []})),
            ("The tool t of the MCP server s failed and does not say of what.\n".to_owned(), true)
        );
        assert_eq!(
            read(json!({"isError": true, "content": [{"type": "text", "text": "no"}]})),
            ("no\n".to_owned(), true)
        );
        for nothing in [json!({}), json!(null), json!([]), json!({"content": "x"})] {
            assert_eq!(read(nothing), ("The tool gave nothing.\n".to_owned(), false));
        }
    }

    #[test]
    fn scripts_get_all_but_what_is_not_theirs() {
        let result = json!({
            "content": [{"type": "hologram", "data": 1}], "structuredContent": null, "isError": false, "more": 1,
            "_meta": {"x": 1}, "resultType": "complete",
        });
        assert_eq!(
            shape("s", "t", result).whole,
            json!({"content": [{"type": "hologram", "data": 1}], "structuredContent": null, "isError": false, "more": 1})
        );
        assert_eq!(shape("s", "t", json!({"isError": true})).whole, json!({"isError": true, "content": []}));
    }

    #[test]
    fn the_schema_of_a_whole_result_keeps_what_is_referred_to_at_its_root() {
        let own = json!({
            "$schema": "x", "type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}},
        });
        let schema = with_structured(own.as_object().cloned());
        assert_eq!(schema["$defs"]["A"]["type"], "string");
        assert_eq!(
            schema["properties"]["structuredContent"],
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}})
        );
        assert_eq!(with_structured(None)["properties"]["structuredContent"], json!({}));
    }

    #[test]
    fn what_a_model_gets_of_a_long_text_is_counted_in_bytes() {
        let most = |texts: &[&str]| most_characters(texts) as usize;
        assert_eq!(most(&[&"x".repeat(20_480)]), 20_480);
        assert_eq!(most(&[&"x".repeat(100_000)]), 20_480);
        assert_eq!(most(&[&"\u{fc}".repeat(10_240)]), 20_480, "it is all there");
        assert_eq!(most(&[&"\u{fc}".repeat(10_241)]), 10_240);
        assert_eq!(most(&["x", &"\u{1f600}".repeat(30_000), "\u{fc}"]), 5_118, "the heading counts, too");
        assert_eq!(most(&[]), 20_480);
    }

    proptest! {
        #[test]
        fn the_ends_of_a_long_text_are_no_more_than_it_may_have(unit in "\\PC{1,3}", plain in 0_usize..30_000, many in 0_usize..30_000) {
            let text = format!("{}{}", "x".repeat(plain), unit.repeat(many));
            let half = most_characters(&[&text]) as usize / 2;
            let bytes = |characters: &mut dyn Iterator<Item = char>| characters.take(half).map(char::len_utf8).sum::<usize>();
            if text.chars().count() > 2 * half {
                prop_assert!(bytes(&mut text.chars()) <= MAX_TEXT / 2 && bytes(&mut text.chars().rev()) <= MAX_TEXT / 2);
            } else {
                prop_assert!(text.len() <= MAX_TEXT);
            }
        }

        #[test]
        fn whatever_a_server_gives_there_is_something_to_read(
            kind in "text|image|audio|resource|resource_link|x", data in any::<String>(), mime in any::<String>(), is_error: bool,
        ) {
            let block = json!({"type": kind, "text": data, "data": data, "uri": data, "mimeType": mime,
                               "resource": {"uri": data, "blob": data, "mimeType": mime}});
            let shaped = shape("s", "t", json!({"content": [block], "isError": is_error}));
            prop_assert!(!shaped.pieces.is_empty());
            prop_assert_eq!(shaped.is_error, is_error);
        }
    }
}
