//! What the table knows of the tool.

use atoll_plugin::ToolInfo;
use atoll_plugin::types::{Annotations, Exposure};
use serde_json::json;

/// What a model is told. What tools there are is added by whoever declares it.
pub(crate) const DESCRIPTION: &str = "\
Runs a script of yours that calls other tools, and shows you only what the script gives. Use it for work of several calls, or \
where a result is large and you need a little of it.

The script is the body of an async function in JavaScript or TypeScript: `await` and `return` work at the top. You see what it \
returns, what it passes to `text()` and `image()`, and the console; nothing else. Filter in the script and return little.

- `await tools.name({...})` calls a tool; `tools[\"raw-name\"]` if its name is no identifier. Several at once: \
`Promise.all` or `Promise.allSettled`. A call gives the tool's data where it declares a result type, otherwise its text; a \
picture is an object for `image()`. A failed call rejects with a `ToolError` that has `message`, `tool` and `code`. Calls \
that were made are not undone when the script fails.
- `text(value)`, `image(data URL or picture)`, `console.log(…)`; `exit()` ends the script in good order.
- `store(key, value)` keeps JSON for later scripts of this session, `load(key)` gives it back. Nothing else stays.
- `ALL_TOOLS`: `[{name, id, description}]`. `await searchTools(\"words\", {limit, namespace})` and `await describeTool(name)` \
give declarations, `await describeNamespace(name)` a group of tools.
- There: timers, `URL`, `TextEncoder`, `structuredClone`, `crypto.randomUUID`, `performance.now`, `Intl` for `en`. Not there: \
network, files, processes, modules (`import`, `require`), `process`, `Buffer`; tools do that.
- The first line may be `// @options: {\"max_output_tokens\": 10000, \"timeout_ms\": 60000, \"max_parallel_calls\": 16}`.";

pub(crate) fn info() -> ToolInfo {
    ToolInfo::new("codemode", DESCRIPTION)
        .prompt_snippet("Run a script that calls other tools and shows only what it gives")
        .exposure(Exposure::ModelOnly)
        .inactive()
        .parameters(&json!({
            "type": "object",
            "properties": {
                "code": {
                    "type": "string",
                    "description": "The body of an async function in JavaScript or TypeScript, as plain text",
                },
            },
            "required": ["code"],
            "additionalProperties": false,
        }))
        .annotations(Annotations { read_only: None, destructive: None, idempotent: None, open_world: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_is_short_enough_to_be_read_each_time() {
        assert!(DESCRIPTION.chars().count() <= 2_500, "{}", DESCRIPTION.chars().count());
        insta::assert_snapshot!(DESCRIPTION);
    }
}
