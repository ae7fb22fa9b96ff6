//! How other programs write what is meant: understood where it can mean one thing only, and otherwise refused with the
//! way out.

use serde_json::{Map, Value};

use super::problem::{Findings, shown};
use crate::{names::near_matches, template::is_variable};

/// The fields of an entry.
pub(super) const FIELDS: [&str; 16] = [
    "type",
    "command",
    "args",
    "env",
    "inheritEnv",
    "cwd",
    "url",
    "headers",
    "oauth",
    "auth",
    "protocolVersion",
    "timeout",
    "enabled",
    "description",
    "exposure",
    "toolExposure",
];

/// Other names of fields, which mean exactly the same.
const SAME: [(&str, &str); 8] = [
    ("transport", "type"),
    ("transportType", "type"),
    ("serverUrl", "url"),
    ("httpUrl", "url"),
    ("environment", "env"),
    ("workingDirectory", "cwd"),
    ("http_headers", "headers"),
    ("arguments", "args"),
];

/// Fields of others that change nothing for us, with what to know about them.
const WITHOUT_EFFECT: [(&str, &str); 14] = [
    ("autoApprove", "calls are not approved here; an extension that asks or blocks decides"),
    ("alwaysAllow", "calls are not approved here; an extension that asks or blocks decides"),
    ("trust", "calls are not approved here; an extension that asks or blocks decides"),
    ("gallery", ""),
    ("version", ""),
    ("icon", ""),
    ("name", "the name is the key of the entry"),
    ("dev", "a server is not watched here"),
    ("lifecycle", "servers connect in the background here; the adapter mcp-proxy has lifecycles"),
    ("idleTimeout", "servers are not stopped while idle here; the adapter mcp-proxy does that"),
    ("directTools", "write \"exposure\": \"direct\" to have tools declared; the adapter mcp-proxy has \"directTools\""),
    ("searchKeywords", "the adapter mcp-proxy has them"),
    ("startup_timeout_sec", "connecting holds up nobody here, so it has no time limit of its own"),
    ("startupTimeout", "connecting holds up nobody here, so it has no time limit of its own"),
];

/// Fields of others that mean something we would do wrong without.
const REFUSED: [(&str, &str); 16] = [
    ("envFile", "is not read; put the variables into \"env\", or into the environment and write `${NAME}`"),
    ("env_vars", "is Codex's; write \"env\": {\"NAME\": \"${NAME}\"}"),
    ("env_http_headers", "is Codex's; write \"headers\": {\"X-Name\": \"${NAME}\"}"),
    ("headersHelper", "is not run; a header can be \"!command\", which is replaced by what the command prints"),
    ("requestHeadersCommand", "is not run; a header can be \"!command\", which is replaced by what the command prints"),
    ("bearerToken", "is another program's; write \"headers\": {\"Authorization\": \"Bearer …\"}"),
    ("apiKey", "is another program's; write \"headers\": {\"Authorization\": \"Bearer …\"}"),
    (
        "includeTools",
        "is another program's; write \"exposure\": \"hidden\" and \"toolExposure\": {\"name\": \"codemode\"}",
    ),
    ("enabled_tools", "is Codex's; write \"exposure\": \"hidden\" and \"toolExposure\": {\"name\": \"codemode\"}"),
    ("excludeTools", "is another program's; write \"toolExposure\": {\"name\": \"hidden\"}"),
    ("disabledTools", "is another program's; write \"toolExposure\": {\"name\": \"hidden\"}"),
    ("disabled_tools", "is Codex's; write \"toolExposure\": {\"name\": \"hidden\"}"),
    ("socket", "is not supported; a server is reached by \"command\" or \"url\""),
    ("caFile", "is not supported; the certificates of the system count"),
    ("timeoutMs", "is another program's; write \"timeout\" in seconds"),
    ("tool_timeout_sec", "is Codex's; write \"timeout\" in seconds"),
];

/// Fields that name the variable of a token. They can not be taken for the header that they mean: a variable is looked up where
/// a file names it as one, and these do not.
pub(super) const TOKEN: [&str; 3] = ["bearerTokenEnv", "bearerTokenEnvVar", "bearer_token_env_var"];

