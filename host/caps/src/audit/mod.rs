//! The audit log: what an entry says, as a line of JSON and as a line for people.
//!
//! An entry must never hold a secret: whatever comes from a plugin goes through [`Redactor`] before it is written.

mod redact;

use std::fmt::Write as _;

use jiff::{Timestamp, fmt::temporal::DateTimePrinter};
use serde::{Deserialize, Serialize};

use crate::text::printable;

pub use redact::Redactor;

/// One use of a capability, or several of the same kind in one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRecord {
    /// When it was written down: ISO 8601, UTC, milliseconds.
    pub time: String,
    /// Who.
    pub plugin: String,
    /// `files`, `http`, `process`, `store` or `secrets`.
    pub capability: String,
    /// What was done: `read`, `walk`, `GET`, `spawn`, `get`, ….
    pub operation: String,
    /// On what: a path, a URL, a program with its arguments, a key, a name. Secrets are replaced.
    pub target: String,
    /// Whether it was let through.
    pub allowed: bool,
    /// What a person who was asked answered: `once`, `session`, `always` or `no`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// How many uses this entry stands for; of a walk or a batch, how many files.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
    /// How many bytes were read, written or received, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The tool call it was done in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

fn one() -> u64 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(count: &u64) -> bool {
    *count == 1
}

/// The longest target that is written, in bytes. Longer ones are cut, so that a plugin can not fill the log with one.
const MAX_TARGET: usize = 4 << 10;

impl AuditRecord {
    /// The present, as entries have it.
    pub fn now() -> String {
        let now = Timestamp::now();
        DateTimePrinter::new().precision(Some(3)).timestamp_to_string(&now)
    }

    /// When it was written down, in milliseconds since 1970; `None` if the text is no time.
    pub fn millis(&self) -> Option<i64> {
        self.time.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
    }

    /// The entry as a line of the file, with its line break; secrets replaced, and cut to a bounded length.
    ///
    /// # Errors
    /// None that is known; serialising is fallible by its type.
    pub fn to_line(&self, redactor: &Redactor) -> Result<String, serde_json::Error> {
        let mut target = match self.capability.as_str() {
            "http" => redactor.url(&self.target),
            "process" => redactor.command(&self.target),
            _ => redactor.known(&self.target),
        };
        if target.len() > MAX_TARGET {
            target.truncate(target.floor_char_boundary(MAX_TARGET));
            target.push('…');
        }
        let mut line = serde_json::to_string(&Self { target, ..self.clone() })?;
        line.push('\n');
        Ok(line)
    }

    /// Reads a line of the file; `None` for one that is torn or of another version.
    pub fn from_line(line: &str) -> Option<Self> {
        serde_json::from_str(line.trim()).ok()
    }

    /// The entry as a row of the table that [`AuditRecord::heading`] begins. One line, safe for a terminal.
    pub fn row(&self) -> String {
        let time = self.time.get(..19).unwrap_or(&self.time).replace('T', " ");
        let verdict = if self.allowed { "allowed" } else { "denied" };
        let verdict = self.answer.as_ref().map_or_else(|| verdict.to_owned(), |answer| format!("{verdict} ({answer})"));
        let mut row = format!(
            "{:<19}  {:<16} {:<8} {:<12} {:<17} {:>10}  {}",
            printable(&time),
            printable(&self.plugin),
            printable(&self.capability),
            printable(&self.operation),
            printable(&verdict),
            self.bytes.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string()),
            printable(&self.target)
        );
        if self.count > 1 {
            let _ = write!(row, " (×{})", self.count);
        }
        row
    }

    /// The heading of the table.
    pub fn heading() -> String {
        format!(
            "{:<19}  {:<16} {:<8} {:<12} {:<17} {:>10}  TARGET",
            "TIME (UTC)", "PLUGIN", "ON", "OPERATION", "VERDICT", "BYTES"
        )
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
