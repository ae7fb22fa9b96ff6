//! `atoll codemode types`: what scripts find, for an editor.

use std::{process::ExitCode, sync::Arc};

use atoll_table::{Table, tool::Exposure};

use crate::{
    arguments::{ExtensionArguments, TrustArguments},
    assemble::Parts,
    assembled::{Surroundings, report_as_note},
    terminal,
};

/// How to use what is printed.
const HOW: &str = "\
// What scripts of `atoll codemode run` find here. Put this into a file such as atoll.d.ts, and into the script's first line
// /// <reference path=\"atoll.d.ts\" />
// A script is the body of an async function: `return` and `await` stand at its top.
";

pub(super) async fn print(
    all: bool,
    trust: TrustArguments,
    extensions: &ExtensionArguments,
) -> anyhow::Result<ExitCode> {
    let parts = Arc::new(Parts::for_run(trust, true, extensions, false).await?);
    let assembled = parts.load(extensions, report_as_note()).await?;
    assembled.start(Surroundings::of_command(None)).await?;
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
