//! How a script's end is told to the model.

use atoll_js::{ScriptError, ScriptErrorKind};

/// The most places of a stack that are shown.
const PLACES: usize = 10;

/// A limit that ended a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Its own `timeout_ms`, in milliseconds; or with none the time that whoever runs it gave.
    Timeout(Option<u32>),
    /// Computing, in milliseconds.
    Cpu(u64),
    /// Too much was said.
    Output,
    /// Values and code, in bytes.
    Memory(usize),
    /// It recursed too deep, and nothing caught that.
    Stack,
}

impl Limit {
    /// The name that stands for it everywhere.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Timeout(_) => "timeout",
            Self::Cpu(_) => "cpu-ms",
            Self::Output => "output",
            Self::Memory(_) => "memory",
            Self::Stack => "stack",
        }
    }

    fn said(self) -> String {
        match self {
            Self::Timeout(Some(milliseconds)) => {
                format!("The script reached the limit `timeout` ({milliseconds} ms) and was ended")
            }
            Self::Timeout(None) => {
                "The script reached the limit `timeout` that it was started with and was ended".to_owned()
            }
            Self::Cpu(milliseconds) => format!(
                "The script reached the limit `cpu-ms` ({milliseconds} ms of computing) and was ended: look for an endless \
                 loop or a regular expression that tries too much"
            ),
            Self::Output => {
                "The script reached the limit `output` (16 Mi characters, 64 MiB with pictures, or 100,000 items) and was \
                 ended; what came before is shown"
                    .to_owned()
            }
            Self::Memory(bytes) => format!(
                "The script reached the limit `memory` ({} MiB): keep less at once, and let go of what is done",
                bytes >> 20
            ),
            Self::Stack => "The script reached the limit `stack`: it recursed too deep".to_owned(),
        }
    }
}

/// The end of a script that failed, for the model.
pub(crate) fn said(
    error: &ScriptError,
    limit: Option<Limit>,
    awaited: &[&str],
    calls_made: &str,
    hint: Option<&str>,
) -> String {
    let mut lines = Vec::new();
    match limit {
        Some(limit) => {
            lines.push(limit.said());
            if !awaited.is_empty() {
                lines.push(format!("running at that time: {}", awaited.join(", ")));
            }
        }
        None if error.kind == ScriptErrorKind::Stuck => {
            lines.push(
                "The script waits for a promise that nothing is left to settle: no call and no timer is under way. It was \
                 ended. A promise made with `new Promise` has to be resolved by something."
                    .to_owned(),
            );
        }
        None => {
            let name = if error.name.is_empty() {
                "The script threw something that is no error: "
            } else {
                error.name.as_str()
            };
            let joint = if error.name.is_empty() || error.message.is_empty() { "" } else { ": " };
            lines.push(format!("{name}{joint}{}", error.message));
            if let Some(hint) = hint {
                lines.push(format!("Hint: {hint}"));
            }
        }
    }
    lines.extend(error.reasons.iter().map(|reason| format!("  {reason}")));
    for place in error.stack.iter().take(PLACES) {
        lines.push(format!("  at line {}:{}", place.line, place.column));
    }
    let more = error.stack.len().saturating_sub(PLACES);
    if more > 0 {
        lines.push(format!("  and {more} more"));
    }
    if let Some(frame) = &error.frame {
        lines.push(frame.to_string());
    }
    if !calls_made.is_empty() {
        lines.push(calls_made.to_owned());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use atoll_js::Place;

    use super::*;

    fn error(kind: ScriptErrorKind, name: &str, message: &str, lines: u32) -> ScriptError {
        let place = |line| Place { file: "script".to_owned(), line, column: 2 };
        ScriptError {
            kind,
            name: name.to_owned(),
            message: message.to_owned(),
            stack: (1..=lines).map(place).collect(),
            frame: (lines > 0).then(|| "> 1 | x".into()),
            reasons: Box::default(),
        }
    }

    #[test]
    fn each_end_says_what_happened_and_where() {
        use ScriptErrorKind::{Interrupted, Stuck, Thrown};
        let shown = [
            said(&error(Thrown, "TypeError", "no", 2), None, &[], "2 calls were made", None),
            said(&error(Thrown, "ReferenceError", "fetch is not defined", 12), None, &[], "", Some("use a tool")),
            said(&error(Thrown, "", "text", 0), None, &[], "", None),
            said(&error(Thrown, "Error", "", 0), None, &[], "", None),
            said(&error(Stuck, "", "it waits", 0), None, &[], "", None),
            said(&error(Interrupted, "", "", 0), Some(Limit::Timeout(Some(500))), &["read", "bash"], "", None),
            said(&error(Interrupted, "", "", 0), Some(Limit::Timeout(None)), &[], "", None),
            said(&error(Interrupted, "", "", 0), Some(Limit::Cpu(30_000)), &[], "", None),
            said(&error(Interrupted, "", "", 0), Some(Limit::Output), &[], "", None),
            said(&error(ScriptErrorKind::Memory, "", "", 0), Some(Limit::Memory(256 << 20)), &[], "", None),
            said(&error(ScriptErrorKind::Stack, "", "", 1), Some(Limit::Stack), &[], "", None),
        ];
        insta::assert_snapshot!(shown.join("\n----\n"));
    }
}
