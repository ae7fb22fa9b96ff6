//! What all servers share: what is known of them, the tools in the table, and what these do.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
    rc::Rc,
};

use atoll_mcp_client::{
    session::{Failure, Progress, Session},
    tool::ServerTool,
};
use atoll_mcp_connection::{Catalog as Listener, Met, server::Server, shown};
use atoll_plugin::{Content, Error, ToolOutput, log, progress, store, tools as export};
use futures::{FutureExt as _, future::LocalBoxFuture};
use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::{
    answers::{self, Standing},
    catalog::{Catalog, Found, Item},
    gateway::{self, Request},
    keeping,
    kept::{self, Kept, Resource, Stale},
    one::One,
    output, prefix, say,
    settings::{Direct, Proxied, Settings},
    signing::Signing,
    tools::{Stands, Tools},
};

/// Names of tools that servers' tools do not get: what they do is told by their names alone.
const RESERVED: [&str; 4] = [gateway::NAME, "list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"];
/// How many declared tools are many.
const MANY: usize = 75;
/// The most pages of resources.
const MAX_PAGES: usize = 100;
/// The most resources of a server that are tools.
const MAX_RESOURCES: usize = 1_000;

/// What all servers share.
pub(crate) struct Shared {
    pub(crate) servers: Vec<Proxied>,
    pub(crate) settings: Settings,
    /// Names of tools that others have.
    others: HashSet<String>,
    /// Names that no tool of a server gets, for others of this adapter or of its kind are called so: what is called by them
    /// must not be a server's to choose.
    reserved: HashSet<String>,
    catalog: RefCell<Catalog>,
    /// What was listed last of each server, with its name.
    listed: RefCell<HashMap<String, Kept>>,
    tools: Tools,
    /// Told, by server, once all is known of it.
    settling: RefCell<HashMap<String, Rc<watch::Sender<bool>>>>,
    /// The table is not changed any more.
    frozen: Cell<bool>,
    /// How many tools it was said that there is no room for.
    left: Cell<usize>,
    /// It was said that many are declared, or nobody is to be told.
    advised: Cell<bool>,
    /// Those of whose connection all is known, how long that holds included.
    met: RefCell<HashSet<String>>,
}

impl Shared {
    /// `others`: the names of tools that others have. `advises`: there is somebody who may be told what would be better.
    pub(crate) fn new(servers: Vec<Proxied>, settings: Settings, others: HashSet<String>, advises: bool) -> Self {
        let names = || servers.iter().map(|server| server.name.as_str());
        let mut namespaces = prefix::namespaces(names());
        for name in namespaces.values_mut() {
            *name = name.take().filter(|name| !others.contains(name));
        }
        let reserved = RESERVED.into_iter().map(str::to_owned).chain(names().map(prefix::of_namespace)).collect();
        Self {
            catalog: RefCell::new(Catalog::new(names().map(str::to_owned))),
            tools: Tools::new(namespaces),
            servers,
            settings,
            others,
            reserved,
            listed: RefCell::default(),
            settling: RefCell::default(),
            frozen: Cell::new(false),
            left: Cell::default(),
            advised: Cell::new(!advises),
            met: RefCell::default(),
        }
    }

    /// Tells this one once all is known of its server.
    pub(crate) fn tells(&self, one: &One) {
        self.settling.borrow_mut().insert(one.proxied.name.clone(), Rc::clone(&one.settled));
    }

    /// Whether there was no session before this one.
    pub(crate) async fn is_first(&self) -> bool {
        if !matches!(store::get(kept::BEGUN.to_owned()).await, Ok(None)) {
            return false;
        }
        let _: Result<(), Error> = store::set(kept::BEGUN.to_owned(), b"yes".to_vec()).await;
        true
    }

    /// Takes in what was kept of a server.
    ///
    /// # Errors
    /// Why there is nothing.
    pub(crate) async fn remember(&self, server: &Proxied) -> Result<(), Stale> {
        let kept = keeping::read(server).await?;
        self.take_in(server, kept);
        Ok(())
    }

