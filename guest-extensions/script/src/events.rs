//! The contract's events, answers and results as the script's side has them, and back.

use atoll_plugin::{
    Content, Error, ToolOutput,
    extension::{Block, Call, Completion, Event, Outcome, ResultPatch, Transform},
    types::{Annotations, Blob, Command, Delivery, Denial, Flag, FlagKind, Shortcut, Subscription, Usage},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A text of the contract that is JSON.
pub(crate) fn parsed(what: &str, text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map_err(|error| Error::invalid_arguments(format!("{what} is not JSON: {error}")))
}

/// A part of what the script gave, read into a type.
pub(crate) fn read<T: serde::de::DeserializeOwned>(what: &str, value: Value) -> Result<T, Error> {
    serde_json::from_value(value).map_err(|error| Error::invalid_arguments(format!("{what} can not be used: {error}")))
}

#[derive(Deserialize)]
struct DenialFields {
    capability: String,
    target: String,
    hint: String,
}

/// What the script was denied and did not catch.
pub(crate) fn denied(value: Value) -> Result<Error, Error> {
    let DenialFields { capability, target, hint } = read("a denial", value)?;
    Ok(Error::Denied(Denial { capability, target, hint }))
}

/// The name of an event and its fields.
pub(crate) fn to_script(event: Event) -> Result<(String, Value), Error> {
    Ok(match event {
        Event::Input(input) => {
            let images: Vec<Value> = input.images.iter().map(image).collect();
            let delivery = input.delivery.map(delivery_name);
            let fields =
                json!({"text": input.text, "images": images, "source": input.source, "streamingBehavior": delivery});
            ("input".to_owned(), fields)
        }
        Event::ToolCall(call) => ("tool-call".to_owned(), Value::Object(call_fields(&call)?)),
        Event::ToolResult(result) => {
            let mut fields = call_fields(&result.call)?;
            let data = |text: Option<String>| text.map(|text| parsed("a result", &text)).transpose();
            fields.insert("content".to_owned(), content_to_script(result.content));
            fields.insert("details".to_owned(), data(result.details)?.into());
            fields.insert("structuredContent".to_owned(), data(result.structured)?.into());
            fields.insert("isError".to_owned(), result.is_error.into());
            fields.insert("usage".to_owned(), result.usage.map(usage_to_script).into());
            ("tool-result".to_owned(), Value::Object(fields))
        }
        Event::Bus(message) => {
            let data = parsed("the message", &message.data)?;
            ("bus".to_owned(), json!({"topic": message.topic, "sender": message.sender, "data": data}))
        }
        Event::Other(other) => (other.name, parsed("the event", &other.fields)?),
    })
}

fn call_fields(call: &Call) -> Result<Map<String, Value>, Error> {
    let Annotations { read_only, destructive, idempotent, open_world } = call.annotations;
    let fields = json!({
        "toolName": call.tool,
        "toolCallId": call.id,
        "parentToolCallId": call.parent_id,
        "plugin": call.plugin,
        "annotations": {
            "readOnlyHint": read_only,
            "destructiveHint": destructive,
            "idempotentHint": idempotent,
            "openWorldHint": open_world,
        },
        "input": parsed("the arguments", &call.arguments)?,
    });
    match fields {
        Value::Object(fields) => Ok(fields),
        _ => Ok(Map::new()),
    }
}

fn delivery_name(delivery: Delivery) -> &'static str {
    match delivery {
        Delivery::Steer => "steer",
        Delivery::FollowUp => "followUp",
        Delivery::NextTurn => "nextTurn",
    }
}

fn image(blob: &Blob) -> Value {
    json!({"type": "image", "data": base64(&blob.data), "mimeType": blob.mime_type})
}

