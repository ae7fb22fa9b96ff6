//! Text to words. English loses its most frequent words and its plurals; text without spaces between words, as in
//! Chinese and Japanese, is taken apart into pairs of characters.

use unicode_normalization::UnicodeNormalization as _;
use unicode_segmentation::UnicodeSegmentation as _;

/// Words that say nothing.
const STOP_WORDS: [&str; 21] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "is", "it", "of", "on", "or", "that", "the",
    "this", "to", "with",
];

/// The longest query that is looked at, in characters.
const MAX_QUERY: usize = 1_000;

/// What is compared as a whole: lower case, composed.
pub(super) fn fold(text: &str) -> String {
    text.chars().take(MAX_QUERY).collect::<String>().nfc().collect::<String>().to_lowercase().nfc().collect()
}

/// The words of a query. Of text without spaces, the pairs only: one character alone is everywhere.
pub(super) fn of_query(text: &str) -> Vec<String> {
    let text: String = text.chars().take(MAX_QUERY).collect();
    words(&text, false)
}

/// The words of a text that is searched. Of text without spaces, the pairs and the characters, so that a query of one
/// character finds it too.
pub(super) fn of_document(text: &str) -> Vec<String> {
    words(text, true)
}

fn words(text: &str, singles: bool) -> Vec<String> {
    let text: String = text.nfc().collect();
    let mut found = Vec::new();
    // Characters that are words by themselves and follow each other directly.
    let mut run: Vec<&str> = Vec::new();
    let mut run_end = 0;
    for (at, word) in text.unicode_word_indices() {
        let alone = !word.is_ascii() && word.graphemes(true).nth(1).is_none();
        if !alone || at != run_end {
            end_run(&mut run, singles, &mut found);
        }
        if alone {
            run.push(word);
            run_end = at + word.len();
        } else {
            for part in word.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric()) {
                camel(part, &mut found);
            }
        }
    }
    end_run(&mut run, singles, &mut found);
    found
}

fn end_run(run: &mut Vec<&str>, singles: bool, found: &mut Vec<String>) {
    if singles || run.len() == 1 {
        found.extend(run.iter().map(|single| single.to_lowercase()));
    }
    found.extend(run.windows(2).map(|pair| pair.concat().to_lowercase()));
    run.clear();
}

/// Splits `camelCase` and `HTTPServer`, and adds the parts that count.
fn camel(word: &str, found: &mut Vec<String>) {
    let chars: Vec<(usize, char)> = word.char_indices().collect();
    let mut start = 0;
    for (place, (at, this)) in chars.iter().enumerate().skip(1) {
        let before = chars[place - 1].1;
        let next_is_lower = chars.get(place + 1).is_some_and(|(_, next)| next.is_lowercase());
        if this.is_uppercase() && (!before.is_uppercase() || next_is_lower) {
            add(&word[start..*at], found);
            start = *at;
        }
    }
    add(&word[start..], found);
}

fn add(part: &str, found: &mut Vec<String>) {
    let lower = part.to_lowercase();
    if !lower.is_empty() && !STOP_WORDS.contains(&lower.as_str()) {
        found.push(singular(lower));
    }
}

/// A crude singular of an English plural. What it makes of other words does not matter, as long as it makes the same
/// of them in texts and in queries.
fn singular(mut word: String) -> String {
    let length = word.len();
    if !word.is_ascii() || length < 4 || !word.ends_with('s') {
        return word;
    }
    if word.ends_with("ss") || word.ends_with("us") || word.ends_with("is") {
        return word;
    }
    if word.ends_with("ies") && length > 4 {
        word.truncate(length - 3);
        word.push('y');
    } else if ["sses", "xes", "zes", "ches", "shes"].iter().any(|ending| word.ends_with(ending)) {
        word.truncate(length - 2);
    } else {
        word.truncate(length - 1);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_words() {
        for (text, expected) in [
            ("Reads a file from the disk", vec!["read", "file", "disk"]),
            ("getIssueById", vec!["get", "issue", "id"]),
            ("HTTPServer v2Beta", vec!["http", "server", "v2", "beta"]),
            ("snake_case-and.dots/slash", vec!["snake", "case", "dot", "slash"]),
            ("don't 3.14", vec!["don", "t", "3", "14"]),
            (
                "queries boxes classes statuses buses glass this",
                vec!["query", "box", "class", "statuse", "buse", "glass"],
            ),
            ("Größenänderung der Straße", vec!["größenänderung", "der", "straße"]),
            ("Gro\u{308}ße", vec!["größe"]),
            ("поиск файлов", vec!["поиск", "файлов"]),
            ("", vec![]),
            ("the --- !!", vec![]),
        ] {
            assert_eq!(of_document(text), expected, "{text}");
            assert_eq!(of_query(text), expected, "{text}");
        }
    }

    #[test]
    fn text_without_spaces_becomes_pairs() {
        assert_eq!(of_query("天气预报"), ["天气", "气预", "预报"]);
        assert_eq!(of_document("查天气"), ["查", "天", "气", "查天", "天气"]);
        assert_eq!(of_query("猫"), ["猫"]);
        assert_eq!(of_query("ファイルを検索 getFile"), ["ファイル", "を検", "検索", "get", "file"]);
        assert_eq!(of_query("天 气"), ["天", "气"], "apart, they are two words");
    }
}
