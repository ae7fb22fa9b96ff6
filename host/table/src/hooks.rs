//! What may look at a call before and after it runs. A hook is reached through a trait, so a plugin can be one.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::{Content, Error, ToolOutput, model::Usage, tool::Annotations};

/// What the model reads of a blocked call when the hook gives no reason.
pub const BLOCKED: &str = "An extension blocked this call, so it was not carried out.";

/// A call that is about to run, or has run.
#[derive(Clone, Debug, PartialEq)]
pub struct CallEvent {
    /// Its id.
    pub call_id: String,
    /// The call that made it.
    pub parent_id: Option<String>,
    /// The tool's name in the table.
    pub tool: String,
    /// The arguments, which fit the schema unless an earlier hook rewrote them.
    pub arguments: Value,
    /// The plugin that brings the tool.
    pub plugin: String,
    /// What the tool claims about itself.
    pub annotations: Annotations,
    /// How many calls are around it.
    pub depth: u32,
}

/// What a hook wants before a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum BeforeCall {
    /// Nothing.
    #[default]
    Pass,
    /// Other arguments. They are not checked again.
    Rewrite(Value),
    /// No call. Later hooks do not see it.
    Block {
        /// What the model reads.
        reason: Option<String>,
        /// The run should end too.
        terminate: bool,
    },
}

/// What a hook wants changed in a result. What is absent stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultPatch {
    /// New content. The result as data goes with the old one, unless there is a new one too.
    pub content: Option<Vec<Content>>,
    /// New details.
    pub details: Option<Value>,
    /// A new result as data.
    pub structured: Option<Value>,
    /// Whether it failed.
    pub is_error: Option<bool>,
    /// Tokens it took.
    pub usage: Option<Usage>,
}

impl ResultPatch {
    /// Changes a result.
    pub fn apply(self, output: &mut ToolOutput) {
        if let Some(content) = self.content {
            output.content = content;
            output.structured = None;
        }
        if let Some(structured) = self.structured {
            output.structured = Some(structured.into());
        }
        if self.details.is_some() {
            output.details = self.details;
        }
        if let Some(is_error) = self.is_error {
            output.is_error = is_error;
        }
        if self.usage.is_some() {
            output.usage = self.usage;
        }
    }
}

/// What a hook wants to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Calls that are about to run.
    pub before: bool,
    /// Calls that have run.
    pub after: bool,
}

/// Something that looks at calls.
pub trait Hook: Send + Sync {
    /// Whose it is, for messages.
    fn name(&self) -> &str;

    /// What it wants to see now of calls of a tool. It is not shown the rest.
    fn wants(&self, _tool: &str) -> Wanted {
        Wanted { before: true, after: true }
    }

    /// Before a call. A failure blocks the call: whoever guards calls must not be passed by because it broke.
    fn before_call(&self, call: CallEvent) -> BoxFuture<'_, Result<BeforeCall, Error>>;

    /// After a call. A failure is reported and the result stays as it is.
    fn after_call(&self, call: CallEvent, output: ToolOutput) -> BoxFuture<'_, Result<ResultPatch, Error>>;
}

/// What the hooks made of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It may run, with these arguments.
    Run(Value),
    /// It may not; this is its result.
    Blocked(Box<ToolOutput>),
}

/// Asks each hook in turn before a call; each sees what the ones before it made of the arguments. `report` is told of
/// hooks that failed, by name.
pub async fn before_call(
    hooks: &[Arc<dyn Hook>],
    mut call: CallEvent,
    mut report: impl FnMut(&str, &Error),
) -> Verdict {
    for hook in hooks {
        if !hook.wants(&call.tool).before {
            continue;
        }
        match hook.before_call(call.clone()).await {
            Ok(BeforeCall::Pass) => {}
            Ok(BeforeCall::Rewrite(arguments)) => call.arguments = arguments,
            Ok(BeforeCall::Block { reason, terminate }) => {
                let reason = reason.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| BLOCKED.to_owned());
                return Verdict::Blocked(Box::new(ToolOutput { terminate, ..ToolOutput::error(reason) }));
            }
            Err(error) => {
                report(hook.name(), &error);
                return Verdict::Blocked(Box::new(ToolOutput::error(format!(
                    "This call was not carried out: the extension {} failed while it looked at it: {error}",
                    hook.name()
                ))));
            }
        }
    }
    Verdict::Run(call.arguments)
}

