//! The one way to the network. Every request and every redirect of it is checked here, and only here are secrets
//! put into headers.

mod reach;
mod recorded;

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, OnceLock, PoisonError},
    time::Duration,
};

use atoll_caps::{Origin, printable};
use atoll_table::{Error, model::Secret};
use bytes::Bytes;
use futures::{StreamExt as _, stream::BoxStream};
use reqwest::{
    Client, ClientBuilder, Method, StatusCode, Url,
    header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::{
    audit::{Uses, Verdict},
    call::{Caller, Use, check_length},
    imports::secrets,
    redaction,
    state::{GrantedSecret, PluginContext},
};
use reach::{OutOfReach, Reach, Resolver};
pub use recorded::{RecordedAnswer, RecordedRequest, Recordings};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(15);
/// How many pieces of a body may wait to be taken.
const QUEUE: usize = 16;
/// The most redirects followed, whatever was asked for.
const MAX_REDIRECTS: u32 = 20;

/// What a plugin may not set: it belongs to the connection and its ends, or would make the request another one than was
/// checked.
const FORBIDDEN_HEADERS: [&str; 13] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "http2-settings",
];

/// The clients, each made when it is first needed. Connections are only shared within one, so that one which was made to
/// an address that some plugin may use never serves another.
#[derive(Default)]
pub(crate) struct HttpClient {
    public: OnceLock<Client>,
    loopback: OnceLock<Client>,
    any: OnceLock<Client>,
    /// What answers in place of the network, if anything.
    recordings: OnceLock<Recordings>,
}

/// A request's body.
pub(crate) enum SendBody {
    Empty,
    Bytes(Bytes),
    Stream(BoxStream<'static, Result<Bytes, std::convert::Infallible>>),
}

/// A request as a plugin makes it.
pub(crate) struct SendRequest {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: SendBody,
    pub(crate) timeout: Option<Duration>,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) max_redirects: u32,
}

/// A response whose body is still arriving.
pub(crate) struct Received {
    pub(crate) status: u16,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: mpsc::Receiver<Bytes>,
    pub(crate) done: oneshot::Receiver<Result<(), Error>>,
}

impl HttpClient {
    /// The client for names that may lead as far as `reach`.
    fn client(&self, reach: Reach) -> Result<Client, Error> {
        let kept = match reach {
            Reach::Public => &self.public,
            Reach::Loopback => &self.loopback,
            Reach::Any => &self.any,
        };
        if let Some(client) = kept.get() {
            return Ok(client.clone());
        }
        let client = Self::build(|builder| builder.dns_resolver(Arc::new(Resolver::new(reach))))?;
        Ok(kept.get_or_init(|| client).clone())
    }

