//! The servers that are there, each in a task of its own.

use std::{cell::RefCell, rc::Rc};

use atoll_mcp_client::config::Server as Defined;
use atoll_mcp_connection::{
    drive::Drive,
    server::{Server, Surroundings, close_all},
};
use atoll_plugin::spawn_local;

use crate::{offers::Offers, registry::Registry};

/// How long servers that nobody needs yet are left alone at the start of a session, in milliseconds: the first request is on
/// its way by then, and whoever needs one before that has it connected to at once.
const LEISURE_MS: u64 = 250;

/// The servers.
pub(crate) struct Pool {
    drive: Drive,
    around: Rc<Surroundings>,
    offers: Rc<Offers>,
    all: RefCell<Vec<Rc<Server>>>,
    /// What is kept of servers is not enough: a command asks once, and then nobody hears what comes later.
    is_command: bool,
}

impl Pool {
    pub(crate) fn new(drive: Drive, around: Surroundings, offers: Rc<Offers>, is_command: bool) -> Self {
        Self { drive, around: Rc::new(around), offers, all: RefCell::default(), is_command }
    }

    /// All of them, as they are now.
    pub(crate) fn all(&self) -> Vec<Rc<Server>> {
        self.all.borrow().clone()
    }

    /// What they are connected to with.
    pub(crate) fn surroundings(&self) -> Surroundings {
        (*self.around).clone()
    }

    /// One that is connected to by whoever asked for it.
    pub(crate) fn made(&self, defined: &Defined) -> Server {
        Server::new(defined.name.clone(), defined.entry.clone(), self.drive.clone())
    }

    /// Connects to these, beside those that are there.
    pub(crate) async fn begin(&self, some: Vec<Server>) {
        // A command is over before that, and does nothing else meanwhile.
        let leisure_ms = if self.is_command { 0 } else { LEISURE_MS };
        let some: Vec<Rc<Server>> = some.into_iter().map(|server| Rc::new(server.at_leisure(leisure_ms))).collect();
        self.all.borrow_mut().extend(some.iter().cloned());
        let connect = |some: &[Rc<Server>]| {
            for server in some {
                spawn_local(Rc::clone(server).live(Rc::clone(&self.around)));
            }
        };
        // Before any of them can fail, for then none are to come.
        some.iter().for_each(|server| Registry::coming(&server.name));
        if self.is_command {
            // What is not among what they had before is waited for. Programs start while that is read.
            let reading = self.offers.reading();
            connect(&some);
            self.offers.remember(&some, &self.all(), false).await;
            drop(reading);
        } else {
            self.offers.remember(&some, &self.all(), true).await;
            connect(&some);
        }
    }

    fn take(&self, name: &str) -> Option<Rc<Server>> {
        let mut all = self.all.borrow_mut();
        let at = all.iter().position(|server| server.name == name)?;
        Some(all.remove(at))
    }

    /// Ends one, and takes away what it offers.
    pub(crate) async fn end(&self, name: &str) {
        let Some(gone) = self.take(name) else { return };
        gone.close().await;
        self.offers.forget(&gone, &self.all()).await;
    }

    /// Ends the connection to one, and connects to it anew. What it offers stays meanwhile.
    pub(crate) async fn again(&self, server: &Rc<Server>) -> Rc<Server> {
        drop(self.take(&server.name));
        server.close().await;
        let new = Rc::new(server.another());
        self.all.borrow_mut().push(Rc::clone(&new));
        self.offers.set(&self.all());
        spawn_local(Rc::clone(&new).live(Rc::clone(&self.around)));
        new
    }

    /// Connects again to those of these that wanted a person to sign in, if somebody has. Nobody waits for them here.
    pub(crate) async fn notice_sign_ins(&self, some: &[Rc<Server>]) {
        for server in some {
            if server.notice_sign_in(&self.around.file).await && !self.offers.knows(&server.name) {
                Registry::coming(&server.name);
            }
        }
    }

    /// The same of those of these that are needed and could not be had for another reason, unless that was just now.
    pub(crate) fn try_again(&self, some: &[Rc<Server>]) {
        for server in some.iter().filter(|server| server.try_again()) {
            Registry::coming(&server.name);
        }
    }

    /// Ends all of them.
    pub(crate) async fn close(&self) {
        let all = self.all();
        close_all(&all).await;
    }
}
