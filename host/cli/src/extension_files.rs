//! Which files are extensions: those in a folder of extensions, and those that a list of the settings names. Folders and
//! lists of packages are looked at, and nothing else: no component and no script is opened here.
//!
//! A project's list must never say anything about files of the user's: each level has a list of its own, and is looked at by
//! itself.

use std::{
    fs,
    path::{Path, PathBuf},
};

use atoll_caps::read_small_file;
use atoll_table::Error;
use globset::{GlobBuilder, GlobMatcher};
use serde::Deserialize;

use crate::scripts;

/// So many entries of a folder are looked at. More is no folder of extensions.
const MOST_ENTRIES: usize = 1_000;
/// So many folders above a file are looked at for the package that it belongs to.
const MOST_ABOVE: usize = 4;
/// What the name of a built-in extension stands behind in a list.
pub(crate) const BUILTIN: &str = "builtin:";

/// What an extension is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A component.
    Component,
    /// A script, which the built-in engine runs.
    Script,
}

impl Kind {
    /// What a file is, by its name.
    pub(crate) fn of(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "wasm" => Some(Self::Component),
            _ => scripts::is_script(file).then_some(Self::Script),
        }
    }
}

/// How an extension was found. In the order in which they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// A list of the settings names it.
    Settings,
    /// It lies in the folder of extensions.
    Folder,
}

/// An extension's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// What is loaded.
    pub(crate) entry: PathBuf,
    /// What it is.
    pub(crate) kind: Kind,
    /// The manifest beside it, if there is one.
    pub(crate) manifest: PathBuf,
    /// What it is called, as far as its place says: the stem of a file, or its folder's name.
    pub(crate) name: String,
    /// How it was found.
    pub(crate) place: Place,
    /// The folder that is the extension's own; none for a file among others.
    pub(crate) folder: Option<PathBuf>,
}

/// One level: the user's, or a project's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level<'a> {
    /// What relative paths of the list mean: the folder of the settings. Its `extensions` is the folder of extensions.
    pub(crate) base: &'a Path,
    /// What `~` means.
    pub(crate) home: &'a Path,
    /// The list.
    pub(crate) list: &'a [String],
    /// A folder that nothing may lead out of, without links in its path.
    pub(crate) within: Option<&'a Path>,
}

/// What a level has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Files {
    /// The extensions: those of the list as it names them, then those of the folder by name.
    pub(crate) found: Vec<Found>,
    /// What looks like one and is none, or what the list says in vain, with the reason.
    pub(crate) left_out: Vec<(PathBuf, String)>,
    /// Of what it can not be known what it holds. Each is left out, too.
    pub(crate) unsure: Vec<Unsure>,
    /// Built-in extensions that the list switches on or off, in order.
    pub(crate) builtins: Vec<(String, bool)>,
}

/// A file, or a folder with all that is below it, of which it can not be known what it holds. What was loaded from there has
/// not been taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsure {
    /// It.
    pub(crate) below: PathBuf,
    /// What is wrong: it, or a file in it.
    pub(crate) file: PathBuf,
    /// Why it is.
    pub(crate) reason: String,
}

impl Unsure {
    /// That what it holds is left out, for people.
    pub(crate) fn note(&self) -> String {
        format!("the plugin in {} is left out: {}", self.file.display(), self.reason)
    }
}

