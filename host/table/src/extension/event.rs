//! What an extension can be told.

use std::sync::Arc;

use serde_json::Value;

use crate::{Content, ToolOutput, hooks::CallEvent};

/// The events, each with its name and how it is treated. One list, so that nothing about a kind can be forgotten.
macro_rules! kinds {
    ($($kind:ident $name:literal $how:ident,)*) => {
        /// The kinds of events, in the order in which the contract lists them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum EventKind {
            $(#[doc = concat!("`", $name, "`")] $kind,)*
        }

        impl EventKind {
            /// Every kind.
            pub const ALL: [Self; 41] = [$(Self::$kind,)*];

            /// Its name in the contract, such as `tool-call`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            const fn treatment(self) -> Treatment {
                match self { $(Self::$kind => Treatment::$how,)* }
            }
        }
    };
}

/// Whether anybody waits for a handler.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Treatment {
    /// Its answer counts, and where it fails there is none.
    Asked,
    /// Its answer counts, and where it fails the action does not happen.
    Guarded,
    /// Nobody waits.
    Observed,
}

kinds! {
    Input "input" Asked,
    ToolCall "tool-call" Guarded,
    ToolResult "tool-result" Asked,
    UserBash "user-bash" Guarded,
    BeforeAgentStart "before-agent-start" Asked,
    Context "context" Asked,
    ContextWithSystem "context-with-system" Asked,
    BeforeProviderHeaders "before-provider-headers" Asked,
    BeforeProviderRequest "before-provider-request" Asked,
    AfterProviderResponse "after-provider-response" Observed,
    ProviderStreamEvent "provider-stream-event" Observed,
    MessageStart "message-start" Observed,
    MessageUpdate "message-update" Observed,
    MessageEnd "message-end" Asked,
    AgentStart "agent-start" Observed,
    AgentEnd "agent-end" Observed,
    AgentSettled "agent-settled" Observed,
    TurnStart "turn-start" Observed,
    TurnEnd "turn-end" Asked,
    AgentBeforeSettle "agent-before-settle" Asked,
    ToolExecutionStart "tool-execution-start" Observed,
    ToolExecutionUpdate "tool-execution-update" Observed,
    ToolExecutionEnd "tool-execution-end" Observed,
    SessionStart "session-start" Asked,
    SessionShutdown "session-shutdown" Asked,
    SessionInfoChanged "session-info-changed" Observed,
    SessionCompact "session-compact" Observed,
    SessionCompactFailed "session-compact-failed" Observed,
    SessionTree "session-tree" Observed,
    SessionBeforeSwitch "session-before-switch" Asked,
    SessionBeforeFork "session-before-fork" Asked,
    SessionBeforeTree "session-before-tree" Asked,
    SessionBeforeCompact "session-before-compact" Asked,
    ResourcesDiscover "resources-discover" Asked,
    ProjectTrust "project-trust" Asked,
    ModelSelect "model-select" Observed,
    ThinkingLevelSelect "thinking-level-select" Observed,
    CacheWarmingDecision "cache-warming-decision" Asked,
    UiPromptStart "ui-prompt-start" Observed,
    UiPromptEnd "ui-prompt-end" Observed,
    McpServersChange "mcp-servers-change" Observed,
}

impl EventKind {
    /// The kind of a name, as the contract has it or with `_` for `-`.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| {
            let known = kind.as_str();
            known.len() == name.len()
                && known.bytes().zip(name.bytes()).all(|(a, b)| a == b || (a == b'-' && b == b'_'))
        })
    }

    /// Whether somebody waits for the handler: its answer counts, or it has to have been told before the host goes on.
    pub fn is_asked(self) -> bool {
        self.treatment() != Treatment::Observed
    }

    /// Whether a handler that fails stops what it was asked about.
    pub fn fails_closed(self) -> bool {
        self.treatment() == Treatment::Guarded
    }
}

impl std::fmt::Display for EventKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventSet(u64);

impl EventSet {
    const fn bit(kind: EventKind) -> u64 {
        1 << kind as u32
    }

