//! The adapter for MCP servers: one instance connects to all of them, beside each other, and puts their tools into the
//! table.
//!
//! What can be told without calling an import is in `atoll-mcp-client`. Here is what calls them: a server that hangs, floods
//! or dies must hold up nobody but who waits for it.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail so"))]

mod calls;
mod commands;
mod files;
mod kept;
mod offers;
mod pool;
mod prompts;
mod registered;
mod registry;
mod resources;
mod telling;

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use atoll_mcp_client::{
    config::{Configuration, Severity},
    exposure::Exposure,
    mentions::mentioned,
    result::shape,
    session::{Identity, Progress},
};
use atoll_mcp_connection::{
    Answers, Catalog,
    drive::Drive,
    person::Person,
    server::{Server, State, Surroundings},
    shown,
};
use atoll_plugin::{
    Content, Error, EventId, Exported as _, Extension, ToolOutput, clock, export_extension,
    extension::{Call, Event, Outcome, StartReason},
    host, log, progress, servers, tools,
    types::{Subscription, Tool},
    ui,
};
use futures::future::{join, join_all, select};
use serde_json::Value;
use tokio::sync::Mutex;

use calls::Calls;
use files::{FILE, Files};
use offers::Offers;
use pool::Pool;
use prompts::Prompts;
use registered::Registered;
use telling::Telling;

/// How long the first prompt waits for servers whose tools are declared.
const FIRST_WAIT_MS: u64 = 10_000;
/// How long a call that may need servers waits for them. A handler that takes longer than it may blocks the call.
const LONGEST_WAIT_MS: u64 = 25_000;

/// The tools whose calls may need any server, and the one whose text says which.
const SEARCH: &str = "tool_search";
const SCRIPTS: &str = "codemode";

struct Mcp {
    /// What the files say, and what is wrong with them.
    configuration: Configuration,
    /// What other extensions have added.
    registered: RefCell<Registered>,
    /// The servers that are there, or will be.
    pool: Pool,
    offers: Rc<Offers>,
    telling: Telling,
    /// Held while changes of what other extensions have added are followed.
    following: Mutex<()>,
    /// The servers of the files have been connected to, or are being.
    connected: Cell<bool>,
    /// Calls of tools under way.
    calls: Calls,
    /// The first prompt has been waited for.
    waited: Cell<bool>,
}

impl Extension for Mcp {
    async fn start(_: StartReason) -> Result<(Self, Subscription), Error> {
        let (about, is_for_command) = (host::describe(), host::wanted_command().is_some());
        // A file that can not be read must not keep away what repairs it.
        let configuration = match Files::read().await {
            Ok(files) => files.configuration(),
            Err(error) => Configuration::unreadable(error.message()),
        };
        let wanted = Subscription::new()
            .event("session-start")
            .event("before-agent-start")
            .event("turn-start")
            .event("input")
            .event("mcp-servers-change")
            .command(commands::NAME, "Shows MCP servers, and changes which there are.");
        // Those of all other tools need not wait for it.
        let wanted = [SEARCH, SCRIPTS]
            .iter()
            .chain(&resources::TOOLS)
            .fold(wanted, |wanted, tool| wanted.event(&format!("tool-call:{tool}")));
        if !servers::list().is_empty() {
            // What another extension may do is told to nobody but who has said so before.
            host::subscribe(wanted.clone()).await?;
        }
        let offers = Rc::new(Offers::beside(wanted));
        let answers: Option<Rc<dyn Answers>> = Some(Rc::new(Person));
        let around = Surroundings {
            catalog: Rc::clone(&offers) as Rc<dyn Catalog>,
            identity: Identity { name: "atoll".to_owned(), version: about.version, root: about.cwd, answers: true },
            home: host::home(),
            file: FILE.to_owned(),
            answers,
            how_to: |server| format!("`atoll mcp login {server}` signs in, in a session `/mcp login {server}` does"),
        };
        let adapter = Self {
            configuration,
            registered: RefCell::default(),
            pool: Pool::new(Drive::new()?, around, Rc::clone(&offers), about.mode == host::Mode::Command),
            offers,
            telling: Telling::default(),
            following: Mutex::default(),
            connected: Cell::new(false),
            calls: Calls::default(),
            waited: Cell::new(false),
        };
        if !is_for_command {
            for problem in &adapter.configuration.problems {
                let level = if problem.severity == Severity::Error { log::Level::Warn } else { log::Level::Info };
                say(level, &problem.to_string());
            }
            adapter.connect().await;
        }
        let wanted = adapter.offers.prompts.started();
        Ok((adapter, wanted))
    }

