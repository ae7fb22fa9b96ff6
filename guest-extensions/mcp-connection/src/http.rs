//! A server at an address.

use std::{future::Future, time::Duration};

use atoll_mcp_client::{
    config::Http,
    http::{Anybody, Endpoint, serve},
    wire::ProgramEnd,
};
use atoll_plugin::Error;

use crate::net::Imports;

/// An address that can be asked.
pub(crate) struct Address {
    endpoint: Endpoint,
}

impl Address {
    /// The address of an entry.
    ///
    /// # Errors
    /// Why it is not known.
    pub(crate) fn of(http: &Http, patience: Duration) -> Result<Self, Error> {
        // Values that are looked up are the host's to fill in, which it can not do yet.
        let unknown =
            |what: &str| Error::invalid_arguments(format!("{what}: variables and commands are not supported yet"));
        let url = http.url.known().ok_or_else(|| unknown("url"))?;
        let mut headers = Vec::new();
        for (name, value) in &http.headers {
            let value = value.known().ok_or_else(|| unknown(&format!("headers.{name}")))?;
            headers.push((name.to_ascii_lowercase(), value));
        }
        Ok(Self { endpoint: Endpoint { url, headers, patience } })
    }

    /// Passes on what is said from one side to the other, until either ends or `done` does.
    pub(crate) async fn serve(&self, end: ProgramEnd, done: impl Future<Output = ()>) {
        serve(&Imports, &Anybody, &self.endpoint, end, done).await;
    }
}
