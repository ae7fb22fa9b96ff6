//! What a session's entries come to: the messages that a model should see, and which model is asked.

use std::{collections::HashMap, sync::Arc};

use atoll_table::kept::Kept;
use serde_json::{Map, Value, json};

use crate::{
    message::{Message, UserMessage},
    time::now_ms,
};

/// A line of a session file behind its header.
pub(super) type Entry = Map<String, Value>;

/// What the entries from the root to the leaf come to. Kept up to date with each entry that is appended, for a walk
/// over all of them at each turn makes a long session slow.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// From the newest summary on, with edits applied.
    pub(super) messages: Vec<Message>,
    /// The provider and the model.
    pub(super) model: Option<(String, String)>,
    /// How hard it thinks.
    pub(super) thinking: Option<Value>,
    /// The session's name.
    pub(super) name: Option<String>,
    /// What is kept of tools, by the type of the entries that say so.
    pub(super) kept: HashMap<String, Arc<Kept>>,
}

/// How the types of entries end that say what is kept of a tool.
const STORE: &str = "-store";

/// The type of the entries that say what is kept of a tool.
pub(super) fn store_of(tool: &str) -> String {
    format!("{tool}{STORE}")
}

impl Context {
    /// Works it out for the branch of the last entry.
    pub(super) fn of(entries: &[Entry]) -> Self {
        let branch = branch(entries);
        let text = |entry: &Entry, name: &str| Some(entry.get(name)?.as_str()?.to_owned());
        let newest = |kind: &str| branch.iter().rfind(|entry| is(entry, kind));
        Self {
            messages: messages(&branch),
            model: newest("model_change").and_then(|entry| Some((text(entry, "provider")?, text(entry, "modelId")?))),
            thinking: newest("thinking_level_change").and_then(|entry| entry.get("thinkingLevel").cloned()),
            name: newest("session_info").and_then(|entry| text(entry, "name")).filter(|name| !name.is_empty()),
            kept: HashMap::new(),
        }
        .keeping(&branch)
    }

    fn keeping(mut self, branch: &[&Entry]) -> Self {
        for entry in branch.iter().filter(|entry| is(entry, "custom")) {
            if let (Some(kind), Some(data)) = (entry.get("customType").and_then(Value::as_str), entry.get("data")) {
                self.keep(kind, data);
            }
        }
        self
    }

    /// Takes an entry of a plugin's own kind into account. One that is not what it should be changes nothing.
    pub(super) fn keep(&mut self, custom_type: &str, data: &Value) {
        if !custom_type.ends_with(STORE) {
            return;
        }
        let Some(data) = data.as_object() else { return };
        let set = data.get("set").and_then(Value::as_object).into_iter().flatten();
        let delete = data.get("delete").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let kept = Arc::make_mut(self.kept.entry(custom_type.to_owned()).or_default());
        for (key, value) in set {
            kept.change(key.clone(), Some(value.clone()));
        }
        for key in delete {
            kept.change(key.to_owned(), None);
        }
    }
}

/// The entries from the root to the leaf, which is the last one.
pub(super) fn branch(entries: &[Entry]) -> Vec<&Entry> {
    let by_id: HashMap<&str, &Entry> = entries.iter().filter_map(|entry| Some((id(entry)?, entry))).collect();
    let mut branch = Vec::new();
    let mut next = entries.last();
    while let Some(entry) = next {
        branch.push(entry);
        // A file that was tampered with may go round in circles.
        if branch.len() > entries.len() {
            break;
        }
        next = entry.get("parentId").and_then(Value::as_str).and_then(|id| by_id.get(id)).copied();
    }
    branch.reverse();
    branch
}

fn id(entry: &Entry) -> Option<&str> {
    entry.get("id")?.as_str()
}

fn is(entry: &Entry, kind: &str) -> bool {
    entry.get("type").is_some_and(|found| found == kind)
}

