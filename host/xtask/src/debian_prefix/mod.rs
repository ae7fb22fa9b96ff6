//! Compilers from Debian packages, unpacked into private directories.
//!
//! For machines that reach a Debian mirror but not rustup's server, or have no C compiler that knows wasm. Nothing of the
//! system changes and no root is needed: apt runs with its own state directory, packages are downloaded but never
//! installed, and the programs run through the dynamic loader of their own prefix, so that its newer C library does not
//! matter to the machine.
//!
//! Limits: Linux with apt and dpkg, on an architecture for which Debian builds the compiler. Build scripts and procedural
//! macros are linked by the machine's own `cc`.

pub(crate) mod apt;
mod closure;
mod unpack;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::apt_sources;
use crate::process::{self, step};
use apt::{Apt, Kind};
use closure::closure;
use unpack::unpack;

/// The suite that has a recent rustc with the std of wasm32-wasip2.
const SUITE: &str = "forky";
/// What has to be on the machine.
const APT_TOOLS: [&str; 4] = ["apt-get", "apt-cache", "apt-config", "dpkg"];
/// Left in a complete prefix; says what was resolved.
const STAMP: &str = "atoll-prefix.json";

/// What a prefix holds.
pub(crate) struct Recipe {
    /// What it is for, in messages.
    pub(crate) what: &'static str,
    /// A part of the prefix's name. With another content it has to be another one.
    pub(crate) name: &'static str,
    /// The packages; everything else follows from their dependencies.
    pub(crate) roots: &'static [&'static str],
    /// Dependencies that are left out, because the machine has them or nobody uses them. One that ends in `-` stands for
    /// all that begin so.
    pub(crate) left_out: &'static [&'static str],
    /// Parts of the packages that are never read.
    pub(crate) unused: &'static [&'static str],
    /// The programs, relative to the prefix, and the options that each is always given. Each gets a script that runs it. In
    /// an option, `$prefix` stands for where the prefix is, `$home` for the directory whose `bin` holds the program, and a
    /// `*` at the end for the one name there is in that place.
    pub(crate) programs: &'static [(&'static str, &'static [&'static str])],
    /// About how much is fetched.
    pub(crate) megabytes: u32,
}

/// A complete prefix.
#[derive(Debug)]
pub(crate) struct Prefix {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// One line about what it holds.
    pub(crate) description: String,
}

impl Prefix {
    /// The script that runs one of the recipe's programs, by the program's name.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.path.join(script(name))
    }
}

fn script(name: &str) -> String {
    format!("{name}.sh")
}

/// What a prefix was made from.
#[derive(Debug, Serialize, Deserialize)]
struct Stamp {
    suite: String,
    mirror: String,
    /// What the first program says of its version. In older prefixes, which hold a rustc, under that name.
    #[serde(alias = "rustc")]
    version: String,
    /// The prefix's dynamic loader, relative to the prefix.
    loader: PathBuf,
    /// Package to version.
    packages: BTreeMap<String, String>,
}

/// The prefix of a recipe, if an earlier [`ensure`] has built it.
///
/// # Errors
/// There is no cache directory, or dpkg does not run.
pub(crate) fn existing(recipe: &Recipe, variant: &str) -> Result<Option<Prefix>> {
    if process::find_program("dpkg").is_none() {
        return Ok(None);
    }
    Ok(open(&location(&home()?, recipe, &architecture()?, variant)))
}

/// Where prefixes live.
fn home() -> Result<PathBuf> {
    Ok(process::cache_dir()?.join("guest-toolchain"))
}

/// The name says what a prefix is good for, so that another need gets another prefix.
fn location(home: &Path, recipe: &Recipe, architecture: &str, variant: &str) -> PathBuf {
    home.join(format!("{SUITE}-{architecture}-{}{variant}-r1", recipe.name))
}

/// Debian's name for this machine's architecture.
fn architecture() -> Result<String> {
    Ok(process::output(Command::new("dpkg").arg("--print-architecture"))?.trim().to_owned())
}

/// Returns the prefix of a recipe, building it first when it is not there. `variant` is a part of its name; `check` looks
/// at what the first program says of its version, and at the unpacked prefix, and gives a reason against it.
///
/// Several processes may call this at once: a file lock lets one build, and the others find its result. A prefix
/// appears by a rename, so one that exists is complete.
///
/// # Errors
/// The machine has no apt or no Debian mirror, the mirror is out of reach, or what it has does not do.
pub(crate) fn ensure(
    recipe: &Recipe,
    variant: &str,
    check: &dyn Fn(&str, &Path) -> Result<(), String>,
) -> Result<Prefix> {
    for tool in APT_TOOLS {
        if process::find_program(tool).is_none() {
            bail!("this machine has no {tool}");
        }
    }
    let architecture = architecture()?;
    let home = home()?;
    fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
    let prefix = location(&home, recipe, &architecture, variant);
    let lock_path = home.join("lock");
    let lock = File::create(&lock_path).with_context(|| format!("cannot open {}", lock_path.display()))?;
    lock.lock().with_context(|| format!("cannot lock {}", lock_path.display()))?;
    if let Some(found) = open(&prefix) {
        return Ok(found);
    }
    remove_leftovers(&home)?;
    let building = tempfile::Builder::new()
        .prefix("building-")
        .tempdir_in(&home)
        .with_context(|| format!("cannot make a directory in {}", home.display()))?;
    build(recipe, building.path(), &prefix, &architecture, check)?;
    if prefix.exists() {
        // No readable stamp, else it would have been taken above.
        fs::remove_dir_all(&prefix).with_context(|| format!("cannot remove the damaged {}", prefix.display()))?;
    }
    fs::rename(building.path().join("prefix"), &prefix)
        .with_context(|| format!("cannot move the finished prefix to {}", prefix.display()))?;
    open(&prefix).with_context(|| format!("{} is incomplete right after it was built", prefix.display()))
}

