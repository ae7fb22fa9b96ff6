//! Where a name may lead. A grant for `example.com` is one for a server of the public internet: whoever answers for that
//! name must not be able to turn it into one for this machine or the networks around it.
//!
//! The addresses are checked where connections are made, so that there is no moment between the check and the use in which
//! a name could come to mean something else.

use std::{
    error::Error as StdError,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use atoll_caps::is_public;
use futures::future::BoxFuture;
use reqwest::dns::{Name, Resolve, Resolving};

/// Which addresses a name may lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Those of the public internet.
    Public,
    /// Those of this machine: what `localhost` is for.
    Loopback,
    /// All: the user named this very origin as a model's, or it is an address by itself.
    Any,
}

impl Reach {
    fn has(self, address: IpAddr) -> bool {
        match self {
            Self::Public => is_public(address),
            Self::Loopback => address.to_canonical().is_loopback(),
            Self::Any => true,
        }
    }
}

/// A name leads to no address that it may lead to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} leads to {}, which is not an address of the public internet", shown(addresses))]
pub(super) struct OutOfReach {
    pub(super) name: String,
    pub(super) addresses: Vec<IpAddr>,
}

fn shown(addresses: &[IpAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

impl OutOfReach {
    /// The reason of an error, if this is it.
    pub(super) fn reason_of<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            cause = error.source();
        }
        None
    }
}

/// Finds the addresses of a name.
type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// Finds addresses, and gives those that may be connected to.
pub(super) struct Resolver {
    reach: Reach,
    lookup: Lookup,
}

impl Resolver {
    /// With the system's own lookup.
    pub(super) fn new(reach: Reach) -> Self {
        let lookup: Lookup =
            Arc::new(|name: String| Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) }));
        Self { reach, lookup }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (reach, found) = (self.reach, (self.lookup)(name.as_str().to_owned()));
        Box::pin(async move {
            let all = found.await?;
            let within: Vec<SocketAddr> = all.iter().copied().filter(|address| reach.has(address.ip())).collect();
            if within.is_empty() && !all.is_empty() {
                let mut addresses: Vec<IpAddr> = all.iter().map(SocketAddr::ip).collect();
                addresses.sort_unstable();
                addresses.dedup();
                return Err(Box::from(OutOfReach { name: name.as_str().to_owned(), addresses }));
            }
            Ok(Box::new(within.into_iter()) as reqwest::dns::Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A resolver whose lookups give these addresses, one list after the other.
    fn resolver(reach: Reach, answers: &[&[&str]]) -> Resolver {
        let answers: Vec<Vec<SocketAddr>> = answers
            .iter()
            .map(|list| list.iter().map(|address| SocketAddr::new(address.parse().unwrap(), 0)).collect())
            .collect();
        let asked = AtomicUsize::new(0);
        let lookup: Lookup = Arc::new(move |_| {
            let answer = answers[asked.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1)].clone();
            Box::pin(async move { Ok(answer) })
        });
        Resolver { reach, lookup }
    }

    async fn ask(resolver: &Resolver) -> Result<Vec<String>, String> {
        match resolver.resolve("example.test".parse().unwrap()).await {
            Ok(addresses) => Ok(addresses.map(|address| address.ip().to_string()).collect()),
            Err(error) => Err(OutOfReach::reason_of(&*error).unwrap().to_string()),
        }
    }

    #[tokio::test]
    async fn a_name_leads_to_public_addresses_only() {
        for private in ["127.0.0.1", "10.0.0.1", "192.168.0.1", "169.254.169.254", "::1", "fd00::1", "::ffff:127.0.0.1"]
        {
            let refused = ask(&resolver(Reach::Public, &[&[private]])).await.unwrap_err();
            assert!(refused.contains("example.test leads to "), "{refused}");
        }
        let mixed = resolver(Reach::Public, &[&["10.0.0.1", "1.1.1.1", "::1", "2606:4700::1"]]);
        assert_eq!(ask(&mixed).await.unwrap(), ["1.1.1.1", "2606:4700::1"]);
    }

    #[tokio::test]
    async fn a_name_that_comes_to_lead_elsewhere_is_refused_where_it_is_used() {
        let rebound = resolver(Reach::Public, &[&["1.1.1.1"], &["127.0.0.1"]]);
        assert_eq!(ask(&rebound).await.unwrap(), ["1.1.1.1"]);
        assert_eq!(
            ask(&rebound).await.unwrap_err(),
            "example.test leads to 127.0.0.1, which is not an address of the public internet"
        );
    }

    #[tokio::test]
    async fn localhost_leads_to_this_machine_only() {
        let mixed = resolver(Reach::Loopback, &[&["127.0.0.1", "10.0.0.1", "1.1.1.1", "::1"]]);
        assert_eq!(ask(&mixed).await.unwrap(), ["127.0.0.1", "::1"]);
        assert!(ask(&resolver(Reach::Loopback, &[&["10.0.0.1"]])).await.is_err());
    }

    #[tokio::test]
    async fn the_refusal_is_found_in_the_error_of_a_request() {
        let resolver = resolver(Reach::Public, &[&["127.0.0.1"]]);
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().dns_resolver(Arc::new(resolver)).build().unwrap();
        let error = client.get("http://example.test:9/").send().await.unwrap_err();
        let reason = OutOfReach::reason_of(&error).unwrap();
        assert_eq!(reason.addresses, ["127.0.0.1".parse::<IpAddr>().unwrap()]);
    }
}
