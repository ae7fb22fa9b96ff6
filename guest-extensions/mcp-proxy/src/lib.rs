//! The other adapter for MCP servers: one tool, `mcp`, that searches, describes and calls those of all servers, so that
//! what the model is told does not grow with them.
//!
//! What can be told without calling an import is in modules of its own, and tested natively. A server that hangs, floods or
//! dies must hold up nobody but who waits for it.

#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "a test may fail so"
    )
)]

mod answers;
mod catalog;
mod gateway;
mod keeping;
mod kept;
mod lifecycle;
mod one;
mod output;
mod prefix;
mod search;
mod settings;
mod shape;
mod shared;
mod signing;
mod tools;

use std::{cell::Cell, rc::Rc};

use atoll_mcp_client::{
    config::{Document, Place, Problem, Severity},
    session::Identity,
};
use atoll_mcp_connection::{drive::Drive, person::Person, server::Surroundings};
use atoll_plugin::{
    Error, EventId, Exported as _, Extension, ToolOutput, clock, config, export_extension,
    extension::{Event, Outcome, StartReason},
    host, log, spawn_local, table, tools as export,
    types::{Subscription, Tool},
    ui,
};
use futures::future::{join_all, select};
use serde_json::Value;
use tokio::sync::Semaphore;

use kept::Stale;
use one::{CHECKS_AT_ONCE, One};
use settings::Direct;
use shared::Shared;
use signing::Signing;

/// The file of servers.
const FILE: &str = "mcp.json";
/// How long the first prompt waits for servers whose tools are declared and not known.
const FIRST_WAIT_MS: u64 = 10_000;
/// How long a command waits for servers at its start, which may take 10 s in all.
const START_WAIT_MS: u64 = 8_000;

struct Proxy {
    servers: Vec<Rc<One>>,
    shared: Rc<Shared>,
    signing: Signing,
    /// The first prompt has been waited for.
    waited: Cell<bool>,
}

impl Extension for Proxy {
    async fn start(_: StartReason) -> Result<(Self, Subscription), Error> {
        let settings::Read { servers, settings, problems } = configuration().await;
        for problem in &problems {
            let level = if problem.severity == Severity::Error { log::Level::Warn } else { log::Level::Info };
            say(level, &Problem::to_string(problem));
        }
        let about = host::describe();
        let is_command = about.mode == host::Mode::Command;
        // What others have called their tools is not taken from them.
        let others = table::list().await.unwrap_or_default();
        let others = others.into_iter().filter(|entry| entry.plugin != about.plugin).map(|entry| entry.tool.name);
        let shared = Rc::new(Shared::new(servers, settings, others.collect(), !is_command));
        let is_first = shared.is_first().await;
        let drive = Drive::new()?;
        let identity = Identity { name: "atoll".to_owned(), version: about.version, root: about.cwd, answers: true };
        let around = Rc::new(Surroundings {
            catalog: Rc::clone(&shared) as _,
            identity,
            home: host::home(),
            file: FILE.to_owned(),
            answers: Some(Rc::new(Person)),
            how_to: if shared.settings.no_gateway { signing::by_command } else { signing::by_gateway },
        });
        let checks = Rc::new(Semaphore::new(CHECKS_AT_ONCE));
        let mut all = Vec::new();
        for server in &shared.servers {
            let known = shared.remember(server).await;
            let begins = match known {
                // A command that needs one of them connects to it.
                Ok(()) => server.lifecycle.begins() && !is_command,
                Err(Stale::Missing) => is_first || server.lifecycle.begins(),
                // What was known is wrong or too old: whoever looks for its tools must not find that there are none.
                Err(Stale::Changed | Stale::Old) => true,
            };
            let one = Rc::new(One::new(server.clone(), begins, shared.settings.check_ms, drive.clone()));
            shared.tells(&one);
            all.push(one);
        }
        shared.settle().await;
        for one in &all {
            spawn_local(Rc::clone(&one.server).live(Rc::clone(&around)));
            spawn_local(Rc::clone(one).mind(Rc::clone(&checks)));
        }
        if is_command {
            wait_for(&all, START_WAIT_MS).await;
        }
        let wanted = Subscription::new()
            .event("before-agent-start")
            // Whoever connects to servers hears of those that others add; and there is one such extension.
            .event("mcp-servers-change")
            .command(gateway::NAME, "Says how it is with the MCP servers, and signs in to them.");
        Ok((Self { servers: all, shared, signing: Signing::new(around), waited: Cell::new(false) }, wanted))
    }

