//! A server at an address.

use std::{future::Future, time::Duration};

use atoll_mcp_client::{
    config::{Authentication, Http},
    http::{Access, Anybody, Endpoint, serve},
    wire::ProgramEnd,
};
use atoll_plugin::{Error, servers};

use crate::{
    access::SignedIn,
    net::Reach,
    server::Surroundings,
    values::{about, value},
};

/// An address that can be asked.
pub(crate) struct Address {
    endpoint: Endpoint,
    access: Box<dyn Access>,
    reach: Reach,
}

impl Address {
    /// The address of an entry, with the values that the host fills in. `others`: the name of a server that another extension
    /// added, which has to be allowed to ask it itself.
    ///
    /// # Errors
    /// Why it is not known, or not allowed.
    pub(crate) async fn of(
        name: &str,
        http: &Http,
        patience: Duration,
        around: &Surroundings,
        others: Option<&str>,
    ) -> Result<Self, Error> {
        let filled =
            async |template, what: &str| value(template, &around.file).await.map_err(|error| about(error, what));
        let url = filled(&http.url, "url").await?;
        if let Some(server) = others {
            // All that is ever asked of a server.
            for method in ["POST", "GET", "DELETE"] {
                let wanted = servers::Request { method: method.to_owned(), url: url.clone() };
                servers::permit(server.to_owned(), servers::Permission::Request(wanted)).await?;
            }
        }
        let mut headers = Vec::new();
        for (name, template) in &http.headers {
            headers.push((name.to_ascii_lowercase(), filled(template, &format!("headers.{name}")).await?));
        }
        let access: Box<dyn Access> = match &http.authentication {
            Authentication::Header | Authentication::Provider(_) => Box::new(Anybody),
            Authentication::OAuth(_) => Box::new(SignedIn::new(name, &url, around.how_to)),
        };
        let reach = match &http.authentication {
            // It is the user's, and no file of theirs says so.
            Authentication::Provider(_) if others.is_some() => {
                return Err(Error::unavailable(
                    "another extension added this server, and does not say where a credential of yours is sent; define it in \
                     your own mcp.json",
                ));
            }
            Authentication::Provider(provider) => Reach::WithKey(provider.clone()),
            Authentication::Header | Authentication::OAuth(_) if others.is_some() => Reach::Others,
            Authentication::Header | Authentication::OAuth(_) => Reach::Users,
        };
        Ok(Self { endpoint: Endpoint { url, headers, patience }, access, reach })
    }

    /// Passes on what is said from one side to the other, until either ends or `done` does.
    pub(crate) async fn serve(&self, end: ProgramEnd, done: impl Future<Output = ()>) {
        serve(&self.reach, &*self.access, &self.endpoint, end, done).await;
    }
}
