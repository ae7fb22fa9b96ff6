//! The format of a script. `README.md` of this crate describes it for its users.
//!
//! Must never pass over a field it does not know: a typing error would make a test pass that tests nothing.

use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

/// A script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Script {
    /// What holds for turns that do not say it themselves.
    #[serde(default)]
    pub defaults: Defaults,
    /// The turns, in the order in which they are offered.
    pub turns: Vec<Spanned<Turn>>,
}

/// What holds for turns that do not say it themselves.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Defaults {
    /// See [`Turn::delay_ms`].
    #[serde(default)]
    pub delay_ms: u64,
    /// See [`Turn::chunk`].
    pub chunk: Option<usize>,
    /// See [`Turn::chunk_delay_ms`].
    #[serde(default)]
    pub chunk_delay_ms: u64,
}

/// One answer.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Turn {
    /// When it may be played; always, if it does not say.
    pub when: Option<When>,
    /// How often it is played before it is used up. 1 if it does not say.
    pub times: Option<u32>,
    /// It is never used up.
    #[serde(default)]
    pub repeat: bool,
    /// What the model thinks first.
    pub thinking: Option<String>,
    /// What it says.
    pub text: Option<String>,
    /// Which tools it calls.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// How long it is silent before it begins.
    pub delay_ms: Option<u64>,
    /// How many characters come at once.
    pub chunk: Option<usize>,
    /// How long it is silent after each chunk.
    pub chunk_delay_ms: Option<u64>,
    /// Why it stops.
    pub stop: Option<Stop>,
    /// The tokens it claims to have used.
    pub usage: Option<Tokens>,
    /// It breaks off instead of ending.
    pub fail: Option<Fail>,
    /// It says what it has to say and then never ends.
    #[serde(default)]
    pub hang: bool,
}

/// Conditions; all that are given must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct When {
    /// In the last message of the user.
    pub user_contains: Option<String>,
    /// In the last result since that message.
    pub last_tool_result_contains: Option<String>,
    /// In any of the instructions.
    pub system_contains: Option<String>,
}

/// A call of a tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// Its arguments. A text is sent as it is, so that a script can send what is not JSON.
    #[serde(default)]
    pub arguments: Value,
    /// The call's id; made up, if it does not say.
    pub id: Option<String>,
}

/// Why a turn stops.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// It is done.
    Stop,
    /// It reached a bound.
    Length,
    /// It wants its calls to run.
    ToolUse,
}

/// Tokens; what is not given is 0, and the total is the sum.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tokens {
    /// Input that no cache held.
    #[serde(default)]
    pub input: u64,
    /// Output.
    #[serde(default)]
    pub output: u64,
    /// Input read from a cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Input written to a cache.
    #[serde(default)]
    pub cache_write: u64,
    /// Thinking among the output.
    pub reasoning: Option<u64>,
    /// All of them.
    pub total: Option<u64>,
}

/// How a turn breaks off.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Fail {
    /// What the server says.
    pub message: String,
    /// Its HTTP status.
    pub status: Option<u16>,
    /// Whether trying again may help. If it does not say, the status decides as with a real server.
    pub kind: Option<Kind>,
    /// How long the server asks to wait.
    pub retry_after_ms: Option<u64>,
    /// What it says before it breaks off.
    pub after_text: Option<String>,
}

/// Whether trying again may help.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// It may.
    Unavailable,
    /// It will not.
    Failed,
}

impl Script {
    /// Reads a script; YAML, and with it JSON. The error says what is wrong, and in which line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let options = serde_saphyr::options! {
            duplicate_keys: DuplicateKeyPolicy::Error,
            with_snippet: false,
        };
        let script: Self = serde_saphyr::from_str_with_options(text, options).map_err(|error| explain(&error))?;
        if script.defaults.chunk == Some(0) {
            return Err("defaults: `chunk` must be at least 1".to_owned());
        }
        for turn in &script.turns {
            if let Err(text) = turn.value.check() {
                return Err(format!("line {}: {text}", turn.referenced.line()));
            }
        }
        Ok(script)
    }
}

impl Turn {
    /// It leaves no answer in the transcript.
    pub fn leaves_nothing(&self) -> bool {
        self.hang || self.fail.is_some()
    }

