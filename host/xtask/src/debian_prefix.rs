//! A guest compiler from Debian packages, unpacked into a private directory.
//!
//! For machines that reach a Debian mirror but not rustup's server. Nothing of the system changes and no root is
//! needed: apt runs with its own state directory, packages are downloaded but never installed, and the compiler runs
//! through the dynamic loader of its own prefix, so that its newer C library does not matter to the machine.
//!
//! Limits: Linux with apt and dpkg, on an architecture for which Debian builds rustc. Build scripts and procedural
//! macros are linked by the machine's own `cc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::apt_sources;
use crate::process::{self, step};

/// The suite that has a recent rustc with the std of wasm32-wasip2.
const SUITE: &str = "forky";
/// Raise this when the content of the prefix changes; a new number makes a new prefix.
const RECIPE: u32 = 1;
/// What the compiler of guests consists of; everything else follows from their dependencies.
const ROOTS: [&str; 3] = ["rustc", "libstd-rust-dev-wasm32", "wasi-libc"];
/// Dependencies that the machine itself provides: a C compiler and linker for build scripts.
const FROM_THE_MACHINE: [&str; 5] = ["gcc", "cc", "binutils", "libc6-dev", "libc-dev"];
/// What has to be on the machine.
const APT_TOOLS: [&str; 4] = ["apt-get", "apt-cache", "apt-config", "dpkg"];
/// The keyring that knows the keys of coming releases too.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Left in a complete prefix; says what was resolved.
const STAMP: &str = "atoll-prefix.json";
/// Parts of the packages that a guest build never reads (a third of the size).
const UNUSED: [&str; 5] = [
    "usr/lib/rustlib/wasm32-unknown-unknown",
    "usr/lib/rustlib/wasm32-wasip1",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
];

/// A complete prefix.
#[derive(Debug)]
pub(crate) struct Prefix {
    /// A script that runs the prefix's rustc.
    pub(crate) rustc: PathBuf,
    /// The headers of wasi-libc for wasm32-wasip2.
    pub(crate) include: PathBuf,
    /// One line about what it holds.
    pub(crate) description: String,
}

/// What a prefix was made from.
#[derive(Debug, Serialize, Deserialize)]
struct Stamp {
    suite: String,
    mirror: String,
    /// `rustc --version` of the prefix.
    rustc: String,
    /// The prefix's dynamic loader, relative to the prefix.
    loader: PathBuf,
    /// Package to version.
    packages: BTreeMap<String, String>,
}

/// The prefix whose rustc is at least `minimum` (`major.minor`), if an earlier [`ensure`] has built it.
///
/// # Errors
/// There is no cache directory, or dpkg does not run.
pub(crate) fn existing(minimum: &str) -> Result<Option<Prefix>> {
    if process::find_program("dpkg").is_none() {
        return Ok(None);
    }
    Ok(open(&location(&home()?, &architecture()?, minimum)))
}

/// Where prefixes live.
fn home() -> Result<PathBuf> {
    Ok(process::cache_dir()?.join("guest-toolchain"))
}

/// The name says what a prefix is good for, so that another pinned toolchain gets another prefix.
fn location(home: &Path, architecture: &str, minimum: &str) -> PathBuf {
    home.join(format!("{SUITE}-{architecture}-rust{minimum}-r{RECIPE}"))
}

/// Debian's name for this machine's architecture.
fn architecture() -> Result<String> {
    Ok(process::output(Command::new("dpkg").arg("--print-architecture"))?.trim().to_owned())
}

/// Returns the prefix whose rustc is at least `minimum` (`major.minor`), building it first when it is not there.
///
/// Several processes may call this at once: a file lock lets one build, and the others find its result. A prefix
/// appears by a rename, so one that exists is complete.
///
/// # Errors
/// The machine has no apt or no Debian mirror, the mirror is out of reach, or its rustc is older than `minimum`.
pub(crate) fn ensure(minimum: &str) -> Result<Prefix> {
    for tool in APT_TOOLS {
        if process::find_program(tool).is_none() {
            bail!("this machine has no {tool}");
        }
    }
    let architecture = architecture()?;
    let home = home()?;
    fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
    let prefix = location(&home, &architecture, minimum);
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
    build(building.path(), &prefix, &architecture, minimum)?;
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
    let rustc = prefix.join("rustc.sh");
    rustc.is_file().then(|| Prefix {
        rustc,
        include: prefix.join("usr/include/wasm32-wasip2"),
        description: format!("{} from Debian {} in {}", stamp.rustc, stamp.suite, prefix.display()),
    })
}

