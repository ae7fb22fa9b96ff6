//! What was loaded, and the life of its extensions: they are started together, and end before the program does.

use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use atoll_agent::{
    Extensions, Pipeline, Teller,
    event::Sink,
    extensions::{Failure, Flags, Report, own_tables::OwnTables, servers::SessionServers},
    models::Models,
    nested_calls::NestedEvent,
};
use atoll_table::{
    Origin, Registered,
    extension::{
        Bus, Extension, HostFacts, Mode, ModelAccess, Providers, Servers, Services, SessionAccess, Tables, Ui,
    },
};

use crate::{
    additions::Additions,
    assemble::Parts,
    awaited,
    dialogs::Dialogs,
    host_facts::{Facts, PluginSettings},
    loaded::Plugins,
    person::Person,
    replaceable::Replaceable,
    terminal,
};

/// The plugins that are loaded. They run for as long as this is there. Clones share them.
#[derive(Clone)]
pub(crate) struct Assembled {
    pub(crate) parts: Arc<Parts>,
    pub(crate) pipeline: Pipeline,
    /// Those that are not built in.
    pub(crate) plugins: Plugins,
    /// Those of them that are extensions, in load order.
    pub(crate) extensions: Extensions,
    pub(crate) flags: Flags,
    /// What the user's settings say to plugins.
    pub(crate) plugin_settings: PluginSettings,
    /// The built-in extensions, which give way.
    pub(crate) replaceable: Replaceable,
    /// What they have added for others.
    pub(crate) additions: Additions,
    pub(crate) told: Told,
}

/// What there is to know beside the plugins that were found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// What the user was told of others.
    pub(crate) notes: Vec<String>,
    /// Built-in extensions that somebody switched on or off, the last word last.
    pub(crate) switched: Vec<(String, bool)>,
}

/// What extensions get beside the tool table.
pub(crate) struct Surroundings {
    pub(crate) mode: Mode,
    /// The command of a plugin's that the program was started for, if it was.
    pub(crate) command: Option<String>,
    pub(crate) person: Option<Arc<Person>>,
    /// Who is shown what they do.
    pub(crate) sink: Sink,
    pub(crate) session: Option<Arc<dyn SessionAccess>>,
    pub(crate) models: Option<Arc<dyn ModelAccess>>,
    /// Where providers are added.
    pub(crate) providers: Models,
}

impl Surroundings {
    /// Of a command without a model.
    pub(crate) fn of_command(person: Option<Arc<Person>>) -> Self {
        Self {
            mode: Mode::Command,
            command: None,
            person,
            sink: Arc::new(|_| {}),
            session: None,
            models: None,
            providers: Models::none(),
        }
    }
}

/// Reports failures of extensions on standard error.
pub(crate) fn report_as_note() -> Report {
    Arc::new(|failure: &Failure| {
        let Failure { extension, event, error } = failure;
        match event {
            Some(event) => terminal::note(format_args!("the extension {extension} failed at {event}: {error}")),
            None => terminal::note(format_args!("the extension {extension}: {error}")),
        }
    })
}

/// Reports failures of extensions as events, once there is somebody who shows them.
#[derive(Clone, Default)]
pub(crate) struct FailureEvents(Arc<OnceLock<Sink>>);

impl FailureEvents {
    pub(crate) fn show(&self, sink: Sink) {
        let _ = self.0.set(sink);
    }

    pub(crate) fn report(&self) -> Report {
        let to = Arc::clone(&self.0);
        let note = report_as_note();
        Arc::new(move |failure: &Failure| match to.get() {
            Some(sink) => sink(&atoll_agent::Event::ExtensionError {
                extension_path: failure.extension.clone(),
                event: failure.event.map_or("extension", |event| event.as_str()).replace('-', "_"),
                error: failure.error.clone(),
            }),
            None => note(failure),
        })
    }
}

impl Assembled {
    /// Starts the extensions, and lets the user's choice of tools count, those of extensions among them. One that can not
    /// be started is reported and left out.
    ///
    /// # Errors
    /// If one that the user named for this run can not be started, or the choice of tools is none.
    pub(crate) async fn start(&self, surroundings: Surroundings) -> anyhow::Result<()> {
        let is_call = surroundings.mode == Mode::Command && surroundings.command.is_none();
        let mut result = self.start_extensions(surroundings).await;
        if result.is_ok() {
            self.settle_builtins(&self.told.switched, false).await;
            if is_call {
                let settings = &self.parts.settings;
                for selection in [&settings.default_tools, &settings.tool_changes].into_iter().flatten() {
                    awaited::selected(&self.pipeline, selection).await;
                }
            }
            result = self.select();
        }
        if result.is_err() {
            self.extensions.end("quit").await;
        }
        result
    }

