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
    /// Each call is told its number, from 0.
    #[serde(default)]
    number: bool,
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
                "number": { "type": "boolean" },
            },
            "required": ["tool"],
        }))
    }

    async fn run(arguments: NestArguments, call: Call) -> Result<ToolOutput, Error> {
        let NestArguments { tool, arguments, times, number } = arguments;
        let numbered = |at: usize| {
            let mut arguments = arguments.clone();
            if number {
                arguments["number"] = json!(at);
            }
            arguments
        };
        let all: Vec<Value> = (0..times).map(numbered).collect();
        let calls = all.iter().map(|arguments| call.call_tool(&tool, arguments));
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
    expect: Option<String>,
    search: Option<String>,
    find: Option<String>,
    group: Option<String>,
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
                "expect": { "type": "string", "description": "A group that is to come" },
                "search": { "type": "string" },
                "find": { "type": "string" },
                "group": { "type": "string" },
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
        if let Some(group) = arguments.expect {
            table::expect(&group, true)?;
        }
        if let Some(words) = arguments.find {
            let found = table::find(words, 3, arguments.group.clone()).await?;
            said.extend(found.tools.into_iter().map(|tool| tool.name));
            said.extend(found.waiting.into_iter().map(|group| format!("waiting: {group}")));
        } else if let Some(name) = arguments.group {
            let group = table::group_of(name).await?;
            said.push(format!("{}: {}", group.name, group.tools.join(" ")));
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

/// What a call can say of itself: keeps what it is told, and shows what was kept, what it can call and what it has left.
struct Remember;

#[derive(serde::Deserialize)]
struct RememberArguments {
    #[serde(default)]
    keep: Vec<(String, Option<Value>)>,
    #[serde(default)]
    kept: Vec<String>,
    #[serde(default)]
    callable: bool,
    #[serde(default)]
    left: bool,
    #[serde(default)]
    fails: bool,
    /// The text it gives, so often.
    text: Option<(String, usize)>,
    shape: Option<u32>,
    /// How it looks before it waits for ever.
    hangs: Option<String>,
}

impl Tool for Remember {
    type Arguments = RememberArguments;

    fn info() -> ToolInfo {
        ToolInfo::new("remember", "Keeps something for the next time.").parameters(&json!({"type": "object"}))
    }

    async fn run(arguments: RememberArguments, call: Call) -> Result<ToolOutput, Error> {
        let RememberArguments { keep, kept, callable, left, fails, text, shape, hangs } = arguments;
        if let Some(text) = hangs {
            call.update(&[atoll_plugin::Content::Text(text)], None);
            clock::sleep(u64::from(u32::MAX)).await;
        }
        if let Some(shape) = shape {
            call.shape(shape, true);
        }
        if let Some((text, times)) = text {
            return Ok(ToolOutput::text(text.repeat(times)));
        }
        let mut said = json!({});
        for (key, value) in keep {
            if let Err(error) = call.keep(&key, value.as_ref()) {
                said["refused"] = json!({"code": error.code(), "message": error.to_string()});
            }
        }
        for key in kept {
            said[&key] = json!(call.kept(&key));
        }
        if callable {
            let callable = call.callable()?;
            let tools = callable.tools.iter().map(|tool| {
                json!({"name": tool.name, "id": tool.identifier, "does": tool.summary, "structured": tool.structured})
            });
            said["callable"] = tools.collect();
            said["version"] = json!(callable.version);
        }
        if left {
            let left = call.left();
            said["left"] = json!({"cpu": left.cpu_ms, "wall": left.wall_ms});
        }
        if fails {
            return Err(Error::Failed(said.to_string()));
        }
        Ok(ToolOutput::text(said.to_string()))
    }
}

/// Runs scripts of a language of its own: a word a line, with the rest of the line.
struct Interpret;

#[derive(serde::Deserialize)]
struct Script {
    code: String,
}

/// What a script has given so far: a word for each piece, and the piece.
#[derive(Default)]
struct Given(Vec<(&'static str, String)>);

impl Given {
    fn output(self, error: Option<&Error>) -> ToolOutput {
        let parts: Vec<&str> = self.0.iter().map(|(part, _)| *part).collect();
        let mut details = json!({"parts": parts});
        if let Some(error) = error {
            details["error"] = json!({"code": error.code(), "message": error.to_string()});
        }
        let content = self.0.into_iter().map(|(_, text)| atoll_plugin::Content::Text(text)).collect();
        ToolOutput { content, is_error: error.is_some(), ..ToolOutput::text("").with_details(&details) }
    }
}

impl Tool for Interpret {
    type Arguments = Script;

    fn info() -> ToolInfo {
        ToolInfo::new("interpret", "Runs a script.").parameters(&json!({
            "type": "object",
            "properties": { "code": { "type": "string" } },
            "required": ["code"],
        }))
    }

    async fn run(arguments: Script, call: Call) -> Result<ToolOutput, Error> {
        let mut given = Given::default();
        given.0.push(("status", "Began.".to_owned()));
        for line in arguments.code.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "text" => given.0.push(("text", format!("--- text ---\n{rest}"))),
                "log" => given.0.push(("console", rest.to_owned())),
                "long" => {
                    call.shape(200, false);
                    given.0.push(("text", format!("{rest}\n").repeat(100)));
                }
                "keep" => call.keep(rest, Some(&json!(rest)))?,
                "kept" => given.0.push(("text", call.kept(rest).unwrap_or_default().to_string())),
                "show" => call.update(&[atoll_plugin::Content::Text(rest.to_owned())], None),
                "wait" => clock::sleep(rest.parse().unwrap_or(u64::MAX)).await,
                "left" => given.0.push(("text", format!("{:?}", call.left().wall_ms.map(|ms| ms / 1_000)))),
                "call" => {
                    let (tool, arguments) = rest.split_once(' ').unwrap_or((rest, "{}"));
                    match call.call_tool(tool, &arguments.parse().unwrap_or_default()).await {
                        Ok(output) => given.0.push(("text", shown(Ok(output)).to_string())),
                        Err(error) => {
                            given.0.push(("error", error.to_string()));
                            return Ok(given.output(Some(&error)));
                        }
                    }
                }
                _ => return Err(Error::Failed(format!("what is {word}?"))),
            }
        }
        Ok(given.output(None))
    }
}

export_tools!(Nest, ChangeTable, Pause, Remember, Interpret);
