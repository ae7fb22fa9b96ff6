//! The session file, version 3: a header, then one entry a line, each naming its parent.
//!
//! Nothing is written before there is something to keep; an append that fails leaves neither the file nor the
//! session half changed.

use std::{
    collections::HashSet,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    message::{Message, UserMessage},
    time::{now_iso, now_ms},
};

/// The version of the format.
const VERSION: u64 = 3;

/// A session can not be used.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The file can not be read or written.
    #[error("the session file {} can not be {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// `read` or `written`.
        action: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The file is no session.
    #[error("{} is not a session file: {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// There is nothing to continue.
    #[error("there is no session to continue in {}; start one without --continue", cwd.display())]
    NothingToContinue {
        /// Where it was looked for.
        cwd: PathBuf,
    },
}

/// A session.
#[derive(Debug)]
pub struct Session {
    id: String,
    cwd: PathBuf,
    /// Where it is kept; none: in memory only.
    path: Option<PathBuf>,
    header: Value,
    entries: Vec<Map<String, Value>>,
    ids: HashSet<String>,
    leaf: Option<String>,
    /// How many of the entries are in the file.
    written: usize,
    file: Option<File>,
}

/// The folder of a directory's sessions.
pub fn folder(sessions: &Path, cwd: &Path) -> PathBuf {
    let text = cwd.to_string_lossy();
    let trimmed = text.trim_start_matches(['/', '\\']);
    sessions.join(format!("--{}--", trimmed.replace(['/', '\\', ':'], "-")))
}

impl Session {
    /// A new session. `folder` is where its file will be; none: it is not kept.
    pub fn new(folder: Option<&Path>, cwd: &Path) -> Self {
        let id = Uuid::now_v7().to_string();
        let timestamp = now_iso();
        let name = format!("{}_{id}.jsonl", timestamp.replace([':', '.'], "-"));
        let header = json!({"type": "session", "version": VERSION, "id": id, "timestamp": timestamp, "cwd": cwd});
        Self {
            id,
            cwd: cwd.to_owned(),
            path: folder.map(|folder| folder.join(name)),
            header,
            entries: Vec::new(),
            ids: HashSet::new(),
            leaf: None,
            written: 0,
            file: None,
        }
    }

    /// The session of `cwd` that was written to last.
    ///
    /// # Errors
    /// [`SessionError::NothingToContinue`], or as [`Self::open`].
    pub fn latest(folder: &Path, cwd: &Path) -> Result<Self, SessionError> {
        let mut files: Vec<(std::time::SystemTime, PathBuf)> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
            .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
            .collect();
        files.sort();
        while let Some((_, path)) = files.pop() {
            match Self::open(&path) {
                Ok(session) => return Ok(session),
                Err(error) => tracing::warn!(%error, "passed over"),
            }
        }
        Err(SessionError::NothingToContinue { cwd: cwd.to_owned() })
    }

