//! Changing one server in a text, without touching anything else in it: comments, order and indentation stay.

use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value, json};

use super::document;

/// The key under which servers are.
const SERVERS: &str = "mcpServers";

/// The text with this server, new or in place of the one of that name.
///
/// # Errors
/// Why the text can not be changed. It is to be left as it is then.
pub fn put(text: &str, name: &str, entry: &Map<String, Value>) -> Result<String, String> {
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Ok(format!("{:#}\n", json!({SERVERS: {name: entry}})));
    }
    edited(
        text,
        |servers| {
            let value = input(&Value::Object(entry.clone()));
            match servers.get(name) {
                Some(known) => known.set_value(value),
                None => drop(servers.append(name, value)),
            }
        },
        |servers| {
            servers.insert(name.to_owned(), Value::Object(entry.clone()));
        },
    )
}

/// The text without this server. None if there is none of that name.
///
/// # Errors
/// Why the text can not be changed.
pub fn remove(text: &str, name: &str) -> Result<Option<String>, String> {
    let all = document::parse(text)?.unwrap_or_default();
    if all[SERVERS].get(name).is_none() {
        return Ok(None);
    }
    let without = edited(
        text,
        |servers| {
            if let Some(known) = servers.get(name) {
                known.remove();
            }
        },
        |servers| {
            servers.shift_remove(name);
        },
    );
    without.map(Some)
}

/// The text with its servers changed. Checked against the same change of what it says: a text that says anything else
/// afterwards is not given out.
fn edited(
    text: &str,
    in_text: impl FnOnce(&CstObject),
    in_values: impl FnOnce(&mut Map<String, Value>),
) -> Result<String, String> {
    let mut expected = match document::parse(text)? {
        None | Some(Value::Null) => json!({}),
        Some(all @ Value::Object(_)) => all,
        Some(_) => return Err("it is no object".to_owned()),
    };
    if !expected[SERVERS].is_null() && !expected[SERVERS].is_object() {
        return Err(format!("\"{SERVERS}\" is no object"));
    }
    let (mark, plain) = match text.strip_prefix('\u{feff}') {
        Some(plain) => ("\u{feff}", plain),
        None => ("", text),
    };
    let root = CstRootNode::parse(plain, &document::OPTIONS).map_err(|error| error.to_string())?;
    let servers = root.object_value_or_set().object_value_or_set(SERVERS);
    in_text(&servers);
    if let Some(all) = expected.as_object_mut() {
        let servers = all.entry(SERVERS).or_insert_with(|| json!({}));
        if servers.is_null() {
            *servers = json!({});
        }
        if let Some(servers) = servers.as_object_mut() {
            in_values(servers);
        }
    }
    let text = format!("{mark}{root}");
    if document::parse(&text)?.as_ref() == Some(&expected) {
        Ok(text)
    } else {
        Err("it is written in a way that can not be changed by itself; change it by hand".to_owned())
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(on) => CstInputValue::Bool(*on),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(list) => CstInputValue::Array(list.iter().map(input).collect()),
        Value::Object(object) => {
            CstInputValue::Object(object.iter().map(|(key, value)| (key.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: &str = "// mine\n{\n    \"mcpServers\": {\n        // the first\n        \"a\": {\"command\": \"x\"}, // why\n        \
                        \"b\": {\n            \"url\": \"http://x\",\n        },\n    },\n    \"autoEnableCodemode\": false,\n}\n";

    fn entry(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn only_what_is_meant_changes() {
        let added = put(FILE, "c", &entry(&json!({"command": "y", "args": ["1"], "env": {"A": "b"}})));
        let replaced = put(FILE, "a", &entry(&json!({"command": "z"})));
        let removed = remove(FILE, "a").map(Option::unwrap_or_default);
        let all = [added, replaced, removed].map(|text| text.unwrap_or_else(|why| why));
        insta::assert_snapshot!(all.join("\n----\n"));
        assert_eq!(remove(FILE, "nobody"), Ok(None));
    }

    #[test]
    fn a_file_begins_and_one_that_is_no_file_of_ours_is_left_alone() {
        for nothing in ["", " \n", "\u{feff}"] {
            let begun = put(nothing, "a", &entry(&json!({"command": "x"})));
            assert_eq!(
                begun.as_deref(),
                Ok("{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\"\n    }\n  }\n}\n")
            );
        }
        assert!(
            put("{\"x\": 1}", "a", &Map::new())
                .is_ok_and(|text| text.contains("\"x\": 1") && text.contains("mcpServers"))
        );
        assert!(put("\u{feff}{}", "a", &Map::new()).is_ok_and(|text| text.starts_with("\u{feff}{")));
        for wrong in ["[]", "{\"mcpServers\": []}", "{", "{\"mcpServers\": {\"a\": 1, }"] {
            assert!(put(wrong, "a", &Map::new()).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_put_is_read_and_nothing_else_changes(
            names in proptest::collection::vec("[a-c\"\\\\ ]{1,2}", 0..4), name in "[a-d\"\\\\]{1,2}", text in any::<String>(),
            text_of_file in any::<String>(),
        ) {
            let servers: Map<String, Value> = names.iter().map(|name| (name.clone(), json!({"command": "x"}))).collect();
            let file = format!("{:#}", json!({"mcpServers": servers, "more": text_of_file}));
            let new = entry(&json!({"command": text, "args": [text, 1.5, null, true, []], "env": {}}));
            let put = put(&file, &name, &new).expect("it can be put");
            let mut expected = servers;
            expected.insert(name.clone(), Value::Object(new));
            let read = document::parse(&put).ok().flatten().unwrap_or_default();
            prop_assert_eq!(&read, &json!({"mcpServers": expected, "more": text_of_file}));
            let gone = remove(&put, &name).expect("it can be removed").expect("it is there");
            expected.shift_remove(&name);
            let read = document::parse(&gone).ok().flatten().unwrap_or_default();
            prop_assert_eq!(&read["mcpServers"], &Value::Object(expected));
        }

        #[test]
        fn no_text_harms(text in "[\\[\\]{}:,\"a-z/*\\n ]{0,40}|.*") {
            let _ = put(&text, "a", &Map::new());
            let _ = remove(&text, "a");
        }
    }
}
