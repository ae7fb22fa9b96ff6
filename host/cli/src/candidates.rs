//! Which plugins a run is to have: those that the user named for it, then those that are there, with what each of them is
//! granted. Files are read here, and nothing is compiled or run.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use atoll_agent::settings::Settings;
use atoll_caps::{Capability, Effective, Grants, Manifest, PluginName, Wants, shell_word};
use atoll_engine::{LoadedPlugin, PluginHost, Replacement, ScriptPlugin, UserPlugin};
use atoll_table::{Error, Origin};
use futures::future::join_all;

use crate::{
    arguments::ExtensionArguments,
    assemble::Parts,
    builtins,
    catalog::{Catalog, Stray, plain_name},
    extension_files::{self, Found, Kind, Unsure},
    installed::{Installed, add_named},
    plugin_files::{PluginFiles, Seen},
    replaceable::builtin_named,
    scripts::{self, Script},
};

/// A plugin that is to be loaded.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) name: PluginName,
    pub(crate) origin: Origin,
    /// The user named it for this run.
    pub(crate) is_named: bool,
    /// What the user named, else its file.
    pub(crate) place: PathBuf,
    /// What it is found by again.
    pub(crate) file: PathBuf,
    /// It, or why it can not be had.
    pub(crate) plugin: anyhow::Result<Wanted>,
}

/// A plugin as it was read.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// The built-in tools that its own may stand in for.
    pub(crate) replaces: Vec<String>,
    plugin: ReadPlugin,
}

/// What is loaded.
#[derive(Debug)]
enum ReadPlugin {
    Component(Box<UserPlugin>),
    Script(Box<ScriptPlugin>),
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// In load order: those that the user named as they were named, then the user's, then a project's.
    pub(crate) all: Vec<Candidate>,
    /// Built-in extensions that somebody switched on or off, the last word last.
    pub(crate) builtins: Vec<(String, bool)>,
    /// What the user should know.
    pub(crate) notes: Vec<String>,
    /// Why nothing but what the user named could be looked for, if so.
    pub(crate) unread: Option<String>,
    /// Of what it can not be known what it holds. That is no note yet.
    pub(crate) unsure: Vec<Unsure>,
}

impl Wanted {
    /// What tells one version of it from another.
    pub(crate) fn pin(&self) -> &atoll_caps::Pin {
        match &self.plugin {
            ReadPlugin::Component(plugin) => &plugin.pin,
            ReadPlugin::Script(plugin) => &plugin.pin,
        }
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        match &self.plugin {
            ReadPlugin::Component(plugin) => &plugin.manifest,
            ReadPlugin::Script(plugin) => &plugin.manifest,
        }
    }

    /// Whether it may turn out to be an extension.
    pub(crate) fn may_be_extension(&self) -> bool {
        match &self.plugin {
            ReadPlugin::Component(plugin) => plugin.component.may_be_extension(),
            ReadPlugin::Script(_) => true,
        }
    }

    /// Whether it may use the tool table, and so do what tools do.
    pub(crate) fn has_table(&self) -> bool {
        let effective = match &self.plugin {
            ReadPlugin::Component(plugin) => &plugin.effective,
            ReadPlugin::Script(plugin) => &plugin.effective,
        };
        effective.allows_interface(Capability::Table)
    }

    /// Loads it.
    pub(crate) async fn load(self, host: Arc<PluginHost>) -> Result<LoadedPlugin, Error> {
        match self.plugin {
            ReadPlugin::Component(plugin) => host.load_user(*plugin).await,
            ReadPlugin::Script(plugin) => host.load_script(*plugin).await,
        }
    }

    /// Loads it, to take over from a running extension.
    pub(crate) async fn load_replacement(self, host: Arc<PluginHost>) -> Result<Replacement, Error> {
        match self.plugin {
            ReadPlugin::Component(plugin) => host.load_replacement(*plugin).await,
            ReadPlugin::Script(plugin) => host.load_script_replacement(*plugin).await,
        }
    }
}

impl Parts {
    /// Looks at what there is now. `settings` are those that hold now.
    pub(crate) async fn candidates(
        &self,
        wanted: &ExtensionArguments,
        settings: &Settings,
        grants: &Grants,
    ) -> Candidates {
        let mut candidates = Candidates::default();
        let switched = self.named(wanted, grants, &mut candidates);
        self.installed(wanted.no_extensions, settings, grants, &mut candidates).await;
        // What the user says for this run is the last word.
        let off = |name: &str| (name.to_owned(), false);
        if wanted.no_extensions {
            candidates.builtins.extend(builtins::REPLACEABLE.map(off));
        }
        candidates.builtins.extend(wanted.no_mcp.then(|| off("mcp")));
        candidates.builtins.extend(switched);
        candidates
    }

