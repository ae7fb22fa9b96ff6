//! Runs one extension written in JavaScript or TypeScript. One instance of this component lives for each script.
//!
//! `js/` is what scripts see: the object `atoll`, and thin stand-ins for modules that extensions of Pi import. It reaches
//! outside through the operations of `ops/` only, each of which is one function of the contract. So a script can do what it
//! was granted, and this component adds nothing to that. It must never keep an answer of the host in place of asking again:
//! grants change while a script runs.

mod absent;
mod events;
mod modules;
mod ops;
mod runtime;

use atoll_plugin::{
    Error, EventId, Extension, ToolOutput, export_extension,
    extension::{Completion, Event, Outcome, StartReason},
    tools,
    types::{Subscription, Tool},
};
use serde_json::json;

use crate::runtime::Runtime;

/// The script.
struct Script;

impl Extension for Script {
    async fn start(reason: StartReason) -> Result<(Self, Subscription), Error> {
        let reason = match reason {
            StartReason::Startup => "startup",
            StartReason::Reload => "reload",
            StartReason::Restart => "restart",
        };
        let wanted = runtime::start(reason).await?;
        Ok((Self, wanted))
    }

    async fn on_event(&self, id: EventId, event: Event) -> Result<Outcome, Error> {
        let (name, fields) = events::to_script(event)?;
        let answer = Runtime::get()?.ask("event", &json!({"id": id.0, "name": name, "fields": fields})).await?;
        events::outcome(answer)
    }

    async fn command(&self, id: EventId, name: &str, arguments: &str) -> Result<(), Error> {
        let arguments = json!({"id": id.0, "name": name, "arguments": arguments});
        Runtime::get()?.ask("command", &arguments).await.map(|_| ())
    }

    async fn complete(&self, name: &str, arguments: &str) -> Result<Vec<Completion>, Error> {
        let found = Runtime::get()?.ask("complete", &json!({"name": name, "arguments": arguments})).await?;
        events::completions(&found)
    }

    async fn stop(&self) {
        if let Ok(runtime) = Runtime::get() {
            // It has 5 seconds, and nobody reads what goes wrong.
            let _ = runtime.ask("stop", &json!({})).await;
        }
    }
}

export_extension!(Script);

/// The tools that the script adds when it starts, or later.
struct Tools;

impl tools::Guest for Tools {
    fn list_tools() -> Vec<Tool> {
        Vec::new()
    }

    fn prepare(tool: String, arguments: String) -> Result<String, Error> {
        Runtime::get()?.prepare(&tool, &arguments)
    }

    async fn call(call: tools::Invocation) -> Result<ToolOutput, Error> {
        let call = json!({
            "id": call.id,
            "parentId": call.parent_id,
            "tool": call.tool,
            "arguments": events::parsed("the arguments", &call.arguments)?,
            "cwd": call.cwd,
        });
        events::tool_output(Runtime::get()?.ask("tool", &call).await?)
    }
}

tools::export!(Tools);
