//! What the table holds of the tool.

use atoll_plugin::ToolInfo;
use atoll_plugin::types::Annotations;
use serde_json::json;

/// The longest timeout in seconds: 2^31 - 1 milliseconds.
pub(crate) const MAX_TIMEOUT: f64 = 2_147_483.647;

/// The tool's entry in the table.
pub(crate) fn info() -> ToolInfo {
    ToolInfo::new(
        "bash",
        "Runs a command line in the user's shell, in the working directory and without standard input. The result is \
         what it printed, standard output and errors together; of a long output the last 2000 lines or 50 KB, and \
         the path of a file that has all of it, up to 256 MiB. Without a timeout it may run as long as it likes, but \
         when it has printed 1 GiB it is ended. When the shell has exited, processes that it left in the background \
         are ended too, unless they detached themselves with setsid and write elsewhere.",
    )
    .prompt_snippet("Run a command line in the shell")
    .parameters(&json!({
        "type": "object",
        "properties": {
            "command": { "type": "string", "description": "The command line" },
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": MAX_TIMEOUT,
                "description": "Seconds after which it is ended with all it started; leave out for no bound",
            },
        },
        "required": ["command"],
    }))
    .output_schema(&json!({
        "type": "object",
        "properties": {
            "output": { "type": "string", "description": "What it printed, unchanged; the first and last 512 KiB if it is over 1 MiB" },
            "truncated": { "type": "boolean", "description": "The middle of output was left out" },
            "full_output_path": { "type": "string", "description": "A file with all of it, or its first 256 MiB, if it was too long for the model or for output" },
            "exit_code": { "type": "integer", "description": "128 + n if signal n ended it" },
            "wall_time_seconds": { "type": "number" },
        },
        "required": ["output", "truncated", "exit_code", "wall_time_seconds"],
    }))
    .annotations(Annotations {
        read_only: Some(false),
        destructive: Some(true),
        idempotent: Some(false),
        open_world: Some(true),
    })
}
