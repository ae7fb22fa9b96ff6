//! Finding tools by words.

use std::collections::{HashMap, HashSet};

/// Words that say nothing.
const STOP_WORDS: [&str; 21] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "is", "it", "of", "on", "or", "that", "the",
    "this", "to", "with",
];
/// The longest query that is looked at, in characters.
const MAX_QUERY: usize = 1_000;
/// How much is looked at of each text of a tool, in characters.
const MAX_TEXT: usize = 2_000;
/// What a word counts for in each place.
const NAME: f64 = 3.0;
const KEYWORDS: f64 = 2.0;
const TEXT: f64 = 1.0;
/// How much less a word counts of which only the beginning was asked for.
const BEGINNING: f64 = 0.4;
/// The shortest beginning of a word that counts.
const SHORTEST_BEGINNING: usize = 3;

/// What is searched of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Document<'a> {
    /// Its names: each of them finds it at once.
    pub(crate) names: Vec<&'a str>,
    /// Words that the configuration gives it.
    pub(crate) keywords: Vec<&'a str>,
    /// What it does, and what its arguments are called.
    pub(crate) texts: Vec<&'a str>,
}

/// The places of those documents that have a word of the query, best first: one that is called exactly so, then those with
/// most of the words, then those whose words are the rarer ones and stand in better places. All of them for a query without
/// words, as they are.
pub(crate) fn rank(query: &str, documents: &[Document<'_>]) -> Vec<usize> {
    let query: String = query.chars().take(MAX_QUERY).collect();
    let mut terms = words(&query);
    let mut seen = HashSet::new();
    terms.retain(|term| seen.insert(term.clone()));
    if terms.is_empty() {
        return (0..documents.len()).collect();
    }
    let wanted = query.trim().to_lowercase();
    let weights: Vec<HashMap<String, f64>> = documents.iter().map(weights).collect();
    let matches: Vec<Vec<f64>> =
        weights.iter().map(|weights| terms.iter().map(|term| weight(weights, term)).collect()).collect();
    let rarity = |at: usize| {
        let having = matches.iter().filter(|found| found.get(at).is_some_and(|weight| *weight > 0.0)).count();
        // No collection of tools is so large that this is not exact.
        #[allow(clippy::cast_precision_loss, reason = "there are fewer tools than a f64 can count")]
        let rarity = (1.0 + documents.len() as f64 / (1.0 + having as f64)).ln();
        rarity
    };
    let rarities: Vec<f64> = (0..terms.len()).map(rarity).collect();
    let mut found: Vec<(bool, usize, f64, usize)> = Vec::new();
    for (at, (document, matches)) in documents.iter().zip(&matches).enumerate() {
        let covered = matches.iter().filter(|weight| **weight > 0.0).count();
        let is_called_so = document.names.iter().any(|name| name.to_lowercase() == wanted);
        if covered > 0 || is_called_so {
            let score = matches.iter().zip(&rarities).map(|(weight, rarity)| weight * rarity).sum();
            found.push((is_called_so, covered, score, at));
        }
    }
    found.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then(b.2.total_cmp(&a.2)).then(a.3.cmp(&b.3)));
    found.into_iter().map(|(_, _, _, at)| at).collect()
}

fn weights(document: &Document<'_>) -> HashMap<String, f64> {
    let mut weights = HashMap::new();
    for (texts, weight) in [(&document.names, NAME), (&document.keywords, KEYWORDS), (&document.texts, TEXT)] {
        for word in texts.iter().flat_map(|text| words(beginning(text))) {
            let known: &mut f64 = weights.entry(word).or_default();
            *known = known.max(weight);
        }
    }
    weights
}

fn beginning(text: &str) -> &str {
    let end = text.char_indices().nth(MAX_TEXT).map_or(text.len(), |(end, _)| end);
    text.get(..end).unwrap_or_default()
}

fn weight(weights: &HashMap<String, f64>, term: &str) -> f64 {
    if let Some(weight) = weights.get(term) {
        return *weight;
    }
    if term.chars().count() < SHORTEST_BEGINNING {
        return 0.0;
    }
    let begins = weights.iter().filter(|(word, _)| word.starts_with(term));
    BEGINNING * begins.map(|(_, weight)| *weight).fold(0.0, f64::max)
}