fn messages(branch: &[&Entry]) -> Vec<Message> {
    let mut edits: Map<String, Value> = Map::new();
    for entry in branch.iter().filter(|entry| is(entry, "context_edit")) {
        if let Some(target) = entry.get("targetId").and_then(Value::as_str) {
            edits.insert(target.to_owned(), entry.get("replacement").cloned().unwrap_or_default());
        }
    }
    let mut messages = Vec::new();
    let mut rest = branch;
    if let Some(at) = branch.iter().rposition(|entry| is(entry, "compaction")) {
        let compaction = branch[at];
        if let Some(system) = compaction.get("systemMessage").filter(|value| value.is_object()) {
            messages.extend(serde_json::from_value::<Message>(system.clone()));
        }
        messages.push(summary("The conversation so far, summarised:", compaction.get("summary")));
        let first = compaction.get("firstKeptEntryId").and_then(Value::as_str);
        let kept = branch[..at].iter().skip_while(|entry| id(entry) != first);
        let is_system = |entry: &Entry| entry.get("message").is_some_and(|message| message["role"] == "system");
        messages.extend(kept.filter(|entry| !is_system(entry)).filter_map(|entry| message_of(entry, &edits)));
        rest = &branch[at + 1..];
    }
    messages.extend(rest.iter().filter_map(|entry| message_of(entry, &edits)));
    messages
}

fn message_of(entry: &Entry, edits: &Map<String, Value>) -> Option<Message> {
    let field = |name: &str| entry.get(name).cloned().unwrap_or_default();
    let edit = id(entry).and_then(|id| edits.get(id));
    if edit.is_some_and(Value::is_null) {
        return None;
    }
    let mut value = match entry.get("type")?.as_str()? {
        "message" => field("message"),
        "custom_message" => json!({
            "role": "custom",
            "customType": field("customType"),
            "content": field("content"),
            "display": field("display"),
            "details": field("details"),
            "timestamp": now_ms(),
        }),
        "branch_summary" => return Some(summary("What was tried on another branch:", entry.get("summary"))),
        _ => return None,
    };
    if let (Some(edit), Some(fields)) = (edit, value.as_object_mut()) {
        fields.insert("content".to_owned(), edit.clone());
    }
    serde_json::from_value(value).ok()
}

fn summary(intro: &str, text: Option<&Value>) -> Message {
    let text = format!("{intro}\n<summary>\n{}\n</summary>", text.and_then(Value::as_str).unwrap_or_default());
    Message::User(UserMessage { content: vec![atoll_table::Content::text(text)], timestamp: now_ms() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, parent: Option<&str>, fields: &Value) -> Entry {
        let mut entry = json!({"id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z"});
        entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        entry.as_object().unwrap().clone()
    }

    fn said(text: &str) -> Value {
        json!({"type": "message", "message": {"role": "user", "content": text}})
    }

    fn texts(context: &Context) -> Vec<String> {
        let text = |message: &Message| match message {
            Message::User(user) => atoll_table::Content::joined_text(&user.content),
            other => format!("{other:?}"),
        };
        context.messages.iter().map(text).collect()
    }

    #[test]
    fn summaries_and_edits_of_other_programs_are_honoured() {
        let compaction = json!({"type": "compaction", "summary": "SUM", "firstKeptEntryId": "b", "tokensBefore": 1});
        let context = Context::of(&[
            entry("a", None, &said("old")),
            entry("b", Some("a"), &said("kept")),
            entry("c", Some("b"), &compaction),
            entry("d", Some("c"), &said("hidden")),
            entry("e", Some("d"), &json!({"type": "context_edit", "targetId": "d", "replacement": null})),
            entry("f", Some("e"), &said("new")),
        ]);
        assert_eq!(
            texts(&context),
            ["The conversation so far, summarised:\n<summary>\nSUM\n</summary>", "kept", "new"]
        );
    }

    #[test]
    fn only_the_branch_of_the_last_entry_counts() {
        let model = |id: &str| json!({"type": "model_change", "provider": "p", "modelId": id});
        let level = |level: &str| json!({"type": "thinking_level_change", "thinkingLevel": level});
        let context = Context::of(&[
            entry("a", None, &model("old")),
            entry("b", Some("a"), &model("this")),
            entry("c", Some("b"), &level("high")),
            entry("d", Some("c"), &said("left")),
            entry("e", Some("d"), &model("left")),
            entry("f", Some("e"), &level("low")),
            entry("g", Some("c"), &said("here")),
        ]);
        assert_eq!(texts(&context), ["here"]);
        assert_eq!(context.model, Some(("p".to_owned(), "this".to_owned())));
        assert_eq!(context.thinking, Some(json!("high")));
    }

    #[test]
    fn entries_that_go_round_in_circles_end() {
        let context = Context::of(&[entry("a", Some("b"), &said("one")), entry("b", Some("a"), &said("two"))]);
        assert!(context.messages.len() <= 3);
    }
}
