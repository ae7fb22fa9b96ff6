//! What a handler answers, and which answers fit which event.

use serde_json::{Map, Value};

use super::{EventKind, event::EventKind as Kind};
use crate::{Content, hooks::ResultPatch};

/// What a handler wants.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Outcome {
    /// Nothing.
    #[default]
    Pass,
    /// The action is not to happen.
    Block {
        /// What the model or the user reads.
        reason: Option<String>,
        /// The run should end too, if every call of the batch says so.
        terminate: bool,
    },
    /// Other arguments, not checked again.
    Rewrite(Value),
    /// A change of the result.
    Patch(ResultPatch),
    /// Another text in place of the user's.
    Transform {
        /// The text.
        text: String,
        /// The pictures; none: those there were.
        images: Option<Vec<Content>>,
    },
    /// It is dealt with.
    Handled,
    /// Fields, which depend on the event.
    Reply(Map<String, Value>),
}

impl Outcome {
    /// Its name in the contract.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Block { .. } => "block",
            Self::Rewrite(_) => "rewrite",
            Self::Patch(_) => "patch",
            Self::Transform { .. } => "transform",
            Self::Handled => "handled",
            Self::Reply(_) => "reply",
        }
    }

    /// Whether a handler of this event may answer so. Of an event that nobody waits for, every answer is as good.
    pub fn fits(&self, kind: EventKind) -> bool {
        match (self, kind) {
            (Self::Pass, _) => true,
            (_, kind) if !kind.is_asked() => true,
            (Self::Transform { .. } | Self::Handled, Kind::Input)
            | (Self::Rewrite(_) | Self::Block { .. }, Kind::ToolCall)
            | (Self::Patch(_), Kind::ToolResult)
            | (Self::Block { .. }, Kind::UserBash) => true,
            (Self::Reply(_), kind) => !matches!(
                kind,
                Kind::Input | Kind::ToolCall | Kind::ToolResult | Kind::SessionStart | Kind::SessionShutdown
            ),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_takes_the_answers_that_mean_something_to_it() {
        let block = Outcome::Block { reason: None, terminate: false };
        let answers = [
            Outcome::Pass,
            block,
            Outcome::Rewrite(Value::Null),
            Outcome::Patch(ResultPatch::default()),
            Outcome::Transform { text: String::new(), images: None },
            Outcome::Handled,
            Outcome::Reply(Map::new()),
        ];
        let taken = |kind: EventKind| -> Vec<&str> {
            answers.iter().filter(|answer| answer.fits(kind)).map(Outcome::name).collect()
        };
        assert_eq!(taken(Kind::Input), ["pass", "transform", "handled"]);
        assert_eq!(taken(Kind::ToolCall), ["pass", "block", "rewrite"]);
        assert_eq!(taken(Kind::ToolResult), ["pass", "patch"]);
        assert_eq!(taken(Kind::UserBash), ["pass", "block", "reply"]);
        assert_eq!(taken(Kind::SessionStart), ["pass"]);
        assert_eq!(taken(Kind::SessionShutdown), ["pass"]);
        for kind in [Kind::BeforeAgentStart, Kind::Context, Kind::MessageEnd, Kind::TurnEnd, Kind::ProjectTrust] {
            assert_eq!(taken(kind), ["pass", "reply"], "{kind}");
        }
        assert_eq!(taken(Kind::MessageStart).len(), answers.len());
    }
}
