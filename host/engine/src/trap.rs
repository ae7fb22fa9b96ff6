//! Turns whatever ended a guest into one of the contract's errors, in words a person can act on.

use atoll_caps::{LimitName, Limits};
use atoll_table::Error;
use wasmtime::Trap;

use crate::{all_memory::AllMemoryTaken, limits::LimitReached, outcome::TooLarge};

/// The error for a call of `plugin` that ended with `reason`. `said` is the last thing the guest wrote to its
/// standard error, which for most languages is the panic's message.
pub(crate) fn explain(plugin: &str, reason: &wasmtime::Error, limits: &Limits, said: Option<&str>) -> Error {
    if let Some(limit) = reason.downcast_ref::<LimitReached>() {
        return limit_error(limit.name, limit.value);
    }
    if let Some(AllMemoryTaken { most }) = reason.downcast_ref() {
        return Error::Limit { name: "memory of all plugins together".to_owned(), value: *most };
    }
    if reason.downcast_ref::<TooLarge>().is_some() {
        return limit_error(LimitName::OutputBytes, limits.output_bytes);
    }
    // These two have no public type to match on.
    let text = format!("{reason:#}");
    if text.contains("store handle limit exceeded") {
        return limit_error(LimitName::Handles, limits.handles);
    }
    if is_allowance(&text) {
        return limit_error(LimitName::HostCallBytes, limits.host_call_bytes);
    }
    let what = match reason.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => "ran out of stack".to_owned(),
        Some(Trap::UnreachableCodeReached) => "gave up".to_owned(),
        Some(Trap::AsyncDeadlock | Trap::NoAsyncResult) => "waits for something that can not happen".to_owned(),
        // Guests keep part of their stack in memory, and its end is told from no other place outside of it.
        Some(Trap::MemoryOutOfBounds) => {
            "crashed: it reached outside of its memory, as it does when its stack is used up".to_owned()
        }
        Some(trap) => format!("crashed: {trap}"),
        None => format!("failed: {}", reason.root_cause()),
    };
    let said = said.map(|line| format!(": {line}")).unwrap_or_default();
    Error::Failed(format!("the plugin {plugin} {what}{said}"))
}

/// Whether an error of wasmtime says that more was copied out of a guest than its store allows.
pub(crate) fn is_allowance(text: &str) -> bool {
    text.contains("fuel allocated for hostcalls has been exhausted")
}

/// The error of a limit.
pub(crate) fn limit_error(name: LimitName, value: u64) -> Error {
    Error::Limit { name: name.as_str().to_owned(), value }
}
