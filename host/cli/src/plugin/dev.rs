//! `atoll plugin dev`: runs an extension while it is written. Each version of its files takes over from the one before it, if
//! it can be loaded.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use atoll_caps::printable;
use atoll_engine::LogSink;
use atoll_table::Error;

use crate::{
    arguments::{DevArguments, ExtensionArguments, Mode, PromptArguments, TrustArguments},
    print_mode,
    reload::{self, Change, Reloader, Which},
    signals::Stop,
    terminal,
    watch::{Seen, Watched},
};

/// An extension that is being written.
pub(crate) struct Developed {
    file: PathBuf,
    watched: Watched,
    /// What its files were when it was loaded last.
    seen: Seen,
}

pub(super) async fn run(arguments: DevArguments, trust: TrustArguments) -> anyhow::Result<ExitCode> {
    let DevArguments { file, prompts, model, grant } = arguments;
    let path = std::path::absolute(&file)?;
    if !path.exists() {
        let shown = file.display();
        anyhow::bail!(Error::NotFound(format!("there is no file {shown}; build the extension first")));
    }
    let watched = Watched::new(&path);
    let developed = Developed { seen: watched.look(), watched, file: file.clone() };
    let granted = grant.then(|| file.clone());
    let extensions = ExtensionArguments { named: vec![file], granted, ..ExtensionArguments::default() };
    let arguments = PromptArguments {
        print: true,
        mode: Mode::Text,
        model,
        continue_session: false,
        no_session: true,
        tools: None,
        no_context_files: false,
        sandbox_bash: false,
        messages: prompts,
    };
    print_mode::develop(arguments, trust, extensions, developed).await
}

impl Developed {
    /// Shows what plugins log.
    pub(crate) fn log() -> LogSink {
        Arc::new(|plugin, level, line| {
            let level = level.to_string().to_lowercase();
            terminal::plain(format_args!("{} {level}: {}", printable(plugin), printable(line)));
        })
    }

    /// Waits for another version, and lets it take over; says what came of it. Whether there is a new one: false once
    /// the user wants no more.
    pub(crate) async fn next(&mut self, reloader: &Reloader, stop: &Stop) -> bool {
        let file = self.file.display();
        loop {
            terminal::note(format_args!("waiting for changes of {file}; Ctrl-C ends"));
            self.seen = tokio::select! {
                seen = self.watched.changed(&self.seen) => seen,
                () = stop.token.cancelled() => return false,
            };
            let outcomes = reloader.reload(Which::Changed).await;
            if outcomes.is_empty() {
                terminal::note(format_args!("{file} was written, and is what it was"));
                continue;
            }
            reload::tell(&outcomes);
            if outcomes.iter().any(|outcome| matches!(outcome.change, Change::Replaced | Change::Added)) {
                return true;
            }
        }
    }
}