    /// Whether a kind is in it.
    pub const fn contains(self, kind: EventKind) -> bool {
        self.0 & Self::bit(kind) != 0
    }

    /// Puts a kind in.
    pub fn insert(&mut self, kind: EventKind) {
        self.0 |= Self::bit(kind);
    }

    /// What is in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether nothing is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set as bits, one for each kind, for where a set has to be read without a lock.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The set of [`Self::bits`].
    pub const fn of_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// What is in it, in order.
    pub fn iter(self) -> impl Iterator<Item = EventKind> {
        EventKind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }
}

impl FromIterator<EventKind> for EventSet {
    fn from_iter<I: IntoIterator<Item = EventKind>>(kinds: I) -> Self {
        let mut set = Self::default();
        kinds.into_iter().for_each(|kind| set.insert(kind));
        set
    }
}

/// When a message of an extension is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Delivery {
    /// After the running tool calls, before the next model request.
    Steer,
    /// When the agent would stop.
    FollowUp,
    /// With the user's next prompt.
    NextTurn,
}

/// What the user typed.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The text.
    pub text: String,
    /// Pictures with it. Texts among them are left out.
    pub images: Vec<Content>,
    /// `interactive`, `rpc` or `extension`.
    pub source: &'static str,
    /// When it would be delivered, if something is running.
    pub delivery: Option<Delivery>,
}

/// Something happened, or is about to. Cloning one does not copy what is in it, but for calls and inputs.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The user sent a prompt.
    Input(Input),
    /// A call is about to run.
    ToolCall(CallEvent),
    /// A call has run.
    ToolResult(CallEvent, Box<ToolOutput>),
    /// Another extension said something.
    Bus {
        /// Its topic.
        topic: Arc<str>,
        /// The plugin that said it.
        sender: Arc<str>,
        /// What it said.
        data: Arc<Value>,
    },
    /// Anything else, with its fields, an object.
    Other(EventKind, Arc<Value>),
}

impl Event {
    /// An event of this kind with these fields, an object.
    pub fn other(kind: EventKind, fields: Value) -> Self {
        Self::Other(kind, Arc::new(fields))
    }

    /// Its kind; none for what is said on the bus, which is subscribed to by topic.
    pub fn kind(&self) -> Option<EventKind> {
        match self {
            Self::Input(_) => Some(EventKind::Input),
            Self::ToolCall(_) => Some(EventKind::ToolCall),
            Self::ToolResult(..) => Some(EventKind::ToolResult),
            Self::Bus { .. } => None,
            Self::Other(kind, _) => Some(*kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_name_of_its_own() {
        for kind in EventKind::ALL {
            assert_eq!(EventKind::of_name(kind.as_str()), Some(kind));
            assert_eq!(EventKind::of_name(&kind.as_str().replace('-', "_")), Some(kind));
        }
        for none in ["", "bus", "tool call", "tool_calls", "TOOL-CALL"] {
            assert_eq!(EventKind::of_name(none), None, "{none}");
        }
    }

    #[test]
    fn only_what_guards_fails_closed() {
        let closed: Vec<&str> =
            EventKind::ALL.into_iter().filter(|kind| kind.fails_closed()).map(EventKind::as_str).collect();
        assert_eq!(closed, ["tool-call", "user-bash"]);
        assert!(EventKind::Input.is_asked() && !EventKind::MessageStart.is_asked());
    }

    #[test]
    fn sets() {
        let mut set = EventSet::default();
        assert!(set.is_empty());
        for kind in EventKind::ALL {
            assert!(!set.contains(kind));
            set.insert(kind);
            assert!(set.contains(kind));
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), EventKind::ALL);
        let (one, other): (EventSet, EventSet) =
            ([EventKind::Input].into_iter().collect(), [EventKind::McpServersChange].into_iter().collect());
        assert_eq!(one.union(other).iter().count(), 2);
        assert_eq!(EventSet::of_bits(one.bits()), one);
    }
}
