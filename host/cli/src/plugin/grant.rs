//! `atoll plugin grant` and `revoke`: the user's word on what a plugin may do. The lines that denials print are these
//! commands.

use std::{collections::BTreeMap, process::ExitCode};

use atoll_caps::{
    Capability, ConfigWant, Effective, FilesWant, GrantState, Grants, HttpWant, Manifest, PatternError, Pin,
    ProcessWant, SecretWant, Wants, printable,
};
use atoll_engine::Builtin;
use atoll_table::Error;

use super::{Known, find_any};
use crate::{
    arguments::GrantArguments,
    builtins,
    extension_files::{self, Kind, several_entries},
    scripts::{self, Script},
    terminal,
};

pub(super) fn grant(known: &Known, name: &str, what: &GrantArguments) -> anyhow::Result<ExitCode> {
    if let Some(builtin) = builtins::by_name(name) {
        return change_builtin(known, builtin, what, true);
    }
    let (manifest, pin) = match script(known, name)? {
        Some(script) => (script.manifest, script.pin),
        None => {
            let files = find_any(&known.catalog, name)?.read()?;
            (files.manifest, files.pin)
        }
    };
    let name = &manifest.name;
    let wants = wants(what)?;
    check(&manifest, &wants, &what.replace)?;
    let path = known.directories.grants();
    let (before, granted) = Grants::update(&path, |grants| {
        let before = grants.for_plugin(name, &pin);
        if what.all {
            grants.grant_all(&manifest, &pin);
        } else {
            grants.grant(name, &pin, &wants);
            grants.grant_replacing(name, &pin, &what.replace);
        }
        (before, describe(grants, &manifest, &pin))
    })?;
    if matches!(before, GrantState::Changed { .. } | GrantState::ManifestChanged) {
        terminal::note(format_args!("{name} has changed; what was granted before is forgotten"));
    }
    show(name.as_str(), &granted)
}

pub(super) fn revoke(known: &Known, name: &str, what: &GrantArguments) -> anyhow::Result<ExitCode> {
    if let Some(builtin) = builtins::by_name(name) {
        return change_builtin(known, builtin, what, false);
    }
    // A plugin that can not be read has grants that can be taken away nevertheless.
    let (name, files) = match script(known, name)? {
        Some(script) => (script.manifest.name.clone(), Some((script.manifest, script.pin))),
        None => {
            let plugin = find_any(&known.catalog, name)?;
            (plugin.name.clone(), plugin.read().ok().map(|files| (files.manifest, files.pin)))
        }
    };
    let name = &name;
    let wants = wants(what)?;
    let path = known.directories.grants();
    let outcome = Grants::update(&path, |grants| {
        if what.all {
            grants.revoke_all(name);
            Ok(())
        } else {
            grants.revoke(name, &wants, &what.replace)
        }
    })?;
    let grants = Grants::load(&path)?;
    if let Err(missing) = outcome {
        let has = files.map(|(manifest, pin)| arguments(&grants, &manifest, &pin)).unwrap_or_default();
        let way_out = if has.is_empty() { "nothing".to_owned() } else { has.join(" ") };
        return Err(Error::NotFound(format!("{name} is not granted {}; it has: {way_out}", missing.join(", "))).into());
    }
    show(name.as_str(), &files.map(|(manifest, pin)| describe(&grants, &manifest, &pin)).unwrap_or_default())
}

/// The script that a path stands for, if it is one: scripts that a user names for a run are not among the installed plugins.
fn script(known: &Known, path: &str) -> anyhow::Result<Option<Script>> {
    let path = known.directories.cwd.join(path);
    let is_file = scripts::is_script(&path) && path.is_file();
    if !is_file && !path.is_dir() {
        return Ok(None);
    }
    match extension_files::named(&path)?.as_slice() {
        [found] if found.kind == Kind::Script => Ok(Some(Script::found(found)?)),
        [_] => Ok(None),
        several => Err(Error::InvalidArguments(several_entries(&path, several)).into()),
    }
}

