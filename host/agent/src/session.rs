//! A session: what was said, kept in a file of version 3.
//!
//! An append that fails leaves neither the file nor the session changed. One process writes to a file at a time: it
//! holds an advisory lock until it ends, and going on with a session that is in use is an error, for two would each
//! continue from an entry of their own, and the later one would hide what the other did.

mod context;
mod load;
mod shared;
mod storage;

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use atoll_table::kept::{Changes, Kept};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    message::{CustomMessage, Message, system_state},
    time::now_iso,
};

use context::{Context, Entry};
use storage::Storage;

pub use load::folder;
pub use shared::SharedSession;

/// A session can not be used.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The file, or the folder it is looked for in, can not be opened or read.
    #[error(
        "the session in {} can not be opened: {reason}; correct that or move it away, or start without --continue",
        path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// The file can not be written.
    #[error(
        "the session can not be written to {}: {reason}; correct that, or keep no session with --no-session",
        path.display()
    )]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// The file is no session.
    #[error(
        "{} is not a usable session file: {reason}; move it away to go on with the one before, or start without --continue",
        path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Somebody else is writing to it.
    #[error(
        "another atoll is using the session {}; wait until it has ended, or start without --continue",
        path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
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
    header: Value,
    /// Where it is kept; none: in memory only.
    storage: Option<Storage>,
    /// All of them, those of other branches too.
    entries: Vec<Entry>,
    /// Theirs.
    ids: HashSet<String>,
    leaf: Option<String>,
    context: Context,
}

impl Session {
    /// A new session. `folder` is where its file will be; none: it is not kept.
    pub fn new(folder: Option<&Path>, cwd: &Path) -> Self {
        let id = Uuid::now_v7().to_string();
        let timestamp = now_iso();
        let name = format!("{}_{id}.jsonl", timestamp.replace([':', '.'], "-"));
        let header = load::header(&id, &timestamp, cwd);
        Self {
            id,
            cwd: cwd.to_owned(),
            storage: folder.map(|folder| Storage::new(folder.join(name), &header.to_string())),
            header,
            entries: Vec::new(),
            ids: HashSet::new(),
            leaf: None,
            context: Context::default(),
        }
    }

    /// The session of `cwd` that was written to last. If that one can not be used, no other takes its place.
    ///
    /// # Errors
    /// [`SessionError::NothingToContinue`], or as [`Self::open`].
    pub fn latest(folder: &Path, cwd: &Path) -> Result<Self, SessionError> {
        Self::open(&load::latest(folder, cwd)?)
    }

    /// Reads a session file, to go on with it. Malformed lines are passed over; a missing last line break is added
    /// when the file is next written to.
    ///
    /// # Errors
    /// If it can not be read, is in use, or its first entry is not a session header of a version this program knows.
    pub fn open(path: &Path) -> Result<Self, SessionError> {
        let (storage, text) = Storage::open(path)?;
        let load::Loaded { header, id, entries } = load::parse(path, &text)?;
        let id_of = |entry: &Entry| Some(entry.get("id")?.as_str()?.to_owned());
        Ok(Self {
            id,
            cwd: PathBuf::from(header["cwd"].as_str().unwrap_or_default()),
            header,
            storage: Some(storage),
            ids: entries.iter().filter_map(id_of).collect(),
            leaf: entries.last().and_then(id_of),
            context: Context::of(&entries),
            entries,
        })
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
        self.storage.as_ref().map(Storage::path)
    }

    /// The header, as the first line of JSON mode shows it.
    pub fn header(&self) -> &Value {
        &self.header
    }

    /// Whether nothing was said in it.
    pub fn is_empty(&self) -> bool {
        self.leaf.is_none()
    }

    /// The messages a model should see: those of the branch, from the newest summary on, with edits applied.
    pub fn messages(&self) -> &[Message] {
        &self.context.messages
    }

    /// The provider and the model that were asked last.
    pub fn model(&self) -> Option<(&str, &str)> {
        self.context.model.as_ref().map(|(provider, model)| (provider.as_str(), model.as_str()))
    }

    /// How hard the model thought last, as the file says it.
    pub fn thinking(&self) -> Option<&Value> {
        self.context.thinking.as_ref()
    }

    /// What it was named last, if it has a name.
    pub fn name(&self) -> Option<&str> {
        self.context.name.as_deref()
    }

    /// The entries from the first to the last appended one, as the file has them, without those of other branches.
    pub fn branch(&self) -> Vec<Value> {
        context::branch(&self.entries).into_iter().cloned().map(Value::Object).collect()
    }

    /// The entry that was appended last.
    pub fn last_entry(&self) -> Option<&Map<String, Value>> {
        self.entries.last()
    }

