//! What is asked of a server.

use std::{collections::HashSet, future::Future, pin::Pin};

use futures::{
    FutureExt as _,
    future::{Either, select},
    pin_mut,
};
use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, ClientRequest, ListToolsRequest, PaginatedRequestParams, PingRequest,
    },
    service::{PeerRequestOptions, RequestHandle},
};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use tokio::sync::mpsc;

use super::{
    Failure, Session, answer,
    client::Watched,
    in_one_round,
    rounds::{self, Wanted},
    text_of, unread, whole,
};
use crate::{http::marks, text::shown, tool::ServerTool};

/// The most pages of one list.
pub(super) const MAX_PAGES: usize = 1_000;
/// The most tools of one server that are looked at: twice as many as there can be of one plugin, so that who has too many
/// can choose among them.
const MAX_TOOLS: usize = 20_000;
/// How many tools that can not be had are told of one by one.
const MAX_STRANGE: usize = 20;

/// Where a list goes on.
pub(super) fn from(cursor: Option<String>) -> Option<PaginatedRequestParams> {
    cursor.map(|cursor| {
        let mut params = PaginatedRequestParams::default();
        params.cursor = Some(cursor);
        params
    })
}

/// An answer to `tools/list`, as far as it is looked at.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Page<'a> {
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    next_cursor: Value,
    ttl_ms: Value,
    result_type: Value,
}

/// A tool, if what it says of its arguments in headers can be done.
fn marked(tool: ServerTool) -> Result<ServerTool, String> {
    let schema = serde_json::from_str(tool.input_schema.text()).map_err(|error| error.to_string());
    match schema.and_then(|schema| marks(&schema)) {
        Ok(_) => Ok(tool),
        Err(why) => Err(format!("the tool {}: {why}", shown(&tool.name))),
    }
}

/// What of a list of tools is kept.
#[derive(Debug, Default)]
struct Listed {
    tools: Vec<ServerTool>,
    names: HashSet<String>,
    /// What is wrong with others, and how many more there are of which it is not said.
    strange: Vec<String>,
    more_strange: usize,
    /// There are more than are looked at.
    is_cut: bool,
}

impl Listed {
    fn add(&mut self, tool: Result<ServerTool, String>) {
        let wrong = match tool {
            Ok(tool) if self.names.contains(&tool.name) => format!("the tool {} is listed twice", shown(&tool.name)),
            Ok(_) if self.tools.len() >= MAX_TOOLS => {
                self.is_cut = true;
                return;
            }
            Ok(tool) => {
                self.names.insert(tool.name.clone());
                return self.tools.push(tool);
            }
            Err(why) => why,
        };
        if self.strange.len() < MAX_STRANGE { self.strange.push(wrong) } else { self.more_strange += 1 }
    }

    fn is_full(&self) -> bool {
        self.is_cut || self.more_strange > MAX_TOOLS
    }

    fn done(mut self) -> (Vec<ServerTool>, Vec<String>) {
        if self.more_strange > 0 {
            self.strange.push(format!("so it is with {} more of its tools", self.more_strange));
        }
        if self.is_cut {
            self.strange
                .push(format!("it has more than {MAX_TOOLS} tools; those after the first {MAX_TOOLS} are left out"));
        }
        (self.tools, self.strange)
    }
}

/// A step of a request under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// How far it is.
    pub done: f64,
    /// Of how much, if that is known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

impl Session {
    /// Asks whether the server is still there.
    ///
    /// # Errors
    /// That it is not, or what it says in place of an answer.
    pub async fn ping(&self) -> Result<(), Failure> {
        answer(self.peer.send_request(ClientRequest::PingRequest(PingRequest::default())).await).map(drop)
    }

    /// The tools of the server, page by page, as many as are looked at, and what of them could not be read.
    ///
    /// # Errors
    /// Why there is no list.
    pub async fn tools(&self) -> Result<(Vec<ServerTool>, Vec<String>), Failure> {
        let mut listed = Listed::default();
        self.lasts.set(None);
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let params = from(cursor.take());
            let request = ListToolsRequest { params, ..ListToolsRequest::default() };
            let text = text_of(self.peer.send_request(ClientRequest::ListToolsRequest(request)).await)?;
            let page: Page<'_> = match text.starts_with('{') {
                true => serde_json::from_str(&text).map_err(|error| unread(&error))?,
                false => Page::default(),
            };
            in_one_round(&page.result_type)?;
            if let Some(lasts) = page.ttl_ms.as_u64() {
                self.lasts.set(Some(self.lasts.get().map_or(lasts, |known| known.min(lasts))));
            }
            let tools = page.tools.and_then(|tools| serde_json::from_str::<Vec<&RawValue>>(tools.get()).ok());
            let Some(tools) = tools else {
                return Err(Failure::Strange("its answer to tools/list has no tools".to_owned()));
            };
            for tool in tools {
                let read = ServerTool::read(tool);
                listed.add(if self.is_stateless() { read.and_then(marked) } else { read });
            }
            match page.next_cursor {
                Value::String(next) if !next.is_empty() && !listed.is_full() => cursor = Some(next),
                _ => return Ok(listed.done()),
            }
        }
        Err(Failure::Strange(format!("its list of tools has more than {MAX_PAGES} pages")))
    }

    /// Calls a tool: sends the request, and gives what is under way. It is sent once, whatever happens, unless the server
    /// wants to know more and to be asked again with that.
    ///
    /// # Errors
    /// Why it could not be sent.
    pub async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Result<Running<'_>, Failure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let sent = self.send(params.clone()).await?;
        Ok(Running { session: self, params, sent })
    }

    async fn send(&self, params: CallToolRequestParams) -> Result<Sent, Failure> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let handle = sent.map_err(Failure::of_request)?;
        let progress = self.watched.watch(&handle.progress_token);
        let token = Forget { watched: self.watched.clone(), token: handle.progress_token.clone() };
        Ok(Sent { handle, progress, _forget: token })
    }
}

