//! A schema to a type. Everything is bounded: what is too deep or does not fit is `unknown` or left out and counted.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value};

use super::{
    reference::{count, name_of, resolve},
    text,
};

/// How deep types are written out.
const MAX_DEPTH: usize = 12;
/// The most properties of one object that are listed.
const MAX_PROPERTIES: usize = 100;
/// The most members of a union of types, and the most elements of a tuple.
const MAX_MEMBERS: usize = 16;
/// The most values of an enumeration.
const MAX_VALUES: usize = 24;
/// An object that is not longer than this goes on one line.
const LINE: usize = 80;
/// What is kept back of the room, for what says that something was left out.
const RESERVE: usize = 512;

/// How a type may be put into another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Commented,
    Union,
    Intersection,
}

#[derive(Clone, PartialEq, Eq)]
struct Type {
    text: String,
    form: Form,
}

impl Type {
    fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), form: Form::Plain }
    }

    fn unknown() -> Self {
        Self::plain("unknown")
    }

    fn is(&self, text: &str) -> bool {
        self.text == text
    }
}

/// The definitions of the types that a schema's type names, and that type, in `room` bytes at most. `taken` holds the
/// names that are in use; each begins with `prefix` and `_`, if there is a prefix.
pub(super) fn render(schema: &Value, room: usize, prefix: &str, taken: &mut HashSet<String>) -> (String, String) {
    let mut renderer = Renderer {
        root: schema,
        prefix,
        counts: count(schema),
        room: room.saturating_sub(RESERVE),
        names: HashMap::new(),
        waiting: VecDeque::new(),
        expanding: Vec::new(),
        taken,
    };
    let main = if renderer.counts.contains_key("#") {
        renderer.name("#".to_owned(), schema).text
    } else {
        renderer.of(schema, 0).text
    };
    let mut types = String::new();
    while let Some((target, name, schema)) = renderer.waiting.pop_front() {
        renderer.expanding = vec![target];
        let body = if renderer.spend(name.len() + 12) { renderer.of(schema, 0) } else { Type::unknown() };
        types.push_str(&format!("type {name} = {};\n", body.text));
    }
    // The bookkeeping above should not let this happen.
    if types.len() + main.len() > room { (String::new(), "unknown".to_owned()) } else { (types, main) }
}

struct Renderer<'a, 't> {
    root: &'a Value,
    prefix: &'t str,
    counts: HashMap<String, usize>,
    room: usize,
    names: HashMap<String, String>,
    /// Named types that are not written down yet.
    waiting: VecDeque<(String, String, &'a Value)>,
    /// References that are being written out in place.
    expanding: Vec<String>,
    taken: &'t mut HashSet<String>,
}

impl<'a> Renderer<'a, '_> {
    /// Takes room for text that is about to be written, if there is enough.
    fn spend(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.room;
        self.room = self.room.saturating_sub(bytes);
        fits
    }

