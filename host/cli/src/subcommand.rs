//! `atoll NAME …` where a plugin has that command: its manifest says so, and nothing else of it is looked at before.
//!
//! The command runs without a session and without a model, and nobody but the plugin that has it is loaded.

use std::{ffi::OsString, path::Path, process::ExitCode, sync::Arc};

use anyhow::Context as _;
use atoll_agent::{Extensions, Pipeline, extensions::Flags, settings::Settings};
use atoll_caps::{Manifest, PluginName, Subcommand};
use atoll_table::{Error, Origin, Table};

use crate::{
    additions::Additions,
    arguments::{ExtensionArguments, TrustArguments},
    assemble::Parts,
    assembled::{Assembled, Surroundings, Told, report_as_note},
    builtins,
    candidates::Candidates,
    catalog::Catalog,
    directories::Directories,
    exit::{DENIED, ExitStatus, FAILED, USAGE},
    host_facts::PluginSettings,
    loaded::{Loaded, Plugins},
    project::Project,
    replaceable::Replaceable,
    signals::Stop,
    terminal,
};

/// A command of a plugin's, as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Typed {
    pub(crate) name: String,
    pub(crate) words: Vec<OsString>,
}

/// The subcommands of what is built in.
pub(crate) fn of_builtins() -> Vec<Subcommand> {
    // Most have none, and are not read for that.
    let some = builtins::replaceable().filter(|builtin| builtin.manifest.contains("[[subcommand]]"));
    some.filter_map(|builtin| builtin.manifest().ok()).flat_map(|manifest| manifest.subcommands).collect()
}

/// Whether a word is a command of some plugin: a built-in one, one of the user's, or one of these files.
pub(crate) fn is_one(word: &str, named: &[std::path::PathBuf]) -> bool {
    let is_name = (1..=64).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    is_name && (of_builtins().iter().any(|known| known.name == word) || is_of_users(word, named))
}

fn is_of_users(word: &str, named: &[std::path::PathBuf]) -> bool {
    let beside = |file: &std::path::PathBuf| {
        if file.is_dir() { file.join("plugin.toml") } else { file.with_file_name("plugin.toml") }
    };
    if named.iter().any(|file| says(&beside(file), word)) {
        return true;
    }
    let catalog = || -> anyhow::Result<Catalog> {
        let directories = Directories::find()?;
        let settings = Settings::load(&directories.settings())?;
        Catalog::read(&directories, &Project::none(&directories), &settings)
    };
    catalog()
        .is_ok_and(|catalog| catalog.plugins.iter().any(|plugin| plugin.enabled && says(plugin.manifest_file(), word)))
}

/// Whether a manifest has a subcommand of this name.
fn says(manifest: &Path, word: &str) -> bool {
    let Ok(Some(text)) = atoll_caps::read_small_file(manifest) else { return false };
    let Ok(name) = "x".parse::<PluginName>() else { return false };
    let read = Manifest::parse_script(&text, "plugin.toml", name);
    read.is_ok_and(|manifest| manifest.subcommands.iter().any(|known| known.name == word))
}

/// Runs one.
pub(crate) async fn run(
    typed: Typed,
    trust: TrustArguments,
    extensions: &ExtensionArguments,
) -> anyhow::Result<ExitCode> {
    let words = typed.words.iter().map(|word| word.to_str()).collect::<Option<Vec<&str>>>();
    let arguments = words.and_then(|words| shlex::try_join(words).ok());
    let Some(arguments) = arguments else {
        terminal::note("the arguments are no text: one holds what is no UTF-8, or a zero byte");
        return Ok(USAGE.into());
    };
    let parts = Arc::new(Parts::new(trust, false)?);
    let stop = Stop::watch()?;
    let person = parts.ask_the_person(&stop);
    let assembled = parts.load_owner(&typed.name, extensions).await?;
    let ending = || ExitStatus(stop.code().unwrap_or(FAILED));
    let surroundings = Surroundings { command: Some(typed.name.clone()), ..Surroundings::of_command(person) };
    let running = async {
        assembled.start(surroundings).await?;
        let ran = assembled.extensions.run_command(&format!("/{} {arguments}", typed.name)).await;
        anyhow::Ok(ran.with_context(|| format!("no extension that was started has the command {}", typed.name))?)
    };
    let ran = tokio::select! {
        ran = running => Some(ran),
        () = stop.token.cancelled() => None,
    };
    assembled.end().await;
    let Some(ran) = ran else { return Ok(ending().into()) };
    let Err(error) = ran? else { return Ok(ExitCode::SUCCESS) };
    terminal::note(&error);
    Ok(match error {
        Error::InvalidArguments(_) => USAGE,
        Error::Denied { .. } => ExitStatus(DENIED),
        _ => ExitStatus(FAILED),
    }
    .into())
}

impl Parts {
    /// Loads the plugin that has a subcommand, and no other. One of the user's comes before a built-in one.
    async fn load_owner(self: &Arc<Self>, name: &str, wanted: &ExtensionArguments) -> anyhow::Result<Assembled> {
        let Candidates { all, builtins: switched, .. } = self.candidates(wanted, &self.settings, &self.grants()).await;
        let has = |manifest: &Manifest| manifest.subcommands.iter().any(|known| known.name == name);
        let is_owner = |plugin: &anyhow::Result<crate::candidates::Wanted>| {
            plugin.as_ref().is_ok_and(|wanted| has(wanted.manifest()))
        };
        let mut theirs = None;
        for candidate in all {
            if candidate.origin == Origin::User && is_owner(&candidate.plugin) {
                theirs = Some(candidate);
                break;
            }
        }
        let mut plugins = Vec::new();
        let extensions = Extensions::new(report_as_note());
        let mut replaceable = Replaceable::new(Vec::new(), Vec::new);
        if let Some(candidate) = theirs {
            let wanted = candidate.plugin?;
            let (replaces, pin) = (wanted.replaces.clone(), wanted.pin().clone());
            let plugin = wanted.load(Arc::clone(&self.host)).await?;
            let (origin, is_named) = (candidate.origin, candidate.is_named);
            let loaded = Loaded::new((origin, is_named, candidate.place, candidate.file), pin, replaces, plugin);
            extensions.add(
                loaded.plugin.extension.clone().with_context(|| format!("{} is no extension", loaded.plugin.name))?,
            );
            plugins.push(Arc::new(loaded));
        } else {
            let mut own = builtins::replaceable().filter_map(|builtin| Some((builtin, builtin.manifest().ok()?)));
            let (builtin, manifest) = own
                .find(|(_, manifest)| has(manifest))
                .with_context(|| format!("no plugin that is there has the command {name}"))?;
            if switched.iter().rfind(|(known, _)| known == builtin.name).is_some_and(|(_, on)| !on) {
                let shown = builtin.name;
                anyhow::bail!(
                    "the built-in {shown}, which has the command {name}, is switched off; -e builtin:{shown} switches it on for this run"
                );
            }
            let this = Arc::clone(self);
            replaceable = Replaceable::new(Vec::new(), move || vec![this.setup(builtin, &manifest)]);
        }
        let mut table = Table::new();
        replaceable.begin(&[], &mut table)?;
        Ok(Assembled {
            parts: Arc::clone(self),
            pipeline: Pipeline::new(table),
            plugins: Plugins::new(plugins),
            extensions,
            flags: Flags::default(),
            plugin_settings: PluginSettings::default(),
            replaceable,
            additions: Additions::default(),
            told: Told::default(),
        })
    }
}