    async fn on_event(&self, _: EventId, event: Event) -> Result<Outcome, Error> {
        let Event::Other(other) = event else { return Ok(Outcome::Pass) };
        if other.name == "mcp-servers-change" {
            let fields: Value = other.read()?;
            for server in fields["servers"].as_array().into_iter().flatten() {
                let name = &server["name"];
                say(
                    log::Level::Warn,
                    &format!(
                        "the server {name}, which an extension adds, is not connected to: mcp-proxy has those of mcp.json"
                    ),
                );
            }
        }
        if other.name == "before-agent-start" && !self.waited.replace(true) {
            let is_declared = |one: &&Rc<One>| matches!(one.proxied.direct, Direct::All | Direct::These(_));
            let declared: Vec<Rc<One>> = self.servers.iter().filter(is_declared).map(Rc::clone).collect();
            wait_for(&declared, FIRST_WAIT_MS).await;
            self.shared.freeze();
        }
        Ok(Outcome::Pass)
    }

    async fn command(&self, _: EventId, _: &str, arguments: &str) -> Result<(), Error> {
        match arguments.split_whitespace().collect::<Vec<_>>()[..] {
            [] | ["list"] => host::print(&self.shared.status(&self.servers)),
            ["login", server] => self.signing.login(self.shared.named(&self.servers, server)?).await?,
            ["logout", server] => self.signing.logout(self.shared.named(&self.servers, server)?).await?,
            _ => {
                return Err(Error::invalid_arguments(
                    "/mcp says how it is with the servers, /mcp login SERVER and /mcp logout SERVER sign in and out; servers \
                     are added in mcp.json",
                ));
            }
        }
        Ok(())
    }

    async fn stop(&self) {
        self.signing.close();
        let closing = self.servers.iter().map(|one| one.server.close());
        join_all(closing).await;
    }
}

export_extension!(Proxy);

/// Waits until it is known which tools these have, or for so long.
async fn wait_for(servers: &[Rc<One>], milliseconds: u64) {
    if servers.is_empty() {
        return;
    }
    let known = join_all(servers.iter().map(|one| one.known()));
    select(std::pin::pin!(known), std::pin::pin!(clock::sleep(milliseconds))).await;
}

/// What the files say. Without any there are no servers.
async fn configuration() -> settings::Read {
    let files = match config::read(FILE.to_owned()).await {
        Ok(files) => files,
        Err(error) => {
            say(log::Level::Warn, &error.message());
            Vec::new()
        }
    };
    let place = |place| match place {
        config::Place::User => Place::User,
        config::Place::Project => Place::Project,
    };
    let documents: Vec<Document<'_>> = (files.iter())
        .filter(|file| file.trusted)
        .map(|file| Document { place: place(file.place), path: &file.path, text: &file.text })
        .collect();
    settings::read(&documents)
}

/// Says something to the person, and in the log.
fn say(level: log::Level, text: &str) {
    log::write(level, text);
    let tone = if level == log::Level::Info { ui::Tone::Info } else { ui::Tone::Warning };
    ui::notify(text, tone);
}

struct Calls;

impl export::Guest for Calls {
    fn list_tools() -> Vec<Tool> {
        Vec::new()
    }

    fn prepare(tool: String, _: String) -> Result<String, Error> {
        Err(Error::not_found(tool))
    }

    async fn call(call: export::Invocation) -> Result<ToolOutput, Error> {
        let Some(proxy) = Proxy::instance() else { return Err(Error::unavailable("It has not been started.")) };
        let Ok(Value::Object(arguments)) = serde_json::from_str(&call.arguments) else {
            return Err(Error::invalid_arguments("The arguments have to be an object."));
        };
        proxy.shared.call(&proxy.servers, &proxy.signing, &call, arguments).await
    }
}

export::export!(Calls);
