//! Requests in several rounds, as revision 2026-07-28 has them: a server that keeps no session and wants to know more before it
//! answers says what, and is asked once more with that. What it wants back with it is never looked into.

use futures::future::try_join_all;
use rmcp::{
    RoleClient,
    model::{ClientRequest, InputResponses},
    service::Peer,
};
use serde_json::{Map, Value};

use super::{Failure, Session, asks::Asked, whole};
use crate::text::shown;

/// The most rounds of one request, as in the SDKs of the protocol.
pub(super) const MOST: usize = 10;

/// What a server wants to know before it answers.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Wanted {
    requests: Map<String, Value>,
    state: Option<String>,
}

/// What it is told, and what it wants back.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Known {
    pub(super) responses: Option<InputResponses>,
    pub(super) state: Option<String>,
}

impl Wanted {
    /// What an answer says that is wanted; none if it is the last one.
    pub(super) fn read(answer: &Value) -> Option<Self> {
        wants_more(&answer["resultType"]).then(|| Self {
            requests: answer["inputRequests"].as_object().cloned().unwrap_or_default(),
            state: answer["requestState"].as_str().map(str::to_owned),
        })
    }
}

/// Whether an answer of this kind asks for more.
pub(super) fn wants_more(kind: &Value) -> bool {
    kind == "input_required"
}

/// That there is no end of rounds.
pub(super) fn too_many() -> Failure {
    Failure::Strange(format!("it wants to know more, {MOST} times in a row, and does not answer"))
}

impl Session {
    /// Finds out what a server wants to know: all of it at once, and nothing of it if one thing can not be had.
    ///
    /// # Errors
    /// What can not be had, and why.
    pub(super) async fn find_out(&self, wanted: Wanted) -> Result<Known, Failure> {
        let Wanted { requests, state } = wanted;
        if requests.is_empty() && state.is_none() {
            return Err(Failure::Strange("it wants to know more before it answers, and does not say what".to_owned()));
        }
        let found = requests.into_iter().map(|(key, request)| async {
            let found = self.find_out_one(request).await;
            found.map(|found| (key, found))
        });
        let found: InputResponses = try_join_all(found).await?.into_iter().collect();
        Ok(Known { responses: (!found.is_empty()).then_some(found), state })
    }

    async fn find_out_one(&self, mut request: Value) -> Result<Value, Failure> {
        let method = request["method"].as_str().unwrap_or_default().to_owned();
        if method == "roots/list" {
            return serde_json::to_value(self.identity.roots())
                .map_err(|error| Failure::Strange(format!("where the user works can not be said: {error}")));
        }
        let Ok(asked) = Asked::read(&method, request["params"].take()) else {
            return Err(Failure::Strange(format!(
                "it wants {} answered first, which is not known here",
                shown(&method)
            )));
        };
        let cannot = |why: &str| Failure::Strange(format!("it wants {method} answered first, and {why}"));
        if !self.identity.answers {
            return Err(cannot("there is nobody to ask"));
        }
        let asking = self.asking.get().ok_or(Failure::Closed)?;
        let answer = asking.ask(asked, std::future::pending()).await;
        answer.map_err(|refusal| cannot(&format!("that was refused: {}", refusal.message)))
    }

    /// The answer to a request that may take several rounds.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn in_rounds(&self, request: impl Fn(Known) -> ClientRequest) -> Result<Value, Failure> {
        let peer: &Peer<RoleClient> = &self.peer;
        let mut known = Known::default();
        for _ in 0..MOST {
            let answer = whole(peer.send_request(request(known)).await)?;
            match Wanted::read(&answer) {
                None => return Ok(answer),
                Some(wanted) => known = self.find_out(wanted).await?,
            }
        }
        Err(too_many())
    }
}
