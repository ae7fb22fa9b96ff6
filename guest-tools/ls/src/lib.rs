//! The tool `ls`: the names in a directory.

mod order;
mod render;

use atoll_plugin::types::Annotations;
use atoll_plugin::{Call, Error, Tool, ToolInfo, ToolOutput, export_tools, files};
use atoll_tool_text::{name_path, path_argument, whole_number};
use serde_json::json;

/// Names shown if the caller does not say.
const DEFAULT_LIMIT: usize = 500;

/// Names asked for: sorting needs them all, so this bounds memory only.
const MOST: u32 = 200_000;

struct Ls;

#[derive(serde::Deserialize)]
struct Arguments {
    path: Option<String>,
    limit: Option<f64>,
}

impl Tool for Ls {
    type Arguments = Arguments;

    fn info() -> ToolInfo {
        ToolInfo::new(
            "ls",
            "Lists the names in a directory, hidden ones included, in alphabetical order. A `/` follows a directory, \
             an `@` a link that leads nowhere. Up to 500 names or 50 KB.",
        )
        .prompt_snippet("List a directory")
        .inactive()
        .parameters(&json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "The directory; without it, the working directory" },
                "limit": { "type": "integer", "minimum": 1, "description": "How many names at most; without it, 500" },
            },
        }))
        .output_schema(&json!({
            "type": "object",
            "properties": {
                "entries": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": { "type": "string" },
                            "kind": { "enum": ["file", "directory", "symlink", "other"], "description": "Links followed; symlink if it leads nowhere" },
                            "size": { "type": "integer", "description": "In bytes" },
                            "link": { "type": "boolean" },
                        },
                        "required": ["name", "kind", "size", "link"],
                    },
                },
                "truncated": { "type": "boolean", "description": "There are more names than limit" },
            },
            "required": ["entries", "truncated"],
        }))
        .annotations(Annotations {
            read_only: Some(true),
            destructive: Some(false),
            idempotent: Some(true),
            open_world: Some(false),
        })
    }

    async fn run(arguments: Arguments, _call: Call) -> Result<ToolOutput, Error> {
        let limit = whole_number("limit", arguments.limit, 1)?.unwrap_or(DEFAULT_LIMIT);
        let path = path_argument(arguments.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("."));
        let found = files::stat(path.clone()).await.map_err(|error| name_path(&path, error))?;
        if found.kind != files::Kind::Directory {
            return Err(Error::failed(format!("Not a directory: {path}")));
        }
        let listing = files::list_dir(path.clone(), MOST).await.map_err(|error| name_path(&path, error))?;
        let mut entries = listing.entries;
        order::sort(&mut entries);
        let more = listing.truncated || entries.len() > limit;
        entries.truncate(limit);
        let structured = render::structured(&entries, more);
        Ok(ToolOutput::text(render::text(&entries, more, limit)).with_structured(&structured))
    }
}

export_tools!(Ls);
