//! The arguments of a tool as a type, for a model to read: what it costs is bounded, whatever the schema is.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// How deep a type is written out.
const MAX_DEPTH: usize = 6;
/// The most properties of one object, and the most members of one union.
const MAX_MEMBERS: usize = 40;
/// The longest type, in characters.
const MAX_CHARS: usize = 4_000;
/// The longest line about a property, in characters.
const MAX_LINE: usize = 200;

/// The type in one line: `{ value: string, times?: number }`.
pub(crate) fn line(schema: &Map<String, Value>) -> String {
    let text = Renderer { root: schema, room: MAX_CHARS }.object(schema, 0);
    text.unwrap_or_else(|| "object".to_owned())
}

/// The properties, each in a line of its own with what is said of it.
pub(crate) fn lines(schema: &Map<String, Value>) -> String {
    let mut renderer = Renderer { root: schema, room: MAX_CHARS };
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|all| !all.is_empty()) else {
        return "(none)\n".to_owned();
    };
    let mut text = String::new();
    for (name, property) in properties.iter().take(MAX_MEMBERS) {
        let kind = renderer.of(property, 1);
        let _ = write!(text, "{}{}: {kind}", key(name), optional(schema, name));
        let said = property["description"].as_str().map(|said| said.split_whitespace().collect::<Vec<_>>().join(" "));
        if let Some(said) = said.filter(|said| !said.is_empty()) {
            let cut: String = said.chars().take(MAX_LINE).collect();
            let _ = write!(text, "  // {cut}{}", if cut.len() < said.len() { "…" } else { "" });
        }
        text.push('\n');
    }
    if properties.len() > MAX_MEMBERS {
        let _ = writeln!(text, "… and {} more", properties.len() - MAX_MEMBERS);
    }
    text
}

fn optional(schema: &Map<String, Value>, name: &str) -> &'static str {
    let needed = schema.get("required").and_then(Value::as_array);
    if needed.is_some_and(|names| names.iter().any(|needed| needed == name)) { "" } else { "?" }
}

fn key(name: &str) -> String {
    let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    if is_plain { name.to_owned() } else { Value::from(name).to_string() }
}

struct Renderer<'a> {
    root: &'a Map<String, Value>,
    /// How much may still be written.
    room: usize,
}

impl<'a> Renderer<'a> {
    /// Takes room for a text. Without room there is nothing but that something is there.
    fn spend(&mut self, text: String) -> String {
        match self.room.checked_sub(text.len()) {
            Some(rest) => {
                self.room = rest;
                text
            }
            None => {
                self.room = 0;
                "…".to_owned()
            }
        }
    }