    async fn on_event(&self, _: EventId, event: Event) -> Result<Outcome, Error> {
        match event {
            Event::ToolCall(call) => self.wait_for_unknown(self.needed_by(&call), LONGEST_WAIT_MS).await,
            Event::Input(input) => {
                return self.offers.prompts.typed(&input, &self.pool.all(), LONGEST_WAIT_MS).await;
            }
            Event::Other(other) if other.name == "session-start" => self.tell().await,
            Event::Other(other) if other.name == "mcp-servers-change" => {
                self.follow().await;
                self.tell().await;
            }
            Event::Other(other) if other.name == "turn-start" => self.pool.notice_sign_ins(&self.pool.all()).await,
            Event::Other(other) if other.name == "before-agent-start" => {
                if !self.waited.replace(true) {
                    self.wait_for_declared().await;
                }
                self.telling.tell(&self.pool.all()).await;
            }
            Event::ToolResult(_) | Event::Bus(_) | Event::Other(_) => {}
        }
        Ok(Outcome::Pass)
    }

    async fn command(&self, _: EventId, name: &str, arguments: &str) -> Result<(), Error> {
        match Prompts::is_one(name) {
            true => self.offers.prompts.run(name, arguments, &self.pool.all()).await,
            false => commands::run(self, arguments).await,
        }
    }

    async fn stop(&self) {
        self.calls.settle().await;
        join(self.pool.close(), self.offers.known.keep()).await;
    }
}

export_extension!(Mcp);

impl Mcp {
    /// Connects to what the files and other extensions have, unless that was begun.
    async fn connect(&self) {
        if self.connected.replace(true) {
            return;
        }
        let enabled = self.configuration.servers.iter().filter(|server| server.entry.enabled);
        let mut all: Vec<Server> = enabled.map(|server| self.pool.made(server)).collect();
        let (new, _) = self.take_registered();
        all.extend(new);
        self.pool.begin(all).await;
    }

    /// What other extensions have added since it was looked at, and the names of what is gone or has become something else.
    fn take_registered(&self) -> (Vec<Server>, Vec<String>) {
        let now = Registered::read(&self.configuration);
        let before = self.registered.replace(now);
        let now = self.registered.borrow();
        for problem in now.problems.iter().filter(|problem| !before.problems.contains(problem)) {
            say(log::Level::Warn, problem);
        }
        let is_among = |all: &Registered, name: &str, config: &Value| {
            all.servers.iter().any(|(known, is)| known.name == name && is == config)
        };
        let new = now
            .servers
            .iter()
            .filter(|(server, config)| server.entry.enabled && !is_among(&before, &server.name, config));
        let new = new.map(|(server, _)| self.pool.made(server).added_by_another()).collect();
        let gone = before.servers.iter().filter(|(server, config)| !is_among(&now, &server.name, config));
        (new, gone.map(|(server, _)| server.name.clone()).collect())
    }

    /// Has those that other extensions have added, and no others of theirs.
    async fn follow(&self) {
        if !self.connected.get() {
            return;
        }
        // One change after the other, or what comes and goes at once might stay.
        let _turn = self.following.lock().await;
        let (new, gone) = self.take_registered();
        for name in gone {
            self.pool.end(&name).await;
        }
        self.pool.begin(new).await;
    }

    /// Has the model know of the servers, and have what reaches their tools.
    async fn tell(&self) {
        let servers = self.pool.all();
        self.telling.activate(&servers, self.configuration.auto_enable_codemode.unwrap_or(true)).await;
        self.telling.tell(&servers).await;
    }

    /// The servers that a call may need, beside those whose tools it is.
    fn needed_by(&self, call: &Call) -> Vec<Rc<Server>> {
        let mut servers = self.pool.all();
        let names = || servers.iter().map(|server| server.name.as_str());
        let needed: Vec<String> = match call.tool.as_str() {
            SEARCH => return servers,
            tool if resources::is_one(tool) => return servers,
            SCRIPTS => {
                let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
                let mentioned = mentioned(arguments["code"].as_str().unwrap_or_default(), names());
                mentioned.into_iter().map(str::to_owned).collect()
            }
            _ => return Vec::new(),
        };
        servers.retain(|server| needed.contains(&server.name));
        servers
    }