/// Builds the prefix in `work/prefix`, for use at `destination`.
fn build(work: &Path, destination: &Path, architecture: &str, minimum: &str) -> Result<()> {
    let mirrors = apt_sources::mirrors()?;
    let mut reasons = Vec::new();
    for mirror in &mirrors {
        step(&format!("fetching a guest compiler from {mirror} {SUITE} (once per machine, about 200 MB)"));
        let apt = Apt::new(work, mirror, architecture)?;
        if let Err(error) = apt.update() {
            reasons.push(format!("{mirror}: {error:#}"));
            continue;
        }
        return build_from(&apt, work, destination, mirror, minimum);
    }
    bail!("no Debian mirror of this machine answers for {SUITE}: {}", reasons.join("; "))
}

fn build_from(apt: &Apt, work: &Path, destination: &Path, mirror: &str, minimum: &str) -> Result<()> {
    let wanted = closure(&apt.depends()?, &ROOTS, &FROM_THE_MACHINE);
    let downloads = work.join("debs");
    fs::create_dir(&downloads)?;
    step(&format!("downloading {} packages", wanted.len()));
    apt.download(&wanted, &downloads)?;
    step("unpacking");
    let prefix = work.join("prefix");
    fs::create_dir(&prefix)?;
    let packages = unpack(&downloads, &prefix)?;
    for directory in UNUSED {
        let directory = prefix.join(directory);
        if directory.exists() {
            fs::remove_dir_all(&directory).with_context(|| format!("cannot remove {}", directory.display()))?;
        }
    }

    let loader = find_loader(&prefix)?;
    let rustc = process::output(run_rustc(&prefix, &loader).arg("--version"))
        .context("the rustc of the unpacked packages does not run")?
        .trim()
        .to_owned();
    if version(&rustc) < version(minimum) {
        bail!("{mirror} {SUITE} has {rustc}, older than the {minimum} this workspace needs");
    }
    if !crate::guest_toolchain::has_std(&prefix.join("usr/lib/rustlib/wasm32-wasip2/lib")) {
        bail!("the packages of {mirror} {SUITE} hold no std for wasm32-wasip2 (libstd-rust-dev-wasm32)");
    }
    write_script(&prefix.join("rustc.sh"), destination, &loader)?;
    let stamp = Stamp { suite: SUITE.to_owned(), mirror: mirror.to_owned(), rustc, loader, packages };
    fs::write(prefix.join(STAMP), serde_json::to_string_pretty(&stamp)?).context("cannot write the prefix's stamp")?;
    Ok(())
}

/// An apt that shares nothing with the system's but its settings for reaching servers.
struct Apt {
    config: PathBuf,
}

impl Apt {
    fn new(work: &Path, mirror: &str, architecture: &str) -> Result<Self> {
        let home = work.join("apt");
        for directory in ["state/lists/partial", "cache/archives/partial", "etc"] {
            fs::create_dir_all(home.join(directory))?;
        }
        fs::write(home.join("status"), "")?;
        let signed_by = if Path::new(KEYRING).is_file() { format!("[signed-by={KEYRING}] ") } else { String::new() };
        fs::write(home.join("sources.list"), format!("deb {signed_by}{mirror} {SUITE} main\n"))?;
        let system = process::output(Command::new("apt-config").arg("dump"))?;
        let config = home.join("apt.conf");
        fs::write(&config, apt_conf(&home, architecture, &system))?;
        Ok(Self { config })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", &self.config).env("LC_ALL", "C");
        command
    }

    fn update(&self) -> Result<()> {
        process::output(self.command("apt-get").args(["-q", "-o", "APT::Update::Error-Mode=any", "update"])).map(drop)
    }

    fn depends(&self) -> Result<Dependencies> {
        let listing = process::output(
            self.command("apt-cache")
                .args(["depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts"])
                .args(["--no-breaks", "--no-replaces", "--no-enhances"])
                .args(ROOTS),
        )
        .context("the mirror does not have the packages of a guest compiler")?;
        Ok(parse_depends(&listing))
    }

    fn download(&self, packages: &BTreeSet<String>, directory: &Path) -> Result<()> {
        process::output(self.command("apt-get").args(["-q", "download"]).args(packages).current_dir(directory))
            .map(drop)
    }
}

