//! A tool as a function: its arguments' type says their schema, its doc comment describes it to the model.

use std::future::Future;

pub use schemars;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    tool::{Call, ToolInfo},
    tools::Invocation,
    types::{Error, ToolOutput},
};

/// The arguments of a tool that takes none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize, JsonSchema)]
pub struct NoArguments {}

/// What a tool's function may give.
pub trait Answer {
    /// The JSON Schema of the structured result, if there is one.
    fn schema() -> Option<Value> {
        None
    }

    /// The output as the contract has it.
    ///
    /// # Errors
    /// It can not be written as JSON.
    fn into_output(self) -> Result<ToolOutput, Error>;
}

impl Answer for ToolOutput {
    fn into_output(self) -> Result<ToolOutput, Error> {
        Ok(self)
    }
}

impl Answer for String {
    fn into_output(self) -> Result<ToolOutput, Error> {
        Ok(ToolOutput::text(self))
    }
}

impl Answer for &str {
    fn into_output(self) -> Result<ToolOutput, Error> {
        Ok(ToolOutput::text(self))
    }
}

/// A result as data: the model reads it as JSON, scripts have it as it is, and its type is the tool's output schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize + JsonSchema> Answer for Json<T> {
    fn schema() -> Option<Value> {
        Some(schema_of::<T>())
    }

    fn into_output(self) -> Result<ToolOutput, Error> {
        let value = serde_json::to_value(self.0)?;
        Ok(ToolOutput::text(serde_json::to_string_pretty(&value)?).with_structured(&value))
    }
}

/// The JSON Schema of a type: whole in itself, and without what only says where it came from.
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(fields) = schema.as_object_mut() {
        // The name of the type, which says nothing to a model.
        fields.shift_remove("title");
    }
    schema
}

impl ToolInfo {
    /// A tool whose arguments are of a type, a struct. Doc comments of its fields are read by the model, a field that is
    /// an `Option` may be left out.
    pub fn of<Arguments: JsonSchema>(name: &str, description: &str) -> Self {
        let mut schema = schema_of::<Arguments>();
        if let Some(fields) = schema.as_object_mut() {
            // What the type says of itself is for whoever reads the source: the tool has its own description.
            fields.shift_remove("description");
            fields.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
        }
        Self::new(name, description).parameters(&schema)
    }
}

/// A tool that is this function. For [`tools!`](crate::tools!).
#[doc(hidden)]
pub fn info<Arguments, Given, Running>(
    _: impl Fn(Arguments, Call) -> Running,
    name: &str,
    description: &[&str],
) -> ToolInfo
where
    Arguments: DeserializeOwned + JsonSchema,
    Given: Answer,
    Running: Future<Output = Result<Given, Error>>,
{
    let lines: Vec<&str> = description.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    let info = ToolInfo::of::<Arguments>(name, lines.join("\n").trim());
    match Given::schema() {
        Some(schema) => info.output_schema(&schema),
        None => info,
    }
}

/// Says more of a tool. For [`tools!`](crate::tools!), so that a closure's argument has a type.
#[doc(hidden)]
pub fn described(info: ToolInfo, more: impl FnOnce(ToolInfo) -> ToolInfo) -> ToolInfo {
    more(info)
}

/// Runs a call of this function. For [`tools!`](crate::tools!).
#[doc(hidden)]
pub async fn run<Arguments, Given, Running>(
    function: impl Fn(Arguments, Call) -> Running,
    call: Invocation,
) -> Result<ToolOutput, Error>
where
    Arguments: DeserializeOwned + JsonSchema,
    Given: Answer,
    Running: Future<Output = Result<Given, Error>>,
{
    let (arguments, call) = crate::tool::read(call)?;
    function(arguments, call).await?.into_output()
}

