//! The command line.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::{
    spelling::{Spelt, UnknownOption, spelt_out},
    subcommand::{self, Typed},
};

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
    #[command(flatten)]
    pub(crate) trust: TrustArguments,
    #[command(flatten)]
    pub(crate) extensions: ExtensionArguments,
    /// The command of a plugin's that is to run.
    #[arg(skip)]
    pub(crate) typed: Option<Typed>,
}

impl Arguments {
    /// Reads the command line.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let Spelt { words, unknown, typed } = spelt_out(std::env::args_os(), &Self::command(), subcommand::is_one);
        // What they are is only needed where it is shown.
        let shows_help = |word: &OsString| matches!(word.to_str(), Some("-h" | "--help" | "help"));
        let command = match words.iter().any(shows_help) {
            true => Self::command().after_help(after_help()),
            false => Self::command(),
        };
        let mut read = command.try_get_matches_from(words).and_then(|matches| Self::from_arg_matches(&matches))?;
        read.extensions.unknown = unknown;
        read.typed = typed;
        if let Some(command) = &read.command
            && !command.uses_extensions()
            && let Some(option) = read.extensions.first_said()
        {
            let name = command.name();
            let text = format!("`atoll {name}` loads no extensions, so {option} means nothing there; leave it out\n");
            return Err(Self::command().error(clap::error::ErrorKind::ArgumentConflict, text));
        }
        Ok(read)
    }
}

/// What stands behind the list of options: commands of plugins that are built in, and more.
fn after_help() -> String {
    let mut text = String::new();
    for command in subcommand::of_builtins() {
        text.push_str(&format!("  {:<11}  {}\n", command.name, command.description));
    }
    if text.is_empty() { EXIT_CODES.to_owned() } else { format!("Commands of plugins:\n{text}\n{EXIT_CODES}") }
}

/// Which extensions there are, for this run.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Extensions")]
pub(crate) struct ExtensionArguments {
    /// Load the extension in this file or folder, beside those that are installed; builtin:NAME is a built-in one, and
    /// -builtin:NAME leaves one out. Can be repeated; with every command that uses the tools.
    #[arg(
        id = "extension",
        short = 'e',
        long = "extension",
        global = true,
        value_name = "FILE",
        allow_hyphen_values = true
    )]
    pub(crate) named: Vec<PathBuf>,
    /// Leave out all extensions that are installed or built in (also -ne). Those of -e are loaded all the same.
    #[arg(long, global = true)]
    pub(crate) no_extensions: bool,
    /// Leave out the built-in MCP. An extension that took over from it stays.
    #[arg(long, global = true)]
    pub(crate) no_mcp: bool,
    /// Options that the program does not know.
    #[arg(skip)]
    pub(crate) unknown: Vec<UnknownOption>,
    /// The one of -e that is granted all that its manifest asks for.
    #[arg(skip)]
    pub(crate) granted: Option<PathBuf>,
}

impl ExtensionArguments {
    /// The first option that says anything of extensions.
    fn first_said(&self) -> Option<&'static str> {
        let said = [
            ("--extension", !self.named.is_empty()),
            ("--no-extensions", self.no_extensions),
            ("--no-mcp", self.no_mcp),
        ];
        said.into_iter().find_map(|(name, is_said)| is_said.then_some(name))
    }
}

impl Command {
    /// Whether it loads extensions.
    fn uses_extensions(&self) -> bool {
        matches!(self, Self::Tool { .. } | Self::Codemode { .. } | Self::Doctor { .. })
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Demo { .. } => "demo",
            Self::Tool { .. } => "tool",
            Self::Codemode { .. } => "codemode",
            Self::Plugin { .. } => "plugin",
            Self::Trust { .. } => "trust",
            Self::Doctor { .. } => "doctor",
            Self::Completions { .. } => "completions",
        }
    }
}

/// Whether the project in the working directory is trusted, for this run.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Trust")]
pub(crate) struct TrustArguments {
    /// Trust the project in this directory for this run: its settings, plugins and skills count.
    #[arg(short = 'a', long, global = true, conflicts_with = "no_approve")]
    approve: bool,
    /// Do not trust it for this run (also -na).
    #[arg(long, global = true)]
    no_approve: bool,
}

