//! What servers offer, where each of it goes: tools and resources into the table, prompts among the commands, and all of it to
//! what is kept for the next session.

use std::{cell::RefCell, collections::BTreeSet, rc::Rc};

use atoll_mcp_client::{session::Session, tool::ServerTool};
use atoll_mcp_connection::{Catalog, Met, server::Server};
use atoll_plugin::{log, types::Subscription};
use futures::{FutureExt as _, future::LocalBoxFuture};
use tokio::sync::watch;

use crate::{kept::Known, prompts::Prompts, registry::Registry, resources::Resources};

/// What servers offer.
pub(crate) struct Offers {
    /// Their tools.
    pub(crate) registry: Registry,
    /// Their resources.
    pub(crate) resources: Resources,
    /// Their prompts.
    pub(crate) prompts: Prompts,
    /// All of it, from one session to the next.
    pub(crate) known: Rc<Known>,
    /// The servers.
    servers: RefCell<Vec<Rc<Server>>>,
    /// Those whose tools are being put into the table for the first time.
    first: RefCell<BTreeSet<String>>,
    /// How often what servers had is being read just now.
    reading: watch::Sender<usize>,
}

/// What servers had is being read, until this is dropped.
pub(crate) struct Reading<'a>(&'a watch::Sender<usize>);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|times| *times -= 1);
    }
}

impl Offers {
    /// Nothing yet, beside what else the extension wants.
    pub(crate) fn beside(others: Subscription) -> Self {
        Self {
            registry: Registry::default(),
            resources: Resources::default(),
            prompts: Prompts::beside(others),
            known: Rc::default(),
            servers: RefCell::default(),
            first: RefCell::default(),
            reading: watch::Sender::default(),
        }
    }

    /// What servers have now is taken once this is dropped: what they had must not take its place.
    pub(crate) fn reading(&self) -> Reading<'_> {
        self.reading.send_modify(|times| *times += 1);
        Reading(&self.reading)
    }

    /// Returns once nobody reads what servers had.
    async fn until_read(&self) {
        let _ = self.reading.subscribe().wait_for(|times| *times == 0).await;
    }

    /// Offers what some servers had when they were last there; `all` is them and the others. They are told from here on. It was
    /// said of them that their tools are to come; with `is_enough`, those of before are all that is waited for.
    pub(crate) async fn remember(&self, some: &[Rc<Server>], all: &[Rc<Server>], is_enough: bool) {
        self.set(all);
        self.known.read(some).await;
        for server in some {
            let kept = self.known.of(&server.name);
            let Some(kept) = kept else { continue };
            server.remember(kept.instructions.clone());
            // What can not be had is said once the server is there.
            self.registry.have(server, kept.instructions.as_deref(), kept.tools, self.to_come(&server.name)).await;
            self.resources.note(server, kept.has_resources, all).await;
            self.prompts.change(&server.name, kept.prompts).await;
            if is_enough {
                Registry::settled(&server.name);
            }
        }
    }

    /// Whether it is known what the server has, by itself or from before, and it is where it is looked for.
    pub(crate) fn knows(&self, server: &str) -> bool {
        self.known.has(server) && !self.first.borrow().contains(server)
    }

    /// From here on it is these.
    pub(crate) fn set(&self, all: &[Rc<Server>]) {
        *self.servers.borrow_mut() = all.to_vec();
    }

    /// A server is not there any more, and these are.
    pub(crate) async fn forget(&self, server: &Server, all: &[Rc<Server>]) {
        self.set(all);
        self.registry.have(server, None, Vec::new(), (0, all.len())).await;
        self.resources.note(server, false, all).await;
        self.prompts.have(&server.name, Vec::new()).await;
        self.known.forget(&server.name);
        Registry::settled(&server.name);
    }

    fn servers(&self) -> Vec<Rc<Server>> {
        self.servers.borrow().clone()
    }

    /// Of how many servers beside this one it is not known what they have, and how many servers there are.
    fn to_come(&self, server: &str) -> (usize, usize) {
        let all = self.servers.borrow();
        let unknown = all.iter().filter(|other| other.name != server && !self.known.has(&other.name));
        (unknown.count(), all.len())
    }

    async fn look(&self, server: &Server, session: &Session, what: Met) {
        self.until_read().await;
        let (_, has_resources, has_prompts) = session.has();
        match what {
            Met::Begun => {
                self.resources.note(server, has_resources, &self.servers()).await;
                self.known.change(&server.name, |kept| {
                    std::mem::replace(&mut kept.has_resources, has_resources) != has_resources
                });
                return;
            }
            // Lists of them are asked for when somebody wants one.
            Met::Resources => return,
            Met::Prompts => {}
        }
        let prompts = match has_prompts {
            true => session.prompts().await,
            false => Ok((Vec::new(), Vec::new())),
        };
        match prompts {
            Ok((prompts, strange)) => {
                for why in strange {
                    log::write(log::Level::Warn, &format!("the server {}: {why}", server.name));
                }
                self.known.change(&server.name, |kept| {
                    let is_new = kept.prompts != prompts;
                    if is_new {
                        kept.prompts.clone_from(&prompts);
                    }
                    is_new
                });
                self.prompts.have(&server.name, prompts).await;
            }
            Err(failure) => {
                log::write(log::Level::Warn, &format!("the server {}: its prompts: {failure}", server.name));
                self.prompts.seen(&server.name);
            }
        }
    }
}

impl Catalog for Offers {
    fn put<'a>(
        &'a self,
        server: &'a Server,
        instructions: Option<&'a str>,
        tools: Vec<ServerTool>,
    ) -> LocalBoxFuture<'a, Vec<String>> {
        async move {
            self.until_read().await;
            if !self.known.has(&server.name) {
                self.first.borrow_mut().insert(server.name.clone());
            }
            let mut is_new = false;
            self.known.change(&server.name, |kept| {
                is_new = kept.tools != tools || kept.instructions.as_deref() != instructions;
                if is_new {
                    kept.tools.clone_from(&tools);
                    kept.instructions = instructions.map(str::to_owned);
                }
                is_new
            });
            // Most servers have what they had the last time.
            let is_there = !is_new && self.registry.has_all(&server.name);
            let lines = match is_there {
                true => Vec::new(),
                false => self.registry.have(server, instructions, tools, self.to_come(&server.name)).await,
            };
            self.first.borrow_mut().remove(&server.name);
            lines
        }
        .boxed_local()
    }

    fn met<'a>(&'a self, server: &'a Server, session: &'a Session, what: Met) -> LocalBoxFuture<'a, ()> {
        self.look(server, session, what).boxed_local()
    }

    fn settled(&self, server: &str) {
        Registry::settled(server);
    }
}
