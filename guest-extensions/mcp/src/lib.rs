//! The adapter for MCP servers: one instance connects to all of them, beside each other, and puts their tools into the
//! table.
//!
//! What can be told without calling an import is in `atoll-mcp-client`. Here is what calls them: a server that hangs, floods
//! or dies must hold up nobody but who waits for it.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail so"))]

mod kept;
mod offers;
mod prompts;
mod registry;
mod resources;
mod telling;

use std::{cell::Cell, rc::Rc};

use atoll_mcp_client::{
    config::{Configuration, Document, Place, Problem},
    exposure::Exposure,
    mentions::mentioned,
    result::shape,
    session::{Identity, Progress},
};
use atoll_mcp_connection::{
    Answers, Catalog,
    drive::Drive,
    person::Person,
    server::{Server, Surroundings, close_all},
    shown,
};
use atoll_plugin::{
    Content, Error, EventId, Exported as _, Extension, ToolOutput, clock, export_extension,
    extension::{Call, Event, Outcome, StartReason},
    host, log, progress, spawn_local, tools,
    types::{Subscription, Tool},
};
use futures::future::{join, join_all, select};
use serde_json::Value;

use offers::Offers;
use prompts::Prompts;
use telling::{Telling, activate};

/// How much of a result's text a model gets, in characters; the whole is in a file.
const MAX_TEXT: u32 = 20 * 1024;
/// How long the first prompt waits for servers whose tools are declared.
const FIRST_WAIT_MS: u64 = 10_000;
/// How long a call that may need servers waits for them. A handler that takes longer than it may blocks the call.
const LONGEST_WAIT_MS: u64 = 25_000;
/// How long a command waits for servers at its start, which may take 10 s in all.
const START_WAIT_MS: u64 = 8_000;

/// The tools whose calls may need any server, and the one whose text says which.
const SEARCH: &str = "tool_search";
const SCRIPTS: &str = "codemode";

struct Mcp {
    servers: Vec<Rc<Server>>,
    offers: Rc<Offers>,
    telling: Telling,
    /// Scripts may be switched on for servers.
    with_scripts: bool,
    /// The first prompt has been waited for.
    waited: Cell<bool>,
}

impl Extension for Mcp {
    async fn start(_: StartReason) -> Result<(Self, Subscription), Error> {
        let settings = host::settings();
        let path = "pluginSettings.mcp";
        let document = Document { place: Place::User, path, text: &settings };
        let Configuration { servers, problems, auto_enable_codemode } = Configuration::read(&[document]);
        for problem in &problems {
            log::write(log::Level::Warn, &Problem::to_string(problem));
        }
        let wanted = Subscription::new().event("session-start").event("before-agent-start").event("tool-call");
        let wanted = wanted.event("input");
        let (drive, offers, about) = (Drive::new()?, Rc::new(Offers::beside(wanted)), host::describe());
        let identity = Identity { name: "atoll".to_owned(), version: about.version, root: about.cwd, answers: true };
        let catalog = Rc::clone(&offers) as Rc<dyn Catalog>;
        let answers: Option<Rc<dyn Answers>> = Some(Rc::new(Person));
        let around = Rc::new(Surroundings { catalog, identity, home: None, answers });
        let enabled = servers.into_iter().filter(|server| server.entry.enabled);
        let servers: Vec<Rc<Server>> =
            enabled.map(|server| Rc::new(Server::new(server.name, server.entry, drive.clone()))).collect();
        offers.remember(&servers).await;
        for server in &servers {
            spawn_local(Rc::clone(server).live(Rc::clone(&around)));
        }
        if about.mode == host::Mode::Command {
            // A command calls at once what it names, and a script at once what it mentions.
            wait_for(&servers, START_WAIT_MS).await;
        }
        let wanted = offers.prompts.started();
        let with_scripts = auto_enable_codemode.unwrap_or(true);
        let (telling, waited) = (Telling::default(), Cell::new(false));
        Ok((Self { servers, offers, telling, with_scripts, waited }, wanted))
    }

