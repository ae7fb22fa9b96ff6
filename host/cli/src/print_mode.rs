//! One run from the command line: the answer's text, or every event as JSON.

use std::{
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
};

use atoll_agent::{
    Agent, Conversation, Event, Session, Teller, context_files,
    conversation::Asked,
    event::Sink,
    extensions::{InputEffect, RELOAD_COMMAND, UnknownFlag, session_access::Access},
    kept::InSession,
    loadout::Loadout,
    message::StopReason,
    models::{Chosen, ModelError, Models},
    queue::Queue,
};
use atoll_table::{Content, extension::Mode as HostMode};
use clap::CommandFactory as _;
use tokio_util::sync::CancellationToken;

use crate::{
    arguments::{Arguments, ExtensionArguments, Mode, PromptArguments, TrustArguments},
    assemble::Parts,
    assembled::{Assembled, FailureEvents, Surroundings, report_as_note},
    exit::{ExitStatus, FAILED},
    input,
    model_source::{self, Programs, Source},
    plugin::dev::Developed,
    reload::{self, Reloader, Which},
    signals::Stop,
    spelling::{UnknownOption, near_options},
    spilled::Spilled,
    terminal,
};

/// Carries out the prompts of the command line.
pub(crate) async fn run(
    arguments: PromptArguments,
    trust: TrustArguments,
    extensions: ExtensionArguments,
) -> anyhow::Result<ExitCode> {
    go(arguments, trust, extensions, None).await
}

/// Carries out prompts again and again, with each new version of an extension.
pub(crate) async fn develop(
    arguments: PromptArguments,
    trust: TrustArguments,
    extensions: ExtensionArguments,
    developed: Developed,
) -> anyhow::Result<ExitCode> {
    go(arguments, trust, extensions, Some(developed)).await
}

