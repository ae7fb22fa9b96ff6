//! Scripts as they lie in folders: which files belong to one, and what it says of itself. Nothing is run here.
//!
//! A script names its other files in its own text, and nobody has granted it anything when they are read. So nothing may be
//! read here that is not below the script's folder, or that is no program text.

use std::{
    collections::{HashSet, VecDeque},
    path::{Component, Path, PathBuf},
};

use anyhow::Context as _;
use atoll_caps::{Digest, Effective, Grants, Manifest, Pin, PluginName, Wants, read_small_file};
use atoll_engine::{ScriptPlugin, SourceFile, script_manifest, script_pin};
use atoll_table::{Error, Origin};

use crate::{
    builtins,
    catalog::plain_name,
    extension_files::{self, Found, Kind},
};

/// What the names of scripts end in, the likelier first.
pub(crate) const EXTENSIONS: [&str; 5] = ["ts", "js", "mjs", "mts", "cts"];
/// The most files of one script.
const MAX_FILES: usize = 500;
/// The most names of files in their imports, whether there is such a file or not.
const MAX_NAMES: usize = 2000;
/// The most bytes that they have together.
const MAX_BYTES: usize = 16 << 20;

/// A script, read.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// The file to run first.
    pub(crate) file: PathBuf,
    /// All of its files, that one first.
    pub(crate) files: Vec<SourceFile>,
    pub(crate) manifest: Manifest,
    /// What its grants have to be pinned to.
    pub(crate) pin: Pin,
    /// How the user names it who grants it something, if not by its name.
    pub(crate) place: Option<PathBuf>,
    /// What its store is called, if not by its name.
    pub(crate) store: Option<String>,
}

/// Whether a file is a script by its name.
pub(crate) fn is_script(file: &Path) -> bool {
    let extension = file.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
        && !file.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".d.ts"))
}

/// That what is to be read as a component is none because it is a script, or a folder with one.
///
/// # Errors
/// `unavailable`, with what is done with scripts instead.
pub(crate) fn refuse(file: &Path) -> Result<(), Error> {
    let holds_script = |folder: &Path| {
        extension_files::named(folder).is_ok_and(|found| found.iter().any(|found| found.kind == Kind::Script))
    };
    let is_one = if file.is_dir() { holds_script(file) } else { is_script(file) && file.is_file() };
    if !is_one {
        return Ok(());
    }
    Err(Error::Unavailable(format!(
        "{} is a script, not a component: scripts are not installed; put its file or folder into ~/.atoll/extensions, or name it for one run with -e",
        file.display()
    )))
}

impl Script {
    /// Reads one that was found, as [`Self::read`]. It is called by its place, whatever it says itself: grants and what it
    /// keeps go by its name, and no text may choose whose these are.
    ///
    /// # Errors
    /// Also if its place can not name a plugin.
    pub(crate) fn found(found: &Found) -> anyhow::Result<Self> {
        let name = plain_name(&found.name);
        let name: PluginName = name.parse().with_context(|| {
            format!(
                "`{name}` can not name a plugin; rename {}, or put it into a folder of another name",
                found.entry.display()
            )
        })?;
        Self::read(&found.entry, found.folder.as_deref(), &found.manifest, name)
    }

    /// Reads the script that begins with `entry`, whatever of its own files that imports, and its manifest, if there is one.
    /// `folder` is the script's own folder; a script that is but one file among others has none. It is called `name`. May
    /// block.
    ///
    /// # Errors
    /// If a file can not be read, if there are too many, or if the manifest is wrong.
    pub(crate) fn read(entry: &Path, folder: Option<&Path>, manifest: &Path, name: PluginName) -> anyhow::Result<Self> {
        let Some(engine) = builtins::script_engine() else {
            anyhow::bail!(Error::Unavailable("this program was built without an engine for scripts".to_owned()));
        };
        let files = read_files(entry, folder)?;
        let text = read_small_file(manifest).with_context(|| format!("{} can not be read", manifest.display()))?;
        let shown = manifest.to_string_lossy();
        let beside = text.as_deref().map(|text| (&*shown, text));
        let first = files.first().map(|file| file.text.as_str()).unwrap_or_default();
        let (mut manifest, text) = script_manifest(beside, first, &entry.to_string_lossy(), name.clone())?;
        manifest.name = name;
        let pin = script_pin(&files, text.as_deref(), engine)?;
        Ok(Self { file: entry.to_owned(), files, manifest, pin, place: None, store: None })
    }