    /// Reads a session file. Malformed lines are passed over; a missing last line break is added when the file is
    /// next written to.
    ///
    /// # Errors
    /// If it can not be read, or its first entry is not a session header of a version this program knows.
    pub fn open(path: &Path) -> Result<Self, SessionError> {
        let bytes =
            std::fs::read(path).map_err(|source| SessionError::Io { path: path.to_owned(), action: "read", source })?;
        let format = |reason: &str| SessionError::Format { path: path.to_owned(), reason: reason.to_owned() };
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let header = lines.next().ok_or_else(|| format("it has no entries"))?;
        if header["type"] != "session" {
            return Err(format("it does not begin with a session header"));
        }
        match header["version"].as_u64() {
            Some(VERSION) => {}
            version => {
                let version = version.unwrap_or(1);
                return Err(format(&format!("it is of version {version}, and this program reads version {VERSION}")));
            }
        }
        let id = header["id"].as_str().ok_or_else(|| format("its header has no id"))?.to_owned();
        let cwd = PathBuf::from(header["cwd"].as_str().unwrap_or_default());
        let mut session = Self {
            id,
            cwd,
            path: Some(path.to_owned()),
            header,
            entries: Vec::new(),
            ids: HashSet::new(),
            leaf: None,
            written: 0,
            file: None,
        };
        for line in lines {
            let Value::Object(entry) = line else { continue };
            let Some(id) = entry.get("id").and_then(Value::as_str) else { continue };
            session.ids.insert(id.to_owned());
            session.leaf = Some(id.to_owned());
            session.entries.push(entry);
        }
        session.written = session.entries.len();
        let mut file = OpenOptions::new().append(true).open(path).map_err(|source| SessionError::Io {
            path: path.to_owned(),
            action: "written",
            source,
        })?;
        if !bytes.ends_with(b"\n") {
            file.write_all(b"\n").map_err(|source| SessionError::Io {
                path: path.to_owned(),
                action: "written",
                source,
            })?;
        }
        session.file = Some(file);
        Ok(session)
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The directory it was started in.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Its file, if it is kept.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The header, as the first line of JSON mode shows it.
    pub fn header(&self) -> &Value {
        &self.header
    }

    /// Whether nothing was said in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Appends a message.
    ///
    /// # Errors
    /// If it can not be written; then the session is as before.
    pub fn append_message(&mut self, message: &Message) -> Result<(), SessionError> {
        let keep = matches!(message, Message::User(_) | Message::Assistant(_));
        let value = serde_json::to_value(message).unwrap_or_default();
        self.append("message", [("message", value)], keep)
    }

    /// Notes which model is asked from here on, if it is another than before.
    ///
    /// # Errors
    /// As [`Self::append_message`].
    pub fn note_model(&mut self, provider: &str, model: &str) -> Result<(), SessionError> {
        let last = self.branch().into_iter().rev().find(|entry| entry["type"] == "model_change").cloned();
        if last.is_some_and(|entry| entry["provider"] == provider && entry["modelId"] == model) {
            return Ok(());
        }
        self.append("model_change", [("provider", json!(provider)), ("modelId", json!(model))], false)
    }

    /// Notes how hard the model thinks from here on, if it is not as before.
    ///
    /// # Errors
    /// As [`Self::append_message`].
    pub fn note_thinking(&mut self, level: &Value) -> Result<(), SessionError> {
        let last = self.branch().into_iter().rev().find(|entry| entry["type"] == "thinking_level_change").cloned();
        if last.is_some_and(|entry| entry["thinkingLevel"] == *level) {
            return Ok(());
        }
        self.append("thinking_level_change", [("thinkingLevel", level.clone())], false)
    }

    fn append<const N: usize>(
        &mut self,
        kind: &str,
        fields: [(&str, Value); N],
        keep: bool,
    ) -> Result<(), SessionError> {
        let id = self.new_id();
        let mut entry = Map::new();
        entry.insert("type".to_owned(), json!(kind));
        entry.insert("id".to_owned(), json!(id));
        entry.insert("parentId".to_owned(), json!(self.leaf));
        entry.insert("timestamp".to_owned(), json!(now_iso()));
        for (name, value) in fields {
            entry.insert(name.to_owned(), value);
        }
        self.entries.push(entry);
        if (keep || self.file.is_some())
            && let Err(source) = self.write()
        {
            self.entries.pop();
            let path = self.path.clone().unwrap_or_default();
            return Err(SessionError::Io { path, action: "written", source });
        }
        self.ids.insert(id.clone());
        self.leaf = Some(id);
        Ok(())
    }

    /// Writes what is not in the file yet.
    fn write(&mut self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut text = String::new();
        let is_new = self.file.is_none();
        if is_new {
            if let Some(parent) = path.parent() {
                make_private(parent)?;
            }
            text = format!("{}\n", self.header);
        }
        for entry in &self.entries[self.written..] {
            text.push_str(&serde_json::to_string(entry)?);
            text.push('\n');
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => OpenOptions::new().append(true).create_new(true).open(path)?,
        };
        let before = file.metadata()?.len();
        match file.write_all(text.as_bytes()) {
            Ok(()) => {
                self.written = self.entries.len();
                self.file = Some(file);
                Ok(())
            }
            Err(error) => {
                // Half a line would be lost with whatever is appended to it.
                let _ = file.set_len(before);
                if is_new {
                    let _ = std::fs::remove_file(path);
                } else {
                    self.file = Some(file);
                }
                Err(error)
            }
        }
    }

    fn new_id(&self) -> String {
        for _ in 0..100 {
            let id: String = Uuid::new_v4().simple().to_string().chars().take(8).collect();
            if !self.ids.contains(&id) {
                return id;
            }
        }
        Uuid::new_v4().to_string()
    }

    /// The entries from the root to the leaf.
    fn branch(&self) -> Vec<&Map<String, Value>> {
        let by_id: std::collections::HashMap<&str, &Map<String, Value>> =
            self.entries.iter().filter_map(|entry| Some((entry.get("id")?.as_str()?, entry))).collect();
        let mut branch = Vec::new();
        let mut next = self.leaf.as_deref();
        while let Some(entry) = next.and_then(|id| by_id.get(id)) {
            branch.push(*entry);
            // A file that was tampered with may go round in circles.
            if branch.len() > self.entries.len() {
                break;
            }
            next = entry.get("parentId").and_then(Value::as_str);
        }
        branch.reverse();
        branch
    }

    /// The messages a model should see: those of the branch, from the newest summary on, with edits applied.
    pub fn messages(&self) -> Vec<Message> {
        let branch = self.branch();
        let mut edits: Map<String, Value> = Map::new();
        for entry in &branch {
            if entry["type"] == "context_edit"
                && let Some(target) = entry.get("targetId").and_then(Value::as_str)
            {
                edits.insert(target.to_owned(), entry.get("replacement").cloned().unwrap_or_default());
            }
        }
        let mut messages = Vec::new();
        let mut rest = &branch[..];
        if let Some(at) = branch.iter().rposition(|entry| entry["type"] == "compaction") {
            let compaction = branch[at];
            if let Some(system) = compaction.get("systemMessage").filter(|value| value.is_object()) {
                messages.extend(serde_json::from_value::<Message>(system.clone()));
            }
            messages.push(summary("The conversation so far, summarised:", &compaction["summary"]));
            let first = compaction.get("firstKeptEntryId").and_then(Value::as_str);
            let kept = branch[..at].iter().skip_while(|entry| entry.get("id").and_then(Value::as_str) != first);
            for entry in kept.filter(|entry| entry["message"]["role"] != "system") {
                messages.extend(message_of(entry, &edits));
            }
            rest = &branch[at + 1..];
        }
        messages.extend(rest.iter().filter_map(|entry| message_of(entry, &edits)));
        messages
    }
}

fn message_of(entry: &Map<String, Value>, edits: &Map<String, Value>) -> Option<Message> {
    let text = |name: &str| entry.get(name).cloned().unwrap_or_default();
    let edit = entry.get("id").and_then(Value::as_str).and_then(|id| edits.get(id));
    if edit.is_some_and(Value::is_null) {
        return None;
    }
    let mut value = match entry.get("type")?.as_str()? {
        "message" => text("message"),
        "custom_message" => json!({"role": "user", "content": text("content"), "timestamp": now_ms()}),
        "branch_summary" => return Some(summary("What was tried on another branch:", &text("summary"))),
        _ => return None,
    };
    if let (Some(edit), Some(fields)) = (edit, value.as_object_mut()) {
        fields.insert("content".to_owned(), edit.clone());
    }
    serde_json::from_value(value).ok()
}

fn summary(intro: &str, text: &Value) -> Message {
    let text = format!("{intro}\n<summary>\n{}\n</summary>", text.as_str().unwrap_or_default());
    Message::User(UserMessage { content: vec![atoll_table::Content::text(text)], timestamp: now_ms() })
}

/// Sessions hold what the user and the project said: nobody else's business.
fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::AssistantMessage;

