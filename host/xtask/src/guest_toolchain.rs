//! Which compiler builds the guests, and the environment it needs.
//!
//! Three sources, in this order: the std that rustup has already installed, one that rustup installs now, Debian's
//! packages in a private prefix ([`crate::debian_prefix`]).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::debian_prefix::{self, Recipe};
use crate::process::{self, step};
use crate::workspace::Workspace;

/// The target of every guest.
pub(crate) const TARGET: &str = "wasm32-wasip2";
/// How long rustup may try to reach its server.
const RUSTUP_LIMIT: Duration = Duration::from_secs(120);
/// Guests search text and parse JSON: memchr and regex are several times faster with vector instructions.
const RUSTFLAGS: &str = "-C target-feature=+simd128";

/// QuickJS leaves its bound on the stack out where `__wasi__` is defined, so that recursion in a script would end the instance
/// in place of throwing what the script can catch. Without the define its sources know the C library as one of glibc's kind,
/// which for what they use of it (`malloc_usable_size`) is true.
const QUICKJS_CFLAGS: &str = "-U__wasi__ -D__GLIBC__=2";

/// The headers of wasi-libc in a prefix.
const INCLUDE: &str = "usr/include/wasm32-wasip2";

/// The compiler of guests in Rust, where rustup has none.
const RUST: Recipe = Recipe {
    what: "a compiler of guests",
    name: "rust",
    roots: &["rustc", "libstd-rust-dev-wasm32", "wasi-libc"],
    // A C compiler and linker for build scripts are the machine's.
    left_out: &["gcc", "cc", "binutils", "libc6-dev", "libc-dev"],
    unused: &[
        "usr/lib/rustlib/wasm32-unknown-unknown",
        "usr/lib/rustlib/wasm32-wasip1",
        "usr/share/doc",
        "usr/share/man",
        "usr/share/locale",
    ],
    programs: &[("usr/bin/rustc", &[])],
    megabytes: 200,
};

/// The compiler of C in guests, where the machine has none that knows wasm.
const C: Recipe = Recipe {
    what: "a C compiler of guests",
    name: "c",
    roots: &["clang", "llvm", "wasi-libc"],
    // Libraries for programs of this machine, which guests are not, and what only other programs of LLVM need.
    left_out: &[
        "binutils",
        "libc6-dev",
        "libc-dev",
        "libstdc++-",
        "libgcc-",
        "libobjc-",
        "libcurl4t64",
        "libpfm4",
        "python3",
    ],
    unused: &["usr/share/doc", "usr/share/man", "usr/share/locale"],
    programs: &[("usr/bin/clang", &["-resource-dir", "$home/lib/clang/*"]), ("usr/bin/llvm-ar", &[])],
    megabytes: 80,
};

/// Where the compiler came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// rustup had the target's std.
    Rustup,
    /// rustup installed the target's std just now.
    RustupAdded,
    /// Debian's packages in a private prefix.
    Debian,
}

/// Everything that `cargo build --target wasm32-wasip2` needs.
#[derive(Debug)]
pub(crate) struct GuestToolchain {
    /// Where it came from.
    pub(crate) kind: Kind,
    /// The compiler itself.
    pub(crate) rustc: PathBuf,
    /// Set these for the build; nothing else is needed.
    pub(crate) env: Vec<(String, String)>,
    /// One line for people: what was chosen and why.
    pub(crate) why: String,
}

