//! The one way to call a tool, whoever calls: look up, let the tool prepare its arguments, check them, run.

use std::{
    sync::{Arc, RwLock},
    time::Instant,
};

pub use atoll_table::Caller;
use atoll_table::{Error, Invocation, Progress, Registered, Table, ToolOutput, tool::ExecutionMode};
use serde_json::Value;

/// The table, and the one way through it.
#[derive(Clone)]
pub struct Pipeline {
    table: Arc<RwLock<Table>>,
}

/// A call that may run.
pub struct Ready {
    entry: Arc<Registered>,
    invocation: Invocation,
}

impl Ready {
    /// Whether it has to run alone.
    pub fn is_sequential(&self) -> bool {
        self.entry.tool.execution_mode == ExecutionMode::Sequential
    }

    /// The plugin that runs it.
    pub fn plugin(&self) -> &str {
        &self.entry.plugin
    }

    /// Runs it. Failures are results too: whoever called reads them. Also how long it took, in milliseconds.
    pub async fn run(self, progress: Progress) -> (ToolOutput, u64) {
        let began = Instant::now();
        let output = match self.entry.runner.call(self.invocation, progress).await {
            Ok(output) => output,
            Err(error) => failed(&error),
        };
        (output, u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

/// The result of a call that failed with an error.
pub fn failed(error: &Error) -> ToolOutput {
    ToolOutput { details: Some(serde_json::json!({"error": error})), ..ToolOutput::error(error.to_string()) }
}

impl Pipeline {
    /// Calls go to the tools of this table.
    pub fn new(table: Table) -> Self {
        Self { table: Arc::new(RwLock::new(table)) }
    }

    /// Looks at the table.
    pub fn table<R>(&self, look: impl FnOnce(&Table) -> R) -> R {
        look(&self.table.read().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Changes the table.
    pub fn change<R>(&self, change: impl FnOnce(&mut Table) -> R) -> R {
        change(&mut self.table.write().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Everything up to running: nothing has happened yet when this fails.
    ///
    /// # Errors
    /// `not-found` or `ambiguous` for the name, `invalid-arguments` for the rest.
    pub async fn ready(&self, caller: Caller, id: &str, name: &str, arguments: Value) -> Result<Ready, Error> {
        let entry = self.table(|table| table.reach(caller, name))?;
        let arguments =
            if entry.tool.prepares { entry.runner.prepare(entry.local.clone(), arguments).await? } else { arguments };
        let arguments = entry.checker().check(arguments)?;
        let invocation = Invocation { id: id.to_owned(), parent_id: None, tool: entry.local.clone(), arguments };
        Ok(Ready { entry, invocation })
    }
}
