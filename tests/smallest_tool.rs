//! The tool that `guest-tools/README.md` shows whole is `plugins/count-words`; it is built, installed and run here.

use std::fs;

use serde_json::json;

use crate::common::{Sandbox, plugins::workspace_root};

const FOLDER: &str = "tests/plugins/count-words";

/// The blocks of code in the README, with the language of each.
fn blocks() -> Vec<(String, String)> {
    let text = fs::read_to_string(workspace_root().join("guest-tools/README.md")).unwrap();
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```").filter(|language| !language.is_empty()) {
            let body: String =
                lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
            blocks.push((language.to_owned(), body));
        }
    }
    blocks
}

#[test]
fn the_readme_shows_the_files_as_they_are() {
    for (language, file) in [("toml", "Cargo.toml"), ("toml", "plugin.toml"), ("rust", "src/lib.rs")] {
        let content = fs::read_to_string(workspace_root().join(FOLDER).join(file)).unwrap();
        let shown = (language.to_owned(), content);
        assert!(blocks().contains(&shown), "guest-tools/README.md does not show {FOLDER}/{file} as it is");
    }
}

#[test]
fn the_smallest_tool_works_as_the_readme_says() {
    let sandbox = Sandbox::new();
    let root = workspace_root();
    let wasm = root.join("target/guests/wasm32-wasip2/guest/count_words.wasm");
    let component =
        fs::read(&wasm).unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask build`", wasm.display()));
    let manifest = fs::read_to_string(root.join(FOLDER).join("plugin.toml")).unwrap();
    sandbox.plugin("count-words", &component, Some(&manifest));
    sandbox.file("a.txt", "one two\nthree\n");
    let call = |path: &str| sandbox.call("count_words", &json!({"path": path}));
    // Nothing is granted yet, so it is not even there.
    let run = sandbox.atoll().args(["tool", "call", "count_words", "{\"path\":\"a.txt\"}"]).run();
    assert!(!run.status.success(), "{run:#?}");
    sandbox.grant("count-words", &component, "all = true");
    let record = call("a.txt");
    assert_eq!(crate::common::text_of(&record["content"]), "3 words");
    assert_eq!(record["structuredContent"], 3);
    let text = crate::common::text_of(&call("missing.txt")["content"]);
    assert!(text.contains("missing.txt"), "{text}");
    // It may read the workspace, and nothing else.
    sandbox.atoll().args(["tool", "call", "count_words", "{\"path\":\"/etc/passwd\"}"]).run().code(3);
}