/// Exports functions as the tools of this component. Once in a component. Needs the feature `schema`.
///
/// A function takes its arguments, a struct with `Deserialize` and `JsonSchema`, and the [`Call`]; it gives a text,
/// [`Json`] data or a [`ToolOutput`]. Its name is the tool's, the doc comment in the list is what the model reads about
/// it. After a colon stands what else is to be said of it, as functions of [`ToolInfo`].
///
/// ```
/// use atoll_plugin::{Call, Error, Json, files, schemars, tools};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Shout {
///     /// What to repeat.
///     text: String,
/// }
///
/// async fn shout(arguments: Shout, _call: Call) -> Result<String, Error> {
///     Ok(arguments.text.to_uppercase())
/// }
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Count {
///     /// The file.
///     path: String,
/// }
///
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Words {
///     words: usize,
/// }
///
/// async fn count_words(arguments: Count, _call: Call) -> Result<Json<Words>, Error> {
///     let bytes = files::read(arguments.path, None).await?;
///     Ok(Json(Words { words: String::from_utf8_lossy(&bytes).split_whitespace().count() }))
/// }
///
/// tools! {
///     /// Repeats a text in capitals.
///     shout;
///
///     /// Counts the words of a text file.
///     count_words: |tool| tool.label("Count words").prompt_snippet("Counts words");
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! tools {
    ($($(#[doc = $line:literal])+ $function:ident $(: $more:expr)?;)+) => {
        #[doc(hidden)]
        struct AtollPluginTools;

        impl $crate::tools::Guest for AtollPluginTools {
            fn list_tools() -> ::std::vec::Vec<$crate::types::Tool> {
                ::std::vec![$({
                    let info = $crate::schema::info($function, ::std::stringify!($function), &[$($line),+]);
                    $(let info = $crate::schema::described(info, $more);)?
                    info.into_tool()
                }),+]
            }

            fn prepare(
                tool: ::std::string::String,
                _: ::std::string::String,
            ) -> ::std::result::Result<::std::string::String, $crate::Error> {
                ::std::result::Result::Err($crate::Error::NotFound(tool))
            }

            async fn call(
                call: $crate::tools::Invocation,
            ) -> ::std::result::Result<$crate::ToolOutput, $crate::Error> {
                match call.tool.as_str() {
                    $(::std::stringify!($function) => $crate::schema::run($function, call).await,)+
                    _ => ::std::result::Result::Err($crate::Error::NotFound(call.tool)),
                }
            }
        }

        $crate::tools::export!(AtollPluginTools);
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::Guest as _;

    #[derive(serde::Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    struct Search {
        /// What to look for.
        pattern: String,
        /// How much at most.
        max_results: Option<u32>,
        kind: Option<Kind>,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Text,
        Picture,
    }

    #[derive(Serialize, JsonSchema)]
    struct Found {
        pattern: String,
        kind: Option<&'static str>,
    }

    async fn search(arguments: Search, _: Call) -> Result<Json<Found>, Error> {
        if arguments.max_results == Some(0) {
            return Err(Error::not_found(arguments.pattern));
        }
        let kind = arguments.kind.map(|kind| match kind {
            Kind::Text => "text",
            Kind::Picture => "picture",
        });
        Ok(Json(Found { pattern: arguments.pattern, kind }))
    }

    async fn where_am_i(_: NoArguments, call: Call) -> Result<String, Error> {
        Ok(call.cwd)
    }

    tools! {
        /// Looks for something.
        ///
        /// As it is written.
        search: |tool| tool.label("Search").inactive();

        /// Says where it is.
        where_am_i;
    }

    fn called(tool: &str, arguments: &Value) -> Result<ToolOutput, Error> {
        let (tool, arguments) = (tool.to_owned(), arguments.to_string());
        let call = Invocation { id: "1".into(), parent_id: None, tool, arguments, cwd: "/here".into() };
        // Nothing here waits, and there is no host to wait with.
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::pin!(AtollPluginTools::call(call)).poll(&mut context) {
            std::task::Poll::Ready(given) => given,
            std::task::Poll::Pending => Err(Error::timeout("It waits.")),
        }
    }

    #[test]
    fn a_function_is_a_tool_with_the_schema_of_its_arguments() {
        let tools = AtollPluginTools::list_tools();
        let parameters: Value = serde_json::from_str(&tools[0].parameters).unwrap_or_default();
        let expected = json!({
            "type": "object",
            "properties": {
                "pattern": { "description": "What to look for.", "type": "string" },
                "maxResults": {
                    "description": "How much at most.", "type": ["integer", "null"], "format": "uint32", "minimum": 0,
                },
                "kind": { "type": ["string", "null"], "enum": ["text", "picture", null] },
            },
            "required": ["pattern"],
        });
        assert_eq!(parameters, expected);
        assert_eq!(tools[0].description, "Looks for something.\n\nAs it is written.");
        assert_eq!(
            (tools[0].name.as_str(), tools[0].label.as_str(), tools[0].default_active),
            ("search", "Search", false)
        );
        let output: Value =
            tools[0].output_schema.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        assert_eq!(output["required"], json!(["pattern"]));
        assert_eq!(
            (tools[1].parameters.as_str(), &tools[1].output_schema),
            (r#"{"type":"object","properties":{}}"#, &None)
        );
    }

    #[test]
    fn a_call_reaches_its_function_and_its_answer_is_text_and_data() {
        let output = called("search", &json!({"pattern": "x", "kind": "picture"})).ok();
        let structured = output.and_then(|output| output.structured).unwrap_or_default();
        assert_eq!(structured, r#"{"pattern":"x","kind":"picture"}"#);
        let output = called("where_am_i", &json!({})).ok();
        assert!(
            matches!(output.as_ref().map(|output| output.content.as_slice()), Some([crate::Content::Text(text)]) if text == "/here")
        );
        let code = |tool, arguments: &Value| called(tool, arguments).err().map(|error| error.code());
        assert_eq!(code("search", &json!({"pattern": "x", "maxResults": 0})), Some("not-found"));
        assert_eq!(code("search", &json!({"pattern": 1})), Some("invalid-arguments"));
        assert_eq!(code("other", &json!({})), Some("not-found"));
    }
}
