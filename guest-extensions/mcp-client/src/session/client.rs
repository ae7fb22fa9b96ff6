//! What the client answers when a server asks or tells.

#![allow(deprecated, reason = "a revision to come has neither roots nor logging; the servers there are have both")]

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, CustomRequest, CustomResult,
        ElicitRequestParams, ElicitResult, ErrorCode, ErrorData, Implementation, ListRootsResult,
        LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, ProtocolVersion, Root,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    Changes, Told,
    asks::{Asked, Asking},
    requests::Progress,
};

/// What a server is told of us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The program.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The folder that the user works in, as an absolute path.
    pub root: String,
    /// Somebody takes what a server asks of us, by [`super::Session::asked`]. Otherwise a server is told that there is nobody
    /// to ask.
    pub answers: bool,
}

impl Identity {
    /// What a server is told that asks where the user works.
    pub(super) fn roots(&self) -> ListRootsResult {
        let name = self.root.rsplit('/').find(|part| !part.is_empty()).unwrap_or("/");
        ListRootsResult::new(vec![Root::new(file_uri(&self.root)).with_name(name)])
    }
}

/// Who waits for the progress of which request.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched(Arc<Mutex<HashMap<ProgressToken, mpsc::Sender<Progress>>>>);

/// How many steps of progress may wait; what is more is lost, for the next one says as much.
const STEPS: usize = 16;

impl Watched {
    /// Watches a request from here on.
    pub(super) fn watch(&self, token: &ProgressToken) -> mpsc::Receiver<Progress> {
        let (sender, receiver) = mpsc::channel(STEPS);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(token.clone(), sender);
        receiver
    }

    pub(super) fn forget(&self, token: &ProgressToken) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(token);
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn tell(&self, token: &ProgressToken, progress: Progress) {
        if let Some(sender) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(token) {
            let _ = sender.try_send(progress);
        }
    }
}

/// The client's side of a connection.
#[derive(Debug)]
pub(super) struct Client {
    identity: Identity,
    told: mpsc::Sender<Told>,
    changes: Arc<Changes>,
    watched: Watched,
    asking: Asking,
}

impl Client {
    pub(super) fn new(
        identity: Identity,
        told: mpsc::Sender<Told>,
        changes: Arc<Changes>,
        watched: Watched,
        asking: Asking,
    ) -> Self {
        Self { identity, told, changes, watched, asking }
    }

    /// Has somebody answer what the server asks. What it does not want any more is dropped.
    async fn ask(&self, asked: Asked, context: &RequestContext<RoleClient>) -> Result<Value, ErrorData> {
        if !self.identity.answers {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, asked.method(), None));
        }
        let answer = self.asking.ask(asked, context.ct.cancelled()).await;
        answer.map_err(|refusal| ErrorData::new(ErrorCode(refusal.code), refusal.message, None))
    }
}

fn unread(error: &serde_json::Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        // By JSON, for which of the fields are to be given differs from one version of the library to the next.
        let capabilities = match self.identity.answers {
            true => json!({"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}),
            false => json!({"roots": {}}),
        };
        let capabilities: ClientCapabilities = serde_json::from_value(capabilities).unwrap_or_default();
        ClientConfig::new(capabilities, Implementation::new(&self.identity.name, &self.identity.version))
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.identity.roots())
    }

    // What a server asks of a person or a model arrives as it was sent where the transport can tell, for the types of the
    // library leave out what they do not know, and put a form's fields into another order.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        match Asked::read(&request.method, request.params.unwrap_or_default()) {
            Ok(asked) => self.ask(asked, &context).await.map(CustomResult::new),
            Err(_) => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None)),
        }
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let params = serde_json::to_value(params).map_err(|error| unread(&error))?;
        serde_json::from_value(self.ask(Asked::Sample(params), &context).await?).map_err(|error| unread(&error))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = serde_json::to_value(params).map_err(|error| unread(&error))?;
        serde_json::from_value(self.ask(Asked::Elicit(params), &context).await?).map_err(|error| unread(&error))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let ProgressNotificationParam { progress_token, progress, total, message, .. } = params;
        self.watched.tell(&progress_token, Progress { done: progress, total, message });
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        let level = serde_json::to_value(params.level).ok();
        let level = level.as_ref().and_then(Value::as_str).unwrap_or("info").to_owned();
        let text = params.data.as_str().map_or_else(|| params.data.to_string(), str::to_owned);
        let _ = self.told.try_send(Told::Log { level, logger: params.logger, text });
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.tools.notify_one();
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.resources.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.prompts.notify_one();
    }
}

/// An absolute path as a `file` URI.
fn file_uri(path: &str) -> String {
    use std::fmt::Write as _;
    let mut uri = "file://".to_owned();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    #[test]
    fn paths_are_uris() {
        assert_eq!(super::file_uri("/home/me/my project/ü#?%"), "file:///home/me/my%20project/%C3%BC%23%3F%25");
    }
}