/// The private configuration: own directories, no hooks, and the system's `Acquire` settings (proxies, checks of
/// dates), which say how this machine reaches its servers. Index targets are left to apt's defaults: others would be
/// fetched for nothing.
fn apt_conf(home: &Path, architecture: &str, system_dump: &str) -> String {
    let home = home.display();
    let mut text = format!(
        "Dir::State \"{home}/state\";\nDir::State::status \"{home}/status\";\nDir::Cache \"{home}/cache\";\n\
         Dir::Etc::sourcelist \"{home}/sources.list\";\nDir::Etc::sourceparts \"/dev/null\";\n\
         Dir::Etc::main \"/dev/null\";\nDir::Etc::parts \"/dev/null\";\nDir::Etc::preferences \"/dev/null\";\n\
         Dir::Etc::preferencesparts \"/dev/null\";\nAPT::Sandbox::User \"root\";\n\
         APT::Architecture \"{architecture}\";\nAPT::Architectures {{ \"{architecture}\"; }};\n"
    );
    for line in system_dump.lines() {
        let setting = line.starts_with("Acquire::")
            && !line.starts_with("Acquire::IndexTargets")
            && !line.starts_with("Acquire::Languages")
            && !line.starts_with("Acquire::CompressionTypes");
        if setting {
            text.push_str(line);
            text.push('\n');
        }
    }
    text.push_str("Acquire::Languages \"none\";\n");
    text
}

/// What each package needs: one entry for each dependency, and in it the packages that satisfy it, preferred first.
type Dependencies = BTreeMap<String, Vec<Vec<String>>>;

/// Reads the output of `apt-cache depends --recurse`.
fn parse_depends(listing: &str) -> Dependencies {
    let mut all = Dependencies::new();
    let mut current = String::new();
    // Whether the line before was one of several alternatives (`|Depends`), so that this one belongs to it.
    let mut open_alternative = false;
    for line in listing.lines() {
        if line.trim().is_empty() {
            continue;
        }
        if !line.starts_with([' ', '|']) {
            line.trim().clone_into(&mut current);
            all.entry(current.clone()).or_default();
            open_alternative = false;
            continue;
        }
        let groups = all.entry(current.clone()).or_default();
        let text = line.trim_start();
        if let Some((kind, name)) = text.split_once(": ") {
            let alternative = kind.starts_with('|');
            let hard = matches!(kind.trim_start_matches('|'), "Depends" | "PreDepends");
            if hard && open_alternative {
                if let Some(group) = groups.last_mut() {
                    group.push(name.trim().to_owned());
                }
            } else if hard {
                groups.push(vec![name.trim().to_owned()]);
            }
            open_alternative = alternative;
        } else if let Some(group) = groups.last_mut() {
            // An indented bare name: provides the virtual package of the line above.
            group.push(text.trim().to_owned());
        }
    }
    all
}

/// The packages to fetch: the roots and what they need, without what the machine provides.
fn closure(all: &Dependencies, roots: &[&str], provided: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<String> = roots.iter().map(|&root| root.to_owned()).collect();
    while let Some(package) = open.pop() {
        if !found.insert(package.clone()) {
            continue;
        }
        for group in all.get(&package).into_iter().flatten() {
            let is_provided = group.iter().any(|name| provided.contains(&bare(name)));
            // A name in angle brackets is virtual; the real ones follow it.
            if let Some(choice) = group.iter().find(|name| !name.starts_with('<'))
                && !is_provided
            {
                open.push(choice.clone());
            }
        }
    }
    found
}

fn bare(name: &str) -> &str {
    name.trim_start_matches('<').trim_end_matches('>')
}

