//! The object `oauth` of an entry.

use serde_json::{Map, Value};

use super::{
    Place,
    address::Address,
    problem::{Findings, shown},
    spelling,
};
use crate::template::Template;

/// How the client makes itself known to who signs users in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Registration {
    /// By a document where that is understood, else by registering.
    #[default]
    Auto,
    /// By registering.
    Dynamic,
    /// By a document.
    Document,
}

/// How to sign in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OAuth {
    /// The client, if it is known there already: its name, or the address of its document.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<Template>,
    /// The port for the way back; any free one without it.
    pub callback_port: Option<u16>,
    /// The whole address of the way back.
    pub callback_url: Option<String>,
    /// What to ask for, separated by spaces.
    pub scope: Option<String>,
    /// The name to register under.
    pub client_name: Option<String>,
    /// How the client makes itself known.
    pub registration: Registration,
    /// Where what the server should have published is.
    pub metadata_url: Option<String>,
}

const FIELDS: [&str; 8] = [
    "clientId",
    "clientSecret",
    "callbackPort",
    "callbackUrl",
    "scope",
    "clientName",
    "clientRegistration",
    "authServerMetadataUrl",
];

/// Reads the object.
pub(super) fn read(object: &Map<String, Value>, place: Place, found: &mut Findings) -> OAuth {
    let mut oauth = OAuth::default();
    for (key, value) in object {
        let field = format!("oauth.{key}");
        match key.as_str() {
            "clientId" => oauth.client_id = found.take(&field, text(value)),
            "clientSecret" => oauth.client_secret = found.take(&field, text(value).and_then(|it| place.value(&it))),
            "callbackPort" => oauth.callback_port = found.take(&field, port(value)),
            "callbackUrl" => oauth.callback_url = found.take(&field, text(value).and_then(way_back)),
            "scope" | "scopes" => oauth.scope = found.take(&field, scope(value)),
            "clientName" => oauth.client_name = found.take(&field, text(value)),
            "clientRegistration" => oauth.registration = found.take(&field, registration(value)).unwrap_or_default(),
            "authServerMetadataUrl" => oauth.metadata_url = found.take(&field, text(value).and_then(private)),
            _ => found.error(spelling::unknown("oauth.", key, &FIELDS)),
        }
    }
    let written = oauth.callback_url.as_deref().and_then(|url| Address::parse(url).ok());
    if let (Some(port), Some(of_url)) = (oauth.callback_port, written.as_ref().and_then(|url| url.port))
        && port != of_url
    {
        found.error(format!(
            "\"oauth.callbackPort\" is {port}, and \"oauth.callbackUrl\" has the port {of_url}; write one"
        ));
    }
    if oauth.registration == Registration::Document {
        let document = oauth.client_id.as_deref().and_then(|id| Address::parse(id).ok());
        if !document.is_some_and(|url| url.is_secure && url.path().len() > 1) || oauth.client_name.is_some() {
            found.error(
                "with \"oauth.clientRegistration\": \"cimd\" the \"clientId\" is the https address of the client's document, which has \
                 its name: there is no \"clientName\"",
            );
        }
        let fits = |url: &Address| url.path() == "/callback" && url.host != "::1";
        if !written.as_ref().is_none_or(fits) {
            found.error(
                "with \"oauth.clientRegistration\": \"cimd\" the \"callbackUrl\" is http://127.0.0.1/callback or \
                 http://localhost/callback, with or without a port",
            );
        }
    }
    oauth
}

fn text(value: &Value) -> Result<String, String> {
    match value.as_str() {
        Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
        Some(_) => Err("it is empty; leave it out".to_owned()),
        None => Err("it has to be a text".to_owned()),
    }
}

fn port(value: &Value) -> Result<u16, String> {
    let number = value.as_u64().and_then(|number| u16::try_from(number).ok()).filter(|port| *port > 0);
    number.ok_or_else(|| "it has to be a number from 1 to 65535".to_owned())
}

fn scope(value: &Value) -> Result<String, String> {
    let Some(list) = value.as_array() else { return text(value) };
    let words: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
    words.map(|words| words.join(" ")).ok_or_else(|| "it has to be a text with spaces between scopes".to_owned())
}

fn registration(value: &Value) -> Result<Registration, String> {
    match value.as_str() {
        Some("auto") => Ok(Registration::Auto),
        Some("dcr") => Ok(Registration::Dynamic),
        Some("cimd") => Ok(Registration::Document),
        _ => Err(format!("it has to be \"auto\", \"dcr\" or \"cimd\", not {}", shown(&spelling::plain(value)))),
    }
}

fn way_back(url: String) -> Result<String, String> {
    let why = "it has to be an http address on localhost, 127.0.0.1 or [::1], without ? and #";
    match Address::parse(&url) {
        Ok(address) if !address.is_secure && address.is_loopback() && !address.rest.contains(['?', '#']) => Ok(url),
        _ => Err(why.to_owned()),
    }
}

fn private(url: String) -> Result<String, String> {
    match Address::parse(&url) {
        Ok(address) if address.is_private() => Ok(url),
        Ok(_) => Err("it has to be an https address, or one of this machine".to_owned()),
        Err(why) => Err(why),
    }
}
