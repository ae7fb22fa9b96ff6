//! What a tool of a server gave, as the result of a call.

use atoll_mcp_client::result::shape;
use atoll_mcp_connection::shown;
use atoll_plugin::ToolOutput;
use serde_json::Value;

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
