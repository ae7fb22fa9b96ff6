//! The tool `write`: makes or replaces a whole file.

use atoll_plugin::types::Annotations;
use atoll_plugin::{Call, Error, Tool, ToolInfo, ToolOutput, export_tools, files};
use atoll_tool_text::{count_lines, format_size, name_path, path_argument};
use serde_json::json;

struct Write;

#[derive(serde::Deserialize)]
struct Arguments {
    path: String,
    content: String,
}

impl Tool for Write {
    type Arguments = Arguments;

    fn info() -> ToolInfo {
        ToolInfo::new(
            "write",
            "Makes a file with the given content, and the directories above it. A file that exists is replaced as a \
             whole; to change parts of one, use edit.",
        )
        .prompt_snippet("Make a file or replace all of it")
        .prompt_guideline("Call write for new files and complete rewrites only.")
        .parameters(&json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "The file; relative paths start in the working directory" },
                "content": { "type": "string", "description": "All of the file's text, written exactly as it is" },
            },
            "required": ["path", "content"],
        }))
        .annotations(Annotations {
            read_only: Some(false),
            destructive: Some(true),
            idempotent: Some(true),
            open_world: Some(false),
        })
    }

    async fn run(arguments: Arguments, _call: Call) -> Result<ToolOutput, Error> {
        let path = path_argument(&arguments.path);
        let summary = summary(&path, &arguments.content);
        // Held until the file is written: another call may be changing the same file.
        let _lock = files::lock(path.clone()).await.map_err(|error| name_path(&path, error))?;
        let options = files::WriteOptions { create_parents: true, expected: None, exclusive: false };
        files::write(path.clone(), arguments.content.into_bytes(), options)
            .await
            .map_err(|error| name_path(&path, error))?;
        Ok(ToolOutput::text(summary))
    }
}

/// What the model reads after success.
fn summary(path: &str, content: &str) -> String {
    let lines = count_lines(content);
    let plural = if lines == 1 { "" } else { "s" };
    format!("Wrote {path}: {lines} line{plural}, {}.", format_size(content.len() as u64))
}

export_tools!(Write);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_tells_how_much() {
        assert_eq!(summary("a.txt", ""), "Wrote a.txt: 0 lines, 0B.");
        assert_eq!(summary("a.txt", "x\n"), "Wrote a.txt: 1 line, 2B.");
        assert_eq!(summary("a.txt", "x\ny"), "Wrote a.txt: 2 lines, 3B.");
    }
}
