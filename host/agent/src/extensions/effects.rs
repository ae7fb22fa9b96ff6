//! What answers of handlers come to, event by event. Pure: nothing here asks anybody or changes a session.
//!
//! An answer that means nothing is an error, and leaves everything as it was.

use atoll_table::{
    Content, Error,
    extension::{EventKind, Outcome},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::message::{CustomMessage, Message};

/// Whether later handlers are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// They are.
    On,
    /// They are not.
    End,
}

fn misfit(kind: EventKind, outcome: &Outcome) -> Error {
    Error::InvalidArguments(format!("its answer to {kind} was `{}`, which means nothing there", outcome.name()))
}

/// The fields of a reply; none if there is nothing to do.
pub(super) fn reply(kind: EventKind, outcome: Outcome) -> Result<Option<Map<String, Value>>, Error> {
    match outcome {
        Outcome::Pass => Ok(None),
        Outcome::Reply(fields) => Ok(Some(fields)),
        other => Err(misfit(kind, &other)),
    }
}

/// Takes a field out and reads it. One that is absent or `null` is none.
pub(super) fn field<T: DeserializeOwned>(
    kind: EventKind,
    fields: &mut Map<String, Value>,
    name: &str,
) -> Result<Option<T>, Error> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => serde_json::from_value(value).map(Some).map_err(|error| wrong(kind, name, &error.to_string())),
    }
}

pub(super) fn wrong(kind: EventKind, name: &str, reason: &str) -> Error {
    Error::InvalidArguments(format!("`{name}` of its answer to {kind} can not be used: {reason}"))
}

/// What becomes of what the user typed.
#[derive(Clone, Debug, PartialEq)]
pub enum InputEffect {
    /// It goes on, as it is here.
    Go(Vec<Content>),
    /// It is dealt with.
    Handled,
}

pub(super) struct InputState {
    pub(super) text: String,
    pub(super) images: Vec<Content>,
    pub(super) handled: bool,
}

impl InputState {
    pub(super) fn apply(&mut self, outcome: Outcome) -> Result<Flow, Error> {
        match outcome {
            Outcome::Pass => Ok(Flow::On),
            Outcome::Transform { text, images } => {
                self.text = text;
                if let Some(images) = images {
                    self.images = images;
                }
                Ok(Flow::On)
            }
            Outcome::Handled => {
                self.handled = true;
                Ok(Flow::End)
            }
            other => Err(misfit(EventKind::Input, &other)),
        }
    }

    pub(super) fn effect(self) -> InputEffect {
        if self.handled {
            return InputEffect::Handled;
        }
        InputEffect::Go([Content::text(self.text)].into_iter().chain(self.images).collect())
    }
}

/// What a run is begun with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BeforeStart {
    /// What begins it, as it was said.
    pub content: Vec<Content>,
    /// Names of the tools that are declared.
    pub tools: Vec<String>,
    /// The sections of the system prompt.
    pub sections: Map<String, Value>,
    /// The system prompt, as one text.
    pub prompt: String,
    /// The prompt is not the session's.
    pub is_changed: bool,
    /// Messages to add, in order.
    pub messages: Vec<CustomMessage>,
}

/// A message of an extension's own kind, as handlers write it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct MessageDraft {
    custom_type: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    display: bool,
    #[serde(default)]
    details: Option<Value>,
}

impl MessageDraft {
    fn message(self) -> Result<CustomMessage, String> {
        let Self { custom_type, content, display, details } = self;
        let content = json!({"customType": custom_type, "content": content, "display": display});
        let message: CustomMessage = serde_json::from_value(content).map_err(|error| error.to_string())?;
        Ok(CustomMessage { details, ..message })
    }
}

impl BeforeStart {
    pub(super) fn fields(&self) -> Value {
        let images: Vec<&Content> =
            self.content.iter().filter(|piece| matches!(piece, Content::Image { .. })).collect();
        json!({
            "messageType": "user",
            "prompt": Content::joined_text(&self.content),
            "images": images,
            "systemPrompt": self.prompt,
            "systemPromptOptions": {"selectedTools": self.tools, "sections": self.sections},
        })
    }

