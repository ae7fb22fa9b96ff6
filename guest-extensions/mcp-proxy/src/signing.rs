//! Signing a person in to a server: begun by the model or by that person, and ended by their browser, or by the address that it
//! was led to.

use std::{cell::RefCell, collections::HashMap, pin::pin, rc::Rc};

use atoll_mcp_connection::{
    server::Surroundings,
    sign_in::{Begun, keeping, sign_in, signed_in_to},
};
use atoll_plugin::{Error, host, log, spawn_local};
use futures::future::{Either, select};
use serde_json::Value;
use tokio::sync::watch;

use crate::{FILE, gateway, one::One, say};

/// How long a person may take.
const TIMEOUT_MS: u64 = 300_000;

/// How a person signs in to a server, where there is the gateway.
pub(crate) fn by_gateway(server: &str) -> String {
    format!("{} or, in a session, `/mcp login {server}` gives the page to open", start_of(server))
}

/// How a person signs in to a server, where there is no gateway.
pub(crate) fn by_command(server: &str) -> String {
    format!("in a session, `/mcp login {server}` gives the page to open")
}

/// The call that begins it.
fn start_of(server: &str) -> String {
    format!("{}({{ action: {}, server: {} }})", gateway::NAME, Value::from(gateway::START), Value::from(server))
}

/// Those that are under way.
pub(crate) struct Signing {
    around: Rc<Surroundings>,
    under_way: Rc<RefCell<HashMap<String, Rc<UnderWay>>>>,
    /// The session ends.
    closing: watch::Sender<bool>,
}

/// One that was begun.
struct UnderWay {
    /// The page that a person has to open.
    page: String,
    /// The address that their browser was led to, if somebody says so.
    told: watch::Sender<Option<String>>,
    /// Whether it worked, once that is known.
    ended: watch::Sender<Option<Result<(), String>>>,
}

impl Signing {
    pub(crate) fn new(around: Rc<Surroundings>) -> Self {
        Self { around, under_way: Rc::default(), closing: watch::channel(false).0 }
    }

    /// Nobody is waited for any more.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Begins it, and gives what the model is to do next. The browser ends it, whether somebody waits for that or not.
    ///
    /// # Errors
    /// Why it did not come to that.
    pub(crate) async fn start(&self, one: &Rc<One>) -> Result<String, Error> {
        let name = one.proxied.name.as_str();
        let (http, oauth) = signed_in_to(name, &one.proxied.entry)?;
        let known = self.under_way.borrow().get(name).map(|under_way| under_way.page.clone());
        if let Some(page) = known {
            return Ok(told(name, &page));
        }
        if !self.is_wanted(one).await? {
            return Ok(lets_in(name));
        }
        let begun = Begun::begin(name, http, oauth, FILE).await?;
        let page = begun.page().to_owned();
        let under_way =
            Rc::new(UnderWay { page: page.clone(), told: watch::channel(None).0, ended: watch::channel(None).0 });
        self.under_way.borrow_mut().insert(name.to_owned(), Rc::clone(&under_way));
        let (one, all, closing) = (Rc::clone(one), Rc::clone(&self.under_way), self.closing.subscribe());
        spawn_local(async move {
            let ended = end(&begun, &under_way, closing).await;
            drop(begun);
            let name = one.proxied.name.as_str();
            match &ended {
                Ok(()) => {
                    say(log::Level::Info, &signed_in(name));
                    again(&one).await;
                }
                Err(why) => log::write(log::Level::Warn, &format!("signing in to {name}: {why}")),
            }
            // From here on it can be begun anew.
            all.borrow_mut().retain(|_, known| !Rc::ptr_eq(known, &under_way));
            under_way.ended.send_replace(Some(ended));
        });
        Ok(told(name, &page))
    }

    /// Ends it with the address that a browser was led to and could not open.
    ///
    /// # Errors
    /// Why it did not work.
    pub(crate) async fn complete(&self, one: &Rc<One>, came: &str) -> Result<String, Error> {
        let name = one.proxied.name.as_str();
        let found = self.under_way.borrow().get(name).map(Rc::clone);
        let Some(under_way) = found else {
            let (http, _) = signed_in_to(name, &one.proxied.entry)?;
            return match keeping(name, http, FILE).await?.read().await?.tokens {
                Some(_) => Ok(signed_in(name)),
                None => {
                    let start = start_of(name);
                    Err(Error::not_found(format!("Nobody is signing in to {name}: {start} begins that.")))
                }
            };
        };
        let mut ended = under_way.ended.subscribe();
        under_way.told.send_replace(Some(came.trim().to_owned()));
        let ended = ended.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
        match ended {
            Some(Ok(())) => Ok(signed_in(name)),
            Some(Err(why)) => Err(Error::failed(format!("{why}. {} begins anew.", start_of(name)))),
            None => Err(Error::Cancelled("The session ends.".to_owned())),
        }
    }

