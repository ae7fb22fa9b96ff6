//! Other spellings of the arguments.

use atoll_plugin::Error;
use serde_json::{Map, Value};

/// Puts arguments into the shape of the schema. Models also send `edits` as JSON text or as a single edit, and
/// `oldText` and `newText` beside `path`. What can not be understood is left for the validation to refuse; only
/// JSON text that is broken is refused here, since the validation could not say what is wrong with it.
pub(crate) fn prepare(arguments: Value) -> Result<Value, Error> {
    let Value::Object(mut fields) = arguments else { return Ok(arguments) };
    let given = fields.remove("edits").filter(|edits| !edits.is_null());
    let were_given = given.is_some();
    let mut edits = match given {
        None => Vec::new(),
        Some(Value::String(text)) => as_list(serde_json::from_str(&text).map_err(|error| {
            Error::invalid_arguments(format!("edits is a string that is not JSON ({error}); give a list of edits."))
        })?),
        Some(edits) => as_list(edits),
    };
    if fields.get("oldText").is_some_and(Value::is_string) && fields.get("newText").is_some_and(Value::is_string) {
        let legacy: Map<String, Value> =
            ["oldText", "newText"].into_iter().filter_map(|name| fields.remove_entry(name)).collect();
        edits.push(Value::Object(legacy));
    }
    if were_given || !edits.is_empty() {
        fields.insert("edits".to_owned(), Value::Array(edits));
    }
    Ok(Value::Object(fields))
}

fn as_list(edits: Value) -> Vec<Value> {
    match edits {
        Value::Array(edits) => edits,
        other => vec![other],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_spellings_become_a_list() {
        let expected = json!({"path": "p", "edits": [{"oldText": "a", "newText": "b"}]});
        for arguments in [
            expected.clone(),
            json!({"path": "p", "edits": {"oldText": "a", "newText": "b"}}),
            json!({"path": "p", "edits": r#"[{"oldText": "a", "newText": "b"}]"#}),
            json!({"path": "p", "edits": r#"{"oldText": "a", "newText": "b"}"#}),
            json!({"path": "p", "oldText": "a", "newText": "b"}),
            json!({"path": "p", "edits": [], "oldText": "a", "newText": "b"}),
            json!({"path": "p", "edits": null, "oldText": "a", "newText": "b"}),
        ] {
            assert_eq!(prepare(arguments).ok(), Some(expected.clone()));
        }
    }

    #[test]
    fn legacy_fields_are_added_to_edits() {
        let prepared = prepare(json!({"edits": [{"oldText": "a", "newText": "b"}], "oldText": "c", "newText": "d"}));
        let edits = json!([{"oldText": "a", "newText": "b"}, {"oldText": "c", "newText": "d"}]);
        assert_eq!(prepared.ok(), Some(json!({"edits": edits})));
    }

    #[test]
    fn what_is_not_understood_is_left_to_the_validation() {
        for arguments in [json!(1), json!({"path": "p"}), json!({"path": "p", "oldText": "a"}), json!({"edits": []})] {
            assert_eq!(prepare(arguments.clone()).ok(), Some(arguments));
        }
        assert_eq!(prepare(json!({"edits": "[{"})).err().map(|error| error.code()), Some("invalid-arguments"));
    }
}