/// Removes what a killed process left behind. Only under the lock, where nobody else is building.
fn remove_leftovers(home: &Path) -> Result<()> {
    for entry in fs::read_dir(home)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("building-") {
            fs::remove_dir_all(entry.path()).with_context(|| format!("cannot remove {}", entry.path().display()))?;
        }
    }
    Ok(())
}

/// The prefix at this path; `None` when there is none, or only a damaged one.
fn open(prefix: &Path) -> Option<Prefix> {
    let text = fs::read_to_string(prefix.join(STAMP)).ok()?;
    let stamp: Stamp = serde_json::from_str(&text).ok()?;
    let version = stamp.version.lines().next().unwrap_or_default();
    let description = format!("{version} from Debian {} in {}", stamp.suite, prefix.display());
    Some(Prefix { path: prefix.to_owned(), description })
}

/// Builds the prefix in `work/prefix`, for use at `destination`.
fn build(
    recipe: &Recipe,
    work: &Path,
    destination: &Path,
    architecture: &str,
    check: &dyn Fn(&str, &Path) -> Result<(), String>,
) -> Result<()> {
    let mirrors = apt_sources::mirrors()?;
    let mut reasons = Vec::new();
    for mirror in &mirrors {
        let Recipe { what, megabytes, .. } = recipe;
        step(&format!("fetching {what} from {mirror} {SUITE} (once per machine, about {megabytes} MB)"));
        let apt = Apt::new(work, mirror, SUITE, Kind::Binary, architecture)?;
        if let Err(error) = apt.update() {
            reasons.push(format!("{mirror}: {error:#}"));
            continue;
        }
        let version = build_from(recipe, &apt, work, destination, mirror)?;
        return check(&version, &work.join("prefix")).map_err(|reason| anyhow::anyhow!("{mirror} {SUITE}: {reason}"));
    }
    bail!("no Debian mirror of this machine answers for {SUITE}: {}", reasons.join("; "))
}

/// What the first program says of its version.
fn build_from(recipe: &Recipe, apt: &Apt, work: &Path, destination: &Path, mirror: &str) -> Result<String> {
    let wanted = closure(&apt.depends(recipe.roots)?, recipe.roots, recipe.left_out);
    let downloads = work.join("debs");
    fs::create_dir(&downloads)?;
    step(&format!("downloading {} packages", wanted.len()));
    apt.download(&wanted, &downloads)?;
    step("unpacking");
    let prefix = work.join("prefix");
    fs::create_dir(&prefix)?;
    let packages = unpack(&downloads, &prefix)?;
    for directory in recipe.unused {
        let directory = prefix.join(directory);
        if directory.exists() {
            fs::remove_dir_all(&directory).with_context(|| format!("cannot remove {}", directory.display()))?;
        }
    }

    let loader = find_loader(&prefix)?;
    let mut versions = Vec::new();
    for (program, options) in recipe.programs {
        let here = launcher(&prefix, &prefix, &loader, program, options)?;
        let version = process::output(here.command().arg("--version"))
            .with_context(|| format!("{program} of the unpacked packages does not run"))?;
        versions.push(version.trim().to_owned());
        let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
        launcher(&prefix, destination, &loader, program, options)?.write(&prefix.join(script(&name)))?;
    }
    let version = versions.into_iter().next().context("the recipe has no program")?;
    let stamp =
        Stamp { suite: SUITE.to_owned(), mirror: mirror.to_owned(), version: version.clone(), loader, packages };
    fs::write(prefix.join(STAMP), serde_json::to_string_pretty(&stamp)?).context("cannot write the prefix's stamp")?;
    Ok(version)
}

/// The prefix's dynamic loader, relative to the prefix; its libraries are beside it.
fn find_loader(prefix: &Path) -> Result<PathBuf> {
    let libraries = prefix.join("usr/lib");
    for directory in fs::read_dir(&libraries).with_context(|| format!("{} is missing", libraries.display()))? {
        let directory = directory?.path();
        // The other directories of usr/lib are not of interest, nor are the plain files.
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with("ld-linux") || name.starts_with("ld64.so") {
                return Ok(path.strip_prefix(prefix)?.to_path_buf());
            }
        }
    }
    bail!("the unpacked packages hold no dynamic loader (libc6)")
}