    /// Whether there is an entry of this id, on whatever branch.
    pub fn has_entry(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Appends a message; gives its entry's id.
    ///
    /// # Errors
    /// If it can not be written; then the session is as before.
    pub fn append_message(&mut self, message: &Message) -> Result<String, SessionError> {
        if let Message::Custom(custom) = message {
            return self.append_custom_message(custom);
        }
        let keep = matches!(message, Message::User(_) | Message::Assistant(_));
        let value = serde_json::to_value(message).unwrap_or_default();
        let id = self.append("message", [("message", value)], keep)?;
        self.context.messages.push(message.clone());
        Ok(id)
    }

    /// Appends a message of a plugin's own kind; gives its entry's id.
    ///
    /// # Errors
    /// As [`Self::append_message`].
    pub fn append_custom_message(&mut self, message: &CustomMessage) -> Result<String, SessionError> {
        let content = serde_json::to_value(&message.content).unwrap_or_default();
        let fields = [
            ("customType", json!(message.custom_type)),
            ("content", content),
            ("display", json!(message.display)),
            ("details", message.details.clone().unwrap_or_default()),
        ];
        let id = self.append("custom_message", fields, false)?;
        self.context.messages.push(Message::Custom(message.clone()));
        Ok(id)
    }

    /// Appends data of a plugin's own kind, which no model sees; gives its entry's id.
    ///
    /// # Errors
    /// As [`Self::append_message`].
    pub fn append_custom(&mut self, custom_type: &str, data: Value) -> Result<String, SessionError> {
        let id = self.append("custom", [("customType", json!(custom_type)), ("data", data)], false)?;
        if let Some(data) = self.entries.last().and_then(|entry| entry.get("data")) {
            self.context.keep(custom_type, data);
        }
        Ok(id)
    }

    /// What is kept of a tool on this branch.
    pub fn kept(&self, tool: &str) -> Arc<Kept> {
        self.context.kept.get(&context::store_of(tool)).cloned().unwrap_or_default()
    }

    /// Keeps what a call of a tool wants; gives the id of the entry that says so.
    ///
    /// # Errors
    /// As [`Self::append_message`].
    pub fn keep(&mut self, tool: &str, changes: Changes) -> Result<String, SessionError> {
        let (mut set, mut delete) = (Map::new(), Vec::new());
        for (key, value) in changes {
            match value {
                Some(value) => drop(set.insert(key, value)),
                None => delete.push(key),
            }
        }
        self.append_custom(&context::store_of(tool), json!({"set": set, "delete": delete}))
    }

    /// Labels an entry, or takes its label away; gives the id of the entry that says so.
    ///
    /// # Errors
    /// As [`Self::append_message`].
    pub fn set_label(&mut self, target: &str, label: Option<&str>) -> Result<String, SessionError> {
        self.append("label", [("targetId", json!(target)), ("label", json!(label))], false)
    }

    /// Names the session.
    ///
    /// # Errors
    /// As [`Self::append_message`].
    pub fn set_name(&mut self, name: &str) -> Result<String, SessionError> {
        let id = self.append("session_info", [("name", json!(name))], false)?;
        self.context.name = Some(name.to_owned()).filter(|name| !name.is_empty());
        Ok(id)
    }

    /// Has a model see other content in place of an entry's, or, with `null`, nothing at all.
    ///
    /// # Errors
    /// As [`Self::append_message`].
    pub fn append_edit(&mut self, target: &str, replacement: Value) -> Result<String, SessionError> {
        let fields = [("targetId", json!(target)), ("replacement", replacement)];
        let id = self.append("context_edit", fields, false)?;
        self.context = Context::of(&self.entries);
        Ok(id)
    }

    /// Puts a summary in place of what was said before the entry `first_kept`.
    ///
    /// # Errors
    /// As [`Self::append_message`].
    pub fn append_compaction(
        &mut self,
        summary: &str,
        first_kept: &str,
        tokens_before: u64,
        details: Value,
    ) -> Result<String, SessionError> {
        let system = serde_json::to_value(Message::System(system_state(self.messages()))).unwrap_or_default();
        let fields = [
            ("summary", json!(summary)),
            ("firstKeptEntryId", json!(first_kept)),
            ("tokensBefore", json!(tokens_before)),
            ("systemMessage", system),
            ("details", details),
            ("fromHook", json!(true)),
        ];
        let id = self.append("compaction", fields, false)?;
        self.context = Context::of(&self.entries);
        Ok(id)
    }

    /// Notes which model is asked from here on, if it is another than before.
    ///
    /// # Errors
    /// As [`Self::append_message`].
    pub fn note_model(&mut self, provider: &str, model: &str) -> Result<(), SessionError> {
        if self.model() == Some((provider, model)) {
            return Ok(());
        }
        self.append("model_change", [("provider", json!(provider)), ("modelId", json!(model))], false)?;
        self.context.model = Some((provider.to_owned(), model.to_owned()));
        Ok(())
    }

    /// Notes how hard the model thinks from here on, if it is not as before.
    ///
    /// # Errors
    /// As [`Self::append_message`].
    pub fn note_thinking(&mut self, level: &Value) -> Result<(), SessionError> {
        if self.thinking() == Some(level) {
            return Ok(());
        }
        self.append("thinking_level_change", [("thinkingLevel", level.clone())], false)?;
        self.context.thinking = Some(level.clone());
        Ok(())
    }

    /// Fields that are `null` are left out, but for those that mean something then.
    fn append<const N: usize>(
        &mut self,
        kind: &str,
        fields: [(&str, Value); N],
        keep: bool,
    ) -> Result<String, SessionError> {
        const NULL_COUNTS: [&str; 2] = ["replacement", "data"];
        let id = self.new_id();
        let mut entry = Entry::new();
        entry.insert("type".to_owned(), json!(kind));
        entry.insert("id".to_owned(), json!(id));
        entry.insert("parentId".to_owned(), json!(self.leaf));
        entry.insert("timestamp".to_owned(), json!(now_iso()));
        let counts = |(name, value): &(&str, Value)| !value.is_null() || NULL_COUNTS.contains(name);
        entry.extend(fields.into_iter().filter(counts).map(|(name, value)| (name.to_owned(), value)));
        let entry = Value::Object(entry);
        if let Some(storage) = &mut self.storage {
            storage.append(&entry.to_string(), keep)?;
        }
        if let Value::Object(entry) = entry {
            self.entries.push(entry);
        }
        self.ids.insert(id.clone());
        self.leaf = Some(id.clone());
        Ok(id)
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

    /// Every append fails once this is cancelled.
    #[cfg(test)]
    pub(crate) fn breaks(&self) -> tokio_util::sync::CancellationToken {
        self.storage.as_ref().unwrap().breaks.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{AssistantMessage, UserMessage};

    fn user(text: &str) -> Message {
        Message::User(UserMessage { content: vec![atoll_table::Content::text(text)], timestamp: 1 })
    }

    /// The types of a file's lines.
    fn kinds(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone()).collect()
    }

    #[test]
    fn nothing_is_written_before_there_is_something_to_keep() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = Session::new(Some(&folder.path().join("s")), Path::new("/p"));
        session.note_model("mock", "m").unwrap();
        session.append_message(&Message::System(crate::message::SystemMessage::default())).unwrap();
        assert!(!session.path().unwrap().exists());
        session.append_message(&user("hi")).unwrap();
        assert_eq!(kinds(session.path().unwrap()), ["session", "model_change", "message", "message"]);
    }

    #[test]
    fn a_session_goes_on_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = Session::new(Some(folder.path()), Path::new("/p"));
        session.note_model("mock", "m").unwrap();
        session.note_thinking(&json!("high")).unwrap();
        session.append_message(&user("one")).unwrap();
        session.append_message(&Message::Assistant(AssistantMessage::default())).unwrap();
        let (id, messages) = (session.id().to_owned(), session.messages().to_vec());
        drop(session);
        let mut again = Session::latest(folder.path(), Path::new("/p")).unwrap();
        assert_eq!((again.id(), again.messages()), (id.as_str(), &messages[..]));
        assert_eq!((again.model(), again.thinking()), (Some(("mock", "m")), Some(&json!("high"))));
        again.note_model("mock", "m").unwrap();
        again.note_thinking(&json!("high")).unwrap();
        again.append_message(&user("two")).unwrap();
        let path = again.path().unwrap().to_owned();
        let messages = again.messages().to_vec();
        drop(again);
        assert_eq!(Session::open(&path).unwrap().messages(), messages);
        let noted = ["session", "model_change", "thinking_level_change", "message", "message", "message"];
        assert_eq!(kinds(&path), noted);
    }