    /// Those of `-e`. Naming one is the user's word for it. Gives what it says of built-in ones.
    fn named(&self, wanted: &ExtensionArguments, grants: &Grants, candidates: &mut Candidates) -> Vec<(String, bool)> {
        let mut paths = HashSet::new();
        let mut switched = Vec::new();
        for named_file in &wanted.named {
            let file = named_file;
            if let Some((name, on)) = file.to_str().and_then(builtin_named) {
                switched.push((name.to_owned(), on));
                continue;
            }
            let path = self.directories.cwd.join(file);
            let shown = file.display();
            let read =
                match named(&self.host, &path, &self.directories.extensions()).with_context(|| format!("-e {shown}")) {
                    Ok(read) => read,
                    Err(error) => {
                        let Ok(name) = name_of_file(&path).or_else(|_| "plugin".parse()) else { continue };
                        let (origin, place, plugin) = (Origin::User, path.clone(), Err(error));
                        candidates.all.push(Candidate { name, origin, is_named: true, place, file: path, plugin });
                        continue;
                    }
                };
            for seen in read {
                let (file, name) = (seen.file().to_owned(), seen.manifest().name.clone());
                // The same file named twice is loaded once.
                if !paths.insert(file.canonicalize().unwrap_or_else(|_| file.clone())) {
                    continue;
                }
                let twin = candidates.all.iter().find(|other| other.name == name).map(|other| &other.file);
                let plugin = match twin {
                    _ if builtins::by_name(name.as_str()).is_some() => Err(anyhow::anyhow!(
                        "-e {shown}: `{name}` is the name of a built-in plugin; give this one another"
                    )),
                    Some(first) => {
                        let (first, second) = (first.display(), file.display());
                        Err(anyhow::anyhow!("{first} and {second} are both the plugin {name}; leave out one of them"))
                    }
                    None if wanted.granted.as_ref() == Some(named_file) => Ok(as_trusted(seen, grants)),
                    None => Ok(as_named(seen, grants)),
                };
                let (origin, place) = (Origin::User, path.clone());
                candidates.all.push(Candidate { name, origin, is_named: true, place, file, plugin });
            }
        }
        switched
    }

    /// Those that are there, but for those of a name that the user named.
    async fn installed(&self, no_extensions: bool, settings: &Settings, grants: &Grants, candidates: &mut Candidates) {
        let mut catalog = match Catalog::read(&self.directories, &self.project, settings) {
            Ok(catalog) => catalog,
            Err(error) => {
                candidates.unread = Some(format!("{error:#}"));
                return;
            }
        };
        candidates.builtins.append(&mut catalog.builtins);
        if !no_extensions {
            let is_unsure = |stray: &&Stray| catalog.unsure.iter().any(|unsure| unsure.file == stray.path);
            candidates.notes.extend(catalog.strays.iter().filter(|stray| !is_unsure(stray)).map(Stray::note));
        }
        candidates.unsure.append(&mut catalog.unsure);
        // One that can not be had does not say its name, and must not keep another away by that of its file.
        let readable = candidates.all.iter().filter(|candidate| candidate.plugin.is_ok());
        let named: HashSet<&str> = readable.map(|candidate| candidate.name.as_str()).collect();
        let mut hidden = Vec::new();
        catalog.plugins.retain(|plugin| {
            // What lies among extensions is left out with them, whatever it is.
            if !plugin.enabled || (no_extensions && plugin.is_of_extensions()) {
                return false;
            }
            let is_hidden = named.contains(plugin.name.as_str());
            if is_hidden {
                hidden.push(format!("the installed plugin {} is left out: -e names another of that name", plugin.name));
            }
            !is_hidden
        });
        candidates.notes.append(&mut hidden);
        for (files, installed) in seen(&self.host, catalog.plugins).await {
            let Installed { name, origin, .. } = &installed;
            let plugin = match files {
                // Those that are left out are not even loaded.
                Ok(seen) if no_extensions && seen.is_extension() => continue,
                Ok(seen) => {
                    let (wanted, note) = as_installed(seen, &installed, grants);
                    candidates.notes.extend(note);
                    Ok(wanted)
                }
                Err(error) => Err(error),
            };
            let (name, origin, file) = (name.clone(), *origin, installed.file());
            candidates.all.push(Candidate { name, origin, is_named: false, place: file.clone(), file, plugin });
        }
    }
}

