//! Signing in to a server, and out.

use std::rc::Rc;

use atoll_mcp_client::{
    config::{Http, OAuth, Place, Server as Defined},
    tool::ServerTool,
};
use atoll_mcp_connection::{
    Catalog,
    server::{Server, State, Surroundings},
    sign_in::{keeping, sign_in, signed_in_to},
};
use atoll_plugin::{Error, host, spawn_local};
use futures::{FutureExt as _, future::LocalBoxFuture};

use super::{arguments, unknown};
use crate::{Mcp, files::FILE};

/// Nobody wants to know what a server offers that is only asked whether it lets us in.
struct Nobody;

impl Catalog for Nobody {
    fn put<'a>(&'a self, _: &'a Server, _: Option<&'a str>, _: Vec<ServerTool>) -> LocalBoxFuture<'a, Vec<String>> {
        std::future::ready(Vec::new()).boxed_local()
    }

    fn settled(&self, _: &str) {}
}

/// A server that can be signed in to. With the project's place it has to be defined there.
fn defined<'a>(
    adapter: &'a Mcp,
    name: &str,
    place: arguments::Place,
) -> Result<(&'a Defined, &'a Http, &'a OAuth), Error> {
    let all = &adapter.configuration.servers;
    let Some(server) = all.iter().find(|server| server.name == name) else {
        return Err(unknown(name, all.iter().map(|server| server.name.as_str())));
    };
    if place == arguments::Place::Project && server.place != Place::Project {
        return Err(Error::not_found(format!(
            "the project's file defines no MCP server {name:?}; your own file does: leave out -l"
        )));
    }
    let (http, oauth) = signed_in_to(name, &server.entry)?;
    Ok((server, http, oauth))
}

/// Signs in. A server that lets everybody in, or us already, is left as it is.
///
/// # Errors
/// Why it did not come to that.
pub(super) async fn login(adapter: &Mcp, name: &str, place: arguments::Place, timeout_ms: u64) -> Result<(), Error> {
    let (server, http, oauth) = defined(adapter, name, place)?;
    let keeping = keeping(name, http, FILE).await?;
    let around = adapter.pool.surroundings();
    // What it wants it says when it refuses us.
    if keeping.read().await?.wanted.is_none() {
        let tried = Rc::new(adapter.pool.made(server));
        let alone = Surroundings { catalog: Rc::new(Nobody), answers: None, ..around.clone() };
        spawn_local(Rc::clone(&tried).live(Rc::new(alone)));
        tried.known().await;
        let state = tried.state();
        tried.close().await;
        if keeping.read().await?.wanted.is_none() {
            return match state {
                State::Failed(why) | State::Disconnected(why) => Err(Error::unavailable(format!("{name}: {why}"))),
                _ => {
                    host::print(&format!("{name} lets you in as you are."));
                    Ok(())
                }
            };
        }
    }
    sign_in(name, http, oauth, &around, timeout_ms, host::print).await?;
    host::print(&format!("Signed in to {name}."));
    again(adapter, name).await;
    Ok(())
}

/// Forgets how one is signed in.
///
/// # Errors
/// Why it can not be forgotten.
pub(super) async fn logout(adapter: &Mcp, name: &str, place: arguments::Place) -> Result<(), Error> {
    let (_, http, _) = defined(adapter, name, place)?;
    let had = keeping(name, http, FILE).await?.forget().await?;
    host::print(&match had {
        true => format!("Signed out of {name}."),
        false => format!("You were not signed in to {name}."),
    });
    again(adapter, name).await;
    Ok(())
}

/// In a session, what is connected is connected to anew.
async fn again(adapter: &Mcp, name: &str) {
    if host::wanted_command().is_some() {
        return;
    }
    if let Some(server) = adapter.pool.all().iter().find(|server| server.name == name) {
        adapter.pool.again(server).await;
    }
}
