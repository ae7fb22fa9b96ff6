//! One server: connected to in a task of its own, for as long as the session lasts, and again when somebody needs it.
//!
//! Nothing of one server waits for another. A call waits for its own server at most as long as the configuration says.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    pin::pin,
    rc::Rc,
    time::Duration,
};

use atoll_mcp_client::{
    config::{Entry, Transport},
    session::{Failure, Identity, Progress, Session, Told, told},
    wire::wire,
};
use atoll_plugin::{Error, clock, log};
use futures::future::{Either, join, join_all, select};
use serde_json::{Map, Value};
use tokio::sync::{Notify, mpsc, watch};

use crate::{Catalog, drive::Drive, stdio::Program};

/// What a server is doing.
#[derive(Clone, Debug)]
pub enum State {
    /// It is not connected to, because nobody needs it. The next call connects to it.
    Resting,
    /// It is connected to.
    Connecting,
    /// It is there.
    Connected(Rc<Session>),
    /// It was there. The next call connects to it.
    Disconnected(String),
    /// It could not be had. The next call tries again.
    Failed(String),
    /// The session ends.
    Closed,
}

/// A server of the configuration.
pub struct Server {
    /// Its name.
    pub name: String,
    /// What the configuration says of it.
    pub entry: Entry,
    drive: Drive,
    /// What it says of how it is used, once it was there.
    instructions: RefCell<Option<String>>,
    state: watch::Sender<State>,
    /// Somebody needs it, and it is not there.
    needed: Cell<bool>,
    /// Told when that is so.
    asked: Notify,
    /// Told when it is to be left until it is needed.
    resting: Notify,
    /// Set once, when the session ends.
    closing: watch::Sender<bool>,
}

/// What all servers are connected to with.
pub struct Surroundings {
    /// Where their tools go.
    pub catalog: Rc<dyn Catalog>,
    /// Who connects.
    pub identity: Identity,
    /// The user's home, which a `~` stands for.
    pub home: Option<String>,
}

impl Server {
    /// One that is not connected to yet: [`Self::live`] does that.
    pub fn new(name: String, entry: Entry, drive: Drive) -> Self {
        Self::beginning(State::Connecting, name, entry, drive)
    }

    /// One that is not connected to before somebody needs it.
    pub fn resting(name: String, entry: Entry, drive: Drive) -> Self {
        Self::beginning(State::Resting, name, entry, drive)
    }

    fn beginning(state: State, name: String, entry: Entry, drive: Drive) -> Self {
        let (state, closing) = (watch::channel(state).0, watch::channel(false).0);
        Self {
            name,
            entry,
            drive,
            instructions: RefCell::default(),
            state,
            needed: Cell::new(false),
            asked: Notify::new(),
            resting: Notify::new(),
            closing,
        }
    }

    /// Connects, serves, and does so again whenever it is needed, until the session ends.
    pub async fn live(self: Rc<Self>, around: Rc<Surroundings>) {
        let mut closing = self.closing.subscribe();
        loop {
            if !matches!(*self.state.borrow(), State::Connecting) {
                let needed = async {
                    // Several may have asked for one connection.
                    while !self.needed.replace(false) {
                        self.asked.notified().await;
                    }
                };
                if let Either::Right(_) = select(pin!(needed), pin!(closing.wait_for(|closing| *closing))).await {
                    break;
                }
                self.state.send_replace(State::Connecting);
            }
            let (was_there, why) = self.once(&around).await;
            around.catalog.settled(&self.name);
            if *closing.borrow() {
                break;
            }
            if !matches!(*self.state.borrow(), State::Resting) {
                log::write(log::Level::Warn, &format!("the server {}: {why}", self.name));
                self.state.send_replace(if was_there { State::Disconnected(why) } else { State::Failed(why) });
            }
        }
        self.state.send_replace(State::Closed);
    }

