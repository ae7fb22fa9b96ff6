//! `atoll codemode run`: one script, through the tool that runs scripts.

use std::{io::Read as _, path::Path, process::ExitCode, time::Instant};

use anyhow::{Context as _, anyhow};
use atoll_agent::{Pipeline, pipeline::Bounds};
use atoll_table::{Content, Origin, names::matches_pattern, tool::Exposure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;

use crate::{
    arguments::{ExtensionArguments, ScriptArguments, TrustArguments},
    awaited::may_be_of,
    exit::USAGE,
    one_call::{Call, Called, Setup, one_call},
    terminal,
};

/// The longest script that is read, in bytes.
const MAX_SCRIPT: u64 = 8 << 20;

pub(super) async fn run(
    script: &ScriptArguments,
    trust: TrustArguments,
    extensions: &ExtensionArguments,
) -> anyhow::Result<ExitCode> {
    let code = match read(&script.file) {
        Ok(code) => code,
        Err(error) => {
            terminal::note(format_args!("{error:#}"));
            return Ok(USAGE.into());
        }
    };
    let setup = Setup {
        trust,
        extensions,
        may_ask_trust: !script.json && script.file != Path::new("-"),
        sandbox_bash: script.sandbox_bash,
        tools: script.tools.as_deref(),
    };
    let called = one_call(setup, |pipeline| call(pipeline, script, &code)).await?;
    let called = match called {
        Ok(called) => called,
        Err(status) => return Ok(status.into()),
    };
    if script.json {
        terminal::json(&called.record())?;
    } else {
        show(&called)?;
    }
    Ok(called.status().into())
}

fn read(file: &Path) -> anyhow::Result<String> {
    let shown = || if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() };
    let mut bytes = Vec::new();
    let size = if file == Path::new("-") {
        std::io::stdin().lock().take(MAX_SCRIPT + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(MAX_SCRIPT + 1).read_to_end(&mut bytes))
    };
    let size = size.with_context(|| format!("the script can not be read from {}", shown()))?;
    if size as u64 > MAX_SCRIPT {
        return Err(anyhow!("the script in {} is longer than {} MiB", shown(), MAX_SCRIPT >> 20));
    }
    String::from_utf8(bytes).map_err(|_| anyhow!("the script in {} is not UTF-8", shown()))
}

/// The call that runs the script.
fn call(pipeline: &Pipeline, script: &ScriptArguments, code: &str) -> anyhow::Result<Call> {
    let (runs, reachable, to_come) = pipeline.table(|table| {
        let runs = table.tools().iter().filter(|entry| entry.runs_scripts && entry.tool.exposure != Exposure::Hidden);
        // What the user brought counts before what is part of the program.
        let runs = runs.min_by_key(|entry| entry.origin == Origin::Builtin);
        let reachable: Vec<String> = table
            .callable(|entry, standing| {
                atoll_table::reach::may_reach(atoll_table::Caller::Script, entry.tool.exposure, standing)
            })
            .into_iter()
            .map(|tool| tool.name)
            .collect();
        (runs.map(|entry| entry.tool.name.clone()), reachable, table.expected())
    });
    let name = runs.ok_or_else(|| {
        anyhow!("no tool here runs scripts; `atoll plugin list` shows which plugins are loaded and which are left out")
    })?;
    for pattern in &script.allow {
        let may_come = to_come.iter().any(|group| may_be_of(pattern, group));
        if !may_come && !reachable.iter().any(|tool| matches_pattern(pattern, tool)) {
            terminal::note(format_args!(
                "--allow {pattern} is none of the tools that a script can call; `atoll tool list` shows them"
            ));
        }
    }
    let bounds = Bounds {
        allow: (!script.allow.is_empty()).then(|| script.allow.clone().into()),
        deadline: script.timeout.map(|timeout| Instant::now() + timeout),
    };
    Ok(Call { name, arguments: json!({"code": code}), bounds })
}

/// Shows what the script gave: its own output on standard output, the rest on standard error.
fn show(called: &Called) -> anyhow::Result<()> {
    let parts: Vec<&str> = match called.output.details.as_ref().and_then(|details| details["parts"].as_array()) {
        Some(parts) => parts.iter().map(|part| part.as_str().unwrap_or_default()).collect(),
        // It has failed before it began, or says nothing of its parts.
        None if called.output.is_error => vec!["error"; called.output.content.len()],
        None => Vec::new(),
    };
    let mut pictures = 0;
    for (at, piece) in called.output.content.iter().enumerate() {
        let is_aside = matches!(parts.get(at), Some(&("status" | "console" | "error")));
        match piece {
            Content::Text { text } if is_aside => terminal::lines(text),
            Content::Text { text } => {
                let text = without_heading(text);
                terminal::output(text.strip_suffix('\n').unwrap_or(text))?;
            }
            Content::Image { data, mime_type } => {
                pictures += 1;
                save(pictures, data, mime_type);
            }
        }
    }
    Ok(())
}

/// A piece without the line that tells pieces apart for a model.
fn without_heading(text: &str) -> &str {
    match text.split_once('\n') {
        Some((first, rest)) if first.starts_with("--- text ") && first.ends_with(" ---") => rest,
        _ => text,
    }
}

/// Saves a picture in the working directory, under a name that is not taken.
fn save(number: usize, data: &str, mime_type: &str) {
    let ending = match mime_type {
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => "png",
    };
    let save = || {
        let bytes = STANDARD.decode(data).context("it is not base64")?;
        (0..1_000)
            .map(|try_| match try_ {
                0 => format!("codemode-{number}.{ending}"),
                try_ => format!("codemode-{number}-{try_}.{ending}"),
            })
            .find_map(|name| match std::fs::File::create_new(&name) {
                Ok(file) => Some(Ok((name, file))),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => None,
                Err(error) => Some(Err(error)),
            })
            .context("all names are taken")?
            .and_then(|(name, mut file)| std::io::Write::write_all(&mut file, &bytes).map(|()| (name, bytes.len())))
            .context("it can not be written")
    };
    match save() {
        Ok((name, bytes)) => terminal::note(format_args!("picture saved: {name} ({mime_type}, {bytes} bytes)")),
        Err(error) => terminal::note(format_args!("the picture {number} is not saved: {error:#}")),
    }
}
