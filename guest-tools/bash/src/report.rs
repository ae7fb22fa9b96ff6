//! What a command's end looks like to the model and to scripts.

use atoll_plugin::ToolOutput;
use atoll_tool_text::{Cut, MAX_BYTES, MAX_LINES, format_size, showing, with_footer};
use serde_json::{Value, json};

use crate::capture::Capture;

/// Why a command was killed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Stop {
    /// After this many seconds, as the model had asked.
    Time(f64),
    /// It had printed more than this many bytes.
    Output(u64),
}

impl Stop {
    pub(crate) fn is_time(self) -> bool {
        matches!(self, Self::Time(_))
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ending {
    /// Its exit code; 128 + n if signal n ended it.
    pub(crate) code: i32,
    /// It did not end by itself.
    pub(crate) stopped: Option<Stop>,
    /// It had exited, but processes it had started still held its output.
    pub(crate) held: bool,
    /// Seconds from its start to its end.
    pub(crate) seconds: f64,
}

/// Where the whole output is, if not all of it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Full {
    /// Nothing was left out.
    Shown,
    /// In this file.
    File(String),
    /// Its first bytes are in this file, and the rest is nowhere.
    Start { path: String, bytes: u64 },
    /// Nowhere, for this reason.
    Lost(String),
}

impl Full {
    fn path(&self) -> Option<&str> {
        match self {
            Self::File(path) | Self::Start { path, .. } => Some(path),
            Self::Shown | Self::Lost(_) => None,
        }
    }
}

/// Whether something is left out for the model or for scripts, so that the whole output is worth keeping.
pub(crate) fn leaves_out(capture: &Capture) -> bool {
    cut(capture).is_some() || capture.for_scripts().1
}

/// What the tool gives.
pub(crate) fn report(capture: &Capture, ending: &Ending, full: &Full) -> ToolOutput {
    let (output, truncated) = capture.for_scripts();
    let mut structured = json!({
        "output": output,
        "truncated": truncated,
        "exit_code": ending.code,
        "wall_time_seconds": (ending.seconds * 1000.0).round() / 1000.0,
    });
    if let Some(path) = full.path() {
        structured["full_output_path"] = json!(path);
    }
    let failed = ending.stopped.is_some() || ending.code != 0;
    let report = ToolOutput::text(text(capture, ending, full)).with_structured(&structured).with_error(failed);
    match details(capture, full) {
        Some(details) => report.with_details(&details),
        None => report,
    }
}

/// What cut the text for the model.
fn cut(capture: &Capture) -> Option<Cut> {
    // If a line that was too long to keep was overwritten, what came before it is gone although there is room.
    capture.tail().cut.or(capture.dropped().then_some(Cut::Bytes))
}

/// The text for the model.
fn text(capture: &Capture, ending: &Ending, full: &Full) -> String {
    let tail = capture.tail();
    let mut text = if tail.text.trim().is_empty() { "(no output)".to_owned() } else { tail.text.to_owned() };
    let place = match full {
        Full::Shown => String::new(),
        Full::File(path) => format!("Full output: {path}"),
        Full::Start { path, bytes } => {
            format!("Only the first {} of the output were kept: {path}", format_size(*bytes))
        }
        Full::Lost(reason) => format!("The full output was not kept: {reason}"),
    };
    let total = capture.total_lines();
    if tail.partial {
        let (shown, line) = (format_size(tail.text.len() as u64), format_size(capture.last_line_bytes()));
        text = with_footer(&text, &format!("[Showing last {shown} of line {total} (line is {line}). {place}]"));
    } else if let Some(cut) = cut(capture) {
        text = with_footer(&text, &showing(total + 1 - tail.lines, total, total, cut, &place));
    }
    let status = match ending.stopped {
        Some(Stop::Time(seconds)) => Some(format!("Command timed out after {seconds} seconds")),
        Some(Stop::Output(most)) => Some(format!("Command stopped by the limit command-output-bytes ({most})")),
        None if ending.code != 0 => Some(format!("Command exited with code {}", ending.code)),
        None => None,
    };
    if let Some(status) = status {
        text = with_footer(&text, &status);
    }
    if ending.held {
        let note = "[The command itself had ended, but processes it left in the background still held its output; \
                    nothing they wrote later is shown.]";
        text = with_footer(&text, note);
    }
    text
}

/// What was cut, for whoever shows the call.
fn details(capture: &Capture, full: &Full) -> Option<Value> {
    let tail = capture.tail();
    let cut = cut(capture)?;
    let mut details = json!({ "truncation": {
        "truncated": true,
        "truncatedBy": match cut { Cut::Lines => "lines", Cut::Bytes => "bytes" },
        "totalLines": capture.total_lines(),
        "totalBytes": capture.total_bytes(),
        "outputLines": tail.lines,
        "outputBytes": tail.text.len(),
        "lastLinePartial": tail.partial,
        "maxLines": MAX_LINES,
        "maxBytes": MAX_BYTES,
    }});
    if let Some(path) = full.path() {
        details["fullOutputPath"] = json!(path);
    }
    Some(details)
}

#[cfg(test)]
mod tests {
    use atoll_plugin::Content;

