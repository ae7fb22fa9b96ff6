//! One server: its connection, and who minds it.

use std::{cell::RefCell, future::Future, pin::pin, rc::Rc, time::Duration};

use atoll_mcp_client::{result, session::Progress};
use atoll_mcp_connection::{
    drive::Drive,
    server::{Server, State},
};
use atoll_plugin::{Error, clock, log};
use futures::future::{Either, select};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, Semaphore, watch};

use crate::{
    answers::Standing,
    catalog::What,
    lifecycle::{Act, Life},
    settings::Proxied,
};

/// How long a server that is kept may take to say that it is there.
const CHECK_WITHIN: Duration = Duration::from_secs(5);
/// How many servers are asked that at once.
pub(crate) const CHECKS_AT_ONCE: usize = 10;

/// A server.
pub(crate) struct One {
    pub(crate) proxied: Proxied,
    pub(crate) server: Rc<Server>,
    life: RefCell<Life>,
    /// Told when there is something new for who minds it.
    stirred: Notify,
    /// All that there is to know of a connection is known; or there is none.
    pub(crate) settled: Rc<watch::Sender<bool>>,
}

/// Milliseconds since some point.
fn now() -> u64 {
    clock::monotonic() / 1_000_000
}

impl One {
    /// One that is connected to at once, or when somebody needs it.
    pub(crate) fn new(proxied: Proxied, at_once: bool, check_ms: u64, drive: Drive) -> Self {
        let life = Life::new(proxied.lifecycle, proxied.idle_ms, check_ms);
        let (name, entry) = (proxied.name.clone(), proxied.entry.clone());
        let server = if at_once { Server::new(name, entry, drive) } else { Server::resting(name, entry, drive) };
        let (life, settled) = (RefCell::new(life), Rc::new(watch::channel(!at_once).0));
        Self { proxied, server: Rc::new(server), life, stirred: Notify::new(), settled }
    }

    /// How it is with it.
    pub(crate) fn standing(&self) -> Standing {
        match self.server.state() {
            State::Connected(_) => Standing::Connected,
            State::Connecting => Standing::Connecting,
            State::Resting => Standing::Resting,
            State::Disconnected(why) | State::Failed(why) => Standing::Gone(why),
            State::Closed => Standing::Gone("the session ends".to_owned()),
        }
    }

    /// Waits until it is known which tools it has, or that it can not be had. It is not connected to for that.
    pub(crate) async fn known(&self) {
        let mut settled = self.settled.subscribe();
        let _ = settled.wait_for(|settled| *settled).await;
    }

    /// Connects to it, if it is not connected to, and waits until it is known which tools it has.
    ///
    /// # Errors
    /// Why it can not be had.
    pub(crate) async fn connect(&self) -> Result<(), Error> {
        let _use = Use::begin(self);
        if self.standing() != Standing::Connected {
            // Who minds it says when that is so again.
            self.settled.send_replace(false);
        }
        self.server.connect().await?;
        self.known().await;
        Ok(())
    }

    /// Does on the server what a tool stands for. Gives its result, as the protocol has it.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn carry_out(
        &self,
        what: &What,
        arguments: Map<String, Value>,
        unwanted: impl Future<Output = ()>,
        on_progress: impl FnMut(Progress),
    ) -> Result<Value, Error> {
        let _use = Use::begin(self);
        match what {
            What::Call(tool) => self.server.call(tool, arguments, unwanted, on_progress).await,
            What::Read(uri) => {
                let parts = self.server.read_resource(uri).await?;
                let content = parts.into_iter().filter(result::is_shown);
                let content: Vec<Value> = content.map(|part| json!({"type": "resource", "resource": part})).collect();
                Ok(json!({ "content": content }))
            }
        }
    }

    /// Minds it for as long as the session lasts: takes in what comes of its connection, leaves it when it is idle, and
    /// brings back one that is to be kept.
    pub(crate) async fn mind(self: Rc<Self>, checks: Rc<Semaphore>) {
        let mut states = self.server.states();
        let mut was_there = false;
        loop {
            let state = states.borrow_and_update().clone();
            match state {
                State::Closed => break,
                State::Connected(_) if !was_there => {
                    was_there = true;
                    self.life.borrow_mut().came(now());
                }
                State::Connected(_) => {}
                State::Connecting => {
                    if was_there {
                        self.life.borrow_mut().went(now());
                    }
                    was_there = false;
                    self.settled.send_replace(false);
                }
                State::Resting | State::Disconnected(_) => {
                    if was_there {
                        self.life.borrow_mut().went(now());
                    }
                    was_there = false;
                    self.settled.send_replace(true);
                }
                State::Failed(_) => {
                    self.life.borrow_mut().failed(now());
                    was_there = false;
                    self.settled.send_replace(true);
                }
            }
            // What is done changes the state, or when something is to be done next.
            while !states.has_changed().unwrap_or_default() {
                let due = self.life.borrow().due(now());
                match due {
                    Some(Act::Rest) => self.server.rest(),
                    Some(Act::Check) => {
                        let _turn = checks.acquire().await;
                        match self.server.check(CHECK_WITHIN).await {
                            Ok(()) => self.life.borrow_mut().answered(now()),
                            Err(failure) => {
                                let name = &self.proxied.name;
                                log::write(
                                    log::Level::Warn,
                                    &format!("the server {name}, asked whether it is there: {failure}"),
                                );
                                // It may have gone by itself a moment ago, and that is not taken in yet.
                                self.life.borrow_mut().went(now());
                            }
                        }
                    }
                    // Why it can not be had is in its state.
                    Some(Act::Connect) => drop(self.server.connect().await),
                    None => {
                        let next = self.life.borrow().next();
                        let waiting = async {
                            match next {
                                Some(at) => clock::sleep(at.saturating_sub(now()).max(1)).await,
                                None => std::future::pending().await,
                            }
                        };
                        let (changed, stirred) = (pin!(states.changed()), pin!(self.stirred.notified()));
                        match select(changed, select(stirred, pin!(waiting))).await {
                            Either::Left(_) => break,
                            Either::Right(_) => {}
                        }
                    }
                }
            }
            if states.has_changed().is_err() {
                break;
            }
        }
    }
}

/// A use of a server, from its beginning to its end.
struct Use<'a>(&'a One);

impl<'a> Use<'a> {
    fn begin(one: &'a One) -> Self {
        one.life.borrow_mut().begun(now());
        Self(one)
    }
}

impl Drop for Use<'_> {
    fn drop(&mut self) {
        self.0.life.borrow_mut().ended(now());
        self.0.stirred.notify_one();
    }
}
