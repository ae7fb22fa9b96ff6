//! `atoll trust`: what is saved about projects.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use atoll_caps::{TrustStore, printable};
use serde_json::json;

use crate::{
    arguments::{TrustArguments, TrustCommand},
    directories::Directories,
    project::Project,
    terminal,
};

pub(crate) fn run(command: &TrustCommand, trust: TrustArguments) -> anyhow::Result<ExitCode> {
    let directories = Directories::find()?;
    match command {
        TrustCommand::List { json } => list(&directories, trust, *json)?,
        TrustCommand::Allow { directory } => save(&directories, directory.as_ref(), Some(true))?,
        TrustCommand::Deny { directory } => save(&directories, directory.as_ref(), Some(false))?,
        TrustCommand::Forget { directory } => save(&directories, directory.as_ref(), None)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(directories: &Directories, trust: TrustArguments, as_json: bool) -> anyhow::Result<()> {
    let store = TrustStore::load(&directories.trust())?;
    let settings = atoll_agent::settings::Settings::load(&directories.settings())?;
    let project = Project::quietly(directories, settings.default_project_trust, trust);
    let here = project.directory().display().to_string();
    if as_json {
        let saved: serde_json::Map<String, serde_json::Value> =
            store.all().map(|(path, decision)| (path.display().to_string(), json!(decision))).collect();
        terminal::line(json!({"directory": here, "trusted": project.trusted, "saved": saved}))?;
        return Ok(());
    }
    let word = |trusted: bool| if trusted { "trusted" } else { "not trusted" };
    for (path, decision) in store.all() {
        let said = decision.map_or("undecided", word);
        terminal::line(printable(&format!("{}: {said}", path.display())))?;
    }
    terminal::line(printable(&format!("this directory, {here}: {}", word(project.trusted))))?;
    Ok(())
}

fn save(directories: &Directories, directory: Option<&PathBuf>, decision: Option<bool>) -> anyhow::Result<()> {
    let given = directory.unwrap_or(&directories.cwd);
    let real = match given.canonicalize() {
        Ok(real) => real,
        // A directory that is gone can still be forgotten.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && decision.is_none() => std::path::absolute(given)?,
        Err(error) => return Err(error).with_context(|| format!("{} can not be found", given.display())),
    };
    anyhow::ensure!(decision.is_none() || real.is_dir(), "{} is not a directory; name the project's", real.display());
    let changed = TrustStore::save(&directories.trust(), &real, decision)?;
    let said = match (decision, changed) {
        (Some(true), _) => "trusted from now on",
        (Some(false), _) => "not trusted from now on",
        (None, true) => "forgotten",
        (None, false) => "not saved, so there is nothing to forget",
    };
    terminal::line(printable(&format!("{}: {said}", real.display())))?;
    Ok(())
}