/// Pieces of content as scripts have them.
pub(crate) fn content_to_script(content: Vec<Content>) -> Value {
    let piece = |piece: Content| match piece {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::Image(blob) => image(&blob),
    };
    content.into_iter().map(piece).collect()
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Pieces {
    One(String),
    Many(Vec<Piece>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Piece {
    Text {
        text: String,
    },
    Image {
        data: String,
        #[serde(rename = "mimeType", default)]
        mime_type: String,
    },
}

/// Pieces of content as the contract has them: of a text, or of a list.
pub(crate) fn content_from_script(value: Value) -> Result<Vec<Content>, Error> {
    let pieces = match read::<Option<Pieces>>("content", value)? {
        None => Vec::new(),
        Some(Pieces::One(text)) => vec![Piece::Text { text }],
        Some(Pieces::Many(pieces)) => pieces,
    };
    let piece = |piece: Piece| match piece {
        Piece::Text { text } => Ok(Content::Text(text)),
        Piece::Image { data, mime_type } => {
            let data =
                from_base64(&data).ok_or_else(|| Error::invalid_arguments("the data of an image is not base64"))?;
            Ok(Content::Image(Blob { data, mime_type }))
        }
    };
    pieces.into_iter().map(piece).collect()
}

pub(crate) fn usage_to_script(usage: Usage) -> Value {
    json!({
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "reasoning": usage.reasoning,
        "totalTokens": usage.total_tokens,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct UsageFields {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    reasoning: Option<u64>,
    total_tokens: Option<u64>,
}

fn usage(value: Value) -> Result<Option<Usage>, Error> {
    let fields: Option<UsageFields> = read("usage", value)?;
    Ok(fields.map(|fields| Usage {
        input: fields.input,
        output: fields.output,
        cache_read: fields.cache_read,
        cache_write: fields.cache_write,
        reasoning: fields.reasoning,
        total_tokens: fields.total_tokens.unwrap_or_else(|| {
            [fields.input, fields.output, fields.cache_read, fields.cache_write]
                .iter()
                .fold(0, |sum, part| part.saturating_add(sum))
        }),
    }))
}

/// A field of an object, taken out.
fn take(fields: &mut Value, name: &str) -> Value {
    fields.get_mut(name).map(Value::take).unwrap_or_default()
}

/// The same, as the text of JSON; none for `null`.
fn take_json(fields: &mut Value, name: &str) -> Option<String> {
    Some(take(fields, name)).filter(|value| !value.is_null()).map(|value| value.to_string())
}

/// What the script's side made of its handlers' answers.
pub(crate) fn outcome(mut answer: Value) -> Result<Outcome, Error> {
    let kind = take(&mut answer, "kind");
    Ok(match kind.as_str().unwrap_or_default() {
        "block" => Outcome::Block(Block {
            reason: read::<Option<String>>("reason", take(&mut answer, "reason"))?.unwrap_or_default(),
            terminate: take(&mut answer, "terminate").as_bool().unwrap_or_default(),
        }),
        "rewrite" => Outcome::Rewrite(take(&mut answer, "input").to_string()),
        "patch" => {
            let content = take(&mut answer, "content");
            Outcome::Patch(ResultPatch {
                content: if content.is_null() { None } else { Some(content_from_script(content)?) },
                details: take_json(&mut answer, "details"),
                structured: take_json(&mut answer, "structuredContent"),
                is_error: take(&mut answer, "isError").as_bool(),
                usage: usage(take(&mut answer, "usage"))?,
            })
        }
        "transform" => {
            let images = take(&mut answer, "images");
            let images = if images.is_null() { None } else { Some(content_from_script(images)?) };
            let blob = |piece: Content| match piece {
                Content::Image(blob) => Some(blob),
                Content::Text(_) => None,
            };
            Outcome::Transform(Transform {
                text: read("text", take(&mut answer, "text"))?,
                images: images.map(|images| images.into_iter().filter_map(blob).collect()),
            })
        }
        "handled" => Outcome::Handled,
        "reply" => Outcome::Reply(take(&mut answer, "fields").to_string()),
        _ => Outcome::Pass,
    })
}

/// What a tool of the script gave.
pub(crate) fn tool_output(mut answer: Value) -> Result<ToolOutput, Error> {
    Ok(ToolOutput {
        content: content_from_script(take(&mut answer, "content"))?,
        details: take_json(&mut answer, "details"),
        structured: take_json(&mut answer, "structuredContent"),
        is_error: take(&mut answer, "isError").as_bool().unwrap_or_default(),
        terminate: take(&mut answer, "terminate").as_bool().unwrap_or_default(),
        usage: usage(take(&mut answer, "usage"))?,
    })
}

/// What a call of a tool gave to the script.
pub(crate) fn output_to_script(output: ToolOutput) -> Result<Value, Error> {
    let data = |text: Option<String>| text.map(|text| parsed("a result", &text)).transpose();
    Ok(json!({
        "content": content_to_script(output.content),
        "details": data(output.details)?,
        "structuredContent": data(output.structured)?,
        "isError": output.is_error,
        "terminate": output.terminate,
        "usage": output.usage.map(usage_to_script),
    }))
}

#[derive(Deserialize)]
struct CompletionFields {
    value: String,
    label: Option<String>,
    description: Option<String>,
}

/// How arguments could go on.
pub(crate) fn completions(found: &Value) -> Result<Vec<Completion>, Error> {
    let found: Option<Vec<CompletionFields>> = read("completions", found.clone())?;
    let completion = |CompletionFields { value, label, description }| Completion { value, label, description };
    Ok(found.unwrap_or_default().into_iter().map(completion).collect())
}

#[derive(Deserialize)]
struct Wanted {
    events: Vec<String>,
    topics: Vec<String>,
    commands: Vec<WantedCommand>,
    flags: Vec<WantedFlag>,
    shortcuts: Vec<WantedShortcut>,
}

#[derive(Deserialize)]
struct WantedCommand {
    name: String,
    description: String,
    hidden: bool,
    completes: bool,
}

#[derive(Deserialize)]
struct WantedFlag {
    name: String,
    description: String,
    boolean: bool,
    default: Option<String>,
}

#[derive(Deserialize)]
struct WantedShortcut {
    key: String,
    description: String,
    command: String,
}

/// What the script wants to be called for.
pub(crate) fn subscription(wanted: &Value) -> Result<Subscription, Error> {
    let Wanted { events, topics, commands, flags, shortcuts } = read("what the script wants", wanted.clone())?;
    let command =
        |WantedCommand { name, description, hidden, completes }| Command { name, description, hidden, completes };
    let flag = |WantedFlag { name, description, boolean, default }| Flag {
        name,
        description,
        kind: if boolean { FlagKind::Boolean } else { FlagKind::Text },
        default,
    };
    let shortcut = |WantedShortcut { key, description, command }| Shortcut { key, description, command };
    Ok(Subscription {
        events,
        topics,
        commands: commands.into_iter().map(command).collect(),
        flags: flags.into_iter().map(flag).collect(),
        shortcuts: shortcuts.into_iter().map(shortcut).collect(),
    })
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}
