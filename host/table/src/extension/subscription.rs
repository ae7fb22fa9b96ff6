//! What an extension wants to be called for.

use super::event::{EventKind, EventSet};

/// What an extension wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscription {
    /// The events.
    pub events: EventSet,
    /// Of the events about calls, those of these tools, where `events` does not have all of them: `tool-call:read`.
    pub of_tools: Vec<(EventKind, String)>,
    /// Names of events that this host does not know: nothing comes of them.
    pub unknown: Vec<String>,
    /// Topics of the bus, exact names.
    pub topics: Vec<String>,
    /// Its commands.
    pub commands: Vec<Command>,
    /// Its options of the command line.
    pub flags: Vec<Flag>,
    /// Its keys.
    pub shortcuts: Vec<Shortcut>,
}

impl Subscription {
    /// Whether it wants all events of this kind.
    pub fn wants(&self, kind: EventKind) -> bool {
        self.events.contains(kind)
    }

    /// Whether it wants events of this kind about calls of this tool.
    pub fn wants_call(&self, kind: EventKind, tool: &str) -> bool {
        self.wants(kind) || self.of_tools.iter().any(|(of, wanted)| *of == kind && wanted == tool)
    }
}

/// A command the user can type after `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its name, as [`is_command_name`] has it.
    pub name: String,
    /// What it does.
    pub description: String,
    /// It is not listed.
    pub hidden: bool,
    /// It can be asked how its arguments could go on.
    pub completes: bool,
}

/// Whether `name` may name a command: 1 to 64 of `A-Z a-z 0-9 _ - :`.
pub fn is_command_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b':');
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagKind {
    /// Nothing: it is there or not.
    Boolean,
    /// A value.
    Text,
}

/// An option of the command line, `--name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Its name, without dashes, as [`is_flag_name`] has it.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What it takes.
    pub kind: FlagKind,
    /// Its value where the user does not say; `true` or `false` for a boolean one.
    pub default: Option<String>,
}

/// Whether `name` may name a flag: 2 to 64 of `a-z 0-9 -`, a letter first.
pub fn is_flag_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (2..=64).contains(&name.len())
        && name.bytes().all(fits)
        && name.bytes().next().is_some_and(|b| b.is_ascii_lowercase())
}

/// A key that runs a command, where there is a terminal interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortcut {
    /// The key, such as `ctrl+g`.
    pub key: String,
    /// What it does.
    pub description: String,
    /// One of the extension's own commands, run without arguments.
    pub command: String,
}

/// A way to go on with what was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The whole arguments it would be.
    pub value: String,
    /// What is shown, if something else.
    pub label: Option<String>,
    /// What it means.
    pub description: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_commands_and_flags() {
        for (name, command, flag) in [
            ("hello", true, true),
            ("a:b-c_D1", true, false),
            ("", false, false),
            ("x", true, false),
            ("two words", false, false),
            ("1st", true, false),
            ("with-rules", true, true),
            ("ümlaut", false, false),
        ] {
            assert_eq!((is_command_name(name), is_flag_name(name)), (command, flag), "{name}");
        }
        assert!(is_command_name(&"x".repeat(64)) && !is_command_name(&"x".repeat(65)));
    }
}
