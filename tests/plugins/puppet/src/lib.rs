//! An extension that does what the user's settings say: `pluginSettings.<its name>`.
//!
//! ```json
//! {
//!   "events": ["tool-call"], "topics": [], "flags": ["name"], "commands": {"name": [STEP, …]},
//!   "shortcuts": {"ctrl+g": "name"},
//!   "start": [STEP, …], "stop": [STEP, …],
//!   "tools": [{"name": "…", "steps": [STEP, …], "inactive": false, "deferred": false}],
//!   "record": "entry" | "store" | "log",
//!   "answers": {"tool-call": [{"when": "text in the event", "steps": [STEP, …], "block": "…", …}]}
//! }
//! ```
//!
//! Of the answers to an event the first counts whose `when` is in it. What a step gives is what tools and commands show;
//! `steps.rs` lists them. The tool `puppet` runs the steps of its arguments.

mod steps;

use std::cell::RefCell;

use atoll_plugin::{
    Call, Content, Error, EventId, Exported as _, Extension, Tool, ToolInfo, ToolOutput, export_extension,
    extension::{Block, Completion, Event, Outcome, ResultPatch, StartReason, Transform},
    host, log, session, store, table, tools,
    types::{Exposure, Subscription},
};
use futures::lock::Mutex;
use serde_json::{Value, json};
use steps::{Place, text, texts};

struct Puppet {
    settings: Value,
    /// What it was told, in order.
    told: RefCell<Vec<Value>>,
    /// Held while that is written, so that what is written last is the newest.
    writes: Mutex<()>,
}

fn settings() -> Result<Value, Error> {
    Ok(serde_json::from_str(&host::settings())?)
}

