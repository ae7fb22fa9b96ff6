//! A tool as a type with a function.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::tools::Invocation;
use crate::types::{self, Annotations, Content, Error, ExecutionMode, Exposure, Namespace, ToolOutput};

/// One tool of a component. Pass the type to [`export_tools!`](crate::export_tools).
#[allow(async_fn_in_trait, reason = "a guest has one thread, so nothing needs the future to be `Send`")]
pub trait Tool {
    /// The arguments after the host has validated them against the schema.
    type Arguments: DeserializeOwned;

    /// The tool as the table holds it. Must not depend on anything outside.
    fn info() -> ToolInfo;

    /// Rewrites raw arguments into the shape of the schema. Called only if [`ToolInfo::prepares`] was set.
    fn prepare(arguments: Value) -> Result<Value, Error> {
        Ok(arguments)
    }

    /// Runs one call. An error becomes an error result with its text.
    async fn run(arguments: Self::Arguments, call: Call) -> Result<ToolOutput, Error>;
}

/// The call that is running.
#[derive(Debug, Clone)]
pub struct Call {
    /// Unique within the session.
    pub id: String,
    /// The call that made this one.
    pub parent_id: Option<String>,
    /// The directory that relative paths start from, absolute.
    pub cwd: String,
}

impl Call {
    /// Replaces what is shown for this call until it ends.
    pub fn update(&self, content: &[Content], details: Option<&Value>) {
        crate::progress::update(&self.id, content, details.map(Value::to_string).as_deref());
    }

    /// What earlier calls of this tool have kept under a key, on this branch of the session.
    pub fn kept(&self, key: &str) -> Option<Value> {
        crate::progress::kept(&self.id, key).and_then(|text| serde_json::from_str(&text).ok())
    }

    /// Keeps a value for later calls of this tool, if this one succeeds; none forgets the key.
    ///
    /// # Errors
    /// `limit` `output-bytes` if it is too long, or too much is kept.
    pub fn keep(&self, key: &str, value: Option<&Value>) -> Result<(), Error> {
        crate::progress::keep(&self.id, key, value.map(Value::to_string).as_deref())
    }

    /// Has a model get at most so many characters of this call's text, the beginning and the end, with the whole in a file.
    /// With `save_images` pictures are saved as files, too.
    pub fn shape(&self, max_chars: u32, save_images: bool) {
        crate::progress::shape(&self.id, max_chars, save_images);
    }

    /// What is left to this call.
    pub fn left(&self) -> crate::progress::Budget {
        crate::progress::left(&self.id)
    }

    /// What it could call now. Needs the capability `table`.
    ///
    /// # Errors
    /// `denied` without the grant.
    pub fn callable(&self) -> Result<crate::table::Callables, Error> {
        crate::table::callable_now(Some(&self.id))
    }

    /// Calls another tool, as a part of this call. Needs the capability `table`. A tool that ran and failed gives an
    /// output that says so.
    ///
    /// # Errors
    /// What went wrong before it ran, and errors of the tool itself: `not-found`, `ambiguous`, `invalid-arguments`,
    /// `limit` `nesting`, and others.
    pub async fn call_tool(&self, name: &str, arguments: &Value) -> Result<ToolOutput, Error> {
        crate::table::call(Some(self.id.clone()), name.to_owned(), arguments.to_string()).await
    }
}

/// Describes a tool. Starts out as one that the model and scripts may call, that is active, and whose calls may
/// run beside others.
#[derive(Debug, Clone)]
pub struct ToolInfo {
    tool: types::Tool,
}

impl ToolInfo {
    /// A tool without parameters. `name`: 1 to 64 of `A-Z a-z 0-9 _ -`. `description` is for the model.
    pub fn new(name: &str, description: &str) -> Self {
        Self {
            tool: types::Tool {
                name: name.to_owned(),
                label: name.to_owned(),
                description: description.to_owned(),
                parameters: json!({ "type": "object", "properties": {} }).to_string(),
                output_schema: None,
                prompt_snippet: None,
                prompt_guidelines: Vec::new(),
                exposure: Exposure::Direct,
                default_active: true,
                execution_mode: ExecutionMode::Parallel,
                namespace: None,
                annotations: Annotations { read_only: None, destructive: None, idempotent: None, open_world: None },
                prepares: false,
            },
        }
    }

    /// Sets the JSON Schema of the arguments, an object schema.
    #[must_use]
    pub fn parameters(mut self, schema: &Value) -> Self {
        self.tool.parameters = schema.to_string();
        self
    }

    /// Sets the JSON Schema of the structured result.
    #[must_use]
    pub fn output_schema(mut self, schema: &Value) -> Self {
        self.tool.output_schema = Some(schema.to_string());
        self
    }

    /// Sets the short name for people; without it, the tool's name.
    #[must_use]
    pub fn label(mut self, label: &str) -> Self {
        label.clone_into(&mut self.tool.label);
        self
    }

    /// Sets the line for the list of tools in the system prompt.
    #[must_use]
    pub fn prompt_snippet(mut self, line: &str) -> Self {
        self.tool.prompt_snippet = Some(line.to_owned());
        self
    }

