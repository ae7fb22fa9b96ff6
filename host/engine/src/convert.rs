//! Between the contract's types and the host's. No decision is made here.

pub(crate) mod extension;
mod told;

use atoll_table::{
    Content, Data, Error, Invocation, Registered, Tool, ToolOutput,
    model::{AssistantPiece, DoneReason, ModelEvent, ModelRequest, PromptMessage, ThinkingLevel, Usage},
    tool::{Annotations, ExecutionMode, Exposure},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{
    bindings::{
        atoll::plugin::types as wit,
        exports::atoll::plugin::{provider, tools},
    },
    description::{LastSchema, SaidTool},
    state::PluginContext,
};

/// What the capability check says, in the one vocabulary.
pub(crate) fn denied(denied: &atoll_caps::Denied) -> Error {
    Error::Denied {
        capability: denied.capability.as_str().to_owned(),
        target: denied.target.clone(),
        hint: denied.hint.clone(),
    }
}

impl From<Error> for wit::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Denied { capability, target, hint } => {
                told::note(&capability, &target, &hint);
                Self::Denied(wit::Denial { capability, target, hint })
            }
            Error::NotFound(text) => Self::NotFound(text),
            Error::Ambiguous { name, candidates } => Self::Ambiguous(wit::Ambiguity { name, candidates }),
            Error::InvalidArguments(text) => Self::InvalidArguments(text),
            Error::Limit { name, value } => Self::Limit(wit::LimitHit { name, value }),
            Error::Timeout(text) => Self::Timeout(text),
            Error::Cancelled(text) => Self::Cancelled(text),
            Error::Unavailable(text) => Self::Unavailable(text),
            Error::Stale(text) => Self::Stale(text),
            Error::UnsupportedContract { wanted, served } => {
                Self::UnsupportedContract(wit::ContractMismatch { wanted, served })
            }
            Error::Failed(text) => Self::Failed(text),
        }
    }
}

/// A denial names a command for the user to run, in the host's words. So one that comes from a guest is one only if the
/// host has told it to some guest before, as it is; what else says it is one is that guest's own text, and is quoted.
impl From<wit::Error> for Error {
    fn from(error: wit::Error) -> Self {
        match error {
            wit::Error::Denied(wit::Denial { capability, target, hint }) => {
                if told::knows(&capability, &target, &hint) {
                    return Self::Denied { capability, target, hint };
                }
                let short = |text: &str| text.get(..text.floor_char_boundary(200)).unwrap_or_default().to_owned();
                Self::Failed(format!(
                    "it claims that {:?} was denied to it on {:?}, which it was not",
                    short(&capability),
                    short(&target)
                ))
            }
            wit::Error::NotFound(text) => Self::NotFound(text),
            wit::Error::Ambiguous(wit::Ambiguity { name, candidates }) => Self::Ambiguous { name, candidates },
            wit::Error::InvalidArguments(text) => Self::InvalidArguments(text),
            wit::Error::Limit(wit::LimitHit { name, value }) => Self::Limit { name, value },
            wit::Error::Timeout(text) => Self::Timeout(text),
            wit::Error::Cancelled(text) => Self::Cancelled(text),
            wit::Error::Unavailable(text) => Self::Unavailable(text),
            wit::Error::Stale(text) => Self::Stale(text),
            wit::Error::UnsupportedContract(wit::ContractMismatch { wanted, served }) => {
                Self::UnsupportedContract { wanted, served }
            }
            wit::Error::Failed(text) => Self::Failed(text),
        }
    }
}

/// A piece of content from a guest.
pub(crate) fn content_from_wit(content: wit::Content) -> Content {
    match content {
        wit::Content::Text(text) => Content::Text { text },
        wit::Content::Image(blob) => Content::Image { data: STANDARD.encode(blob.data), mime_type: blob.mime_type },
    }
}

/// A result for a guest.
pub(crate) fn output_to_wit(output: ToolOutput) -> wit::ToolOutput {
    wit::ToolOutput {
        content: output.content.into_iter().map(content_to_wit).collect(),
        details: output.details.map(|value| value.to_string()),
        structured: output.structured.map(|data| data.text().to_owned()),
        is_error: output.is_error,
        terminate: output.terminate,
        usage: output.usage.as_ref().map(usage_to_wit),
    }
}

/// Tokens for a guest. What they cost is not the guest's to know.
pub(crate) fn usage_to_wit(usage: &Usage) -> wit::Usage {
    wit::Usage {
        input: usage.input,
        output: usage.output,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        reasoning: usage.reasoning,
        total_tokens: usage.total_tokens,
    }
}