    /// Neither redirects nor proxies are ever followed by the client itself.
    fn build(more: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Result<Client, Error> {
        // Fails only if another part of the process chose a provider before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder()
            .redirect(Policy::none())
            .connect_timeout(CONNECT)
            .no_proxy()
            .user_agent(concat!("atoll/", env!("CARGO_PKG_VERSION")));
        more(builder)
            .build()
            .map_err(|error| Error::Failed(format!("the network can not be set up: {}", causes(&error))))
    }

    /// The client for what the host itself fetches, from this machine alone or from anywhere. It follows no redirect.
    pub(crate) fn for_host(&self, this_machine_only: bool) -> Result<Client, Error> {
        self.client(if this_machine_only { Reach::Loopback } else { Reach::Any })
    }

    /// From now on nothing is sent: requests of plugins are answered by these.
    pub(crate) fn play(&self, recordings: Recordings) {
        let _ = self.recordings.set(recordings);
    }

    /// Sends a request for a plugin and waits for the response's head.
    pub(crate) async fn send(&self, plugin: &Caller, request: SendRequest) -> Result<Received, Error> {
        let method = Method::from_bytes(request.method.as_bytes()).map_err(|_| {
            Error::InvalidArguments(format!("`{}` is not an HTTP method", request.method.escape_debug()))
        })?;
        if matches!(method, Method::CONNECT | Method::TRACE) {
            return Err(Error::InvalidArguments(format!(
                "the method {method} can not be used; it is no plain request"
            )));
        }
        check_length(&request.url)?;
        check_length(&request.method)?;
        let mut url = parse(&request.url)?;
        let limit = request.timeout;
        let idle = request.idle_timeout;
        let work = async {
            let mut hop = Hop { method, headers: request.headers };
            let mut body = request.body;
            let mut redirects = 0;
            loop {
                let (origin, verdict) = check(plugin, &url, hop.method.as_str()).await?;
                let headers = headers(plugin, &origin, &hop.headers).await?;
                let used = HttpUse::new(plugin, &hop.method, &url, verdict);
                let (response, replayable) = match self.recordings.get() {
                    Some(recordings) => recorded::answer(recordings, &hop.method, &url, &hop.headers, body).await?,
                    None => self.exchange(plugin, &hop.method, &url, &origin, headers, body).await?,
                };
                let next = match redirect_target(&url, &response) {
                    Some(next) if redirects < request.max_redirects.min(MAX_REDIRECTS) => next?,
                    _ => return Ok((response, used)),
                };
                redirects += 1;
                body = hop.after_redirect(response.status(), &url, &next, replayable)?;
                url = next;
            }
        };
        let (response, used) = match limit {
            Some(limit) => plugin.call.clock.within(limit, work).await.unwrap_or_else(|| {
                Err(Error::Timeout(format!("no answer from {} within {} ms", request.url, limit.as_millis())))
            }),
            None => work.await,
        }?;
        Ok(receive(response, used, idle))
    }

    /// Sends one request over the network. Gives the body too, if it can be sent once more.
    async fn exchange(
        &self,
        plugin: &Caller,
        method: &Method,
        url: &Url,
        origin: &Origin,
        headers: HeaderMap,
        body: SendBody,
    ) -> Result<(reqwest::Response, Option<SendBody>), Error> {
        let (replayable, sent) = body.split();
        let client = self.client(reach_of(plugin, origin))?;
        let mut builder = client.request(method.clone(), url.clone()).headers(headers.clone());
        if let Some(sent) = sent {
            builder = builder.body(sent);
        }
        let error = match builder.send().await {
            Ok(response) => return Ok((response, replayable)),
            Err(error) => error,
        };
        // Nothing was sent to one that is out of reach.
        let Some(elsewhere) = OutOfReach::reason_of(&error) else { return Err(unreachable_server(url, &error)) };
        let client = granted_by_address(plugin, origin, method, elsewhere)?;
        let again = replayable
            .ok_or_else(|| Error::Failed(format!("{elsewhere}; send the body whole, for a stream can be sent once")))?;
        let (replayable, sent) = again.split();
        let mut builder = client.request(method.clone(), url.clone()).headers(headers);
        if let Some(sent) = sent {
            builder = builder.body(sent);
        }
        Ok((builder.send().await.map_err(|error| unreachable_server(url, &error))?, replayable))
    }
}

/// One request of a chain of redirects.
struct Hop {
    method: Method,
    headers: Vec<(String, String)>,
}

impl SendBody {
    /// What could be sent once more, and what to send now.
    fn split(self) -> (Option<Self>, Option<reqwest::Body>) {
        match self {
            Self::Empty => (Some(Self::Empty), None),
            Self::Bytes(bytes) => (Some(Self::Bytes(bytes.clone())), Some(bytes.into())),
            Self::Stream(stream) => (None, Some(reqwest::Body::wrap_stream(stream))),
        }
    }
}

impl Hop {
    /// RFC 9110, 15.4: 303 always becomes GET, 301 and 302 do for POST, 307 and 308 keep method and body. Another
    /// origin gets only headers that say nothing of who asks.
    /// Gives the body to send on.
    fn after_redirect(
        &mut self,
        status: StatusCode,
        from: &Url,
        to: &Url,
        replayable: Option<SendBody>,
    ) -> Result<SendBody, Error> {
        let becomes_get = status == StatusCode::SEE_OTHER
            || (matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND) && self.method == Method::POST);
        let body = if becomes_get && self.method != Method::HEAD {
            self.method = Method::GET;
            self.headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with("content-"));
            SendBody::Empty
        } else {
            replayable.ok_or_else(|| {
                Error::Failed(format!("{from} answers with a redirect, and a streamed body can not be sent again"))
            })?
        };
        if from.origin() != to.origin() {
            self.headers.retain(|(name, value)| is_for_anybody(name) && !value.contains("{{secret:"));
        }
        Ok(body)
    }
}

/// Whether a header says what is asked for, and nothing of who asks: keys come in headers of any name.
fn is_for_anybody(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let known = ["accept", "accept-encoding", "accept-language", "cache-control", "pragma", "range", "user-agent"];
    known.contains(&name.as_str()) || name.starts_with("content-") || name.starts_with("if-")
}

