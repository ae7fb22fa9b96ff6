//! Taking secrets out of what is written down: those that are known wherever they stand, and what looks like one by
//! the name in front of it.

use std::fmt::Write as _;

/// What stands in place of a secret.
const REDACTED: &str = "[redacted]";
/// Secrets that are shorter are only replaced where they are a whole word: they would blot out everything else.
const SHORT: usize = 4;
/// Parts of a name that say that its value is a secret.
const NAMES: [&str; 16] = [
    "token",
    "secret",
    "passw",
    "passwd",
    "pwd",
    "apikey",
    "api-key",
    "api_key",
    "credential",
    "authorization",
    "auth-key",
    "private-key",
    "private_key",
    "signature",
    "session-id",
    "access-key",
];
/// Names that say so by themselves only, for as a part of others they mean little.
const WHOLE_NAMES: [&str; 14] = [
    "key",
    "auth",
    "sig",
    "code",
    "pass",
    "sid",
    "cookie",
    "set-cookie",
    "session",
    "jwt",
    "bearer",
    "access_key",
    "aws_access_key_id",
    "pat",
];
/// How well-known kinds of tokens begin.
const BEGINNINGS: [&str; 17] = [
    "sk-",
    "sk_live_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "AIza",
    "eyJ",
    "hf_",
    "npm_",
];
/// The shortest text that is taken for such a token, in bytes.
const SHORTEST_TOKEN: usize = 14;
/// What stands between `Authorization:` and the secret itself.
const SCHEMES: [&str; 5] = ["bearer", "basic", "token", "digest", "negotiate"];

/// Takes secrets out of texts.
///
/// Those it was told of are replaced wherever they stand, as they are or percent-encoded, in any case. Others are
/// recognised by the name in front of them, by how they begin, or by being the user information of a URL; that is a help,
/// not a promise.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// Longest first, so that one that holds another goes as a whole.
    known: Vec<String>,
    short: Vec<String>,
}

impl Redactor {
    /// Tells it of a secret.
    pub fn learn(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.is_empty() {
            return;
        }
        if secret.len() < SHORT {
            if !self.short.iter().any(|known| known == secret) {
                self.short.push(secret.to_owned());
            }
            return;
        }
        for spelling in [secret.to_owned(), percent_encoded(secret)] {
            let spelling = spelling.to_ascii_lowercase();
            if !self.known.contains(&spelling) {
                self.known.push(spelling);
            }
        }
        self.known.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    }

    /// A text without the secrets that are known.
    pub fn known(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.known {
            text = without(&text, secret);
        }
        if self.short.iter().any(|short| text.contains(short.as_str())) {
            text = self.without_short(&text);
        }
        text
    }

    fn without_short(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for word in text.split_inclusive(|c: char| !is_word(c)) {
            let bare = word.trim_end_matches(|c: char| !is_word(c));
            if self.short.iter().any(|short| short == bare) {
                out.push_str(REDACTED);
                out.push_str(&word[bare.len()..]);
            } else {
                out.push_str(word);
            }
        }
        out
    }

    /// A URL without its fragment, its user information, and what in its query looks like a secret.
    pub fn url(&self, url: &str) -> String {
        let url = self.known(url);
        let url = url.split('#').next().unwrap_or_default();
        let url = without_user_information(url);
        let Some((front, query)) = url.split_once('?') else { return words(&url) };
        let pairs: Vec<String> = query
            .split('&')
            .map(|pair| match pair.split_once('=') {
                Some((name, value)) if is_secret_name(name) || looks_random(value) => format!("{name}={REDACTED}"),
                None if looks_random(pair) => REDACTED.to_owned(),
                _ => words(pair),
            })
            .collect();
        format!("{}?{}", words(front), pairs.join("&"))
    }

    /// A command line without what looks like a secret in it.
    pub fn command(&self, line: &str) -> String {
        words(&without_user_information(&self.known(line)))
    }
}