    /// An older one used to be taken without a word.
    #[test]
    fn a_damaged_newest_session_is_an_error_and_no_other_takes_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = Session::new(Some(folder.path()), Path::new("/p"));
        session.append_message(&user("one")).unwrap();
        drop(session);
        let path = folder.path().join("9.jsonl");
        for damage in ["", "not json", "{\"type\":\"session\",\"version\":9,\"id\":\"x\",\"cwd\":\"/p\"}\n"] {
            std::fs::write(&path, damage).unwrap();
            let error = Session::latest(folder.path(), Path::new("/p")).unwrap_err().to_string();
            assert!(error.contains("9.jsonl") && !error.contains('\n'), "{error}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_failed_append_changes_nothing_and_says_once_why_and_what_to_do() {
        let mut session = Session::new(Some(Path::new("/proc/nowhere")), Path::new("/p"));
        let error = session.append_message(&user("one")).unwrap_err();
        assert!(session.messages().is_empty() && session.is_empty());
        let text = error.to_string();
        assert_eq!(text.matches("os error").count(), 1, "{text}");
        assert!(text.contains("--no-session"), "{text}");
        assert!(std::error::Error::source(&error).is_none());
    }

    /// What plugins put into a session is there for the model and for a later run, as far as either should see it.
    #[test]
    fn entries_of_plugins_are_kept_and_count_as_far_as_they_should() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = Session::new(Some(folder.path()), Path::new("/p"));
        let said = session.append_message(&user("one")).unwrap();
        session.append_custom("rules.state", json!({"n": 1})).unwrap();
        let message = CustomMessage { custom_type: "rules".into(), display: true, ..CustomMessage::default() };
        session.append_message(&Message::Custom(message)).unwrap();
        session.set_label(&said, Some("start")).unwrap();
        session.set_label(&said, None).unwrap();
        session.set_name("work").unwrap();
        assert!(session.has_entry(&said) && !session.has_entry("nothing"));
        assert_eq!((session.messages().len(), session.name()), (2, Some("work")));
        session.append_edit(&said, Value::Null).unwrap();
        assert_eq!(session.messages().len(), 1, "what is edited out is not sent");
        let (branch, messages) = (session.branch(), session.messages().len());
        let path = session.path().unwrap().to_owned();
        drop(session);
        let again = Session::open(&path).unwrap();
        assert_eq!((again.branch(), again.messages().len(), again.name()), (branch, messages, Some("work")));
        let kinds = kinds(&path);
        let expected =
            ["session", "message", "custom", "custom_message", "label", "label", "session_info", "context_edit"];
        assert_eq!(kinds, expected);
        assert!(again.branch()[4].get("label").is_none(), "a label is taken away by being absent");
    }

