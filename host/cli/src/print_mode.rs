//! One run from the command line: the answer's text, or every event as JSON.

use std::{
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
};

use atoll_agent::{
    Agent, Event, Session, context_files,
    event::Sink,
    message::StopReason,
    models::{Chosen, ModelError, Models},
};
use tokio_util::sync::CancellationToken;

use crate::{
    arguments::{Mode, PromptArguments, TrustArguments},
    assemble::Parts,
    exit::{ExitStatus, FAILED},
    input,
    signals::Stop,
    terminal,
};

/// Carries out the prompts of the command line.
pub(crate) async fn run(arguments: PromptArguments, trust: TrustArguments) -> anyhow::Result<ExitCode> {
    // Before signals are watched: a question that nobody wants to answer is ended by Ctrl-C.
    let parts = Parts::new(trust, arguments.mode == Mode::Text)?;
    let stop = Stop::watch()?;
    parts.confine_programs(arguments.sandbox_bash);
    if arguments.mode == Mode::Text {
        parts.ask_the_person(&stop);
    }
    let cwd = parts.directories.cwd.clone();
    let nothing = arguments.messages.is_empty();
    let reading = {
        let (messages, cwd) = (arguments.messages.clone(), cwd.clone());
        tokio::task::spawn_blocking(move || input::prompts(&messages, &cwd))
    };
    // Everything that can be is set up while standard input is waited for.
    let folder = parts.directories.sessions(&parts.settings);
    let session = if arguments.continue_session {
        Session::latest(&folder, &cwd)
    } else {
        Ok(Session::new((!arguments.no_session).then_some(folder.as_path()), &cwd))
    };
    let models = parts.models()?;
    let chosen = match (&arguments.model, &session) {
        (None, Ok(session)) => chosen_before(&models, session, default_model(&parts).as_deref()),
        (wanted, _) => models.choose(wanted.as_deref()),
    };
    let loading = async {
        let (pipeline, user) = parts.tools().await?;
        let provider = match &chosen {
            Ok(chosen) => Some(parts.provider(&chosen.model.api, &user).await?),
            Err(_) => None,
        };
        anyhow::Ok((pipeline, provider))
    };
    let (loaded, prompts) = tokio::select! {
        both = async { tokio::join!(loading, reading) } => both,
        () = stop.token.cancelled() => return Ok(ExitStatus(stop.code().unwrap_or(FAILED)).into()),
    };
    let prompts = prompts??;
    if prompts.is_empty() {
        if nothing && !arguments.print {
            anyhow::bail!("the interactive mode is not part of this version; give a prompt: atoll -p \"…\"");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let session = session?;
    let chosen = chosen?;
    let (pipeline, provider) = loaded?;
    let Some(provider) = provider else { anyhow::bail!("no provider for {}", chosen.model.api) };
    if let Some(note) = &chosen.note {
        terminal::note(format_args!("{note}"));
    }
    if let Some(selection) = &arguments.tools {
        pipeline.change(|table| table.select(selection))?;
    }
    parts.host.set_process_env(process_env(&session, &chosen));
    parts.set_session(session.id());
    let output = Output::new(arguments.mode, stop.token.clone());
    if arguments.mode == Mode::Json {
        output.line(&session.header().to_string());
    }
    let context =
        if arguments.no_context_files { Vec::new() } else { context_files::find(&parts.directories.atoll_home, &cwd) };
    let mut agent = Agent {
        pipeline,
        provider,
        chosen,
        session,
        context,
        cwd,
        idle_timeout_ms: parts.settings.idle_timeout_ms(),
        sink: output.sink(),
        stop: stop.token.clone(),
    };
    for prompt in prompts {
        let outcome = agent.prompt(prompt).await?;
        let code = output.finish(&outcome, &stop);
        if code != 0 {
            return Ok(ExitStatus(code).into());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn default_model(parts: &Parts) -> Option<String> {
    let model = parts.settings.default_model.clone()?;
    Some(match &parts.settings.default_provider {
        Some(provider) => format!("{provider}/{model}"),
        None => model,
    })
}

/// The model and the level of a session that is gone on with; the default if that model is not set up any more.
fn chosen_before(models: &Models, session: &Session, default: Option<&str>) -> Result<Chosen, ModelError> {
    let Some((provider, id)) = session.model() else { return models.choose(default) };
    let before = format!("{provider}/{id}");
    match models.choose(Some(&before)) {
        Ok(chosen) => {
            let level = session.thinking().and_then(|level| serde_json::from_value(level.clone()).ok());
            Ok(Chosen { thinking: level.unwrap_or(chosen.thinking), ..chosen })
        }
        // That something is wrong with a model that is set up, such as a missing key, is for the user to put right.
        Err(error @ (ModelError::UnknownProvider { .. } | ModelError::UnknownModel(_) | ModelError::NoScript)) => {
            let Ok(chosen) = models.choose(default) else { return Err(error) };
            let now = format!("{}/{}", chosen.model.provider, chosen.model.id);
            let note = format!("{before}, which this session used, is not set up any more; going on with {now}");
            Ok(Chosen { note: Some(note), ..chosen })
        }
        Err(error) => Err(error),
    }
}

/// What processes that tools start are told about the session.
pub(crate) fn process_env(session: &Session, chosen: &Chosen) -> Vec<(String, String)> {
    let level = serde_json::to_value(chosen.thinking).ok().and_then(|level| Some(level.as_str()?.to_owned()));
    let file = session.path().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    [
        ("AI_AGENT", "atoll".to_owned()),
        ("ATOLL_SESSION_ID", session.id().to_owned()),
        ("ATOLL_SESSION_FILE", file),
        ("ATOLL_PROVIDER", chosen.model.provider.clone()),
        ("ATOLL_MODEL", chosen.model.id.clone()),
        ("ATOLL_REASONING_LEVEL", level.unwrap_or_default()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// Standard output. When it can not be written any more, the run is stopped, and has failed.
#[derive(Clone)]
struct Output {
    mode: Mode,
    failure: Arc<Mutex<Option<std::io::Error>>>,
    stop: CancellationToken,
}

impl Output {
    fn new(mode: Mode, stop: CancellationToken) -> Self {
        Self { mode, failure: Arc::default(), stop }
    }

    fn line(&self, text: &str) {
        if let Err(error) = terminal::line(text) {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            self.stop.cancel();
        }
    }

    fn sink(&self) -> Sink {
        let output = self.clone();
        match self.mode {
            Mode::Text => Arc::new(|_: &Event| {}),
            Mode::Json => Arc::new(move |event: &Event| match serde_json::to_string(event) {
                Ok(line) => output.line(&line),
                Err(error) => terminal::note(format_args!("an event could not be written: {error}")),
            }),
        }
    }

    /// Shows how a run ended; the code to exit with.
    fn finish(&self, outcome: &atoll_agent::Outcome, stop: &Stop) -> u8 {
        let Some(answer) = &outcome.answer else { return 0 };
        let failed = answer.stop_reason == StopReason::Error;
        if self.mode == Mode::Text && !failed && !outcome.aborted {
            for text in answer.texts() {
                self.line(text.strip_suffix('\n').unwrap_or(text));
            }
        }
        if let Some(error) = self.failure.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            // A reader that has gone knows; one that got nothing because the disk is full does not.
            if error.kind() != std::io::ErrorKind::BrokenPipe {
                terminal::note(format_args!("the answer could not be written to standard output: {error}"));
            }
            return FAILED;
        }
        if outcome.aborted {
            if stop.code().is_some() {
                terminal::note("stopped");
            }
            return stop.code().unwrap_or(FAILED);
        }
        match answer.stop_reason {
            StopReason::Error => {
                terminal::note(answer.error_message.as_deref().unwrap_or("the model request failed"));
                FAILED
            }
            StopReason::Length => {
                terminal::note("the answer reached the limit on its length and is not complete");
                FAILED
            }
            _ => 0,
        }
    }
}
