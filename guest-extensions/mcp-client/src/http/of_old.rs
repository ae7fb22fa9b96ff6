//! The transport of old: one stream brings all answers, and its first event says where to send to.

use atoll_event_stream::{Events, ServerEvent};

use super::{
    connection::{Connection, Done},
    reply::within,
};
use crate::{
    config::Address,
    net::{Request, Response},
};

/// The stream of such a server, and what has been read of it.
pub(super) struct Answers {
    response: Response,
    events: Events,
    came: Vec<ServerEvent>,
}

impl Connection<'_> {
    /// Finds out whether the server speaks it, which is so if it says where to send to.
    pub(super) async fn is_of_old(&self) -> bool {
        if self.of_old.borrow().is_some() {
            return false;
        }
        let request = Request::new("GET", &self.endpoint.url).header("accept", "text/event-stream");
        let Ok(request) = self.dressed(request).await else { return false };
        let first = async {
            let mut response = self.net.fetch(request).await.ok()?;
            if response.status != 200 || !response.is("text/event-stream") {
                return None;
            }
            let mut events = Events::default();
            while let Some(Ok(bytes)) = response.body.next().await {
                let mut came = events.push(&bytes).ok()?;
                if !came.is_empty() {
                    let first = came.remove(0);
                    return Some((first, Answers { response, events, came }));
                }
            }
            None
        };
        let Some(Some((first, answers))) = within(self.net, self.endpoint.patience, first).await else { return false };
        if first.name.as_deref() != Some("endpoint") {
            return false;
        }
        // Elsewhere it would get what is meant for this server alone.
        let Some(target) = Address::parse(&self.endpoint.url).ok().and_then(|base| base.join_own(first.data.trim()))
        else {
            return false;
        };
        *self.of_old.borrow_mut() = Some(target);
        *self.answers.borrow_mut() = Some(answers);
        true
    }

    /// Gives all that the stream brings, until it ends.
    pub(super) async fn pump(&self, answers: Answers) -> Done {
        let Answers { mut response, mut events, mut came } = answers;
        loop {
            for event in came.drain(..) {
                if event.name.is_none() && !event.data.trim().is_empty() {
                    self.give(event.data.into_bytes()).await;
                }
            }
            let Some(Ok(bytes)) = response.body.next().await else { return Done::Dropped };
            match events.push(&bytes) {
                Ok(more) => came = more,
                Err(_) => return Done::Dropped,
            }
        }
    }
}