    fn take_in(&self, server: &Proxied, kept: Kept) {
        // What is not in the table may be called as others' tools there are.
        let is_in_table = server.direct != Direct::None;
        let is_taken = |name: &str| self.reserved.contains(name) || (is_in_table && self.others.contains(name));
        self.catalog.borrow_mut().put(server, self.settings.prefix, &kept, is_taken);
        self.listed.borrow_mut().insert(server.name.clone(), kept);
    }

    /// Takes in what a server has listed, and has the table say so. It is kept once it is known how long it holds. Gives a
    /// line for each thing that can not be had.
    async fn have(&self, server: &Proxied, kept: Kept) -> Vec<String> {
        if self.listed.borrow().get(&server.name) != Some(&kept) {
            self.take_in(server, kept.clone());
        }
        let mut lost = self.settle_now().await;
        if self.met.borrow().contains(&server.name) {
            lost.extend(keeping::write(server, &kept, &self.servers).await.err());
        }
        lost
    }

    /// Takes in what a server has beside its tools, and how long it holds. Where the resources can not be had they are those
    /// of before.
    async fn have_more(&self, server: &Proxied, resources: Option<Vec<Resource>>, ttl_ms: Option<u64>) {
        let is_first = self.met.borrow_mut().insert(server.name.clone());
        let before = self.listed.borrow().get(&server.name).cloned().unwrap_or_default();
        let resources = resources.unwrap_or_else(|| before.resources.clone());
        if is_first || before.resources != resources || before.ttl_ms != ttl_ms {
            for why in self.have(server, Kept { resources, ttl_ms, ..before }).await {
                log::write(log::Level::Warn, &format!("the server {}: {why}", server.name));
            }
        }
    }

    /// Has the tools in the table that there are to be.
    pub(crate) async fn settle(&self) {
        for why in self.settle_now().await {
            log::write(log::Level::Warn, &why);
        }
    }

    async fn settle_now(&self) -> Vec<String> {
        if self.frozen.get() {
            return Vec::new();
        }
        let settled = self.tools.settle(&self.servers, &self.settings, &self.catalog).await;
        if settled.left > 0 && self.left.replace(settled.left) != settled.left {
            let text = format!(
                "{} tools of servers are left to {}: there is no room for more in the table; includeTools says which to have",
                settled.left,
                gateway::NAME
            );
            say(log::Level::Warn, &text);
        }
        if settled.declared >= MANY && !self.advised.replace(true) {
            let text = format!(
                "{} tools of servers are declared to the model, which costs their size with every request; \"directTools\": \
                 \"search\" declares those that a search finds",
                settled.declared
            );
            say(log::Level::Info, &text);
        }
        settled.lost
    }

    /// From here on the table stays as it is, if the configuration says so.
    pub(crate) fn freeze(&self) {
        self.frozen.set(self.settings.frozen);
    }

    fn proxied(&self, name: &str) -> Option<&Proxied> {
        self.servers.iter().find(|server| server.name == name)
    }

    fn told<'a>(&'a self, servers: &'a [Rc<One>]) -> Vec<answers::Server<'a>> {
        let told = servers.iter().map(|one| answers::Server {
            name: &one.proxied.name,
            description: one.proxied.entry.description.as_deref(),
            standing: one.standing(),
            namespace: self.tools.namespace_of(&one.proxied.name),
        });
        told.collect()
    }

    /// Which servers there are, and how it is with them.
    pub(crate) fn status(&self, servers: &[Rc<One>]) -> String {
        answers::status(&self.told(servers), &self.catalog.borrow())
    }

    /// Carries out a call of one of the tools in the table.
    ///
    /// # Errors
    /// Why it can not be.
    pub(crate) async fn call(
        &self,
        servers: &[Rc<One>],
        signing: &Signing,
        call: &export::Invocation,
        arguments: Map<String, Value>,
    ) -> Result<ToolOutput, Error> {
        match self.tools.stands_for(&call.tool) {
            Some(Stands::Gateway) => self.gateway(servers, signing, call, &arguments).await,
            Some(Stands::Namespace(server)) => {
                let tool = arguments.get("tool").and_then(Value::as_str).unwrap_or_default();
                let given = gateway::arguments(arguments.get("args")).map_err(Error::invalid_arguments)?;
                let (server, item) = self.meant(servers, tool, Some(&server))?;
                self.carry_out(servers, call, &server, &item, given, true).await
            }
            Some(Stands::Direct(server)) => {
                let (server, item) = self.meant(servers, &call.tool, Some(&server))?;
                self.carry_out(servers, call, &server, &item, arguments, false).await
            }
            None => Err(Error::not_found(format!("The tool {} is not offered by its server any more.", call.tool))),
        }
    }