/// What an entry of a list says.
enum Entry<'a> {
    /// A path to add.
    Add(&'a str),
    /// What a pattern fits does not count.
    Without(&'a str),
    /// A path that counts whatever a pattern says.
    With(&'a str),
    /// A path that does not count.
    Drop(&'a str),
    /// A built-in extension.
    Builtin(&'a str, bool),
}

impl<'a> Entry<'a> {
    fn of(text: &'a str) -> Self {
        let (sign, rest) = match text.as_bytes().first() {
            Some(b'!' | b'+' | b'-') => text.split_at(1),
            _ => ("", text),
        };
        match (sign, rest.strip_prefix(BUILTIN)) {
            ("-" | "!", Some(name)) => Self::Builtin(name, false),
            (_, Some(name)) => Self::Builtin(name, true),
            ("!", None) => Self::Without(rest),
            ("+", None) => Self::With(rest),
            ("-", None) => Self::Drop(rest),
            _ => Self::Add(rest),
        }
    }
}

/// Looks at a level.
pub(crate) fn look(level: Level<'_>) -> Files {
    let mut files = Files::default();
    let folder = level.base.join("extensions");
    let (mut without, mut with, mut drop) = (Vec::new(), Vec::new(), Vec::new());
    for text in level.list {
        match Entry::of(text) {
            Entry::Builtin(name, on) => files.builtins.push((name.to_owned(), on)),
            Entry::Without(pattern) => match glob(pattern) {
                Ok(pattern) => without.push(pattern),
                Err(reason) => files.left_out.push((PathBuf::from(text), reason)),
            },
            Entry::Add(path) => files.add_named(&level.path(path)),
            Entry::With(path) => {
                let path = level.path(path);
                files.add_named(&path);
                with.push(path);
            }
            Entry::Drop(path) => drop.push((text, level.path(path))),
        }
    }
    files.add_folder(&folder);
    files.deduplicate();
    let fits = |pattern: &GlobMatcher, found: &Found| {
        let parts = [level.base, &folder].map(|start| found.entry.strip_prefix(start).ok());
        parts.into_iter().flatten().chain([found.entry.as_path()]).any(|path| pattern.is_match(path))
    };
    files.found.retain(|found| {
        let is_named = with.iter().any(|path| is_at(found, path));
        is_named || !without.iter().any(|pattern| fits(pattern, found))
    });
    for (text, path) in drop {
        let before = files.found.len();
        files.found.retain(|found| !is_at(found, &path));
        if files.found.len() == before {
            let reason = "it takes away nothing: no extension of this level is there".to_owned();
            files.left_out.push((PathBuf::from(text), reason));
        }
    }
    if let Some(within) = level.within {
        let is_inside = |found: &Found| found.entry.canonicalize().is_ok_and(|real| real.starts_with(within));
        let (inside, outside) = files.found.into_iter().partition(is_inside);
        files.found = inside;
        let outside: Vec<Found> = outside;
        for Found { entry, .. } in outside {
            let reason = "it leads out of the project; put the file itself there";
            files.leave_unsure(&entry, entry.clone(), reason.to_owned());
        }
    }
    files
}

/// Whether an extension is what a path names: the file, or the folder it is the entry of.
fn is_at(found: &Found, path: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    [Some(found.entry.as_path()), found.folder.as_deref()]
        .into_iter()
        .flatten()
        .any(|own| own == path || real(own).is_some_and(|own| real(path) == Some(own)))
}

impl Level<'_> {
    fn path(&self, text: &str) -> PathBuf {
        let path = match text.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => self.base.join(text),
        };
        // Without `.` in it, so that it is found again.
        path.components().collect()
    }
}

fn glob(pattern: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| format!("it is no pattern: {}", error.kind()))
}

impl Files {
    /// What is below a path can not be known, for what is wrong with a file.
    fn leave_unsure(&mut self, below: &Path, file: PathBuf, reason: String) {
        self.unsure.push(Unsure { below: below.to_owned(), file: file.clone(), reason: reason.clone() });
        self.left_out.push((file, reason));
    }

    /// What a list names: a file, or a folder that is an extension.
    fn add_named(&mut self, path: &Path) {
        if path.is_dir() {
            let before = self.found.len();
            self.add_package(path, Place::Settings);
            if self.found.len() == before && !self.left_out.iter().any(|(known, _)| known.starts_with(path)) {
                let reason = "it holds no extension: there is no package.json that names one, no plugin.toml with a \
                              component, and no index.ts or index.js";
                self.left_out.push((path.to_owned(), reason.to_owned()));
            }
            return;
        }
        let reason = match Kind::of(path) {
            _ if !path.exists() => "it does not exist",
            Some(kind) if path.is_file() => return self.add_file(path, kind, Place::Settings),
            Some(_) => "it is no regular file",
            None => "it is no extension: name a component (.wasm), a script (.ts, .js or .mjs) or a folder with one",
        };
        self.left_out.push((path.to_owned(), reason.to_owned()));
    }

    fn add_file(&mut self, path: &Path, kind: Kind, place: Place) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (entry, manifest) = (path.to_owned(), path.with_extension("toml"));
        self.found.push(Found { entry, kind, manifest, name, place, folder: None });
    }

    /// What lies in a folder of extensions, one level deep.
    fn add_folder(&mut self, folder: &Path) {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => return self.leave_unsure(folder, folder.to_owned(), format!("it can not be read: {error}")),
        };
        let mut entries: Vec<PathBuf> = entries.flatten().take(MOST_ENTRIES + 1).map(|entry| entry.path()).collect();
        if entries.len() > MOST_ENTRIES {
            let reason = format!("it has more than {MOST_ENTRIES} entries, so nothing of it is loaded");
            return self.leave_unsure(folder, folder.to_owned(), reason);
        }
        entries.sort();
        for path in entries {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') || name == "node_modules" {
                continue;
            }
            match Kind::of(&path) {
                _ if path.is_dir() => self.add_package(&path, Place::Folder),
                Some(kind) if path.is_file() => self.add_file(&path, kind, Place::Folder),
                _ => {}
            }
        }
    }

    /// A folder that is an extension, or several: as its package.json says, else what its plugin.toml is about, else its
    /// index.
    fn add_package(&mut self, folder: &Path, place: Place) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let manifest = folder.join("plugin.toml");
        match package_entries(&folder.join("package.json")) {
            Err(reason) => return self.leave_unsure(folder, folder.join("package.json"), reason),
            Ok(Some(entries)) => {
                self.add_entries(folder, &entries, place);
                return;
            }
            Ok(None) => {}
        }
        let component = if manifest.is_file() { only_component(folder) } else { Ok(None) };
        let (entry, kind) = match (component, index_of(folder)) {
            (Ok(Some(component)), _) => (component, Kind::Component),
            (_, Some(index)) => (index, Kind::Script),
            (Ok(None), None) => return,
            (Err(reason), None) => return self.leave_unsure(folder, folder.to_owned(), reason),
        };
        self.found.push(Found { entry, kind, manifest, name, place, folder: Some(folder.to_owned()) });
    }

    /// What a package.json names. Each has a manifest of its own if there are several.
    fn add_entries(&mut self, folder: &Path, named: &[PathBuf], place: Place) {
        let entries: Vec<PathBuf> = named.iter().flat_map(|entry| entries_at(&folder.join(entry))).collect();
        let within = folder.canonicalize();
        for path in &entries {
            let Some(kind) = Kind::of(path).filter(|_| path.is_file()) else {
                let reason =
                    "package.json names it as an extension, and it is none: no component and no script is there";
                self.leave_unsure(folder, path.clone(), reason.to_owned());
                continue;
            };
            let is_inside = |real: PathBuf| within.as_ref().is_ok_and(|within| real.starts_with(within));
            if !path.canonicalize().is_ok_and(is_inside) {
                let reason = "package.json names it, and it leads out of its folder; put the file itself there";
                self.leave_unsure(folder, path.clone(), reason.to_owned());
                continue;
            }
            let mut name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let mut manifest = folder.join("plugin.toml");
            if entries.len() > 1 {
                name = format!("{name}-{}", name_of_file(path));
                manifest = path.with_extension("toml");
            }
            self.found.push(Found {
                entry: path.clone(),
                kind,
                manifest,
                name,
                place,
                folder: Some(folder.to_owned()),
            });
        }
    }

    /// Leaves the first of each file, whatever names lead to it.
    fn deduplicate(&mut self) {
        let mut known = std::collections::HashSet::new();
        self.found.retain(|found| known.insert(found.entry.canonicalize().unwrap_or_else(|_| found.entry.clone())));
    }
}

