//! How the client makes itself known to who signs users in.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{ask, discovery::Issuer, form::encoded, tokens::refused};
use crate::{
    config::{OAuth, Registration},
    net::{Net, Request},
    text::shown,
};

/// How it proves that it is itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Not at all: everybody who has the program could.
    #[default]
    None,
    /// By its secret, in a header.
    Basic,
    /// By its secret, in the form.
    Post,
}

impl Method {
    const ALL: [(Self, &str); 3] =
        [(Self::None, "none"), (Self::Basic, "client_secret_basic"), (Self::Post, "client_secret_post")];

    /// By what the standard calls it.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(method, _)| *method)
    }

    /// What the standard calls it.
    pub(super) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(method, _)| *method == self).map_or("none", |(_, name)| name)
    }
}

/// A client, as who signs users in knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// Its name there.
    pub id: String,
    /// Its secret.
    pub secret: Option<String>,
    /// How it proves that it is itself.
    pub method: Method,
}

impl Client {
    /// The one that the configuration names, if it does.
    pub(super) fn configured(oauth: &OAuth, secret: Option<String>, issuer: &Issuer) -> Result<Option<Self>, String> {
        let Some(id) = oauth.client_id.clone() else { return Ok(None) };
        if id.starts_with("https://") {
            if oauth.registration == Registration::Document || issuer.takes_documents {
                return Ok(Some(Self { id, ..Self::default() }));
            }
            // A document that nobody reads is no reason not to register.
            return match oauth.registration {
                Registration::Auto if issuer.register.is_some() => Ok(None),
                _ => Err(format!("{} does not know clients by documents", shown(&issuer.name))),
            };
        }
        let knows =
            |method: Method| issuer.methods.as_ref().is_none_or(|known| known.iter().any(|name| name == method.name()));
        let method = match &secret {
            None => Method::None,
            Some(_) if !knows(Method::Basic) && knows(Method::Post) => Method::Post,
            Some(_) => Method::Basic,
        };
        Ok(Some(Self { id, secret, method }))
    }

    /// One that is registered for this.
    pub(super) async fn register(
        net: &dyn Net,
        oauth: &OAuth,
        issuer: &Issuer,
        redirect: &str,
        scope: Option<&str>,
    ) -> Result<Self, String> {
        let Some(place) = &issuer.register else {
            return Err(format!(
                "{} does not let clients register; have one registered there, and write its \"clientId\" into \"oauth\"",
                shown(&issuer.name)
            ));
        };
        let known = issuer.methods.iter().flatten().find_map(|name| Method::named(name));
        let has_none = issuer.methods.as_ref().is_none_or(|all| all.iter().any(|name| name == "none"));
        let method = if has_none { Method::None } else { known.unwrap_or(Method::Basic) };
        let mut told = json!({
            "client_name": oauth.client_name.as_deref().unwrap_or("Atoll"),
            "redirect_uris": [redirect],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method.name(),
            "application_type": "native",
        });
        if let Some(scope) = scope {
            told["scope"] = json!(scope);
        }
        let request = Request::new("POST", place)
            .header("accept", "application/json")
            .body("application/json", told.to_string().into_bytes());
        let (status, body) = ask(net, request).await.map_err(|why| format!("{}: {why}", shown(place)))?;
        if !(200..300).contains(&status) {
            return Err(format!("{} does not register us: {}", shown(&issuer.name), refused(status, &body)));
        }
        let id = body["client_id"].as_str().filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| format!("{} registers us without a name", shown(&issuer.name)))?;
        let secret = body["client_secret"].as_str().filter(|secret| !secret.is_empty()).map(str::to_owned);
        let said = body["token_endpoint_auth_method"].as_str().and_then(Method::named).unwrap_or(method);
        let method = match (&secret, said) {
            (None, _) => Method::None,
            // It has given a secret, so it wants to see it.
            (Some(_), Method::None) if body["token_endpoint_auth_method"].is_null() => Method::Basic,
            (Some(_), said) => said,
        };
        Ok(Self { id: id.to_owned(), secret, method })
    }

    /// A request for tokens with these fields, from this client.
    pub(super) fn signed(&self, place: &str, fields: &[(&str, &str)]) -> Request {
        let mut all = fields.to_vec();
        let mut request = Request::new("POST", place).header("accept", "application/json");
        match (self.method, &self.secret) {
            (Method::Basic, Some(secret)) => {
                let pair = STANDARD.encode(format!("{}:{}", encoded(&self.id), encoded(secret)));
                request = request.header("authorization", &format!("Basic {pair}"));
            }
            (Method::Post, Some(secret)) => all.extend([("client_id", self.id.as_str()), ("client_secret", secret)]),
            _ => all.push(("client_id", &self.id)),
        }
        request.body("application/x-www-form-urlencoded", super::form::form(&all).into_bytes())
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"id": self.id, "secret": self.secret, "method": self.method.name()})
    }

    pub(super) fn read(kept: &Value) -> Option<Self> {
        let text = |field: &str| kept[field].as_str().map(str::to_owned);
        Some(Self { id: text("id")?, secret: text("secret"), method: Method::named(&text("method")?)? })
    }
}
