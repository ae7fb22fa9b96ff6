//! `store` and `load`: values that stay with the session, as JSON text.

use std::collections::BTreeMap;

/// The longest key, in bytes.
const KEY: usize = 256;
/// The longest value, in bytes of JSON.
const VALUE: usize = 262_144;
/// All values that one script stores, together.
const TOTAL: usize = 1_048_576;
/// How many keys one script stores or forgets.
const KEYS: usize = 4_096;
/// How deep a value nests: those who read it may not read what is deeper.
pub(crate) const DEEPEST: usize = 100;

/// What this script stored. What was there before is asked for where it is wanted.
#[derive(Debug, Default)]
pub(crate) struct Store {
    set: BTreeMap<String, Option<String>>,
    total: usize,
}

impl Store {
    /// Whether a value can be stored with what this script stored before.
    ///
    /// # Errors
    /// What is too large, with both numbers.
    pub(crate) fn check(&self, key: &str, json: Option<&str>) -> Result<(), String> {
        if key.is_empty() || key.len() > KEY {
            return Err(format!("a key has 1 to {KEY} bytes, not {}", key.len()));
        }
        if self.set.len() >= KEYS && !self.set.contains_key(key) {
            return Err(format!("a script stores at most {KEYS} keys"));
        }
        let size = json.map_or(0, str::len);
        if size > VALUE {
            return Err(format!("it has {size} bytes as JSON, and at most {VALUE} are kept of a value"));
        }
        if json.is_some_and(|json| depth(json) > DEEPEST) {
            return Err(format!("it nests deeper than {DEEPEST} levels"));
        }
        let total = self.total_with(key, size);
        if total > TOTAL {
            return Err(format!("with it all values would have {total} bytes as JSON, and at most {TOTAL} are kept"));
        }
        Ok(())
    }

    /// Takes what was checked; with no value the key is forgotten.
    pub(crate) fn put(&mut self, key: String, json: Option<String>) {
        self.total = self.total_with(&key, json.as_ref().map_or(0, String::len));
        self.set.insert(key, json);
    }

    fn total_with(&self, key: &str, size: usize) -> usize {
        let before = self.set.get(key).and_then(Option::as_ref).map_or(0, String::len);
        self.total.saturating_sub(before).saturating_add(size)
    }

    /// What this script stored: the inner none if it forgot the key, the outer one if it did not touch it.
    pub(crate) fn get(&self, key: &str) -> Option<Option<&str>> {
        self.set.get(key).map(Option::as_deref)
    }
}

/// How deep a JSON text nests.
pub(crate) fn depth(json: &str) -> usize {
    let (mut now, mut most, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                now += 1;
                most = most.max(now);
            }
            b']' | b'}' if !in_text => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(store: &mut Store, key: &str, json: Option<String>) -> Result<(), String> {
        store.check(key, json.as_deref())?;
        store.put(key.to_owned(), json);
        Ok(())
    }

    #[test]
    fn values_are_kept_up_to_their_bounds_in_bytes() {
        let mut store = Store::default();
        assert_eq!(set(&mut store, "a", Some("1".to_owned())), Ok(()));
        assert_eq!((store.get("a"), store.get("b")), (Some(Some("1")), None));
        assert_eq!(set(&mut store, "a", None), Ok(()));
        assert_eq!(store.get("a"), Some(None));
        let large = set(&mut store, "b", Some("漢".repeat(VALUE / 3 + 1))).unwrap_err();
        assert!(large.contains("262146") && large.contains("262144"), "{large}");
        for key in ["c", "d", "e", "f"] {
            assert_eq!(set(&mut store, key, Some("x".repeat(VALUE))), Ok(()));
        }
        assert!(set(&mut store, "g", Some("1".to_owned())).unwrap_err().contains("1048577"));
        assert_eq!(set(&mut store, "c", Some("1".to_owned())), Ok(()), "what is replaced makes room");
        assert_eq!(set(&mut store, "g", Some("1".to_owned())), Ok(()));
        assert!(store.check("", None).is_err() && store.check(&"é".repeat(129), None).is_err());
        for at in 6..KEYS {
            assert_eq!(set(&mut store, &format!("k{at}"), None), Ok(()));
        }
        assert!(store.check("more", None).unwrap_err().contains("4096 keys"));
        assert_eq!(store.check("a", None), Ok(()), "a key that is there is no more");
    }

    #[test]
    fn depth_is_that_of_lists_and_objects_and_not_of_texts() {
        let cases = [("1", 0), ("[]", 1), (r#"{"a":[1,{"b":"]]]"}]}"#, 3), (r#"["\"[[[", "\\"]"#, 1)];
        for (json, expected) in cases {
            assert_eq!(depth(json), expected, "{json}");
        }
        let deep = "[".repeat(DEEPEST + 1);
        assert!(Store::default().check("a", Some(&deep)).unwrap_err().contains("deeper than 100"));
    }
}
