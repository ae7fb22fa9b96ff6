//! What each request says for itself: who asks, and without sessions what it is.

use std::cell::RefCell;

use futures::future::LocalBoxFuture;
use serde_json::json;

use super::played::{Script, answer, call, forever, greeted, header, status, way, with};
use crate::{
    http::{Access, Anybody, Ended, Refused, Verdict, Way},
    session::{Era, Failure},
};

/// Who has a new key each time.
#[derive(Default)]
struct Keys {
    refused: RefCell<Vec<Refused>>,
    gives_up: bool,
}

impl Access for Keys {
    fn headers(&self) -> LocalBoxFuture<'_, Result<Vec<(String, String)>, String>> {
        let key = format!("Bearer {}", self.refused.borrow().len());
        Box::pin(std::future::ready(Ok(vec![("authorization".to_owned(), key)])))
    }

    fn refused<'a>(&'a self, refused: &'a Refused) -> LocalBoxFuture<'a, Verdict> {
        self.refused.borrow_mut().push(refused.clone());
        let verdict = if self.gives_up { Verdict::SignIn("sign in".to_owned()) } else { Verdict::Again };
        Box::pin(std::future::ready(verdict))
    }
}

#[tokio::test]
async fn who_asks_is_said_anew_when_it_is_not_believed_and_not_for_ever() {
    let refusal = || status(401).with("www-authenticate", "Bearer error=\"invalid_token\"");
    let keys = Keys::default();
    let script = Script::default()
        .on("initialize", refusal())
        .hello()
        .on("tools/call", refusal())
        .on("tools/call", refusal())
        .on("tools/call", refusal())
        .on("tools/call", refusal());
    let (given, _) = with(&script, &keys, async |session, _| call(&session.unwrap(), "a").await).await;
    assert_eq!(way(&given), Some((Way::Refused, "it answers with HTTP 401".to_owned())));
    let keys_sent: Vec<String> =
        script.of("tools/call").iter().map(|request| header(request, "authorization").unwrap().to_owned()).collect();
    assert_eq!(keys_sent, ["Bearer 1", "Bearer 2", "Bearer 3", "Bearer 4"]);
    let before: Vec<u32> = keys.refused.borrow().iter().map(|refused| refused.before).collect();
    assert_eq!(before, [0, 0, 1, 2]);
    assert_eq!(keys.refused.borrow()[0].challenges, ["Bearer error=\"invalid_token\""]);

    let keys = Keys { gives_up: true, ..Keys::default() };
    let script = Script::default().on("initialize", refusal());
    let (failure, _) = with(&script, &keys, async |session, _| session.err()).await;
    assert_eq!(failure, Some(Failure::OnTheWay { way: Way::SignIn, why: "sign in".to_owned() }));
}

#[tokio::test]
async fn without_sessions_each_request_says_for_itself_what_it_is() {
    let found = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete",
        "ttlMs": 0, "cacheScope": "private"});
    let schema = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let wrong = json!({"type": "object", "properties": {"n": {"type": "number", "x-mcp-header": "N"}}});
    let listed = json!({"tools": [{"name": "a", "inputSchema": schema}, {"name": "b", "inputSchema": wrong}],
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private"});
    let script = Script::default()
        .on("server/discover", answer(&found))
        .on("tools/list", answer(&listed))
        .on("tools/call", answer(&json!({"content": [], "resultType": "complete"})));
    let (tools, ended) = greeted(Era::Stateless, &script, &Anybody, async |session, _| {
        let session = session.unwrap();
        assert!(session.is_stateless());
        let (tools, strange) = session.tools().await.unwrap();
        let arguments = json!({"region": "eu"}).as_object().cloned().unwrap();
        let running = session.call("a", arguments).await.unwrap();
        running.answer(forever, forever(), |_| {}).await.unwrap();
        (tools.len(), strange)
    })
    .await;
    assert_eq!((tools.0, ended), (1, Ended::Unneeded), "a tool that can not be called is left out");
    assert!(tools.1[0].contains("the tool \"b\""), "{:?}", tools.1);
    assert_eq!(script.asked(), ["server/discover", "tools/list", "tools/call"]);
    for (what, request) in script.requests.borrow().iter() {
        assert_eq!(header(request, "mcp-protocol-version"), Some("2026-07-28"), "{what}");
        assert_eq!(header(request, "mcp-method"), Some(what.as_str()));
        let of_call = (what == "tools/call").then_some(("a", "eu"));
        let said = header(request, "mcp-name").zip(header(request, "mcp-param-region"));
        assert_eq!(said, of_call);
    }
}
