//! One server: connected to in a task of its own, for as long as the session lasts, and again when somebody needs it.
//!
//! Nothing of one server waits for another. A call waits for its own server at most as long as the configuration says.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    pin::pin,
    rc::{Rc, Weak},
    time::Duration,
};

use atoll_mcp_client::{
    config::{Entry, Transport},
    http::Way,
    session::{Failure, Identity, Session, Told, told},
    wire::wire,
};
use atoll_plugin::{Error, clock, log};
use futures::{
    FutureExt as _,
    future::{Either, join, join_all, select, select_all},
};
use tokio::sync::{Notify, mpsc, watch};

use crate::{
    Answers, Catalog, Met,
    access::HowTo,
    asking::Asking,
    drive::Drive,
    greeting::Greetings,
    http::Address,
    pace::Pace,
    stdio::Program,
    trying::{Trying, signed_in},
};

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
    /// Another extension added it: it is asked whether that one may do what it needs.
    is_others: bool,
    pub(crate) drive: Drive,
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
    /// How long the first connection may wait, in milliseconds, for somebody to need it.
    leisure_ms: u64,
    /// Set once, when somebody does.
    hurry: watch::Sender<bool>,
    /// What it asks of us.
    pub(crate) asking: Asking,
    /// How it is greeted.
    greetings: Greetings,
    /// When it is tried again.
    trying: Trying,
}

/// The other end of a connection.
enum Far {
    Program(Program),
    Address(Address),
}