    fn of(&mut self, schema: &'a Value, depth: usize) -> Type {
        let fields = match schema {
            Value::Bool(false) => return Type::plain("never"),
            Value::Object(fields) => fields,
            _ => return Type::unknown(),
        };
        if depth > MAX_DEPTH || !self.spend(24) {
            return Type::unknown();
        }
        let mut parts = Vec::new();
        if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
            parts.push(self.reference(target, depth));
        }
        match (fields.get("const"), fields.get("enum")) {
            (Some(value), _) => parts.push(self.literal(value)),
            (None, Some(Value::Array(values))) => parts.push(self.enumeration(values)),
            _ => parts.push(self.by_type(fields, depth)),
        }
        if let Some(Value::Array(all)) = fields.get("allOf") {
            for schema in all.iter().take(MAX_MEMBERS) {
                parts.push(self.of(schema, depth + 1));
            }
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(any)) = fields.get(key) {
                let members = any.iter().take(MAX_MEMBERS).map(|schema| self.of(schema, depth + 1)).collect();
                parts.push(union(members, any.len().saturating_sub(MAX_MEMBERS), "unknown"));
            }
        }
        let whole = intersection(parts);
        if fields.get("nullable") == Some(&Value::Bool(true)) {
            return union(vec![whole, Type::plain("null")], 0, "");
        }
        whole
    }

    fn reference(&mut self, target: &str, depth: usize) -> Type {
        let Some((target, schema)) = resolve(self.root, target) else { return Type::unknown() };
        if let Some(name) = self.names.get(&target).cloned() {
            return self.written(name);
        }
        let often = self.counts.get(&target).is_some_and(|count| *count > 1);
        if (often && is_large(schema)) || self.expanding.contains(&target) {
            return self.name(target, schema);
        }
        self.expanding.push(target);
        let found = self.of(schema, depth + 1);
        self.expanding.pop();
        found
    }

    fn name(&mut self, target: String, schema: &'a Value) -> Type {
        let name = name_of(&target, self.taken);
        let name = if self.prefix.is_empty() { name } else { format!("{}_{name}", self.prefix) };
        self.names.insert(target.clone(), name.clone());
        self.waiting.push_back((target, name.clone(), schema));
        self.written(name)
    }

    /// A piece of text, if there is room for it.
    fn written(&mut self, text: String) -> Type {
        if self.spend(text.len() + 3) { Type::plain(text) } else { Type::unknown() }
    }

    fn literal(&mut self, value: &Value) -> Type {
        self.written(text::literal(value))
    }

    fn enumeration(&mut self, values: &[Value]) -> Type {
        let members: Vec<Type> = values.iter().take(MAX_VALUES).map(|value| self.literal(value)).collect();
        let left_out = values.len() - members.len();
        let kinds: HashSet<&str> = values.iter().skip(members.len()).map(text::kind).collect();
        let rest = if kinds.len() == 1 { kinds.into_iter().next() } else { None };
        union(members, left_out, rest.unwrap_or("unknown"))
    }

    fn by_type(&mut self, fields: &'a Map<String, Value>, depth: usize) -> Type {
        let has = |keys: &[&str]| keys.iter().any(|key| fields.contains_key(*key));
        match fields.get("type") {
            Some(Value::String(kind)) => self.of_kind(kind, fields, depth),
            Some(Value::Array(kinds)) => {
                let members = kinds.iter().take(8).map(|kind| match kind.as_str() {
                    Some(kind) => self.of_kind(kind, fields, depth),
                    None => Type::unknown(),
                });
                union(members.collect(), 0, "")
            }
            None if has(&["properties", "additionalProperties", "patternProperties"]) => self.object(fields, depth),
            None if has(&["items", "prefixItems"]) => self.array(fields, depth),
            _ => Type::unknown(),
        }
    }

    fn of_kind(&mut self, kind: &str, fields: &'a Map<String, Value>, depth: usize) -> Type {
        match kind {
            "string" => match fields.get("format").or(fields.get("contentEncoding")).and_then(text::format) {
                Some(format) if self.spend(format.len() + 8) => {
                    Type { text: format!("string /* {format} */"), form: Form::Commented }
                }
                _ => Type::plain("string"),
            },
            "number" | "integer" => Type::plain("number"),
            "boolean" | "null" => Type::plain(kind),
            "array" => self.array(fields, depth),
            "object" => self.object(fields, depth),
            _ => Type::unknown(),
        }
    }

    fn array(&mut self, fields: &'a Map<String, Value>, depth: usize) -> Type {
        // Newer drafts have `prefixItems` and `items`, older ones a list in `items` and `additionalItems`.
        let (tuple, rest) = match (fields.get("prefixItems"), fields.get("items")) {
            (Some(Value::Array(tuple)), rest) => (Some(tuple), rest),
            (_, Some(Value::Array(tuple))) => (Some(tuple), fields.get("additionalItems")),
            (_, items) => (None, items),
        };
        let rest = rest.filter(|schema| schema.is_object()).map(|schema| {
            let item = self.of(schema, depth + 1);
            if item.form == Form::Plain { format!("{}[]", item.text) } else { format!("({})[]", item.text) }
        });
        let Some(tuple) = tuple else { return Type::plain(rest.unwrap_or_else(|| "unknown[]".to_owned())) };
        let mut items: Vec<String> =
            tuple.iter().take(MAX_MEMBERS).map(|schema| self.of(schema, depth + 1).text).collect();
        let left_out = tuple.len() - items.len();
        if left_out > 0 {
            items.push(format!("...unknown[] /* {left_out} more */"));
        } else if let Some(rest) = rest {
            items.push(format!("...{rest}"));
        }
        Type::plain(format!("[{}]", items.join(", ")))
    }

    fn object(&mut self, fields: &'a Map<String, Value>, depth: usize) -> Type {
        let none = Map::new();
        let properties = fields.get("properties").and_then(Value::as_object);
        let required: Vec<&str> = match fields.get("required") {
            Some(Value::Array(names)) => names.iter().take(1_000).filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let mut lines = Vec::new();
        let mut left_out = 0;
        for (name, schema) in properties.into_iter().flatten() {
            let comment = text::comment(schema);
            let key = text::key(name).filter(|_| lines.len() < MAX_PROPERTIES);
            let cost = |key: &String| key.len() + comment.as_ref().map_or(0, |text| text.len() + 4) + 2 * depth + 32;
            match key {
                Some(key) if self.spend(cost(&key)) => {
                    let optional = if required.contains(&name.as_str()) { "" } else { "?" };
                    lines.push((format!("{key}{optional}: {}", self.of(schema, depth + 1).text), comment));
                }
                _ => left_out += 1,
            }
        }
        let known = properties.unwrap_or(&none);
        for name in required.iter().take(MAX_PROPERTIES).filter(|name| !known.contains_key(**name)) {
            match text::key(name) {
                Some(key) if self.spend(key.len() + 2 * depth + 32) => lines.push((format!("{key}: unknown"), None)),
                _ => left_out += 1,
            }
        }
        let others = self.other_properties(fields, depth);
        if lines.is_empty() && left_out == 0 {
            return match others {
                Some(others) => Type::plain(format!("Record<string, {others}>")),
                None if fields.get("additionalProperties") == Some(&Value::Bool(false)) => Type::plain("{}"),
                None => Type::plain("Record<string, unknown>"),
            };
        }
        lines.extend(others.map(|others| (format!("[key: string]: {others}"), None)));
        Type::plain(laid_out(&lines, left_out))
    }

    /// The type of properties that are not listed, if the schema speaks of any.
    fn other_properties(&mut self, fields: &'a Map<String, Value>, depth: usize) -> Option<String> {
        let mut members = Vec::new();
        if let Some(Value::Object(patterns)) = fields.get("patternProperties") {
            members.extend(patterns.values().take(MAX_MEMBERS).map(|schema| self.of(schema, depth + 1)));
        }
        match fields.get("additionalProperties") {
            Some(schema @ Value::Object(_)) => members.push(self.of(schema, depth + 1)),
            Some(Value::Bool(true)) => members.push(Type::unknown()),
            _ => {}
        }
        (!members.is_empty() && self.spend(24 + 2 * depth)).then(|| union(members, 0, "").text)
    }
}