impl GuestToolchain {
    /// Finds a compiler for the guests, fetching one when there is none. Idempotent, and cheap once there is one.
    ///
    /// # Errors
    /// None of the three sources has one; the error lists why each did not, and what to install.
    pub(crate) fn ensure(workspace: &Workspace) -> Result<Self> {
        let active = Active::read(&workspace.root)?;
        if has_std(&active.std_dir()) {
            return rustup(
                workspace,
                &active,
                Kind::Rustup,
                format!("rustup has the std of {TARGET} for {}", active.version),
            );
        }
        let minimum = debian_prefix::version(&active.version)
            .with_context(|| format!("cannot read the version in `{}`", active.version))?;
        let variant = format!("{}.{}", minimum.0, minimum.1);
        // A prefix is there because rustup could not help before; asking its server again would delay every command.
        if let Some(prefix) = debian_prefix::existing(&RUST, &variant)? {
            return debian(
                workspace,
                &active,
                &prefix,
                "rustup has no std for the target, and this prefix is there already",
            );
        }
        let not_rustup = match add_target(workspace)? {
            Ok(()) if has_std(&active.std_dir()) => {
                return rustup(workspace, &active, Kind::RustupAdded, format!("rustup installed the std of {TARGET}"));
            }
            Ok(()) => format!("rustup installed {TARGET}, but not into {}", active.sysroot.display()),
            Err(reason) => reason,
        };
        let check = |version: &str, prefix: &Path| {
            if debian_prefix::version(version) < Some(minimum) {
                return Err(format!("{version} is older than the {variant} this workspace needs"));
            }
            if !has_std(&prefix.join("usr/lib/rustlib").join(TARGET).join("lib")) {
                return Err(format!("the packages hold no std for {TARGET} (libstd-rust-dev-wasm32)"));
            }
            Ok(())
        };
        match debian_prefix::ensure(&RUST, &variant, &check) {
            Ok(prefix) => debian(workspace, &active, &prefix, &not_rustup),
            Err(reason) => bail!(
                "no compiler for {TARGET}: {not_rustup}; no Debian packages: {reason:#}; install one with `rustup target add {TARGET}`"
            ),
        }
    }
}

/// The toolchain that compiles the host.
struct Active {
    sysroot: PathBuf,
    host: String,
    version: String,
}

impl Active {
    fn read(root: &Path) -> Result<Self> {
        let rustc = |argument: &str| process::output(Command::new("rustc").arg(argument).current_dir(root));
        let verbose = rustc("-vV")?;
        let sysroot = process::output(Command::new("rustc").args(["--print", "sysroot"]).current_dir(root))?;
        Ok(Self {
            sysroot: sysroot.trim().into(),
            host: host_triple(&verbose).context("`rustc -vV` names no host")?.to_owned(),
            version: verbose.lines().next().unwrap_or_default().to_owned(),
        })
    }

    fn std_dir(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib").join(TARGET).join("lib")
    }

    fn tools_dir(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib").join(&self.host).join("bin")
    }
}

/// The host triple of the compiler that builds the host.
///
/// # Errors
/// rustc does not run.
pub(crate) fn host(root: &Path) -> Result<String> {
    Ok(Active::read(root)?.host)
}

fn host_triple(verbose: &str) -> Option<&str> {
    verbose.lines().find_map(|line| line.strip_prefix("host: "))
}

/// Whether a directory of a sysroot holds a std.
pub(crate) fn has_std(directory: &Path) -> bool {
    std::fs::read_dir(directory).is_ok_and(|entries| {
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("libstd") && name.ends_with(".rlib")
        })
    })
}

/// Asks rustup for the target. The inner error is the reason why it is not there, in one line.
fn add_target(workspace: &Workspace) -> Result<std::result::Result<(), String>> {
    if std::env::var("RUSTUP_AUTO_INSTALL").is_ok_and(|value| value == "0") {
        return Ok(Err("rustup may not install anything (RUSTUP_AUTO_INSTALL=0)".to_owned()));
    }
    if std::env::var("CARGO_NET_OFFLINE").is_ok_and(|value| value == "true") {
        return Ok(Err("rustup may not use the network (CARGO_NET_OFFLINE)".to_owned()));
    }
    let Some(program) = process::find_program("rustup") else {
        return Ok(Err("there is no rustup".to_owned()));
    };
    step(&format!("rustup target add {TARGET} (at most {} s)", RUSTUP_LIMIT.as_secs()));
    let mut command = Command::new(program);
    command.args(["target", "add", TARGET]).current_dir(&workspace.root);
    let ended = process::bounded(&mut command, RUSTUP_LIMIT)?;
    Ok(if ended.success() {
        Ok(())
    } else if ended.status.is_none() {
        Err(format!("`rustup target add` did not end in {} s", RUSTUP_LIMIT.as_secs()))
    } else {
        Err(format!("`rustup target add` failed: {}", process::reason(&ended.text)))
    })
}

