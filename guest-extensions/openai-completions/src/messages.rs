//! The transcript as the list of messages that chat completions take.
//!
//! Must never reorder what was said, except where the wire format has no place for it: pictures of tool results,
//! and instructions that would stand between a call and its result.

use atoll_plugin::provider::{AssistantBlock, Message, Modalities, Model, ToolCall, ToolResult};
use atoll_plugin::types::{Blob, Content};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;

use crate::compat::{Compat, is_open_ai};

/// Stands for the result of a tool that gave nothing; servers refuse an empty one.
const NO_OUTPUT: &str = "(no output)";
/// Stands for the text of a result that is only pictures.
const SEE_IMAGE: &str = "(the picture follows)";
/// Begins the message that carries the pictures of results.
const RESULT_IMAGES: &str = "Pictures from the tool results above:";
/// Stands for pictures that the model can not take.
const IMAGE_LEFT_OUT: &str = "(picture left out: this model takes only text)";
/// Stands between results and a user's message, where a server wants something there.
const FILLER: &str = "I have read the tool results.";
/// How long a call's id may be.
const MAX_ID: usize = 40;

/// A message on the wire.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Wire {
    role: &'static str,
    content: Option<WireContent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_text: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum WireContent {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    Text { text: String },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Debug, Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Debug, Serialize)]
struct WireCall {
    id: String,
    r#type: &'static str,
    function: WireFunction,
}

#[derive(Debug, Serialize)]
struct WireFunction {
    name: String,
    arguments: String,
}

/// The messages for a transcript.
pub(crate) fn messages(transcript: &[Message], model: &Model, compat: &Compat) -> Vec<Wire> {
    let head = transcript.iter().take_while(|message| matches!(message, Message::System(_))).count();
    let mut instructions = Vec::new();
    for (at, message) in transcript.iter().enumerate() {
        match message {
            // Where later instructions have no place of their own, all of them stand at the head, in order.
            Message::System(text) if at < head || !compat.mid_conversation_system => instructions.push(text.as_str()),
            _ => {}
        }
    }
    instructions.retain(|text| !text.trim().is_empty());
    let mut writer = Writer {
        role: if model.reasoning && compat.developer_role { "developer" } else { "system" },
        images: model.input.contains(Modalities::IMAGE),
        short_ids: model.provider == "openai" || is_open_ai(&model.base_url),
        thinking: model.reasoning,
        compat,
        out: Vec::new(),
        open: false,
        after_result: false,
        result_images: Vec::new(),
        held: Vec::new(),
    };
    if !instructions.is_empty() {
        writer.system(&instructions.join("\n\n"));
    }
    for message in transcript.iter().skip(head) {
        match message {
            Message::System(text) if compat.mid_conversation_system => writer.later_system(text),
            Message::System(_) => {}
            Message::User(content) => writer.user(content),
            Message::Assistant(blocks) => writer.assistant(blocks),
            Message::ToolResult(result) => writer.result(result),
        }
    }
    writer.close_results();
    writer.out
}

struct Writer<'a> {
    role: &'static str,
    images: bool,
    short_ids: bool,
    thinking: bool,
    compat: &'a Compat,
    out: Vec<Wire>,
    /// Calls were made, and results may still come.
    open: bool,
    /// The last message is a result.
    after_result: bool,
    result_images: Vec<Part>,
    held: Vec<String>,
}