    /// As the user names it for a run: in this place, and with a store of its own. Whatever lies in the user's folder of
    /// `extensions` has one by its name, which nothing else there has. Elsewhere there may be others of that name.
    pub(crate) fn named(self, place: PathBuf, extensions: &Path) -> Self {
        let real = self.file.canonicalize().unwrap_or_else(|_| self.file.clone());
        let is_users = extensions.canonicalize().is_ok_and(|folder| real.starts_with(folder));
        let of_place = || {
            // No plugin's name has this sign in it.
            format!("{}@{}", self.manifest.name, Digest::of(real.as_os_str().as_encoded_bytes()).short())
        };
        let store = (!is_users).then(of_place);
        Self { place: Some(place), store, ..self }
    }

    /// What it is granted. `None` if what was granted no longer counts, because its files have changed.
    pub(crate) fn granted(&self, grants: &Grants) -> Option<Wants> {
        grants.granted(&self.manifest.name, &self.pin)
    }

    /// What the sandbox loads, with what it may do.
    pub(crate) fn plugin(self, effective: Effective, origin: Origin) -> ScriptPlugin {
        let Self { file, files, manifest, pin, place, store } = self;
        let place = place.map_or_else(|| manifest.name.to_string(), |place| place.to_string_lossy().into_owned());
        let effective = effective.of_script(&place);
        ScriptPlugin { file, files, manifest, effective, pin, origin, store }
    }
}

/// A script's file, and those that it imports, and those that these import.
fn read_files(entry: &Path, folder: Option<&Path>) -> anyhow::Result<Vec<SourceFile>> {
    let base = entry.parent().unwrap_or(Path::new("."));
    let root = folder.unwrap_or(base);
    let root = root.canonicalize().with_context(|| format!("{} can not be read", root.display()))?;
    let mut waiting = VecDeque::from([PathBuf::from(entry.file_name().unwrap_or_default())]);
    let mut seen: HashSet<PathBuf> = waiting.iter().cloned().collect();
    let mut wanted_before = HashSet::new();
    let (mut files, mut bytes) = (Vec::new(), 0);
    while let Some(path) = waiting.pop_front() {
        let file = base.join(&path);
        let text = read_text(&file, MAX_BYTES - bytes)?;
        bytes += text.len();
        if files.len() == MAX_FILES {
            anyhow::bail!("{} imports more than {MAX_FILES} files; bundle it into one", entry.display());
        }
        for name in imports(&text) {
            let Some(wanted) = normal(&path.parent().unwrap_or(Path::new("")).join(name)) else { continue };
            // Each is looked for under several names, so one that is said many times must not cost more.
            if !wanted_before.insert(wanted.clone()) {
                continue;
            }
            if wanted_before.len() > MAX_NAMES {
                anyhow::bail!("{} names more than {MAX_NAMES} files to import; bundle it into one", entry.display());
            }
            let Some(found) = spelt(&wanted).into_iter().find(|path| may_be_read(&base.join(path), &root, folder))
            else {
                // The engine says so, with the place, if the script really wants it.
                continue;
            };
            if seen.insert(found.clone()) {
                waiting.push_back(found);
            }
        }
        let path = path.components().map(|name| name.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
        files.push(SourceFile { path, text });
    }
    Ok(files)
}

fn read_text(file: &Path, most: usize) -> anyhow::Result<String> {
    use std::io::Read as _;
    let shown = file.display();
    let facts = std::fs::metadata(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound(format!("{shown} does not exist")),
        _ => Error::Failed(format!("{shown} can not be read: {error}")),
    })?;
    if !facts.is_file() {
        anyhow::bail!(Error::Failed(format!("{shown} is not a file")));
    }
    let mut text = Vec::new();
    let opened = std::fs::File::open(file).with_context(|| format!("{shown} can not be read"))?;
    opened.take(most as u64 + 1).read_to_end(&mut text).with_context(|| format!("{shown} can not be read"))?;
    if text.len() > most {
        anyhow::bail!("{shown}: a script and what it imports may have {MAX_BYTES} bytes; this one has more");
    }
    String::from_utf8(text).map_err(|_| anyhow::anyhow!("{shown} is not UTF-8 text"))
}

/// Whether a file may be read as one of a script's: a regular one, of program text, that really lies below its folder.
fn may_be_read(file: &Path, root: &Path, folder: Option<&Path>) -> bool {
    let is_data = folder.is_some() && file.extension().is_some_and(|extension| extension == "json");
    (is_script(file) || is_data) && file.canonicalize().is_ok_and(|real| real.starts_with(root) && real.is_file())
}

