//! `atoll plugin remove`: a plugin with everything that was kept for it.

use std::{fs, io, process::ExitCode};

use anyhow::Context as _;
use atoll_caps::{DisabledPlugins, Grants, PluginName, shell_word};
use atoll_table::{Error, Origin};

use super::{Known, staging::PluginFolder};
use crate::terminal;

pub(super) fn run(known: &Known, name: &str, yes: bool) -> anyhow::Result<ExitCode> {
    let directories = &known.directories;
    let name: PluginName = match known.find(name, "it goes with the program") {
        Ok(plugin) if plugin.origin == Origin::Project || plugin.is_of_extensions() => {
            let whose = if plugin.origin == Origin::Project { "belongs to the project" } else { "was not installed" };
            return Err(Error::InvalidArguments(format!(
                "`{name}` {whose}; remove {} there, or switch it off with atoll plugin disable {}",
                plugin.shown_path().display(),
                plugin.name
            ))
            .into());
        }
        Ok(plugin) => plugin.name.clone(),
        // Its folder may have been removed by hand; what was kept for it is still there.
        Err(error) => match name.parse::<PluginName>() {
            Ok(name) if has_traces(known, &name)? => name,
            _ => return Err(error.into()),
        },
    };
    if !yes {
        if !terminal::can_ask() {
            let word = shell_word(name.as_str());
            return Err(Error::Denied {
                capability: format!("removing the plugin {name}"),
                target: String::new(),
                hint: format!("atoll plugin remove {word} --yes"),
            }
            .into());
        }
        if !terminal::confirm(&format!("Remove the plugin {name}, its grants and whatever it has stored?")) {
            terminal::note("nothing was removed");
            return Ok(crate::exit::ExitStatus(crate::exit::FAILED).into());
        }
    }
    let folder = PluginFolder::lock(&directories.plugins()).context("the folder of plugins can not be changed")?;
    // The grants first: what is left, should this be interrupted, may do nothing.
    Grants::update(&directories.grants(), |grants| grants.forget(&name))?;
    folder.remove(name.as_str()).with_context(|| format!("the plugin {name} can not be removed"))?;
    for store in directories.stores_of(&name) {
        match fs::remove_dir_all(&store) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("{} can not be removed", store.display()));
            }
            _ => {}
        }
    }
    for log in directories.logs_of(&name) {
        fs::remove_file(&log).with_context(|| format!("{} can not be removed", log.display()))?;
    }
    DisabledPlugins::switch(&directories.plugin_state(), &name, true)?;
    terminal::line(format_args!("{name} is removed"))?;
    Ok(ExitCode::SUCCESS)
}

fn has_traces(known: &Known, name: &PluginName) -> anyhow::Result<bool> {
    let grants = Grants::load(&known.directories.grants())?;
    let is_pinned = grants.plugins().any(|(known, _)| known == name);
    Ok(is_pinned || !known.directories.stores_of(name).is_empty())
}
