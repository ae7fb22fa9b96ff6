//! The tool `codemode`: runs a script of the model's that calls other tools, and gives only what the script says.
//!
//! A script reaches nothing but the tool table, a clock and random numbers. Each runs in an instance of its own, so nothing of
//! one is there for the next but what it kept with `store`. This component must never keep an answer of the table beyond a
//! script, and never run two scripts in one instance.

mod bridge;
mod calls;
mod failure;
mod hints;
mod host;
mod info;
mod names;
mod options;
mod output;
mod realm;
mod run;
mod sleeps;
mod source;
mod store;

use atoll_plugin::{Error, ToolOutput, tools, types};

struct Codemode;

#[derive(serde::Deserialize)]
struct Arguments {
    code: String,
}

impl tools::Guest for Codemode {
    fn list_tools() -> Vec<types::Tool> {
        // Whoever keeps a picture of this instance's memory has the engine in it. Without one a call makes its own.
        let _ = realm::warm();
        vec![info::info().into_tool()]
    }

    fn prepare(tool: String, _: String) -> Result<String, Error> {
        Err(Error::not_found(tool))
    }

    async fn call(call: tools::Invocation) -> Result<ToolOutput, Error> {
        let arguments: Arguments = serde_json::from_str(&call.arguments)
            .map_err(|error| Error::invalid_arguments(format!("The arguments do not fit: {error}")))?;
        // Only asked for what an error is to name.
        let has = |name: &str| host::callable(&call.id).is_ok_and(|names| names.find(name).is_some());
        let prepared = source::prepare_for(&arguments.code, &has).map_err(Error::InvalidArguments)?;
        run::run(call.id, prepared).await
    }
}

tools::export!(Codemode);
