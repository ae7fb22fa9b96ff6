//! `store` and `load`: values that stay with the session, as JSON text.

use std::collections::BTreeMap;

/// The longest key, in characters.
const KEY: usize = 256;
/// The longest value, in characters of JSON.
const VALUE: usize = 262_144;
/// All values that one script stores, together.
const TOTAL: usize = 1_048_576;

/// What this script stored. What was there before is asked for where it is wanted.
#[derive(Debug, Default)]
pub(crate) struct Store {
    set: BTreeMap<String, Option<String>>,
    total: usize,
}

impl Store {
    /// Stores a value, or with none forgets the key.
    ///
    /// # Errors
    /// What is too large, with both numbers.
    pub(crate) fn set(&mut self, key: String, json: Option<String>) -> Result<(), String> {
        let characters = key.chars().count();
        if characters == 0 || characters > KEY {
            return Err(format!("a key has 1 to {KEY} characters, not {characters}"));
        }
        let size = json.as_ref().map_or(0, |json| json.chars().count());
        if size > VALUE {
            return Err(format!("the value of {key:?} has {size} characters as JSON, and at most {VALUE} are stored"));
        }
        let before = self.set.get(&key).and_then(Option::as_ref).map_or(0, |json| json.chars().count());
        let total = self.total.saturating_sub(before).saturating_add(size);
        if total > TOTAL {
            return Err(format!("all values would have {total} characters as JSON, and at most {TOTAL} are stored"));
        }
        self.total = total;
        self.set.insert(key, json);
        Ok(())
    }

    /// What this script stored: the inner none if it forgot the key, the outer one if it did not touch it.
    pub(crate) fn get(&self, key: &str) -> Option<Option<&str>> {
        self.set.get(key).map(Option::as_deref)
    }

    /// All that changed.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.set.iter().map(|(key, json)| (key.as_str(), json.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_up_to_their_bounds() {
        let mut store = Store::default();
        assert_eq!(store.set("a".to_owned(), Some("1".to_owned())), Ok(()));
        assert_eq!((store.get("a"), store.get("b")), (Some(Some("1")), None));
        assert_eq!(store.set("a".to_owned(), None), Ok(()));
        assert_eq!(store.get("a"), Some(None));
        let large = store.set("b".to_owned(), Some("x".repeat(VALUE + 1))).unwrap_err();
        assert!(large.contains("262145") && large.contains("262144"), "{large}");
        for key in ["c", "d", "e", "f"] {
            assert_eq!(store.set(key.to_owned(), Some("x".repeat(VALUE))), Ok(()));
        }
        assert!(store.set("g".to_owned(), Some("1".to_owned())).unwrap_err().contains("1048577"));
        assert_eq!(store.set("c".to_owned(), Some("1".to_owned())), Ok(()), "what is replaced makes room");
        assert_eq!(store.set("g".to_owned(), Some("1".to_owned())), Ok(()));
        assert!(store.set(String::new(), None).is_err() && store.set("k".repeat(257), None).is_err());
        assert_eq!(store.changes().count(), 6);
    }
}
