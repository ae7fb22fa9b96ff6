//! Tokens: what a sign-in gives, and how it is renewed.

use serde_json::{Value, json};

use super::{Client, Kept, ask};
use crate::{
    net::{Net, Request},
    text::{one_line, shown},
};

/// How long before its end a token is renewed, in milliseconds.
const EARLY_MS: u64 = 30_000;

/// What lets somebody in.
#[derive(Clone, PartialEq, Eq)]
pub struct Tokens {
    /// What is sent with each request.
    pub access: String,
    /// What gives a new one.
    pub refresh: Option<String>,
    /// When it ends, in milliseconds since 1970, if that was said.
    pub ends: Option<u64>,
    /// What it is good for, if that was said.
    pub scope: Option<String>,
}

impl std::fmt::Debug for Tokens {
    /// What lets somebody in is not shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("ends", &self.ends).field("scope", &self.scope).finish_non_exhaustive()
    }
}

impl Tokens {
    /// Whether it has ended, or is about to.
    pub fn is_over(&self, now_ms: u64) -> bool {
        self.ends.is_some_and(|ends| now_ms.saturating_add(EARLY_MS) >= ends)
    }

    pub(super) fn of_answer(body: &Value, now_ms: u64) -> Option<Self> {
        let text = |field: &str| body[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let kind = body["token_type"].as_str().unwrap_or("bearer");
        let access = text("access_token").filter(|token| token.bytes().all(|b| b.is_ascii_graphic()))?;
        if !kind.eq_ignore_ascii_case("bearer") {
            return None;
        }
        // Some write the number as text.
        let lasts = body["expires_in"].as_f64().or_else(|| body["expires_in"].as_str()?.parse().ok());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is bounded before")]
        let lasts = lasts.map(|seconds| (seconds.clamp(0.0, 1e10) * 1000.0) as u64);
        let ends = lasts.map(|lasts| now_ms.saturating_add(lasts));
        Some(Self { access, refresh: text("refresh_token"), ends, scope: text("scope") })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"access": self.access, "refresh": self.refresh, "ends": self.ends, "scope": self.scope})
    }

    pub(super) fn read(kept: &Value) -> Option<Self> {
        let text = |field: &str| kept[field].as_str().map(str::to_owned);
        let (refresh, ends, scope) = (text("refresh"), kept["ends"].as_u64(), text("scope"));
        Some(Self { access: text("access")?, refresh, ends, scope })
    }
}

/// Why there are no tokens, as the answer says.
pub(super) fn refused(status: u16, body: &Value) -> String {
    let text = |field: &str| body[field].as_str().filter(|text| !text.is_empty());
    match (text("error"), text("error_description")) {
        (Some(error), Some(why)) => format!("{} ({})", one_line(error), shown(why)),
        (Some(error), None) => one_line(error),
        _ => format!("HTTP {status}"),
    }
}

/// Asks for tokens.
pub(super) async fn tokens(net: &dyn Net, request: Request, now_ms: u64) -> Result<Tokens, Refusal> {
    let place = shown(&request.url);
    let (status, body) = ask(net, request).await.map_err(|why| Refusal::Unreachable(format!("{place}: {why}")))?;
    if (200..300).contains(&status) {
        return Tokens::of_answer(&body, now_ms)
            .ok_or_else(|| Refusal::Unreachable(format!("{place} answers without a token that can be used")));
    }
    let why = format!("{place} gives no token: {}", refused(status, &body));
    match body["error"].as_str() {
        Some("invalid_grant" | "invalid_client" | "unauthorized_client" | "invalid_request" | "invalid_scope") => {
            Err(Refusal::ForGood(why))
        }
        _ if matches!(status, 400 | 401) => Err(Refusal::ForGood(why)),
        _ => Err(Refusal::Unreachable(why)),
    }
}

/// Why there are no tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// What was shown for them is not taken, nor will it be.
    ForGood(String),
    /// There may be some later.
    Unreachable(String),
}

/// What came of renewing.
#[derive(Clone, Debug, PartialEq)]
pub enum Renewed {
    /// There are new tokens.
    New(Box<Kept>),
    /// A person has to sign in again; why.
    SignIn(String),
    /// There are none now; why.
    NotNow(String),
}

/// Asks for new tokens with what is kept of the last ones.
pub async fn renew(net: &dyn Net, kept: &Kept, now_ms: u64) -> Renewed {
    let Some((old, refresh)) = kept.tokens.as_ref().and_then(|old| Some((old, old.refresh.as_ref()?))) else {
        return Renewed::SignIn("its sign-in has ended".to_owned());
    };
    let Some(client) = &kept.client else { return Renewed::SignIn("it is not signed in to".to_owned()) };
    let mut fields = vec![("grant_type", "refresh_token"), ("refresh_token", refresh.as_str())];
    if let Some(resource) = &kept.resource {
        fields.push(("resource", resource));
    }
    match tokens(net, Client::signed(client, &kept.token_place, &fields), now_ms).await {
        Ok(mut new) => {
            // What is not said again stays as it was.
            new.refresh = new.refresh.or_else(|| Some(refresh.clone()));
            new.scope = new.scope.or_else(|| old.scope.clone());
            Renewed::New(Box::new(Kept { tokens: Some(new), ..kept.clone() }))
        }
        Err(Refusal::ForGood(why)) => Renewed::SignIn(format!("its sign-in has ended: {why}")),
        Err(Refusal::Unreachable(why)) => Renewed::NotNow(format!("its sign-in can not be renewed now: {why}")),
    }
}
