//! `atoll plugin enable` and `disable`.

use std::process::ExitCode;

use atoll_caps::DisabledPlugins;

use super::Known;
use crate::terminal;

pub(super) fn run(known: &Known, name: &str, on: bool) -> anyhow::Result<ExitCode> {
    let plugin = known.find(name, &format!("switch its tools off with `--tools -{name}` or defaultTools"))?;
    let name = &plugin.name;
    let changed = DisabledPlugins::switch(&known.directories.plugin_state(), name, on)?;
    let state = if on { "enabled" } else { "disabled" };
    let before = if changed { "" } else { " already" };
    terminal::line(format_args!("{name} is{before} {state}"))?;
    Ok(ExitCode::SUCCESS)
}
