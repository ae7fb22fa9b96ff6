//! An event as a scenario describes it.

use atoll_table::{
    Content, Data, ToolOutput,
    extension::{Event, EventKind, Input},
    hooks::CallEvent,
    tool::Annotations,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::reading::reason;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct InputFields {
    text: String,
    #[serde(default)]
    source: Source,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Source {
    #[default]
    Interactive,
    Rpc,
    Extension,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct CallFields {
    tool: String,
    #[serde(default)]
    arguments: Option<Value>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    parent_id: Option<String>,
    #[serde(default)]
    plugin: Option<String>,
    #[serde(default)]
    read_only: Option<bool>,
    #[serde(default)]
    destructive: Option<bool>,
    // Of a result only.
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    details: Option<Value>,
    #[serde(default)]
    structured: Option<Value>,
    #[serde(default)]
    is_error: Option<bool>,
}

/// The fields as this type has them, or what is wrong with them.
fn read<T: DeserializeOwned>(fields: &Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(fields.clone()))
        .map_err(|error| format!("`fields`: {}", reason(&error.to_string())))
}

fn call(fields: &CallFields) -> CallEvent {
    CallEvent {
        call_id: fields.id.clone().unwrap_or_else(|| "call-1".to_owned()),
        parent_id: fields.parent_id.clone(),
        tool: fields.tool.clone(),
        arguments: fields.arguments.clone().unwrap_or_else(|| json!({})),
        plugin: fields.plugin.clone().unwrap_or_else(|| fields.tool.clone()),
        annotations: Annotations {
            read_only_hint: fields.read_only,
            destructive_hint: fields.destructive,
            ..Annotations::default()
        },
        depth: 0,
    }
}

/// The event of this kind with these fields.
///
/// # Errors
/// What is wrong with the fields.
pub(super) fn event(kind: EventKind, fields: &Map<String, Value>) -> Result<Event, String> {
    Ok(match kind {
        EventKind::Input => {
            let InputFields { text, source } = read(fields)?;
            let source = match source {
                Source::Interactive => "interactive",
                Source::Rpc => "rpc",
                Source::Extension => "extension",
            };
            Event::Input(Input { text, images: Vec::new(), source, delivery: None })
        }
        EventKind::ToolCall => {
            let fields: CallFields = read(fields)?;
            let of_result = [
                ("text", fields.text.is_some()),
                ("details", fields.details.is_some()),
                ("structured", fields.structured.is_some()),
                ("is-error", fields.is_error.is_some()),
            ];
            if let Some((key, _)) = of_result.iter().find(|(_, given)| *given) {
                return Err(format!("`fields`: `{key}` is of a `tool-result`; leave it out"));
            }
            Event::ToolCall(call(&fields))
        }
        EventKind::ToolResult => {
            let fields: CallFields = read(fields)?;
            let output = ToolOutput {
                content: fields.text.iter().map(Content::text).collect(),
                details: fields.details.clone(),
                structured: fields.structured.clone().map(Data::from),
                is_error: fields.is_error.unwrap_or_default(),
                ..ToolOutput::default()
            };
            Event::ToolResult(call(&fields), Box::new(output))
        }
        kind => Event::other(kind, Value::Object(fields.clone())),
    })
}