/// A call under way.
#[derive(Debug)]
pub struct Running<'a> {
    session: &'a Session,
    params: CallToolRequestParams,
    sent: Sent,
}

/// One round of it.
#[derive(Debug)]
struct Sent {
    handle: RequestHandle<RoleClient>,
    progress: mpsc::Receiver<Progress>,
    _forget: Forget,
}

/// Nobody waits for the progress of a request that has ended.
#[derive(Debug)]
struct Forget {
    watched: Watched,
    token: rmcp::model::ProgressToken,
}

impl Drop for Forget {
    fn drop(&mut self) {
        self.watched.forget(&self.token);
    }
}

impl Running<'_> {
    /// Waits for the answer. `patience` makes the time that may go by without an answer or progress; `unwanted` ends when
    /// nobody wants the answer any more. In both cases the server is told.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn answer<P: Future<Output = ()>>(
        self,
        mut patience: impl FnMut() -> P,
        unwanted: impl Future<Output = ()>,
        mut on_progress: impl FnMut(Progress),
    ) -> Result<Value, Failure> {
        let Self { session, mut params, mut sent } = self;
        pin_mut!(unwanted);
        for round in 1.. {
            let answer = sent.answer(&mut patience, unwanted.as_mut(), &mut on_progress).await?;
            let Some(wanted) = Wanted::read(&answer) else { return Ok(answer) };
            if round >= rounds::MOST {
                break;
            }
            let known = {
                let (found, late) = (session.find_out(wanted), patience());
                pin_mut!(found, late);
                match select(found, select(unwanted.as_mut(), late)).await {
                    Either::Left((known, _)) => known?,
                    Either::Right((Either::Left(_), _)) => return Err(Failure::Cancelled),
                    Either::Right((Either::Right(_), _)) => return Err(Failure::Timeout),
                }
            };
            (params.input_responses, params.request_state) = (known.responses, known.state);
            sent = session.send(params.clone()).await?;
        }
        Err(rounds::too_many())
    }
}

impl Sent {
    /// Waits for the answer of this round.
    async fn answer<P: Future<Output = ()>>(
        mut self,
        patience: &mut impl FnMut() -> P,
        mut unwanted: Pin<&mut impl Future<Output = ()>>,
        on_progress: &mut impl FnMut(Progress),
    ) -> Result<Value, Failure> {
        let mut is_watched = true;
        let ended = loop {
            let step = {
                let time = patience();
                pin_mut!(time);
                let progress = async {
                    match is_watched {
                        true => self.progress.recv().await,
                        false => std::future::pending().await,
                    }
                };
                pin_mut!(progress);
                let ending = select(unwanted.as_mut(), time).map(|which| match which {
                    Either::Left(_) => Failure::Cancelled,
                    Either::Right(_) => Failure::Timeout,
                });
                let stirring = select(progress, ending);
                // The answer first: it counts, though it comes with the last moment.
                match select(&mut self.handle.rx, stirring).await {
                    Either::Left((received, _)) => {
                        return whole(received.unwrap_or(Err(rmcp::ServiceError::TransportClosed)));
                    }
                    Either::Right((Either::Left((step, _)), _)) => step.map_or(Step::Unwatched, Step::Progress),
                    Either::Right((Either::Right((failure, _)), _)) => Step::Ended(failure),
                }
            };
            match step {
                Step::Progress(progress) => on_progress(progress),
                Step::Unwatched => is_watched = false,
                Step::Ended(failure) => break failure,
            }
        };
        let reason = match ended {
            Failure::Timeout => "it took longer than it may",
            _ => "its result is not wanted any more",
        };
        // Whether the server hears of it makes no difference to us.
        let _ = self.handle.cancel(Some(reason.to_owned())).await;
        Err(ended)
    }
}

enum Step {
    Progress(Progress),
    Unwatched,
    Ended(Failure),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_very_many_tools_the_first_are_kept_and_what_is_wrong_is_told_of_some() {
        let mut listed = Listed::default();
        for number in 0..MAX_TOOLS {
            for _ in 0..2 {
                listed.add(Ok(ServerTool { name: format!("t{number}"), ..ServerTool::default() }));
            }
        }
        assert!(!listed.is_full());
        listed.add(Ok(ServerTool { name: "more".to_owned(), ..ServerTool::default() }));
        assert!(listed.is_full());
        let (tools, strange) = listed.done();
        assert_eq!((tools.len(), strange.len()), (MAX_TOOLS, MAX_STRANGE + 2));
        assert_eq!(strange[0], "the tool \"t0\" is listed twice");
        assert_eq!(
            strange[MAX_STRANGE..],
            [
                "so it is with 19980 more of its tools".to_owned(),
                "it has more than 20000 tools; those after the first 20000 are left out".to_owned(),
            ]
        );
    }
}
