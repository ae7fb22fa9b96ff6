//! A tool, as its server describes it.
//!
//! Of thousands of tools most are never called, so a schema stays the text that the server wrote: whoever looks into one reads it
//! then.

use serde::{Deserialize, Serialize, Serializer, ser::Error as _};
use serde_json::{Map, Value, value::RawValue};

use crate::text::shown;

/// An object schema, as text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schema(Box<str>);

impl Schema {
    /// One with these fields.
    pub fn of(fields: &Map<String, Value>) -> Self {
        Self(serde_json::to_string(fields).unwrap_or_else(|_| "{}".to_owned()).into())
    }

    /// Itself, as the server wrote it.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Its fields; none where there are so many, one in the other, that nobody reads it.
    pub fn read(&self) -> Map<String, Value> {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

/// That of a tool without arguments.
impl Default for Schema {
    fn default() -> Self {
        Self(r#"{"type":"object"}"#.into())
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// A tool, as its server describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerTool {
    /// Its name on the server.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments, an object schema.
    pub input_schema: Schema,
    /// JSON Schema of its structured content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Schema>,
    /// What it claims of itself, as the protocol has it.
    pub annotations: Map<String, Value>,
}

/// What is looked at of it, whatever it is.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Described<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    title: Option<&'a RawValue>,
    #[serde(borrow)]
    description: Option<&'a RawValue>,
    #[serde(borrow)]
    input_schema: Option<&'a RawValue>,
    #[serde(borrow)]
    output_schema: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
}

/// The one field of a schema that has to be known.
#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<&'a RawValue>,
}

fn string(raw: Option<&RawValue>) -> Option<String> {
    raw.filter(|raw| raw.get().starts_with('"')).and_then(|raw| serde_json::from_str(raw.get()).ok())
}

fn text(raw: Option<&RawValue>) -> Option<String> {
    let text = string(raw)?;
    let trimmed = text.trim();
    match trimmed.len() {
        0 => None,
        all if all == text.len() => Some(text),
        _ => Some(trimmed.to_owned()),
    }
}

fn object(raw: Option<&RawValue>) -> Option<Map<String, Value>> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
}

/// The schema of the arguments. Some leave out what goes without saying, and whoever checks arguments needs it.
fn arguments(raw: Option<&RawValue>) -> Result<Schema, &'static str> {
    let Some(raw) = raw.map(RawValue::get) else { return Ok(Schema::default()) };
    if !raw.starts_with('{') {
        return Err("its inputSchema is no object");
    }
    match serde_json::from_str(raw) {
        Ok(Typed { kind: Some(kind) }) if kind.get() == "\"object\"" => return Ok(Schema(raw.into())),
        _ => {}
    }
    let mut fields: Map<String, Value> = serde_json::from_str(raw).map_err(|_| "its inputSchema can not be read")?;
    match fields.get("type") {
        None => drop(fields.insert("type".to_owned(), Value::from("object"))),
        Some(kind) if kind == "object" => {}
        Some(_) => return Err("its arguments are no object"),
    }
    Ok(Schema::of(&fields))
}

impl ServerTool {
    /// Reads one.
    ///
    /// # Errors
    /// Why it is none.
    pub fn read(tool: &RawValue) -> Result<Self, String> {
        let tool: Described<'_> = match tool.get().starts_with('{') {
            true => {
                serde_json::from_str(tool.get()).map_err(|error| format!("a tool that can not be read: {error}"))?
            }
            false => Described::default(),
        };
        let Some(name) = string(tool.name).filter(|name| !name.is_empty()) else {
            return Err("a tool without a name".to_owned());
        };
        let input_schema = arguments(tool.input_schema).map_err(|why| format!("the tool {}: {why}", shown(&name)))?;
        let annotations = object(tool.annotations).unwrap_or_default();
        let other_title = || annotations.get("title").and_then(Value::as_str).map(str::trim).unwrap_or_default();
        Ok(Self {
            title: text(tool.title)
                .or_else(|| Some(other_title()).filter(|title| !title.is_empty()).map(str::to_owned)),
            description: text(tool.description).unwrap_or_default(),
            input_schema,
            output_schema: tool
                .output_schema
                .map(RawValue::get)
                .filter(|raw| raw.starts_with('{'))
                .map(|raw| Schema(raw.into())),
            annotations,
            name,
        })
    }

