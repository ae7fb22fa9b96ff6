//! Taking secrets out of texts.
//!
//! Must never take out what is too short to be one: words that have nothing to do with it would go.

use std::{collections::VecDeque, ops::Range};

use atoll_table::model::Secret;

/// What stands for a secret.
const STANDS_FOR: &str = "[secret]";
/// The shortest text that is taken out, in bytes.
const SHORTEST: usize = 6;
/// From this length on a beginning of a secret is taken out as well, in bytes: texts that hold one are cut somewhere.
const CUT_FROM: usize = 20;
/// How long that beginning is at least: what many tokens of one kind begin with is shorter, or no secret.
const SHORTEST_BEGINNING: usize = 16;
/// How many credentials of requests are known at once; the oldest is forgotten for a new one.
const MOST_SENT: usize = 64;

/// The text without this secret, and without beginnings of it that are at least half of it.
pub(crate) fn without(mut text: String, secret: &str) -> String {
    if secret.len() < SHORTEST {
        return text;
    }
    let least = if secret.len() < CUT_FROM { secret.len() } else { SHORTEST_BEGINNING.max(secret.len() / 2) };
    let Some(beginning) = secret.get(..secret.ceil_char_boundary(least)) else { return text };
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(beginning)).map(|at| at + from) {
        let found = begins(&text, at, secret);
        text.replace_range(found, STANDS_FOR);
        from = at + STANDS_FOR.len();
    }
    text
}

/// How far a text goes on as the secret does.
fn begins(text: &str, at: usize, secret: &str) -> Range<usize> {
    let rest = text.get(at..).unwrap_or_default();
    let same = rest.chars().zip(secret.chars()).take_while(|(one, other)| one == other);
    at..at + same.map(|(one, _)| one.len_utf8()).sum::<usize>()
}

/// What a plugin has sent of late to say who asks.
#[derive(Debug, Default)]
pub(crate) struct SentCredentials(VecDeque<Secret>);

impl SentCredentials {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Secret> {
        self.0.iter()
    }

    /// Whether this one is known.
    pub(crate) fn has(&self, value: &str) -> bool {
        self.0.iter().any(|known| known.reveal() == value)
    }

    pub(crate) fn add(&mut self, value: &str) {
        if self.has(value) {
            return;
        }
        if self.0.len() >= MOST_SENT {
            self.0.pop_front();
        }
        self.0.push_back(Secret::new(value));
    }

    pub(crate) fn extend(&mut self, others: &Self) {
        for other in others.iter() {
            self.add(other.reveal());
        }
    }
}

/// The part of a header `authorization` that is a secret: what follows the name of the scheme.
pub(crate) fn credential(header: &str) -> Option<&str> {
    let header = header.trim();
    let value = header.split_once(' ').map_or(header, |(_, value)| value.trim());
    (value.len() >= SHORTEST).then_some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_secret_goes_whole_or_cut_and_words_stay() {
        let token = "tok-0123456789-abcdefghij";
        for (text, expected) in [
            ("it is tok-0123456789-abcdefghij.", "it is [secret]."),
            ("twice tok-0123456789-abcdefghijtok-0123456789-abcdefghij", "twice [secret][secret]"),
            ("cut tok-0123456789-abcd…", "cut [secret]…"),
            ("a beginning of tok-0123456789 stays", "a beginning of tok-0123456789 stays"),
        ] {
            assert_eq!(without(text.to_owned(), token), expected);
        }
        assert_eq!(without("short is short".to_owned(), "short"), "short is short");
        assert_eq!(without("key-of-me and key-of".to_owned(), "key-of-me"), "[secret] and key-of");
    }

    #[test]
    fn what_was_sent_of_late_is_known_and_no_more() {
        let mut sent = SentCredentials::default();
        assert!(sent.is_empty());
        for at in 0..100 {
            sent.add(&format!("token-{at}"));
            sent.add(&format!("token-{at}"));
        }
        assert_eq!(sent.iter().count(), MOST_SENT);
        assert!(sent.has("token-99") && sent.has("token-36") && !sent.has("token-35"));
    }

    #[test]
    fn the_name_of_a_scheme_is_no_secret() {
        assert_eq!(credential("Bearer  abcdefg"), Some("abcdefg"));
        assert_eq!(credential("abcdefg"), Some("abcdefg"));
        assert_eq!(credential("Bearer x"), None);
        assert_eq!(credential(""), None);
    }

    proptest! {
        #[test]
        fn nothing_of_a_secret_is_left(
            before in "[a-c ]{0,9}", secret in "[a-cü]{6,40}", after in "[a-c ]{0,9}", text in any::<String>(),
        ) {
            let left = without(format!("{before}{secret}{after}"), &secret);
            prop_assert!(!left.contains(&secret), "{left}");
            without(text, &secret);
        }
    }
}
