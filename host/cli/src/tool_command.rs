//! `atoll tool`: the table, and calls without a model.

use std::{process::ExitCode, sync::Arc};

use anyhow::Context as _;
use atoll_agent::{Pipeline, pipeline::Bounds};
use atoll_caps::printable;
use atoll_table::{Content, Registered, Table};
use serde_json::{Value, json};

use crate::{
    arguments::{ExtensionArguments, ToolCommand, TrustArguments},
    assemble::Parts,
    assembled::{Surroundings, report_as_note},
    awaited,
    one_call::{Call, Setup, one_call},
    terminal,
};

pub(crate) async fn run(
    command: ToolCommand,
    trust: TrustArguments,
    extensions: &ExtensionArguments,
) -> anyhow::Result<ExitCode> {
    match command {
        ToolCommand::List { json } => list(json, trust, extensions).await,
        ToolCommand::Call { name, arguments, sandbox_bash, json } => {
            call(&name, &arguments, sandbox_bash, json, trust, extensions).await
        }
    }
}

async fn list(as_json: bool, trust: TrustArguments, extensions: &ExtensionArguments) -> anyhow::Result<ExitCode> {
    let parts = Arc::new(Parts::for_run(trust, !as_json, extensions, false).await?);
    let assembled = parts.load(extensions, report_as_note()).await?;
    assembled.start(Surroundings::of_command(None)).await?;
    let late = awaited::all(&assembled.pipeline).await;
    let listed = show(&assembled.pipeline, as_json);
    assembled.end().await;
    listed?;
    if !late.is_empty() {
        terminal::note(format_args!("tools of {} are still to come, and may be missing in this list", late.join(", ")));
    }
    Ok(ExitCode::SUCCESS)
}

fn show(pipeline: &Pipeline, as_json: bool) -> std::io::Result<()> {
    pipeline.table(|table| {
        if as_json {
            let all: Vec<Value> = table.tools().iter().map(|entry| record(table, entry)).collect();
            return terminal::line(Value::Array(all));
        }
        terminal::line(format_args!("{:<16} {:<11} {:<7} {:<16} DOES", "TOOL", "EXPOSURE", "ACTIVE", "PLUGIN"))?;
        for entry in table.tools() {
            let exposure = json!(entry.tool.exposure);
            let does = entry.tool.prompt_snippet.as_deref().unwrap_or_else(|| first_sentence(&entry.tool.description));
            // What a plugin says of itself does nothing to the terminal, and forges no line.
            terminal::line(format_args!(
                "{:<16} {:<11} {:<7} {:<16} {}",
                printable(&entry.tool.name),
                exposure.as_str().unwrap_or_default(),
                if table.is_active(&entry.tool.name) { "yes" } else { "no" },
                printable(&entry.plugin),
                printable(does),
            ))?;
        }
        Ok(())
    })
}

fn first_sentence(text: &str) -> &str {
    text.split_inclusive(['.', '\n']).next().unwrap_or(text).trim()
}

fn record(table: &Table, entry: &Arc<Registered>) -> Value {
    let mut record = serde_json::to_value(&entry.tool).unwrap_or_default();
    record["active"] = json!(table.is_active(&entry.tool.name));
    record["plugin"] = json!(entry.plugin);
    record["allowed"] = json!(entry.runner.allowed());
    record
}

async fn call(
    name: &str,
    arguments: &str,
    sandbox_bash: bool,
    as_json: bool,
    trust: TrustArguments,
    extensions: &ExtensionArguments,
) -> anyhow::Result<ExitCode> {
    let arguments: Value = serde_json::from_str(arguments)
        .context("the arguments are not JSON; put them in single quotes: '{\"path\": \"x\"}'")?;
    let setup = Setup { trust, extensions, may_ask_trust: !as_json, sandbox_bash, tools: None };
    let call = |_: &Pipeline| Ok(Call { name: name.to_owned(), arguments, bounds: Bounds::default() });
    let called = match one_call(setup, call).await? {
        Ok(called) => called,
        Err(status) => return Ok(status.into()),
    };
    let status = called.status();
    if as_json {
        terminal::json(&called.record())?;
        return Ok(status.into());
    }
    for piece in &called.output.content {
        match piece {
            Content::Text { text } if called.output.is_error => terminal::lines(text),
            Content::Text { text } => terminal::output(text.strip_suffix('\n').unwrap_or(text))?,
            Content::Image { data, mime_type } => {
                terminal::line(format_args!("[{}, {} bytes in base64]", printable(mime_type), data.len()))?;
            }
        }
    }
    Ok(status.into())
}