    /// Reads one that stands for itself.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn of(tool: &Value) -> Result<Self, String> {
        let raw = serde_json::value::to_raw_value(tool).map_err(|error| error.to_string())?;
        Self::read(&raw)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<ServerTool, String> {
        ServerTool::read(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn schemas_are_kept_as_they_were_written() {
        let tool = read(
            r#"{"name": "a", "inputSchema": {"properties": {"n": {"const": 1e400, "x": 12345678901234567890123}},  "type":"object"},
                "outputSchema": {"type" : "object"}}"#,
        )
        .unwrap();
        assert_eq!(
            tool.input_schema.text(),
            r#"{"properties": {"n": {"const": 1e400, "x": 12345678901234567890123}},  "type":"object"}"#
        );
        assert_eq!(tool.output_schema.as_ref().map(Schema::text), Some(r#"{"type" : "object"}"#));
        let again = serde_json::to_string(&tool).unwrap();
        assert_eq!(read(&again), Ok(tool));
    }

    #[test]
    fn what_goes_without_saying_is_put_in() {
        for (schema, fields) in [
            ("{}", json!({"type": "object"})),
            ("null", json!({"type": "object"})),
            (r#"{"properties": {"type": {}}}"#, json!({"properties": {"type": {}}, "type": "object"})),
            (r#"{"type": "\u006fbject"}"#, json!({"type": "object"})),
            (r#"{"type": "array", "type": "object"}"#, json!({"type": "object"})),
        ] {
            let tool = read(&format!(r#"{{"name": "a", "inputSchema": {schema}}}"#)).unwrap();
            assert_eq!(Value::Object(tool.input_schema.read()), fields, "{schema}");
        }
        for (schema, why) in [
            ("7", "the tool \"a\": its inputSchema is no object"),
            (r#"{"type": ["object"]}"#, "the tool \"a\": its arguments are no object"),
            (r#"{"type": null}"#, "the tool \"a\": its arguments are no object"),
        ] {
            assert_eq!(read(&format!(r#"{{"name": "a", "inputSchema": {schema}}}"#)), Err(why.to_owned()), "{schema}");
        }
    }

    #[test]
    fn a_schema_that_is_too_deep_harms_nobody() {
        let deep =
            format!("{}{}{}", r#"{"type":"object","not":"#, r#"{"not":"#.repeat(10_000) + "{}", "}".repeat(10_001));
        let tool =
            read(&format!(r#"{{"name": "a", "inputSchema": {deep}, "annotations": {deep}, "outputSchema": {deep}}}"#))
                .unwrap();
        assert_eq!((tool.input_schema.read().len(), tool.annotations.len()), (0, 0));
        assert!(serde_json::to_string(&tool).is_ok());
        let without = deep.replacen(r#""type":"object","#, "", 1);
        assert_eq!(
            read(&format!(r#"{{"name": "a", "inputSchema": {without}}}"#)),
            Err("the tool \"a\": its inputSchema can not be read".to_owned())
        );
    }

    proptest! {
        #[test]
        fn whatever_a_tool_is_it_is_read_or_refused(
            name in "(\"[a-z]{0,2}\"|7|null)", title in "(\" [a-z ]{0,3}\"|[0-9]|null|\\{\\})", schema in "(\\{\\}|\\[\\]|null|7|\\{\"type\":7\\})",
        ) {
            let text = format!(r#"{{"name": {name}, "title": {title}, "description": {title}, "inputSchema": {schema}, "annotations": {schema}}}"#);
            if let Ok(tool) = read(&text) {
                prop_assert!(!tool.name.is_empty());
                prop_assert_eq!(&tool.input_schema.read()["type"], "object");
                prop_assert!(tool.title.is_none_or(|title| title.trim() == title && !title.is_empty()));
            }
        }
    }
}
