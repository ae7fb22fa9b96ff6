//! How what is expected is compared with what there is: texts in which `*` stands for anything, and data of which only
//! what is named is looked at.

use serde_json::Value;

/// Whether a text is what is expected: the same, but for a line break at the end, and with any text in place of each `*`.
/// `\*` is a star.
pub(super) fn fits(expected: &str, actual: &str) -> bool {
    let expected = expected.strip_suffix('\n').unwrap_or(expected);
    let actual = actual.strip_suffix('\n').unwrap_or(actual);
    let pieces = pieces(expected);
    let Some((first, rest)) = pieces.split_first() else { return actual.is_empty() };
    let Some((last, middle)) = rest.split_last() else { return first == actual };
    let Some(mut left) = actual.strip_prefix(first.as_str()) else { return false };
    for piece in middle {
        let Some(at) = left.find(piece.as_str()) else { return false };
        left = left.get(at + piece.len()..).unwrap_or_default();
    }
    left.ends_with(last.as_str())
}

/// What is between the stars.
fn pieces(pattern: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        let piece = match letter {
            '*' => {
                pieces.push(String::new());
                continue;
            }
            '\\' if letters.peek() == Some(&'*') => letters.next(),
            letter => Some(letter),
        };
        if let (Some(last), Some(letter)) = (pieces.last_mut(), piece) {
            last.push(letter);
        }
    }
    pieces
}

/// Whether data is what is expected: texts as [`fits`] has it, lists item by item, and of an object what is expected of
/// its fields. `"*"` is anything. Otherwise where it is not.
///
/// # Errors
/// The place, and what is there.
pub(super) fn data_fits(expected: &Value, actual: &Value) -> Result<(), String> {
    compare(expected, actual, &mut String::new())
}

fn compare(expected: &Value, actual: &Value, place: &mut String) -> Result<(), String> {
    let within = |place: &str| if place.is_empty() { String::new() } else { format!("{place}: ") };
    let differs = |place: &str| Err(format!("{}expected {expected}, there is {actual}", within(place)));
    let length = place.len();
    match (expected, actual) {
        (Value::String(any), _) if any == "*" => {}
        (Value::String(expected), Value::String(actual)) if fits(expected, actual) => {}
        (Value::Array(expected), Value::Array(actual)) => {
            if expected.len() != actual.len() {
                let (wanted, found) = (expected.len(), actual.len());
                return Err(format!("{}expected {wanted} items, there are {found}", within(place)));
            }
            for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                place.push_str(&format!("[{index}]"));
                compare(expected, actual, place)?;
                place.truncate(length);
            }
        }
        (Value::Object(expected), Value::Object(fields)) => {
            for (name, expected) in expected {
                if !place.is_empty() {
                    place.push('.');
                }
                place.push_str(name);
                match fields.get(name) {
                    Some(actual) => compare(expected, actual, place)?,
                    None => return Err(format!("{}expected {expected}, there is no such field", within(place))),
                }
                place.truncate(length);
            }
        }
        (Value::Number(one), Value::Number(other)) if one == other || one.as_f64() == other.as_f64() => {}
        (expected, actual) if expected == actual => {}
        _ => return differs(place),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (expected, actual, is_it) in [
            ("", "", true),
            ("*", "", true),
            ("*", "a\nb", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "acd", false),
            ("*b*", "abc", true),
            ("a*b*a", "aba", true),
            ("a*a", "a", false),
            ("ab", "a", false),
            ("a\n", "a", true),
            ("a", "a\n", true),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("a\\b", "a\\b", true),
        ] {
            assert_eq!(fits(expected, actual), is_it, "{expected:?} {actual:?}");
        }
    }

    #[test]
    fn of_objects_only_what_is_named_counts_and_the_place_is_said() {
        let actual = json!({"a": {"b": [1, {"c": "text here"}]}, "more": null});
        assert_eq!(data_fits(&json!({"a": {"b": [1.0, {"c": "text*"}]}}), &actual), Ok(()));
        assert_eq!(data_fits(&json!({"a": "*"}), &actual), Ok(()));
        for (expected, said) in [
            (json!({"a": {"b": [1, {"c": "no"}]}}), "a.b[1].c: expected \"no\", there is \"text here\""),
            (json!({"a": {"b": [1]}}), "a.b: expected 1 items, there are 2"),
            (json!({"z": 1}), "z: expected 1, there is no such field"),
            (json!([]), "expected [], there is {\"a\":{\"b\":[1,{\"c\":\"text here\"}]},\"more\":null}"),
        ] {
            assert_eq!(data_fits(&expected, &actual), Err(said.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn a_text_fits_itself_once_its_stars_are_marked(text in "[a-c*\n]{0,12}") {
            prop_assert!(fits(&text.replace('*', "\\*"), &text));
            prop_assert!(fits("*", &text));
        }

        #[test]
        fn nothing_panics(expected in any::<String>(), actual in any::<String>()) {
            fits(&expected, &actual);
        }
    }
}
