//! `atoll plugin inspect`: what a component is, asks for and would get.

use std::{path::Path, process::ExitCode};

use anyhow::Context as _;
use atoll_caps::{Capability, Digest, Effective, GrantState, Grants, PluginName};
use serde_json::json;

use crate::{
    assemble::{Parts, manifest_beside},
    terminal,
};

/// Shows it. The component is compiled, never run.
pub(super) async fn run(file: &Path, as_json: bool) -> anyhow::Result<ExitCode> {
    let parts = Parts::new(None)?;
    // The name only matters for a plugin without a manifest, which wants nothing.
    let stem: String = file
        .file_stem()
        .map(|stem| stem.to_string_lossy().to_lowercase())
        .unwrap_or_default()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let name: PluginName = stem
        .trim_matches('-')
        .parse()
        .or_else(|_| "plugin".parse())
        .context("the file's name can not name a plugin")?;
    let manifest = manifest_beside(file, name)?;
    // As if all it asks for were granted: what is missing then is missing in the plugin itself.
    let everything = Effective::intersect(&manifest, Some(&manifest.wants));
    let inspection = parts.host.inspect(file, &everything).await?;
    let grants = Grants::load(&parts.directories.grants())?;
    let granted = match grants.for_plugin(&manifest.name, &inspection.digest) {
        GrantState::Granted(wants) => Some(wants),
        GrantState::Changed { .. } | GrantState::None => None,
    };
    let effective = Effective::intersect(&manifest, granted.as_ref());
    let gets: Vec<&Capability> =
        inspection.surface.imports.iter().filter(|one| effective.allows_interface(**one)).collect();
    let missing: Vec<&Capability> =
        inspection.surface.imports.iter().filter(|one| !effective.allows_interface(**one)).collect();
    if as_json {
        terminal::line(format_args!(
            "{}",
            json!({
                "name": manifest.name.as_str(),
                "version": manifest.version,
                "description": manifest.description,
                "sha256": inspection.digest.as_str(),
                "bytes": inspection.size,
                "exports": inspection.surface.all_exports,
                "imports": inspection.surface.all_imports,
                "wants": manifest.wants.describe(),
                "granted": effective.describe(),
                "usable": inspection.refusal.is_none(),
                "refusal": inspection.refusal,
            })
        ))?;
    } else {
        print(&manifest, &inspection.digest, inspection.size)?;
        list("exports", inspection.surface.all_exports.iter())?;
        list("imports", inspection.surface.all_imports.iter())?;
        list("wants", manifest.wants.describe().iter())?;
        list("granted", effective.describe().iter())?;
        list("gets", gets.iter().map(|one| one.as_str()))?;
        list("not granted", missing.iter().map(|one| one.as_str()))?;
        match &inspection.refusal {
            None => terminal::line("usable: yes")?,
            Some(reason) => terminal::line(format_args!("usable: no: {reason}"))?,
        }
    }
    match inspection.refusal {
        None => Ok(ExitCode::SUCCESS),
        Some(reason) => Err(anyhow::Error::new(reason).context(format!("{} can not be used", file.display()))),
    }
}

fn print(manifest: &atoll_caps::Manifest, digest: &Digest, size: u64) -> std::io::Result<()> {
    terminal::line(format_args!("name: {} {}", manifest.name.as_str(), manifest.version))?;
    if !manifest.description.is_empty() {
        terminal::line(format_args!("description: {}", manifest.description))?;
    }
    terminal::line(format_args!("sha256: {}", digest.as_str()))?;
    terminal::line(format_args!("size: {size} bytes"))
}

fn list(title: &str, lines: impl Iterator<Item = impl AsRef<str>>) -> std::io::Result<()> {
    terminal::line(format_args!("{title}:"))?;
    let mut any = false;
    for line in lines {
        any = true;
        terminal::line(format_args!("  {}", line.as_ref()))?;
    }
    if !any {
        terminal::line("  (none)")?;
    }
    Ok(())
}