async fn go(
    arguments: PromptArguments,
    trust: TrustArguments,
    extensions: ExtensionArguments,
    mut developed: Option<Developed>,
) -> anyhow::Result<ExitCode> {
    // Before signals are watched: a question that nobody wants to answer is ended by Ctrl-C.
    let may_ask = arguments.mode == Mode::Text;
    let parts = Arc::new(Parts::for_run(trust, may_ask, &extensions, arguments.sandbox_bash).await?);
    let stop = Stop::watch()?;
    let person = if arguments.mode == Mode::Text { parts.ask_the_person(&stop) } else { None };
    if developed.is_some() {
        parts.host.set_log(Developed::log());
    }
    let cwd = parts.directories.cwd.clone();
    let nothing = arguments.messages.is_empty() && extensions.unknown.is_empty();
    let is_developed = developed.is_some();
    let read = |messages: Vec<String>| {
        let (cwd, is_plain) = (cwd.clone(), is_developed);
        tokio::task::spawn_blocking(move || match is_plain {
            true => Ok(messages.into_iter().map(|text| vec![Content::text(text)]).collect()),
            false => input::prompts(&messages, &cwd),
        })
    };
    // Everything that can be is set up while standard input is waited for. Where options of extensions may stand before
    // messages, only they know which words are messages.
    let reading = extensions.unknown.is_empty().then(|| read(arguments.messages.clone()));
    let folder = parts.directories.sessions(&parts.settings);
    let session = if arguments.continue_session {
        Session::latest(&folder, &cwd)
    } else {
        Ok(Session::new((!arguments.no_session).then_some(folder.as_path()), &cwd))
    };
    let models = parts.models()?;
    let choose = |session: Option<&Session>| match (&arguments.model, session) {
        (None, Some(session)) => chosen_before(&models, session, default_model(&parts).as_deref()),
        (wanted, _) => models.choose(wanted.as_deref()),
    };
    let chosen = choose(session.as_ref().ok());
    let failures = FailureEvents::default();
    let report = if arguments.mode == Mode::Json { failures.report() } else { report_as_note() };
    let loading = async {
        let assembled = parts.load(&extensions, report).await?;
        let provider = match &chosen {
            Ok(chosen) => Some(parts.provider(&chosen.model.api, &assembled.plugins).await?),
            Err(_) => None,
        };
        anyhow::Ok((assembled, provider))
    };
    let stopped = || Ok(ExitStatus(stop.code().unwrap_or(FAILED)).into());
    let reading = async {
        match reading {
            Some(reading) => Some(reading.await),
            None => None,
        }
    };
    let (loaded, prompts) = tokio::select! {
        both = async { tokio::join!(loading, reading) } => both,
        () = stop.token.cancelled() => return stopped(),
    };
    if let (Ok((assembled, _)), Some(UnknownOption { name, value, detached })) = (&loaded, extensions.unknown.first())
        && assembled.extensions.all().is_empty()
    {
        // Before whatever else may be missing: it can not be anybody's.
        say(assembled, name, value.clone(), detached.is_some())?;
    }
    let prompts = prompts.transpose()?.transpose()?;
    if prompts.as_ref().is_some_and(Vec::is_empty) && developed.is_none() {
        return without_prompts(nothing, &arguments);
    }
    let session = session?;
    let (assembled, asked) = match (loaded, chosen) {
        (Ok((assembled, None)), Err(error)) if is_developed || model_source::may_be_added(&error, &assembled) => {
            (assembled, Err(error))
        }
        (Err(error), Err(_)) if is_developed => return Err(error),
        (_, Err(error)) => return Err(error.into()),
        (Err(error), _) => return Err(error),
        (Ok((_, None)), Ok(chosen)) => anyhow::bail!("no provider for {}", chosen.model.api),
        (Ok((assembled, Some(provider))), Ok(chosen)) => (assembled, Ok(Asked { chosen, provider })),
    };
    // Extensions may add the model that is wanted.
    let is_settled =
        matches!(&asked, Ok(asked) if asked.chosen.note.is_none() || assembled.extensions.all().is_empty());
    let asked = asked.unwrap_or_else(|error| model_source::nobody(arguments.model.as_deref(), &error));
    let note = |chosen: &Chosen| {
        if let Some(note) = &chosen.note {
            terminal::note(format_args!("{note}"));
        }
    };
    if is_settled {
        note(&asked.chosen);
    }
    let programs = Programs::of(&session);
    parts.host.set_process_env(programs.variables(&asked.chosen));
    parts.set_session(session.id());
    let output = Output::new(arguments.mode, stop.token.clone());
    if arguments.mode == Mode::Json {
        output.line(&session.header().to_string());
        failures.show(output.sink());
    }
    let queue = Queue::new(parts.settings.steering_mode, parts.settings.follow_up_mode);
    let conversation = Conversation::new(session, queue, asked);
    assembled.additions.are_asked_by(conversation.clone());
    let idle_timeout_ms = parts.settings.idle_timeout_ms();
    let teller = Teller { sink: output.sink(), extensions: assembled.extensions.clone() };
    let keeper = InSession::new(conversation.session.clone(), move |event| teller.tell(event));
    assembled.pipeline.set_keeper(Arc::new(keeper));
    assembled.pipeline.set_spill(Arc::new(Spilled(Arc::clone(&parts.host))));
    let access = Arc::new(Access::new(
        conversation.clone(),
        assembled.extensions.clone(),
        Arc::new(Source {
            parts: Arc::clone(&parts),
            models: models.clone(),
            plugins: assembled.plugins.clone(),
            programs: programs.clone(),
        }),
        output.sink(),
        idle_timeout_ms,
    ));
    let surroundings = Surroundings {
        mode: if arguments.mode == Mode::Json { HostMode::Json } else { HostMode::Print },
        command: None,
        person,
        sink: output.sink(),
        session: Some(Arc::<Access>::clone(&access)),
        models: Some(Arc::<Access>::clone(&access)),
        providers: models.clone(),
    };
    tokio::select! {
        started = assembled.start(surroundings) => started?,
        () = stop.token.cancelled() => {
            assembled.end().await;
            return stopped();
        }
    }
    if !is_settled {
        let chosen = conversation.session.with(|session| choose(Some(session)));
        let settled = async {
            let chosen = chosen?;
            let provider = parts.provider(&chosen.model.api, &assembled.plugins).await?;
            anyhow::Ok(Asked { chosen, provider })
        };
        match settled.await {
            Ok(asked) => {
                note(&asked.chosen);
                parts.host.set_process_env(programs.variables(&asked.chosen));
                conversation.set_asked(asked);
            }
            // Commands take no model. Whoever asks one is told what is wrong.
            Err(_) if is_developed => {}
            Err(error) => {
                assembled.end().await;
                return Err(error);
            }
        }
    }
    let reloader = Reloader::new(&assembled, &extensions);
    access.set_reload(Arc::new(reloader.clone()));
    let context =
        if arguments.no_context_files { Vec::new() } else { context_files::find(&parts.directories.atoll_home, &cwd) };
    let agent = Agent {
        pipeline: assembled.pipeline.clone(),
        loadout: Loadout::new(parts.settings.codemode.clone()),
        conversation,
        extensions: assembled.extensions.clone(),
        context,
        cwd: cwd.clone(),
        idle_timeout_ms,
        sink: output.sink(),
        stop: stop.token.clone(),
    };
    let carried_out = async {
        if let Some(selection) = &arguments.tools {
            agent.pipeline.change(|table| table.select(selection))?;
        }
        let messages = said(&assembled, &extensions.unknown, &arguments.messages)?;
        let prompts = match prompts {
            Some(prompts) => prompts,
            None => read(messages).await??,
        };
        if let Some(developed) = &mut developed {
            return carry_out_often(&agent, &prompts, &reloader, &output, &stop, developed).await;
        }
        if prompts.is_empty() {
            return without_prompts(nothing, &arguments);
        }
        begin(&agent).await;
        carry_out(&agent, prompts, &reloader, &output, &stop).await
    };
    let code = carried_out.await;
    assembled.end().await;
    code
}