    /// Adds a rule to the system prompt while the tool is active.
    #[must_use]
    pub fn prompt_guideline(mut self, rule: &str) -> Self {
        self.tool.prompt_guidelines.push(rule.to_owned());
        self
    }

    /// Sets who may reach it.
    #[must_use]
    pub fn exposure(mut self, exposure: Exposure) -> Self {
        self.tool.exposure = exposure;
        self
    }

    /// Leaves the tool inactive until something activates it.
    #[must_use]
    pub fn inactive(mut self) -> Self {
        self.tool.default_active = false;
        self
    }

    /// Makes its calls run alone.
    #[must_use]
    pub fn sequential(mut self) -> Self {
        self.tool.execution_mode = ExecutionMode::Sequential;
        self
    }

    /// Puts it into a group.
    #[must_use]
    pub fn namespace(mut self, namespace: Namespace) -> Self {
        self.tool.namespace = Some(namespace);
        self
    }

    /// Sets its claims on what it does.
    #[must_use]
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.tool.annotations = annotations;
        self
    }

    /// Asks for [`Tool::prepare`] to be called.
    #[must_use]
    pub fn prepares(mut self) -> Self {
        self.tool.prepares = true;
        self
    }

    /// The record of the contract.
    pub fn into_tool(self) -> types::Tool {
        self.tool
    }
}

/// Runs a call of `T` from what came over the boundary. For [`export_tools!`](crate::export_tools).
#[doc(hidden)]
pub async fn run<T: Tool>(call: Invocation) -> Result<ToolOutput, Error> {
    let (arguments, call) = read(call)?;
    T::run(arguments, call).await
}

/// The arguments of a call as it came over the boundary, and the call itself.
pub(crate) fn read<Arguments: DeserializeOwned>(call: Invocation) -> Result<(Arguments, Call), Error> {
    let arguments = serde_json::from_str(&call.arguments)
        .map_err(|error| Error::invalid_arguments(format!("The arguments of {} do not fit: {error}", call.tool)))?;
    Ok((arguments, Call { id: call.id, parent_id: call.parent_id, cwd: call.cwd }))
}

/// Prepares arguments of `T` as they came over the boundary. For [`export_tools!`](crate::export_tools).
#[doc(hidden)]
pub fn prepare<T: Tool>(arguments: &str) -> Result<String, Error> {
    let arguments = serde_json::from_str(arguments)
        .map_err(|error| Error::invalid_arguments(format!("The arguments are not JSON: {error}")))?;
    Ok(T::prepare(arguments)?.to_string())
}

/// Exports one or more types that implement [`Tool`] as the tools of this component. Once in a component.
#[macro_export]
macro_rules! export_tools {
    ($($tool:ty),+ $(,)?) => {
        #[doc(hidden)]
        struct AtollPluginTools;

        impl $crate::tools::Guest for AtollPluginTools {
            fn list_tools() -> ::std::vec::Vec<$crate::types::Tool> {
                ::std::vec![$(<$tool as $crate::Tool>::info().into_tool()),+]
            }

            fn prepare(
                tool: ::std::string::String,
                arguments: ::std::string::String,
            ) -> ::std::result::Result<::std::string::String, $crate::Error> {
                $(if <$tool as $crate::Tool>::info().into_tool().name == tool {
                    return $crate::tool::prepare::<$tool>(&arguments);
                })+
                ::std::result::Result::Err($crate::Error::NotFound(tool))
            }

            async fn call(
                call: $crate::tools::Invocation,
            ) -> ::std::result::Result<$crate::ToolOutput, $crate::Error> {
                $(if <$tool as $crate::Tool>::info().into_tool().name == call.tool {
                    return $crate::tool::run::<$tool>(call).await;
                })+
                ::std::result::Result::Err($crate::Error::NotFound(call.tool))
            }
        }

        $crate::tools::export!(AtollPluginTools);
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo;

    impl Tool for Echo {
        type Arguments = Value;

        fn info() -> ToolInfo {
            ToolInfo::new("echo", "Gives back its arguments.").prepares()
        }

        fn prepare(arguments: Value) -> Result<Value, Error> {
            Ok(json!({ "inner": arguments }))
        }

        async fn run(arguments: Value, call: Call) -> Result<ToolOutput, Error> {
            Ok(ToolOutput::text(format!("{} {arguments}", call.cwd)))
        }
    }

    crate::export_tools!(Echo);

    use crate::tools::Guest;

    #[test]
    fn lists_and_prepares() {
        let tools = AtollPluginTools::list_tools();
        assert_eq!(tools[0].name, "echo");
        assert!(tools[0].prepares);
        let prepared = AtollPluginTools::prepare("echo".into(), "1".into());
        assert_eq!(prepared.ok().as_deref(), Some(r#"{"inner":1}"#));
    }

    #[test]
    fn unknown_tools_and_broken_json_are_errors() {
        let unknown = AtollPluginTools::prepare("other".into(), "1".into());
        assert_eq!(unknown.err().map(|error| error.code()), Some("not-found"));
        let broken = AtollPluginTools::prepare("echo".into(), "{".into());
        assert_eq!(broken.err().map(|error| error.code()), Some("invalid-arguments"));
    }
}