    /// Signs in a person who typed that they want to.
    ///
    /// # Errors
    /// Why it did not come to that.
    pub(crate) async fn login(&self, one: &Rc<One>) -> Result<(), Error> {
        let name = one.proxied.name.as_str();
        let (http, oauth) = signed_in_to(name, &one.proxied.entry)?;
        if !self.is_wanted(one).await? {
            host::print(&lets_in(name));
            return Ok(());
        }
        sign_in(name, http, oauth, &self.around, TIMEOUT_MS, host::print).await?;
        host::print(&signed_in(name));
        again(one).await;
        Ok(())
    }

    /// Forgets how a person is signed in.
    ///
    /// # Errors
    /// Why it can not be forgotten.
    pub(crate) async fn logout(&self, one: &Rc<One>) -> Result<(), Error> {
        let name = one.proxied.name.as_str();
        let (http, _) = signed_in_to(name, &one.proxied.entry)?;
        let had = keeping(name, http, FILE).await?.forget().await?;
        one.server.rest();
        host::print(&match had {
            true => format!("Signed out of {name}."),
            false => format!("You were not signed in to {name}."),
        });
        Ok(())
    }

    /// Whether the server wants that. It says so when it refuses us.
    async fn is_wanted(&self, one: &Rc<One>) -> Result<bool, Error> {
        let name = one.proxied.name.as_str();
        let (http, _) = signed_in_to(name, &one.proxied.entry)?;
        let keeping = keeping(name, http, FILE).await?;
        if keeping.read().await?.wanted.is_some() {
            return Ok(true);
        }
        match one.connect().await {
            Ok(()) => Ok(keeping.read().await?.wanted.is_some()),
            Err(error) => match keeping.read().await?.wanted {
                Some(_) => Ok(true),
                None => Err(error),
            },
        }
    }
}

/// Waits for the browser, or for somebody who says where it was led to, and ends the sign-in with that.
async fn end(begun: &Begun, under_way: &UnderWay, mut closing: watch::Receiver<bool>) -> Result<(), String> {
    let mut told = under_way.told.subscribe();
    let told = async {
        match told.wait_for(Option::is_some).await {
            Ok(told) => told.clone().unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    };
    let comes = async {
        match select(pin!(begun.browser(TIMEOUT_MS)), pin!(told)).await {
            Either::Left((came, _)) => came,
            Either::Right((came, _)) => Ok(came),
        }
    };
    let finishing = async {
        let came = comes.await?;
        begun.finish(&came).await
    };
    match select(pin!(finishing), pin!(closing.wait_for(|closing| *closing))).await {
        Either::Left((ended, _)) => ended.map_err(|error| error.message()),
        Either::Right(_) => Err("the session ends".to_owned()),
    }
}

/// Connects to a server anew, as who has signed in. Why that does not work is in its state.
async fn again(one: &Rc<One>) {
    one.server.rest();
    let _: Result<(), Error> = one.connect().await;
}

fn signed_in(server: &str) -> String {
    format!("Signed in to {server}.")
}

fn lets_in(server: &str) -> String {
    format!("{server} lets you in as you are.")
}

/// What the model has to do once a sign-in is begun.
fn told(server: &str, page: &str) -> String {
    let complete = Value::from(gateway::COMPLETE);
    format!(
        "Ask the user to open this page to sign in to {server}:\n\n{page}\n\nOnce they have, call its tools again. If their browser is \
         on another machine, it can not open the last page; then ask them for the address of that page, and give it: {}({{ \
         action: {complete}, server: {}, url: … }}).",
        gateway::NAME,
        Value::from(server)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_signing_in_names_what_there_is() {
        insta::assert_snapshot!(by_gateway("far"), @r#"mcp({ action: "auth-start", server: "far" }) or, in a session, `/mcp login far` gives the page to open"#);
        insta::assert_snapshot!(by_command("far"), @"in a session, `/mcp login far` gives the page to open");
        let text = told("far", "https://example.com/authorize?x=1");
        assert!(text.contains("\n\nhttps://example.com/authorize?x=1\n\n"), "{text}");
        assert!(text.ends_with("mcp({ action: \"auth-complete\", server: \"far\", url: … })."), "{text}");
    }
}