    #[test]
    fn what_tools_keep_is_there_on_its_branch_and_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = Session::new(Some(folder.path()), Path::new("/p"));
        let at_first = session.append_message(&user("one")).unwrap();
        let changes = |changes: &[(&str, Option<Value>)]| -> Changes {
            changes.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
        };
        session.keep("codemode", changes(&[("a", Some(json!(1))), ("b", Some(json!(2)))])).unwrap();
        session.keep("codemode", changes(&[("a", None), ("c", Some(json!({"d": null})))])).unwrap();
        // What is not as it should be changes nothing, nor does what another tool keeps.
        for data in [json!(null), json!({"set": 1, "delete": {}}), json!({"delete": [1]})] {
            session.append_custom("codemode-store", data).unwrap();
        }
        session.keep("other", changes(&[("b", None)])).unwrap();
        let values = |session: &Session| ["a", "b", "c"].map(|key| session.kept("codemode").get(key).cloned());
        assert_eq!(values(&session), [None, Some(json!(2)), Some(json!({"d": null}))]);
        let entry = session.branch()[2].clone();
        assert_eq!(
            (&entry["customType"], &entry["data"]),
            (&json!("codemode-store"), &json!({"set": {"c": {"d": null}}, "delete": ["a"]}))
        );
        let path = session.path().unwrap().to_owned();
        let before = values(&session);
        drop(session);
        assert_eq!(values(&Session::open(&path).unwrap()), before);
        // Another branch, from before anything was kept.
        let mut text = std::fs::read_to_string(&path).unwrap();
        let line =
            json!({"type": "custom", "id": "x", "parentId": at_first, "customType": "t", "timestamp": "", "data": 1});
        text.push_str(&format!("{line}\n"));
        std::fs::write(&path, text).unwrap();
        assert_eq!(values(&Session::open(&path).unwrap()), [None, None, None]);
    }

    #[test]
    fn a_summary_takes_the_place_of_what_was_before_and_keeps_the_instructions() {
        let mut session = Session::new(None, Path::new("/p"));
        let system = crate::message::SystemMessage { content: "Be brief.".into(), ..Default::default() };
        session.append_message(&Message::System(system)).unwrap();
        session.append_message(&user("old")).unwrap();
        let kept = session.append_message(&user("kept")).unwrap();
        session.append_compaction("short", &kept, 10, Value::Null).unwrap();
        let messages = session.messages();
        assert!(matches!(&messages[0], Message::System(system) if system.content == "Be brief."), "{messages:?}");
        assert_eq!(messages.len(), 3, "{messages:?}");
        assert_eq!(messages[2], user("kept"));
    }
}
