//! Who we are to a server that users sign in to: what is kept of the last sign-in, renewed when it ends.
//!
//! What lets us in is in the plugin's own store, and nowhere else: no message, no log and no other plugin has it. It is renewed
//! under a lock that all processes share, for a token that renews may be good for one renewal.

use std::{cell::RefCell, rc::Rc};

use atoll_mcp_client::{
    http::{Access, Refused, Verdict},
    oauth::{Challenge, Kept, Renewed, key, renew},
};
use atoll_plugin::{Error, clock, log, store};
use futures::{FutureExt as _, future::LocalBoxFuture};
use tokio::sync::Mutex;

use crate::net::Imports;

/// What is kept of a server, where all processes find it.
#[derive(Clone, Debug)]
pub struct Keeping {
    key: String,
    /// The lock within this process.
    own: Rc<Mutex<()>>,
}

/// Nobody else changes what is kept meanwhile.
struct Locked<'a> {
    _own: tokio::sync::MutexGuard<'a, ()>,
    _shared: store::Lease,
}

impl Keeping {
    /// Of the server of this name and address.
    pub fn of(server: &str, url: &str) -> Self {
        Self { key: key(server, url), own: Rc::default() }
    }

    /// What is kept.
    ///
    /// # Errors
    /// It can not be read.
    pub async fn read(&self) -> Result<Kept, Error> {
        Ok(store::get(self.key.clone()).await?.map(|bytes| Kept::read(&bytes)).unwrap_or_default())
    }

    /// Keeps this.
    ///
    /// # Errors
    /// It can not be kept.
    pub async fn keep(&self, kept: &Kept) -> Result<(), Error> {
        let _locked = self.lock().await?;
        self.write(kept).await
    }

    /// Forgets all of it. Whether there was something that lets us in.
    ///
    /// # Errors
    /// It can not be forgotten.
    pub async fn forget(&self) -> Result<bool, Error> {
        let _locked = self.lock().await?;
        let had = self.read().await?.tokens.is_some();
        store::remove(self.key.clone()).await?;
        Ok(had)
    }

    async fn write(&self, kept: &Kept) -> Result<(), Error> {
        store::set(self.key.clone(), kept.to_bytes()).await
    }

    async fn lock(&self) -> Result<Locked<'_>, Error> {
        let own = self.own.lock().await;
        Ok(Locked { _own: own, _shared: store::lock(self.key.clone()).await? })
    }
}

/// How a person signs in to the server of this name: a sentence without its end, which follows why they have to. Each adapter
/// has its own way, and what one keeps lets no other in.
pub type HowTo = fn(&str) -> String;

/// Signed in, or not yet.
#[derive(Debug)]
pub(crate) struct SignedIn {
    server: String,
    how_to: HowTo,
    keeping: Keeping,
    /// What was last read, so that not every request reads it.
    known: RefCell<Option<Kept>>,
}

impl SignedIn {
    pub(crate) fn new(server: &str, url: &str, how_to: HowTo) -> Self {
        Self { server: server.to_owned(), how_to, keeping: Keeping::of(server, url), known: RefCell::default() }
    }

    async fn known(&self) -> Result<Kept, Error> {
        if let Some(known) = &*self.known.borrow() {
            return Ok(known.clone());
        }
        let kept = self.keeping.read().await?;
        *self.known.borrow_mut() = Some(kept.clone());
        Ok(kept)
    }

    /// Renews what is kept, unless somebody else has done so since `sent` was sent. What is good now, or why nothing is.
    async fn renewed(&self, sent: Option<&str>) -> Result<Result<Kept, String>, Error> {
        let _locked = self.keeping.lock().await?;
        let kept = self.keeping.read().await?;
        let is_new = |kept: &Kept| header(kept).is_some_and(|now| Some(now.as_str()) != sent);
        let is_over = |kept: &Kept| kept.tokens.as_ref().is_some_and(|tokens| tokens.is_over(clock::now()));
        let (kept, came) = if is_new(&kept) && !is_over(&kept) {
            (kept.clone(), Ok(kept))
        } else {
            match renew(&Imports, &kept, clock::now()).await {
                Renewed::New(new) => {
                    self.keeping.write(&new).await?;
                    ((*new).clone(), Ok(*new))
                }
                Renewed::NotNow(why) => (kept, Err(why)),
                Renewed::SignIn(why) => {
                    // What is not good any more is not shown again.
                    let without = Kept { tokens: None, ..kept };
                    self.keeping.write(&without).await?;
                    (without, Err(why))
                }
            }
        };
        *self.known.borrow_mut() = Some(kept);
        Ok(came)
    }

