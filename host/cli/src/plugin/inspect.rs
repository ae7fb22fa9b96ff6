//! `atoll plugin inspect`: what a component is, asks for and would get. It is compiled, never run.

use std::{path::Path, process::ExitCode};

use anyhow::Context as _;
use atoll_caps::{Effective, Grants, Limits, PluginName};
use atoll_table::{Error, Origin};
use serde_json::json;

use super::{find_any, sheet::Sheet};
use crate::{
    arguments::TrustArguments,
    assemble::Parts,
    builtins,
    candidates::changed,
    catalog::Catalog,
    exit::{ExitStatus, FAILED},
    extension_files::Kind,
    installed::Installed,
    plugin_files::PluginFiles,
    scripts, terminal,
};

/// Shows a plugin by its name, or a file.
pub(super) async fn run(plugin: &Path, as_json: bool, trust: TrustArguments) -> anyhow::Result<ExitCode> {
    let parts = Parts::new(trust, !as_json)?;
    let name = plugin.to_str().filter(|text| text.parse::<PluginName>().is_ok());
    if let Some(builtin) = name.and_then(builtins::by_name) {
        return show_builtin(&parts, builtin, as_json);
    }
    let catalog = Catalog::read(&parts.directories, &parts.project, &parts.settings)?;
    let installed = match name {
        // A file in this directory may be meant, but a plugin of that name comes first.
        Some(name) if !plugin.exists() => Some(find_any(&catalog, name)?),
        Some(name) => catalog.find(name).ok(),
        None => None,
    };
    let file = installed.map_or_else(|| plugin.to_owned(), Installed::file);
    match show(&parts, &file, installed, as_json).await {
        Ok(refusal) => match refusal {
            None => Ok(ExitCode::SUCCESS),
            Some(reason) => Err(anyhow::Error::new(reason).context(format!("{} can not be used", file.display()))),
        },
        Err(error) if as_json => {
            let error = error.downcast::<Error>().unwrap_or_else(|error| Error::Failed(format!("{error:#}")));
            terminal::line(json!({"file": file, "usable": false, "refusal": error}))?;
            terminal::note(error);
            Ok(ExitStatus(FAILED).into())
        }
        Err(error) => Err(error),
    }
}

/// The name of a plugin whose manifest does not give one, from its file's.
pub(crate) fn name_of(file: &Path) -> anyhow::Result<PluginName> {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().to_lowercase()).unwrap_or_default();
    let plain: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    plain.trim_matches('-').parse().or_else(|_| "plugin".parse()).context("the file's name can not name a plugin")
}

/// Gives the reason why it could not be used, if so.
async fn show(
    parts: &Parts,
    file: &Path,
    installed: Option<&Installed>,
    as_json: bool,
) -> anyhow::Result<Option<Error>> {
    let files = match installed {
        Some(installed) => installed.read()?,
        None => {
            scripts::refuse(file)?;
            PluginFiles::of(file, atoll_engine::read_component(file)?, name_of(file)?)?
        }
    };
    let manifest = &files.manifest;
    // As if all it asks for were granted: what is missing then is missing in the plugin itself.
    let everything = Effective::intersect(manifest, Some(&manifest.wants));
    let is_script = installed.is_some_and(|found| found.kind == Kind::Script);
    let (surface, refusal) = if is_script {
        // What runs it is part of the program, and does what its text says.
        (None, None)
    } else {
        match parts.host.inspect(file, &files.component, manifest, &everything).await {
            Ok(inspection) => (Some(inspection.surface), inspection.refusal),
            Err(error) => (None, Some(error)),
        }
    };
    let grants = Grants::load(&parts.directories.grants())?;
    let granted = files.granted(&grants);
    let has_changed = granted.is_none() && installed.is_some();
    if has_changed {
        terminal::note(changed(&manifest.name, &files.file));
    }
    let granted = granted.unwrap_or_default();
    let granted = installed.map_or_else(|| granted.clone(), |found| found.with_its_place(granted.clone(), manifest));
    let sheet = Sheet {
        name: manifest.name.to_string(),
        version: manifest.version.clone(),
        description: manifest.description.clone(),
        contract: manifest.contract,
        file: Some(file.display().to_string()),
        manifest: files.manifest_place(),
        state: match installed {
            None => "not installed",
            Some(_) if has_changed => "changed",
            Some(Installed { enabled: false, .. }) => "disabled",
            Some(Installed { origin: Origin::Project, .. }) => "of the project",
            Some(found) if found.is_of_extensions() => "among extensions",
            Some(_) => "installed",
        },
        pin: Some(&files.pin),
        size: Some(files.component.len()),
        surface,
        wants: &manifest.wants,
        granted: Some(&granted),
        effective: &Effective::intersect(manifest, Some(&granted)),
        replaces: &manifest.replaces,
        may_replace: grants.replaces(manifest, &files.pin),
        limits: Limits::default().with(&manifest.limits),
        refusal: refusal.as_ref(),
    };
    print(&sheet, as_json)?;
    Ok(refusal)
}

fn show_builtin(parts: &Parts, builtin: &atoll_engine::Builtin, as_json: bool) -> anyhow::Result<ExitCode> {
    let (manifest, surface) = parts.host.inspect_builtin(builtin)?;
    let added = Grants::load(&parts.directories.grants())?.for_builtin(&manifest.name);
    let sheet = Sheet {
        name: manifest.name.to_string(),
        version: manifest.version.clone(),
        description: manifest.description.clone(),
        contract: manifest.contract,
        file: None,
        manifest: "part of the program",
        state: "built in",
        pin: None,
        size: None,
        surface: Some(surface),
        wants: &manifest.wants,
        granted: None,
        effective: &Effective::builtin_with(&manifest, &added),
        replaces: &[],
        may_replace: Vec::new(),
        limits: Limits::default().with(&manifest.limits),
        refusal: None,
    };
    print(&sheet, as_json)?;
    Ok(ExitCode::SUCCESS)
}

fn print(sheet: &Sheet<'_>, as_json: bool) -> std::io::Result<()> {
    if as_json { terminal::line(sheet.json()) } else { terminal::line(sheet.lines().join("\n")) }
}