    async fn gateway(
        &self,
        servers: &[Rc<One>],
        signing: &Signing,
        call: &export::Invocation,
        asked: &Map<String, Value>,
    ) -> Result<ToolOutput, Error> {
        let (request, server) = gateway::read(asked).map_err(Error::invalid_arguments)?;
        let server = server.map(|name| self.server(servers, &name)).transpose()?;
        let server = server.as_deref();
        let text = match request {
            Request::Status => self.status(servers),
            Request::Call { tool, arguments } => {
                let (server, item) = self.meant(servers, &tool, server)?;
                return self.carry_out(servers, call, &server, &item, arguments, true).await;
            }
            Request::Describe(tool) => {
                let (server, item) = self.meant(servers, &tool, server)?;
                answers::describe(&server, &item)
            }
            Request::Connect(name) => {
                let one = self.named(servers, &name)?;
                one.connect().await?;
                self.search(servers, &gateway::Search::of_all(), Some(&one.proxied.name)).await?
            }
            Request::Instructions(name) => {
                let name = self.server(servers, &name)?;
                let one = self.one(servers, &name)?;
                // Who was never there has said nothing yet.
                if self.catalog.borrow().of(&name).is_none() {
                    one.connect().await?;
                }
                let catalog = self.catalog.borrow();
                answers::instructions(&name, catalog.of(&name).and_then(|known| known.instructions.as_deref()))
            }
            Request::Start(name) => signing.start(self.named(servers, &name)?).await?,
            Request::Complete(name, came) => signing.complete(self.named(servers, &name)?, &came).await?,
            Request::Search(search) => self.search(servers, &search, server).await?,
        };
        let output = ToolOutput::text(text);
        shown::cut(&call.id, &output.content);
        Ok(output)
    }

    async fn search(
        &self,
        servers: &[Rc<One>],
        search: &gateway::Search,
        server: Option<&str>,
    ) -> Result<String, Error> {
        let found = answers::found(search, server, &self.catalog.borrow());
        let direct = |server: &str| self.proxied(server).map(|server| &server.direct);
        // To look at what there is switches nothing on.
        if !search.query.is_empty() {
            let fresh = found.0.iter().filter(|(server, _)| direct(server) == Some(&Direct::Search));
            self.tools.declare(fresh.map(|(_, item)| item.name.clone()).collect()).await?;
        }
        let is_declared = |server: &str, item: &Item| {
            let is_there = matches!(self.tools.stands_for(&item.name), Some(Stands::Direct(_)));
            is_there && (direct(server) != Some(&Direct::Search) || self.tools.is_found(&item.name))
        };
        Ok(answers::search(search, server, &self.told(servers), &self.catalog.borrow(), &found, is_declared))
    }

    /// A server by its name.
    fn server(&self, servers: &[Rc<One>], name: &str) -> Result<String, Error> {
        let catalog = self.catalog.borrow();
        let found = catalog.server(name).map(str::to_owned);
        found.ok_or_else(|| Error::not_found(answers::no_server(name, &catalog, &self.told(servers))))
    }

