//! Between the contract's events and answers and the host's.

use atoll_table::{
    Content, Error, ToolOutput,
    extension::{
        Command, Completion, Delivery, Event, EventKind, EventSet, Flag, FlagKind, Outcome, Shortcut, StartReason,
        Subscription, is_command_name, is_flag_name,
    },
    hooks::{CallEvent, ResultPatch},
};
use serde_json::Value;

use super::{annotations_to_wit, content_from_wit, content_to_wit, json, usage_from_wit, usage_to_wit};
use crate::bindings::{atoll::plugin::types as wit, exports::atoll::plugin::extension};

/// How many commands, flags, topics or keys one extension may have.
const MAX_OF_A_KIND: usize = 1_000;
/// The longest topic of the bus, in bytes.
const MAX_TOPIC: usize = 256;

pub(crate) fn reason_to_wit(reason: StartReason) -> extension::StartReason {
    match reason {
        StartReason::Startup => extension::StartReason::Startup,
        StartReason::Reload => extension::StartReason::Reload,
        StartReason::Restart => extension::StartReason::Restart,
    }
}

pub(crate) fn delivery_from_wit(delivery: wit::Delivery) -> Delivery {
    match delivery {
        wit::Delivery::Steer => Delivery::Steer,
        wit::Delivery::FollowUp => Delivery::FollowUp,
        wit::Delivery::NextTurn => Delivery::NextTurn,
    }
}

fn delivery_to_wit(delivery: Delivery) -> wit::Delivery {
    match delivery {
        Delivery::Steer => wit::Delivery::Steer,
        Delivery::FollowUp => wit::Delivery::FollowUp,
        Delivery::NextTurn => wit::Delivery::NextTurn,
    }
}

/// The pictures among pieces of content.
fn images_to_wit(content: Vec<Content>) -> Vec<wit::Blob> {
    let pieces = content.into_iter().map(content_to_wit);
    pieces
        .filter_map(|piece| match piece {
            wit::Content::Image(blob) => Some(blob),
            wit::Content::Text(_) => None,
        })
        .collect()
}

fn call_to_wit(call: CallEvent) -> extension::Call {
    extension::Call {
        id: call.call_id,
        parent_id: call.parent_id,
        tool: call.tool,
        plugin: call.plugin,
        annotations: annotations_to_wit(call.annotations),
        arguments: call.arguments.to_string(),
    }
}

/// An event for a guest.
pub(crate) fn event_to_wit(event: Event) -> extension::Event {
    match event {
        Event::Input(input) => extension::Event::Input(extension::Input {
            text: input.text,
            images: images_to_wit(input.images),
            source: input.source.to_owned(),
            delivery: input.delivery.map(delivery_to_wit),
        }),
        Event::ToolCall(call) => extension::Event::ToolCall(call_to_wit(call)),
        Event::ToolResult(call, output) => {
            let ToolOutput { content, details, structured, is_error, usage, terminate: _, aside: _ } = *output;
            extension::Event::ToolResult(extension::CallResult {
                call: call_to_wit(call),
                content: content.into_iter().map(content_to_wit).collect(),
                details: details.map(|value| value.to_string()),
                structured: structured.map(|data| data.text().to_owned()),
                is_error,
                usage: usage.as_ref().map(usage_to_wit),
            })
        }
        Event::Bus { topic, sender, data } => extension::Event::Bus(extension::BusMessage {
            topic: topic.to_string(),
            sender: sender.to_string(),
            data: data.to_string(),
        }),
        Event::Other(kind, fields) => {
            extension::Event::Other(extension::Other { name: kind.as_str().to_owned(), fields: fields.to_string() })
        }
    }
}