/// The entry with our names of fields. What was said of others is found.
pub(super) fn ours(entry: &Map<String, Value>, found: &mut Findings) -> Map<String, Value> {
    let mut ours = Map::new();
    let put = |ours: &mut Map<String, Value>, found: &mut Findings, as_written: &str, key: &str, value: Value| {
        if ours.contains_key(key) || (as_written != key && entry.contains_key(key)) {
            found.error(format!("\"{as_written}\" and \"{key}\" are the same; write \"{key}\" alone"));
        } else {
            ours.insert(key.to_owned(), value);
        }
    };
    let mut token = None;
    for (key, value) in entry {
        let key = key.as_str();
        if FIELDS.contains(&key) {
            put(&mut ours, found, key, key, value.clone());
        } else if let Some((_, same)) = SAME.iter().find(|(other, _)| *other == key) {
            put(&mut ours, found, key, same, value.clone());
        } else if key == "disabled" {
            match value.as_bool() {
                Some(disabled) => put(&mut ours, found, key, "enabled", Value::Bool(!disabled)),
                None => found.error("\"disabled\": it has to be true or false"),
            }
        } else if TOKEN.contains(&key) {
            match value.as_str().filter(|name| is_variable(name)) {
                Some(name) => token = Some((key, name)),
                None => found.error(format!("\"{key}\": it has to be the name of a variable of the environment")),
            }
        } else if let Some((_, why)) = WITHOUT_EFFECT.iter().find(|(other, _)| *other == key) {
            if !why.is_empty() && !says_nothing(value) {
                found.note(format!("\"{key}\" has no effect: {why}"));
            }
        } else if let Some((_, why)) = REFUSED.iter().find(|(other, _)| *other == key) {
            if !says_nothing(value) {
                found.error(format!("\"{key}\" {why}"));
            }
        } else {
            found.error(unknown("", key, &FIELDS));
        }
    }
    if let Some((key, name)) = token {
        let token = bearer(name);
        let is_there = !put_header(&mut ours, "Authorization", &token);
        found.error(match is_there {
            true => format!("\"{key}\" and a header \"Authorization\" are the same; write the header alone"),
            false => {
                format!(
                    "\"{key}\" is another program's; write \"headers\": {{\"Authorization\": \"{token}\"}} in its place"
                )
            }
        });
    }
    ours
}

/// The header that sends a token which this variable holds.
pub(super) fn bearer(variable: &str) -> String {
    format!("Bearer ${{{variable}}}")
}

/// Puts a header into an entry, unless it is there.
pub(super) fn put_header(entry: &mut Map<String, Value>, header: &str, value: &str) -> bool {
    let headers = entry.entry("headers").or_insert_with(|| Value::Object(Map::new()));
    // What else may be there is an error anyway.
    let Some(headers) = headers.as_object_mut() else { return true };
    let is_new = !headers.keys().any(|known| known.eq_ignore_ascii_case(header));
    if is_new {
        headers.insert(header.to_owned(), Value::from(value));
    }
    is_new
}

/// Whether a value says what would be without it.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::String(_) => false,
    }
}

/// That there is no such field. `within` is what its name begins with, as it is named to the user.
pub(super) fn unknown(within: &str, key: &str, known: &[&str]) -> String {
    let named = shown(&format!("{within}{key}"));
    match near_matches(key, known.iter().copied()).first() {
        Some(near) => format!("{named} is no field; is \"{within}{near}\" meant?"),
        None => format!("{named} is no field; there are {}", known.join(", ")),
    }
}

/// What kind of server a `type` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Stdio,
    Http,
}

/// Reads a `type`.
pub(super) fn kind(value: &Value) -> Result<Said, String> {
    let Some(text) = value.as_str() else { return Err("it has to be \"stdio\" or \"http\"".to_owned()) };
    let plain: String = text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    match plain.as_str() {
        "stdio" | "local" => Ok(Said::Stdio),
        // Which of the two transports a server speaks is found out.
        "http" | "streamablehttp" | "remote" | "sse" => Ok(Said::Http),
        "ws" | "websocket" => {
            Err("web sockets are no transport of MCP; give the server's http or https address".to_owned())
        }
        _ => Err(format!("it has to be \"stdio\" or \"http\", not {}", shown(text))),
    }
}

/// A value as text, for messages.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A text; numbers, true and false are taken for the text they look like.
pub(super) fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
