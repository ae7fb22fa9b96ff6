//! Small helpers for messages: everything this crate prints is one line and safe to show in a terminal.

use std::fmt::Write as _;

/// Characters that would break a line, or make a terminal show something other than what is there.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// The text with unprintable characters escaped: one line, which shows in a terminal as what it is.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unprintable(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// The text as one word of a POSIX shell, quoted only if it has to be.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    if !text.chars().any(is_unprintable) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    // `$'…'` is the one quoting that can name a control character.
    let mut out = String::from("$'");
    let mut buffer = [0; 4];
    for c in text.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            c if is_unprintable(c) => {
                for byte in c.encode_utf8(&mut buffer).bytes() {
                    let _ = write!(out, "\\x{byte:02x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// The candidates that look like a misspelt word, nearest first.
pub(crate) fn near_matches<'a>(word: &str, candidates: &[&'a str]) -> Vec<&'a str> {
    let word = word.to_lowercase();
    let bound = (word.chars().count() / 3).max(1);
    let mut near: Vec<_> = candidates
        .iter()
        .map(|candidate| (distance(&word, candidate), *candidate))
        .filter(|(distance, candidate)| {
            *distance <= bound || (word.len() > 2 && (candidate.starts_with(&word) || word.starts_with(candidate)))
        })
        .collect();
    near.sort();
    near.into_iter().map(|(_, candidate)| candidate).collect()
}

/// How many single-character edits lie between two words; capped work for absurdly long ones.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut left = i + 1;
        let mut next = vec![left];
        for ((cb, up_left), up) in b.chars().zip(&row).zip(row.iter().skip(1)) {
            left = (up_left + usize::from(*ca != cb)).min(up + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

/// `a`, `b` or `c`, each in backquotes.
pub(crate) fn or_list(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => format!("`{one}`"),
        [most @ .., last] => {
            let most: Vec<_> = most.iter().map(|word| format!("`{word}`")).collect();
            format!("{} or `{last}`", most.join(", "))
        }
    }
}

/// Serde for a type that is a string in files and JSON, by its `Display`.
macro_rules! serialize_as_text {
    ($($type:ty),+) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )+};
}
pub(crate) use serialize_as_text;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_words() {
        for (text, word) in [
            ("https://api.example.com:POST", "https://api.example.com:POST"),
            ("$workspace:read", "'$workspace:read'"),
            ("~/x", "'~/x'"),
            ("", "''"),
            ("it's", r"'it'\''s'"),
            ("a\nb'c", r"$'a\x0ab\'c'"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }

    #[test]
    fn near() {
        let keys = ["name", "version", "methods", "origin", "memory-mib"];
        assert_eq!(near_matches("metods", &keys), ["methods"]);
        assert_eq!(near_matches("method", &keys), ["methods"]);
        assert_eq!(near_matches("Origin", &keys), ["origin"]);
        assert_eq!(near_matches("memory", &keys), ["memory-mib"]);
        assert_eq!(near_matches("zzz", &keys), Vec::<&str>::new());
        assert_eq!(or_list(&["a", "b", "c"]), "`a`, `b` or `c`");
    }

    #[test]
    fn printable_is_one_line() {
        assert_eq!(printable("a\nb\u{202e}ü"), "a\\nb\\u{202e}ü");
    }
}
