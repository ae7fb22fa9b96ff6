//! Errors of scripts, as their authors can use them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use rquickjs::{CaughtError, Coerced, Exception, Object, Value};

use crate::place::{self, Place};

/// A script, as it was handed to the engine.
pub(crate) struct Source {
    /// The text as its author knows it.
    pub(crate) text: String,
    /// What was put in before it was run, in order.
    pub(crate) insertions: Vec<Insertion>,
}

/// A text that was put into a line before the script was run, so that columns after it moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insertion {
    /// The line, from 1.
    pub line: u32,
    /// How many bytes of the author's line come before it.
    pub column: u32,
    /// Its length in bytes.
    pub bytes: u32,
}

/// What the names of modules begin with that come with a plugin's engine.
const BUILT_IN: &str = "atoll:";

pub(crate) type Sources = BTreeMap<String, Source>;

/// What ended a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.one_line())]
pub struct ScriptError {
    /// What kind of end it was.
    pub kind: ScriptErrorKind,
    /// The name of the error, such as `TypeError`; empty if something else than an error was thrown.
    pub name: String,
    /// The message of the error, or what was thrown.
    pub message: String,
    /// The places in scripts on the way to where it was thrown, innermost first.
    pub stack: Box<[Place]>,
    /// The line with the place, with a mark below the column, for people.
    pub frame: Option<Box<str>>,
    /// What it comes of, a line each: the errors that it stands for, and its causes.
    pub reasons: Box<[String]>,
}

/// The kinds of [`ScriptError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptErrorKind {
    /// The script threw it, or can not be read.
    Thrown,
    /// [`crate::Host::interrupted`] ended it.
    Interrupted,
    /// It is over the memory of [`crate::Limits`].
    Memory,
    /// It recursed deeper than the stack of [`crate::Limits`].
    Stack,
    /// It waits for something that nothing will bring about.
    Stuck,
    /// It said itself that it is done: see [`crate::Ending`].
    Ended,
}

impl ScriptError {
    /// The stable code of an error that a user or a model is shown.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            ScriptErrorKind::Thrown | ScriptErrorKind::Stuck | ScriptErrorKind::Ended => "failed",
            ScriptErrorKind::Interrupted => "cancelled",
            ScriptErrorKind::Memory | ScriptErrorKind::Stack => "limit",
        }
    }

    /// Where it was thrown, if that is in a script.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        self.stack.first()
    }

    fn one_line(&self) -> String {
        let mut text = String::new();
        if let Some(place) = self.place() {
            text.push_str(&format!("{}:{}:{}: ", place.file, place.line, place.column));
        }
        if !self.name.is_empty() {
            text.push_str(&format!("{}: ", self.name));
        }
        text.push_str(&self.message.split_whitespace().collect::<Vec<_>>().join(" "));
        text
    }

    /// The error of a script that was interrupted where nothing else was known of it.
    #[must_use]
    pub fn interrupted() -> Self {
        Self::new(ScriptErrorKind::Interrupted, "it was interrupted")
    }

    pub(crate) fn new(kind: ScriptErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            name: String::new(),
            message: message.into(),
            stack: Box::default(),
            frame: None,
            reasons: Box::default(),
        }
    }

    /// Reads an error. That may run code of the script (accessors, `toString`), so nothing is borrowed meanwhile.
    pub(crate) fn of(caught: CaughtError<'_>, interrupted: bool, sources: &RefCell<Sources>) -> Self {
        match caught {
            CaughtError::Exception(exception) => Self::of_exception(&exception, interrupted, sources),
            CaughtError::Value(value) => Self::new(ScriptErrorKind::Thrown, shown(&value)),
            CaughtError::Error(error) => Self::new(ScriptErrorKind::Thrown, error.to_string()),
        }
    }

    /// The error that a thrown value stands for.
    pub(crate) fn of_thrown(thrown: Value<'_>, interrupted: bool, sources: &RefCell<Sources>) -> Self {
        let caught = match thrown.as_object().and_then(|object| Exception::from_object(object.clone())) {
            Some(exception) => CaughtError::Exception(exception),
            None => CaughtError::Value(thrown),
        };
        Self::of(caught, interrupted, sources)
    }

    fn of_exception(exception: &Exception<'_>, interrupted: bool, sources: &RefCell<Sources>) -> Self {
        let object: &Object<'_> = exception.as_object();
        let (name, message, stack) = (text_at(object, "name"), text_at(object, "message"), text_at(object, "stack"));
        let reasons = reasons(object).into_boxed_slice();
        let made_by = constructor(object);
        let cause = field(object, "cause").and_then(|cause| cause.as_object().map(|cause| text_at(cause, "stack")));
        let kind = match (name.as_str(), message.as_str()) {
            ("InternalError", "interrupted") if interrupted => ScriptErrorKind::Interrupted,
            ("InternalError", "out of memory") => ScriptErrorKind::Memory,
            ("RangeError" | "InternalError", "Maximum call stack size exceeded" | "stack overflow") => {
                ScriptErrorKind::Stack
            }
            _ => ScriptErrorKind::Thrown,
        };
        let sources = sources.borrow();
        let mut stack: Box<[Place]> = in_sources(&stack, &sources);
        // The engine says where the last argument is. Where that is an error, too, the two are in one place.
        if let Some(place) = stack.first_mut()
            && let Some(source) = sources.get(&place.file)
        {
            let cause = cause.map(|stack| in_sources(&stack, &sources));
            let same = cause.and_then(|stack| stack.first().cloned()).is_some_and(|cause| cause == *place);
            place::move_to_new(&source.text, place, &made_by, usize::from(same));
        }
        // What comes with the engine is no place that the author of a script knows.
        let is_own = |place: &&Place| !place.file.starts_with(BUILT_IN);
        let stack: Box<[Place]> = if stack.iter().any(|place| is_own(&place)) {
            stack.iter().filter(is_own).cloned().collect()
        } else {
            stack
        };
        let frame = stack
            .first()
            .and_then(|place| sources.get(&place.file).and_then(|source| place::frame(&source.text, place)))
            .map(String::into_boxed_str);
        Self { kind, name, message, stack, frame, reasons }
    }
}