/// What all servers are connected to with.
#[derive(Clone)]
pub struct Surroundings {
    /// Where their tools go.
    pub catalog: Rc<dyn Catalog>,
    /// Who connects.
    pub identity: Identity,
    /// The user's home, which a `~` stands for.
    pub home: Option<String>,
    /// The name of the file of configuration that values are looked up for.
    pub file: String,
    /// Who answers what they ask; [`Identity::answers`] says whether there is somebody.
    pub answers: Option<Rc<dyn Answers>>,
    /// How a person signs in to one of them.
    pub how_to: HowTo,
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
            greetings: Greetings::of(&entry),
            trying: Trying::default(),
            name,
            entry,
            is_others: false,
            drive,
            instructions: RefCell::default(),
            state,
            needed: Cell::new(false),
            asked: Notify::new(),
            resting: Notify::new(),
            closing,
            leisure_ms: 0,
            hurry: watch::channel(false).0,
            asking: Asking::default(),
        }
    }

    /// The same, of another extension: it may do no more than what that one may do by itself.
    #[must_use]
    pub fn added_by_another(self) -> Self {
        Self { is_others: true, ..self }
    }

    /// The same, whose first connection waits so long, in milliseconds, unless somebody needs it: starting programs takes
    /// time from whatever else is done then.
    #[must_use]
    pub fn at_leisure(self, milliseconds: u64) -> Self {
        Self { leisure_ms: milliseconds, ..self }
    }

    /// Another one like it, which is not connected to.
    pub fn another(&self) -> Self {
        Self { is_others: self.is_others, ..Self::new(self.name.clone(), self.entry.clone(), self.drive.clone()) }
    }

    /// How it is.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Connects, serves, and does so again whenever it is needed, until the session ends.
    pub async fn live(self: Rc<Self>, around: Rc<Surroundings>) {
        let mut closing = self.closing.subscribe();
        self.leisure().await;
        loop {
            if *closing.borrow() {
                break;
            }
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
            if self.greetings.is_other() && !*closing.borrow() {
                continue;
            }
            match was_there {
                true => self.trying.was_there(),
                false => self.trying.failed(now_ms()),
            }
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
        let others = self.is_others.then_some(self.name.as_str());
        // What is shown to it now is what it may not want.
        let shown = signed_in(&self.name, &self.entry, &around.file).await;
        self.trying.wants_none();
        let far = match &self.entry.transport {
            Transport::Stdio(stdio) => Program::start(stdio, around, others).await.map(Far::Program),
            Transport::Http(http) => {
                Address::of(&self.name, http, self.entry.timeout, around, others).await.map(Far::Address)
            }
        };
        let far = match far {
            Ok(far) => far,
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
        // Each of the two ends soon after the other. The server's side is driven, too: what it says has to get to the client's
        // tasks.
        let serving = async {
            match &far {
                Far::Program(program) => program.serve(end, done).await,
                Far::Address(address) => address.serve(end, done).await,
            }
        };
        let ((), failure) = join(self.drive.run(serving), talking).await;
        if let Failure::OnTheWay { way: Way::SignIn, .. } = failure {
            self.trying.wants(shown);
        }
        let last_words = if let Far::Program(program) = &far { program.last_words() } else { String::new() };
        (was_there.get(), format!("{failure}{last_words}"))
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
            let opening = Session::open_in(self.greetings.era(), wire, around.identity.clone(), teller);
            let session = match self.in_time(opening).await {
                Ok(session) => Rc::new(session),
                Err(failure) => return self.greetings.refused(&self.entry, failure),
            };
            self.greetings.understood();
            *self.instructions.borrow_mut() = session.instructions().map(str::to_owned);
            let living = async {
                if let Err(failure) = self.list(&session, around).await {
                    return failure;
                }
                self.meet(&session, around, Met::Begun).await;
                around.catalog.settled(&self.name);
                was_there.set(true);
                self.state.send_replace(State::Connected(Rc::clone(&session)));
                self.meet(&session, around, Met::Prompts).await;
                self.watch(&session, around).await
            };
            let answering = self.asking.serve(&self.name, &session, around.answers.as_deref());
            match select(pin!(living), pin!(answering)).await {
                Either::Left((failure, _)) => failure,
                Either::Right(((), living)) => living.await,
            }
        };
        let (logging, talking) = (pin!(logging), pin!(talking));
        match select(talking, logging).await {
            Either::Left((failure, _)) => failure,
            Either::Right(((), talking)) => talking.await,
        }
    }

    /// Looks again at what the server says has changed, until the connection ends.
    async fn watch(&self, session: &Session, around: &Surroundings) -> Failure {
        let mut pace = Pace::default();
        loop {
            let changes = session.changes();
            let wait = pace.wait(now_ms());
            let tools = async move {
                if wait > 0 {
                    clock::sleep(wait).await;
                }
                changes.tools.notified().await;
                None
            };
            let tools = tools.boxed_local();
            let prompts = changes.prompts.notified().map(|()| Some(Met::Prompts)).boxed_local();
            let resources = changes.resources.notified().map(|()| Some(Met::Resources)).boxed_local();
            match select(select_all([tools, prompts, resources]), pin!(session.ended())).await {
                Either::Right(_) => return Failure::Closed,
                Either::Left(((Some(what), ..), _)) => self.meet(session, around, what).await,
                Either::Left(((None, ..), _)) => {
                    let began = now_ms();
                    let listed = self.list(session, around).await;
                    pace.looked(began, now_ms());
                    if let Err(failure) = listed {
                        log::write(
                            log::Level::Warn,
                            &format!("the server {}: its changed tools: {failure}", self.name),
                        );
                        if session.is_closed() {
                            return failure;
                        }
                    }
                }
            }
        }
    }

    /// Has the adapter look at what there is beside tools.
    async fn meet(&self, session: &Session, around: &Surroundings, what: Met) {
        let meeting = async {
            around.catalog.met(self, session, what).await;
            Ok(())
        };
        if let Err(failure) = self.in_time(meeting).await {
            log::write(log::Level::Warn, &format!("the server {}: what it has beside tools: {failure}", self.name));
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
    pub(crate) async fn in_time<T>(&self, request: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let (request, late) = (pin!(request), pin!(self.patience()));
        match select(request, late).await {
            Either::Left((given, _)) => given,
            Either::Right(_) => Err(Failure::Timeout),
        }
    }

    /// The time that may go by without anything of a server. While it waits for us, it does not.
    pub(crate) async fn patience(&self) {
        loop {
            self.asking.nothing().await;
            let (late, asked) = (pin!(clock::sleep(milliseconds(self.entry.timeout))), pin!(self.asking.something()));
            if let Either::Left(_) = select(late, asked).await {
                return;
            }
        }
    }

    /// What it had to say of how it is used when it was last connected to, where that is kept. What it says now counts.
    pub fn remember(&self, instructions: Option<String>) {
        let mut known = self.instructions.borrow_mut();
        if known.is_none() {
            *known = instructions;
        }
    }

    /// What it says of how it is used, if it was ever there.
    pub fn instructions(&self) -> Option<String> {
        self.instructions.borrow().clone()
    }

    /// Whether it is connected to.
    pub fn is_there(&self) -> bool {
        matches!(&*self.state.borrow(), State::Connected(_))
    }

    /// Returns when it is time for the first connection, or when the session ends.
    async fn leisure(&self) {
        if self.leisure_ms == 0 {
            return;
        }
        let (mut hurry, mut closing) = (self.hurry.subscribe(), self.closing.subscribe());
        let (needed, closed) = (pin!(hurry.wait_for(|hurry| *hurry)), pin!(closing.wait_for(|closing| *closing)));
        select(select(needed, closed), pin!(clock::sleep(self.leisure_ms))).await;
    }

    /// Waits until it is known whether the server is there. It is not connected to again.
    pub async fn known(&self) {
        self.hurry.send_replace(true);
        let mut state = self.state.subscribe();
        let _ = state.wait_for(|state| !matches!(state, State::Connecting)).await;
    }

    /// Whether it is being ended.
    pub fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Whether it could not be had, because it wants a person to sign in.
    pub fn wants_sign_in(&self) -> bool {
        matches!(&*self.state.borrow(), State::Failed(_) | State::Disconnected(_)) && self.trying.is_wanting()
    }

    /// Has it be connected to again, if it wanted a person to sign in, and somebody has, be it in another process. Nobody
    /// waits for it here. Whether it is.
    pub async fn notice_sign_in(&self, file: &str) -> bool {
        if !self.wants_sign_in() {
            return false;
        }
        let now = signed_in(&self.name, &self.entry, file).await;
        self.trying.is_signed_in(now) && self.connect_again()
    }

    /// Has it be connected to again, if it could not be had, and that was not just now. Nobody waits for it here. Whether it
    /// is.
    pub fn try_again(&self) -> bool {
        self.trying.may_again(now_ms()) && !self.trying.is_wanting() && self.connect_again()
    }

    fn connect_again(&self) -> bool {
        let has_failed = matches!(&*self.state.borrow(), State::Failed(_) | State::Disconnected(_));
        if has_failed && !self.is_closing() {
            // Whoever asks from here on waits for it.
            self.state.send_replace(State::Connecting);
            self.needed.set(true);
            self.asked.notify_one();
        }
        has_failed
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
        let answer = self.drive.run(session.ping());
        let (answer, late) = (pin!(answer), pin!(clock::sleep(milliseconds(within))));
        let there = match select(answer, late).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => Err(Failure::Timeout),
        };
        // One that says no is there.
        match there {
            Err(failure @ (Failure::Closed | Failure::Timeout | Failure::OnTheWay { .. })) => {
                if matches!(self.state(), State::Connected(now) if Rc::ptr_eq(&now, &session)) {
                    self.rest();
                }
                Err(failure)
            }
            _ => Ok(()),
        }
    }

    /// Waits until it is connected to.
    ///
    /// # Errors
    /// Why it can not be.
    pub async fn connect(&self) -> Result<(), Error> {
        self.session(None).await.map(drop)
    }

    /// The connection; where there is none any more, or only this one that has ended, a new one.
    pub(crate) async fn session(&self, ended: Option<&Weak<Session>>) -> Result<Rc<Session>, Error> {
        self.hurry.send_replace(true);
        let mut state = self.state.subscribe();
        let mut has_asked = false;
        loop {
            let now = state.borrow_and_update().clone();
            let has_ended = |session: &Rc<Session>| {
                session.is_closed() || ended.is_some_and(|ended| ended.ptr_eq(&Rc::downgrade(session)))
            };
            match now {
                State::Connected(session) if !has_ended(&session) => return Ok(session),
                State::Resting | State::Disconnected(_) | State::Failed(_) if !has_asked => {
                    has_asked = true;
                    self.needed.set(true);
                    self.asked.notify_one();
                }
                // What has ended is soon known to have.
                State::Connecting | State::Connected(_) | State::Resting => {}
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

    /// Ends it. Waits until nothing is left of it.
    pub async fn close(&self) {
        self.closing.send_replace(true);
        let mut state = self.state.subscribe();
        let _ = state.wait_for(|state| matches!(state, State::Closed)).await;
    }
}

fn now_ms() -> u64 {
    clock::monotonic() / 1_000_000
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Ends all of them at once. Waits until nothing is left of them.
pub async fn close_all(servers: &[Rc<Server>]) {
    join_all(servers.iter().map(|server| server.close())).await;
}
