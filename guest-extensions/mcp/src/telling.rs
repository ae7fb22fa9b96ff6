//! What the model is told: which servers there are beside the tools that are declared to it, and the tools by which it
//! reaches theirs.

use std::{cell::RefCell, rc::Rc};

use atoll_mcp_client::{
    exposure::Exposure,
    prompt::{SECTION, Told, section},
};
use atoll_mcp_connection::server::Server;
use atoll_plugin::{log, session, table};

use crate::{SCRIPTS, SEARCH};

/// What it was told last.
#[derive(Debug, Default)]
pub(crate) struct Telling {
    section: RefCell<Option<String>>,
}

/// The widest of what the tools of a server may have that is not declared.
fn undeclared(server: &Server) -> Exposure {
    let widest = [Exposure::Deferred, Exposure::Codemode];
    widest.into_iter().find(|exposure| server.entry.exposure.could_be(*exposure)).unwrap_or(Exposure::Hidden)
}

impl Telling {
    /// Has the section of the system prompt say what there is now, where it says something else.
    pub(crate) async fn tell(&self, servers: &[Rc<Server>]) {
        let instructions: Vec<Option<String>> = servers.iter().map(|server| server.instructions()).collect();
        let all: Vec<Told<'_>> = (servers.iter().zip(&instructions))
            .map(|(server, instructions)| Told {
                server: &server.name,
                exposure: undeclared(server),
                description: server.entry.description.as_deref(),
                instructions: instructions.as_deref(),
            })
            .collect();
        let text = section(&all);
        if *self.section.borrow() == text {
            return;
        }
        // Where there is no session there is nobody to tell.
        if session::set_prompt_section(SECTION.to_owned(), text.clone()).await.is_ok() {
            *self.section.borrow_mut() = text;
        }
    }
}

/// Has the tools declared by which the servers' tools are reached, as far as the configuration needs them. That is known
/// before any server is there.
pub(crate) async fn activate(servers: &[Rc<Server>], with_scripts: bool) {
    let some = |exposure: Exposure| servers.iter().any(|server| server.entry.exposure.could_be(exposure));
    let needed = [(SCRIPTS, with_scripts && some(Exposure::Codemode)), (SEARCH, some(Exposure::Deferred))];
    for (tool, _) in needed.into_iter().filter(|(_, is_needed)| *is_needed) {
        if let Err(error) = table::activate(vec![tool.to_owned()], true).await {
            let why = error.message();
            log::write(log::Level::Warn, &format!("{tool}, by which tools of servers are reached, stays off: {why}"));
        }
    }
}
