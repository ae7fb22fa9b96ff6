//! Files of other programs, turned into entries of ours. Nothing is taken over half: what has no counterpart is said.

use std::{fmt, str::FromStr};

use serde_json::{Map, Value, json};

use super::{
    Place, document,
    entry::{self, Read},
    problem::{Findings, shown},
    spelling,
};
use crate::{
    names::{MAX_SERVER_NAME, is_server_name, namespace, server_name_like},
    template::{Template, variable_like},
};

/// A program whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Claude Code: `.mcp.json`, `~/.claude.json`.
    ClaudeCode,
    /// Claude Desktop: `claude_desktop_config.json`.
    ClaudeDesktop,
    /// Cursor: `.cursor/mcp.json`.
    Cursor,
    /// VS Code: `.vscode/mcp.json`.
    VsCode,
    /// Windsurf: `mcp_config.json`.
    Windsurf,
    /// Codex: `config.toml`.
    Codex,
    /// opencode: `opencode.json`.
    OpenCode,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Windsurf,
        Self::Codex,
        Self::OpenCode,
    ];

    /// Its name on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Windsurf => "windsurf",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
        }
    }

    /// Where its files are: `~/` is the user's home, others are relative to the project.
    pub const fn places(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode => &[".mcp.json", "~/.claude.json"],
            Self::ClaudeDesktop => &[
                "~/.config/Claude/claude_desktop_config.json",
                "~/Library/Application Support/Claude/claude_desktop_config.json",
            ],
            Self::Cursor => &[".cursor/mcp.json", "~/.cursor/mcp.json"],
            Self::VsCode => &[".vscode/mcp.json", "~/.config/Code/User/mcp.json"],
            Self::Windsurf => &["~/.codeium/windsurf/mcp_config.json"],
            Self::Codex => &[".codex/config.toml", "~/.codex/config.toml"],
            Self::OpenCode => &["opencode.json", "opencode.jsonc", "~/.config/opencode/opencode.json"],
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        known.ok_or_else(|| format!("{} is none of {}", shown(text), Self::ALL.map(|kind| kind.to_string()).join(", ")))
    }
}

/// What a file of another program comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// Entries as they belong into our file, by their names there.
    pub servers: Vec<(String, Map<String, Value>)>,
    /// What to know of those, and why others are not among them: by the name in the file of the other program.
    pub said: Vec<(String, String)>,
}

impl Imported {
    /// Reads a file of another program.
    ///
    /// # Errors
    /// Why nothing of it can be read, in one line.
    pub fn read(kind: Kind, text: &str) -> Result<Self, String> {
        let all = match kind {
            Kind::Codex => {
                let table: toml::Table = toml::from_str(text.strip_prefix('\u{feff}').unwrap_or(text))
                    .map_err(|error| format!("this is no TOML: {}", error.message().replace('\n', " ")))?;
                serde_json::to_value(table).map_err(|error| format!("this can not be read: {error}"))?
            }
            _ => document::parse(text)?.unwrap_or(Value::Null),
        };
        let within = match kind {
            Kind::Codex => &all["mcp_servers"],
            Kind::OpenCode => &all["mcp"],
            Kind::VsCode if all["servers"].is_null() => &all["mcp"]["servers"],
            Kind::VsCode => &all["servers"],
            Kind::ClaudeCode | Kind::ClaudeDesktop | Kind::Cursor | Kind::Windsurf => &all["mcpServers"],
        };
        let Some(within) = within.as_object() else {
            return Err(format!("there are no servers in it, as {kind} has them"));
        };
        let mut imported = Self::default();
        for (name, value) in within {
            imported.take(kind, name, value);
        }
        Ok(imported)
    }

    fn take(&mut self, kind: Kind, name: &str, value: &Value) {
        let mut found = Findings::default();
        let mut value = value.clone();
        if let Some(entry) = value.as_object_mut() {
            tools_of(entry);
            match kind {
                Kind::Codex => of_codex(entry, &mut found),
                Kind::OpenCode => of_opencode(entry),
                Kind::VsCode => of_vscode(&mut value, &mut found),
                Kind::ClaudeCode | Kind::ClaudeDesktop | Kind::Cursor | Kind::Windsurf => {}
            }
        }
        let like = if is_server_name(name) { name.to_owned() } else { server_name_like(name) };
        let known = self.free(&like);
        let is_entry = matches!(entry::read(&value, Place::User, &mut found), Some(Read::Entry(_)));
        if is_entry
            && found.errors.is_empty()
            && let Some(written) = value.as_object()
        {
            if known != name {
                found.note(format!("it is called \"{known}\" here"));
            }
            // What is worth knowing was said above.
            let ours = spelling::ours(written, &mut Findings::default());
            self.servers.push((known, tidy(ours)));
        }
        self.said.extend(found.errors.into_iter().chain(found.notes).map(|text| (name.to_owned(), text)));
    }
}

impl Imported {
    /// This name, or one like it that no other server has. Names that differ only in `-` and `_` are the same.
    fn free(&self, name: &str) -> String {
        let is_taken = |name: &str| self.servers.iter().any(|(other, _)| namespace(other) == namespace(name));
        let short: String = name.chars().take(MAX_SERVER_NAME - 4).collect();
        let others = (2..1_000).map(|number| format!("{short}-{number}"));
        std::iter::once(name.to_owned()).chain(others).find(|name| !is_taken(name)).unwrap_or_else(|| name.to_owned())
    }
}

