//! `grep` and `find` against the native programs that people know: the same lines and names over a large tree of real
//! sources. Takes long and needs `rg` and `fd`, so it runs only with `ATOLL_LONG_TESTS=1`.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::common::{Sandbox, skipped};

/// More than there are results of any search here.
const ALL: u32 = 10_000_000;

/// The sources of the libraries this was built with, with nothing around them that has rules.
fn sources(test: &str) -> Option<PathBuf> {
    if std::env::var_os("ATOLL_LONG_TESTS").is_none_or(|value| value != "1") {
        skipped(&format!("{test}: ATOLL_LONG_TESTS is not 1"));
        return None;
    }
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")))?;
    let sources = cargo.join("registry/src");
    if !sources.is_dir() {
        skipped(&format!("{test}: there is no {}", sources.display()));
        return None;
    }
    Some(sources.canonicalize().unwrap())
}

/// A program that can be started, by any of its names.
fn program(test: &str, names: &[&str]) -> Option<String> {
    let found = names.iter().find(|name| Command::new(name).arg("--version").output().is_ok());
    if found.is_none() {
        skipped(&format!("{test}: {} is not installed", names.join(" or ")));
    }
    found.map(|name| (*name).to_owned())
}

fn call(sandbox: &Sandbox, tool: &str, tree: &Path, mut arguments: Value) -> Value {
    arguments["limit"] = json!(ALL);
    let run = sandbox.atoll().cwd(tree).args(["tool", "call", tool, &arguments.to_string(), "--json"]).run();
    let record = run.json();
    assert_eq!(record["isError"], false, "{arguments}: {:.2000}", record.to_string());
    assert_eq!(record["structuredContent"]["truncated"], false, "{arguments} finds too much to compare");
    record["structuredContent"].clone()
}

fn output(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    // 1: nothing was found.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn grep_finds_what_ripgrep_finds() {
    const TEST: &str = "grep_finds_what_ripgrep_finds";
    let Some(tree) = sources(TEST) else { return };
    let Some(rg) = program(TEST, &["rg"]) else { return };
    let sandbox = Sandbox::new();
    for arguments in [
        json!({"pattern": "unsafe impl.*Sync"}),
        json!({"pattern": "TODO|FIXME"}),
        json!({"pattern": "^\\s*pub(\\([a-z]+\\))? async fn", "glob": "*.rs"}),
        json!({"pattern": "gr\u{fc}n|stra\u{df}e", "ignoreCase": true}),
        json!({"pattern": "Copyright \\(c\\) \\d{4}", "ignoreCase": true, "glob": "LICENSE*"}),
        json!({"pattern": "fn main() {", "literal": true, "glob": "!**/tests/**"}),
        json!({"pattern": "repr\\(transparent\\)", "context": 2, "glob": "**/src/**/*.rs"}),
        json!({"pattern": "[^\\x00-\\x7f]{6}", "glob": "*.{md,txt}"}),
        json!({"pattern": "edition = \"2015\""}),
        json!({"pattern": "\\bzzz_never_there\\b"}),
    ] {
        let mut command = Command::new(&rg);
        command.current_dir(&tree).args([
            "--no-config",
            "--json",
            "--line-number",
            "--hidden",
            "--no-require-git",
            "--glob=!.git",
        ]);
        let set = |name: &str| arguments[name] == true;
        command.args(set("ignoreCase").then_some("--ignore-case"));
        command.args(set("literal").then_some("--fixed-strings"));
        command.args(arguments["glob"].as_str().map(|glob| format!("--glob={glob}")));
        command.args(arguments["context"].as_u64().map(|lines| format!("--context={lines}")));
        command.args(["--", arguments["pattern"].as_str().unwrap(), "."]);
        let mut expected = BTreeSet::new();
        for line in output(&mut command).split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let event: Value = serde_json::from_slice(line).unwrap();
            let data = &event["data"];
            let (Some(path), Some(number)) = (data["path"]["text"].as_str(), data["line_number"].as_u64()) else {
                continue;
            };
            expected.insert((path.trim_start_matches("./").to_owned(), number, event["type"] == "match"));
        }
        let structured = call(&sandbox, "grep", &tree, arguments.clone());
        let found: BTreeSet<(String, u64, bool)> = structured["lines"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| {
                let path = line["path"].as_str().unwrap().to_owned();
                (path, line["line"].as_u64().unwrap(), line["match"] == true)
            })
            .collect();
        same(&arguments, &found, &expected);
    }
}

#[test]
fn find_finds_what_fd_finds() {
    const TEST: &str = "find_finds_what_fd_finds";
    let Some(tree) = sources(TEST) else { return };
    let Some(fd) = program(TEST, &["fd", "fdfind"]) else { return };
    let sandbox = Sandbox::new();
    // Old releases of fd only honour rules inside a repository, so the tree is compared without any: what is ignored
    // is compared in `grep_finds_what_ripgrep_finds` and in `find_tool`.
    for (pattern, path) in [
        ("*.toml", false),
        ("mod.rs", false),
        ("[a-c]*.rs", false),
        ("*.{c,h}", false),
        ("README*", false),
        ("license*", false),
        ("**/src/*.rs", true),
        ("**/tests/**/*.rs", true),
        ("*/serde*/src/*.rs", true),
        ("never_there_*", false),
    ] {
        let arguments = json!({"pattern": pattern});
        let mut command = Command::new(&fd);
        command.current_dir(&tree).args(["--glob", "--hidden", "--color=never", "--exclude=.git"]);
        // Paths are absolute when fd compares them.
        let anchored = format!("{}/{pattern}", tree.display());
        if path {
            command.args(["--full-path", "--", &anchored]);
        } else {
            command.args(["--", pattern]);
        }
        let expected: BTreeSet<String> = String::from_utf8_lossy(&output(&mut command))
            .lines()
            .map(|line| line.trim_start_matches("./").to_owned())
            .collect();
        let structured = call(&sandbox, "find", &tree, arguments.clone());
        let paths = structured["paths"].as_array().unwrap();
        let found: BTreeSet<String> = paths.iter().map(|path| path.as_str().unwrap().to_owned()).collect();
        same(&arguments, &found, &expected);
    }
}

#[track_caller]
fn same<T: Ord + std::fmt::Debug>(arguments: &Value, found: &BTreeSet<T>, expected: &BTreeSet<T>) {
    assert!(!expected.is_empty() || arguments.to_string().contains("never"), "{arguments} compares nothing");
    let missing: Vec<&T> = expected.difference(found).take(10).collect();
    let extra: Vec<&T> = found.difference(expected).take(10).collect();
    assert!(
        missing.is_empty() && extra.is_empty(),
        "{arguments}: {} found, {} expected; missing {missing:#?}, extra {extra:#?}",
        found.len(),
        expected.len()
    );
    eprintln!("{arguments}: {} results, the same", found.len());
}
