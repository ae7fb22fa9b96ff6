//! `atoll plugin test`: plays scenarios with a plugin and says what is not as they expect it. Nothing outside of temporary
//! folders is touched but golden files, and those only if the user says so.

mod additions;
mod asking;
mod beside;
mod check;
mod event;
mod fake_tools;
mod folders;
mod pattern;
mod play;
mod reading;
mod record;
mod scenario;
mod sheet;
mod stage;
pub(super) mod subject;

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::Context as _;
use atoll_caps::{printable, read_small_file};
use serde_json::json;

use crate::{
    directories::Directories,
    exit::{ExitStatus, FAILED, USAGE},
    terminal,
};
use play::{Played, Script};
use scenario::Scenario;
use subject::Subject;

/// The variable that has golden files written.
const UPDATE: &str = "ATOLL_UPDATE";

/// Why no scenario was played.
fn no_scenarios(subject: &Subject) -> String {
    let folder = subject.project.join("tests");
    format!("there is no scenario in {}; write one, as NAME.toml, or name its file", folder.display())
}

/// Says why none is played: to people, and to programs as well if they asked.
fn not_played(reasons: &[String], as_json: bool) -> anyhow::Result<ExitCode> {
    if as_json {
        terminal::json(&json!({"passed": false, "errors": reasons}))?;
    }
    for reason in reasons {
        terminal::note(reason);
    }
    Ok(USAGE.into())
}

/// Plays the scenarios, those in the folder `tests` of the plugin's project if none is named.
pub(super) async fn run(plugin: &std::path::Path, named: Vec<PathBuf>, as_json: bool) -> anyhow::Result<ExitCode> {
    let subject = Subject::find(plugin)?;
    let files = if named.is_empty() { subject.scenarios() } else { named };
    if files.is_empty() {
        return not_played(&[no_scenarios(&subject)], as_json);
    }
    let (mut scripts, mut bad) = (Vec::new(), Vec::new());
    for file in files {
        match read(file) {
            Ok(script) => scripts.push(script),
            Err(error) => bad.push(format!("{error:#}")),
        }
    }
    // None is played: what was understood of the others would look as if it were all.
    if !bad.is_empty() {
        return not_played(&bad, as_json);
    }
    let directories = Directories::find()?;
    let update = std::env::var_os(UPDATE).is_some_and(|value| !value.is_empty() && value != "0");
    let (mut failed, mut shown) = (0, Vec::new());
    let count = scripts.len();
    for script in scripts {
        let played = play::play(&subject, &script, &directories.cache, update).await?;
        failed += usize::from(!played.problems.is_empty());
        if as_json {
            shown.push(record(&script, &played));
        } else {
            show(&script, &played)?;
        }
    }
    if as_json {
        terminal::json(&json!({"plugin": subject.file, "passed": failed == 0, "scenarios": shown}))?;
    } else {
        terminal::line(match (failed, count) {
            (0, 1) => "1 scenario passed".to_owned(),
            (0, count) => format!("{count} scenarios passed"),
            (failed, count) => format!("{failed} of {count} scenarios failed"),
        })?;
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitStatus(FAILED).into() })
}

fn read(file: PathBuf) -> anyhow::Result<Script> {
    let text = read_small_file(&file).with_context(|| format!("{} can not be read", file.display()))?;
    let text = text.with_context(|| format!("there is no file {}", file.display()))?;
    let scenario = Scenario::parse(&text, &file).map_err(anyhow::Error::msg)?;
    Ok(Script { file, text, scenario: Arc::new(scenario) })
}

fn show(script: &Script, played: &Played) -> std::io::Result<()> {
    let Played { problems, steps, written, .. } = played;
    let file = printable(&script.file.to_string_lossy());
    let about = script.scenario.about.as_deref().map(|about| format!(": {}", printable(about))).unwrap_or_default();
    let steps = if *steps == 1 { "1 step".to_owned() } else { format!("{steps} steps") };
    let verdict = if problems.is_empty() { "ok  " } else { "FAIL" };
    terminal::line(format_args!("{verdict} {file}{about} ({steps})"))?;
    for problem in problems {
        terminal::line(format_args!("  {file}:{}: {}", problem.line, printable(&problem.step)))?;
        for line in problem.message.lines() {
            terminal::line(format_args!("    {}", printable(line)))?;
        }
    }
    if !problems.is_empty() && !played.transcript.is_empty() {
        terminal::line("  what happened:")?;
        for line in played.transcript.lines() {
            terminal::line(format_args!("    | {}", printable(line)))?;
        }
    }
    written.iter().try_for_each(|path| terminal::line(format_args!("  written: {}", path.display())))
}

fn record(script: &Script, played: &Played) -> serde_json::Value {
    json!({
        "file": script.file,
        "about": script.scenario.about,
        "passed": played.problems.is_empty(),
        "steps": played.steps,
        "problems": played.problems,
        "transcript": played.transcript,
        "written": played.written,
    })
}
