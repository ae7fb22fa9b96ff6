//! Signing a person in to a server, in their browser.

use std::pin::pin;

use atoll_mcp_client::{
    config::{Address, Authentication, Entry, Http, OAuth, Transport},
    oauth::{Asked, Kept, Random, SignIn, Wanted},
};
use atoll_plugin::{Error, clock, listener, ui};
use futures::future::{Either, select};

use crate::{
    access::Keeping,
    net::Imports,
    server::Surroundings,
    values::{about, value},
};

/// Where the way back leads, if nothing else is said.
const PATH: &str = "/callback";
/// What the browser shows at the end.
const PAGE: &str =
    "You are signed in as far as this page knows. Atoll says whether it worked; this page can be closed.";

/// Bytes of the system.
struct System;

impl Random for System {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), String> {
        getrandom::fill(bytes).map_err(|error| format!("there are no random bytes: {error}"))
    }
}

/// The way back, and who listens at its end.
struct Back {
    pending: listener::Pending,
    /// Its whole address.
    redirect: String,
}

impl Back {
    /// Listens where the configuration says, else where it was last time, so that whoever knows the client knows the way back.
    async fn open(oauth: &OAuth, kept: &Kept) -> Result<Self, Error> {
        let written = oauth.callback_url.as_deref().and_then(|url| Address::parse(url).ok());
        let host = written.as_ref().map_or("127.0.0.1", |url| url.host.as_str());
        let path = written.as_ref().map(Address::path).filter(|path| !path.is_empty()).unwrap_or(PATH);
        let fixed = oauth.callback_port.or(written.as_ref().and_then(|url| url.port));
        let last = Address::parse(&kept.redirect).ok().and_then(|url| url.port);
        let open = |port: u16| listener::open(port, path.to_owned(), PAGE.to_owned());
        let pending = match (fixed, last) {
            (Some(port), _) => open(port).await?,
            (None, Some(port)) => match open(port).await {
                Ok(pending) => pending,
                Err(_) => open(0).await?,
            },
            (None, None) => open(0).await?,
        };
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let redirect = format!("http://{host}:{}{path}", pending.port());
        Ok(Self { pending, redirect })
    }

    /// Waits until a browser comes back. Gives the address that it was led to.
    async fn browser(&self, timeout_ms: u64) -> Result<String, Error> {
        Ok(self.pending.wait(timeout_ms).await?.target)
    }

    /// Waits until a browser comes back, or a person says where it would have gone.
    async fn wait(&self, timeout_ms: u64) -> Result<String, Error> {
        let comes = pin!(self.browser(timeout_ms));
        if !ui::available() {
            return comes.await;
        }
        let title = "Sign in in the browser. If it is on another machine: the address of the page that it can not open"
            .to_owned();
        let told = pin!(ui::input(title, format!("{}?…", self.redirect), Some(timeout_ms)));
        match select(comes, told).await {
            Either::Left((came, _)) => came,
            Either::Right((Ok(Some(told)), _)) => Ok(told.trim().to_owned()),
            // Nobody has to answer that.
            Either::Right((_, comes)) => comes.await,
        }
    }
}

/// A server of the configuration that a person can sign in to, and how.
///
/// # Errors
/// Why nobody signs in to it.
pub fn signed_in_to<'a>(name: &str, entry: &'a Entry) -> Result<(&'a Http, &'a OAuth), Error> {
    let refused = |why: &str| Err(Error::invalid_arguments(format!("{name} is not signed in to: {why}")));
    match &entry.transport {
        Transport::Stdio(_) => refused("it is a program, which has what it needs from \"env\""),
        Transport::Http(http) => match &http.authentication {
            Authentication::OAuth(oauth) => Ok((http, oauth)),
            Authentication::Header => refused("its entry has a header \"Authorization\""),
            Authentication::Provider(_) => refused("its entry names a provider in \"auth\""),
        },
    }
}

/// What is kept of how a server of the configuration is signed in to.
///
/// # Errors
/// Its address is not known.
pub async fn keeping(name: &str, http: &Http, file: &str) -> Result<Keeping, Error> {
    let url = value(&http.url, file).await.map_err(|error| about(error, "url"))?;
    Ok(Keeping::of(name, &url))
}

/// A sign-in under way: somebody listens for the browser for as long as this is there.
pub struct Begun {
    server: String,
    keeping: Keeping,
    way: SignIn,
    asked: Asked,
    back: Back,
}

impl Begun {
    /// Begins to sign in to a server, with what it said when it refused us.
    ///
    /// # Errors
    /// Why it did not come to that.
    pub async fn begin(server: &str, http: &Http, oauth: &OAuth, file: &str) -> Result<Self, Error> {
        let url = value(&http.url, file).await.map_err(|error| about(error, "url"))?;
        let secret = match &oauth.client_secret {
            Some(secret) => Some(value(secret, file).await.map_err(|error| about(error, "oauth.clientSecret"))?),
            None => None,
        };
        let keeping = Keeping::of(server, &url);
        let kept = keeping.read().await?;
        let wanted: Wanted = kept.wanted.clone().unwrap_or_default();
        let failed = |why: String| Error::failed(format!("{server}: {why}"));
        let way = SignIn::find(&Imports, &url, oauth, &wanted, &kept).await.map_err(failed)?;
        let back = Back::open(oauth, &kept).await.map_err(|error| about(error, "the way back"))?;
        let asked = way.ask(&Imports, &System, oauth, secret, &kept, &back.redirect).await.map_err(failed)?;
        Ok(Self { server: server.to_owned(), keeping, way, asked, back })
    }

    /// The page that a person has to open.
    pub fn page(&self) -> &str {
        &self.asked.url
    }

    /// Waits until a browser comes back. Gives the address that it was led to.
    ///
    /// # Errors
    /// `timeout` if none did for so long.
    pub async fn browser(&self, timeout_ms: u64) -> Result<String, Error> {
        self.back.browser(timeout_ms).await
    }

    /// Keeps what lets us in, by the address that the browser was led to.
    ///
    /// # Errors
    /// Why it does not.
    pub async fn finish(&self, came: &str) -> Result<(), Error> {
        let finished = self.way.finish(&Imports, &self.asked, came, clock::now()).await;
        let new = finished.map_err(|why| Error::failed(format!("{}: {why}", self.server)))?;
        self.keeping.keep(&new).await
    }
}

/// Signs in to a server, with what it said when it refused us. `show` is given what a person has to read.
///
/// # Errors
/// Why it did not come to that; `timeout` if nobody did anything for so long.
pub async fn sign_in(
    server: &str,
    http: &Http,
    oauth: &OAuth,
    around: &Surroundings,
    timeout_ms: u64,
    show: impl Fn(&str),
) -> Result<(), Error> {
    let signing = async {
        let begun = Begun::begin(server, http, oauth, &around.file).await?;
        show(&format!(
            "Open this page to sign in to {server}:\n\n{}\n\nIf the browser is on another machine, it can not open the last page. \
             Then fetch the address of that page here: curl 'ADDRESS'",
            begun.page()
        ));
        let came = begun.back.wait(timeout_ms).await?;
        begun.finish(&came).await
    };
    match select(pin!(signing), pin!(clock::sleep(timeout_ms))).await {
        Either::Left((came, _)) => came,
        Either::Right(_) => Err(Error::timeout(format!("{server}: nobody signed in within {} s", timeout_ms / 1000))),
    }
}