impl TrustArguments {
    /// What was said, if anything.
    pub(crate) fn for_this_run(self) -> Option<bool> {
        match (self.approve, self.no_approve) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }
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
    /// Run what tools start under bubblewrap: no network, writing in the workspace only.
    #[arg(long)]
    pub(crate) sandbox_bash: bool,
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
    /// Run scripts against the tool table, without a model.
    Codemode {
        #[command(subcommand)]
        command: CodemodeCommand,
    },
    /// Manage plugins: look at them, install and remove them, and say what they may do.
    Plugin {
        #[command(subcommand)]
        command: PluginCommand,
    },
    /// Say which projects are trusted.
    Trust {
        #[command(subcommand)]
        command: TrustCommand,
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
        /// Run what the tool starts under bubblewrap: no network, writing in the workspace only.
        #[arg(long)]
        sandbox_bash: bool,
        /// Print the whole record.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum CodemodeCommand {
    /// Run a script. What it gives is on standard output; what it logs, and how it went, on standard error. Exits with 1
    /// if it fails, with 3 if it fails because a call was denied.
    Run(ScriptArguments),
    /// Print what scripts find as TypeScript declarations, for editors.
    Types {
        /// Also the tools that are not active.
        #[arg(long)]
        all: bool,
        /// The active tools: names and * patterns, or changes as +name and -name, separated by commas.
        #[arg(short = 't', long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
        tools: Option<Vec<String>>,
    },
}

/// A script to run.
#[derive(Debug, Args)]
pub(crate) struct ScriptArguments {
    /// The script, in JavaScript or TypeScript; `-` is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print the whole record.
    #[arg(long)]
    pub(crate) json: bool,
    /// The only tools that it may call: a name, in which * stands for any characters. Can be repeated.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) allow: Vec<String>,
    /// How long it may take.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// The active tools: names and * patterns, or changes as +name and -name, separated by commas.
    #[arg(short = 't', long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) tools: Option<Vec<String>>,
    /// Run what tools start under bubblewrap: no network, writing in the workspace only.
    #[arg(long)]
    pub(crate) sandbox_bash: bool,
}

/// A time in seconds, fractions too, of an hour at most.
fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is not a number".to_owned())?;
    if !(0.001..=3_600.0).contains(&seconds) {
        return Err("it is from 0.001 to 3600".to_owned());
    }
    Ok(std::time::Duration::from_secs_f64(seconds))
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// List the plugins: yours, those of a trusted project, and the built-in ones.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what a plugin exports and imports, what it asks for and what it would get. It is not run.
    Inspect {
        /// The name of a plugin, or a component's file.
        #[arg(value_name = "NAME|FILE")]
        plugin: PathBuf,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a new project for a plugin, which builds and passes its own test.
    New(crate::plugin::new::NewArguments),
    /// Copy a plugin into Atoll's directory, after showing what it asks for.
    Install(InstallArguments),
    /// Remove a plugin, with its grants and whatever it has stored.
    Remove {
        /// The plugin.
        name: String,
        /// Do not ask.
        #[arg(short, long)]
        yes: bool,
    },
    /// Load a plugin again that was switched off.
    Enable {
        /// The plugin.
        name: String,
    },
    /// Switch a plugin off: it stays, with its grants, but is not loaded.
    Disable {
        /// The plugin.
        name: String,
    },
    /// Allow a plugin something that its manifest asks for.
    Grant {
        /// The plugin.
        name: String,
        #[command(flatten)]
        what: GrantArguments,
    },
    /// Take back what a plugin was granted.
    Revoke {
        /// The plugin.
        name: String,
        #[command(flatten)]
        what: GrantArguments,
    },
    /// Check that plugins are what was installed, and can be loaded. Exits with 1 if anything is wrong.
    Verify {
        /// The plugins; all of yours and the project's if none is named.
        names: Vec<String>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Put a manifest into a component, so that it is one file.
    Pack {
        /// The component.
        component: PathBuf,
        /// The manifest, a plugin.toml.
        manifest: PathBuf,
        /// Where to write it, instead of the component's own file.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Play scenarios with a plugin, in the real sandbox with a made-up host around it. Exits with 1 if anything is not
    /// as they expect it, with 2 if one can not be understood. ATOLL_UPDATE=1 writes their golden files.
    Test {
        /// The plugin's file.
        #[arg(value_name = "FILE")]
        plugin: PathBuf,
        /// The scenarios; those in the folder `tests` of the plugin's project if none is named.
        #[arg(value_name = "SCENARIO")]
        scenarios: Vec<PathBuf>,
        /// The outcome as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run an extension while it is written: it is loaded anew whenever its file changes, and what it logs is shown. A
    /// version that can not be loaded leaves the one before it running. Ctrl-C ends it.
    Dev(DevArguments),
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

/// An extension that is being written.
#[derive(Debug, Args)]
pub(crate) struct DevArguments {
    /// The extension: a component, a script, or a script's folder.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Carry out a prompt or a command of the extension, now and with each new version. Can be repeated.
    #[arg(short = 'p', long = "prompt", value_name = "PROMPT")]
    pub(crate) prompts: Vec<String>,
    /// The model, as provider/id.
    #[arg(long, value_name = "PROVIDER/ID")]
    pub(crate) model: Option<String>,
    /// Grant each version all that its manifest asks for, for as long as this runs. Without it: what -e grants.
    #[arg(long)]
    pub(crate) grant: bool,
}

/// What to install, and how.
#[derive(Debug, Args)]
pub(crate) struct InstallArguments {
    /// A component's file, with its plugin.toml beside it or inside; or where to fetch one, over https.
    #[arg(value_name = "FILE|URL")]
    pub(crate) source: String,
    /// What to call it, instead of what its manifest says.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Fail unless the component has this SHA-256.
    #[arg(long, value_name = "HEX")]
    pub(crate) sha256: Option<String>,
    /// Do not ask. It is granted nothing, unless --grant-all says so.
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Grant all that its manifest asks for now.
    #[arg(long)]
    pub(crate) grant_all: bool,
    /// Print the outcome as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to grant, or to take back.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct GrantArguments {
    /// Files in a directory and below it: $workspace, ~/… or an absolute path, then :read or :read-write.
    #[arg(long, value_name = "PATH[:ACCESS]")]
    pub(crate) files: Vec<String>,
    /// Requests to an origin, such as https://api.example.com:POST; GET without a method, ANY for all.
    #[arg(long, value_name = "ORIGIN[:METHODS]")]
    pub(crate) http: Vec<String>,
    /// Starting a program, by its bare name or its absolute path; with :env=, also setting variables for it, such as
    /// git:env=GIT_PAGER or GIT_*.
    #[arg(long, value_name = "PROGRAM[:env=NAMES]")]
    pub(crate) process: Vec<String>,
    /// Using a secret; with :reveal, also reading it.
    #[arg(long, value_name = "NAME[:reveal]")]
    pub(crate) secret: Vec<String>,
    /// A file of configuration, in Atoll's directory and in a project's, such as mcp.json.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<String>,
    /// A one-shot HTTP listener on the loopback address.
    #[arg(long)]
    pub(crate) listener: bool,
    /// A private store.
    #[arg(long)]
    pub(crate) store: bool,
    /// The tool table.
    #[arg(long)]
    pub(crate) table: bool,
    /// The session.
    #[arg(long)]
    pub(crate) session: bool,
    /// Asking models.
    #[arg(long)]
    pub(crate) models: bool,
    /// Talking to the person.
    #[arg(long)]
    pub(crate) ui: bool,
    /// Saying something to other extensions.
    #[arg(long)]
    pub(crate) bus: bool,
    /// Adding model providers to the session.
    #[arg(long)]
    pub(crate) providers: bool,
    /// Adding MCP servers to the session.
    #[arg(long)]
    pub(crate) servers: bool,
    /// Standing in for a built-in tool with one of its own.
    #[arg(long, value_name = "TOOL")]
    pub(crate) replace: Vec<String>,
    /// Everything: all its manifest asks for now; of `revoke`, all it has.
    #[arg(long, conflicts_with_all = [
        "files", "http", "process", "secret", "config", "listener", "store", "table", "session", "models", "ui",
        "bus", "providers", "servers", "replace",
    ])]
    pub(crate) all: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// Show what is saved, and whether this directory is trusted.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Trust a project and what is below it: its settings, plugins and skills count.
    Allow {
        /// The project's directory; this one if none is named.
        directory: Option<PathBuf>,
    },
    /// Never trust a project, nor what is below it.
    Deny {
        /// The project's directory; this one if none is named.
        directory: Option<PathBuf>,
    },
    /// Forget what is saved for a directory.
    Forget {
        /// The directory; this one if none is named.
        directory: Option<PathBuf>,
    },
}
