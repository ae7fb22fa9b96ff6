//! A server at an address.

use std::{future::Future, time::Duration};

use atoll_mcp_client::{
    config::Http,
    http::{Anybody, Endpoint, serve},
    wire::ProgramEnd,
};
use atoll_plugin::{Error, servers};

use crate::{
    net::Imports,
    server::Surroundings,
    values::{about, value},
};

/// An address that can be asked.
pub(crate) struct Address {
    endpoint: Endpoint,
}

impl Address {
    /// The address of an entry, with the values that the host fills in. `others`: the name of a server that another extension
    /// added, which has to be allowed to ask it itself.
    ///
    /// # Errors
    /// Why it is not known, or not allowed.
    pub(crate) async fn of(
        http: &Http,
        patience: Duration,
        around: &Surroundings,
        others: Option<&str>,
    ) -> Result<Self, Error> {
        let filled =
            async |template, what: &str| value(template, &around.file).await.map_err(|error| about(error, what));
        let url = filled(&http.url, "url").await?;
        if let Some(server) = others {
            let wanted = servers::Request { method: "POST".to_owned(), url: url.clone() };
            servers::permit(server.to_owned(), servers::Permission::Request(wanted)).await?;
        }
        let mut headers = Vec::new();
        for (name, template) in &http.headers {
            headers.push((name.to_ascii_lowercase(), filled(template, &format!("headers.{name}")).await?));
        }
        Ok(Self { endpoint: Endpoint { url, headers, patience } })
    }

    /// Passes on what is said from one side to the other, until either ends or `done` does.
    pub(crate) async fn serve(&self, end: ProgramEnd, done: impl Future<Output = ()>) {
        serve(&Imports, &Anybody, &self.endpoint, end, done).await;
    }
}