    fn check(&self) -> Result<(), &'static str> {
        let says = self.text.is_some() || self.thinking.is_some() || !self.calls.is_empty();
        if self.fail.is_some() && self.hang {
            return Err("a turn can not both `fail` and `hang`");
        }
        if self.fail.is_some() && says {
            return Err(
                "a turn with `fail` has no `text`, `thinking` or `calls`: write what comes first into `after-text`",
            );
        }
        if !says && !self.leaves_nothing() {
            return Err("a turn needs one of `text`, `thinking`, `calls`, `fail` and `hang`");
        }
        if self.chunk == Some(0) {
            return Err("`chunk` must be at least 1");
        }
        if self.times == Some(0) {
            return Err("`times` must be at least 1");
        }
        if self.repeat && self.times.is_some() {
            return Err("`repeat` and `times` exclude each other");
        }
        Ok(())
    }
}

fn explain(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let line = error.location().map(|location| location.line());
    match line {
        Some(line) if line > 0 && !text.contains("line ") => format!("line {line}: {text}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Script::parse(text).map(|_| ()).unwrap_err()
    }

    #[test]
    fn yaml_and_json_are_the_same() {
        let yaml = "turns:\n  - text: hi\n    calls:\n      - tool: ls\n        arguments: { path: a, depth: 2 }\n";
        let json = r#"{"turns":[{"text":"hi","calls":[{"tool":"ls","arguments":{"path":"a","depth":2}}]}]}"#;
        for text in [yaml, json] {
            let script = Script::parse(text).unwrap();
            let turn = &script.turns[0].value;
            assert_eq!(turn.text.as_deref(), Some("hi"));
            assert_eq!(turn.calls[0].arguments, serde_json::json!({"path": "a", "depth": 2}));
        }
    }

    #[test]
    fn every_field_there_is() {
        let text = "
defaults: { delay-ms: 1, chunk: 2, chunk-delay-ms: 3 }
turns:
  - when: { user-contains: a, last-tool-result-contains: b, system-contains: c }
    times: 2
    thinking: hm
    text: |
      two
      lines
    calls: [{ tool: t, id: x }]
    delay-ms: 4
    chunk: 5
    chunk-delay-ms: 6
    stop: length
    usage: { input: 1, output: 2, cache-read: 3, cache-write: 4, reasoning: 5, total: 6 }
  - repeat: true
    fail: { message: m, status: 503, kind: unavailable, retry-after-ms: 9, after-text: so }
  - hang: true
    text: wait
";
        let script = Script::parse(text).unwrap();
        assert_eq!(script.turns[0].value.text.as_deref(), Some("two\nlines\n"));
        assert_eq!(script.turns[0].value.stop, Some(Stop::Length));
        assert_eq!(script.turns[0].value.usage.as_ref().unwrap().cache_read, 3);
        assert_eq!(script.turns[1].value.fail.as_ref().unwrap().status, Some(503));
        assert!(script.turns[2].value.leaves_nothing());
    }

    #[test]
    fn mistakes_name_the_field_and_the_line() {
        for (text, parts) in [
            ("turns:\n  - text: hi\n  - txet: hi\n", ["txet", "line 3"]),
            ("turns:\n  - text: hi\nturn: []\n", ["turn", "line 3"]),
            ("turns:\n  - calls:\n      - tool: ls\n        args: {}\n", ["args", "line 4"]),
            ("turns:\n  - calls:\n      - arguments: {}\n", ["tool", "line 3"]),
            ("turns:\n  - text: hi\n    stop: soon\n", ["soon", "line 3"]),
            ("turns:\n  - text: hi\n    delay-ms: x\n", ["", "line 3"]),
            ("turns:\n  - text: a\n    text: b\n", ["text", "line 3"]),
            ("turns:\n  - text: a\n  - delay-ms: 3\n", ["needs one of", "line 3"]),
            ("turns:\n\n  - fail: { message: a }\n    text: b\n", ["after-text", "line 3"]),
            ("turns:\n\n  - fail: { message: a }\n    hang: true\n", ["hang", "line 3"]),
            ("turns:\n\n  - text: a\n    chunk: 0\n", ["chunk", "line 3"]),
            ("turns:\n\n  - text: a\n    times: 0\n", ["times", "line 3"]),
            ("turns:\n\n  - text: a\n    times: 2\n    repeat: true\n", ["repeat", "line 3"]),
            ("defaults: { chunk: 0 }\nturns: []\n", ["chunk", "defaults"]),
            ("{\"turns\": [\n{\"text\": \"a\"},\n{\"oops\": 1}]}", ["oops", "line 3"]),
            ("turns: [", ["", "line"]),
            ("", ["", ""]),
        ] {
            let error = error(text);
            for part in parts {
                assert!(error.contains(part), "{text}\n→ {error}");
            }
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