    async fn start_extensions(&self, surroundings: Surroundings) -> anyhow::Result<()> {
        let Surroundings { mode, command, person, sink, session, models, providers } = surroundings;
        self.plugin_settings.set(self.parts.settings.plugin_settings.clone());
        let teller = Teller { sink, extensions: self.extensions.clone() };
        let tables =
            OwnTables::new(self.pipeline.clone(), Arc::new(move |event: NestedEvent| teller.tell(&event.into())));
        let facts = Facts {
            mode,
            command,
            has_person: person.is_some(),
            cwd: self.parts.directories.cwd.clone(),
            trusted: self.parts.project.trusted,
            extensions: self.extensions.clone(),
            flags: self.flags.clone(),
            settings: self.plugin_settings.clone(),
        };
        let servers = Arc::new(SessionServers::new(self.extensions.clone()));
        self.additions.are_in(providers.clone(), Arc::clone(&servers));
        let dialogs = Dialogs::new(person, self.extensions.clone(), mode != Mode::Json);
        self.parts.host.set_services(Services {
            tables: Some(Arc::new(tables) as Arc<dyn Tables>),
            session,
            models,
            ui: Some(Arc::new(dialogs) as Arc<dyn Ui>),
            bus: Some(Arc::new(self.extensions.clone()) as Arc<dyn Bus>),
            facts: Some(Arc::new(facts) as Arc<dyn HostFacts>),
            providers: Some(Arc::new(providers) as Arc<dyn Providers>),
            servers: Some(servers as Arc<dyn Servers>),
        });
        // Those that come to a session without any find the same.
        let all = self.extensions.all();
        // These hear of what others do from the first moment on, and are started when it is known who these are.
        let living = self.replaceable.living();
        self.extensions.set(all.iter().cloned().chain(living).collect());
        if all.is_empty() {
            return Ok(());
        }
        let mark = self.pipeline.table(|table| table.mark());
        let failed = self.extensions.start().await;
        self.pipeline.change(|table| {
            table.arrange(&mark, |entry| {
                let place = |extension: &Arc<dyn Extension>| {
                    extension.name() == entry.plugin && extension.origin() == entry.origin
                };
                all.iter().position(place).unwrap_or(all.len())
            });
        });
        self.pipeline.set_hooks(self.extensions.hooks());
        for (name, error) in failed {
            if let Some(extension) = all.iter().find(|extension| extension.name() == name) {
                self.withdraw(&name, extension.origin());
            }
            if self.plugins.is_named(&name) {
                return Err(error).with_context(|| format!("the extension {name} can not be started"));
            }
            self.plugins.remove(&name);
            terminal::note(format_args!("the extension {name} is left out: it can not be started: {error}"));
        }
        Ok(())
    }

    /// Has the built-in extensions there that are wanted and not replaced. To be called after others came or went.
    /// With `anew`, those that live begin anew.
    pub(crate) async fn settle_builtins(&self, switched: &[(String, bool)], anew: bool) {
        self.replaceable.settle(switched, &self.plugins, &self.extensions, &self.pipeline, anew).await;
    }

    /// Takes away the tools of a plugin that is not there any more, and what it added for others.
    pub(crate) fn withdraw(&self, name: &str, origin: Origin) {
        self.additions.forget(name, origin);
        self.pipeline.change(|table| {
            let own = |entry: &&Arc<Registered>| entry.plugin == name && entry.origin == origin;
            let tools: Vec<String> = table.tools().iter().filter(own).map(|entry| entry.local.clone()).collect();
            // They are its own, so they can be withdrawn.
            let _ = table.unregister(name, origin, &tools);
            table.expect_nothing_of(name, origin);
        });
    }

    /// Lets the selections of the settings count.
    fn select(&self) -> anyhow::Result<()> {
        let settings = &self.parts.settings;
        if let Some(selection) = &settings.default_tools {
            self.pipeline.change(|table| table.select(selection)).context("defaultTools in settings.json")?;
        }
        // A project's tools may be of a plugin that is not granted anything yet; that must not stop everything else.
        if let Some(changes) = &settings.tool_changes
            && let Err(error) = self.pipeline.change(|table| table.select(changes))
        {
            terminal::note(format_args!("defaultTools in .atoll/settings.json is left out: {error}"));
        }
        Ok(())
    }

    /// Ends the extensions, within 5 seconds.
    pub(crate) async fn end(&self) {
        self.extensions.end("quit").await;
    }
}