    /// One connection, from its beginning to its end. Whether there was one, and why it ended.
    async fn once(&self, around: &Surroundings) -> (bool, String) {
        let Transport::Stdio(stdio) = &self.entry.transport else {
            return (false, "servers at an address are not supported yet".to_owned());
        };
        let program = match Program::start(stdio, around.home.as_deref()).await {
            Ok(program) => program,
            Err(error) => return (false, error.message()),
        };
        let (teller, told) = told();
        let (wire, end) = wire(teller.clone());
        let (over, ended) = watch::channel(false);
        let was_there = Cell::new(false);
        let talking = async {
            let failure = self.drive.run(self.talk(wire, teller, told, around, &was_there)).await;
            over.send_replace(true);
            failure
        };
        let (mut ended, mut closing, resting) = (ended, self.closing.subscribe(), self.resting.notified());
        let done = async {
            let (closed, resting) = (pin!(closing.wait_for(|closing| *closing)), pin!(resting));
            select(pin!(ended.wait_for(|over| *over)), select(closed, resting)).await;
        };
        // Each of the two ends soon after the other. The program's side is driven, too: what it prints has to get to the
        // client's tasks.
        let ((), failure) = join(self.drive.run(program.serve(end, done)), talking).await;
        (was_there.get(), format!("{failure}{}", program.last_words()))
    }

    /// The client's side of a connection. Ends with it.
    async fn talk(
        &self,
        wire: atoll_mcp_client::wire::Wire,
        teller: mpsc::Sender<Told>,
        mut told: mpsc::Receiver<Told>,
        around: &Surroundings,
        was_there: &Cell<bool>,
    ) -> Failure {
        let logging = async {
            while let Some(line) = told.recv().await {
                self.log(line);
            }
        };
        let talking = async {
            let session = match self.in_time(Session::open(wire, around.identity.clone(), teller)).await {
                Ok(session) => Rc::new(session),
                Err(failure) => return failure,
            };
            *self.instructions.borrow_mut() = session.instructions().map(str::to_owned);
            if let Err(failure) = self.list(&session, around).await {
                return failure;
            }
            around.catalog.settled(&self.name);
            was_there.set(true);
            self.state.send_replace(State::Connected(Rc::clone(&session)));
            loop {
                let (changed, ended) = (pin!(session.changes().tools.notified()), pin!(session.ended()));
                if let Either::Right(_) = select(changed, ended).await {
                    return Failure::Closed;
                }
                if let Err(failure) = self.list(&session, around).await {
                    log::write(log::Level::Warn, &format!("the server {}: its changed tools: {failure}", self.name));
                    if session.is_closed() {
                        return failure;
                    }
                }
            }
        };
        let (logging, talking) = (pin!(logging), pin!(talking));
        match select(talking, logging).await {
            Either::Left((failure, _)) => failure,
            Either::Right(((), talking)) => talking.await,
        }
    }

    async fn list(&self, session: &Session, around: &Surroundings) -> Result<(), Failure> {
        let (has_tools, _, _) = session.has();
        if !has_tools {
            return Ok(());
        }
        let (tools, strange) = self.in_time(session.tools()).await?;
        for why in strange {
            log::write(log::Level::Warn, &format!("the server {}: {why}", self.name));
        }
        for why in around.catalog.put(self, session.instructions(), tools).await {
            log::write(log::Level::Warn, &format!("the server {}: {why}", self.name));
        }
        Ok(())
    }

    fn log(&self, line: Told) {
        let text = match line {
            Told::Strange(text) => text,
            Told::Log { level, logger, text } => {
                format!("{level}{}: {text}", logger.map(|logger| format!(" {logger}")).unwrap_or_default())
            }
        };
        log::write(log::Level::Info, &format!("the server {}: {text}", self.name));
    }

    /// What a request gives, if it does in time.
    async fn in_time<T>(&self, request: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let (request, late) = (pin!(request), pin!(self.patience()));
        match select(request, late).await {
            Either::Left((given, _)) => given,
            Either::Right(_) => Err(Failure::Timeout),
        }
    }

    fn patience(&self) -> impl Future<Output = ()> + use<> {
        clock::sleep(milliseconds(self.entry.timeout))
    }

    /// What it says of how it is used, if it was ever there.
    pub fn instructions(&self) -> Option<String> {
        self.instructions.borrow().clone()
    }

    /// Waits until it is known whether the server is there. It is not connected to again.
    pub async fn known(&self) {
        let mut state = self.state.subscribe();
        let _ = state.wait_for(|state| !matches!(state, State::Connecting)).await;
    }