fn rustup(workspace: &Workspace, active: &Active, kind: Kind, why: String) -> Result<GuestToolchain> {
    let mut env = vec![("CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS".to_owned(), RUSTFLAGS.to_owned())];
    env.extend(c_compiler(workspace, Path::new("/usr/include/wasm32-wasip2"))?);
    Ok(GuestToolchain { kind, rustc: active.sysroot.join("bin/rustc"), env, why })
}

/// Debian's compiler with the linker of the active toolchain, because Debian packages no `wasm-component-ld`.
fn debian(
    workspace: &Workspace,
    active: &Active,
    prefix: &debian_prefix::Prefix,
    not_rustup: &str,
) -> Result<GuestToolchain> {
    let tools = active.tools_dir();
    let linker = tools.join("wasm-component-ld");
    if !linker.is_file() {
        bail!("{} is missing: the rust toolchain is incomplete; reinstall it with rustup", linker.display());
    }
    let rustc = prefix.program("rustc");
    let mut env = vec![
        ("RUSTC".to_owned(), utf8(&rustc)?),
        // The linker starts `wasm-ld`, which is in `gcc-ld`.
        ("PATH".to_owned(), utf8(Path::new(&process::path_with(&[tools.clone(), tools.join("gcc-ld")])?))?),
        ("CARGO_TARGET_WASM32_WASIP2_LINKER".to_owned(), utf8(&linker)?),
        ("CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS".to_owned(), RUSTFLAGS.to_owned()),
    ];
    env.extend(c_compiler(workspace, &prefix.path.join(INCLUDE))?);
    Ok(GuestToolchain { kind: Kind::Debian, rustc, env, why: format!("{}; {not_rustup}", prefix.description) })
}

/// Variables for the `cc` crate: a clang of the machine that knows wasm, with the headers in `include` if they are there,
/// else, if a guest has C in it, one in a prefix of its own. Empty where there is neither; a guest that needs them says so
/// then.
fn c_compiler(workspace: &Workspace, include: &Path) -> Result<Vec<(String, String)>> {
    if let Some(found) = CCompiler::of_machine(include) {
        return found.variables();
    }
    if !workspace.guests_need_c() {
        return Ok(Vec::new());
    }
    match CCompiler::fetched() {
        Ok(fetched) => fetched.variables(),
        Err(reason) => {
            step(&format!("no C compiler for {TARGET}: {reason:#}"));
            Ok(Vec::new())
        }
    }
}

/// What a build script of plugins in C has to be told.
///
/// # Errors
/// There is no compiler of C, and none can be fetched.
pub(crate) fn c_programs(workspace: &Workspace) -> Result<Vec<(String, String)>> {
    let compiler = match CCompiler::of_machine(Path::new("/").join(INCLUDE).as_path()) {
        Some(found) => found,
        None => CCompiler::fetched()?,
    };
    let tools = Active::read(&workspace.root)?.tools_dir();
    let linker = tools.join("wasm-component-ld");
    if !linker.is_file() {
        bail!("{} is missing", linker.display());
    }
    // Libraries are beside the headers: `usr/include/T` and `usr/lib/T`.
    let usr = compiler.include.ancestors().nth(2).unwrap_or(Path::new("/usr"));
    Ok(vec![
        ("CC".to_owned(), utf8(&compiler.clang)?),
        ("CFLAGS".to_owned(), format!("-isystem {}", utf8(&compiler.include)?)),
        ("WASI_LIB".to_owned(), utf8(&usr.join("lib").join(TARGET))?),
        ("WASM_COMPONENT_LD".to_owned(), utf8(&linker)?),
        ("WASM_LD".to_owned(), utf8(&tools.join("gcc-ld/wasm-ld"))?),
    ])
}

