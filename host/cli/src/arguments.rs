//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

const EXIT_CODES: &str = "\
Exit codes:
  0    it worked
  1    it failed: the model, a tool, a file
  2    the command line can not be understood
  3    something was not allowed; the message says what would allow it
  129  ended by SIGHUP
  130  stopped by Ctrl-C
  143  ended by SIGTERM

Environment:
  ATOLL_HOME      Atoll's directory (default: ~/.atoll)
  ATOLL_SCRIPT    the script that the model scripted/default plays
  ATOLL_LOG       log filter, such as `debug` or `plugin=trace`; logs go to standard error
  OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL    a server to ask without a models.json";

/// An agent host: it talks to a model, runs the tools the model asks for, and returns the result. Every tool and
/// every model provider is a sandboxed WebAssembly component.
#[derive(Debug, Parser)]
#[command(name = "atoll", version, after_help = EXIT_CODES, args_conflicts_with_subcommands = true, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) prompt: PromptArguments,
}

/// How a run's events are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// The answer's text on standard output, nothing else.
    Text,
    /// Every event as a line of JSON.
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct PromptArguments {
    /// Carry out the prompt, print the answer and exit.
    #[arg(short = 'p', long)]
    pub(crate) print: bool,
    /// How to show what happens.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) mode: Mode,
    /// The model, as provider/id; a `:level` at its end says how hard to think.
    #[arg(long, value_name = "PROVIDER/ID")]
    pub(crate) model: Option<String>,
    /// Go on with the last session of this directory.
    #[arg(short = 'c', long = "continue")]
    pub(crate) continue_session: bool,
    /// Keep no session file.
    #[arg(long, conflicts_with = "continue_session")]
    pub(crate) no_session: bool,
    /// The active tools: names and * patterns, or changes as +name and -name, separated by commas.
    #[arg(short = 't', long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) tools: Option<Vec<String>>,
    /// Leave out AGENTS.md, CLAUDE.md and the like.
    #[arg(long)]
    pub(crate) no_context_files: bool,
    /// What to do. @FILE adds a file. Several messages are carried out one after the other. Text on standard input
    /// goes before the first, with a blank line between; `-` waits for it however long it takes.
    #[arg(value_name = "MESSAGE")]
    pub(crate) messages: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the whole path without a network: a scripted model mends a small project with real tools.
    Demo {
        /// Do not wait between steps.
        #[arg(long)]
        fast: bool,
    },
    /// Look at the tool table, and call tools without a model.
    Tool {
        #[command(subcommand)]
        command: ToolCommand,
    },
    /// Look at plugins.
    Plugin {
        #[command(subcommand)]
        command: PluginCommand,
    },
    /// Say what is set up, what is not, and how to fix it.
    Doctor {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolCommand {
    /// List the tools.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Call a tool through the same path as a model's call. Exits with 1 if the tool fails.
    Call {
        /// The tool.
        name: String,
        /// Its arguments, a JSON object.
        #[arg(value_name = "JSON", default_value = "{}")]
        arguments: String,
        /// Print the whole record.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Show what a component exports and imports, what it asks for and what it would get. It is not run.
    Inspect {
        /// The component.
        file: PathBuf,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what plugins have used: files, requests, programs, and what was denied. Newest last.
    Log {
        /// Of this plugin only.
        #[arg(long, value_name = "NAME")]
        plugin: Option<String>,
        /// What was denied only.
        #[arg(long)]
        denied: bool,
        /// Of this long at most, such as 30s, 15m, 2h or 7d.
        #[arg(long, value_name = "DURATION", value_parser = crate::plugin::log::duration)]
        since: Option<std::time::Duration>,
        /// Go on with what comes, until Ctrl-C.
        #[arg(short, long)]
        follow: bool,
        /// The entries as they are written, a line of JSON each.
        #[arg(long)]
        json: bool,
    },
}
