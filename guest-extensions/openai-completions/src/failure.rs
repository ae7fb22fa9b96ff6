//! What went wrong, as the contract tells it: from an HTTP response, an error object in a stream, or the transport.
//!
//! Must never pass on more than a line of what a server sent: bodies can be pages, and texts end up in front of
//! a person and in the session file.

use atoll_plugin::Error;
use atoll_plugin::provider::Failure;
use serde_json::Value;

/// How much of an error's body is read.
pub const MAX_BODY: usize = 8 * 1024;

/// How many characters of a server's text are passed on.
const MAX_TEXT: usize = 300;

/// Codes and types of errors that stay however often one asks.
const HOPELESS: [&str; 4] =
    ["insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "quota_exceeded"];

/// A failure with nothing but its error.
pub fn plain(error: Error) -> Failure {
    Failure { error, status: None, retry_after_ms: None }
}

/// The failure that a response of 300 or more stands for. `header` gives a header's value by its lower-case name;
/// `body` is the start of the body, at most [`MAX_BODY`] bytes of it.
pub fn of_response<'a>(status: u16, header: impl Fn(&str) -> Option<&'a str>, body: &[u8], now_ms: u64) -> Failure {
    let body = String::from_utf8_lossy(body);
    let json = serde_json::from_str::<Value>(&body).ok();
    let mut text = json.as_ref().and_then(message).unwrap_or_else(|| one_line(&body));
    if text.is_empty() {
        text = match (status, header("location")) {
            (300..=399, Some(location)) => one_line(&format!("the server redirects to {location}")),
            _ => "(no body)".to_owned(),
        };
    }
    let text = format!("HTTP {status}: {text}");
    let hopeless = json.as_ref().is_some_and(|json| labels(json).any(|label| HOPELESS.contains(&label)));
    let passing = match header("x-should-retry") {
        Some("true") => true,
        Some("false") => false,
        _ => passes(status) && !hopeless,
    };
    Failure {
        error: if passing { Error::Unavailable(text) } else { Error::Failed(text) },
        status: Some(status),
        retry_after_ms: retry_after(&header, now_ms),
    }
}

/// The failure that an `error` in the stream stands for.
pub fn of_error_object(error: &Value) -> Failure {
    let text = message_of_error(error).unwrap_or_else(|| one_line(&error.to_string()));
    let status = ["status", "code"]
        .iter()
        .filter_map(|key| error.get(key))
        .find_map(|value| value.as_u64().or_else(|| value.as_str()?.parse().ok()))
        .and_then(|status| u16::try_from(status).ok())
        .filter(|status| (400..600).contains(status));
    let hopeless = labels(error).any(|label| HOPELESS.contains(&label));
    let passing = status.is_some_and(passes)
        || labels(error).any(|label| {
            ["overloaded", "rate_limit", "server_error", "internal_error", "timeout", "unavailable"]
                .iter()
                .any(|part| label.contains(part))
        });
    let text = match status {
        Some(status) => format!("The server ended the answer: {status} {text}"),
        None => format!("The server ended the answer: {text}"),
    };
    Failure {
        error: if passing && !hopeless { Error::Unavailable(text) } else { Error::Failed(text) },
        status,
        retry_after_ms: None,
    }
}

/// The failure that a good status with something else than a stream of events stands for.
pub fn of_document(body: &[u8]) -> Failure {
    let body = String::from_utf8_lossy(body);
    let json = serde_json::from_str::<Value>(&body).ok();
    match json.as_ref().and_then(|json| json.get("error")).filter(|error| !error.is_null()) {
        Some(error) => of_error_object(error),
        None => plain(Error::Failed(format!("The server sent no stream of events but: {}", one_line(&body)))),
    }
}

/// The failure of a request that got no answer, or not all of it. `what` says which.
pub fn of_transport(error: Error, what: &str) -> Failure {
    plain(match error {
        Error::Unavailable(text) | Error::Timeout(text) | Error::Failed(text) => {
            Error::Unavailable(format!("{what}: {}", one_line(&text)))
        }
        typed => typed,
    })
}

/// A text as one line of bounded length.
pub fn one_line(text: &str) -> String {
    let mut line = String::new();
    // Words of a page are looked at only as far as they are shown.
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > MAX_TEXT * 4 {
            break;
        }
    }
    match line.char_indices().nth(MAX_TEXT) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

