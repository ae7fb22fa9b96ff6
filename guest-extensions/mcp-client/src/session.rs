//! One connection to a server: rmcp's client, with what it leaves to its user.
//!
//! There is no clock here. Whoever waits brings the time that it may take, as a future; so a connection works wherever
//! futures are driven, and a test needs not wait.

mod asks;
mod client;
mod failure;
mod prompts;
mod requests;
mod resources;
mod rounds;
#[cfg(test)]
mod tests;

use std::{cell::Cell, sync::Arc};

use futures::{
    FutureExt as _,
    future::{LocalBoxFuture, Shared},
};
use rmcp::{
    RoleClient,
    model::{CustomResult, ProtocolVersion, ServerPeerInfo, ServerResult},
    service::{ClientLifecycleMode, ClientServiceExt as _, Peer, ServiceError},
    transport::Transport,
};
use serde_json::Value;
use tokio::sync::{Notify, mpsc};

pub use asks::{Ask, Asked, Refusal};
use asks::{AskingWhileThere, Asks};
pub use client::Identity;
use client::{Client, Watched};
pub use failure::Failure;
pub use requests::{Progress, Running};
pub use resources::Page;

/// What a server says that nobody asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// A line for the log.
    Log {
        /// How much it matters, as the protocol calls it.
        level: String,
        /// Which part of the server says it.
        logger: Option<String>,
        /// What it says.
        text: String,
    },
    /// Something that is no message of the protocol.
    Strange(String),
}

/// What has changed since it was last looked at. Each is a permit, however often it was told.
#[derive(Debug, Default)]
pub struct Changes {
    /// The tools.
    pub tools: Notify,
    /// The resources.
    pub resources: Notify,
    /// The prompts.
    pub prompts: Notify,
}

/// How much of what a server says may wait until somebody takes it; what is more is lost.
const WAITING: usize = 1_000;

/// Where a server's log lines go, and where they are taken from.
pub fn told() -> (mpsc::Sender<Told>, mpsc::Receiver<Told>) {
    mpsc::channel(WAITING)
}

/// A connection. Dropped, it ends: what is under way fails with [`Failure::Closed`].
pub struct Session {
    peer: Peer<RoleClient>,
    /// Ends with the connection. When the last of it is dropped, the connection ends.
    ended: Shared<LocalBoxFuture<'static, ()>>,
    server: Arc<ServerPeerInfo>,
    changes: Arc<Changes>,
    watched: Watched,
    asks: Asks,
    asking: AskingWhileThere,
    identity: Identity,
    /// How long what it has listed holds, in milliseconds, as far as it says.
    lasts: Cell<Option<u64>>,
}

/// The revisions of the protocol that a server may answer with.
const KNOWN: [&str; 5] = [STATELESS, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The one of them that has no sessions.
const STATELESS: &str = "2026-07-28";

/// How a server is greeted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Era {
    /// By beginning a session.
    #[default]
    Sessions,
    /// By asking what it can, for there are no sessions: each request says for itself what the server has to know.
    Stateless,
}