/// Reads plugins. Reading a component and taking its digest may keep a core busy for a while; more threads than cores only
/// get into each other's way.
async fn seen(host: &Arc<PluginHost>, mut plugins: Vec<Installed>) -> Vec<(anyhow::Result<Seen>, Installed)> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let share = plugins.len().div_ceil(cores).max(1);
    let mut reading = Vec::new();
    while !plugins.is_empty() {
        let rest = plugins.split_off(share.min(plugins.len()));
        let some = std::mem::replace(&mut plugins, rest);
        let host = Arc::clone(host);
        reading.push(tokio::task::spawn_blocking(move || {
            some.into_iter().map(|installed| (installed.see(&host), installed)).collect::<Vec<_>>()
        }));
    }
    join_all(reading).await.into_iter().flatten().flatten().collect()
}

/// With all that its manifest asks for: the user said so for this run, whatever version it is.
fn as_trusted(seen: Seen, grants: &Grants) -> Wanted {
    let granted = seen.manifest().wants.clone();
    let replaces = grants.replaces(seen.manifest(), seen.pin());
    wanted(seen, Some(&granted), replaces, Origin::User)
}

/// With what the user's word for a file gives beside its grants.
fn as_named(seen: Seen, grants: &Grants) -> Wanted {
    let mut granted = seen.granted(grants).unwrap_or_default();
    add_named(&mut granted, seen.manifest());
    let replaces = grants.replaces(seen.manifest(), seen.pin());
    wanted(seen, Some(&granted), replaces, Origin::User)
}

/// With its grants, and with what its place is the user's word for. Also that it has changed, if so.
fn as_installed(seen: Seen, installed: &Installed, grants: &Grants) -> (Wanted, Option<String>) {
    let granted = seen.granted(grants);
    let note = granted.is_none().then(|| changed(&seen.manifest().name, seen.file()));
    if installed.is_named() {
        return (as_named(seen, grants), note);
    }
    let replaces = match installed.origin {
        Origin::User => grants.replaces(seen.manifest(), seen.pin()),
        Origin::Builtin | Origin::Project => Vec::new(),
    };
    (wanted(seen, granted.as_ref(), replaces, installed.origin), note)
}

fn wanted(seen: Seen, granted: Option<&Wants>, replaces: Vec<String>, origin: Origin) -> Wanted {
    let effective = Effective::intersect(seen.manifest(), granted);
    let plugin = match seen {
        Seen::Component(files) => {
            let PluginFiles { file, component, manifest, pin, .. } = *files;
            ReadPlugin::Component(Box::new(UserPlugin { file, component, manifest, effective, pin, origin }))
        }
        Seen::Script(script) => ReadPlugin::Script(Box::new(script.plugin(effective, origin))),
    };
    Wanted { replaces, plugin }
}

/// What a plugin is called by its file alone.
fn name_of_file(file: &Path) -> Result<PluginName, atoll_caps::PluginNameError> {
    plain_name(&file.file_stem().unwrap_or_default().to_string_lossy()).parse()
}

/// Reads what the user named: a component, a script, or a folder with an extension or several.
fn named(host: &PluginHost, path: &Path, extensions: &Path) -> anyhow::Result<Vec<Seen>> {
    if path.is_dir() || scripts::is_script(path) {
        let all = extension_files::named(path)?;
        let several = all.len() > 1;
        let seen = |found: &Found| -> anyhow::Result<Seen> {
            if found.kind == Kind::Component {
                let name = plain_name(&found.name).parse().context("its folder's name can not name a plugin")?;
                let files = PluginFiles::seen(host, &found.entry, &found.manifest, name)?;
                return Ok(Seen::Component(Box::new(files)));
            }
            // Each of several is granted what it needs by itself.
            let place = if several { &found.entry } else { path };
            Ok(Seen::Script(Box::new(Script::found(found)?.named(place.to_owned(), extensions))))
        };
        return all.iter().map(seen).collect();
    }
    let name = name_of_file(path).context("its file's name can not name a plugin; give it a manifest that does")?;
    let files = PluginFiles::seen(host, path, &path.with_file_name("plugin.toml"), name)?;
    Ok(vec![Seen::Component(Box::new(files))])
}

/// Why a plugin that the user named could not be loaded.
pub(crate) fn named_failure(file: &Path, error: Error) -> anyhow::Error {
    match error {
        error @ Error::Denied { .. } => {
            let file = shell_word(&file.to_string_lossy());
            anyhow::Error::new(error).context(format!(
                "-e {file}: what reaches outside is granted to plugins that are installed: atoll plugin install {file}"
            ))
        }
        error => error.into(),
    }
}

/// That a plugin's files are not those that were granted anything, and what to do about it.
pub(crate) fn changed(name: &PluginName, file: &Path) -> String {
    format!(
        "{} has changed since it was granted anything, so nothing of that counts; look at it with `atoll plugin inspect {name}`, and if you trust it, run atoll plugin grant {name} --all",
        file.display()
    )
}
