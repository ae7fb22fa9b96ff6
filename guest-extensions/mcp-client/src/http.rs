//! Servers at an address: streamable HTTP, and the transport of old that has one stream for all answers.
//!
//! A connection is one end of a [`crate::wire`], like a program: it takes the client's messages as lines, and gives the server's.
//! What goes wrong with one request is the answer to that request, and costs no other. What may have been carried out is never
//! sent again: only saying hello and what only reads is.

mod connection;
mod failing;
mod message;
mod of_old;
mod reply;
mod stateless;
#[cfg(test)]
mod tests;

use std::time::Duration;

use futures::future::LocalBoxFuture;

pub use connection::{Ended, serve};
pub use failing::Way;
pub(crate) use failing::on_the_way;
pub(crate) use stateless::marks;

/// A server's address, and what goes with each request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// The address.
    pub url: String,
    /// Headers of each request.
    pub headers: Vec<(String, String)>,
    /// How long the head of an answer may take that is not the answer of a tool.
    pub patience: Duration,
}

/// A server says no for want of knowing who asks, or because that one may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// 401 or 403.
    pub status: u16,
    /// What it says of the way in: its headers `www-authenticate`.
    pub challenges: Vec<String>,
    /// What it was told of who asks: the header `authorization`.
    pub sent: Option<String>,
    /// How often this request was refused before.
    pub before: u32,
}

/// What to do about a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send it again: there are other credentials now.
    Again,
    /// A person has to sign in; why.
    SignIn(String),
    /// There is nothing to do about it.
    Stands,
}

/// Who asks, as the server is told.
pub trait Access {
    /// The headers that say so.
    fn headers(&self) -> LocalBoxFuture<'_, Result<Vec<(String, String)>, String>>;

    /// The server does not believe them.
    fn refused<'a>(&'a self, refused: &'a Refused) -> LocalBoxFuture<'a, Verdict>;
}

/// Nobody in particular asks, or the headers of the entry say who.
#[derive(Clone, Copy, Debug)]
pub struct Anybody;

impl Access for Anybody {
    fn headers(&self) -> LocalBoxFuture<'_, Result<Vec<(String, String)>, String>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn refused<'a>(&'a self, _: &'a Refused) -> LocalBoxFuture<'a, Verdict> {
        Box::pin(std::future::ready(Verdict::Stands))
    }
}