    /// The same, with its connection.
    ///
    /// # Errors
    /// There is none of that name.
    pub(crate) fn named<'a>(&self, servers: &'a [Rc<One>], name: &str) -> Result<&'a Rc<One>, Error> {
        self.one(servers, &self.server(servers, name)?)
    }

    fn one<'a>(&self, servers: &'a [Rc<One>], name: &str) -> Result<&'a Rc<One>, Error> {
        let found = servers.iter().find(|one| one.proxied.name == name);
        found.ok_or_else(|| Error::not_found(format!("There is no MCP server {name}.")))
    }

    /// The tool that a name stands for, with its server.
    fn meant(&self, servers: &[Rc<One>], name: &str, server: Option<&str>) -> Result<(String, Item), Error> {
        match self.catalog.borrow().find(name, server) {
            Found::One(server, item) => Ok((server, *item)),
            Found::Several(candidates) => Err(Error::invalid_arguments(answers::several(name, &candidates))),
            Found::Nothing(near) => {
                let mut text = answers::no_tool(name, &near);
                for one in servers.iter().filter(|one| server.is_none_or(|server| server == one.proxied.name)) {
                    let name = &one.proxied.name;
                    if self.catalog.borrow().of(name).is_none() {
                        let why = match one.standing() {
                            Standing::Connecting => "is still being connected to",
                            _ => "is not known yet; mcp({ connect: … }) asks for its tools",
                        };
                        text.push_str(&format!(" The server {name} {why}."));
                    }
                }
                Err(Error::not_found(text))
            }
        }
    }

    async fn carry_out(
        &self,
        servers: &[Rc<One>],
        call: &export::Invocation,
        server: &str,
        item: &Item,
        arguments: Map<String, Value>,
        is_blind: bool,
    ) -> Result<ToolOutput, Error> {
        let one = self.one(servers, server)?;
        let (unwanted, id) = (progress::cancelled(call.id.clone()), call.id.clone());
        let on_progress = move |step: Progress| progress::update(&id, &[Content::Text(shown::step(&step))], None);
        let result = one.carry_out(&item.what, arguments, unwanted, on_progress).await;
        // Whoever called it without its schema may have guessed wrong.
        match result {
            Ok(result) => {
                let mut output = output::of(server, &item.local, result);
                if output.is_error && is_blind {
                    output.content.push(Content::Text(answers::wanted(item)));
                }
                shown::cut(&call.id, &output.content);
                Ok(output)
            }
            Err(Error::Failed(why)) if is_blind => Err(Error::failed(format!("{why}\n{}", answers::wanted(item)))),
            Err(error) => Err(error),
        }
    }
}

impl Listener for Shared {
    fn put<'a>(
        &'a self,
        server: &'a Server,
        instructions: Option<&'a str>,
        tools: Vec<ServerTool>,
    ) -> LocalBoxFuture<'a, Vec<String>> {
        let having = async move {
            let Some(proxied) = self.proxied(&server.name) else { return Vec::new() };
            // Its resources are listed once it is there; until then they are those of before.
            let before = self.listed.borrow().get(&server.name).cloned().unwrap_or_default();
            let kept = Kept { tools, instructions: instructions.map(str::to_owned), ..before };
            self.have(proxied, kept).await
        };
        having.boxed_local()
    }

    fn met<'a>(&'a self, server: &'a Server, session: &'a Session, what: Met) -> LocalBoxFuture<'a, ()> {
        let meeting = async move {
            let _settles = Settles(self.settling.borrow().get(&server.name).cloned());
            let Some(proxied) = self.proxied(&server.name).filter(|_| what != Met::Prompts) else { return };
            let resources = if proxied.resources { resources(session).await } else { Ok(Vec::new()) };
            if let Err(failure) = &resources {
                log::write(log::Level::Warn, &format!("the server {}: its resources: {failure}", server.name));
            }
            self.have_more(proxied, resources.ok(), session.lasts()).await;
        };
        meeting.boxed_local()
    }

    fn settled(&self, _: &str) {}
}

/// Says that all is known of a server, however looking at it ends.
struct Settles(Option<Rc<watch::Sender<bool>>>);

impl Drop for Settles {
    fn drop(&mut self) {
        if let Some(settled) = &self.0 {
            settled.send_replace(true);
        }
    }
}

/// All resources of a server, as many as there may be.
async fn resources(session: &Session) -> Result<Vec<Resource>, Failure> {
    let (_, has_resources, _) = session.has();
    let (mut all, mut cursor): (Vec<Resource>, Option<String>) = Default::default();
    if !has_resources {
        return Ok(all);
    }
    for _ in 0..MAX_PAGES {
        let page = session.resources(cursor.as_deref()).await?;
        all.extend(page.items.iter().filter_map(Resource::read));
        cursor = page.next;
        if cursor.is_none() || all.len() >= MAX_RESOURCES {
            break;
        }
    }
    all.truncate(MAX_RESOURCES);
    Ok(all)
}