/// Tokens from a guest.
pub(crate) fn usage_from_wit(usage: wit::Usage) -> Usage {
    Usage {
        input: usage.input,
        output: usage.output,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        reasoning: usage.reasoning,
        total_tokens: usage.total_tokens,
        cost: atoll_table::model::Cost::default(),
    }
}

/// A piece of content for a guest. A picture that is not base64 becomes empty.
pub(crate) fn content_to_wit(content: Content) -> wit::Content {
    match content {
        Content::Text { text } => wit::Content::Text(text),
        Content::Image { data, mime_type } => {
            wit::Content::Image(wit::Blob { data: STANDARD.decode(data).unwrap_or_default(), mime_type })
        }
    }
}

/// JSON from a guest.
///
/// # Errors
/// `failed`, naming the plugin and the field.
pub(crate) fn json(plugin: &str, field: &str, text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map_err(|error| malformed(plugin, field, &error))
}

/// A result as data from a guest, which stays the text that it is.
///
/// # Errors
/// As [`json`].
fn data(plugin: &str, text: String) -> Result<Data, Error> {
    Data::from_text(text).map_err(|error| malformed(plugin, "structured", &error))
}

fn malformed(plugin: &str, field: &str, error: &serde_json::Error) -> Error {
    Error::Failed(format!("the plugin {plugin} gave malformed JSON as {field}: {error}"))
}

/// A tool's description from a guest.
pub(crate) fn tool_from_wit(plugin: &str, tool: wit::Tool, schemas: &mut LastSchema) -> Result<Tool, Error> {
    SaidTool::from(tool).read(plugin, schemas)
}

/// A tool of the table for a guest.
pub(crate) fn entry_to_wit(entry: &Registered, active: bool) -> crate::bindings::atoll::plugin::table::Entry {
    let tool = &entry.tool;
    let namespace = tool.namespace.as_ref().map(|namespace| wit::Namespace {
        name: namespace.name.clone(),
        aliases: namespace.aliases.clone(),
        description: namespace.description.clone(),
        instructions: namespace.instructions.clone(),
    });
    let tool = wit::Tool {
        name: tool.name.clone(),
        label: tool.label.clone(),
        description: tool.description.clone(),
        parameters: tool.parameters.to_string(),
        output_schema: tool.output_schema.as_ref().map(ToString::to_string),
        prompt_snippet: tool.prompt_snippet.clone(),
        prompt_guidelines: tool.prompt_guidelines.clone(),
        exposure: match tool.exposure {
            Exposure::Direct => wit::Exposure::Direct,
            Exposure::ModelOnly => wit::Exposure::ModelOnly,
            Exposure::Codemode => wit::Exposure::Codemode,
            Exposure::Deferred => wit::Exposure::Deferred,
            Exposure::Hidden => wit::Exposure::Hidden,
        },
        default_active: tool.default_active,
        execution_mode: match tool.execution_mode {
            ExecutionMode::Parallel => wit::ExecutionMode::Parallel,
            ExecutionMode::Sequential => wit::ExecutionMode::Sequential,
        },
        namespace,
        annotations: annotations_to_wit(tool.annotations),
        prepares: tool.prepares,
    };
    crate::bindings::atoll::plugin::table::Entry { tool, plugin: entry.plugin.clone(), active }
}

/// A tool's claims for a guest.
pub(crate) fn annotations_to_wit(annotations: Annotations) -> wit::Annotations {
    wit::Annotations {
        read_only: annotations.read_only_hint,
        destructive: annotations.destructive_hint,
        idempotent: annotations.idempotent_hint,
        open_world: annotations.open_world_hint,
    }
}

/// A call, for the plugin whose tool it is.
pub(crate) fn invocation_to_wit(plugin: &PluginContext, invocation: Invocation) -> tools::Invocation {
    tools::Invocation {
        id: invocation.id,
        parent_id: invocation.parent_id,
        tool: invocation.tool,
        arguments: invocation.arguments.to_string(),
        cwd: plugin.shared.places.cwd.to_string_lossy().into_owned(),
    }
}

/// How many bytes content takes on its way from a guest.
pub(crate) fn content_size(content: &[wit::Content]) -> usize {
    let size = |piece: &wit::Content| match piece {
        wit::Content::Text(text) => text.len(),
        wit::Content::Image(blob) => blob.data.len(),
    };
    content.iter().map(size).sum()
}

/// How many bytes a result takes.
pub(crate) fn output_size(output: &wit::ToolOutput) -> usize {
    content_size(&output.content)
        + output.details.as_ref().map_or(0, String::len)
        + output.structured.as_ref().map_or(0, String::len)
}

