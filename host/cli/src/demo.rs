//! `atoll demo`: the whole path without a network. The model is scripted; everything else is what real runs use.

use std::{process::ExitCode, sync::Arc};

use anyhow::Context as _;
use atoll_agent::{
    Agent, Conversation, Event, Extensions, Session, conversation::Asked, loadout::Loadout, models::Models,
    queue::Queue,
};
use atoll_table::Content;

use crate::{
    assemble::Parts,
    exit::{ExitStatus, FAILED},
    loaded::Plugins,
    model_source::Programs,
    show::Show,
    signals::Stop,
    terminal,
};

const SCRIPT: &str = include_str!("../demo/script.yaml");
const PROJECT: [(&str, &str); 3] = [
    ("README.md", include_str!("../demo/project/README.md")),
    ("stats.sh", include_str!("../demo/project/stats.sh")),
    ("test.sh", include_str!("../demo/project/test.sh")),
];
const PROMPT: &str = "The test of this project fails. Find out why and mend it.";

/// Runs the demo in a temporary copy of its project.
pub(crate) async fn run(fast: bool) -> anyhow::Result<ExitCode> {
    let stop = Stop::watch()?;
    let folder =
        tempfile::Builder::new().prefix("atoll-demo-").tempdir().context("no temporary folder could be made")?;
    let cwd = folder.path().canonicalize()?;
    for (name, text) in PROJECT {
        std::fs::write(cwd.join(name), text).with_context(|| format!("{name} could not be written"))?;
    }
    let parts = Arc::new(Parts::in_folder(&cwd)?);
    // The demo is the same whatever the user's own plugins and models are.
    let pipeline = parts.builtin_tools().await?;
    pipeline.change(|table| table.select(&["+codemode".to_owned(), "+grep".to_owned()]))?;
    let script = if fast { SCRIPT.replace("chunk-delay-ms: 12", "chunk-delay-ms: 0") } else { SCRIPT.to_owned() };
    let chosen = Models::playing(&script)?;
    let provider = parts.provider(&chosen.model.api, &Plugins::default()).await?;
    terminal::line(format_args!("A small project with a bug, in {}:", cwd.display()))?;
    for (name, _) in PROJECT {
        terminal::line(format_args!("  {name}"))?;
    }
    terminal::line(format_args!("\nprompt: {PROMPT}"))?;
    terminal::line(format_args!(
        "(the model is a script; the provider that plays it and all tools are sandboxed components)"
    ))?;
    let show = Show::new(&pipeline);
    let watched = stop.token.clone();
    let session = Session::new(None, &cwd);
    parts.host.set_process_env(Programs::of(&session).variables(&chosen));
    let conversation = Conversation::new(session, Queue::default(), Asked { chosen, provider });
    let agent = Agent {
        loadout: Loadout::default(),
        pipeline,
        conversation,
        extensions: Extensions::default(),
        context: Vec::new(),
        cwd: cwd.clone(),
        idle_timeout_ms: parts.settings.idle_timeout_ms(),
        sink: Arc::new(move |event: &Event| {
            // Whoever watched has gone: so is the point of going on.
            if show.event(event).is_err() {
                watched.cancel();
            }
        }),
        stop: stop.token.clone(),
    };
    let outcome = agent.prompt(vec![Content::text(PROMPT)]).await?;
    if outcome.aborted {
        return Ok(ExitStatus(stop.code().unwrap_or(FAILED)).into());
    }
    if let Some(message) = outcome.answer.and_then(|answer| answer.error_message) {
        anyhow::bail!("the demo failed: {message}");
    }
    // Looked at with the host's own eyes: a demo that only says it worked would prove nothing.
    let mended = std::fs::read_to_string(cwd.join("stats.sh"))?.contains("mean=$((sum / count))");
    anyhow::ensure!(mended, "the demo's project was not mended");
    terminal::line(format_args!(
        "\nNext: point atoll at a model of yours, then `atoll -p \"…\"` in a project; `atoll doctor` tells what is missing."
    ))?;
    Ok(ExitCode::SUCCESS)
}