/// What comes of a command line that says nothing.
fn without_prompts(nothing: bool, arguments: &PromptArguments) -> anyhow::Result<ExitCode> {
    if nothing && !arguments.print {
        anyhow::bail!("the interactive mode is not part of this version; give a prompt: atoll -p \"…\"");
    }
    Ok(ExitCode::SUCCESS)
}

/// Lets the options of extensions count; gives the messages, those among them that stood behind an option that takes
/// nothing.
fn said(assembled: &Assembled, unknown: &[UnknownOption], messages: &[String]) -> anyhow::Result<Vec<String>> {
    let mut all = messages.to_vec();
    for UnknownOption { name, value, detached } in unknown {
        let rest = say(assembled, name, value.clone(), detached.is_some())?;
        if let Some(text) = rest {
            let place = detached.unwrap_or_default().min(all.len());
            all.insert(place, text);
        }
    }
    Ok(all)
}

/// Lets one option count. One that nobody has may be one of the program's, mistyped.
fn say(
    assembled: &Assembled,
    name: &str,
    value: Option<String>,
    is_detached: bool,
) -> Result<Option<String>, UnknownFlag> {
    assembled.flags.say(&assembled.extensions, name, value, is_detached).map_err(|error| match error {
        UnknownFlag::NoSuch { name, mut candidates } => {
            candidates.extend(near_options(&name, &Arguments::command()));
            UnknownFlag::NoSuch { name, candidates }
        }
        error => error,
    })
}

/// Tells extensions of the session's beginning.
async fn begin(agent: &Agent) {
    agent.extensions.session_start("startup").await;
    agent.extensions.discover_resources(&agent.cwd, "startup").await;
}

/// Carries out prompts now, and again with each new version of an extension, until the user wants no more. What goes wrong
/// with them is said, and ends nothing.
async fn carry_out_often(
    agent: &Agent,
    prompts: &[Vec<Content>],
    reloader: &Reloader,
    output: &Output,
    stop: &Stop,
    developed: &mut Developed,
) -> anyhow::Result<ExitCode> {
    begin(agent).await;
    loop {
        for prompt in prompts {
            if let Err(error) = carry_out(agent, vec![prompt.clone()], reloader, output, stop).await {
                terminal::note(format_args!("{error:#}"));
            }
        }
        if agent.conversation.is_ending() {
            return Ok(ExitCode::SUCCESS);
        }
        if stop.token.is_cancelled() || !developed.next(reloader, stop).await {
            return Ok(ExitStatus(stop.code().unwrap_or(FAILED)).into());
        }
    }
}

/// Carries out prompts, each with what extensions make of it and add to it.
async fn carry_out(
    agent: &Agent,
    prompts: Vec<Vec<Content>>,
    reloader: &Reloader,
    output: &Output,
    stop: &Stop,
) -> anyhow::Result<ExitCode> {
    for prompt in prompts {
        // What extensions want to say by themselves comes first: it was there first.
        let code = settle(agent, output, stop).await?;
        if code != 0 || agent.conversation.is_ending() {
            return Ok(ExitStatus(code).into());
        }
        let text = Content::joined_text(&prompt);
        if text.trim().strip_prefix('/') == Some(RELOAD_COMMAND) {
            tokio::select! {
                outcomes = reloader.reload(Which::All) => {
                    agent.loadout.begin_anew();
                    reload::tell(&outcomes);
                }
                () = stop.token.cancelled() => return Ok(ExitStatus(stop.code().unwrap_or(FAILED)).into()),
            }
            continue;
        }
        let ran = tokio::select! {
            ran = agent.extensions.run_command(&text) => ran,
            () = stop.token.cancelled() => return Ok(ExitStatus(stop.code().unwrap_or(FAILED)).into()),
        };
        match ran {
            Some(Ok(())) => continue,
            Some(Err(error)) => return Err(error.into()),
            None => {}
        }
        let InputEffect::Go(prompt) = agent.extensions.input(prompt, "interactive", &stop.token).await else {
            continue;
        };
        let outcome = agent.prompt(prompt).await?;
        let code = output.finish(&outcome, stop);
        if code != 0 {
            return Ok(ExitStatus(code).into());
        }
    }
    let code = settle(agent, output, stop).await?;
    Ok(ExitStatus(code).into())
}

/// Carries out what waits.
async fn settle(agent: &Agent, output: &Output, stop: &Stop) -> anyhow::Result<u8> {
    Ok(agent.settle().await?.map_or(0, |outcome| output.finish(&outcome, stop)))
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