/// The entry without what goes without saying, and with our words.
fn tidy(mut entry: Map<String, Value>) -> Map<String, Value> {
    entry.shift_remove("type");
    if entry.get("enabled") == Some(&Value::Bool(true)) {
        entry.shift_remove("enabled");
    }
    if let Some(Value::Array(words)) = entry.get("command").cloned() {
        let mut words = words.into_iter();
        let program = words.next().unwrap_or_default();
        let more = entry.get("args").and_then(Value::as_array).cloned().unwrap_or_default();
        let args: Vec<Value> = words.chain(more).collect();
        entry.insert("command".to_owned(), program);
        if !args.is_empty() {
            entry.insert("args".to_owned(), Value::Array(args));
        }
    }
    for key in ["env", "headers"] {
        for value in
            entry.get_mut(key).and_then(Value::as_object_mut).into_iter().flat_map(|object| object.values_mut())
        {
            let read = spelling::as_text(value).and_then(|text| Template::parse(&text).ok());
            if let Some(read) = read {
                *value = Value::from(read.to_string());
            }
        }
    }
    entry
}

/// Lists of tools that are there, or are not.
fn tools_of(entry: &mut Map<String, Value>) {
    let mut exposures = Map::new();
    let mut take = |keys: &[&str], exposure: &str| {
        let before = exposures.len();
        for key in keys {
            let list = entry.shift_remove(*key);
            for tool in list.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
                exposures.entry(tool).or_insert_with(|| json!(exposure));
            }
        }
        exposures.len() > before
    };
    // What is in both is hidden.
    take(&["disabled_tools", "disabledTools", "excludeTools"], "hidden");
    let is_narrowed = take(&["enabled_tools", "includeTools"], "codemode");
    if is_narrowed {
        entry.insert("exposure".to_owned(), json!("hidden"));
    }
    if !exposures.is_empty() {
        entry.insert("toolExposure".to_owned(), Value::Object(exposures));
    }
}

fn of_codex(entry: &mut Map<String, Value>, found: &mut Findings) {
    if let Some(Value::Array(names)) = entry.shift_remove("env_vars") {
        for name in names.iter().filter_map(Value::as_str) {
            insert_in(entry, "env", name, &format!("${{{name}}}"));
        }
    }
    if let Some(headers) = entry.shift_remove("http_headers") {
        entry.insert("headers".to_owned(), headers);
    }
    if let Some(Value::Object(headers)) = entry.shift_remove("env_http_headers") {
        for (header, variable) in headers {
            let variable = variable.as_str().unwrap_or_default();
            insert_in(entry, "headers", &header, &format!("${{{variable}}}"));
        }
    }
    if let Some(seconds) = entry.shift_remove("tool_timeout_sec") {
        entry.insert("timeout".to_owned(), seconds);
    }
    if entry.shift_remove("required") == Some(Value::Bool(true)) {
        found.note("\"required\" has no effect: nothing waits for a server here");
    }
}

fn of_opencode(entry: &mut Map<String, Value>) {
    for key in ["environment", "headers"] {
        for value in
            entry.get_mut(key).and_then(Value::as_object_mut).into_iter().flat_map(|object| object.values_mut())
        {
            if let Some(text) = value.as_str() {
                *value = Value::from(text.replace("{env:", "${"));
            }
        }
    }
    if let Some(milliseconds) = entry.get("timeout").and_then(Value::as_f64) {
        let seconds = milliseconds / 1000.0;
        #[allow(clippy::cast_possible_truncation, reason = "it is a whole number of seconds then")]
        let seconds =
            if seconds.fract() == 0.0 && seconds.abs() < 1e9 { json!(seconds as i64) } else { json!(seconds) };
        entry.insert("timeout".to_owned(), seconds);
    }
    if entry.get("oauth") == Some(&Value::Bool(false)) {
        entry.shift_remove("oauth");
    }
}

/// Rewrites what VS Code fills in.
fn of_vscode(value: &mut Value, found: &mut Findings) {
    match value {
        Value::String(text) => {
            while let Some((before, inner)) = text.split_once("${input:") {
                let Some((id, after)) = inner.split_once('}') else { break };
                let variable = variable_like(id);
                let note = format!("what {} asked for has to be in the environment variable {variable}", shown(id));
                if !found.notes.contains(&note) {
                    found.note(note);
                }
                *text = format!("{before}${{{variable}}}{after}");
            }
            *text =
                text.replace("${workspaceFolder}/", "").replace("${workspaceFolder}", ".").replace("${userHome}", "~");
        }
        Value::Array(list) => list.iter_mut().for_each(|value| of_vscode(value, found)),
        Value::Object(object) => object.values_mut().for_each(|value| of_vscode(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn insert_in(entry: &mut Map<String, Value>, key: &str, name: &str, text: &str) {
    let object = entry.entry(key).or_insert_with(|| json!({}));
    if let Some(object) = object.as_object_mut() {
        object.entry(name).or_insert_with(|| Value::from(text));
    }
}