/// What it wants, as these settings say.
fn wanted(settings: &Value) -> Subscription {
    let mut wanted = Subscription::new();
    wanted.events = texts(&settings["events"]);
    wanted.topics = texts(&settings["topics"]);
    for (name, steps) in settings["commands"].as_object().into_iter().flatten() {
        wanted = match steps.get("completes") {
            Some(_) => wanted.completed_command(name, "Does what the settings say."),
            None => wanted.command(name, "Does what the settings say."),
        };
    }
    for (key, command) in settings["shortcuts"].as_object().into_iter().flatten() {
        wanted = wanted.shortcut(key, "Runs a command.", &text(command));
    }
    for name in texts(&settings["flags"]) {
        wanted = match name.strip_suffix('=') {
            Some(name) => wanted.flag_text(name, "Is what the user says.", Some("unsaid")),
            None => wanted.flag(&name, "Is there or not."),
        };
    }
    wanted
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

fn content(content: &[Content]) -> String {
    let texts = content.iter().filter_map(|piece| match piece {
        Content::Text(text) => Some(text.as_str()),
        Content::Image(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// An event as JSON.
fn shown(event: &Event) -> Value {
    let fields = match event {
        Event::Input(input) => json!({
            "text": input.text, "images": input.images.len(), "source": input.source,
            "delivery": input.delivery.map(|delivery| format!("{delivery:?}")),
        }),
        Event::ToolCall(call) => json!({
            "tool": call.tool, "id": call.id, "parentId": call.parent_id, "plugin": call.plugin,
            "readOnly": call.annotations.read_only, "arguments": parsed(&call.arguments),
        }),
        Event::ToolResult(result) => json!({
            "tool": result.call.tool, "id": result.call.id, "text": content(&result.content), "isError": result.is_error,
            "structured": result.structured.as_deref().map(parsed),
        }),
        Event::Bus(message) => {
            json!({"topic": message.topic, "sender": message.sender, "data": parsed(&message.data)})
        }
        Event::Other(other) => parsed(&other.fields),
    };
    json!({"event": event.name(), "fields": fields})
}

/// A handler's answer as the settings say it.
fn outcome(answer: &Value) -> Outcome {
    let said = |key: &str| answer.get(key);
    if let Some(reason) = said("block") {
        return Outcome::Block(Block {
            reason: reason.as_str().unwrap_or_default().to_owned(),
            terminate: answer["terminate"].as_bool().unwrap_or_default(),
        });
    }
    if let Some(arguments) = said("rewrite") {
        return Outcome::rewrite(arguments);
    }
    if let Some(raw) = said("rewriteRaw") {
        return Outcome::Rewrite(raw.as_str().unwrap_or_default().to_owned());
    }
    if let Some(patch) = said("patch") {
        return Outcome::Patch(ResultPatch {
            content: patch.get("text").map(|text| vec![Content::Text(text.as_str().unwrap_or_default().to_owned())]),
            details: patch.get("details").map(Value::to_string),
            structured: patch.get("structured").map(Value::to_string),
            is_error: patch.get("isError").and_then(Value::as_bool),
            usage: None,
        });
    }
    if let Some(text) = said("transform") {
        return Outcome::Transform(Transform { text: text.as_str().unwrap_or_default().to_owned(), images: None });
    }
    if said("handled").is_some() {
        return Outcome::Handled;
    }
    if let Some(fields) = said("reply") {
        return Outcome::reply(fields);
    }
    Outcome::Pass
}

impl Puppet {
    /// Notes what it was told, where the settings say so.
    async fn record(&self, event: &Value) -> Result<(), Error> {
        self.told.borrow_mut().push(event.clone());
        match self.settings["record"].as_str() {
            Some("entry") => {
                session::append("told".to_owned(), event.to_string()).await?;
            }
            Some("store") => {
                let _turn = self.writes.lock().await;
                let told = Value::from(self.told.borrow().clone()).to_string();
                store::set("told".to_owned(), told.into_bytes()).await?;
            }
            Some("log") => log::write(log::Level::Info, &event.to_string()),
            _ => {}
        }
        Ok(())
    }
}

impl Extension for Puppet {
    async fn start(reason: StartReason) -> Result<(Self, Subscription), Error> {
        let settings = settings()?;
        let puppet = Self { told: RefCell::default(), writes: Mutex::default(), settings };
        let reason = match reason {
            StartReason::Startup => "startup",
            StartReason::Reload => "reload",
            StartReason::Restart => "restart",
        };
        puppet.record(&json!({"event": "start", "fields": {"reason": reason}})).await?;
        let tools: Vec<_> = puppet.settings["tools"].as_array().into_iter().flatten().map(dynamic).collect();
        if !tools.is_empty() {
            table::register(tools).await?;
        }
        steps::run(&puppet.settings["start"], &Place::own()).await?;
        let wanted = wanted(&puppet.settings);
        Ok((puppet, wanted))
    }

    async fn on_event(&self, id: EventId, event: Event) -> Result<Outcome, Error> {
        let shown = shown(&event);
        self.record(&shown).await?;
        let text = shown.to_string();
        let answers = self.settings["answers"][event.name()].as_array().into_iter().flatten();
        for answer in answers {
            if answer["when"].as_str().is_none_or(|when| text.contains(when)) {
                steps::run(&answer["steps"], &Place::of(&id.0)).await?;
                return Ok(outcome(answer));
            }
        }
        Ok(Outcome::Pass)
    }

    async fn command(&self, id: EventId, name: &str, arguments: &str) -> Result<(), Error> {
        self.record(&json!({"event": "command", "fields": {"name": name, "arguments": arguments}})).await?;
        let command = &self.settings["commands"][name];
        let steps = command.get("steps").unwrap_or(command);
        let gave = steps::run(steps, &Place::of(&id.0)).await?;
        self.record(&json!({"event": "command-end", "fields": {"name": name, "gave": gave}})).await
    }

    async fn complete(&self, name: &str, arguments: &str) -> Result<Vec<Completion>, Error> {
        let known = texts(&self.settings["commands"][name]["completes"]);
        let fitting = known.into_iter().filter(|value| value.starts_with(arguments));
        Ok(fitting.map(|value| Completion { value, label: None, description: None }).collect())
    }

    async fn stop(&self) {
        let _ = self.record(&json!({"event": "stop", "fields": {}})).await;
        let _ = steps::run(&self.settings["stop"], &Place::own()).await;
    }
}

export_extension!(Puppet);

/// A tool of the settings.
fn dynamic(tool: &Value) -> atoll_plugin::types::Tool {
    let info = ToolInfo::new(&text(&tool["name"]), "Does what the settings say.");
    let info = if tool["deferred"].as_bool().unwrap_or_default() { info.exposure(Exposure::Deferred) } else { info };
    if tool["inactive"].as_bool().unwrap_or_default() { info.inactive() } else { info }.into_tool()
}

/// Runs the steps of its arguments.
struct Run;

impl Tool for Run {
    type Arguments = Value;

    fn info() -> ToolInfo {
        ToolInfo::new("puppet", "Does what its arguments say.").parameters(&json!({
            "type": "object",
            "properties": { "steps": { "type": "array" } },
            "required": ["steps"],
        }))
    }

    async fn run(arguments: Value, call: Call) -> Result<ToolOutput, Error> {
        let gave = steps::run(&arguments["steps"], &Place::of(&call.id)).await?;
        Ok(ToolOutput::text(Value::from(gave).to_string()))
    }
}

/// The static tool, and those of the settings.
struct Tools;

impl tools::Guest for Tools {
    fn list_tools() -> Vec<atoll_plugin::types::Tool> {
        vec![Run::info().into_tool()]
    }

    fn prepare(tool: String, _: String) -> Result<String, Error> {
        Err(Error::not_found(tool))
    }

    async fn call(call: tools::Invocation) -> Result<ToolOutput, Error> {
        let of_call = Call { id: call.id, parent_id: call.parent_id, cwd: call.cwd };
        if call.tool == "puppet" {
            return Run::run(parsed(&call.arguments), of_call).await;
        }
        let Some(puppet) = Puppet::instance() else { return Err(Error::unavailable("It has not been started.")) };
        let tools = puppet.settings["tools"].as_array().into_iter().flatten();
        let Some(tool) = tools.into_iter().find(|tool| tool["name"] == call.tool.as_str()) else {
            return Err(Error::not_found(call.tool));
        };
        let gave = steps::run(&tool["steps"], &Place::of(&of_call.id)).await?;
        Ok(ToolOutput::text(Value::from(gave).to_string()))
    }
}

tools::export!(Tools);
