//! `atoll plugin`: a module for each subcommand.

mod inspect;

use std::process::ExitCode;

use crate::arguments::PluginCommand;

pub(crate) async fn run(command: PluginCommand) -> anyhow::Result<ExitCode> {
    match command {
        PluginCommand::Inspect { file, json } => inspect::run(&file, json).await,
    }
}