/// A result from a guest.
pub(crate) fn output_from_wit(plugin: &str, output: wit::ToolOutput) -> Result<ToolOutput, Error> {
    Ok(ToolOutput {
        details: output.details.map(|text| json(plugin, "details", &text)).transpose()?,
        structured: output.structured.map(|text| data(plugin, text)).transpose()?,
        content: output.content.into_iter().map(content_from_wit).collect(),
        is_error: output.is_error,
        terminate: output.terminate,
        usage: output.usage.map(usage_from_wit),
        ..ToolOutput::default()
    })
}

/// A request for a provider. `key_secret` is the name under which its key can be put into a header.
pub(crate) fn request_to_wit(request: ModelRequest, key_secret: Option<String>) -> provider::Request {
    let model = request.model;
    let mut input = provider::Modalities::TEXT;
    if model.images {
        input |= provider::Modalities::IMAGE;
    }
    provider::Request {
        id: request.id,
        model: provider::Model {
            id: model.id,
            provider: model.provider,
            api: model.api,
            base_url: model.base_url,
            reasoning: model.reasoning,
            input,
            context_window: model.context_window,
            max_tokens: model.max_tokens,
            headers: model.headers,
            compat: model.compat.to_string(),
        },
        key_secret,
        messages: request.messages.into_iter().map(message_to_wit).collect(),
        tools: request
            .tools
            .into_iter()
            .map(|tool| provider::Declaration {
                name: tool.name,
                description: tool.description,
                parameters: tool.parameters.to_string(),
            })
            .collect(),
        thinking: match request.thinking {
            ThinkingLevel::Off => provider::ThinkingLevel::Off,
            ThinkingLevel::Minimal => provider::ThinkingLevel::Minimal,
            ThinkingLevel::Low => provider::ThinkingLevel::Low,
            ThinkingLevel::Medium => provider::ThinkingLevel::Medium,
            ThinkingLevel::High => provider::ThinkingLevel::High,
            ThinkingLevel::Xhigh => provider::ThinkingLevel::Xhigh,
            ThinkingLevel::Max => provider::ThinkingLevel::Max,
        },
        max_tokens: None,
        idle_timeout_ms: request.idle_timeout_ms,
    }
}

fn message_to_wit(message: PromptMessage) -> provider::Message {
    match message {
        PromptMessage::System(text) => provider::Message::System(text),
        PromptMessage::User(content) => provider::Message::User(content.into_iter().map(content_to_wit).collect()),
        PromptMessage::Assistant(pieces) => {
            let block = |piece| match piece {
                AssistantPiece::Text(text) => provider::AssistantBlock::Text(text),
                AssistantPiece::Thinking { text, signature } => {
                    provider::AssistantBlock::Thinking(provider::Thinking { text, signature })
                }
                AssistantPiece::ToolCall { id, name, arguments } => {
                    provider::AssistantBlock::ToolCall(provider::ToolCall { id, name, arguments })
                }
            };
            provider::Message::Assistant(pieces.into_iter().map(block).collect())
        }
        PromptMessage::ToolResult { call_id, name, content, is_error } => {
            provider::Message::ToolResult(provider::ToolResult {
                call_id,
                name,
                content: content.into_iter().map(content_to_wit).collect(),
                is_error,
            })
        }
    }
}

/// An event from a provider.
pub(crate) fn event_from_wit(event: provider::ModelEvent) -> ModelEvent {
    use provider::ModelEvent as Wit;
    match event {
        Wit::Start => ModelEvent::Start,
        Wit::TextStart(index) => ModelEvent::TextStart(index),
        Wit::TextDelta(delta) => ModelEvent::TextDelta(delta.index, delta.text),
        Wit::TextEnd(index) => ModelEvent::TextEnd(index),
        Wit::ThinkingStart(index) => ModelEvent::ThinkingStart(index),
        Wit::ThinkingDelta(delta) => ModelEvent::ThinkingDelta(delta.index, delta.text),
        Wit::ThinkingEnd(end) => ModelEvent::ThinkingEnd(end.index, end.signature),
        Wit::CallStart(start) => ModelEvent::CallStart { index: start.index, id: start.id, name: start.name },
        Wit::CallDelta(delta) => ModelEvent::CallDelta(delta.index, delta.text),
        Wit::CallEnd(index) => ModelEvent::CallEnd(index),
        Wit::Usage(usage) => ModelEvent::Usage(usage_from_wit(usage)),
        Wit::Done(done) => ModelEvent::Done {
            reason: match done.reason {
                provider::StopReason::Stop => DoneReason::Stop,
                provider::StopReason::Length => DoneReason::Length,
                provider::StopReason::ToolUse => DoneReason::ToolUse,
            },
            raw_reason: done.raw_reason,
            response_model: done.response_model,
            response_id: done.response_id,
        },
        Wit::Failed(failure) => ModelEvent::Failed {
            error: failure.error.into(),
            status: failure.status,
            retry_after_ms: failure.retry_after_ms,
        },
    }
}
