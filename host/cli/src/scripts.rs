//! Scripts as they lie in folders: which files belong to one, and what it says of itself. Nothing is run here.
//!
//! A script names its other files in its own text, and nobody has granted it anything when they are read. So nothing may be
//! read here that is not below the script's folder, or that is no program text.

use std::{
    collections::{HashSet, VecDeque},
    path::{Component, Path, PathBuf},
};

use anyhow::Context as _;
use atoll_caps::{Effective, Grants, Manifest, Pin, PluginName, Wants, read_small_file};
use atoll_engine::{ScriptPlugin, SourceFile, script_manifest, script_pin};
use atoll_table::{Error, Origin};

use crate::builtins;

/// What the names of scripts end in, the likelier first.
pub(crate) const EXTENSIONS: [&str; 5] = ["ts", "js", "mjs", "mts", "cts"];
/// The most files of one script.
const MAX_FILES: usize = 500;
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
}

/// Whether a file is a script by its name.
pub(crate) fn is_script(file: &Path) -> bool {
    let extension = file.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
        && !file.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".d.ts"))
}

/// The files that a folder of one script or of several begins with: what its `package.json` names, else `index.ts` or
/// `index.js`. None if it is no such folder.
///
/// # Errors
/// If its `package.json` can not be read, or names what is not there.
pub(crate) fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let package = folder.join("package.json");
    if let Some(text) = read_small_file(&package).with_context(|| format!("{} can not be read", package.display()))? {
        let json: serde_json::Value =
            serde_json::from_str(&text).with_context(|| format!("{} is not JSON", package.display()))?;
        let named = ["/atoll/extensions", "/pi/extensions"].iter().find_map(|key| json.pointer(key)?.as_array());
        let named = named.into_iter().flatten().filter_map(|name| name.as_str());
        let found: Vec<PathBuf> = named.flat_map(|name| named_entries(&folder.join(name))).collect();
        if let Some(missing) = found.iter().find(|file| !file.is_file()) {
            anyhow::bail!("{} names {}, which is not there", package.display(), missing.display());
        }
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(["index.ts", "index.js"]
        .map(|name| folder.join(name))
        .into_iter()
        .filter(|file| file.is_file())
        .take(1)
        .collect())
}

/// What a name in a `package.json` stands for: a file, or the scripts of a folder.
fn named_entries(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let index = ["index.ts", "index.js"].map(|name| path.join(name)).into_iter().find(|file| file.is_file());
    if let Some(index) = index {
        return vec![index];
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|file| file.is_file() && is_script(file)).collect();
    files.sort();
    files
}

/// That what is to be read as a component is none because it is a script, or a folder with one.
///
/// # Errors
/// `unavailable`, with what is done with scripts instead.
pub(crate) fn refuse(file: &Path) -> Result<(), Error> {
    let is_folder = file.is_dir() && entries(file).is_ok_and(|found| !found.is_empty());
    if !(is_script(file) && file.is_file() || is_folder) {
        return Ok(());
    }
    Err(Error::Unavailable(format!(
        "{} is a script, not a component: scripts are not installed; put its file or folder into ~/.atoll/extensions, or name it for one run with -e",
        file.display()
    )))
}

/// The folder that is a script's own, where its manifest is: that of an `index` with a `plugin.toml` beside it, and without a
/// manifest of its own name. Any other script is but one file among others.
pub(crate) fn own_folder(file: &Path) -> Option<&Path> {
    let folder = file.parent().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?;
    let is_index = file.file_stem().is_some_and(|stem| stem == "index");
    let is_own = is_index && folder.join("plugin.toml").is_file() && !file.with_extension("toml").exists();
    is_own.then_some(folder)
}

/// The name of a script that does not say its own: that of its file, or of its folder if the file is only its index.
///
/// # Errors
/// If that can not name a plugin.
pub(crate) fn name_of(file: &Path) -> anyhow::Result<PluginName> {
    let mut stem = file.file_stem().unwrap_or_default();
    if stem == "index" {
        stem = file.parent().and_then(Path::file_name).unwrap_or(stem);
    }
    let name = stem.to_string_lossy().to_lowercase().replace(['_', '.', ' '], "-");
    name.parse()
        .with_context(|| format!("`{name}` can not name a plugin; rename it, or give it a manifest with a name"))
}

