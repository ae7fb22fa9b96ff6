//! Messages of the transcript, in the shape of version 3 session files and of JSON events.

use atoll_table::{
    Content,
    model::{AssistantPiece, PromptMessage, Usage},
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum Message {
    /// Instructions.
    System(SystemMessage),
    /// The user.
    User(UserMessage),
    /// The model.
    Assistant(AssistantMessage),
    /// A tool's result.
    ToolResult(ToolResultMessage),
    /// A plugin. A model reads it as the user's.
    Custom(CustomMessage),
    /// A role that this program does not write; kept as it is and not sent to a model.
    #[serde(untagged)]
    Other(Value),
}

impl Message {
    /// Whose it is, as files and events say it.
    pub fn role(&self) -> &str {
        match self {
            Self::System(_) => "system",
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::ToolResult(_) => "toolResult",
            Self::Custom(_) => "custom",
            Self::Other(value) => value.get("role").and_then(Value::as_str).unwrap_or_default(),
        }
    }
}

/// Instructions: the whole prompt at the start, changes to it later.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemMessage {
    /// Text beside the sections; may be empty.
    #[serde(default, deserialize_with = "text_or_pieces")]
    pub content: String,
    /// Named sections in order. Later messages replace a section by its name; `null` removes it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub sections: Map<String, Value>,
    /// When, in milliseconds since 1970.
    #[serde(default)]
    pub timestamp: i64,
    /// Tools that can be called from here on: name, description, parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools_added: Vec<Value>,
    /// Tools that can not be called any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools_removed: Vec<Value>,
}

/// What the user said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    /// Text and pictures.
    #[serde(deserialize_with = "pieces")]
    pub content: Vec<Content>,
    /// When, in milliseconds since 1970.
    #[serde(default)]
    pub timestamp: i64,
}

/// A message of a plugin's own kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomMessage {
    /// The kind, which says who wrote it.
    pub custom_type: String,
    /// What a model reads.
    #[serde(deserialize_with = "pieces")]
    pub content: Vec<Content>,
    /// It is shown to the user.
    #[serde(default, deserialize_with = "null_is_default")]
    pub display: bool,
    /// Data for whoever shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// When, in milliseconds since 1970.
    #[serde(default)]
    pub timestamp: i64,
}

/// Why an assistant's message ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// It has not ended.
    #[default]
    Pending,
    /// The model was done.
    Stop,
    /// A bound on its length.
    Length,
    /// It wants tools to run.
    ToolUse,
    /// Something failed.
    Error,
    /// The user stopped it.
    Aborted,
    /// The provider goes on by itself.
    Deferred,
}

/// A piece of an assistant's message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum AssistantBlock {
    /// Text.
    #[serde(rename_all = "camelCase")]
    Text {
        /// The text.
        text: String,
        /// What the provider wants back with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text_signature: Option<String>,
    },
    /// Thinking.
    #[serde(rename_all = "camelCase")]
    Thinking {
        /// The text.
        thinking: String,
        /// What the provider wants back with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thinking_signature: Option<String>,
    },
    /// A call of a tool.
    ToolCall(ToolCall),
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The provider's id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, an object.
    pub arguments: Value,
    /// Why the arguments could not be read; they are empty then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_error: Option<String>,
}

/// What the model said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    /// Its pieces.
    pub content: Vec<AssistantBlock>,
    /// The wire format it came by.
    #[serde(default)]
    pub api: String,
    /// The provider.
    #[serde(default)]
    pub provider: String,
    /// The model that was asked.
    #[serde(default)]
    pub model: String,
    /// The model that answered, if another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// The provider's id of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// Tokens and money.
    #[serde(default)]
    pub usage: Usage,
    /// Why it ended.
    #[serde(default)]
    pub stop_reason: StopReason,
    /// What failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Why it ended, in the provider's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_stop_reason: Option<String>,
    /// When it began, in milliseconds since 1970.
    #[serde(default)]
    pub timestamp: i64,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

impl AssistantMessage {
    /// The calls in it, in order.
    pub fn tool_calls(&self) -> Vec<ToolCall> {
        let call = |block: &AssistantBlock| match block {
            AssistantBlock::ToolCall(call) => Some(call.clone()),
            _ => None,
        };
        self.content.iter().filter_map(call).collect()
    }

