use std::cell::RefCell;

use futures::future::LocalBoxFuture;
use serde_json::{Value, json};

use super::{form::fields, *};
use crate::{
    config::{OAuth, Registration},
    net::{Body, Unreachable},
};

/// Documents and answers by method and address, and what was asked for.
#[derive(Default)]
struct Web {
    pages: Vec<(String, u16, Value)>,
    asked: RefCell<Vec<Request>>,
    is_slow: bool,
}

struct Whole(Option<Vec<u8>>);

impl Body for Whole {
    fn next(&mut self) -> LocalBoxFuture<'_, Option<Result<Vec<u8>, String>>> {
        Box::pin(std::future::ready(self.0.take().map(Ok)))
    }
}

impl Net for Web {
    fn fetch(&self, request: Request) -> LocalBoxFuture<'_, Result<Response, Unreachable>> {
        let what = format!("{} {}", request.method, request.url);
        let page = self.pages.iter().find(|(known, _, _)| *known == what);
        let (status, body) = page.map_or((404, Value::Null), |(_, status, body)| (*status, body.clone()));
        self.asked.borrow_mut().push(request);
        let is_slow = self.is_slow;
        Box::pin(async move {
            if is_slow {
                std::future::pending::<()>().await;
            }
            let body = Box::new(Whole(Some(body.to_string().into_bytes())));
            Ok(Response { status, headers: Vec::new(), body })
        })
    }

    fn sleep(&self, _: Duration) -> LocalBoxFuture<'static, ()> {
        if self.is_slow { Box::pin(std::future::ready(())) } else { Box::pin(std::future::pending()) }
    }
}

/// Bytes that are not random at all, but never the same.
struct Counting(RefCell<u8>);

impl Random for Counting {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), String> {
        *self.0.borrow_mut() += 1;
        bytes.fill(*self.0.borrow());
        Ok(())
    }
}

const SERVER: &str = "https://mcp.example/mcp";
const REDIRECT: &str = "http://127.0.0.1:4567/callback";

impl Web {
    fn with(mut self, what: &str, status: u16, body: Value) -> Self {
        self.pages.push((what.to_owned(), status, body));
        self
    }

    fn page(self, url: &str, body: Value) -> Self {
        self.with(&format!("GET {url}"), 200, body)
    }

    /// A server whose users are signed in by another.
    fn usual() -> Self {
        Self::default()
            .page(
                "https://mcp.example/.well-known/oauth-protected-resource/mcp",
                json!({"resource": SERVER, "authorization_servers": ["https://as.example"], "scopes_supported": ["a", "b"]}),
            )
            .page("https://as.example/.well-known/oauth-authorization-server", issuer("https://as.example"))
            .with("POST https://as.example/register", 201, json!({"client_id": "us"}))
            .with(
                "POST https://as.example/token",
                200,
                json!({"access_token": "let-me-in", "token_type": "Bearer", "expires_in": 60, "refresh_token": "again"}),
            )
    }

    fn asked(&self) -> Vec<String> {
        self.asked.borrow().iter().map(|request| format!("{} {}", request.method, request.url)).collect()
    }

    /// The form of the last request.
    fn form(&self) -> Vec<(String, String)> {
        let asked = self.asked.borrow();
        let body = asked.last().and_then(|request| request.body.clone()).unwrap_or_default();
        fields(&String::from_utf8(body).unwrap())
    }
}

fn issuer(name: &str) -> Value {
    json!({
        "issuer": name,
        "authorization_endpoint": format!("{name}/authorize"),
        "token_endpoint": format!("{name}/token"),
        "registration_endpoint": format!("{name}/register"),
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
    })
}

async fn find(web: &Web, server: &str, wanted: &Wanted) -> Result<SignIn, String> {
    SignIn::find(web, server, &OAuth::default(), wanted, &Kept::default()).await
}

async fn ask_with(web: &Web, oauth: &OAuth, secret: Option<&str>, kept: &Kept) -> Result<(SignIn, Asked), String> {
    let sign_in = SignIn::find(web, SERVER, oauth, &Wanted::default(), kept).await?;
    let secret = secret.map(str::to_owned);
    let asked = sign_in.ask(web, &Counting(RefCell::new(0)), oauth, secret, kept, REDIRECT).await?;
    Ok((sign_in, asked))
}

fn query(asked: &Asked) -> Vec<(String, String)> {
    fields(asked.url.split_once('?').unwrap().1)
}

fn field<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

