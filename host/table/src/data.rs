//! Results as data. A script may ask for many megabytes of them and hand on five lines, so they stay the JSON text that they
//! came as until somebody looks into them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// JSON as text, which was checked. A copy costs nothing.
#[derive(Clone)]
pub struct Data(Arc<Inner>);

struct Inner {
    text: OnceLock<Box<str>>,
    value: OnceLock<Value>,
}

impl Data {
    /// Data of a text that others wrote.
    ///
    /// # Errors
    /// It is no JSON, or holds what [`Value`] has nothing for: numbers that are too large, halves of characters, more than 128
    /// levels.
    pub fn from_text(text: String) -> Result<Self, serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_str(&text);
        Checked.deserialize(&mut reader)?;
        reader.end()?;
        Ok(Self(Arc::new(Inner { text: OnceLock::from(text.into_boxed_str()), value: OnceLock::new() })))
    }

    /// The text: as it came, or as it is written anew.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.text.get_or_init(|| self.value().to_string().into_boxed_str())
    }

    /// What is in it. Reads the text the first time.
    #[must_use]
    pub fn value(&self) -> &Value {
        self.0.value.get_or_init(|| {
            let text: &str = self.0.text.get().map(AsRef::as_ref).unwrap_or_default();
            // It was read once already.
            serde_json::from_str(text).unwrap_or_default()
        })
    }
}

impl From<Value> for Data {
    fn from(value: Value) -> Self {
        Self(Arc::new(Inner { text: OnceLock::new(), value: OnceLock::from(value) }))
    }
}

impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.value() == other.value()
    }
}

impl PartialEq<Value> for Data {
    fn eq(&self, other: &Value) -> bool {
        self.value() == other
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.value(), formatter)
    }
}

impl fmt::Display for Data {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

/// Reads as [`Value`] does, and keeps nothing.
#[derive(Clone, Copy)]
struct Checked;

impl<'de> DeserializeSeed<'de> for Checked {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Checked {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while fields.next_entry_seed(self, self)?.is_some() {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// What a text is read as, both ways.
    fn agree(text: &str) -> Result<(), TestCaseError> {
        let direct = serde_json::from_str::<Value>(text);
        let data = Data::from_text(text.to_owned());
        match (direct, data) {
            (Ok(value), Ok(data)) => {
                prop_assert_eq!(data.text(), text);
                prop_assert_eq!(data.value(), &value);
            }
            (Err(direct), Err(data)) => prop_assert_eq!(direct.to_string(), data.to_string()),
            (direct, data) => return Err(TestCaseError::fail(format!("{text:?}: {direct:?}, {data:?}"))),
        }
        Ok(())
    }

    #[test]
    fn the_same_is_refused_as_by_reading_it() {
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        let texts = [
            "",
            "{",
            "[1,]",
            "1 2",
            "\"\\ud800\"",
            "1e400",
            "-0",
            "18446744073709551616",
            "{\"a\":1,\"a\":2}",
            "nul",
            "\"\n\"",
            " [1] ",
        ];
        for text in texts.into_iter().map(str::to_owned).chain([deep(127), deep(128), deep(100_000)]) {
            agree(&text).unwrap();
        }
    }

    #[test]
    fn it_is_what_it_holds() {
        let text = Data::from_text(" {\"b\": 1, \"a\": [null]} ".to_owned()).unwrap();
        let value = Data::from(json!({"b": 1, "a": [null]}));
        assert_eq!(text, value);
        assert_eq!(text, json!({"b": 1, "a": [null]}));
        assert_eq!(serde_json::to_string(&text).unwrap(), value.text());
        assert_eq!(text.text(), " {\"b\": 1, \"a\": [null]} ", "it is handed on as it came");
        assert_eq!(serde_json::from_str::<Data>("[1]").unwrap(), json!([1]));
    }

    proptest! {
        #[test]
        fn any_text_is_read_alike(text in "[\\[\\]{}\",:\\\\u0-9a-e\\-. ntrfl]{0,40}") {
            agree(&text)?;
        }
    }
}