    use super::*;

    const GOOD: Ending = Ending { code: 0, stopped: None, held: false, seconds: 0.1234 };

    fn captured(output: &str) -> Capture {
        let mut capture = Capture::new();
        for piece in output.as_bytes().chunks(65_536) {
            capture.push(piece);
        }
        capture.finish();
        capture
    }

    fn shown(output: &str, ending: &Ending) -> (String, bool) {
        let capture = captured(output);
        let full = if leaves_out(&capture) { Full::File("/spill/x.log".into()) } else { Full::Shown };
        let report = report(&capture, ending, &full);
        let Some(Content::Text(text)) = report.content.into_iter().next() else { panic!("no text") };
        (text, report.is_error)
    }

    #[test]
    fn success_is_the_output_as_it_is() {
        assert_eq!(shown("hi\n", &GOOD), ("hi\n".to_owned(), false));
        assert_eq!(shown("", &GOOD).0, "(no output)");
        assert_eq!(shown(" \n\n", &GOOD).0, "(no output)");
    }

    #[test]
    fn failure_names_the_code() {
        let bad = Ending { code: 3, ..GOOD };
        assert_eq!(shown("oops\n", &bad), ("oops\n\nCommand exited with code 3".to_owned(), true));
        assert_eq!(shown("", &bad).0, "(no output)\n\nCommand exited with code 3");
    }

    #[test]
    fn timeouts_name_the_time() {
        let late = Ending { code: 137, stopped: Some(Stop::Time(0.5)), ..GOOD };
        assert_eq!(shown("a", &late), ("a\n\nCommand timed out after 0.5 seconds".to_owned(), true));
        let late = Ending { stopped: Some(Stop::Time(5.0)), held: true, ..late };
        let (text, _) = shown("a", &late);
        assert!(text.starts_with("a\n\nCommand timed out after 5 seconds\n\n[The command itself had ended"));
    }

    #[test]
    fn too_much_output_names_the_limit_and_what_was_kept() {
        let stopped = Ending { code: 137, stopped: Some(Stop::Output(1024)), ..GOOD };
        let capture = captured(&"y\n".repeat(3000));
        let full = Full::Start { path: "/spill/x.log".into(), bytes: 512 };
        let report = report(&capture, &stopped, &full);
        assert!(report.is_error && report.structured.unwrap_or_default().contains("\"/spill/x.log\""));
        let Some(Content::Text(text)) = report.content.into_iter().next() else { panic!("no text") };
        let end = "\ny\n\n[Showing lines 1001-3000 of 3000. Only the first 512B of the output were kept: \
                   /spill/x.log]\n\nCommand stopped by the limit command-output-bytes (1024)";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn background_processes_do_not_make_it_fail() {
        let (text, failed) = shown("a\n", &Ending { held: true, ..GOOD });
        assert!(text.starts_with("a\n\n[The command itself") && !failed);
    }

    #[test]
    fn cut_outputs_say_where_the_rest_is() {
        let output: String = (1..=3000).map(|n| format!("{n}\n")).collect();
        let (text, _) = shown(&output, &Ending { code: 1, ..GOOD });
        assert!(text.starts_with("1001\n"));
        let end =
            "\n3000\n\n[Showing lines 1001-3000 of 3000. Full output: /spill/x.log]\n\nCommand exited with code 1";
        assert!(text.ends_with(end));

        let output = format!("{}\n", "x".repeat(1023)).repeat(100);
        let (text, _) = shown(&output, &GOOD);
        assert!(text.ends_with("\n\n[Showing lines 51-100 of 100 (50.0KB limit). Full output: /spill/x.log]"));

        let (text, _) = shown(&format!("a\n{}", "y".repeat(200_000)), &GOOD);
        let end = "yyy\n\n[Showing last 50.0KB of line 2 (line is 195.3KB). Full output: /spill/x.log]";
        assert!(text.ends_with(end));
    }

    #[test]
    fn scripts_get_the_raw_output_and_the_facts() {
        let capture = captured("\u{1b}[1mx\0y\u{1b}[m");
        let report = report(&capture, &GOOD, &Full::Shown);
        let structured: Value = serde_json::from_str(&report.structured.unwrap_or_default()).unwrap_or_default();
        assert_eq!(
            structured,
            json!({"output": "\u{1b}[1mx\0y\u{1b}[m", "truncated": false, "exit_code": 0, "wall_time_seconds": 0.123})
        );
        assert_eq!(report.details, None);
    }

    #[test]
    fn an_overwritten_line_that_was_too_long_still_counts_as_cut() {
        let (text, _) = shown(&format!("a\n{}\rend", "z".repeat(900_000)), &GOOD);
        assert!(text.starts_with("end\n\n[Showing lines 2-2 of 2 (50.0KB limit)."), "{text}");
    }
}
