//! Errors of scripts, as their authors can use them.

use std::collections::HashMap;

use rquickjs::{CaughtError, Exception, Object, Value};

use crate::place::{self, Place};

/// A script, as it was handed to the engine.
pub(crate) struct Source {
    pub(crate) text: String,
    /// How many bytes the engine put before the first line.
    pub(crate) offset: u32,
}

/// What the names of modules begin with that come with a plugin's engine.
const BUILT_IN: &str = "atoll:";

pub(crate) type Sources = HashMap<String, Source>;

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
    /// Where it was thrown, if that is in a script.
    pub place: Option<Place>,
    /// The places in scripts on the way there, innermost first.
    pub stack: Box<[Place]>,
    /// The line with the place, with a mark below the column, for people.
    pub frame: Option<Box<str>>,
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
}

impl ScriptError {
    /// The stable code of an error that a user or a model is shown.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            ScriptErrorKind::Thrown | ScriptErrorKind::Stuck => "failed",
            ScriptErrorKind::Interrupted => "cancelled",
            ScriptErrorKind::Memory | ScriptErrorKind::Stack => "limit",
        }
    }

    fn one_line(&self) -> String {
        let mut text = String::new();
        if let Some(place) = &self.place {
            text.push_str(&format!("{}:{}:{}: ", place.file, place.line, place.column));
        }
        if !self.name.is_empty() {
            text.push_str(&format!("{}: ", self.name));
        }
        text.push_str(&self.message.split_whitespace().collect::<Vec<_>>().join(" "));
        text
    }

    pub(crate) fn new(kind: ScriptErrorKind, message: impl Into<String>) -> Self {
        Self { kind, name: String::new(), message: message.into(), place: None, stack: Box::default(), frame: None }
    }

    pub(crate) fn of(caught: CaughtError<'_>, interrupted: bool, sources: &Sources) -> Self {
        match caught {
            CaughtError::Exception(exception) => Self::of_exception(&exception, interrupted, sources),
            CaughtError::Value(value) => {
                let text =
                    value.get::<rquickjs::Coerced<String>>().map_or_else(|_| "a value".to_owned(), |text| text.0);
                Self::new(ScriptErrorKind::Thrown, text)
            }
            CaughtError::Error(error) => Self::new(ScriptErrorKind::Thrown, error.to_string()),
        }
    }

    /// The error that a thrown value stands for.
    pub(crate) fn of_thrown(thrown: Value<'_>, interrupted: bool, sources: &Sources) -> Self {
        let caught = match thrown.as_object().and_then(|object| Exception::from_object(object.clone())) {
            Some(exception) => CaughtError::Exception(exception),
            None => CaughtError::Value(thrown),
        };
        Self::of(caught, interrupted, sources)
    }

    fn of_exception(exception: &Exception<'_>, interrupted: bool, sources: &Sources) -> Self {
        let object: &Object<'_> = exception.as_object();
        let name: String = object.get("name").unwrap_or_default();
        let message = exception.message().unwrap_or_default();
        let kind = match (name.as_str(), message.as_str()) {
            ("InternalError", "interrupted") if interrupted => ScriptErrorKind::Interrupted,
            ("InternalError", "out of memory") => ScriptErrorKind::Memory,
            ("RangeError" | "InternalError", "Maximum call stack size exceeded" | "stack overflow") => {
                ScriptErrorKind::Stack
            }
            _ => ScriptErrorKind::Thrown,
        };
        let stack: Box<[Place]> = place::of_stack(&exception.stack().unwrap_or_default())
            .into_iter()
            .filter_map(|place| in_source(place, sources))
            .collect();
        // What comes with the engine is no place that the author of a script knows.
        let is_own = |place: &&Place| !place.file.starts_with(BUILT_IN);
        let stack: Box<[Place]> = if stack.iter().any(|place| is_own(&place)) {
            stack.iter().filter(is_own).cloned().collect()
        } else {
            stack
        };
        let place = stack.first().cloned();
        let frame = place
            .as_ref()
            .and_then(|place| sources.get(&place.file).and_then(|source| place::frame(&source.text, place)))
            .map(String::into_boxed_str);
        Self { kind, name, message, place, stack, frame }
    }
}

/// The place as the author of the script counts; `None` if it is not in a script.
fn in_source(mut place: Place, sources: &Sources) -> Option<Place> {
    let source = sources.get(&place.file)?;
    if place.line == 1 {
        place.column = place.column.saturating_sub(source.offset).max(1);
    }
    let line = source.text.lines().nth((place.line as usize).checked_sub(1)?)?;
    place.column = place::utf16_column(line, place.column);
    Some(place)
}