    pub(super) fn apply(&mut self, outcome: Outcome) -> Result<Flow, Error> {
        let kind = EventKind::BeforeAgentStart;
        let Some(mut fields) = reply(kind, outcome)? else { return Ok(Flow::On) };
        let message: Option<MessageDraft> = field(kind, &mut fields, "message")?;
        let message =
            message.map(MessageDraft::message).transpose().map_err(|reason| wrong(kind, "message", &reason))?;
        let prompt: Option<String> = field(kind, &mut fields, "systemPrompt")?;
        let options: Option<Map<String, Value>> = field(kind, &mut fields, "systemPromptOptions")?;
        let mut sections = None;
        if let Some(mut options) = options {
            // Handlers may give back what they were given.
            if options.remove("selectedTools").is_some_and(|tools| tools != json!(self.tools)) {
                let reason = "the tools are chosen with `table.activate`";
                return Err(wrong(kind, "systemPromptOptions.selectedTools", reason));
            }
            sections = field::<Map<String, Value>>(kind, &mut options, "sections")?;
            if let Some(sections) = &sections
                && let Some((name, _)) = sections.iter().find(|(_, text)| !text.is_string() && !text.is_null())
            {
                return Err(wrong(kind, &format!("systemPromptOptions.sections.{name}"), "it is no text"));
            }
        }
        self.messages.extend(message);
        if let Some(sections) = sections.filter(|sections| *sections != self.sections) {
            for (name, text) in sections {
                if text.is_null() {
                    self.sections.shift_remove(&name);
                } else {
                    self.sections.insert(name, text);
                }
            }
            let texts: Vec<&str> =
                self.sections.values().filter_map(Value::as_str).filter(|text| !text.is_empty()).collect();
            self.prompt = texts.join("\n\n");
            self.is_changed = true;
        }
        if let Some(prompt) = prompt.filter(|prompt| *prompt != self.prompt) {
            self.prompt = prompt;
            self.is_changed = true;
        }
        Ok(Flow::On)
    }
}

/// What a model is sent.
pub(crate) struct ContextEffect {
    pub(crate) messages: Vec<Message>,
}

impl ContextEffect {
    pub(super) fn fields(&self, kind: EventKind) -> Value {
        let with_system = kind == EventKind::ContextWithSystem;
        let shown = |message: &&Message| with_system || !matches!(message, Message::System(_));
        json!({"messages": self.messages.iter().filter(shown).collect::<Vec<_>>()})
    }

    pub(super) fn apply(&mut self, kind: EventKind, outcome: Outcome) -> Result<Flow, Error> {
        let Some(mut fields) = reply(kind, outcome)? else { return Ok(Flow::On) };
        let Some(messages) = field::<Vec<Value>>(kind, &mut fields, "messages")? else { return Ok(Flow::On) };
        let mut read = Vec::with_capacity(messages.len());
        for (at, message) in messages.into_iter().enumerate() {
            read.push(message_of(message).map_err(|reason| wrong(kind, &format!("messages[{at}]"), &reason))?);
        }
        if kind == EventKind::ContextWithSystem {
            if !matches!(read.first(), Some(Message::System(_))) {
                return Err(wrong(kind, "messages", "they do not begin with the instructions"));
            }
            self.messages = read;
            return Ok(Flow::On);
        }
        if read.iter().any(|message| matches!(message, Message::System(_))) {
            return Err(wrong(kind, "messages", "instructions are for context-with-system"));
        }
        let instructions = std::mem::take(&mut self.messages).into_iter();
        self.messages = instructions.filter(|message| matches!(message, Message::System(_))).chain(read).collect();
        Ok(Flow::On)
    }
}

/// A message, of a role that is known.
fn message_of(value: Value) -> Result<Message, String> {
    let role = value["role"].as_str().unwrap_or_default().to_owned();
    match serde_json::from_value(value) {
        // A message of a known role that can not be read is not one of another role.
        Ok(Message::Other(_)) if ["system", "user", "assistant", "toolResult", "custom"].contains(&role.as_str()) => {
            Err(format!("it is no message of the role `{role}`"))
        }
        Ok(Message::Other(value)) if !value.is_object() || role.is_empty() => Err("it has no role".to_owned()),
        Ok(message) => Ok(message),
        Err(error) => Err(error.to_string()),
    }
}