/// The most errors that are named as what one stands for, and how far causes of causes are followed.
const REASONS: usize = 5;

/// What an object has there; nothing if reading it fails.
fn field<'js>(object: &Object<'js>, key: &str) -> Option<Value<'js>> {
    match object.get::<_, Value<'js>>(key) {
        Ok(value) => Some(value),
        Err(error) => {
            forget(object, &error);
            None
        }
    }
}

/// The text that an object has there; empty for anything else.
fn text_at(object: &Object<'_>, key: &str) -> String {
    field(object, key).map(|value| text_of(&value)).unwrap_or_default()
}

/// The name of what made an error.
fn constructor(object: &Object<'_>) -> String {
    let made_by = field(object, "constructor");
    made_by.as_ref().and_then(Value::as_object).map(|made_by| text_at(made_by, "name")).unwrap_or_default()
}

/// The errors that an error stands for, and its causes.
fn reasons(object: &Object<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(errors) = field(object, "errors").and_then(Value::into_array) {
        for at in 0..errors.len().min(REASONS) {
            match errors.get::<Value<'_>>(at) {
                Ok(one) => lines.push(format!("of {}", headline(&one))),
                Err(error) => drop(forget(object, &error)),
            }
        }
        let more = errors.len().saturating_sub(REASONS);
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
    }
    let mut next = field(object, "cause");
    for _ in 0..REASONS {
        let Some(cause) = next.filter(|cause| !cause.is_undefined()) else { break };
        lines.push(format!("caused by {}", headline(&cause)));
        next = cause.as_object().and_then(|cause| field(cause, "cause"));
    }
    lines
}

/// A thrown value in one line.
fn headline(value: &Value<'_>) -> String {
    /// In characters.
    const LONGEST: usize = 500;
    let text = match value.as_object() {
        Some(object) if object.is_error() => {
            let (name, message) = (text_at(object, "name"), text_at(object, "message"));
            format!("{name}{}{message}", if message.is_empty() { "" } else { ": " })
        }
        _ => shown(value),
    };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// The places of a stack that are in scripts.
fn in_sources(stack: &str, sources: &Sources) -> Box<[Place]> {
    place::of_stack(stack).into_iter().filter_map(|place| in_source(place, sources)).collect()
}

/// A text that an error holds; empty for anything else.
fn text_of(value: &Value<'_>) -> String {
    value.as_string().map(text).unwrap_or_default()
}

/// A thrown value that is no error, as text.
fn shown(value: &Value<'_>) -> String {
    match value.get::<Coerced<rquickjs::String<'_>>>() {
        Ok(Coerced(it)) => match text(&it) {
            // Of no use to anybody.
            nothing if nothing == "[object Object]" => as_data(value).unwrap_or(nothing),
            text => text,
        },
        Err(error) => {
            forget(value, &error);
            "a value that can not be shown as text".to_owned()
        }
    }
}

/// An object that was thrown, as JSON; `None` if there is nothing in it, or too much.
fn as_data(value: &Value<'_>) -> Option<String> {
    /// In bytes.
    const LONGEST: usize = 2_000;
    match value.ctx().json_stringify(value.clone()) {
        Ok(json) => json.map(|json| text(&json)).filter(|json| json != "{}" && json.len() <= LONGEST),
        Err(error) => {
            forget(value, &error);
            None
        }
    }
}

/// The longest text of an error, in bytes: whoever reads it reads its beginning.
const LONGEST: usize = 16 << 10;

/// A string of a script, up to [`LONGEST`]. What is no Unicode in it is replaced.
fn text(string: &rquickjs::String<'_>) -> String {
    let Ok(held) = string.clone().to_cstring() else { return "(a text that there is no room for)".to_owned() };
    // SAFETY: the engine gave this many bytes, and they live as long as `held`.
    let bytes = unsafe { std::slice::from_raw_parts(held.as_ptr().cast::<u8>(), held.len()) };
    match bytes.get(..LONGEST) {
        Some(begin) if bytes.len() > LONGEST => format!("{}…", String::from_utf8_lossy(begin)),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Takes an error that reading an error threw off the engine, where the next call would find it.
fn forget(value: &Value<'_>, _: &rquickjs::Error) -> String {
    drop(value.ctx().catch());
    String::new()
}

/// The place as the author of the script counts; `None` if it is not in a script.
fn in_source(mut place: Place, sources: &Sources) -> Option<Place> {
    let source = sources.get(&place.file)?;
    let line = source.text.lines().nth((place.line as usize).checked_sub(1)?)?;
    // The engine counts bytes of the code that it was given.
    let in_code = place.column.saturating_sub(1);
    let mut put_in = 0_u32;
    let mut column = None;
    for inserted in source.insertions.iter().filter(|inserted| inserted.line == place.line) {
        let begins = inserted.column.saturating_add(put_in);
        if in_code < begins {
            break;
        }
        put_in = put_in.saturating_add(inserted.bytes);
        // What is in something that was put in is where that was put in.
        column = (in_code < begins.saturating_add(inserted.bytes)).then_some(inserted.column);
    }
    let column = column.unwrap_or_else(|| in_code.saturating_sub(put_in));
    place.column = place::utf16_column(line, column.saturating_add(1));
    Some(place)
}