#[tokio::test]
async fn a_person_is_sent_to_who_signs_them_in_and_what_they_bring_back_is_kept() {
    let web = Web::usual();
    let (sign_in, asked) = ask_with(&web, &OAuth::default(), None, &Kept::default()).await.unwrap();
    let told: Value = serde_json::from_slice(web.asked.borrow()[2].body.as_deref().unwrap()).unwrap();
    assert_eq!(
        told,
        json!({"client_name": "Atoll", "redirect_uris": [REDIRECT], "scope": "a b", "application_type": "native",
            "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
            "token_endpoint_auth_method": "none"})
    );
    let shown: Vec<String> = query(&asked).iter().map(|(name, value)| format!("{name}={value}")).collect();
    insta::assert_snapshot!(shown.join("\n"));
    let state = field(&query(&asked), "state").unwrap().to_owned();
    let kept = sign_in.finish(&web, &asked, &format!("/callback?code=c%2B1&state={state}"), 1_000).await.unwrap();
    let form = web.form();
    let shown: Vec<String> = form.iter().map(|(name, value)| format!("{name}={value}")).collect();
    insta::assert_snapshot!(shown.join("\n"));
    let challenge = pkce::challenge(field(&form, "code_verifier").unwrap());
    assert_eq!(field(&query(&asked), "code_challenge"), Some(challenge.as_str()));
    let tokens = kept.tokens.clone().unwrap();
    assert_eq!((tokens.access.as_str(), tokens.ends, kept.asked.as_deref()), ("let-me-in", Some(61_000), Some("a b")));
    assert_eq!([tokens.is_over(30_999), tokens.is_over(31_000)], [false, true]);
    assert_eq!(Kept::read(&kept.to_bytes()), kept);
    assert!(!format!("{kept:?}").contains("let-me-in"));
    assert_eq!(Kept::read(b"{"), Kept::default());
}

#[tokio::test]
async fn documents_are_looked_for_where_they_may_be_and_nowhere_else() {
    // With a path; where the server says; without anything.
    let web = Web::default();
    assert!(find(&web, SERVER, &Wanted::default()).await.is_ok(), "as the first revision had it");
    assert_eq!(
        web.asked(),
        [
            "GET https://mcp.example/.well-known/oauth-protected-resource/mcp",
            "GET https://mcp.example/.well-known/oauth-protected-resource",
            "GET https://mcp.example/.well-known/oauth-authorization-server",
        ]
    );
    let web = Web::default()
        .page(
            "https://mcp.example/custom.json",
            json!({"resource": "https://mcp.example", "authorization_servers": ["https://as.example/t/1"]}),
        )
        .page("https://as.example/t/1/.well-known/openid-configuration", issuer("https://as.example/t/1"));
    let told = Wanted { metadata: Some("https://mcp.example/custom.json".to_owned()), scope: None };
    let sign_in = find(&web, SERVER, &told).await.unwrap();
    assert_eq!(sign_in.resource_name(), "https://mcp.example", "exactly as it is published");
    assert_eq!(
        web.asked(),
        [
            "GET https://mcp.example/custom.json",
            "GET https://as.example/.well-known/oauth-authorization-server/t/1",
            "GET https://as.example/.well-known/openid-configuration/t/1",
            "GET https://as.example/t/1/.well-known/openid-configuration",
        ]
    );
}

#[tokio::test]
async fn what_is_published_is_not_believed_if_it_leads_elsewhere() {
    let resource = |name: &str, issuer: &str| {
        Web::default().page(
            "https://mcp.example/.well-known/oauth-protected-resource/mcp",
            json!({"resource": name, "authorization_servers": [issuer]}),
        )
    };
    let of = |change: &dyn Fn(&mut Value)| {
        let mut page = issuer("https://as.example");
        change(&mut page);
        resource(SERVER, "https://as.example").page("https://as.example/.well-known/oauth-authorization-server", page)
    };
    let webs = [
        resource("https://evil.example/mcp", "https://as.example"),
        resource("https://mcp.example/other", "https://as.example"),
        resource("https://mcp.example/mc", "https://as.example"),
        resource(SERVER, "http://as.example"),
        resource(SERVER, "https://as.example"),
        of(&|page| page["issuer"] = json!("https://evil.example")),
        of(&|page| page["token_endpoint"] = json!("http://as.example/token")),
        of(&|page| page["authorization_endpoint"] = json!("javascript:alert(1)")),
        of(&|page| page["code_challenge_methods_supported"] = json!(["plain"])),
        of(&|page| page["token_endpoint"] = json!(null)),
        resource(SERVER, "https://as.example").with(
            "GET https://as.example/.well-known/oauth-authorization-server",
            503,
            json!({}),
        ),
        Web { is_slow: true, ..Web::usual() },
    ];
    let mut all = Vec::new();
    for web in webs {
        all.push(find(&web, SERVER, &Wanted::default()).await.unwrap_err());
    }
    let told = Wanted { metadata: Some("http://mcp.example/x".to_owned()), scope: None };
    all.push(find(&Web::default(), SERVER, &told).await.unwrap_err());
    let told = Wanted { metadata: Some("https://mcp.example/x".to_owned()), scope: None };
    all.push(find(&Web::default(), SERVER, &told).await.unwrap_err());
    insta::assert_snapshot!(all.join("\n"));
}