/// What takes the place of a message.
pub(crate) struct MessageEffect {
    pub(crate) message: Message,
}

impl MessageEffect {
    pub(super) fn apply(&mut self, outcome: Outcome) -> Result<Flow, Error> {
        let kind = EventKind::MessageEnd;
        let Some(mut fields) = reply(kind, outcome)? else { return Ok(Flow::On) };
        let Some(message) = field::<Value>(kind, &mut fields, "message")? else { return Ok(Flow::On) };
        let message = message_of(message).map_err(|reason| wrong(kind, "message", &reason))?;
        if message.role() != self.message.role() {
            let reason = format!("its role is {}, and has to stay {}", message.role(), self.message.role());
            return Err(wrong(kind, "message", &reason));
        }
        self.message = message;
        Ok(Flow::On)
    }
}

/// An entry that a handler wants in the session.
#[derive(Clone, Debug, PartialEq)]
pub enum Draft {
    /// Data that no model sees.
    Custom {
        /// The kind.
        custom_type: String,
        /// The data.
        data: Value,
    },
    /// A message.
    Message(CustomMessage),
    /// Other content in place of an entry's.
    Edit {
        /// The entry.
        target: String,
        /// The content; `null` for none.
        replacement: Value,
    },
    /// A summary in place of what was before an entry.
    Compaction {
        /// The summary.
        summary: String,
        /// The first entry that stays.
        first_kept: String,
        /// How many tokens there were.
        tokens_before: u64,
        /// Data with it.
        details: Value,
    },
}

impl Draft {
    fn of(value: Value) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
        enum Written {
            Custom {
                custom_type: String,
                #[serde(default)]
                data: Value,
            },
            CustomMessage(MessageDraft),
            ContextEdit {
                target_id: String,
                replacement: Value,
            },
            Compaction {
                summary: String,
                first_kept_entry_id: String,
                #[serde(default)]
                tokens_before: u64,
                #[serde(default)]
                details: Value,
            },
        }
        Ok(match serde_json::from_value(value).map_err(|error| error.to_string())? {
            Written::Custom { custom_type, data } => Self::Custom { custom_type, data },
            Written::CustomMessage(draft) => Self::Message(draft.message()?),
            Written::ContextEdit { target_id, replacement } => Self::Edit { target: target_id, replacement },
            Written::Compaction { summary, first_kept_entry_id, tokens_before, details } => {
                Self::Compaction { summary, first_kept: first_kept_entry_id, tokens_before, details }
            }
        })
    }
}

/// What is added at the end of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnReply {
    /// Entries to append, in order.
    pub entries: Vec<Draft>,
    /// There is to be one more request.
    pub go_on: bool,
}

impl TurnReply {
    pub(super) fn apply(
        &mut self,
        kind: EventKind,
        outcome: Outcome,
        known: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Flow, Error> {
        let Some(mut fields) = reply(kind, outcome)? else { return Ok(Flow::On) };
        let go_on: Option<bool> = field(kind, &mut fields, "continue")?;
        let mut entries = Vec::new();
        for (at, entry) in
            field::<Vec<Value>>(kind, &mut fields, "entries")?.unwrap_or_default().into_iter().enumerate()
        {
            let draft = Draft::of(entry).map_err(|reason| wrong(kind, &format!("entries[{at}]"), &reason))?;
            if let Draft::Edit { target: id, .. } | Draft::Compaction { first_kept: id, .. } = &draft
                && !known(id)
            {
                return Err(wrong(kind, &format!("entries[{at}]"), &format!("the session has no entry `{id}`")));
            }
            entries.push(draft);
        }
        self.entries.extend(entries);
        self.go_on |= go_on.unwrap_or_default();
        Ok(Flow::On)
    }
}

#[cfg(test)]
#[path = "effects_tests.rs"]
mod tests;