    /// Its texts, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(|block| match block {
            AssistantBlock::Text { text, .. } => Some(text.as_str()),
            _ => None,
        })
    }
}

/// What a tool gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultMessage {
    /// The call.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// What the model reads.
    #[serde(deserialize_with = "pieces")]
    pub content: Vec<Content>,
    /// Data for whoever shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The calls that it made: a [`atoll_table::nesting::NestedCalls`], or what another program put there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nested_calls: Option<Value>,
    /// It failed.
    #[serde(default)]
    pub is_error: bool,
    /// How long it ran; absent if it never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// When it ended, in milliseconds since 1970.
    #[serde(default)]
    pub timestamp: i64,
}

/// Content is written as a list, but may be a plain string in older files.
fn pieces<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Content>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Text(String),
        Pieces(Vec<Content>),
    }
    Ok(match Either::deserialize(deserializer)? {
        Either::Text(text) => vec![Content::text(text)],
        Either::Pieces(pieces) => pieces,
    })
}

/// For what another program may have left out or not.
fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn text_or_pieces<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    pieces(deserializer).map(|pieces| Content::joined_text(&pieces))
}

/// What stands for the result of a call that has none in the transcript.
const NO_RESULT: &str = "There is no result for this call.";

/// The transcript as a provider needs it: one leading system message with all changes applied, no failed or aborted
/// answers, a result for every call and no result without a call, thinking only for the model that thought it.
pub fn to_prompt(messages: &[Message], provider: &str, model: &str) -> Vec<PromptMessage> {
    let mut prompt = vec![PromptMessage::System(system_text(messages))];
    let mut open: Vec<ToolCall> = Vec::new();
    for message in messages {
        match message {
            Message::System(_) | Message::Other(_) => {}
            Message::User(user) => {
                close(&mut prompt, &mut open);
                prompt.push(PromptMessage::User(user.content.clone()));
            }
            Message::Custom(custom) => {
                close(&mut prompt, &mut open);
                prompt.push(PromptMessage::User(custom.content.clone()));
            }
            Message::Assistant(answer) => {
                close(&mut prompt, &mut open);
                if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
                    continue;
                }
                let same = answer.provider == provider && answer.model == model;
                let pieces: Vec<AssistantPiece> =
                    answer.content.iter().filter_map(|block| piece(block, same)).collect();
                open = answer.tool_calls();
                if !pieces.is_empty() {
                    prompt.push(PromptMessage::Assistant(pieces));
                }
            }
            Message::ToolResult(result) => {
                let Some(at) = open.iter().position(|call| call.id == result.tool_call_id) else { continue };
                open.remove(at);
                prompt.push(PromptMessage::ToolResult {
                    call_id: result.tool_call_id.clone(),
                    name: result.tool_name.clone(),
                    content: result.content.clone(),
                    is_error: result.is_error,
                });
            }
        }
    }
    close(&mut prompt, &mut open);
    prompt
}

fn close(prompt: &mut Vec<PromptMessage>, open: &mut Vec<ToolCall>) {
    for call in open.drain(..) {
        prompt.push(PromptMessage::ToolResult {
            call_id: call.id,
            name: call.name,
            content: vec![Content::text(NO_RESULT)],
            is_error: true,
        });
    }
}

fn piece(block: &AssistantBlock, same_model: bool) -> Option<AssistantPiece> {
    match block {
        AssistantBlock::Text { text, .. } if text.is_empty() => None,
        AssistantBlock::Text { text, .. } => Some(AssistantPiece::Text(text.clone())),
        AssistantBlock::Thinking { thinking, thinking_signature } => {
            let kept = same_model && (!thinking.is_empty() || thinking_signature.is_some());
            kept.then(|| AssistantPiece::Thinking { text: thinking.clone(), signature: thinking_signature.clone() })
        }
        AssistantBlock::ToolCall(call) => Some(AssistantPiece::ToolCall {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.to_string(),
        }),
    }
}

