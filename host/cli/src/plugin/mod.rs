//! `atoll plugin`: a module for each subcommand.

mod inspect;
pub(crate) mod log;

use std::process::ExitCode;

use crate::arguments::PluginCommand;

pub(crate) async fn run(command: PluginCommand) -> anyhow::Result<ExitCode> {
    match command {
        PluginCommand::Inspect { file, json } => inspect::run(&file, json).await,
        PluginCommand::Log { plugin, denied, since, follow, json } => {
            log::run(log::Filter { plugin, denied, since }, follow, json).await
        }
    }
}