    fn user(text: &str) -> Message {
        Message::User(UserMessage { content: vec![atoll_table::Content::text(text)], timestamp: 1 })
    }

    fn texts(session: &Session) -> Vec<String> {
        let text = |message: Message| match message {
            Message::User(user) => atoll_table::Content::joined_text(&user.content),
            Message::System(system) => format!("system {}", system.content),
            other => format!("{other:?}"),
        };
        session.messages().into_iter().map(text).collect()
    }

    #[test]
    fn nothing_is_written_before_there_is_something_to_keep() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = Session::new(Some(&folder.path().join("s")), Path::new("/p"));
        session.note_model("mock", "m").unwrap();
        session.append_message(&Message::System(crate::message::SystemMessage::default())).unwrap();
        assert!(!session.path().unwrap().exists());
        session.append_message(&user("hi")).unwrap();
        let lines = std::fs::read_to_string(session.path().unwrap()).unwrap();
        let kinds: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone()).collect();
        assert_eq!(kinds, ["session", "model_change", "message", "message"]);
    }

    #[test]
    fn a_session_goes_on_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = Session::new(Some(folder.path()), Path::new("/p"));
        session.append_message(&user("one")).unwrap();
        session.append_message(&Message::Assistant(AssistantMessage::default())).unwrap();
        let mut again = Session::latest(folder.path(), Path::new("/p")).unwrap();
        assert_eq!(again.id(), session.id());
        assert_eq!(again.messages(), session.messages());
        again.append_message(&user("two")).unwrap();
        assert_eq!(Session::open(again.path().unwrap()).unwrap().messages().len(), 3);
    }

    #[test]
    fn a_torn_last_line_costs_that_line_only() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = Session::new(Some(folder.path()), Path::new("/p"));
        session.append_message(&user("one")).unwrap();
        let path = session.path().unwrap().to_owned();
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"type\":\"message\",\"id\":\"x");
        std::fs::write(&path, text).unwrap();
        let mut again = Session::open(&path).unwrap();
        again.append_message(&user("two")).unwrap();
        assert_eq!(texts(&Session::open(&path).unwrap()), ["one", "two"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_failed_append_changes_nothing() {
        let mut session = Session::new(Some(Path::new("/proc/nowhere")), Path::new("/p"));
        assert!(session.append_message(&user("one")).is_err());
        assert!(session.messages().is_empty());
    }

    #[test]
    fn summaries_and_edits_of_other_programs_are_honoured() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let entry = |id: &str, parent: Option<&str>, fields: Value| {
            let mut entry = json!({"id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z"});
            entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            entry.to_string()
        };
        let said = |text: &str| json!({"type": "message", "message": {"role": "user", "content": text}});
        let lines = [
            json!({"type": "session", "version": 3, "id": "s", "timestamp": "", "cwd": "/p"}).to_string(),
            entry("a", None, said("old")),
            entry("b", Some("a"), said("kept")),
            "not json".to_owned(),
            entry(
                "c",
                Some("b"),
                json!({"type": "compaction", "summary": "SUM", "firstKeptEntryId": "b", "tokensBefore": 1}),
            ),
            entry("d", Some("c"), said("hidden")),
            entry("e", Some("d"), json!({"type": "context_edit", "targetId": "d", "replacement": null})),
            entry("f", Some("e"), said("new")),
        ];
        std::fs::write(&path, lines.join("\n")).unwrap();
        let session = Session::open(&path).unwrap();
        assert_eq!(
            texts(&session),
            ["The conversation so far, summarised:\n<summary>\nSUM\n</summary>", "kept", "new"]
        );
    }

    #[test]
    fn other_files_are_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        for (text, reason) in [
            ("", "no entries"),
            ("{\"type\":\"message\"}", "does not begin"),
            ("{\"type\":\"session\",\"version\":2,\"id\":\"x\"}", "version 2"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Session::open(&path).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_directory_has_its_folder() {
        assert_eq!(folder(Path::new("/s"), Path::new("/tmp/peer/w")), Path::new("/s/--tmp-peer-w--"));
    }
}
