//! What a tool of a server gave, as the result of a call.

use atoll_mcp_client::result::{most_characters, shape};
use atoll_mcp_connection::shown;
use atoll_plugin::{Content, ToolOutput, progress};
use serde_json::Value;

/// Has a model get so much of a call's text as of a result of the other adapter; the whole is in a file.
pub(crate) fn cut(call: &str, content: &[Content]) {
    let texts = content.iter().filter_map(|piece| match piece {
        Content::Text(text) => Some(text.as_str()),
        Content::Image(_) => None,
    });
    progress::shape(call, most_characters(&texts.collect::<Vec<_>>()), false);
}

/// A result as the protocol has it, as that of a call.
pub(crate) fn of(server: &str, tool: &str, result: Value) -> ToolOutput {
    let shaped = shape(server, tool, result);
    ToolOutput {
        content: shown::content(shaped.pieces),
        details: None,
        structured: Some(shaped.whole.to_string()),
        is_error: shaped.is_error,
        terminate: false,
        usage: None,
    }
}