/// A compiler of C for guests.
struct CCompiler {
    clang: PathBuf,
    archiver: Option<PathBuf>,
    /// The headers of the C library.
    include: PathBuf,
}

impl CCompiler {
    fn of_machine(include: &Path) -> Option<Self> {
        if !include.is_dir() {
            return None;
        }
        let (clang, archiver) = machines_clang()?;
        Some(Self { clang, archiver, include: include.to_path_buf() })
    }

    /// From Debian, into a prefix that stays.
    fn fetched() -> Result<Self> {
        let prefix = match debian_prefix::existing(&C, "") {
            Ok(Some(prefix)) => prefix,
            _ => debian_prefix::ensure(&C, "", &knows_wasm)?,
        };
        Ok(Self {
            clang: prefix.program("clang"),
            archiver: Some(prefix.program("llvm-ar")),
            include: prefix.path.join(INCLUDE),
        })
    }

    fn variables(&self) -> Result<Vec<(String, String)>> {
        c_variables(&self.clang, self.archiver.as_deref(), &self.include)
    }
}

/// Whether a fetched clang has what C guests need.
fn knows_wasm(_version: &str, prefix: &Path) -> std::result::Result<(), String> {
    let headers = prefix.join(INCLUDE).join("stdio.h");
    if headers.is_file() { Ok(()) } else { Err(format!("the packages hold no C library for {TARGET} (wasi-libc)")) }
}

/// The machine's clang that knows wasm, and the archiver that goes with it.
fn machines_clang() -> Option<(PathBuf, Option<PathBuf>)> {
    let versions = (15..40).rev().map(|version| format!("-{version}"));
    std::iter::once(String::new()).chain(versions).find_map(|suffix| {
        let clang = process::find_program(&format!("clang{suffix}"))?;
        let targets = process::output(Command::new(&clang).arg("--print-targets")).ok()?;
        targets.contains("wasm32").then(|| (clang, process::find_program(&format!("llvm-ar{suffix}"))))
    })
}

fn c_variables(clang: &Path, ar: Option<&Path>, include: &Path) -> Result<Vec<(String, String)>> {
    let mut env = vec![
        ("CC_wasm32_wasip2".to_owned(), utf8(clang)?),
        ("CFLAGS_wasm32_wasip2".to_owned(), format!("--target={TARGET} {QUICKJS_CFLAGS} -isystem {}", utf8(include)?)),
        ("RQUICKJS_SYS_NO_WASI_SDK".to_owned(), "1".to_owned()),
    ];
    if let Some(ar) = ar {
        env.push(("AR_wasm32_wasip2".to_owned(), utf8(ar)?));
    }
    Ok(env)
}

fn utf8(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).with_context(|| format!("{} is not UTF-8: move it", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn std_is_recognised_by_its_library() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!has_std(&directory.path().join("missing")));
        assert!(!has_std(directory.path()));
        std::fs::write(directory.path().join("libstd-0123.so"), "").unwrap();
        assert!(!has_std(directory.path()));
        std::fs::write(directory.path().join("libstd-0123.rlib"), "").unwrap();
        assert!(has_std(directory.path()));
    }

    #[test]
    fn host_is_read_from_the_verbose_version() {
        let text = "rustc 1.95.0 (5980 2026-04-14)\nbinary: rustc\nhost: aarch64-unknown-linux-gnu\nrelease: 1.95.0\n";
        assert_eq!(host_triple(text), Some("aarch64-unknown-linux-gnu"));
        assert_eq!(host_triple("rustc 1.95.0"), None);
    }
}