impl Writer<'_> {
    fn text(&mut self, role: &'static str, text: &str) {
        self.out.push(Wire { role, content: Some(WireContent::Text(text.to_owned())), ..Wire::default() });
    }

    fn system(&mut self, text: &str) {
        self.text(self.role, text);
    }

    fn later_system(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        if self.open {
            self.held.push(text.to_owned());
        } else {
            self.system(text);
        }
    }

    /// No more results come: writes what had to wait for that.
    fn close_results(&mut self) {
        self.open = false;
        let images = std::mem::take(&mut self.result_images);
        if !images.is_empty() {
            self.bridge();
            let mut parts = vec![Part::Text { text: RESULT_IMAGES.to_owned() }];
            parts.extend(images);
            self.out.push(Wire { role: "user", content: Some(WireContent::Parts(parts)), ..Wire::default() });
        }
        for text in std::mem::take(&mut self.held) {
            self.system(&text);
        }
    }

    fn bridge(&mut self) {
        if self.after_result && self.compat.assistant_after_tool_result {
            self.text("assistant", FILLER);
        }
        self.after_result = false;
    }

    fn user(&mut self, content: &[Content]) {
        self.close_results();
        let pictures = self.images && content.iter().any(|piece| matches!(piece, Content::Image(_)));
        let content = if pictures {
            WireContent::Parts(
                content
                    .iter()
                    .map(|piece| match piece {
                        Content::Text(text) => Part::Text { text: text.clone() },
                        Content::Image(blob) => image(blob),
                    })
                    .collect(),
            )
        } else {
            WireContent::Text(self.plain(content))
        };
        if matches!(&content, WireContent::Text(text) if text.is_empty()) {
            return;
        }
        self.bridge();
        self.out.push(Wire { role: "user", content: Some(content), ..Wire::default() });
    }

    /// The texts of a content; pictures that the model can not take leave one note a run.
    fn plain(&self, content: &[Content]) -> String {
        let mut lines: Vec<&str> = Vec::new();
        for piece in content {
            match piece {
                Content::Text(text) => lines.push(text),
                Content::Image(_) if self.images || lines.last() == Some(&IMAGE_LEFT_OUT) => {}
                Content::Image(_) => lines.push(IMAGE_LEFT_OUT),
            }
        }
        lines.join("\n")
    }

    fn assistant(&mut self, blocks: &[AssistantBlock]) {
        self.close_results();
        let mut message = Wire { role: "assistant", ..Wire::default() };
        let mut text = String::new();
        let mut thoughts = Vec::new();
        let mut field = None;
        for block in blocks {
            match block {
                AssistantBlock::Text(piece) => text.push_str(piece),
                AssistantBlock::Thinking(thinking) => {
                    if !thinking.text.trim().is_empty() {
                        thoughts.push(thinking.text.as_str());
                        field = field.or(thinking.signature.as_deref());
                    }
                }
                AssistantBlock::ToolCall(call) => message.tool_calls.push(self.call(call)),
            }
        }
        let said = !text.trim().is_empty();
        if self.compat.thinking_as_text && !thoughts.is_empty() {
            let mut parts = vec![Part::Text { text: thoughts.join("\n\n") }];
            if said {
                parts.push(Part::Text { text });
            }
            message.content = Some(WireContent::Parts(parts));
        } else {
            if said {
                message.content = Some(WireContent::Text(text));
            } else if self.compat.assistant_after_tool_result {
                message.content = Some(WireContent::Text(String::new()));
            }
            let thoughts = || Some(thoughts.join("\n"));
            match field {
                Some("reasoning_content") => message.reasoning_content = thoughts(),
                Some("reasoning") => message.reasoning = thoughts(),
                Some("reasoning_text") => message.reasoning_text = thoughts(),
                // Thinking of another wire format.
                _ => {}
            }
        }
        if self.compat.reasoning_content && self.thinking {
            message.reasoning_content.get_or_insert_default();
        }
        let empty = !said && !matches!(message.content, Some(WireContent::Parts(_)));
        if empty && message.tool_calls.is_empty() {
            return;
        }
        self.after_result = false;
        self.open = !message.tool_calls.is_empty();
        self.out.push(message);
    }

    fn call(&self, call: &ToolCall) -> WireCall {
        let arguments = match serde_json::from_str::<Value>(&call.arguments) {
            Ok(Value::Object(_)) => call.arguments.clone(),
            // Servers parse this when they render their prompt; anything but an object would make each later
            // request of the session fail.
            Ok(other) => serde_json::json!({ "arguments": other }).to_string(),
            Err(_) => serde_json::json!({ "arguments": call.arguments }).to_string(),
        };
        WireCall {
            id: call_id(&call.id, self.short_ids),
            r#type: "function",
            function: WireFunction { name: call.name.clone(), arguments },
        }
    }

    fn result(&mut self, result: &ToolResult) {
        let mut text = self.plain(&result.content);
        let mut pictures = false;
        if self.images {
            for piece in &result.content {
                if let Content::Image(blob) = piece {
                    self.result_images.push(image(blob));
                    pictures = true;
                }
            }
        }
        if text.trim().is_empty() {
            text = if pictures { SEE_IMAGE } else { NO_OUTPUT }.to_owned();
        }
        self.open = true;
        self.after_result = true;
        self.out.push(Wire {
            role: "tool",
            content: Some(WireContent::Text(text)),
            tool_call_id: Some(call_id(&result.call_id, self.short_ids)),
            name: self.compat.tool_result_name.then(|| result.name.clone()),
            ..Wire::default()
        });
    }
}

fn image(blob: &Blob) -> Part {
    let url = format!("data:{};base64,{}", blob.mime_type, STANDARD.encode(&blob.data));
    Part::ImageUrl { image_url: ImageUrl { url } }
}

/// The id of a call as this wire format takes it: an id that came with it stays, one of another format is made to
/// fit. The same id always gives the same one, so that calls and results keep together.
pub(crate) fn call_id(id: &str, short: bool) -> String {
    if !id.contains('|') && (!short || id.len() <= MAX_ID) {
        return id.to_owned();
    }
    let clean: String =
        id.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect();
    if clean.len() <= MAX_ID {
        return clean;
    }
    // FNV-1a: only to keep ids apart that begin alike.
    let hash = id.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{}_{hash:08x}", clean.get(..MAX_ID - 9).unwrap_or(&clean))
}
