//! A gate: an extension that looks at every command line before it runs, and stops those that delete whole trees.
//!
//! It asks for nothing: watching and blocking need no grant. It fails closed: an `Err` blocks the call.
//!
//! What it can not catch: it reads the line and does not run it. `rm $FLAGS`, a script that is written first and run
//! then, `find -delete`, `git clean -fdx` or another program that deletes are all beyond it. It keeps a model from a
//! mistake, not an attacker from a goal; what must never be touched belongs behind `--sandbox-bash`. It would rather stop
//! too much: `echo rm -rf` is stopped as well.

use atoll_plugin::{
    Error, EventId, Extension, export_extension,
    extension::{Event, Outcome, StartReason},
    types::Subscription,
};
use serde_json::Value;

struct Gate;

impl Extension for Gate {
    async fn start(_: StartReason) -> Result<(Self, Subscription), Error> {
        // Only what is named here is sent: all else costs nothing.
        Ok((Self, Subscription::new().event("tool-call")))
    }

    async fn on_event(&self, _: EventId, event: Event) -> Result<Outcome, Error> {
        let Event::ToolCall(call) = event else { return Ok(Outcome::Pass) };
        if call.tool != "bash" {
            return Ok(Outcome::Pass);
        }
        let arguments: Value = serde_json::from_str(&call.arguments)?;
        if arguments["command"].as_str().is_some_and(deletes_a_tree) {
            // The model reads this, so it says what to do instead.
            return Ok(Outcome::block("Deleting whole trees (rm -rf) is not allowed here. Name the files to delete."));
        }
        Ok(Outcome::Pass)
    }
}

export_extension!(Gate);

/// Whether a line has `rm` with both of its options in one command, however they are spelled.
fn deletes_a_tree(line: &str) -> bool {
    // Quotes and backslashes do not change what a shell runs: `\rm`, `r"m"`, `sh -c 'rm -rf x'`.
    let plain = line.replace("\\\n", " ").replace(['\'', '"', '\\'], "");
    plain.split([';', '|', '&', '\n', '(', ')', '{', '}', '`']).any(|command| {
        let words: Vec<&str> = command.split_whitespace().collect();
        // Anywhere in the command, because of `sudo rm`, `xargs rm` and `env A=1 /bin/rm`.
        let rm = words.iter().position(|word| *word == "rm" || word.ends_with("/rm"));
        let options = rm.map_or(&[][..], |at| &words[at + 1..]);
        // After `--` there are only names.
        let options = options.iter().take_while(|word| **word != "--");
        let (mut recursive, mut force) = (false, false);
        for option in options {
            match option.strip_prefix("--") {
                // Long options may be cut short as long as they stay unique.
                Some(long) => {
                    recursive |= long.starts_with('r') && "recursive".starts_with(long);
                    force |= long.starts_with('f') && "force".starts_with(long);
                }
                None if option.starts_with('-') => {
                    recursive |= option.contains(['r', 'R']);
                    force |= option.contains('f');
                }
                None => {}
            }
        }
        recursive && force
    })
}