    /// What it is doing now.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Hears of each change of what it is doing.
    pub fn states(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Ends the connection, if there is one, until somebody needs it again. What is under way fails.
    pub fn rest(&self) {
        if matches!(*self.state.borrow(), State::Connected(_)) {
            // Who needs it from here on waits for the next connection.
            self.state.send_replace(State::Resting);
            self.resting.notify_waiters();
        }
    }

    /// Asks whether it is still there, and waits for the answer so long at most. What does not answer is left, and the next
    /// call connects to it again.
    ///
    /// # Errors
    /// Why it is not there.
    pub async fn check(&self, within: Duration) -> Result<(), Failure> {
        let State::Connected(session) = self.state() else { return Err(Failure::Closed) };
        let answer = async { Ok(self.drive.run(session.ping()).await?) };
        let (answer, late) = (pin!(answer), pin!(clock::sleep(milliseconds(within))));
        let there = match select(answer, late).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => Err(Failure::Timeout),
        };
        // One that says no is there.
        match there {
            Err(failure @ (Failure::Closed | Failure::Timeout)) => {
                if matches!(self.state(), State::Connected(now) if Rc::ptr_eq(&now, &session)) {
                    self.rest();
                }
                Err(failure)
            }
            _ => Ok(()),
        }
    }

    /// Sends requests of one's own over the connection; where there is none, over a new one.
    ///
    /// # Errors
    /// Why there is none, or what the requests say.
    pub async fn with<T>(&self, requests: impl AsyncFnOnce(&Session) -> Result<T, Failure>) -> Result<T, Error> {
        let session = self.session().await?;
        let asked = self.in_time(self.drive.run(requests(&session))).await;
        asked.map_err(|failure| Error::failed(format!("The MCP server {}: {failure}", self.name)))
    }

    /// Waits until it is connected to.
    ///
    /// # Errors
    /// Why it can not be.
    pub async fn connect(&self) -> Result<(), Error> {
        self.session().await.map(drop)
    }

    /// The connection; where there is none any more, a new one.
    async fn session(&self) -> Result<Rc<Session>, Error> {
        let mut state = self.state.subscribe();
        let mut has_asked = false;
        loop {
            let now = state.borrow_and_update().clone();
            match now {
                State::Connected(session) if !session.is_closed() => return Ok(session),
                // It has ended, which is soon known.
                State::Connecting | State::Connected(_) => {}
                State::Resting | State::Disconnected(_) | State::Failed(_) if !has_asked => {
                    has_asked = true;
                    self.needed.set(true);
                    self.asked.notify_one();
                }
                State::Resting => {}
                State::Failed(why) | State::Disconnected(why) => {
                    let name = &self.name;
                    return Err(Error::unavailable(format!("The MCP server {name} can not be reached: {why}")));
                }
                State::Closed => return Err(self.ending()),
            }
            if state.changed().await.is_err() {
                return Err(self.ending());
            }
        }
    }

    fn ending(&self) -> Error {
        Error::Cancelled(format!("The MCP server {} is being stopped, for the session ends.", self.name))
    }

    /// Calls a tool of the server, by the name that it has there. The call is sent once.
    ///
    /// # Errors
    /// Why there is no result.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        unwanted: impl Future<Output = ()>,
        on_progress: impl FnMut(Progress),
    ) -> Result<Value, Error> {
        let session = self.session().await?;
        let calling = async {
            let running = session.call(tool, arguments).await?;
            running.answer(|| self.patience(), unwanted, on_progress).await
        };
        let name = &self.name;
        self.drive.run(calling).await.map_err(|failure| match failure {
            Failure::Closed => Error::unavailable(format!(
                "The MCP server {name} ended while it ran {tool}. Whether it did what was asked is not known; the next call \
                 connects to it again."
            )),
            Failure::Timeout => Error::timeout(format!(
                "The MCP server {name} gave no answer and no progress for {} s.",
                self.entry.timeout.as_secs_f64()
            )),
            Failure::Cancelled => Error::Cancelled(format!("The call of {tool} was stopped.")),
            Failure::Refused { .. } | Failure::Strange(_) => Error::failed(format!("The MCP server {name}, asked for {tool}: {failure}")),
        })
    }

    /// Ends it. Waits until nothing is left of it.
    pub async fn close(&self) {
        self.closing.send_replace(true);
        let mut state = self.state.subscribe();
        let _ = state.wait_for(|state| matches!(state, State::Closed)).await;
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Ends all of them at once. Waits until nothing is left of them.
pub async fn close_all(servers: &[Rc<Server>]) {
    join_all(servers.iter().map(|server| server.close())).await;
}
