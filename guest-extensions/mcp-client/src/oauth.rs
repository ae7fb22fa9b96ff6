//! Signing in to a server: who signs its users in, how the client makes itself known there, what a person has to open, and
//! what is kept of it.
//!
//! Each step is a request or an answer here; whoever signs a user in sends them in order, by a [`crate::net::Net`]. What a
//! server publishes says where a person is sent and where secrets go, so it is checked at each step: addresses are https or
//! this machine, an issuer is the one that was asked for, and what a server is called is sent as it is written.

mod challenge;
mod client;
mod discovery;
mod form;
mod kept;
mod pkce;
mod sign_in;
#[cfg(test)]
mod tests;
mod tokens;

pub use challenge::Challenge;
pub use client::{Client, Method};
pub use kept::{Kept, Wanted, key};
pub use sign_in::{Asked, SignIn};
pub use tokens::{Renewed, Tokens, renew};

use std::time::Duration;

use futures::future::{Either, select};

use crate::net::{Net, Request, Response};

/// How long one request to who signs users in may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long what it answers may be.
const MAX_ANSWER: usize = 1 << 20;

/// Whoever needs random bytes is given them.
pub trait Random {
    /// Fills these with bytes that nobody can guess.
    ///
    /// # Errors
    /// There are none to be had.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), String>;
}

/// What is answered, and what it says if it is JSON. What comes too slowly is not waited for.
async fn ask(net: &dyn Net, request: Request) -> Result<(u16, serde_json::Value), String> {
    let asked = async {
        let mut response: Response =
            net.fetch(request.within(PATIENCE)).await.map_err(|unreachable| unreachable.why)?;
        let body = response.whole(MAX_ANSWER).await?;
        Ok((response.status, serde_json::from_slice(&body).unwrap_or_default()))
    };
    match select(Box::pin(asked), net.sleep(PATIENCE)).await {
        Either::Left((answer, _)) => answer,
        Either::Right(_) => Err(format!("it did not answer within {} s", PATIENCE.as_secs())),
    }
}
