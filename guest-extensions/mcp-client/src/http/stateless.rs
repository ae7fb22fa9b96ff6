//! What headers say of a message, so that whatever is between us and the server need not read it. The revision without sessions
//! wants it, in which each request says for itself which revision it is of.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

/// What says that an argument is to be in a header, too.
const MARK: &str = "x-mcp-header";

/// The tools that have arguments which are to be in headers: the way to each, and its header.
#[derive(Debug, Default)]
pub(super) struct Marked(HashMap<String, Vec<(Vec<String>, String)>>);

impl Marked {
    /// Remembers what an answer to `tools/list` says.
    pub(super) fn learn(&mut self, message: &[u8]) {
        if !contains(message, MARK) {
            return;
        }
        let Ok(Listed { result: Some(Tools { tools }) }) = serde_json::from_slice(message) else { return };
        for tool in tools {
            // One that can not be read costs no other.
            let tool: Value = serde_json::from_str(tool.get()).unwrap_or_default();
            if let (Some(name), Some(schema)) = (tool["name"].as_str(), tool["inputSchema"].as_object()) {
                let marks = marks(schema).unwrap_or_default();
                self.0.insert(name.to_owned(), marks);
            }
        }
    }

    /// The headers of a message. What is in it is said to every server: those of older revisions do not look at it.
    pub(super) fn headers(&self, line: &[u8]) -> Vec<(String, String)> {
        let Ok(Head { method: Some(method), params }) = serde_json::from_slice(line) else { return Vec::new() };
        let params = params.unwrap_or_default();
        let mut headers = vec![("mcp-method".to_owned(), value(&method))];
        if let Some(revision) = params.meta.and_then(|meta| meta.revision) {
            headers.push(("mcp-protocol-version".to_owned(), value(&revision)));
        }
        let name = match method.as_str() {
            "tools/call" | "prompts/get" => params.name,
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => params.uri,
            _ => None,
        };
        let Some(name) = name else { return headers };
        headers.push(("mcp-name".to_owned(), value(&name)));
        let Some(marks) = self.0.get(&name).filter(|marks| method == "tools/call" && !marks.is_empty()) else {
            return headers;
        };
        let message: Value = serde_json::from_slice(line).unwrap_or_default();
        for (path, header) in marks {
            let argument = path.iter().try_fold(&message["params"]["arguments"], |inside, key| inside.get(key));
            let text = match argument {
                Some(Value::String(text)) => text.clone(),
                Some(plain @ (Value::Bool(_) | Value::Number(_))) => plain.to_string(),
                _ => continue,
            };
            headers.push((format!("mcp-param-{}", header.to_ascii_lowercase()), value(&text)));
        }
        headers
    }
}

/// An answer to `tools/list`.
#[derive(Deserialize)]
struct Listed<'a> {
    #[serde(borrow)]
    result: Option<Tools<'a>>,
}

#[derive(Deserialize)]
struct Tools<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