impl Session {
    /// As [`Self::open_in`], with a session.
    ///
    /// # Errors
    /// Why there is no connection.
    pub async fn open<T: Transport<RoleClient> + 'static>(
        transport: T,
        identity: Identity,
        told: mpsc::Sender<Told>,
    ) -> Result<Self, Failure> {
        Self::open_in(Era::Sessions, transport, identity, told).await
    }

    /// Says hello, and waits for the answer, however long it takes. To be called, like everything here, within a tokio
    /// runtime.
    ///
    /// # Errors
    /// Why there is no connection.
    pub async fn open_in<T: Transport<RoleClient> + 'static>(
        era: Era,
        transport: T,
        identity: Identity,
        told: mpsc::Sender<Told>,
    ) -> Result<Self, Failure> {
        let (changes, watched) = (Arc::new(Changes::default()), Watched::default());
        let (asking, asks) = asks::channel();
        let later = asking.while_there();
        let client = Client::new(identity.clone(), told, Arc::clone(&changes), watched.clone(), asking);
        let lifecycle = match era {
            Era::Sessions => ClientLifecycleMode::Initialize,
            Era::Stateless => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
        };
        let running = client.serve_with_lifecycle(transport, lifecycle).await.map_err(Failure::of_opening)?;
        let server = running.peer().peer_info().ok_or(Failure::Closed)?;
        let version = server.protocol_version.as_str();
        if !KNOWN.contains(&version) {
            let version = crate::text::shown(version);
            return Err(Failure::Strange(format!(
                "it speaks the revision {version} of the protocol, and not one of {}",
                KNOWN.join(", ")
            )));
        }
        let peer = running.peer().clone();
        let ended = running.waiting().map(drop).boxed_local().shared();
        Ok(Self { peer, ended, server, changes, watched, asks, asking: later, identity, lasts: Cell::new(None) })
    }

    /// The revision of the protocol that was agreed on.
    pub fn revision(&self) -> &str {
        self.server.protocol_version.as_str()
    }

    /// Whether there is no session, as the newest revision has it.
    pub fn is_stateless(&self) -> bool {
        self.revision() == STATELESS
    }

    /// The server's name for itself and its version.
    pub fn server(&self) -> Option<(&str, &str)> {
        self.server.server_info.as_ref().map(|server| (server.name.as_str(), server.version.as_str()))
    }

    /// What the server says of how it is used.
    pub fn instructions(&self) -> Option<&str> {
        self.server.instructions.as_deref().filter(|text| !text.trim().is_empty())
    }

    /// Whether it has tools, resources and prompts.
    pub fn has(&self) -> (bool, bool, bool) {
        let has = &self.server.capabilities;
        (has.tools.is_some(), has.resources.is_some(), has.prompts.is_some())
    }

    /// The next thing that the server asks of us, which is only done where [`Identity::answers`] says that somebody answers.
    /// None once there is nothing more to come.
    pub async fn asked(&self) -> Option<Ask> {
        self.asks.next().await
    }

    /// How long its list of tools holds, in milliseconds, as far as it says.
    pub fn lasts(&self) -> Option<u64> {
        self.lasts.get()
    }

    /// What has changed.
    pub fn changes(&self) -> &Arc<Changes> {
        &self.changes
    }

    /// Whether nothing can be asked any more.
    pub fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// Returns once nothing can be asked any more.
    pub async fn ended(&self) {
        self.ended.clone().await;
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The answer to a request, as the text that the server wrote.
fn text_of(result: Result<ServerResult, ServiceError>) -> Result<String, Failure> {
    match result.map_err(Failure::of_request)? {
        // That is how a wire passes it on.
        ServerResult::CustomResult(CustomResult(Value::String(text))) => Ok(text),
        other => serde_json::to_string(&other).map_err(|error| unread(&error)),
    }
}

/// The same, as JSON, whatever it is.
fn whole(result: Result<ServerResult, ServiceError>) -> Result<Value, Failure> {
    serde_json::from_str(&text_of(result)?).map_err(|error| unread(&error))
}

fn unread(error: &serde_json::Error) -> Failure {
    Failure::Strange(format!("its answer can not be read: {error}"))
}

/// The same to a request that is answered in one round.
fn answer(result: Result<ServerResult, ServiceError>) -> Result<Value, Failure> {
    let answer = whole(result)?;
    in_one_round(&answer["resultType"])?;
    Ok(answer)
}

/// That an answer of this kind is the last one.
fn in_one_round(kind: &Value) -> Result<(), Failure> {
    match rounds::wants_more(kind) {
        false => Ok(()),
        true => Err(Failure::Strange(
            "it wants to know more before it answers, which the protocol does not allow for this".to_owned(),
        )),
    }
}
