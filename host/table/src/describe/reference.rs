//! References inside a schema: what they point at, how often, and what to call it.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::names::identifier;

/// The most places that are looked at when references are counted.
const MAX_PLACES: usize = 5_000;
/// How deep they are looked for.
const MAX_DEPTH: usize = 64;
/// The longest chain of references to references.
const MAX_CHAIN: usize = 16;
/// The longest name of a type.
const MAX_NAME: usize = 40;
/// Names that mean something else.
const RESERVED: [&str; 20] = [
    "any",
    "Array",
    "bigint",
    "boolean",
    "false",
    "function",
    "never",
    "null",
    "number",
    "object",
    "Promise",
    "Record",
    "string",
    "symbol",
    "true",
    "type",
    "undefined",
    "unknown",
    "void",
    "args",
];

/// What a local reference points at, and the reference in its plainest form. Chains are followed to their end; one
/// without an end, or one that leads out of the document, points at nothing.
pub(super) fn resolve<'a>(root: &'a Value, target: &str) -> Option<(String, &'a Value)> {
    let mut target = decode(target)?;
    for _ in 0..MAX_CHAIN {
        let schema = root.pointer(target.strip_prefix('#')?)?;
        match only_reference(schema) {
            Some(next) => target = decode(next)?,
            None => return Some((target, schema)),
        }
    }
    None
}

/// The target of a schema that is nothing but a reference.
fn only_reference(schema: &Value) -> Option<&str> {
    let fields = schema.as_object()?;
    let is_note = |key: &str| matches!(key, "$ref" | "description" | "title" | "default" | "$comment" | "examples");
    let target = fields.get("$ref")?.as_str()?;
    fields.keys().all(|key| is_note(key)).then_some(target)
}

/// Percent-encoding undone; `None` if the reference leads elsewhere.
fn decode(target: &str) -> Option<String> {
    if target.len() > 1_000 || !(target == "#" || target.starts_with("#/")) {
        return None;
    }
    let mut bytes = Vec::with_capacity(target.len());
    let mut rest = target.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// How often each place is referred to from what can be reached.
pub(super) fn count(root: &Value) -> HashMap<String, usize> {
    let mut counter = Counter { root, left: MAX_PLACES, counts: HashMap::new() };
    counter.visit(root, 0);
    counter.counts
}

struct Counter<'a> {
    root: &'a Value,
    left: usize,
    counts: HashMap<String, usize>,
}

impl<'a> Counter<'a> {
    fn visit(&mut self, value: &'a Value, depth: usize) {
        if depth > MAX_DEPTH || self.left == 0 {
            return;
        }
        self.left -= 1;
        match value {
            Value::Array(items) => {
                for item in items {
                    self.visit(item, depth + 1);
                }
            }
            Value::Object(fields) => {
                if let Some(target) = fields.get("$ref").and_then(Value::as_str)
                    && let Some((target, schema)) = resolve(self.root, target)
                {
                    let count = self.counts.entry(target).or_default();
                    *count += 1;
                    if *count == 1 && !std::ptr::eq(schema, self.root) {
                        self.visit(schema, depth + 1);
                    }
                }
                let is_schema = |key: &str| !matches!(key, "$defs" | "definitions" | "const" | "enum" | "examples");
                for (_, inner) in fields.iter().filter(|(key, _)| is_schema(key)) {
                    self.visit(inner, depth + 1);
                }
            }
            _ => {}
        }
    }
}

/// A name for a type that is no other's yet.
pub(super) fn name_of(target: &str, taken: &mut HashSet<String>) -> String {
    let last = if target == "#" { "Root" } else { target.rsplit('/').next().unwrap_or("Type") };
    let mut name: String = identifier(last).chars().take(MAX_NAME).collect();
    if RESERVED.contains(&name.as_str()) {
        name.push('_');
    }
    let mut unique = name.clone();
    for number in 2.. {
        if taken.insert(unique.clone()) {
            break;
        }
        unique = format!("{name}{number}");
    }
    unique
}
