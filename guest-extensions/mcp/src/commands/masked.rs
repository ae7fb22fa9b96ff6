//! Entries as they may be shown to whoever looks over a shoulder: what may be a key is left out. What only says where one is
//! stays. Pure.

use atoll_mcp_client::template::{Part, Template};
use serde_json::{Map, Value};

/// What stands in place of something.
const MASK: &str = "…";

/// The entry, to be shown.
pub(super) fn masked(entry: &Map<String, Value>) -> Map<String, Value> {
    let mut shown = entry.clone();
    for key in ["env", "headers"] {
        for value in shown.get_mut(key).and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
            *value = Value::from(value_of(value));
        }
    }
    if let Some(secret) = shown.get_mut("oauth").and_then(|oauth| oauth.get_mut("clientSecret")) {
        *secret = Value::from(value_of(secret));
    }
    if let Some(Value::String(url)) = shown.get_mut("url") {
        *url = address(url);
    }
    if let Some(Value::Array(words)) = shown.get_mut("args") {
        arguments(words);
    }
    shown
}

/// A value of a variable or a header: what it names, and the word in front of a token.
fn value_of(value: &Value) -> String {
    let Some(Ok(Template::Text(parts))) = value.as_str().map(Template::parse) else { return MASK.to_owned() };
    let names_something = parts.iter().any(|part| matches!(part, Part::Variable { .. }));
    if !names_something {
        return MASK.to_owned();
    }
    let shown = parts.into_iter().map(|part| match part {
        Part::Literal(text) if ["Bearer ", "Basic ", "Token ", "token "].contains(&text.as_str()) => text,
        Part::Literal(_) => MASK.to_owned(),
        Part::Variable { name, default: None } => format!("${{{name}}}"),
        Part::Variable { name, default: Some(_) } => format!("${{{name}:-{MASK}}}"),
    });
    shown.collect()
}

/// An address without a user's name and password, without what looks like a key, and without the values of its query.
fn address(url: &str) -> String {
    let (scheme, rest) = match url.find("://") {
        Some(at) => url.split_at(at + 3),
        // It may begin with a variable.
        None => ("", url),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let host = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{MASK}@{host}"),
        None => authority.to_owned(),
    };
    let (rest, fragment) = match rest.split_once('#') {
        Some((rest, _)) => (rest, format!("#{MASK}")),
        None => (rest, String::new()),
    };
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => {
            let pairs = query.split('&').map(|pair| match pair.split_once('=') {
                Some((name, _)) => format!("{name}={MASK}"),
                None => MASK.to_owned(),
            });
            (path, format!("?{}", pairs.collect::<Vec<_>>().join("&")))
        }
        None => (rest, String::new()),
    };
    let path = path.split('/').map(word).collect::<Vec<_>>().join("/");
    format!("{scheme}{host}{path}{query}{fragment}")
}

/// Arguments without what follows an option for a key, and without what looks like one.
fn arguments(words: &mut [Value]) {
    let mut follows = false;
    for value in words {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let is_option = text.starts_with('-');
        let shown = if follows && !text.starts_with("--") { MASK.to_owned() } else { argument(&text) };
        follows = is_option && !text.contains('=') && is_secret_name(&text);
        *value = Value::from(shown);
    }
}

fn argument(text: &str) -> String {
    let (mut shown, mut rest) = (String::new(), text);
    // `--token=…`, `KEY=…` behind `-e`, and `Authorization: …` behind `--header`, however deep.
    while let Some(at) = rest.find(['=', ':']) {
        let (name, marked) = rest.split_at(at);
        if marked.starts_with("://") {
            return shown + &address(rest);
        }
        let end = marked.find(|c: char| !matches!(c, '=' | ':' | ' ')).unwrap_or(marked.len());
        let (marks, after) = marked.split_at(end);
        if is_secret_name(name) {
            return format!("{shown}{name}{marks}{MASK}");
        }
        shown.extend(name.split_inclusive([' ', ',', '/']).map(piece));
        shown.push_str(marks);
        rest = after;
    }
    shown.extend(rest.split_inclusive([' ', ',', '/']).map(piece));
    shown
}