fn passes(status: u16) -> bool {
    matches!(status, 408 | 409 | 429) || status >= 500
}

/// Where an error's kind may be written.
fn labels(json: &Value) -> impl Iterator<Item = &str> {
    let inner = json.get("error").unwrap_or(json);
    ["code", "type", "status"].into_iter().filter_map(|key| inner.get(key)?.as_str())
}

fn message(json: &Value) -> Option<String> {
    // Some servers answer with a list of one.
    let json = json.as_array().and_then(|list| list.first()).unwrap_or(json);
    if let Some(text) = json.get("error").and_then(message_of_error) {
        return Some(text);
    }
    ["message", "detail", "title"].iter().find_map(|key| match json.get(key)? {
        Value::String(text) => Some(one_line(text)).filter(|text| !text.is_empty()),
        Value::Null => None,
        other => Some(one_line(&other.to_string())),
    })
}

fn message_of_error(error: &Value) -> Option<String> {
    let text = match error {
        Value::String(text) => one_line(text),
        Value::Object(_) => {
            let text = one_line(error.get("message")?.as_str()?);
            // A router's own message says little; the provider behind it is quoted here.
            match error.pointer("/metadata/raw").and_then(Value::as_str) {
                Some(raw) if !raw.is_empty() => one_line(&format!("{text} ({raw})")),
                _ => text,
            }
        }
        _ => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

fn retry_after<'a>(header: &impl Fn(&str) -> Option<&'a str>, now_ms: u64) -> Option<u64> {
    if let Some(ms) = header("retry-after-ms").and_then(|value| milliseconds(value, 1.0)) {
        return Some(ms);
    }
    let value = header("retry-after")?;
    milliseconds(value, 1000.0).or_else(|| Some(http_date(value)?.saturating_sub(now_ms)))
}

fn milliseconds(value: &str, unit: f64) -> Option<u64> {
    let value: f64 = value.trim().parse().ok()?;
    // `as` saturates, and the value is finite and not negative.
    (value.is_finite() && value >= 0.0).then(|| (value * unit).ceil() as u64)
}

/// Milliseconds since 1970 of an HTTP date in any of its three forms.
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let (mut day, mut month, mut year, mut clock) = (None, None, None, None);
    for part in text.split([' ', '-', ',']).filter(|part| !part.is_empty()) {
        let lower = part.to_ascii_lowercase();
        if let Some(at) = MONTHS.iter().position(|name| lower == *name) {
            month = Some(i64::try_from(at).ok()? + 1);
        } else if part.contains(':') {
            let mut fields = part.split(':').map(|field| field.parse::<u64>().ok());
            let (hour, minute, second) = (fields.next()??, fields.next()??, fields.next()??);
            clock = Some((hour <= 23 && minute <= 59 && second <= 60).then_some(hour * 3600 + minute * 60 + second)?);
        } else if let Ok(number) = part.parse::<i64>() {
            if day.is_none() {
                day = Some(number).filter(|day| (1..=31).contains(day));
            } else {
                year = Some(if part.len() == 2 { number + if number < 70 { 2000 } else { 1900 } } else { number });
            }
        }
    }
    let (day, month, year) = (day?, month?, year.filter(|year| (1970..=9999).contains(year))?);
    // Days since 1970 in the Gregorian calendar, counted in years that begin in March.
    let shifted = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + day_of_year - 719_468;
    Some((u64::try_from(days).ok()? * 86_400 + clock?) * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, headers: &[(&str, &str)], body: &str) -> Failure {
        let header = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        of_response(status, header, body.as_bytes(), 1_445_412_475_000)
    }

    fn text(failure: &Failure) -> &str {
        match &failure.error {
            Error::Failed(text) | Error::Unavailable(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn statuses_that_pass_are_unavailable() {
        for status in [408, 409, 429, 500, 502, 503, 529] {
            assert_eq!(response(status, &[], "x").error.code(), "unavailable", "{status}");
        }
        for status in [301, 400, 401, 403, 404, 413, 422] {
            assert_eq!(response(status, &[], "x").error.code(), "failed", "{status}");
        }
    }

    #[test]
    fn the_message_is_found_where_servers_put_it() {
        for (body, wanted) in [
            (r#"{"error":{"message":"Bad\n key","type":"x"}}"#, "HTTP 401: Bad key"),
            (r#"{"error":"no model"}"#, "HTTP 401: no model"),
            (r#"{"object":"error","message":"too long"}"#, "HTTP 401: too long"),
            (r#"{"detail":[{"loc":["body"]}]}"#, r#"HTTP 401: [{"loc":["body"]}]"#),
            (r#"[{"error":{"message":"in a list"}}]"#, "HTTP 401: in a list"),
            (
                r#"{"error":{"message":"Provider returned error","metadata":{"raw":"slow down"}}}"#,
                "HTTP 401: Provider returned error (slow down)",
            ),
            ("<html>\n  <b>gone</b>", "HTTP 401: <html> <b>gone</b>"),
            ("", "HTTP 401: (no body)"),
        ] {
            assert_eq!(text(&response(401, &[], body)), wanted);
        }
        assert_eq!(
            text(&response(308, &[("location", "https://b/v1")], "")),
            "HTTP 308: the server redirects to https://b/v1"
        );
    }

    #[test]
    fn texts_are_cut() {
        let failure = response(500, &[], &"ä".repeat(4000));
        assert_eq!(text(&failure).chars().count(), "HTTP 500: ".len() + 301);
    }

    #[test]
    fn an_empty_account_is_not_worth_a_retry() {
        let body = r#"{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}"#;
        assert_eq!(response(429, &[], body).error.code(), "failed");
        assert_eq!(response(429, &[("x-should-retry", "true")], body).error.code(), "unavailable");
        assert_eq!(response(500, &[("x-should-retry", "false")], "").error.code(), "failed");
    }

    #[test]
    fn waiting_times() {
        for (headers, wanted) in [
            (vec![("retry-after-ms", "1500.2"), ("retry-after", "9")], Some(1501)),
            (vec![("retry-after", "2")], Some(2000)),
            (vec![("retry-after", " 0.5 ")], Some(500)),
            (vec![("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")], Some(5000)),
            (vec![("retry-after", "Wednesday, 21-Oct-15 07:28:00 GMT")], Some(5000)),
            (vec![("retry-after", "Wed Oct 21 07:28:00 2015")], Some(5000)),
            (vec![("retry-after", "Wed, 21 Oct 2015 07:00:00 GMT")], Some(0)),
            (vec![("retry-after", "-3")], None),
            (vec![("retry-after", "NaN")], None),
            (vec![("retry-after", "soon")], None),
            (vec![("retry-after", "Wed, 21 Oct 2015 99:28:00 GMT")], None),
            (vec![], None),
        ] {
            assert_eq!(response(429, &headers, "").retry_after_ms, wanted, "{headers:?}");
        }
    }

    #[test]
    fn dates_count_from_1970() {
        assert_eq!(http_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(http_date("Thu, 29 Feb 2024 12:00:00 GMT"), Some(1_709_208_000_000));
        assert_eq!(http_date("Mon, 01 Mar 2100 00:00:00 GMT"), Some(4_107_542_400_000));
    }

    #[test]
    fn errors_in_the_stream() {
        let of = |text: &str| of_error_object(&serde_json::from_str(text).unwrap());
        let failure = of(r#"{"message":"upstream","code":502}"#);
        assert_eq!((failure.status, failure.error.code()), (Some(502), "unavailable"));
        assert_eq!(text(&failure), "The server ended the answer: 502 upstream");
        assert_eq!(of(r#"{"message":"busy","type":"overloaded_error"}"#).error.code(), "unavailable");
        assert_eq!(of(r#"{"message":"busy","code":"429"}"#).status, Some(429));
        assert_eq!(of(r#"{"message":"bad","code":"context_length_exceeded"}"#).error.code(), "failed");
        assert_eq!(of(r#"{"message":"out","code":429,"type":"insufficient_quota"}"#).error.code(), "failed");
        assert_eq!(text(&of(r#""just text""#)), "The server ended the answer: just text");
        assert_eq!(text(&of("{}")), "The server ended the answer: {}");
    }

    #[test]
    fn trouble_on_the_way_is_unavailable_unless_it_has_a_type() {
        let failure = of_transport(Error::Timeout("silent for 5 s".into()), "The answer broke off");
        assert_eq!(text(&failure), "The answer broke off: silent for 5 s");
        assert_eq!(failure.error.code(), "unavailable");
        assert_eq!(of_transport(Error::Cancelled("x".into()), "y").error.code(), "cancelled");
    }
}