/// Unpacks every package of a directory and returns their versions.
fn unpack(downloads: &Path, prefix: &Path) -> Result<BTreeMap<String, String>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(downloads)? {
        files.push(entry?.path());
    }
    files.sort();
    let packages = files
        .iter()
        .filter_map(|file| parse_deb_name(&file.file_name()?.to_string_lossy()))
        .collect::<BTreeMap<_, _>>();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || -> Result<()> {
        while let Some(file) = files.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            process::output(Command::new("dpkg").arg("-x").arg(file).arg(prefix))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for handle in handles {
            handle.join().map_err(|_| anyhow::anyhow!("a thread that unpacks packages ended early"))??;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(packages)
}

/// `name_version_arch.deb` to name and version.
fn parse_deb_name(file: &str) -> Option<(String, String)> {
    let mut parts = file.strip_suffix(".deb")?.split('_');
    Some((parts.next()?.to_owned(), parts.next()?.replace("%3a", ":")))
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

fn run_rustc(prefix: &Path, loader: &Path) -> Command {
    let loader = prefix.join(loader);
    let mut command = Command::new(&loader);
    command.arg("--library-path").arg(loader.parent().unwrap_or(prefix)).arg(prefix.join("usr/bin/rustc"));
    command
}

/// Writes the script that cargo takes for rustc. It holds absolute paths: a shell that looks for its own place would
/// start another process for each of the hundreds of calls.
fn write_script(script: &Path, prefix: &Path, loader: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut text = "#!/bin/sh\nexec".to_owned();
    let command = run_rustc(prefix, loader);
    for part in std::iter::once(command.get_program()).chain(command.get_args()) {
        let part =
            part.to_str().context("the cache directory's name is not UTF-8: set XDG_CACHE_HOME to one that is")?;
        text.push(' ');
        text.push_str(&quote(part));
    }
    text.push_str(" \"$@\"\n");
    fs::write(script, text).with_context(|| format!("cannot write {}", script.display()))?;
    fs::set_permissions(script, fs::Permissions::from_mode(0o755))?;
    Ok(())
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

    const LISTING: &str = "\
rustc
  Depends: libc6
  Depends: libstd-rust-dev
  Depends: gcc
  Depends: <libc-dev>
    libc6-dev
  Depends: binutils
libstd-rust-dev-wasm32
libc6
  PreDepends: libgcc-s1
  Depends: <awk>
    mawk
    gawk
libstd-rust-dev
  Depends: libstd-rust-1.99
gcc
  Depends: gcc-99
libstd-rust-1.99
 |Depends: libllvm99
  Depends: libllvm98
  Recommends: llvm-docs
libllvm99
  Depends: libicu99
libllvm98
libgcc-s1
  Depends: libc6
libicu99
";

    #[test]
    fn depends_listing_gives_alternatives_and_providers() {
        let all = parse_depends(LISTING);
        assert_eq!(all["libstd-rust-1.99"], [vec!["libllvm99", "libllvm98"]]);
        assert_eq!(all["rustc"][3], ["<libc-dev>", "libc6-dev"]);
        assert_eq!(all["libc6"][1], ["<awk>", "mawk", "gawk"]);
        assert!(all["libstd-rust-dev-wasm32"].is_empty());
    }

    #[test]
    fn closure_follows_versions_and_stops_at_what_the_machine_has() {
        let found = closure(&parse_depends(LISTING), &["rustc", "libstd-rust-dev-wasm32"], &FROM_THE_MACHINE);
        let expected = [
            "libc6",
            "libgcc-s1",
            "libicu99",
            "libllvm99",
            "libstd-rust-1.99",
            "libstd-rust-dev",
            "libstd-rust-dev-wasm32",
            "mawk",
            "rustc",
        ];
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn private_configuration_keeps_how_to_reach_servers_and_drops_hooks() {
        let dump = "Acquire::http::Proxy \"http://p:1\";\nAcquire::Check-Date \"false\";\n\
                    Acquire::IndexTargets::deb::DEP-11 \"\";\nAPT::Update::Post-Invoke:: \"rm -f x\";\nDir \"/\";\n";
        let text = apt_conf(Path::new("/private"), "arm64", dump);
        assert!(text.contains("Acquire::http::Proxy \"http://p:1\";"));
        assert!(text.contains("Acquire::Check-Date \"false\";"));
        assert!(text.contains("APT::Architecture \"arm64\";"));
        assert!(!text.contains("DEP-11") && !text.contains("Post-Invoke") && !text.contains("Dir \"/\""));
    }

    #[test]
    fn versions_and_names_of_files() {
        assert_eq!(version("rustc 1.97.1 (8bab26f4f 2026-07-14)"), Some((1, 97)));
        assert!(version("1.95") > version("1.9"));
        assert_eq!(
            parse_deb_name("zlib1g_1%3a1.3.dfsg_amd64.deb"),
            Some(("zlib1g".to_owned(), "1:1.3.dfsg".to_owned()))
        );
        assert_eq!(parse_deb_name("notes.txt"), None);
        assert_eq!(quote("it's"), r"'it'\''s'");
    }

    #[test]
    fn damaged_prefix_is_not_taken() {
        let directory = tempfile::tempdir().unwrap();
        assert!(open(directory.path()).is_none());
        fs::write(directory.path().join(STAMP), "{").unwrap();
        assert!(open(directory.path()).is_none());
    }
}
