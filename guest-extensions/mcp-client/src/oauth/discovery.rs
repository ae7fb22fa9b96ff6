//! Who signs a server's users in, as the server and they themselves publish it.

use serde_json::Value;

use super::ask;
use crate::{
    config::Address,
    net::{Net, Request},
    text::shown,
};

/// How many redirects a document may be away.
const REDIRECTS: u32 = 3;

/// What a server publishes of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Resource {
    /// What it is called, as it is written; none if it publishes nothing.
    pub(super) name: Option<String>,
    /// Who signs its users in.
    pub(super) issuer: Option<String>,
    /// The scopes that it knows.
    pub(super) scopes: Option<Vec<String>>,
}

/// Who signs users in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Issuer {
    /// Its name, as it writes it.
    pub(super) name: String,
    /// Where a person goes.
    pub(super) authorize: String,
    /// Where tokens are given.
    pub(super) token: String,
    /// Where clients register, if they can.
    pub(super) register: Option<String>,
    /// How clients may make themselves known where tokens are given; none if it does not say.
    pub(super) methods: Option<Vec<String>>,
    /// The scopes that it knows.
    pub(super) scopes: Vec<String>,
    /// A client may be known by the address of a document.
    pub(super) takes_documents: bool,
    /// It says its name to a person's browser, too.
    pub(super) says_name: bool,
}

fn strings(value: &Value) -> Option<Vec<String>> {
    let list = value.as_array()?;
    Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// An address that secrets may go to.
fn private(url: &str, what: &str) -> Result<Address, String> {
    let address = Address::parse(url).map_err(|why| format!("{what} is {}: {why}", shown(url)))?;
    if !address.is_private() {
        return Err(format!("{what} is {}, which is neither https nor this machine", shown(url)));
    }
    Ok(address)
}

/// A document, if there is one. A status that says that there is none is none; anything else is an error.
async fn document(net: &dyn Net, url: &str) -> Result<Option<Value>, String> {
    let mut request = Request::new("GET", url).header("accept", "application/json");
    request.redirects = REDIRECTS;
    let (status, body) = ask(net, request).await.map_err(|why| format!("{}: {why}", shown(url)))?;
    match status {
        200..=299 if body.is_object() => Ok(Some(body)),
        200..=499 => Ok(None),
        _ => Err(format!("{} answers with HTTP {status}", shown(url))),
    }
}

impl Resource {
    /// What a server publishes; where, it may have said when it refused somebody.
    pub(super) async fn find(net: &dyn Net, server: &str, told: Option<&str>) -> Result<Self, String> {
        let here = Address::parse(server)?;
        if let Some(url) = told {
            private(url, "where the server publishes who signs its users in")?;
            let Some(found) = document(net, url).await? else {
                return Err(format!(
                    "the server says that {} has who signs its users in, and nothing is there",
                    shown(url)
                ));
            };
            return Self::read(&found, &here);
        }
        let (origin, path) = (here.origin(), here.path().trim_end_matches('/'));
        let mut places = vec![format!("{origin}/.well-known/oauth-protected-resource{path}")];
        if !path.is_empty() {
            places.push(format!("{origin}/.well-known/oauth-protected-resource"));
        }
        for place in places {
            if let Some(found) = document(net, &place).await?.filter(|found| found["resource"].is_string()) {
                return Self::read(&found, &here);
            }
        }
        Ok(Self::default())
    }

    fn read(found: &Value, here: &Address) -> Result<Self, String> {
        let name = text(&found["resource"]).ok_or("what the server publishes does not say what it is called")?;
        // Tokens for another server must not be had in this one's name.
        let is_ours = Address::parse(&name).is_ok_and(|named| {
            let (path, ours) = (named.path().trim_end_matches('/'), here.path());
            let is_above = ours.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            named.is_beside(here) && is_above
        });
        if !is_ours {
            return Err(format!("the server publishes that it is {}, which is another one", shown(&name)));
        }
        let issuer = strings(&found["authorization_servers"]).and_then(|all| all.into_iter().next());
        Ok(Self { name: Some(name), issuer, scopes: strings(&found["scopes_supported"]) })
    }
}

/// Where an issuer publishes what it does.
fn places(issuer: &Address) -> Vec<String> {
    let (origin, path) = (issuer.origin(), issuer.path().trim_end_matches('/'));
    let mut places = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    places
}

impl Issuer {
    /// The one of this name.
    pub(super) async fn find(net: &dyn Net, name: &str) -> Result<Self, String> {
        let address = private(name, "who signs users in")?;
        for place in places(&address) {
            if let Some(found) = document(net, &place).await? {
                let issuer = Self::read(&found)?;
                if issuer.name.trim_end_matches('/') != name.trim_end_matches('/') {
                    return Err(format!(
                        "{} says of itself that it is {}; it is not trusted",
                        shown(name),
                        shown(&issuer.name)
                    ));
                }
                return Ok(issuer);
            }
        }
        Err(format!("{} does not publish how users are signed in", shown(name)))
    }

    /// The one that a document describes, which the user trusts.
    pub(super) async fn of_document(net: &dyn Net, url: &str) -> Result<Self, String> {
        private(url, "oauth.authServerMetadataUrl")?;
        let found = document(net, url).await?;
        Self::read(&found.ok_or_else(|| format!("there is nothing at {}", shown(url)))?)
    }

    /// The one that a server is itself, as the first revision with signing in had it.
    pub(super) async fn of_old(net: &dyn Net, server: &str) -> Result<Self, String> {
        let here = private(server, "the server")?;
        let origin = here.origin();
        if let Some(found) = document(net, &format!("{origin}/.well-known/oauth-authorization-server")).await? {
            let issuer = Self::read(&found)?;
            if issuer.name.trim_end_matches('/') != origin {
                let said = shown(&issuer.name);
                return Err(format!("{} says of itself that it is {said}; it is not trusted", shown(&origin)));
            }
            return Ok(issuer);
        }
        Ok(Self {
            authorize: format!("{origin}/authorize"),
            token: format!("{origin}/token"),
            register: Some(format!("{origin}/register")),
            name: origin,
            ..Self::default()
        })
    }

    fn read(found: &Value) -> Result<Self, String> {
        let name = text(&found["issuer"]).ok_or("who signs users in does not say its name")?;
        let place = |field: &str| {
            let url = text(&found[field])?;
            Some(private(&url, field).map(|_| url))
        };
        let needed = |field: &str| place(field).unwrap_or_else(|| Err(format!("{} has no {field}", shown(&name))));
        if strings(&found["code_challenge_methods_supported"]).is_some_and(|all| !all.iter().any(|one| one == "S256")) {
            return Err(format!("{} does not know PKCE with S256", shown(&name)));
        }
        Ok(Self {
            authorize: needed("authorization_endpoint")?,
            token: needed("token_endpoint")?,
            register: place("registration_endpoint").transpose()?,
            methods: strings(&found["token_endpoint_auth_methods_supported"]),
            scopes: strings(&found["scopes_supported"]).unwrap_or_default(),
            takes_documents: found["client_id_metadata_document_supported"] == true,
            says_name: found["authorization_response_iss_parameter_supported"] == true,
            name,
        })
    }
}
