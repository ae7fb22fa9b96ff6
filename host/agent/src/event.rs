//! What happens during a run, in the shape of JSON mode: one object a line.

use std::sync::Arc;

use atoll_table::{
    Content, Data, ToolOutput,
    extension::EventKind,
    model::{ThinkingLevel, Usage},
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    message::{Message, ToolCall},
    nested_calls::{NestedEvent, NestedStep},
};

/// Something happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Event {
    /// A run begins.
    AgentStart,
    /// A run has ended.
    AgentEnd {
        /// The messages it added.
        messages: Vec<Message>,
        /// It will be tried again.
        will_retry: bool,
    },
    /// Nothing more will come for this prompt.
    AgentSettled {
        /// The user stopped it.
        aborted: bool,
    },
    /// A turn begins.
    TurnStart,
    /// A turn has ended.
    TurnEnd {
        /// The assistant's message.
        message: Message,
        /// The results of its calls.
        tool_results: Vec<Message>,
    },
    /// A message begins.
    MessageStart {
        /// As far as it is known.
        message: Message,
    },
    /// An assistant's message grows.
    MessageUpdate {
        /// Tokens so far.
        usage: Usage,
        /// What was added.
        assistant_message_event: AnswerEvent,
    },
    /// A message is complete.
    MessageEnd {
        /// The whole of it.
        message: Message,
    },
    /// A call begins.
    ToolExecutionStart {
        /// The call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// The arguments as the model gave them.
        args: Value,
        /// The call that makes it.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<String>,
    },
    /// A call has something to show.
    ToolExecutionUpdate {
        /// The call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// The arguments.
        args: Value,
        /// What it has so far.
        partial_result: PartialResult,
        /// The call that makes it.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<String>,
    },
    /// A call has ended.
    ToolExecutionEnd {
        /// The call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// What it gave.
        result: ToolResult,
        /// It failed.
        is_error: bool,
        /// How long it ran; absent if it never did.
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        /// The call that makes it.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<String>,
    },
    /// Something waits to be said, or waits no more.
    QueueUpdate {
        /// Texts for the next request.
        steering: Vec<String>,
        /// Texts for the end of what runs.
        follow_up: Vec<String>,
    },
    /// An extension put an entry into the session.
    EntryAppended {
        /// The entry, as the file has it.
        entry: Value,
    },
    /// The session has another name.
    SessionInfoChanged {
        /// The name; absent if it has none.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// The model thinks harder, or less hard.
    ThinkingLevelChanged {
        /// How hard.
        level: ThinkingLevel,
    },
    /// An extension did something wrong.
    ExtensionError {
        /// The plugin.
        extension_path: String,
        /// The event it was at, or what else it did.
        event: String,
        /// What went wrong, in one line.
        error: String,
    },
}

impl Event {
    /// What extensions are told, if they are told of it in the same words and nobody waits for them.
    pub(crate) fn observed_as(&self) -> Option<EventKind> {
        match self {
            Self::AgentStart => Some(EventKind::AgentStart),
            Self::AgentEnd { .. } => Some(EventKind::AgentEnd),
            Self::AgentSettled { .. } => Some(EventKind::AgentSettled),
            Self::MessageStart { .. } => Some(EventKind::MessageStart),
            Self::ToolExecutionStart { .. } => Some(EventKind::ToolExecutionStart),
            Self::ToolExecutionUpdate { .. } => Some(EventKind::ToolExecutionUpdate),
            Self::ToolExecutionEnd { .. } => Some(EventKind::ToolExecutionEnd),
            // Of the rest some have other fields, others an answer that counts, and others only whoever shows them.
            Self::TurnStart
            | Self::TurnEnd { .. }
            | Self::MessageUpdate { .. }
            | Self::MessageEnd { .. }
            | Self::QueueUpdate { .. }
            | Self::EntryAppended { .. }
            | Self::SessionInfoChanged { .. }
            | Self::ThinkingLevelChanged { .. }
            | Self::ExtensionError { .. } => None,
        }
    }

    /// Its fields, without its type.
    pub(crate) fn fields(&self) -> Value {
        let mut fields = serde_json::to_value(self).unwrap_or_default();
        if let Some(fields) = fields.as_object_mut() {
            fields.shift_remove("type");
        }
        fields
    }
}

impl From<NestedEvent> for Event {
    fn from(event: NestedEvent) -> Self {
        let NestedEvent { call_id: tool_call_id, parent_id, tool: tool_name, arguments: args, what } = event;
        let parent_tool_call_id = Some(parent_id);
        match what {
            NestedStep::Start => Self::ToolExecutionStart { tool_call_id, tool_name, args, parent_tool_call_id },
            NestedStep::Update { content, details } => Self::ToolExecutionUpdate {
                tool_call_id,
                tool_name,
                args,
                partial_result: PartialResult { content, details },
                parent_tool_call_id,
            },
            NestedStep::End { output, duration_ms } => Self::ToolExecutionEnd {
                tool_call_id,
                tool_name,
                result: ToolResult::from(&*output),
                is_error: output.is_error,
                duration_ms,
                parent_tool_call_id,
            },
        }
    }
}

/// What a call has so far.
#[derive(Clone, Debug, Serialize)]
pub struct PartialResult {
    /// What would be read.
    pub content: Vec<Content>,
    /// Data for whoever shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// What a call gave, as events show it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// What the model reads.
    pub content: Vec<Content>,
    /// Data for whoever shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The result as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Data>,
}

impl From<&ToolOutput> for ToolResult {
    fn from(output: &ToolOutput) -> Self {
        Self {
            content: output.content.clone(),
            details: output.details.clone(),
            structured_content: output.structured.clone(),
        }
    }
}

/// How an assistant's message grew.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum AnswerEvent {
    /// A text block begins.
    TextStart {
        /// Its place in the message.
        content_index: u32,
    },
    /// It grows.
    TextDelta {
        /// Its place.
        content_index: u32,
        /// The added text.
        delta: String,
    },
    /// It is complete.
    TextEnd {
        /// Its place.
        content_index: u32,
        /// The whole text.
        content: String,
    },
    /// A thinking block begins.
    ThinkingStart {
        /// Its place.
        content_index: u32,
    },
    /// It grows.
    ThinkingDelta {
        /// Its place.
        content_index: u32,
        /// The added text.
        delta: String,
    },
    /// It is complete.
    ThinkingEnd {
        /// Its place.
        content_index: u32,
        /// The whole text.
        content: String,
    },
    /// A call begins.
    #[serde(rename = "toolcall_start")]
    ToolCallStart {
        /// Its place.
        content_index: u32,
        /// The provider's id.
        id: String,
        /// The tool.
        tool_name: String,
    },
    /// Its arguments grow.
    #[serde(rename = "toolcall_delta")]
    ToolCallDelta {
        /// Its place.
        content_index: u32,
        /// The added text.
        delta: String,
    },
    /// It is complete.
    #[serde(rename = "toolcall_end")]
    ToolCallEnd {
        /// Its place.
        content_index: u32,
        /// The whole call.
        #[serde(serialize_with = "with_type")]
        tool_call: ToolCall,
    },
}

/// A call by itself carries its type, as it does inside a message.
fn with_type<S: serde::Serializer>(call: &ToolCall, serializer: S) -> Result<S::Ok, S::Error> {
    crate::message::AssistantBlock::ToolCall(call.clone()).serialize(serializer)
}

/// Receives every event, in order. Must not block for long: the run waits for it.
pub type Sink = Arc<dyn Fn(&Event) + Send + Sync>;
