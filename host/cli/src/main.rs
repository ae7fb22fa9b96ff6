//! The `atoll` command. It only reads arguments, puts the parts together and shows what happens: nothing here
//! decides what a plugin may do or how the agent works.

mod additions;
mod approval;
mod arguments;
mod assemble;
mod assembled;
mod awaited;
mod builtins;
mod candidates;
mod catalog;
mod codemode;
mod demo;
mod dialogs;
mod directories;
mod doctor;
mod dormant;
mod exit;
mod extension_files;
mod host_facts;
mod input;
mod installed;
mod loaded;
mod model_source;
mod one_call;
mod person;
mod plugin;
mod plugin_files;
mod print_mode;
mod project;
mod project_trust;
mod reload;
mod replaceable;
mod scripts;
mod settings_of;
mod show;
mod signals;
mod spelling;
mod spilled;
mod subcommand;
mod terminal;
mod tool_command;
mod trust_command;
mod watch;

use std::process::ExitCode;

use clap::CommandFactory as _;

use arguments::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { exit::USAGE.into() } else { ExitCode::SUCCESS };
        }
    };
    start_log();
    match run(arguments) {
        Ok(code) => code,
        // As for other programs whose reader has what it wanted.
        Err(error) if terminal::is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::note(format_args!("{error:#}"));
            exit::code_of(&error).into()
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if let Some(Command::Completions { shell }) = &arguments.command {
        let mut script = Vec::new();
        clap_complete::generate(*shell, &mut Arguments::command(), "atoll", &mut script);
        terminal::piece(String::from_utf8_lossy(&script))?;
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(async {
        let (trust, extensions) = (arguments.trust, arguments.extensions);
        if let Some(typed) = arguments.typed {
            return subcommand::run(typed, trust, &extensions).await;
        }
        match arguments.command {
            None => print_mode::run(arguments.prompt, trust, extensions).await,
            Some(Command::Demo { fast }) => demo::run(fast).await,
            Some(Command::Tool { command }) => tool_command::run(command, trust, &extensions).await,
            Some(Command::Codemode { command }) => codemode::run(command, trust, &extensions).await,
            Some(Command::Plugin { command }) => plugin::run(command, trust).await,
            Some(Command::Trust { command }) => trust_command::run(&command, trust),
            Some(Command::Doctor { json }) => doctor::run(json, trust, &extensions).await,
            Some(Command::Completions { .. }) => Ok(ExitCode::SUCCESS),
        }
    });
    // What is still started has to be in the log.
    atoll_engine::stop_starting_processes();
    exit::close_log();
    // Work that can not be interrupted, such as a read of standard input that never comes, must not hold up the end.
    runtime.shutdown_background();
    code
}

/// Logs go to standard error, and only when asked for: standard output belongs to the answer.
fn start_log() {
    let Ok(filter) = std::env::var("ATOLL_LOG") else { return };
    let filter = tracing_subscriber::EnvFilter::builder().parse_lossy(filter);
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
