//! Extensions of the user's that decide whether a project is trusted. They are started for that before anything of the project
//! is read, in a sandbox of their own, and end again: what the project then brings may change how they are started.
//!
//! Starting extensions twice takes time, so what wants to be asked is remembered from run to run. That is only a way not to
//! ask those that do not want to be: who is not remembered is started.

use std::{
    collections::{BTreeMap, HashSet},
    path::PathBuf,
    sync::Arc,
};

use atoll_agent::{
    Extensions, Pipeline,
    extensions::{Flags, TrustWord, own_tables::OwnTables},
    settings::Settings,
};
use atoll_caps::{Digest, TrustStore, read_small_file};
use atoll_engine::AuditLog;
use atoll_table::{
    Table,
    extension::{EventKind, Mode, Services},
};

use crate::{
    arguments::{ExtensionArguments, TrustArguments},
    assemble::Parts,
    assembled::report_as_note,
    candidates::Wanted,
    directories::Directories,
    host_facts::{Facts, PluginSettings},
    installed::Catalog,
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
    let memory = Memory::load(directories);
    let candidates = parts.candidates(wanted, settings, &parts.grants()).await;
    let mut asked = Vec::new();
    let mut known = BTreeMap::new();
    for candidate in candidates.all {
        let Ok(wanted) = candidate.plugin else { continue };
        let key = key(&wanted, settings);
        if memory.wants.get(&key) == Some(&false) {
            known.insert(key, false);
        } else {
            asked.push((key, wanted));
        }
    }
    let word = if asked.is_empty() { None } else { ask(&parts, settings, asked, &mut known).await };
    memory.keep(&known);
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
async fn ask(
    parts: &Parts,
    settings: &Settings,
    asked: Vec<(String, Wanted)>,
    known: &mut BTreeMap<String, bool>,
) -> Option<TrustWord> {
    let extensions = Extensions::new(report_as_note());
    let (mut plugins, mut may_trust) = (Vec::new(), HashSet::new());
    for (key, wanted) in asked {
        let has_table = wanted.has_table();
        let Ok(plugin) = wanted.load(Arc::clone(&parts.host)).await else { continue };
        let Some(extension) = plugin.extension.clone() else {
            known.insert(key, false);
            continue;
        };
        if has_table {
            may_trust.insert(plugin.name.clone());
        }
        extensions.add(Arc::clone(&extension));
        plugins.push((key, plugin, extension));
    }
    let plugin_settings = PluginSettings::default();
    plugin_settings.set(settings.plugin_settings.clone());
    parts.host.set_services(Services {
        tables: Some(Arc::new(OwnTables::new(Pipeline::new(Table::new()), Arc::new(|_| {})))),
        bus: Some(Arc::new(extensions.clone())),
        facts: Some(Arc::new(Facts {
            mode: Mode::Command,
            has_person: false,
            cwd: parts.directories.cwd.clone(),
            trusted: false,
            extensions: extensions.clone(),
            flags: Flags::default(),
            settings: plugin_settings,
        })),
        ..Services::default()
    });
    let failed = extensions.start().await;
    for (key, plugin, extension) in &plugins {
        if !failed.iter().any(|(name, _)| *name == plugin.name) {
            known.insert(key.clone(), extension.subscription().wants(EventKind::ProjectTrust));
        }
    }
    let word = extensions.project_trust(&parts.directories.cwd, |one| may_trust.contains(one.name())).await;
    extensions.end("quit").await;
    word
}

/// What an extension and its wishes are known by: its files, and what the user's settings say to it.
fn key(wanted: &Wanted, settings: &Settings) -> String {
    let pin = wanted.pin();
    let said = settings.plugin_settings.get(wanted.name()).cloned().unwrap_or_default();
    let said = serde_json::to_string(&said).unwrap_or_default();
    Digest::of(format!("{}\0{}\0{}\0{said}", wanted.name(), pin.component, pin.manifest).as_bytes()).to_string()
}

/// Who wants to be asked, from earlier runs.
struct Memory {
    file: PathBuf,
    wants: BTreeMap<String, bool>,
}

impl Memory {
    /// What can not be read is not known.
    fn load(directories: &Directories) -> Self {
        let file = directories.cache.join("project-trust.json");
        let text = read_small_file(&file).ok().flatten().unwrap_or_default();
        Self { file, wants: serde_json::from_str(&text).unwrap_or_default() }
    }

    /// Keeps what is known now, and nothing else. That it can not be kept only costs time.
    fn keep(&self, wants: &BTreeMap<String, bool>) {
        if *wants == self.wants {
            return;
        }
        let written = serde_json::to_string(wants).map_err(std::io::Error::from).and_then(|text| {
            let folder = self.file.parent().unwrap_or(&self.file);
            std::fs::create_dir_all(folder)?;
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            std::io::Write::write_all(&mut file, text.as_bytes())?;
            file.persist(&self.file).map_err(|error| error.error)
        });
        if let Err(error) = written {
            tracing::debug!(%error, "who wants to be asked about projects could not be kept");
        }
    }
}
