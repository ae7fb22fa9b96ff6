//! Fetching a plugin for the user. Not for plugins: what they ask for goes through `http_client.rs`, with their grants.

use std::{net::IpAddr, time::Duration};

use atoll_table::Error;
use futures::StreamExt as _;
use reqwest::{Url, header::LOCATION};

use crate::http_client::{HttpClient, causes};

/// How long the whole of it may take.
const WHOLE: Duration = Duration::from_secs(120);
/// The most redirects followed.
const MAX_REDIRECTS: usize = 5;

/// Fetches what is at `url`, at most `limit` bytes.
///
/// `https` goes anywhere, `http` to this machine alone: what comes over a line that others can write to is nobody's
/// plugin. That holds for each redirect too, and one never leads from `https` to `http`.
pub(crate) async fn fetch(client: &HttpClient, url: &str, limit: u64) -> Result<Vec<u8>, Error> {
    let work = async {
        let mut url = Url::parse(url).map_err(|error| {
            Error::InvalidArguments(format!("`{}` is not a URL: {error}", atoll_caps::printable(url)))
        })?;
        check(&url)?;
        for _ in 0..=MAX_REDIRECTS {
            let request = client.for_host(url.scheme() == "http")?.get(url.clone());
            let response = request.send().await.map_err(|error| {
                Error::Unavailable(format!("{} can not be fetched: {}", shown(&url), causes(&error)))
            })?;
            let status = response.status();
            if status.is_redirection()
                && let Some(to) = response.headers().get(LOCATION)
            {
                let to = to.to_str().ok().and_then(|to| url.join(to).ok()).ok_or_else(|| {
                    Error::Failed(format!("{} redirects to something that is not a URL", shown(&url)))
                })?;
                check_redirect(&url, &to)?;
                url = to;
                continue;
            }
            if !status.is_success() {
                let text = format!("{} answers with status {}; check the address", shown(&url), status.as_u16());
                return Err(if status.as_u16() == 404 { Error::NotFound(text) } else { Error::Unavailable(text) });
            }
            return body(&url, response, limit).await;
        }
        Err(Error::Failed(format!("more than {MAX_REDIRECTS} redirects, the last to {}", shown(&url))))
    };
    tokio::time::timeout(WHOLE, work)
        .await
        .unwrap_or_else(|_| Err(Error::Timeout(format!("the download takes more than {} s", WHOLE.as_secs()))))
}

async fn body(url: &Url, response: reqwest::Response, limit: u64) -> Result<Vec<u8>, Error> {
    let too_large =
        || Error::Failed(format!("{} has more than the {limit} bytes that a component may have", shown(url)));
    if response.content_length().is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let mut stream = response.bytes_stream();
    while let Some(piece) = stream.next().await {
        let piece = piece.map_err(|error| {
            Error::Unavailable(format!("{} ends before it is whole: {}", shown(url), causes(&error)))
        })?;
        if (bytes.len() + piece.len()) as u64 > limit {
            return Err(too_large());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn check(url: &Url) -> Result<(), Error> {
    let refused = |reason: &str| Err(Error::InvalidArguments(format!("{}: {reason}", shown(url))));
    if !url.username().is_empty() || url.password().is_some() {
        return refused("a URL with a user name or password is not fetched; leave those out");
    }
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_this_machine(url) => Ok(()),
        "http" => refused("http is for this machine only; use https, or download the file and check it yourself"),
        _ => refused("a plugin is fetched over https; for a file, give its path"),
    }
}

/// A redirect leads only to where one could have begun, and never from `https` to `http`, not even to this machine.
fn check_redirect(from: &Url, to: &Url) -> Result<(), Error> {
    check(to)?;
    if from.scheme() == "https" && to.scheme() != "https" {
        let (from, to) = (shown(from), shown(to));
        return Err(Error::Failed(format!("{from} redirects from https to {to}; nothing is fetched that way")));
    }
    Ok(())
}

fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The URL for messages: without what may be secret in it, and in one line.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    atoll_caps::printable(url.as_str())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn only_https_and_this_machine_are_fetched_from() {
        for (url, good) in [
            ("https://example.com/a.wasm", true),
            ("http://127.0.0.1:8080/a.wasm", true),
            ("http://127.1/a.wasm", true),
            ("http://[::1]/a.wasm", true),
            ("http://localhost/a.wasm", true),
            ("http://localhost.evil.test/a.wasm", false),
            ("http://127.0.0.1.evil.test/a.wasm", false),
            ("http://example.com/a.wasm", false),
            ("http://10.0.0.1/a.wasm", false),
            ("http://127.0.0.1@evil.test/a.wasm", false),
            ("https://user:word@example.com/a.wasm", false),
            ("ftp://127.0.0.1/a.wasm", false),
            ("file:///etc/passwd", false),
        ] {
            assert_eq!(check(&Url::parse(url).unwrap()).is_ok(), good, "{url}");
        }
    }

    #[test]
    fn a_redirect_never_leads_to_an_open_line() {
        for (from, to, good) in [
            ("https://a.test/", "https://b.test/", true),
            ("http://127.0.0.1/", "https://b.test/", true),
            ("http://127.0.0.1/", "http://[::1]/", true),
            ("https://a.test/", "http://127.0.0.1/", false),
            ("http://127.0.0.1/", "http://b.test/", false),
            ("https://a.test/", "file:///etc/passwd", false),
        ] {
            let (from, to) = (Url::parse(from).unwrap(), Url::parse(to).unwrap());
            assert_eq!(check_redirect(&from, &to).is_ok(), good, "{from} {to}");
        }
    }

    #[test]
    fn messages_do_not_repeat_secrets() {
        let error = check(&Url::parse("http://ann:hush@example.com/a?token=hush").unwrap()).unwrap_err().to_string();
        assert!(!error.contains("hush") && error.contains("example.com"), "{error}");
    }
}