/// The words of a text, in lower case and without plurals. Of text without spaces between words, its characters.
fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for c in text.chars() {
        let is_alone = is_alone(c);
        if !c.is_alphanumeric() || is_alone || (c.is_uppercase() && before.is_lowercase()) {
            end(&mut word, &mut found);
        }
        if is_alone {
            found.push(c.to_string());
        } else if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    end(&mut word, &mut found);
    found
}

fn end(word: &mut String, found: &mut Vec<String>) {
    let word = std::mem::take(word);
    if !word.is_empty() && !STOP_WORDS.contains(&word.as_str()) {
        found.push(singular(word));
    }
}

/// Characters that are words by themselves, for there are no spaces between them.
fn is_alone(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// A crude singular: what it makes of words that are no plurals does not matter.
fn singular(mut word: String) -> String {
    let is_plural = word.len() > 3 && word.is_ascii() && word.ends_with('s');
    if !is_plural || word.ends_with("ss") || word.ends_with("us") || word.ends_with("is") {
        return word;
    }
    if word.ends_with("ies") && word.len() > 4 {
        word.truncate(word.len() - 3);
        word.push('y');
    } else {
        word.pop();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tool<'a>(name: &'a str, text: &'a str) -> Document<'a> {
        Document { names: vec![name], keywords: Vec::new(), texts: vec![text] }
    }

    fn found<'a>(query: &str, all: &[Document<'a>]) -> Vec<&'a str> {
        rank(query, all).into_iter().map(|at| all[at].names[0]).collect()
    }

    #[test]
    fn what_has_most_of_the_words_is_first_and_what_has_none_is_not_found() {
        let all = [
            tool("a_tool1", "Call server a tool1"),
            tool("a_tool2", "Call server a tool2"),
            tool("github_get_issue", "Gets one issue of a repository"),
            tool("github_list_issues", "Lists issues"),
            tool("github_createPullRequest", "Proposes a change"),
        ];
        assert_eq!(found("tool1", &all), ["a_tool1"]);
        assert_eq!(found("get issues", &all), ["github_get_issue", "github_list_issues"]);
        assert_eq!(found("pull request", &all), ["github_createPullRequest"]);
        assert_eq!(found("repo", &all), ["github_get_issue"], "the beginning of a word finds it");
        assert_eq!(found("GITHUB_LIST_ISSUES", &all)[0], "github_list_issues");
        assert!(found("nothing of the kind", &all[..1]).is_empty());
        assert_eq!(found("the of", &all).len(), 5, "no words: all of them");
    }

    #[test]
    fn a_name_counts_more_than_a_text_and_keywords_find_what_does_not_say_it() {
        let mut all = [tool("x_one", "About weather"), tool("weather_two", "About it"), tool("x_three", "Nothing")];
        all[2].keywords = vec!["rain forecast"];
        assert_eq!(found("weather", &all), ["weather_two", "x_one"]);
        assert_eq!(found("forecasts", &all), ["x_three"]);
        assert_eq!(found("天气", &[tool("a", "查询天气预报"), tool("b", "日历")]), ["a"]);
    }

    proptest! {
        #[test]
        fn every_place_is_given_once_and_a_tool_is_found_by_its_name(
            query in ".{0,40}", names in proptest::collection::vec("[a-z]{4,9}_[a-z]{4,9}", 1..9), which in any::<proptest::sample::Index>(),
        ) {
            let all: Vec<Document<'_>> = names.iter().map(|name| tool(name, "")).collect();
            let places = rank(&query, &all);
            prop_assert_eq!(places.iter().collect::<HashSet<_>>().len(), places.len());
            prop_assert!(places.iter().all(|at| *at < all.len()));
            let name = &names[which.index(names.len())];
            let by_name = found(name, &all);
            prop_assert_eq!(by_name.first(), Some(&name.as_str()));
        }
    }
}