/// A handler's answer.
///
/// # Errors
/// `failed`, naming the plugin, the event and the field, if it holds what is no JSON, or does not fit the event.
pub(crate) fn outcome_from_wit(
    plugin: &str,
    kind: Option<EventKind>,
    outcome: extension::Outcome,
) -> Result<Outcome, Error> {
    let at = kind.map_or("bus", EventKind::as_str);
    let read = |field: &str, text: &str| json(plugin, &format!("`{field}` of its answer to {at}"), text);
    let outcome = match outcome {
        extension::Outcome::Pass => Outcome::Pass,
        extension::Outcome::Block(block) => Outcome::Block {
            reason: Some(block.reason).filter(|reason| !reason.trim().is_empty()),
            terminate: block.terminate,
        },
        extension::Outcome::Rewrite(arguments) => match read("rewrite", &arguments)? {
            arguments @ Value::Object(_) => Outcome::Rewrite(arguments),
            _ => {
                return Err(Error::Failed(format!(
                    "the plugin {plugin} answered {at} with arguments that are no JSON object"
                )));
            }
        },
        extension::Outcome::Patch(patch) => Outcome::Patch(ResultPatch {
            content: patch.content.map(|content| content.into_iter().map(content_from_wit).collect()),
            details: patch.details.map(|text| read("details", &text)).transpose()?,
            structured: patch.structured.map(|text| read("structured", &text)).transpose()?,
            is_error: patch.is_error,
            usage: patch.usage.map(usage_from_wit),
        }),
        extension::Outcome::Transform(transform) => Outcome::Transform {
            text: transform.text,
            images: transform
                .images
                .map(|images| images.into_iter().map(|blob| content_from_wit(wit::Content::Image(blob))).collect()),
        },
        extension::Outcome::Handled => Outcome::Handled,
        extension::Outcome::Reply(fields) => match read("reply", &fields)? {
            Value::Object(fields) => Outcome::Reply(fields),
            _ => {
                return Err(Error::Failed(format!(
                    "the plugin {plugin} answered {at} with a reply that is no JSON object"
                )));
            }
        },
    };
    match kind {
        Some(kind) if !outcome.fits(kind) => Err(Error::Failed(format!(
            "the plugin {plugin} answered {at} with `{}`, which means nothing there",
            outcome.name()
        ))),
        _ => Ok(outcome),
    }
}

/// The event about calls of one tool that this names, such as `tool-call:read`.
fn of_a_tool(name: &str) -> Option<(EventKind, String)> {
    let (event, tool) = name.split_once(':')?;
    let kind = EventKind::of_name(event)?;
    let is_one = matches!(kind, EventKind::ToolCall | EventKind::ToolResult) && !tool.is_empty();
    is_one.then(|| (kind, tool.to_owned()))
}

/// What an extension wants.
///
/// # Errors
/// `invalid-arguments` for names that can not be had, and for too much of a kind.
pub(crate) fn subscription_from_wit(plugin: &str, wanted: wit::Subscription) -> Result<Subscription, Error> {
    let wrong = |what: String| Error::InvalidArguments(format!("the plugin {plugin} {what}"));
    for (kind, number) in [
        ("events", wanted.events.len()),
        ("topics", wanted.topics.len()),
        ("commands", wanted.commands.len()),
        ("flags", wanted.flags.len()),
        ("shortcuts", wanted.shortcuts.len()),
    ] {
        if number > MAX_OF_A_KIND {
            return Err(wrong(format!("has {number} {kind}; there may be {MAX_OF_A_KIND}")));
        }
    }
    let mut subscription = Subscription::default();
    let mut events = EventSet::default();
    for name in wanted.events {
        match (EventKind::of_name(&name), of_a_tool(&name)) {
            (Some(kind), _) => events.insert(kind),
            (None, Some(wanted)) => subscription.of_tools.push(wanted),
            (None, None) => subscription.unknown.push(name),
        }
    }
    subscription.events = events;
    for topic in wanted.topics {
        if topic.is_empty() || topic.len() > MAX_TOPIC {
            return Err(wrong(format!("has a topic of {} bytes; it may have 1 to {MAX_TOPIC}", topic.len())));
        }
        if !subscription.topics.contains(&topic) {
            subscription.topics.push(topic);
        }
    }
    for command in wanted.commands {
        let name = command.name;
        if !is_command_name(&name) {
            let shown = name.escape_debug();
            return Err(wrong(format!("has a command `{shown}`; names are 1 to 64 of A-Z a-z 0-9 _ - :")));
        }
        if subscription.commands.iter().any(|other| other.name == name) {
            return Err(wrong(format!("has two commands `{name}`")));
        }
        let (description, hidden, completes) = (command.description, command.hidden, command.completes);
        subscription.commands.push(Command { name, description, hidden, completes });
    }
    for flag in wanted.flags {
        let name = flag.name;
        if !is_flag_name(&name) {
            let shown = name.escape_debug();
            return Err(wrong(format!("has a flag `{shown}`; names are 2 to 64 of a-z 0-9 -, a letter first")));
        }
        if subscription.flags.iter().any(|other| other.name == name) {
            return Err(wrong(format!("has two flags `{name}`")));
        }
        let kind = match flag.kind {
            wit::FlagKind::Boolean => FlagKind::Boolean,
            wit::FlagKind::Text => FlagKind::Text,
        };
        if kind == FlagKind::Boolean && flag.default.as_deref().is_some_and(|value| !matches!(value, "true" | "false"))
        {
            return Err(wrong(format!("has a default for the flag `{name}` that is neither true nor false")));
        }
        subscription.flags.push(Flag { name, description: flag.description, kind, default: flag.default });
    }
    for shortcut in wanted.shortcuts {
        let command = shortcut.command;
        if !subscription.commands.iter().any(|known| known.name == command) {
            let shown = command.escape_debug();
            return Err(wrong(format!("has a shortcut for the command `{shown}`, which it does not have")));
        }
        subscription.shortcuts.push(Shortcut { key: shortcut.key, description: shortcut.description, command });
    }
    Ok(subscription)
}

