//! `atoll plugin list`: every plugin there is, whether it is loaded, and what it is granted. Nothing is compiled.

use std::process::ExitCode;

use atoll_caps::{Effective, Manifest, Wants, printable};
use atoll_table::Origin;
use serde_json::{Value, json};

use super::Known;
use crate::{builtins, catalog::Stray, installed::Installed, terminal};

struct Row {
    name: String,
    version: String,
    from: &'static str,
    state: String,
    granted: Vec<String>,
    sha256: Option<String>,
    folder: Option<String>,
}

pub(super) fn run(known: &Known, as_json: bool) -> anyhow::Result<ExitCode> {
    let grants = known.grants();
    let mut rows: Vec<Row> = known.catalog.plugins.iter().map(|plugin| row(plugin, &grants)).collect();
    for Stray { path, reason, origin } in &known.catalog.strays {
        rows.push(Row {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            version: String::new(),
            from: from(*origin),
            state: format!("broken: {reason}"),
            granted: Vec::new(),
            sha256: None,
            folder: Some(path.display().to_string()),
        });
    }
    rows.extend(builtins::all().map(|builtin| {
        // The build has read it.
        let manifest = Manifest::parse(builtin.manifest, builtin.name).ok();
        Row {
            name: builtin.name.to_owned(),
            version: manifest.as_ref().map(|manifest| manifest.version.clone()).unwrap_or_default(),
            from: "built in",
            state: if known.catalog.is_switched_off(builtin.name) { "off" } else { "on" }.to_owned(),
            granted: manifest
                .map(|manifest| Effective::builtin_with(&manifest, &grants.for_builtin(&manifest.name)).describe())
                .unwrap_or_default(),
            sha256: None,
            folder: None,
        }
    }));
    if as_json {
        terminal::line(Value::Array(rows.iter().map(Row::json).collect()))?;
        return Ok(ExitCode::SUCCESS);
    }
    terminal::line(format_args!("{:<24} {:<9} {:<9} {:<9} GRANTED", "PLUGIN", "VERSION", "FROM", "STATE"))?;
    for row in rows {
        let granted = if row.granted.is_empty() { "nothing".to_owned() } else { row.granted.join(", ") };
        terminal::line(printable(&format!(
            "{:<24} {:<9} {:<9} {:<9} {granted}",
            row.name, row.version, row.from, row.state
        )))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whose it is, for people.
fn from(origin: Origin) -> &'static str {
    match origin {
        Origin::Project => "project",
        Origin::User | Origin::Builtin => "user",
    }
}

fn row(plugin: &Installed, grants: &atoll_caps::Grants) -> Row {
    let mut row = Row {
        name: plugin.name.to_string(),
        version: String::new(),
        from: from(plugin.origin),
        state: if plugin.enabled { "on" } else { "off" }.to_owned(),
        granted: Vec::new(),
        sha256: None,
        folder: Some(plugin.shown_path().display().to_string()),
    };
    match plugin.read() {
        Err(error) => row.state = format!("broken: {error:#}"),
        Ok(files) => {
            row.version.clone_from(&files.manifest.version);
            row.sha256 = Some(files.pin.component.to_string());
            match files.granted(grants) {
                Some(granted) => row.granted = plugin.with_its_place(granted, &files.manifest).describe(),
                None => {
                    "changed".clone_into(&mut row.state);
                    row.granted = plugin.with_its_place(Wants::default(), &files.manifest).describe();
                }
            }
            let replaces = grants.replaces(&files.manifest, &files.pin);
            row.granted.extend(replaces.iter().map(|tool| format!("replaces: {tool}")));
        }
    }
    row
}

impl Row {
    fn json(&self) -> Value {
        let (state, reason) = match self.state.split_once(": ") {
            Some((state, reason)) => (state, Some(reason)),
            None => (self.state.as_str(), None),
        };
        json!({
            "name": self.name,
            "version": self.version,
            "from": self.from,
            "state": state,
            "reason": reason,
            "granted": self.granted,
            "sha256": self.sha256,
            "folder": self.folder,
        })
    }
}
