//! Loading extensions anew in the middle of a session: new versions take over from those that run, new files come to them,
//! and those whose files are gone end. What is under way ends on the old ones.
//!
//! What can not be loaded must never cost what runs: it goes on, and the user is told why.

use std::{fmt, path::PathBuf, sync::Arc};

use atoll_agent::extensions::Reload;
use atoll_table::{Error, extension::EventKind};
use futures::future::BoxFuture;
use tokio::sync::Mutex;

use crate::{
    arguments::ExtensionArguments,
    assembled::Assembled,
    candidates::{Candidate, Candidates, Wanted, named_failure},
    extension_files::Unsure,
    loaded::Loaded,
    settings_of::Said,
    terminal,
};

/// What is loaded anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Everything.
    All,
    /// What is another version than the one that runs.
    Changed,
}

/// What became of a plugin.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The plugin.
    pub(crate) name: String,
    /// What became of it.
    pub(crate) change: Change,
}

/// What becomes of a plugin.
#[derive(Debug)]
pub(crate) enum Change {
    /// A new instance, perhaps of another version, has taken over.
    Replaced,
    /// It has come to those that run.
    Added,
    /// It is not there any more, and ends.
    Ended,
    /// It goes on as it was.
    Kept(anyhow::Error),
    /// It did not run, and can not be loaded.
    LeftOut(anyhow::Error),
}

impl Outcome {
    /// Whether it is not as it should be.
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self.change, Change::Kept(_) | Change::LeftOut(_))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, change } = self;
        match change {
            Change::Replaced => write!(f, "the plugin {name} is loaded anew"),
            Change::Added => write!(f, "the plugin {name} is new"),
            Change::Ended => write!(f, "the plugin {name} has ended: its file is gone or switched off"),
            Change::Kept(reason) => write!(f, "the plugin {name} goes on as it was: {reason:#}"),
            Change::LeftOut(reason) => write!(f, "the plugin {name} is left out: {reason:#}"),
        }
    }
}

/// Loads extensions anew. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Reloader(Arc<Inner>);

struct Inner {
    assembled: Assembled,
    wanted: ExtensionArguments,
    /// Held while it is being done. Inside: the notes that were shown, so that none is shown again and again.
    turn: Mutex<Vec<String>>,
}

impl Reloader {
    /// For what was loaded with these options. To be made once extensions have started.
    pub(crate) fn new(assembled: &Assembled, wanted: &ExtensionArguments) -> Self {
        let notes = assembled.told.notes.clone();
        Self(Arc::new(Inner { assembled: assembled.clone(), wanted: wanted.clone(), turn: Mutex::new(notes) }))
    }

    /// Looks at settings, grants and files as they are now, and loads what is to be loaded anew. Waits while another does
    /// the same. Once begun it is done, even if nobody waits for it any more.
    pub(crate) async fn reload(&self, which: Which) -> Vec<Outcome> {
        let this = self.clone();
        let done = tokio::spawn(async move {
            let mut turn = this.0.turn.lock().await;
            this.0.reload(which, &mut turn).await
        });
        done.await.unwrap_or_else(|error| vec![kept("settings.json", error)])
    }
}

impl Reload for Reloader {
    fn reload(self: Arc<Self>) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            // An extension that asks for it while it is being loaded anew would wait for itself.
            if self.0.turn.try_lock().is_err() {
                return Err(Error::Unavailable("the extensions are being loaded anew already".to_owned()));
            }
            let outcomes = Reloader::reload(&self, Which::All).await;
            let failed: Vec<String> =
                outcomes.iter().filter(|outcome| outcome.is_failure()).map(Outcome::to_string).collect();
            if failed.is_empty() { Ok(()) } else { Err(Error::Failed(failed.join("; "))) }
        })
    }
}

/// Tells the user what came of it.
pub(crate) fn tell(outcomes: &[Outcome]) {
    let names = |is_it: fn(&Change) -> bool| -> Vec<&str> {
        outcomes.iter().filter(|outcome| is_it(&outcome.change)).map(|outcome| outcome.name.as_str()).collect()
    };
    let groups = [
        ("loaded anew", names(|change| matches!(change, Change::Replaced))),
        ("new", names(|change| matches!(change, Change::Added))),
        ("ended", names(|change| matches!(change, Change::Ended))),
    ];
    let said: Vec<String> = groups
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what}: {}", names.join(", ")))
        .collect();
    if !said.is_empty() {
        terminal::note(said.join("; "));
    } else if outcomes.is_empty() {
        terminal::note("there are no extensions to load anew");
    }
    for outcome in outcomes.iter().filter(|outcome| outcome.is_failure()) {
        terminal::note(outcome);
    }
}