/// The instructions in force after all system messages.
pub fn system_state(messages: &[Message]) -> SystemMessage {
    let mut state = SystemMessage::default();
    for message in messages {
        let Message::System(change) = message else { continue };
        if !change.content.is_empty() {
            if !state.content.is_empty() {
                state.content.push_str("\n\n");
            }
            state.content.push_str(&change.content);
        }
        for (name, text) in &change.sections {
            if text.is_null() {
                state.sections.shift_remove(name);
            } else {
                state.sections.insert(name.clone(), text.clone());
            }
        }
        let named = |tool: &Value| tool.get("name").cloned();
        state.tools_added.retain(|tool| !change.tools_removed.iter().any(|gone| named(gone) == named(tool)));
        for tool in &change.tools_added {
            match state.tools_added.iter_mut().find(|known| named(known) == named(tool)) {
                Some(known) => known.clone_from(tool),
                None => state.tools_added.push(tool.clone()),
            }
        }
    }
    state
}

/// The instructions in force, as one text.
pub(crate) fn system_text(messages: &[Message]) -> String {
    let state = system_state(messages);
    let sections = state.sections.values().filter_map(Value::as_str);
    let parts: Vec<&str> =
        std::iter::once(state.content.as_str()).chain(sections).filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(value: Value) -> Message {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn messages_keep_their_shape() {
        let all = [
            json!({"role": "user", "content": [{"type": "text", "text": "hi"}], "timestamp": 1}),
            json!({"role": "assistant", "content": [
                {"type": "text", "text": "a"},
                {"type": "thinking", "thinking": "b", "thinkingSignature": "s"},
                {"type": "toolCall", "id": "1", "name": "read", "arguments": {"path": "x"}}],
                "api": "openai-completions", "provider": "p", "model": "m",
                "usage": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 3,
                    "cost": {"input": 0.0, "output": 0.0, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.0}},
                "stopReason": "toolUse", "timestamp": 2}),
            json!({"role": "toolResult", "toolCallId": "1", "toolName": "read",
                "content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}],
                "isError": false, "durationMs": 5, "timestamp": 3}),
            json!({"role": "system", "content": "", "sections": {"z": "1", "a": "2"}, "timestamp": 4,
                "toolsAdded": [{"name": "read"}]}),
            json!({"role": "custom", "customType": "rules", "content": [{"type": "text", "text": "a"}],
                "display": true, "details": {"n": 1}, "timestamp": 5}),
            json!({"role": "bashExecution", "command": "ls", "output": "", "cancelled": false}),
        ];
        for value in all {
            assert_eq!(serde_json::to_value(message(value.clone())).unwrap(), value);
        }
    }

    #[test]
    fn plain_string_content_is_understood() {
        let Message::User(user) = message(json!({"role": "user", "content": "hi"})) else { panic!("not a user") };
        assert_eq!(user.content, [Content::text("hi")]);
    }

    #[test]
    fn a_prompt_has_a_result_for_every_call_and_nothing_of_failed_answers() {
        let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "read", "arguments": {}});
        let messages: Vec<Message> = [
            json!({"role": "system", "content": "", "sections": {"a": "A", "b": "B"}}),
            json!({"role": "user", "content": "go"}),
            json!({"role": "assistant", "content": [call("1"), call("2")], "stopReason": "toolUse"}),
            json!({"role": "toolResult", "toolCallId": "2", "toolName": "read", "content": "two"}),
            json!({"role": "assistant", "content": [call("3")], "stopReason": "error"}),
            json!({"role": "toolResult", "toolCallId": "3", "toolName": "read", "content": "orphan"}),
            json!({"role": "system", "content": "", "sections": {"a": null, "b": "BB"}}),
        ]
        .into_iter()
        .map(message)
        .collect();
        let prompt = to_prompt(&messages, "p", "m");
        let shape: Vec<String> = prompt
            .iter()
            .map(|message| match message {
                PromptMessage::System(text) => format!("system {text}"),
                PromptMessage::User(_) => "user".to_owned(),
                PromptMessage::Assistant(pieces) => format!("assistant {}", pieces.len()),
                PromptMessage::ToolResult { call_id, is_error, .. } => format!("result {call_id} {is_error}"),
            })
            .collect();
        assert_eq!(shape, ["system BB", "user", "assistant 2", "result 2 false", "result 1 true"]);
    }
}