    /// Keeps what the server wants until a person signs in, and says that one has to.
    async fn sign_in(&self, challenge: Challenge, why: &str) -> Result<Verdict, Error> {
        let _locked = self.keeping.lock().await?;
        let kept = self.keeping.read().await?;
        let wanted = Some(challenge.into());
        if kept.wanted != wanted {
            self.keeping.write(&Kept { wanted, ..kept }).await?;
        }
        Ok(Verdict::SignIn(format!("{why}; {}", (self.how_to)(&self.server))))
    }

    async fn answer(&self, refused: &Refused) -> Result<Verdict, Error> {
        let challenge = Challenge::read(&refused.challenges);
        let has_more = refused.status == 403;
        if has_more && challenge.error.as_deref() != Some("insufficient_scope") {
            return Ok(Verdict::Stands);
        }
        if has_more && refused.sent.is_some() {
            // Another may have signed in meanwhile.
            let now = self.keeping.read().await?;
            let is_new = header(&now) != refused.sent;
            *self.known.borrow_mut() = Some(now.clone());
            return match challenge.scope.clone() {
                _ if is_new && now.tokens.is_some() => Ok(Verdict::Again),
                // It was asked for, and it was not enough: asking again would change nothing.
                Some(scope) if now.has_asked_for(&scope) => Ok(Verdict::Stands),
                None => Ok(Verdict::Stands),
                Some(scope) => {
                    let scope: String = scope.chars().filter(|c| !c.is_control()).take(200).collect();
                    self.sign_in(challenge, &format!("it wants you to sign in for more ({scope})")).await
                }
            };
        }
        let kept = self.known().await?;
        if kept.tokens.is_none() && refused.sent.is_none() {
            let now = self.keeping.read().await?;
            if now.tokens.is_some() {
                *self.known.borrow_mut() = Some(now);
                return Ok(Verdict::Again);
            }
            return self.sign_in(challenge, "it wants you to sign in").await;
        }
        // What was renewed just now, and is not believed, will not be believed the next time either.
        if refused.before > 0 {
            return self.sign_in(challenge, "it wants you to sign in again").await;
        }
        match self.renewed(refused.sent.as_deref()).await? {
            Ok(_) => Ok(Verdict::Again),
            Err(why) => self.sign_in(challenge, &why).await,
        }
    }
}

/// What is sent of it.
fn header(kept: &Kept) -> Option<String> {
    kept.tokens.as_ref().map(|tokens| format!("Bearer {}", tokens.access))
}

impl Access for SignedIn {
    fn headers(&self) -> LocalBoxFuture<'_, Result<Vec<(String, String)>, String>> {
        async {
            let kept = self.known().await.map_err(|error| error.message())?;
            let is_over = kept.tokens.as_ref().is_some_and(|tokens| tokens.is_over(clock::now()));
            let can_renew = kept.tokens.as_ref().is_some_and(|tokens| tokens.refresh.is_some());
            let kept = if is_over && can_renew {
                let sent = header(&kept);
                match self.renewed(sent.as_deref()).await.map_err(|error| error.message())? {
                    Ok(kept) => kept,
                    Err(why) => {
                        log::write(log::Level::Info, &format!("the server {}: {why}", self.server));
                        // If nothing is left, the server says what it wants; else what there is may still do.
                        self.known().await.map_err(|error| error.message())?
                    }
                }
            } else {
                kept
            };
            Ok(header(&kept).map(|value| ("authorization".to_owned(), value)).into_iter().collect())
        }
        .boxed_local()
    }

    fn refused<'a>(&'a self, refused: &'a Refused) -> LocalBoxFuture<'a, Verdict> {
        async {
            self.answer(refused).await.unwrap_or_else(|error| {
                log::write(log::Level::Warn, &format!("the server {}: {}", self.server, error.message()));
                Verdict::Stands
            })
        }
        .boxed_local()
    }
}
