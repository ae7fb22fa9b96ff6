//! Ways to reach files that a tool or a plugin has, tried on hostile paths.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{
    Sandbox,
    plugins::{self, MISBEHAVE_TOML},
    text_of,
};

/// What must never be read.
pub(crate) const CANARY: &str = "canary-b7e1";

/// The functions of `files` that name a path, as the misbehaving plugin calls them.
pub(crate) const RAW: [&str; 13] = [
    "read",
    "read-part",
    "read-many",
    "open",
    "list",
    "stat",
    "walk",
    "walk-links",
    "walk-read",
    "walk-links-read",
    "write-file",
    "remove",
    "lock",
];

/// One call in a run of the scripted model.
#[allow(clippy::needless_pass_by_value, reason = "called with what was made for it")]
pub(crate) fn call(tool: &str, arguments: Value) -> Value {
    json!({"tool": tool, "arguments": arguments})
}

/// A call of the misbehaving plugin.
pub(crate) fn raw(how: &str, path: &str) -> Value {
    call("misbehave", json!({"how": how, "target": path}))
}

/// Every way there is to reach a path: all functions of the interface, and all tools.
pub(crate) fn every_way(path: &str) -> Vec<Value> {
    let tools = [
        call("read", json!({"path": path})),
        call("ls", json!({"path": path})),
        call("grep", json!({"pattern": "canary", "path": path})),
        call("find", json!({"pattern": "*", "path": path})),
        call("write", json!({"path": path, "content": "overwritten"})),
        call("edit", json!({"path": path, "edits": [{"oldText": CANARY, "newText": "overwritten"}]})),
    ];
    RAW.iter().map(|how| raw(how, path)).chain(tools).collect()
}

impl Sandbox {
    /// A sandbox with the misbehaving plugin, with room to try often, and all tools active.
    pub(crate) fn with_probes() -> Self {
        let sandbox = Self::new();
        let component = plugins::misbehave();
        let manifest = MISBEHAVE_TOML
            .replace("cpu-ms = 300", "cpu-ms = 60000")
            .replace("wall-ms = 15000", "wall-ms = 0")
            .replace("memory-mib = 32", "memory-mib = 256")
            .replace("output-mib = 1", "output-mib = 64");
        sandbox.plugin("misbehave", &component, Some(&manifest));
        sandbox.grant("misbehave", &component, "all = true");
        sandbox.settings(&json!({"defaultTools": ["+ls", "+grep", "+find"]}));
        sandbox
    }

    /// Makes calls in one run of the program, in the directory `cwd`, one after the other; gives what each said and
    /// whether it failed.
    pub(crate) fn probe(&self, cwd: &Path, calls: &[Value]) -> Vec<(bool, String)> {
        let mut turns: Vec<Value> = calls.iter().map(|call| json!({"calls": [call]})).collect();
        turns.push(json!({"text": "done"}));
        let before = self.session_files();
        self.scripted(&json!({"turns": turns})).cwd(cwd).arg("go").run().ok();
        let new: Vec<PathBuf> = self.session_files().into_iter().filter(|file| !before.contains(file)).collect();
        assert_eq!(new.len(), 1, "{new:?}");
        let results: Vec<(bool, String)> = super::sandbox::session_entries(&new[0])
            .into_iter()
            .filter(|entry| entry["message"]["role"] == "toolResult")
            .map(|entry| {
                let message = &entry["message"];
                (message["isError"].as_bool().unwrap(), text_of(&message["content"]))
            })
            .collect();
        assert_eq!(results.len(), calls.len());
        results
    }

    /// Tries every way to reach each path; none may work, and nothing of what is protected may be said.
    #[track_caller]
    pub(crate) fn out_of_reach(&self, cwd: &Path, paths: &[&str], protected: &Path) {
        let before = snapshot(protected);
        let calls: Vec<Value> = paths.iter().flat_map(|path| every_way(path)).collect();
        for (call, (failed, text)) in calls.iter().zip(self.probe(cwd, &calls)) {
            assert!(!text.contains(CANARY), "{call}: {text}");
            // Several files at once: each has its own answer.
            let refused = failed || text.contains("{\"error\":\"") || text.starts_with("No ");
            assert!(refused, "{call} worked: {text}");
        }
        assert_eq!(snapshot(protected), before);
    }
}

/// Every file below a directory, with what it holds, its mode and its number.
pub(crate) fn snapshot(path: &Path) -> Vec<(PathBuf, u32, u64, Vec<u8>)> {
    let mut all = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(next) = open.pop() {
        let facts = fs::symlink_metadata(&next).unwrap();
        let content = match () {
            () if facts.is_dir() => {
                open.extend(fs::read_dir(&next).unwrap().map(|entry| entry.unwrap().path()));
                Vec::new()
            }
            () if facts.is_file() => fs::read(&next).unwrap(),
            () => Vec::new(),
        };
        all.push((next, facts.mode(), facts.ino(), content));
    }
    all.sort();
    all
}
