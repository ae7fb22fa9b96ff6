//! What the model is told: which servers there are beside the tools that are declared to it, and the tools by which it
//! reaches theirs.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use atoll_mcp_client::{
    exposure::Exposure,
    prompt::{SECTION, Told, section},
};
use atoll_mcp_connection::server::Server;
use atoll_plugin::{log, session, table};

use crate::{SCRIPTS, SEARCH, say};

/// What it was told last, and what it reaches tools by.
#[derive(Debug, Default)]
pub(crate) struct Telling {
    section: RefCell<Option<String>>,
    /// Something that the configuration needs was not switched on.
    is_short: Cell<bool>,
    /// It was said that there are tools which nobody reaches.
    has_warned: Cell<bool>,
}

/// By which tools those are reached that are not declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reached {
    scripts: bool,
    search: bool,
}

impl Reached {
    /// As what the model is told of tools that have this exposure: what is not searched for may be called by scripts, and the
    /// other way round.
    fn shown(self, exposure: Exposure) -> Exposure {
        let Self { scripts, search } = self;
        match (exposure, scripts, search) {
            (Exposure::Codemode, true, _) | (Exposure::Deferred, true, false) => Exposure::Codemode,
            (Exposure::Deferred, _, true) | (Exposure::Codemode, false, true) => Exposure::Deferred,
            _ => Exposure::Hidden,
        }
    }
}

/// The widest of what the tools of a server may have that is not declared.
fn undeclared(server: &Server) -> Exposure {
    let widest = [Exposure::Deferred, Exposure::Codemode];
    widest.into_iter().find(|exposure| server.entry.exposure.could_be(*exposure)).unwrap_or(Exposure::Hidden)
}

impl Telling {
    /// Has the section of the system prompt say what there is now, where it says something else.
    pub(crate) async fn tell(&self, servers: &[Rc<Server>]) {
        let reached = self.reached().await;
        let instructions: Vec<Option<String>> = servers.iter().map(|server| server.instructions()).collect();
        let all: Vec<Told<'_>> = (servers.iter().zip(&instructions))
            .map(|(server, instructions)| Told {
                server: &server.name,
                exposure: reached.shown(undeclared(server)),
                description: server.entry.description.as_deref(),
                instructions: instructions.as_deref(),
            })
            .collect();
        let text = section(&all);
        if *self.section.borrow() != text {
            // Where there is no session there is nobody to tell.
            if session::set_prompt_section(SECTION.to_owned(), text.clone()).await.is_ok() {
                *self.section.borrow_mut() = text;
            }
        }
        self.warn(servers, reached);
    }

    /// Says once that there are servers whose tools nobody reaches.
    fn warn(&self, servers: &[Rc<Server>], reached: Reached) {
        if reached.scripts || reached.search || self.has_warned.get() {
            return;
        }
        let out_of_reach = servers.iter().filter(|server| undeclared(server) != Exposure::Hidden);
        let names: Vec<&str> = out_of_reach.map(|server| server.name.as_str()).collect();
        if !names.is_empty() {
            self.has_warned.set(true);
            say(
                log::Level::Warn,
                &format!(
                    "the model reaches no tools of {}, for neither {SCRIPTS} nor {SEARCH} is on: switch one on with \
                     --tools=+{SCRIPTS} or in defaultTools of settings.json, or have them be \"direct\" by \"exposure\"",
                    names.join(", ")
                ),
            );
        }
    }

    /// What there is now. What was switched on is taken to be on, for a look at all tools takes its time.
    async fn reached(&self) -> Reached {
        if !self.is_short.get() {
            return Reached { scripts: true, search: true };
        }
        let Ok(all) = table::list().await else { return Reached { scripts: true, search: true } };
        let is_on = |name: &str| all.iter().any(|entry| entry.active && entry.tool.name == name);
        Reached { scripts: is_on(SCRIPTS), search: is_on(SEARCH) }
    }

    /// Has the tools declared by which the servers' tools are reached, as far as the configuration needs them. That is known
    /// before any server is there.
    pub(crate) async fn activate(&self, servers: &[Rc<Server>], with_scripts: bool) {
        let some = |exposure: Exposure| servers.iter().any(|server| server.entry.exposure.could_be(exposure));
        let needed = [(SCRIPTS, with_scripts && some(Exposure::Codemode)), (SEARCH, some(Exposure::Deferred))];
        self.is_short.set(!with_scripts && some(Exposure::Codemode));
        for (tool, _) in needed.into_iter().filter(|(_, is_needed)| *is_needed) {
            if let Err(error) = table::activate(vec![tool.to_owned()], true).await {
                self.is_short.set(true);
                let why = error.message();
                log::write(
                    log::Level::Warn,
                    &format!("{tool}, by which tools of servers are reached, stays off: {why}"),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_told_of_what_it_can_reach_by_what_there_is() {
        let of = |scripts, search| {
            let reached = Reached { scripts, search };
            [Exposure::Codemode, Exposure::Deferred, Exposure::Hidden].map(|exposure| reached.shown(exposure))
        };
        assert_eq!(of(true, true), [Exposure::Codemode, Exposure::Deferred, Exposure::Hidden]);
        assert_eq!(of(false, true), [Exposure::Deferred, Exposure::Deferred, Exposure::Hidden]);
        assert_eq!(of(true, false), [Exposure::Codemode, Exposure::Codemode, Exposure::Hidden]);
        assert_eq!(of(false, false), [Exposure::Hidden; 3]);
    }
}
