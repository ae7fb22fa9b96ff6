//! Tools as TypeScript declarations: what a model reads before it writes a script, and what an editor checks one by.
//!
//! What is said of a tool must never depend on another one, and must be the same each time: prompt caches live from it.

mod listing;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

pub use listing::{Listing, Piece};

use crate::{
    Table, Tool,
    callable::identifiers,
    describe::{MAX_BYTES, TEXT, optional, rendered},
    names,
    reach::{Caller, may_reach},
    registry::Registered,
};

/// The longest description in a declaration, in characters.
const MAX_DESCRIPTION: usize = 500;
/// What an identifier and the rest of a declaration may take beside the two types.
const AROUND: usize = 2_048;

/// What scripts find beside the tools, as declarations.
pub const GLOBALS: &str = include_str!("globals.d.ts");

/// A tool as a method of `Tools`, behind the types that it names. `identifier` is what a script writes; without one, the
/// tool is reached by its name in quotes.
///
/// ```text
/// type list_items_Node = { … };
/// /** What it does. */
/// list_items(args: { depth?: number }): Promise<list_items_Node[]>;
/// ```
pub fn declaration(tool: &Tool, identifier: Option<&str>) -> Declaration {
    // Of two tools with one identifier, one has it, and the other one's types must have names of their own.
    let prefix = match identifier {
        Some(identifier) => identifier.to_owned(),
        None => names::told_apart(&tool.name),
    };
    let room = (MAX_BYTES - AROUND) / 2;
    let mut taken = HashSet::new();
    let (mut types, arguments) = rendered(&tool.parameters, room, &prefix, &mut taken);
    let result = match &tool.output_schema {
        Some(schema) => {
            let (more, result) = rendered(schema, room, &prefix, &mut taken);
            types.push_str(&more);
            result
        }
        None => TEXT.to_owned(),
    };
    let name = match identifier {
        Some(identifier) => identifier.to_owned(),
        None => serde_json::Value::from(tool.name.as_str()).to_string(),
    };
    let optional = optional(&tool.parameters);
    let comment = comment(&tool.description).map(|text| format!("/** {text} */\n")).unwrap_or_default();
    Declaration { types, method: format!("{comment}{name}(args{optional}: {arguments}): Promise<{result}>;") }
}

/// The longest type that is written into a sentence, in bytes.
const MAX_INLINE: usize = 240;

/// What a script gets from a call, as the end of a sentence.
pub fn result_type(tool: &Tool) -> String {
    let Some(schema) = &tool.output_schema else { return "a string".to_owned() };
    let (types, result) = rendered(schema, MAX_BYTES / 2, "", &mut HashSet::new());
    let line = on_one_line(&result);
    if types.is_empty() && line.len() <= MAX_INLINE && !line.contains('`') {
        return format!("`{line}`");
    }
    let fields = fields(schema);
    if fields.is_empty() {
        return format!("data, see `describeTool(\"{}\")`", tool.name);
    }
    format!("an object with {fields}; see `describeTool(\"{}\")`", tool.name)
}

/// A type without its comments, in one line.
fn on_one_line(text: &str) -> String {
    text.lines().map(|line| without_comment(line).trim()).collect::<Vec<_>>().join(" ")
}

/// A line of a type without what `//` begins, unless that is in a text.
fn without_comment(line: &str) -> &str {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, c) in line.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = is_quoted,
            '"' => is_quoted = !is_quoted,
            '/' if !is_quoted && line.get(at..).is_some_and(|rest| rest.starts_with("//")) => {
                return line.get(..at).unwrap_or(line);
            }
            _ => {}
        }
    }
    line
}

/// The most fields that are named in a sentence.
const MAX_FIELDS: usize = 12;

/// The names of an object's fields.
fn fields(schema: &serde_json::Value) -> String {
    let Some(all) = schema.get("properties").and_then(|properties| properties.as_object()) else {
        return String::new();
    };
    let short = |name: &&String| name.len() <= 40 && !name.contains('`');
    let mut names: Vec<String> = all.keys().filter(short).take(MAX_FIELDS).map(|name| format!("`{name}`")).collect();
    if names.len() < all.len() && !names.is_empty() {
        names.push("more".to_owned());
    }
    names.join(", ")
}

/// A tool in TypeScript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The types that it names, a line or more each. Empty, or ends with a line break.
    pub types: String,
    /// The method.
    pub method: String,
}

impl Declaration {
    /// Its length in tokens, roughly.
    pub fn tokens(&self) -> usize {
        (self.types.chars().count() + self.method.chars().count()).div_ceil(CHARACTERS_OF_A_TOKEN)
    }
}

/// How many characters make a token, roughly.
pub const CHARACTERS_OF_A_TOKEN: usize = 4;

/// Declarations as merging parts of one interface.
fn interface<'a>(declarations: impl IntoIterator<Item = &'a Declaration> + Clone) -> String {
    let mut text: String = declarations.clone().into_iter().map(|one| one.types.as_str()).collect();
    text.push_str("interface Tools {\n");
    for one in declarations {
        text.push_str("  ");
        text.push_str(&one.method.replace('\n', "\n  "));
        text.push('\n');
    }
    text.push_str("}\n");
    text
}

/// A description as the inside of a comment.
fn comment(description: &str) -> Option<String> {
    let mut text: String = description.trim().chars().take(MAX_DESCRIPTION + 1).collect();
    if text.chars().count() > MAX_DESCRIPTION {
        text.pop();
        let whole_words = text.rfind(char::is_whitespace).filter(|at| *at > MAX_DESCRIPTION / 2);
        text.truncate(whole_words.unwrap_or(text.len()));
        text = format!("{}…", text.trim_end());
    }
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let text: String = lines.join(" ").chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    // What ends a comment must not end this one; nor the fence that a model reads it in.
    let text = text.replace("*/", "* /").replace("```", "'''");
    (!text.is_empty()).then_some(text)
}

/// A tool that scripts can call, with the name they write.
pub struct Scriptable<'a> {
    /// The tool.
    pub entry: &'a Registered,
    /// The name; none if another tool has it.
    pub identifier: Option<String>,
}

impl Table {
    /// The tools that a script can call now, in the order of registration.
    pub fn scriptable(&self) -> Vec<Scriptable<'_>> {
        let admits =
            |entry: &Registered| may_reach(Caller::Script, entry.tool.exposure, self.standing(&entry.tool.name));
        let entries: Vec<&Registered> = self.tools().iter().map(AsRef::as_ref).filter(|entry| admits(entry)).collect();
        let identifiers = identifiers(entries.iter().map(|entry| entry.tool.name.as_str()));
        entries.into_iter().zip(identifiers).map(|(entry, identifier)| Scriptable { entry, identifier }).collect()
    }

    /// Everything a script finds, for an editor: the globals and the tools that it can call now.
    pub fn script_types(&self) -> String {
        let declarations: Vec<Declaration> = (self.scriptable().into_iter())
            .map(|Scriptable { entry, identifier }| declaration(&entry.tool, identifier.as_deref()))
            .collect();
        format!("{GLOBALS}\n{}", interface(&declarations))
    }
}