/// What a path that the user names for a run stands for: a file, or a folder that is an extension, or several. What it gives
/// is the same that lists and folders of extensions make of it, but that an index is called by its folder.
///
/// # Errors
/// If it is none, or if one of several is none.
pub(crate) fn named(path: &Path) -> Result<Vec<Found>, Error> {
    // Without `.` in it, and with a name to call it by.
    let mut path: PathBuf = path.components().collect();
    if path.file_name().is_none() {
        path = path.canonicalize().unwrap_or(path);
    }
    if !path.is_dir()
        && let Some(found) = of_package(&path)?
    {
        return Ok(vec![found]);
    }
    let mut files = Files::default();
    files.add_named(&path);
    if let Some((path, reason)) = files.left_out.into_iter().next() {
        let said = match reason.strip_prefix("it ") {
            Some(rest) => format!("{} {rest}", path.display()),
            None => format!("{}: {reason}", path.display()),
        };
        return Err(if path.exists() { Error::Failed(said) } else { Error::NotFound(said) });
    }
    for found in files.found.iter_mut().filter(|found| found.folder.is_none()) {
        found.name = name_of_file(&found.entry);
        if let Some(folder) = own_folder(&found.entry) {
            found.manifest = folder.join("plugin.toml");
            found.folder = Some(folder);
        }
    }
    Ok(files.found)
}

