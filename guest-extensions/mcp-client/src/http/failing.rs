//! Why a request has no answer, as the answer that the client gets in its place.

use serde_json::{Value, json};

/// The code of such an answer. A server that uses it says no more than that its request failed.
const CODE: i32 = -32_091;

/// What came of a request on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The server does not know the session any more, and has not carried it out.
    Expired,
    /// It was not carried out.
    Refused,
    /// It may have been carried out.
    Lost,
    /// A person has to sign in first; it was not carried out.
    SignIn,
}

const ALL: [(Way, &str); 4] =
    [(Way::Expired, "expired"), (Way::Refused, "refused"), (Way::Lost, "lost"), (Way::SignIn, "sign-in")];

/// The answer to the request of this id.
pub(super) fn failing(id: &Value, way: Way, why: &str) -> Vec<u8> {
    let name = ALL.iter().find(|(known, _)| *known == way).map(|(_, name)| *name);
    let error = json!({"code": CODE, "message": why, "data": {"onTheWay": name}});
    json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string().into_bytes()
}

/// What an error says of the way, if it is one of ours.
pub(crate) fn on_the_way(code: i32, data: Option<&Value>) -> Option<Way> {
    let name = data.filter(|_| code == CODE)?["onTheWay"].as_str()?;
    ALL.iter().find(|(_, known)| *known == name).map(|(way, _)| *way)
}