fn kept(name: &str, error: impl Into<anyhow::Error>) -> Outcome {
    Outcome { name: name.to_owned(), change: Change::Kept(error.into()) }
}

/// What runs, with what is to become of it.
struct Pairs {
    /// Candidates, with what runs and is to give way to each. It is several if one that the user named can not be read: all
    /// that came from there.
    pairs: Vec<(Vec<Arc<Loaded>>, Candidate)>,
    /// What runs and can not be known to be gone, with the reason.
    held: Vec<(Arc<Loaded>, String)>,
    /// What runs and is gone.
    gone: Vec<Arc<Loaded>>,
}

impl Pairs {
    fn of(before: &[Arc<Loaded>], all: Vec<Candidate>, unsure: &[Unsure]) -> Self {
        let (found, missed): (Vec<_>, Vec<_>) =
            before.iter().cloned().partition(|loaded| all.iter().any(|candidate| loaded.is_of(candidate)));
        let (mut held, mut missing) = (Vec::new(), Vec::new());
        for loaded in missed {
            match why_unsure(&loaded, unsure) {
                Some(reason) => held.push((loaded, reason)),
                None => missing.push(loaded),
            }
        }
        let mut pairs = Vec::new();
        for candidate in all {
            // What can not be looked at has this name.
            if held.iter().any(|(loaded, _)| loaded.is_twin(&candidate)) {
                continue;
            }
            let mut old: Vec<_> = found.iter().filter(|loaded| loaded.is_of(&candidate)).take(1).cloned().collect();
            if old.is_empty() {
                let is_unread = candidate.is_named && candidate.plugin.is_err();
                let gives_way = |loaded: &mut Arc<Loaded>| match is_unread {
                    true => loaded.is_named && loaded.place == candidate.place,
                    false => loaded.is_twin(&candidate),
                };
                old.extend(missing.extract_if(.., gives_way));
            }
            pairs.push((old, candidate));
        }
        Self { pairs, held, gone: missing }
    }
}

impl Unsure {
    /// Whether a plugin was loaded from there.
    fn is_about(&self, loaded: &Loaded) -> bool {
        loaded.file().starts_with(&self.below)
    }
}

/// Why it can not be known whether the file of a plugin is still meant to be loaded, if so.
fn why_unsure(loaded: &Loaded, unsure: &[Unsure]) -> Option<String> {
    let file = loaded.file();
    let known = unsure.iter().find(|unsure| unsure.is_about(loaded));
    let known = known.map(|Unsure { file, reason, .. }| format!("{}: {reason}", file.display()));
    let unseen =
        || file.try_exists().err().map(|error| format!("{}: it can not be looked at: {error}", file.display()));
    known.or_else(unseen)
}

/// Puts one that goes on behind what it was behind before.
fn put_back(loaded: Arc<Loaded>, before: &[Arc<Loaded>], after: &mut Vec<Arc<Loaded>>) {
    let is_same = |one: &Loaded, other: &Loaded| one.plugin.name == other.plugin.name && one.origin == other.origin;
    let earlier: Vec<_> = before.iter().take_while(|other| !Arc::ptr_eq(other, &loaded)).collect();
    let behind = |earlier: &&Arc<Loaded>| after.iter().position(|other| is_same(other, earlier));
    let at = earlier.iter().rev().find_map(behind).map_or(0, |behind| behind + 1);
    after.insert(at, loaded);
}

