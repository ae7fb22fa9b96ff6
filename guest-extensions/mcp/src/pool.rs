//! The servers that are there, each in a task of its own.

use std::{cell::RefCell, rc::Rc};

use atoll_mcp_client::config::Server as Defined;
use atoll_mcp_connection::{
    drive::Drive,
    server::{Server, Surroundings, close_all},
};
use atoll_plugin::spawn_local;

use crate::registry::Registry;

/// The servers.
pub(crate) struct Pool {
    drive: Drive,
    around: Rc<Surroundings>,
    all: RefCell<Vec<Rc<Server>>>,
}

impl Pool {
    pub(crate) fn new(drive: Drive, around: Surroundings) -> Self {
        Self { drive, around: Rc::new(around), all: RefCell::default() }
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

    /// Connects to one. `is_others`: another extension added it, and may do by it only what it may do by itself.
    pub(crate) fn begin(&self, defined: &Defined, is_others: bool) {
        let server = self.made(defined);
        self.live(if is_others { server.added_by_another() } else { server });
    }

    fn live(&self, server: Server) -> Rc<Server> {
        let server = Rc::new(server);
        Registry::coming(&server.name);
        spawn_local(Rc::clone(&server).live(Rc::clone(&self.around)));
        self.all.borrow_mut().push(Rc::clone(&server));
        server
    }

    /// Ends one, and takes its tools away.
    pub(crate) async fn end(&self, name: &str) {
        let gone = self.all.borrow().iter().find(|server| server.name == name).cloned();
        let Some(gone) = gone else { return };
        self.all.borrow_mut().retain(|server| !Rc::ptr_eq(server, &gone));
        gone.close().await;
        self.around.catalog.put(&gone, None, Vec::new()).await;
    }

    /// Ends the connection to one, and connects to it anew. Its tools stay meanwhile.
    pub(crate) async fn again(&self, server: &Rc<Server>) -> Rc<Server> {
        self.all.borrow_mut().retain(|known| !Rc::ptr_eq(known, server));
        server.close().await;
        self.live(server.another())
    }

    /// Ends all of them.
    pub(crate) async fn close(&self) {
        let all = self.all();
        close_all(&all).await;
    }
}
