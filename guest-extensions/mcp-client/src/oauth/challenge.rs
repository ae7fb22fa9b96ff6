//! What a server says of the way in when it refuses somebody: its headers `www-authenticate`.

/// What a refusal asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    /// What is wrong.
    pub error: Option<String>,
    /// The scopes that are needed.
    pub scope: Option<String>,
    /// Where it is published who signs its users in.
    pub metadata: Option<String>,
}

impl Challenge {
    /// Reads the headers. What is not understood is not there; the first that is about bearers counts.
    pub fn read<'a>(headers: impl IntoIterator<Item = &'a String>) -> Self {
        headers.into_iter().find_map(|header| Self::of(header)).unwrap_or_default()
    }

    fn of(header: &str) -> Option<Self> {
        let mut challenge = Self::default();
        let (mut is_bearer, mut is_there) = (false, false);
        for (scheme, name, value) in parts(header) {
            if let Some(scheme) = scheme {
                if is_there {
                    break;
                }
                is_bearer = scheme.eq_ignore_ascii_case("bearer");
                is_there = is_bearer;
            }
            if !is_bearer {
                continue;
            }
            let value = Some(value).filter(|value| !value.trim().is_empty());
            match name.to_ascii_lowercase().as_str() {
                "error" => challenge.error = value,
                "scope" => challenge.scope = value,
                "resource_metadata" => challenge.metadata = value,
                _ => {}
            }
        }
        is_there.then_some(challenge)
    }
}

/// The parameters of a header, each with the scheme that begins with it, if one does.
fn parts(header: &str) -> Vec<(Option<String>, String, String)> {
    let mut parts = Vec::new();
    for piece in split(header) {
        let (before, value) = piece.split_once('=').unwrap_or((&piece, ""));
        let (scheme, name) = match before.trim().split_once(char::is_whitespace) {
            Some((scheme, name)) => (Some(scheme.to_owned()), name.trim()),
            // A scheme alone has no parameters.
            None if value.is_empty() && !piece.contains('=') => (Some(before.trim().to_owned()), ""),
            None => (None, before.trim()),
        };
        parts.push((scheme, name.to_owned(), unquoted(value.trim())));
    }
    parts
}

/// The header at its commas, but for those between quotes.
fn split(header: &str) -> Vec<String> {
    let (mut pieces, mut piece) = (Vec::new(), String::new());
    let (mut is_quoted, mut is_escaped) = (false, false);
    for c in header.chars() {
        match c {
            ',' if !is_quoted => pieces.push(std::mem::take(&mut piece)),
            '"' if !is_escaped => {
                is_quoted = !is_quoted;
                piece.push(c);
            }
            _ => piece.push(c),
        }
        is_escaped = c == '\\' && is_quoted && !is_escaped;
    }
    pieces.push(piece);
    pieces.retain(|piece| !piece.trim().is_empty());
    pieces
}

fn unquoted(value: &str) -> String {
    let Some(inside) = value.strip_prefix('"').map(|value| value.strip_suffix('"').unwrap_or(value)) else {
        return value.to_owned();
    };
    let (mut text, mut is_escaped) = (String::new(), false);
    for c in inside.chars() {
        if c == '\\' && !is_escaped {
            is_escaped = true;
        } else {
            text.push(c);
            is_escaped = false;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(headers: &[&str]) -> (Option<String>, Option<String>, Option<String>) {
        let headers: Vec<String> = headers.iter().map(|header| (*header).to_owned()).collect();
        let Challenge { error, scope, metadata } = Challenge::read(&headers);
        (error, scope, metadata)
    }

    #[test]
    fn what_is_asked_of_bearers_is_found_among_the_rest() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            read(&[
                "Basic realm=\"a, Bearer scope=x\", bearer Error=\"invalid_token\", scope=\"a b\" , resource_metadata=\"https://x/y?a=b\""
            ]),
            (some("invalid_token"), some("a b"), some("https://x/y?a=b"))
        );
        assert_eq!(read(&["Negotiate", "Bearer scope=one, DPoP scope=two"]), (None, some("one"), None));
        assert_eq!(read(&["Bearer realm=\"say \\\"hi\\\", all\", scope=\"s\""]), (None, some("s"), None));
        assert_eq!(read(&["Bearer"]), (None, None, None));
        assert_eq!(read(&["Basic realm=x, scope=no"]), (None, None, None));
    }

    proptest! {
        #[test]
        fn no_header_is_too_strange(header in "(Bearer|[a-z]{0,2}|[\"\\\\,= ]){0,20}") {
            let _ = Challenge::read(&[header]);
        }
    }
}