/// Of a message only that is read which headers say.
#[derive(Deserialize)]
struct Head {
    method: Option<String>,
    params: Option<Params>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Params {
    name: Option<String>,
    uri: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    revision: Option<String>,
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// A text as the value of a header.
fn value(text: &str) -> String {
    let is_plain = text.bytes().all(|b| (b' '..=b'~').contains(&b)) && text.trim() == text;
    if is_plain && !(text.starts_with("=?base64?") && text.ends_with("?=")) {
        return text.to_owned();
    }
    format!("=?base64?{}?=", STANDARD.encode(text))
}

/// The arguments of a tool that are to be in headers.
///
/// # Errors
/// Why it is not a tool that can be called.
pub(crate) fn marks(schema: &Map<String, Value>) -> Result<Vec<(Vec<String>, String)>, String> {
    let (mut found, mut count) = (Vec::new(), 0);
    of_properties(schema, &mut Vec::new(), &mut found)?;
    count_marks(&Value::Object(schema.clone()), &mut count);
    if count != found.len() {
        return Err(format!("{MARK} stands where no argument is"));
    }
    let mut seen: Vec<String> = found.iter().map(|(_, header)| header.to_ascii_lowercase()).collect();
    seen.sort_unstable();
    seen.dedup();
    if seen.len() == found.len() { Ok(found) } else { Err(format!("two arguments have the same {MARK}")) }
}

fn of_properties(
    schema: &Map<String, Value>,
    path: &mut Vec<String>,
    found: &mut Vec<(Vec<String>, String)>,
) -> Result<(), String> {
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let Some(property) = property.as_object() else { continue };
        path.push(name.clone());
        if let Some(mark) = property.get(MARK) {
            let fits = |header: &&str| {
                !header.is_empty()
                    && header.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
            };
            let header = mark.as_str().filter(fits).ok_or_else(|| format!("its {MARK} is no name of a header"))?;
            if !matches!(property.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
                return Err(format!("{MARK} marks what is no text, whole number or yes and no"));
            }
            found.push((path.clone(), header.to_owned()));
        }
        of_properties(property, path, found)?;
        path.pop();
    }
    Ok(())
}

/// How often a schema has a mark, wherever it is; but for what is no schema.
fn count_marks(schema: &Value, count: &mut usize) {
    match schema {
        Value::Object(fields) => {
            for (key, inside) in fields {
                match key.as_str() {
                    MARK => *count += 1,
                    "default" | "const" | "enum" | "examples" | "required" => {}
                    "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
                        inside.as_object().into_iter().flatten().for_each(|(_, inside)| count_marks(inside, count));
                    }
                    _ => count_marks(inside, count),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|inside| count_marks(inside, count)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const REVISION: &str = "io.modelcontextprotocol/protocolVersion";

    fn headers(marked: &Marked, method: &str, mut params: Value) -> Vec<(String, String)> {
        params["_meta"] = json!({REVISION: "2026-07-28"});
        marked.headers(json!({"id": 1, "method": method, "params": params}).to_string().as_bytes())
    }

    #[test]
    fn headers_say_what_is_in_a_message() {
        let mut marked = Marked::default();
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "other": {"type": "string"}}});
        let listed = json!({"id": 1, "result": {"tools": [{"name": "query", "inputSchema": schema}]}});
        marked.learn(listed.to_string().as_bytes());
        let arguments = json!({"region": "Łódź", "deep": {"n": 7}, "other": "x"});
        let shown = headers(&marked, "tools/call", json!({"name": "query", "arguments": arguments}));
        let shown: Vec<String> = shown.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(
            shown,
            [
                "mcp-method: tools/call",
                "mcp-protocol-version: 2026-07-28",
                "mcp-name: query",
                "mcp-param-region: =?base64?xYHDs2TFug==?=",
                "mcp-param-n: 7",
            ]
        );
        assert_eq!(headers(&marked, "resources/read", json!({"uri": "a:b"}))[2].1, "a:b");
        assert_eq!(headers(&marked, "tools/list", json!({})).len(), 2);
        assert_eq!(
            marked.headers(br#"{"id":1,"method":"tools/list"}"#),
            [("mcp-method".to_owned(), "tools/list".to_owned())]
        );
        assert_eq!(marked.headers(br#"{"id":1,"result":{}}"#), []);
        for (text, expected) in
            [("a b", "a b"), (" a", "=?base64?IGE=?="), ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?=")]
        {
            assert_eq!(value(text), expected);
        }
    }

    #[test]
    fn a_tool_whose_marks_are_wrong_can_not_be_called() {
        let of = |properties: Value| marks(json!({"properties": properties}).as_object().unwrap());
        assert!(of(json!({"a": {"type": "string", "x-mcp-header": "A"}})).is_ok_and(|found| found.len() == 1));
        assert!(of(json!({"x-mcp-header": {"type": "string"}, "b": {"default": {"x-mcp-header": 1}}})).is_ok());
        for wrong in [
            json!({"a": {"type": "string", "x-mcp-header": ""}}),
            json!({"a": {"type": "string", "x-mcp-header": "A B"}}),
            json!({"a": {"type": "string", "x-mcp-header": 1}}),
            json!({"a": {"type": "number", "x-mcp-header": "A"}}),
            json!({"a": {"type": "object", "x-mcp-header": "A"}}),
            json!({"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}),
            json!({"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}),
            json!({"a": {"anyOf": [{"type": "string", "x-mcp-header": "A"}]}}),
        ] {
            assert!(of(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
