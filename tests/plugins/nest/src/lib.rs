//! A tool that calls other tools, one that changes the table, and one that does nothing: what the tests of nested calls
//! and the benchmark of many calls run.

use atoll_plugin::{Call, Error, Tool, ToolInfo, ToolOutput, clock, export_tools, table};
use futures::future::join_all;
use serde_json::{Value, json};

struct Nest;

#[derive(serde::Deserialize)]
struct NestArguments {
    tool: String,
    #[serde(default)]
    arguments: Value,
    #[serde(default = "once")]
    times: usize,
}

fn once() -> usize {
    1
}

/// What a call gave, as JSON.
fn shown(result: Result<ToolOutput, Error>) -> Value {
    match result {
        Ok(output) => {
            let texts = output.content.iter().filter_map(|piece| match piece {
                atoll_plugin::Content::Text(text) => Some(text.as_str()),
                atoll_plugin::Content::Image(_) => None,
            });
            json!({"text": texts.collect::<Vec<_>>().join("\n"), "isError": output.is_error})
        }
        Err(error) => json!({"code": error.code(), "message": error.to_string()}),
    }
}

impl Tool for Nest {
    type Arguments = NestArguments;

    fn info() -> ToolInfo {
        ToolInfo::new("nest", "Calls another tool, several times at once.").parameters(&json!({
            "type": "object",
            "properties": {
                "tool": { "type": "string" },
                "arguments": { "type": "object" },
                "times": { "type": "integer", "minimum": 1 },
            },
            "required": ["tool"],
        }))
    }

    async fn run(arguments: NestArguments, call: Call) -> Result<ToolOutput, Error> {
        let NestArguments { tool, arguments, times } = arguments;
        let calls = (0..times).map(|_| call.call_tool(&tool, &arguments));
        let results: Vec<Value> = join_all(calls).await.into_iter().map(shown).collect();
        Ok(ToolOutput::text(Value::from(results).to_string()))
    }
}

struct ChangeTable;

#[derive(serde::Deserialize)]
struct TableArguments {
    activate: Option<String>,
    deactivate: Option<String>,
    withdraw: Option<String>,
    #[serde(default)]
    add: Vec<String>,
    search: Option<String>,
    describe: Option<String>,
    as_call: Option<String>,
}

impl Tool for ChangeTable {
    type Arguments = TableArguments;

    fn info() -> ToolInfo {
        ToolInfo::new("change_table", "Looks at the table and changes it.").parameters(&json!({
            "type": "object",
            "properties": {
                "activate": { "type": "string" },
                "deactivate": { "type": "string" },
                "withdraw": { "type": "string" },
                "add": { "type": "array", "items": { "type": "string" } },
                "search": { "type": "string" },
                "describe": { "type": "string" },
                "as_call": { "type": "string", "description": "The id of a call that is not this one" },
            },
        }))
    }

    async fn run(arguments: TableArguments, _: Call) -> Result<ToolOutput, Error> {
        let mut said = Vec::new();
        if let Some(name) = arguments.activate {
            table::activate(vec![name], true).await?;
        }
        if let Some(name) = arguments.deactivate {
            table::activate(vec![name], false).await?;
        }
        if let Some(name) = arguments.withdraw {
            table::unregister(vec![name]).await?;
        }
        if !arguments.add.is_empty() {
            let tool = |name: &String| {
                let object = json!({ "type": "object" });
                ToolInfo::new(name, "Was added.").parameters(&object).into_tool()
            };
            table::register(arguments.add.iter().map(tool).collect()).await?;
        }
        if let Some(words) = arguments.search {
            said.extend(table::search(words, 3).await?.into_iter().map(|tool| tool.name));
        }
        if let Some(name) = arguments.describe {
            said.push(table::describe(name).await?.shape);
        }
        if let Some(id) = arguments.as_call {
            table::call(Some(id), "ls".to_owned(), "{}".to_owned()).await?;
        }
        Ok(ToolOutput::text(said.join("\n")))
    }
}

/// Does nothing for a while.
struct Pause;

#[derive(serde::Deserialize)]
struct PauseArguments {
    milliseconds: u64,
}

impl Tool for Pause {
    type Arguments = PauseArguments;

    fn info() -> ToolInfo {
        ToolInfo::new("pause", "Comes back after a while.").parameters(&json!({
            "type": "object",
            "properties": { "milliseconds": { "type": "integer", "minimum": 0 } },
            "required": ["milliseconds"],
        }))
    }

    async fn run(arguments: PauseArguments, _: Call) -> Result<ToolOutput, Error> {
        if arguments.milliseconds > 0 {
            clock::sleep(arguments.milliseconds).await;
        }
        Ok(ToolOutput::text("done"))
    }
}

export_tools!(Nest, ChangeTable, Pause);