/// What a name in an `import` may stand for.
fn spelt(name: &Path) -> Vec<PathBuf> {
    let with = |ending: &str| PathBuf::from(format!("{}{ending}", name.display()));
    let mut all = vec![name.to_owned()];
    // TypeScript names the file that it would be compiled to.
    let compiled = [("js", "ts"), ("mjs", "mts"), ("cjs", "cts")];
    let extension = name.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    all.extend(compiled.iter().filter(|(to, _)| *to == extension).map(|(_, from)| name.with_extension(from)));
    all.extend(EXTENSIONS.map(|extension| with(&format!(".{extension}"))));
    all.extend(["/index.ts", "/index.js"].map(with));
    all
}

/// A relative path without `.`, and with `..` at its start only. None if it is not relative.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if normal.file_name().is_some() => {
                normal.pop();
            }
            Component::ParentDir | Component::Normal(_) => normal.push(part),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(normal)
}

/// The relative names that a text imports. Some of them may stand in a comment: they are read, and never asked for.
fn imports(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for quote in ['"', '\'', '`'] {
        for (at, _) in text.match_indices(quote) {
            let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
            if !after.starts_with("./") && !after.starts_with("../") {
                continue;
            }
            let Some((name, _)) = after.split_once(quote) else { continue };
            let before = before.trim_end();
            let before = before.strip_suffix('(').map_or(before, str::trim_end);
            if !name.contains('\n') && (before.ends_with("from") || before.ends_with("import")) {
                found.push(name);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_text_imports_is_found() {
        let text = "import a from './a';\nimport { type B } from\n  \"../b.js\"\nimport './c.ts'\nexport * from './d'\n\
                    const e = await import( './e' );\nimport fs from 'node:fs';\nconst no = './no';\nread('./no');";
        let mut found = imports(text);
        found.sort_unstable();
        assert_eq!(found, ["../b.js", "./a", "./c.ts", "./d", "./e"]);
    }

    #[test]
    fn a_path_is_made_plain() {
        let plain = |path: &str| normal(Path::new(path)).map(|path| path.to_string_lossy().into_owned());
        assert_eq!(plain("a/./b/../c.ts").as_deref(), Some("a/c.ts"));
        assert_eq!(plain("a/../../b").as_deref(), Some("../b"));
        assert_eq!(plain("/etc/passwd"), None);
    }

    #[test]
    fn only_what_is_imported_and_lies_below_the_folder_is_read() -> anyhow::Result<()> {
        let home = tempfile::tempdir()?;
        let folder = home.path().join("ext");
        std::fs::create_dir_all(folder.join("lib"))?;
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text);
        std::fs::write(home.path().join("outside.ts"), "secret")?;
        std::fs::write(home.path().join("outside.json"), "{}")?;
        write("index.ts", "import './lib/a.js'; import '../outside.ts'; import './link.ts'; import './d.json'")?;
        write("lib/a.ts", "import '../b'; import './a'")?;
        write("b.ts", "")?;
        write("d.json", "{}")?;
        write("unused.ts", "")?;
        std::os::unix::fs::symlink(home.path().join("outside.ts"), folder.join("link.ts"))?;
        let paths = |folder: Option<&Path>, entry: &Path| -> anyhow::Result<Vec<String>> {
            Ok(read_files(entry, folder)?.into_iter().map(|file| file.path).collect())
        };
        assert_eq!(paths(Some(&folder), &folder.join("index.ts"))?, ["index.ts", "lib/a.ts", "d.json", "b.ts"]);
        // What is one file among others has no data of its own.
        assert_eq!(paths(None, &folder.join("index.ts"))?, ["index.ts", "lib/a.ts", "b.ts"]);
        assert!(paths(None, &folder.join("missing.ts")).is_err());
        Ok(())
    }

    /// Not told by how long it takes, but by what is looked for: at the end of the names there is an error.
    #[test]
    fn names_are_looked_for_once_and_not_without_end() -> anyhow::Result<()> {
        let home = tempfile::tempdir()?;
        let entry = home.path().join("it.ts");
        let paths = |text: String| {
            std::fs::write(&entry, text)?;
            read_files(&entry, None).map(|files| files.len())
        };
        assert_eq!(paths("// from './nope'\n".repeat(100_000))?, 1);
        let many = |most: usize| (0..most).map(|number| format!("// from './n{number}'\n")).collect::<String>();
        assert_eq!(paths(many(MAX_NAMES))?, 1);
        let said = paths(many(MAX_NAMES + 1)).map_err(|error| error.to_string());
        assert!(said.is_err_and(|said| said.contains("2000 files to import")));
        Ok(())
    }
}