/// A part of an argument with the mark behind it.
fn piece(text: &str) -> String {
    let end = text.trim_end_matches([' ', ',', '/']).len();
    let (text, mark) = text.split_at(end);
    format!("{}{mark}", word(text))
}

/// Whether what is called so is nobody's business.
fn is_secret_name(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    let words = [
        "token",
        "secret",
        "password",
        "passwd",
        "passphrase",
        "apikey",
        "accesskey",
        "privatekey",
        "credential",
        "authorization",
        "bearer",
        "cookie",
    ];
    // `--key`, `X-Key` and `SOME_KEY`, but no monkey.
    let is_key = name
        .rsplit(['-', '_'])
        .next()
        .is_some_and(|last| ["key", "auth", "pat", "pass", "pwd"].contains(&&*last.to_ascii_lowercase()));
    is_key || words.iter().any(|word| plain.contains(word))
}

/// A word, unless it looks like a key.
fn word(word: &str) -> String {
    if looks_like_a_key(word) { MASK.to_owned() } else { word.to_owned() }
}

/// The beginnings of keys that are known.
const STARTS: [&str; 14] =
    ["sk-", "sk_", "pk_", "rk_", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xox", "AKIA", "AIza", "eyJ", "hf_"];

fn looks_like_a_key(word: &str) -> bool {
    if STARTS.iter().any(|start| word.len() >= start.len() + 8 && word.starts_with(start)) {
        return true;
    }
    // Letters and digits mixed for longer than names and versions are.
    let pieces = word.split(|c: char| !c.is_ascii_alphanumeric());
    pieces.into_iter().any(|piece| {
        let has = |fits: fn(&u8) -> bool| piece.as_bytes().iter().filter(|byte| fits(byte)).count();
        let (digits, letters) = (has(u8::is_ascii_digit), has(u8::is_ascii_alphabetic));
        (piece.len() >= 12 && digits >= 3 && letters >= 1) || piece.len() >= 32
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_that_may_be_a_key_is_shown() {
        let entries = [
            json!({"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory@2026.8.31", "/home/me/notes", "--verbose"],
                   "env": {"A": "secret", "B": "${B}", "C": "x-secret-${C}", "D": "Bearer ${D:-secret}", "E": "!echo secret", "F": 5}}),
            json!({"command": "x", "args": ["--token", "secret", "--api-key=secret", "--key", "secret", "-e", "GITHUB_TOKEN=secret",
                   "--header", "Authorization: Bearer secret", "--header=X-Api-Key:secret", "sk-secret-secret", "--password", "--next",
                   "postgresql://me:secret@db.example/one", "--url=https://x.example/a?k=secret", "monkey", 7,
                   "3f2b8c1d-secret-9a1b2c3d4e5f", "mcp-server-2024-11-05", "--monkey", "business"]}),
            json!({"url": "https://x.example/v1/mcp?api_key=secret&secret-all-alone&b=secret#secret"}),
            json!({"url": "https://hooks.example/sk-ak-secretsecret/mcp", "oauth": {"clientId": "me", "clientSecret": "secret"}}),
            json!({"url": "${WHERE:-https://x.example/mcp}", "headers": {"X": "secret"}, "oauth": {"clientSecret": "${S}"}}),
            json!({"url": "https://me:secret@x.example/${PATH_OF_IT}"}),
            json!({"url": "${BASE}/mcp?key=secret"}),
        ];
        let shown: Vec<String> =
            entries.iter().map(|entry| Value::Object(masked(entry.as_object().unwrap())).to_string()).collect();
        insta::assert_snapshot!(shown.join("\n"));
    }
}