    fn of(&mut self, schema: &'a Value, depth: usize) -> String {
        let Some(fields) = schema.as_object() else { return "unknown".to_owned() };
        if depth > MAX_DEPTH || self.room == 0 {
            return "…".to_owned();
        }
        if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
            let found = target.strip_prefix("#/").and_then(|path| {
                let mut parts = path.split('/');
                let first = self.root.get(parts.next()?)?;
                parts.try_fold(first, |inner, part| inner.get(part))
            });
            return found.map_or_else(|| "unknown".to_owned(), |found| self.of(found, depth + 1));
        }
        if let Some(value) = fields.get("const") {
            return self.spend(value.to_string());
        }
        if let Some(values) = fields.get("enum").and_then(Value::as_array) {
            return self.union(values.iter(), |renderer, value| renderer.spend(value.to_string()));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(members) = fields.get(key).and_then(Value::as_array) {
                return self.union(members.iter(), |renderer, member| renderer.of(member, depth + 1));
            }
        }
        match fields.get("type") {
            Some(Value::Array(kinds)) => {
                self.union(kinds.iter(), |renderer, kind| renderer.kind(kind.as_str(), fields, depth))
            }
            Some(kind) => self.kind(kind.as_str(), fields, depth),
            None if fields.contains_key("properties") => self.kind(Some("object"), fields, depth),
            None => "unknown".to_owned(),
        }
    }

    fn kind(&mut self, kind: Option<&str>, fields: &'a Map<String, Value>, depth: usize) -> String {
        match kind {
            Some("string") => "string".to_owned(),
            Some("number" | "integer") => "number".to_owned(),
            Some("boolean") => "boolean".to_owned(),
            Some("null") => "null".to_owned(),
            Some("array") => {
                let item = fields.get("items").map_or_else(|| "unknown".to_owned(), |items| self.of(items, depth + 1));
                if item.contains(" | ") && !item.starts_with('{') { format!("({item})[]") } else { format!("{item}[]") }
            }
            Some("object") => self.object(fields, depth).unwrap_or_else(|| "object".to_owned()),
            _ => "unknown".to_owned(),
        }
    }

    /// An object with its properties; none if it says nothing of them.
    fn object(&mut self, fields: &'a Map<String, Value>, depth: usize) -> Option<String> {
        let Some(properties) = fields.get("properties").and_then(Value::as_object) else {
            return (depth == 0).then(|| "{}".to_owned());
        };
        if properties.is_empty() {
            return Some("{}".to_owned());
        }
        let mut parts = Vec::new();
        for (name, property) in properties.iter().take(MAX_MEMBERS) {
            let kind = self.of(property, depth + 1);
            parts.push(self.spend(format!("{}{}: {kind}", key(name), optional(fields, name))));
            if self.room == 0 {
                break;
            }
        }
        if parts.len() < properties.len() {
            parts.push(format!("… {} more", properties.len() - parts.len()));
        }
        Some(format!("{{ {} }}", parts.join(", ")))
    }

    fn union<T>(&mut self, members: impl ExactSizeIterator<Item = T>, of: impl Fn(&mut Self, T) -> String) -> String {
        let count = members.len();
        let mut parts: Vec<String> = Vec::new();
        for member in members.take(MAX_MEMBERS) {
            let part = of(self, member);
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        if count > MAX_MEMBERS {
            parts.push("…".to_owned());
        }
        if parts.is_empty() { "never".to_owned() } else { parts.join(" | ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn object(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn arguments_are_a_type() {
        let schema = object(&json!({"type": "object", "required": ["owner", "n"], "$defs": {"N": {"type": "integer"}},
        "properties": {
            "owner": {"type": "string", "description": "Whose\n it is."},
            "n": {"$ref": "#/$defs/N"},
            "state": {"enum": ["open", "closed"]},
            "labels": {"type": "array", "items": {"type": ["string", "null"]}},
            "at": {"type": "object", "properties": {"line": {"type": "number"}, "end-col": {}}},
            "any": {"anyOf": [{"type": "string"}, {"type": "boolean"}, {"type": "string"}]},
            "free": {"type": "object"}, "odd": {"$ref": "#/nowhere"},
        }}));
        insta::assert_snapshot!(format!("{}\n\n{}", line(&schema), lines(&schema)));
        assert_eq!(line(&object(&json!({"type": "object", "properties": {}}))), "{}");
        assert_eq!((line(&object(&json!({}))).as_str(), lines(&object(&json!({}))).as_str()), ("{}", "(none)\n"));
    }

    #[test]
    fn a_schema_that_goes_round_or_is_huge_costs_little() {
        let round = object(&json!({"$defs": {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"},
            "b": {"$ref": "#/$defs/A"}, "c": {"$ref": "#/$defs/A"}}}}, "properties": {"a": {"$ref": "#/$defs/A"}}}));
        assert!(line(&round).len() < 2 * MAX_CHARS, "{}", line(&round).len());
        let huge: Map<String, Value> = (0..5_000).map(|at| (format!("p{at}"), json!({"type": "string"}))).collect();
        let huge = object(&json!({"properties": huge}));
        assert!(line(&huge).contains("… 4960 more") && lines(&huge).ends_with("… and 4960 more\n"));
    }

    proptest! {
        #[test]
        fn no_schema_harms(text in "[\\[\\]{}:,\"a-z0-9$#/ ]{0,60}") {
            let schema: Value = serde_json::from_str(&format!("{{\"properties\": {{\"a\": {text}}}}}")).unwrap_or_default();
            line(&object(&schema));
            lines(&object(&schema));
        }
    }
}