/// The folder that a script's file is the entry of: that of an `index` with a `plugin.toml` beside it, and without a manifest
/// of its own name. Any other script is but one file among others.
fn own_folder(file: &Path) -> Option<PathBuf> {
    let folder = file.parent().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?;
    let is_index = file.file_stem().is_some_and(|stem| stem == "index") && Kind::of(file) == Some(Kind::Script);
    let is_own = is_index && folder.join("plugin.toml").is_file() && !file.with_extension("toml").exists();
    is_own.then(|| folder.to_owned())
}

/// That a folder is several extensions, with what to name instead.
pub(crate) fn several_entries(folder: &Path, several: &[Found]) -> String {
    let entries: Vec<String> = several.iter().map(|found| found.entry.display().to_string()).collect();
    format!("{} holds {} extensions; name one of them: {}", folder.display(), several.len(), entries.join(", "))
}

/// The extension that a file is the entry of, if the package.json that is nearest to it says so.
fn of_package(file: &Path) -> Result<Option<Found>, Error> {
    for folder in file.ancestors().skip(1).take(MOST_ABOVE) {
        let package = folder.join("package.json");
        if package.symlink_metadata().is_err() {
            continue;
        }
        let failed = |reason: String| Error::Failed(format!("{}: {reason}", package.display()));
        let Some(entries) = package_entries(&package).map_err(failed)? else { return Ok(None) };
        let mut files = Files::default();
        files.add_entries(folder, &entries, Place::Settings);
        return Ok(files.found.into_iter().find(|found| is_at(found, file)).filter(|found| found.entry.is_file()));
    }
    Ok(None)
}

/// What a file is called: by its stem, or by its folder if it is only an index.
fn name_of_file(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default();
    let folder = file.parent().and_then(Path::file_name).filter(|_| stem == "index");
    folder.unwrap_or(stem).to_string_lossy().into_owned()
}

/// What a name in a package.json stands for: a file, or the index of a folder, else the scripts in it.
fn entries_at(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    if let Some(index) = index_of(path) {
        return vec![index];
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten().take(MOST_ENTRIES).map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|file| file.is_file() && scripts::is_script(file)).collect();
    files.sort();
    // So that it is said that it holds none.
    if files.is_empty() { vec![path.to_owned()] } else { files }
}

/// The script that a folder begins with.
fn index_of(folder: &Path) -> Option<PathBuf> {
    ["index.ts", "index.js"].map(|name| folder.join(name)).into_iter().find(|path| path.is_file())
}

/// The one component of a folder: `plugin.wasm`, else the only one.
fn only_component(folder: &Path) -> Result<Option<PathBuf>, String> {
    let plain = folder.join("plugin.wasm");
    if plain.is_file() {
        return Ok(Some(plain));
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_ENTRIES).map(|entry| entry.path());
    let mut components = entries.filter(|path| Kind::of(path) == Some(Kind::Component) && path.is_file());
    match (components.next(), components.next()) {
        (Some(_), Some(_)) => {
            Err("it holds several components; call the one that plugin.toml is about plugin.wasm".to_owned())
        }
        (one, _) => Ok(one),
    }
}

/// The entries that a package.json names, for this host or for Pi. None if it is not there, or names none.
fn package_entries(file: &Path) -> Result<Option<Vec<PathBuf>>, String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Package {
        atoll: Host,
        pi: Host,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Host {
        extensions: Option<Vec<PathBuf>>,
    }
    let text = match read_small_file(file) {
        Ok(Some(text)) => text,
        Ok(None) => return Ok(None),
        Err(error) => return Err(format!("it can not be read: {error}")),
    };
    let package: Package = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| format!("it can not be understood: {error}"))?;
    let Some(entries) = package.atoll.extensions.or(package.pi.extensions) else { return Ok(None) };
    let is_inside = |path: &PathBuf| {
        path.components().all(|part| matches!(part, std::path::Component::CurDir | std::path::Component::Normal(_)))
    };
    match entries.iter().find(|path| !is_inside(path)) {
        Some(path) => Err(format!("it names {}, which is not in its folder", path.display())),
        None => {
            let plain = |path: &PathBuf| path.strip_prefix(".").map_or_else(|_| path.clone(), Path::to_owned);
            Ok(Some(entries.iter().map(plain).collect()))
        }
    }
}

#[cfg(test)]
#[path = "extension_files_tests.rs"]
mod tests;
