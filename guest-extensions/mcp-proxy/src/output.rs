//! What a tool of a server gave, as the result of a call.

use atoll_mcp_client::{
    result::{Piece, shape},
    session::Progress,
};
use atoll_plugin::{Content, ToolOutput, types::Blob};
use serde_json::Value;

/// How much of a result's text a model gets, in characters; the whole is in a file.
pub(crate) const MAX_TEXT: u32 = 20 * 1024;

/// A result as the protocol has it, as that of a call.
pub(crate) fn of(server: &str, tool: &str, result: Value) -> ToolOutput {
    let shaped = shape(server, tool, result);
    let content = shaped.pieces.into_iter().map(|piece| match piece {
        Piece::Text(text) => Content::Text(text),
        Piece::Image { data, mime_type } => Content::Image(Blob { data, mime_type }),
        Piece::Blob { uri, data, mime_type } => {
            Content::Text(format!("[Resource {uri} ({mime_type}, {} bytes) omitted]", data.len()))
        }
    });
    ToolOutput {
        content: content.collect(),
        details: None,
        structured: Some(shaped.whole.to_string()),
        is_error: shaped.is_error,
        terminate: false,
        usage: None,
    }
}

/// A step of a call, for a person.
pub(crate) fn shown(step: &Progress) -> String {
    let of = step.total.map(|total| format!(" of {total}")).unwrap_or_default();
    match &step.message {
        Some(message) => format!("{}{of}: {message}", step.done),
        None => format!("{}{of}", step.done),
    }
}
