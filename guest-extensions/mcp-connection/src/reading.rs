//! What is read of a server: lists, resources and prompts. Reading twice does no harm, so what is lost on the way is asked for
//! once more; a call never is.

use std::rc::{Rc, Weak};

use atoll_mcp_client::{
    http::Way,
    session::{Failure, Page, Session},
};
use atoll_plugin::Error;
use serde_json::{Map, Value};

use crate::server::Server;

impl Server {
    /// Asks for something that changes nothing, twice if the first time is lost. `what` is what is asked for, for a message.
    ///
    /// # Errors
    /// Why it can not be had.
    pub async fn reading<T>(&self, what: &str, ask: impl AsyncFn(&Session) -> Result<T, Failure>) -> Result<T, Error> {
        let mut lost = None;
        loop {
            let session = self.session(lost.as_ref()).await?;
            match self.drive.run(self.in_time(ask(&session))).await {
                Err(Failure::Closed | Failure::OnTheWay { way: Way::Expired, .. }) if lost.is_none() => {
                    lost = Some(Rc::downgrade(&session));
                }
                // Only one answer was lost: the connection is as good as it was.
                Err(Failure::OnTheWay { way: Way::Lost, .. }) if lost.is_none() => lost = Some(Weak::new()),
                given => return given.map_err(|failure| self.unread(what, &failure)),
            }
        }
    }

    fn unread(&self, what: &str, failure: &Failure) -> Error {
        let text = format!("The MCP server {}, asked for {what}: {failure}", self.name);
        match failure {
            Failure::Closed | Failure::OnTheWay { .. } => Error::unavailable(text),
            Failure::Timeout => Error::timeout(text),
            Failure::Cancelled => Error::Cancelled(text),
            Failure::Refused { .. } | Failure::NeedsPages(_) | Failure::Strange(_) => Error::failed(text),
        }
    }

    /// Its resources, from a cursor on.
    ///
    /// # Errors
    /// Why there is no list.
    pub async fn resources(&self, cursor: Option<&str>) -> Result<Page, Error> {
        self.reading("its resources", async |session: &Session| session.resources(cursor).await).await
    }

    /// The templates of its resources, from a cursor on.
    ///
    /// # Errors
    /// Why there is no list.
    pub async fn resource_templates(&self, cursor: Option<&str>) -> Result<Page, Error> {
        self.reading("its templates", async |session: &Session| session.resource_templates(cursor).await).await
    }

    /// What a resource of it holds, in parts.
    ///
    /// # Errors
    /// Why it can not be read.
    pub async fn read_resource(&self, uri: &str) -> Result<Vec<Value>, Error> {
        self.reading(&format!("the resource {uri}"), async |session: &Session| session.read_resource(uri).await).await
    }

    /// What a prompt of it gives.
    ///
    /// # Errors
    /// Why it gives nothing.
    pub async fn prompt(&self, name: &str, arguments: &Map<String, Value>) -> Result<Value, Error> {
        self.reading(&format!("the prompt {name}"), async |session: &Session| {
            session.prompt(name, arguments.clone()).await
        })
        .await
    }
}
