//! Files of other programs, turned into entries of ours. Nothing is taken over half: what has no counterpart is said.

use std::{fmt, str::FromStr};

use serde_json::{Map, Value, json};

use super::{
    Place, document,
    entry::{self, Read},
    foreign,
    problem::{Findings, shown},
    spelling,
};
use crate::{
    names::{MAX_SERVER_NAME, is_server_name, namespace, server_name_like},
    template::is_variable,
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

/// Why nothing of a file is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotImported {
    /// There are no servers in it, as this program has them: it may be about other things.
    NoServers(Kind),
    /// It can not be read.
    Unreadable(String),
}

impl fmt::Display for NotImported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoServers(kind) => write!(f, "there are no servers in it, as {kind} has them"),
            Self::Unreadable(why) => f.write_str(why),
        }
    }
}

impl Imported {
    /// Reads a file of another program. `folder`: that which is worked in, for what a program keeps by folders.
    ///
    /// # Errors
    /// Why nothing of it can be read, in one line.
    pub fn read(kind: Kind, text: &str, folder: &str) -> Result<Self, NotImported> {
        let unreadable = NotImported::Unreadable;
        let all = match kind {
            Kind::Codex => {
                let table: toml::Table = toml::from_str(text.strip_prefix('\u{feff}').unwrap_or(text))
                    .map_err(|error| unreadable(format!("this is no TOML: {}", error.message().replace('\n', " "))))?;
                serde_json::to_value(table).map_err(|error| unreadable(format!("this can not be read: {error}")))?
            }
            _ => document::parse(text).map_err(unreadable)?.unwrap_or(Value::Null),
        };
        let places = match kind {
            Kind::Codex => vec![&all["mcp_servers"]],
            Kind::OpenCode => vec![&all["mcp"]],
            Kind::VsCode => vec![&all["servers"], &all["mcp"]["servers"]],
            // What is put in without a word of where is kept by folder; it goes before what counts everywhere.
            Kind::ClaudeCode => vec![&all["projects"][folder]["mcpServers"], &all["mcpServers"]],
            Kind::ClaudeDesktop | Kind::Cursor | Kind::Windsurf => vec![&all["mcpServers"]],
        };
        let places: Vec<&Map<String, Value>> = places.into_iter().filter_map(Value::as_object).collect();
        if places.is_empty() {
            return Err(NotImported::NoServers(kind));
        }
        let (mut imported, mut names) = (Self::default(), Vec::new());
        for (name, value) in places.into_iter().flatten() {
            if names.contains(&name) {
                imported.said.push((
                    name.clone(),
                    "there is another of that name in this file, which goes before it".to_owned(),
                ));
                continue;
            }
            names.push(name);
            imported.take(kind, name, value);
        }
        Ok(imported)
    }

    fn take(&mut self, kind: Kind, name: &str, value: &Value) {
        let mut found = Findings::default();
        let ours = value.as_object().map(|written| in_our_words(kind, written.clone(), &mut found));
        let read = entry::read(&ours.clone().map_or_else(|| value.clone(), Value::Object), Place::User, &mut found);
        let like = if is_server_name(name) { name.to_owned() } else { server_name_like(name) };
        let known = self.free(&like);
        if matches!(read, Some(Read::Entry(_)))
            && found.errors.is_empty()
            && let Some(ours) = ours
        {
            if known != name {
                found.note(format!("it is called \"{known}\" here"));
            }
            self.servers.push((known, tidy(ours)));
        }
        self.said.extend(found.errors.into_iter().chain(found.notes).map(|text| (name.to_owned(), text)));
    }
}

/// The entry with our names of fields, and with values that stand here for what they stood for in the other program.
fn in_our_words(kind: Kind, mut entry: Map<String, Value>, found: &mut Findings) -> Map<String, Value> {
    tools_of(&mut entry);
    let mut named = Named::default();
    named.token(&mut entry, found);
    match kind {
        Kind::Codex => of_codex(&mut entry, &mut named, found),
        Kind::OpenCode => of_opencode(&mut entry),
        _ => {}
    }
    let mut ours = spelling::ours(&entry, found);
    foreign::translate(kind, &mut ours, found);
    named.put(&mut ours, found);
    ours
}

/// Values for which an entry names nothing but a variable of the environment.
#[derive(Default)]
struct Named {
    env: Vec<String>,
    /// Headers, each with what it is to say.
    headers: Vec<(String, String)>,
}

impl Named {
    /// Whether it can be a variable's name.
    fn fits(name: Option<&str>, field: &str, found: &mut Findings) -> Option<String> {
        let name = name.filter(|name| is_variable(name)).map(str::to_owned);
        found.take(field, name.ok_or_else(|| "it has to be the name of a variable of the environment".to_owned()))
    }

    /// Takes the variable of a token out of an entry.
    fn token(&mut self, entry: &mut Map<String, Value>, found: &mut Findings) {
        for field in spelling::TOKEN {
            if let Some(value) = entry.shift_remove(field)
                && let Some(name) = Self::fits(value.as_str(), field, found)
            {
                self.headers.push(("Authorization".to_owned(), spelling::bearer(&name)));
            }
        }
    }

    fn put(self, entry: &mut Map<String, Value>, found: &mut Findings) {
        for name in self.env {
            let env = entry.entry("env").or_insert_with(|| json!({}));
            if let Some(env) = env.as_object_mut() {
                env.entry(name.clone()).or_insert_with(|| Value::from(format!("${{{name}}}")));
            }
        }
        for (header, value) in self.headers {
            if !spelling::put_header(entry, &header, &value) {
                found.error(format!("the header {} is there twice; write one of them", shown(&header)));
            }
        }
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

fn of_codex(entry: &mut Map<String, Value>, named: &mut Named, found: &mut Findings) {
    if let Some(names) = entry.shift_remove("env_vars") {
        let names = names.as_array().cloned().unwrap_or_else(|| vec![names]);
        named.env.extend(names.iter().filter_map(|name| Named::fits(name.as_str(), "env_vars", found)));
    }
    if let Some(Value::Object(headers)) = entry.shift_remove("env_http_headers") {
        for (header, variable) in headers {
            if let Some(name) = Named::fits(variable.as_str(), &format!("env_http_headers.{header}"), found) {
                named.headers.push((header, format!("${{{name}}}")));
            }
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
