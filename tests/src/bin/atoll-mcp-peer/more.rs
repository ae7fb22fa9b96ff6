//! What the server has beside tools: resources, prompts, and tools that ask the client or give what is no text.

use std::{
    collections::HashMap,
    io::Write as _,
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
};

use serde_json::{Value, json};

use super::{answer, say, text, tool};

/// A picture of one pixel.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// The bytes 0 to 3, which are no text.
const BYTES: &str = "/wABAg==";

const TOOLS: [&str; 8] = ["ask", "gifts", "say", "flood", "more_prompts", "cancelled", "needs_page", "slow_begun"];

pub(crate) fn tools() -> Vec<Value> {
    let number = json!({"type": "integer"});
    vec![
        tool(
            "ask",
            "Asks the client, and gives what it answers.",
            &json!({"method": {"type": "string"}, "params": {"type": "object"}}),
        ),
        tool("gifts", "Gives one of each kind.", &json!({})),
        tool("say", "Says lines for the log.", &json!({})),
        tool("flood", "Prints so many bytes that are no message.", &json!({"bytes": number})),
        tool("more_prompts", "Adds a prompt.", &json!({})),
        tool("cancelled", "Tells how many calls were cancelled.", &json!({})),
        tool("slow_begun", "Answers once a call of `slow` has arrived.", &json!({})),
        tool("needs_page", "Wants a page to be opened first.", &json!({})),
        tool("change_many", "Changes the tools so often.", &json!({"times": number})),
    ]
}

pub(crate) fn is_one(params: &Value) -> bool {
    TOOLS.iter().any(|name| params["name"] == *name)
}

pub(crate) fn capabilities(has_more: bool) -> Value {
    match has_more {
        true => json!({"tools": {"listChanged": true}, "resources": {"listChanged": true},
                       "prompts": {"listChanged": true}, "logging": {}}),
        false => json!({"tools": {"listChanged": true}}),
    }
}

#[derive(Default)]
pub(crate) struct More {
    asked: Mutex<HashMap<u64, mpsc::Sender<Value>>>,
    next: AtomicU64,
    has_second: AtomicBool,
    cancelled: AtomicU64,
    slow: Mutex<bool>,
    slow_came: Condvar,
}

impl More {
    /// An answer of the client's.
    pub(crate) fn answered(&self, message: Value) {
        let waiting =
            message["id"].as_u64().and_then(|id| self.asked.lock().unwrap_or_else(PoisonError::into_inner).remove(&id));
        if let Some(waiting) = waiting {
            let _ = waiting.send(message);
        }
    }

    pub(crate) fn hear(&self, message: &Value) {
        if message["method"] == "notifications/cancelled" {
            self.cancelled.fetch_add(1, Ordering::SeqCst);
        }
        if message["method"] == "tools/call" && message["params"]["name"] == "slow" {
            *self.slow.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.slow_came.notify_all();
        }
    }

    fn ask(&self, method: &Value, params: &Value) -> Value {
        let id = self.next.fetch_add(1, Ordering::SeqCst);
        let (sender, receiver) = mpsc::channel();
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut answer = receiver.recv().unwrap_or_default();
        match answer["error"].take() {
            Value::Null => answer["result"].take(),
            error => json!({"error": error}),
        }
    }