/// Shows each hook in turn a result; each sees what the ones before it made of it.
pub async fn after_call(
    hooks: &[Arc<dyn Hook>],
    call: &CallEvent,
    mut output: ToolOutput,
    mut report: impl FnMut(&str, &Error),
) -> ToolOutput {
    for hook in hooks.iter().filter(|hook| hook.wants(&call.tool).after) {
        match hook.after_call(call.clone(), output.clone()).await {
            Ok(patch) => patch.apply(&mut output),
            Err(error) => report(hook.name(), &error),
        }
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use serde_json::json;

    struct Scripted(&'static str, Result<BeforeCall, Error>, Result<ResultPatch, Error>);

    impl Hook for Scripted {
        fn name(&self) -> &str {
            self.0
        }
        fn before_call(&self, _: CallEvent) -> BoxFuture<'_, Result<BeforeCall, Error>> {
            Box::pin(async { self.1.clone() })
        }
        fn after_call(&self, _: CallEvent, _: ToolOutput) -> BoxFuture<'_, Result<ResultPatch, Error>> {
            Box::pin(async { self.2.clone() })
        }
    }

    fn call() -> CallEvent {
        CallEvent {
            call_id: "c".into(),
            parent_id: None,
            tool: "read".into(),
            arguments: json!({"path": "a"}),
            plugin: "read".into(),
            annotations: Annotations::default(),
            depth: 0,
        }
    }

    fn before(hooks: Vec<Result<BeforeCall, Error>>) -> (Verdict, Vec<String>) {
        let hooks: Vec<Arc<dyn Hook>> = hooks
            .into_iter()
            .map(|wish| Arc::new(Scripted("guard", wish, Ok(ResultPatch::default()))) as Arc<dyn Hook>)
            .collect();
        let mut reported = Vec::new();
        let asking = before_call(&hooks, call(), |name, error| reported.push(format!("{name}: {error}")));
        let verdict = asking.now_or_never().unwrap();
        (verdict, reported)
    }

    #[test]
    fn without_a_wish_a_call_runs_as_it_is() {
        assert_eq!(before(vec![]).0, Verdict::Run(json!({"path": "a"})));
        assert_eq!(before(vec![Ok(BeforeCall::Pass)]).0, Verdict::Run(json!({"path": "a"})));
    }

    #[test]
    fn the_last_rewriting_counts() {
        let wishes = vec![Ok(BeforeCall::Rewrite(json!({"n": 1}))), Ok(BeforeCall::Rewrite(json!({"n": 2})))];
        assert_eq!(before(wishes).0, Verdict::Run(json!({"n": 2})));
    }

    #[test]
    fn a_block_ends_it_and_later_hooks_are_not_asked() {
        let block = BeforeCall::Block { reason: Some("not here".into()), terminate: true };
        let (verdict, reported) = before(vec![Ok(block), Err(Error::Failed("never asked".into()))]);
        let Verdict::Blocked(output) = verdict else { panic!("it ran") };
        assert_eq!(Content::joined_text(&output.content), "not here");
        assert!(output.is_error && output.terminate && reported.is_empty());
        let (verdict, _) = before(vec![Ok(BeforeCall::Block { reason: None, terminate: false })]);
        assert_eq!(verdict, Verdict::Blocked(Box::new(ToolOutput::error(BLOCKED))));
    }

    #[test]
    fn a_hook_that_fails_blocks_the_call() {
        let (verdict, reported) = before(vec![Err(Error::Failed("boom".into()))]);
        assert!(matches!(verdict, Verdict::Blocked(output) if output.is_error));
        assert_eq!(reported, ["guard: boom"]);
    }

    #[test]
    fn patches_add_up_and_a_failing_hook_changes_nothing() {
        let pass = || Ok(BeforeCall::Pass);
        let new = ResultPatch { content: Some(vec![Content::text("new")]), ..ResultPatch::default() };
        let failed = ResultPatch { is_error: Some(true), details: Some(json!(1)), ..ResultPatch::default() };
        let hooks: Vec<Arc<dyn Hook>> = vec![
            Arc::new(Scripted("a", pass(), Ok(new))),
            Arc::new(Scripted("b", pass(), Err(Error::Failed("boom".into())))),
            Arc::new(Scripted("c", pass(), Ok(failed))),
        ];
        let old = ToolOutput {
            content: vec![Content::text("old")],
            structured: Some(json!({"old": true}).into()),
            terminate: true,
            ..ToolOutput::default()
        };
        let mut reported = Vec::new();
        let event = call();
        let asking = after_call(&hooks, &event, old, |name, _| reported.push(name.to_owned()));
        let output = asking.now_or_never().unwrap();
        let expected = ToolOutput {
            content: vec![Content::text("new")],
            details: Some(json!(1)),
            structured: None,
            is_error: true,
            terminate: true,
            ..ToolOutput::default()
        };
        assert_eq!(output, expected);
        assert_eq!(reported, ["b"]);
    }

    #[test]
    fn new_content_and_new_data_can_come_together() {
        let mut output = ToolOutput { structured: Some(json!(1).into()), ..ToolOutput::default() };
        let patch = ResultPatch { content: Some(vec![]), structured: Some(json!(2)), ..ResultPatch::default() };
        patch.apply(&mut output);
        assert_eq!(output.structured, Some(json!(2).into()));
    }
}