/// A program of the prefix with all that it takes to run it: every word of its command.
struct Launcher(Vec<String>);

/// How to run `program` of the prefix that is in `now` and will be at `then`.
fn launcher(now: &Path, then: &Path, loader: &Path, program: &str, options: &[&str]) -> Result<Launcher> {
    // What Debian calls by a plain name is in a directory with its version, and its libraries and headers are near.
    let real = now.join(program).canonicalize().with_context(|| format!("the packages hold no {program}"))?;
    let now = now.canonicalize()?;
    let real = then.join(real.strip_prefix(&now).context("a program of the packages is outside of them")?);
    let home = real.parent().and_then(Path::parent).unwrap_or(then);
    let loader = then.join(loader);
    let libraries = loader.parent().unwrap_or(then);
    let text = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.context("the cache directory's name is not UTF-8: set XDG_CACHE_HOME to one that is")
    };
    let libraries = format!("{}:{}", text(libraries)?, text(&home.join("lib"))?);
    let mut words = vec![text(&loader)?, "--library-path".to_owned(), libraries];
    words.extend(["--argv0".to_owned(), text(&real)?, text(&real)?]);
    for option in options {
        let option = option.replace("$prefix", &text(then)?).replace("$home", &text(home)?);
        words.push(match option.strip_suffix("/*") {
            Some(directory) => {
                let there = now.join(Path::new(directory).strip_prefix(then)?);
                format!("{directory}/{}", only_name(&there)?)
            }
            None => option,
        });
    }
    Ok(Launcher(words))
}

/// The one name in a directory.
fn only_name(directory: &Path) -> Result<String> {
    let names: Vec<_> = fs::read_dir(directory)
        .with_context(|| format!("the packages hold no {}", directory.display()))?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    match &names[..] {
        [name] => Ok(name.clone()),
        _ => bail!("{} should hold one name, and holds {}", directory.display(), names.join(", ")),
    }
}

impl Launcher {
    fn command(&self) -> Command {
        let mut words = self.0.iter();
        let mut command = Command::new(words.next().map_or("false", String::as_str));
        command.args(words);
        command
    }

    /// Writes a script that runs it. It holds absolute paths: a shell that looks for its own place would start another
    /// process for each of the hundreds of calls.
    fn write(&self, script: &Path) -> Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        let words: Vec<String> = self.0.iter().map(|word| quote(word)).collect();
        fs::write(script, format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" ")))
            .with_context(|| format!("cannot write {}", script.display()))?;
        fs::set_permissions(script, fs::Permissions::from_mode(0o755))?;
        Ok(())
    }
}

/// A word for a POSIX shell.
pub(crate) fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The first `major.minor` in a text such as `rustc 1.97.1 (…)`.
pub(crate) fn version(text: &str) -> Option<(u32, u32)> {
    text.split_whitespace().find_map(|word| {
        let mut numbers = word.split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("rustc 1.97.1 (8bab26f4f 2026-07-14)"), Some((1, 97)));
        assert!(version("1.95") > version("1.9"));
        assert_eq!(quote("it's"), r"'it'\''s'");
    }

    #[test]
    fn damaged_prefix_is_not_taken() {
        let directory = tempfile::tempdir().unwrap();
        assert!(open(directory.path()).is_none());
        fs::write(directory.path().join(STAMP), "{").unwrap();
        assert!(open(directory.path()).is_none());
    }

    #[test]
    fn a_program_is_run_from_where_it_really_is_and_will_be() {
        let directory = tempfile::tempdir().unwrap();
        let now = directory.path();
        fs::create_dir_all(now.join("usr/lib/llvm-99/bin")).unwrap();
        fs::create_dir_all(now.join("usr/bin")).unwrap();
        fs::write(now.join("usr/lib/llvm-99/bin/clang"), "").unwrap();
        std::os::unix::fs::symlink("../lib/llvm-99/bin/clang", now.join("usr/bin/clang")).unwrap();
        let loader = Path::new("usr/lib/x/ld-linux.so.2");
        fs::create_dir_all(now.join("usr/lib/llvm-99/lib/clang/99")).unwrap();
        let options = ["-x", "$home/lib/clang/*", "$prefix/y"];
        let found = launcher(now, Path::new("/p"), loader, "usr/bin/clang", &options).unwrap();
        let clang = "/p/usr/lib/llvm-99/bin/clang";
        let expected = [
            "/p/usr/lib/x/ld-linux.so.2",
            "--library-path",
            "/p/usr/lib/x:/p/usr/lib/llvm-99/lib",
            "--argv0",
            clang,
            clang,
            "-x",
            "/p/usr/lib/llvm-99/lib/clang/99",
            "/p/y",
        ];
        assert_eq!(found.0, expected);
        assert!(launcher(now, Path::new("/p"), loader, "usr/bin/none", &[]).is_err());
    }
}
