//! `atoll plugin verify`: whether plugins are what was installed and granted, and fit this host. Nothing of them may run
//! for it.

use std::process::ExitCode;

use atoll_caps::{Effective, GrantState, Grants, printable};
use atoll_table::Error;
use serde_json::{Value, json};

use super::find_any;
use crate::{
    arguments::TrustArguments,
    assemble::Parts,
    builtins,
    catalog::{Catalog, Stray},
    exit::{ExitStatus, FAILED},
    extension_files::Kind,
    installed::Installed,
    plugin_files::PluginFiles,
    terminal,
};

struct Finding {
    name: String,
    wrong: Vec<String>,
    note: Option<String>,
}

pub(super) async fn run(names: &[String], as_json: bool, trust: TrustArguments) -> anyhow::Result<ExitCode> {
    let parts = Parts::new(trust, !as_json)?;
    let catalog = Catalog::read(&parts.directories, &parts.project, &parts.settings)?;
    let grants = Grants::load(&parts.directories.grants())?;
    let mut findings = Vec::new();
    if names.is_empty() {
        for Stray { path, reason, .. } in &catalog.strays {
            let wrong = vec![format!("{} holds no plugin: {reason}", path.display())];
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            findings.push(Finding { name, wrong, note: None });
        }
        for plugin in &catalog.plugins {
            findings.push(verify(&parts, &grants, plugin).await);
        }
    }
    for name in names {
        if builtins::by_name(name).is_some() {
            let note = Some("built in".to_owned());
            findings.push(Finding { name: name.clone(), wrong: Vec::new(), note });
        } else {
            findings.push(verify(&parts, &grants, find_any(&catalog, name)?).await);
        }
    }
    if as_json {
        let all = findings.iter().map(|finding| {
            json!({"name": finding.name, "ok": finding.wrong.is_empty(), "wrong": finding.wrong, "note": finding.note})
        });
        terminal::line(Value::Array(all.collect()))?;
    } else {
        for finding in &findings {
            let said = if finding.wrong.is_empty() { "ok".to_owned() } else { finding.wrong.join("; ") };
            let note = finding.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
            terminal::line(printable(&format!("{}: {said}{note}", finding.name)))?;
        }
        if findings.is_empty() {
            terminal::line("no plugin is installed")?;
        }
    }
    let is_good = findings.iter().all(|finding| finding.wrong.is_empty());
    Ok(if is_good { ExitCode::SUCCESS } else { ExitStatus(FAILED).into() })
}

async fn verify(parts: &Parts, grants: &Grants, plugin: &Installed) -> Finding {
    let mut finding = Finding { name: plugin.name.to_string(), wrong: Vec::new(), note: None };
    let files = match plugin.read() {
        Ok(files) => files,
        Err(error) => {
            finding.wrong.push(format!("{error:#}"));
            return finding;
        }
    };
    match grants.for_plugin(&plugin.name, &files.pin) {
        GrantState::Granted(_) => {}
        GrantState::None => finding.note = Some("put there by hand: it is not pinned to a digest".to_owned()),
        GrantState::Changed { granted_digest } => finding
            .wrong
            .push(format!("its SHA-256 is {}, but {granted_digest} was installed or granted", files.pin.component)),
        GrantState::ManifestChanged => finding.wrong.push("its manifest is not the one it was granted with".to_owned()),
    }
    let checked = if plugin.kind == Kind::Script { Ok(None) } else { check(parts, &files).await };
    match checked {
        Ok(None) => {}
        Ok(Some(error)) | Err(error) => finding.wrong.push(error.to_string()),
    }
    finding
}

/// Looks at it as if all it asks for were granted, so that only the plugin itself can be at fault. It is compiled, and
/// nothing of it runs: it may be one that nobody has trusted yet.
async fn check(parts: &Parts, files: &PluginFiles) -> Result<Option<Error>, Error> {
    let effective = Effective::intersect(&files.manifest, Some(&files.manifest.wants));
    let found = parts.host.inspect(&files.file, &files.component, &files.manifest, &effective).await?;
    Ok(found.refusal)
}
