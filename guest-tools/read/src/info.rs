//! What the table holds of the tool.

use atoll_plugin::ToolInfo;
use atoll_plugin::types::Annotations;
use serde_json::json;

/// The tool's entry in the table.
pub(crate) fn info() -> ToolInfo {
    ToolInfo::new(
        "read",
        "Shows a text file or a picture (PNG, JPEG, GIF, WebP, BMP). A text is cut after 2000 lines or 50 KB, \
         whichever comes first; the last line of the result then names the offset that continues it. A picture of \
         more than 2000 pixels on a side is scaled down, and the result says by how much. Binary files are refused.",
    )
    .prompt_snippet("Look into a text file or a picture")
    .prompt_guideline("To look into a file, call read; do not start cat, head or sed for it.")
    .parameters(&json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "description": "The file; relative paths start in the working directory" },
            "offset": { "type": "integer", "minimum": 0, "description": "First line to show, counted from 1" },
            "limit": { "type": "integer", "minimum": 1, "description": "How many lines to show at most" },
        },
        "required": ["path"],
    }))
    .output_schema(&json!({
        "description": "The text, with the bracketed line at its end if it was cut; or the picture",
        "anyOf": [
            { "type": "string" },
            {
                "type": "object",
                "properties": {
                    "type": { "const": "image" },
                    "data": { "type": "string", "description": "The picture as it is shown, in base64" },
                    "mimeType": { "type": "string" },
                    "note": { "type": "string" },
                },
                "required": ["type", "data", "mimeType", "note"],
            },
        ],
    }))
    .annotations(Annotations {
        read_only: Some(true),
        destructive: Some(false),
        idempotent: Some(true),
        open_world: Some(false),
    })
}
