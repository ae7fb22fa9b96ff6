//! What servers had when they were last there, kept from one session to the next: so that their tools can be found, and declared,
//! before they are connected to. What is kept of a server that is reached in another way now does not count.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use atoll_mcp_client::cache::{Kept, digest};
use atoll_mcp_connection::server::Server;
use atoll_plugin::{Error, clock, log, spawn_local, store};
use futures::future::join_all;

/// What the keys begin with.
const KEYS: &str = "server/";
/// How long after a change it is kept: a server that changes all the time is not written all the time.
const DELAY_MS: u64 = 1_000;

/// What is known of servers.
#[derive(Debug, Default)]
pub(crate) struct Known {
    servers: RefCell<BTreeMap<String, Kept>>,
    /// Whose has changed since it was last kept.
    changed: RefCell<BTreeSet<String>>,
    /// What is kept of these holds for some days more.
    fresh: RefCell<BTreeSet<String>>,
    digests: RefCell<BTreeMap<String, String>>,
    /// Somebody is about to keep them.
    is_waiting: Cell<bool>,
}

fn key(server: &str) -> String {
    format!("{KEYS}{server}")
}

impl Known {
    /// Reads what was kept of these servers; what is there counts from here on.
    pub(crate) async fn read(&self, servers: &[Rc<Server>]) {
        let now = clock::now();
        let reads = servers.iter().map(async |server| {
            let digest = digest(&server.entry);
            let bytes = store::get(key(&server.name)).await.ok().flatten();
            let kept = bytes.and_then(|bytes| Kept::read(&bytes, &digest, now));
            (server.name.clone(), digest, kept)
        });
        for (name, digest, kept) in join_all(reads).await {
            if let Some((kept, is_fresh)) = kept {
                if is_fresh {
                    self.fresh.borrow_mut().insert(name.clone());
                }
                self.servers.borrow_mut().insert(name.clone(), kept);
            }
            self.digests.borrow_mut().insert(name, digest);
        }
    }

    /// What is known of a server, now or from before.
    pub(crate) fn of(&self, server: &str) -> Option<Kept> {
        self.servers.borrow().get(server).cloned()
    }

    /// Nothing is known of a server any more. What was kept of it stays kept.
    pub(crate) fn forget(&self, server: &str) {
        self.servers.borrow_mut().remove(server);
        self.changed.borrow_mut().remove(server);
    }

    /// Whether something is.
    pub(crate) fn has(&self, server: &str) -> bool {
        self.servers.borrow().contains_key(server)
    }

    /// Changes what is known of a server; `change` says whether it did. It is kept soon.
    pub(crate) fn change(self: &Rc<Self>, server: &str, change: impl FnOnce(&mut Kept) -> bool) {
        {
            let mut servers = self.servers.borrow_mut();
            let has_changed = change(servers.entry(server.to_owned()).or_default());
            // Keeping takes as long as a disk does.
            if !has_changed && self.fresh.borrow().contains(server) {
                return;
            }
            self.fresh.borrow_mut().insert(server.to_owned());
        }
        self.changed.borrow_mut().insert(server.to_owned());
        if !self.is_waiting.replace(true) {
            let known = Rc::clone(self);
            spawn_local(async move {
                clock::sleep(DELAY_MS).await;
                known.is_waiting.set(false);
                known.keep().await;
            });
        }
    }

    /// Keeps what has changed.
    pub(crate) async fn keep(&self) {
        let changed = std::mem::take(&mut *self.changed.borrow_mut());
        let now = clock::now();
        for server in changed {
            let bytes = {
                let (servers, digests) = (self.servers.borrow(), self.digests.borrow());
                let known = servers.get(&server).zip(digests.get(&server));
                known.and_then(|(known, digest)| known.to_bytes(digest, now))
            };
            let kept = match bytes {
                Some(bytes) => self.set(&server, bytes).await,
                // It is too much.
                None => store::remove(key(&server)).await,
            };
            if let Err(error) = kept {
                let why = error.message();
                log::write(log::Level::Debug, &format!("the server {server}: what it has is not kept: {why}"));
                return;
            }
        }
    }

    /// Makes room for it where there is none, by what is kept of servers that are not configured here.
    async fn set(&self, server: &str, bytes: Vec<u8>) -> Result<(), Error> {
        let Err(error) = store::set(key(server), bytes.clone()).await else { return Ok(()) };
        let mut is_room = false;
        for other in store::keys(KEYS.to_owned()).await? {
            let is_here = other.strip_prefix(KEYS).is_some_and(|name| self.digests.borrow().contains_key(name));
            if !is_here && store::remove(other).await.is_ok() {
                is_room = true;
            }
        }
        if is_room { store::set(key(server), bytes).await } else { Err(error) }
    }
}
