//! Time as session files write it.

use jiff::{Timestamp, Unit, fmt::temporal::DateTimePrinter};

/// Milliseconds since 1970, for `timestamp` in messages.
pub(crate) fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// ISO 8601 in UTC with milliseconds, for `timestamp` in entries.
pub(crate) fn now_iso() -> String {
    let now = Timestamp::now();
    let now = now.round(Unit::Millisecond).unwrap_or(now);
    DateTimePrinter::new().precision(Some(3)).timestamp_to_string(&now)
}