pub(crate) fn completion_from_wit(completion: extension::Completion) -> Completion {
    Completion { value: completion.value, label: completion.label, description: completion.description }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> wit::Subscription {
        wit::Subscription { events: vec![], topics: vec![], commands: vec![], flags: vec![], shortcuts: vec![] }
    }

    fn command(name: &str) -> wit::Command {
        wit::Command { name: name.to_owned(), description: String::new(), hidden: false, completes: false }
    }

    fn flag(name: &str, default: Option<&str>) -> wit::Flag {
        wit::Flag {
            name: name.to_owned(),
            description: String::new(),
            kind: wit::FlagKind::Boolean,
            default: default.map(str::to_owned),
        }
    }

    #[test]
    fn events_that_are_not_known_call_nobody_and_are_no_error() {
        let events = vec!["tool-call".to_owned(), "tool_result".to_owned(), "from-the-future".to_owned()];
        let wanted = subscription_from_wit("p", wit::Subscription { events, ..nothing() }).unwrap();
        assert_eq!(wanted.events.iter().collect::<Vec<_>>(), [EventKind::ToolCall, EventKind::ToolResult]);
        assert_eq!(wanted.unknown, ["from-the-future"]);
    }

    #[test]
    fn events_about_calls_can_be_those_of_one_tool() {
        let events =
            ["tool-call:read", "tool_result:a:b", "tool-call:", "input:read", ":read"].map(str::to_owned).to_vec();
        let wanted = subscription_from_wit("p", wit::Subscription { events, ..nothing() }).unwrap();
        let expected = [(EventKind::ToolCall, "read".to_owned()), (EventKind::ToolResult, "a:b".to_owned())];
        assert_eq!((wanted.events, wanted.of_tools.as_slice()), (EventSet::default(), expected.as_slice()));
        assert_eq!(wanted.unknown, ["tool-call:", "input:read", ":read"]);
    }

    #[test]
    fn what_can_not_be_had_is_refused_by_name() {
        let shortcut = wit::Shortcut { key: "ctrl+g".to_owned(), description: String::new(), command: "no".to_owned() };
        for (wanted, says) in [
            (wit::Subscription { commands: vec![command("two words")], ..nothing() }, "a command `two words`"),
            (wit::Subscription { commands: vec![command("a"), command("a")], ..nothing() }, "two commands `a`"),
            (wit::Subscription { flags: vec![flag("-x", None)], ..nothing() }, "a flag `-x`"),
            (wit::Subscription { flags: vec![flag("xx", None), flag("xx", None)], ..nothing() }, "two flags `xx`"),
            (wit::Subscription { flags: vec![flag("xx", Some("yes"))], ..nothing() }, "neither true nor false"),
            (wit::Subscription { topics: vec![String::new()], ..nothing() }, "a topic of 0 bytes"),
            (wit::Subscription { shortcuts: vec![shortcut], ..nothing() }, "for the command `no`"),
            (wit::Subscription { events: vec![String::new(); 1_001], ..nothing() }, "has 1001 events"),
        ] {
            let error = subscription_from_wit("p", wanted).unwrap_err();
            assert_eq!(error.code(), "invalid-arguments");
            assert!(error.to_string().starts_with("the plugin p has ") && error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn an_answer_that_means_nothing_is_a_failure_that_names_it() {
        let answer = |kind, outcome| outcome_from_wit("p", Some(kind), outcome);
        let error = answer(EventKind::Input, extension::Outcome::Rewrite("{}".to_owned())).unwrap_err();
        assert_eq!(error.to_string(), "the plugin p answered input with `rewrite`, which means nothing there");
        let error = answer(EventKind::ToolCall, extension::Outcome::Rewrite("[1]".to_owned())).unwrap_err();
        assert!(error.to_string().contains("no JSON object"), "{error}");
        let error = answer(EventKind::Context, extension::Outcome::Reply("{".to_owned())).unwrap_err();
        assert!(error.to_string().contains("malformed JSON as `reply` of its answer to context"), "{error}");
        let block = extension::Block { reason: " ".to_owned(), terminate: true };
        let blocked = answer(EventKind::ToolCall, extension::Outcome::Block(block)).unwrap();
        assert_eq!(blocked, Outcome::Block { reason: None, terminate: true });
    }
}
