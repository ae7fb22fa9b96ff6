//! An extension that looks at command lines before they run, and stops those that overwrite what others have pushed.

use atoll_plugin::{
    Error, EventId, Extension, export_extension,
    extension::{Event, Outcome, StartReason},
    types::Subscription,
};
use serde_json::Value;

struct Gate;

impl Extension for Gate {
    async fn start(_: StartReason) -> Result<(Self, Subscription), Error> {
        // Only what is named here is sent. `wit/extension.wit` lists the events and what may be answered.
        Ok((Self, Subscription::new().event("tool-call")))
    }

    async fn on_event(&self, _: EventId, event: Event) -> Result<Outcome, Error> {
        let Event::ToolCall(call) = event else { return Ok(Outcome::Pass) };
        // An error blocks the call: a gate that can not look lets nothing pass.
        let arguments: Value = serde_json::from_str(&call.arguments)?;
        if call.tool == "bash" && arguments["command"].as_str().is_some_and(is_forced_push) {
            // The model reads this, so it says what to do instead.
            return Ok(Outcome::block("Pushing by force is not allowed here. Push to a branch of your own."));
        }
        Ok(Outcome::Pass)
    }
}

export_extension!(Gate);

fn is_forced_push(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.windows(2).any(|two| two == ["git", "push"]) && words.iter().any(|word| ["--force", "-f"].contains(word))
}

// What calls no import is tested with plain `cargo test`.
#[cfg(test)]
mod tests {
    #[test]
    fn only_a_push_is_forced() {
        assert!(super::is_forced_push("git push -f origin main"));
        assert!(!super::is_forced_push("git push origin main"));
    }
}
