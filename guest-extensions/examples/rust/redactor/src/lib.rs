//! A redactor: an extension that takes keys and tokens out of results, before a model reads them and before they are kept
//! in the session.
//!
//! It asks for nothing: changing a result needs no grant.
//!
//! What it can not catch: it knows tokens by how they begin. A password of its own kind, a token that is encoded or split
//! over two lines, and pictures pass. Nor does it see what a tool shows while it runs, only what it gives in the end.

use atoll_plugin::{
    Content, Error, EventId, Extension, export_extension,
    extension::{CallResult, Event, Outcome, ResultPatch, StartReason},
    types::Subscription,
};

/// How tokens of well-known services begin.
const BEGINNINGS: [&str; 8] = ["sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA"];
/// What follows has at least this many letters, digits, `-` and `_`.
const SHORTEST: usize = 16;
const INSTEAD: &str = "[redacted]";

struct Redactor;

impl Extension for Redactor {
    async fn start(_: StartReason) -> Result<(Self, Subscription), Error> {
        Ok((Self, Subscription::new().event("tool-result")))
    }

    async fn on_event(&self, _: EventId, event: Event) -> Result<Outcome, Error> {
        let Event::ToolResult(result) = event else { return Ok(Outcome::Pass) };
        Ok(patch(result).map_or(Outcome::Pass, Outcome::Patch))
    }
}

export_extension!(Redactor);

/// What has to change in a result; none if nothing has to.
fn patch(result: CallResult) -> Option<ResultPatch> {
    let mut changed = false;
    let mut clean = |text: String| match redacted(&text) {
        Some(clean) => {
            changed = true;
            clean
        }
        None => text,
    };
    let content = result.content.into_iter().map(|piece| match piece {
        Content::Text(text) => Content::Text(clean(text)),
        picture => picture,
    });
    let content = content.collect();
    // The same may stand in the data that scripts and whoever shows the call get. Tokens have no character that JSON
    // would escape, so its text can be treated as any other.
    let (details, structured) = (result.details.map(&mut clean), result.structured.map(&mut clean));
    changed.then_some(ResultPatch { content: Some(content), details, structured, is_error: None, usage: None })
}

/// A text without its tokens; none if it has none.
fn redacted(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut done = 0;
    for (at, _) in text.char_indices() {
        // Inside a token there is nothing to look for.
        let length = if at < done { 0 } else { token(text, at) };
        if length > 0 {
            out.push_str(&text[done..at]);
            out.push_str(INSTEAD);
            done = at + length;
        }
    }
    (done > 0).then(|| out + &text[done..])
}

/// How long the token is that begins here; 0: there is none.
fn token(text: &str, at: usize) -> usize {
    if !begins_a_word(&text[..at]) {
        return 0;
    }
    let here = &text[at..];
    let Some(beginning) = BEGINNINGS.iter().find(|beginning| here.starts_with(**beginning)) else { return 0 };
    let length = here.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte)).count();
    if length >= beginning.len() + SHORTEST { length } else { 0 }
}

/// Whether a word can begin after this text: `task-…` holds no `sk-…`. In JSON a line break is `\n`, whose `n` is not part
/// of a word.
fn begins_a_word(before: &str) -> bool {
    let mut back = before.bytes().rev();
    match back.next() {
        Some(byte) if byte.is_ascii_alphanumeric() || b"-_".contains(&byte) => back.next() == Some(b'\\'),
        _ => true,
    }
}
