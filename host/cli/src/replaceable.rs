//! Built-in extensions that give way: to the user's settings and options, and to a plugin that has a tool, a command or an
//! option of theirs.
//!
//! A project's plugin replaces nothing, here as elsewhere.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use atoll_agent::{
    Extensions, Pipeline,
    extensions::{Displaced, Names, displaced},
};
use atoll_engine::LoadedPlugin;
use atoll_table::{Error, Origin, Registration, Table, names::near_matches};

use crate::{
    arguments::ExtensionArguments,
    builtins,
    extension_files::BUILTIN,
    loaded::{Loaded, Plugins, register},
    terminal,
};

/// What loads tools that are not declared. It is declared itself where there are any.
const FINDER: &str = "tool_search";
/// Built-in extensions of versions to come. Saying that they are not wanted is no mistake.
const TO_COME: [&str; 1] = ["mcp"];

/// The built-in extensions that give way. Clones share them.
#[derive(Clone)]
pub(crate) struct Replaceable(Arc<Inner>);

struct Inner {
    all: Vec<LoadedPlugin>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Those that are in the table.
    there: BTreeSet<String>,
    /// What the user was told, so that it is said once.
    told: Vec<String>,
}

impl Replaceable {
    /// These, none of them in the table.
    pub(crate) fn new(all: Vec<LoadedPlugin>) -> Self {
        Self(Arc::new(Inner { all, state: Mutex::default() }))
    }

    /// Puts those into the table that the user wants, before anybody else's tools.
    ///
    /// # Errors
    /// As [`Table::register`].
    pub(crate) fn begin(&self, switched: &[(String, bool)], table: &mut Table) -> Result<(), Error> {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        for plugin in self.0.all.iter().filter(|plugin| is_wanted(switched, &plugin.name)) {
            register(table, Registration::builtin(&plugin.name), plugin)?;
            state.there.insert(plugin.name.clone());
        }
        Ok(())
    }

    /// Has those in the table that the user wants and nobody else stands for, and no others. `switched` is what was said of
    /// them, the last word last. What is new to the user is told.
    pub(crate) fn settle(
        &self,
        switched: &[(String, bool)],
        plugins: &Plugins,
        extensions: &Extensions,
        pipeline: &Pipeline,
    ) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut told = std::mem::take(&mut state.told);
        let mut tell = |text: String| {
            if !told.contains(&text) {
                terminal::note(&text);
                told.push(text);
            }
        };
        for name in unknown(switched) {
            tell(not_replaceable(&name));
        }
        let wanted: Vec<&LoadedPlugin> = self.0.all.iter().filter(|plugin| is_wanted(switched, &plugin.name)).collect();
        let claims: Vec<Names> = wanted.iter().map(|plugin| claims(plugin)).collect();
        let others: Vec<Names> =
            plugins.in_load_order().iter().filter_map(|loaded| names(loaded, extensions, pipeline)).collect();
        let displaced = displaced(&claims, &others);
        for one in &displaced {
            tell(Displaced::to_string(one));
        }
        let is_displaced = |name: &str| displaced.iter().any(|one| one.builtin == name);
        let there = wanted.iter().filter(|plugin| !is_displaced(&plugin.name));
        let there: BTreeSet<String> = there.map(|plugin| plugin.name.clone()).collect();
        for plugin in &self.0.all {
            let changed = match (state.there.contains(&plugin.name), there.contains(&plugin.name)) {
                (false, true) => pipeline.change(|table| register(table, Registration::builtin(&plugin.name), plugin)),
                (true, false) => pipeline.change(|table| withdraw(table, plugin)),
                (true, true) | (false, false) => Ok(()),
            };
            if let Err(error) = changed {
                tell(format!("the built-in {} is left out: {error}", plugin.name));
            }
        }
        *state = State { there, told };
        drop(state);
        pipeline.change(declare_finder);
    }
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
fn claims(plugin: &LoadedPlugin) -> Names {
    let claims = plugin.manifest.replaceable.clone().unwrap_or_default();
    let set = |names: Vec<String>| names.into_iter().collect();
    Names {
        plugin: plugin.name.clone(),
        tools: set(claims.tools),
        commands: set(claims.commands),
        flags: set(claims.flags),
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
    })
}

/// The names among these that no built-in extension has or will have.
fn unknown(switched: &[(String, bool)]) -> Vec<String> {
    let is_known = |name: &String, on: bool| {
        builtins::REPLACEABLE.contains(&name.as_str()) || (!on && TO_COME.contains(&name.as_str()))
    };
    switched.iter().filter(|(name, on)| !is_known(name, *on)).map(|(name, _)| name.clone()).collect()
}

/// That there is no such built-in extension.
fn not_replaceable(name: &str) -> String {
    let shown = atoll_caps::printable(name);
    if TO_COME.contains(&name) {
        return format!("builtin:{shown} is not part of this version");
    }
    if builtins::by_name(name).is_some() {
        return format!(
            "builtin:{shown} can not be switched on and off like an extension; use --tools or defaultTools for its tools"
        );
    }
    let near = near_matches(name, builtins::REPLACEABLE.iter().copied());
    let known = if near.is_empty() { builtins::REPLACEABLE.join(", ") } else { near.join(", ") };
    format!("builtin:{shown}: there is no built-in extension of that name; there is {known}")
}

/// Refuses a name of `-e` that no built-in extension has.
///
/// # Errors
/// `not-found`.
pub(crate) fn check_named(wanted: &ExtensionArguments) -> Result<(), Error> {
    let names = wanted.named.iter().filter_map(|file| file.to_str()?.strip_prefix(BUILTIN));
    let wrong = names.into_iter().find(|name| !builtins::REPLACEABLE.contains(name));
    wrong.map_or(Ok(()), |name| Err(Error::NotFound(format!("-e {}", not_replaceable(name)))))
}
