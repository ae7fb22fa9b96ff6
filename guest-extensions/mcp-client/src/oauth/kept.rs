//! What is kept of a sign-in, in the plugin's own store.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Challenge, Client, Tokens};
use crate::names::namespace;

/// What is kept of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// What lets us in.
    pub tokens: Option<Tokens>,
    /// Who we are to who signs users in.
    pub client: Option<Client>,
    /// Who signs users in; nothing of one is ever shown to another.
    pub issuer: String,
    /// Where tokens are given.
    pub token_place: String,
    /// What the server is called there, as it is published.
    pub resource: Option<String>,
    /// What was asked for so far.
    pub asked: Option<String>,
    /// The way back that the client is known with.
    pub redirect: String,
    /// What the server wants to be signed in to with next time.
    pub wanted: Option<Wanted>,
}

/// What a server wanted when it refused us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The scopes.
    pub scope: Option<String>,
    /// Where it publishes who signs its users in.
    pub metadata: Option<String>,
}

impl From<Challenge> for Wanted {
    fn from(challenge: Challenge) -> Self {
        Self { scope: challenge.scope, metadata: challenge.metadata }
    }
}

/// The key in the store: by name and address, so that the same address under two names is signed in to twice.
pub fn key(server: &str, url: &str) -> String {
    let digest = Sha256::digest(format!("{}|{url}", namespace(server)).as_bytes());
    let digest: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("oauth/{digest}")
}

impl Kept {
    /// Whether these scopes were all asked for already, so that asking again would change nothing.
    pub fn has_asked_for(&self, scope: &str) -> bool {
        let asked = self.asked.as_deref().unwrap_or_default();
        scope.split_whitespace().all(|one| asked.split_whitespace().any(|known| known == one))
    }

    /// As it is kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        let wanted = self.wanted.as_ref().map(|wanted| json!({"scope": wanted.scope, "metadata": wanted.metadata}));
        let kept = json!({
            "version": 1,
            "tokens": self.tokens.as_ref().map(Tokens::to_json),
            "client": self.client.as_ref().map(Client::to_json),
            "issuer": self.issuer,
            "tokenPlace": self.token_place,
            "resource": self.resource,
            "asked": self.asked,
            "redirect": self.redirect,
            "wanted": wanted,
        });
        kept.to_string().into_bytes()
    }

    /// What is kept; what can not be read is nothing.
    pub fn read(bytes: &[u8]) -> Self {
        let kept: Value = serde_json::from_slice(bytes).unwrap_or_default();
        if kept["version"] != 1 {
            return Self::default();
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let wanted = &kept["wanted"];
        Self {
            tokens: Tokens::read(&kept["tokens"]),
            client: Client::read(&kept["client"]),
            issuer: text(&kept["issuer"]).unwrap_or_default(),
            token_place: text(&kept["tokenPlace"]).unwrap_or_default(),
            resource: text(&kept["resource"]),
            asked: text(&kept["asked"]),
            redirect: text(&kept["redirect"]).unwrap_or_default(),
            wanted: wanted
                .is_object()
                .then(|| Wanted { scope: text(&wanted["scope"]), metadata: text(&wanted["metadata"]) }),
        }
    }
}
