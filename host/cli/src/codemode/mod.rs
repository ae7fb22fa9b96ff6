//! `atoll codemode`: scripts against the tool table, without a model.

mod run;
mod types;

use std::process::ExitCode;

use crate::arguments::{CodemodeCommand, ExtensionArguments, TrustArguments};

pub(crate) async fn run(
    command: CodemodeCommand,
    trust: TrustArguments,
    extensions: &ExtensionArguments,
) -> anyhow::Result<ExitCode> {
    match command {
        CodemodeCommand::Run(script) => run::run(&script, trust, extensions).await,
        CodemodeCommand::Types { all, tools } => types::print(all, tools.as_deref(), trust, extensions).await,
    }
}