/// Whether writing it out again and again would be long.
fn is_large(schema: &Value) -> bool {
    let has = |key: &str| schema.get(key).is_some();
    let values = schema.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
    values > 3 || ["properties", "items", "prefixItems", "anyOf", "oneOf", "allOf"].into_iter().any(has)
}

/// One of these, or one of `left_out` more, which are like `rest`.
fn union(members: Vec<Type>, left_out: usize, rest: &str) -> Type {
    let mut seen = HashSet::new();
    let mut members: Vec<Type> = members.into_iter().filter(|member| !member.is("never")).collect();
    members.retain(|member| seen.insert(member.text.clone()));
    if members.iter().any(|member| member.is("unknown")) && left_out == 0 {
        return Type::unknown();
    }
    if left_out > 0 {
        members.push(Type { text: format!("{rest} /* {left_out} more */"), form: Form::Commented });
    }
    match members.len() {
        0 => Type::plain("never"),
        1 => members.swap_remove(0),
        _ => {
            let texts: Vec<String> = (members.into_iter())
                .map(
                    |member| if member.form == Form::Intersection { format!("({})", member.text) } else { member.text },
                )
                .collect();
            Type { text: texts.join(" | "), form: Form::Union }
        }
    }
}

/// All of these at once.
fn intersection(mut parts: Vec<Type>) -> Type {
    let mut seen = HashSet::new();
    parts.retain(|part| !part.is("unknown") && seen.insert(part.text.clone()));
    // An object of which nothing is said adds nothing to one of which something is.
    if parts.len() > 1 && parts.iter().any(|part| !part.is("Record<string, unknown>")) {
        parts.retain(|part| !part.is("Record<string, unknown>"));
    }
    match parts.len() {
        0 => Type::unknown(),
        1 => parts.swap_remove(0),
        _ => {
            let texts: Vec<String> = (parts.into_iter())
                .map(|part| if part.form == Form::Union { format!("({})", part.text) } else { part.text })
                .collect();
            Type { text: texts.join(" & "), form: Form::Intersection }
        }
    }
}

/// An object's properties between braces, on one line if they are few and short.
fn laid_out(lines: &[(String, Option<String>)], left_out: usize) -> String {
    let length: usize = lines.iter().map(|(line, _)| line.len() + 2).sum();
    let simple = |(line, comment): &(String, Option<String>)| comment.is_none() && !line.contains('\n');
    if left_out == 0 && length <= LINE && lines.iter().all(simple) {
        let texts: Vec<&str> = lines.iter().map(|(line, _)| line.as_str()).collect();
        return format!("{{ {} }}", texts.join("; "));
    }
    let mut text = "{\n".to_owned();
    for (line, comment) in lines {
        let line = text::indented(line);
        text.push_str(&match comment {
            None => format!("  {line};\n"),
            Some(comment) if line.contains('\n') => format!("  // {comment}\n  {line};\n"),
            Some(comment) => format!("  {line}; // {comment}\n"),
        });
    }
    if left_out > 0 {
        text.push_str(&format!("  // {left_out} more\n"));
    }
    text.push('}');
    text
}
