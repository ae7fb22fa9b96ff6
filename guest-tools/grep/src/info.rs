//! What the table holds of the tool.

use atoll_plugin::ToolInfo;
use atoll_plugin::types::Annotations;
use serde_json::json;

/// The tool's entry in the table.
pub(crate) fn info() -> ToolInfo {
    ToolInfo::new(
        "grep",
        "Finds the lines of files that match a regular expression or a text. Binary files and what `.gitignore` names \
         are left out, unless `path` names it. Matches come in the order of paths and lines, up to 100 of them or \
         50 KB; of a line longer than 500 characters, the part around the match.",
    )
    .prompt_snippet("Search the contents of files (leaves out what .gitignore names)")
    .inactive()
    .parameters(&json!({
        "type": "object",
        "properties": {
            "pattern": { "type": "string", "description": "A regular expression (Rust syntax), or a text with `literal`; matches within one line" },
            "path": { "type": "string", "description": "A file, or a directory to search with all below it; without it, the working directory" },
            "glob": { "type": "string", "description": "Only files that match, relative to `path`: `*.ts`, `src/**/*.rs`; a leading `!` leaves them out instead" },
            "ignoreCase": { "type": "boolean", "description": "Take capital and small letters for the same" },
            "literal": { "type": "boolean", "description": "Take the pattern as it is written, without special characters" },
            "context": { "type": "integer", "description": "How many lines to show before and after each match; without it, none" },
            "limit": { "type": "integer", "description": "How many matches at most; without it, 100" },
        },
        "required": ["pattern"],
    }))
    .output_schema(&json!({
        "type": "object",
        "properties": {
            "lines": {
                "type": "array",
                "description": "In the order of paths and lines",
                "items": {
                    "type": "object",
                    "properties": {
                        "path": { "type": "string", "description": "Relative to the searched directory; of a searched file, its name" },
                        "line": { "type": "integer", "description": "Counted from 1" },
                        "text": { "type": "string" },
                        "match": { "type": "boolean", "description": "false: context" },
                    },
                    "required": ["path", "line", "text", "match"],
                },
            },
            "matches": { "type": "integer", "description": "How many lines matched" },
            "truncated": { "type": "boolean", "description": "There are more matches" },
        },
        "required": ["lines", "matches", "truncated"],
    }))
    .annotations(Annotations {
        read_only: Some(true),
        destructive: Some(false),
        idempotent: Some(true),
        open_world: Some(false),
    })
}