impl Inner {
    async fn reload(&self, which: Which, shown: &mut Vec<String>) -> Vec<Outcome> {
        let Assembled { parts, plugins, extensions, pipeline, .. } = &self.assembled;
        let settings = match Said::read(&parts.directories, &parts.project) {
            Ok(said) => said.settings,
            Err(error) => return plugins.all().iter().map(|loaded| kept(&loaded.plugin.name, error.clone())).collect(),
        };
        let grants = parts.read_grants();
        let candidates = parts.candidates(&self.wanted, &settings, &grants).await;
        let before = plugins.all();
        if let Some(reason) = candidates.unread {
            let kept = |loaded: &Arc<Loaded>| kept(&loaded.plugin.name, anyhow::anyhow!("{reason}"));
            return before.iter().map(kept).collect();
        }
        let Candidates { all, builtins, notes, unsure, .. } = candidates;
        self.assembled.plugin_settings.set(settings.plugin_settings.clone());
        parts.host.set_user_limits(settings.limits.clone());
        let Pairs { pairs, held, gone } = Pairs::of(&before, all, &unsure);
        // Of what goes on it is said that it does.
        let is_told =
            |unsure: &&Unsure| self.wanted.no_extensions || held.iter().any(|(loaded, _)| unsure.is_about(loaded));
        let left_out = unsure.iter().filter(|unsure| !is_told(unsure)).map(Unsure::note);
        for note in notes.into_iter().chain(left_out) {
            if !shown.contains(&note) {
                terminal::note(&note);
                shown.push(note);
            }
        }
        let mut after: Vec<Arc<Loaded>> = Vec::new();
        let mut outcomes = Vec::new();
        for (mut old, candidate) in pairs {
            // One that can not be read does not say its name.
            let name = old.first().map_or_else(|| candidate.name.to_string(), |old| old.plugin.name.clone());
            let (loaded, change) = match (old.pop(), candidate) {
                (Some(old), Candidate { plugin: Ok(wanted), file, .. }) => {
                    if which == Which::Changed && old.is_version(wanted.pin()) {
                        old.moves(file);
                        after.push(old);
                        continue;
                    }
                    self.replace(old, wanted, file).await
                }
                (Some(last), Candidate { plugin: Err(error), .. }) => {
                    for other in old {
                        outcomes.push(kept(&other.plugin.name, anyhow::anyhow!("{error:#}")));
                        after.push(other);
                    }
                    outcomes.push(kept(&last.plugin.name, error));
                    after.push(last);
                    continue;
                }
                // What the user named goes on under this name.
                (None, candidate) if !candidate.is_named && after.iter().any(|named| named.hides(&candidate)) => {
                    continue;
                }
                (None, candidate) => match self.load(candidate).await {
                    Ok(Some(loaded)) => (Some(loaded), Change::Added),
                    Ok(None) => continue,
                    Err(error) => (None, Change::LeftOut(error)),
                },
            };
            after.extend(loaded);
            outcomes.push(Outcome { name, change });
        }
        for (loaded, reason) in held {
            outcomes.push(kept(&loaded.plugin.name, anyhow::anyhow!("{reason}")));
            put_back(loaded, &before, &mut after);
        }
        // One that takes a name over from a file that is gone has its tools and its commands.
        plugins.set(after);
        for loaded in &gone {
            outcomes.push(Outcome { name: loaded.plugin.name.clone(), change: Change::Ended });
        }
        let ending = gone.iter().filter_map(|loaded| loaded.plugin.extension.as_ref());
        for extension in ending {
            extensions.tell_one(extension, EventKind::SessionShutdown).await;
        }
        self.arrange();
        for loaded in gone {
            self.withdraw(&loaded);
            tokio::spawn(async move {
                if let Some(live) = &loaded.plugin.live {
                    live.retire().await;
                }
            });
        }
        pipeline.set_hooks(extensions.hooks());
        self.assembled.settle_builtins(&builtins, which == Which::All).await;
        self.assembled.additions.settle(parts, &self.assembled.plugins).await;
        extensions.discover_resources(&parts.directories.cwd, "reload").await;
        outcomes
    }

    /// Puts the extensions that run into load order.
    fn arrange(&self) {
        let in_order = self.assembled.plugins.in_load_order();
        let running = in_order.iter().filter_map(|loaded| loaded.plugin.extension.clone());
        self.assembled.extensions.set(running.chain(self.assembled.replaceable.living()).collect());
    }

