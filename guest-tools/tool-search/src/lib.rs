//! The tool `tool_search`: finds tools that are not declared to the model, and has them declared from the next request on.
//!
//! What the user switched off stays off: the table says so, and this tool passes it on.

mod found;

use atoll_plugin::types::{Annotations, Exposure};
use atoll_plugin::{Call, Error, Tool, ToolInfo, ToolOutput, export_tools, table};
use found::{Found, rendered};
use serde_json::json;

/// Tools loaded by one search if the caller does not say.
const DEFAULT_LIMIT: u32 = 8;
/// Tools loaded by one search at most: each costs its declaration in every later request.
const MOST: u32 = 50;
/// How many hits are looked through for those that can be loaded: those that are declared already are hits, too.
const LOOKED_AT: u32 = 500;

struct ToolSearch;

#[derive(serde::Deserialize)]
struct Arguments {
    query: String,
    limit: Option<u32>,
}

impl Tool for ToolSearch {
    type Arguments = Arguments;

    fn info() -> ToolInfo {
        ToolInfo::new(
            "tool_search",
            "Looks for tools beyond those declared to you, by words of what they do or by name, and loads the best \
             matches. What was loaded can be called from your next message on. Search again with other words if nothing \
             fits.",
        )
        .prompt_snippet("Find and load tools that are not declared yet")
        .exposure(Exposure::ModelOnly)
        .inactive()
        .parameters(&json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "Words of what the tool should do, or its name" },
                "limit": {
                    "type": "integer", "minimum": 1, "maximum": MOST,
                    "description": "How many tools to load at most; without it, 8",
                },
            },
            "required": ["query"],
        }))
        .annotations(Annotations {
            read_only: Some(true),
            destructive: Some(false),
            idempotent: Some(true),
            open_world: Some(false),
        })
    }

    async fn run(arguments: Arguments, _call: Call) -> Result<ToolOutput, Error> {
        let Arguments { query, limit } = arguments;
        if query.trim().is_empty() {
            return Err(Error::invalid_arguments("The query is empty: say in a few words what the tool should do."));
        }
        let limit = limit.unwrap_or(DEFAULT_LIMIT).min(MOST) as usize;
        // Only those that were made to be found; what is declared, or was taken away by its user, is not loaded again.
        let inactive: Vec<String> = table::list()
            .await?
            .into_iter()
            .filter(|entry| !entry.active && matches!(entry.tool.exposure, Exposure::Codemode | Exposure::Deferred))
            .map(|entry| entry.tool.name)
            .collect();
        let found = table::find(query, LOOKED_AT, None).await?;
        let fitting = found.tools.into_iter().filter(|hit| inactive.contains(&hit.name)).take(limit);
        let mut loaded = Vec::new();
        for hit in fitting {
            // One that the user switched off must not keep the others from being loaded.
            match table::activate(vec![hit.name.clone()], true).await {
                Ok(()) => loaded.push(Found { name: hit.name, description: hit.description }),
                Err(Error::Denied(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let names: Vec<&str> = loaded.iter().map(|found| found.name.as_str()).collect();
        let details = json!({"loaded": names});
        Ok(ToolOutput::text(rendered(&loaded, &found.waiting)).with_details(&details))
    }
}

export_tools!(ToolSearch);
