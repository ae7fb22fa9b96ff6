//! What a search looks at of a tool.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::tokens;
use crate::Tool;

/// The most bytes of a tool's texts that are looked at.
const MAX_TEXT: usize = 64 * 1024;
/// The most places of a schema that are looked at.
const MAX_PLACES: usize = 2_000;
/// How deep into a schema.
const MAX_DEPTH: usize = 24;

/// A tool's words.
pub(crate) struct Document {
    /// Its name.
    pub(super) name: String,
    /// The same, folded.
    pub(super) folded_name: String,
    /// Its name without the namespace, folded.
    pub(super) folded_local: String,
    /// The words of its name without the namespace. Sorted, so that sums do not depend on chance.
    pub(super) local_terms: BTreeSet<String>,
    /// The words of its namespace.
    pub(super) namespace_terms: HashSet<String>,
    /// The words of its texts, and how often each is there.
    pub(super) body: HashMap<String, u32>,
    /// How many words its texts have.
    pub(super) length: usize,
}

impl Document {
    /// The words of a tool that its plugin calls `given`.
    pub(crate) fn of(tool: &Tool, given: &str) -> Self {
        let namespace = tool.namespace.as_ref().map(|namespace| namespace.name.as_str());
        let local = local_name(given, namespace);
        let mut texts = Texts { budget: MAX_TEXT, places: MAX_PLACES, followed: HashSet::new(), found: Vec::new() };
        texts.add(&tool.description);
        texts.schema(&tool.parameters, &tool.parameters, 0);
        let mut body = HashMap::new();
        let mut length = 0;
        for text in texts.found {
            for term in tokens::of_document(text) {
                *body.entry(term).or_insert(0_u32) += 1;
                length += 1;
            }
        }
        Self {
            name: tool.name.clone(),
            folded_name: tokens::fold(&tool.name),
            folded_local: tokens::fold(local),
            local_terms: tokens::of_document(local).into_iter().collect(),
            namespace_terms: namespace.map(tokens::of_document).into_iter().flatten().collect(),
            body,
            length,
        }
    }

    /// Whether a word is anywhere in it.
    pub(super) fn has(&self, term: &str) -> bool {
        self.body.contains_key(term) || self.local_terms.contains(term) || self.namespace_terms.contains(term)
    }
}

/// A tool's name without its namespace; without one, what comes after the last `__`.
fn local_name<'a>(name: &'a str, namespace: Option<&str>) -> &'a str {
    let own = namespace.and_then(|namespace| name.strip_prefix(namespace)).and_then(|rest| rest.strip_prefix("__"));
    let local = own.or_else(|| name.rsplit_once("__").map(|(_, last)| last));
    local.filter(|local| !local.is_empty()).unwrap_or(name)
}

struct Texts<'a> {
    budget: usize,
    places: usize,
    followed: HashSet<&'a str>,
    found: Vec<&'a str>,
}

impl<'a> Texts<'a> {
    fn add(&mut self, text: &'a str) {
        let mut end = text.len().min(self.budget);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.budget -= end;
        self.found.push(&text[..end]);
    }

    /// Descriptions and names of properties. What a local `$ref` points at is looked at once.
    fn schema(&mut self, root: &'a Value, schema: &'a Value, depth: usize) {
        if depth > MAX_DEPTH || self.places == 0 || self.budget == 0 {
            return;
        }
        self.places -= 1;
        let Some(fields) = schema.as_object() else { return };
        for (key, value) in fields {
            match (key.as_str(), value) {
                ("description", Value::String(text)) => self.add(text),
                ("$ref", Value::String(target)) => {
                    if self.followed.insert(target)
                        && let Some(schema) = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer))
                    {
                        self.schema(root, schema, depth + 1);
                    }
                }
                ("properties", Value::Object(properties)) => {
                    for (name, schema) in properties {
                        self.add(name);
                        self.schema(root, schema, depth + 1);
                    }
                }
                ("items" | "prefixItems" | "anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                    for schema in schemas {
                        self.schema(root, schema, depth + 1);
                    }
                }
                ("items" | "additionalProperties" | "additionalItems", schema) => self.schema(root, schema, depth + 1),
                _ => {}
            }
        }
    }
}
