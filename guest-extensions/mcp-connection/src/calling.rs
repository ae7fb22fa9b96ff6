//! Calls of a server's tools, and what is said of those that have no result.

use std::{future::Future, pin::pin, rc::Rc};

use atoll_mcp_client::{
    http::Way,
    session::{Failure, Progress},
};
use atoll_plugin::Error;
use serde_json::{Map, Value};

use crate::server::Server;

impl Server {
    /// Calls a tool of the server, by the name that it has there. The call is sent once, and once more only to a server that
    /// has said that it did not look at it, for it does not know the session any more.
    ///
    /// # Errors
    /// Why there is no result.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        unwanted: impl Future<Output = ()>,
        mut on_progress: impl FnMut(Progress),
    ) -> Result<Value, Error> {
        let mut unwanted = pin!(unwanted);
        let mut ended = None;
        loop {
            let session = self.session(ended.as_ref()).await?;
            let calling = async {
                let running = session.call(tool, arguments.clone()).await?;
                running.answer(|| self.patience(), unwanted.as_mut(), &mut on_progress).await
            };
            match self.drive.run(calling).await {
                Err(Failure::OnTheWay { way: Way::Expired, .. }) if ended.is_none() => {
                    ended = Some(Rc::downgrade(&session));
                }
                given => return given.map_err(|failure| self.failed(tool, &failure)),
            }
        }
    }

    /// Why a call has no result.
    pub(crate) fn failed(&self, tool: &str, failure: &Failure) -> Error {
        let name = &self.name;
        match failure {
            Failure::Closed => Error::unavailable(format!(
                "The MCP server {name} ended while it ran {tool}. Whether it did what was asked is not known; the next call \
                 connects to it again."
            )),
            Failure::OnTheWay { way: Way::Lost, why } => Error::unavailable(format!(
                "The MCP server {name} was asked for {tool}, and gave no answer: {why}. Whether it did what was asked is not \
                 known."
            )),
            Failure::OnTheWay { why, .. } => {
                Error::unavailable(format!("The MCP server {name} could not be asked for {tool}: {why}"))
            }
            Failure::Timeout => Error::timeout(format!(
                "The MCP server {name} gave no answer and no progress for {} s.",
                self.entry.timeout.as_secs_f64()
            )),
            Failure::Cancelled => Error::Cancelled(format!("The call of {tool} was stopped.")),
            Failure::NeedsPages(pages) => {
                let pages: Vec<&str> = pages.iter().map(|page| page.url.as_str()).collect();
                Error::failed(format!(
                    "The MCP server {name} does not run {tool} before the user has opened {}. Call it again after that.",
                    pages.join(" and ")
                ))
            }
            Failure::Refused { .. } | Failure::Strange(_) => {
                Error::failed(format!("The MCP server {name}, asked for {tool}: {failure}"))
            }
        }
    }
}
