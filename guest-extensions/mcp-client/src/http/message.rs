//! What has to be known of a message to send it over HTTP, and to tell what comes back.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

/// A message that the client sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It wants an answer.
    Request {
        /// By which its answer is known.
        id: Value,
        /// What is asked.
        method: String,
    },
    /// It wants none; it says that the request of this id is not wanted any more.
    Cancels(Value),
    /// It wants none.
    Notification {
        /// What is told.
        method: String,
    },
    /// It is an answer.
    Answer,
}

#[derive(Deserialize)]
struct Head {
    id: Option<Value>,
    method: Option<String>,
    params: Option<Params>,
}

/// Of parameters it is only looked at whom they cancel.
#[derive(Deserialize)]
#[serde(untagged)]
enum Params {
    Cancelled {
        #[serde(rename = "requestId")]
        id: Value,
    },
    Other(IgnoredAny),
}

impl Sent {
    /// What a line is. One that can not be read is taken for an answer: it is sent as it is.
    pub(crate) fn read(line: &[u8]) -> Self {
        let Ok(Head { id, method: Some(method), params }) = serde_json::from_slice(line) else { return Self::Answer };
        match (id, params) {
            (Some(id), _) => Self::Request { id, method },
            (None, Some(Params::Cancelled { id })) if method == "notifications/cancelled" => Self::Cancels(id),
            (None, _) => Self::Notification { method },
        }
    }
}

/// A message that a server sends, as far as it has to be told from others.
#[derive(Deserialize)]
struct Came {
    id: Option<Value>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

/// Whether a text is, or has among others, the answer to the request of this id.
pub(crate) fn answers(text: &[u8], id: &Value) -> bool {
    let is_answer = |came: &Came| (came.result.is_some() || came.error.is_some()) && came.id.as_ref() == Some(id);
    match serde_json::from_slice::<Came>(text) {
        Ok(came) => is_answer(&came),
        Err(_) => serde_json::from_slice::<Vec<Came>>(text).is_ok_and(|all| all.iter().any(is_answer)),
    }
}

/// The error that a refusal carries, as the answer to the request of this id.
pub(crate) fn refusal(body: &[u8], id: &Value) -> Option<Vec<u8>> {
    let mut refusal: Value = serde_json::from_slice(body).ok()?;
    let error = refusal.get_mut("error").filter(|error| error["code"].is_i64() && error["message"].is_string())?;
    Some(json!({"jsonrpc": "2.0", "id": id, "error": error.take()}).to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_from_each_other() {
        let read = |message: Value| Sent::read(message.to_string().as_bytes());
        let (id, method) = (json!(3), "tools/call".to_owned());
        assert_eq!(
            read(json!({"id": 3, "method": "tools/call", "params": {"requestId": 4}})),
            Sent::Request { id, method }
        );
        assert_eq!(
            read(json!({"method": "notifications/cancelled", "params": {"requestId": "a"}})),
            Sent::Cancels(json!("a"))
        );
        let method = "notifications/initialized".to_owned();
        assert_eq!(read(json!({"method": "notifications/initialized"})), Sent::Notification { method });
        assert_eq!(read(json!({"id": 3, "result": {}})), Sent::Answer);
        assert_eq!(Sent::read(b"x"), Sent::Answer);
    }

    #[test]
    fn an_answer_is_the_one_of_its_request() {
        for (text, expected) in [
            (json!({"id": 1, "result": {}}), true),
            (json!({"id": 1, "error": {}}), true),
            (json!([{"method": "x"}, {"id": 1, "result": 1}]), true),
            (json!({"id": 1, "method": "ping"}), false),
            (json!({"id": 2, "result": {}}), false),
            (json!({"id": "1", "result": {}}), false),
            (json!([]), false),
        ] {
            assert_eq!(answers(text.to_string().as_bytes(), &json!(1)), expected, "{text}");
        }
    }

    #[test]
    fn a_refusal_is_an_answer_whatever_its_id() {
        let body = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "no"}}).to_string();
        let answer: Value = serde_json::from_slice(&refusal(body.as_bytes(), &json!(5)).unwrap()).unwrap();
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 5, "error": {"code": -32000, "message": "no"}}));
        for none in ["", "no", "{}", r#"{"error": "invalid_token"}"#] {
            assert_eq!(refusal(none.as_bytes(), &json!(5)), None, "{none}");
        }
    }
}
