//! What the table holds of the tool.

use atoll_plugin::ToolInfo;
use atoll_plugin::types::Annotations;
use serde_json::json;

/// The tool's entry in the table.
pub(crate) fn info() -> ToolInfo {
    ToolInfo::new(
        "find",
        "Finds files and directories by a glob. Without a `/` the glob is about names at any depth (`*.ts`), with one \
         about paths from `path` on (`src/**/*.ts`); all in small letters it stands for capitals too. Leaves out what \
         `.gitignore` names, unless the glob starts with it. Paths come in order and are relative to `path`, a `/` \
         follows a directory; up to 1000 paths or 50 KB.",
    )
    .prompt_snippet("Find files by a glob (leaves out what .gitignore names)")
    .inactive()
    .parameters(&json!({
        "type": "object",
        "properties": {
            "pattern": { "type": "string", "description": "A glob: `*`, `?`, `[ab]`, `{a,b}`, and `**` for directories" },
            "path": { "type": "string", "description": "The directory to search; without it, the working directory" },
            "limit": { "type": "integer", "description": "How many paths at most; without it, 1000" },
        },
        "required": ["pattern"],
    }))
    .output_schema(&json!({
        "type": "object",
        "properties": {
            "paths": {
                "type": "array",
                "items": { "type": "string" },
                "description": "In order, relative to `path`, directories with a `/` at the end",
            },
            "truncated": { "type": "boolean", "description": "There are more" },
        },
        "required": ["paths", "truncated"],
    }))
    .annotations(Annotations {
        read_only: Some(true),
        destructive: Some(false),
        idempotent: Some(true),
        open_world: Some(false),
    })
}
