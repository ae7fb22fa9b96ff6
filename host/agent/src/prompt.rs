//! The system prompt, as named sections. Every sentence a model reads from the host itself is in this file.

use std::path::Path;

use atoll_table::{Registered, model::Declaration};
use serde_json::{Map, Value, json};

use crate::{
    context_files::ContextFile,
    message::{Message, SystemMessage, system_state},
    time::now_ms,
};

const PREAMBLE: &str = "You are a coding agent at work on this machine through Atoll. You carry out what the user \
asks by reading files, running commands and changing code with the tools you have.";

/// Goes after what the tools themselves ask for.
const RULES: [&str; 3] = [
    "Look before you change: read what you are about to edit, and check your work when you can.",
    "Keep answers short and say what you did, not what you are about to do.",
    "Name files by their paths.",
];

/// Asked for only when no tool of its own does the job.
const SHELL_RULE: &str = "Use bash to list, search and find files (ls, rg, find).";

/// The sections in order, for these tools.
pub fn sections(tools: &[std::sync::Arc<Registered>], context: &[ContextFile], cwd: &Path) -> Map<String, Value> {
    let mut sections = Map::new();
    sections.insert("preamble".to_owned(), Value::String(PREAMBLE.to_owned()));
    let snippets: Vec<String> = tools
        .iter()
        .filter_map(|entry| entry.tool.prompt_snippet.as_ref().map(|line| format!("- {}: {line}", entry.tool.name)))
        .collect();
    let listed = if snippets.is_empty() { "(none)".to_owned() } else { snippets.join("\n") };
    insert(&mut sections, "tools", &format!("{listed}\n\nThere may be more tools than these."));
    insert(&mut sections, "rules", &rules(tools).join("\n"));
    if !context.is_empty() {
        let files: Vec<String> = context
            .iter()
            .map(|file| {
                let path = file.path.display();
                format!("<project_instructions path=\"{path}\">\n{}\n</project_instructions>", file.text.trim_end())
            })
            .collect();
        insert(&mut sections, "project_context", &files.join("\n\n"));
    }
    insert(&mut sections, "cwd", &cwd.to_string_lossy().replace('\\', "/"));
    sections
}

/// Names of sections that only the host may set.
pub(crate) const HOST_SECTIONS: [&str; 8] =
    ["preamble", "tools", "rules", "docs", "addendum", "project_context", "skills", "cwd"];

/// Whether `name` may name a section: a small letter, then small letters, digits, `_` and `-`.
pub(crate) fn is_section_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
    name.starts_with(|first: char| first.is_ascii_lowercase()) && name.len() <= 64 && name.bytes().all(fits)
}

pub(crate) fn insert(sections: &mut Map<String, Value>, name: &str, text: &str) {
    sections.insert(name.to_owned(), Value::String(format!("<{name}>\n{text}\n</{name}>")));
}

fn rules(tools: &[std::sync::Arc<Registered>]) -> Vec<String> {
    let has = |name: &str| tools.iter().any(|entry| entry.tool.name == name);
    let mut rules: Vec<String> = Vec::new();
    let mut add = |rule: &str| {
        let line = format!("- {rule}");
        if !rules.contains(&line) {
            rules.push(line);
        }
    };
    if has("bash") && !has("grep") && !has("find") && !has("ls") {
        add(SHELL_RULE);
    }
    for guideline in tools.iter().flat_map(|entry| &entry.tool.prompt_guidelines) {
        add(guideline);
    }
    for rule in RULES {
        add(rule);
    }
    rules
}

/// The message that brings the instructions in `transcript` up to date; none if they are.
pub fn update(transcript: &[Message], tools: &[Declaration], sections: &Map<String, Value>) -> Option<SystemMessage> {
    let state = system_state(transcript);
    let mut change = SystemMessage { timestamp: now_ms(), ..SystemMessage::default() };
    for (name, text) in sections {
        if state.sections.get(name) != Some(text) {
            change.sections.insert(name.clone(), text.clone());
        }
    }
    for name in state.sections.keys() {
        if !sections.contains_key(name) {
            change.sections.insert(name.clone(), Value::Null);
        }
    }
    let declared: Vec<Value> = tools
        .iter()
        .map(|tool| json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters}))
        .collect();
    change.tools_added = declared.iter().filter(|tool| !state.tools_added.contains(tool)).cloned().collect();
    change.tools_removed = state
        .tools_added
        .iter()
        .filter(|old| !declared.iter().any(|tool| tool.get("name") == old.get("name")))
        .map(|old| json!({"name": old.get("name")}))
        .collect();
    let same = change.sections.is_empty() && change.tools_added.is_empty() && change.tools_removed.is_empty();
    (!same).then_some(change)
}
