//! The text of a file: JSON, with what people write into it all the same.

use serde_json::{Map, Value};

use super::problem::{Findings, shown};

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Its servers.
    pub(super) servers: Map<String, Value>,
    /// Whether scripts are switched on where servers need them.
    pub(super) auto_enable_codemode: Option<bool>,
}

/// JSON with comments and trailing commas.
pub(super) const OPTIONS: jsonc_parser::ParseOptions = jsonc_parser::ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Reads a text as JSON with comments and trailing commas, and a byte order mark at its start. None if there is nothing.
///
/// # Errors
/// What is wrong, with line and column.
pub fn parse(text: &str) -> Result<Option<Value>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    jsonc_parser::parse_to_serde_value(text, &OPTIONS).map_err(|error| {
        let reason: String = error.kind().to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("this is no JSON, line {} column {}: {reason}", error.line_display(), error.column_display())
    })
}

/// Reads the text of a file of ours. What is wrong is among the findings.
pub(super) fn read(text: &str, found: &mut Findings) -> Said {
    let mut said = Said::default();
    let all = match parse(text) {
        Ok(None | Some(Value::Null)) => return said,
        Ok(Some(Value::Object(all))) => all,
        Ok(Some(_)) => {
            found.error("it has to be an object with \"mcpServers\"");
            return said;
        }
        Err(why) => {
            found.error(why);
            return said;
        }
    };
    if !all.contains_key("mcpServers")
        && let Some(hint) = other_kind(&all)
    {
        found.error(hint);
        return said;
    }
    for (key, value) in all {
        match (key.as_str(), value) {
            ("mcpServers", Value::Object(servers)) => said.servers = servers,
            ("mcpServers", _) => found.error("\"mcpServers\" has to be an object of servers by their names"),
            ("autoEnableCodemode", Value::Bool(on)) => said.auto_enable_codemode = Some(on),
            ("autoEnableCodemode", _) => found.error("\"autoEnableCodemode\" has to be true or false"),
            ("$schema", _) => {}
            (other, _) => found.note(format!(
                "{} has no effect: the file has \"mcpServers\" and \"autoEnableCodemode\"",
                shown(other)
            )),
        }
    }
    said
}

/// What a file without `mcpServers` is, if it looks like one of servers all the same.
fn other_kind(all: &Map<String, Value>) -> Option<String> {
    let import = |kind: &str| format!("or have it taken over by `atoll mcp import --from {kind}`");
    let is_object = |key: &str| all.get(key).is_some_and(Value::is_object);
    if is_object("servers") {
        return Some(format!("\"servers\" is VS Code's: write \"mcpServers\" in its place, {}", import("vscode")));
    }
    if is_object("mcp") {
        return Some(format!("\"mcp\" is opencode's: write \"mcpServers\" in its place, {}", import("opencode")));
    }
    if is_object("mcp_servers") || is_object("mcpservers") || is_object("McpServers") {
        return Some("the servers have to be in \"mcpServers\", spelled like this".to_owned());
    }
    let is_entry = |value: &Value| value.get("command").is_some() || value.get("url").is_some();
    let first = all.iter().find(|(_, value)| is_entry(value));
    first.map(|(name, _)| format!("put the servers into \"mcpServers\": {{\"mcpServers\": {{{}: …}}}}", shown(name)))
}