pub(crate) fn parse(given: &str) -> Result<Url, Error> {
    let text = printable(given);
    let url = Url::parse(given).map_err(|error| Error::InvalidArguments(format!("`{text}` is not a URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Error::InvalidArguments(format!("`{text}`: only http and https can be fetched")));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::InvalidArguments("a URL must not carry a user name or password".to_owned()));
    }
    Ok(url)
}

/// The origin of a URL that [`parse`] let through.
pub(crate) fn origin_of(url: &Url) -> Option<Origin> {
    let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    Some(Origin { scheme: url.scheme().to_owned(), host, port: url.port_or_known_default()? })
}

async fn check(plugin: &Caller, url: &Url, method: &str) -> Result<(Origin, Verdict), Error> {
    let origin = origin_of(url).ok_or_else(|| Error::InvalidArguments(format!("{url} names no host")))?;
    let models = plugin.model_origins.read().unwrap_or_else(PoisonError::into_inner).clone();
    let the_use = Use { capability: "http", operation: method, target: url.as_str() };
    let verdict = plugin
        .permit(the_use, |effective| effective.check_http(&origin.scheme, &origin.host, origin.port, method, &models))
        .await?;
    Ok((origin, verdict))
}

impl PluginContext {
    /// Whether this is the server of a model that the plugin was asked to speak to.
    pub(crate) fn is_model_server(&self, url: &str) -> bool {
        let origin = Url::parse(url).ok().as_ref().and_then(origin_of);
        let models = self.model_origins.read().unwrap_or_else(PoisonError::into_inner);
        origin.is_some_and(|origin| models.contains(&origin))
    }
}

/// How far a name that a request may go to may lead.
fn reach_of(plugin: &PluginContext, origin: &Origin) -> Reach {
    let is_model = || plugin.user_origins.read().unwrap_or_else(PoisonError::into_inner).contains(origin);
    if origin.host == "localhost" || origin.host.ends_with(".localhost") {
        Reach::Loopback
    } else if origin.host.parse::<IpAddr>().is_ok() || is_model() {
        Reach::Any
    } else {
        Reach::Public
    }
}

/// A client for a name that leads to addresses outside of the public internet, if the plugin may send the same request to
/// those by their own names. It connects to these and no others.
fn granted_by_address(
    plugin: &Caller,
    origin: &Origin,
    method: &Method,
    elsewhere: &OutOfReach,
) -> Result<Client, Error> {
    let effective = plugin.effective();
    let check = |address: &IpAddr| {
        effective.check_http(&origin.scheme, &address.to_string(), origin.port, method.as_str(), &[])
    };
    let granted: Vec<SocketAddr> = elsewhere
        .addresses
        .iter()
        .filter(|address| check(address).is_ok())
        .map(|address| SocketAddr::new(*address, origin.port))
        .collect();
    if granted.is_empty() {
        let target = format!(
            "{origin}, which leads to {}",
            elsewhere.addresses.first().map_or_else(String::new, ToString::to_string)
        );
        plugin.denied(Use { capability: "http", operation: method.as_str(), target: &target }, Verdict::Denied);
        let hint = elsewhere.addresses.first().and_then(|address| check(address).err()).map(|denied| denied.hint);
        return Err(Error::Denied {
            capability: "http".to_owned(),
            target,
            hint: hint.unwrap_or_else(|| "use a name that leads to a server of the public internet".to_owned()),
        });
    }
    HttpClient::build(|builder| builder.resolve_to_addrs(&origin.host, &granted))
}

/// A request, written down when its answer has arrived or is given up.
struct HttpUse {
    uses: Uses,
    method: String,
    url: String,
    verdict: Verdict,
    received: u64,
}

impl HttpUse {
    fn new(plugin: &Caller, method: &Method, url: &Url, verdict: Verdict) -> Self {
        // Beside those of the call, for the body may arrive after its end.
        let uses = plugin.call.uses.beside();
        let used = Self { uses, method: method.to_string(), url: url.to_string(), verdict, received: 0 };
        // So that it is not lost if the program ends in the middle of the answer.
        used.uses.add("http", &used.method, &used.url, verdict, 1, None);
        used
    }
}

impl Drop for HttpUse {
    fn drop(&mut self) {
        self.uses.add("http", &self.method, &self.url, self.verdict, 0, Some(self.received));
    }
}

/// The headers to send, with secrets filled in.
async fn headers(plugin: &Caller, origin: &Origin, given: &[(String, String)]) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let bad = |what: &str| Error::InvalidArguments(format!("the header `{}` {what}", name.escape_debug()));
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("has a malformed name"))?;
        if FORBIDDEN_HEADERS.contains(&parsed.as_str()) {
            return Err(bad("is the host's to set"));
        }
        let value = fill_in(plugin, origin, value).await?;
        if parsed == AUTHORIZATION
            && let Some(credential) = redaction::credential(&value)
        {
            plugin.sends_credential(credential);
        }
        // The value may hold a secret: it is not shown, and marked so that no log shows it.
        let mut parsed_value = HeaderValue::from_str(&value).map_err(|_| bad("has a value that can not be sent"))?;
        parsed_value.set_sensitive(true);
        headers.append(parsed, parsed_value);
    }
    Ok(headers)
}

