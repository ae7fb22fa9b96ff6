//! Signing a person in, from what a server publishes to the tokens.

use super::{
    Client, Kept, Random, Wanted,
    discovery::{Issuer, Resource},
    form::{fields, form},
    pkce,
    tokens::{Refusal, tokens},
};
use crate::{
    config::OAuth,
    net::Net,
    text::{one_line, shown},
};

/// The scope that a renewal may need.
const OFFLINE: &str = "offline_access";

/// What is known of who signs a server's users in.
#[derive(Clone, Debug)]
pub struct SignIn {
    resource: Resource,
    issuer: Issuer,
    server: String,
    pub(super) scope: Option<String>,
}

/// What a person is asked to open, and what has to be known when it leads back.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What to open.
    pub url: String,
    pub(super) state: String,
    verifier: String,
    redirect: String,
    pub(super) client: Client,
}

impl SignIn {
    /// Finds out who signs a server's users in, and what to ask them for.
    ///
    /// # Errors
    /// Why nobody can be asked.
    pub async fn find(
        net: &dyn Net,
        server: &str,
        oauth: &OAuth,
        wanted: &Wanted,
        kept: &Kept,
    ) -> Result<Self, String> {
        let resource = Resource::find(net, server, wanted.metadata.as_deref()).await?;
        let issuer = match (&oauth.metadata_url, &resource.issuer) {
            (Some(url), _) => Issuer::of_document(net, url).await?,
            (None, Some(name)) => Issuer::find(net, name).await?,
            (None, None) => Issuer::of_old(net, server).await?,
        };
        let scope = scope(oauth, wanted, &resource, &issuer, kept);
        Ok(Self { resource, issuer, server: server.to_owned(), scope })
    }

    /// What a person has to open. The client of last time is used again while what it was given is good, if its way back is
    /// this one.
    ///
    /// # Errors
    /// Why we can not make ourselves known.
    pub async fn ask(
        &self,
        net: &dyn Net,
        random: &dyn Random,
        oauth: &OAuth,
        secret: Option<String>,
        kept: &Kept,
        redirect: &str,
    ) -> Result<Asked, String> {
        let is_known = kept.issuer == self.issuer.name && kept.redirect == redirect && kept.tokens.is_some();
        let client = match Client::configured(oauth, secret, &self.issuer)? {
            Some(client) => client,
            None => match kept.client.clone().filter(|_| is_known && oauth.client_id.is_none()) {
                Some(client) => client,
                None => Client::register(net, oauth, &self.issuer, redirect, self.scope.as_deref()).await?,
            },
        };
        let (state, verifier) = (pkce::secret(random)?, pkce::secret(random)?);
        let challenge = pkce::challenge(&verifier);
        let mut query = vec![
            ("response_type", "code"),
            ("client_id", client.id.as_str()),
            ("redirect_uri", redirect),
            ("state", state.as_str()),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
        ];
        if let Some(scope) = &self.scope {
            query.push(("scope", scope));
            if scope.split(' ').any(|one| one == OFFLINE) {
                query.push(("prompt", "consent"));
            }
        }
        query.push(("resource", self.resource_name()));
        let mark = if self.issuer.authorize.contains('?') { '&' } else { '?' };
        let url = format!("{}{mark}{}", self.issuer.authorize, form(&query));
        Ok(Asked { url, state, verifier, redirect: redirect.to_owned(), client })
    }

    /// What the server is called where tokens are asked for: as it publishes it, else its address.
    pub(super) fn resource_name(&self) -> &str {
        self.resource.name.as_deref().unwrap_or_else(|| self.server.split('#').next().unwrap_or_default())
    }

    /// What is to be kept, once a person has been led back to this address.
    ///
    /// # Errors
    /// Why they were not let in.
    pub async fn finish(&self, net: &dyn Net, asked: &Asked, back: &str, now_ms: u64) -> Result<Kept, String> {
        let query = back.split_once('?').map_or("", |(_, query)| query);
        let query = fields(query.split('#').next().unwrap_or_default());
        let field = |name: &str| query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        if field("state") != Some(asked.state.as_str()) {
            return Err("the way back was not the one that this sign-in began; begin again".to_owned());
        }
        match field("iss") {
            Some(said) if said != self.issuer.name => {
                return Err(format!("the way back is of {}, and not of {}", shown(said), shown(&self.issuer.name)));
            }
            None if self.issuer.says_name => {
                return Err(format!("the way back does not say that it is of {}", shown(&self.issuer.name)));
            }
            _ => {}
        }
        if let Some(error) = field("error") {
            let why = field("error_description").map(|why| format!(" ({})", shown(why))).unwrap_or_default();
            return Err(format!("{} does not let us in: {}{why}", shown(&self.issuer.name), one_line(error)));
        }
        let Some(code) = field("code").filter(|code| !code.is_empty()) else {
            return Err("the way back has no code; begin again".to_owned());
        };
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", asked.redirect.as_str()),
            ("code_verifier", asked.verifier.as_str()),
            ("resource", self.resource_name()),
        ];
        let given = tokens(net, asked.client.signed(&self.issuer.token, &fields), now_ms).await;
        let tokens = given.map_err(|refusal| match refusal {
            Refusal::ForGood(why) | Refusal::Unreachable(why) => why,
        })?;
        Ok(Kept {
            asked: self.scope.clone(),
            tokens: Some(tokens),
            client: Some(asked.client.clone()),
            issuer: self.issuer.name.clone(),
            token_place: self.issuer.token.clone(),
            resource: Some(self.resource_name().to_owned()),
            redirect: asked.redirect.clone(),
            wanted: None,
        })
    }
}

/// What to ask for: what the user says, else what the server wants, else what it knows; with what was asked for before, and
/// with what a renewal needs where that is known.
fn scope(oauth: &OAuth, wanted: &Wanted, resource: &Resource, issuer: &Issuer, kept: &Kept) -> Option<String> {
    let mut all: Vec<&str> = Vec::new();
    let published = resource.scopes.as_ref().map(|scopes| scopes.join(" "));
    let before = kept.asked.as_deref().filter(|_| kept.issuer == issuer.name && kept.tokens.is_some());
    let first = oauth.scope.as_deref().or(wanted.scope.as_deref()).or(published.as_deref());
    let more = oauth.scope.as_ref().and(wanted.scope.as_deref());
    for scope in [before, first, more].into_iter().flatten() {
        for one in scope.split_whitespace() {
            if !all.contains(&one) {
                all.push(one);
            }
        }
    }
    if !all.is_empty() && !all.contains(&OFFLINE) && issuer.scopes.iter().any(|scope| scope == OFFLINE) {
        all.push(OFFLINE);
    }
    Some(all.join(" ")).filter(|scope| !scope.is_empty())
}
