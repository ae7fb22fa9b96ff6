//! A home, a workspace and a cache of a test's own.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Command, Finished, server::Server};

/// The key that tests give to models; must never be seen anywhere but in a request's header.
pub(crate) const KEY: &str = "sk-canary-5f1d9c02";

pub(crate) struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("atoll-test-").tempdir().unwrap();
        for name in ["home/.atoll", "project", "tmp"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    /// The folder of everything, without links in its path.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// The workspace.
    pub(crate) fn work(&self) -> PathBuf {
        self.root().join("project")
    }

    /// The user's home.
    pub(crate) fn user_home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub(crate) fn atoll_home(&self) -> PathBuf {
        self.root().join("home/.atoll")
    }

    /// Where compiled plugins are kept.
    pub(crate) fn aot_cache(&self) -> PathBuf {
        self.root().join("cache/atoll/aot")
    }

    /// What of a kind is kept of plugins: `image`, `description` or `seen`.
    pub(crate) fn cache_entries(&self, kind: &str) -> Vec<PathBuf> {
        let all = fs::read_dir(self.aot_cache()).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut entries: Vec<PathBuf> =
            all.filter(|path| path.extension().is_some_and(|found| found == kind)).collect();
        entries.sort();
        entries
    }

    /// Writes a file of the workspace; gives its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap()
    }

    /// Writes a file of Atoll's directory.
    pub(crate) fn home_file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.atoll_home().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn settings(&self, settings: &Value) {
        self.home_file("settings.json", settings.to_string());
    }

    /// Makes `mock/m` a model behind a server, the first one that is configured.
    pub(crate) fn model_at(&self, base_url: &str) {
        let models = json!({"providers": {"mock": {
            "baseUrl": base_url, "api": "openai-completions", "apiKey": KEY,
            "models": [{"id": "m"}, {"id": "seeing", "input": ["text", "image"]}],
        }}});
        self.home_file("models.json", models.to_string());
    }

    pub(crate) fn model_behind(&self, server: &Server) {
        self.model_at(&format!("{}/v1", server.origin()));
    }

    /// The program, in the workspace.
    pub(crate) fn atoll(&self) -> Command {
        self.equipped(Command::new())
    }

    /// A line that the program told its user to type, typed into a shell.
    pub(crate) fn shell(&self, line: &str) -> Finished {
        let folder = self.root().join("bin");
        if fs::create_dir(&folder).is_ok() {
            std::os::unix::fs::symlink(super::processes::program().canonicalize().unwrap(), folder.join("atoll"))
                .unwrap();
        }
        let path = std::env::var("PATH").unwrap_or_default();
        let shell = self.equipped(Command::of("bash")).env("PATH", format!("{}:{path}", folder.display()));
        shell.args(["-c", line]).run()
    }

    /// A command with the directories of this sandbox.
    pub(crate) fn equipped(&self, command: Command) -> Command {
        let root = self.root();
        command
            .cwd(self.work())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", root.join("home"))
            .env("ATOLL_HOME", self.atoll_home())
            .env("XDG_CACHE_HOME", root.join("cache"))
            .env("TMPDIR", root.join("tmp"))
            .env("LANG", "C.UTF-8")
    }

    /// One call of a tool; the whole record.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.atoll().args(["tool", "call", tool, &arguments.to_string(), "--json"]).run().json()
    }

    /// One call of a tool that has to work; its text.
    #[track_caller]
    pub(crate) fn good_call(&self, tool: &str, arguments: &Value) -> String {
        let record = self.call(tool, arguments);
        assert_eq!(record["isError"], false, "{record:#}");
        super::text_of(&record["content"])
    }

    /// One call of a tool that has to fail; its text.
    #[track_caller]
    pub(crate) fn bad_call(&self, tool: &str, arguments: &Value) -> String {
        let record = self.call(tool, arguments);
        assert_eq!(record["isError"], true, "{record:#}");
        super::text_of(&record["content"])
    }

    /// Starts a run of the scripted model.
    pub(crate) fn scripted(&self, script: &Value) -> Command {
        let path = self.root().join("script.json");
        fs::write(&path, script.to_string()).unwrap();
        self.atoll().env("ATOLL_SCRIPT", path).args(["--model", "scripted/default", "-p"])
    }

    /// All session files.
    pub(crate) fn session_files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut folders = vec![self.atoll_home().join("sessions")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else {
                    files.push(entry.path());
                }
            }
        }
        files.sort();
        files
    }

    /// The entries of the only session. Fails unless the file is what a session file has to be.
    #[track_caller]
    pub(crate) fn session(&self) -> Vec<Value> {
        let files = self.session_files();
        assert_eq!(files.len(), 1, "{files:?}");
        session_entries(&files[0])
    }

    /// The messages of the only session.
    #[track_caller]
    pub(crate) fn messages(&self) -> Vec<Value> {
        self.session().into_iter().filter(|entry| entry["type"] == "message").map(|e| e["message"].clone()).collect()
    }

    /// The results of the only session's calls.
    #[track_caller]
    pub(crate) fn results(&self) -> Vec<Value> {
        self.messages().into_iter().filter(|message| message["role"] == "toolResult").collect()
    }
}

/// The entries of a session file, header first: every line is JSON, ids are unique, each entry's parent is the one
/// before it.
#[track_caller]
pub(crate) fn session_entries(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "the last line is torn: {text}");
    let entries = super::json_lines(&text);
    assert_eq!(entries[0]["type"], "session", "{text}");
    assert_eq!(entries[0]["version"], 3, "{text}");
    let mut before = Value::Null;
    let mut seen = std::collections::HashSet::new();
    for entry in &entries[1..] {
        assert_eq!(entry["parentId"], before, "{entry:#}");
        assert!(seen.insert(entry["id"].as_str().unwrap().to_owned()), "{entry:#}");
        before = entry["id"].clone();
    }
    entries
}