/// A built-in plugin has what its manifest asks for. The user may add directories, and take those away again.
fn change_builtin(known: &Known, builtin: &Builtin, what: &GrantArguments, add: bool) -> anyhow::Result<ExitCode> {
    let manifest = Manifest::parse(builtin.manifest, builtin.name)?;
    let name = &manifest.name;
    let wants = wants(what)?;
    let only_files = Wants { files: Vec::new(), ..wants.clone() }.is_empty() && what.replace.is_empty();
    if !only_files || (what.all && add) {
        return Err(Error::InvalidArguments(format!(
            "{name} is built in and has what it was made for; only directories can be added, with --files"
        ))
        .into());
    }
    let most = manifest.wants.files.iter().map(|want| want.access).max();
    if let Some(want) = wants.files.iter().find(|want| add && most < Some(want.access)) {
        let most = most.map_or("uses no files of its own".to_owned(), |most| format!("can only {most}"));
        let root = want.to_argument();
        return Err(Error::InvalidArguments(format!("{name} {most}, so {root} can not be added to it")).into());
    }
    let same = |a: &FilesWant, b: &FilesWant| (&a.root, a.access) == (&b.root, b.access);
    let outcome = Grants::update(&known.directories.grants(), |grants| {
        let has = grants.for_builtin(name).files;
        if add {
            grants.grant_builtin(name, &wants.files);
        } else if let Some(missing) = wants.files.iter().find(|less| !has.iter().any(|want| same(want, less))) {
            return Err(missing.to_argument());
        } else {
            grants.revoke_builtin(name, |want| !what.all && !wants.files.iter().any(|less| same(want, less)));
        }
        Ok(grants.for_builtin(name))
    })?;
    match outcome {
        Ok(added) => show(name.as_str(), &Effective::builtin_with(&manifest, &added).describe()),
        Err(missing) => {
            Err(Error::NotFound(format!("{missing} was not added to {name}; `atoll plugin list` shows what it has"))
                .into())
        }
    }
}

fn show(name: &str, granted: &[String]) -> anyhow::Result<ExitCode> {
    if granted.is_empty() {
        terminal::line(format_args!("{name} is granted nothing"))?;
    } else {
        terminal::line(format_args!("{name} is granted:"))?;
        for line in granted {
            terminal::line(format_args!("  {}", printable(line)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What it has, for people.
fn describe(grants: &Grants, manifest: &Manifest, pin: &Pin) -> Vec<String> {
    let mut lines = grants.granted(&manifest.name, pin).unwrap_or_default().describe();
    lines.extend(grants.replaces(manifest, pin).iter().map(|tool| format!("replaces: {tool}")));
    lines
}

/// What it has, as options of these commands.
fn arguments(grants: &Grants, manifest: &Manifest, pin: &Pin) -> Vec<String> {
    let granted = grants.granted(&manifest.name, pin).unwrap_or_default();
    if granted == Wants::everything() {
        return vec!["--all".to_owned()];
    }
    let mut options = granted.to_arguments();
    options.extend(grants.replaces(manifest, pin).iter().map(|tool| format!("--replace {tool}")));
    options
}

fn wants(what: &GrantArguments) -> Result<Wants, Error> {
    fn read<T>(
        option: &str,
        texts: &[String],
        parse: impl Fn(&str) -> Result<T, PatternError>,
    ) -> Result<Vec<T>, Error> {
        let wrong = |error: PatternError| Error::InvalidArguments(format!("--{option}: {error}"));
        texts.iter().map(|text| parse(text).map_err(wrong)).collect()
    }
    let flags = [
        (Capability::Listener, what.listener),
        (Capability::Store, what.store),
        (Capability::Table, what.table),
        (Capability::Session, what.session),
        (Capability::Models, what.models),
        (Capability::Ui, what.ui),
        (Capability::Bus, what.bus),
        (Capability::Providers, what.providers),
        (Capability::Servers, what.servers),
    ];
    let flags: BTreeMap<Capability, String> =
        flags.into_iter().filter(|(_, given)| *given).map(|(capability, _)| (capability, String::new())).collect();
    Ok(Wants {
        files: read("files", &what.files, FilesWant::from_argument)?,
        http: read("http", &what.http, HttpWant::from_argument)?,
        process: read("process", &what.process, ProcessWant::from_argument)?,
        secrets: read("secret", &what.secret, SecretWant::from_argument)?,
        config: read("config", &what.config, ConfigWant::from_argument)?,
        flags,
    })
}

/// A grant of what a manifest does not ask for would be kept and do nothing, until the plugin changed its mind.
fn check(manifest: &Manifest, wants: &Wants, replaces: &[String]) -> Result<(), Error> {
    let name = &manifest.name;
    for (capability, part) in wants.parts() {
        if part.may_share(&manifest.wants, capability) {
            continue;
        }
        let asked: Vec<String> = manifest
            .wants
            .parts()
            .into_iter()
            .filter(|(asked, _)| *asked == capability)
            .flat_map(|(_, part)| part.describe())
            .collect();
        let asked = if asked.is_empty() {
            format!("it asks for no {capability} at all")
        } else {
            format!("of {capability} it asks for {}", asked.join(", "))
        };
        return Err(Error::InvalidArguments(format!(
            "the manifest of {name} does not ask for {}; {asked}",
            part.describe().join(", ")
        )));
    }
    if let Some(tool) = replaces.iter().find(|tool| !manifest.replaces.contains(*tool)) {
        let asked = if manifest.replaces.is_empty() { "none".to_owned() } else { manifest.replaces.join(", ") };
        let tool = atoll_caps::printable(tool);
        return Err(Error::InvalidArguments(format!(
            "the manifest of {name} does not ask to replace the tool {tool}; it asks for {asked}"
        )));
    }
    Ok(())
}
