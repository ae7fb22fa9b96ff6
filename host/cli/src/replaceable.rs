//! Built-in extensions that give way: to the user's settings and options, and to a plugin that has a tool, a command or an
//! option of theirs.
//!
//! A project's plugin replaces nothing, here as elsewhere.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use atoll_agent::{
    Extensions, Pipeline,
    extensions::{Displaced, Names, displaced},
};
use atoll_caps::Claims;
use atoll_engine::LoadedPlugin;
use atoll_table::{
    Error, Origin, Registration, Table,
    extension::{EventKind, Extension},
    names::near_matches,
};

use crate::{
    arguments::ExtensionArguments,
    builtins,
    dormant::{Dormant, Setup},
    extension_files::BUILTIN,
    loaded::{Loaded, Plugins, register},
    terminal,
};

/// What loads tools that are not declared. It is declared itself where there are any.
const FINDER: &str = "tool_search";

/// The built-in extensions that give way. Clones share them.
#[derive(Clone)]
pub(crate) struct Replaceable(Arc<Inner>);

struct Inner {
    /// Those that bring tools, and are no more than those.
    all: Vec<LoadedPlugin>,
    /// What makes those that live.
    living: Box<dyn Fn() -> Vec<Setup> + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Those that are in the table.
    there: BTreeSet<String>,
    /// Those that live, as long as they are there.
    living: Vec<Dormant>,
    /// What the user was told, so that it is said once.
    told: Vec<String>,
}

