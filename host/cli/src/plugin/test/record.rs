//! What a plugin did, in order, and how that is written down.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use atoll_table::extension::{Delivery, Tone};
use serde_json::Value;
use tokio::sync::Notify;

/// Something that a plugin did.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Effect {
    Log {
        level: String,
        line: String,
    },
    Notify {
        tone: Tone,
        message: String,
    },
    Status(Option<String>),
    Print(String),
    Entry {
        kind: String,
        data: Value,
    },
    Message {
        delivery: Delivery,
        kind: Option<String>,
        text: String,
    },
    Bus {
        topic: String,
        data: Value,
    },
    Http {
        request: String,
        answer: String,
    },
    Dialog {
        kind: &'static str,
        title: String,
        answer: Option<String>,
    },
    Model {
        prompt: String,
        answer: String,
    },
    /// A call that it made of a tool of the table.
    Call {
        tool: String,
        arguments: Value,
        text: String,
        is_error: bool,
    },
    /// Something else that it did to the session.
    Session(String),
    /// It failed where nobody waited for it.
    Failure(String),
}

pub(super) fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Info => "info",
        Tone::Warning => "warning",
        Tone::Error => "error",
    }
}

fn delivery(delivery: Delivery) -> &'static str {
    match delivery {
        Delivery::Steer => "steer",
        Delivery::FollowUp => "follow-up",
        Delivery::NextTurn => "next-turn",
    }
}

/// Without what leads the line.
impl Effect {
    /// What kind it is.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Log { .. } => "log",
            Self::Notify { .. } => "notify",
            Self::Status(_) => "status",
            Self::Print(_) => "print",
            Self::Entry { .. } => "entry",
            Self::Message { .. } => "message",
            Self::Bus { .. } => "bus",
            Self::Http { .. } => "http",
            Self::Dialog { .. } => "ui",
            Self::Model { .. } => "model",
            Self::Call { .. } => "call",
            Self::Session(_) => "session",
            Self::Failure(_) => "failure",
        }
    }

    /// What it is, in the words that are compared with what is expected.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Log { level, line } => format!("{level}: {line}"),
            Self::Notify { tone: of, message } => format!("{}: {message}", tone(*of)),
            Self::Status(text) => text.clone().unwrap_or_default(),
            Self::Entry { kind, data } => format!("{kind} {data}"),
            Self::Message { delivery: when, kind, text } => {
                let kind = kind.as_deref().unwrap_or("user");
                format!("{} {kind}: {text}", delivery(*when))
            }
            Self::Bus { topic, data } => format!("{topic} {data}"),
            Self::Http { request, .. } => request.clone(),
            Self::Dialog { kind, title, answer } => match answer {
                Some(answer) => format!("{kind} {title:?}: {answer}"),
                None => format!("{kind} {title:?}: no answer"),
            },
            Self::Model { prompt, answer } => format!("{prompt:?}: {answer:?}"),
            Self::Call { tool, arguments, text, is_error } => {
                let failed = if *is_error { "failed: " } else { "" };
                format!("{tool} {arguments}: {failed}{text}")
            }
            Self::Print(text) | Self::Session(text) | Self::Failure(text) => text.clone(),
        }
    }

    /// The part of [`Self::text`] that may be compared by itself.
    pub(super) fn short(&self) -> Option<&str> {
        match self {
            Self::Log { line, .. } => Some(line),
            Self::Notify { message, .. } => Some(message),
            Self::Message { text, .. } => Some(text),
            Self::Bus { topic, .. } => Some(topic),
            _ => None,
        }
    }
}

impl fmt::Display for Effect {
    /// A line of the transcript.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind(), self.text())?;
        match self {
            Self::Http { answer, .. } => write!(f, " -> {answer}"),
            _ => Ok(()),
        }
    }
}

/// What has happened so far.
#[derive(Default)]
pub(super) struct Record {
    effects: Mutex<Vec<Effect>>,
    /// What the scenario does not provide for.
    complaints: Mutex<Vec<String>>,
    changed: Notify,
}

impl Record {
    pub(super) fn add(&self, effect: Effect) {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner).push(effect);
        self.changed.notify_waiters();
    }

    /// The scenario does not say what is to come of this.
    pub(super) fn complain(&self, what: String) {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    pub(super) fn complaints(&self) -> Vec<String> {
        std::mem::take(&mut self.complaints.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn len(&self) -> usize {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// What has happened from a place on.
    pub(super) fn since(&self, from: usize) -> Vec<Effect> {
        let effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        effects.get(from..).unwrap_or_default().to_vec()
    }

    /// Waits until something that has happened is what is looked for.
    pub(super) async fn until(&self, is_it: impl Fn(&Effect) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on a change is noticed, even before it is waited for.
            changed.as_mut().enable();
            if self.since(0).iter().any(&is_it) {
                return;
            }
            changed.await;
        }
    }
}
