//! What the table holds of the tool.

use atoll_plugin::ToolInfo;
use atoll_plugin::types::Annotations;
use serde_json::json;

/// The tool's entry in the table.
pub(crate) fn info() -> ToolInfo {
    ToolInfo::new(
        "edit",
        "Changes parts of a text file. Each edit names a text that is in the file exactly once and what to put in its \
         place. All edits are looked up in the file as it was before the call, must not overlap, and are made together or \
         not at all.",
    )
    .prompt_snippet("Change parts of a text file by naming the old and the new text")
    .prompt_guideline("Put all changes to one file into one call of edit, one entry in edits for each place.")
    .prompt_guideline("Keep oldText short: only as many lines as make it unique. Join edits that touch the same lines.")
    .prepares()
    .parameters(&json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "description": "The file; relative paths start in the working directory" },
            "edits": {
                "type": "array",
                "minItems": 1,
                "description": "The changes, in any order",
                "items": {
                    "type": "object",
                    "properties": {
                        "oldText": { "type": "string", "description": "Text copied from the file that is in it once only" },
                        "newText": { "type": "string", "description": "What takes its place; may be empty" },
                    },
                    "required": ["oldText", "newText"],
                },
            },
        },
        "required": ["path", "edits"],
    }))
    .annotations(Annotations {
        read_only: Some(false),
        destructive: Some(true),
        idempotent: Some(false),
        open_world: Some(false),
    })
}
