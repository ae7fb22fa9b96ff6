//! What is left of a script that is over: its result, and notes on what it did not wait for.

use std::time::Duration;

use atoll_js::{ScriptError, ScriptErrorKind};
use atoll_plugin::ToolOutput;
use serde_json::json;

use super::{About, MILLISECOND, Run};
use crate::failure::{self, Limit};
use crate::host;
use crate::realm::MEMORY;

/// How many promises that failed are noted one by one.
const NOTED: usize = 10;
/// How many of them are noted with their line.
const FRAMED: usize = 3;
/// A timer that is due so soon after the end is one that the script may have meant to wait for, in nanoseconds.
const SOON: u64 = 1_000 * MILLISECOND;

/// Notes timers that the script may have meant to wait for: many a one is left behind that was only to end its waiting.
pub(super) fn note_timers(run: &Run, timers: u32) {
    let returned = run.returned.borrow().0.is_some() && !run.only_if_silent.get();
    let is_silent = run.output.borrow().is_empty();
    if timers == 0 || returned || !(is_silent || run.sleeps.borrow().has_by(host::monotonic().saturating_add(SOON))) {
        return;
    }
    let were = if timers == 1 { "1 timer was".to_owned() } else { format!("{timers} timers were") };
    run.note(format!("{were} not waited for: `await new Promise((done) => setTimeout(done, 100))` waits."));
}

/// Notes what failed without anybody ever looking at it. What has no name of what called it is a promise.
pub(super) fn note_lost(run: &Run, lost: &[(String, ScriptError)]) {
    struct Note {
        text: String,
        times: usize,
        frame: Option<Box<str>>,
    }
    let mut notes: Vec<Note> = Vec::new();
    for (from, error) in lost {
        let at = error.place().map_or_else(String::new, |at| format!(" (line {}:{})", at.line, at.column));
        let name = if error.name.is_empty() { String::new() } else { format!("{}: ", error.name) };
        let what = if from.is_empty() {
            "A promise failed and nothing waited for it".to_owned()
        } else {
            format!("The callback of {from} failed")
        };
        let text = format!("{what}{at}: {name}{}", error.message);
        match notes.iter_mut().find(|known| known.text == text) {
            Some(known) => known.times += 1,
            None => notes.push(Note { text, times: 1, frame: error.frame.clone() }),
        }
    }
    let more: usize = notes.iter().skip(NOTED).map(|note| note.times).sum();
    for (at, Note { text, times, frame }) in notes.into_iter().take(NOTED).enumerate() {
        let times = if times == 1 { String::new() } else { format!(" ({times} times)") };
        let frame = frame.filter(|_| at < FRAMED).map_or_else(String::new, |frame| format!("\n{frame}"));
        run.note(format!("{text}{times}{frame}"));
    }
    if more > 0 {
        run.note(format!("{more} more of these failed and nothing waited for them."));
    }
}

/// The result of a script.
pub(super) fn result(run: &Run, ended: Result<(), ScriptError>, about: &About) -> ToolOutput {
    let now = host::monotonic();
    let mut calls = run.calls.borrow_mut();
    let awaited: Vec<String> = calls.under_way().into_iter().map(str::to_owned).collect();
    let (stopped, not_begun) = calls.stop(now);
    let mut output = run.output.take();
    let (mut returned, mut structured) = run.returned.take();
    if run.only_if_silent.get() && !output.is_empty() {
        (returned, structured) = (None, None);
    }
    let mut limit = run.limit.get();
    let error = match ended {
        Err(error) if error.kind == ScriptErrorKind::Ended => None,
        ended => ended.err(),
    };
    if let Some(text) = returned
        && output.text(text).is_err()
    {
        limit = limit.or(Some(Limit::Output));
    }
    if error.is_none() {
        if !stopped.is_empty() {
            output.note(format!("Stopped with the script: {}.", short_list(&stopped)));
        }
        if !not_begun.is_empty() {
            output.note(format!("Not begun when the script ended: {}.", short_list(&not_begun)));
        }
    }
    limit = limit.or(match error.as_ref().map(|error| error.kind) {
        Some(ScriptErrorKind::Memory) => Some(Limit::Memory(MEMORY)),
        Some(ScriptErrorKind::Stack) => Some(Limit::Stack),
        _ => None,
    });
    let error = error.or_else(|| limit.map(|_| ScriptError::interrupted()));
    let awaited: Vec<&str> = awaited.iter().take(5).map(String::as_str).collect();
    host::shape(&run.id, run.options.max_output_tokens.saturating_mul(4));
    let failure =
        error.as_ref().map(|error| failure::said(error, limit, &awaited, &calls.done(), about.hint.as_deref()));
    let seconds = Duration::from_nanos(now.saturating_sub(run.begun)).as_secs_f64();
    let made = match calls.count_made() {
        0 => String::new(),
        1 => ", 1 call".to_owned(),
        many => format!(", {many} calls"),
    };
    let status = match failure {
        None => format!("Completed in {seconds:.2} s{made}."),
        Some(_) => format!("Failed after {seconds:.2} s{made}."),
    };
    let is_error = failure.is_some();
    let (content, parts) = output.into_content(status, failure);
    let (records, omitted) = calls.details(&run.id);
    let mut details = json!({"calls": records, "parts": parts});
    if let Some(fields) = details.as_object_mut() {
        if omitted > 0 {
            fields.insert("callsOmitted".to_owned(), omitted.into());
        }
        if let Some(limit) = limit {
            fields.insert("limit".to_owned(), limit.name().into());
        }
        if let Some(error) = &error {
            let code = match limit {
                Some(Limit::Timeout(_)) => "timeout",
                Some(_) => "limit",
                None => about.code.unwrap_or("failed"),
            };
            fields.insert("error".to_owned(), json!({"code": code, "message": error.message}));
        }
    }
    ToolOutput {
        content,
        details: Some(details.to_string()),
        structured: structured.filter(|_| !is_error),
        is_error,
        terminate: false,
        usage: None,
    }
}

fn short_list(names: &[String]) -> String {
    const MOST: usize = 10;
    let shown = names.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > MOST { format!("{shown} and {} more", names.len() - MOST) } else { shown }
}
