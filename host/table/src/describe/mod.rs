//! JSON Schema as a compact TypeScript type: how a tool looks to a script and to a model that searched for it.

mod reference;
mod render;
#[cfg(test)]
mod tests;
mod text;

use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;

use crate::{Registered, Table};

/// The longest type, in bytes. What does not fit is left out and counted, or is `unknown`.
pub const MAX_BYTES: usize = 16 * 1024;

/// A tool as searches and descriptions show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Its unique name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Its arguments and result, see [`signature`].
    pub shape: String,
    /// It is active now.
    pub active: bool,
}

impl Table {
    /// How a tool of this table looks.
    pub fn summary(&self, entry: &Registered) -> Summary {
        Summary {
            name: entry.tool.name.clone(),
            description: entry.tool.description.clone(),
            shape: signature(&entry.tool.parameters, entry.tool.output_schema.as_deref()),
            active: self.is_active(&entry.tool.name),
        }
    }
}

/// A schema as a type in `room` bytes at most, and the types that it names, whose names begin with `prefix`.
pub(crate) fn rendered(schema: &Value, room: usize, prefix: &str, taken: &mut HashSet<String>) -> (String, String) {
    render::render(schema, room, prefix, taken)
}

/// A schema as a type. Types that it names come before, a line or more each: `type Node = …;`.
pub fn shape(schema: &Value) -> String {
    let (types, main) = render::render(schema, MAX_BYTES, "", &mut HashSet::new());
    types + &main
}

/// Arguments and result as the type of an async function, `(args: …) => Promise<…>`: what a script gets, which is the text
/// where there is no schema of the result.
pub fn signature(parameters: &Value, output: Option<&Value>) -> String {
    let room = MAX_BYTES / 2 - 64;
    let mut taken = HashSet::new();
    let (types, arguments) = render::render(parameters, room, "", &mut taken);
    let (more, result) = match output {
        Some(output) => render::render(output, room, "", &mut taken),
        None => (String::new(), TEXT.to_owned()),
    };
    format!("{types}{more}(args{}: {arguments}) => Promise<{result}>", optional(parameters))
}

/// What a script gets from a tool that says nothing of its results.
pub(crate) const TEXT: &str = "string";

/// What stands behind the name of the arguments: they can be left out if none of them has to be there.
pub(crate) fn optional(parameters: &Value) -> &'static str {
    let needed = parameters.get("required").and_then(Value::as_array).is_some_and(|names| !names.is_empty());
    if needed { "" } else { "?" }
}