/// Replaces `{{secret:NAME}}` by the secret, if it may be sent to this origin, to which the plugin may make requests.
async fn fill_in(plugin: &Caller, origin: &Origin, value: &str) -> Result<String, Error> {
    let mut filled = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("{{secret:") {
        let Some((name, after)) = after.split_once("}}") else {
            return Err(Error::InvalidArguments("a header names a secret without `}}` at its end".to_owned()));
        };
        let secret = secret(plugin, origin, name).await?;
        filled.push_str(before);
        filled.push_str(secret.reveal());
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// A secret that this plugin may send to this origin: one that came with a model, else one of the user's that its manifest
/// asks for and that it is granted.
async fn secret(plugin: &Caller, origin: &Origin, name: &str) -> Result<Secret, Error> {
    let the_use = Use { capability: "secrets", operation: "header", target: name };
    let of_model = plugin.secrets.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
    if let Some(GrantedSecret { value, origins }) = of_model {
        if !origins.contains(origin) {
            plugin.denied(the_use, Verdict::Denied);
            return Err(Error::Denied {
                capability: "secrets".to_owned(),
                target: format!("{name}, to be sent to {}://{}:{}", origin.scheme, origin.host, origin.port),
                hint: "a key is only sent to the base URL it was configured for".to_owned(),
            });
        }
        plugin.call.uses.used("secrets", "header", name, Verdict::Allowed);
        return Ok(value);
    }
    let verdict = plugin.permit(the_use, |effective| effective.check_secret(name, false)).await?;
    let value = secrets::look_up(plugin, name).await?;
    plugin.call.uses.used("secrets", "header", name, verdict);
    Ok(value)
}

fn redirect_target(from: &Url, response: &reqwest::Response) -> Option<Result<Url, Error>> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = response.headers().get("location")?.to_str().ok()?;
    let joined = from.join(location).map_err(|error| Error::Failed(format!("{from} redirects to nowhere: {error}")));
    Some(joined.and_then(|url| parse(url.as_str())))
}

/// Takes the body as it comes and hands it over through a queue.
fn receive(response: reqwest::Response, mut used: HttpUse, idle: Option<Duration>) -> Received {
    let status = response.status().as_u16();
    let url = response.url().to_string();
    let headers = response
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let (sender, body) = mpsc::channel(QUEUE);
    let (done_sender, done) = oneshot::channel();
    let shown = url.clone();
    tokio::spawn(async move {
        let mut pieces = response.bytes_stream();
        let outcome = loop {
            let next = async {
                match idle {
                    Some(idle) => timeout(idle, pieces.next()).await.map_err(|_| idle),
                    None => Ok(pieces.next().await),
                }
            };
            // When nobody takes the body any more, the connection is closed at once and not at the next piece.
            let piece = tokio::select! {
                piece = next => piece,
                () = sender.closed() => break Ok(()),
            };
            match piece {
                Ok(Some(Ok(piece))) if piece.is_empty() => {}
                Ok(Some(Ok(piece))) => {
                    used.received += piece.len() as u64;
                    if sender.send(piece).await.is_err() {
                        break Ok(());
                    }
                }
                Ok(Some(Err(error))) => {
                    break Err(Error::Unavailable(format!("the answer of {shown} broke off: {}", causes(&error))));
                }
                Ok(None) => break Ok(()),
                Err(idle) => {
                    let ms = idle.as_millis();
                    break Err(Error::Timeout(format!("{shown} went silent for {ms} ms in the middle of its answer")));
                }
            }
        };
        // Written down before anybody may take the request for done.
        drop(used);
        let _ = done_sender.send(outcome);
    });
    Received { status, url, headers, body, done }
}

fn unreachable_server(url: &Url, error: &reqwest::Error) -> Error {
    let place = format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default());
    let place = url.port().map_or(place.clone(), |port| format!("{place}:{port}"));
    let why = causes(error);
    if error.is_connect() {
        Error::Unavailable(format!("could not connect to {place}: {why}"))
    } else {
        Error::Unavailable(format!("no answer from {place}: {why}"))
    }
}

/// The innermost reason, which says most: `connection refused` and the like.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(next) = innermost.source() {
        innermost = next;
    }
    innermost.to_string()
}