/// A text without a secret, which is given in lower case. The case does not matter: hosts are written in lower case.
fn without(text: &str, secret: &str) -> String {
    // Only ASCII letters change, so that both texts have the same offsets.
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (at, found) in lower.match_indices(secret) {
        out.push_str(&text[done..at]);
        out.push_str(REDACTED);
        done = at + found.len();
    }
    out.push_str(&text[done..]);
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// `https://user:password@host` as `https://[redacted]@host`.
fn without_user_information(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let end = after.find(|c: char| c.is_whitespace() || "/?#'\"<>".contains(c)).unwrap_or(after.len());
        let authority = &after[..end];
        rest = match authority.rsplit_once('@') {
            Some((_, host)) => {
                out.push_str(REDACTED);
                out.push('@');
                out.push_str(host);
                &after[end..]
            }
            None => after,
        };
    }
    out.push_str(rest);
    out
}

/// Replaces, word by word, what looks like a secret: `--token X`, `PASSWORD=X`, `Authorization: Bearer X`, `sk-…`.
fn words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // The word to come, or the whole of a quotation, is a secret.
    let mut next_is_secret = false;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix(REDACTED) {
            out.push_str(REDACTED);
            next_is_secret = false;
            rest = after;
            continue;
        }
        if is_separator(first) {
            if next_is_secret
                && matches!(first, '\'' | '"')
                && let Some((_, after)) = rest[1..].split_once(first)
            {
                let quoted = &rest[1..rest.len() - after.len() - 1];
                out.push(first);
                out.push_str(&secret_or_scheme(quoted));
                out.push(first);
                next_is_secret = false;
                rest = after;
                continue;
            }
            // Another command begins, which is nobody's value.
            if matches!(first, ';' | '|' | '\n') {
                next_is_secret = false;
            }
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let end = rest.find(is_separator).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        if next_is_secret {
            if SCHEMES.contains(&word.to_ascii_lowercase().as_str()) {
                out.push_str(word);
                continue;
            }
            next_is_secret = false;
            out.push_str(REDACTED);
            continue;
        }
        let named = word.find(['=', ':']).map(|at| (&word[..at], &word[at..=at], &word[at + 1..]));
        match named {
            Some((name, mark, value)) if is_secret_name(name) => {
                let _ = write!(out, "{name}{mark}");
                if value.is_empty() {
                    next_is_secret = true;
                } else {
                    out.push_str(REDACTED);
                }
            }
            Some((name, mark, value)) if is_token(value) => {
                let _ = write!(out, "{name}{mark}{REDACTED}");
            }
            _ if is_token(word) => out.push_str(REDACTED),
            _ => {
                out.push_str(word);
                // Only an option has its value in the next word; `grep token file` has not.
                next_is_secret =
                    (word.starts_with("--") && is_secret_name(word)) || word.eq_ignore_ascii_case("bearer");
            }
        }
    }
    out
}

fn secret_or_scheme(quoted: &str) -> String {
    match quoted.split_once(' ') {
        Some((scheme, _)) if SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()) => format!("{scheme} {REDACTED}"),
        _ => REDACTED.to_owned(),
    }
}

fn is_separator(c: char) -> bool {
    c.is_whitespace() || "'\"`;|&<>(){}[],\\$?".contains(c)
}

/// Whether a name, as of an option, a variable, a header or a parameter, says that its value is a secret.
fn is_secret_name(name: &str) -> bool {
    let name = name.trim_start_matches('-').to_ascii_lowercase();
    let name = name.rsplit(['?', '&', '/', '.']).next().unwrap_or_default();
    WHOLE_NAMES.contains(&name)
        || NAMES.iter().any(|part| name.contains(part))
        || name.ends_with("_key")
        || name.ends_with("-key")
}

/// Whether a word is a token of a well-known kind.
fn is_token(word: &str) -> bool {
    // Behind a path or an option, too.
    word.len() >= SHORTEST_TOKEN && BEGINNINGS.iter().any(|start| word.starts_with(start))
}

/// Whether a value of a query has the looks of a key: long, without spaces, letters and digits mixed.
fn looks_random(value: &str) -> bool {
    value.len() >= 20
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~+/=%".contains(&byte))
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && value.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// As in the path or the query of a URL.
fn percent_encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
