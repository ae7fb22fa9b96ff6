//! Search in the table: BM25 over descriptions and schemas, with more weight for names.

mod document;
#[cfg(test)]
mod tests;
mod tokens;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

pub(crate) use document::Document;

use crate::{Error, Registered, Table, reach::Standing};

/// How many tools a search gives when nobody says how many.
pub const DEFAULT_LIMIT: usize = 8;

/// How fast more of the same word stops to count.
const K1: f64 = 1.2;
/// How much a long description counts against its tool.
const B: f64 = 0.75;
/// A word in the tool's own name.
const NAME_WEIGHT: f64 = 3.0;
/// A word in the name of its namespace.
const NAMESPACE_WEIGHT: f64 = 0.5;
/// Words of a query that count; more make no better search.
const MAX_QUERY_TERMS: usize = 64;

/// What is searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query<'a> {
    /// Words, or a name.
    pub text: &'a str,
    /// The most tools to give.
    pub limit: usize,
    /// Only tools of this namespace, by any of its names.
    pub namespace: Option<&'a str>,
}

impl<'a> Query<'a> {
    /// For words, in all namespaces.
    pub fn new(text: &'a str) -> Self {
        Self { text, limit: DEFAULT_LIMIT, namespace: None }
    }
}

/// How well a tool fits. Compared in this order.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Rank {
    /// The query is its name: 3 in full, 2 in full but for upper case, 1 without its namespace.
    exact: u8,
    /// How many words of the query it has.
    covered: usize,
    score: f64,
}

impl Table {
    /// The tools that fit a query, best first, among those that `admits` lets through (it also learns where a tool
    /// stands). A tool whose name is the query comes first; then count the words of the query it has, then
    /// BM25. Equals keep the order of registration.
    ///
    /// # Errors
    /// `not-found` or `ambiguous` for the namespace.
    pub fn search(
        &self,
        query: &Query<'_>,
        admits: impl Fn(&Registered, Standing) -> bool,
    ) -> Result<Vec<Arc<Registered>>, Error> {
        let namespace = query.namespace.map(|name| self.namespace(name)).transpose()?;
        let candidates: Vec<&Arc<Registered>> = (self.tools().iter())
            .filter(|entry| entry.tool.exposure != crate::tool::Exposure::Hidden)
            .filter(|entry| match &namespace {
                Some(group) => entry.tool.namespace.as_ref().is_some_and(|own| own.name == group.name),
                None => true,
            })
            .filter(|entry| admits(entry, self.standing(&entry.tool.name)))
            .collect();
        let documents: Vec<&Document> = candidates.iter().map(|entry| entry.document()).collect();
        Ok(ranked(query.text, &documents).into_iter().take(query.limit).map(|at| Arc::clone(candidates[at])).collect())
    }
}

/// The places of the documents that fit, best first.
fn ranked(text: &str, documents: &[&Document]) -> Vec<usize> {
    let plain = tokens::fold(text.trim());
    let mut seen = HashSet::new();
    let mut terms = tokens::of_query(text);
    terms.retain(|term| seen.insert(term.clone()));
    terms.truncate(MAX_QUERY_TERMS);
    let scoring = Scoring::new(&terms, documents);
    let mut ranks: Vec<(usize, Rank)> = (documents.iter().enumerate())
        .map(|(at, document)| (at, scoring.rank(text.trim(), &plain, document)))
        .filter(|(_, rank)| rank.exact > 0 || rank.covered > 0)
        .collect();
    ranks.sort_by(|(_, a), (_, b)| {
        b.exact.cmp(&a.exact).then(b.covered.cmp(&a.covered)).then(b.score.total_cmp(&a.score))
    });
    ranks.into_iter().map(|(at, _)| at).collect()
}

/// What is the same for all documents.
struct Scoring<'a> {
    /// The words of the query, each with how much it tells.
    terms: Vec<(&'a str, f64)>,
    average_length: f64,
}

impl<'a> Scoring<'a> {
    #[expect(clippy::cast_precision_loss, reason = "counts of tools and words, far below 2^52")]
    fn new(terms: &'a [String], documents: &[&Document]) -> Self {
        let count = documents.len() as f64;
        let total: usize = documents.iter().map(|document| document.length).sum();
        let terms = terms.iter().map(|term| {
            let having = documents.iter().filter(|document| document.has(term)).count() as f64;
            (term.as_str(), ((count - having + 0.5) / (having + 0.5)).ln_1p())
        });
        Self { terms: terms.collect(), average_length: (total as f64 / count.max(1.0)).max(1.0) }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of words, far below 2^52")]
    fn rank(&self, text: &str, plain: &str, document: &Document) -> Rank {
        let exact = if document.name == text {
            3
        } else if document.folded_name == plain {
            2
        } else {
            u8::from(!plain.is_empty() && document.folded_local == plain)
        };
        let long = 1.0 - B + B * document.length as f64 / self.average_length;
        let (mut covered, mut score) = (0, 0.0);
        for (term, tells) in &self.terms {
            let often = f64::from(document.body.get(*term).copied().unwrap_or(0));
            let in_name = document.local_terms.contains(*term);
            let in_namespace = document.namespace_terms.contains(*term);
            if often == 0.0 && !in_name && !in_namespace {
                continue;
            }
            covered += 1;
            score += tells * often * (K1 + 1.0) / (often + K1 * long);
            score += tells * (NAME_WEIGHT * f64::from(u8::from(in_name)));
            score += tells * (NAMESPACE_WEIGHT * f64::from(u8::from(in_namespace)));
        }
        // All of the tool's own name is in the query: that is hardly by chance.
        let telling: HashMap<&str, f64> = self.terms.iter().copied().collect();
        let named: Option<f64> = document.local_terms.iter().map(|term| telling.get(term.as_str()).copied()).sum();
        if !document.local_terms.is_empty() {
            score += named.unwrap_or(0.0);
        }
        Rank { exact, covered, score }
    }
}
