//! The arguments of a tool as a type, for a model to read: what it costs is bounded, whatever the schema is.

use std::{fmt::Write as _, io};

use serde_json::{Map, Value};

/// How deep a type is written out.
const MAX_DEPTH: usize = 6;
/// The most properties of one object, and the most members of one union.
const MAX_MEMBERS: usize = 40;
/// The longest type, in characters.
const MAX_CHARS: usize = 4_000;
/// The most schemas that are looked at for one type, each as often as it is referred to.
const MAX_STEPS: usize = 1_000;
/// The longest line about a property, in characters.
const MAX_LINE: usize = 200;
/// The longest name of a property, value of a constant and place that a `$ref` refers to, in bytes.
const MAX_NAME: usize = 200;
/// How many names are looked at of those that an object has to have.
const MAX_REQUIRED: usize = 1_000;

/// The type in one line: `{ value: string, times?: number }`.
pub(crate) fn line(schema: &Map<String, Value>) -> String {
    Renderer::of_all(schema).line()
}

/// The properties, each in a line of its own with what is said of it.
pub(crate) fn lines(schema: &Map<String, Value>) -> String {
    Renderer::of_all(schema).lines()
}

fn optional(schema: &Map<String, Value>, name: &str) -> &'static str {
    let needed = schema.get("required").and_then(Value::as_array);
    if needed.is_some_and(|names| names.iter().take(MAX_REQUIRED).any(|needed| needed == name)) { "" } else { "?" }
}

fn key(name: &str) -> String {
    if name.len() > MAX_NAME {
        return cut(name.to_owned(), MAX_NAME);
    }
    let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    if is_plain { name.to_owned() } else { Value::from(name).to_string() }
}

/// The beginning of a text, of so many bytes at most and what says that there is more.
fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        text.truncate(end);
        text.push('…');
    }
    text
}

/// A value as JSON, or the beginning of that.
fn constant(value: &Value) -> String {
    let mut beginning = Beginning(Vec::new());
    // It ends where it is full.
    let _ = serde_json::to_writer(&mut beginning, value);
    cut(String::from_utf8_lossy(&beginning.0).into_owned(), MAX_NAME)
}

/// The beginning of what is written.
struct Beginning(Vec<u8>);

impl io::Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() > MAX_NAME {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.0.extend(bytes.iter().take(MAX_NAME + 1));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Renderer<'a> {
    root: &'a Map<String, Value>,
    /// How much may still be written.
    room: usize,
    /// How many schemas may still be looked at.
    steps: usize,
}

impl<'a> Renderer<'a> {
    fn of_all(root: &'a Map<String, Value>) -> Self {
        Self { root, room: MAX_CHARS, steps: MAX_STEPS }
    }

    fn line(&mut self) -> String {
        let text = self.object(self.root, 0).unwrap_or_else(|| "object".to_owned());
        cut(text, MAX_CHARS)
    }

    fn lines(&mut self) -> String {
        let schema = self.root;
        let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|all| !all.is_empty()) else {
            return "(none)\n".to_owned();
        };
        let mut text = String::new();
        for (name, property) in properties.iter().take(MAX_MEMBERS) {
            let kind = cut(self.of(property, 1), MAX_CHARS);
            let _ = write!(text, "{}{}: {kind}", key(name), optional(schema, name));
            let said = property["description"].as_str().unwrap_or_default();
            // No more is looked at than may be shown, with room for what is between words.
            let begun: String = said.chars().take(4 * MAX_LINE).collect();
            let said = begun.split_whitespace().collect::<Vec<_>>().join(" ");
            if !said.is_empty() {
                let shown: String = said.chars().take(MAX_LINE).collect();
                let _ = write!(text, "  // {shown}{}", if shown.len() < said.len() { "…" } else { "" });
            }
            text.push('\n');
        }
        if properties.len() > MAX_MEMBERS {
            let _ = writeln!(text, "… and {} more", properties.len() - MAX_MEMBERS);
        }
        text
    }

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
        if depth > MAX_DEPTH || self.room == 0 || self.steps == 0 {
            return "…".to_owned();
        }
        self.steps -= 1;
        if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
            let found = target.strip_prefix("#/").filter(|path| path.len() <= MAX_NAME).and_then(|path| {
                let mut parts = path.split('/');
                let first = self.root.get(parts.next()?)?;
                parts.try_fold(first, |inner, part| inner.get(part))
            });
            return found.map_or_else(|| "unknown".to_owned(), |found| self.of(found, depth + 1));
        }
        if let Some(value) = fields.get("const") {
            return self.spend(constant(value));
        }
        if let Some(values) = fields.get("enum").and_then(Value::as_array) {
            return self.union(values.iter(), |renderer, value| renderer.spend(constant(value)));
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
            if self.room == 0 || self.steps == 0 {
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
                parts.push(self.spend(part));
            }
            if self.room == 0 || self.steps == 0 {
                break;
            }
        }
        if (count > MAX_MEMBERS || self.room == 0 || self.steps == 0) && parts.last().is_none_or(|last| last != "…") {
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

    #[test]
    fn a_union_of_itself_costs_a_bounded_number_of_steps() {
        let itself = |count: usize| vec![json!({"$ref": "#/$defs/A"}); count];
        for union in [
            json!({"anyOf": itself(40)}),
            json!({"oneOf": [{"anyOf": itself(40)}, {"type": "array", "items": {"anyOf": itself(40)}}]}),
            json!({"type": vec!["array"; 40], "items": {"$ref": "#/$defs/A"}}),
            json!({"type": "object", "properties": {"a": {"anyOf": itself(40)}, "b": {"oneOf": itself(40)}}}),
        ] {
            let properties: Map<String, Value> =
                (0..40).map(|at| (format!("p{at}"), json!({"$ref": "#/$defs/A"}))).collect();
            let schema = object(&json!({"$defs": {"A": union}, "properties": properties}));
            let mut renderer = Renderer::of_all(&schema);
            let text = renderer.line();
            assert!(text.len() <= MAX_CHARS + '…'.len_utf8(), "{}", text.len());
            // Each schema that is looked at is a step, and nothing is looked at without one.
            assert!(MAX_STEPS - renderer.steps >= 40 && text.contains('…'), "{} {text}", renderer.steps);
            assert!(lines(&schema).len() <= MAX_MEMBERS * MAX_CHARS);
        }
    }

    #[test]
    fn long_names_and_values_are_cut() {
        let long = "é".repeat(100_000);
        let schema = object(&json!({"required": [long], "properties": {
            (long.clone()): {"type": "string"}, "b": {"const": long}, "c": {"enum": [[long, 1], 2]}, "d": {"$ref": format!("#/{long}")},
            "e": {"type": "number", "description": long},
        }}));
        assert!(line(&schema).len() < 4 * (MAX_NAME + 40), "{}", line(&schema));
        assert!(lines(&schema).len() < 8 * (MAX_NAME + 40), "{}", lines(&schema).len());
        assert_eq!((constant(&json!([1, "a"])), constant(&json!({}))), ("[1,\"a\"]".to_owned(), "{}".to_owned()));
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
