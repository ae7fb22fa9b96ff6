//! Extensions of the user's that decide whether a project is trusted. They are started for that before anything of the project
//! is read, in a sandbox of their own, and end again: what the project then brings may change how they are started.
//!
//! Whether one wants to be asked may depend on the project, on its grants and on whatever else it looks at. So it must never
//! be concluded from an earlier run: every extension is started.

use std::{collections::HashSet, sync::Arc};

use atoll_agent::{
    Extensions, Pipeline,
    extensions::{Flags, TrustWord, own_tables::OwnTables},
    settings::Settings,
};
use atoll_caps::TrustStore;
use atoll_engine::AuditLog;
use atoll_table::{
    Table,
    extension::{Mode, Services},
};

use crate::{
    arguments::{ExtensionArguments, TrustArguments},
    assemble::Parts,
    assembled::report_as_note,
    candidates::Wanted,
    catalog::Catalog,
    directories::Directories,
    host_facts::{Facts, PluginSettings},
    project::Project,
    terminal,
};

/// What an extension of the user's says of the project here, unless the command line says it already, or there is nothing to
/// decide. With `confined`, programs that they start run in a sandbox.
pub(crate) async fn word(
    directories: &Directories,
    settings: &Settings,
    audit: Option<&AuditLog>,
    trust: TrustArguments,
    wanted: &ExtensionArguments,
    confined: bool,
) -> Option<TrustWord> {
    if trust.for_this_run().is_some() || !Project::has_resources(directories) {
        return None;
    }
    let project = Project::none(directories);
    let installed = Catalog::read(directories, &project, settings).ok()?.plugins;
    if wanted.named.is_empty() && !installed.iter().any(|plugin| plugin.enabled) {
        return None;
    }
    let places = directories.places(settings, &directories.cwd, Vec::new());
    let parts = Parts::with(directories.clone(), settings.clone(), project, places, audit.cloned()).ok()?;
    parts.confine_programs(confined);
    let candidates = parts.candidates(wanted, settings, &parts.grants()).await;
    let readable = candidates.all.into_iter().filter_map(|candidate| candidate.plugin.ok());
    let asked: Vec<Wanted> = readable.filter(Wanted::may_be_extension).collect();
    let word = if asked.is_empty() { None } else { ask(&parts, settings, asked).await };
    if let Some(TrustWord { by, trusted, remember }) = &word {
        let said = if *trusted { "trusted" } else { "not trusted" };
        terminal::note(format_args!("this project is {said}: the extension {by} says so"));
        let path = directories.trust();
        if *remember && let Err(error) = TrustStore::save(&path, Project::none(directories).directory(), Some(*trusted))
        {
            terminal::note(format_args!("that holds for this run only: {error}"));
        }
    }
    word
}

/// Starts extensions and asks them. What can not be loaded or started is told when it is loaded for the run.
async fn ask(parts: &Parts, settings: &Settings, asked: Vec<Wanted>) -> Option<TrustWord> {
    let extensions = Extensions::new(report_as_note());
    // They live until they have been asked.
    let (mut plugins, mut may_trust) = (Vec::new(), HashSet::new());
    for wanted in asked {
        let has_table = wanted.has_table();
        let Ok(plugin) = wanted.load(Arc::clone(&parts.host)).await else { continue };
        let Some(extension) = plugin.extension.clone() else { continue };
        if has_table {
            may_trust.insert(plugin.name.clone());
        }
        extensions.add(extension);
        plugins.push(plugin);
    }
    let plugin_settings = PluginSettings::default();
    plugin_settings.set(settings.plugin_settings.clone());
    parts.host.set_services(Services {
        tables: Some(Arc::new(OwnTables::new(Pipeline::new(Table::new()), Arc::new(|_| {})))),
        bus: Some(Arc::new(extensions.clone())),
        facts: Some(Arc::new(Facts {
            mode: Mode::Command,
            command: None,
            has_person: false,
            cwd: parts.directories.cwd.clone(),
            trusted: false,
            extensions: extensions.clone(),
            flags: Flags::default(),
            settings: plugin_settings,
        })),
        ..Services::default()
    });
    // Why one does not start is told when it is started for the run.
    extensions.start().await;
    let word = extensions.project_trust(&parts.directories.cwd, |one| may_trust.contains(one.name())).await;
    extensions.end("quit").await;
    word
}
