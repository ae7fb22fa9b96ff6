//! What calls of a tool keep with the session for later ones.
//!
//! It is the tool's own state and nobody else's: no model is sent it, and no other tool sees it.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::Error;

/// The longest key, in bytes.
pub const MAX_KEY: usize = 256;
/// The longest value, in bytes of JSON; also the most that a tool may have in all, keys included.
pub const MAX_BYTES: usize = 1 << 20;
/// The most keys that one call changes.
pub const MAX_CHANGES: usize = 4_096;

/// What a call keeps, by key; none: the key is forgotten.
pub type Changes = BTreeMap<String, Option<Value>>;

/// What is kept of one tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// Each value with the length of its JSON.
    values: BTreeMap<String, (Value, usize)>,
}

impl Kept {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key).map(|(value, _)| value)
    }

    /// Nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Sets or forgets a key.
    pub fn change(&mut self, key: String, value: Option<Value>) {
        match value {
            Some(value) => {
                let length = value.to_string().len();
                self.values.insert(key, (value, length));
            }
            None => {
                self.values.remove(&key);
            }
        }
    }

    /// Sets and forgets what a call wanted.
    pub fn apply(&mut self, changes: Changes) {
        for (key, value) in changes {
            self.change(key, value);
        }
    }

    /// How much of the room one key takes, in bytes.
    fn size_of(&self, key: &str) -> usize {
        self.values.get(key).map_or(0, |(_, length)| key.len() + length)
    }

    fn bytes(&self) -> usize {
        self.values.iter().map(|(key, (_, length))| key.len() + length).sum()
    }
}

/// What a call under way wants to keep, within the bounds.
#[derive(Debug)]
pub struct Keeping {
    before: Arc<Kept>,
    changes: Changes,
    /// How much each change takes.
    sizes: BTreeMap<String, usize>,
    /// What all would take if the call ended now.
    bytes: usize,
}

impl Keeping {
    /// Nothing yet, where `before` is kept already.
    pub fn new(before: Arc<Kept>) -> Self {
        let bytes = before.bytes();
        Self { before, changes: Changes::new(), sizes: BTreeMap::new(), bytes }
    }

    /// Wants a value, given as JSON, to be kept, or a key to be forgotten.
    ///
    /// # Errors
    /// `limit` `output-bytes` if that is too much, `invalid-arguments` if it is not JSON. Then the key stays as it was.
    pub fn keep(&mut self, key: &str, json: Option<&str>) -> Result<(), Error> {
        let too_much = |value: usize| {
            let value = u64::try_from(value).unwrap_or(u64::MAX);
            Err(Error::Limit { name: "output-bytes".to_owned(), value })
        };
        if key.len() > MAX_KEY {
            return too_much(MAX_KEY);
        }
        if json.is_some_and(|json| json.len() > MAX_BYTES) {
            return too_much(MAX_BYTES);
        }
        if self.changes.len() >= MAX_CHANGES && !self.changes.contains_key(key) {
            return too_much(MAX_CHANGES);
        }
        let value: Option<Value> = json
            .map(serde_json::from_str)
            .transpose()
            .map_err(|error| Error::InvalidArguments(format!("what is to be kept is not JSON: {error}")))?;
        let size = value.as_ref().map_or(0, |value| key.len() + value.to_string().len());
        let now = self.sizes.get(key).copied().unwrap_or_else(|| self.before.size_of(key));
        let bytes = (self.bytes - now) + size;
        // What makes it less is always welcome.
        if bytes > MAX_BYTES && size > now {
            return too_much(MAX_BYTES);
        }
        self.bytes = bytes;
        self.sizes.insert(key.to_owned(), size);
        self.changes.insert(key.to_owned(), value);
        Ok(())
    }

    /// What the call wanted.
    pub fn into_changes(self) -> Changes {
        self.changes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn kept(values: &[(&str, Value)]) -> Arc<Kept> {
        let mut kept = Kept::default();
        kept.apply(values.iter().map(|(key, value)| ((*key).to_owned(), Some(value.clone()))).collect());
        Arc::new(kept)
    }

    #[test]
    fn changes_count_once_they_are_applied() {
        let before = kept(&[("a", json!(1)), ("b", json!([2]))]);
        let mut keeping = Keeping::new(Arc::clone(&before));
        keeping.keep("a", None).unwrap();
        keeping.keep("c", Some("{\"d\": null}")).unwrap();
        assert_eq!(keeping.keep("b", Some("{")).unwrap_err().code(), "invalid-arguments");
        let mut after = (*before).clone();
        after.apply(keeping.into_changes());
        assert_eq!(
            (after.get("a"), after.get("b"), after.get("c")),
            (None, Some(&json!([2])), Some(&json!({"d": null})))
        );
        assert_eq!(after, *kept(&[("b", json!([2])), ("c", json!({"d": null}))]));
    }

    #[test]
    fn each_bound_is_a_limit_and_leaves_what_was() {
        let limit = |value: usize| Error::Limit { name: "output-bytes".to_owned(), value: value as u64 };
        let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
        let mut keeping = Keeping::new(kept(&[("old", json!("y".repeat(600_000)))]));
        assert_eq!(keeping.keep(&"k".repeat(257), Some("1")), Err(limit(MAX_KEY)));
        assert_eq!(keeping.keep("k", Some(&text(MAX_BYTES + 1))), Err(limit(MAX_BYTES)));
        assert_eq!(keeping.keep("k", Some(&text(500_000))), Err(limit(MAX_BYTES)), "with what is there it is too much");
        keeping.keep("old", None).unwrap();
        keeping.keep("k", Some(&text(500_000))).unwrap();
        keeping.keep("k", Some(&text(MAX_BYTES - 1))).unwrap();
        assert_eq!(keeping.keep("m", Some("1")), Err(limit(MAX_BYTES)));
        keeping.keep("k", Some("1")).unwrap();
        for at in 0..MAX_CHANGES - 2 {
            keeping.keep(&format!("n{at}"), Some("1")).unwrap();
        }
        assert_eq!(keeping.keep("one more", None), Err(limit(MAX_CHANGES)));
        keeping.keep("n0", Some("2")).unwrap();
        assert_eq!(keeping.into_changes().len(), MAX_CHANGES);
    }

    proptest! {
        #[test]
        fn what_it_takes_is_what_is_kept(steps in proptest::collection::vec(("[abc]", proptest::option::of("[xyz]{0,9}")), 0..30)) {
            let before = kept(&[("a", json!("first"))]);
            let mut keeping = Keeping::new(Arc::clone(&before));
            for (key, value) in steps {
                keeping.keep(&key, value.map(|text| json!(text).to_string()).as_deref()).unwrap();
            }
            let bytes = keeping.bytes;
            let mut after = (*before).clone();
            after.apply(keeping.into_changes());
            prop_assert_eq!(bytes, after.bytes());
        }
    }
}