impl Script {
    /// Reads the script that begins with `entry`, and whatever of its own files that imports. `folder` is the script's own
    /// folder; a script that is but one file among others has none. May block.
    ///
    /// # Errors
    /// If a file can not be read, if there are too many, or if the manifest is wrong.
    pub(crate) fn read(entry: &Path, folder: Option<&Path>, name: PluginName) -> anyhow::Result<Self> {
        let Some(engine) = builtins::script_engine() else {
            anyhow::bail!(Error::Unavailable("this program was built without an engine for scripts".to_owned()));
        };
        let files = read_files(entry, folder)?;
        let beside = match folder {
            Some(folder) => folder.join("plugin.toml"),
            None => entry.with_extension("toml"),
        };
        let text = read_small_file(&beside).with_context(|| format!("{} can not be read", beside.display()))?;
        let shown = beside.to_string_lossy();
        let beside = text.as_deref().map(|text| (&*shown, text));
        let first = files.first().map(|file| file.text.as_str()).unwrap_or_default();
        let (manifest, text) = script_manifest(beside, first, &entry.to_string_lossy(), name)?;
        let pin = script_pin(&files, text.as_deref(), engine)?;
        Ok(Self { file: entry.to_owned(), files, manifest, pin, place: None })
    }

    /// What it is granted. `None` if what was granted no longer counts, because its files have changed.
    pub(crate) fn granted(&self, grants: &Grants) -> Option<Wants> {
        grants.granted(&self.manifest.name, &self.pin)
    }

    /// What the sandbox loads, with what it may do.
    pub(crate) fn plugin(self, effective: Effective, origin: Origin) -> ScriptPlugin {
        let Self { file, files, manifest, pin, place } = self;
        let place = place.map_or_else(|| manifest.name.to_string(), |place| place.to_string_lossy().into_owned());
        let effective = effective.of_script(&place);
        ScriptPlugin { file, files, manifest, effective, pin, origin }
    }
}

/// A script's file, and those that it imports, and those that these import.
fn read_files(entry: &Path, folder: Option<&Path>) -> anyhow::Result<Vec<SourceFile>> {
    let base = entry.parent().unwrap_or(Path::new("."));
    let root = folder.unwrap_or(base);
    let root = root.canonicalize().with_context(|| format!("{} can not be read", root.display()))?;
    let mut waiting = VecDeque::from([PathBuf::from(entry.file_name().unwrap_or_default())]);
    let mut seen: HashSet<PathBuf> = waiting.iter().cloned().collect();
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

    #[test]
    fn a_folder_begins_with_its_index_or_what_its_package_names() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let folder = folder.path();
        assert!(entries(folder)?.is_empty());
        std::fs::write(folder.join("index.js"), "")?;
        assert_eq!(entries(folder)?, [folder.join("index.js")]);
        std::fs::write(folder.join("index.ts"), "")?;
        assert_eq!(entries(folder)?, [folder.join("index.ts")]);
        std::fs::write(folder.join("package.json"), r#"{"name":"x"}"#)?;
        assert_eq!(entries(folder)?, [folder.join("index.ts")]);
        std::fs::write(folder.join("package.json"), r#"{"pi":{"extensions":["./src/main.ts"]}}"#)?;
        assert!(entries(folder).is_err());
        std::fs::create_dir(folder.join("src"))?;
        std::fs::write(folder.join("src/main.ts"), "")?;
        assert_eq!(entries(folder)?, [folder.join("./src/main.ts")]);
        std::fs::write(folder.join("package.json"), r#"{"pi":{"extensions":["src"]}}"#)?;
        assert_eq!(entries(folder)?, [folder.join("src/main.ts")]);
        Ok(())
    }
}
