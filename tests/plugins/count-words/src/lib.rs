//! Counts words.

use atoll_plugin::{Call, Error, Tool, ToolInfo, ToolOutput, export_tools, files};
use serde_json::json;

struct CountWords;

#[derive(serde::Deserialize)]
struct Arguments {
    path: String,
}

impl Tool for CountWords {
    type Arguments = Arguments;

    fn info() -> ToolInfo {
        ToolInfo::new("count_words", "Counts the words of a text file.").parameters(&json!({
            "type": "object",
            "properties": { "path": { "type": "string" } },
            "required": ["path"],
        }))
    }

    async fn run(arguments: Arguments, _call: Call) -> Result<ToolOutput, Error> {
        let bytes = files::read(arguments.path, None).await?;
        let words = String::from_utf8_lossy(&bytes).split_whitespace().count();
        Ok(ToolOutput::text(format!("{words} words")).with_structured(&json!(words)))
    }
}

export_tools!(CountWords);