#[tokio::test]
async fn the_way_back_is_believed_only_if_it_is_of_who_was_asked() {
    let mut page = issuer("https://as.example");
    page["authorization_response_iss_parameter_supported"] = json!(true);
    let mut strict = Web::usual();
    strict.pages[1].2 = page;
    let mut all = Vec::new();
    for (web, back) in [
        (Web::usual(), "code=x&state=other"),
        (Web::usual(), "code=x"),
        (Web::usual(), "code=x&state=STATE&iss=https://as.example/"),
        (strict, "code=x&state=STATE"),
        (Web::usual(), "error=access_denied&error_description=not%20you&state=STATE"),
        (Web::usual(), "state=STATE"),
    ] {
        let (sign_in, asked) = ask_with(&web, &OAuth::default(), None, &Kept::default()).await.unwrap();
        let back = format!("/callback?{}", back.replace("STATE", &asked.state));
        all.push(sign_in.finish(&web, &asked, &back, 0).await.unwrap_err());
        assert!(!web.asked().iter().any(|asked| asked.ends_with("/token")), "no code is given away");
    }
    insta::assert_snapshot!(all.join("\n"));
    let (web, iss) = (Web::usual(), "https%3A%2F%2Fas.example");
    let (sign_in, asked) = ask_with(&web, &OAuth::default(), None, &Kept::default()).await.unwrap();
    assert!(sign_in.finish(&web, &asked, &format!("/?code=x&state={}&iss={iss}", asked.state), 0).await.is_ok());
}

#[tokio::test]
async fn a_client_is_the_one_of_the_configuration_or_of_last_time_or_a_new_one() {
    let id =
        |id: &str, registration: Registration| OAuth { client_id: Some(id.into()), registration, ..OAuth::default() };
    let mut knows_documents = Web::usual();
    knows_documents.pages[1].2["client_id_metadata_document_supported"] = json!(true);
    let mut closed = Web::usual();
    closed.pages[1].2["registration_endpoint"] = json!(null);
    let mut unwilling = Web::usual();
    unwilling.pages[2].1 = 400;
    unwilling.pages[2].2 = json!({"error": "invalid_redirect_uri", "error_description": "not local"});
    let document = "https://me.example/client.json";
    let kept = Kept {
        tokens: Tokens::of_answer(&json!({"access_token": "x"}), 0),
        client: Some(Client { id: "last".to_owned(), ..Client::default() }),
        issuer: "https://as.example".to_owned(),
        redirect: REDIRECT.to_owned(),
        ..Kept::default()
    };
    let of_other = Kept { issuer: "https://other.example".to_owned(), ..kept.clone() };
    let none = Kept::default();
    let mut all = Vec::new();
    for (web, oauth, secret, kept) in [
        (&knows_documents, id(document, Registration::Auto), None, &none),
        (&closed, id(document, Registration::Document), None, &none),
        (&closed, id(document, Registration::Auto), None, &none),
        (&Web::usual(), id(document, Registration::Auto), None, &none),
        (&closed, id("known", Registration::Auto), None, &none),
        (&closed, id("known", Registration::Auto), Some("s"), &none),
        (&closed, OAuth::default(), None, &none),
        (&unwilling, OAuth::default(), None, &none),
        (&Web::usual(), OAuth::default(), None, &kept),
        (&Web::usual(), OAuth::default(), None, &of_other),
    ] {
        all.push(match ask_with(web, &oauth, secret, kept).await {
            Ok((_, asked)) => format!("{} ({})", asked.client.id, asked.client.method.name()),
            Err(why) => why,
        });
    }
    insta::assert_snapshot!(all.join("\n"));
}

#[tokio::test]
async fn a_client_proves_itself_as_it_is_wanted_to() {
    for (supported, registered, expected) in [
        (json!(["client_secret_basic"]), json!({"client_id": "a:b", "client_secret": "s e"}), "Basic YSUzQWI6cyUyMGU="),
        (
            json!(["client_secret_post"]),
            json!({"client_id": "a", "client_secret": "s", "token_endpoint_auth_method": "client_secret_post"}),
            "a s",
        ),
        (json!(["none"]), json!({"client_id": "a"}), "a "),
        (json!(null), json!({"client_id": "a", "client_secret": "s"}), "Basic YTpz"),
    ] {
        let mut web = Web::usual();
        web.pages[1].2["token_endpoint_auth_methods_supported"] = supported;
        web.pages[2].2 = registered;
        let (sign_in, asked) = ask_with(&web, &OAuth::default(), None, &Kept::default()).await.unwrap();
        sign_in.finish(&web, &asked, &format!("/?code=x&state={}", asked.state), 0).await.unwrap();
        let form = web.form();
        let of_form = || {
            let field = |name| field(&form, name).unwrap_or_default();
            format!("{} {}", field("client_id"), field("client_secret"))
        };
        let asked = web.asked.borrow();
        let header = asked.last().unwrap().headers.iter().find(|(name, _)| name == "authorization");
        assert_eq!(header.map_or_else(of_form, |(_, value)| value.clone()), expected);
    }
}

