//! `atoll codemode types`: what scripts find, for an editor.

use std::{process::ExitCode, sync::Arc};

use anyhow::Context as _;
use atoll_table::{Table, tool::Exposure};

use crate::{
    arguments::{ExtensionArguments, TrustArguments},
    assemble::Parts,
    assembled::{Surroundings, report_as_note},
    awaited, terminal,
};

/// How to use what is printed.
const HOW: &str = "\
// What scripts of `atoll codemode run` find here. Put this into a file such as atoll.d.ts, and beside your scripts a
// jsconfig.json with {\"compilerOptions\": {\"checkJs\": true, \"target\": \"esnext\", \"lib\": [\"esnext\"]}}.
// A script is the body of an async function, which an editor can not know: it calls `return` and `await` at the top errors
// (1108, 1375, 1378). A script that is one whole `async () => { … }` has none of these.
";

pub(super) async fn print(
    all: bool,
    tools: Option<&[String]>,
    trust: TrustArguments,
    extensions: &ExtensionArguments,
) -> anyhow::Result<ExitCode> {
    let parts = Arc::new(Parts::for_run(trust, true, extensions, false).await?);
    let assembled = parts.load(extensions, report_as_note()).await?;
    assembled.start(Surroundings::of_command(None)).await?;
    let late = awaited::all(&assembled.pipeline).await;
    if !late.is_empty() {
        terminal::note(format_args!(
            "tools of {} are still to come, and may be missing in these types",
            late.join(", ")
        ));
    }
    let selected = tools.map_or(Ok(()), |tools| assembled.pipeline.change(|table| table.select(tools)));
    if let Err(error) = selected.context("--tools") {
        assembled.end().await;
        return Err(error);
    }
    if all {
        assembled.pipeline.change(activate_all);
    }
    let types = assembled.pipeline.table(Table::script_types);
    assembled.end().await;
    terminal::output(format!("{HOW}\n{types}").trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// Makes every tool active that the user has not switched off.
fn activate_all(table: &mut Table) {
    let direct = table.tools().iter().filter(|entry| entry.tool.exposure == Exposure::Direct);
    let names: Vec<String> = direct.map(|entry| entry.tool.name.clone()).collect();
    for name in names {
        // What is switched off stays off.
        let _ = table.activate(&[name], true);
    }
}