    /// Carries out a call.
    pub(crate) fn call(&self, id: &Value, params: &Value) {
        let arguments = &params["arguments"];
        let result = match params["name"].as_str().unwrap_or_default() {
            "ask" => text(self.ask(&arguments["method"], &arguments["params"]).to_string()),
            "say" => {
                for (level, logger, data) in
                    [("debug", json!("db"), json!("a\nb")), ("error", json!(null), json!({"code": 7}))]
                {
                    say(&json!({"jsonrpc": "2.0", "method": "notifications/message",
                        "params": {"level": level, "logger": logger, "data": data}}));
                }
                text("said")
            }
            "flood" => {
                let mut left = usize::try_from(arguments["bytes"].as_u64().unwrap_or_default()).unwrap_or_default();
                let much = vec![b'x'; 1 << 20];
                let mut out = std::io::stdout().lock();
                while left > 0 {
                    let some = left.min(much.len());
                    let _ = out.write_all(&much[..some]);
                    left -= some;
                }
                let _ = out.write_all(b"\n");
                drop(out);
                text("flooded")
            }
            "more_prompts" => {
                self.has_second.store(true, Ordering::SeqCst);
                say(&json!({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}));
                text("added")
            }
            "cancelled" => text(self.cancelled.load(Ordering::SeqCst).to_string()),
            "slow_begun" => {
                let begun = self.slow.lock().unwrap_or_else(PoisonError::into_inner);
                let begun = self.slow_came.wait_while(begun, |begun| !*begun);
                drop(begun.unwrap_or_else(PoisonError::into_inner));
                text("begun")
            }
            "needs_page" => {
                let page =
                    json!({"mode": "url", "elicitationId": "1", "url": "https://a.example/pay", "message": "Pay."});
                say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32042, "message": "first",
                    "data": {"elicitations": [page]}}}));
                return;
            }
            _ => json!({
                "content": [
                    {"type": "image", "data": PICTURE, "mimeType": "image/png"},
                    {"type": "audio", "data": "AQID", "mimeType": "audio/wav"},
                    {"type": "resource_link", "uri": "peer://note", "name": "note", "title": "A note", "mimeType": "text/plain", "size": 5},
                    {"type": "resource", "resource": {"uri": "peer://bytes", "blob": BYTES, "mimeType": "application/pdf"}},
                    {"type": "resource", "resource": {"uri": "peer://text", "text": "embedded", "mimeType": "text/plain"}},
                    {"type": "resource", "resource": {"uri": "ui://app", "text": "<html>", "mimeType": "text/html"}},
                    {"type": "hologram", "data": 1},
                ],
                "structuredContent": [1.5, null, "x"],
                "_meta": {"secret": true},
            }),
        };
        answer(id, &result);
    }

    /// What it gives to a request that is no call; none if there is no such request.
    pub(crate) fn gives(&self, method: &str, params: &Value) -> Option<Value> {
        Some(match method {
            "resources/list" => {
                let first = json!({"uri": "peer://note", "name": "note", "icons": [{"src": "x"}]});
                let app = json!({"uri": "ui://app", "name": "app"});
                let second = json!({"uri": "peer://bytes", "name": "bytes", "mimeType": "application/pdf", "size": 4});
                match params["cursor"].as_str() {
                    None => json!({"resources": [first, app], "nextCursor": "2"}),
                    Some(_) => json!({"resources": [second]}),
                }
            }
            "resources/templates/list" => {
                json!({"resourceTemplates": [{"uriTemplate": "peer://note/{number}", "name": "numbered"}]})
            }
            "resources/read" => match params["uri"].as_str().unwrap_or_default() {
                "peer://bytes" => {
                    json!({"contents": [{"uri": "peer://bytes", "blob": BYTES, "mimeType": "application/pdf"}]})
                }
                uri => {
                    json!({"contents": [{"uri": uri, "text": format!("what is in {uri}"), "mimeType": "text/plain"}]})
                }
            },
            "prompts/list" => {
                let greet = json!({"name": "greet", "description": "Greets somebody.", "arguments": [
                    {"name": "who", "required": true}, {"name": "how"}]});
                let mut all = vec![greet];
                if self.has_second.load(Ordering::SeqCst) {
                    all.push(json!({"name": "second"}));
                }
                json!({"prompts": all})
            }
            "prompts/get" => {
                let said = format!("{}: {}", params["name"].as_str().unwrap_or_default(), params["arguments"]);
                json!({"messages": [{"role": "user", "content": {"type": "text", "text": said}}]})
            }
            _ => return None,
        })
    }
}