#[tokio::test]
async fn scopes_are_what_the_user_says_or_the_server_wants_and_grow() {
    let before = Kept {
        tokens: Tokens::of_answer(&json!({"access_token": "x"}), 0),
        issuer: "https://as.example".to_owned(),
        asked: Some("a".to_owned()),
        ..Kept::default()
    };
    let said = || OAuth { scope: Some("mine".to_owned()), ..OAuth::default() };
    let wants = |scope: &str| Wanted { scope: Some(scope.to_owned()), metadata: None };
    for (oauth, wanted, kept, offline, expected) in [
        (OAuth::default(), Wanted::default(), Kept::default(), false, Some("a b")),
        (OAuth::default(), wants("w"), Kept::default(), false, Some("w")),
        (OAuth::default(), wants("w a"), before.clone(), false, Some("a w")),
        (said(), Wanted::default(), Kept::default(), false, Some("mine")),
        (said(), wants("w"), Kept::default(), false, Some("mine w")),
        (OAuth::default(), Wanted::default(), Kept::default(), true, Some("a b offline_access")),
    ] {
        let mut web = Web::usual();
        if offline {
            web.pages[1].2["scopes_supported"] = json!(["a", "offline_access"]);
        }
        let sign_in = SignIn::find(&web, SERVER, &oauth, &wanted, &kept).await.unwrap();
        assert_eq!(sign_in.scope.as_deref(), expected);
    }
    let mut web = Web::usual();
    web.pages[0].2["scopes_supported"] = json!(null);
    assert_eq!(find(&web, SERVER, &Wanted::default()).await.unwrap().scope, None);
    assert!(before.has_asked_for("a") && !before.has_asked_for("a b"));
}

#[tokio::test]
async fn tokens_are_renewed_or_a_person_is_needed_or_it_is_not_known_yet() {
    let kept = Kept {
        tokens: Tokens::of_answer(&json!({"access_token": "old", "refresh_token": "again", "scope": "a"}), 0),
        client: Some(Client { id: "us".to_owned(), ..Client::default() }),
        token_place: "https://as.example/token".to_owned(),
        resource: Some(SERVER.to_owned()),
        ..Kept::default()
    };
    let mut web = Web::usual();
    web.pages[3].2 = json!({"access_token": "new", "expires_in": "10"});
    let Renewed::New(renewed) = renew(&web, &kept, 5).await else { panic!("it is not renewed") };
    let tokens = renewed.tokens.unwrap();
    assert_eq!(
        (tokens.access.as_str(), tokens.refresh.as_deref(), tokens.ends, tokens.scope.as_deref()),
        ("new", Some("again"), Some(10_005), Some("a"))
    );
    let form = web.form();
    assert_eq!((field(&form, "grant_type"), field(&form, "resource")), (Some("refresh_token"), Some(SERVER)));
    let mut all = Vec::new();
    for (status, body) in [
        (400, json!({"error": "invalid_grant", "error_description": "revoked\u{7}"})),
        (503, json!({"error": "temporarily_unavailable"})),
        (200, json!({"access_token": "x", "token_type": "mac"})),
    ] {
        web.pages[3].1 = status;
        web.pages[3].2 = body;
        all.push(match renew(&web, &kept, 5).await {
            Renewed::New(_) => "new".to_owned(),
            Renewed::SignIn(why) => format!("sign in: {why}"),
            Renewed::NotNow(why) => format!("not now: {why}"),
        });
    }
    insta::assert_snapshot!(all.join("\n"));
    let ended = Kept { tokens: Tokens::of_answer(&json!({"access_token": "old"}), 0), ..kept };
    assert!(matches!(renew(&web, &ended, 5).await, Renewed::SignIn(_)));
}

#[test]
fn the_same_address_under_two_names_is_kept_twice() {
    assert_eq!(key("a-b", SERVER), key("a_b", SERVER));
    assert_ne!(key("a", SERVER), key("b", SERVER));
    assert_ne!(key("a", SERVER), key("a", "https://mcp.example/other"));
}
