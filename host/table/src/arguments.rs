//! Arguments: bent into a schema's shape where the intent is plain, then checked, with errors a model can act on.

use serde_json::{Map, Value};

use crate::Error;

/// The longest excerpt of the received arguments in an error, in characters.
const EXCERPT: usize = 2_000;

/// The check of one tool's arguments.
pub struct Checker {
    tool: String,
    schema: Value,
    validator: Result<jsonschema::Validator, String>,
}

impl Checker {
    /// Compiles a schema. A schema that can not be compiled makes every check fail with the reason.
    pub fn new(tool: &str, schema: &Value) -> Self {
        Self {
            tool: tool.to_owned(),
            schema: schema.clone(),
            validator: jsonschema::options().build(schema).map_err(|error| error.to_string()),
        }
    }

    /// Bends `arguments` into the schema's shape and checks them.
    ///
    /// # Errors
    /// `invalid-arguments` with a line for each fault and what was received.
    pub fn check(&self, arguments: Value) -> Result<Value, Error> {
        let validator = self.validator.as_ref().map_err(|reason| {
            Error::Failed(format!("the schema of the tool `{}` is not usable: {reason}", self.tool))
        })?;
        let received = if arguments.is_null() { Value::Object(Map::new()) } else { arguments };
        if validator.is_valid(&received) {
            return Ok(received);
        }
        let bent = bend(received.clone(), &self.schema);
        let faults: Vec<String> = validator.iter_errors(&bent).take(10).map(|fault| describe(&fault)).collect();
        if faults.is_empty() {
            return Ok(bent);
        }
        let text = serde_json::to_string_pretty(&received).unwrap_or_default();
        let excerpt: String = text.chars().take(EXCERPT).collect();
        let cut = if excerpt.len() < text.len() { "…" } else { "" };
        Err(Error::InvalidArguments(format!(
            "The arguments do not fit the tool \"{}\":\n{}\n\nReceived:\n{excerpt}{cut}",
            self.tool,
            faults.join("\n")
        )))
    }
}

fn describe(fault: &jsonschema::ValidationError<'_>) -> String {
    use jsonschema::error::ValidationErrorKind;
    let place = fault.instance_path().to_string();
    let place = place.trim_start_matches('/').replace('/', ".");
    match fault.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let path = if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
            format!("  - {path}: missing")
        }
        _ if place.is_empty() => format!("  - {fault}"),
        _ => format!("  - {place}: {fault}"),
    }
}

/// Bends a value where models are known to be sloppy and the schema leaves no doubt: `"3"` where a number is
/// wanted, `"true"` where a boolean is, one value where a list is, `null` for a property that is optional.
/// Anything else is left for the check to report.
fn bend(value: Value, schema: &Value) -> Value {
    let wanted = schema.get("type").and_then(Value::as_str);
    match (wanted, value) {
        (Some("object"), Value::Object(fields)) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let required: Vec<&str> = schema
                .get("required")
                .and_then(Value::as_array)
                .map(|names| names.iter().filter_map(Value::as_str).collect())
                .unwrap_or_default();
            let bent = fields
                .into_iter()
                .filter(|(name, value)| {
                    let known = properties.is_some_and(|all| all.contains_key(name));
                    !(value.is_null() && known && !required.contains(&name.as_str()))
                })
                .map(|(name, value)| match properties.and_then(|all| all.get(&name)) {
                    Some(inner) => (name, bend(value, inner)),
                    None => (name, value),
                })
                .collect();
            Value::Object(bent)
        }
        (Some("array"), Value::Array(items)) => match schema.get("items") {
            Some(inner) => Value::Array(items.into_iter().map(|item| bend(item, inner)).collect()),
            None => Value::Array(items),
        },
        (Some("array"), value) if !value.is_null() => bend(Value::Array(vec![value]), schema),
        (Some("number" | "integer"), Value::String(text)) => {
            match serde_json::from_str::<serde_json::Number>(text.trim()) {
                Ok(number) => Value::Number(number),
                Err(_) => Value::String(text),
            }
        }
        (Some("boolean"), Value::String(text)) => match text.as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::String(text),
        },
        (Some("string"), Value::Number(number)) => Value::String(number.to_string()),
        (Some("string"), Value::Bool(flag)) => Value::String(flag.to_string()),
        (_, value) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn checker() -> Checker {
        Checker::new(
            "read",
            &json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "offset": {"type": "integer", "minimum": 1},
                    "deep": {"type": "boolean"},
                    "globs": {"type": "array", "items": {"type": "string"}}
                },
                "required": ["path"],
                "additionalProperties": false
            }),
        )
    }

    #[test]
    fn sloppy_but_clear_arguments_are_bent() {
        let given = json!({"path": 7, "offset": "12", "deep": "true", "globs": "*.rs"});
        let expected = json!({"path": "7", "offset": 12, "deep": true, "globs": ["*.rs"]});
        assert_eq!(checker().check(given).unwrap(), expected);
        assert_eq!(checker().check(json!({"path": "a", "offset": null})).unwrap(), json!({"path": "a"}));
    }

    #[test]
    fn faults_name_the_place_and_show_what_came() {
        let error = checker().check(json!({"offset": "x"})).unwrap_err();
        assert_eq!(error.code(), "invalid-arguments");
        let text = error.to_string();
        assert!(text.starts_with("The arguments do not fit the tool \"read\":\n"), "{text}");
        assert!(text.contains("  - path: missing"), "{text}");
        assert!(text.contains("  - offset: "), "{text}");
        assert!(text.ends_with("Received:\n{\n  \"offset\": \"x\"\n}"), "{text}");
    }

    #[test]
    fn missing_arguments_count_as_an_empty_object() {
        assert!(checker().check(Value::Null).unwrap_err().to_string().contains("path: missing"));
        let free = Checker::new("x", &json!({"type": "object"}));
        assert_eq!(free.check(Value::Null).unwrap(), json!({}));
    }

    #[test]
    fn a_broken_schema_is_an_error_not_a_crash() {
        let broken = Checker::new("x", &json!({"type": 5}));
        assert_eq!(broken.check(json!({})).unwrap_err().code(), "failed");
    }
}