    async fn on_event(&self, _: EventId, event: Event) -> Result<Outcome, Error> {
        match event {
            Event::ToolCall(call) => self.wait_for_unknown(self.needed_by(&call), LONGEST_WAIT_MS).await,
            Event::Input(input) => {
                let wait = async |some| self.wait_for_unknown(some, LONGEST_WAIT_MS).await;
                return self.offers.prompts.typed(&input, &self.servers, wait).await;
            }
            Event::Other(other) if other.name == "session-start" => {
                activate(&self.servers, self.with_scripts).await;
                self.telling.tell(&self.servers).await;
            }
            Event::Other(other) if other.name == "before-agent-start" => {
                if !self.waited.replace(true) {
                    let is_declared = |server: &&Rc<Server>| server.entry.exposure.could_be(Exposure::Direct);
                    let declared: Vec<Rc<Server>> = self.servers.iter().filter(is_declared).map(Rc::clone).collect();
                    self.wait_for_unknown(declared, FIRST_WAIT_MS).await;
                }
                self.telling.tell(&self.servers).await;
            }
            Event::ToolResult(_) | Event::Bus(_) | Event::Other(_) => {}
        }
        Ok(Outcome::Pass)
    }

    async fn command(&self, _: EventId, name: &str, arguments: &str) -> Result<(), Error> {
        match Prompts::is_one(name) {
            true => self.offers.prompts.run(name, arguments, &self.servers).await,
            false => Err(Error::not_found(format!("There is no command {name}."))),
        }
    }

    async fn stop(&self) {
        join(close_all(&self.servers), self.offers.known.keep()).await;
    }
}

export_extension!(Mcp);

impl Mcp {
    /// The servers that a call may need, beside those whose tools it is.
    fn needed_by(&self, call: &Call) -> Vec<Rc<Server>> {
        let names = || self.servers.iter().map(|server| server.name.as_str());
        let needed: Vec<&str> = match call.tool.as_str() {
            SEARCH => names().collect(),
            tool if resources::is_one(tool) => names().collect(),
            SCRIPTS => {
                let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
                mentioned(arguments["code"].as_str().unwrap_or_default(), names())
            }
            _ => return Vec::new(),
        };
        self.servers.iter().filter(|server| needed.contains(&server.name.as_str())).map(Rc::clone).collect()
    }
}

impl Mcp {
    /// Waits for those of these of which it is not known yet what they have.
    async fn wait_for_unknown(&self, mut servers: Vec<Rc<Server>>, milliseconds: u64) {
        servers.retain(|server| !self.offers.knows(&server.name));
        wait_for(&servers, milliseconds).await;
    }
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
        progress::shape(&call.id, MAX_TEXT, false);
        if resources::is_one(&call.tool) {
            let given = adapter.offers.resources.call(&call.tool, &arguments, &adapter.servers).await?;
            return Ok(output(shown::content(given.pieces), &given.whole, false));
        }
        let source = adapter.offers.registry.source(&call.tool);
        let found = source.and_then(|source| {
            let server = adapter.servers.iter().find(|server| server.name == source.server)?;
            Some((source.tool, Rc::clone(server)))
        });
        let Some((tool, server)) = found else {
            return Err(Error::not_found(format!("The tool {} is not offered by its server any more.", call.tool)));
        };
        let (unwanted, id) = (progress::cancelled(call.id.clone()), call.id.clone());
        let on_progress = move |step: Progress| progress::update(&id, &[Content::Text(shown::step(&step))], None);
        let result = server.call(&tool, arguments, unwanted, on_progress).await?;
        let shaped = shape(&server.name, &tool, result);
        Ok(output(shown::content(shaped.pieces), &shaped.whole, shaped.is_error))
    }
}

fn output(content: Vec<Content>, whole: &Value, is_error: bool) -> ToolOutput {
    ToolOutput { content, details: None, structured: Some(whole.to_string()), is_error, terminate: false, usage: None }
}

tools::export!(Tools);