impl Replaceable {
    /// These, none of them in the table; and what makes those that live.
    pub(crate) fn new(all: Vec<LoadedPlugin>, living: impl Fn() -> Vec<Setup> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { all, living: Box::new(living), state: Mutex::default() }))
    }

    /// These without those that live. To be called before anything is in the table.
    pub(crate) fn tools_alone(self) -> Self {
        match Arc::into_inner(self.0) {
            Some(Inner { all, .. }) => Self::new(all, Vec::new),
            None => Self::new(Vec::new(), Vec::new),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts those into the table that the user wants, before anybody else's tools.
    ///
    /// # Errors
    /// As [`Table::register`].
    pub(crate) fn begin(&self, switched: &[(String, bool)], table: &mut Table) -> Result<(), Error> {
        let mut state = self.state();
        for plugin in self.0.all.iter().filter(|plugin| is_wanted(switched, &plugin.name)) {
            register(table, Registration::builtin(&plugin.name), plugin)?;
            state.there.insert(plugin.name.clone());
        }
        state.living = self.made(switched, &[]);
        for dormant in &state.living {
            dormant.prepare();
        }
        Ok(())
    }

    /// Those that live and that the user wants: these, and new ones.
    fn made(&self, switched: &[(String, bool)], known: &[Dormant]) -> Vec<Dormant> {
        let wanted = (self.0.living)().into_iter().filter(|setup| is_wanted(switched, setup.builtin.name));
        let known = |name: &str| known.iter().find(|dormant| dormant.name() == name).cloned();
        wanted.map(|setup| known(setup.builtin.name).unwrap_or_else(|| Dormant::new(setup))).collect()
    }

    /// Those that live, behind all others. They are started by [`Self::settle`].
    pub(crate) fn living(&self) -> Vec<Arc<dyn Extension>> {
        self.state().living.iter().map(|dormant| Arc::new(dormant.clone()) as Arc<dyn Extension>).collect()
    }

    /// Has those there that the user wants and nobody else stands for, and no others. `switched` is what was said of
    /// them, the last word last. What is new to the user is told. With `anew`, those that live begin anew.
    pub(crate) async fn settle(
        &self,
        switched: &[(String, bool)],
        plugins: &Plugins,
        extensions: &Extensions,
        pipeline: &Pipeline,
        anew: bool,
    ) {
        let mut told = std::mem::take(&mut self.state().told);
        let mut tell = |text: String| {
            if !told.contains(&text) {
                terminal::note(&text);
                told.push(text);
            }
        };
        for name in unknown(switched) {
            tell(not_replaceable(&name));
        }
        let before = self.state().living.clone();
        let living = self.made(switched, &before);
        let wanted = self.0.all.iter().filter(|plugin| is_wanted(switched, &plugin.name));
        let claims = wanted.map(|plugin| (plugin.name.as_str(), plugin.manifest.replaceable.clone()));
        let claims = claims.chain(living.iter().map(|dormant| (dormant.name(), Some(dormant.claims()))));
        let claims: Vec<Names> = claims.map(|(name, claims)| given_up(name, claims.unwrap_or_default())).collect();
        let others: Vec<Names> =
            plugins.in_load_order().iter().filter_map(|loaded| names(loaded, extensions, pipeline)).collect();
        let displaced = displaced(&claims, &others);
        for one in &displaced {
            tell(Displaced::to_string(one));
        }
        let is_displaced = |name: &str| displaced.iter().any(|one| one.builtin == name);
        let there: BTreeSet<String> =
            claims.iter().map(|one| one.plugin.clone()).filter(|name| !is_displaced(name)).collect();
        for plugin in &self.0.all {
            let was_there = self.state().there.contains(&plugin.name);
            let changed = match (was_there, there.contains(&plugin.name)) {
                (false, true) => pipeline.change(|table| register(table, Registration::builtin(&plugin.name), plugin)),
                (true, false) => pipeline.change(|table| withdraw(table, plugin)),
                (true, true) | (false, false) => Ok(()),
            };
            if let Err(error) = changed {
                tell(format!("the built-in {} is left out: {error}", plugin.name));
            }
        }
        let living: Vec<Dormant> = living.into_iter().filter(|dormant| there.contains(dormant.name())).collect();
        let gone = before.into_iter().filter(|old| !living.iter().any(|dormant| dormant.name() == old.name()));
        let gone: Vec<Dormant> = gone.collect();
        self.state().living.clone_from(&living);
        // From here on nobody calls what is gone.
        let stays =
            extensions.all().iter().filter(|known| known.origin() != Origin::Builtin).cloned().collect::<Vec<_>>();
        extensions.set(stays.into_iter().chain(self.living()).collect());
        pipeline.set_hooks(extensions.hooks());
        for dormant in gone {
            end(&dormant, extensions, pipeline).await;
        }
        for dormant in &living {
            let settled = if anew { dormant.renew().await } else { dormant.settle().await };
            if let Err(error) = settled {
                tell(format!("the built-in {} does not do what it is for: {error}", dormant.name()));
            }
        }
        // What they want is known now.
        extensions.refresh();
        {
            let mut state = self.state();
            state.there = there;
            state.told = told;
        }
        pipeline.change(declare_finder);
    }
}

/// Ends one that lives, and takes away what it has in the table.
async fn end(dormant: &Dormant, extensions: &Extensions, pipeline: &Pipeline) {
    let extension: Arc<dyn Extension> = Arc::new(dormant.clone());
    extensions.tell_one(&extension, EventKind::SessionShutdown).await;
    let name = dormant.name();
    pipeline.change(|table| {
        let own = table.tools().iter().filter(|entry| entry.plugin == name && entry.origin == Origin::Builtin);
        let tools: Vec<String> = own.map(|entry| entry.local.clone()).collect();
        // They are its own, so they can be withdrawn.
        let _ = table.unregister(name, Origin::Builtin, &tools);
        table.expect_nothing_of(name, Origin::Builtin);
    });
    extension.stop().await;
}

/// Whether the last word on it is not that it is to be left out.
fn is_wanted(switched: &[(String, bool)], name: &str) -> bool {
    switched.iter().rfind(|(known, _)| known == name).is_none_or(|(_, on)| *on)
}

/// Has the model told of the tool that finds tools, where there is anything to find. What the user switched off stays off.
fn declare_finder(table: &mut Table) {
    let is_to_be_found = |name: &str, is_searched: bool| is_searched && !table.is_active(name);
    let waits = table.tools().iter().any(|entry| is_to_be_found(&entry.tool.name, entry.tool.exposure.is_searched()));
    let is_ours = table.tools().iter().any(|entry| entry.tool.name == FINDER && entry.origin == Origin::Builtin);
    if waits && is_ours {
        let _ = table.activate(&[FINDER.to_owned()], true);
    }
}

fn withdraw(table: &mut Table, plugin: &LoadedPlugin) -> Result<(), Error> {
    let tools = plugin.tools.as_ref().map(|(tools, _)| tools.as_slice()).unwrap_or_default();
    let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
    table.unregister(&plugin.name, Origin::Builtin, &names)
}

/// What a built-in one gives up to others.
fn given_up(plugin: &str, claims: Claims) -> Names {
    let set = |names: Vec<String>| names.into_iter().collect();
    Names {
        plugin: plugin.to_owned(),
        tools: set(claims.tools),
        commands: set(claims.commands),
        flags: set(claims.flags),
        events: set(claims.events),
    }
}

/// What a plugin of the user's has; none of a project's.
fn names(loaded: &Loaded, extensions: &Extensions, pipeline: &Pipeline) -> Option<Names> {
    if loaded.origin != Origin::User {
        return None;
    }
    let plugin = &loaded.plugin.name;
    let is_there = loaded.plugin.extension.is_none()
        || extensions.all().iter().any(|known| known.name() == plugin && known.origin() == loaded.origin);
    let subscription = loaded.plugin.extension.as_ref().map(|extension| extension.subscription());
    let wanted = subscription.unwrap_or_default();
    let tools = pipeline.table(|table| {
        let own = table.tools().iter().filter(|entry| {
            entry.plugin == *plugin
                && entry.origin == loaded.origin
                && entry.tool.exposure != atoll_table::tool::Exposure::Hidden
        });
        own.map(|entry| entry.local.clone()).collect()
    });
    is_there.then(|| Names {
        plugin: plugin.clone(),
        tools,
        commands: wanted.commands.iter().map(|command| command.name.clone()).collect(),
        flags: wanted.flags.iter().map(|flag| flag.name.clone()).collect(),
        events: wanted.events.iter().map(|kind| kind.as_str().to_owned()).collect(),
    })
}

/// The names among these that no built-in extension has.
fn unknown(switched: &[(String, bool)]) -> Vec<String> {
    let names = switched.iter().map(|(name, _)| name);
    names.filter(|name| !builtins::REPLACEABLE.contains(&name.as_str())).cloned().collect()
}

/// That there is no such built-in extension.
fn not_replaceable(name: &str) -> String {
    let shown = atoll_caps::printable(name);
    if builtins::by_name(name).is_some() {
        return format!(
            "builtin:{shown} can not be switched on and off like an extension; use --tools or defaultTools for its tools"
        );
    }
    let near = near_matches(name, builtins::REPLACEABLE.iter().copied());
    let known = if near.is_empty() { builtins::REPLACEABLE.join(", ") } else { near.join(", ") };
    format!("builtin:{shown}: there is no built-in extension of that name; there is {known}")
}

/// What `-e` says of a built-in extension, if it names one: its name, and whether it is to be there.
pub(crate) fn builtin_named(text: &str) -> Option<(&str, bool)> {
    let off = text.strip_prefix('-').and_then(|text| text.strip_prefix(BUILTIN));
    off.map(|name| (name, false)).or_else(|| Some((text.strip_prefix(BUILTIN)?, true)))
}

/// Refuses a name of `-e` that no built-in extension has.
///
/// # Errors
/// `not-found`.
pub(crate) fn check_named(wanted: &ExtensionArguments) -> Result<(), Error> {
    let names = wanted.named.iter().filter_map(|file| Some(builtin_named(file.to_str()?)?.0));
    let wrong = names.into_iter().find(|name| !builtins::REPLACEABLE.contains(name));
    wrong.map_or(Ok(()), |name| Err(Error::NotFound(format!("-e {}", not_replaceable(name)))))
}