    /// Lets another version take over. Gives what is there then.
    async fn replace(&self, old: Arc<Loaded>, wanted: Wanted, file: PathBuf) -> (Option<Arc<Loaded>>, Change) {
        let parts = &self.assembled.parts;
        let pin = wanted.pin().clone();
        let replaces = wanted.replaces.clone();
        let (Some(live), Some(extension)) = (&old.plugin.live, &old.plugin.extension) else {
            return match self.exchange(&old, wanted, file).await {
                Ok(new) => (Some(new), Change::Replaced),
                Err(error) => (Some(old), Change::Kept(error)),
            };
        };
        let failed = |error: Error| match old.is_named {
            true => named_failure(&old.file(), error),
            false => error.into(),
        };
        let replacement = match wanted.load_replacement(Arc::clone(&parts.host)).await {
            Ok(replacement) => replacement,
            Err(error) => {
                let change = Change::Kept(failed(error));
                return (Some(old), change);
            }
        };
        let Assembled { extensions, additions, .. } = &self.assembled;
        extensions.tell_one(extension, EventKind::SessionShutdown).await;
        let before = additions.before(&old.plugin.name, old.origin);
        let replaced = live.replace(replacement).await;
        additions.after(before, replaced.is_ok());
        // Whoever is there now begins: the new one, or the old one that goes on.
        extensions.refresh();
        extensions.tell_one(extension, EventKind::SessionStart).await;
        match replaced {
            Ok(_) => {
                old.becomes(file, pin, replaces);
                (Some(old), Change::Replaced)
            }
            Err(error) => {
                let change = Change::Kept(failed(error));
                (Some(old), change)
            }
        }
    }

    /// Another version of a plugin that lives no longer than its calls. Those under way end on what they began with.
    async fn exchange(&self, old: &Arc<Loaded>, wanted: Wanted, file: PathBuf) -> anyhow::Result<Arc<Loaded>> {
        let (replaces, pin) = (wanted.replaces.clone(), wanted.pin().clone());
        let plugin = wanted.load(Arc::clone(&self.assembled.parts.host)).await?;
        if plugin.extension.is_some() {
            anyhow::bail!("it has become an extension; start atoll again to have it");
        }
        let Loaded { origin, is_named, ref place, .. } = **old;
        let new = Loaded::new((origin, is_named, place.clone(), file), pin, replaces, plugin);
        self.assembled.pipeline.change(|table| new.register(table))?;
        let names = |loaded: &Loaded| -> Vec<String> {
            let tools = loaded.plugin.tools.as_ref().map(|(tools, _)| tools.as_slice()).unwrap_or_default();
            tools.iter().map(|tool| tool.name.clone()).collect()
        };
        let kept = names(&new);
        let gone: Vec<String> = names(old).into_iter().filter(|name| !kept.contains(name)).collect();
        self.assembled.pipeline.change(|table| table.unregister(&new.plugin.name, origin, &gone))?;
        Ok(Arc::new(new))
    }

    /// Loads one that did not run, and starts it. None if it is one that the user wants left out.
    async fn load(&self, candidate: Candidate) -> anyhow::Result<Option<Arc<Loaded>>> {
        let Candidate { origin, is_named, place, file, plugin, .. } = candidate;
        let Assembled { parts, plugins, extensions, pipeline, .. } = &self.assembled;
        let wanted = plugin?;
        let (replaces, pin) = (wanted.replaces.clone(), wanted.pin().clone());
        let loaded = match wanted.load(Arc::clone(&parts.host)).await {
            Err(error) if is_named => return Err(named_failure(&file, error)),
            loaded => loaded?,
        };
        if self.wanted.no_extensions && !is_named && loaded.extension.is_some() {
            return Ok(None);
        }
        let loaded = Arc::new(Loaded::new((origin, is_named, place, file), pin, replaces, loaded));
        pipeline.change(|table| loaded.register(table))?;
        if let Some(extension) = &loaded.plugin.extension {
            let before = plugins.all();
            plugins.set(before.iter().cloned().chain([Arc::clone(&loaded)]).collect());
            self.arrange();
            pipeline.set_hooks(extensions.hooks());
            if let Err(error) = extensions.begin_one(extension).await {
                plugins.set(before);
                self.withdraw(&loaded);
                pipeline.set_hooks(extensions.hooks());
                return Err(error.into());
            }
        }
        Ok(Some(loaded))
    }

    /// Takes away the tools of a plugin that is not there any more, unless another has its name now.
    fn withdraw(&self, loaded: &Loaded) {
        let name = &loaded.plugin.name;
        let is_twin = |other: &Arc<Loaded>| other.plugin.name == *name && other.origin == loaded.origin;
        if !self.assembled.plugins.all().iter().any(is_twin) {
            self.assembled.withdraw(name, loaded.origin);
        }
    }
}