    /// Waits for those of these of which it is not known yet what they have. Those that could not be had are tried again.
    async fn wait_for_unknown(&self, mut servers: Vec<Rc<Server>>, milliseconds: u64) {
        servers.retain(|server| !self.offers.knows(&server.name));
        self.pool.notice_sign_ins(&servers).await;
        self.pool.try_again(&servers);
        wait_for(&servers, milliseconds).await;
    }

    /// Waits for servers whose tools are declared to the model. Who does not come in time is named once.
    async fn wait_for_declared(&self) {
        let mut servers = self.pool.all();
        servers.retain(|server| server.entry.exposure.could_be(Exposure::Direct) && !self.offers.knows(&server.name));
        wait_for(&servers, FIRST_WAIT_MS).await;
        let is_late = |server: &&Rc<Server>| matches!(server.state(), State::Connecting);
        let late: Vec<&str> = servers.iter().filter(is_late).map(|server| server.name.as_str()).collect();
        if let [_, ..] = late.as_slice() {
            let (names, seconds) = (late.join(", "), FIRST_WAIT_MS / 1_000);
            say(
                log::Level::Info,
                &format!(
                    "MCP servers that have not answered for {seconds} s: {names}; the model is asked without their tools, which \
                     are declared once they are there"
                ),
            );
        }
    }
}

/// Says something to whoever reads the log, and to the person.
fn say(level: log::Level, text: &str) {
    log::write(level, text);
    let tone = if level == log::Level::Info { ui::Tone::Info } else { ui::Tone::Warning };
    ui::notify(text, tone);
}

/// Waits until it is known whether these are there, or for so long.
async fn wait_for(servers: &[Rc<Server>], milliseconds: u64) {
    if servers.is_empty() {
        return;
    }
    let known = join_all(servers.iter().map(|server| server.known()));
    select(std::pin::pin!(known), std::pin::pin!(clock::sleep(milliseconds))).await;
}

struct Tools;

impl tools::Guest for Tools {
    fn list_tools() -> Vec<Tool> {
        Vec::new()
    }

    fn prepare(tool: String, _: String) -> Result<String, Error> {
        Err(Error::not_found(tool))
    }

    async fn call(call: tools::Invocation) -> Result<ToolOutput, Error> {
        let Some(adapter) = Mcp::instance() else { return Err(Error::unavailable("It has not been started.")) };
        let Ok(Value::Object(arguments)) = serde_json::from_str(&call.arguments) else {
            return Err(Error::invalid_arguments("The arguments have to be an object."));
        };
        if resources::is_one(&call.tool) {
            let given = adapter.offers.resources.call(&call.tool, &arguments, &adapter.pool.all()).await?;
            return Ok(output(&call.id, shown::content(given.pieces), &given.whole, false));
        }
        let source = adapter.offers.registry.source(&call.tool);
        let found = source.and_then(|source| {
            let server = adapter.pool.all().into_iter().find(|server| server.name == source.server)?;
            Some((source.tool, server))
        });
        let Some((tool, server)) = found else {
            return Err(Error::not_found(format!("The tool {} is not offered by its server any more.", call.tool)));
        };
        let (unwanted, id) = (progress::cancelled(call.id.clone()), call.id.clone());
        let on_progress = move |step: Progress| progress::update(&id, &[Content::Text(shown::step(&step))], None);
        let result = adapter.calls.run(server.call(&tool, arguments, unwanted, on_progress)).await?;
        let shaped = shape(&server.name, &tool, result);
        Ok(output(&call.id, shown::content(shaped.pieces), &shaped.whole, shaped.is_error))
    }
}

/// The result of a call.
fn output(call: &str, content: Vec<Content>, whole: &Value, is_error: bool) -> ToolOutput {
    shown::cut(call, &content);
    ToolOutput { content, details: None, structured: Some(whole.to_string()), is_error, terminate: false, usage: None }
}

tools::export!(Tools);
